"""Checking: every finding with its line and the text that it is about; skills compared with each other."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from unittest.mock import ANY

import pytest

import prowess
from prowess.authoring.fix import unquoted_issues
from prowess.search.terms import WEIGHTS
from tests.cli_processes import run_command

BROKEN = Path(__file__).resolve().parents[2] / "examples" / "broken"


def put(folder: Path, name: str, description: str = "", head: str = "", body: str = "Do it.\n") -> Path:
    """A skill in a folder."""
    where = folder / name
    where.mkdir(parents=True)
    said = description or f"Does {name} when asked."
    (where / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {said}\n{head}---\n{body}", encoding="utf-8")
    return where


def codes(report: prowess.CheckReport) -> list[str]:
    return [finding.code for finding in report.findings]


def meant(finding: prowess.Finding) -> str:
    """The part of the line that a finding is about."""
    return finding.text[finding.column - 1 :][: finding.length]


def test_a_good_skill_has_no_findings(tmp_path: Path) -> None:
    report = prowess.check(put(tmp_path, "good"))
    assert (report.findings, report.ok(strict=True), len(report.skills)) == ((), True, 1)


@pytest.mark.parametrize(
    ("head", "code", "part"),
    [
        ("license: ''\n", "blank-field", "license"),
        ("frobnicate: yes\n", "unknown-field", "frobnicate"),
        ("hooks: x\n", "inert-field", "hooks"),
        ("compatibility: " + "x" * 501 + "\n", "compatibility-too-long", "x" * 501),
    ],
)
def test_a_finding_points_at_the_key_or_the_value(tmp_path: Path, head: str, code: str, part: str) -> None:
    (finding,) = prowess.check(put(tmp_path, "one", head=head)).findings
    assert (finding.code, finding.line, meant(finding)) == (code, 4, part)
    assert finding.hint


def test_a_tab_that_indents_is_named_before_what_follows_from_it(tmp_path: Path) -> None:
    findings = prowess.check(put(tmp_path, "one", head='metadata:\n\tversion: "1"\n')).findings
    assert (findings[0].code, findings[0].line) == ("yaml-syntax", 5)
    assert "a tab indents this line" in findings[0].message


def test_hidden_characters_are_found_where_they_stand(tmp_path: Path) -> None:
    where = put(tmp_path, "one", description="Does\u200b it well.", body="Fine.\n\nOdd \u202e text.\n")
    found = {finding.field: finding for finding in prowess.check(where).findings}
    assert (found["description"].line, meant(found["description"])) == (3, "\u200b")
    assert (found["body"].line, meant(found["body"])) == (7, "\u202e")


def test_a_missing_file_is_reported_once_where_it_is_named_first(tmp_path: Path) -> None:
    body = "Fine: [own](SKILL.md).\n\nSee [a](references/a.md).\nAgain `references/a.md`, and [b](b.md).\n"
    found = prowess.check(put(tmp_path, "one", body=body)).findings
    assert [(one.code, one.severity, one.line, meant(one)) for one in found] == [
        ("missing-reference", "warning", 7, "references/a.md"),
        ("missing-reference", "warning", 8, "b.md"),
    ]
    assert prowess.validate(tmp_path / "one")[0].code == "missing-reference"


def test_a_named_file_that_other_findings_are_about_is_not_missing(tmp_path: Path) -> None:
    where = put(tmp_path, "one", body="[a](references/a.md) [b](linked/b.md)\n")
    (where / "references").mkdir()
    (where / "references" / "a.md").symlink_to("../SKILL.md")
    (where / "linked").symlink_to(tmp_path)
    assert codes(prowess.check(where)) == ["link-in-skill", "link-in-skill"]


def test_in_a_skill_too_large_to_be_listed_no_file_is_called_missing(tmp_path: Path) -> None:
    where = put(tmp_path, "one", body="[a](references/a.md)\n")
    for name in ("x", "y", "z"):
        (where / name).write_text(name, encoding="utf-8")
    few = prowess.Limits(max_files_per_skill=3, max_entries_per_skill=3)
    assert codes(prowess.check(where, limits=few)) == ["not-served-over-mcp", "too-many-files"]


def test_no_more_missing_files_are_reported_than_a_skill_may_have(tmp_path: Path) -> None:
    where = put(tmp_path, "one", body="".join(f"[a](references/{number}.md)\n" for number in range(9)))
    assert len(prowess.check(where, limits=prowess.Limits(max_files_per_skill=5)).findings) == 5


def test_keywords_that_a_search_leaves_out_are_found(tmp_path: Path) -> None:
    words = [f"word{number}" for number in range(90)]
    put(tmp_path, "few", f"Does it when asked. {' '.join(words)}.", f"tags: [{', '.join(words[:16])}]\n")
    put(tmp_path, "many", f"Does it when asked. {' '.join(f'w{number}' for number in range(99))}.")
    common = " ".join(" ".join(WEIGHTS.values()).split()[:80])
    put(tmp_path, "common", f"Does it when asked. {common}.")
    put(tmp_path, "tags", head=f"tags: [{', '.join(words[:17])}]\n")
    put(tmp_path, "long", head=f"metadata:\n  tags: {'x' * 513}, {'y' * 513}\n")
    found = {
        one.path.split("/")[-2]: one for one in prowess.check(tmp_path).findings if one.code == "too-many-keywords"
    }
    assert {name: (one.severity, one.line) for name, one in found.items()} == {
        "many": ("warning", 3),
        "common": ("warning", 3),
        "tags": ("warning", 4),
        "long": ("warning", 4),
    }
    assert "words that requests of every kind have" in found["common"].message
    assert "17 tags" in found["tags"].message
    assert "1,027 characters" in found["long"].message
    assert "103 different words" in found["many"].message
    narrow = prowess.check(tmp_path / "few", limits=prowess.Limits(max_indexed_tags=15))
    assert "too-many-keywords" in codes(narrow)


def test_every_finding_has_a_line_that_exists_or_is_the_first(tmp_path: Path) -> None:
    where = put(tmp_path, "one")
    (where / "references").mkdir()
    (where / "references" / "link.md").symlink_to("../SKILL.md")
    report = prowess.check(where, BROKEN)
    assert "link-in-skill" in codes(report)
    for finding in report.findings:
        rows = Path(finding.path).read_text(encoding="utf-8").split("\n")
        assert 1 <= finding.line <= len(rows)
        assert finding.text == rows[finding.line - 1]


def test_a_finding_is_fixable_when_a_fix_would_end_it() -> None:
    for finding in prowess.check(BROKEN).findings:
        fixed = prowess.fix(finding.path)
        assert finding.fixable == bool(fixed), finding


def test_names_that_people_confuse_are_found(tmp_path: Path) -> None:
    for name in ("make-report", "make-reports", "pdf-tools", "pdftools", "step-1", "step-2", "abc", "abd"):
        put(tmp_path, name)
    for name in ("sort-mail", "sort-mial", "web-fetch", "webfetche"):
        put(tmp_path, name)
    found = [finding for finding in prowess.check(tmp_path).findings if finding.code == "confusing-name"]
    assert sorted(meant(finding) for finding in found) == ["make-reports", "pdftools", "sort-mial", "webfetche"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("trail", "trial"),
        ("git-commit", "git-commti"),
        ("pdf-tool", "pdftools"),
        ("write_docs", "write-doc"),
        ("PDF-tools", "pdf-tool"),
        ("a-b", "ab"),
    ],
)
def test_names_that_a_person_could_mistype_are_found(tmp_path: Path, one: str, other: str) -> None:
    put(tmp_path / "a", one)
    put(tmp_path / "b", other)
    assert "confusing-name" in codes(prowess.check(tmp_path))


@pytest.mark.parametrize(("one", "other"), [("clock", "dock"), ("modern", "modem"), ("ab", "ba")])
def test_ordinary_words_that_only_look_alike_are_not_confusing(tmp_path: Path, one: str, other: str) -> None:
    put(tmp_path / "a", one)
    put(tmp_path / "b", other)
    assert "confusing-name" not in codes(prowess.check(tmp_path))


def test_one_name_in_two_folders_is_found(tmp_path: Path) -> None:
    put(tmp_path / "a", "one")
    put(tmp_path / "b", "one")
    report = prowess.check(tmp_path / "a", tmp_path / "b")
    assert codes(report) == ["duplicate-name"]
    assert codes(prowess.check(tmp_path)) == ["duplicate-name"]


def test_descriptions_that_say_the_same_are_found(tmp_path: Path) -> None:
    said = "Fills in forms of the tax office for small companies and checks every sum twice."
    put(tmp_path, "one", said)
    put(tmp_path, "two", said)
    put(tmp_path, "three", said.replace("twice", "again"))
    put(tmp_path, "four", "Waters the plants in the office when nobody else is there to do it.")
    report = prowess.check(tmp_path)
    assert codes(report) == ["confusing-description"]  # one for all three, not one for each pair
    (issue,) = report.findings
    assert "'one'" in issue.message
    assert issue.message.endswith("; as do two")


def test_a_hundred_similar_descriptions_are_one_warning_for_each_group(tmp_path: Path) -> None:
    for number in range(100):
        put(tmp_path, f"tax-{number}", f"Fills in forms of the tax office for small companies and checks sum {number}.")
        put(tmp_path, f"pot-{number}", f"Waters the plants in the office when nobody else is there at {number}.")
    found = [issue for issue in prowess.check(tmp_path).findings if issue.code == "confusing-description"]
    assert len(found) == 2
    assert all("and 93 more" in issue.message for issue in found)


def test_at_most_so_many_skills_are_compared(tmp_path: Path) -> None:
    for name in ("one-skill", "another-one", "one-skills"):
        put(tmp_path, name)
    assert codes(prowess.check(tmp_path)) == ["confusing-name"]
    assert codes(prowess.check(tmp_path, limits=prowess.Limits(max_compared_skills=2))) == []


def test_a_listing_over_the_budget_is_a_warning(tmp_path: Path) -> None:
    put(tmp_path, "one")
    report = prowess.check(tmp_path, budget=5)
    assert codes(report) == ["listing-too-large"]
    assert (report.ok(), report.ok(strict=True)) == (True, False)
    assert prowess.check(tmp_path, budget=500).findings == ()


@pytest.mark.parametrize("name", ["nothing", "notes.txt"])
def test_a_path_without_a_skill_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "nothing").mkdir()
    (tmp_path / "notes.txt").write_text("x", encoding="utf-8")
    with pytest.raises(prowess.SourceError) as caught:
        prowess.check(tmp_path / name)
    assert caught.value.code == "missing-skill-md"


def test_real_skills_are_checked_and_mended_without_losing_a_word(
    corpus: list[Path], some_of_corpus: list[Path]
) -> None:
    assert len(corpus) == 534
    for folder in some_of_corpus:
        report = prowess.check(folder)
        assert len(report.skills) == 1
        for finding in report.findings:
            assert min(finding.line, finding.column, finding.length) >= 1
            assert finding.hint
        _mended(Path(report.skills[0]))


def _mended(file: Path) -> None:
    """A fix says what the file said."""
    try:
        found = prowess.fix(file)
    except prowess.SkillValidationError:
        return
    if not found:
        return
    before = prowess.parse_skill(found.before, file, "lenient")
    after = prowess.parse_skill(found.after, file, "lenient")
    assert after.body == before.body
    assert after.skill.description == before.skill.description
    if found.new_path:
        assert Path(found.new_path) == file.with_name("SKILL.md")
        return
    unquoted = [len(unquoted_issues(text, str(file))) for text in (found.before, found.after)]
    assert len(after.issues) < len(before.issues) or after.skill.name != before.skill.name or unquoted[1] < unquoted[0]


FOUND = re.compile(r"^(.+?):(\d+):(\d+): (error|warning|info)\[([a-z-]+)\] ", re.MULTILINE)
ANNOTATED = re.compile(r"^::(error|warning|notice) file=[^,]+,line=([1-9]\d*),col=([1-9]\d*),title=([a-z-]+)::.")
ODD = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]")


def test_the_command_gives_every_finding_about_many_real_skills_a_line(some_of_corpus: list[Path], full: bool) -> None:
    """All of them at once, compared with each other too, as text, as annotations and as data."""
    corpus = some_of_corpus

    def said(*options: str) -> str:
        done = run_command(("check", *map(str, corpus), *options))
        assert (done.returncode, done.stderr) == (1, b"")
        text = done.stdout.decode("utf-8")
        assert not ODD.search(text)
        return text

    data = json.loads(said("--json"))
    found = Counter(finding["code"] for finding in data["findings"])
    assert len(data["skills"]) == len(set(corpus))
    assert found
    assert not full or found["duplicate-name"] > 0
    assert min(finding["line"] for finding in data["findings"]) >= 1
    folders = {Path(path).parent for path in data["skills"]}
    assert all(not folders.isdisjoint(Path(finding["path"]).parents) for finding in data["findings"])
    rows = [ANNOTATED.match(row) for row in said("--format", "github").splitlines()]
    assert all(rows)
    assert Counter(row[4] for row in rows if row) == found
    assert Counter(match[5] for match in FOUND.finditer(said())) == found


def test_only_what_a_fix_puts_right_is_said_to_be_fixable(tmp_path: Path) -> None:
    head = "license: MIT: or so\nhooks: x\n"
    where = put(tmp_path, "one", head=head, body="Odd \u202e text: [a](references/a.md).\n")
    found = {finding.code: finding.fixable for finding in prowess.check(where).findings}
    assert found == {"yaml-syntax": True, "inert-field": False, "hidden-text": False, "missing-reference": False}
    prowess.apply_fix(prowess.fix(where))
    assert sorted(codes(prowess.check(where))) == ["hidden-text", "inert-field", "missing-reference"]


def test_what_is_left_beside_another_error_is_not_said_to_be_fixable(tmp_path: Path) -> None:
    """The license can be quoted; the folder's name cannot become the skill's, and no fix sees the hidden text."""
    where = put(tmp_path, "Wrong-Case", head="license: MIT: or so\n", body="Odd \u202e text.\n")
    found = {finding.code: finding.fixable for finding in prowess.check(where).findings}
    assert found == {"yaml-syntax": True, "bad-name": False, "hidden-text": False}


@pytest.mark.parametrize(
    ("name", "code"),
    [("other", "name-mismatch"), ("one two", "bad-name"), ("con", "reserved-name"), ("", "missing-name")],
)
def test_a_finding_is_as_bad_beside_another_as_alone(tmp_path: Path, name: str, code: str) -> None:
    def found(head: str) -> dict[str, tuple[str, str]]:
        (tmp_path / "one" / "SKILL.md").write_text(f"---\n{head}---\nDo it.\n", encoding="utf-8")
        return {one.code: (one.severity, one.message) for one in prowess.check(tmp_path / "one").findings}

    (tmp_path / "one").mkdir()
    said = f"name: {name}\n" if name else ""
    alone = found(f"{said}description: Does it when asked.\n")
    assert alone[code][0] == "error"
    assert found(f"{said}description: Does it: all when asked.\n") == {**alone, "yaml-syntax": ("error", ANY)}


@pytest.mark.parametrize(
    ("folder", "name", "better"), [("Wrong-Case", "wrong-case", "wrong-case"), ("Big_One", "Big", "big-one")]
)
def test_a_folder_that_no_skill_can_be_named_after_is_to_be_renamed(
    tmp_path: Path, folder: str, name: str, better: str
) -> None:
    where = put(tmp_path, folder)
    text = (where / "SKILL.md").read_text(encoding="utf-8").replace(f"name: {folder}", f"name: {name}")
    (where / "SKILL.md").write_text(text, encoding="utf-8")
    (said,) = [one.message for one in prowess.check(where).findings if one.code == "name-mismatch"]
    assert f"rename the folder to {better!r}" in said


# -- what an MCP server would leave out --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "field", "part", "fixable"),
    [
        ("metadata:\n  author: me\n  count: 3\n", "metadata.count", "3", True),
        ("metadata:\n  on: true\n", "metadata.on", "true", True),
        ("metadata: {count: 1.5, author: me}\n", "metadata.count", "metadata: {count: 1.5, author: me}", True),
        ("license: 2.0\n", "license", "2.0", True),
        ("allowed-tools:\n  - Read\n", "allowed-tools", "allowed-tools", False),
    ],
)
def test_a_valid_skill_that_an_mcp_server_leaves_out_has_a_warning_where_the_cause_stands(
    tmp_path: Path, head: str, field: str, part: str, fixable: bool
) -> None:
    (finding,) = prowess.check(put(tmp_path, "one", head=head)).findings
    assert (finding.code, finding.severity, finding.field) == ("not-served-over-mcp", "warning", field)
    assert (meant(finding), finding.fixable) == (part, fixable)


def test_the_warning_about_mcp_is_given_for_exactly_what_the_server_leaves_out(tmp_path: Path) -> None:
    heads = ("", "metadata:\n  count: 3\n", "metadata:\n  count: '3'\n", "version: 1.0\n", "allowed-tools: [Read]\n")
    for number, head in enumerate(heads):
        put(tmp_path, f"skill-{number}", head=head)
    many = put(tmp_path, "skill-many")
    for number in range(4):
        (many / f"{number}.txt").write_text("x", encoding="utf-8")
    limits = prowess.Limits(max_served_files=3)
    warned = {one.path for one in prowess.check(tmp_path, limits=limits).findings if one.code == "not-served-over-mcp"}
    refused = {one.location for one in prowess.mcp.check(tmp_path, limits=limits)}
    assert warned == refused
    assert len(warned) == 3


def test_a_skill_with_errors_has_no_second_finding_about_mcp(tmp_path: Path) -> None:
    where = put(tmp_path, "one", head="metadata:\n  count: 3\n")
    where.rename(tmp_path / "two")
    assert codes(prowess.check(tmp_path / "two")) == ["name-mismatch"]


# -- what matters to those who look for a skill ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        "TODO",
        "todo: write this",
        "TBD.",
        "A skill",
        "This is a skill.",
        "My new skill",
        "one",
        "Description",
        "Helps me.",
    ],
)
def test_a_description_that_says_nothing_is_a_warning(tmp_path: Path, said: str) -> None:
    (finding,) = prowess.check(put(tmp_path, "one", f'"{said}"')).findings
    assert (finding.code, finding.severity, meant(finding)) == ("vague-description", "warning", f'"{said}"')


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Writes the weekly report of the team.", ["description-without-when"]),
        ("Writes the weekly report. Use when the week is over.", []),
        ("Writes reports for people who ask.", []),
        ("Schreibt den Bericht für die Woche.", []),
        ("毎週の報告書を書きます。", []),
    ],
)
def test_a_description_that_does_not_say_when_to_use_the_skill_is_told(
    tmp_path: Path, said: str, expected: list[str]
) -> None:
    report = prowess.check(put(tmp_path, "one", said))
    assert (codes(report), report.ok(strict=True)) == (expected, True)


@pytest.mark.parametrize(
    ("key", "nearest"),
    [("licence", "license"), ("allowed-tool", "allowed-tools"), ("user-invokabel", "user-invokable"), ("Tags", "tags")],
)
def test_a_key_that_is_nearly_a_known_one_is_told_with_that(tmp_path: Path, key: str, nearest: str) -> None:
    (finding,) = prowess.check(put(tmp_path, "one", head=f"{key}: x\n")).findings
    assert (finding.code, finding.severity, finding.field) == ("unknown-field", "info", key)
    assert repr(nearest) in finding.message


LETTERS = "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8bC0eF" * 3
SECRETS = {
    "GitHub": "ghp" + f"_{LETTERS[:36]}",
    "GitLab": "glpat" + f"-{LETTERS[:20]}",
    "AWS": "AKIA" + "Q3EGRTZ5UVXY7WA2",
    "Anthropic": "sk-ant" + f"-api03-{LETTERS[:80]}",
    "OpenAI": "sk-proj" + f"-{LETTERS[:60]}",
    "Slack": "xoxb" + f"-123456789012-{LETTERS[:24]}",
    "Google": "AIza" + LETTERS[:35],
    "npm": "npm" + f"_{LETTERS[:36]}",
    "Stripe": "sk" + f"_live_{LETTERS[:24]}",
}


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_in_any_file_of_a_skill_is_a_warning_that_does_not_repeat_it(tmp_path: Path, kind: str) -> None:
    secret = SECRETS[kind]
    where = put(tmp_path, "one", body=f"Call it with `{secret}`.\n")
    (where / "scripts").mkdir()
    (where / "scripts" / "call.py").write_text(f"import x\n\nKEY = '{secret}'\n", encoding="utf-8")
    report = prowess.check(where)
    assert [(one.code, one.severity, Path(one.path).name, one.line) for one in report.findings] == [
        ("secret-in-skill", "warning", "SKILL.md", 5),
        ("secret-in-skill", "warning", "call.py", 3),
    ]
    assert all(kind in one.message and one.length == len(secret) for one in report.findings)
    assert secret not in repr(report)


def test_a_private_key_is_a_secret_and_the_words_around_one_are_none(tmp_path: Path) -> None:
    begin = "-----BEGIN " + "OPENSSH PRIVATE KEY-----"
    assert codes(prowess.check(put(tmp_path, "one", body=f"Paste it: {begin}\n...\n"))) == []
    assert codes(prowess.check(put(tmp_path, "two", body=f"{begin}\n{LETTERS}\n"))) == ["secret-in-skill"]


@pytest.mark.parametrize("text", ["AKIA" + "IOSFODNN7EXAMPLE", "ghp_" + "x" * 36, "sk-proj-" + "your-key-here-" * 4])
def test_an_example_of_a_secret_is_none(tmp_path: Path, text: str) -> None:
    assert codes(prowess.check(put(tmp_path, "one", body=f"Such as {text}\n"))) == []


def test_secrets_are_sought_in_text_and_as_far_as_a_skill_is_read(tmp_path: Path) -> None:
    where = put(tmp_path, "one")
    (where / "picture.bin").write_bytes(b"\0" + SECRETS["npm"].encode())
    (where / "large.txt").write_text("x\n" * 600 + SECRETS["npm"], encoding="utf-8")
    assert codes(prowess.check(where, limits=prowess.Limits(max_body_bytes=1_000))) == []
    assert codes(prowess.check(where)) == ["secret-in-skill"]

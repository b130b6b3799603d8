"""Which heads make a skill under which mode, and under which name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from prowess.errors import InvalidFrontmatterError, SkillLoadError
from prowess.format.head import STRICT_POLICY, Head, LoadPolicy, read_head
from prowess.limits import DEFAULT_LIMITS, Limits

LENIENT = LoadPolicy()
UNREPAIRED = LoadPolicy(repair=False)


def read(rows: str, policy: LoadPolicy = LENIENT, folder: str | None = "folder") -> Head:
    head = f"---\n{rows}---\nbody\n".encode()
    return read_head(head, quick=False, policy=policy, folder=folder, path="p/SKILL.md")


def codes(document: Head) -> list[str]:
    return [issue.code for issue in document.issues]


def test_a_good_head_is_a_skill_in_both_modes() -> None:
    for policy in (STRICT_POLICY, LENIENT):
        found = read("name: folder\ndescription: d\n", policy)
        assert (found.front.name, found.issues, found.body_offset) == ("folder", (), 36)


def test_strict_mode_raises_every_violation_with_path_and_line() -> None:
    with pytest.raises(SkillLoadError) as caught:
        read("name: A B\nlicense: ''\n", STRICT_POLICY)
    found = [(i.code, i.line, i.path) for i in caught.value.issues]
    assert found == [
        ("bad-name", 2, "p/SKILL.md"),
        ("name-mismatch", 2, "p/SKILL.md"),
        ("missing-description", 2, "p/SKILL.md"),
        ("blank-field", 3, "p/SKILL.md"),
    ]
    assert caught.value.path == "p/SKILL.md"


def test_strict_mode_repairs_nothing() -> None:
    with pytest.raises(InvalidFrontmatterError):
        read("name: folder\ndescription: a: b\n", LoadPolicy("strict", repair=True))


def test_lenient_mode_without_repair_refuses_what_is_not_yaml() -> None:
    with pytest.raises(InvalidFrontmatterError):
        read("name: folder\ndescription: a: b\n", UNREPAIRED)
    assert read("name: folder\ndescription: a: b\n").front.description == "a: b"


def test_lenient_mode_warns_of_a_name_that_is_not_the_folders() -> None:
    found = read("name: other\ndescription: d\n")
    assert (found.front.name, codes(found)) == ("other", ["name-mismatch"])
    assert codes(read("name: other\ndescription: d\n", LoadPolicy(check_dir=False))) == []


@pytest.mark.parametrize("name", ["My Skill", "a_b", "日本語"])
def test_lenient_mode_keeps_a_usable_name(name: str) -> None:
    found = read(f"name: {name}\ndescription: d\n")
    assert (found.front.name, codes(found)) == (name, ["bad-name", "name-mismatch"])


@pytest.mark.parametrize("name", ["a/b", "'..'", "x" * 257, "con", '"a\\u200bb"', "'~'", "a<b", '"a\\nb"', "'%2e%2e'"])
def test_lenient_mode_takes_the_folders_name_for_one_that_is_not_usable(name: str) -> None:
    found = read(f"name: {name}\ndescription: d\n")
    assert (found.front.name, codes(found)) == ("folder", ["bad-name"])
    assert [issue.severity for issue in found.issues] == ["warning"]


@pytest.mark.parametrize("length", [65, 256])
def test_lenient_mode_keeps_a_long_name_and_warns(length: int) -> None:
    name = "n" * length
    found = read(f"name: {name}\ndescription: d\n", folder=name)
    assert (found.front.name, codes(found), found.issues[0].severity) == (name, ["bad-name"], "warning")
    with pytest.raises(SkillLoadError):
        read(f"name: {name}\ndescription: d\n", STRICT_POLICY, folder=name)


def test_how_long_a_kept_name_may_be_is_a_limit() -> None:
    name = "n" * 100
    for most, kept in ((99, "folder"), (100, name), (0, "folder")):
        policy = LoadPolicy(limits=Limits(max_lenient_name_chars=most))
        assert read(f"name: {name}\ndescription: d\n", policy).front.name == kept
        assert read("name: short\ndescription: d\n", policy).front.name == "short"


@pytest.mark.parametrize(
    ("written", "folder", "name"),
    [
        ("a/b", None, "a-b-c14cddc0"),
        ("a/b", "con", "a-b-c14cddc0"),
        ("../../Über Pfad", "<x>", "ber-pfad-63a5f97a"),
        ("'..'", "..", "skill-5ec1f7e7"),
        ("x" * 257, "%2e", "x" * 55 + "-15eb95a4"),
        ("''", "nul", "nul-99e62427"),
    ],
)
def test_a_slug_stands_in_for_two_names_that_cannot_be_used(written: str, folder: str | None, name: str) -> None:
    """Its digits are those of the name's digest, so that every reader finds the same name, whatever else changes."""
    for rows in (f"name: {written}\ndescription: d\n", f"name: {written}\ndescription: e\nlicense: MIT\n"):
        found = read(rows, LoadPolicy(check_dir=False), folder=folder)
        assert (found.front.name, [issue.severity for issue in found.issues]) == (name, ["warning"])
        assert name in found.issues[0].message
    assert len(name) <= 64


@pytest.mark.parametrize(("written", "name"), [("maestro:agent-base", "maestro-agent-base"), ("a:b:c", "a-b-c")])
def test_a_colon_in_a_name_becomes_a_hyphen(written: str, name: str) -> None:
    found = read(f"name: {written}\ndescription: d\n")
    assert (found.front.name, found.front.written_name) == (name, written)
    assert [(i.code, i.line, i.severity) for i in found.issues] == [
        ("name-mismatch", 2, "warning"),
        ("repaired-name-colon", 2, "warning"),
    ]
    assert codes(read(f"name: {written}\ndescription: d\n", folder=name)) == ["repaired-name-colon"]
    assert read(f"name: {written}\ndescription: d\n", UNREPAIRED).front.name == "folder"
    with pytest.raises(SkillLoadError):
        read(f"name: {written}\ndescription: d\n", STRICT_POLICY)


@pytest.mark.parametrize("written", ["'C:\\x'", "'../a:b'", "'::'", "'a:<b>'", f"a:{'b' * 255}"])
def test_a_name_that_no_hyphen_makes_usable_is_the_folders(written: str) -> None:
    assert read(f"name: {written}\ndescription: d\n").front.name == "folder"


def test_a_missing_name_is_repaired_from_the_folder() -> None:
    found = read("description: d\n")
    assert found.front.name == "folder"
    assert [(i.code, i.line, i.severity) for i in found.issues] == [("repaired-name", 2, "warning")]


@pytest.mark.parametrize(
    ("rows", "policy", "folder", "code"),
    [
        ("description: d\n", UNREPAIRED, "folder", "missing-name"),
        ("description: d\n", STRICT_POLICY, "folder", "missing-name"),
        ("description: d\n", LENIENT, None, "missing-name"),
        ("description: d\n", LENIENT, "", "missing-name"),
        ("name: a/b\ndescription: d\n", STRICT_POLICY, None, "bad-name"),
        ("name: [a]\ndescription: d\n", LENIENT, "folder", "wrong-type"),
        ("name: {a: b}\ndescription: d\n", LENIENT, "folder", "wrong-type"),
        ("name: folder\n", UNREPAIRED, "folder", "missing-description"),
        ("name: folder\n", STRICT_POLICY, "folder", "missing-description"),
        ("name: folder\ndescription: '  '\n", STRICT_POLICY, "folder", "missing-description"),
        ("name: folder\ndescription: [a]\n", LENIENT, "folder", "wrong-type"),
    ],
)
def test_without_a_usable_name_and_description_there_is_no_skill(
    rows: str, policy: LoadPolicy, folder: str | None, code: str
) -> None:
    with pytest.raises(SkillLoadError) as caught:
        read(rows, policy, folder)
    assert code in [issue.code for issue in caught.value.issues]
    assert all(issue.severity == "error" and issue.path == "p/SKILL.md" for issue in caught.value.issues)


def test_lenient_mode_keeps_a_long_description_whole_and_warns() -> None:
    found = read(f"name: folder\ndescription: {'d' * 3000}\n")
    assert (len(found.front.description), codes(found)) == (3000, ["description-too-long"])


@pytest.mark.parametrize("name", ["123", "null", "yes", "1e3"])
def test_a_scalar_name_is_the_text_that_was_written(name: str) -> None:
    assert read(f"name: {name}\ndescription: d\n", STRICT_POLICY, name).front.name == name


def test_a_name_that_is_bad_without_its_colon_too_is_reported_as_bad() -> None:
    assert codes(read("name: Team:one\ndescription: d\n", folder="Team-one")) == ["bad-name", "repaired-name-colon"]


# -- a description from the body ---------------------------------------------------------------------------------------


def described(body: str | bytes, rows: str = "name: folder\n", limits: Limits = DEFAULT_LIMITS) -> Head:
    data = body if isinstance(body, bytes) else body.encode()
    head = f"---\n{rows}---\n".encode() + data
    return read_head(head, quick=False, policy=LoadPolicy(limits=limits), folder="folder", path="p/SKILL.md")


@pytest.mark.parametrize("rows", ["name: folder\n", "name: folder\ndescription:\n", "name: folder\ndescription: ' '\n"])
def test_a_missing_description_is_the_first_paragraph_of_the_body(rows: str) -> None:
    found = described("\n# Forms\n\nFill forms\nin PDF files.\n\nMore.\n", rows)
    assert found.front.description == "Fill forms in PDF files."
    (issue,) = found.issues
    assert (issue.code, issue.field, issue.severity, issue.path) == (
        "description-from-body",
        "description",
        "warning",
        "p/SKILL.md",
    )


def test_a_description_from_the_body_is_no_longer_than_any() -> None:
    found = described("word " * 400)
    assert len(found.front.description) <= 1024
    assert found.front.description.endswith("word…")
    assert codes(found) == ["description-from-body"]


def test_a_description_is_taken_from_the_bytes_that_discovery_reads() -> None:
    """Every reader has the bytes up to the next step, and takes no more, so that all find one description."""
    rows = "name: folder\n"
    before = len(f"---\n{rows}---\n")
    limits = replace(DEFAULT_LIMITS, head_step=before + 40)
    assert described("\n" * 10 + "Fill forms é.\n", rows, limits).front.description == "Fill forms é."
    assert described("\n" * 28 + "Fill forms é.\n", rows, limits).front.description == "Fill forms …"
    for body in ("\n" * 40 + "Fill forms.\n", "# " + "T" * 50 + "\n\nFill forms.\n"):
        with pytest.raises(SkillLoadError):
            described(body, rows, limits)
    with pytest.raises(SkillLoadError):  # the head ends with a step, so that nothing of the body is read
        described("Fill forms.\n", rows, replace(DEFAULT_LIMITS, head_step=before))


@pytest.mark.parametrize(
    "body", ["", " \n", "# Title\n", "```\ncode\n```\n", b"\xff\xfe paragraph\n", "<!-- a\nb -->\n"]
)
def test_without_a_paragraph_there_is_no_skill(body: str | bytes) -> None:
    with pytest.raises(InvalidFrontmatterError) as caught:
        described(body)
    assert [issue.code for issue in caught.value.issues] == ["missing-description"]


def test_a_description_of_the_wrong_type_is_not_replaced() -> None:
    with pytest.raises(InvalidFrontmatterError) as caught:
        described("Fill forms.\n", "name: folder\ndescription: [a]\n")
    assert caught.value.code == "wrong-type"

"""Beside ``skills-ref``: ``check(spec=True)`` gives its verdict, and names the same rules, on every real file."""

from __future__ import annotations

import json
import lzma
import os
import re
import subprocess
from pathlib import Path

import pytest

import prowess
from bench.environments import NotInstalledError, python_with
from prowess.authoring.check import reference_issues

VERDICTS = Path(__file__).parent / "foreign" / "skills_ref_verdicts.py"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "authoring.md"
RULES = {
    r"Unexpected fields in frontmatter": "unknown-field",
    r"Skill name .*(?:exceeds|must be lowercase|hyphen|invalid characters)": "bad-name",
    r"Directory name": "name-mismatch",
    r"(?:frontmatter: |Field ')name": "name",
    r"(?:frontmatter: |Field ')description": "description",
    r"Field 'compatibility' must be": "compatibility",
    r"Description exceeds": "description-too-long",
    r"Compatibility exceeds": "compatibility-too-long",
    r"must start with YAML frontmatter": "no-frontmatter",
    r"not properly closed": "unterminated-frontmatter",
    r"UnicodeDecodeError": "not-utf8",
    r"Invalid YAML|must be a YAML mapping|'ReaderError' object|AssertionError": "yaml",
    r"Missing required file": "no file",
}
OURS = {
    "missing-name": "name",
    "missing-description": "description",
    "empty-frontmatter": "yaml",
    "filename-case": "no file",
    "path-escape": "no file",  # of the real skills: links that lead to nothing
}
HEAD = "---\nname: one\ndescription: Does it.\n"
DIFFERENT = {
    "merge keys": (HEAD + "metadata:\n  <<:\n    a: b\n---\n", "yaml-merge-key"),
    "half characters": (HEAD + 'license: "\\ud800"\n---\n', "yaml-surrogate"),
    "odd line ends": (HEAD + "metadata:\n\u2028  author: me\n---\n", "unknown-field"),
    "tabs after a blank line": (HEAD + "metadata:\n\n\tauthor: me\n---\n", "yaml-syntax"),
    "size": (HEAD + "#" * 70_000 + "\n---\n", "frontmatter-too-large"),
    "links": ("", "path-escape"),
}
"""A text for each difference that the page names, which no real file shows, and our code for it."""

pytestmark = pytest.mark.foreign


@pytest.fixture(scope="module")
def python() -> str:
    """The Python of an environment with skills-ref."""
    try:
        return python_with("skills-ref-verdicts", "skills-ref==0.1.1")
    except NotInstalledError as error:
        pytest.skip(f"NOT TESTED: agreement with skills-ref, which cannot be installed here ({error})")


def their_rules(python: str, asked: list[dict[str, str]]) -> list[set[str]]:
    """The rules that skills-ref finds broken in each of these; none is its acceptance."""
    rows = "".join(f"{json.dumps(one)}\n" for one in asked)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [python, str(VERDICTS)], check=True, capture_output=True, text=True, input=rows, env=environment
    )
    return [{rule_of(message) for message in json.loads(row)} for row in done.stdout.splitlines()]


def rule_of(message: str) -> str:
    return next((rule for pattern, rule in RULES.items() if re.search(pattern, message)), message)


def our_rules(issues: tuple[prowess.Issue, ...] | tuple[prowess.Finding, ...]) -> set[str]:
    errors = [issue for issue in issues if issue.severity == "error"]
    return {our_rule(issue.code, issue.field) for issue in errors}


def our_rule(code: str, field: str) -> str:
    return field if code == "wrong-type" else "yaml" if code.startswith("yaml-") else OURS.get(code, code)


def test_the_rules_that_a_real_skill_breaks_are_those_that_skills_ref_names(corpus: list[Path], python: str) -> None:
    theirs = their_rules(python, [{"folder": str(folder)} for folder in corpus])
    ours = [our_rules(prowess.check(folder, spec=True).findings) for folder in corpus]
    different = {str(folder): pair for folder, *pair in zip(corpus, ours, theirs, strict=True) if pair[0] != pair[1]}
    assert different == {}
    assert (len(ours), sum(map(bool, ours))) == figures("whole skills")


def test_the_rules_that_a_real_head_breaks_are_those_that_skills_ref_names(shared: Path, python: str) -> None:
    with lzma.open(shared / "corpus" / "heads.jsonl.xz") as file:
        texts = [without_cut_character(json.loads(row)["head"].encode("latin-1")) for row in file]
    theirs = their_rules(python, [{"text": text.decode("latin-1")} for text in texts])
    ours = [our_rules(reference_issues(text)) for text in texts]
    different = [pair for *pair, _ in zip(ours, theirs, texts, strict=True) if pair[0] != pair[1]]
    assert different == []
    assert (len(ours), sum(map(bool, ours))) == figures("heads")


def without_cut_character(text: bytes) -> bytes:
    """The text without the first bytes of a character that its end cut through."""
    for length in range(4):
        try:
            text[: len(text) - length].decode("utf-8")
        except UnicodeDecodeError:
            continue
        return text[: len(text) - length]
    return text


def figures(what: str) -> tuple[int, int]:
    """How many were compared and how many both refuse, as the page says."""
    row = re.search(rf"^\| {what} \| ([\d,]+) \| ([\d,]+) \| 0 \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert row is not None
    return int(row[1].replace(",", "")), int(row[2].replace(",", ""))


def test_the_page_names_every_known_difference_and_each_is_still_there(tmp_path: Path, python: str) -> None:
    page = PAGE.read_text(encoding="utf-8").partition("### Beside skills-ref")[2].partition("\n## ")[0]
    named = re.findall(r"^\| ([a-z ]+) \| (?:either|Prowess)", page, re.MULTILINE)
    assert sorted(named) == sorted(DIFFERENT)
    for name, (text, code) in DIFFERENT.items():
        folder = tmp_path / name / "one"
        folder.mkdir(parents=True)
        if text:
            (folder / "SKILL.md").write_text(text, encoding="utf-8")
        else:
            (tmp_path / "elsewhere.md").write_text(HEAD + "---\n", encoding="utf-8")
            (folder / "SKILL.md").symlink_to(tmp_path / "elsewhere.md")
        (theirs,) = their_rules(python, [{"folder": str(folder)}])
        findings = prowess.check(folder, spec=True).findings
        assert bool(theirs) != bool(our_rules(findings)), name
        assert [finding.code for finding in findings] == [code], name

"""``check(spec=True)``: every rule of the specification's reference validator, each finding where it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import prowess

if TYPE_CHECKING:
    from pathlib import Path

DESCRIPTION = "description: Does it when asked.\n"
GOOD = f"name: one\n{DESCRIPTION}"


def put(folder: Path, text: str | bytes, name: str = "one", file: str = "SKILL.md") -> Path:
    where = folder / name
    where.mkdir()
    (where / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    return where


def found(where: Path) -> list[tuple[str, str, int]]:
    """Code, field and line of every error."""
    findings = prowess.check(where, spec=True).findings
    return [(one.code, one.field, one.line) for one in findings if one.severity == "error"]


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (f"{GOOD}version: 1\ntags: a\n", [("unknown-field", "version", 4), ("unknown-field", "tags", 5)]),
        (f"name: one\n{DESCRIPTION}allowed_tools: a\n", [("unknown-field", "allowed_tools", 4)]),
        (DESCRIPTION, [("missing-name", "name", 1)]),
        (f"name: ' '\n{DESCRIPTION}", [("missing-name", "name", 2)]),
        (f"name:\n  - one\n{DESCRIPTION}", [("wrong-type", "name", 2)]),
        (f"name: One\n{DESCRIPTION}", [("bad-name", "name", 2), ("name-mismatch", "name", 2)]),
        (f"name: one-\n{DESCRIPTION}", [("bad-name", "name", 2), ("name-mismatch", "name", 2)]),
        (f"name: o--ne\n{DESCRIPTION}", [("bad-name", "name", 2), ("name-mismatch", "name", 2)]),
        (f"name: o_ne\n{DESCRIPTION}", [("bad-name", "name", 2), ("name-mismatch", "name", 2)]),
        (f"name: {'a' * 65}\n{DESCRIPTION}", [("bad-name", "name", 2), ("name-mismatch", "name", 2)]),
        ("name: one\n", [("missing-description", "description", 1)]),
        ("name: one\ndescription:\n", [("missing-description", "description", 3)]),
        ("name: one\ndescription:\n  a: b\n", [("wrong-type", "description", 3)]),
        (f"name: one\ndescription: {'a' * 1025}\n", [("description-too-long", "description", 3)]),
        (f"{GOOD}compatibility:\n  a: b\n", [("wrong-type", "compatibility", 4)]),
        (f"{GOOD}compatibility: {'a' * 501}\n", [("compatibility-too-long", "compatibility", 4)]),
        (f"{GOOD}allowed-tools: [Read]\n", [("yaml-flow", "", 4)]),
        (f"{GOOD}metadata: {{a: b}}\n", [("yaml-flow", "", 4)]),
        (f"{GOOD}metadata:\n  a:\n    b: c\n  d:\n      e: f\n", [("yaml-indentation", "", 8)]),
        (f"{GOOD}name: one\n", [("yaml-duplicate-key", "", 4)]),
        (f"{GOOD}license: &a x\n", [("yaml-anchor", "", 4)]),
        (f"{GOOD}license: !!str x\n", [("yaml-tag", "", 4)]),
        ("name: one\ndescription: Use when: asked\n", [("yaml-syntax", "", 3)]),
        ("name: one\ndescription: a\tb\n", [("yaml-syntax", "", 3)]),
        ("", [("empty-frontmatter", "", 1)]),
        ("- one\n", [("yaml-not-a-mapping", "", 2)]),
    ],
)
def test_what_the_reference_validator_refuses_is_an_error_at_its_line(
    tmp_path: Path, head: str, expected: list[tuple[str, str, int]]
) -> None:
    assert sorted(found(put(tmp_path, f"---\n{head}---\nBody\n"))) == sorted(expected)


@pytest.mark.parametrize(
    "head",
    [
        GOOD,
        f"name: ' one '\n{DESCRIPTION}",
        f"name: \uff4f\uff4e\uff45\n{DESCRIPTION}",
        f"{GOOD}license:\ncompatibility: ''\n",
        f"{GOOD}license:\n  - MIT\nallowed-tools:\n  - Read\n",
        f"{GOOD}metadata: text\n",
        f"{GOOD}metadata:\n  count: 3\n  list:\n    - a\n  deep:\n    a: b\n  other:\n    c: d\n",
        f"{GOOD}metadata:\n  - a:\n      b: c\n  - a:\n        b: c\n",
    ],
)
def test_what_the_reference_validator_accepts_has_no_finding(tmp_path: Path, head: str) -> None:
    assert prowess.check(put(tmp_path, f"---\n{head}---\n"), spec=True).findings == ()


def test_letters_of_every_script_may_stand_in_a_name(tmp_path: Path) -> None:
    text = f"---\nname: größe-技能\n{DESCRIPTION}---\n"
    assert found(put(tmp_path, text, "größe-技能")) == []
    assert [one.code for one in prowess.check(tmp_path / "größe-技能").findings if one.severity == "error"]


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        (f"\ufeff---\n{GOOD}---\n", "no-frontmatter", 1),
        (f"\n---\n{GOOD}---\n", "no-frontmatter", 1),
        (f"---\n{GOOD}", "unterminated-frontmatter", 1),
        (f"---\n{GOOD}---\nOdd: ".encode() + b"\xff", "not-utf8", 5),
    ],
)
def test_text_without_frontmatter_or_encoding_is_refused(
    tmp_path: Path, text: str | bytes, code: str, line: int
) -> None:
    assert found(put(tmp_path, text)) == [(code, "", line)]


def test_the_frontmatter_ends_at_the_first_three_dashes_and_that_is_told_where_they_stand_within_a_line(
    tmp_path: Path,
) -> None:
    where = put(tmp_path, f"---\n{DESCRIPTION}license: a---b\nname: one\n---\n")
    report = prowess.check(where, spec=True)
    assert [(one.code, one.severity, one.line) for one in report.findings] == [
        ("missing-name", "error", 1),
        ("dashes-within-line", "info", 3),
    ]
    assert prowess.check(put(tmp_path, f"---\n{DESCRIPTION}name: two---\n", "two"), spec=True).ok(strict=True)


def test_only_two_spellings_of_the_file_count(tmp_path: Path) -> None:
    assert found(put(tmp_path, f"---\n{GOOD}---\n", file="skill.md")) == []
    assert found(put(tmp_path, f"---\nname: two\n{DESCRIPTION}---\n", "two", "Skill.md")) == [("filename-case", "", 1)]


def test_a_frontmatter_of_any_size_is_not_parsed(tmp_path: Path) -> None:
    where = put(tmp_path, f"---\n{GOOD}metadata:\n{'  a: b' * 100}\n---\n")
    (finding,) = prowess.check(where, spec=True, limits=prowess.Limits(max_frontmatter_bytes=500)).findings
    assert finding.code == "frontmatter-too-large"


def test_nothing_but_the_verdict_is_told(tmp_path: Path) -> None:
    where = put(tmp_path, f"---\n{GOOD}---\nSee [it](references/none.md).\n")
    assert [one.code for one in prowess.check(where, budget=0).findings] == ["listing-too-large", "missing-reference"]
    assert prowess.check(where, budget=0, spec=True).findings == ()


def test_a_finding_is_fixable_where_mending_ends_the_refusal(tmp_path: Path) -> None:
    where = put(tmp_path, "---\nname: one\ndescription: Use when: asked\nversion: 1\n---\nDo it.\n")
    (finding,) = prowess.check(where, spec=True).findings
    assert (finding.code, finding.fixable) == ("yaml-syntax", True)
    prowess.apply_fix(prowess.fix(where))
    (finding,) = prowess.check(where, spec=True).findings
    assert (finding.code, finding.fixable) == ("unknown-field", False)

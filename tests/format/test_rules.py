"""Every rule of the specification finds what breaks it, and only that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prowess.errors import SkillLoadError
from prowess.format.frontmatter.fields import Frontmatter, build_frontmatter
from prowess.format.rules import EXTENSION_FIELDS, INERT_FIELDS, field_issues, is_spec_name, is_usable_name
from prowess.hints import HINTS
from prowess.names import DEVICE_NAMES

if TYPE_CHECKING:
    from prowess.format.frontmatter.yaml_events import Value

GOOD: dict[str, Value] = {"name": "pdf-tools", "description": "Reads PDF files."}
MIXED: list[Value] = ["Read", {"b": "c"}]
LINES = {"name": 2, "description": 3, "metadata": 4, "metadata.k": 5}


def findings(values: dict[str, Value], folder: str | None = None) -> list[tuple[str, str, str]]:
    issues = field_issues(build_frontmatter(values, LINES), mode="strict", folder=folder)
    return [(issue.code, issue.field, issue.severity) for issue in issues]


def without(key: str) -> dict[str, Value]:
    return {k: v for k, v in GOOD.items() if k != key}


def test_a_good_head_has_no_findings() -> None:
    everything: dict[str, Value] = {
        **GOOD,
        "license": "MIT",
        "compatibility": "Needs python3.",
        "metadata": {"k": "v"},
        "allowed-tools": "Read",
        "tags": ["a"],
        "version": "1.10",
        "context": "fork",
    }
    assert findings(everything, "pdf-tools") == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (without("name"), ("missing-name", "name", "error")),
        ({**GOOD, "name": " "}, ("missing-name", "name", "error")),
        ({**GOOD, "name": "Pdf"}, ("bad-name", "name", "error")),
        ({**GOOD, "name": "a" * 65}, ("bad-name", "name", "error")),
        ({**GOOD, "name": "con"}, ("reserved-name", "name", "error")),
        ({**GOOD, "name": ["a"]}, ("wrong-type", "name", "error")),
        (without("description"), ("missing-description", "description", "error")),
        ({**GOOD, "description": " \n"}, ("missing-description", "description", "error")),
        ({**GOOD, "description": {"a": "b"}}, ("wrong-type", "description", "error")),
        ({**GOOD, "description": "d" * 1025}, ("description-too-long", "description", "error")),
        ({**GOOD, "description": "a\u200bb"}, ("hidden-text", "description", "warning")),
        ({**GOOD, "license": ""}, ("blank-field", "license", "error")),
        ({**GOOD, "license": ["MIT"]}, ("wrong-type", "license", "error")),
        ({**GOOD, "compatibility": " "}, ("blank-field", "compatibility", "error")),
        ({**GOOD, "compatibility": "c" * 501}, ("compatibility-too-long", "compatibility", "error")),
        ({**GOOD, "metadata": "text"}, ("wrong-type", "metadata", "error")),
        ({**GOOD, "metadata": ["a"]}, ("wrong-type", "metadata", "error")),
        ({**GOOD, "metadata": {"k": ["a"]}}, ("metadata-not-text", "metadata.k", "error")),
        ({**GOOD, "allowed-tools": {"a": "b"}}, ("wrong-type", "allowed-tools", "error")),
        ({**GOOD, "allowed-tools": ["Read", ""]}, ("wrong-type", "allowed-tools", "error")),
        ({**GOOD, "allowed-tools": MIXED}, ("wrong-type", "allowed-tools", "error")),
        ({**GOOD, "tags": {"a": "b"}}, ("wrong-type", "tags", "error")),
        ({**GOOD, "hooks": {"a": "b"}}, ("inert-field", "hooks", "info")),
        ({**GOOD, "model": "x"}, ("inert-field", "model", "info")),
        ({**GOOD, "frobnicate": "x"}, ("unknown-field", "frobnicate", "info")),
    ],
)
def test_each_rule_is_broken_alone(values: dict[str, Value], expected: tuple[str, str, str]) -> None:
    assert findings(values, "pdf-tools" if values.get("name") == "pdf-tools" else None) == [expected]


def test_the_name_must_be_the_folders() -> None:
    assert findings(GOOD, "other") == [("name-mismatch", "name", "error")]
    assert findings(GOOD, None) == []


def test_strict_mode_collects_every_violation_of_every_field() -> None:
    values: dict[str, Value] = {
        "name": "Bad Name " + "x" * 80,
        "description": "",
        "license": "",
        "compatibility": "c" * 501,
        "metadata": {"a": ["x"], "b": {"c": "d"}},
        "allowed-tools": {"x": "y"},
        "tags": {"x": "y"},
    }
    assert sorted(code for code, _, _ in findings(values, "folder")) == sorted(
        [
            *("bad-name", "bad-name", "name-mismatch", "missing-description", "blank-field", "compatibility-too-long"),
            *("metadata-not-text", "metadata-not-text", "wrong-type", "wrong-type"),
        ]
    )


def test_validate_raises_with_every_violation_and_ignores_the_folder() -> None:
    build_frontmatter(GOOD).validate()
    with pytest.raises(SkillLoadError) as caught:
        build_frontmatter({"name": "A B", "license": ""}).validate()
    assert [issue.code for issue in caught.value.issues] == ["bad-name", "missing-description", "blank-field"]


def test_findings_point_to_the_line_of_their_field() -> None:
    front = build_frontmatter({"name": "A", "description": "d" * 1025, "metadata": {"k": ["v"]}}, LINES)
    lines = {issue.field: issue.line for issue in field_issues(front, mode="strict")}
    assert lines == {"name": 2, "description": 3, "metadata.k": 5}


def test_a_missing_field_points_to_the_first_line_of_the_frontmatter() -> None:
    (issue,) = field_issues(build_frontmatter({"name": "a"}, {"name": 4}), mode="strict")
    assert (issue.code, issue.line) == ("missing-description", 4)


@pytest.mark.parametrize(
    ("values", "fatal"),
    [
        ({**GOOD, "name": "A B"}, False),
        ({**GOOD, "name": ["a"]}, True),
        ({**GOOD, "description": "d" * 2000}, False),
        ({**GOOD, "description": ""}, True),
        ({**GOOD, "description": ["a"]}, True),
        ({**GOOD, "license": ["a"]}, False),
        ({**GOOD, "metadata": "x"}, False),
        ({**GOOD, "tags": {"x": "y"}}, False),
        ({**GOOD, "compatibility": "c" * 501}, False),
    ],
)
def test_lenient_mode_tolerates_all_but_a_missing_description(values: dict[str, Value], fatal: bool) -> None:
    issues = field_issues(build_frontmatter(values), mode="lenient")
    assert {issue.severity for issue in issues} == {"error" if fatal else "warning"}


@pytest.mark.parametrize("length", [1024, 500])
def test_lengths_are_counted_in_characters(length: int) -> None:
    field = "description" if length == 1024 else "compatibility"
    assert findings({**GOOD, field: "漢" * length}) == []
    assert [code for code, _, _ in findings({**GOOD, field: "漢" * (length + 1)})] == [f"{field}-too-long"]


@pytest.mark.parametrize("key", sorted(EXTENSION_FIELDS - INERT_FIELDS))
def test_well_known_extensions_are_not_finding(key: str) -> None:
    assert findings({**GOOD, key: "x"}) == []


@pytest.mark.parametrize("key", sorted(INERT_FIELDS))
def test_a_key_that_asks_for_power_is_noted_as_inert(key: str) -> None:
    assert findings({**GOOD, key: "x"}) == [("inert-field", key, "info")]


def test_every_finding_has_a_remedy() -> None:
    broken: list[dict[str, Value]] = [
        {"name": "A" * 70, "license": "", "compatibility": "c" * 501, "metadata": {"k": ["v"]}, "hooks": "", "zz": ""},
        {"name": "con", "description": "d\u200b" * 600, "tags": {"a": "b"}},
    ]
    issues = [i for values in broken for i in field_issues(build_frontmatter(values), mode="strict", folder="f")]
    assert len({issue.code for issue in issues}) > 10
    assert all(issue.hint == HINTS[issue.code] for issue in issues)


def test_a_huge_name_makes_no_huge_message() -> None:
    issues = field_issues(Frontmatter("X" * 10**6, "d"), mode="strict", folder="Y" * 10**6)
    assert all(len(issue.message) < 400 for issue in issues)


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "a1", "1", "pdf-tools", "a-b-c", "a" * 64])
def test_the_specification_allows_these_names(name: str) -> None:
    assert is_spec_name(name)
    assert is_usable_name(name)


@pytest.mark.parametrize(
    "name",
    ["", "-a", "a-", "a--b", "A", "a_b", "a.b", "a b", "a\n", "é", "\u0430", "\uff41", "a" * 65, "con", "nul", "lpt1"],
)
def test_the_specification_forbids_these_names(name: str) -> None:
    assert not is_spec_name(name)


@pytest.mark.parametrize(
    "name", ["My Skill", "a_b", "a.b", "Pdf", "日本語", "é", "skill (2)", "a@b", "100%", "-a", "a--b"]
)
def test_lenient_mode_lists_skills_under_these_names(name: str) -> None:
    assert is_usable_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("", " a", "a ", ".", "..", "a/b", "a\\b", "a:b", "a<b", "a>b", "a\nb", "a\x00b", "a\x1b[2J", "a" * 257),
        *("../../outside", "/etc", "~", "~root", "C:\\x", "\\\\srv\\x", "%2e%2e", "con", "nul", "aux.md", "COM1"),
        *("a\u200bb", "a\u202eb", "a\ufe0fb", "a\u2028b", "a\xa0b", "\ud800", "\U000e0041"),
    ],
)
def test_no_mode_lists_skills_under_these_names(name: str) -> None:
    assert not is_usable_name(name)


@pytest.mark.parametrize("device", sorted(DEVICE_NAMES))
def test_device_names_are_neither_specified_nor_usable(device: str) -> None:
    assert not is_spec_name(device)
    assert not is_usable_name(device.upper())
    assert not is_usable_name(f"{device}.txt")


@given(st.text(max_size=70))
def test_a_specified_name_is_always_usable(name: str) -> None:
    assert not is_spec_name(name) or is_usable_name(name)


@given(st.text(max_size=70))
def test_a_usable_name_is_one_harmless_part_of_a_path(name: str) -> None:
    if is_usable_name(name):
        assert not set(name) & set("/\\:<>\n\r\0")
        assert name not in {".", ".."}
        assert 0 < len(name) <= 64
        assert name.isprintable()

"""How PromptKit (S1) reads a SKILL.md."""

from collections.abc import Callable
from pathlib import Path

import pytest

import prowess

Put = Callable[..., Path]

FULL = """---
name: pdf
description: Fills forms.
license: MIT
compatibility: Needs a printer.
metadata:
  author: someone
allowed-tools:
  - Read
  - Bash(git add:*)
mood: calm
---
Body.
"""


def refused(text: str | bytes) -> prowess.SkillLoadError:
    with pytest.raises(prowess.SkillLoadError) as caught:
        prowess.parse_skill(text)
    return caught.value


def codes(error: prowess.SkillLoadError) -> list[str]:
    return [issue.code for issue in error.issues]


def skill_text(name: str = "pdf", description: str = "Fills forms.", more: str = "") -> str:
    return f"---\nname: {name}\ndescription: {description}\n{more}---\nBody.\n"


def test_the_fields_of_the_specification_are_read() -> None:
    """S1-1: name, description, license, compatibility, metadata, allowed-tools; another key is not a violation."""
    skill = prowess.parse_skill(FULL).skill
    assert (skill.name, skill.description, skill.license) == ("pdf", "Fills forms.", "MIT")
    assert (skill.compatibility, skill.metadata) == ("Needs a printer.", {"author": "someone"})
    assert skill.allowed_tools == ("Read", "Bash(git add:*)")


def test_json_has_an_underscore_in_allowed_tools_and_leaves_out_what_is_not_set() -> None:
    """S1-1: the keys of to_dict are those of JSON, not of the file."""
    full = prowess.parse_skill(FULL).skill.to_dict()
    assert full["allowed_tools"] == ["Read", "Bash(git add:*)"]
    assert (full["license"], full["compatibility"], full["metadata"]) == (
        "MIT",
        "Needs a printer.",
        {"author": "someone"},
    )
    small = prowess.parse_skill(skill_text()).skill.to_dict()
    assert {"license", "compatibility", "metadata", "allowed_tools"}.isdisjoint(small)


@pytest.mark.parametrize("before", ["\n", "\r\n\r\n", " \t\n", "\ufeff"])
def test_blank_lines_and_a_byte_order_mark_may_come_first(before: str) -> None:
    """S1-2: nothing that a reader cannot see stands between a file and its frontmatter."""
    assert prowess.parse_skill(before + skill_text()).skill.name == "pdf"


def test_indented_dashes_do_not_open() -> None:
    """S1-2: the dashes stand at the margin, also on the first line."""
    assert isinstance(refused("  " + skill_text()), prowess.NoFrontmatterError)


def test_text_after_the_opening_dashes_is_not_frontmatter() -> None:
    """S1-3: it is not taken for a piece of YAML."""
    assert isinstance(refused("--- name: pdf\ndescription: d\n---\n"), prowess.NoFrontmatterError)


@pytest.mark.parametrize("closer", ["---\n", "---\r\n", "---"])
def test_a_line_of_dashes_closes(closer: str) -> None:
    """S1-4: with either line end, or none at the end of the file."""
    assert prowess.parse_skill(f"---\nname: pdf\ndescription: d\n{closer}").body == ""


@pytest.mark.parametrize("line", ["---x", "----", " ---"])
def test_a_line_that_only_begins_or_ends_with_dashes_does_not_close(line: str) -> None:
    """S1-4: it has to be the whole line."""
    assert isinstance(refused(f"---\nname: pdf\n{line}\n"), prowess.UnterminatedFrontmatterError)


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        ("", prowess.NoFrontmatterError, "no-frontmatter"),
        ("# Title\n", prowess.NoFrontmatterError, "no-frontmatter"),
        ("---\nname: pdf\n", prowess.UnterminatedFrontmatterError, "unterminated-frontmatter"),
        ("---\nname: [pdf\n---\n", prowess.InvalidFrontmatterError, "yaml-syntax"),
    ],
)
def test_each_way_of_being_unreadable_has_its_class_and_code(
    text: str, kind: type[prowess.SkillLoadError], code: str
) -> None:
    """S1-5: nothing there, no opening dashes, no closing dashes, no YAML."""
    error = refused(text)
    assert (type(error), error.code) == (kind, code)


def test_the_body_of_a_parsed_skill_has_no_blanks_at_its_ends() -> None:
    """S1-6: what is between them stays as it is."""
    assert prowess.parse_skill(skill_text() + "\n  Two.\n\n \n").body == "Body.\n\n  Two."


def test_a_file_of_frontmatter_only_is_a_skill_without_instructions() -> None:
    """S1-6: it parses even in strict mode, with an empty body and a warning."""
    parsed = prowess.parse_skill("---\nname: pdf\ndescription: d\n---\n")
    assert (parsed.body, [issue.code for issue in parsed.issues]) == ("", ["empty-body"])


@pytest.mark.parametrize("name", ["pdf", "a", "7", "a-b-c", "n" * 64])
def test_lower_case_words_joined_by_hyphens_are_names(name: str) -> None:
    """S1-7: letters and digits with single hyphens inside, up to 64 characters; check_dir=False for any folder."""
    assert prowess.parse_skill(skill_text(name), "/skills/other/SKILL.md", check_dir=False).skill.name == name


@pytest.mark.parametrize("name", ["a_b", "-a", "a-", "a--b", "Pdf", "a b", "n" * 65])
def test_any_other_name_is_refused(name: str) -> None:
    """S1-7: underscores, capitals, blanks, stray hyphens and too many characters are violations."""
    assert codes(refused(skill_text(name))) == ["bad-name"]


def test_description_and_compatibility_have_limits_in_characters() -> None:
    """S1-7: 1,024 and 500; a description is required."""
    assert prowess.parse_skill(skill_text(description="é" * 1024, more=f"compatibility: {'é' * 500}\n")).issues == ()
    error = refused(skill_text(description="é" * 1025, more=f"compatibility: {'é' * 501}\n"))
    assert codes(error) == ["description-too-long", "compatibility-too-long"]
    assert codes(refused("---\nname: pdf\n---\n")) == ["missing-description"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\ndescription: d\n---\n", ["missing-name"]),
        ("---\nname: A_B\ndescription: d\n---\n", ["bad-name"]),
        (f"---\nname: {'A' * 65}\ndescription: d\n---\n", ["bad-name", "bad-name"]),
        ("---\nname: pdf\n---\n", ["missing-description"]),
        (f"---\nname: pdf\ndescription: {'d' * 1025}\n---\n", ["description-too-long"]),
    ],
)
def test_each_violation_has_its_code(text: str, expected: list[str]) -> None:
    """S1-8: a name that is both malformed and too long is told so twice."""
    assert codes(refused(text)) == expected


@pytest.mark.parametrize(
    "written",
    [
        "allowed-tools: refund process_payment",
        "allowed-tools: refund, process_payment",
        "allowed-tools: [refund, process_payment]",
        "allowed-tools:\n- refund\n- process_payment",
    ],
)
def test_allowed_tools_may_be_a_text_or_a_list(written: str) -> None:
    """S1-9: separated by blanks or commas, or as YAML items: the same tools."""
    assert prowess.parse_skill(skill_text(more=written + "\n")).skill.allowed_tools == ("refund", "process_payment")


def test_metadata_values_are_the_text_that_was_written() -> None:
    """S1-9: numbers and booleans lose nothing, not even a trailing zero."""
    skill = prowess.parse_skill(skill_text(more="metadata:\n  version: 1.0\n  stable: true\n")).skill
    assert skill.metadata == {"version": "1.0", "stable": "true"}


def test_a_parsed_file_knows_its_folder(put: Put) -> None:
    """S1-10: the folder that holds the SKILL.md, whose path is there as well."""
    path = put("pdf")
    parsed = prowess.parse_skill_file(path)
    assert (parsed.skill.dir, parsed.skill.path, parsed.body) == (path.parent, path, "Do it.")


def test_an_error_about_a_file_names_the_file(put: Put, tmp_path: Path) -> None:
    """S1-10: whether it cannot be read or cannot be parsed, with its body or without."""
    for read in (prowess.parse_skill_file, prowess.read_metadata):
        with pytest.raises(prowess.SkillValidationError) as missing:
            read(tmp_path / "SKILL.md")
        assert (missing.value.code, missing.value.path) == ("missing-skill-md", str(tmp_path / "SKILL.md"))
        bad = put("bad", text="no frontmatter\n")
        with pytest.raises(prowess.NoFrontmatterError) as unparsed:
            read(bad)
        assert unparsed.value.path == str(bad)


def test_metadata_alone_does_not_need_the_body(put: Put) -> None:
    """S1-10: only the head is read, so bytes in the body that are not text do not matter."""
    path = put("pdf", text=b"---\nname: pdf\ndescription: d\n---\n" + b"\n" * 8192 + b"\xff\xfe\n")
    assert prowess.read_metadata(path).name == "pdf"
    with pytest.raises(prowess.SkillLoadError) as caught:
        prowess.parse_skill_file(path)
    assert caught.value.code == "body-not-text"

"""How docker-agent (S2) reads a SKILL.md."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

import prowess

Put = Callable[..., Path]


def lenient(fields: str, *, path: str | None = None, repair: bool = True) -> prowess.ParsedSkill:
    return prowess.parse_skill(f"---\n{fields}---\nBody.\n", path, mode="lenient", repair=repair)


def described(description: str) -> str:
    """The description that a lenient reader gets for what is written after the key."""
    return lenient(f"name: pdf\ndescription:{description}\n").skill.description


def test_line_ends_of_windows_become_line_feeds_in_instructions(put: Put, tmp_path: Path) -> None:
    """S2-11: fields and instructions are the same as with LF."""
    put("pdf", text="---\r\nname: pdf\r\ndescription: Fills\r\n  forms.\r\n---\r\nOne.\r\nTwo.\r\n")
    loaded = prowess.scan(tmp_path).load("pdf")
    assert (loaded.skill.description, loaded.instructions) == ("Fills forms.", "One.\nTwo.")


def test_a_lone_carriage_return_ends_no_line() -> None:
    """S2-11: strict refuses it in frontmatter, lenient takes it for a blank and warns."""
    text = "---\nname: pdf\ndescription: Fills\rforms.\n---\nBody.\n"
    with pytest.raises(prowess.InvalidFrontmatterError) as caught:
        prowess.parse_skill(text)
    assert caught.value.code == "line-break"
    parsed = prowess.parse_skill(text, mode="lenient")
    assert (parsed.skill.description, [issue.code for issue in parsed.issues]) == ("Fills forms.", ["line-break"])


@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_dashes_that_go_on_neither_open_nor_close(mode: Literal["strict", "lenient"]) -> None:
    """S2-11: opening and closing dashes are whole lines."""
    with pytest.raises(prowess.NoFrontmatterError):
        prowess.parse_skill("---yaml\nname: pdf\ndescription: d\n---\nBody.\n", mode=mode)
    with pytest.raises(prowess.UnterminatedFrontmatterError):
        prowess.parse_skill("---\nname: pdf\ndescription: d\n----\nBody.\n", mode=mode)


@pytest.mark.parametrize("before", ["\ufeff", "\n"])
def test_a_byte_order_mark_or_a_blank_line_does_not_hide_a_skill(before: str) -> None:
    """S2-11: the first line that is not blank counts."""
    assert prowess.parse_skill(before + "---\nname: pdf\ndescription: d\n---\nBody.\n").skill.name == "pdf"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (" Use when: a form is open", "Use when: a form is open"),
        (' "Quoted: text"', "Quoted: text"),
        (" 'Quoted: text'", "Quoted: text"),
        (" >\n  Folded\n  text", "Folded text"),
        (" |\n  Line one\n  line two", "Line one\nline two"),
        ("\n  Text below", "Text below"),
        (" Text that\n  goes on", "Text that goes on"),
        (" Text # comment", "Text"),
        (" Text   ", "Text"),
    ],
)
def test_a_description_is_what_its_author_wrote(written: str, meant: str) -> None:
    """S2-12: an unquoted colon is repaired; quotes, block text, wrapped lines and comments are YAML's."""
    assert described(written) == meant


def test_an_unquoted_colon_is_repaired_with_a_warning() -> None:
    """S2-12: the issue names the key and the line; without repair the text is not YAML."""
    fields = "name: pdf\ndescription: Use when: asked\n"
    issue = lenient(fields).issues[0]
    assert (issue.code, issue.field, issue.line, issue.severity) == ("repaired-colon", "description", 3, "warning")
    with pytest.raises(prowess.InvalidFrontmatterError):
        lenient(fields, repair=False)


@pytest.mark.parametrize("written", [" [a, b]", " a b", " a, b", "\n  - a\n  - b", "\n- a\n- b"])
def test_lists_are_lists_however_they_are_written(written: str) -> None:
    """S2-12: in brackets, in one text, or as items with and without indentation."""
    assert lenient(f"name: pdf\ndescription: d\nallowed-tools:{written}\n").skill.allowed_tools == ("a", "b")


def test_context_and_model_are_fields_and_toolsets_are_kept() -> None:
    """S2-13: every field is readable; what Prowess has no use for stays in extra as it was written."""
    skill = lenient(
        "name: pdf\ndescription: d\nlicense: MIT\ncompatibility: any\nmetadata:\n  a: b\nallowed-tools: x, y\n"
        "context: fork\nmodel: small\ntoolsets:\n  - web\n"
    ).skill
    assert (skill.license, skill.compatibility, skill.metadata, skill.allowed_tools) == (
        "MIT",
        "any",
        {"a": "b"},
        ("x", "y"),
    )
    assert (skill.context, skill.is_fork, skill.model) == ("fork", True, "small")
    assert skill.extra == {"context": "fork", "model": "small", "toolsets": ["web"]}


def test_allowed_tools_in_one_text_are_split_at_blanks_too() -> None:
    """S2-13: that system splits it at commas only. Both keep a list as it is."""
    skill = lenient("name: pdf\ndescription: d\nallowed-tools: Read Grep, Bash(git add:*)\n").skill
    assert skill.allowed_tools == ("Read", "Grep", "Bash(git add:*)")
    assert skill.allowed_tools_raw is not None
    assert [tool.strip() for tool in skill.allowed_tools_raw.split(",")] == ["Read Grep", "Bash(git add:*)"]


def test_a_long_description_and_an_odd_name_load_with_warnings() -> None:
    """S2-13: limits and the rule for names do not keep a skill out of a lenient catalogue."""
    parsed = lenient(f"name: My Skill\ndescription: {'d' * 3000}\n")
    assert (parsed.skill.name, len(parsed.skill.description)) == ("My Skill", 3000)
    assert {issue.code: issue.severity for issue in parsed.issues} == {
        "bad-name": "warning",
        "description-too-long": "warning",
    }


@pytest.mark.parametrize(("mode", "repair"), [("strict", True), ("lenient", False)])
def test_a_description_is_required(mode: Literal["strict", "lenient"], repair: bool) -> None:
    """S2-14: without one there is nothing to list."""
    with pytest.raises(prowess.SkillLoadError) as caught:
        prowess.parse_skill("---\nname: pdf\n---\nBody.\n", "/skills/pdf/SKILL.md", mode=mode, repair=repair)
    assert caught.value.code == "missing-description"


def test_a_missing_description_is_the_first_paragraph() -> None:
    """S2-14: lenient takes it with a warning, and refuses a file whose instructions have no paragraph."""
    parsed = lenient("name: pdf\n", path="/skills/pdf/SKILL.md")
    assert (parsed.skill.description, [issue.code for issue in parsed.issues]) == ("Body.", ["description-from-body"])
    with pytest.raises(prowess.SkillLoadError) as caught:
        prowess.parse_skill("---\nname: pdf\n---\n# Title\n", "/skills/pdf/SKILL.md", mode="lenient")
    assert caught.value.code == "missing-description"


def test_a_missing_name_is_the_folders() -> None:
    """S2-14: lenient takes it with a warning; strict, and lenient without repair, want the name written."""
    parsed = lenient("description: d\n", path="/skills/pdf/SKILL.md")
    assert (parsed.skill.name, [issue.code for issue in parsed.issues]) == ("pdf", ["repaired-name"])
    with pytest.raises(prowess.SkillLoadError) as strict:
        prowess.parse_skill("---\ndescription: d\n---\nBody.\n", "/skills/pdf/SKILL.md")
    with pytest.raises(prowess.SkillLoadError) as unrepaired:
        lenient("description: d\n", path="/skills/pdf/SKILL.md", repair=False)
    assert (strict.value.code, unrepaired.value.code) == ("missing-name", "missing-name")


@pytest.mark.parametrize("text", ["---\n---", "---\n---\n", "---\n\n---\n", "---\r\n---\r\n"])
@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_frontmatter_with_nothing_in_it_is_invalid(text: str, mode: Literal["strict", "lenient"]) -> None:
    """S2-15: two lines of dashes are an error of the file, never a crash."""
    with pytest.raises(prowess.InvalidFrontmatterError) as caught:
        prowess.parse_skill(text, "/skills/pdf/SKILL.md", mode=mode)
    assert caught.value.code == "empty-frontmatter"

"""The tool of the Go package ``skill`` (S0) that loads a skill, and its prompt block: the dialect ``load_skill``."""

from collections.abc import Callable
from pathlib import Path

import pytest

import prowess

Put = Callable[..., Path]


def tools_of(*roots: Path) -> prowess.Toolset:
    return prowess.Toolset(prowess.Session(prowess.scan(*roots or ("",))), "load_skill")


def test_the_tool_has_its_name_and_description_and_runs_in_parallel(put: Put, tmp_path: Path) -> None:
    """S0-31: one tool, whatever the skills are."""
    put("pdf")
    (tool,) = tools_of(tmp_path).tools()
    assert (tool.name, tool.parallel) == ("load_skill", True)
    assert tool.description == (
        "Load the full instructions for a named skill. Returns the complete SKILL.md body as markdown."
    )


def test_the_tool_takes_the_name_of_a_skill(put: Put, tmp_path: Path) -> None:
    """S0-32: one text, which is required and described."""
    put("pdf")
    (tool,) = tools_of(tmp_path).tools()
    description = 'Name of the skill to load (matches the frontmatter "name" field).'
    assert tool.parameters == {
        "type": "object",
        "properties": {"skill_name": {"type": "string", "description": description}},
        "required": ["skill_name"],
    }


@pytest.mark.parametrize("arguments", ["{", "[]", "7", '{"skill_name": 7}', b"\xff"])
def test_arguments_that_cannot_be_read_are_told_first(arguments: str | bytes, put: Put, tmp_path: Path) -> None:
    """S0-33: before anything is said about skills."""
    put("pdf")
    for toolset in (tools_of(tmp_path), tools_of()):
        result = toolset.call("load_skill", arguments)
        assert result.is_error
        assert result.content.startswith("load_skill: invalid params: ")


@pytest.mark.parametrize("arguments", [{}, {"skill_name": ""}, '{"skill_name": ""}'])
def test_a_missing_name_is_told_before_missing_skills(arguments: dict[str, str] | str) -> None:
    """S0-33: the name comes second."""
    result = tools_of().call("load_skill", arguments)
    assert (result.is_error, result.content) == (True, "load_skill: skill_name is required")


def test_no_skills_are_told_before_an_unknown_name() -> None:
    """S0-33: there is nothing to choose from."""
    result = tools_of().call("load_skill", {"skill_name": "pdf"})
    assert (result.is_error, result.content) == (True, "load_skill: no skills are configured")


def test_an_unknown_name_is_told_with_those_that_exist(put: Put, tmp_path: Path) -> None:
    """S0-33: sorted, with a comma and a blank between."""
    put("b")
    put("a")
    result = tools_of(tmp_path).call("load_skill", {"skill_name": "X"})
    assert (result.is_error, result.content) == (True, 'load_skill: skill "X" not found; available: a, b')


def test_a_file_that_cannot_be_read_is_told_under_the_name_of_the_tool(put: Put, tmp_path: Path) -> None:
    """S0-33: it is a result like the others, and the next call is answered."""
    path = put("gone")
    put("good")
    toolset = tools_of(tmp_path)
    path.unlink()
    result = toolset.call("load_skill", {"skill_name": "gone"})
    assert result.is_error
    assert result.content.startswith("load_skill: ")
    assert toolset.call("load_skill", {"skill_name": "good"}).content == "Do it.\n"


@pytest.mark.parametrize(
    "body",
    ["Do it.\n", "\n\n  Do it.  \r\n\r\n", "", "Gr\u00fc\u00dfe \U0001f600", "</skill_content>\n", "Now !`ls`.\n"],
)
def test_the_result_is_the_body_byte_for_byte(body: str, put: Put, tmp_path: Path) -> None:
    """S0-34: line ends, blanks at both ends and markup are as the file has them."""
    put("pdf", body=body)
    result = tools_of(tmp_path).call("load_skill", {"skill_name": "pdf"})
    assert (result.is_error, result.content) == (False, body)


def test_the_result_is_what_the_file_says_now(put: Put, tmp_path: Path) -> None:
    """S0-34: a second call reads the file again."""
    put("pdf", body="Old.\n")
    toolset = tools_of(tmp_path)
    assert toolset.call("load_skill", {"skill_name": "pdf"}).content == "Old.\n"
    put("pdf", body="New.\n")
    assert toolset.call("load_skill", {"skill_name": "pdf"}).content == "New.\n"


def test_without_skills_there_is_no_tool() -> None:
    """S0-35: nothing is offered that could not do anything."""
    assert tools_of().tools() == ()


def test_no_variable_says_where_skills_are(put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S0-35: neither the variable nor the folder of that system; a host names the folders that it scans."""
    put("kit/from-variable")
    put("work/.fizeau/skills/from-folder")
    monkeypatch.setenv("FIZEAU_SKILLS_DIR", str(tmp_path / "kit"))
    assert prowess.discover(cwd=tmp_path / "work", home=tmp_path / "home").names == ()
    assert prowess.scan(tmp_path / "work/.fizeau/skills").names == ("from-folder",)


def test_the_block_lists_the_skills_between_a_heading_and_a_sentence(put: Put, tmp_path: Path) -> None:
    """S0-36: by name; nothing at all without skills."""
    put("pdf", description="Fills forms.")
    put("csv", description="Profiles tables.")
    assert tools_of(tmp_path).prompt() == (
        "# Available Skills\n\n- csv: Profiles tables.\n- pdf: Fills forms.\n\n"
        "Call the load_skill tool with a skill name to load its full instructions."
    )
    assert tools_of().prompt() == ""


def test_an_entry_of_the_block_is_one_line(put: Put, tmp_path: Path) -> None:
    """S0-36: line breaks in a description cannot add entries or headings."""
    put("pdf", description='"a\\n- other: b\\n\\n# Heading"')
    assert "\n- pdf: a - other: b # Heading\n" in tools_of(tmp_path).prompt()

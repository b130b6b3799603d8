"""The three tools of PromptKit (S1): the dialect ``skill__activate``."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import prowess

Put = Callable[..., Path]


@pytest.fixture
def session(put: Put, tmp_path: Path) -> prowess.Session:
    """Two skills with tools and a file."""
    folder = put("pdf", description="Fills forms.", fields="allowed-tools: [fill, read]\n", body="Fill it.\n").parent
    (folder / "refs").mkdir()
    (folder / "refs/forms.md").write_text("Gr\u00fc\u00dfe\n", encoding="utf-8")
    put("csv", description="Profiles tables.", fields="allowed-tools: [read]\n", body="Profile it: !`ls`.\n")
    return prowess.Session(prowess.scan(tmp_path), tools=["fill", "read"])


@pytest.fixture
def toolset(session: prowess.Session) -> prowess.Toolset:
    return prowess.Toolset(session, "skill__activate")


def test_there_are_three_tools(toolset: prowess.Toolset) -> None:
    """S1-50: under these names, in this order, and none without skills."""
    names = [tool.name for tool in toolset.tools()]
    assert names == ["skill__activate", "skill__deactivate", "skill__read_resource"]
    assert prowess.Toolset(prowess.Session(prowess.Catalog()), "skill__activate").tools() == ()


def test_the_names_of_the_tools_and_of_their_executor_are_public(toolset: prowess.Toolset) -> None:
    """S1-50, S1-54: the tools begin with the namespace, and a host may look them up by these names."""
    public = (prowess.SKILL_ACTIVATE_TOOL, prowess.SKILL_DEACTIVATE_TOOL, prowess.SKILL_READ_RESOURCE_TOOL)
    assert tuple(tool.name for tool in toolset.tools()) == public
    assert (prowess.SKILL_NAMESPACE, prowess.SKILL_EXECUTOR_NAME) == ("skill", "skill")
    assert all(name.startswith(f"{prowess.SKILL_NAMESPACE}__") for name in public)


def test_the_tools_take_and_give_named_texts(toolset: prowess.Toolset) -> None:
    """S1-51: every input is a required text with a description; outputs are objects with texts and lists of texts."""
    text, texts = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
    inputs: dict[str, dict[str, str]] = {
        "skill__activate": {"name": "Name of the skill to activate."},
        "skill__deactivate": {"name": "Name of the skill to deactivate."},
        "skill__read_resource": {
            "skill_name": "Name of the skill owning the resource.",
            "path": "Relative path to the resource within the skill directory.",
        },
    }
    for tool in toolset.tools():
        described = {key: {**text, "description": words} for key, words in inputs[tool.name].items()}
        assert tool.parameters == {"type": "object", "properties": described, "required": [*described]}
    assert [tool.output for tool in toolset.tools()] == [
        {"type": "object", "properties": {"instructions": text, "added_tools": texts}},
        {"type": "object", "properties": {"removed_tools": texts}},
        {"type": "object", "properties": {"content": text}},
    ]


def test_the_tools_have_their_descriptions(session: prowess.Session) -> None:
    """S1-52: the first of them with the index below, or without."""
    index = "\n\nAvailable skills:\n- csv: Profiles tables.\n- pdf: Fills forms."
    plain = "Activate a skill to load its instructions and tools."
    rest = [
        "Deactivate a skill to unload its instructions and tools.",
        "Read a resource file from within a skill's directory.",
    ]
    with_index = prowess.Toolset(session, "skill__activate")
    assert [tool.description for tool in with_index.tools()] == [plain + index, *rest]
    assert with_index.prompt() == ""
    without = prowess.Toolset(session, "skill__activate", index_in_description=False)
    assert [tool.description for tool in without.tools()] == [plain, *rest]
    assert without.prompt() == index.strip()


def test_the_index_in_the_description_is_narrowed_by_a_query(session: prowess.Session) -> None:
    """S1-52: by the session's selector, as the index itself."""
    session.set_selector(prowess.LexicalSelector())
    tool = prowess.Toolset(session, "skill__activate").tools("fill a form")[0]
    assert tool.description.endswith("\n\nAvailable skills:\n- pdf: Fills forms.")


def test_results_are_json_objects(toolset: prowess.Toolset) -> None:
    """S1-53: also as data for the host."""
    expected = {
        ("skill__activate", "pdf"): {"instructions": "Fill it.", "added_tools": ["fill", "read"]},
        ("skill__activate", "csv"): {"instructions": "Profile it: !`ls`.", "added_tools": ["read"]},
        ("skill__deactivate", "pdf"): {"removed_tools": ["fill"]},
        ("skill__deactivate", "csv"): {"removed_tools": ["read"]},
    }
    for (tool, name), answer in expected.items():
        result = toolset.call(tool, {"name": name})
        assert (result.is_error, json.loads(result.content), result.data) == (False, answer, answer)
    read = toolset.call("skill__read_resource", {"skill_name": "pdf", "path": "refs/forms.md"})
    assert json.loads(read.content) == {"content": "Gr\u00fc\u00dfe\n"}


def test_an_empty_list_of_tools_is_a_list(put: Put, tmp_path: Path) -> None:
    """S1-53: never null."""
    put("bare")
    toolset = prowess.Toolset(prowess.Session(prowess.scan(tmp_path)), "skill__activate")
    activated = json.loads(toolset.call("skill__activate", {"name": "bare"}).content)
    removed = json.loads(toolset.call("skill__deactivate", {"name": "bare"}).content)
    assert (activated["added_tools"], removed["removed_tools"]) == ([], [])


@pytest.mark.parametrize("arguments", ["{", "[]", '{"name": 7, "skill_name": 7, "path": "x"}', b"\xff"])
@pytest.mark.parametrize("tool", ["activate", "deactivate", "read_resource"])
def test_arguments_that_cannot_be_read_are_told_by_the_tool(
    tool: str, arguments: str | bytes, toolset: prowess.Toolset
) -> None:
    """S1-53: each tool says whose arguments it could not parse."""
    result = toolset.call(f"skill__{tool}", arguments)
    assert result.is_error
    assert result.content.startswith(f"parsing {tool} args: ")


@pytest.fixture
def narrow(put: Put, tmp_path: Path) -> prowess.Toolset:
    """One skill that is active, one for which there is no room, and one that the filter hides."""
    for name in ("pdf", "csv", "far"):
        put(name)
    session = prowess.Session(prowess.scan(tmp_path), filter="[cp]*", max_active=1, base_dir=tmp_path)
    session.activate("pdf")
    return prowess.Toolset(session, "skill__activate")


@pytest.mark.parametrize(
    ("call", "reason", "said"),
    [
        (("activate", {"name": "pfd"}), "unknown-skill", 'activating skill "pfd": skill "pfd" not found'),
        (("activate", {}), "unknown-skill", 'activating skill "": skill "" not found'),
        (
            ("activate", {"name": "csv"}),
            "max-active",
            'cannot activate skill "csv": max active limit (1) reached',
        ),
        (
            ("activate", {"name": "far"}),
            "filtered",
            'skill "far" is not available in the current state (filter: "[cp]*")',
        ),
        (("deactivate", {"name": "csv"}), "not-active", 'skill "csv" is not active'),
        (("read_resource", {"skill_name": "pfd", "path": "a.md"}), "unknown-skill", 'skill "pfd" not found'),
        (
            ("read_resource", {"skill_name": "pdf", "path": "../csv/SKILL.md"}),
            "path-escape",
            "resource path escapes skill directory: ../csv/SKILL.md",
        ),
    ],
)
def test_what_goes_wrong_in_the_session_has_fixed_words(
    call: tuple[str, dict[str, str]], reason: str, said: str, narrow: prowess.Toolset
) -> None:
    """S1-31, S1-34, S1-36, S1-40, S1-53: programs compare these words, so they are those of that system."""
    result = narrow.call(f"skill__{call[0]}", call[1])
    assert (result.is_error, result.content, result.data["reason"]) == (True, said, reason)


def test_a_skill_without_a_folder_has_fixed_words_too() -> None:
    """S1-25: whatever the path is."""
    catalog = prowess.Catalog.from_sources([prowess.Source.inline("greet", "Greets.", "Say hello.")])
    toolset = prowess.Toolset(prowess.Session(catalog), "skill__activate")
    result = toolset.call("skill__read_resource", {"skill_name": "greet", "path": "a.md"})
    assert (result.is_error, result.content) == (True, 'skill "greet" is inline and has no directory')


def test_a_missing_file_is_an_error_that_lists_what_there_is(toolset: prowess.Toolset) -> None:
    """S1-53: in words of Prowess, since those of that system are the operating system's and hold a host's path."""
    result = toolset.call("skill__read_resource", {"skill_name": "pdf", "path": "refs/none.md"})
    assert (result.is_error, result.data["reason"]) == (True, "not-found")
    assert "refs/forms.md" in result.content


def test_an_unknown_tool_is_an_error_result(toolset: prowess.Toolset) -> None:
    """S1-53: which says its name, and those that exist."""
    result = toolset.call("skill__nope", {"name": "pdf"})
    assert result.is_error
    assert result.content.startswith("unknown skill tool: skill__nope")
    assert all(name in result.content for name in ("skill__activate", "skill__deactivate", "skill__read_resource"))


def test_an_unknown_tool_is_told_without_any_skill() -> None:
    """S1-54: a toolset answers over an empty session too, and knows its own name."""
    toolset = prowess.Toolset(prowess.Session(prowess.Catalog()), "skill__activate")
    assert toolset.dialect == "skill__activate"
    assert toolset.call("skill__nope", {}).content.startswith("unknown skill tool: skill__nope")
    assert toolset.call("skill__activate", {"name": "pdf"}).is_error

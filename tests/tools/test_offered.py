"""Which tools are offered: each can do something, and none gives away what a model may not have."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast, get_args

import pytest

import prowess

Put = Callable[..., Path]
Talk = Callable[..., prowess.Session]
Load = Callable[[prowess.Toolset, str], prowess.ToolResult]

HIDING = (
    "disable-model-invocation: true",
    "disable-model-invocation: yes",
    "disable_model_invocation: true",
    "disableModelInvocation: true",
)


def names(toolset: prowess.Toolset, query: str = "") -> list[str]:
    return [tool.name for tool in toolset.tools(query)]


def test_every_dialect_has_the_name_that_it_is_found_by(dialect: prowess.DialectName, talk: Talk) -> None:
    assert prowess.DIALECTS[dialect].name == dialect
    assert prowess.Toolset(talk(), dialect).dialect == dialect


def test_every_module_of_a_dialect_is_named_in_the_type_of_their_names() -> None:
    modules = {path.stem for path in (Path(prowess.__file__).parent / "tools" / "dialects").glob("[!_]*.py")}
    assert modules == {name.replace("__", "_") for name in get_args(prowess.DialectName)}


def test_an_unknown_dialect_is_an_error_that_lists_the_known_ones(talk: Talk) -> None:
    with pytest.raises(prowess.SourceError) as caught:
        prowess.Toolset(talk(), cast("prowess.DialectName", "klingon"))
    assert all(name in str(caught.value) for name in prowess.DIALECTS)


def test_without_skills_nothing_is_offered_or_said(dialect: prowess.DialectName, talk: Talk) -> None:
    toolset = prowess.Toolset(talk(), dialect)
    assert (toolset.tools(), toolset.prompt()) == ((), "")


@pytest.mark.parametrize("count", [1, 40])
def test_with_hidden_skills_only_a_tool_is_offered_if_it_loads_them(
    count: int, dialect: prowess.DialectName, put: Put, talk: Talk
) -> None:
    """An explicit call has the model use the tool, so the tool is there; it names none of the hidden skills."""
    for number in range(count):
        put(f"hidden-{number}", fields="disable-model-invocation: true\n", files={"a.md": "a"})
    toolset = prowess.Toolset(talk(), dialect)
    tools = toolset.tools()
    assert ("hidden-" in str(tools), toolset.prompt()) == (False, "")
    if dialect == "prowess":
        assert (tools, "Do it." in toolset.explicit("hidden-0")) == ((), True)
        return
    called = tools[0]
    assert f"Call the {called.name} tool" in toolset.explicit("hidden-0")
    assert not toolset.call(called.name, {called.parameters["required"][0]: "hidden-0"}).is_error


@pytest.mark.parametrize("count", [1, 40])
def test_behind_a_filter_nothing_is_offered_or_said(
    count: int, dialect: prowess.DialectName, put: Put, talk: Talk
) -> None:
    for number in range(count):
        put(f"skill-{number}", files={"a.md": "a"})
    session = talk()
    toolset = prowess.Toolset(session, dialect)
    assert toolset.tools()
    with prowess.skill_filter("none"):
        assert (toolset.tools(), toolset.prompt()) == ((), "")
    session.set_filter("none")
    assert (toolset.tools(), toolset.prompt()) == ((), "")


def test_with_an_empty_list_nothing_is_offered_or_said(dialect: prowess.DialectName, put: Put, talk: Talk) -> None:
    put("pdf", files={"a.md": "a"})
    toolset = prowess.Toolset(talk(), dialect, [])
    assert (toolset.tools(), toolset.prompt()) == ((), "")


def test_when_every_skill_of_a_list_is_gone_nothing_is_offered_or_said(
    dialect: prowess.DialectName, put: Put, talk: Talk
) -> None:
    put("pdf", files={"a.md": "a"})
    session = talk()
    toolset = prowess.Toolset(session, dialect, ["pdf"])
    session.refresh(prowess.Catalog())
    assert (toolset.tools(), toolset.prompt()) == ((), "")


@pytest.mark.parametrize("dialect", ["read_skill", "prowess"])
def test_files_can_be_read_when_a_skill_has_some(dialect: prowess.DialectName, put: Put, talk: Talk) -> None:
    """SKILL.md is none of them, and neither are hidden files."""
    folder = put("pdf", files={".hidden": "x"})
    put("csv")
    toolset = prowess.Toolset(talk(), dialect)
    assert "read_skill_file" not in names(toolset)
    (folder / "notes.md").write_text("Note.\n", encoding="utf-8")
    toolset.session.refresh(talk().catalog)
    assert "read_skill_file" in names(toolset)


@pytest.mark.parametrize("dialect", ["read_skill", "prowess"])
def test_files_of_hidden_skills_do_not_count(dialect: prowess.DialectName, put: Put, talk: Talk) -> None:
    put("pdf")
    put("deploy", fields="disable-model-invocation: true\n", files={"a.md": "a"})
    assert "read_skill_file" not in names(prowess.Toolset(talk(), dialect))


@pytest.mark.parametrize("dialect", ["use_skill", "prowess"])
def test_names_are_an_enum_while_they_are_few(dialect: prowess.DialectName, put: Put, talk: Talk) -> None:
    for number in range(3):
        put(f"skill-{number}")
    toolset = prowess.Toolset(talk(), dialect)
    assert toolset.tools()[0].parameters["properties"]["name"]["enum"] == ["skill-0", "skill-1", "skill-2"]
    for number in range(200):
        put(f"skill-{number}")
    many = prowess.Toolset(talk(), dialect)
    assert "enum" not in many.tools()[0].parameters["properties"]["name"]


@pytest.mark.parametrize("hiding", HIDING)
def test_a_hidden_skill_is_in_no_listing(hiding: str, dialect: prowess.DialectName, put: Put, talk: Talk) -> None:
    """Neither in the prompt, nor in a description, nor in an enum, whatever spelling the file has."""
    put("pdf")
    put("deploy", fields=f"{hiding}\n")
    session = talk()
    toolset = prowess.Toolset(session, dialect)
    assert "deploy" not in toolset.prompt()
    assert "deploy" not in str([tool.to_json_schema() for tool in toolset.tools()])
    assert "deploy" not in session.index()


@pytest.mark.parametrize("hiding", HIDING)
def test_a_hidden_skill_is_refused_to_the_model(hiding: str, put: Put, talk: Talk) -> None:
    """Loading it and reading its files, like a skill that does not exist."""
    put("pdf")
    put("deploy", fields=f"{hiding}\n", body="Secret steps.\n", files={"a.md": "Secret file.\n"})
    toolset = prowess.Toolset(talk())
    for tool, sent in (
        ("load_skill", {"name": "deploy"}),
        ("read_skill_file", {"name": "deploy", "path": "a.md"}),
        ("read_skill_file", {"name": "deploy", "path": "SKILL.md"}),
    ):
        result = toolset.call(tool, sent)
        assert (result.is_error, result.data["reason"]) == (True, "unknown-skill")
        assert "Secret" not in result.content
    assert toolset.session.active_skills == ()


def test_a_hidden_skill_loads_for_the_system_that_lets_models_ask_for_it(put: Put, talk: Talk, load: Load) -> None:
    put("deploy", fields="disable-model-invocation: true\n", body="Deploy it.\n")
    result = load(prowess.Toolset(talk(), "use_skill"), "deploy")
    assert not result.is_error
    assert "Deploy it." in result.content


def test_a_skill_that_only_models_may_call_is_offered(
    dialect: prowess.DialectName, put: Put, talk: Talk, load: Load
) -> None:
    put("style", fields="user-invocable: false\n")
    toolset = prowess.Toolset(talk(), dialect)
    assert "style" in toolset.prompt() + toolset.tools()[0].description
    assert not load(toolset, "style").is_error


# -- search ------------------------------------------------------------------------------------------------------------


def test_search_is_not_offered_where_everything_is_listed(put: Put, talk: Talk) -> None:
    put("pdf")
    put("csv")
    assert "search_skills" not in names(prowess.Toolset(talk()))


def test_search_is_not_offered_for_skills_that_it_could_not_find(put: Put, talk: Talk) -> None:
    """Hidden ones, those beyond the list, those behind a filter."""
    put("pdf")
    put("csv")
    assert "search_skills" not in names(prowess.Toolset(talk(), allowed=["pdf"]))
    assert "search_skills" not in names(prowess.Toolset(talk(filter="**/pdf")))
    put("deploy", fields="disable-model-invocation: true\n")
    assert "search_skills" not in names(prowess.Toolset(talk()))


def test_search_is_offered_when_a_selector_leaves_skills_out(put: Put, talk: Talk) -> None:
    put("pdf", description="Fills forms.")
    put("csv", description="Profiles tables.")
    toolset = prowess.Toolset(talk(selector=prowess.LexicalSelector()))
    assert "csv" not in toolset.prompt("fill forms")
    assert "search_skills" in names(toolset, "fill forms")
    assert toolset.call("search_skills", {"query": "tables"}).data["names"] == ["csv"]


def test_what_search_finds_the_schema_lets_load(put: Put, talk: Talk) -> None:
    """A provider that holds a model to the enum must not keep it from what it was told to look for."""
    put("pdf", description="Fills forms.")
    put("csv", description="Profiles tables.")
    toolset = prowess.Toolset(talk(selector=prowess.LexicalSelector()))
    offered = {tool.name: tool for tool in toolset.tools("fill forms")}
    assert "search_skills" in offered
    for tool in ("load_skill", "read_skill_file"):
        if tool in offered:
            assert "csv" in offered[tool].parameters["properties"]["name"].get("enum", ["csv"])


@pytest.mark.parametrize("count", [3, 12, 35])
def test_search_is_offered_whenever_entries_were_left_out(count: int, put: Put, talk: Talk) -> None:
    """And the prompt names it only then."""
    for number in range(count):
        put(f"skill-{number:02}", description=f"Does thing number {number}, and a few other things beside it.")
    session = talk()
    for budget in range(5, 60 * count, 7):
        toolset = prowess.Toolset(session, budget=budget)
        prompt, offered = toolset.prompt(), names(toolset)
        if toolset.report().omitted or "search_skills" in prompt:
            assert "search_skills" in offered, budget


def test_search_finds_skills_by_their_words(put: Put, talk: Talk) -> None:
    """Best first, names and descriptions on one line each, and names for the host."""
    put("pdf", description='"Fills\\nforms."')
    put("csv", description="Profiles tables.")
    result = prowess.Toolset(talk()).call("search_skills", {"query": "fill a form"})
    assert (result.is_error, result.data["names"]) == (False, ["pdf"])
    assert "- pdf: Fills forms." in result.content.splitlines()


def test_search_that_finds_nothing_says_so(put: Put, talk: Talk) -> None:
    put("pdf")
    for query in ("astronomy", "!!!", '"', "name:pdf OR", "NEAR(" * 100, "*", "-pdf^"):
        result = prowess.Toolset(talk()).call("search_skills", {"query": query})
        assert not result.is_error, query
        assert result.data["names"] in ([], ["pdf"])
        assert result.content


@pytest.mark.parametrize("limit", [1, 5, 50, 10**9])
def test_search_gives_at_most_what_was_asked_for(limit: int, put: Put, talk: Talk) -> None:
    for number in range(60):
        put(f"form-{number}", description="Fills forms.")
    found = prowess.Toolset(talk()).call("search_skills", {"query": "forms", "limit": limit}).data["names"]
    assert len(found) == min(limit, 50)


def test_search_finds_only_what_the_model_may_have(put: Put, talk: Talk) -> None:
    """Neither hidden skills, nor those behind a filter, nor those beyond the list."""
    for name in ("form-a", "form-b", "form-c", "form-d"):
        put(name, description="Fills forms.", fields="disable-model-invocation: true\n" if name == "form-d" else "")
    toolset = prowess.Toolset(talk(filter="skills/form-[bcd]"), allowed=["form-a", "form-b", "form-d"])
    assert toolset.call("search_skills", {"query": "forms"}).data["names"] == ["form-b"]


def test_what_the_model_may_not_have_crowds_out_nothing(put: Put, talk: Talk) -> None:
    """However many other skills fit as well."""
    for number in range(100):
        put(f"form-{number:02}", description="Fills forms.")
    toolset = prowess.Toolset(talk(), allowed=["form-99"])
    assert toolset.call("search_skills", {"query": "forms", "limit": 1}).data["names"] == ["form-99"]


def test_only_what_a_selector_picks_is_shown(dialect: prowess.DialectName, put: Put, talk: Talk) -> None:
    """In the prompt and in the tools alike."""

    class Picks:
        def select(self, query: str, candidates: Sequence[prowess.Skill]) -> list[str]:
            return [skill.name for skill in candidates if skill.name in query]

    put("pdf")
    put("csv")
    toolset = prowess.Toolset(talk(selector=Picks()), dialect)
    listed = toolset.prompt("the pdf please") + toolset.tools("the pdf please")[0].description
    assert "pdf" in listed
    assert "csv" not in listed
    assert "csv" in toolset.prompt() + toolset.tools()[0].description


# -- scripts -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def scripted(put: Put) -> None:
    """Two skills with scripts, and two without."""
    for name in ("pdf", "csv"):
        put(name, files={"scripts/x.py": "print(1)\n"})
    put("plain")
    put("notes", files={"references/a.md": "a"})


def script_tool(session: prowess.Session) -> prowess.ToolDefinition | None:
    toolset = prowess.Toolset(session, scripts=prowess.Scripts(sandbox="none"))
    return next((tool for tool in toolset.tools() if tool.name == "run_skill_script"), None)


@pytest.mark.usefixtures("scripted")
def test_scripts_are_offered_once_a_skill_with_scripts_is_granted(talk: Talk, tmp_path: Path) -> None:
    """A grant for a skill that has none, or for what a skill was before, lets no script run."""
    trust = prowess.Trust(tmp_path / "trust.json")
    session = talk(trust=trust)
    assert script_tool(session) is None
    trust.grant(session.skill("notes"))
    assert script_tool(session) is None
    trust.grant(session.skill("pdf"))
    assert script_tool(session) is not None
    (tmp_path / "skills" / "pdf" / "scripts" / "x.py").write_text("print(2)\n", encoding="utf-8")
    assert script_tool(talk(trust=trust)) is None


@pytest.mark.usefixtures("scripted")
def test_scripts_are_offered_where_a_person_can_be_asked(talk: Talk, tmp_path: Path) -> None:
    asked = prowess.Trust(tmp_path / "trust.json", ask=lambda _request: False)
    assert script_tool(talk(trust=asked)) is not None
    assert script_tool(talk(trust=asked, filter="skills/plain")) is None


@pytest.mark.usefixtures("scripted")
def test_scripts_are_offered_for_skills_that_have_some(talk: Talk, tmp_path: Path) -> None:
    tool = script_tool(talk(trust=prowess.Trust(tmp_path / "trust.json", ask=lambda _request: False)))
    assert tool is not None
    assert tool.parameters["properties"]["name"]["enum"] == ["csv", "pdf"]


@pytest.mark.usefixtures("scripted")
def test_damaged_grants_offer_no_scripts(talk: Talk, tmp_path: Path) -> None:
    trust = prowess.Trust(tmp_path / "trust.json")
    trust.grant(talk().skill("pdf"))
    (tmp_path / "trust.json").write_text("{", encoding="utf-8")
    assert script_tool(talk(trust=trust)) is None

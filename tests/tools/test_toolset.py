"""What a model sees and calls, in the default dialect and through the public API: begin here.

The other modules of this folder go into one part each: what is offered, listings and their budget, calls, files, forks,
approval, hostile text, asynchronous hosts. ``foreign`` compares the other dialects with their systems.
"""

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import prowess
from prowess import Session, Toolset

Put = Callable[..., Path]
Talk = Callable[..., Session]

PUBLIC_NAMES = """
    acall allowed aprompt atools call child dialect explain explicit issues missing possible_tools prepare_fork prompt
    recap report tools
"""


@pytest.fixture
def session(put: Put, talk: Talk) -> Session:
    put("pdf", description="Fills forms.", body="Fill it.\n", files={"references/forms.md": "One\nTwo\nThree\n"})
    put("csv", description="Profiles tables.", body="Profile $0.\n", fields="arguments: [table]\n")
    return talk()


def test_a_toolset_has_these_public_names() -> None:
    assert sorted(name for name in vars(Toolset) if not name.startswith("_")) == PUBLIC_NAMES.split()


def test_the_prompt_lists_every_skill_by_name_and_description(session: Session) -> None:
    prompt = Toolset(session).prompt()
    assert re.findall("<name>(.*?)</name><description>(.*?)</description>", prompt) == [
        ("csv", "Profiles tables."),
        ("pdf", "Fills forms."),
    ]
    assert "call load_skill" in prompt
    assert "Fill it." not in prompt, "instructions come when the model asks for them"


def test_there_is_nothing_to_say_and_nothing_to_call_without_skills() -> None:
    toolset = Toolset(Session(prowess.Catalog([])))
    assert (toolset.prompt(), toolset.tools()) == ("", ())
    assert [tool.name for tool in toolset.possible_tools()] == [
        *("load_skill", "unload_skill", "read_skill_file", "search_skills")
    ]


def test_a_tool_is_offered_only_when_it_can_do_something(session: Session, put: Put) -> None:
    assert [tool.name for tool in Toolset(session).tools()] == ["load_skill", "unload_skill", "read_skill_file"]
    put("review", fields="context: fork\n")
    session.refresh(prowess.scan(session.base_dir + "/skills"))
    offered = [tool.name for tool in Toolset(session, fork="host").tools()]
    assert offered == ["load_skill", "unload_skill", "read_skill_file", "run_skill"]


def test_a_model_loads_reads_and_unloads(session: Session, events: list[prowess.Event]) -> None:
    toolset = Toolset(session)
    loaded = toolset.call("load_skill", {"name": "pdf"})
    assert loaded.content.startswith('<skill_content name="pdf">\nFill it.\n')
    assert "<file>references/forms.md</file>" in loaded.content
    assert session.active_skills == ("pdf",)
    arguments = json.dumps({"name": "pdf", "path": "references/forms.md", "offset": 1, "limit": 1})
    assert toolset.call("read_skill_file", arguments).content == "Two\n\n[lines 1-1 of 3; go on with offset=2]"
    assert toolset.call("unload_skill", {"name": "pdf"}).content == "pdf is put aside."
    assert [(event.kind, event.skill) for event in events] == [
        *(("activated", "pdf"), ("read", "pdf"), ("deactivated", "pdf"))
    ]


@pytest.mark.parametrize(
    ("tool", "arguments", "reason", "said"),
    [
        ("load_skill", {"name": "pdg"}, "unknown-skill", "pdf"),
        ("load_skill", {}, "bad-arguments", "name is required"),
        ("load_skill", "{", "bad-arguments", "not JSON"),
        ("read_skill_file", {"name": "pdf", "path": "../csv/SKILL.md"}, "path-escape", "../csv/SKILL.md"),
        ("read_skill_file", {"name": "pdf", "path": "forms.md"}, "not-found", "references/forms.md"),
        ("unload_skill", {"name": "pdf"}, "not-active", "not active"),
        ("fly", None, "unknown-tool", "load_skill, unload_skill"),
    ],
)
def test_what_goes_wrong_is_a_result_that_says_what_to_do(
    tool: str, arguments: dict[str, str] | str | None, reason: str, said: str, session: Session
) -> None:
    result = Toolset(session).call(tool, arguments)
    assert (result.is_error, result.data["reason"]) == (True, reason)
    assert said in result.content


def test_a_budget_holds_for_the_whole_prompt_and_the_report_says_what_was_cut(put: Put, talk: Talk) -> None:
    for number in range(40):
        put(f"skill-{number:02}", description=f"Does the work of number {number} in a long sentence. " * 4)
    toolset = Toolset(talk(), budget=600)
    assert prowess.estimate_tokens(toolset.prompt("number 7")) <= 600
    report = toolset.report()
    assert 0 < len(report.shown) < 40
    assert set(report.shown) | set(report.omitted) == {f"skill-{number:02}" for number in range(40)}
    assert "search_skills" in [tool.name for tool in toolset.tools()]
    assert toolset.explain(report.omitted[0]).reasons[-1].startswith("not in the listing: ")


def test_a_later_request_only_appends_to_the_prompt(put: Put, talk: Talk) -> None:
    """Providers cache a prompt for as long as its beginning does not change."""
    for number in range(60):
        put(f"{'poem' if number % 2 else 'chart'}-{number:02}", description="Makes one of many things. " * 5)
    toolset = Toolset(talk(selector=prowess.AutoSelector(900)))
    first = re.findall("<name>(.*?)</name>", toolset.prompt("write a poem"))
    second = re.findall("<name>(.*?)</name>", toolset.prompt("draw a chart"))
    assert second[: len(first)] == first
    assert len(second) > len(first)


def test_only_allowed_skills_exist_for_the_model(session: Session) -> None:
    toolset = Toolset(session, allowed=["csv"])
    assert "pdf" not in toolset.prompt()
    assert toolset.call("load_skill", {"name": "pdf"}).data["reason"] == "unknown-skill"
    assert not toolset.call("load_skill", {"name": "csv"}).is_error
    with pytest.raises(prowess.UnknownSkillError):
        Toolset(session, allowed=["cvs"])
    assert Toolset(session, allowed=["cvs"], missing="ignore").issues[0].code == "unknown-skill"


def test_conversations_over_one_catalogue_share_a_prompt_until_one_of_them_differs(session: Session) -> None:
    other = Session(session.catalog, base_dir=session.base_dir)
    assert Toolset(session).prompt() is Toolset(other).prompt()
    other.set_filter("**/csv")
    assert "pdf" not in Toolset(other).prompt()
    assert "pdf" in Toolset(session).prompt()


def test_a_skill_runs_as_a_sub_agent_with_tools_of_its_own(put: Put, talk: Talk) -> None:
    put("review", fields="context: fork\nallowed-tools: Read\n", body="Review $ARGUMENTS.\n")
    asked: list[prowess.PreparedFork] = []

    def run(prepared: prowess.PreparedFork) -> str:
        asked.append(prepared)
        return "It is fine."

    toolset = Toolset(talk(tools=["Read", "Write"]), fork=run)
    assert toolset.call("run_skill", {"name": "review", "task": "src"}).content == "It is fine."
    assert (asked[0].skill_name, asked[0].allowed_tools) == ("review", ("Read",))
    assert "Review src." in asked[0].content
    child = toolset.child(asked[0])
    assert "run_skill" not in [tool.name for tool in child.tools()]
    assert child.session.moment().ceiling.tools == ("Read",)


def test_asynchronous_hosts_get_the_same_answers(session: Session) -> None:
    toolset = Toolset(session)

    async def ask() -> tuple[str, tuple[prowess.ToolDefinition, ...], prowess.ToolResult]:
        made = await toolset.aprompt("forms"), await toolset.atools("forms")
        return *made, await toolset.acall("load_skill", {"name": "csv", "arguments": "orders.csv"})

    prompt, tools, result = asyncio.run(ask())
    assert (prompt, tools) == (toolset.prompt("forms"), toolset.tools("forms"))
    assert "Profile orders.csv." in result.content


def test_no_path_of_the_host_reaches_the_model_where_the_host_hides_them(session: Session) -> None:
    toolset = Toolset(session, hide_paths=True)
    shown = toolset.prompt() + toolset.call("load_skill", {"name": "pdf"}).content
    assert session.base_dir not in shown
    assert "Skill directory: ." in shown


@pytest.mark.parametrize("dialect", list(prowess.DIALECTS))
def test_every_dialect_lists_and_loads_by_its_own_names(dialect: prowess.DialectName, session: Session) -> None:
    toolset = Toolset(session, dialect)
    tool = toolset.tools()[0]
    listed = toolset.prompt() + tool.description
    assert ("pdf" in listed, "csv" in listed) == (True, True)
    (parameter,) = tool.parameters["required"]
    assert "Fill it." in toolset.call(tool.name, {parameter: "pdf"}).content

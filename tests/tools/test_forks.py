"""Skills that run as a sub-agent: the tool, what is prepared, who runs it, and a child that is a process."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import prowess
from tests.dialect_calls import READERS

Put = Callable[..., Path]
Talk = Callable[..., prowess.Session]
Run = Callable[[prowess.PreparedFork], Any]

FORKING = tuple(name for name, dialect in prowess.DIALECTS.items() if dialect.has_fork_tool)
PLAIN = tuple(name for name in prowess.DIALECTS if name not in FORKING)
TASK = "How large is src?"
ASKED = {"name": "audit", "task": TASK}


@pytest.fixture(params=FORKING)
def forking(request: pytest.FixtureRequest) -> str:
    """Each dialect that has a tool for forks."""
    return str(request.param)


@pytest.fixture
def audit(put: Put) -> Path:
    """A skill that forks, beside one that does not."""
    put("plain", body="Do it.\n")
    return put("audit", fields="context: fork\nmodel: small\nallowed-tools: Read Grep\n", body="\nAudit it.\n")


class Recorded:
    """A runner that remembers what it was given."""

    def __init__(self) -> None:
        self.ran: list[prowess.PreparedFork] = []

    def __call__(self, prepared: prowess.PreparedFork) -> str:
        self.ran.append(prepared)
        return ""


def answer(prepared: prowess.PreparedFork) -> str:
    return f"{prepared.title}: {prepared.task}"


def names(toolset: prowess.Toolset) -> list[str]:
    return [tool.name for tool in toolset.tools()]


def prepared_of(toolset: prowess.Toolset, name: str = "audit", task: str = TASK) -> prowess.PreparedFork:
    prepared = toolset.prepare_fork(name, task)
    assert isinstance(prepared, prowess.PreparedFork), prepared
    return prepared


def refused(toolset: prowess.Toolset, name: str) -> tuple[str, str]:
    """Why a fork cannot be prepared: the words, and the reason."""
    result = toolset.prepare_fork(name, TASK)
    assert isinstance(result, prowess.ToolResult)
    assert (result.is_error, result.fork) == (True, None)
    return result.content, str(result.data["reason"])


# -- the tool -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("audit")
def test_the_tool_takes_a_name_and_a_task_and_nothing_else(forking: prowess.DialectName, talk: Talk) -> None:
    tool = {tool.name: tool for tool in prowess.Toolset(talk(), forking, fork=answer).tools()}["run_skill"]
    parameters = tool.parameters
    assert (parameters["type"], parameters["required"]) == ("object", ["name", "task"])
    assert parameters["additionalProperties"] is False
    assert {key: (value["type"], value["description"]) for key, value in parameters["properties"].items()} == {
        "name": ("string", "The name of the skill to run in a forked context"),
        "task": ("string", "A clear description of the task the skill should achieve"),
    }
    assert (tool.parallel, tool.read_only) == (False, False)
    assert tool.to_mcp()["annotations"] == {"readOnlyHint": False}


@pytest.mark.usefixtures("audit")
def test_names_are_listed_in_our_own_dialect(talk: Talk) -> None:
    schemas = {
        dialect: prowess.Toolset(talk(), dialect, fork=answer).tools()[-1].parameters["properties"]["name"]
        for dialect in FORKING
    }
    assert schemas["prowess"]["enum"] == ["audit"]
    assert "enum" not in schemas["read_skill"]


@pytest.mark.usefixtures("audit")
@pytest.mark.parametrize("fork", [answer, "host"])
def test_it_is_offered_where_somebody_runs_forks(fork: Any, forking: prowess.DialectName, talk: Talk) -> None:
    assert "run_skill" in names(prowess.Toolset(talk(), forking, fork=fork))


@pytest.mark.usefixtures("audit")
def test_it_is_not_offered_where_nobody_runs_forks(forking: prowess.DialectName, talk: Talk) -> None:
    toolset = prowess.Toolset(talk(), forking)
    assert "run_skill" not in names(toolset)
    result = toolset.call("run_skill", ASKED)
    assert (result.is_error, result.data["reason"], result.fork) == (True, "fork-off", None)


def test_it_is_not_offered_where_no_skill_forks(forking: prowess.DialectName, put: Put, talk: Talk) -> None:
    put("plain")
    put("odd", fields="context: forked\n")
    put("other", fields="context: Fork\n")
    assert "run_skill" not in names(prowess.Toolset(talk(), forking, fork=answer))


def test_it_is_not_offered_for_a_skill_that_the_model_may_not_have(
    forking: prowess.DialectName, put: Put, talk: Talk
) -> None:
    put("plain")
    put("audit", fields="context: fork\n")
    put("hidden", fields="context: fork\ndisable-model-invocation: true\n")
    assert "run_skill" not in names(prowess.Toolset(talk(), forking, ["plain", "hidden"], fork=answer))
    assert "run_skill" not in names(prowess.Toolset(talk(filter="skills/plain"), forking, fork=answer))
    assert "run_skill" in names(prowess.Toolset(talk(), forking, ["audit"], fork=answer))


@pytest.mark.usefixtures("audit")
@pytest.mark.parametrize("dialect", PLAIN)
def test_other_dialects_have_no_such_tool_and_warn_of_a_runner(dialect: prowess.DialectName, talk: Talk) -> None:
    with pytest.warns(
        UserWarning, match=f"^fork= has no effect: the dialect '{dialect}' .*these have: read_skill, prow"
    ):
        toolset = prowess.Toolset(talk(), dialect, fork=answer)
    toolset.child()
    assert "run_skill" not in names(toolset)
    assert toolset.call("run_skill", ASKED).data["reason"] == "unknown-tool"


@pytest.mark.usefixtures("audit")
def test_the_prompt_says_which_skills_fork(forking: prowess.DialectName, talk: Talk) -> None:
    prompt = prowess.Toolset(talk(), forking, fork=answer).prompt()
    assert prompt.count("<mode>forked</mode>") == 1
    assert "run_skill" in prompt
    assert "run_skill" not in prowess.Toolset(talk(), forking).prompt()


@pytest.mark.usefixtures("audit")
@pytest.mark.parametrize("fork", ["hosts", 1, True, object()])
def test_who_runs_forks_is_a_callable_or_the_host(fork: Any, talk: Talk) -> None:
    with pytest.raises(prowess.SourceError):
        prowess.Toolset(talk(), fork=fork)


@pytest.mark.usefixtures("audit")
@pytest.mark.parametrize(
    "arguments", [{}, {"name": ""}, {"name": 5, "task": ""}, {"name": "audit", "task": 5}, "{", []]
)
def test_arguments_are_checked_first(arguments: Any, forking: prowess.DialectName, talk: Talk) -> None:
    runner = Recorded()
    result = prowess.Toolset(talk(), forking, fork=runner).call("run_skill", arguments)
    assert (result.is_error, result.data["reason"], runner.ran) == (True, "bad-arguments", [])


@pytest.mark.usefixtures("audit")
def test_a_task_may_be_left_out(forking: prowess.DialectName, talk: Talk) -> None:
    result = prowess.Toolset(talk(), forking, fork=answer).call("run_skill", {"name": "audit"})
    assert (result.is_error, result.content) == (False, "Skill: audit: ")


def test_a_person_may_have_a_fork_that_models_may_not_and_not_one_that_is_for_models(put: Put, talk: Talk) -> None:
    put("hidden", fields="context: fork\ndisable-model-invocation: true\n")
    put("inner", fields="context: fork\nuser-invocable: false\n")
    toolset = prowess.Toolset(talk(), fork="host")
    assert refused(toolset, "hidden")[1] == "unknown-skill"
    assert isinstance(toolset.prepare_fork("hidden", TASK, by_person=True), prowess.PreparedFork)
    assert isinstance(toolset.prepare_fork("inner", TASK), prowess.PreparedFork)
    assert isinstance(toolset.prepare_fork("inner", TASK, by_person=True), prowess.ToolResult)


# -- what is prepared -----------------------------------------------------------------------------------------------


def test_a_fork_is_prepared_with_all_that_a_child_needs(audit: Path, forking: prowess.DialectName, talk: Talk) -> None:
    prepared = prepared_of(prowess.Toolset(talk(tools="any"), forking))
    assert prepared == prowess.PreparedFork(
        "audit", TASK, (audit / "SKILL.md").read_text(encoding="utf-8"), "small", ("Read", "Grep")
    )
    assert prepared.title == "Skill: audit"


def test_without_a_model_it_is_the_parents(put: Put, talk: Talk) -> None:
    put("audit", fields="context: fork\n")
    prepared = prepared_of(prowess.Toolset(talk()))
    assert (prepared.model, prepared.allowed_tools) == ("", ())


def test_an_inline_skill_forks_too(talk: Talk) -> None:
    source = prowess.Source.inline("audit", "Audits.", "Audit it.", context="fork", allowed_tools=["Read"])
    prepared = prepared_of(prowess.Toolset(talk(prowess.Catalog.from_sources([source]))))
    assert (prepared.content, prepared.allowed_tools) == ("Audit it.", ("Read",))
    assert prowess.fork_user_message(prepared).endswith('<skill name="audit">\nAudit it.\n</skill>')


def test_model_and_tools_are_those_of_the_file_that_is_read(
    audit: Path, forking: prowess.DialectName, talk: Talk
) -> None:
    """The child must not have the tools of one version and the instructions of another."""
    toolset = prowess.Toolset(talk(), forking)
    head = "---\nname: audit\ndescription: Does one thing.\ncontext: fork\nmodel: large\nallowed-tools: Read\n---\n"
    (audit / "SKILL.md").write_text(f"{head}Read only.\n", encoding="utf-8")
    prepared = prepared_of(toolset)
    assert prepared.content == f"{head}Read only.\n"
    assert (prepared.model, prepared.allowed_tools) == ("large", ("Read",))


@pytest.mark.usefixtures("audit")
def test_a_fork_leaves_the_session_as_it_was(forking: prowess.DialectName, talk: Talk) -> None:
    """It is active in the child; the parent gets its answer alone."""
    session = talk()
    prepared_of(prowess.Toolset(session, forking))
    assert session.active_skills == ()


@pytest.mark.usefixtures("audit")
@pytest.mark.parametrize("reader", [("read_skill", "read_skill"), ("prowess", "load_skill")])
def test_errors_come_in_their_order(reader: tuple[prowess.DialectName, str], audit: Path, put: Put, talk: Talk) -> None:
    dialect, tool = reader
    put("hidden", fields="context: fork\ndisable-model-invocation: true\n")
    put("missing")
    session = talk()
    toolset = prowess.Toolset(session, dialect, ["audit", "plain", "hidden", "missing"])
    shutil.rmtree(audit.parent / "missing")
    session.refresh(prowess.scan(audit.parent))
    shutil.rmtree(audit)
    shutil.rmtree(audit.parent / "plain")
    assert refused(toolset, "missing") == ('skill "missing" not found', "unknown-skill")
    assert refused(toolset, "hidden") == ('skill "hidden" not found', "unknown-skill")
    why = f"is not configured for forked execution (set context: fork); use {tool} instead"
    assert refused(toolset, "plain") == (f'skill "plain" {why}', "not-forkable")
    content, reason = refused(toolset, "audit")
    assert content.startswith("failed to read skill content: ")
    assert reason == "missing-skill-md"
    assert session.active_skills == ()


@pytest.mark.usefixtures("audit")
def test_a_skill_that_the_list_or_the_filter_hides_is_not_found(forking: prowess.DialectName, talk: Talk) -> None:
    assert refused(prowess.Toolset(talk(), forking, ["plain"]), "audit")[1] == "unknown-skill"
    assert refused(prowess.Toolset(talk(), forking, []), "audit")[1] == "unknown-skill"
    assert refused(prowess.Toolset(talk(filter="skills/plain"), forking), "audit")[1] == "unknown-skill"
    with prowess.skill_filter("skills/plain"):
        assert refused(prowess.Toolset(talk(), forking), "audit")[1] == "unknown-skill"


@pytest.mark.usefixtures("audit")
@pytest.mark.parametrize("name", ["missing", "plain"])
def test_a_call_gives_the_same_errors(
    name: str, forking: prowess.DialectName, talk: Talk, events: list[prowess.Event]
) -> None:
    runner = Recorded()
    toolset = prowess.Toolset(talk(), forking, fork=runner)
    result = toolset.call("run_skill", {"name": name, "task": TASK})
    assert (result.content, result.data["reason"]) == refused(toolset, name)
    assert (result.is_error, runner.ran) == (True, [])
    told = [(event.kind, event.skill, event.detail.get("tool")) for event in events]
    assert told == [("refused", name, "run_skill")]


# -- what the child may use -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("allowed", "given"),
    [
        ((), ("Read", "Write", "Bash", "mcp__git__log", "load_skill")),
        (("Read",), ("Read",)),
        (("Write", "Read"), ("Read", "Write")),
        (("mcp__*",), ("mcp__git__log",)),
        (("*",), ("Read", "Write", "Bash", "mcp__git__log", "load_skill")),
        (("Bash(git:*)",), ("Bash(git:*)",)),
        (("Bash(git:*)", "Bash(ls)", "Read"), ("Read", "Bash(git:*)", "Bash(ls)")),
        (("Bash(git:*)", "Bash"), ("Bash",)),
        (("read",), ()),
        (("run_skill",), ()),
    ],
)
def test_the_childs_tools_are_those_of_the_parent_that_are_allowed(
    allowed: tuple[str, ...], given: tuple[str, ...]
) -> None:
    offered = ["Read", "Write", "run_skill", "Bash", "mcp__git__log", "load_skill"]
    assert prowess.PreparedFork("a", "t", "c", "", allowed).child_tools(offered) == given


@pytest.mark.usefixtures("audit")
def test_a_child_has_the_same_tools_but_cannot_fork(forking: prowess.DialectName, talk: Talk) -> None:
    toolset = prowess.Toolset(talk(), forking, ["audit"], fork=answer)
    child = toolset.child()
    assert child.dialect == forking
    assert [*names(child), "run_skill"] == names(toolset)
    result = child.call("run_skill", ASKED)
    assert (result.is_error, result.data["reason"]) == (True, "fork-off")
    assert "run_skill" not in child.child().prompt()


@pytest.mark.usefixtures("audit")
def test_a_child_keeps_the_options_of_its_parent(put: Put, talk: Talk) -> None:
    put("large", files={"notes.md": "x" * 100})
    toolset = prowess.Toolset(talk(), allowed=["large"], fork=answer, max_bytes=50, hint_resources=False, budget=5_000)
    child = toolset.child()
    assert child.prompt() == toolset.prompt()
    for call in (("read_skill_file", {"name": "large", "path": "notes.md"}), ("load_skill", {"name": "audit"})):
        assert child.call(*call) == toolset.call(*call)
        assert child.call(*call).is_error
    assert "notes.md" not in child.call("load_skill", {"name": "large"}).content


def test_the_childs_tools_include_those_that_read_the_files_of_its_skill(reading: prowess.DialectName) -> None:
    """Instructions that name a file are of no use to who cannot read it."""
    tool = READERS[reading][0]
    assert prowess.PreparedFork("a", "t", "c", "", ("Read",)).child_tools(["Write", tool]) == (tool,)
    assert prowess.PreparedFork("a", "t", "c", "", ("Read",)).allows(tool) == "allowed"


@pytest.mark.parametrize(
    ("allowed", "tool", "command", "answer"),
    [
        (("Read",), "Read", None, "allowed"),
        (("Read",), "Write", None, "refused"),
        (("Bash(git:*)",), "Bash", "git log", "allowed"),
        (("Bash(git:*)",), "Bash", "git log; rm x", "refused"),
        (("Bash(git:*)",), "Bash", "ls", "refused"),
        (("Bash(git:*)",), "Bash", None, "refused"),
        (("Bash(git:*)", "Read"), "Edit", "git log", "refused"),
        (("mcp__*",), "mcp__git__log", None, "allowed"),
        (("mcp__*",), "Bash", "ls", "refused"),
        (("*",), "Write", None, "allowed"),
        ((), "Write", None, "not-mentioned"),
        ((), "run_skill", None, "refused"),
        (("run_skill",), "run_skill", None, "refused"),
    ],
)
def test_a_call_of_the_child_is_judged_by_the_list_of_its_skill(
    allowed: tuple[str, ...], tool: str, command: str | None, answer: str
) -> None:
    assert prowess.PreparedFork("a", "t", "c", "", allowed).allows(tool, command) == answer


@pytest.mark.parametrize(
    ("listed", "ceiling", "left"),
    [
        ("Read Bash", ["Read"], ("Read",)),
        ("Read Bash", ["Bash(git:*)", "Edit"], ("Bash(git:*)",)),
        ("Bash(git:*)", ["Bash", "Edit"], ("Bash(git:*)",)),
        ("mcp__*", ["mcp__git__log", "Read"], ("mcp__git__log",)),
        ("*", ["Read", "Bash(git:*)"], ("Read", "Bash(git:*)")),
        ("", ["Read"], ("Read",)),
        ("Bash", ["Read"], ()),
        ("Bash Read", ["*"], ()),
        ("", ["*"], ()),
        ("", [], ()),
    ],
)
def test_a_fork_gets_nothing_beyond_the_ceiling_of_its_session(
    listed: str, ceiling: list[str], left: tuple[str, ...], put: Put, talk: Talk
) -> None:
    put("audit", fields=f"context: fork\n{f'allowed-tools: {json.dumps(listed)}' if listed else ''}\n")
    prepared = prepared_of(prowess.Toolset(talk(tools=ceiling)))
    assert sorted(prepared.allowed_tools) == sorted(left)
    assert prepared.child_tools(["Read", "Edit", "Bash", "mcp__git__log"]) == left
    assert prepared.allows("Edit") == "refused"
    assert prepared.allows("Bash", "rm -rf x") == "refused"
    assert (prepared.allows("Bash", "git log") == "allowed") is ("Bash(git:*)" in left)
    # A skill that lists nothing is bounded by the ceiling all the same, and approves nothing.
    assert prepared.allows("Read") == (("allowed" if listed else "not-mentioned") if "Read" in left else "refused")


# -- the session of a child -----------------------------------------------------------------------------------------


@pytest.fixture
def family(put: Put, talk: Talk) -> prowess.Toolset:
    """A toolset whose session allows some tools and one active skill, over three skills of which one forks."""
    put("audit", fields="context: fork\nallowed-tools: Read Bash(git:*)\n")
    put("one", fields="allowed-tools: Read Edit\n")
    put("two", fields="allowed-tools: Bash\n")
    session = talk(tools=["Read", "Edit", "Bash"], max_active=1, filter="skills/*")
    return prowess.Toolset(session, fork=answer)


def test_what_a_child_loads_and_unloads_does_not_touch_its_parent(family: prowess.Toolset) -> None:
    parent, child = family, family.child()
    assert not parent.call("load_skill", {"name": "one"}).is_error
    assert not child.session.active_skills
    assert not child.call("load_skill", {"name": "two"}).is_error, "the parent's skill is not counted for the child"
    assert (parent.session.active_skills, child.session.active_skills) == (("one",), ("two",))
    assert (parent.session.active_tools, child.session.active_tools) == (("Edit", "Read"), ("Bash",))
    assert child.call("unload_skill", {"name": "one"}).is_error
    assert not child.call("unload_skill", {"name": "two"}).is_error
    assert parent.session.active_skills == ("one",)
    assert not child.call("load_skill", {"name": "one"}).is_error
    assert child.call("load_skill", {"name": "two"}).is_error, "the child has the bounds of its parent"


def test_a_child_that_filters_filters_for_itself(family: prowess.Toolset) -> None:
    child = family.child()
    child.session.set_filter("skills/two")
    assert [skill.name for skill in family.session.candidates()] == ["audit", "one", "two"]
    assert [skill.name for skill in child.session.candidates()] == ["two"]


def test_a_child_keeps_the_filters_that_surrounded_it_when_it_was_made(family: prowess.Toolset) -> None:
    """A host runs it elsewhere: in another thread, after the block, with a filter of its own."""
    with prowess.skill_filter("skills/*o*"):
        child = family.child()
    family.session.set_filter("none")
    assert [skill.name for skill in child.session.candidates()] == ["one", "two"]
    child.session.set_filter("")
    assert [skill.name for skill in child.session.candidates()] == ["one", "two"]
    with pytest.raises(prowess.SkillFilteredError):
        child.session.activate("audit", filter="")


def test_a_child_that_widens_its_filter_stays_within_that_of_its_parent(put: Put, talk: Talk) -> None:
    put("one")
    put("two")
    child = prowess.Toolset(talk(filter="skills/one")).child()
    child.session.set_filter("")
    assert [skill.name for skill in child.session.candidates()] == ["one"]
    with pytest.raises(prowess.SkillFilteredError):
        child.session.activate("two", filter="")


def test_a_child_of_a_fork_is_bound_by_the_tools_of_its_skill(family: prowess.Toolset) -> None:
    child = family.child(prepared_of(family)).session
    child.activate("two")
    assert child.active_tools == ("Bash(git:*)",)
    assert (child.allows("Bash", "git log"), child.allows("Bash", "rm x")) == ("allowed", "refused")
    assert (child.allows("Edit"), child.allows("Read")) == ("refused", "not-mentioned")
    assert family.session.allows("Edit") == "not-mentioned"
    grandchild = family.child(prepared_of(family)).child().session
    assert grandchild.allows("Edit") == "refused"


def test_a_child_of_a_fork_whose_tools_are_a_family_has_that_family(put: Put, talk: Talk) -> None:
    put("audit", fields="context: fork\nallowed-tools: mcp__*\n")
    put("log", fields="allowed-tools: mcp__git__log Read\n")
    toolset = prowess.Toolset(talk(tools="any"))
    child = toolset.child(prepared_of(toolset)).session
    child.activate("log")
    assert child.active_tools == ("mcp__git__log",)
    assert (child.allows("mcp__git__log"), child.allows("Read")) == ("allowed", "refused")


def test_a_child_of_a_fork_that_lists_nothing_has_the_ceiling_of_its_parent(put: Put, talk: Talk) -> None:
    put("audit", fields="context: fork\n")
    toolset = prowess.Toolset(talk(tools=[]))
    prepared = prepared_of(toolset)
    assert (prepared.allows("Read"), prepared.child_tools(["Read"])) == ("refused", ())
    assert toolset.child(prepared).session.allows("Read") == "refused"


def test_a_child_begins_with_the_preloaded_skills_and_may_end_them(put: Put, talk: Talk) -> None:
    folder = put("always", body="Always do it.\n")
    put("other")
    catalog = prowess.Catalog.from_sources(
        [prowess.Source.directory(folder, preload=True), prowess.Source.directory(folder.parent / "other")]
    )
    toolset = prowess.Toolset(talk(catalog))
    child = toolset.child()
    assert "Always do it." in child.prompt()
    child.session.deactivate("always")
    assert "Always do it." not in child.prompt()
    assert "Always do it." in toolset.prompt()


# -- what the child is told -----------------------------------------------------------------------------------------


def test_the_user_message_is_the_request_and_the_instructions() -> None:
    prepared = prowess.PreparedFork("audit", TASK, "---\nname: audit\ndescription: d\n---\n\nAudit it.\n")
    assert prowess.fork_user_message(prepared) == (
        f'Use the following skill.\n\nUser\'s request: {TASK}\n\n<skill name="audit">\n\nAudit it.\n\n</skill>'
    )


FIELDS = "name: audit\ndescription: Does one thing.\ncontext: fork\n"


@pytest.mark.parametrize(
    "text",
    [
        f"---\n{FIELDS}---\n\n\nAudit it.\n---\nTo the end.\n",
        f"\ufeff\n\n--- \n{FIELDS}--- \nAudit it.\n",
        f"---\n{FIELDS}---\nAudit it.\n".replace("\n", "\r\n"),
        f"---\n{FIELDS}---",
        f"<!-- a licence -->\n---\n{FIELDS}---\nAudit it.\n",
        f"```yaml\n---\n{FIELDS}---\n```\nAudit it.\n",
        f"---\n{FIELDS}---# Audit\n\nAudit it.\n",
    ],
    ids=["usual", "mark and blanks", "windows", "no body", "comment", "code fence", "glued"],
)
def test_the_child_gets_the_body_and_nothing_of_the_head(text: str, put: Put, talk: Talk) -> None:
    """However the head is written: what is repaired when it is loaded is not for a model either."""
    (put("audit") / "SKILL.md").write_text(text, encoding="utf-8", newline="")
    session = talk()
    message = prowess.fork_user_message(prepared_of(prowess.Toolset(session), task=""))
    body = session.catalog["audit"].read_body()
    assert message == f'Use the following skill.\n\n<skill name="audit">\n{body}\n</skill>'


@pytest.mark.parametrize("text", ["---\nname: audit\nAudit it.\n", "Audit it.\n---\nx\n---\n", "--- x\na\n---\n", ""])
def test_content_without_a_whole_head_is_left_alone(text: str) -> None:
    message = prowess.fork_user_message(prowess.PreparedFork("audit", "", text))
    assert message == f'Use the following skill.\n\n<skill name="audit">\n{text}\n</skill>'


def test_text_in_a_program_has_no_head_to_lose(talk: Talk) -> None:
    """A rule at its beginning opens no frontmatter."""
    text = "---\nAudit it, first.\n---\nThen report."
    source = prowess.Source.inline("audit", "Audits.", text, context="fork")
    prepared = prepared_of(prowess.Toolset(talk(prowess.Catalog.from_sources([source]))))
    assert "Audit it, first." in prowess.fork_user_message(prepared)


def test_without_a_task_there_is_no_request() -> None:
    message = prowess.fork_user_message(prowess.PreparedFork("audit", "", "Audit it."))
    assert message == 'Use the following skill.\n\n<skill name="audit">\nAudit it.\n</skill>'


@pytest.mark.parametrize("tag", ["</skill>", "</ skill>", "</skill >", "</SKILL>", "</skill\n>"])
def test_instructions_cannot_end_their_element(tag: str) -> None:
    message = prowess.fork_user_message(prowess.PreparedFork("audit", "", f"Before {tag} after"))
    assert tag not in message.removesuffix("</skill>")
    assert message.count("after") == 1


def test_a_name_cannot_leave_its_attribute() -> None:
    message = prowess.fork_user_message(prowess.PreparedFork('a"><b>\nc', "", "Do it."))
    assert '<skill name="a&quot;&gt;&lt;b&gt; c">\n' in message


def test_the_system_message_names_the_skill_and_says_what_comes() -> None:
    message = prowess.fork_system_message(prowess.PreparedFork("audit", TASK, "Audit it."))
    assert '"audit"' in message
    assert "The next user message contains the full skill instructions" in message
    assert [word for word in ("<task>", "team of agents", "attached", TASK, "\n") if word in message] == []


def test_attached_files_are_named_by_their_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    prepared = prowess.PreparedFork("audit", TASK, "Audit it.")
    message = prowess.fork_system_message(prepared, ["data.csv", tmp_path / "sub" / ".." / "b.csv", "x\n- /etc/passwd"])
    head, _, listed = message.partition("<attached_files>")
    assert listed.splitlines() == [
        "",
        f"- {tmp_path}/data.csv",
        f"- {tmp_path}/b.csv",
        f"- {tmp_path}/x - /etc/passwd",
        "</attached_files>",
    ]
    assert head.startswith(prowess.fork_system_message(prepared) + "\n\n")


# -- who runs it ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("audit")
def test_the_host_gets_what_was_prepared(forking: prowess.DialectName, talk: Talk, events: list[prowess.Event]) -> None:
    toolset = prowess.Toolset(talk(), forking, fork="host")
    result = toolset.call("run_skill", ASKED)
    assert (result.is_error, result.fork) == (False, prepared_of(toolset))
    assert result.data == {"skill": "audit"}
    forked = [event for event in events if event.kind == "forked"]
    assert [(event.skill, event.detail) for event in forked] == [("audit", {"title": "Skill: audit", "model": "small"})]
    assert asyncio.run(toolset.acall("run_skill", ASKED)) == result


def plain_runner(prepared: prowess.PreparedFork) -> str:
    return f"answer to {prepared.task}"


async def awaited_runner(prepared: prowess.PreparedFork) -> str:
    await asyncio.sleep(0)
    return f"answer to {prepared.task}"


class Agent:
    """An object that is called, and awaited."""

    async def __call__(self, prepared: prowess.PreparedFork) -> str:
        return await awaited_runner(prepared)


RUNNERS: dict[str, Run] = {"plain": plain_runner, "asynchronous": awaited_runner, "object": Agent()}


@pytest.mark.usefixtures("audit")
@pytest.mark.parametrize("kind", RUNNERS)
def test_what_the_runner_gives_is_the_result(kind: str, forking: prowess.DialectName, talk: Talk) -> None:
    toolset = prowess.Toolset(talk(), forking, fork=RUNNERS[kind])
    expected = prowess.ToolResult(f"answer to {TASK}", data={"skill": "audit", "title": "Skill: audit"})
    assert toolset.call("run_skill", ASKED) == expected
    assert asyncio.run(toolset.acall("run_skill", ASKED)) == expected


@pytest.mark.usefixtures("audit")
def test_an_asynchronous_runner_is_awaited_in_the_callers_loop(talk: Talk) -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def runner(_prepared: prowess.PreparedFork) -> str:
        loops.append(asyncio.get_running_loop())
        return "done"

    async def main() -> bool:
        result = await prowess.Toolset(talk(), fork=runner).acall("run_skill", ASKED)
        return result.content == "done" and loops == [asyncio.get_running_loop()]

    assert asyncio.run(main())


@pytest.mark.usefixtures("audit")
def test_a_plain_runner_does_not_hold_up_the_loop(talk: Talk) -> None:
    """The runner waits for something that only the loop can do."""

    async def main() -> str:
        loop = asyncio.get_running_loop()

        async def said() -> str:
            return "from the loop"

        def runner(_prepared: prowess.PreparedFork) -> str:
            return asyncio.run_coroutine_threadsafe(said(), loop).result(30)

        return (await prowess.Toolset(talk(), fork=runner).acall("run_skill", ASKED)).content

    assert asyncio.run(main()) == "from the loop"


@pytest.mark.usefixtures("audit")
def test_inside_a_running_loop_a_plain_call_says_to_await(forking: prowess.DialectName, talk: Talk) -> None:
    async def main() -> tuple[prowess.ToolResult, str]:
        blocked = prowess.Toolset(talk(), forking, fork=awaited_runner).call("run_skill", ASKED)
        return blocked, prowess.Toolset(talk(), forking, fork=plain_runner).call("run_skill", ASKED).content

    blocked, fine = asyncio.run(main())
    assert (blocked.is_error, blocked.data["reason"]) == (True, "fork-failed")
    assert "acall" in blocked.content
    assert fine == f"answer to {TASK}"


def failing(_prepared: prowess.PreparedFork) -> str:
    raise RuntimeError("the child died")


async def failing_later(_prepared: prowess.PreparedFork) -> str:
    await asyncio.sleep(0)
    raise RuntimeError("the child died")


def called_each_way(toolset: prowess.Toolset) -> dict[str, prowess.ToolResult]:
    return {
        "call": toolset.call("run_skill", ASKED),
        "acall": asyncio.run(toolset.acall("run_skill", ASKED)),
    }


@pytest.mark.usefixtures("audit")
@pytest.mark.parametrize("runner", [failing, failing_later])
def test_a_runner_that_fails_is_an_error_for_the_model(
    runner: Run, forking: prowess.DialectName, talk: Talk, events: list[prowess.Event]
) -> None:
    for result in called_each_way(prowess.Toolset(talk(), forking, fork=runner)).values():
        assert (result.is_error, result.data["reason"], result.fork) == (True, "fork-failed", None)
        assert result.content.startswith("Skill: audit failed: the host could not run it")
    told = [(e.skill, e.detail["tool"], e.detail["code"]) for e in events if e.kind == "refused"]
    assert told == [("audit", "run_skill", "fork-failed")] * 2


@pytest.mark.usefixtures("audit")
def test_a_runner_that_has_run_out_of_answers_fails_too(talk: Talk) -> None:
    """StopIteration, which no future takes: whoever awaits the call must not wait for ever."""
    answers = iter(("first",))

    async def main(toolset: prowess.Toolset) -> list[prowess.ToolResult]:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        return [await asyncio.wait_for(toolset.acall("run_skill", ASKED), 5) for _ in range(2)]

    first, second = asyncio.run(main(prowess.Toolset(talk(), fork=lambda _: next(answers))))
    assert (first.content, second.is_error, second.data.get("reason")) == ("first", True, "fork-failed")


@pytest.mark.usefixtures("audit")
def test_what_a_failing_runner_says_is_bounded(forking: prowess.DialectName, talk: Talk) -> None:
    def runner(_prepared: prowess.PreparedFork) -> str:
        raise RuntimeError("x" * 100_000)

    for result in called_each_way(prowess.Toolset(talk(), forking, fork=runner)).values():
        assert len(result.content) < 3_000


@pytest.mark.usefixtures("audit")
@pytest.mark.parametrize("given", [None, 5, b"bytes", {"content": "x"}])
def test_an_answer_that_is_not_text_is_an_error(given: object, forking: prowess.DialectName, talk: Talk) -> None:
    def plain(_prepared: prowess.PreparedFork) -> Any:
        return given

    async def awaited(_prepared: prowess.PreparedFork) -> Any:
        return given

    for runner in (plain, awaited):
        for way, result in called_each_way(prowess.Toolset(talk(), forking, fork=runner)).items():
            assert (way, result.is_error, result.data["reason"]) == (way, True, "fork-failed")
            assert (way, result.content.startswith("Skill: audit: the sub-agent gave no text")) == (way, True)


@pytest.mark.usefixtures("audit")
def test_an_answer_that_is_not_text_is_reported(talk: Talk, events: list[prowess.Event]) -> None:
    async def awaited(_prepared: prowess.PreparedFork) -> Any:
        return None

    prowess.Toolset(talk(), fork=awaited).call("run_skill", ASKED)
    assert [(e.skill, e.detail["code"]) for e in events if e.kind == "refused"] == [("audit", "fork-failed")]


@pytest.mark.usefixtures("audit")
@pytest.mark.parametrize("character", ["a", "é", "\U0001f600"])
def test_a_huge_answer_is_cut_at_the_limit_of_bytes(character: str, talk: Talk) -> None:
    limits = prowess.Limits(max_fork_output_bytes=1_000)
    toolset = prowess.Toolset(talk(limits=limits), fork=lambda _: character * 1_001)
    for result in called_each_way(toolset).values():
        kept, _, said = result.content.partition("\n")
        assert kept == character * (1_000 // len(character.encode()))
        assert said == "[cut: the answer is longer]"
        assert not result.is_error


@pytest.mark.usefixtures("audit")
def test_an_answer_up_to_the_limit_is_whole(talk: Talk) -> None:
    most = prowess.Limits().max_fork_output_bytes
    assert prowess.Toolset(talk(), fork=lambda _: "a" * most).call("run_skill", ASKED).content == "a" * most


@pytest.mark.usefixtures("audit")
def test_an_empty_answer_is_an_answer(forking: prowess.DialectName, talk: Talk) -> None:
    result = prowess.Toolset(talk(), forking, fork=lambda _: "").call("run_skill", ASKED)
    assert (result.is_error, result.content) == (False, "")


@pytest.mark.usefixtures("audit")
def test_a_cancelled_call_is_cancelled(talk: Talk) -> None:
    async def main() -> None:
        began = asyncio.Event()

        async def runner(_prepared: prowess.PreparedFork) -> str:
            began.set()
            await asyncio.Event().wait()
            return "never"

        call = asyncio.create_task(prowess.Toolset(talk(), fork=runner).acall("run_skill", ASKED))
        await began.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(main())


@pytest.mark.usefixtures("audit")
def test_the_runner_works_under_the_filter_of_the_call(talk: Talk) -> None:
    def runner(_prepared: prowess.PreparedFork) -> str:
        return str(prowess.current_skill_filter())

    with prowess.skill_filter("skills/audit"):
        found = called_each_way(prowess.Toolset(talk(), fork=runner))
    assert {way: "skills/audit" in result.content for way, result in found.items()} == {"call": True, "acall": True}


# -- a child that is a process --------------------------------------------------------------------------------------


def child(code: str, *words: str, **options: Any) -> Callable[[prowess.PreparedFork], str]:
    """A child that runs Python."""
    return prowess.subprocess_fork([sys.executable, "-c", code, *words], **options)


FORK = prowess.PreparedFork("audit", TASK, "---\nname: audit\ndescription: d\n---\nAudit it.\n", "small")
WORDS = "import json, sys; print(json.dumps([sys.argv[1:], sys.stdin.read()]))"


def heard(*words: str, prepared: prowess.PreparedFork = FORK) -> tuple[list[str], str]:
    """The words and the input that a child got."""
    argv, stdin = json.loads(child(WORDS, *words)(prepared))
    return argv, stdin


def test_the_prompt_goes_to_the_input_of_the_child() -> None:
    system, user = prowess.fork_system_message(FORK), prowess.fork_user_message(FORK)
    assert heard("-p") == (["-p"], f"{system}\n\n{user}")


def test_the_prompt_goes_where_a_word_says() -> None:
    system, user = prowess.fork_system_message(FORK), prowess.fork_user_message(FORK)
    words = ["--system={system}", "--model", "{model}", "{skill}/{skill}", "-p", "{prompt}"]
    filled = [f"--system={system}", "--model", "small", "audit/audit", "-p", user]
    assert heard(*words) == (filled, "")


def test_the_system_message_alone_may_be_a_word() -> None:
    system, user = prowess.fork_system_message(FORK), prowess.fork_user_message(FORK)
    assert heard("--system", "{system}") == (["--system", system], user)


def test_where_only_the_prompt_is_a_word_the_system_message_is_part_of_it() -> None:
    """As it is on the input: the child must learn that its answer alone is read."""
    system, user = prowess.fork_system_message(FORK), prowess.fork_user_message(FORK)
    argv, stdin = heard("{prompt}")
    assert (argv[0].endswith(user), system in argv[0], stdin) == (True, True, "")


def test_what_is_put_in_is_not_looked_at_again() -> None:
    prepared = prowess.PreparedFork("audit", "Say {model} and {system}; $(id) `id`", "Say {skill}.", "{prompt}")
    argv, _ = heard("{model}", "{prompt}", "{other}", "{}", prepared=prepared)
    assert argv[0] == "{prompt}"
    assert "Say {model} and {system}; $(id) `id`" in argv[1]
    assert "Say {skill}." in argv[1]
    assert argv[2:] == ["{other}", "{}"]


def test_a_nul_in_the_prompt_breaks_nothing() -> None:
    argv, _ = heard("{prompt}", prepared=prowess.PreparedFork("audit", "a\0b", "c\0d"))
    assert "\0" not in argv[0]


def test_a_large_prompt_reaches_the_input_whole() -> None:
    """More than any pipe holds, to a child that first prints as much."""
    code = "import sys; print('x' * 200_000); print(len(sys.stdin.read()))"
    prepared = prowess.PreparedFork("audit", "", "y" * 500_000)
    size = len(prowess.fork_system_message(prepared) + "\n\n" + prowess.fork_user_message(prepared))
    assert child(code)(prepared).split()[1] == str(size)


def test_a_child_may_leave_its_input_unread() -> None:
    assert child("print('done')")(prowess.PreparedFork("audit", "", "y" * 500_000)) == "done"


def test_the_answer_is_what_the_child_prints_without_blanks_around_it() -> None:
    code = "import sys; print('\\n  the answer\\n\\nhé\\n'); print('noise', file=sys.stderr)"
    assert child(code)(FORK) == "the answer\n\nhé"


def refusal(run: Callable[[prowess.PreparedFork], str]) -> str:
    with pytest.raises(prowess.SandboxError) as caught:
        run(FORK)
    assert caught.value.code == "fork-failed"
    return caught.value.message


def test_a_child_that_fails_is_an_error_with_what_it_said() -> None:
    said = refusal(child("import sys; print('partial'); sys.exit('no key\\nat all')"))
    assert said == "the sub-agent ended with exit status 1: no key at all"
    assert len(refusal(child("import sys; sys.exit('x' * 10_000)"))) < 600


def test_a_child_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    code = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(1000)"
    assert refusal(child(code, limits=prowess.Limits(max_fork_seconds=1.0))) == "the sub-agent met its limit of timeout"
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text(encoding="utf-8")), 0)


def test_a_child_that_says_too_much_is_ended() -> None:
    limits = prowess.Limits(max_fork_output_bytes=1_000)
    assert child("print('a' * 1_000, end='')", limits=limits)(FORK) == "a" * 1_000
    assert refusal(child("while True: print('a' * 100)", limits=limits)) == "the sub-agent met its limit of output"


def test_a_program_that_is_not_there_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(prowess.SandboxError) as caught:
        prowess.subprocess_fork([str(tmp_path / "nothing")])(FORK)
    assert caught.value.code == "cannot-start"
    assert "nothing" in caught.value.message


@pytest.mark.parametrize("command", ["agent -p", [], ()])
def test_a_command_is_a_list_of_words(command: Any) -> None:
    with pytest.raises(prowess.SandboxError) as caught:
        prowess.subprocess_fork(command)
    assert caught.value.code == "bad-argument"


def test_the_words_are_those_of_the_moment_when_it_was_made() -> None:
    words = [sys.executable, "-c", "print('first')"]
    run = prowess.subprocess_fork(words)
    words[2] = "print('second')"
    assert run(FORK) == "first"


ENVIRONMENT = "import json, os; print(json.dumps(dict(os.environ)))"


def test_a_child_sees_the_hosts_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program is the host's own, and needs its keys."""
    run = child(ENVIRONMENT)
    monkeypatch.setenv("PROVIDER_KEY", "of now")
    assert json.loads(run(FORK))["PROVIDER_KEY"] == "of now"


def test_a_child_sees_only_what_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROVIDER_KEY", "secret")
    given: Mapping[str, str] = {"ONLY": "this", "SYSTEMROOT": os.environ.get("SYSTEMROOT", "")}
    seen: dict[str, str] = json.loads(child(ENVIRONMENT, env=given)(FORK))
    assert seen.keys() - {"LC_CTYPE"} == given.keys()  # Python itself may add that one


def test_a_child_works_in_the_folder_that_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    code = "import os; print(os.getcwd())"
    monkeypatch.chdir(tmp_path / "one")
    assert child(code)(FORK) == os.path.realpath(tmp_path / "one")
    assert child(code, cwd=tmp_path / "two")(FORK) == os.path.realpath(tmp_path / "two")


@pytest.mark.usefixtures("audit")
def test_a_child_process_answers_a_models_call(forking: prowess.DialectName, talk: Talk) -> None:
    code = "import sys; said = sys.stdin.read(); print('Audit it.' in said, 'context: fork' in said, sys.argv[1])"
    toolset = prowess.Toolset(talk(), forking, fork=child(code, "{model}"))
    for result in called_each_way(toolset).values():
        assert (result.is_error, result.content) == (False, "True False small")


@pytest.mark.usefixtures("audit")
def test_a_child_process_that_fails_is_an_error_for_the_model(forking: prowess.DialectName, talk: Talk) -> None:
    toolset = prowess.Toolset(talk(), forking, fork=child("import sys; sys.exit('no key')"))
    result = toolset.call("run_skill", ASKED)
    assert (result.is_error, result.data["reason"]) == (True, "fork-failed")
    assert result.content.startswith("Skill: audit failed: the sub-agent ended with exit status 1: no key")


def test_a_child_of_what_is_not_a_fork_is_refused_where_it_is_made() -> None:
    toolset = prowess.Toolset(prowess.Session(prowess.Catalog()), fork="host")
    failed = toolset.prepare_fork("nope")
    with pytest.raises(prowess.SourceError, match=r"prepared must be a prowess\.PreparedFork or None"):
        toolset.child(failed)  # type: ignore[arg-type]


def test_a_fork_goes_by_the_name_of_its_skill_however_it_was_called(put: Put, talk: Talk) -> None:
    file = put("ops-audit", fields="context: fork\n") / "SKILL.md"
    file.write_text(file.read_text(encoding="utf-8").replace("name: ops-audit", "name: ops:audit"), encoding="utf-8")
    prepared = prowess.Toolset(talk(), fork="host").prepare_fork("ops:audit", "Now.")
    assert isinstance(prepared, prowess.PreparedFork)
    assert (prepared.skill_name, prepared.title) == ("ops-audit", "Skill: ops-audit")

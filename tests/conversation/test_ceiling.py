"""The ceiling of a host, and which calls the active skills approve."""

import json
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import prowess
from prowess import Session

Put = Callable[..., Path]
Scanned = Callable[..., prowess.Catalog]


Ceiling = Sequence[str] | Literal["any"] | None


def session_of(*tools: str, ceiling: Ceiling = "any", active: bool = True) -> Session:
    source = prowess.Source.inline("only", "Does it.", "Do it.", allowed_tools=tools)
    session = Session(prowess.Catalog.from_sources([source]), tools=ceiling)
    if active:
        session.activate("only")
    return session


@pytest.mark.parametrize(
    ("ceiling", "tools"),
    [
        (None, ()),
        ("any", ("Bash(git:*)", "Edit", "Read")),
        ([], ()),
        (["Read"], ("Read",)),
        (["Read", "Other"], ("Read",)),
        (["Bash"], ("Bash(git:*)",)),
        (["Bash(git:*)"], ("Bash(git:*)",)),
        (["Bash(npm:*)"], ()),
        (["read"], ()),
    ],
)
def test_a_ceiling_leaves_the_tools_that_it_and_the_skill_name(
    ceiling: Ceiling, tools: tuple[str, ...], put: Put, scanned: Scanned
) -> None:
    put("a", tools="Read Edit Bash(git:*)")
    session = Session(scanned(), tools=ceiling)
    assert session.activate("a").added_tools == tools
    assert session.activate("a").added_tools == tools
    assert session.active_tools == tools
    assert session.deactivate("a") == tools


def test_only_the_answer_allowed_is_true() -> None:
    """A host that writes ``if session.allows(…)`` must never run a call that no skill approves."""
    answers = [
        session_of("Bash(git:*)", ceiling=["Bash"]).allows("Bash", "git log"),
        session_of("Bash(git:*)", ceiling=["Bash"]).allows("Bash", "rm -rf ~"),
        session_of("Read", ceiling=["Read"]).allows("Write"),
        session_of("Read").allows("Write"),
    ]
    assert answers == ["allowed", "refused", "refused", "not-mentioned"]
    assert [bool(answer) for answer in answers] == [True, False, False, False]
    assert json.dumps(answers) == '["allowed", "refused", "refused", "not-mentioned"]'
    assert [f"{pickle.loads(pickle.dumps(answer))!r}" for answer in answers[:2]] == ["'allowed'", "'refused'"]  # noqa: S301 - our own


def test_only_the_answer_allowed_of_a_fork_is_true() -> None:
    prepared = prowess.PreparedFork("pdf", "", "", "", ("Read",), 0, grants_tools=True)
    answers = [prepared.allows("Read"), prepared.allows("Write"), prepared.allows("run_skill")]
    assert [(answer, bool(answer)) for answer in answers] == [("allowed", True), ("refused", False), ("refused", False)]
    unbounded = prowess.PreparedFork("pdf", "", "", "").allows("Write")
    assert (unbounded, bool(unbounded)) == ("not-mentioned", False)


def test_no_skill_approves_a_tool_for_a_host_that_said_nothing_about_tools() -> None:
    """A skill that somebody downloaded must not have the user's shell because of a line in its own head."""
    session = session_of("Bash", "Read", ceiling=None)
    assert (session.active_skills, session.active_tools, session.activate("only").added_tools) == (("only",), (), ())
    answers = [session.allows(*call) for call in (("Bash", "rm -rf ~"), ("Bash", None), ("Read", None), ("Edit", None))]
    assert answers == ["not-mentioned"] * 4, "the host does what it does without skills"
    assert (session.moment().ceiling.tools, session.grants_tools) == (None, False)


@pytest.mark.parametrize(
    ("ceiling", "listed"),
    [
        (None, ("Bash(git:*)", "Read")),
        ("any", ("Bash(git:*)", "Read")),
        (["Read"], ("Read",)),
        (["Bash"], ("Bash(git:*)",)),
        ([], ()),
    ],
)
def test_listed_tools_are_within_the_ceiling_approved_or_not(ceiling: Ceiling, listed: tuple[str, ...]) -> None:
    assert session_of("Read", "Bash(git:*)", ceiling=ceiling).listed_tools == listed
    assert session_of("Read", ceiling=ceiling, active=False).listed_tools == ()


def test_no_ceiling_is_asked_for_by_name() -> None:
    session = session_of("Bash", "Read", ceiling="any")
    assert (session.active_tools, session.allows("Bash", "rm -rf ~")) == (("Bash", "Read"), "allowed")
    assert (session.moment().ceiling.tools, session.grants_tools) == (None, True)


@pytest.mark.parametrize("wrong", ["all", "*", "Any", "Bash", ""])
def test_another_word_for_no_ceiling_is_refused(wrong: str) -> None:
    with pytest.raises(prowess.SourceError, match="tools"):
        session_of("Bash", ceiling=wrong)


@pytest.mark.parametrize("preload", [False, True])
def test_a_sub_agent_approves_nothing_for_a_host_that_said_nothing_about_tools(preload: bool) -> None:
    """The list of a fork bounds the child: it must not become a ceiling by which skills approve their tools."""
    fork = prowess.Source.inline("fork", "Forks.", "Do it.", context="fork", allowed_tools=["Bash", "Read"])
    other = prowess.Source.inline("other", "Other.", "Do it.", preload=preload, allowed_tools=["Bash", "Edit"])
    toolset = prowess.Toolset(Session(prowess.Catalog.from_sources([fork, other])), fork="host")
    prepared = toolset.prepare_fork("fork")
    assert isinstance(prepared, prowess.PreparedFork)
    assert (prepared.allows("Bash", "rm -rf ~"), prepared.allows("Edit")) == ("not-mentioned", "refused")
    assert prepared.child_tools(["Bash", "Read", "Edit"]) == ("Bash", "Read")
    child = toolset.child(prepared).session
    child.activate("other")
    assert (child.active_tools, child.allows("Bash", "rm -rf ~"), child.allows("Edit")) == (
        (),
        "not-mentioned",
        "refused",
    )


def test_a_whole_tool_under_a_ceiling_of_patterns_is_those_patterns() -> None:
    session = session_of("Bash", ceiling=["Bash(git:*)", "Bash(npm:*)"])
    assert session.active_tools == ("Bash(git:*)", "Bash(npm:*)")
    assert session.allows("Bash", "git status") == "allowed"
    assert session.allows("Bash", "rm -rf x") == "refused"


def test_a_ceiling_may_be_any_iterable() -> None:
    session = Session(
        prowess.Catalog.from_sources([prowess.Source.inline("only", "d", "i", allowed_tools=["Read", "Edit"])]),
        tools=(tool for tool in ("Read", "Grep")),
    )
    assert session.activate("only").added_tools == ("Read",)
    assert session.allows("Grep") == "not-mentioned"
    assert session.allows("Edit") == "refused"


@pytest.mark.parametrize("wanted", ["*", "Bash(*)", "Read(*)", "Read Bash *"])
def test_asking_for_everything_widens_nothing(wanted: str) -> None:
    session = session_of(*wanted.split(), ceiling=["Read(docs/*)"])
    assert session.allows("Bash", "ls") == "refused"
    assert session.allows("Read", "/etc/passwd") == "refused"


# -- three answers --------------------------------------------------------------------------------------------------


def test_a_call_is_allowed_refused_or_not_mentioned() -> None:
    session = session_of("Bash(git:*)", "Read")
    assert session.allows("Bash", "git status") == "allowed"
    assert session.allows("Bash", "rm x") == "refused"
    assert session.allows("Read") == "allowed"
    assert session.allows("Read", "any file") == "allowed"
    assert session.allows("Edit") == "not-mentioned"
    assert session.allows("Edit", "x") == "not-mentioned"


def test_beyond_the_ceiling_everything_is_refused() -> None:
    session = session_of("Bash(git:*)", "Read", ceiling=["Bash"])
    assert session.allows("Bash", "git status") == "allowed"
    assert session.allows("Read") == "refused"
    assert session.allows("Edit") == "refused"
    nothing = session_of("Bash", "Read", ceiling=[])
    assert {nothing.allows("Bash", "ls"), nothing.allows("Read"), nothing.allows("X")} == {"refused"}


def test_the_ceiling_decides_a_command_too() -> None:
    session = session_of("Bash(git:*)", ceiling=["Bash(git:*)"])
    assert session.allows("Bash", "git status") == "allowed"
    assert session.allows("Bash", "npm test") == "refused"


def test_a_skill_that_is_not_active_mentions_no_tool() -> None:
    session = session_of("Bash(git:*)", active=False)
    assert session.allows("Bash", "git status") == "not-mentioned"
    session.activate("only")
    assert session.allows("Bash", "git status") == "allowed"
    session.deactivate("only")
    assert session.allows("Bash", "git status") == "not-mentioned"


OPERATORS = (";", "&&", "||", "|", "&", ">", "<", ">>", "`", "$(", "${", "$HOME", "$1", "\n", "\r", "<(", "$((", "\x00")


@given(
    st.sampled_from(("git ", "git status ", "git log -- ")),
    st.sampled_from(OPERATORS),
    st.text(max_size=12),
    st.sampled_from(("any", ("Bash(git:*)",), ("Bash",))),
)
def test_a_command_that_could_do_more_than_one_thing_is_never_allowed_by_a_pattern(
    before: str, operator: str, after: str, ceiling: Ceiling
) -> None:
    session = session_of("Bash(git:*)", "Bash(git *)", "Bash(git log:*)", ceiling=ceiling)
    assert session.allows("Bash", before + operator + after) == "refused"


def test_no_pattern_of_the_ceiling_allows_a_command_that_could_do_more_than_one_thing() -> None:
    session = session_of("Bash", ceiling=["Bash(git:*)"])
    assert session.allows("Bash", "git status; rm x") == "refused"


def test_only_a_whole_tool_allows_a_command_with_operators() -> None:
    assert session_of("Bash").allows("Bash", "git status; rm x") == "allowed"
    assert session_of("Bash", ceiling=["Bash"]).allows("Bash", "a | b") == "allowed"


@pytest.mark.parametrize("command", ["git (x", "git 'a b'", "git --format=%H", "git a{b,c}", "git log  -n 1", "git ~"])
def test_a_command_without_operators_is_allowed_whatever_else_it_holds(command: str) -> None:
    assert session_of("Bash(git:*)").allows("Bash", command) == "allowed"

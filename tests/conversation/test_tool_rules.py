"""``allowed-tools`` as rules: what a ceiling leaves of them, and what they cover."""

import subprocess
import sys
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import prowess

TOOLS = st.sampled_from(("Bash", "Read", "Edit"))
INSIDES = st.sampled_from(("git:*", "git status", "npm run *", "*", "git add:*", "* --help"))
WRITTEN = st.one_of(TOOLS, st.builds("{}({})".format, TOOLS, INSIDES))
COMMANDS = st.sampled_from(
    ("git", "git status", "git add x", "gitx", "npm run test", "npm", "rm -rf x", "ls --help", "", " git  status "),
)
OPERATORS = (
    *(";", "&", "&&", "|", "||", "|&", "<", ">", ">>", "<<", "<<<", "<(", ">(", "&>", "`", "\n", "\r", "\r\n", "\x00"),
    *("$(", "$((", "${", "$HOME", "$1", "$_", "$[", "$@", "$*", "$?", "$$", "$!", "$#", "$-"),
)


def activate(wanted: list[str], tools: list[str] | Literal["any"] = "any") -> prowess.Session:
    """Return a session with this ceiling in which a skill is active that wants these tools."""
    source = prowess.Source.inline("greet", "Greets.", "Say hello.", allowed_tools=wanted)
    session = prowess.Session(prowess.Catalog.from_sources([source]), tools=tools)
    session.activate("greet")
    return session


def grant_tools(wanted: list[str], ceiling: list[str]) -> tuple[str, ...]:
    return activate(wanted, ceiling).active_tools


def judge_call(tool: str, command: str | None, patterns: list[str]) -> str:
    return activate(patterns).allows(tool, command)


def test_parentheses_may_be_within_the_parentheses_of_a_tool() -> None:
    session = activate(["Bash( git add (x):* )"])
    assert session.allows("Bash", "git add (x) y") == "allowed"
    assert session.allows("Bash", "git add y") == "refused"


# -- ceilings -------------------------------------------------------------------------------------------------------


def test_without_a_ceiling_everything_is_granted_once_and_sorted() -> None:
    assert activate(["Read", "Bash(git:*)", "Read", "Edit"]).active_tools == ("Bash(git:*)", "Edit", "Read")


@given(st.lists(WRITTEN))
def test_an_empty_ceiling_grants_nothing(wanted: list[str]) -> None:
    assert grant_tools(wanted, []) == ()


@pytest.mark.parametrize(
    ("wanted", "ceiling", "expected"),
    [
        ("Bash(git:*)", ["Bash"], ("Bash(git:*)",)),
        ("Bash(git:*)", ["Bash(git:*)"], ("Bash(git:*)",)),
        ("Bash", ["Bash(git:*)"], ("Bash(git:*)",)),
        ("Bash", ["Bash(npm:*)", "Bash(git:*)", "Read"], ("Bash(git:*)", "Bash(npm:*)")),
        ("Bash", ["Bash", "Bash(git:*)"], ("Bash",)),
        ("Bash(rm:*)", ["Bash(git:*)"], ()),
        ("Bash(*)", ["Bash(git:*)"], ()),
        ("*", ["Read"], ()),
        ("bash", ["Bash"], ()),
        ("Bas", ["Bash"], ()),
        ("Read", ["Read"], ("Read",)),
        ("Read", ["Edit"], ()),
    ],
)
def test_a_ceiling_leaves_what_the_host_allows(wanted: str, ceiling: list[str], expected: tuple[str, ...]) -> None:
    assert grant_tools([wanted], ceiling) == expected


@given(st.lists(WRITTEN), st.lists(WRITTEN), TOOLS, st.none() | COMMANDS)
def test_nothing_is_granted_that_the_ceiling_does_not_cover(
    wanted: list[str], ceiling: list[str], tool: str, command: str | None
) -> None:
    session = activate(wanted, ceiling)
    found = session.active_tools
    assert found == tuple(sorted(set(found)))
    if session.allows(tool, command):
        assert judge_call(tool, command, ceiling) == "allowed"


@given(st.lists(WRITTEN), st.lists(WRITTEN), st.lists(WRITTEN))
def test_wanting_more_never_loses_what_was_granted(some: list[str], more: list[str], ceiling: list[str]) -> None:
    assert set(grant_tools(some, ceiling)) <= set(grant_tools(some + more, ceiling))


def test_ten_thousand_wanted_tools_stay_data() -> None:
    assert grant_tools([f"Tool{n}" for n in range(10_000)] + ["Read"], ["Read"]) == ("Read",)


# -- commands -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "command", "expected"),
    [
        ("Bash(git:*)", "git", "allowed"),
        ("Bash(git:*)", "git status", "allowed"),
        ("Bash(git:*)", "  git status  ", "allowed"),
        ("Bash(git:*)", "gitk", "refused"),
        ("Bash(git:*)", "git-evil", "refused"),
        ("Bash(git:*)", "sudo git", "refused"),
        ("Bash(git:*)", "", "refused"),
        ("Bash(git add:*)", "git add x", "allowed"),
        ("Bash(git add:*)", "git rm x", "refused"),
        ("Bash(npm run *)", "npm run test", "allowed"),
        ("Bash(npm run *)", "npm install", "refused"),
        ("Bash(npm test)", "npm test", "allowed"),
        ("Bash(npm test)", "npm test x", "refused"),
        ("Bash(*)", "anything at all", "allowed"),
        ("Bash()", "git", "refused"),
        ("Bash(a.c)", "abc", "refused"),
        ("Bash", "anything", "allowed"),
        ("Read", "git", "not-mentioned"),
        ("bash(git:*)", "git", "not-mentioned"),
    ],
)
def test_a_pattern_covers_the_commands_that_it_says(pattern: str, command: str, expected: str) -> None:
    assert judge_call("Bash", command, [pattern]) == expected


def test_one_pattern_that_covers_is_enough() -> None:
    assert judge_call("Bash", "npm test", ["Bash(git:*)", "Read", "Bash(npm:*)"]) == "allowed"
    assert judge_call("Bash", "rm x", ["Bash(git:*)", "Read", "Bash(npm:*)"]) == "refused"


def test_a_call_without_a_command_is_covered_by_the_whole_tool_only() -> None:
    assert judge_call("Bash", None, ["Bash(git:*)"]) == "refused"
    assert judge_call("Bash", None, ["Bash"]) == "allowed"
    assert judge_call("Read", None, ["Bash"]) == "not-mentioned"
    assert judge_call("Read", None, []) == "not-mentioned"


@pytest.mark.parametrize("operator", OPERATORS)
@given(pattern=INSIDES, before=st.sampled_from(("git ", "git status ", "git log")), after=st.text(max_size=8))
def test_a_command_with_an_operator_or_a_substitution_is_never_covered(
    operator: str, pattern: str, before: str, after: str
) -> None:
    command = f"{before}{operator}{after}"
    assert judge_call("Bash", command, [f"Bash({pattern})"]) == "refused"
    assert judge_call("Bash", command, [f"Bash({command})", "Bash(*)"]) == "refused"


@given(st.text(), st.text(), st.lists(st.text()))
def test_any_call_under_any_patterns_is_answered(tool: str, command: str, patterns: list[str]) -> None:
    assert judge_call(tool, command, patterns) in {"allowed", "refused", "not-mentioned"}


@given(st.lists(WRITTEN))
def test_a_ceiling_leaves_a_skill_what_it_has_itself(patterns: list[str]) -> None:
    assert set(grant_tools(patterns, patterns)) == set(patterns)


@pytest.mark.parametrize("inside", ["a*" * 40 + "b", "*a" * 40 + "b", "*" * 200 + "b"], ids=["a*", "*a", "*"])
def test_no_pattern_takes_long_over_a_long_command(inside: str) -> None:
    code = (
        "import sys; from tests.conversation.test_tool_rules import judge_call;"
        "sys.exit(judge_call('Bash', 'a' * 2000, [f'Bash({sys.argv[1]})']) != 'refused')"
    )
    done = subprocess.run([sys.executable, "-c", code, inside], timeout=10, check=False)
    assert done.returncode == 0

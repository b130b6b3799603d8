"""``allowed-tools`` as rules: what a ceiling leaves of them, and what they cover."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prowess.conversation.tool_rules import grant_tools, judge_call, parse_tool_pattern

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


def test_a_pattern_is_split_into_the_tool_and_its_parentheses() -> None:
    assert parse_tool_pattern("Read") == ("Read", None)
    assert parse_tool_pattern("Bash(git:*)") == ("Bash", "git:*")
    assert parse_tool_pattern("Bash( git add (x):* )") == ("Bash", "git add (x):*")
    assert parse_tool_pattern("Bash()") == ("Bash", "")


# -- ceilings -------------------------------------------------------------------------------------------------------


def test_without_a_ceiling_everything_is_granted_once_and_sorted() -> None:
    assert grant_tools(["Read", "Bash(git:*)", "Read", "Edit"], None) == ("Bash(git:*)", "Edit", "Read")


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
    found = grant_tools(wanted, ceiling)
    assert found == tuple(sorted(set(found)))
    if judge_call(tool, command, found) == "allowed":
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
    assert set(grant_tools(patterns, patterns)) == set(patterns)


@pytest.mark.parametrize("inside", ["a*" * 40 + "b", "*a" * 40 + "b", "*" * 200 + "b"], ids=["a*", "*a", "*"])
def test_no_pattern_takes_long_over_a_long_command(inside: str) -> None:
    code = (
        "import sys; from prowess.conversation.tool_rules import judge_call;"
        "sys.exit(judge_call('Bash', 'a' * 2000, [f'Bash({sys.argv[1]})']) != 'refused')"
    )
    done = subprocess.run([sys.executable, "-c", code, inside], timeout=10, check=False)
    assert done.returncode == 0

"""The agent with a person at a terminal: what is asked, what is shown, and Ctrl-C at every stage."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pydantic_ai", reason="NOT TESTED: the agent on a terminal; pydantic-ai is not installed")

import prowess
from prowess.text.hidden_characters import has_hidden
from tests.adapters.skill_library import write_library
from tests.cli.agent_processes import PROGRAM
from tests.cli.persons import Person
from tests.fake_models import Slow, Text, ToolCall, play, provide

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fake_models import Provider, Reply

CTRL_C = "\x03"
INTERRUPTED = 130
COLOURS = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
WAITING = "printf begun > pipe; sleep 600"
"""A command that says when it has begun, and never ends by itself."""


@pytest.fixture
def work(project: Path) -> Path:
    """The working folder, with the skills of the tests below it and a pipe by which programs tell that they run."""
    write_library(project / "skills")
    slow = project / "skills/slow"
    (slow / "scripts").mkdir(parents=True)
    (slow / "SKILL.md").write_text("---\nname: slow\ndescription: Takes long.\n---\nRun scripts/wait.sh.\n")
    (slow / "scripts/wait.sh").write_text(f"{WAITING}\n")
    helper = project / "skills/helper"
    helper.mkdir()
    fields = "description: Helps.\ncontext: fork\nallowed-tools: Bash Read"
    (helper / "SKILL.md").write_text(f"---\nname: helper\n{fields}\n---\nHelp.\n")
    os.mkfifo(project / "pipe")
    return project


def person_at(provider: Provider, *words: str, columns: int = 100) -> Person:
    """A person who starts the agent on a terminal."""
    model = ("--model", "tiny", "--base-url", f"{provider.url}/v1", "--sandbox", "none")
    return Person("run", *words, "--dir", "skills", *model, columns=columns, program=PROGRAM)


def shown(person: Person) -> str:
    """What stands on the screen, without colours and without the blanks that fill a column."""
    return re.sub(r" +(?=[\r\n])", "", COLOURS.sub("", person.screen))


def wait_for_begin() -> None:
    """Wait until a program of the agent writes to the pipe."""
    assert Path("pipe").read_text(encoding="utf-8") == "begun"


# -- questions ---------------------------------------------------------------------------------------------------------


def test_person_sees_the_difference_and_decides_each_time(work: Path) -> None:
    (work / "a.txt").write_text("old\n")
    write = ToolCall("Write", {"path": "a.txt", "content": "new\n"})
    with provide(play(write, write, Text("As you wish."))) as provider, person_at(provider, "change it") as person:
        person.read_until("[o/a/n]")
        assert "-old\n" in shown(person)
        assert "+new\n" in shown(person)
        assert (work / "a.txt").read_text() == "old\n"
        person.type("what?\nn\n")
        person.read_until("said no")
        assert (work / "a.txt").read_text() == "old\n"
        person.read_until("[o/a/n]")
        person.type("once\n")
        person.read_until("As you wish.")
        assert person.wait() == 0
    assert (work / "a.txt").read_text() == "new\n"


def test_person_sees_what_would_run_with_its_digest_and_can_grant_it(work: Path) -> None:
    run = ToolCall("run_skill_script", {"name": "count-words", "script": "scripts/count.py", "args": ["a b", "c"]})
    with provide(play(run, Text("Counted."))) as provider, person_at(provider, "count") as person:
        person.read_until("[o/a/n]")
        digest = prowess.scan(work / "skills")["count-words"].digest()
        flat = shown(person).replace("\n", "")
        assert digest in flat
        assert "runs the script: scripts/count.py 'a b' c" in flat
        person.type("a\n")
        person.read_until("Counted.")
        assert person.wait() == 0
    assert "2 words" in provider.requests[-1].results[-1]
    assert [grant.digest for grant in prowess.Trust().grants()] == [digest]


def test_command_of_several_lines_is_shown_line_by_line_and_cannot_look_like_a_question(work: Path) -> None:
    command = "echo one\nonce, always, no? [o/a/x] \x1b[2J\ntouch made"
    with provide(play(ToolCall("Bash", {"command": command}), Text("Well."))) as provider:  # noqa: SIM117 - too long
        with person_at(provider, "do it") as person:
            person.read_until("[o/a/n]")
            rows = shown(person).splitlines()
            assert "The agent wants to use Bash:" in rows
            assert {"  |  echo one", "  |  once, always, no? [o/a/x] \\x1b[2J", "  |  touch made"} <= set(rows)
            person.type("n\n")
            assert person.wait() == 0
    assert not (work / "made").exists()


def test_no_wrapped_part_of_a_question_can_look_like_a_line_of_ours(work: Path) -> None:
    # A terminal that wraps at words would begin a line with the words after the blanks.
    forged = f"echo{' ' * 60}The agent wants to use Read: {'a' * 50}"
    run = ToolCall("run_skill_script", {"name": "count-words", "script": "scripts/count.py", "args": [forged]})
    calls = (ToolCall("Bash", {"command": forged}), ToolCall("Write", {"path": "a", "content": forged}), run)
    with provide(play(*calls, Text("Well."))) as provider, person_at(provider, "do it", columns=40) as person:
        for begin in ("The agent wants to use Bash:\n", "The agent wants to use Write:\n", "something of its own:\n"):
            person.read_until("[o/a/n]")
            rows = shown(person).replace("\r", "").rpartition(begin)[2].partition("\nAllow it?")[0].split("\n")
            assert "The agent wants to use" in " ".join(rows)
            assert all(row.startswith(("  |", "     ")) for row in rows)
            person.type("n\n")
        assert person.wait() == 0
    assert work.exists()


UNSEEN = [
    char for char in map(chr, range(0x20, sys.maxunicode + 1)) if has_hidden(char) and not "\ud800" <= char <= "\udfff"
]
"""Every character that a model reads and a person does not see."""


def test_question_has_no_character_that_a_person_does_not_see(work: Path) -> None:
    hidden = "".join(UNSEEN)
    calls = (
        ToolCall("Bash", {"command": f"rm a{hidden}"}),
        ToolCall("Write", {"path": f"a{hidden}", "content": hidden}),
    )
    with provide(play(*calls, Text("Well."))) as provider, person_at(provider, "do it") as person:
        for _ in calls:
            person.read_until("[o/a/n]")
            question = person.screen.rpartition("The agent wants")[2]
            assert [char for char in UNSEEN if char in question] == []
            assert "\\u200b" in question
            person.type("n\n")
        assert person.wait() == 0
    assert work.exists()


def test_long_difference_is_shown_with_its_beginning_and_its_end(work: Path) -> None:
    content = "".join(f"row {number}\n" for number in range(5_000)) + f"begin{'x' * 9_000}end\n"
    write = ToolCall("Write", {"path": "a.txt", "content": content})
    with provide(play(write, Text("Well."))) as provider, person_at(provider, "write it", columns=4_000) as person:
        person.read_until("[o/a/n]")
        rows = [row.removeprefix("  |  ") for row in shown(person).replace("\r", "").split("\n")]
        assert f"+++ b/a.txt ({len(content):,} bytes, 5,001 lines)" in rows
        assert "+row 0" in rows
        assert "+row 4999" in rows
        assert "[4,804 lines between are not shown]" in rows
        assert f"+begin{'x' * 994} [7,009 characters not shown] {'x' * 997}end" in rows
        person.type("n\n")
        assert person.wait() == 0
    assert not (work / "a.txt").exists()


def test_end_of_input_and_keys_typed_too_early_are_not_a_yes(work: Path) -> None:
    write = ToolCall("Write", {"path": "a.txt", "content": "x"})
    early = Slow(write, wait=lambda: person.type("o\n"))
    with provide(play(early, Text("Well."))) as provider, person_at(provider, "change it") as person:
        person.read_until("[o/a/n]")
        person.type("\x04")  # Ctrl-D
        person.read_until("Well.")
        assert person.wait() == 0
    assert not (work / "a.txt").exists()


def test_tools_text_and_tokens_are_shown_and_model_text_cannot_command_the_terminal(work: Path) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e done"
    calls = (ToolCall("load_skill", {"name": "greet"}), ToolCall("Read", {"path": f"a{evil}"}), Text(evil))
    with provide(play(*calls)) as provider, person_at(provider, "say hello", columns=300) as person:
        person.read_until("[o/a/n]")
        person.type("n\n")
        assert person.wait() == 0
    screen = shown(person)
    assert "load_skill" in screen
    assert re.search(r"turn 1: [\d,]+ tokens sent", screen)
    assert "\\x1b[2J" in screen
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", screen)
    assert work.exists()


# -- Ctrl-C ------------------------------------------------------------------------------------------------------------


def _until_asked(_person: Person, provider: Provider) -> None:
    assert provider.asked.wait(60)


def _until_text(person: Person, provider: Provider) -> None:
    person.read_until("one")
    assert provider.asked.wait(60)


def _until_question(person: Person, _provider: Provider) -> None:
    person.read_until("[o/a/n]")


def _until_running(person: Person, _provider: Provider) -> None:
    person.read_until("[o/a/n]")
    person.type("once\n")
    wait_for_begin()


_FORK = ToolCall("run_skill", {"name": "helper"})
_SCRIPT = ToolCall("run_skill_script", {"name": "slow", "script": "scripts/wait.sh"})
_COMMAND = ToolCall("Bash", {"command": WAITING})
STAGES: dict[str, tuple[tuple[Reply, ...], Callable[[Person, Provider], None]]] = {
    "before the model answers": ((Slow(Text("one")),), _until_asked),
    "while it streams": ((Slow(Text("one two three four"), events=2),), _until_text),
    "within the arguments of a call": ((Slow(_COMMAND, events=2),), _until_asked),
    "at a question about a tool": ((ToolCall("Write", {"path": "a.txt", "content": "x"}),), _until_question),
    "at a question about a script": ((_SCRIPT,), _until_question),
    "while a script runs": ((_SCRIPT,), _until_running),
    "while a command runs": ((_COMMAND,), _until_running),
    "while a child waits for its model": ((_FORK, Slow(Text("one"))), _until_asked),
    "while a command of a child runs": ((_FORK, _COMMAND), _until_running),
    "at a question of a child": ((_FORK, ToolCall("run_skill_script", _SCRIPT.arguments)), _until_question),
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.sampled(0.2, always={"while it streams", "while a script runs"})
def test_interrupted_run_ends_everything_and_goes_on_later(stage: str, work: Path) -> None:
    replies, reach = STAGES[stage]
    with provide(play(*replies)) as provider:
        with person_at(provider, "do it", "--transcript", "t.jsonl") as person:
            reach(person, provider)
            person.type(CTRL_C)
            assert person.wait() == INTERRUPTED, person.screen
            assert "interrupted" in shown(person)
            assert "prowess run --resume t.jsonl" in shown(person)
            assert "Traceback" not in shown(person)
        if "runs" in stage:
            # Whoever had the pipe open for writing is gone: opening it now finds no writer, and there is no process.
            assert not _processes_with("sleep 600")
    lines = [json.loads(line) for line in Path("t.jsonl").read_text(encoding="utf-8").splitlines()]
    assert (lines[0]["event"], lines[-1]["event"], lines[-1]["status"]) == ("start", "end", "interrupted")
    assert not (work / "a.txt").exists()
    with provide(play(Text("All is well again."))) as provider, person_at(provider, "--resume", "t.jsonl") as person:
        assert person.wait() == 0, person.screen
        assert "All is well again." in shown(person)
    assert "do it" in provider.requests[0].text


def test_second_interrupt_at_once_leaves_nothing_running_and_a_whole_transcript(work: Path) -> None:
    with provide(play(_SCRIPT)) as provider, person_at(provider, "do it", "--transcript", "t.jsonl") as person:
        _until_running(person, provider)
        person.type(CTRL_C * 3)
        assert person.wait() == INTERRUPTED, person.screen
        assert "Traceback" not in shown(person)
    assert not _processes_with("sleep 600")
    for line in Path("t.jsonl").read_text(encoding="utf-8").splitlines():
        json.loads(line)
    with provide(play(Text("Well again."))) as provider, person_at(provider, "--resume", "t.jsonl") as person:
        assert person.wait() == 0, person.screen
    assert work.exists()


def _processes_with(words: str) -> list[str]:
    """The command lines of the processes of this machine that run such a command in our folder."""
    here = os.path.realpath(".")
    found = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if words in line and os.path.realpath(entry / "cwd") == here:
                found.append(line)
        except OSError:
            continue
    return found

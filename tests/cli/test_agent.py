"""``prowess run`` and ``prowess try`` without a terminal: answers, data, errors, limits, transcripts and settings."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pydantic_ai", reason="NOT TESTED: the agent on the command line; pydantic-ai is not installed")

import prowess
from tests.agent.runs import call
from tests.fake_models import Failure, Text, ToolCall, play, provide

if TYPE_CHECKING:
    from tests.cli.conftest import Command, Ran
    from tests.fake_models import Reply

SCRIPTED = ("--model", "scripted:turns.json")


@pytest.fixture(autouse=True)
def _without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def write_script(*turns: dict[str, Any] | str) -> None:
    """Write the script that the model plays."""
    rows = [{"text": turn} if isinstance(turn, str) else turn for turn in turns]
    Path("turns.json").write_text(json.dumps({"turns": rows}), encoding="utf-8")


def events_of(ran: Ran) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ran.out.splitlines()]


def test_text_is_the_output_and_the_rest_goes_to_the_error_stream(command: Command) -> None:
    write_script({**call("load_skill", name="csv-report"), "text": "I look."}, "It is clean.")
    ran = command("run", "Is it clean?", *SCRIPTED)
    assert (ran.status, ran.out) == (0, "I look.\nIt is clean.\n")
    assert 'load_skill {"name": "csv-report"}' in ran.err
    assert "turn 2: " in ran.err
    assert "There is no terminal, so nobody is asked" in ran.err


def test_data_is_a_line_for_each_thing_that_happens(command: Command) -> None:
    write_script(call("load_skill", name="csv-report"), "It is clean.")
    events = events_of(command("run", "Is it clean?", *SCRIPTED, "--json"))
    assert [event["event"] for event in events][:3] == ["start", "turn", "call"]
    assert "".join(event["text"] for event in events if event["event"] == "text") == "It is clean."
    end = events[-1]
    assert (end["status"], end["text"], end["skills"], end["turns"]) == ("done", "It is clean.", ["csv-report"], 2)


def test_without_a_terminal_nothing_waits_and_calls_are_refused(command: Command, project: Path) -> None:
    write_script(call("Write", path="a.txt", content="x"), call("Bash", command="true"), "I could not.")
    ran = command("run", "write it", *SCRIPTED)
    assert ran.status == 0
    assert ran.err.count("nobody can be asked here") == 2
    assert not (project / "a.txt").exists()


@pytest.fixture
def tidy(project: Path) -> str:
    """The name of a skill that was downloaded into the project, whose head lists two tools."""
    prowess.create_skill("tidy", ".agents/skills", description="Tidies. Use when asked to tidy.")
    file = project / ".agents/skills/tidy/SKILL.md"
    file.write_text(file.read_text().replace("name: tidy\n", "name: tidy\nallowed-tools: Bash Write(out/*)\n"))
    return "tidy"


@pytest.mark.parametrize("how", ["run", "try"])
def test_one_line_in_a_skill_runs_no_command_without_a_terminal(
    command: Command, project: Path, tidy: str, how: str
) -> None:
    write_script(call("load_skill", name=tidy), call("Bash", command="echo x > owned.txt"), "Done.")
    ran = command(how, *([tidy] if how == "try" else []), "tidy up", *SCRIPTED)
    assert "needs a person's approval, and nobody can be asked here: nothing was done" in ran.err
    assert not (project / "owned.txt").exists()


def test_skill_approves_calls_of_tools_that_the_user_typed(command: Command, project: Path, tidy: str) -> None:
    write_script(call("load_skill", name=tidy), call("Write", path="out/a.txt", content="x"), "Done.")
    ran = command("run", "tidy up", *SCRIPTED)
    assert "Skills may approve calls of tools that --tools names." in ran.err
    assert not (project / "out/a.txt").exists()
    ran = command("run", "tidy up", *SCRIPTED, "--tools", "Read Write")
    assert "Write approved by an active skill" in ran.err
    assert (project / "out/a.txt").read_text() == "x"
    # A smaller ceiling counts more than what the skill lists.
    write_script(call("load_skill", name=tidy), call("Write", path="out/b.txt", content="x"), "Done.")
    command("run", "tidy up", *SCRIPTED, "--tools", "Read")
    assert not (project / "out/b.txt").exists()


def resume_and_write(command: Command, *words: str) -> bool:
    """Return whether a resumed run writes what an active skill lists, with nobody to ask."""
    write_script(call("Write", path="out/a.txt", content="x"), "Done.")
    assert command("run", "go on", "--resume", "t.jsonl", *SCRIPTED, *words).status == 0
    written = Path("out/a.txt").exists()
    Path("out/a.txt").unlink(missing_ok=True)
    return written


def test_resumed_run_remembers_whether_the_tools_were_typed(command: Command, tidy: str) -> None:
    write_script(call("load_skill", name=tidy), "Ready.")
    command("run", "tidy up", *SCRIPTED, "--transcript", "t.jsonl")
    assert not resume_and_write(command)
    assert resume_and_write(command, "--tools", "Read Write")
    assert resume_and_write(command)  # typed in the run before
    Path("elsewhere").mkdir()
    assert not resume_and_write(command, "--folder", "elsewhere")
    assert not Path("elsewhere/out").exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"tools": ["Read", "Bash(true)"]', '"tools": ["Read", "Write"]'),
        ('"skills_approve": false', '"skills_approve": true'),
    ],
)
def test_edited_transcript_lets_no_skill_approve_more(command: Command, tidy: str, old: str, new: str) -> None:
    write_script(call("load_skill", name=tidy), "Ready.")
    typed = ["--tools", "Read Bash(true)"] if "tools" in old[:8] else []
    command("run", "tidy up", *SCRIPTED, *typed, "--transcript", "t.jsonl")
    file = Path("t.jsonl")
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    assert not resume_and_write(command)


def test_memory_of_typed_tools_that_others_may_write_counts_for_nothing(
    command: Command, project: Path, tidy: str
) -> None:
    write_script(call("load_skill", name=tidy), "Ready.")
    command("run", "tidy up", *SCRIPTED, "--tools", "Read Write", "--transcript", "t.jsonl")
    assert resume_and_write(command)
    (memory,) = project.parent.rglob("typed-tools.json")
    memory.chmod(0o666)
    assert not resume_and_write(command)


def test_skills_come_from_the_roots_that_are_named(command: Command) -> None:
    prowess.create_skill("notes", "elsewhere", description="Writes notes.")
    write_script("ok")
    assert events_of(command("run", "x", "elsewhere", *SCRIPTED, "--json"))[0]["skills"] == 1
    write_script("ok")
    ran = command("run", "x", "missing", *SCRIPTED)
    assert (ran.status, "missing" in ran.err) == (3, True)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("run",), 2, "Missing argument 'TASK'"),
        (("run", "./", *SCRIPTED), 2, "'./' is a folder, and TASK comes first"),
        (("run", "--resume", "t.jsonl", "./", *SCRIPTED), 2, "use --dir ./"),
        (("run", "x"), 3, "error[no-model]: no model is set"),
        (("run", "x", "--model", "openai:gpt-5.2"), 3, "there is no key for openai: set OPENAI_API_KEY"),
        (
            ("try", "csv-report", "x", "--model", "anthropic:x"),
            3,
            "there is no key for anthropic: set ANTHROPIC_API_KEY",
        ),
        (("run", "x", "--model", "scripted:missing.json"), 3, "error[bad-script]"),
        (("run", "x", *SCRIPTED, "--tools", "Delete"), 3, "not a tool of the agent"),
        (("run", "--resume", "missing.jsonl", *SCRIPTED), 3, "error[bad-transcript]"),
        (("run", "--resume", "turns.json", *SCRIPTED), 3, "error[bad-transcript]"),
        (("run", "x", "--resume", "t", "--transcript", "u", *SCRIPTED), 2, "leave --transcript out"),
        (("run", "x", *SCRIPTED, "--max-turns", "0"), 2, "--max-turns"),
        (("run", "x", *SCRIPTED, "--folder", "missing"), 2, "--folder"),
        (("try", "nothing-here", "x", *SCRIPTED), 3, "unknown skill"),
    ],
    ids=str,
)
def test_mistake_is_told_with_what_to_do(command: Command, words: tuple[str, ...], status: int, said: str) -> None:
    write_script("ok")
    ran = command(*words)
    assert (ran.status, said in ran.err) == (status, True), ran.err


def test_mistake_leaves_no_empty_transcript(command: Command) -> None:
    write_script("ok")
    assert command("run", "x", *SCRIPTED, "--tools", "Delete", "--transcript", "t.jsonl").status == 3
    assert not Path("t.jsonl").exists()


def test_missing_extra_is_told_with_the_command_that_installs_it(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    ran = command("run", "x", "--model", "openai:gpt-5.2")
    assert ran.status == 3
    assert "error[missing-extra]: pydantic-ai is not installed: install Prowess with the extra 'agent'" in ran.err


def test_model_is_a_setting_that_no_project_can_set(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    write_script("from the script")
    Path("prowess.toml").write_text('[settings]\nmodel = "scripted:turns.json"\nbase_url = "http://evil.example"\n')
    ran = command("run", "x")
    assert (ran.status, "error[no-model]" in ran.err, ran.err.count("[user-setting]")) == (3, True, 2)
    monkeypatch.setenv("PROWESS_MODEL", "scripted:turns.json")
    assert command("run", "x").out == "from the script\n"


def test_limit_is_an_error_and_the_transcript_goes_on(command: Command) -> None:
    write_script({**call("nothing"), "repeat": True})
    ran = command("run", "x", *SCRIPTED, "--max-turns", "2", "--transcript", "t.jsonl")
    assert ran.status == 3
    assert "error[turn-limit]: the run has made 2 requests, as many as it may" in ran.err
    assert "prowess run --resume t.jsonl goes on from here, with the same --model if you named one" in ran.err
    write_script("Now it is done.")
    ran = command("run", "--resume", "t.jsonl", *SCRIPTED)
    assert (ran.status, ran.out) == (0, "Now it is done.\n")
    ran = command("run", "--resume", "t.jsonl", *SCRIPTED)
    assert (ran.status, "say what to do next" in ran.err) == (2, True)
    write_script("And that too.")
    assert command("run", "more", "--resume", "t.jsonl", *SCRIPTED).out == "And that too.\n"
    ran = command("run", "x", *SCRIPTED, "--max-tokens", "10")
    assert (ran.status, "error[token-limit]" in ran.err) == (3, True)


def test_resumed_run_keeps_its_folders_and_bounds_unless_others_are_named(command: Command) -> None:
    Path("library/greet").mkdir(parents=True)
    Path("library/greet/SKILL.md").write_text("---\nname: greet\ndescription: Greets.\n---\nSay hello.\n")
    write_script("one")
    bounds = ("--tools", "Read", "--trust", "never")
    assert command("run", "x", "library", *SCRIPTED, *bounds, "--transcript", "t.jsonl").status == 0

    def resume(*words: str) -> tuple[object, ...]:
        lines = command("run", "y", "--resume", "t.jsonl", *SCRIPTED, *words, "--json").out.splitlines()
        start = json.loads(lines[0])
        return start["skills"], start["tools"], start["trust"], start["places"]

    kept = (1, ["Read"], "never", [str(Path("library").absolute())])
    assert resume() == kept
    assert resume("--tools", "Read Write", "--trust", "ask") == (1, ["Read", "Write"], "ask", kept[3])
    lines = Path("t.jsonl").read_text().splitlines()
    forged = [line.replace('"trust": "ask"', '"trust": "always"') for line in lines]
    Path("t.jsonl").write_text("\n".join(forged))
    assert resume()[2] == "ask"  # what no option can be is not believed


def test_server_that_fails_is_an_error_in_text_and_in_data(command: Command) -> None:
    with provide(play(Failure(500, 0.001))) as provider:
        words = ("run", "x", "--model", "tiny", "--base-url", f"{provider.url}/v1")
        ran = command(*words)
        data = command(*words, "--json")
    assert (ran.status, ran.out) == (3, "")
    assert "error[model-failed]: the server of tiny answered with status 500" in ran.err
    assert events_of(data)[-1]["error"]["code"] == "model-failed"
    assert json.loads(data.err.splitlines()[-1])["error"]["code"] == "model-failed"


@pytest.mark.parametrize(
    ("reply", "flags", "said"),
    [
        (Failure(401), (), "warning: a child agent failed: the server of tiny answered with status 401"),
        (Text("never"), ("--max-turns", "1"), "error[turn-limit]"),
    ],
)
def test_child_agent_that_fails_is_told_in_one_line(
    command: Command, project: Path, reply: Reply, flags: tuple[str, ...], said: str
) -> None:
    skill = project / "skills/kid"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: kid\ndescription: Helps.\ncontext: fork\n---\nHelp.\n")
    with provide(play(ToolCall("run_skill", {"name": "kid"}), reply, Text("Without it."))) as provider:
        ran = command("run", "x", "skills", "--model", "tiny", "--base-url", f"{provider.url}/v1", *flags)
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_base_url_is_a_setting_too(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with provide(play(Text("hello"))) as provider:
        monkeypatch.setenv("PROWESS_BASE_URL", f"{provider.url}/v1")
        assert command("run", "x", "--model", "tiny").out == "hello\n"


def test_try_shows_what_the_model_did_with_one_skill(command: Command) -> None:
    write_script(
        call("load_skill", name="csv-report"),
        call("read_skill_file", name="csv-report", path="references/columns.md"),
        call("Read", path="orders.csv"),
        "It is clean.",
    )
    ran = command("try", "csv-report", "Is it clean?", *SCRIPTED)
    assert ran.status == 0
    summary = ran.out.partition("What the model did with csv-report\n")[2]
    assert "loaded        yes" in summary
    assert "files read    references/columns.md" in summary
    assert "scripts run   none" in summary
    assert "Read once (1 failed)" in summary
    assert "in 4 turns" in summary
    assert "1 skill," in ran.err


def test_try_says_when_the_model_did_not_load_the_skill(command: Command) -> None:
    write_script("I know it all.")
    ran = command("try", "csv-report", "Is it clean?", *SCRIPTED)
    assert (ran.status, "loaded        no: " in ran.out) == (1, True)
    write_script("I know it all.")
    ran = command("try", "csv-report", "Is it clean?", *SCRIPTED, "--json")
    assert (ran.status, events_of(ran)[-1]["skills"]) == (1, [])

"""Running: grants, activation, tool calls, scripts, the demonstration."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.conversation.acting.sandbox.seccomp import can_filter
from tests.cli.samples import granted

if TYPE_CHECKING:
    from tests.cli.conftest import Command, Process, Terminal


# -- trust -------------------------------------------------------------------------------------------------------------


def test_a_grant_is_shown_before_it_is_made_and_kept_for_that_state(command: Command, project: Path) -> None:
    ran = command("trust", "grant", "folder-report", "--yes")
    shown, granted_to = ran.out.split("\n\n")
    assert "would run  ls | wc -l | tr -d ' '" in shown
    assert "could run  scripts/sizes.py" in shown
    assert granted_to.startswith("Trusted folder-report as it is now (")
    skill = prowess.scan(project / ".agents/skills")["folder-report"]
    assert prowess.Trust().is_trusted(skill)
    assert command("trust", "list", "--json").data["grants"][0]["digest"] == skill.digest()


def test_grants_of_skills_that_changed_or_are_gone_are_marked(command: Command, project: Path) -> None:
    def state() -> str:
        (grant,) = command("trust", "list", "--json").data["grants"]
        words = {"valid": "as granted", "changed": "changed since", "gone": "no longer there"}
        assert f"  {words[grant['state']]}  " in command("trust", "list").out
        return str(grant["state"])

    granted()
    assert state() == "valid"
    folder = project / ".agents/skills/folder-report"
    (folder / "more.md").touch()
    assert state() == "changed"
    (folder / "more.md").unlink()
    (folder / "SKILL.md").write_text("no frontmatter", encoding="utf-8")
    assert state() == "changed"
    shutil.rmtree(folder)
    assert state() == "gone"


def test_without_a_terminal_to_ask_on_nothing_is_trusted(command: Command) -> None:
    ran = command("trust", "grant", "folder-report")
    assert ran.status == 2
    assert "use --yes" in ran.err
    assert command("trust", "list").out == "Nothing is trusted.\n"


def test_grants_are_taken_back_by_name_digest_path_or_all(command: Command, project: Path) -> None:
    digest = prowess.scan(project / ".agents/skills")["folder-report"].digest()
    for what in ("folder-report", digest, "./.agents/skills/folder-report", "--all"):
        granted()
        assert command("trust", "revoke", what).status == 0
        assert prowess.Trust().grants() == ()
    assert command("trust", "revoke", "folder-report").status == 1
    assert command("trust", "revoke").status == 2


# -- call --------------------------------------------------------------------------------------------------------------


def test_a_tool_call_is_answered_as_for_a_model(command: Command) -> None:
    ran = command("call", "load_skill", '{"name": "csv-report"}')
    toolset = prowess.Toolset(prowess.Session(prowess.discover()))
    assert ran.out == toolset.call("load_skill", {"name": "csv-report"}).content + "\n"
    ran = command("call", "skill__activate", "-", "--dialect", "skill__activate", stdin='{"name": "csv-report"}')
    assert "instructions" in json.loads(ran.out)


@pytest.mark.parametrize(
    "words", [("load_skill", '{"name": "nope"}'), ("load_skill", "{"), ("nope", "{}"), ("load_skill",)], ids=str
)
def test_a_call_that_fails_ends_with_1_and_says_why(command: Command, words: tuple[str, ...]) -> None:
    ran = command("call", *words)
    assert ran.status == 1
    assert ran.out.strip()
    assert command("call", *words, "--json").data["is_error"] is True


def test_a_tool_that_does_not_exist_is_told_with_those_that_are_offered(command: Command) -> None:
    ran = command("call", "nope", "--no-scripts")
    offered = [tool["name"] for tool in command("call", "--no-scripts", "--json").data["tools"]]
    assert ran.out == f"unknown skill tool: nope; known: {', '.join(offered)}\n"
    assert "run_skill_script" not in ran.out


def test_arguments_that_are_not_json_get_an_error_with_a_working_example(command: Command) -> None:
    ran = command("call", "load_skill", "name=csv-report")
    example = ran.err.partition("'{")[2].partition("}'")[0]
    assert (ran.status, example) == (1, '"name": "csv-report"')
    assert command("call", "load_skill", f"{{{example}}}").status == 0
    assert command("call", "load_skill", '{"nam": "csv-report"}').err == ""


def test_a_fork_is_given_to_the_host_as_data(command: Command) -> None:
    data = command("call", "run_skill", '{"name": "folder-report", "task": "count"}', "--json").data
    assert (data["fork"]["skill"], data["fork"]["task"], data["fork"]["model"]) == ("folder-report", "count", "small")


def test_a_fork_that_only_a_host_could_run_is_said_not_to_have_run(command: Command) -> None:
    ran = command("call", "run_skill", '{"name": "folder-report", "task": "count"}')
    assert ran.err.startswith("Nothing ran: ")
    assert "--json" in ran.err
    assert "Nothing ran" not in command("call", "load_skill", '{"name": "csv-report"}').err


def test_without_a_tool_those_that_are_offered_are_listed(command: Command) -> None:
    names = [tool["name"] for tool in command("call", "--json").data["tools"]]
    assert names[:3] == ["load_skill", "unload_skill", "read_skill_file"]
    assert "run_skill_script" not in [tool["name"] for tool in command("call", "--no-scripts", "--json").data["tools"]]


# -- run-script --------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("needs_sandbox")
@pytest.mark.parametrize("bound", ["PROWESS_BUDGET=300", "PROWESS_WINDOW=15000"])
def test_the_settings_decide_whether_skills_are_listed_or_searched_for(
    command: Command, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    def offered() -> set[str]:
        return {tool["name"] for tool in command("call", "--json").data["tools"]}

    assert "search_skills" not in offered()
    monkeypatch.setenv(*bound.split("="))
    assert "search_skills" in offered()
    monkeypatch.setenv("PROWESS_SELECTOR", "all")
    assert "search_skills" not in offered()


def test_a_script_needs_a_grant_and_then_runs_in_a_sandbox(command: Command) -> None:
    words = ("run-script", "folder-report", "scripts/sizes.py", "nothing")
    refused = command(*words)
    assert (refused.status, refused.out) == (3, "")
    assert "error[not-trusted]" in refused.err
    granted()
    ran = command(*words)
    assert (ran.status, ran.out) == (0, "         0 nothing\n")
    assert command(*words, "--json").data["sandbox"] in {"bwrap", "landlock"}


@pytest.fixture
def script(project: Path) -> str:
    """A trusted script that does what it is told."""
    made = prowess.create_skill("runner", project / ".agents" / "skills")
    (made / "scripts").mkdir()
    said = "print(sys.stdin.read() + ' '.join(sys.argv[2:]))\nprint('oh', file=sys.stderr)\n"
    text = f"import sys\n{said}sys.exit(int(sys.argv[1]))\n"
    (made / "scripts" / "say.py").write_text(text, encoding="utf-8")
    prowess.Trust().grant(prowess.read_metadata(made))
    return "runner"


def test_the_status_streams_and_arguments_are_the_scripts(process: Process, script: str) -> None:
    ran = process(
        "run-script", script, "scripts/say.py", "--sandbox", "none", "--stdin", "--", "7", "--json", "x", stdin="in "
    )
    assert (ran.status, ran.out, ran.err) == (7, "in --json x\n", "oh\n")


def test_a_project_cannot_ask_for_no_sandbox(command: Command, project: Path) -> None:
    (project / "prowess.toml").write_text('[settings]\nsandbox = "none"\n', encoding="utf-8")
    ran = command("config", "sandbox")
    assert ran.out == "auto\n"
    assert "warning: " in ran.err
    assert "[user-setting]" in ran.err


@pytest.mark.parametrize("more", [(), ("--json",), ("base_url",), ("base_url", "--json")])
def test_the_configuration_is_shown_without_secrets(
    command: Command, project: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PROWESS_BASE_URL", "https://me:hunter2@models.example/v1?key=hunter2")
    monkeypatch.setenv("PROWESS_INDEXES", "https://me:hunter2@skills.example/x,git@host.example:a/b")
    ran = command("config", *more)
    assert "https://models.example/v1" in ran.out
    assert "hunter2" not in ran.out + ran.err
    (project / "prowess.toml").write_text(
        '[settings]\nbudget = "https://me:hunter2@models.example"\n', encoding="utf-8"
    )
    ran = command("config", *more)
    assert "bad-setting" in ran.err + ran.out
    assert "hunter2" not in ran.out + ran.err


def test_a_script_works_in_the_folder_that_it_is_given(command: Command, project: Path) -> None:
    granted()
    (project / "data.txt").write_text("12345", encoding="utf-8")
    words = ("run-script", "folder-report", "scripts/sizes.py", "data.txt", "--sandbox", "none")
    ran = command(*words)
    assert ran.out == "         0 data.txt\n"
    assert ran.err == (
        "note: the script ran in a new, empty folder without 'data.txt'; --folder . lets it read and write here\n"
    )
    ran = command(*words, "--folder", ".")
    assert (ran.out, ran.err) == ("         5 data.txt\n", "")


def test_a_script_that_a_model_calls_works_there_too(
    command: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    granted()
    monkeypatch.setenv("PROWESS_SANDBOX", "none")
    (project / "data.txt").write_text("12345", encoding="utf-8")
    asked = {"name": "folder-report", "script": "scripts/sizes.py", "args": ["data.txt"]}
    words = ("call", "run_skill_script", json.dumps(asked))
    ran = command(*words)
    assert ("         0 data.txt" in ran.out, "--folder ." in ran.err) == (True, True)
    ran = command(*words, "--folder", ".")
    assert ("         5 data.txt" in ran.out, ran.err) == (True, "")
    for more in (("--no-scripts",), ("--dialect", "skill_load")):
        assert command(*words, "--folder", ".", *more).status == 2


# -- demo --------------------------------------------------------------------------------------------------------------


def test_the_demonstration_shows_every_part_and_touches_nothing(command: Command, project: Path) -> None:
    before = sorted(project.parent.rglob("*"))
    ran = command("demo")
    assert ran.status == 0
    for title in (
        "What the model sees at first",
        "A conversation",
        "A fork",
        "Tokens in the context",
        "The agent at a task",
    ):
        assert title in ran.out
    assert "refused resource path '../../../etc/passwd' holds '..'" in ran.out
    assert "not granted  There are !`ls" in ran.out
    assert "granted      There are 6 entries" in ran.out
    assert "changed-file: SKILL.md is not what the lock file says" in ran.out
    assert "prowess sync    as the lock file says again" in ran.out
    assert sorted(project.parent.rglob("*")) == before


OUTPUT: list[str] = []


@pytest.fixture
def demonstration(command: Command) -> str:
    """What the demonstration prints in a pipe; it is run once for all tests of this file."""
    if not OUTPUT:
        OUTPUT.append(command("demo").out)
    return OUTPUT[0]


def test_every_part_of_the_demonstration_counts_the_same_skills(demonstration: str) -> None:
    out = demonstration
    listed = re.findall(r"^  - [a-z-]+: ", out, re.MULTILINE)
    assert f"\n{len(listed)} skills in about " in out
    assert f"granted      There are {len(listed)} entries in this folder." in out
    assert f"    skills/ holds {len(listed)} entries.\n" in out


def test_no_line_of_the_demonstration_is_longer_than_80_columns(demonstration: str, terminal: Terminal) -> None:
    """In a pipe, where nothing is wrapped or cut; and so on a terminal each line stays one line."""
    rows = demonstration.splitlines()
    assert [row for row in rows if len(row) > 80] == []
    shown = re.sub(r"\x1b\[[0-9;]*m", "", terminal("demo", columns=80).out)
    assert [row.rstrip() for row in shown.splitlines()] == rows


@pytest.mark.sampled(0.3, always={80})
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_chart_of_the_demonstration_fits_every_terminal(terminal: Terminal, columns: int) -> None:
    """Three rows and two, with their figures, each on one line."""
    shown = re.sub(r"\x1b\[[0-9;]*m", "", terminal("demo", columns=columns).out)
    rows = [row for row in shown.splitlines() if "█" in row]
    assert [re.search(r"([0-9,]+) tokens +█+ *$", row) is not None for row in rows] == [True] * 5


def test_the_demonstration_chooses_from_500_skills_the_one_that_fits(demonstration: str) -> None:
    figures = re.findall(r"^  (?:all|the best) (\d+) listed +([\d,]+) tokens", demonstration, re.MULTILINE)
    (skills, tokens), (chosen, fewer) = [(int(number), int(cost.replace(",", ""))) for number, cost in figures]
    assert skills == 500 > chosen > 0
    assert tokens > 20_000
    assert fewer <= 4_000
    assert re.search(r"and why:\n  invoice-check +words: missing, invoice\n", demonstration)


@pytest.mark.usefixtures("needs_sandbox")
def test_the_demonstration_runs_a_script_in_the_sandbox(demonstration: str) -> None:
    out = demonstration
    assert "refused skill 'csv-report' is not trusted as it is now" in out
    assert "nobody has looked at that script yet" in out
    assert "# Profile of orders.csv" in out
    best = next(kind.name for kind in prowess.sandbox.available() if kind.usable)
    assert f"sandbox: {best}" in out


@pytest.mark.skipif(
    not can_filter(), reason="NOT TESTED: a host without any sandbox; filters are for two machines only"
)
def test_the_demonstration_without_any_sandbox_says_why_nothing_runs(project: Path) -> None:
    """A host that refuses namespaces and Landlock: the want of a sandbox is not explained as a want of trust."""
    options = json.dumps({"ordinary": "", "refuse": ["mount", "unshare", "landlock_create_ruleset"]})
    program = Path(__file__).parents[1] / "restricted_host.py"
    code = "import sys; from prowess.cli.main import root; root.main(sys.argv[1:], prog_name='prowess')"
    done = subprocess.run(
        [sys.executable, program, options, code, "demo"], cwd=project, capture_output=True, text=True, check=True
    )
    assert done.stdout.count("refused no sandbox: ") == 2
    assert done.stdout.count("Scripts run in a sandbox only, and this machine has none: see prowess doctor.") == 2
    assert "nobody has looked at that script yet" not in done.stdout
    assert [row for row in done.stdout.splitlines() if len(row) > 80] == []


def test_the_picture_is_the_same_every_time_and_fetches_nothing(command: Command, project: Path) -> None:
    pictures = [project / name for name in ("one.svg", "two.svg")]
    for picture in pictures:
        assert command("demo", "--record", str(picture)).err == f"recorded in {picture}\n"
    one, two = (picture.read_text(encoding="utf-8") for picture in pictures)
    assert one == two
    assert one.startswith("<svg ")
    assert not re.search(r"@font-face|@import|<image|<script|(?:href|url\()=?[\"']?https?:", one)


@pytest.mark.usefixtures("needs_sandbox")
@pytest.mark.skipif(shutil.which("git") is None, reason="without git a part is left out")
def test_the_picture_of_the_readme_is_what_is_recorded_now(
    command: Command, project: Path, pytestconfig: pytest.Config
) -> None:
    """To the last byte; ``make manual`` records it again."""
    if next(kind.name for kind in prowess.sandbox.available() if kind.usable) != "bwrap":
        pytest.skip("NOT TESTED: the picture of the README; it was recorded with bubblewrap, which does not work here")
    command("demo", "--record", "demo.svg")
    kept = pytestconfig.rootpath / "docs" / "demo.svg"
    assert (project / "demo.svg").read_text(encoding="utf-8") == kept.read_text(encoding="utf-8")


AUDITED = """
import json, os, sys
seen = []
WATCHED = {"subprocess.Popen", "os.fork", "os.exec", "os.posix_spawn", "os.system", "socket.connect", "input"}
def hook(event, arguments):
    if event in WATCHED:
        seen.append((event, str(arguments[1] if event == "socket.connect" else arguments[0] if arguments else "")))
sys.addaudithook(hook)
from prowess.cli.main import root
try:
    root.main(sys.argv[1:], prog_name="prowess")
finally:
    print(json.dumps(seen), file=sys.stderr)
"""


@pytest.mark.usefixtures("project")
def test_the_demonstration_starts_few_programs_and_reaches_this_machine_alone() -> None:
    """What keeps it under a minute, and without keys: a dozen short processes, no network, nobody to ask."""
    done = subprocess.run(
        [sys.executable, "-c", AUDITED, "demo"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    )
    seen: list[tuple[str, str]] = json.loads(done.stderr.splitlines()[-1])
    programs = [Path(what).name for event, what in seen if event == "subprocess.Popen"]
    assert {name.rstrip("0123456789.") for name in programs} <= {"git", "bwrap", "python"}
    assert 0 < len(programs) <= 16
    reached = [what for event, what in seen if event == "socket.connect"]
    assert reached
    assert all(what.startswith("('127.0.0.1', ") for what in reached)
    assert {event for event, _ in seen} == {"subprocess.Popen", "socket.connect"}

"""Completion: what a shell is offered, in its own protocol and in a real shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.shell_completion import BashComplete

from prowess.cli.main import root
from tests.cli.samples import installed
from tests.cli_processes import run_command

if TYPE_CHECKING:
    from tests.cli.conftest import Command

BIN = Path(sys.executable).parent


def offered(*words: str) -> list[str]:
    """What bash would be offered for the last word."""
    line = " ".join(["prowess", *words])
    env = {"_PROWESS_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    done = run_command((), env=env)
    assert done.stderr == b""
    return [row.partition(",")[2] for row in done.stdout.decode().splitlines() if row]


def offered_here(*words: str, paths: bool = False) -> list[str]:
    """What the same is offered, without a process; ``paths``: for which beginnings the shell looks for files itself."""
    *before, incomplete = words
    items = BashComplete(root, {}, "prowess", "_PROWESS_COMPLETE").get_completions(before, incomplete)
    return [item.value for item in items if (item.type == "file") is paths]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["un"], {"unpack", "unlink", "unpublish"}),
        (["show", "csv"], {"csv-report"}),
        (["show", "--dir", ".agents", "rel"], {"release-notes"}),
        (["show", "--dir", "no-such-folder", "rel"], set()),
        (["read", "csv-report", "ref"], {"references/columns.md"}),
        (["list", "--agent", "claude"], {"claude-code"}),
        (["check", "--ignore", "repaired-c"], {"repaired-colon", "repaired-comment", "repaired-code-fence"}),
        (["config", "san"], {"sandbox"}),
        (["prompt", "--style", "m"], {"markdown"}),
        (["trust", "re"], {"revoke"}),
        (["new", "x", "--with", "scripts,ref"], {"scripts,references"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_commands_options_and_names_are_completed(words: list[str], expected: set[str]) -> None:
    assert set(offered(*words)) == expected


@pytest.mark.usefixtures("project")
def test_installs_are_completed() -> None:
    installed()
    assert offered("remove", "loc") == ["local/notes"]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("words", ["remove", "link", "unlink", "update"])
def test_installs_are_completed_by_the_names_that_list_shows(words: str) -> None:
    installed()
    assert offered_here(words, "no") == ["notes"]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("words", ["show", "preview", "prompt", "check", "eval", "pack", "trust grant"])
def test_paths_are_completed_by_the_shell_and_names_beside_them(words: str) -> None:
    line = words.split()
    assert offered_here(*line, "./.ag", paths=True) == ["./.ag"]
    assert offered_here(*line, "csv") == ["csv-report"]
    assert offered_here(*line, "elsew", paths=True) == ["elsew"]


@pytest.mark.usefixtures("project")
def test_a_source_is_completed_as_a_path_once_one_is_begun() -> None:
    assert offered_here("install", "./el", paths=True) == ["./el"]
    assert offered_here("install", "el", paths=True) == []


@pytest.mark.usefixtures("project")
def test_scripts_of_a_skill_are_completed() -> None:
    assert offered_here("run-script", "folder-report", "scr") == ["scripts/sizes.py"]


@pytest.mark.usefixtures("project")
def test_bash_itself_completes_with_the_script(command: Command) -> None:
    installed()
    script = command("completion", "bash").out
    ask = "COMP_WORDS=(prowess remove no); COMP_CWORD=2; _prowess_completion prowess; echo ${COMPREPLY[@]}"
    env = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "--norc", "-c", f"{script}\n{ask}"], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["notes"]


def test_a_skill_that_was_changed_is_completed_without_a_word(project: Path) -> None:
    installed()
    (project / ".prowess/skills/local/notes/more.md").write_text("x", encoding="utf-8")
    assert offered("read", "notes", "mo") == ["more.md"]


def test_where_nothing_can_be_read_nothing_is_offered(project: Path) -> None:
    (project / "prowess.toml").write_text("nonsense", encoding="utf-8")
    assert offered("show", "csv") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_script_that_it_accepts(command: Command, shell: str, tmp_path: Path) -> None:
    ran = command("completion", shell)
    assert "_PROWESS_COMPLETE" in ran.out
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    file = tmp_path / "script"
    file.write_text(ran.out, encoding="utf-8")
    subprocess.run([program, "-n", file], check=True)


def test_what_a_shell_would_run_is_not_completed_and_is_quoted_where_it_is_advised(
    command: Command, project: Path
) -> None:
    folder = project / ".agents/skills/odd"
    (folder / "scripts").mkdir(parents=True)
    (folder / "scripts/$(touch ran).py").write_text("", encoding="utf-8")
    (folder / "scripts/run.py").write_text("", encoding="utf-8")
    head = '---\nname: "a$(touch ran)"\ndescription: Runs things when asked to.\n---\n'
    (folder / "SKILL.md").write_text(head, encoding="utf-8")
    assert "a$(touch ran)" not in offered_here("show", "a")
    assert offered_here("read", "a$(touch ran)", "scripts/") == ["scripts/run.py"]
    assert "(prowess trust grant 'a$(touch ran)')" in command("show", "a$(touch ran)").out


@pytest.mark.usefixtures("project")
def test_grants_that_may_be_taken_back_are_completed_also_of_skills_that_are_gone(command: Command) -> None:
    assert command("trust", "grant", "csv-report", "--yes").status == 0
    shutil.rmtree(".agents")
    assert offered_here("trust", "revoke", "c") == ["csv-report"]
    assert offered_here("trust", "revoke", "rel") == []

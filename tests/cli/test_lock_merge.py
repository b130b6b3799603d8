"""Two people in two clones change the lock file: git's merges, rebases, cherry-picks and stashes, and the choice."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import sys
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.lockfile.write import EMPTY_LOCK_TEXT, lock_text
from tests.cli.conftest import KILL_AFTER, ROOT, Command, _read_all
from tests.lockfile.test_merge import entry, git_merged, lock
from tests.repositories import ENV

if TYPE_CHECKING:
    from pathlib import Path

LOCK = "prowess.lock"


class Team:
    """A project in which two branches, ``mine`` and ``theirs``, have changed the lock file since ``main``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.attributes = ""
        self.git("init", "--quiet", "--initial-branch=main", ".")

    def git(self, *words: str, fails: bool = False, stdin: bytes = b"") -> str:
        """What git says; ``fails``: it has to end with a conflict."""
        env = {**os.environ, **ENV, "GIT_EDITOR": "true"}
        done = subprocess.run(["git", *words], cwd=self.root, env=env, input=stdin, capture_output=True, check=False)
        said = (done.stdout + done.stderr).decode("utf-8", "replace")
        assert (done.returncode != 0) == fails, said
        return said

    def branches(self, base: str, mine: str, theirs: str) -> None:
        """Three versions of the lock file, of which an empty one is none, and ``mine`` checked out."""
        parts = [_commit("main", "", {LOCK: base, ".gitattributes": self.attributes})]
        parts += [_commit(branch, "main", {LOCK: text}) for branch, text in (("theirs", theirs), ("mine", mine))]
        self.git("fast-import", "--quiet", stdin=b"".join(parts))  # one process for all of them
        self.git("checkout", "--quiet", "mine")

    @property
    def text(self) -> str:
        """The lock file as it lies there."""
        return (self.root / LOCK).read_text(encoding="utf-8")


def _commit(branch: str, begin: str, files: dict[str, str]) -> bytes:
    """A commit for ``git fast-import``."""
    rows = [f"commit refs/heads/{branch}\ncommitter a <a@example.com> 0 +0000\ndata {len(branch)}\n{branch}\n"]
    rows += [f"from refs/heads/{begin}\n"] if begin else []
    for path, text in files.items():
        rows.append(f"M 100644 inline {path}\ndata {len(text)}\n{text}\n" if text else f"D {path}\n")
    return "".join(rows).encode()


@pytest.fixture
def team(project: Path) -> Team:
    (project / ".git").rmdir()
    return Team(project)


BASE = lock(alpha="v1", zeta="v1")
APART = (BASE, lock(alpha="v1", beta="v1", zeta="v2"), lock(alpha="v1", gamma="v1", zeta="v1"))
TOGETHER = lock(alpha="v1", beta="v1", gamma="v1", zeta="v2")
CLASH = (BASE, lock(alpha="v2", beta="v1", zeta="v1"), lock(alpha="v3", zeta="v1", gamma="v1"))

IN_CONFLICT = prowess.merge_locks(*CLASH).text


def taken(alpha: str) -> str:
    """What ``CLASH`` comes to with that version of the skill that both changed."""
    return lock(alpha=alpha, beta="v1", gamma="v1", zeta="v1")


# -- the lock file that git left in conflict ---------------------------------------------------------------------------


@pytest.mark.parametrize("style", ["merge", "diff3", "zdiff3"])
def test_neighbours_that_two_people_added_are_merged_without_a_question(
    team: Team, command: Command, style: str
) -> None:
    team.branches(*APART)
    team.git("config", "merge.conflictStyle", style)
    team.git("merge", "theirs", fails=True)
    assert "<<<<<<< HEAD" in team.text
    ran = command("lock", "--merge")
    assert (ran.status, team.text) == (0, TOGETHER)
    assert "it records 4 installed" in ran.out
    assert f"'git add {LOCK}'" in ran.err
    team.git("add", LOCK)
    team.git("commit", "--quiet", "--no-edit")
    assert command("lock", "--merge").out == f"{LOCK} is in no conflict.\n"


def test_one_skill_from_two_sources_is_told_after_the_merge(team: Team, command: Command) -> None:
    names = ("acme/pdf", "other/pdf")
    mine, theirs = (
        lock_text({name: replace(entry(name, "v1"), links=(".agents/skills/pdf",))}) or "" for name in names
    )
    team.branches(BASE, BASE + mine.removeprefix(EMPTY_LOCK_TEXT), BASE + theirs.removeprefix(EMPTY_LOCK_TEXT))
    team.git("merge", "theirs", fails=True)
    ran = command("lock", "--merge")
    assert ran.status == 0
    assert "[name-taken] acme/pdf and other/pdf both link .agents/skills/pdf: keep one" in ran.err


def test_where_nobody_can_be_asked_the_skills_are_named_and_the_file_stays(team: Team, command: Command) -> None:
    team.branches(*CLASH)
    team.git("merge", "theirs", fails=True)
    before = team.text
    ran = command("lock", "--merge")
    assert (ran.status, team.text) == (1, before)
    assert "acme/alpha" in ran.out
    assert "acme/beta" not in ran.out
    assert "--take mine" in ran.err
    data = command("lock", "--merge", "--json").data
    assert [(one["name"], one["ours"][:3], one["theirs"][:3]) for one in data["conflicts"]] == [
        ("acme/alpha", "v2,", "v3,")
    ]
    assert command("lock", "--merge", "--take", "theirs").status == 0
    assert team.text == taken("v3")


def test_in_a_rebase_mine_is_what_i_committed(team: Team, command: Command) -> None:
    team.branches(*CLASH)
    team.git("rebase", "theirs", fails=True)
    assert command("lock", "--merge", "--take", "mine").status == 0
    assert team.text == taken("v2")
    team.git("add", LOCK)
    team.git("rebase", "--continue")
    assert team.text == taken("v2")


def test_what_comes_back_from_a_stash_is_mine(team: Team, command: Command) -> None:
    base, mine, theirs = CLASH
    team.branches(base, base, theirs)
    (team.root / LOCK).write_text(mine, encoding="utf-8")
    team.git("stash", "--quiet")
    team.git("checkout", "--quiet", "theirs")
    team.git("stash", "pop", fails=True)
    assert command("lock", "--merge", "--take", "mine").status == 0
    assert team.text == taken("v2")


def test_a_lock_file_that_one_side_deleted_with_its_last_skill_is_merged(team: Team, command: Command) -> None:
    team.branches(lock(alpha="v1"), "", lock(alpha="v1", beta="v1"))
    assert "deleted in HEAD" in team.git("merge", "theirs", fails=True)
    assert command("lock", "--merge").status == 0
    assert team.text == lock(beta="v1")


def test_a_file_that_is_exactly_one_side_is_merged_until_it_is_added(team: Team, command: Command) -> None:
    """Git leaves our side where an attribute keeps it from merging by lines: 'git add' would drop the other."""
    team.attributes = f"{LOCK} -merge\n"
    team.branches(*APART)
    team.git("merge", "theirs", fails=True)
    assert team.text == APART[1]
    assert command("lock", "--merge").status == 0
    assert team.text == TOGETHER


def test_a_side_that_was_taken_whole_is_said_to_need_only_git_add(team: Team, command: Command) -> None:
    team.branches(BASE, lock(alpha="v2", zeta="v1"), lock(alpha="v3", zeta="v1"))
    team.git("merge", "theirs", fails=True)
    assert command("lock", "--merge", "--take", "mine").status == 0
    ran = command("lock", "--merge")
    assert (ran.status, team.text) == (1, lock(alpha="v2", zeta="v1"))
    assert f"{LOCK} is as one side has it: 'git add {LOCK}' keeps that" in ran.err


def test_a_project_without_a_lock_file_has_none_to_merge(command: Command) -> None:
    ran = command("lock", "--merge")
    assert (ran.status, ran.out) == (0, f"There is no {LOCK} here.\n")


def test_a_lock_file_that_was_mended_by_hand_is_left_alone(team: Team, command: Command) -> None:
    team.branches(*CLASH)
    team.git("merge", "theirs", fails=True)
    (team.root / LOCK).write_text(lock(alpha="v9"), encoding="utf-8")
    ran = command("lock", "--merge")
    assert (ran.status, ran.out, team.text) == (0, f"{LOCK} is in no conflict.\n", lock(alpha="v9"))


@pytest.mark.parametrize("style", [(), ("--diff3",), ("--zdiff3",)], ids=str)
def test_markers_that_somebody_committed_are_merged_as_far_as_they_tell(
    team: Team, command: Command, style: tuple[str, ...], tmp_path: Path
) -> None:
    (team.root / LOCK).write_text(git_merged(tmp_path, *APART, *style), encoding="utf-8")
    assert "<<<<<<<" in team.text
    ran = command("lock", "--merge")
    assert (ran.status, team.text) == (0, TOGETHER)
    assert ("the markers do not say what both sides began with" in ran.err) == (style != ("--diff3",))


def test_markers_of_which_a_part_is_gone_are_told_and_the_file_stays(team: Team, command: Command) -> None:
    (team.root / LOCK).write_text(lock(alpha="v1") + "<<<<<<< HEAD\n", encoding="utf-8")
    before = team.text
    ran = command("lock", "--merge")
    assert (ran.status, team.text) == (3, before)
    assert "error[torn-conflict]" in ran.err
    assert "do not pair" in ran.err


def test_sides_that_git_has_mixed_by_lines_are_not_taken_for_either(
    team: Team, command: Command, tmp_path: Path
) -> None:
    """One side's new file is in both by the markers, so one of the two has a digest that fits no version."""
    base = lock(alpha="v1")
    text = git_merged(tmp_path, base, lock(alpha="v2"), lock(alpha="v3").replace("a.txt", "b.txt"))
    (team.root / LOCK).write_text(text, encoding="utf-8")
    ran = command("lock", "--merge")
    assert (ran.status, team.text) == (3, text)
    assert "error[torn-conflict]" in ran.err
    assert "--base --ours --theirs" in ran.err


def test_the_repositorys_own_programs_have_no_say_when_git_is_asked(team: Team, command: Command) -> None:
    """A clone's configuration may name programs that git runs: to convert, to filter, to watch files."""
    team.branches(*APART)
    team.git("merge", "theirs", fails=True)
    evil = f"touch {shlex.quote(str(team.root / 'ran'))}; cat"
    (team.root / ".git/info/attributes").write_text(f"{LOCK} diff=evil filter=evil\n", encoding="utf-8")
    for key in ("diff.evil.textconv", "diff.evil.command", "filter.evil.smudge", "filter.evil.clean", "core.fsmonitor"):
        team.git("config", key, evil)
    assert command("lock", "--merge").status == 0
    assert team.text == TOGETHER
    assert not (team.root / "ran").exists()


def test_a_person_at_a_terminal_is_asked_once_for_each_skill_that_both_changed(team: Team) -> None:
    team.branches(*CLASH)
    team.git("merge", "theirs", fails=True)
    status, shown = answer("lock", "--merge", keys="x\nt\n")
    assert (status, team.text) == (0, taken("v3"))
    assert shown.count("acme/alpha: mine (HEAD) has v2, commit") == 2  # what is not an answer is asked again
    assert "theirs (theirs) v3, commit" in shown  # the branch has that name
    assert "acme/beta" not in shown


def answer(*words: str, keys: str) -> tuple[int, str]:
    """How a command ends whose every stream is a terminal at which somebody types, and what is shown there."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "prowess", *words], stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    late = threading.Timer(KILL_AFTER, process.kill)  # one that waits for more keys would wait for ever
    late.start()
    try:
        os.write(master, keys.encode())
        shown = _read_all(master)
        return process.wait(KILL_AFTER), shown
    finally:
        late.cancel()
        os.close(master)
        process.kill()
        process.wait()


# -- every command recognises the conflict -----------------------------------------------------------------------------

READERS = [
    *(("verify",), ("sync",), ("sync", "--locked"), ("sync", "--dry-run"), ("outdated",), ("update", "--yes")),
    *(("install", "./elsewhere/notes", "--project", "--yes"), ("remove", "alpha", "--yes"), ("adopt", "--yes")),
    *(("link", "alpha", "--agent", "claude-code", "--yes"), ("unlink", "alpha", "--agent", "claude-code", "--yes")),
]
USERS = [
    *[("list",), ("show", "csv-report"), ("read", "csv-report"), ("prompt",), ("preview", "csv-report")],
    *[("search", "report"), ("serve", "--check")],
]


@pytest.mark.parametrize("words", READERS, ids=" ".join)
def test_a_command_that_needs_the_lock_file_says_that_it_is_in_conflict(
    project: Path, command: Command, words: tuple[str, ...]
) -> None:
    (project / LOCK).write_text(IN_CONFLICT, encoding="utf-8")
    ran = command(*words)
    assert (ran.status, "error[lock-conflict]" in ran.err) == (3, True), ran.err
    assert "acme/alpha" in ran.err
    assert "prowess lock --merge" in ran.err
    assert (project / LOCK).read_text(encoding="utf-8") == IN_CONFLICT


@pytest.mark.parametrize("words", USERS, ids=" ".join)
def test_a_command_that_goes_on_without_the_lock_file_warns_of_the_conflict(
    project: Path, command: Command, words: tuple[str, ...]
) -> None:
    (project / LOCK).write_text(IN_CONFLICT, encoding="utf-8")
    ran = command(*words)
    assert (ran.status, "warning: [lock-conflict]" in ran.err) == (0, True), ran.err
    assert "acme/alpha" in ran.err
    assert "prowess lock --merge" in ran.err


def test_the_doctor_names_the_conflict_and_its_remedy(project: Path, command: Command) -> None:
    (project / LOCK).write_text(IN_CONFLICT, encoding="utf-8")
    ran = command("doctor")
    assert (ran.status, "acme/alpha" in ran.out, "prowess lock --merge" in ran.out) == (1, True, True)


@pytest.mark.parametrize("words", [("list",), ("show", "csv-report"), ("search", "csv")], ids=" ".join)
def test_commands_that_show_what_there_is_go_on_with_a_manifest_in_conflict(
    project: Path, command: Command, words: tuple[str, ...]
) -> None:
    text = "[settings]\n<<<<<<< HEAD\nproject = true\n=======\nproject = false\n>>>>>>> theirs\n"
    (project / "prowess.toml").write_text(text, encoding="utf-8")
    ran = command(*words)
    assert (ran.status, "csv-report" in ran.out) == (0, True)
    assert "warning: [manifest-conflict] prowess.toml is in conflict: it holds git's markers (line 2)" in ran.err
    assert "keep in an editor" in ran.err


@pytest.mark.parametrize("words", [("sync",), ("prompt",), ("call", "x"), ("verify",)], ids=" ".join)
def test_commands_that_act_or_give_skills_to_a_model_refuse_a_manifest_in_conflict(
    project: Path, command: Command, words: tuple[str, ...]
) -> None:
    text = 'skills = [\n<<<<<<< HEAD\n  "./a",\n=======\n  "./b",\n>>>>>>> theirs\n]\n'
    (project / "prowess.toml").write_text(text, encoding="utf-8")
    ran = command(*words)
    assert (ran.status, "error[manifest-conflict]" in ran.err) == (3, True)
    assert "prowess.toml is in conflict: it holds git's markers (line 2)" in ran.err


# -- as git's merge driver ---------------------------------------------------------------------------------------------


def documented_driver() -> tuple[str, str]:
    """The line of ``.gitattributes`` and the command line of the driver, as the page about teams shows them."""
    rows = (ROOT / "docs" / "how-to" / "team.md").read_text(encoding="utf-8").splitlines()
    attributes = next(row for row in rows if row.endswith("merge=prowess-lock"))
    setting = next(row for row in rows if row.startswith("git config merge.prowess-lock.driver "))
    return attributes, shlex.split(setting)[-1]


@pytest.fixture
def driven(team: Team, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Team:
    """The team with the driver set up by the two lines of the documentation."""
    attributes, driver = documented_driver()
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "prowess"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m prowess "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    team.attributes = f"{attributes}\n"
    team.git("config", "merge.prowess-lock.driver", driver)
    return team


def test_with_the_two_documented_lines_git_merges_by_itself(driven: Team) -> None:
    driven.branches(*APART)
    driven.git("merge", "--no-edit", "theirs")
    assert driven.text == TOGETHER
    driven.git("reset", "--quiet", "--hard", "HEAD~1")
    driven.git("checkout", "--quiet", "-b", "picked")
    driven.git("cherry-pick", "theirs")
    assert driven.text == TOGETHER
    driven.git("checkout", "--quiet", "theirs")
    driven.git("rebase", "--quiet", "mine")
    assert driven.text == TOGETHER


def test_the_driver_leaves_what_both_changed_in_conflict_and_the_command_ends_it(
    driven: Team, command: Command
) -> None:
    driven.branches(*CLASH)
    said = driven.git("merge", "theirs", fails=True)
    assert "both sides changed acme/alpha" in said
    assert f"CONFLICT (content): Merge conflict in {LOCK}" in said
    assert "acme/alpha (HEAD: v2, commit" in said
    assert "<<<<<<< HEAD" in driven.text
    assert 'name = "acme/gamma"' in driven.text.partition("<<<<<<<")[0] + driven.text.partition(">>>>>>>")[2]
    assert command("lock", "--merge", "--take", "mine").status == 0
    assert driven.text == taken("v2")


def test_the_driver_names_both_sides_as_git_does(team: Team, command: Command) -> None:
    """In a rebase HEAD is the other person's side, and the commit that is applied is one's own."""
    for name, text in zip(("base", "ours", "theirs"), CLASH, strict=True):
        (team.root / name).write_text(text, encoding="utf-8")
    files = ("--base", "base", "--ours", "ours", "--theirs", "theirs")
    ran = command("lock", "--merge", *files, "--ours-name", "HEAD", "--theirs-name", "1a2b3c4 (Update alpha)")
    assert ran.status == 1
    assert "both sides changed acme/alpha (HEAD: v2, commit" in ran.err
    assert ", 1a2b3c4 (Update alpha): v3, commit" in ran.err
    assert "ours" not in ran.err
    merged = (team.root / "ours").read_text(encoding="utf-8")
    assert ("<<<<<<< HEAD\n" in merged, ">>>>>>> 1a2b3c4 (Update alpha)\n" in merged) == (True, True)


def test_in_a_rebase_the_command_names_the_commits_of_both_owners(driven: Team, command: Command) -> None:
    driven.branches(*CLASH)
    driven.git("config", "merge.prowess-lock.driver", "false")
    driven.git("rebase", "theirs", fails=True)
    text = driven.text.replace("", "")
    commit = driven.git("rev-parse", "--short", "mine").strip()
    (driven.root / LOCK).write_text(f"<<<<<<< HEAD\n{text}=======\n{text}>>>>>>> {commit} (mine)\n", encoding="utf-8")
    ran = command("lock", "--merge")
    assert ran.status == 1
    assert re.split(r"  +", ran.out.splitlines()[0]) == ["skill", f"mine ({commit} (mine))", "theirs (HEAD)"]
    assert [word for word in ran.out.splitlines()[1].split() if word.startswith("v")] == ["v2,", "v3,"]


@pytest.mark.parametrize("merged", [False, True])
def test_a_merge_of_the_lock_file_warns_of_a_manifest_in_conflict(team: Team, command: Command, merged: bool) -> None:
    if not merged:
        team.branches(*APART)
        team.git("merge", "theirs", fails=True)
    text = 'skills = [\n<<<<<<< HEAD\n  "./a",\n=======\n  "./b",\n>>>>>>> theirs\n]\n'
    (team.root / "prowess.toml").write_text(text, encoding="utf-8")
    ran = command("lock", "--merge")
    assert ran.status == 0
    assert "[manifest-conflict] prowess.toml is in conflict too: it holds git's markers (line 2)" in ran.err
    assert "hint: keep in an editor" in ran.err


def test_a_side_that_no_driver_can_read_is_lost_by_nobody(team: Team, command: Command) -> None:
    """The driver's file is the result to git: with our side alone in it, 'git add' would drop the other."""
    for name, text in (("base", BASE), ("ours", CLASH[1]), ("theirs", "what is this")):
        (team.root / name).write_text(text, encoding="utf-8")
    ran = command("lock", "--merge", "--base", "base", "--ours", "ours", "--theirs", "theirs")
    assert (ran.status, "error[bad-lock]" in ran.err) == (3, True)
    assert (team.root / "ours").read_text(encoding="utf-8") == (
        f"<<<<<<< HEAD\n{CLASH[1]}=======\nwhat is this\n>>>>>>> the commits to merge\n"
    )


def test_three_files_without_an_ancestor_are_merged(team: Team, command: Command) -> None:
    for name, text in (("base", ""), ("ours", lock(alpha="v1")), ("theirs", "")):
        (team.root / name).write_text(text, encoding="utf-8")
    assert command("lock", "--merge", "--base", "base", "--ours", "ours", "--theirs", "theirs").status == 0
    assert (team.root / "ours").read_text(encoding="utf-8") == lock(alpha="v1")
    assert command("lock", "--merge", "--base", "ours", "--ours", "theirs", "--theirs", "ours").status == 0
    assert (team.root / "theirs").read_text(encoding="utf-8") == EMPTY_LOCK_TEXT


@pytest.mark.parametrize(
    "words",
    [("--take", "mine"), ("--merge", "--ours", "x"), ("--merge", "--base", "x"), ("--merge", "--take", "both")],
    ids=str,
)
def test_a_command_line_that_lacks_something_is_refused(command: Command, words: tuple[str, ...]) -> None:
    assert command("lock", *words).status == 2

"""Whose installs a command means: inside a project the project's, elsewhere the user's; ``--user`` and ``--all``."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.lockfile.read import read_lock
from tests.repositories import Repository

if TYPE_CHECKING:
    from tests.cli.conftest import Command

COMMANDS: dict[str, tuple[str, ...]] = {
    "update": ("update", "--yes"),
    "outdated": ("outdated",),
    "verify": ("verify",),
    "sync": ("sync",),
    "list --installed": ("list", "--installed"),
}
"""The commands that mean every install of a scope."""


@pytest.fixture
def notes(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repositories" / "notes")
    made.skill("")
    made.commit()
    return made


@pytest.fixture
def both(command: Command, notes: Repository) -> Repository:
    """One skill is installed for the project and for the user, and its source has something newer."""
    for words in (("--project",), ()):
        assert command("install", notes.address, *words, "--yes").status == 0
    notes.skill("", body="Newer.\n")
    notes.commit()
    return notes


@pytest.fixture
def outside(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder is in no project."""
    folder = project.parent / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def own_lock(project: Path) -> str:
    return str(project.parent / ".config" / "prowess")


def is_newer(project: Path) -> dict[str, bool]:
    """Whether the project's install, and the user's, are at the newest state."""
    places = {"project": project / ".prowess/skills", "user": project.parent / ".config/prowess/skills"}
    return {
        name: "Newer." in (place / "local/notes/SKILL.md").read_text(encoding="utf-8") for name, place in places.items()
    }


# -- update, outdated, verify, sync, list, remove ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "newer"),
    [
        ((), {"project": True, "user": False}),
        (("--user",), {"project": False, "user": True}),
        (("--all",), {"project": True, "user": True}),
        (("notes",), {"project": True, "user": False}),
        (("notes", "--user"), {"project": False, "user": True}),
        (("notes", "--all"), {"project": True, "user": True}),
    ],
)
@pytest.mark.usefixtures("both")
def test_an_update_changes_the_installs_that_are_meant(
    command: Command, project: Path, words: tuple[str, ...], newer: dict[str, bool]
) -> None:
    ran = command("update", "--yes", *words)
    assert (ran.status, is_newer(project)) == (0, newer)
    assert command("update", "--yes", "--all").status == 0
    assert is_newer(project) == {"project": True, "user": True}


@pytest.mark.usefixtures("both")
def test_a_subfolder_of_a_project_is_inside_of_it(
    command: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "docs").mkdir()
    monkeypatch.chdir(project / "docs")
    assert command("update", "--yes").status == 0
    assert is_newer(project) == {"project": True, "user": False}


@pytest.mark.usefixtures("both", "outside")
def test_outside_of_every_project_the_own_installs_are_meant(command: Command, project: Path) -> None:
    assert command("outdated", "--json").data["outdated"][0]["location"] == "user"
    assert command("update", "--yes").status == 0
    assert is_newer(project) == {"project": False, "user": True}
    assert command("verify").out == "1 skill installed, all as the lock files say.\n"
    assert command("remove", "notes", "--yes").status == 0
    assert (read_lock(own_lock(project)), [*read_lock(str(project))]) == ({}, ["local/notes"])


@pytest.mark.usefixtures("both")
def test_the_home_folder_is_not_a_project(command: Command, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project.parent / ".git").mkdir()
    monkeypatch.chdir(project.parent)
    assert command("update", "--yes").status == 0
    assert is_newer(project) == {"project": False, "user": True}


@pytest.mark.usefixtures("both")
def test_outdated_asks_about_the_installs_that_are_meant(command: Command) -> None:
    found = {
        words: [one["location"] for one in command("outdated", "--json", *words).data["outdated"]]
        for words in ((), ("--user",), ("--all",))
    }
    assert found == {(): ["project"], ("--user",): ["user"], ("--all",): ["project", "user"]}


@pytest.mark.usefixtures("both")
def test_verify_and_sync_leave_the_other_scope_alone(command: Command, project: Path) -> None:
    place = project.parent / ".config/prowess/skills/local/notes"
    (place / "SKILL.md").write_text("mine", encoding="utf-8")
    assert (command("verify").status, command("sync", "--locked").status) == (0, 0)
    assert {command("verify", word).status for word in ("--user", "--all")} == {1}
    assert command("sync", "--locked", "--all").status == 3
    assert (place / "SKILL.md").read_text(encoding="utf-8") == "mine"
    shutil.rmtree(project / ".prowess")
    ran = command("sync", "--all", "--yes")
    assert (ran.status, ran.report.count("Installed "), ran.report.count("Restored ")) == (0, 1, 1)
    assert (command("verify", "--all").status, command("sync", "--locked", "--all").status) == (0, 0)


@pytest.mark.usefixtures("both")
@pytest.mark.parametrize(("words", "left"), [((), ["user"]), (("--user",), ["project"]), (("--all",), [])])
def test_remove_removes_the_installs_that_are_meant(command: Command, words: tuple[str, ...], left: list[str]) -> None:
    ran = command("remove", "notes", "--yes", *words)
    assert (ran.status, [one.location for one in prowess.Installer().list()]) == (0, left)
    assert ran.report == "Removed @local/notes.\n" * (2 - len(left))


def test_the_installs_of_a_scope_are_listed(command: Command, project: Path, both: Repository) -> None:
    (project / ".prowess/skills/acme/foreign").mkdir(parents=True)
    shutil.rmtree(project / ".prowess/skills/local")
    listed = {
        words: [(one["location"], one["name"], one["state"]) for one in command("list", *words).data["installed"]]
        for words in (
            ("--installed", "--json"),
            ("--installed", "--json", "--user"),
            ("--installed", "--json", "--all"),
        )
    }
    own = ("user", "local/notes", "recorded")
    projects = [("project", "acme/foreign", "not in the lock file"), ("project", "local/notes", "missing")]
    assert [*listed.values()] == [projects, [own], [*projects, own]]
    text = command("list", "--installed", "--all").out
    assert f"local/notes  {both.path}" in text
    assert "Installed for the project" in text
    assert "Installed for you" in text


@pytest.mark.parametrize("words", [("--user",), ("--all",), ("--installed", "--agents"), ("--installed", "skills")])
def test_options_of_the_list_that_contradict_each_other_are_refused(command: Command, words: tuple[str, ...]) -> None:
    assert command("list", *words).status == 2


def test_user_and_all_contradict_each_other(command: Command) -> None:
    ran = command("verify", "--user", "--all")
    assert (ran.status, "exclude each other: name one" in ran.err) == (2, True)


@pytest.mark.usefixtures("both")
@pytest.mark.parametrize("broken", ["edited", "in conflict"])
def test_a_scope_that_cannot_be_synced_does_not_stop_the_other(command: Command, project: Path, broken: str) -> None:
    if broken == "edited":
        (project / ".prowess/skills/local/notes/SKILL.md").write_text("mine", encoding="utf-8")
    else:
        (project / "prowess.lock").write_text("<<<<<<< HEAD\n=======\n>>>>>>> x\n", encoding="utf-8")
    own = project.parent / ".config/prowess/skills/local/notes"
    shutil.rmtree(own)
    ran = command("sync", "--all", "--locked", "--dry-run")
    assert (ran.status, "restore local/notes" in ran.out) == (3, True)
    ran = command("sync", "--all", "--locked")
    assert (ran.status, "Restored local/notes for the user" in ran.out) == (3, True)
    assert f"[lock-{'mismatch' if broken == 'edited' else 'conflict'}]" in ran.err
    assert (own / "SKILL.md").exists()
    ran = command("sync", "--all", "--locked")
    assert (ran.status, ran.out) == (3, "Nothing else was to be done.\n")
    codes = [issue["code"] for issue in command("sync", "--all", "--locked", "--json").data["issues"]]
    assert codes == [f"lock-{'mismatch' if broken == 'edited' else 'conflict'}"]


# -- link, unlink, diff, backups ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("both")
def test_links_and_diffs_are_those_of_the_installs_that_are_meant(command: Command, project: Path) -> None:
    for words, linked in (((), [True, False]), (("--user",), [True, True])):
        assert command("link", "notes", "--agent", "claude-code", "--yes", *words).status == 0
        assert [(folder / ".claude/skills/notes").is_symlink() for folder in (project, project.parent)] == linked
    assert command("unlink", "notes", "--agent", "claude-code", "--yes", "--all").status == 0
    assert not (project / ".claude/skills").exists()
    assert not (project.parent / ".claude/skills/notes").is_symlink()
    paths = {
        words: [one["path"] for one in command("diff", "notes", "--json", *words).data["diffs"]]
        for words in ((), ("--user",), ("--all",))
    }
    its, own = (
        str(folder / "local/notes") for folder in (project / ".prowess/skills", Path(own_lock(project), "skills"))
    )
    assert paths == {(): [its], ("--user",): [own], ("--all",): [its, own]}


def test_unlinking_for_an_agent_that_shares_its_folder_says_why_nothing_goes(
    command: Command, project: Path, notes: Repository
) -> None:
    command("install", notes.address, "--project", "--yes")
    ran = command("unlink", "notes", "--agent", "codex", "--yes")
    assert (ran.status, ran.report.startswith("Nothing to do: Codex looks in the shared folder")) == (0, True)
    assert "[shared-link] codex looks in .agents/skills with many other agents" in ran.err
    assert (project / ".agents/skills/notes").is_symlink()


@pytest.mark.usefixtures("both")
def test_backups_are_those_of_the_installs_that_are_meant(command: Command, project: Path) -> None:
    (project / ".prowess/skills/local/notes/SKILL.md").write_text("mine", encoding="utf-8")
    assert command("sync", "--yes").status == 0
    counts = [len(command("backups", "--json", *words).data["backups"]) for words in ((), ("--user",), ("--all",))]
    assert counts == [1, 0, 1]
    assert "without --user the project's are meant" in command("backups", "--user").err


# -- what is said where nothing is found -------------------------------------------------------------------------------


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_project_without_installs_is_named_with_the_other_option(
    command: Command, notes: Repository, words: tuple[str, ...]
) -> None:
    command("install", notes.address, "--yes")
    ran = command(*words)
    assert (ran.status, "--user means your own installs, --all both" in ran.err) == (0, True)
    assert "the project" in ran.err
    assert "--user means" not in command(*words, "--user").err


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.usefixtures("outside")
def test_outside_of_a_project_a_command_says_so(command: Command, words: tuple[str, ...]) -> None:
    ran = command(*words)
    assert (ran.status, "nothing is installed for you, and this folder is in no project" in ran.err) == (0, True)


@pytest.mark.parametrize("words", [("remove", "--yes"), ("update", "--yes"), ("diff",)])
def test_a_name_that_only_the_other_scope_has_says_so(
    command: Command, project: Path, notes: Repository, words: tuple[str, ...]
) -> None:
    command("install", notes.address, "--yes")
    ran = command(*words, "notes")
    assert (ran.status, ran.err.count("'notes' is not installed for the project .; you have it: say --user")) == (3, 1)
    assert [*read_lock(own_lock(project))] == ["local/notes"]
    command("remove", "notes", "--user", "--yes")
    command("install", notes.address, "--project", "--yes")
    assert "the project has it: leave --user out" in command(*words, "notes", "--user").err


def test_a_manifest_in_pyproject_makes_a_folder_a_project(command: Command, outside: Path, notes: Repository) -> None:
    command("install", notes.address, "--yes")
    (outside / "pyproject.toml").write_text(f'[tool.prowess]\nskills = ["{notes.address}"]\n', encoding="utf-8")
    assert (command("verify").status, command("sync", "--locked").status) == (1, 3)
    assert command("sync", "--yes").status == 0
    assert [*read_lock(str(outside))] == ["local/notes"]


# -- the library -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("both")
def test_a_program_names_the_installs_that_it_means(project: Path) -> None:
    installer = prowess.Installer()
    assert installer.default_location == "project"
    assert [one.location for one in installer.outdated(location="user")] == ["user"]
    assert [one.location for one in installer.list(location="project")] == ["project"]
    installer.update(location="user")
    assert is_newer(project) == {"project": False, "user": True}
    installer.remove("@local/notes", location="user")
    with pytest.raises(prowess.NotInstalledError):
        installer.remove("@local/notes", location="user")
    with pytest.raises(prowess.SourceError) as caught:
        installer.verify(location="home")  # type: ignore[arg-type]
    assert caught.value.code == "bad-argument"
    assert installer.remove("@local/notes") == project / ".prowess/skills/local/notes"

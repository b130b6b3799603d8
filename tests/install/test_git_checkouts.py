"""Checkouts as git makes them on Windows: committed links that arrive as files, and line ends that git changes."""

from __future__ import annotations

import errno
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.files import syscalls
from tests.install.teams import Developer, Team
from tests.repositories import skill_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SKILL = ".agents/skills/pdf"


@pytest.fixture
def team(tmp_path: Path) -> Team:
    """Ada has links, and committed them. The checkout of Ben has no links."""
    team = Team(tmp_path, "pdf", "evil")
    team.ben.git("config", "core.symlinks", "false")
    return team


@contextmanager
def working_without_links(developer: Developer) -> Iterator[prowess.Installer]:
    """An installer on a system that makes no links."""

    def refuse(name: str, moment: str, path: str) -> None:
        if (name, moment) == ("symlink", "before"):
            raise OSError(errno.EPERM, "no links here", path)

    before = syscalls.set_watcher(refuse)
    try:
        with developer.working() as installer:
            yield installer
    finally:
        syscalls.set_watcher(before)


def status(developer: Developer) -> str:
    return developer.git("status", "--porcelain")


# -- core.symlinks=false -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("locked", [False, True])
def test_a_link_that_arrives_as_a_file_becomes_a_link_again(team: Team, locked: bool) -> None:
    team.install(team.ada, "pdf")
    team.ben.pull()
    link = team.ben.project / SKILL
    assert link.read_text(encoding="utf-8") == "../../.prowess/skills/local/pdf"
    with team.ben.working() as installer:
        installer.sync(locked=locked)
        assert installer.verify() == ()
    assert link.is_symlink()
    assert status(team.ben) == ""
    assert team.ben.backups() == []


@pytest.mark.parametrize("locked", [False, True])
def test_without_links_a_sync_puts_a_copy_there_and_git_stays_clean(team: Team, locked: bool) -> None:
    team.install(team.ada, "pdf")
    team.ben.pull()
    with working_without_links(team.ben) as installer:
        installer.sync(locked=locked)
        assert installer.verify() == ()
        assert [issue.code for issue in installer.issues] == ["tracked-link"]
    copy = team.ben.project / SKILL
    assert copy.is_dir()
    assert not copy.is_symlink()
    assert status(team.ben) == ""
    assert team.ben.backups() == []
    team.ben.publish("nothing of this is committed")
    assert team.ben.git("ls-tree", "HEAD", SKILL).startswith("120000 ")


def test_a_pulled_update_reaches_a_copy_in_place_of_a_link(team: Team) -> None:
    team.install(team.ada, "pdf")
    team.ben.pull()
    with working_without_links(team.ben) as installer:
        installer.sync()
    team.release("pdf", 2)
    with team.ada.working() as installer:
        installer.update()
    team.ada.publish()
    team.ben.pull()
    with working_without_links(team.ben) as installer:
        assert {issue.code for issue in installer.verify()} == {"not-synced"}
        installer.sync(locked=True)
        assert installer.verify() == ()
    assert "Version 2" in (team.ben.project / SKILL / "SKILL.md").read_text(encoding="utf-8")
    assert status(team.ben) == ""
    assert team.ben.backups() == []


def test_a_source_where_some_agent_looks_is_never_taken_for_a_copy(team: Team) -> None:
    """Some agents look in ``skills``, and a source there is equal to the copy that is in place of its link."""
    source = team.ada.project / "skills/notes/SKILL.md"
    source.parent.mkdir(parents=True)
    source.write_text(skill_text("notes"), encoding="utf-8")
    with team.ada.working() as installer:
        installer.install("./skills/notes", project=True)
    team.ada.publish()
    team.ben.pull()
    with working_without_links(team.ben) as installer:
        installer.sync()
        installer.sync(locked=True)
    copy = team.ben.project / ".agents/skills/notes"
    assert (copy / "SKILL.md").is_file()
    with team.ada.working() as installer:
        installer.remove("@local/notes")
    team.ada.publish()
    shutil.rmtree(copy)
    team.ben.pull()
    with working_without_links(team.ben) as installer:
        installer.sync(locked=True)
    assert (team.ben.project / "skills/notes/SKILL.md").is_file()


def test_an_edited_copy_in_place_of_a_link_is_reported_and_kept(team: Team) -> None:
    team.install(team.ada, "pdf")
    team.ben.pull()
    with working_without_links(team.ben) as installer:
        installer.sync()
        (team.ben.project / SKILL / "SKILL.md").write_text(skill_text("pdf", "mine"), encoding="utf-8")
        assert [(issue.code, issue.field) for issue in installer.verify()] == [("changed-file", "SKILL.md")]
        catalog = prowess.discover(cwd=team.ben.project, home=team.ben.home, verify="lock")
        assert "changed-since-locked" in {issue.code for issue in catalog.issues}
        with pytest.raises(prowess.NameTakenError) as caught:
            installer.sync()
    assert caught.value.hint == "move it away or remove it; 'install' can also take its place, with replace=True"
    assert (team.ben.project / SKILL / "SKILL.md").read_text(encoding="utf-8") == skill_text("pdf", "mine")


def test_a_removal_of_a_copy_in_place_of_a_link_is_seen_by_git(team: Team) -> None:
    team.install(team.ada, "pdf")
    team.ben.pull()
    with working_without_links(team.ben) as installer:
        installer.sync()
        installer.remove("@local/pdf")
    assert f"D {SKILL}" in status(team.ben)
    assert SKILL not in (team.ben.project / ".git" / "info" / "exclude").read_text(encoding="utf-8")


def test_after_a_move_to_a_system_with_links_git_sees_the_committed_link(team: Team) -> None:
    team.install(team.ada, "pdf")
    team.ben.pull()
    with working_without_links(team.ben) as installer:
        installer.sync()
    with team.ben.working() as installer:
        installer.sync()
        installer.install(team.source.address, project=True, select=["pdf"], replace=True)
    assert (team.ben.project / SKILL).is_symlink()
    assert not [row for row in team.ben.git("ls-files", "-t").splitlines() if row.startswith("S ")]


def test_a_removal_of_a_link_that_arrived_as_a_file_takes_the_file(team: Team) -> None:
    team.install(team.ada, "pdf")
    team.ben.pull()
    with team.ben.working() as installer:
        installer.remove("@local/pdf")
        assert installer.issues == ()
    assert not (team.ben.project / SKILL).exists()


@pytest.mark.parametrize(
    "text", ["../../../elsewhere", "notes of mine", "../../.prowess/skills/local/pdf\n", "", "\0", "x" * 5000]
)
def test_any_other_file_in_place_of_a_link_stays_where_it_is(team: Team, text: str) -> None:
    team.install(team.ada, "pdf")
    team.ben.pull()
    file = team.ben.project / SKILL
    file.write_bytes(text.encode())
    with team.ben.working() as installer, pytest.raises(prowess.NameTakenError):
        installer.sync(locked=True)
    assert file.read_bytes() == text.encode()


def test_git_that_cannot_be_asked_costs_a_warning(team: Team) -> None:
    team.install(team.ada, "pdf")
    team.ben.pull()
    lock = team.ben.project / ".git" / "index.lock"
    lock.touch()  # as another git at work makes it
    with working_without_links(team.ben) as installer:
        installer.sync()
        (issue,) = installer.issues
    assert (issue.code, issue.severity) == ("tracked-link", "warning")
    assert "git failed" in issue.message


# -- core.autocrlf=true ------------------------------------------------------------------------------------------------

ATTRIBUTES = ["prowess.lock merge=prowess-lock", "/.agents/skills/pdf/** -text"]


@pytest.fixture
def crlf_team(tmp_path: Path) -> Team:
    """Ada commits copies. The checkout of Ben gets CRLF where git may write it."""
    team = Team(tmp_path, "pdf", "evil")
    team.ben.git("config", "core.autocrlf", "true")
    with team.ada.working() as installer:
        installer.install(team.source.address, project=True, select=["pdf"], copy=True)
    return team


def attributes(developer: Developer) -> list[str]:
    return (developer.project / ".gitattributes").read_text(encoding="utf-8").splitlines()


def without_attributes(team: Team) -> None:
    """Have a project whose copies were committed before anything kept git from changing them."""
    (team.ada.project / ".gitattributes").unlink()
    team.ada.publish()
    team.ben.pull()
    assert b"\r\n" in (team.ben.project / SKILL / "SKILL.md").read_bytes()


def test_copies_verify_in_a_clean_clone_whatever_line_ends_git_writes(crlf_team: Team) -> None:
    crlf_team.ada.publish()
    crlf_team.ben.pull()
    assert attributes(crlf_team.ada) == ATTRIBUTES
    with crlf_team.ben.working() as installer:
        assert installer.verify() == ()
        assert installer.sync(locked=True) == ()
    assert status(crlf_team.ben) == ""


def test_the_attributes_follow_the_copies_and_other_lines_stay(crlf_team: Team) -> None:
    file = crlf_team.ada.project / ".gitattributes"
    file.write_bytes(b"* text=auto\r\n# mine\r\n" + file.read_bytes().replace(b"\n", b"\r\n"))
    with crlf_team.ada.working() as installer:
        installer.install(crlf_team.source.address, project=True, select=["evil"], copy=True, agents=["claude-code"])
        assert attributes(crlf_team.ada) == [
            *("* text=auto", "# mine", *ATTRIBUTES),
            *("/.agents/skills/evil/** -text", "/.claude/skills/evil/** -text"),
        ]
        assert file.read_bytes().count(b"\r\n") == len(file.read_bytes().splitlines())
        installer.remove("@local/evil")
        assert attributes(crlf_team.ada) == ["* text=auto", "# mine", *ATTRIBUTES]
        installer.remove("@local/pdf")
    assert attributes(crlf_team.ada) == ["* text=auto", "# mine", ATTRIBUTES[0]]


def test_a_file_that_held_only_lines_for_copies_goes_with_them(crlf_team: Team) -> None:
    file = crlf_team.ada.project / ".gitattributes"
    file.write_text(f"{ATTRIBUTES[1]}\n", encoding="utf-8")
    with crlf_team.ada.working() as installer:
        installer.remove("@local/pdf")
        assert installer.issues == ()
    assert not file.exists()


def test_a_sync_writes_the_attributes_that_are_missing(crlf_team: Team) -> None:
    (crlf_team.ada.project / ".gitattributes").unlink()
    with crlf_team.ada.working() as installer:
        installer.sync(locked=True)
        assert not (crlf_team.ada.project / ".gitattributes").exists()
        installer.sync()
        assert [issue.code for issue in installer.issues] == ["git-attributes"]
    assert attributes(crlf_team.ada) == ATTRIBUTES[1:]


def test_line_ends_that_git_changed_are_told_from_an_edit(crlf_team: Team) -> None:
    without_attributes(crlf_team)
    with crlf_team.ben.working() as installer:
        assert [(issue.code, issue.field) for issue in installer.verify()] == [("changed-line-ends", "SKILL.md")]
        installer.sync(locked=True)
        assert installer.verify() == ()
    assert crlf_team.ben.backups() == []
    crlf_team.ben.git("add", "--all")  # until then git remembers the size of the file that it wrote
    assert status(crlf_team.ben) == ""


def test_an_update_needs_no_force_for_line_ends_that_git_changed(crlf_team: Team) -> None:
    without_attributes(crlf_team)
    crlf_team.release("pdf", 2)
    with crlf_team.ben.working() as installer:
        assert [result.status for result in installer.update()] == ["updated"]
        assert installer.verify() == ()
    assert crlf_team.ben.backups() == []


def test_an_edit_beside_changed_line_ends_is_an_edit(crlf_team: Team) -> None:
    without_attributes(crlf_team)
    file = crlf_team.ben.project / SKILL / "SKILL.md"
    file.write_bytes(file.read_bytes() + b"mine\r\n")
    with crlf_team.ben.working() as installer:
        assert [issue.code for issue in installer.verify()] == ["changed-file"]
        with pytest.raises(prowess.LockMismatchError):
            installer.sync(locked=True)
        installer.sync()
    assert len(crlf_team.ben.backups()) == 1


def test_line_feeds_in_place_of_what_was_installed_with_crlf_are_recognized(tmp_path: Path) -> None:
    """As git commits it on a machine with ``core.autocrlf=true``."""
    team = Team(tmp_path)
    team.source.write("skills/pdf/SKILL.md", skill_text("pdf").replace("\n", "\r\n"))
    team.source.commit()
    with team.ada.working() as installer:
        installer.install(team.source.address, project=True, copy=True)
        file = team.ada.project / SKILL / "SKILL.md"
        file.write_bytes(file.read_bytes().replace(b"\r\n", b"\n"))
        assert [issue.code for issue in installer.verify()] == ["changed-line-ends"]


def test_attributes_that_cannot_be_written_are_named_and_the_install_counts(crlf_team: Team) -> None:
    file = crlf_team.ada.project / ".gitattributes"
    (crlf_team.base / "elsewhere").write_text("not ours\n", encoding="utf-8")
    file.unlink()
    file.symlink_to(crlf_team.base / "elsewhere")
    with crlf_team.ada.working() as installer:
        installer.install(crlf_team.source.address, project=True, select=["evil"], copy=True)
        (issue,) = [issue for issue in installer.issues if issue.code == "git-attributes"]
        assert installer.verify() == ()
    assert issue.severity == "warning"
    assert "/.agents/skills/evil/** -text" in issue.message
    assert (crlf_team.base / "elsewhere").read_text(encoding="utf-8") == "not ours\n"


def test_outside_of_git_copies_have_no_attributes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "home" / "project"
    skill = tmp_path / "pdf" / "SKILL.md"
    for folder in (project, skill.parent):
        folder.mkdir(parents=True)
    skill.write_text(skill_text("pdf"), encoding="utf-8")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(project)
    prowess.Installer().install_local(skill.parent, project=True, copy=True)
    assert (project / SKILL).is_dir()
    assert not (project / ".gitattributes").exists()

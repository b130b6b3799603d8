"""A source that goes back behind what is installed: an update stays with the newer, and says so."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.fetch.git.process import GitProgram
from prowess.files.directory import folder_size
from prowess.lockfile.read import read_lock
from tests.git_servers import http
from tests.web_sites import Site, skill_md

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.install.conftest import World
    from tests.repositories import Repository


class Published:
    """A repository with three versions on a branch, the last of them installed."""

    def __init__(self, world: World, installer: prowess.Installer, ref: str = "") -> None:
        self.world, self.installer = world, installer
        self.repo: Repository = world.repository("pdf")
        self.commits = [self.repo.git("rev-parse", "HEAD")]
        for word in ("Two", "Three"):
            self.repo.skill("", body=f"{word}.\n")
            self.commits.append(self.repo.commit())
        if ref == "tag":
            self.repo.git("tag", "stable")
        self.path = installer.install(self.repo.address + {"": "", "tag": "#stable"}.get(ref, f"#{ref}"), project=True)

    @property
    def body(self) -> str:
        return (self.path / "SKILL.md").read_text(encoding="utf-8").rpartition("---\n")[2]

    @property
    def locked(self) -> str:
        return read_lock(str(self.world.project))["local/pdf"].commit

    def stays(self) -> None:
        """Assert that every kind of update keeps what is installed, and says so."""
        (dry,) = self.installer.update(dry_run=True)
        assert [issue.code for issue in self.installer.issues] == ["rolled-back"]
        assert self.installer.outdated() == ()
        assert [(issue.code, issue.severity) for issue in self.installer.issues] == [("rolled-back", "warning")]
        (all_of_them,) = self.installer.update()
        assert [issue.code for issue in self.installer.issues] == ["rolled-back"]
        (update,) = self.installer.update("@local/pdf")
        assert [issue.code for issue in self.installer.issues] == ["rolled-back"]
        assert (update, all_of_them, dry) == (update,) * 3
        assert (update.status, update.diff, self.body, self.locked) == ("current", "", "Three.\n", self.commits[2])
        assert self.installer.verify() == ()


@pytest.mark.parametrize("ref", ["", "main", "tag"])
def test_a_branch_or_tag_that_went_back_is_not_followed(world: World, installer: prowess.Installer, ref: str) -> None:
    published = Published(world, installer, ref)
    published.repo.git("reset", "--hard", "--quiet", published.commits[1])
    published.repo.git("tag", "--force", "stable")
    published.stays()
    (issue,) = installer.issues
    assert (issue.field, installer.update()[0].why) == ("local/pdf", "its source went back, and is not followed")
    assert all(commit[:12] in issue.message for commit in published.commits[1:])
    (accepted,) = installer.update("@local/pdf", allow_rollback=True)
    assert (accepted.status, accepted.after, published.body) == ("updated", published.commits[1], "Two.\n")
    assert installer.issues == ()
    (after,) = installer.update()
    assert (after.status, installer.issues) == ("current", ())


def test_old_files_in_a_new_commit_beside_the_locked_one_are_not_taken(
    world: World, installer: prowess.Installer
) -> None:
    published = Published(world, installer)
    published.repo.git("reset", "--hard", "--quiet", published.commits[0])
    published.repo.commit("looks new")
    published.stays()


def test_a_rewritten_history_without_the_locked_commit_is_not_taken(world: World, installer: prowess.Installer) -> None:
    published = Published(world, installer)
    published.repo.git("checkout", "--quiet", "--orphan", "other")
    published.repo.skill("", body="Rewritten.\n")
    published.repo.commit()
    published.repo.git("branch", "--force", "main")
    published.repo.git("checkout", "--quiet", "main")
    published.repo.git("branch", "-D", "other")
    published.repo.git("tag", "--delete", "v1")
    published.repo.git("reflog", "expire", "--expire=now", "--all")
    published.repo.git("gc", "--quiet", "--prune=now")
    published.stays()
    (accepted,) = installer.update("@local/pdf", allow_rollback=True)
    assert (accepted.status, published.body) == ("updated", "Rewritten.\n")


def test_going_back_with_the_same_bytes_does_not_move_the_locked_commit(
    world: World, installer: prowess.Installer
) -> None:
    published = Published(world, installer)
    published.repo.commit("nothing")
    installer.update()
    newest = published.locked
    assert newest != published.commits[2]
    published.repo.git("reset", "--hard", "--quiet", published.commits[2])
    installer.update()
    assert [issue.code for issue in installer.issues] == ["rolled-back"]
    assert published.locked == newest


@pytest.mark.parametrize("behind", [1, 100])
def test_a_branch_that_went_forward_is_followed_however_far(
    world: World, installer: prowess.Installer, behind: int
) -> None:
    published = Published(world, installer)
    published.repo.add_empty_commits(behind - 1)
    published.repo.skill("", body="Four.\n")
    new = published.repo.commit()
    (update,) = installer.update()
    assert (update.status, published.body, published.locked) == ("updated", "Four.\n", new)
    assert installer.issues == ()


def test_a_merge_of_the_locked_commit_is_followed(world: World, installer: prowess.Installer) -> None:
    published = Published(world, installer)
    published.repo.git("checkout", "--quiet", "-b", "side", published.commits[0])
    published.repo.write("references/a.md", "a\n")
    published.repo.commit()
    published.repo.git("merge", "--quiet", "--no-edit", "main")
    published.repo.git("branch", "--force", "main")
    published.repo.git("checkout", "--quiet", "main")
    (update,) = installer.update()
    assert (update.status, installer.issues) == ("updated", ())


def test_an_earlier_version_that_is_asked_for_by_name_is_taken(world: World, installer: prowess.Installer) -> None:
    published = Published(world, installer)
    (update,) = installer.update("@local/pdf@v1")
    assert (update.status, published.body) == ("updated", "Do it.\n")


def test_only_the_commits_of_a_served_repository_are_fetched_to_tell(world: World) -> None:
    written: list[int] = []

    def weighing(args: Sequence[str], cwd: str, env: Mapping[str, str]) -> bytes:
        printed = GitProgram()(args, cwd, env)
        written.append(folder_size(cwd))
        return printed

    installer = prowess.Installer(git=weighing, schemes=("http",))
    repo = world.repository("pdf")
    repo.git("config", "uploadpack.allowFilter", "true")
    repo.write("references/large.bin", os.urandom(300_000))
    repo.commit()
    repo.git("rm", "--quiet", "references/large.bin")
    repo.skill("", body="Two.\n")
    repo.commit()
    with http(world.base / "repositories") as server:
        path = installer.install(f"{server.address}/pdf/.git", project=True)
        repo.skill("", body="Three.\n")
        new = repo.commit()
        (update,) = installer.update()
        assert (update.status, update.after, update.why) == ("updated", new, "")
        repo.git("reset", "--hard", "--quiet", "HEAD~1")
        (update,) = installer.update()
    assert update.status == "current"
    assert [issue.code for issue in installer.issues] == ["rolled-back"]
    assert "Three." in (path / "SKILL.md").read_text(encoding="utf-8")
    assert max(written) < 100_000


# -- a site ------------------------------------------------------------------------------------------------------------


def test_a_site_that_went_back_is_not_followed(world: World, site: Site) -> None:  # noqa: ARG001 - its effect
    installer = prowess.Installer(schemes=("http",), allow_private=True)

    def publish(word: str) -> None:
        site.index(site.entry("pdf", skill_md("pdf", body=f"{word}.\n")))

    def body(path: Path) -> str:
        return (path / "pdf" / "SKILL.md").read_text(encoding="utf-8").rpartition("---\n")[2]

    publish("One")
    path = installer.install(site.url, project=True)
    publish("Two")
    assert [update.status for update in installer.update()] == ["updated"]
    publish("One")
    for call in (installer.update, lambda: installer.update(dry_run=True), installer.outdated):
        assert [getattr(one, "status", "") for one in call()] in ([], ["current"])
        assert [(issue.code, issue.severity) for issue in installer.issues] == [("rolled-back", "warning")]
    assert body(path) == "Two.\n"
    (update,) = installer.update(allow_rollback=True)
    assert (update.status, body(path), installer.issues) == ("updated", "One.\n", ())


def test_a_site_that_is_away_is_told_and_nothing_of_it_passes_for_current(world: World, site: Site) -> None:  # noqa: ARG001
    installer = prowess.Installer(schemes=("http",), allow_private=True)
    site.index(site.entry("pdf", skill_md("pdf")))
    installer.install(site.url, project=True)
    site.stop()
    for call in (installer.update, lambda: installer.update(dry_run=True), installer.outdated):
        (one,) = call()
        assert (one.status, "could not be asked: is an earlier version that the site announced" in one.why) == (
            "failed",
            True,
        )
        assert [issue.code for issue in installer.issues] == ["stale-index"]
    late = prowess.Installer(schemes=("http",), allow_private=True, limits=prowess.Limits(max_stale_seconds=0))
    assert [update.status for update in late.update()] == ["failed"]
    assert [(one.status, one.newest) for one in late.outdated()] == [("failed", "")]
    assert [issue.code for issue in late.issues] == ["copy-too-old"]


def test_a_locked_commit_that_is_gone_is_left_behind_by_one_command(world: World, installer: prowess.Installer) -> None:
    """In a clone: no sync can bring the commit, and an update must not ask for a sync."""
    repo = world.repository("pdf")
    path = installer.install(repo.address, project=True)
    shutil.rmtree(path)
    repo.git("checkout", "--quiet", "--orphan", "other")
    repo.skill("", body="Rewritten.\n")
    newest = repo.commit()
    repo.git("branch", "--force", "main", "other")
    repo.git("tag", "--delete", "v1")
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "--quiet", "--prune=now")
    with pytest.raises(prowess.GitError) as caught:
        installer.sync(locked=True)
    assert caught.value.message.endswith("'prowess update local/pdf --allow-rollback' takes what it has now")
    assert installer.update("@local/pdf", force=True)[0].status == "current"
    (update,) = installer.update("@local/pdf", allow_rollback=True)
    assert (update.status, update.after) == ("updated", newest)
    assert "Rewritten." in (path / "SKILL.md").read_text(encoding="utf-8")
    assert installer.verify() == ()

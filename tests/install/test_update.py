"""Newer versions: found, shown, taken; local edits kept; skills of others adopted; what is there proven."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

import prowess
from prowess.fetch.git.process import GitProgram
from prowess.installed.other_tools import compute_npm_hash, read_foreign_entries
from prowess.lockfile.read import read_lock
from tests.install.test_scale import count_calls, count_calls_of
from tests.repositories import skill_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.install.conftest import World


def test_an_update_shows_and_takes_what_the_branch_has_now(world: World, installer: prowess.Installer) -> None:
    repo = world.repository("pdf")
    path = installer.install(repo.address, project=True)
    assert installer.outdated() == ()
    (update,) = installer.update()
    assert (update.status, update.diff) == ("current", "")
    old = repo.git("rev-parse", "HEAD")
    repo.skill("", body="Newer.\n")
    repo.write("references/a.md", "a\n")
    new = repo.commit()
    (outdated,) = installer.outdated()
    assert (outdated.name, outdated.current, outdated.newest) == ("local/pdf", old, new)
    (dry,) = installer.update(dry_run=True)
    assert dry.status == "available"
    assert "Newer." not in (path / "SKILL.md").read_text(encoding="utf-8")
    (update,) = installer.update("@local/pdf")
    assert (update.status, update.before, update.after) == ("updated", old, new)
    assert "-Do it.\n+Newer.\n" in update.diff
    assert "+++ b/references/a.md" in update.diff
    assert update.diff == dry.diff
    assert "Newer." in (path / "SKILL.md").read_text(encoding="utf-8")
    assert installer.verify() == ()
    assert installer.outdated() == ()


def test_a_reference_with_a_version_moves_to_it(world: World, installer: prowess.Installer) -> None:
    repo = world.repository("pdf")
    repo.skill("", body="Two.\n")
    repo.commit(tag="v2")
    path = installer.install(f"{repo.address}#v1", project=True)
    (old,) = installer.outdated()
    assert (old.ref, old.newer, old.newest) == ("v1", "v2", old.current)
    installer.update("@local/pdf@v2")
    assert "Two." in (path / "SKILL.md").read_text(encoding="utf-8")
    assert read_lock(str(world.project))["local/pdf"].ref == "v2"
    installer.update("@local/pdf@v1")
    assert "Do it." in (path / "SKILL.md").read_text(encoding="utf-8")


def test_several_are_updated_together_and_what_keeps_one_from_it_is_its_status(
    world: World, installer: prowess.Installer
) -> None:
    names = ("csv", "pdf", "xls")
    repo = world.repository("many", *names)
    installer.install(repo.address, project=True, select=names)
    for name in names:
        repo.skill(name, body="Newer.\n")
    new = repo.commit()
    edited = installer.resolve("@local/pdf") / "SKILL.md"
    edited.write_text(skill_text("pdf", body="Mine.\n"), encoding="utf-8")
    updates = installer.update(["@local/xls", "@local/none", "@local/pdf", "@local/csv"])
    assert [(one.name, one.status) for one in updates] == [
        ("local/xls", "updated"),
        ("local/none", "failed"),
        ("local/pdf", "edited"),
        ("local/csv", "updated"),
    ]
    locked = read_lock(str(world.project))
    assert [locked[f"local/{name}"].commit == new for name in names] == [True, False, True]
    assert "Mine." in edited.read_text(encoding="utf-8")
    assert {issue.path for issue in installer.verify()} == {str(edited)}


def test_a_commit_asked_for_by_its_id_never_gets_old(world: World, installer: prowess.Installer) -> None:
    repo = world.repository("pdf")
    commit = repo.git("rev-parse", "HEAD")
    installer.install(f"{repo.address}#{commit}", project=True)
    repo.skill("", body="Newer.\n")
    repo.commit()
    assert installer.outdated() == ()
    assert [update.status for update in installer.update()] == ["current"]


def test_a_newer_commit_with_the_same_bytes_is_noted(world: World, installer: prowess.Installer) -> None:
    repo = world.repository("pdf")
    installer.install(repo.address, project=True)
    new = repo.commit()
    assert [update.status for update in installer.update()] == ["current"]
    assert read_lock(str(world.project))["local/pdf"].commit == new
    assert installer.outdated() == ()


def test_a_chosen_skill_that_moved_is_found_again(world: World, installer: prowess.Installer) -> None:
    repo = world.repository("many", "skills/a", "skills/b")
    path = installer.install(repo.address, project=True, select="a")
    repo.git("mv", "skills/a", "tools")
    repo.write("tools/SKILL.md", skill_text("a", "Moved.\n"))
    repo.commit()
    installer.update("@local/a")
    assert "Moved." in (path / "SKILL.md").read_text(encoding="utf-8")
    assert read_lock(str(world.project))["local/a"].subpath == "tools"
    assert sorted(p.name for p in path.iterdir()) == ["SKILL.md"]


def test_skills_that_come_and_go_with_a_version_are_linked_and_unlinked(
    world: World, installer: prowess.Installer
) -> None:
    repo = world.repository("many", "skills/a", "skills/b")
    installer.install(repo.address, project=True)
    repo.git("rm", "-rq", "skills/a")
    repo.skill("skills/c")
    repo.commit()
    installer.update()
    assert sorted(p.name for p in world.agents.iterdir()) == ["b", "c"]
    assert installer.verify() == ()


def test_local_edits_stop_an_update_unless_it_is_forced(world: World, installer: prowess.Installer) -> None:
    repo = world.repository("pdf")
    path = installer.install(repo.address, project=True)
    repo.skill("", body="Newer.\n")
    repo.commit()
    (path / "SKILL.md").write_text("mine", encoding="utf-8")
    with pytest.raises(prowess.LocalEditsError) as caught:
        installer.update("@local/pdf")
    assert "SKILL.md (changed)" in caught.value.message
    (update,) = installer.update()
    assert (update.status, "SKILL.md" in update.why) == ("edited", True)
    assert (path / "SKILL.md").read_text(encoding="utf-8") == "mine"
    (forced,) = installer.update("@local/pdf", force=True)
    assert forced.status == "updated"
    assert "-mine" in forced.diff
    assert "Newer." in (path / "SKILL.md").read_text(encoding="utf-8")
    (backup,) = (world.skills / ".backup").iterdir()
    assert (backup / "SKILL.md").read_text(encoding="utf-8") == "mine"
    assert installer.verify() == ()


def test_one_source_that_is_gone_does_not_keep_the_others_from_updating(
    world: World, installer: prowess.Installer
) -> None:
    one, other = world.repository("a"), world.repository("b")
    commit = one.git("rev-parse", "HEAD")
    installer.install(one.address, project=True)
    installer.install(other.address, project=True)
    (one.path / ".git").rename(one.path / "gone")
    other.skill("", body="Newer.\n")
    other.commit()
    assert [(update.name, update.status) for update in installer.update()] == [
        ("local/a", "failed"),
        ("local/b", "updated"),
    ]
    (unknown,) = installer.outdated()
    assert (unknown.name, unknown.status, unknown.current, unknown.newest) == ("local/a", "failed", commit, "")
    assert "could not be asked: " in unknown.why
    assert [(issue.field, "local/a could not be asked" in issue.message) for issue in installer.issues] == [
        ("local/a", True)
    ]


def test_folders_of_this_machine_are_updated_too(world: World, installer: prowess.Installer) -> None:
    folder = world.folder("notes")
    path = installer.install_local(folder)
    (folder / "SKILL.md").write_text(skill_text("notes", "Newer.\n"), encoding="utf-8")
    assert [one.name for one in installer.outdated()] == ["local/notes"]
    installer.update("@local/notes")
    assert "Newer." in (path / "SKILL.md").read_text(encoding="utf-8")


def test_binary_files_are_named_and_not_shown(world: World, installer: prowess.Installer) -> None:
    repo = world.repository("pdf")
    repo.write("a.bin", b"\0\1")
    repo.write("run.sh", "x\n")
    repo.commit()
    installer.install(repo.address, project=True)
    repo.write("a.bin", b"\0\2")
    repo.write("run.sh", "x\n", executable=True)
    repo.commit()
    (update,) = installer.update()
    assert update.diff == "binary or large files a/a.bin and b/a.bin differ\nmode of run.sh: executable\n"


def test_an_install_that_is_in_no_lock_file_has_no_source(world: World, installer: prowess.Installer) -> None:
    (world.skills / "acme" / "tool").mkdir(parents=True)
    with pytest.raises(prowess.InstallError) as caught:
        installer.update("@acme/tool")
    assert caught.value.code == "not-in-lock"


# -- verify ------------------------------------------------------------------------------------------------------------


def test_every_kind_of_difference_is_named(world: World, installer: prowess.Installer) -> None:
    repo = world.repository("many", "skills/a", "skills/b", "skills/c")
    repo.write("skills/a/x.txt", "x")
    repo.commit()
    path = installer.install(repo.address, project=True, agents=["claude-code"])
    (path / "skills/a/SKILL.md").write_bytes((path / "skills/a/SKILL.md").read_bytes() + b"!")
    (path / "skills/a/x.txt").unlink()
    (path / "skills/a/new.txt").write_text("x", encoding="utf-8")
    (path / "skills/b/SKILL.md").chmod(0o755)
    (path / "skills/b/leak").symlink_to("/etc/passwd")
    (world.agents / "c").unlink()
    (world.project / ".claude/skills/a").unlink()
    (world.project / ".claude/skills/a").symlink_to(world.base)
    found = {(issue.code, issue.field) for issue in installer.verify()}
    assert found == {
        ("changed-file", "skills/a/SKILL.md"),
        ("missing-file", "skills/a/x.txt"),
        ("extra-file", "skills/a/new.txt"),
        ("changed-file", "skills/b/SKILL.md"),
        ("extra-file", "skills/b/leak"),
        ("broken-link", ".agents/skills/c"),
        ("broken-link", ".claude/skills/a"),
    }


def test_an_install_whose_folder_is_gone_or_is_a_link_is_reported_as_missing(
    world: World, installer: prowess.Installer
) -> None:
    path = installer.install(world.repository("pdf").address, project=True)
    os.rename(path, world.base / "elsewhere")  # noqa: PTH104
    assert {issue.code for issue in installer.verify()} == {"missing-skill"}
    path.symlink_to(world.base / "elsewhere")
    assert "missing-skill" in {issue.code for issue in installer.verify()}


def test_verifying_where_nothing_is_installed_makes_nothing(world: World, installer: prowess.Installer) -> None:
    assert installer.verify() == ()
    assert not world.skills.exists()


# -- adopt -------------------------------------------------------------------------------------------------------------


def npm_skill(world: World, name: str, **entry: str) -> Path:
    """A skill as the npm tool leaves it: the folder, a link for Claude Code, an entry in its lock file."""
    folder = world.agents / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(skill_text(name), encoding="utf-8")
    claude = world.project / ".claude" / "skills"
    claude.mkdir(parents=True, exist_ok=True)
    (claude / name).symlink_to(f"../../.agents/skills/{name}")
    file = world.project / "skills-lock.json"
    data: dict[str, Any] = (
        json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"version": 1, "skills": {}}
    )
    data["skills"][name] = entry
    file.write_text(json.dumps(data), encoding="utf-8")
    return folder


def test_skills_of_the_npm_tool_are_adopted_with_their_source(world: World, installer: prowess.Installer) -> None:
    content = skill_text("pdf").encode()
    folder = npm_skill(
        world,
        "pdf",
        source="acme/skills",
        sourceType="github",
        ref="main",
        skillPath="skills/pdf/SKILL.md",
        computedHash=compute_npm_hash([("SKILL.md", content)]),
    )
    (adopted,) = installer.adopt()
    assert (adopted.full_name, [issue.code for issue in installer.issues]) == ("acme/pdf", ["backed-up"])
    assert folder.is_symlink()
    assert folder.resolve() == world.skills / "acme" / "pdf"
    assert (world.project / ".claude" / "skills" / "pdf").resolve() == world.skills / "acme" / "pdf"
    entry = read_lock(str(world.project))["acme/pdf"]
    assert (entry.source, entry.ref, entry.subpath) == ("https://github.com/acme/skills", "main", "skills/pdf")
    assert entry.select == "pdf"
    assert installer.verify() == ()
    assert installer.adopt() == ()


def test_what_was_changed_since_the_npm_tool_recorded_it_is_said(world: World, installer: prowess.Installer) -> None:
    npm_skill(world, "pdf", source="acme/skills", sourceType="github", computedHash="0" * 64)
    installer.adopt("pdf")
    assert [issue.code for issue in installer.issues] == ["changed-since-locked", "backed-up"]


def test_a_persons_own_skill_is_adopted_without_a_source(world: World, installer: prowess.Installer) -> None:
    own = world.project / ".claude" / "skills" / "mine"
    own.mkdir(parents=True)
    (own / "SKILL.md").write_text(skill_text("mine"), encoding="utf-8")
    (own / ".git").mkdir()
    (own / ".git" / "HEAD").write_text("x", encoding="utf-8")
    assert installer.adopt() == ()
    assert [issue.code for issue in installer.issues] == ["no-source"]
    assert (own / "SKILL.md").is_file()
    assert not world.lock.exists()
    (adopted,) = installer.adopt("mine")
    assert [issue.code for issue in installer.issues] == ["no-source", "backed-up"]
    assert adopted.full_name == "local/mine"
    assert own.is_symlink()
    assert (world.agents / "mine").is_symlink()
    assert read_lock(str(world.project))["local/mine"].kind == "adopted"
    assert installer.verify() == ()
    assert [update.status for update in installer.update()] == ["current"]
    assert installer.outdated() == ()
    (backup,) = (world.skills / ".backup").iterdir()
    assert (backup / ".git" / "HEAD").is_file()
    own.unlink()
    assert [one.full_name for one in installer.sync()] == ["local/mine"]
    assert own.is_symlink()
    assert read_lock(str(world.project))["local/mine"].kind == "adopted"
    (world.skills / "local" / "mine" / "SKILL.md").unlink()
    assert installer.sync() == ()
    assert [issue.code for issue in installer.issues] == ["no-source"]
    with pytest.raises(prowess.LockMismatchError):
        installer.sync(locked=True)


def test_a_users_own_skill_is_adopted_unnamed(world: World, installer: prowess.Installer) -> None:
    own = world.home / ".claude" / "skills" / "mine"
    own.mkdir(parents=True)
    (own / "SKILL.md").write_text(skill_text("mine"), encoding="utf-8")
    assert [one.full_name for one in installer.adopt(project=False)] == ["local/mine"]
    assert (own.is_symlink(), [issue.code for issue in installer.issues]) == (True, ["backed-up"])


@pytest.mark.parametrize("place", [".agents/skills", ".claude/skills"])
def test_a_folder_that_is_not_named_like_its_skill_gives_way_to_the_links(
    world: World, installer: prowess.Installer, place: str
) -> None:
    odd = world.project / place / "odd"
    odd.mkdir(parents=True)
    (odd / "SKILL.md").write_text(skill_text("plain"), encoding="utf-8")
    claude = world.project / ".claude" / "skills" / "odd"
    if claude != odd:
        claude.parent.mkdir(parents=True)
        claude.symlink_to("../../.agents/skills/odd")
    (adopted,) = installer.adopt("odd")
    assert not os.path.lexists(odd)
    assert not os.path.lexists(claude)
    assert (world.agents / "plain").resolve() == adopted.path
    assert (claude.parent / "plain").resolve() == adopted.path
    assert installer.verify() == ()
    found = prowess.discover(cwd=world.project, home=world.home)
    assert (found.names, found.shadowed) == (("plain",), ())
    odd.mkdir()
    (odd / "SKILL.md").write_text(skill_text("plain"), encoding="utf-8")
    with pytest.raises(prowess.NameTakenError) as caught:
        installer.adopt("odd")
    assert "installed from a folder that was adopted, not from" in caught.value.message


def test_only_what_is_there_can_be_adopted(world: World, installer: prowess.Installer) -> None:
    with pytest.raises(prowess.NotInstalledError):
        installer.adopt("nothing")
    installer.install(world.repository("pdf").address, project=True)
    assert installer.adopt() == ()


# -- the npm tool's lock file ------------------------------------------------------------------------------------------


def test_the_npm_tools_hash_is_the_real_ones(shared: Path) -> None:
    folder = shared / "reference" / "lock-golden"
    golden = json.loads((folder / "golden.json").read_text(encoding="utf-8"))
    files = [(name, (folder / "skill" / name).read_bytes()) for name in sorted(golden["order"])]
    assert compute_npm_hash(files) == golden["computedHash"]


def test_a_file_of_the_npm_tool_is_read_and_odd_entries_are_left_out(tmp_path: Path) -> None:
    assert read_foreign_entries(str(tmp_path)) == {}
    skills = {"pdf": {"source": "a/b", "sourceType": "github", "ref": None}, "../x": {"source": "a/b"}, "odd": 1}
    (tmp_path / "skills-lock.json").write_text(json.dumps({"version": 1, "skills": skills}), encoding="utf-8")
    found = read_foreign_entries(str(tmp_path))
    assert list(found) == ["pdf"]
    assert (found["pdf"].source, found["pdf"].ref) == ("a/b", "")
    for text in ("[]", "{", '{"skills": []}', "[" * 100_000):
        (tmp_path / "skills-lock.json").write_text(text, encoding="utf-8")
        with pytest.raises(prowess.InstallError) as caught:
            read_foreign_entries(str(tmp_path))
        assert caught.value.code == "bad-lock"


def test_a_skill_pinned_by_the_first_digits_of_a_commit_never_gets_old(
    world: World, installer: prowess.Installer
) -> None:
    repo = world.repository("pdf")
    old = repo.git("rev-parse", "HEAD")
    repo.skill("", body="Another.\n")
    repo.commit()
    installer.install(f"{repo.address}#{old[:9]}", project=True)
    entry = read_lock(str(world.project))["local/pdf"]
    assert (entry.ref, entry.commit) == (old[:9], old)
    assert installer.outdated() == ()
    assert installer.issues == ()


# -- each source is asked once -----------------------------------------------------------------------------------------


class CountedGit:
    """Git, and how often it reached a repository."""

    def __init__(self) -> None:
        self.requests: list[str] = []

    def __call__(self, args: Sequence[str], cwd: str, env: Mapping[str, str]) -> bytes:
        if args[0] in {"fetch", "ls-remote"}:
            self.requests.append(args[0])
        return GitProgram(prowess.Limits())(args, cwd, env)


def test_a_repository_is_asked_once_for_all_of_its_skills(world: World) -> None:
    """Also for its tags, for several versions, and for skills that were installed at different commits."""
    names = [f"skill-{number}" for number in range(5)]
    repo = world.repository("many", *names)
    git = CountedGit()
    installer = prowess.Installer(git=git)
    for number, name in enumerate(names):
        repo.write(f"{name}/more.md", f"{number}")
        repo.commit(tag=f"v1.{number}.0")
        ref = f"#v1.{number}.0" if number % 2 else ""
        installer.install(f"{repo.address}{ref}", project=True, select=name)
    repo.skill(names[0], body="Newer.\n")
    repo.commit(tag="v1.9.0")
    git.requests.clear()
    found = {one.name: (one.status, one.newer) for one in installer.outdated()}
    assert found == {f"local/{name}": ("outdated", "v1.9.0" if number % 2 else "") for number, name in enumerate(names)}
    # The versions, the history that has the installed commits, and the tags.
    assert git.requests == ["ls-remote", "fetch", "ls-remote"]
    git.requests.clear()
    statuses = [one.status for one in installer.update([f"@local/{name}" for name in names[::2]])]
    assert statuses == ["updated", "current", "current"]
    assert git.requests == ["fetch", "fetch"], "the commit with its files, and the history"


def test_a_repository_named_by_a_relative_path_is_asked_once(world: World) -> None:
    names = ["csv", "notes", "pdf"]
    repo = world.repository("many", *names)
    (world.project / "many").symlink_to(repo.path)
    git = CountedGit()
    installer = prowess.Installer(git=git)
    installer.install("./many#main", project=True, select=names)
    repo.skill("csv", body="Newer.\n")
    repo.commit()
    git.requests.clear()
    assert [one.status for one in installer.update()] == ["updated", "current", "current"]
    assert git.requests == ["fetch", "fetch"], "the commit with its files, and the history"


def test_a_folder_is_read_once_for_all_of_its_skills(world: World, installer: prowess.Installer) -> None:
    source = world.base / "source"
    for name in ("csv", "notes", "pdf"):
        (source / name).mkdir(parents=True)
        (source / name / "SKILL.md").write_text(skill_text(name), encoding="utf-8")
    installer.install(str(source), project=True, select=["csv", "notes", "pdf"])
    (source / "csv" / "SKILL.md").write_text(skill_text("csv", "Newer.\n"), encoding="utf-8")
    counts = count_calls(installer.outdated)
    assert count_calls_of("_read_folder", counts) == 1
    assert [one.name for one in installer.outdated()] == ["local/csv"]


# -- only what changed is put in place ---------------------------------------------------------------------------------


def inodes(world: World) -> dict[str, int]:
    """The inode of each skill of an install, and of each link."""
    folders = (world.skills / "local/many/skills", world.agents)
    return {
        path.relative_to(folder.parent.parent).as_posix(): path.lstat().st_ino
        for folder in folders
        for path in folder.iterdir()
    }


def test_an_update_of_a_few_skills_leaves_the_others_in_place(world: World, installer: prowess.Installer) -> None:
    names = ["changed", "five", "four", "removed", "six", "three", "two"]
    repo = world.repository("many", *(f"skills/{name}" for name in names))
    installer.install(repo.address, project=True)
    before = inodes(world)
    repo.skill("skills/changed", body="Newer.\n")
    repo.git("rm", "-rq", "skills/removed")
    repo.skill("skills/added")
    repo.commit()
    assert [one.status for one in installer.update()] == ["updated"]
    after = inodes(world)
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    folders = {"many/skills/added", "many/skills/changed", "many/skills/removed"}
    assert changed == {*folders, ".agents/skills/added", ".agents/skills/removed"}
    assert (installer.verify(), installer.issues, installer.backups()) == ((), (), ())
    assert "Newer." in (world.agents / "changed/SKILL.md").read_text(encoding="utf-8")
    assert sorted(read_lock(str(world.project))["local/many"].skills) == sorted({*names, "added"} - {"removed"})


def test_an_update_over_an_edit_keeps_a_backup_of_the_edited_skill(world: World, installer: prowess.Installer) -> None:
    names = [f"skill-{number}" for number in range(6)]
    repo = world.repository("many", *(f"skills/{name}" for name in names))
    place = installer.install(repo.address, project=True)
    repo.skill("skills/skill-0", body="Newer.\n")
    repo.commit()
    (place / "skills/skill-5/SKILL.md").write_text("mine", encoding="utf-8")
    assert [one.status for one in installer.update(force=True)] == ["updated"]
    (backup,) = installer.backups()
    assert (backup.skill, [path.name for path in backup.path.iterdir()]) == ("skill-5", ["SKILL.md"])
    assert (backup.path / "SKILL.md").read_text(encoding="utf-8") == "mine"
    assert installer.verify() == ()


def test_an_update_writes_through_no_link_that_somebody_put_into_an_install(
    world: World, installer: prowess.Installer
) -> None:
    names = [f"skill-{number}" for number in range(6)]
    repo = world.repository("many", *(f"skills/{name}" for name in names))
    place = installer.install(repo.address, project=True)
    repo.skill("skills/skill-0", body="Newer.\n")
    repo.commit()
    elsewhere = world.base / "elsewhere"
    (place / "skills").rename(elsewhere)
    (place / "skills").symlink_to(elsewhere)
    assert [one.status for one in installer.update(force=True)] == ["updated"]
    assert "Newer." not in (elsewhere / "skill-0/SKILL.md").read_text(encoding="utf-8")
    assert installer.verify() == ()

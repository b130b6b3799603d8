"""Installing from repositories and folders: where things go, what is linked, what is recorded, what is refused."""

from __future__ import annotations

import os
import shutil
import stat
import tomllib
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.lockfile.read import read_lock
from tests.repositories import Repository, skill_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.install.conftest import World


def test_a_repository_is_installed_linked_and_recorded(world: World, installer: prowess.Installer) -> None:
    repo = world.repository("pdf")
    repo.write("scripts/run.sh", "#!/bin/sh\n", executable=True)
    commit = repo.commit()
    path = installer.install(repo.address, project=True)
    assert path == world.skills / "local" / "pdf"
    assert (path / "SKILL.md").read_text(encoding="utf-8") == skill_text("pdf")
    assert stat.S_IMODE((path / "SKILL.md").stat().st_mode) == 0o644
    assert stat.S_IMODE((path / "scripts" / "run.sh").stat().st_mode) == 0o755
    assert not (path / ".git").exists()
    assert os.readlink(world.agents / "pdf") == "../../.prowess/skills/local/pdf"  # noqa: PTH115
    entry = read_lock(str(world.project))["local/pdf"]
    assert (entry.kind, entry.ref, entry.commit, entry.source) == ("git", "", commit, str(repo.path))
    assert entry.digest == prowess.read_metadata(path).digest()
    assert entry.skills == {"pdf": ""}
    assert entry.links == (".agents/skills/pdf",)
    assert {name: (hash_.size, hash_.executable) for name, hash_ in entry.files.items()} == {
        "SKILL.md": (len(skill_text("pdf")), False),
        "scripts/run.sh": (10, True),
    }
    assert installer.verify() == ()


def test_what_is_installed_is_discovered_once(world: World, installer: prowess.Installer) -> None:
    installer.install(world.repository("pdf").address, project=True, agents=["claude-code"])
    catalog = prowess.discover(cwd=world.project, home=world.home)
    assert catalog.names == ("pdf",)
    assert catalog.issues == ()
    assert catalog.shadowed == ()


def test_the_users_skills_lie_in_the_configuration_folder_and_are_linked_at_home(
    world: World, installer: prowess.Installer
) -> None:
    path = installer.install(world.repository("pdf").address)
    assert path == world.home / ".config" / "prowess" / "skills" / "local" / "pdf"
    assert (world.home / ".agents" / "skills" / "pdf").resolve() == path
    assert (world.home / ".config" / "prowess" / "prowess.lock").is_file()
    assert not world.lock.exists()
    assert prowess.discover(cwd=world.project, home=world.home).names == ("pdf",)


def test_the_configuration_folder_may_be_elsewhere(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(world.base / "config"))
    path = prowess.Installer().install(world.repository("pdf").address)
    assert path == world.base / "config" / "prowess" / "skills" / "local" / "pdf"
    assert path == prowess.default_user_dir() / "local" / "pdf"
    assert prowess.default_project_dir() == world.skills
    assert (world.home / ".agents" / "skills" / "pdf").resolve() == path


def test_a_base_of_ones_own_keeps_everything_inside(world: World, listing: Callable[[Path], dict[str, object]]) -> None:
    before = listing(world.home)
    installer = prowess.Installer(user_dir=world.base / "u", project_dir=world.base / "p")
    repo = world.repository("pdf")
    assert installer.install(repo.address) == world.base / "u" / "local" / "pdf"
    assert installer.install(repo.address, project=True) == world.base / "p" / "local" / "pdf"
    assert listing(world.home) == before
    assert (world.base / "p" / ".agents" / "skills" / "pdf").resolve() == world.base / "p" / "local" / "pdf"
    assert [(one.location, one.full_name) for one in installer.list()] == [
        ("project", "local/pdf"),
        ("user", "local/pdf"),
    ]
    assert installer.verify() == ()


def test_skills_are_linked_for_the_agents_that_are_named_and_unlinked_when_removed(
    world: World, installer: prowess.Installer
) -> None:
    repo = world.repository("pdf")
    installer.install(repo.address, project=True, agents=["claude-code", "codex", "goose"])
    installer.install(repo.address, agents=["claude-code", "windsurf"])
    for folder in (".claude/skills", ".goose/skills"):
        assert (world.project / folder / "pdf" / "SKILL.md").is_file()
    assert (world.home / ".codeium" / "windsurf" / "skills" / "pdf" / "SKILL.md").is_file()
    entry = read_lock(str(world.project))["local/pdf"]
    assert entry.links == (".agents/skills/pdf", ".claude/skills/pdf", ".goose/skills/pdf")
    installer.remove("@local/pdf")
    assert not os.path.lexists(world.project / ".claude" / "skills" / "pdf")
    assert os.path.lexists(world.home / ".claude" / "skills" / "pdf")


@pytest.mark.parametrize(
    ("agents", "code"), [(["nobody"], "unknown-agent"), (["eve"], "bad-argument"), ("codex", "bad-argument")]
)
def test_an_agent_that_cannot_have_skills_here_is_refused(
    world: World, installer: prowess.Installer, agents: list[str], code: str
) -> None:
    with pytest.raises(prowess.SourceError) as caught:
        installer.install(world.repository("pdf").address, agents=agents)
    assert caught.value.code == code
    assert installer.list() == ()


@contextmanager
def without_links() -> Iterator[None]:
    """A system that refuses to make links."""
    from prowess.files import syscalls

    def no_links(name: str, moment: str, path: str) -> None:
        if (name, moment) == ("symlink", "before"):
            raise PermissionError(1, "links need rights here", path)

    before = syscalls.set_watcher(no_links)
    try:
        yield
    finally:
        syscalls.set_watcher(before)


def test_a_link_that_cannot_be_made_becomes_a_copy_and_is_recorded_as_one(
    world: World, installer: prowess.Installer
) -> None:
    repo = world.repository("pdf")
    with without_links():
        installer.install(repo.address, project=True)
        assert not (world.agents / "pdf").is_symlink()
        assert (world.agents / "pdf" / "SKILL.md").read_text(encoding="utf-8") == skill_text("pdf")
        assert read_lock(str(world.project))["local/pdf"].copies == (".agents/skills/pdf",)
        assert installer.verify() == ()
        repo.skill("", body="Newer.\n")
        repo.commit()
        installer.update("@local/pdf")
        assert "Newer." in (world.agents / "pdf" / "SKILL.md").read_text(encoding="utf-8")
        assert installer.verify() == ()
        assert "pdf" in prowess.discover(cwd=world.project, home=world.home, verify="lock")
        (world.agents / "pdf" / "SKILL.md").write_text("changed", encoding="utf-8")
        assert [issue.code for issue in installer.verify()] == ["changed-file"]
        installer.remove("@local/pdf")
    assert [issue.code for issue in installer.issues] == ["not-ours"]
    assert (world.agents / "pdf" / "SKILL.md").read_text(encoding="utf-8") == "changed"


def test_an_unedited_copy_is_removed_with_its_install(world: World, installer: prowess.Installer) -> None:
    with without_links():
        installer.install(world.repository("pdf").address, project=True)
        installer.remove("@local/pdf")
    assert installer.issues == ()
    assert list(world.agents.iterdir()) == []
    assert not (world.skills / ".backup").exists()


def test_a_locked_sync_makes_copies_where_there_are_no_links_and_leaves_the_lock_file(
    world: World, installer: prowess.Installer
) -> None:
    """The lock file was written where links can be made."""
    installer.install(world.repository("pdf").address, project=True)
    before = world.lock.read_bytes()
    shutil.rmtree(world.skills)
    (world.agents / "pdf").unlink()
    with without_links():
        installer.sync(locked=True)
        assert world.lock.read_bytes() == before
        assert installer.verify() == ()
        assert installer.sync(locked=True) == ()
    assert not (world.agents / "pdf").is_symlink()


@pytest.mark.parametrize("links", [False, True], ids=["without links", "with links again"])
def test_a_copy_that_was_edited_stays_until_somebody_moves_it_away(
    world: World, installer: prowess.Installer, links: bool
) -> None:
    file = world.agents / "pdf" / "SKILL.md"
    with without_links():
        installer.install(world.repository("pdf").address, project=True)
    file.write_text("changed", encoding="utf-8")
    for locked in (lambda: installer.sync(locked=True), lambda: installer.difference(locked=True)):
        with pytest.raises(prowess.LockMismatchError) as caught:
            locked()
        assert caught.value.path == str(world.agents / "pdf")
    with pytest.raises(prowess.NameTakenError):
        installer.sync()
    assert file.read_text(encoding="utf-8") == "changed"
    shutil.move(world.agents / "pdf", world.base / "mine")
    with nullcontext() if links else without_links():
        assert [one.full_name for one in installer.sync()] == ["local/pdf"]
    assert (installer.verify(), installer.sync()) == ((), ())
    assert file.parent.is_symlink() is links
    assert file.read_text(encoding="utf-8") == skill_text("pdf")


def test_a_copy_that_is_gone_is_restored(world: World, installer: prowess.Installer) -> None:
    with without_links():
        installer.install(world.repository("pdf").address, project=True)
        shutil.rmtree(world.agents / "pdf")
        assert installer.difference(locked=True) != ()
        installer.sync(locked=True)
        assert installer.verify() == ()
    assert (world.agents / "pdf" / "SKILL.md").is_file()


# -- many skills in one source -----------------------------------------------------------------------------------------


def test_every_skill_of_a_repository_is_linked(world: World, installer: prowess.Installer) -> None:
    repo = world.repository("many", "skills/a", "skills/b", "skills/.curated/c")
    path = installer.install(repo.address, project=True)
    assert sorted(p.name for p in world.agents.iterdir()) == ["a", "b", "c"]
    assert (world.agents / "b").resolve() == path / "skills" / "b"
    assert read_lock(str(world.project))["local/many"].skills == {
        "a": "skills/a",
        "b": "skills/b",
        "c": "skills/.curated/c",
    }
    assert installer.verify() == ()
    assert prowess.discover(cwd=world.project, home=world.home, verify="lock").names == ("a", "b", "c")


def test_chosen_skills_get_places_of_their_own(world: World, installer: prowess.Installer) -> None:
    repo = world.repository("many", "skills/a", "skills/b", "skills/c")
    path = installer.install(f"{repo.address}#v1@b", project=True)
    assert path == world.skills / "local" / "b"
    assert (path / "SKILL.md").is_file()
    assert installer.install(repo.address, project=True, select=["a", "c"]) == world.skills / "local" / "a"
    assert [one.full_name for one in installer.list()] == ["local/a", "local/b", "local/c"]
    locked = read_lock(str(world.project))
    assert (locked["local/b"].select, locked["local/b"].subpath, locked["local/b"].ref) == ("b", "skills/b", "v1")
    assert locked["local/b"].digest == prowess.read_metadata(path).digest()
    assert installer.verify() == ()


def test_a_chosen_skill_that_the_source_does_not_have_is_refused_with_those_it_has(
    world: World, installer: prowess.Installer
) -> None:
    repo = world.repository("many", "skills/alpha", "skills/beta")
    with pytest.raises(prowess.InstallError) as caught:
        installer.install(repo.address, project=True, select="alhpa")
    assert caught.value.code == "unknown-skill"
    assert "alpha, beta" in caught.value.message
    assert installer.list() == ()


def test_one_folder_of_a_repository_can_be_installed(world: World, installer: prowess.Installer) -> None:
    repo = world.repository("many", "tools/a", "tools/b", "skills/c")
    spec = prowess.SourceSpec("git", str(repo.path), "acme", "tools", subpath="tools", local=True)
    path = installer.install(spec, project=True)
    assert path == world.skills / "acme" / "tools"
    assert sorted(p.name for p in path.iterdir()) == ["a", "b"]
    assert sorted(p.name for p in world.agents.iterdir()) == ["a", "b"]
    missing = prowess.SourceSpec("git", str(repo.path), "acme", "x", subpath="nowhere", local=True)
    with pytest.raises(prowess.InstallError) as caught:
        installer.install(missing, project=True)
    assert caught.value.code == "unknown-subpath"


def test_links_outside_of_skills_do_not_matter_since_only_skills_are_installed(
    world: World, installer: prowess.Installer
) -> None:
    repo = world.repository("many", "skills/a")
    (repo.path / "CLAUDE.md").symlink_to("README.md")
    repo.write("README.md", "x")
    repo.commit()
    path = installer.install(repo.address, project=True)
    assert [entry.name for entry in path.iterdir()] == ["skills"]
    assert [issue.code for issue in installer.issues] == ["outside-skills"]


# -- what is there already ---------------------------------------------------------------------------------------------


def test_what_is_installed_is_not_installed_again(world: World, installer: prowess.Installer) -> None:
    repo = world.repository("pdf")
    path = installer.install(repo.address, project=True)
    with pytest.raises(prowess.AlreadyInstalledError) as caught:
        installer.install(f"{repo.address}#v1", project=True)
    assert str(path) in caught.value.message
    assert installer.install(repo.address) != path, "the user's own is another place"


def test_an_install_is_replaced_only_on_request(world: World, installer: prowess.Installer) -> None:
    one, other = world.repository("one/pdf"), world.repository("two/pdf")
    other.skill("", body="Other.\n")
    other.commit()
    path = installer.install(one.address, project=True)
    with pytest.raises(prowess.NameTakenError) as caught:
        installer.install(other.address, project=True)
    assert "repositories/one/pdf" in caught.value.message
    assert "repositories/two/pdf" in caught.value.message
    assert installer.install(other.address, project=True, replace=True) == path
    assert "Other." in (path / "SKILL.md").read_text(encoding="utf-8")
    assert installer.verify() == ()


def test_a_name_that_differs_in_case_only_is_the_same_place(world: World, installer: prowess.Installer) -> None:
    installer.install_local(world.folder("Notes"), project=True)
    (world.base / "folders" / "x").mkdir()
    os.rename(world.base / "folders" / "Notes", world.base / "folders" / "x" / "notes")  # noqa: PTH104
    with pytest.raises(prowess.InstallError) as caught:
        installer.install_local(world.base / "folders" / "x" / "notes", project=True)
    assert caught.value.code in {"already-installed", "name-taken"}


def test_the_skill_of_another_source_keeps_its_link(world: World, installer: prowess.Installer) -> None:
    many = world.repository("many", "skills/pdf", "skills/doc")
    single = world.repository("pdf")
    installer.install(many.address, project=True)
    with pytest.raises(prowess.NameTakenError) as caught:
        installer.install(single.address, project=True)
    assert "repositories/many" in caught.value.message
    assert "repositories/pdf" in caught.value.message
    installer.install(single.address, project=True, replace=True)
    assert (world.agents / "pdf").resolve() == world.skills / "local" / "pdf"
    assert (world.agents / "doc").resolve() == world.skills / "local" / "many" / "skills" / "doc"
    assert read_lock(str(world.project))["local/many"].links == (".agents/skills/doc",)
    assert installer.verify() == ()


def test_replacing_the_last_skill_of_an_install_removes_it(world: World, installer: prowess.Installer) -> None:
    installer.install(world.repository("documents", "skills/pdf").address, project=True)
    installer.install(world.repository("pdf").address, project=True, replace=True)
    assert [one.full_name for one in installer.list()] == ["local/pdf"]
    assert installer.verify() == ()


def test_a_skill_that_a_person_put_there_is_not_overwritten(world: World, installer: prowess.Installer) -> None:
    own = world.agents / "pdf"
    own.mkdir(parents=True)
    (own / "SKILL.md").write_text("my own", encoding="utf-8")
    repo = world.repository("pdf")
    with pytest.raises(prowess.NameTakenError):
        installer.install(repo.address, project=True)
    assert (own / "SKILL.md").read_text(encoding="utf-8") == "my own"
    assert installer.list() == ()
    installer.install(repo.address, project=True, replace=True)
    assert own.is_symlink()
    kept = list((world.skills / ".backup").iterdir())
    assert [(path / "SKILL.md").read_text(encoding="utf-8") for path in kept] == ["my own"]


def test_names_of_one_source_are_not_compared_with_each_other_and_others_in_one_line(
    world: World, installer: prowess.Installer
) -> None:
    own = world.repository("many", "chart", "charts", "table", "tables")
    installer.install(own.address, project=True, select=["chart", "table"])
    installer.install(own.address, project=True, select=["charts", "tables"])
    assert [*installer.issues] == []
    other = world.repository("other", "chart5", "tabel", "tablez")
    installer.install(other.address, project=True, select=["chart5", "tablez"])
    (issue,) = installer.issues
    assert issue.code == "near-name"
    assert issue.message == (
        "'chart5' is easily mistaken for 'chart' and 'charts'; 'tablez' is easily mistaken for 'table' and 'tables'"
    )


def test_names_that_are_easily_mistaken_are_pointed_out(world: World, installer: prowess.Installer) -> None:
    installer.install(world.repository("pdf").address, project=True)
    installer.install(world.repository("pdff").address, project=True)
    assert {issue.code for issue in installer.issues} == {"near-name"}
    installer.install(world.repository("charts").address, project=True)
    assert installer.issues == ()


# -- folders of this machine -------------------------------------------------------------------------------------------


def test_a_folder_is_copied_without_its_history(world: World, installer: prowess.Installer) -> None:
    folder = world.folder("notes")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("x", encoding="utf-8")
    (folder / ".hidden").write_text("kept", encoding="utf-8")
    path = installer.install_local(folder, project=True)
    assert path == world.skills / "local" / "notes"
    assert sorted(p.name for p in path.iterdir()) == [".hidden", "SKILL.md"]
    assert installer.resolve("@local/notes") == path
    assert read_lock(str(world.project))["local/notes"].source == str(folder)
    installer.install_local("../../folders/notes", project=True, replace=True)
    assert read_lock(str(world.project))["local/notes"].source == "../../folders/notes"
    assert installer.verify() == ()


def test_the_working_folder_itself_may_be_a_skill(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = world.folder("notes")
    installer = prowess.Installer(project_dir=world.skills)
    monkeypatch.chdir(folder)
    assert installer.install(".", project=True) == world.skills / "local" / "notes"


@pytest.mark.parametrize("method", ["install", "install_local", "install_into", "install_local_into"])
def test_no_way_to_install_takes_a_skill_that_cannot_load(
    world: World, installer: prowess.Installer, method: str
) -> None:
    folder = world.folder("notes")
    (folder / "SKILL.md").write_text("---\nname: [notes\n  x: y\n---\n", encoding="utf-8")
    into = (world.project / "vendor",) if method.endswith("into") else ()
    with pytest.raises(prowess.InstallError, match="has no skill that can be loaded"):
        getattr(installer, method)(str(folder), *into)
    assert not (world.project / "vendor").exists()
    assert installer.list() == ()


@pytest.mark.parametrize("method", ["install", "install_into"])
def test_an_install_says_which_files_of_a_library_it_leaves_out(
    world: World, installer: prowess.Installer, method: str
) -> None:
    repo = world.repository("library", "skills/pdf", "skills/csv")
    repo.write("README.md", "# Library\n")
    repo.write("shared/words.txt", "words\n")
    repo.commit(tag="v2")
    into = (world.project / "vendor",) if method == "install_into" else ()
    path = getattr(installer, method)(repo.address, *into)
    assert sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()) == [
        "skills/csv/SKILL.md",
        "skills/pdf/SKILL.md",
    ]
    (issue,) = [issue for issue in installer.issues if issue.code == "outside-skills"]
    assert (issue.severity, issue.message) == (
        "info",
        "2 files outside of the skills' folders will not be installed: README.md, shared/words.txt",
    )


def test_nothing_is_left_out_of_a_skill_at_the_top_or_one_that_was_chosen(
    world: World, installer: prowess.Installer
) -> None:
    whole = world.repository("pdf")
    whole.write("shared/words.txt", "words\n")
    whole.commit(tag="v2")
    path = installer.install(whole.address)
    assert (path / "shared/words.txt").is_file()
    library = world.repository("library", "skills/one", "skills/two")
    library.write("README.md", "# Library\n")
    library.commit(tag="v2")
    installer.install(library.address, select="one")
    assert "outside-skills" not in [issue.code for issue in installer.issues]


def test_a_folder_of_the_caller_gets_the_skill_and_nothing_else(
    world: World, installer: prowess.Installer, listing: Callable[[Path], dict[str, object]]
) -> None:
    repo = world.repository("pdf")
    into = world.project / "skills" / "billing"
    before = listing(world.project)
    assert installer.install_into(repo.address, into) == into / "pdf"
    assert installer.install_local_into(world.folder("notes"), into) == into / "notes"
    assert sorted(p.name for p in into.iterdir()) == ["notes", "pdf"]
    after = listing(world.project)
    assert {key for key in after if not key.startswith("skills")} == set(before)
    with pytest.raises(prowess.AlreadyInstalledError):
        installer.install_into(repo.address, into)
    with pytest.raises(prowess.AlreadyInstalledError):
        installer.install_local_into(world.base / "folders" / "notes", into)
    assert installer.list() == ()


@pytest.mark.parametrize("make", ["file", "nothing", "empty"])
def test_a_source_without_a_skill_is_refused(world: World, installer: prowess.Installer, make: str) -> None:
    path = world.base / "x"
    if make == "file":
        path.write_text("x", encoding="utf-8")
    elif make == "empty":
        path.mkdir()
        (path / "README.md").write_text("x", encoding="utf-8")
    with pytest.raises(prowess.InstallError) as caught:
        installer.install_local(path, project=True)
    assert caught.value.code == ("missing-skill-md" if make == "empty" else "not-a-directory")
    assert not world.skills.exists() or installer.list() == ()


# -- plan, list, resolve, remove ---------------------------------------------------------------------------------------


def test_a_plan_says_what_will_happen_and_changes_nothing(
    world: World, installer: prowess.Installer, listing: Callable[[Path], dict[str, object]]
) -> None:
    before = listing(world.base)
    plan = installer.plan("@acme/pdf@v1", project=True, agents=["claude-code"])
    assert str(plan).splitlines() == [
        "fetch https://github.com/acme/pdf at v1",
        f"put it at {world.skills / 'acme' / 'pdf'}",
        f"link each skill in {world.agents}",
        f"link each skill in {world.project / '.claude' / 'skills'}",
        "record it in prowess.lock",
    ]
    assert listing(world.base) == before


def test_a_plan_can_be_carried_out(world: World, installer: prowess.Installer) -> None:
    repo = world.repository("pdf")
    plan = installer.plan(f"{repo.address}#v1", project=True)
    (done,) = installer.apply(plan)
    assert (done.full_name, done.location, done.path) == ("local/pdf", "project", world.skills / "local" / "pdf")
    with pytest.raises(prowess.AlreadyInstalledError):
        installer.plan(repo.address, project=True)


def test_removing_takes_the_projects_first_and_its_links(world: World, installer: prowess.Installer) -> None:
    repo = world.repository("pdf")
    mine = installer.install(repo.address)
    project = installer.install(repo.address, project=True)
    assert installer.resolve("@local/pdf@whatever") == project
    assert installer.remove("@local/pdf") == project
    assert installer.resolve("@local/pdf") == mine
    assert not os.path.lexists(world.agents / "pdf")
    assert not world.lock.exists()
    installer.remove("@local/pdf")
    for call in (installer.resolve, installer.remove):
        with pytest.raises(prowess.NotInstalledError):
            call("@local/pdf")
    assert installer.list() == ()
    assert installer.verify() == ()


def test_what_a_person_edited_is_kept_when_it_is_removed(world: World, installer: prowess.Installer) -> None:
    path = installer.install(world.repository("pdf").address, project=True)
    (path / "notes.txt").write_text("mine", encoding="utf-8")
    installer.remove("@local/pdf")
    (backup,) = (world.skills / ".backup").iterdir()
    assert (backup / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_a_folder_that_nobody_recorded_can_be_removed_too(world: World, installer: prowess.Installer) -> None:
    own = world.skills / "acme" / "tool"
    own.mkdir(parents=True)
    assert [one.full_name for one in installer.list()] == ["acme/tool"]
    assert [issue.code for issue in installer.verify()] == ["not-in-lock"]
    installer.remove("@acme/tool")
    assert installer.list() == ()


def test_the_lock_file_is_the_same_text_for_the_same_installs(world: World, installer: prowess.Installer) -> None:
    one, other = world.repository("a"), world.repository("z")
    installer.install(one.address, project=True)
    installer.install(other.address, project=True)
    text = world.lock.read_text(encoding="utf-8")
    installer.remove("@local/a")
    installer.remove("@local/z")
    installer.install(other.address, project=True)
    installer.install(one.address, project=True)
    assert world.lock.read_text(encoding="utf-8") == text
    assert [entry["name"] for entry in tomllib.loads(text)["skill"]] == ["local/a", "local/z"]
    assert text.endswith("\n")


def test_a_repository_on_a_server_is_installed_by_its_address(world: World, installer: prowess.Installer) -> None:
    from tests.git_servers import http

    made = Repository(world.base / "served" / "acme" / "pdf.git")
    made.skill("")
    made.commit()
    with http(world.base / "served") as server:
        with pytest.raises(prowess.BadReferenceError):
            installer.install(f"{server.address}/acme/pdf.git", project=True)
        open_ = prowess.Installer(schemes=("http",))
        path = open_.install(f"{server.address}/acme/pdf.git", project=True)
    assert path == world.skills / "acme" / "pdf"
    assert installer.verify() == ()


def test_what_lies_as_deep_as_an_install_may_is_verified_too(world: World, installer: prowess.Installer) -> None:
    repo = world.repository("deep")
    repo.write("/".join(["d"] * 24) + "/notes.md", "text")
    repo.commit()
    installer.install(repo.address, project=True)
    assert installer.verify() == ()
    folder = world.folder("as-deep")
    folder.joinpath(*["d"] * 24).mkdir(parents=True)
    folder.joinpath(*["d"] * 24, "notes.md").write_text("text", encoding="utf-8")
    installer.install_local(folder, project=True)
    assert installer.verify() == ()

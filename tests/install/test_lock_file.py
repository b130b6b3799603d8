"""What commands write into the lock file, and which of its lines they leave alone."""

from __future__ import annotations

import shutil
import tomllib
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.lockfile.read import read_lock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.install.conftest import Listing, World
    from tests.repositories import Repository

NAMES = ("charts", "invoices", "reports")


@pytest.fixture
def many(world: World) -> Repository:
    """A repository with three skills at the tag ``v1``; at ``v2`` the second has another text."""
    made = world.repository("many", *(f"skills/{name}" for name in NAMES))
    made.skill("skills/invoices", body="Another.\n")
    made.commit(tag="v2")
    return made


def declare(world: World, text: str) -> None:
    (world.project / "prowess.toml").write_text(text, encoding="utf-8")


def rows(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


# -- what an entry says ------------------------------------------------------------------------------------------------


def test_a_name_that_comes_or_goes_leaves_the_lines_of_all_others(
    world: World, installer: prowess.Installer, many: Repository
) -> None:
    entry = f'skills = [{{ source = "{many.address}", ref = "v1", mode = "copy", skills = ["charts", "reports"] }}]\n'
    declare(world, entry)
    installer.sync()
    two = rows(world.lock)
    assert {one.declared for one in read_lock(str(world.project)).values()} == {f"{many.address}#v1 as copies"}
    declare(world, entry.replace('"charts", ', '"charts", "invoices", '))
    assert [skill.full_name for skill in installer.sync()] == ["local/invoices"]
    three = rows(world.lock)
    added = three.index('name = "local/invoices"') - 1
    assert three[:added] + three[added + len(three) - len(two) :] == two
    declare(world, entry)
    installer.sync(remove=True)
    assert rows(world.lock) == two


def test_a_skill_of_a_whole_source_has_its_digest_and_lines_of_its_own(
    world: World, installer: prowess.Installer, many: Repository
) -> None:
    installer.install(f"{many.address}#v1", project=True, agents=["claude-code"])
    before = rows(world.lock)
    table = tomllib.loads(world.lock.read_text(encoding="utf-8"))["skill"][0]
    alone = prowess.scan(many.path / "skills").skills[0]
    assert table["skills"]["charts"] == f"{alone.digest()} skills/charts"
    many.skill("skills/drafts")
    many.commit(tag="v3")
    many.git("checkout", "--quiet", "v1", "--", "skills/invoices")
    many.commit(tag="v4")
    installer.update("@local/many@v4")
    after = rows(world.lock)
    changed = {row.partition(" ")[0] for row in {*before} - {*after}}
    assert changed == {"ref", "commit", "digest"}
    added = [row for row in after if "drafts" in row]
    assert len(added) == len(after) - len(before) == 4  # a file, a link in each of two folders, and the skill


def test_a_digest_that_is_not_of_the_files_of_its_skill_is_refused(
    world: World, installer: prowess.Installer, many: Repository
) -> None:
    installer.install(f"{many.address}#v1", project=True)
    text = world.lock.read_text(encoding="utf-8")
    digest = text.partition('charts = "')[2] or text.partition('"charts" = "')[2]
    world.lock.write_text(text.replace(digest[:64], "0" * 64), encoding="utf-8")
    with pytest.raises(prowess.InstallError, match="digest of the skill 'charts' does not fit") as caught:
        installer.verify()
    assert caught.value.code == "bad-lock"


@pytest.mark.parametrize("count", [10, 100])
def test_what_a_chosen_skill_takes_does_not_grow_with_their_number(
    world: World, installer: prowess.Installer, count: int
) -> None:
    names = [f"a-skill-with-a-name-of-some-length-{number:03}" for number in range(count)]
    made = world.repository("many", *(f"skills/{name}" for name in names))
    for name in names:
        for chapter in range(9):
            made.write(f"skills/{name}/references/chapter-{chapter}.md", "x" * 1_000)
    made.commit(tag="v3")
    listed = ", ".join(f'"{name}"' for name in names)
    declare(world, f'agents = ["claude-code"]\nskills = [{{ source = "{made.address}", skills = [{listed}] }}]\n')
    installer.sync()
    source = 2 * len(str(made.path))  # a path of this machine's tests, longer than an address
    assert world.lock.stat().st_size / count < 1_500 + source


# -- which agents ------------------------------------------------------------------------------------------------------


def test_agents_that_the_manifest_drops_lose_their_links_and_others_stay(
    world: World, installer: prowess.Installer, many: Repository
) -> None:
    entry = f'skills = [{{ source = "{many.address}#v1@charts", agents = ["goose"] }}]\n'
    declare(world, f'agents = ["windsurf"]\n{entry}')
    installer.sync()
    installer.link("@local/charts", ["claude-code"])
    (recorded,) = read_lock(str(world.project)).values()
    assert recorded.extra_agents == ("claude-code",)
    declare(world, entry.replace('"goose"', ""))
    with pytest.raises(prowess.LockMismatchError, match=r"locked for other agents \(claude-code, goose, windsurf\)"):
        installer.sync(locked=True)
    installer.sync()
    found = [path.parent.parent.name for path in world.project.glob(".*/skills/charts")]
    assert sorted(found) == [".agents", ".claude"]
    installer.unlink("@local/charts", ["claude-code"])
    (recorded,) = read_lock(str(world.project)).values()
    assert (recorded.agents, recorded.extra_agents) == ((), ())
    assert installer.sync(locked=True) == ()


# -- how large it may be -----------------------------------------------------------------------------------------------


def test_a_lock_file_that_nobody_could_read_again_is_refused_before_anything_changes(
    world: World, installer: prowess.Installer, many: Repository, listing: Callable[[Path], Listing]
) -> None:
    installer.install(f"{many.address}#v1", project=True, select=["charts", "invoices"])
    most = world.lock.stat().st_size + 100
    installer = prowess.Installer(limits=prowess.Limits(max_lock_bytes=most))
    before = listing(world.project)
    for act in (
        lambda: installer.install(f"{many.address}#v1", project=True, select="reports"),
        lambda: installer.link(["@local/charts", "@local/invoices"], ["claude-code", "goose", "windsurf", "cursor"]),
    ):
        with pytest.raises(prowess.InstallError, match=f"only {most:,} can be read") as caught:
            act()
        assert caught.value.code == "lock-too-large"
        assert listing(world.project) == before
    assert not list(world.project.glob(".prowess.*"))
    assert (installer.verify(), installer.sync(locked=True)) == ((), ())


def test_a_journal_that_nobody_could_read_again_is_refused_before_anything_changes(
    world: World, installer: prowess.Installer, many: Repository, listing: Callable[[Path], Listing]
) -> None:
    agents = ["claude-code", "goose", "windsurf", "augment"]
    installer.install(f"{many.address}#v1", project=True, select=["charts", "invoices"], agents=agents)
    installer = prowess.Installer(limits=prowess.Limits(max_lock_bytes=world.lock.stat().st_size + 100))
    before = listing(world.project)
    with pytest.raises(prowess.InstallError, match="can be read") as caught:
        installer.remove(["@local/charts", "@local/invoices"])
    assert (caught.value.code, caught.value.path) == ("lock-too-large", str(world.project / ".prowess.journal"))
    assert listing(world.project) == before
    installer.remove("@local/charts")  # fewer at once
    assert installer.verify() == ()


def test_a_manifest_that_nobody_could_read_again_is_not_written(world: World, many: Repository) -> None:
    text = f"# {'x' * 1_900}\nskills = []\n"
    declare(world, text)
    installer = prowess.Installer(limits=prowess.Limits(max_lock_bytes=2_000))
    installer.install(f"{many.address}#v1", project=True, select="charts")
    assert (world.project / "prowess.toml").read_text(encoding="utf-8") == text
    assert [issue.code for issue in installer.issues] == ["manifest-not-written"]


# -- line ends of Windows ----------------------------------------------------------------------------------------------


def test_only_a_command_that_records_something_writes_a_lock_file(
    world: World, installer: prowess.Installer, many: Repository
) -> None:
    installer.install(f"{many.address}#v1", project=True, select="charts")
    windows = world.lock.read_bytes().replace(b"\n", b"\r\n")
    world.lock.write_bytes(windows)
    (world.agents / "charts").unlink()
    assert [skill.name for skill in installer.sync(locked=True)] == ["charts"]
    shutil.rmtree(world.skills / "local")
    assert [skill.name for skill in installer.sync(locked=True)] == ["charts"]
    (world.agents / "charts").unlink()
    assert [skill.name for skill in installer.sync()] == ["charts"]
    assert (installer.verify(), world.lock.read_bytes()) == ((), windows)
    installer.install(f"{many.address}#v1", project=True, select="reports")
    text = world.lock.read_bytes()
    assert text.startswith(windows)
    assert text.count(b"\n") == text.count(b"\r\n") > windows.count(b"\n")


# -- other versions of Prowess -----------------------------------------------------------------------------------------

SEAL = 'seal = { by = "acme", at = 2026-01-02T03:04:05Z }'


def test_fields_that_are_not_known_stay_as_long_as_the_files_do(
    world: World, installer: prowess.Installer, many: Repository
) -> None:
    installer.install(f"{many.address}#v1", project=True, select=["charts", "invoices"])
    text = world.lock.read_text(encoding="utf-8")
    sealed = text.replace("digest = ", f"{SEAL}\ndigest = ").replace(
        "version = 1\n", 'version = 1\nwritten_by = "2.0"\n'
    )
    world.lock.write_text(sealed, encoding="utf-8")
    installer.link(["@local/charts", "@local/invoices"], ["claude-code"])
    shutil.rmtree(world.skills / "local")
    installer.sync()
    updates = {update.name: update.status for update in installer.update(["@local/charts@v2", "@local/invoices@v2"])}
    assert updates == {"local/charts": "updated", "local/invoices": "updated"}
    data = tomllib.loads(world.lock.read_text(encoding="utf-8"))
    assert data["written_by"] == "2.0"
    assert [entry.get("seal", {}).get("by") for entry in data["skill"]] == ["acme", None]
    (note,) = [issue for issue in installer.issues if issue.code == "dropped-fields"]
    assert (note.field, note.severity) == ("local/invoices", "info")
    assert note.message.endswith("dropped: seal")


@pytest.mark.parametrize("act", ["verify", "sync", "update"])
def test_a_lock_file_of_a_newer_prowess_says_to_upgrade_and_stays(
    world: World, installer: prowess.Installer, many: Repository, act: str
) -> None:
    installer.install(f"{many.address}#v1", project=True, select="charts")
    newer = world.lock.read_text(encoding="utf-8").replace("version = 1", "version = 2").replace('select = "', "x = '")
    world.lock.write_text(newer, encoding="utf-8")
    with pytest.raises(prowess.InstallError, match="upgrade Prowess") as caught:
        getattr(installer, act)()
    assert caught.value.code == "newer-lock"
    assert world.lock.read_text(encoding="utf-8") == newer

"""What is fetched of a repository over HTTP, in bytes: folders first, then the files of the chosen skills alone.

Also from servers that know less: one that cannot leave files out, one that gives no files by their ids, one that only
hands out files; and with an older git.
"""

from __future__ import annotations

import os
import random
import re
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.fetch.git.objects import load_objects
from prowess.fetch.git.process import GitProgram
from prowess.files.tree import digest_tree, hash_bytes
from prowess.lockfile.read import read_lock
from prowess.lockfile.write import lock_text
from tests.git_servers import HttpServer, http
from tests.repositories import Repository

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.git_servers import Handler
    from tests.install.conftest import World

OTHER_BYTES = 1_000_000
KILOBYTES = 10_000
"""More than a small skill and the folders of its repository take, and far less than its other files."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of repositories: ``wide`` has three small skills and megabytes of other files that do not compress."""
    root = tmp_path_factory.mktemp("served")
    wide = Repository(root / "wide")
    for name in ("pdf", "csv", "notes"):
        wide.skill(f"skills/{name}")
        wide.write(f"skills/{name}/references/more.md", f"More of {name}.\n")
    wide.write("data/other.bin", random.Random(16).randbytes(OTHER_BYTES))
    wide.write("README.md", "# Wide\n")
    wide.commit(tag="v1")
    wide.git("config", "uploadpack.allowFilter", "true")
    for name, setting in (("whole", "allowFilter"), ("refs-only", "allowAnySHA1InWant")):
        wide.git("clone", "--quiet", "--bare", str(wide.path), str(root / f"{name}.git"))
        settings = {"allowFilter": "true", "allowAnySHA1InWant": "true"} | {setting: "false"}
        for key, value in settings.items():
            wide.git("-C", str(root / f"{name}.git"), "config", f"uploadpack.{key}", value)
        wide.git("-C", str(root / f"{name}.git"), "update-server-info")
    (root / "wide.git").symlink_to(wide.path)
    return root


@pytest.fixture
def server(store: Path, world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpServer]:
    """That folder on loopback; what is kept of it is this test's own."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(world.base / "cache"))
    with http(store) as running:
        yield running


@pytest.fixture
def installer(world: World) -> prowess.Installer:  # noqa: ARG001 - it must be there first
    """Allowed to ask in plain http."""
    return prowess.Installer(schemes=("http",))


def wide_of(server: HttpServer) -> str:
    return f"{server.address}/wide.git"


def speak_the_first_protocol(handler: Handler) -> bool:
    """Have git answer in the way in which a server tells which objects may be asked for by their ids."""
    del handler.headers["Git-Protocol"]
    return False


def test_one_small_skill_of_a_large_repository_costs_kilobytes(
    installer: prowess.Installer, world: World, server: HttpServer
) -> None:
    installer.install(wide_of(server), project=True, select="pdf")
    assert (world.agents / "pdf/references/more.md").read_text() == "More of pdf.\n"
    assert installer.verify() == ()
    assert 0 < server.bytes_sent < KILOBYTES


def test_a_whole_repository_is_its_skills_and_not_its_other_files(
    installer: prowess.Installer, world: World, server: HttpServer
) -> None:
    path = installer.install(wide_of(server), project=True)
    files = sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
    names = ("csv", "notes", "pdf")
    assert files == [f"skills/{name}/{file}" for name in names for file in ("SKILL.md", "references/more.md")]
    assert sorted(link.name for link in world.agents.iterdir()) == list(names)
    assert server.bytes_sent < KILOBYTES


def test_an_offer_needs_the_folders_and_the_instructions_alone(
    installer: prowess.Installer, server: HttpServer
) -> None:
    offer = installer.offers(wide_of(server))
    assert [skill.name for skill in offer.skills] == ["csv", "notes", "pdf"]
    assert (offer.files, offer.is_complete) == (6, False)
    assert offer.bytes == sum(skill.bytes for skill in offer.skills)
    assert offer.skills[0].files == ("SKILL.md", "references/more.md")
    assert server.bytes_sent < KILOBYTES


def test_the_files_of_the_chosen_skills_come_in_one_request(installer: prowess.Installer, server: HttpServer) -> None:
    installer.offers(wide_of(server))
    server.forget()
    installer.install(wide_of(server), project=True, select=["pdf", "csv", "notes"])
    assert server.fetches == 1
    assert installer.verify() == ()


def test_the_first_install_of_a_skill_takes_three_requests(installer: prowess.Installer, server: HttpServer) -> None:
    installer.install(wide_of(server), project=True, select="pdf")
    assert server.fetches == 3  # the folders, the instructions of every skill, the files of the chosen one


def test_a_commit_is_fetched_once_however_many_skills_come_from_it(
    installer: prowess.Installer, world: World, server: HttpServer
) -> None:
    installer.install(wide_of(server), project=True, select=["pdf", "csv", "notes"])
    shutil.rmtree(world.skills)
    server.forget()
    installer.sync(locked=True)
    assert installer.verify() == ()
    assert server.seen == []


def test_a_branch_that_has_not_moved_is_not_fetched_again(installer: prowess.Installer, server: HttpServer) -> None:
    installer.install(wide_of(server), project=True, select=["pdf", "csv"])
    server.forget()
    assert [update.status for update in installer.update()] == ["current", "current"]
    assert installer.outdated() == ()
    assert (server.fetches, server.bytes_sent < KILOBYTES) == (0, True)


def test_a_commit_that_was_named_by_its_id_is_not_even_asked_for_again(
    installer: prowess.Installer, server: HttpServer
) -> None:
    commit = installer.offers(wide_of(server), select="pdf").commit
    installer.install(f"{wide_of(server)}#{commit}", project=True, select="pdf")
    server.forget()
    offer = installer.offers(f"{wide_of(server)}#{commit}", select="pdf")
    assert (offer.commit, offer.is_complete, server.seen) == (commit, True, [])


@pytest.fixture
def moving(store: Path, request: pytest.FixtureRequest) -> Iterator[Repository]:
    """A repository like ``wide`` that a test may add commits to."""
    made = Repository(store / f"{request.node.name}.git")
    made.git("pull", "--quiet", str(store / "wide"), "main")
    made.git("config", "uploadpack.allowFilter", "true")
    yield made
    shutil.rmtree(made.path)


@pytest.mark.parametrize("names", [["pdf"], ["pdf", "csv", "notes"]], ids=len)
def test_an_update_costs_kilobytes_and_as_many_requests_for_many_skills_as_for_one(
    installer: prowess.Installer, server: HttpServer, moving: Repository, names: list[str]
) -> None:
    installer.install(f"{server.address}/{moving.path.name}", project=True, select=names)
    for name in names:
        moving.skill(f"skills/{name}", body="Do it better.\n")
    moving.commit()
    server.forget()
    assert [update.status for update in installer.update()] == ["updated"] * len(names)
    assert server.bytes_sent < KILOBYTES
    assert server.fetches == 3  # the folders, the history (whether it went back), the files


def test_a_restore_of_many_skills_of_one_commit_takes_two_requests(
    installer: prowess.Installer, world: World, server: HttpServer
) -> None:
    installer.install(wide_of(server), project=True, select=["pdf", "csv", "notes"])
    shutil.rmtree(world.skills)
    shutil.rmtree(world.base / "cache")
    server.forget()
    assert len(installer.sync(locked=True)) == 3
    assert server.fetches == 2  # the folders, the files of all three


def test_one_command_sees_one_state_of_a_branch_that_moves_meanwhile(
    installer: prowess.Installer, world: World, server: HttpServer, moving: Repository
) -> None:
    installer.install(f"{server.address}/{moving.path.name}", project=True, select=["pdf", "csv", "notes"])
    moving.skill("skills/pdf", body="Do it better.\n")
    first = moving.commit()

    def move(_what: str, done: int, _total: int) -> None:
        if done == 1:
            moving.git("commit", "--quiet", "--allow-empty", "--message", "and on")

    with prowess.progress(move):
        assert {update.after for update in installer.update()} == {first}
    assert {entry.commit for entry in read_lock(str(world.project)).values()} == {first}


def test_a_person_who_waits_is_told_how_many_bytes_have_come(installer: prowess.Installer, server: HttpServer) -> None:
    told: list[tuple[str, int, int]] = []
    with prowess.progress(lambda *step: told.append(step)):
        installer.offers(f"{server.address}/whole.git")
    assert told[-1] == ("1.0 MB", 0, 0)
    told.clear()
    with prowess.progress(lambda *step: told.append(step)):
        installer.offers(wide_of(server))
    assert all(re.fullmatch(r"[0-9.]+ (bytes|kB)", what) for what, _, _ in told)


def test_a_person_who_waits_can_end_a_fetch(installer: prowess.Installer, world: World, server: HttpServer) -> None:
    def stop(_what: str, _done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), prowess.progress(stop):
        installer.install(wide_of(server), project=True)
    assert not world.lock.exists()


# -- servers and programs that know less -------------------------------------------------------------------------------


def test_everything_is_fetched_once_from_a_server_that_cannot_leave_files_out(
    installer: prowess.Installer, world: World, server: HttpServer
) -> None:
    source = f"{server.address}/whole.git"
    offer = installer.offers(source)
    assert offer.is_complete
    assert server.bytes_sent > OTHER_BYTES
    server.forget()
    installer.install(source, project=True, select=["pdf", "csv"])
    assert (world.agents / "csv/references/more.md").is_file()
    assert installer.verify() == ()
    assert server.fetches == 0
    kept = sum(file.stat().st_size for file in (world.base / "cache").rglob("*") if file.is_file())
    assert kept < KILOBYTES


def test_the_whole_commit_is_fetched_from_a_server_that_gives_no_files_by_their_ids(
    installer: prowess.Installer, world: World, server: HttpServer
) -> None:
    server.before = speak_the_first_protocol
    installer.install(f"{server.address}/refs-only.git", project=True, select="pdf")
    assert (world.agents / "pdf/references/more.md").read_text() == "More of pdf.\n"
    assert installer.verify() == ()
    assert server.bytes_sent > OTHER_BYTES


def test_a_git_that_cannot_ask_for_files_by_their_ids_fetches_the_whole_commit(
    world: World, server: HttpServer
) -> None:
    asked: list[Sequence[str]] = []

    def run(args: Sequence[str], cwd: str, env: Mapping[str, str]) -> bytes:
        asked.append(args)
        if args[0] == "fetch" and "--depth=1" not in args:
            raise prowess.GitError("git failed: fatal: couldn't find remote ref")
        return GitProgram()(args, cwd, env)

    prowess.Installer(git=run, schemes=("http",)).install(wide_of(server), project=True, select="pdf")
    assert (world.agents / "pdf/references/more.md").is_file()
    assert [args[0] for args in asked].count("fetch") == 3  # without files, by ids in vain, with files


@pytest.mark.usefixtures("world")
def test_git_fetches_nothing_by_itself_after_a_partial_fetch(server: HttpServer) -> None:
    reaching: dict[str, set[str]] = {}

    def run(args: Sequence[str], cwd: str, env: Mapping[str, str]) -> bytes:
        reaching.setdefault(args[0], set()).add(env["GIT_ALLOW_PROTOCOL"])
        return GitProgram()(args, cwd, env)

    prowess.Installer(git=run, schemes=("http",)).install(wide_of(server), project=True)
    assert reaching == {"config": {""}, "fetch": {"http"}, "cat-file": {""}}


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_an_offer_of_chosen_skills_has_all_their_files(installer: prowess.Installer, server: HttpServer) -> None:
    offer = installer.offers(wide_of(server), select="pdf")
    assert offer.is_complete
    server.forget()
    installer.apply(installer.plan(wide_of(server), project=True, select="pdf", offer=offer))
    assert server.seen == []


def kept_files(world: World) -> list[Path]:
    return [file for file in (world.base / "cache" / "git").rglob("*") if file.is_file()]


def test_a_cached_repository_that_was_changed_is_fetched_again(
    installer: prowess.Installer, world: World, server: HttpServer
) -> None:
    installer.offers(wide_of(server), select="pdf")
    (file,) = kept_files(world)
    data = file.read_bytes()
    assert data.count(b"Do it.") > 0
    file.write_bytes(data.replace(b"Do it.", b"Do no."))
    installer.install(wide_of(server), project=True, select="pdf")
    assert "Do it." in (world.agents / "pdf/SKILL.md").read_text()
    assert load_objects(data).items() <= load_objects(file.read_bytes()).items()


def test_a_cached_repository_that_makes_no_sense_is_refused(
    installer: prowess.Installer, world: World, server: HttpServer
) -> None:
    installer.offers(wide_of(server), select="pdf")
    (file,) = kept_files(world)
    data = file.read_bytes()
    for damaged in (
        data[: len(data) // 2],
        b"nothing",
        "\u2603 blob 3\nabc\n".encode(),
        data.replace(b" tree ", b" blob "),
        b"a blob " + b"9" * 5_000 + b"\nabc\n",
    ):
        with pytest.raises(prowess.GitError):
            load_objects(damaged)


def test_a_folder_that_others_may_write_to_keeps_nothing(
    installer: prowess.Installer, world: World, server: HttpServer
) -> None:
    (world.base / "cache").mkdir()
    (world.base / "cache").chmod(0o777)
    installer.install(wide_of(server), project=True, select="pdf")
    assert installer.verify() == ()
    assert list((world.base / "cache").iterdir()) == []


def test_an_address_that_is_not_allowed_is_refused_even_when_it_is_cached(
    installer: prowess.Installer, world: World, server: HttpServer
) -> None:
    commit = installer.offers(wide_of(server), select="pdf").commit
    assert kept_files(world)
    with pytest.raises(prowess.BadReferenceError) as caught:
        prowess.Installer().install(prowess.SourceSpec("git", wide_of(server), "acme", "wide", commit), project=True)
    assert caught.value.code == "bad-scheme"
    index = f"{wide_of(server)}#{commit}"
    assert installer.find("pdf", [index]).hits
    refused = prowess.Installer().find("pdf", [index])
    assert ([issue.code for issue in refused.unanswered], refused.hits) == (["bad-scheme"], ())


def test_an_entry_that_records_other_files_too_is_restored_as_it_is_recorded(
    installer: prowess.Installer, world: World, server: HttpServer
) -> None:
    """As an older version recorded a whole repository: with every file, in a skill's folder or not."""
    installer.install(wide_of(server), project=True)
    (entry,) = read_lock(str(world.project)).values()
    files = dict(entry.files) | {"README.md": hash_bytes(b"# Wide\n", executable=False)}
    older = replace(entry, files=dict(sorted(files.items())), digest=digest_tree(files))
    world.lock.write_text(lock_text({older.name: older}) or "", encoding="utf-8")
    shutil.rmtree(world.skills)
    server.forget()
    installer.sync(locked=True)
    (readme,) = world.skills.rglob("README.md")
    assert readme.read_text() == "# Wide\n"
    assert installer.verify() == ()
    assert server.bytes_sent < KILOBYTES

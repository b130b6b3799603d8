"""Index files that are damaged, foreign or cannot be written: the search works, and replaces what it may replace."""

from __future__ import annotations

import logging
import os
import resource
import shutil
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

import prowess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

SKILLS = {"cats": "tuna", "dogs": "leash", "maps": "compass"}


@pytest.fixture
def library(write: Callable[..., Path], tmp_path: Path) -> Path:
    for name, word in SKILLS.items():
        write(name, f"Is about {name}.", f"Take a {word}.\n")
    return tmp_path / "skills"


def assert_search_works(library: Path, **more: str) -> None:
    """Each skill is found by its own word, and all of them by the word that they share."""
    catalog = prowess.scan(library)
    words = SKILLS | more
    for name, word in words.items():
        assert [hit.name for hit in catalog.search(word, semantic=False)] == [name]
    assert sorted(hit.name for hit in catalog.search("take", semantic=False)) == sorted(words)


def database(cache: Path) -> Path:
    (path,) = (cache / "search").glob("*.db")
    return path


def write_everywhere(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:100] + b"\xa5" * (len(data) - 100))


def change_version(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 7")
    connection.close()


def change_application(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA application_id = 7")
    connection.close()


def drop_table(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE heads")
    connection.close()


def store_bad_text(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("UPDATE skills SET name = CAST(x'ff' AS TEXT)")
    connection.commit()
    connection.close()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "text": lambda path: path.write_text("not a database\n" * 1_000, encoding="utf-8"),
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "overwritten": write_everywhere,
    "another version": change_version,
    "another application": change_application,
    "a table is missing": drop_table,
    "bad text": store_bad_text,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_or_foreign_index_is_built_again_and_the_log_says_so_once(
    library: Path, cache: Path, damage: Callable[[Path], object], caplog: pytest.LogCaptureFixture
) -> None:
    assert_search_works(library)
    path = database(cache)
    damage(path)
    with caplog.at_level(logging.INFO, "prowess"):
        for _ in range(3):
            assert_search_works(library)
    assert [record.getMessage() for record in caplog.records] == [
        f"the search index {path} is damaged or of another version, and is built again"
    ]
    assert database(cache) != path


def test_an_index_that_is_damaged_while_it_is_open_is_built_again(library: Path, cache: Path) -> None:
    catalog = prowess.scan(library)
    assert [hit.name for hit in catalog.search("tuna")] == ["cats"]
    write_everywhere(database(cache))
    assert [hit.name for hit in catalog.search("leash")] == ["dogs"]
    assert_search_works(library)


def test_any_part_of_an_index_may_be_damaged(library: Path, cache: Path, rng: Random) -> None:
    assert_search_works(library)
    whole = database(cache).read_bytes()
    for _ in range(40):
        path = database(cache)
        data = bytearray(whole)
        start = rng.randrange(len(data))
        data[start : start + rng.choice((1, 8, 600))] = rng.randbytes(rng.choice((1, 8, 600)))
        path.write_bytes(data[: len(whole)])
        catalog = prowess.scan(library)
        for word in (*SKILLS.values(), "take"):
            for hit in catalog.search(word, semantic=False):
                assert word in hit.skill.read_body().lower(), (start, word, hit)


def test_a_deleted_index_is_built_again_in_silence(
    library: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert_search_works(library)
    database(cache).unlink()
    assert_search_works(library)
    shutil.rmtree(cache)
    assert_search_works(library)
    assert caplog.records == []


def test_a_pointer_that_leads_elsewhere_is_not_followed(library: Path, cache: Path, tmp_path: Path) -> None:
    assert_search_works(library)
    (pointer,) = (path for path in (cache / "search").iterdir() if not path.suffix)
    outside = tmp_path / "x.db"
    database(cache).rename(outside)
    before = outside.read_bytes()
    for text in (f"../../{outside.name}", f"{pointer.name}-/../../../x.db", str(outside), "x" * 100, ""):
        pointer.write_text(text, encoding="utf-8")
        assert_search_works(library)
        assert outside.read_bytes() == before
        assert len(list((cache / "search").glob("*.db"))) == 1


def test_an_index_that_is_a_link_is_replaced_and_what_it_leads_to_stays(
    library: Path, cache: Path, tmp_path: Path
) -> None:
    assert_search_works(library)
    outside = tmp_path / "precious"
    outside.write_text("Do not touch.", encoding="utf-8")
    path = database(cache)
    path.unlink()
    path.symlink_to(outside)
    assert_search_works(library)
    assert outside.read_text(encoding="utf-8") == "Do not touch."


# -- folders that cannot be used ---------------------------------------------------------------------------------------


def let_others_write(folder: Path) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o777)


def give_away(folder: Path) -> None:
    folder.mkdir(parents=True)
    os.chown(folder, 12345, 12345)


def put_link(folder: Path) -> None:
    elsewhere = folder.parent.parent / "elsewhere"
    elsewhere.mkdir()
    folder.parent.mkdir(exist_ok=True)
    folder.symlink_to(elsewhere)


def put_file(folder: Path) -> None:
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("", encoding="utf-8")


@pytest.mark.parametrize("spoil", [let_others_write, give_away, put_link, put_file])
def test_without_a_private_folder_the_index_is_in_memory(
    library: Path, cache: Path, spoil: Callable[[Path], None], tmp_path: Path
) -> None:
    if spoil is give_away and os.geteuid() != 0:
        pytest.skip("NOT TESTED: only root can give a folder away")
    spoil(cache / "search")
    before = sorted(tmp_path.rglob("*"))
    assert_search_works(library)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("spoil", [let_others_write, give_away])
def test_a_cache_folder_of_others_is_not_used(library: Path, cache: Path, spoil: Callable[[Path], None]) -> None:
    if spoil is give_away and os.geteuid() != 0:
        pytest.skip("NOT TESTED: only root can give a folder away")
    spoil(cache)
    assert_search_works(library)
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("home", ["", "relative"])
def test_without_a_home_folder_the_index_is_in_memory(
    library: Path, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PROWESS_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", home)
    monkeypatch.setattr("pwd.getpwuid", lambda _: (_ for _ in ()).throw(KeyError))
    assert_search_works(library)


class ConnectionWithoutFullText(sqlite3.Connection):
    """A connection of a SQLite that was built without FTS5."""

    def executescript(self, sql: str) -> sqlite3.Cursor:
        raise sqlite3.OperationalError(f"no such module: fts5 ({len(sql)} characters)")


def test_a_sqlite_without_the_full_text_index_is_an_error_with_its_remedy(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlite3.connect", ConnectionWithoutFullText)
    with pytest.raises(prowess.SourceError, match="SQLite cannot search here: no such module: fts5") as caught:
        prowess.scan(library).search("tuna")
    assert "FTS5" in caught.value.hint


# -- files that cannot be written --------------------------------------------------------------------------------------


@pytest.fixture
def full_disk() -> Iterator[Callable[[int], None]]:
    """A function after which no file can grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(most: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))

    yield fill
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("most", [0, 10, 4_096, 8_192, 40_000, 60_000])
def test_on_a_full_disk_the_index_is_in_memory(
    library: Path, cache: Path, full_disk: Callable[[int], None], most: int
) -> None:
    full_disk(most)
    assert_search_works(library)
    full_disk(resource.RLIM_INFINITY)
    assert_search_works(library)
    assert database(cache).stat().st_size > 0


@pytest.mark.parametrize("most", [0, 512, 20_000])
def test_an_index_that_cannot_be_written_any_more_is_read_and_the_rest_is_in_memory(
    library: Path, cache: Path, write: Callable[..., Path], full_disk: Callable[[int], None], most: int
) -> None:
    assert_search_works(library)
    before = database(cache).read_bytes()
    write("birds", "Is about birds.", "Take a seed.\n")
    write("cats", "Is about cats.", "Take a mouse.\n")
    full_disk(most)
    catalog = prowess.scan(library)
    found = {query: [hit.name for hit in catalog.search(query)] for query in ("seed", "mouse", "tuna", "leash")}
    assert found == {"seed": ["birds"], "mouse": ["cats"], "tuna": [], "leash": ["dogs"]}
    full_disk(resource.RLIM_INFINITY)
    write("dogs", "Is about dogs.", "Take a ball.\n")
    full_disk(most)
    assert [hit.name for hit in catalog.search("leash")] == []
    assert [hit.name for hit in catalog.search("ball")] == ["dogs"]
    full_disk(resource.RLIM_INFINITY)
    assert database(cache).read_bytes() == before
    assert [hit.name for hit in prowess.scan(library).search("seed")] == ["birds"]


@pytest.fixture
def ordinary_user(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of a user for whom permissions count, which they do not for root; the test runs as that user."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED: only root can become another user")
    with TemporaryDirectory() as name:
        folder = Path(name)
        monkeypatch.setenv("PROWESS_CACHE_DIR", str(folder / "cache"))
        os.chown(folder, 12345, 12345)
        os.setegid(12345)
        os.seteuid(12345)
        try:
            yield folder
        finally:
            os.seteuid(0)
            os.setegid(0)


def put_skill(library: Path, name: str, body: str) -> None:
    (library / name).mkdir(parents=True, exist_ok=True)
    text = f"---\nname: {name}\ndescription: Is about {name}.\n---\n{body}\n"
    (library / name / "SKILL.md").write_text(text, encoding="utf-8")


def test_an_index_in_a_folder_that_cannot_be_written_is_read(ordinary_user: Path) -> None:
    library, search = ordinary_user / "skills", ordinary_user / "cache" / "search"
    for name, word in SKILLS.items():
        put_skill(library, name, f"Take a {word}.")
    assert_search_works(library)
    before = database(search.parent).read_bytes()
    database(search.parent).chmod(0o400)
    search.chmod(0o500)
    put_skill(library, "birds", "Take a seed.")
    assert_search_works(library, birds="seed")
    search.chmod(0o700)
    assert database(search.parent).read_bytes() == before


def test_in_a_cache_folder_that_cannot_be_written_the_index_is_in_memory(ordinary_user: Path) -> None:
    for name, word in SKILLS.items():
        put_skill(ordinary_user / "skills", name, f"Take a {word}.")
    (ordinary_user / "cache").mkdir(mode=0o500)
    assert_search_works(ordinary_user / "skills")
    assert list((ordinary_user / "cache").iterdir()) == []

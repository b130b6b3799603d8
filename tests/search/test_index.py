"""The index of a library: what is in it, who may read it, what is read again, and that each hit is checked."""

from __future__ import annotations

import os
import pickle
import shutil
import sqlite3
import stat
import sys
from typing import TYPE_CHECKING

import pytest

import prowess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Write = Callable[..., Path]

_opened: list[str] = []
_watching: list[bool] = []


def _note_opened(event: str, arguments: tuple[object, ...]) -> None:
    if _watching and event == "open" and isinstance(arguments[0], str | bytes):
        _opened.append(os.fsdecode(arguments[0]))


sys.addaudithook(_note_opened)  # Python keeps a hook for as long as the process lives


@pytest.fixture
def opened() -> Iterator[list[str]]:
    """The paths that were opened since."""
    _opened.clear()
    _watching.append(True)
    yield _opened
    _watching.clear()


def find(catalog: prowess.Catalog, query: str, limit: int = 10) -> list[str]:
    return [hit.name for hit in catalog.search(query, limit, semantic=False)]


def database(cache: Path) -> Path:
    (path,) = (cache / "search").glob("*.db")
    return path


def read_names(cache: Path) -> list[str]:
    """The names in the index."""
    connection = sqlite3.connect(database(cache))
    names = [name for (name,) in connection.execute("SELECT name FROM skills ORDER BY name")]
    connection.close()
    return names


# -- what is in it -----------------------------------------------------------------------------------------------------


def test_the_words_of_the_instructions_are_found(write: Write, tmp_path: Path) -> None:
    write("ledger", body="Reconcile the quarterly balance sheet.\n")
    write("other")
    assert find(prowess.scan(tmp_path / "skills"), "quarterly") == ["ledger"]


def test_only_the_beginning_of_the_instructions_is_indexed(write: Write, tmp_path: Path) -> None:
    write("long", body="x " * 2_990 + "early " + "x " * 100 + "late\n")
    catalog = prowess.scan(tmp_path / "skills")
    assert find(catalog, "early") == ["long"]
    assert find(catalog, "late") == []
    narrow = prowess.scan(tmp_path / "skills", limits=prowess.Limits(max_indexed_chars=100))
    assert find(narrow, "early") == []
    assert find(catalog, "early") == ["long"]


@pytest.mark.parametrize(
    "head",
    [
        *("tags: [zebra]\n", "metadata:\n  tags: zebra, x\n", "triggers:\n  - zebra stripes\n", "keywords: zebra\n"),
        *("when_to_use: for a zebra\n", "when-to-use: for a zebra\n"),
    ],
)
def test_tags_and_triggers_are_found(write: Write, tmp_path: Path, head: str) -> None:
    write("one", head=head)
    write("two")
    assert find(prowess.scan(tmp_path / "skills"), "zebra") == ["one"]


def test_a_body_that_is_not_text_hides_nothing_else_of_its_skill(write: Write, tmp_path: Path) -> None:
    path = write("binary", "Reads meters.")
    path.write_bytes(path.read_bytes() + b"\xff\xfe kilowatt \x00 hours")
    catalog = prowess.scan(tmp_path / "skills")
    assert find(catalog, "meters") == find(catalog, "kilowatt") == find(catalog, "hours") == ["binary"]


# -- where it is, and who may read it ----------------------------------------------------------------------------------


def test_the_index_lies_in_the_cache_folder_for_its_owner_alone(write: Write, tmp_path: Path, cache: Path) -> None:
    write("one")
    umask = os.umask(0)
    try:
        prowess.scan(tmp_path / "skills").search("one")
    finally:
        os.umask(umask)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in cache.rglob("*") if path.is_file()}
    assert modes == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (cache, cache / "search")} == {0o700}
    assert sorted(path.suffix for path in (cache / "search").iterdir()) == ["", ".db"]


def test_nothing_is_written_anywhere_else(write: Write, tmp_path: Path, cache: Path) -> None:
    write("one")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    prowess.scan(tmp_path / "skills").search("one")
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if not path.is_relative_to(cache)}
    assert after == before


def test_texts_of_a_program_are_found_and_never_written(write: Write, tmp_path: Path, cache: Path) -> None:
    write("one", "Draws maps.")
    inline = prowess.Source.inline("two", "Draws a xylophone.", "Say marimba.")
    catalog = prowess.Catalog.from_sources([prowess.Source.directory(tmp_path / "skills"), inline])
    assert find(catalog, "marimba") == ["two"]
    assert sorted(find(catalog, "draws")) == ["one", "two"]
    assert b"marimba" not in database(cache).read_bytes()
    assert b"xylophone" not in database(cache).read_bytes()


def test_a_catalogue_of_texts_needs_no_file(cache: Path) -> None:
    catalog = prowess.Catalog.from_sources([prowess.Source.inline("two", "Draws.", "Say it.")])
    assert find(catalog, "draws") == ["two"]
    assert not cache.exists()


def test_a_skill_in_memory_is_ranked_among_those_in_the_file(write: Write, tmp_path: Path) -> None:
    for number in range(30):
        write(f"filler-{number}", "Cooks soup.", "Stir it slowly.\n")
    write("weak", "Cooks soup.", "Sometimes a spreadsheet is of use.\n")
    strong = prowess.Source.inline("strong", "Fills in a spreadsheet.", "Open the spreadsheet.")
    poor = prowess.Source.inline("poor", "Cooks soup.", "Stir it, stir it, and write it down in a spreadsheet or so.")
    catalog = prowess.Catalog.from_sources([prowess.Source.directory(tmp_path / "skills"), strong, poor])
    assert find(catalog, "spreadsheet") == ["strong", "weak", "poor"]
    scores = {hit.name: hit.score for hit in catalog.search("spreadsheet", semantic=False)}
    assert scores["strong"] > 1.3 * scores["weak"] > 1.3 * scores["poor"] > 1


# -- what is read again ------------------------------------------------------------------------------------------------


def test_an_index_that_is_up_to_date_is_used_without_reading_a_skill(
    write: Write, tmp_path: Path, settle: Callable[[], None], opened: list[str]
) -> None:
    for number in range(5):
        write(f"skill-{number}", body="Paint the fence.\n")
    settle()
    assert len(find(prowess.scan(tmp_path / "skills"), "fence")) == 5
    catalog = prowess.scan(tmp_path / "skills")
    opened.clear()
    assert len(find(catalog, "fence")) == 5
    assert [path for path in opened if path.startswith(str(tmp_path / "skills"))] == []


def test_a_new_index_has_each_word_in_one_part(write: Write, tmp_path: Path, cache: Path) -> None:
    for number in range(600):  # more than one transaction writes
        write(f"skill-{number}")
    prowess.scan(tmp_path / "skills").prepare_search(semantic=False)
    assert count_parts(cache) == {"heads": 1, "texts": 1}

    write("skill-0", "Feeds cats.")
    prowess.scan(tmp_path / "skills").prepare_search(semantic=False)
    # To merge 600 skills for one would take too long. On a busy machine more than one skill may be read again.
    assert min(count_parts(cache).values()) > 1


def count_parts(cache: Path) -> dict[str, int]:
    """How many parts the full-text tables of the index have, by table."""
    connection = sqlite3.connect(database(cache))
    sql = "SELECT count(DISTINCT segid) FROM {}_idx"
    parts = {table: connection.execute(sql.format(table)).fetchone()[0] for table in ("heads", "texts")}
    connection.close()
    return parts


def test_only_what_has_changed_is_read_again(
    write: Write, tmp_path: Path, settle: Callable[[], None], opened: list[str]
) -> None:
    for number in range(5):
        write(f"skill-{number}", body="Paint the fence.\n")
    settle()
    catalog = prowess.scan(tmp_path / "skills")
    opened.clear()
    find(catalog, "fence")
    all_reads = len([path for path in opened if path.startswith(str(tmp_path / "skills"))])
    write("skill-3", body="Paint the wall.\n")
    write("skill-5", body="Paint the wall.\n")
    settle()
    catalog = prowess.scan(tmp_path / "skills")
    opened.clear()
    assert sorted(find(catalog, "wall")) == ["skill-3", "skill-5"]
    assert len(find(catalog, "fence")) == 4
    reads = len([path for path in opened if path.startswith(str(tmp_path / "skills"))])
    assert reads * 5 == all_reads * 2 > 0


def test_a_file_that_was_just_written_is_read_again_at_the_next_search(
    write: Write, tmp_path: Path, settle: Callable[[], None], opened: list[str]
) -> None:
    # Two changes within one tick of the clock can leave equal times, so such a file may not pass for the one before.
    write("one", body="Paint the fence.\n")
    assert find(prowess.scan(tmp_path / "skills"), "fence") == ["one"]
    reads = []
    for _ in range(2):
        catalog = prowess.scan(tmp_path / "skills")
        settle()
        opened.clear()
        assert find(catalog, "fence") == ["one"]
        reads.append(len([path for path in opened if path.startswith(str(tmp_path / "skills"))]))
    assert reads[0] > 0
    assert reads[1] == 0


def test_two_libraries_have_two_indexes(write: Write, tmp_path: Path, cache: Path) -> None:
    write("one")
    shutil.copytree(tmp_path / "skills", tmp_path / "others")
    prowess.scan(tmp_path / "skills").search("one")
    prowess.scan(tmp_path / "others").search("one")
    prowess.scan(tmp_path / "skills", tmp_path / "others").search("one")
    assert len(list((cache / "search").glob("*.db"))) == 3


def test_the_indexes_that_were_not_used_for_longest_go(write: Write, tmp_path: Path, cache: Path) -> None:
    limits = prowess.Limits(max_search_indexes=2)
    names = ["a", "b", "c"]
    for age, name in enumerate(names):
        shutil.copytree(write("one").parent, tmp_path / name / "one")
        before = set((cache / "search").iterdir()) if age else set()
        prowess.scan(tmp_path / name, limits=limits).search("one")
        for path in set((cache / "search").iterdir()) - before:
            os.utime(path, (1_000_000_000 + age, 1_000_000_000 + age))
    assert len(list((cache / "search").glob("*.db"))) == 2
    before = set((cache / "search").iterdir())
    prowess.scan(tmp_path / "c", limits=limits).search("one")
    assert set((cache / "search").iterdir()) == before


def test_no_index_is_kept_where_none_is_allowed(write: Write, tmp_path: Path, cache: Path) -> None:
    write("one")
    catalog = prowess.scan(tmp_path / "skills", limits=prowess.Limits(max_search_indexes=0))
    assert find(catalog, "one") == ["one"]
    assert not cache.exists()


# -- skills that change between scan and search ------------------------------------------------------------------------


@pytest.fixture
def library(write: Write, tmp_path: Path, settle: Callable[[], None]) -> Path:
    """A library that was indexed a while ago: two skills about animals, and one about neither."""
    write("cats", "Feeds cats.", "Open a tin of tuna.\n")
    write("dogs", "Walks dogs.", "Take a leash.\n")
    write("maps", "Draws maps.", "Take a compass.\n")
    settle()
    find(prowess.scan(tmp_path / "skills"), "cats")
    return tmp_path / "skills"


def test_an_edited_skill_is_found_by_what_its_file_says_now(library: Path, write: Write) -> None:
    catalog = prowess.scan(library)
    assert find(catalog, "tuna") == ["cats"]
    write("cats", "Feeds cats.", "Open a tin of salmon.\n")
    assert find(catalog, "tuna") == []
    assert find(catalog, "salmon") == ["cats"]


def test_a_removed_skill_is_not_returned(library: Path) -> None:
    catalog = prowess.scan(library)
    shutil.rmtree(library / "cats")
    assert find(catalog, "cats tuna leash") == ["dogs"]
    assert find(prowess.scan(library), "cats tuna leash") == ["dogs"]


def test_the_index_forgets_what_is_gone(library: Path, cache: Path) -> None:
    shutil.rmtree(library / "cats")
    assert find(prowess.scan(library), "leash") == ["dogs"]
    assert read_names(cache) == ["dogs", "maps"]


def test_a_skill_that_comes_back_as_it_was_is_found_again(library: Path) -> None:
    catalog = prowess.scan(library)
    (library / "cats").rename(library.parent / "away")
    assert find(catalog, "tuna") == []
    (library.parent / "away").rename(library / "cats")
    assert find(prowess.scan(library), "tuna") == ["cats"]
    assert find(catalog, "tuna") == ["cats"]


def test_a_skill_whose_file_lost_its_head_is_not_returned(library: Path) -> None:
    catalog = prowess.scan(library)
    (library / "cats" / "SKILL.md").write_text("Feeds cats.\n", encoding="utf-8")
    assert find(catalog, "cats tuna leash") == ["dogs"]


def test_a_skill_in_a_renamed_folder_is_found_at_its_new_place(library: Path) -> None:
    (library / "cats").rename(library / "felines")
    catalog = prowess.scan(library)
    (hit,) = catalog.search("tuna", semantic=False)
    assert (hit.name, hit.skill.folder_name) == ("cats", "felines")


def test_a_skill_behind_a_link_is_found_when_the_folder_of_the_link_has_moved(
    library: Path, tmp_path: Path, write: Write, settle: Callable[[], None]
) -> None:
    write("inner", "Holds others.", "Take a ladder.\n")
    settle()
    (library / "inner").rename(tmp_path / "elsewhere")
    (library / "inner").symlink_to(tmp_path / "elsewhere")
    assert find(prowess.scan(library, follow_links=True), "ladder") == ["inner"]
    (tmp_path / "elsewhere").rename(tmp_path / "moved")
    (library / "inner").unlink()
    (library / "inner").symlink_to(tmp_path / "moved")
    catalog = prowess.scan(library, follow_links=True)
    assert find(catalog, "ladder") == ["inner"]
    assert catalog.search("ladder")[0].skill.real_folder == str(tmp_path / "moved")


def test_two_names_of_one_file_are_one_hit(tmp_path: Path, put: Write) -> None:
    first, second = (tmp_path / "skills" / name for name in "ab")
    put("skills/a/cats", body="Open a tin of tuna.\n")
    (second / "cats").mkdir(parents=True)
    (second / "cats" / "SKILL.md").hardlink_to(first / "cats" / "SKILL.md")
    for catalog in (prowess.scan(first, second), prowess.scan(second, first), prowess.scan(first, second)):
        assert find(catalog, "tuna") == ["cats"]


def test_a_changed_namesake_in_another_folder_is_not_looked_at_again_and_again(
    tmp_path: Path, cache: Path, settle: Callable[[], None], put: Write
) -> None:
    for folder in ("skills/a", "skills/b"):
        put(f"{folder}/cats", body=f"Open a tin of tuna in {folder}.\n")
    settle()
    first, second = (tmp_path / "skills" / name for name in "ab")
    catalogs = [prowess.scan(first, second), prowess.scan(second, first)]
    for catalog in catalogs:
        assert find(catalog, "tuna") == ["cats"]
    put("skills/b/cats", body="Open a tin of salmon.\n")
    settle()
    assert find(catalogs[0], "tuna") == ["cats"]
    before = database(cache).stat().st_mtime_ns
    for _ in range(3):
        assert find(catalogs[0], "tuna") == ["cats"]
    assert database(cache).stat().st_mtime_ns == before
    assert find(catalogs[1], "tuna") == []
    assert find(catalogs[1], "salmon") == ["cats"]


def test_an_older_catalogue_never_returns_a_skill_that_has_moved(library: Path) -> None:
    catalog = prowess.scan(library)
    (library / "cats").rename(library / "felines")
    assert find(catalog, "tuna leash") == ["dogs"]


def swap(library: Path) -> None:
    (library / "cats").rename(library / "x")
    (library / "dogs").rename(library / "cats")
    (library / "x").rename(library / "dogs")


def test_two_skills_that_were_swapped_are_never_taken_for_each_other(library: Path) -> None:
    catalog = prowess.scan(library)
    swap(library)
    assert find(catalog, "tuna leash compass") == ["maps"]
    again = prowess.scan(library)
    for query, name in (("tuna", "cats"), ("leash", "dogs")):
        (hit,) = again.search(query, semantic=False)
        assert (hit.name, query in hit.skill.read_body()) == (name, True)
    assert find(catalog, "tuna leash compass") == ["maps"]


def test_two_files_that_were_swapped_are_never_taken_for_each_other(library: Path) -> None:
    catalog = prowess.scan(library)
    first, second = library / "cats" / "SKILL.md", library / "dogs" / "SKILL.md"
    first.rename(library / "x")
    second.rename(first)
    (library / "x").rename(second)
    assert find(catalog, "tuna leash compass") == ["maps"]


def test_a_skill_that_took_the_name_of_another_is_not_returned_in_its_place(library: Path, write: Write) -> None:
    catalog = prowess.scan(library)
    shutil.rmtree(library / "dogs")
    path = write("cats")
    path.write_text("---\nname: dogs\ndescription: Bites dogs.\n---\nTake a leash.\n", encoding="utf-8")
    assert find(catalog, "leash bites") == []


def test_two_catalogues_of_different_age_share_one_index(library: Path, write: Write, cache: Path) -> None:
    old = prowess.scan(library)
    write("cats", "Feeds cats.", "Open a tin of salmon.\n")
    write("birds", "Feeds birds.", "Scatter seeds.\n")
    shutil.rmtree(library / "maps")
    new = prowess.scan(library)
    for _ in range(3):  # neither may undo what the other has written
        assert find(new, "salmon") == ["cats"]
        assert find(new, "seeds") == ["birds"]
        assert find(old, "salmon") == ["cats"]
        assert find(old, "tuna") == find(old, "seeds") == find(old, "compass") == []
    assert read_names(cache) == ["birds", "cats", "dogs"]


def test_catalogues_of_different_age_stop_writing_once_both_agree_with_the_files(
    library: Path, write: Write, cache: Path, settle: Callable[[], None]
) -> None:
    old = prowess.scan(library)
    write("cats", "Feeds cats.", "Open a tin of salmon.\n")
    settle()
    new = prowess.scan(library)
    for catalog in (new, old, new, old):
        find(catalog, "salmon")
    before = database(cache).stat().st_mtime_ns
    for catalog in (new, old, new, old, prowess.scan(library)):
        assert find(catalog, "salmon") == ["cats"]
    assert database(cache).stat().st_mtime_ns == before


def test_a_part_of_a_catalogue_returns_none_but_its_own_skills(library: Path) -> None:
    catalog = prowess.scan(library)
    part = prowess.Catalog([catalog["cats"]])
    rest = prowess.Catalog([catalog["dogs"], catalog["maps"]])
    for _ in range(2):
        assert find(part, "take a leash and a tin of tuna") == ["cats"]
        assert sorted(find(rest, "take a leash and a tin of tuna")) == ["dogs", "maps"]


# -- ranking a part ----------------------------------------------------------------------------------------------------


def test_skills_that_may_not_be_returned_take_no_place_of_others(write: Write, tmp_path: Path) -> None:
    for number in range(40):
        write(f"a-{number}", "Paints paints paints.", "Paint.\n")
    write("z", "Cooks.", "If need be, it may also paint a little, after a long while of something else.\n")
    catalog = prowess.scan(tmp_path / "skills")
    assert [hit.name for hit in catalog.rank_skills("paint", {"z"}, 3)] == ["z"]
    assert [hit.name for hit in catalog.rank_skills("paint", {"z", "a-7"}, 3)] == ["a-7", "z"]
    assert catalog.rank_skills("paint", set(), 3) == ()
    assert len(catalog.rank_skills("paint", None, 3)) == 3


# -- pickles -----------------------------------------------------------------------------------------------------------


def test_hits_and_catalogues_can_be_pickled(library: Path) -> None:
    catalog = prowess.scan(library)
    hits = catalog.search("take a leash", semantic=False)
    again = pickle.loads(pickle.dumps(hits))  # noqa: S301 - made in the line itself
    assert (again.mode, [hit.name for hit in again], again[0].why) == ("words", ["dogs", "maps"], "words: take, leash")
    other = pickle.loads(pickle.dumps(catalog))  # noqa: S301 - made in the line itself
    assert find(other, "tuna") == ["cats"]

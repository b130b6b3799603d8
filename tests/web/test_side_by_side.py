"""Three sides of an install in rows, made from two diffs."""

from __future__ import annotations

import random
from pathlib import Path

from prowess.install.compare_source import SkillDiff
from prowess.install.file_diffs import FileDiffs
from prowess.limits import DEFAULT_LIMITS
from prowess.web.forms import MAX_ROWS, FileSides, make_sides

Files = dict[str, str | bytes]


def compare(mine: Files, locked: Files, upstream: Files) -> list[FileSides]:
    """The sides of an install, with diffs as the installer makes them."""
    diffs = []
    for side in (mine, upstream):
        paths = tuple(path for path in sorted(side.keys() | locked.keys()) if side.get(path) != locked.get(path))
        maker = FileDiffs(DEFAULT_LIMITS)
        rows = [row for path in paths for row in maker.diff_file(path, as_side(locked, path), as_side(side, path))]
        diffs.append((paths, "".join(rows)))
    (edited, edits), (updated, updates) = diffs
    return make_sides(SkillDiff("org/one", Path("one"), "a", "b", edited, edits, updated, updates))


def as_side(files: Files, path: str) -> tuple[bytes, bool] | None:
    content = files.get(path)
    if content is None:
        return None
    return content if isinstance(content, bytes) else content.encode(), False


def test_a_line_that_each_side_changed_differently_is_a_conflict() -> None:
    (file,) = compare({"a": "1\nmine\n3\n"}, {"a": "1\n2\n3\n"}, {"a": "1\ntheirs\n3\n"})
    rows = file.parts[0]
    assert [(row.mine.text, row.locked, row.upstream.text) for row in rows] == [
        ("1", "1", "1"),
        ("mine", "2", "theirs"),
        ("3", "3", "3"),
    ]
    assert [row.is_conflict for row in rows] == [False, True, False]


def test_a_change_that_both_sides_made_is_not_a_conflict() -> None:
    (file,) = compare({"a": "1\nnew\n"}, {"a": "1\n2\n"}, {"a": "1\nnew\n"})
    assert not any(row.is_conflict for row in file.parts[0])


def test_lines_that_one_side_added_stand_beside_nothing() -> None:
    (file,) = compare({"a": "1\n2\n"}, {"a": "1\n2\n"}, {"a": "1\nnew\nnewer\n2\n"})
    added = [row for row in file.parts[0] if row.number == 0]
    assert [(row.mine.text, row.upstream.text, row.upstream.change) for row in added] == [
        ("", "new", "added"),
        ("", "newer", "added"),
    ]


def test_changes_that_lie_apart_are_parts_of_their_own() -> None:
    lines = [f"{number}\n" for number in range(100)]
    mine, upstream = list(lines), list(lines)
    mine[5], upstream[90] = "mine\n", "theirs\n"
    (file,) = compare({"a": "".join(mine)}, {"a": "".join(lines)}, {"a": "".join(upstream)})
    assert [(part[0].number, part[-1].number) for part in file.parts] == [(3, 9), (88, 94)]


def test_new_and_removed_files_say_so() -> None:
    files = compare({"a": "1\n"}, {"a": "1\n", "b": "2\n"}, {"a": "4\n", "b": "2\n", "c": "3\n", "d": "5\n"})
    assert [(file.path, list(file.notes)) for file in files] == [
        ("a", []),
        ("b", ["mine: the file is gone"]),
        ("c", ["upstream: the file is new"]),
        ("d", ["upstream: the file is new"]),
    ]
    assert [row.upstream.text for row in files[2].parts[0]] == ["3"]


def test_a_binary_file_is_named_and_not_shown() -> None:
    (file,) = compare({"a": b"\0\1"}, {"a": b"\0\2"}, {"a": b"\0\2"})
    assert not file.parts
    assert "binary" in file.notes[0]


def test_lines_that_look_like_a_diff_are_lines() -> None:
    hostile = "--- a/b\n+++ b/b\n@@ -1,9 +1,9 @@\n\\ no newline\n"
    (file,) = compare({"a": f"x\n{hostile}"}, {"a": "x\n"}, {"a": "x\n"})
    assert "".join(f"{row.mine.text}\n" for row in file.parts[0]) == f"x\n{hostile}"


def test_an_install_with_too_many_lines_names_the_command_that_shows_them() -> None:
    (file,) = compare({"a": "x\n" * (MAX_ROWS + 1)}, {}, {})
    assert not file.parts
    assert "prowess diff org/one" in file.notes[-1]


def test_the_columns_are_the_files_themselves() -> None:
    for seed in range(200):
        check_columns_of_edited_file(seed)


def check_columns_of_edited_file(seed: int) -> None:
    """Compare the columns with a file that was edited twice, as the seed says."""
    chance = random.Random(seed)

    def edit(lines: list[str]) -> list[str]:
        edited = list(lines)
        for _ in range(chance.randrange(4)):
            place = chance.randrange(len(edited) + 1)
            edited[place : place + chance.randrange(3)] = [
                f"{chance.randrange(9)}\n" for _ in range(chance.randrange(3))
            ]
        return edited

    # Short files, so that the lines of context reach to both ends and every line is in a part.
    locked = [f"{number % 4}\n" for number in range(chance.randrange(4))]
    mine, upstream = edit(locked), edit(locked)
    sides = compare({"a": "".join(mine)}, {"a": "".join(locked)}, {"a": "".join(upstream)})
    rows = [row for file in sides for part in file.parts for row in part]
    if not sides:
        assert mine == locked == upstream, seed
        return
    assert [row.locked for row in rows if row.number] == [line[:-1] for line in locked], seed
    for name, lines in (("mine", mine), ("upstream", upstream)):
        cells = [(row.number, getattr(row, name)) for row in rows]
        kept = [cell.text for number, cell in cells if cell.change != "removed" and (number or cell.change)]
        assert kept == [line[:-1] for line in lines], (seed, name)

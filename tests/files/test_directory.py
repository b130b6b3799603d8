"""Folders are listed by kind, entered without following a link, and bounded."""

from __future__ import annotations

import errno
import os
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from prowess.files import directory
from prowess.files.directory import (
    Folder,
    exists,
    open_folder_beneath,
    real_path,
    stat_folder,
)
from prowess.files.read import identity_of

if TYPE_CHECKING:
    from prowess.files.read import Identity


@pytest.mark.needs_links
@pytest.mark.needs_fifo
def test_entries_are_sorted_by_kind_and_name(mixed: Path) -> None:
    with Folder(str(mixed)) as folder:
        entries = folder.list_entries()
    assert entries.folders == ["ad", "zd"]
    assert entries.files == ["af", "zf"]
    assert entries.links == ["al", "zl"]
    assert entries.others == ["ap", "zp"]
    assert entries.complete


@pytest.mark.needs_links
@pytest.mark.needs_fifo
def test_a_folder_can_be_listed_more_than_once(mixed: Path) -> None:
    with Folder(str(mixed)) as folder:
        assert folder.list_entries() == folder.list_entries()


@pytest.mark.needs_links
@pytest.mark.needs_fifo
def test_a_listing_is_bounded_and_says_so(mixed: Path) -> None:
    with Folder(str(mixed)) as folder:
        assert folder.list_entries(8).complete
        few = folder.list_entries(3)
    assert not few.complete
    assert sum(len(group) for group in (few.folders, few.files, few.links, few.others)) == 3


@pytest.mark.needs_case
def test_a_name_that_is_not_utf8_is_told_apart(tmp_path: Path) -> None:
    try:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/b\xffd")).mkdir()
    except OSError:
        pytest.skip("the file system takes only UTF-8 names")
    with Folder(str(tmp_path)) as folder:
        entries = folder.list_entries()
    assert entries.folders == []
    assert len(entries.bad_names) == 1
    assert entries.bad_names[0].isascii()


@pytest.mark.needs_links
@pytest.mark.needs_fifo
def test_a_link_is_never_entered(mixed: Path) -> None:
    with Folder(str(mixed)) as folder, pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        folder.open_child("al")


@pytest.mark.needs_links
@pytest.mark.needs_fifo
@pytest.mark.parametrize(("name", "number"), [("af", errno.ENOTDIR), ("none", errno.ENOENT)])
def test_only_folders_are_entered(mixed: Path, name: str, number: int) -> None:
    with Folder(str(mixed)) as folder, pytest.raises(OSError, match=os.strerror(number)):
        folder.open_child(name)


@pytest.mark.needs_links
def test_a_folder_that_is_swapped_for_a_link_is_still_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "old").write_bytes(b"")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "secret").write_bytes(b"")
    with Folder(str(tmp_path / "real")) as folder:
        (tmp_path / "real").rename(tmp_path / "moved")
        (tmp_path / "real").symlink_to("other")
        assert folder.list_entries().files == ["old"]


@pytest.mark.needs_links
def test_a_path_of_folders_is_entered_step_by_step(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "f").write_bytes(b"")
    (tmp_path / "l").symlink_to("a")
    with open_folder_beneath(str(tmp_path), ("a", "b")) as folder:
        assert folder.list_entries().files == ["f"]
    with open_folder_beneath(str(tmp_path), ()) as folder:
        assert folder.list_entries().folders == ["a"]
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        open_folder_beneath(str(tmp_path), ("l", "b"))


@pytest.mark.needs_links
@pytest.mark.needs_fifo
def test_no_handle_is_left_open(mixed: Path) -> None:
    def use() -> None:
        with Folder(str(mixed)) as folder:
            folder.list_entries(3)
            list(folder.read_heads(["ad", "zd", "none"], "x", 10))
        for parts in (("ad",), ("none",), ("al",), ("af",)):
            try:
                open_folder_beneath(str(mixed), parts).close()
            except OSError:
                continue

    use()
    before = os.dup(0)
    os.close(before)
    use()
    after = os.dup(0)
    os.close(after)
    assert before == after


# -- heads -------------------------------------------------------------------------------------------------------------


@pytest.mark.needs_links
@pytest.mark.needs_fifo
def test_heads_come_in_order_with_the_first_bytes_or_the_reason(tmp_path: Path) -> None:
    for name in ("file", "empty", "none", "pipe", "linked", "folder"):
        (tmp_path / name).mkdir()
    (tmp_path / "file" / "X").write_bytes(b"0123456789")
    (tmp_path / "empty" / "X").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe" / "X")
    (tmp_path / "linked" / "X").symlink_to("../file/X")
    (tmp_path / "folder" / "X").mkdir()
    (tmp_path / "link").symlink_to("file")
    names = ["file", "empty", "none", "gone", "pipe", "linked", "folder", "link"]
    with Folder(str(tmp_path)) as folder:
        found = {name: (head, error) for name, head, _, error in chain.from_iterable(folder.read_heads(names, "X", 4))}
        own = folder.read_head("none", 4)
    assert list(found) == names
    assert found["file"] == (b"0123", None)
    assert found["empty"] == (b"", None)
    assert found["none"] == found["gone"] == (None, None)
    for name in ("pipe", "linked", "folder", "link"):
        head, error = found[name]
        assert head is None
        assert error is not None, name
    assert own[1] is None


@pytest.mark.needs_links
@pytest.mark.needs_fifo
def test_the_heads_of_many_folders_are_those_that_each_folder_gives(tmp_path: Path) -> None:
    names = ["file", "none", "pipe", "linked", "folder"]
    for name in names:
        (tmp_path / name).mkdir()
    (tmp_path / "file" / "X").write_bytes(b"0123456789")
    os.mkfifo(tmp_path / "pipe" / "X")
    (tmp_path / "linked" / "X").symlink_to("../file/X")
    (tmp_path / "folder" / "X").mkdir()
    with Folder(str(tmp_path)) as folder:
        for name, head, info, error in chain.from_iterable(folder.read_heads(names, "X", 4)):
            with folder.open_child(name) as child:
                _, own_head, own_info, own_error = child.read_head("X", 4)
            assert (head, info and identity_of(info)) == (own_head, own_info and identity_of(own_info)), name
            assert getattr(error, "errno", None) == getattr(own_error, "errno", None), name


def read_all_heads(root: Path, names: list[str]) -> list[tuple[str, bytes | None, Identity | None, int | None]]:
    with Folder(str(root)) as folder:
        return [
            (name, head, identity_of(info) if info is not None else None, getattr(error, "errno", None))
            for name, head, info, error in chain.from_iterable(folder.read_heads(names, "X", 4))
        ]


@pytest.fixture
def advised(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The inode of each file that the system is advised to read, and how many bytes of it."""
    calls: list[tuple[int, int]] = []
    advise = getattr(os, "posix_fadvise", None)
    if advise is None:
        pytest.skip("NOT TESTED: advice about files; this system takes none")

    def record(fd: int, offset: int, size: int, advice: int) -> None:
        calls.append((os.fstat(fd).st_ino, size))
        advise(fd, offset, size, advice)

    monkeypatch.setattr(os, "posix_fadvise", record)
    return calls


@pytest.fixture
def many_heads(tmp_path: Path) -> list[str]:
    """Folders for more than two batches of advice, with all kinds of entries where the file should be."""
    names = [f"{number:03}" for number in range(directory.TIMED_HEADS + 2 * directory.ADVICE_BATCH + 7)]
    for number, name in enumerate(names):
        (tmp_path / name).mkdir()
        if number % 50 == 0:
            os.mkfifo(tmp_path / name / "X")
        elif number % 50 == 1:
            (tmp_path / name / "X").symlink_to("../002/X")
        elif number % 50 == 2:
            (tmp_path / name / "X").mkdir()
        elif number % 50 != 3:
            (tmp_path / name / "X").write_bytes(name.encode() * 3)
    (tmp_path / "700").symlink_to("099")
    return [*names, "700", "gone"]


@pytest.mark.needs_links
@pytest.mark.needs_fifo
def test_slow_heads_are_announced_and_the_same(
    tmp_path: Path, many_heads: list[str], advised: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "SLOW_HEAD_SECONDS", float("inf"))
    heads = read_all_heads(tmp_path, many_heads)
    assert advised == []
    monkeypatch.setattr(directory, "SLOW_HEAD_SECONDS", -1.0)
    assert read_all_heads(tmp_path, many_heads) == heads
    readable = [identity[1] for _, _, identity, _ in heads[directory.TIMED_HEADS :] if identity is not None]
    assert [inode for inode, size in advised if inode in set(readable)] == readable
    assert {size for _, size in advised} == {4}


@pytest.mark.needs_links
@pytest.mark.needs_fifo
def test_a_reader_who_stops_early_leaves_no_handle_open(
    tmp_path: Path, many_heads: list[str], advised: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "SLOW_HEAD_SECONDS", -1.0)
    before = os.dup(0)
    os.close(before)
    with Folder(str(tmp_path)) as folder:
        heads = chain.from_iterable(folder.read_heads(many_heads, "X", 4))
        assert [next(heads)[0] for _ in range(40)] == many_heads[:40]
        assert len(advised) < directory.ADVICE_BATCH + 1
    after = os.dup(0)
    os.close(after)
    assert before == after


@pytest.mark.needs_links
@pytest.mark.needs_fifo
def test_few_heads_are_read_without_a_look_at_the_clock(
    tmp_path: Path, many_heads: list[str], advised: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "SLOW_HEAD_SECONDS", -1.0)
    assert len(read_all_heads(tmp_path, many_heads[: directory.TIMED_HEADS])) == directory.TIMED_HEADS
    assert advised == []


@pytest.mark.needs_links
@pytest.mark.needs_fifo
def test_the_head_of_a_file_in_the_folder_itself(mixed: Path) -> None:
    with Folder(str(mixed)) as folder:
        assert folder.read_head("af", 1)[1] == b"a"
        assert folder.read_head("none", 1)[1:] == (None, None, None)
        assert folder.read_head("al", 1)[3] is not None
        assert folder.read_head("ap", 1)[3] is not None
        assert folder.read_head("ad", 1)[3] is not None


# -- the rest ----------------------------------------------------------------------------------------------------------


@pytest.mark.needs_links
@pytest.mark.needs_fifo
def test_what_a_path_is(mixed: Path) -> None:
    (mixed / "broken").symlink_to("nowhere")
    (mixed / "loop").symlink_to("loop")
    assert stat_folder(str(mixed)) is not None
    assert stat_folder(str(mixed / "af")) is None
    assert stat_folder(str(mixed / "none")) is None
    assert exists(str(mixed / "broken"))
    assert not exists(str(mixed / "none"))
    assert real_path(str(mixed / "al")) == os.path.realpath(mixed / "ad")
    for name, number in (("broken", errno.ENOENT), ("loop", errno.ELOOP)):
        with pytest.raises(OSError, match=os.strerror(number)):
            real_path(str(mixed / name))

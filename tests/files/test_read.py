"""Reads are bounded, of regular files only, and never half of two versions."""

from __future__ import annotations

import errno
import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from prowess import (
    PathTraversalError,
    ResourceChangedError,
    ResourceError,
    ResourceNotFoundError,
    ResourceTooLargeError,
)
from prowess.files.read import OpenFile, as_resource_error, identity_of

MIB = 1 << 20


def file_of(folder: Path, data: bytes) -> OpenFile:
    (folder / "f").write_bytes(data)
    return OpenFile(str(folder), ("f",))


# -- bounds ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 99, 100])
def test_a_file_within_the_limit_is_read_whole(tmp_path: Path, size: int) -> None:
    with file_of(tmp_path, b"x" * size) as file:
        assert file.read_all(100) == b"x" * size


def test_one_byte_too_many_is_an_error_that_states_both_sizes(tmp_path: Path) -> None:
    with file_of(tmp_path, b"x" * 101) as file, pytest.raises(ResourceTooLargeError) as caught:
        file.read_all(100)
    assert "101 bytes" in caught.value.message
    assert "at most 100" in caught.value.message
    assert caught.value.path == "f"


def test_the_limit_counts_from_the_offset(tmp_path: Path) -> None:
    with file_of(tmp_path, b"head" + b"x" * 100) as file:
        assert file.read_all(100, 4) == b"x" * 100
        with pytest.raises(ResourceTooLargeError):
            file.read_all(99, 4)


def test_at_most_what_was_asked_for_is_read(tmp_path: Path) -> None:
    with file_of(tmp_path, b"0123456789") as file:
        assert file.read(4) == b"0123"
        assert file.read(4, 8) == b"89"
        assert file.read(4, 20) == b""
        assert file.read(0) == b""


def test_a_huge_sparse_file_is_refused_without_being_read(tmp_path: Path) -> None:
    with (tmp_path / "f").open("wb") as big:
        big.truncate(5 << 30)
    with OpenFile(str(tmp_path), ("f",)) as file, pytest.raises(ResourceTooLargeError):
        file.read_all(10 * MIB)


# -- change ------------------------------------------------------------------------------------------------------------


def change_size(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def cut(path: Path) -> None:
    os.truncate(path, 10)


def rewrite(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(b"y" * len(data))
    info = path.stat()
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns + 1_000_000_000))


@pytest.mark.parametrize("change", [change_size, cut, rewrite])
def test_a_file_that_changes_between_two_pieces_is_an_error(tmp_path: Path, change: object) -> None:
    assert callable(change)
    with file_of(tmp_path, b"x" * (3 * MIB)) as file:
        pieces = file.iter_chunks(10 * MIB)
        assert next(pieces) == b"x" * MIB
        change(tmp_path / "f")
        with pytest.raises(ResourceChangedError) as caught:
            list(pieces)
    assert caught.value.code == "changed-during-read"
    assert caught.value.path == "f"


def test_a_file_that_another_thread_changes_during_the_read_is_an_error(tmp_path: Path) -> None:
    first, changed = threading.Event(), threading.Event()

    def writer() -> None:
        first.wait()
        change_size(tmp_path / "f")
        changed.set()

    thread = threading.Thread(target=writer)
    thread.start()
    with file_of(tmp_path, b"x" * (2 * MIB)) as file:
        pieces = file.iter_chunks(10 * MIB)
        next(pieces)
        first.set()
        changed.wait()
        with pytest.raises(ResourceChangedError):
            list(pieces)
    thread.join()


def test_a_file_that_grew_after_it_was_opened_is_an_error(tmp_path: Path) -> None:
    with file_of(tmp_path, b"x" * 50) as file:
        change_size(tmp_path / "f")
        with pytest.raises((ResourceChangedError, ResourceTooLargeError)):
            file.read_all(50)
        with pytest.raises(ResourceChangedError):
            file.read_all(1000)


@pytest.mark.needs_posix
def test_a_file_that_is_replaced_gives_its_old_bytes_or_an_error(tmp_path: Path) -> None:
    with file_of(tmp_path, b"x" * (2 * MIB)) as file:
        pieces = file.iter_chunks(10 * MIB)
        got = next(pieces)
        (tmp_path / "new").write_bytes(b"y" * (2 * MIB))
        (tmp_path / "new").replace(tmp_path / "f")
        try:
            got += b"".join(pieces)
        except ResourceChangedError:
            return
    assert got == b"x" * (2 * MIB)


def test_an_unchanged_file_may_be_read_again(tmp_path: Path) -> None:
    with file_of(tmp_path, b"x" * 10) as file:
        assert file.read_all(10) == file.read_all(10)


def test_the_identity_tells_versions_apart(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"one")
    first = identity_of(path.stat())
    assert identity_of(path.stat()) == first
    rewrite(path)
    assert identity_of(path.stat()) != first


# -- heads -------------------------------------------------------------------------------------------------------------


def test_a_head_is_read_in_steps_while_more_is_wanted(tmp_path: Path) -> None:
    seen: list[int] = []

    def wants_more(head: bytes) -> bool:
        seen.append(len(head))
        return len(head) < 25

    with file_of(tmp_path, b"x" * 100) as file:
        assert file.read_head(10, 64, wants_more) == (b"x" * 30, False)
    assert seen == [10, 20, 30]


@pytest.mark.parametrize(
    ("size", "expected"), [(100, (64, False)), (64, (64, True)), (65, (64, False)), (7, (7, True)), (0, (0, True))]
)
def test_a_head_ends_at_the_limit_or_at_the_end_of_the_file(
    tmp_path: Path, size: int, expected: tuple[int, bool]
) -> None:
    with file_of(tmp_path, b"x" * size) as file:
        head, whole = file.read_head(10, 64, lambda _: True)
    assert (len(head), whole) == expected


# -- what is read ------------------------------------------------------------------------------------------------------


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def make_folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.needs_fifo
@pytest.mark.parametrize("make", [make_fifo, make_socket, make_folder])
def test_what_is_not_a_regular_file_is_refused(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / "f")
    with pytest.raises(ResourceError) as caught:
        OpenFile(str(tmp_path), ("f",))
    assert caught.value.code == "not-a-regular-file"


@pytest.mark.skipif(not stat.S_ISCHR(Path(os.devnull).stat().st_mode), reason="no devices here")
@pytest.mark.parametrize("name", ["null", "zero"])
def test_a_device_is_refused(name: str) -> None:
    with pytest.raises(ResourceError) as caught:
        OpenFile("/dev", (name,))
    assert caught.value.code == "not-a-regular-file"


@pytest.mark.parametrize(
    ("number", "kind", "code"),
    [
        (errno.ENOENT, ResourceNotFoundError, "not-found"),
        (errno.ENOTDIR, ResourceNotFoundError, "not-found"),
        (errno.ENAMETOOLONG, ResourceNotFoundError, "not-found"),
        (errno.ELOOP, PathTraversalError, "path-escape"),
        (errno.EXDEV, PathTraversalError, "path-escape"),
        (errno.ENXIO, ResourceError, "not-a-regular-file"),
        (errno.EACCES, ResourceError, "unreadable"),
        (errno.EIO, ResourceError, "unreadable"),
        (errno.ESTALE, ResourceError, "unreadable"),
        (errno.EMFILE, ResourceError, "unreadable"),
    ],
)
def test_an_error_of_the_system_is_put_in_terms_of_the_file(number: int, kind: type[ResourceError], code: str) -> None:
    error = as_resource_error(OSError(number, os.strerror(number)), "references/a.md")
    assert type(error) is kind
    assert (error.code, error.path) == (code, "references/a.md")
    assert "references/a.md" in str(error)


def test_a_name_that_is_too_long_for_the_system_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFoundError):
        OpenFile(str(tmp_path), ("x" * 300,))


def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    file = file_of(tmp_path, b"x")
    file.close()
    file.close()

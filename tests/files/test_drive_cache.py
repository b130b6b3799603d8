"""What a file is flushed with: the command that empties the cache of the drive, where the system has one."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from prowess.files.syscalls import flush_to_disk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

fcntl = pytest.importorskip("fcntl", reason="NOT TESTED: flushing by a command; this system has no fcntl")
UNKNOWN = 99_999


@contextmanager
def pipe() -> Iterator[int]:
    """A descriptor that ``fsync`` refuses, so that a call of it shows."""
    reader, writer = os.pipe()
    try:
        yield writer
    finally:
        os.close(reader)
        os.close(writer)


def test_where_the_drive_can_be_flushed_the_command_for_that_is_used() -> None:
    with pipe() as descriptor:
        flush_to_disk(descriptor, fcntl.F_GETFD)  # a command that every descriptor takes
        with pytest.raises(OSError, match="Invalid argument"):
            flush_to_disk(descriptor, None)


def test_a_disk_that_does_not_know_the_command_is_flushed_as_usual(tmp_path: Path) -> None:
    with (tmp_path / "x").open("wb") as file:
        flush_to_disk(file.fileno(), UNKNOWN)
    with pipe() as descriptor, pytest.raises(OSError, match="Invalid argument"):
        flush_to_disk(descriptor, UNKNOWN)


def test_the_command_is_there_on_macos_alone() -> None:
    assert hasattr(fcntl, "F_FULLFSYNC") == (sys.platform == "darwin")

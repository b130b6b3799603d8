"""What any loader must at least do: open the files and read them. ``python -m bench.floor ROOT`` measures it."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

HEAD_BYTES = 4096
BODY_BYTES = 16 * 1024  # more than any generated body has


def clocked(work: Callable[[], T]) -> tuple[float, T]:
    """The CPU seconds (user and system) of ``work``, and what it gave, so that tearing that down is not measured."""
    begin = time.process_time()
    result = work()
    return time.process_time() - begin, result


def read_heads(root: str) -> int:
    """One ``scandir``, and for each folder ``open``, ``read`` and ``close`` of its SKILL.md; how many."""
    count = 0
    for entry in os.scandir(root):
        fd = os.open(f"{root}/{entry.name}/SKILL.md", os.O_RDONLY)
        os.read(fd, HEAD_BYTES)
        os.close(fd)
        count += 1
    return count


def read_bodies(places: list[tuple[str, int]]) -> int:
    """For each file ``open``, ``lseek`` to the given byte, ``read`` and ``close``; how many."""
    for path, offset in places:
        fd = os.open(path, os.O_RDONLY)
        os.lseek(fd, offset, os.SEEK_SET)
        os.read(fd, BODY_BYTES)
        os.close(fd)
    return len(places)


if __name__ == "__main__":
    seconds, number = clocked(lambda: read_heads(sys.argv[1]))
    print(json.dumps({"value": seconds, "count": number}))

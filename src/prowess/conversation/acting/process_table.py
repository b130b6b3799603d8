"""The processes below one process, by Linux's table of processes: finding them, measuring them, ending them.

A part of the supervisor, which loads this file by its path: only the standard library, and nothing of the package.
The host uses it too where a supervisor does not end. Linux only.
"""

from __future__ import annotations

import os
import signal
import stat
import time
from contextlib import suppress

KILL_SECONDS = 0.8
"""How long ending a program may take before what is left of it is left alone."""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if os.name == "posix" else 4096
_PROCESSORS = os.cpu_count() or 1
# The kernel adds to the counters of a process in batches, one for each processor: so much may be missing in them.
_COUNTER_ERROR = max(32, 2 * _PROCESSORS) * _PROCESSORS * PAGE_BYTES


def find_descendants(root: int) -> list[int]:
    """Return the number of every process below one."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{name}/stat", "rb") as file:
                    # The name of the program is in parentheses, and may hold spaces and parentheses itself.
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
                if state not in (b"Z", b"X"):  # these have ended, and wait to be collected
                    children.setdefault(int(parent), []).append(int(name))
    descendants: list[int] = []
    queue = [root]
    while queue:
        below = children.get(queue.pop(), [])
        descendants += below
        queue += below
    return descendants


def find_deleted_files(pids: list[int]) -> dict[tuple[int, int], tuple[int, bool]]:
    """Return each open file of processes that has no name any more: its size, and whether it is a file in memory.

    The keys are the device and the inode, so that a file which several processes have open counts once.
    """
    files: dict[tuple[int, int], tuple[int, bool]] = {}
    for pid in pids:
        with suppress(OSError):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    path = f"/proc/{pid}/fd/{fd}"
                    info = os.stat(path)
                    if stat.S_ISREG(info.st_mode) and info.st_nlink == 0:
                        in_memory = os.readlink(path).startswith("/memfd:")
                        files[info.st_dev, info.st_ino] = info.st_blocks * 512, in_memory
    return files


def measure_memory(pids: list[int], limit: int) -> int:
    """Return the memory of processes together: resident, swapped out, and memory files that none of them has mapped.

    The kernel's counters for a process are inexact by some pages for each processor. Where that could hide that
    ``limit`` is exceeded, the larger of the counter and of the exact figure (Pss) is taken.
    """
    sizes = [_read_sizes(f"/proc/{pid}/status") for pid in pids]
    counters = [sum(size.get(name, 0) for name in ("VmRSS", "VmSwap", "HugetlbPages")) for size in sizes]
    mapped = sum(size.get("RssShmem", 0) for size in sizes)
    unmapped = max(0, sum(size for size, in_memory in find_deleted_files(pids).values() if in_memory) - mapped)
    total = sum(counters) + unmapped
    if total > limit or total + len(pids) * _COUNTER_ERROR <= limit:
        return total
    # Only here, since the kernel walks through all pages for it. A process that made itself undumpable has none.
    exact = [_read_sizes(f"/proc/{pid}/smaps_rollup").get("Pss", 0) for pid in pids]
    return sum(map(max, counters, exact)) + unmapped


def _read_sizes(path: str) -> dict[str, int]:
    """Return the sizes in a file of lines such as ``VmRSS: 1234 kB``, in bytes; none where it cannot be read."""
    with suppress(OSError), open(path, encoding="ascii", errors="replace") as file:
        rows = (line.split() for line in file)
        return {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows if len(row) == 3 and row[2] == "kB"}  # noqa: PLR2004
    return {}


def end_descendants(root: int) -> None:
    """Kill every process below one, again until none is found or ``KILL_SECONDS`` have passed."""
    until = time.monotonic() + KILL_SECONDS
    while time.monotonic() < until:
        # All are stopped before the first is killed: otherwise one could fork while the others die.
        stopped: set[int] = set()
        while fresh := set(find_descendants(root)) - stopped:
            for pid in fresh:
                with suppress(OSError):
                    os.kill(pid, signal.SIGSTOP)
            stopped |= fresh
        for pid in stopped:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        # Also in the last round: a process that was not collected keeps its number. Never in the host, whose other
        # children are not ours.
        with suppress(OSError):
            while root == os.getpid() and os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not stopped:
            return

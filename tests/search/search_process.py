"""The program of the tests with several processes: each process searches, or brings an index up to date, or dies at it.

Run by a fork server. A process reports what went wrong as lines of text, and nothing when all is well.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from ctypes.util import find_library
from pathlib import Path
from typing import TYPE_CHECKING, Any

import prowess
from prowess.search import library_index, library_search  # noqa: F401 - so that forked processes have them

if TYPE_CHECKING:
    from collections.abc import Callable

WRITES = (b"pwrite64", b"pwrite", b"write", b"ftruncate", b"unlink", b"open")
"""The system calls of SQLite that change something, by SQLite's own names; opening a journal creates it."""


def report(*words: object) -> None:
    """Write a line of the report."""
    sys.stdout.write(f"{' '.join(map(str, words))}\n")


def write_skill(library: Path, name: str, word: str) -> None:
    """Write a skill at its place in one step, so that no scan sees half of it."""
    folder = library / name
    folder.mkdir(parents=True, exist_ok=True)
    text = f"---\nname: {name}\ndescription: Is about {name}.\n---\nTake {word}, and all that is common.\n"
    (folder / "new").write_text(text, encoding="utf-8")
    (folder / "new").replace(folder / "SKILL.md")


# -- searching while another process updates ---------------------------------------------------------------------------


def search_until(library: Path, stop: Path, keep: list[str]) -> None:
    """Search again and again until the file ``stop`` is there; print each result that is wrong, then the number.

    The skills ``keep`` never change, so they must always be found. Any other hit must be a skill that has the word.
    """
    count, is_over = 0, False
    while not is_over:
        is_over = stop.exists()
        catalog = prowess.scan(library)
        for _ in range(2):
            hits = catalog.search("common", 1_000, semantic=False)
            names = {hit.name for hit in hits}
            if not names >= set(keep) or len(names) != len(hits) or not names <= set(catalog.names):
                report("wrong hits:", sorted(set(keep) - names), len(hits))
            for name in keep:
                (hit,) = catalog.search(f"word{name.replace('-', '')}", semantic=False)
                if hit.name != name:
                    report("a wrong skill:", name, hit.name)
            count += 1
    report("searched", count)


def update(library: Path, names: list[str], rounds: int) -> None:
    """Change, remove and add skills, and search after each change for what is new."""
    for number in range(rounds):
        name = names[number % len(names)]
        word = f"fresh{number}"
        write_skill(library, name, word)
        found = [hit.name for hit in prowess.scan(library).search(word, semantic=False)]
        if found != [name]:
            report("not found:", name, found)
        if number % 3 == 2:
            (library / name / "SKILL.md").unlink()
            found = [hit.name for hit in prowess.scan(library).search(word, semantic=False)]
            if found:
                report("found although it is gone:", name)
    report("updated", rounds)


# -- dying -------------------------------------------------------------------------------------------------------------


class _Vfs(ctypes.Structure):
    """SQLite's description of the file system, as its header ``sqlite3.h`` has it (version 3)."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("iVersion", "szOsFile", "mxPathname")),
        ("pNext", ctypes.c_void_p),
        ("zName", ctypes.c_char_p),
        ("pAppData", ctypes.c_void_p),
        *(
            (name, ctypes.c_void_p)
            for name in (
                *("xOpen", "xDelete", "xAccess", "xFullPathname", "xDlOpen", "xDlError", "xDlSym", "xDlClose"),
                *("xRandomness", "xSleep", "xCurrentTime", "xGetLastError", "xCurrentTimeInt64"),
                *("xSetSystemCall", "xGetSystemCall", "xNextSystemCall"),
            )
        ),
    )


def watch_writes(before: Callable[[], bool]) -> bool:
    """Have ``before`` called before each write of SQLite; where it returns true, half of the bytes are written.

    Return whether this build of SQLite, and of Python, lets its system calls be replaced.
    """
    name = find_library("sqlite3")
    if name is None or "sqlite3" not in Path("/proc/self/maps").read_text(encoding="utf-8"):
        return False
    library = ctypes.CDLL(name)
    library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
    vfs = library.sqlite3_vfs_find(None)
    get = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(vfs.contents.xGetSystemCall)
    put = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(vfs.contents.xSetSystemCall)
    this = ctypes.cast(vfs, ctypes.c_void_p)
    for call in WRITES:
        address = get(this, call)
        if address:
            put(this, call, ctypes.cast(_replace(call, address, before), ctypes.c_void_p))
    return True


_kept: list[object] = []
"""The replacements of system calls, which must live as long as the process."""


def _replace(call: bytes, address: int, before: Callable[[], bool]) -> Any:
    """A function that dies where ``before`` says so, and else does what the system call at that address does."""
    # One signature serves all of these calls: each takes at most four numbers or pointers, as numbers.
    kind = ctypes.CFUNCTYPE(*[ctypes.c_long] * 5)
    original = kind(address)

    def replaced(first: int, second: int, third: int, fourth: int) -> int:
        if (call != b"open" or second & os.O_CREAT) and before():
            if call.startswith((b"pwrite", b"write")):
                original(first, second, third // 2, fourth)
            os.kill(os.getpid(), signal.SIGKILL)
        return int(original(first, second, third, fourth))

    made = kind(replaced)
    _kept.append(made)
    return made


def search_and_die(library: Path, word: str, at: int) -> None:
    """Search for a word, and die at the write of that number; print how many writes there were if there were fewer."""
    count = 0

    def is_last() -> bool:
        nonlocal count
        count += 1
        return count == at

    if not watch_writes(is_last):
        report("cannot watch")
        return
    names = [hit.name for hit in prowess.scan(library).search(word, 1_000, semantic=False)]
    report(json.dumps([count, sorted(names)]))


# -- forks -------------------------------------------------------------------------------------------------------------


def search_in_children(library: Path) -> None:
    """Search, fork, and search in the child and in its child: each process must open the index itself."""
    catalog = prowess.scan(library)
    expected = [hit.name for hit in catalog.search("common", 1_000, semantic=False)]
    inherited = catalog.search("common", semantic=False)
    for _ in range(2):
        pid = os.fork()
        if pid:
            _, status = os.waitpid(pid, 0)
            if [hit.name for hit in catalog.search("common", 1_000, semantic=False)] != expected:
                report("wrong hits in a parent")
            if status:
                report("a child ended with", status)
            sys.exit(0)
        if [hit.name for hit in catalog.search("common", 1_000, semantic=False)] != expected:
            report("wrong hits in a child")
        if inherited[0].why != "words":
            report("a wrong reason in a child", inherited[0].why)


TASKS: dict[str, Callable[..., None]] = {
    "search": lambda library, stop, keep: search_until(Path(library), Path(stop), keep),
    "update": lambda library, names, rounds: update(Path(library), names, rounds),
    "die": lambda library, word, at: search_and_die(Path(library), word, at),
    "fork": lambda library: search_in_children(Path(library)),
}


def prepare() -> Callable[..., None]:
    """Return the function that a forked process calls."""
    prowess.Catalog().search("x")
    return lambda task, *arguments: TASKS[task](*arguments)

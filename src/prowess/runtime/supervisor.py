"""A program, not a module: owns one child process and everything that grows out of it, until nothing is left.

Reads one line of JSON (``Task``) from its standard input, runs the command, and writes one line of JSON to its standard
output. When its standard input closes, whoever asked has gone: it ends the child and itself. On Linux it is the reaper
of orphans below it, so that a child which leaves its session or forks twice is still found. Only the standard library.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import IO, Any

_LINUX = sys.platform.startswith("linux")
_POSIX = os.name == "posix"
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36
_FILE_TOO_LARGE = (-getattr(signal, "SIGXFSZ", 0), 128 + getattr(signal, "SIGXFSZ", 0)) if os.name == "posix" else ()
_LOOK_EVERY = 0.05
_LAST_SECOND = 0.8
_DEEPEST = 100
_CHUNK = 1 << 16
_PAGE = os.sysconf("SC_PAGE_SIZE") if _POSIX else 4096


_libc: Any = None
if _LINUX:
    with suppress(Exception):
        import ctypes

        _libc = ctypes.CDLL(None)


class _Output:
    """What a child prints on one of its streams, up to a limit; ``full`` is set when there is more."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self.data = bytearray()
        self.full = threading.Event()
        self._stream = stream
        self._most = most
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        with suppress(OSError, ValueError):
            while not self.full.is_set():
                part = os.read(self._stream.fileno(), _CHUNK)
                if not part:
                    return
                room = self._most - len(self.data)
                self.data += part[:room]
                if len(part) > room:
                    self.full.set()


class _Run:
    """One child under watch."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.task = task
        self.limit = ""
        self.host_gone = threading.Event()
        self.began = time.monotonic()
        self.confine = _load_confinement().confine_process if task["restrictions"] else None
        self.child = subprocess.Popen(  # noqa: S603 - to run what it is told to is its purpose
            task["argv"],
            cwd=task["cwd"],
            env=task["env"],
            stdin=subprocess.PIPE if task["stdin"] else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=_POSIX,
            pass_fds=_open_inherited(task["inherited"]),
            preexec_fn=self._restrict if _POSIX else None,  # noqa: PLW1509 - no thread has been started yet
        )
        self.out = _Output(self.child.stdout, task["most_output"])  # type: ignore[arg-type]
        self.err = _Output(self.child.stderr, task["most_output"])  # type: ignore[arg-type]
        threading.Thread(target=self._feed, daemon=True).start()
        threading.Thread(target=self._listen, daemon=True).start()

    def _restrict(self) -> None:
        import resource  # noqa: PLC0415 - POSIX only

        if _libc is not None:
            _libc.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        for name, value in self.task["rlimits"].items():
            number = getattr(resource, name, None)
            if number is not None:
                hard = resource.getrlimit(number)[1]
                most = value if hard == resource.RLIM_INFINITY else min(value, hard)
                resource.setrlimit(number, (most, most))
        if self.confine is not None:
            self.confine(self.task["restrictions"])

    def _feed(self) -> None:
        if self.child.stdin is not None:
            with suppress(OSError), self.child.stdin as stream:
                stream.write(base64.b64decode(self.task["stdin"]))

    def _listen(self) -> None:
        with suppress(OSError, ValueError):
            while os.read(0, 1):
                pass
        self.host_gone.set()

    def watch(self) -> None:
        """Wait for the end of the child, or for the first limit that it meets."""
        while self.child.poll() is None and not self.limit:
            with suppress(subprocess.TimeoutExpired):
                self.child.wait(_LOOK_EVERY)
                return
            self.limit = self._met()

    def _met(self) -> str:
        if self.host_gone.is_set():
            return "cancelled"
        if time.monotonic() - self.began >= self.task["timeout"]:
            return "timeout"
        if self.out.full.is_set() or self.err.full.is_set():
            return "output"
        return self._too_many() or self._too_much()

    def _too_many(self) -> str:
        processes, memory = self.task["processes"], self.task["memory"]
        if not _LINUX or not (processes or memory):
            return ""
        pids = descendants(os.getpid())
        if processes and len(pids) > processes:
            return "processes"
        return "memory" if memory and sum(map(_resident, pids)) > memory else ""

    def _too_much(self) -> str:
        most_files, most_bytes = self.task["files"], self.task["disk"]
        if not self.task["watched"] or not (most_files or most_bytes):
            return ""
        files, size = _used(self.task["watched"], most_files or 1 << 40)
        if most_files and files > most_files:
            return "files"
        if not most_bytes:
            return ""
        if _LINUX and size < most_bytes:
            size += sum(_deleted(descendants(os.getpid())).values())
        return "disk" if size >= most_bytes else ""

    def end(self) -> None:
        """Nothing of it lives on."""
        if _POSIX:
            with suppress(OSError):
                os.killpg(self.child.pid, signal.SIGKILL)
        else:
            self.child.kill()
        with suppress(subprocess.TimeoutExpired):
            self.child.wait(_LAST_SECOND)
        if _LINUX:
            end_descendants()
        self.limit = self.limit or self._too_much()
        for stream in (self.out, self.err):
            stream.thread.join(_LAST_SECOND / 2)

    def result(self) -> dict[str, Any]:
        if not self.limit and self.child.returncode in _FILE_TOO_LARGE:
            self.limit = "disk"
        if not self.limit and (self.out.full.is_set() or self.err.full.is_set()):
            self.limit = "output"
        return {
            "status": self.child.returncode,
            "limit": self.limit,
            "seconds": time.monotonic() - self.began,
            "out": base64.b64encode(bytes(self.out.data)).decode(),
            "err": base64.b64encode(bytes(self.err.data)).decode(),
            "out_cut": self.out.full.is_set(),
            "err_cut": self.err.full.is_set(),
        }


def _load_confinement() -> Any:  # noqa: ANN401 - a module that is no part of a package here
    """Return the module beside this file; by its path, since importing the package would take longer than most runs."""
    from importlib.machinery import ModuleSpec, SourceFileLoader  # noqa: PLC0415 - only where something is confined
    from importlib.util import module_from_spec  # noqa: PLC0415

    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "confinement.py")
    loader = SourceFileLoader("confinement", path)
    module = module_from_spec(ModuleSpec("confinement", loader, origin=path))
    loader.exec_module(module)
    return module


def _open_inherited(contents: dict[str, str]) -> tuple[int, ...]:
    """Return the numbers under which the child finds open files with these contents (numbers as text, base64)."""
    for number, content in contents.items():
        # A pipe would block beyond 64 KiB and cannot be read twice; a file on the disk would have to be deleted.
        memory = os.memfd_create("inherited")
        os.write(memory, base64.b64decode(content))
        os.lseek(memory, 0, os.SEEK_SET)
        os.dup2(memory, int(number))
        os.close(memory)
    return tuple(map(int, contents))


def descendants(root: int) -> list[int]:
    """Every process below one, by the table of processes."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{name}/stat", "rb") as file:
                    row = file.read().rpartition(b")")[2].split()
                if row[0] not in (b"Z", b"X"):
                    children.setdefault(int(row[1]), []).append(int(name))
    found: list[int] = []
    queue = [root]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def _used(folders: list[str], most_files: int) -> tuple[int, int]:
    """How many entries there are below some folders, and what they take on the disk; too deep is too many."""
    files = size = 0
    queue = [(folder, 0) for folder in folders]
    while queue and files <= most_files:
        folder, depth = queue.pop()
        with suppress(OSError), os.scandir(folder) as found:
            for entry in found:
                files += 1
                with suppress(OSError):
                    size += getattr(entry.stat(follow_symlinks=False), "st_blocks", 0) * 512
                    if entry.is_dir(follow_symlinks=False):
                        queue.append((entry.path, depth + 1))
                if files > most_files:
                    break
        if depth > _DEEPEST:
            return most_files + 1, size
    return files, size


def _deleted(pids: list[int]) -> dict[tuple[int, int], int]:
    """What files take that have no name any more and are still open."""
    found: dict[tuple[int, int], int] = {}
    for pid in pids:
        with suppress(OSError):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    info = os.stat(f"/proc/{pid}/fd/{fd}")
                    if stat.S_ISREG(info.st_mode) and info.st_nlink == 0:
                        found[info.st_dev, info.st_ino] = info.st_blocks * 512
    return found


def _resident(pid: int) -> int:
    with suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/statm", "rb") as file:
        return int(file.read().split()[1]) * _PAGE
    return 0


def end_descendants() -> None:
    """Stop everything below, so that nothing forks meanwhile, then end it; again until nothing is found."""
    until = time.monotonic() + _LAST_SECOND
    while time.monotonic() < until:
        stopped: set[int] = set()
        while fresh := set(descendants(os.getpid())) - stopped:
            for pid in fresh:
                with suppress(OSError):
                    os.kill(pid, signal.SIGSTOP)
            stopped |= fresh
        if not stopped:
            _reap()
            return
        for pid in stopped:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        _reap()


def _reap() -> None:
    with suppress(OSError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def main() -> None:
    task = json.loads(sys.stdin.buffer.readline())
    if _libc is not None:
        _libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        run = _Run(task)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        answer: dict[str, Any] = {"failed": str(error)}
    else:
        run.watch()
        run.end()
        answer = run.result()
    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()

"""A program, not a module: owns one child process and everything that grows out of it, until nothing is left.

Reads one line of JSON (``Task``) from its standard input, runs the command, and writes one line of JSON to its standard
output. When its standard input closes, whoever asked has gone: it ends the child and itself. On Linux it is the reaper
of orphans below it, so that a child which leaves its session or forks twice is still found. Only the standard library.
"""

from __future__ import annotations

import base64
import json
import os
import select
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
_FILE_TOO_LARGE_STATUSES = (
    (-getattr(signal, "SIGXFSZ", 0), 128 + getattr(signal, "SIGXFSZ", 0)) if os.name == "posix" else ()
)
_POLL_SECONDS = 0.05
_KILL_SECONDS = 0.8
_MAX_DEPTH = 100
_CHUNK_BYTES = 1 << 16
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if _POSIX else 4096
_PROCESSORS = os.cpu_count() or 1
_COUNTER_ERROR = max(32, 2 * _PROCESSORS) * _PROCESSORS * _PAGE_BYTES  # the kernel's batch for each processor
_GUARD_GRACE = 2.0  # the supervisor ends everything within a second of the timeout


_libc: Any = None
if _LINUX:
    with suppress(Exception):
        import ctypes

        _libc = ctypes.CDLL(None)


class _OutputReader:
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
                part = os.read(self._stream.fileno(), _CHUNK_BYTES)
                if not part:
                    return
                room = self._most - len(self.data)
                self.data += part[:room]
                if len(part) > room:
                    self.full.set()


class _SupervisedProcess:
    """One child under watch."""

    def __init__(self, task: dict[str, Any], guard: int) -> None:
        self.task = task
        self.guard_pid = guard
        self.limit = ""
        self.host_gone = threading.Event()
        self.started_at = time.monotonic()
        self.limited_fs = _mount_file_system(task)
        self.confine = _load_confinement().confine_process if task["restrictions"] else None
        self.child = subprocess.Popen(  # noqa: S603 - to run what it is told to is its purpose
            task["argv"],
            cwd=task["cwd"],
            env=task["env"],
            stdin=subprocess.PIPE if task["stdin"] else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=_POSIX,
            pass_fds=_open_inherited_files(task["inherited"]),
            preexec_fn=self._restrict_child if _POSIX else None,  # noqa: PLW1509 - no thread has been started yet
        )
        self.out = _OutputReader(self.child.stdout, task["most_output"])  # type: ignore[arg-type]
        self.err = _OutputReader(self.child.stderr, task["most_output"])  # type: ignore[arg-type]
        threading.Thread(target=self._write_stdin, daemon=True).start()
        threading.Thread(target=self._watch_host, daemon=True).start()

    def _restrict_child(self) -> None:
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

    def _write_stdin(self) -> None:
        if self.child.stdin is not None:
            with suppress(OSError), self.child.stdin as stream:
                stream.write(base64.b64decode(self.task["stdin"]))

    def _watch_host(self) -> None:
        with suppress(OSError, ValueError):
            while os.read(0, 1):
                pass
        self.host_gone.set()

    def watch_child(self) -> None:
        """Wait for the end of the child, or for the first limit that it meets."""
        while self.child.poll() is None and not self.limit:
            with suppress(subprocess.TimeoutExpired):
                self.child.wait(_POLL_SECONDS)
                return
            self.limit = self._find_exceeded_limit()

    def _find_exceeded_limit(self) -> str:
        if self.host_gone.is_set() or os.getppid() != self.guard_pid:
            return "cancelled"
        if time.monotonic() - self.started_at >= self.task["timeout"]:
            return "timeout"
        if self.out.full.is_set() or self.err.full.is_set():
            return "output"
        return self._check_processes() or self._check_disk()

    def _check_processes(self) -> str:
        processes, memory = self.task["processes"], self.task["memory"]
        if not _LINUX or not (processes or memory):
            return ""
        pids = find_descendants(os.getpid())
        if processes and len(pids) > processes:
            return "processes"
        return "memory" if memory and measure_memory(pids, memory) > memory else ""

    def _check_disk(self) -> str:
        most_files, most_bytes = self.task["files"], self.task["disk"]
        if not self.task["watched"] or not (most_files or most_bytes):
            return ""
        files, size = (
            self.limited_fs.measure_usage()
            if self.limited_fs
            else _measure_folders(self.task["watched"], most_files or 1 << 40)
        )
        if most_files and files > most_files:
            return "files"
        if not most_bytes:
            return ""
        if _LINUX and size < most_bytes:
            counted = self.limited_fs.device if self.limited_fs else None
            files_without_name = _find_deleted_files(find_descendants(os.getpid())).items()
            size += sum(
                size for (device, _), (size, in_memory) in files_without_name if device != counted and not in_memory
            )
        return "disk" if size >= most_bytes else ""

    def end_all(self) -> None:
        """Nothing of it lives on."""
        if _POSIX:
            with suppress(OSError):
                os.killpg(self.child.pid, signal.SIGKILL)
        else:
            self.child.kill()
        with suppress(subprocess.TimeoutExpired):
            self.child.wait(_KILL_SECONDS)
        if _LINUX:
            end_descendants(os.getpid())
        self.limit = self.limit or self._check_disk()
        for stream in (self.out, self.err):
            stream.thread.join(_KILL_SECONDS / 2)

    def make_result(self) -> dict[str, Any]:
        if not self.limit and self.child.returncode in _FILE_TOO_LARGE_STATUSES:
            self.limit = "disk"
        if not self.limit and (self.out.full.is_set() or self.err.full.is_set()):
            self.limit = "output"
        return {
            "status": self.child.returncode,
            "limit": self.limit,
            "seconds": time.monotonic() - self.started_at,
            "out": base64.b64encode(bytes(self.out.data)).decode(),
            "err": base64.b64encode(bytes(self.err.data)).decode(),
            "out_cut": self.out.full.is_set(),
            "err_cut": self.err.full.is_set(),
            "counts_deleted": self.limited_fs is not None,
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


def _open_inherited_files(contents: dict[str, str]) -> tuple[int, ...]:
    """Return the numbers under which the child finds open files with these contents (numbers as text, base64)."""
    for number, content in contents.items():
        # A pipe would block beyond 64 KiB and cannot be read twice; a file on the disk would have to be deleted.
        memory = os.memfd_create("inherited")
        os.write(memory, base64.b64decode(content))
        os.lseek(memory, 0, os.SEEK_SET)
        os.dup2(memory, int(number))
        os.close(memory)
    return tuple(map(int, contents))


def find_descendants(root: int) -> list[int]:
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


def _measure_folders(folders: list[str], most_files: int) -> tuple[int, int]:
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
        if depth > _MAX_DEPTH:
            return most_files + 1, size
    return files, size


class _LimitedFileSystem:
    """A file system of limited size that holds every folder which a program may write to."""

    def __init__(self, folder: str) -> None:
        self._handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        self.device = os.fstat(self._handle).st_dev
        self._initial_entries = self._count_entries()

    def _count_entries(self) -> int:
        info = os.fstatvfs(self._handle)
        return info.f_files - info.f_ffree

    def measure_usage(self) -> tuple[int, int]:
        """Return how many entries were made in it, and what they take, also of those that have no name any more."""
        info = os.fstatvfs(self._handle)
        return self._count_entries() - self._initial_entries, (info.f_blocks - info.f_bfree) * info.f_frsize


def _mount_file_system(task: dict[str, Any]) -> _LimitedFileSystem | None:
    """Return the room that the task asks for with its folders in it, ``None`` where the system lets none be made."""
    folder, disk, files = task["room"], task["disk"], task["files"]
    # What is written there takes memory: a limit that a good part of the machine's could not hold is for the disk.
    if not _LINUX or not folder or not disk or disk > _PAGE_BYTES * os.sysconf("SC_PHYS_PAGES") // 4:
        return None
    inodes = files + len(task["watched"]) + 2 if files else 0  # one more than is allowed, and the folders themselves
    try:
        if not _load_confinement().mount_limited_folder(folder, disk, inodes):
            return None
    except OSError:
        return None
    for path in task["watched"]:
        os.mkdir(path, 0o700)
    return _LimitedFileSystem(folder)


def _find_deleted_files(pids: list[int]) -> dict[tuple[int, int], tuple[int, bool]]:
    """Return each open file that has no name any more: what it takes, and whether it is a file in memory."""
    found: dict[tuple[int, int], tuple[int, bool]] = {}
    for pid in pids:
        with suppress(OSError):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    path = f"/proc/{pid}/fd/{fd}"
                    info = os.stat(path)
                    if stat.S_ISREG(info.st_mode) and info.st_nlink == 0:
                        in_memory = os.readlink(path).startswith("/memfd:")
                        found[info.st_dev, info.st_ino] = info.st_blocks * 512, in_memory
    return found


def measure_memory(pids: list[int], most: int) -> int:
    """Return what processes take together: resident, swapped out, and open memory files that none of them has mapped.

    The kernel's counters for a process are inexact by some pages for each processor, so where that could hide that
    ``most`` is passed, the larger of the counter and of the exact figure is taken. The exact one (Pss) means a walk
    through all pages, and cannot be read of a process that made itself undumpable.
    """
    figures = [_read_sizes(f"/proc/{pid}/status") for pid in pids]
    counters = [sum(figure.get(name, 0) for name in ("VmRSS", "VmSwap", "HugetlbPages")) for figure in figures]
    mapped = sum(figure.get("RssShmem", 0) for figure in figures)
    unmapped = max(0, sum(size for size, in_memory in _find_deleted_files(pids).values() if in_memory) - mapped)
    total = sum(counters) + unmapped
    if total > most or total + len(pids) * _COUNTER_ERROR <= most:
        return total
    exact = [_read_sizes(f"/proc/{pid}/smaps_rollup").get("Pss", 0) for pid in pids]
    return sum(map(max, counters, exact)) + unmapped


def _read_sizes(path: str) -> dict[str, int]:
    """Return the sizes in a file of lines such as ``VmRSS: 1234 kB``, in bytes; nothing where it cannot be read."""
    with suppress(OSError), open(path, encoding="ascii", errors="replace") as file:
        rows = (line.split() for line in file)
        return {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows if len(row) == 3 and row[2] == "kB"}  # noqa: PLR2004
    return {}


def end_descendants(root: int) -> None:
    """Stop everything below a process, so that nothing forks meanwhile, then end it; again until nothing is found."""
    until = time.monotonic() + _KILL_SECONDS
    while time.monotonic() < until:
        stopped: set[int] = set()
        while fresh := set(find_descendants(root)) - stopped:
            for pid in fresh:
                with suppress(OSError):
                    os.kill(pid, signal.SIGSTOP)
            stopped |= fresh
        for pid in stopped:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if root == os.getpid():
            _reap_children()  # also at last: what has ended but was not collected still has its number
        if not stopped:
            return


def _reap_children() -> None:
    """Collect the children that have ended; never called in the host, whose other children are not ours."""
    with suppress(OSError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def split_off_guard(timeout: float) -> int:
    """Fork: return the number of the guard in the child, which goes on as the supervisor; the guard never returns.

    A program without a sandbox may end or stop whoever runs it. When it ends the supervisor, what it left becomes the
    guard's, which ends it; when it ends the guard, the supervisor sees that it has another parent, and ends everything.
    What is stopped is continued. Only a program that ends both at once gets away; it could end the host as well.
    """
    guard = os.getpid()
    become_reaper()
    supervisor = os.fork()
    if supervisor:
        _guard_supervisor(supervisor, time.monotonic() + timeout + _GUARD_GRACE)
    os.setsid()  # a signal to the group of one does not meet the other
    become_reaper()
    return guard


def become_reaper() -> None:
    """Have what loses its parent below this process become its child."""
    if _libc is not None:
        _libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _guard_supervisor(supervisor: int, deadline: float) -> None:
    os.close(1)  # the host reads until nobody can write any more: that is for the supervisor to decide
    ended = select.poll()
    with suppress(OSError):  # kernels before 5.3 have no such handle: then the look every so often has to do
        ended.register(os.pidfd_open(supervisor), select.POLLIN)
    while True:
        pid, status = os.waitpid(supervisor, os.WNOHANG | os.WUNTRACED)
        if pid and os.WIFSTOPPED(status):
            os.kill(supervisor, signal.SIGCONT)
        elif pid:
            break
        elif time.monotonic() > deadline:
            os.kill(supervisor, signal.SIGKILL)
        ended.poll(_POLL_SECONDS * 1000)
    if status:
        end_descendants(os.getpid())
    os._exit(0)


def main() -> None:
    task = json.loads(sys.stdin.buffer.readline())
    guard = split_off_guard(task["timeout"]) if _LINUX else os.getppid()
    try:
        run = _SupervisedProcess(task, guard)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        answer: dict[str, Any] = {"failed": str(error)}
    else:
        run.watch_child()
        run.end_all()
        answer = run.make_result()
    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()

"""The supervisor, a program that runs one command within limits and ends all of its processes.

It reads one line of JSON from its standard input (what ``run_under_supervisor`` writes), runs the command, and writes
one line of JSON to its standard output. When its standard input closes, the host has gone: it ends the child and
itself. On Linux it is the reaper of orphans below it, so that a child which leaves its session or forks twice is still
found. It uses only the standard library, and starts without importing the package.
"""

from __future__ import annotations

import base64
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from typing import IO, TYPE_CHECKING, Any

_LINUX = sys.platform.startswith("linux")
_POSIX = os.name == "posix"
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36
_FILE_TOO_LARGE_STATUSES = (
    (-getattr(signal, "SIGXFSZ", 0), 128 + getattr(signal, "SIGXFSZ", 0)) if os.name == "posix" else ()
)
_POLL_SECONDS = 0.05  # a program can exceed its limits for so long before it is ended
_CHUNK_BYTES = 1 << 16
_GUARD_GRACE = 2.0  # seconds; the supervisor ends everything within one second of the timeout


def _load_neighbour(name: str) -> Any:
    """Return a module beside this file; by its path, since importing the package would take longer than most runs."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.py")
    loader = SourceFileLoader(name, path)
    module = module_from_spec(ModuleSpec(name, loader, origin=path))
    loader.exec_module(module)
    return module


if TYPE_CHECKING:
    from prowess.conversation.acting import disk_usage, process_table
else:
    disk_usage = _load_neighbour("disk_usage")
    process_table = _load_neighbour("process_table")

_libc: Any = None
if _LINUX:
    with suppress(Exception):
        import ctypes

        _libc = ctypes.CDLL(None)


class _OutputReader:
    """Reads what a child prints on one of its streams, up to a limit; ``full`` is set when there is more."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self.data = bytearray()
        self.full = threading.Event()
        self._stream = stream
        self._limit = limit
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        with suppress(OSError, ValueError):
            while not self.full.is_set():
                part = os.read(self._stream.fileno(), _CHUNK_BYTES)
                if not part:
                    return
                room = self._limit - len(self.data)
                self.data += part[:room]
                if len(part) > room:
                    self.full.set()


class _SupervisedProcess:
    """One child, which is watched and ended."""

    def __init__(self, task: dict[str, Any], guard: int) -> None:
        self.task = task
        self.guard_pid = guard
        self.limit = ""
        self.host_gone = threading.Event()
        self.started_at = time.monotonic()
        self.limited_fs = _mount_file_system(task)
        self.confine = _load_neighbour("confinement").confine_process if task["restrictions"] else None
        self.child = subprocess.Popen(  # noqa: S603 - to run what it is given is its purpose
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
        self.out = _OutputReader(self.child.stdout, task["max_output"])  # type: ignore[arg-type]
        self.err = _OutputReader(self.child.stderr, task["max_output"])  # type: ignore[arg-type]
        threading.Thread(target=self._write_stdin, daemon=True).start()
        threading.Thread(target=self._watch_host, daemon=True).start()

    def _restrict_child(self) -> None:
        """Impose the limits that the kernel enforces; it runs in the child, between fork and exec."""
        import resource

        # Where somebody kills the supervisor, the kernel kills the child.
        if _libc is not None:
            _libc.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        for name, value in self.task["rlimits"].items():
            number = getattr(resource, name, None)
            if number is not None:
                hard = resource.getrlimit(number)[1]
                limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
                resource.setrlimit(number, (limit, limit))
        # The last step: what it imposes would forbid the steps before.
        if self.confine is not None:
            self.confine(self.task["restrictions"])

    def _write_stdin(self) -> None:
        if self.child.stdin is not None:
            with suppress(OSError), self.child.stdin as stream:
                stream.write(base64.b64decode(self.task["stdin"]))

    def _watch_host(self) -> None:
        """Set ``host_gone`` when the standard input ends: the host has closed it, or is gone."""
        with suppress(OSError, ValueError):
            while os.read(0, 1):
                pass
        self.host_gone.set()

    def watch_child(self) -> None:
        """Wait for the end of the child, or for the first limit that it exceeds."""
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
        pids = process_table.find_descendants(os.getpid())
        if processes and len(pids) > processes:
            return "processes"
        return "memory" if memory and process_table.measure_memory(pids, memory) > memory else ""

    def _check_disk(self) -> str:
        max_files, max_bytes = self.task["files"], self.task["disk"]
        if not self.task["watched"] or not (max_files or max_bytes):
            return ""
        files, size = (
            self.limited_fs.measure_usage()
            if self.limited_fs
            else disk_usage.measure_folders(self.task["watched"], max_files or 1 << 40)
        )
        if max_files and files > max_files:
            return "files"
        if not max_bytes:
            return ""
        # A file that is deleted but open takes space, and no folder shows it. The mounted file system counts its own,
        # and files in memory count as memory.
        if _LINUX and size < max_bytes:
            counted = self.limited_fs.device if self.limited_fs else None
            files_without_name = process_table.find_deleted_files(process_table.find_descendants(os.getpid())).items()
            size += sum(
                size for (device, _), (size, in_memory) in files_without_name if device != counted and not in_memory
            )
        return "disk" if size >= max_bytes else ""

    def end_all(self) -> None:
        """End the child and everything that it started."""
        if _POSIX:
            with suppress(OSError):
                os.killpg(self.child.pid, signal.SIGKILL)
        else:
            self.child.kill()
        with suppress(subprocess.TimeoutExpired):
            self.child.wait(process_table.KILL_SECONDS)
        if _LINUX:
            process_table.end_descendants(os.getpid())
        # A child that ended between two looks may have exceeded the limit, so the disk is measured once more.
        self.limit = self.limit or self._check_disk()
        for stream in (self.out, self.err):
            stream.thread.join(process_table.KILL_SECONDS / 2)

    def make_result(self) -> dict[str, Any]:
        """Return the answer to the host, as JSON types."""
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


def _open_inherited_files(contents: dict[str, str]) -> tuple[int, ...]:
    """Open files with these contents under these numbers (as text; the contents in base64); return the numbers."""
    for number, content in contents.items():
        # A pipe would block beyond 64 KiB and cannot be read twice; a file on the disk would have to be deleted.
        memory = os.memfd_create("inherited")
        os.write(memory, base64.b64decode(content))
        os.lseek(memory, 0, os.SEEK_SET)
        os.dup2(memory, int(number))
        os.close(memory)
    return tuple(map(int, contents))


def _mount_file_system(task: dict[str, Any]) -> disk_usage.LimitedFileSystem | None:
    """Return the file system that the task asks for, with its folders made; ``None`` where none can be mounted."""
    folder, disk, files = task["room"], task["disk"], task["files"]
    # The file system is in memory, so a limit of more than a quarter of the machine's memory is left to the disk.
    if not _LINUX or not folder or not disk or disk > process_table.PAGE_BYTES * os.sysconf("SC_PHYS_PAGES") // 4:
        return None
    inodes = files + len(task["watched"]) + 2 if files else 0  # one file too many, its root, and the folders
    try:
        if not _load_neighbour("confinement").mount_limited_folder(folder, disk, inodes):
            return None
    except OSError:
        return None
    for path in task["watched"]:
        os.mkdir(path, 0o700)
    return disk_usage.LimitedFileSystem(folder)


def split_off_guard(timeout: float) -> int:
    """Fork into a guard, which never returns, and the supervisor; return the guard's process number to the supervisor.

    A program without a sandbox may end or stop the supervisor. When it ends the supervisor, its processes become
    children of the guard, which ends them. When it ends the guard, the supervisor sees that it has another parent, and
    ends everything. Whichever of the two is stopped is continued by the other or by the host. Only a program that ends
    both at once gets away; it could end the host as well.
    """
    guard = os.getpid()
    become_reaper()
    supervisor = os.fork()
    if supervisor:
        _guard_supervisor(supervisor, time.monotonic() + timeout + _GUARD_GRACE)
    os.setsid()  # so that a signal to the process group of one does not reach the other
    become_reaper()
    return guard


def become_reaper() -> None:
    """Make this process the parent of every process below it whose own parent ends."""
    if _libc is not None:
        _libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _guard_supervisor(supervisor: int, deadline: float) -> None:
    """Wait for the end of the supervisor, end what it left, and exit."""
    os.close(1)  # the host reads until every writer has closed the pipe, which only the supervisor decides
    ended = select.poll()
    with suppress(OSError):  # kernels before 5.3 have no such handle: then the poll's timeout ends each wait
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
    if status:  # it was killed, so it has not ended its child
        process_table.end_descendants(os.getpid())
    os._exit(0)


def main() -> None:
    """Run the task on the standard input, and write the answer to the standard output."""
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
    # Not sys.exit, which would wait for the threads that still read from the child or the host.
    os._exit(0)


if __name__ == "__main__":
    main()

"""A fork server: a process that has imported what tests need, and forks a new process for each request.

To start Python, import Prowess and load YAML takes a quarter of a second of processor time. An MCP server takes five
times as long. A fork of a process that has imported these takes milliseconds. The forked process has its own memory,
environment, limits and standard streams.

``fork_server.py PROGRAM ARGUMENTS…`` loads the file PROGRAM and calls its function ``prepare(*arguments)``, which
imports what is needed and returns a function. For each request that function is called in a new process. The system
must have ``os.fork``.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import traceback
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

    Answer = Callable[..., None]

MOST_BYTES = 1 << 17
SECONDS = 60.0
NO_DISK_WAITS = "--no-disk-waits"

_server_options: list[str] = []


def skip_disk_waits() -> None:
    """Make ``os.fsync`` return at once, in this process and in those that fork servers fork for it; SQLite as well.

    Waiting for the disk takes most of the time of an install, and only a power cut shows the difference. Programs that
    tests start, and a run with ``--full``, do wait.
    """
    _server_options[:] = [NO_DISK_WAITS]
    os.fsync = os.fstat  # type: ignore[assignment]  # fstat also refuses a descriptor that is not open
    sqlite3.connect = _connect_without_waits  # type: ignore[assignment]


def _connect_without_waits(*arguments: Any, **options: Any) -> sqlite3.Connection:
    connection = sqlite3.Connection(*arguments, **options)
    with suppress(sqlite3.Error, UnicodeDecodeError):  # a file that is not a database says so at its first use
        connection.execute("PRAGMA synchronous = OFF")
    return connection


# -- in the test process------------------------------------------------------------------------------------------------


class ForkedProcess:
    """A process that a fork server has forked."""

    def __init__(self, report: socket.socket) -> None:
        self._report = report
        self.is_over = False
        self.pid = int(report.recv(MOST_BYTES))

    def wait(self, seconds: float = SECONDS) -> int:
        """Wait for the process to end and return its exit status, which is negative for a signal.

        Raises ``TimeoutError`` after ``seconds``.
        """
        from tests.cost_plugin import count_elsewhere

        self._report.settimeout(seconds)
        status, spent = json.loads(self._report.recv(MOST_BYTES))
        count_elsewhere(spent)
        self._report.close()
        self.is_over = True
        return int(status)

    def kill(self) -> None:
        """Kill the process if it still runs."""
        if not self.is_over:
            self.end(signal.SIGKILL)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal to the process, wait for its end, and return its exit status."""
        os.kill(self.pid, number)
        return self.wait()


class ForkServer:
    """A process that has imported what a program needs, and forks on request."""

    def __init__(self, program: Path, *arguments: str, env: tuple[tuple[str, str], ...] = ()) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, __file__, *_server_options, str(program), *arguments]
        self._process = subprocess.Popen(command, stdin=theirs.fileno(), env={**os.environ, **dict(env)})
        self._env = env
        theirs.close()
        atexit.register(self._close)

    def _close(self) -> None:
        self._control.close()
        self._process.wait()

    def fork(
        self,
        *arguments: Any,
        stdin: IO[Any] | int,
        stdout: IO[Any] | int,
        stderr: IO[Any] | int,
    ) -> ForkedProcess:
        """Fork a process that calls the function of the program with ``arguments``, and return the process.

        It has these standard streams, and the environment and the working folder of the test.
        """
        report, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = json.dumps([arguments, {**os.environ, **dict(self._env)}, str(Path.cwd())]).encode()
        files = [theirs.fileno(), *(one if isinstance(one, int) else one.fileno() for one in (stdin, stdout, stderr))]
        socket.send_fds(self._control, [request], files)
        theirs.close()
        return ForkedProcess(report)

    def run(self, *arguments: Any, given: str = "", seconds: float = SECONDS) -> subprocess.CompletedProcess[str]:
        """Fork a process with ``given`` as its input, wait for its end, and return its status and its output.

        After ``seconds`` the process is killed, and ``TimeoutError`` is raised.
        """
        with TemporaryFile() as stdin, TemporaryFile() as stdout, TemporaryFile() as stderr:
            stdin.write(given.encode())
            stdin.seek(0)
            forked = self.fork(*arguments, stdin=stdin, stdout=stdout, stderr=stderr)
            try:
                status = forked.wait(seconds)
            except TimeoutError:
                forked.end(signal.SIGKILL)
                raise
            stdout.seek(0)
            stderr.seek(0)
            return subprocess.CompletedProcess(arguments, status, stdout.read().decode(), stderr.read().decode())


@cache
def fork_server_for(program: Path, *arguments: str, env: tuple[tuple[str, str], ...] = ()) -> ForkServer:
    """Return the fork server of a program. All tests of this process share it.

    ``env`` is added to its environment. A forked process can change its environment, but ``/proc/self/environ`` keeps
    showing the one that the fork server was started with.
    """
    if not hasattr(os, "fork"):
        import pytest

        pytest.skip("NOT TESTED: needs processes that are forked")
    return ForkServer(program, *arguments, env=env)


# -- in the fork server ------------------------------------------------------------------------------------------------


def _prepare(program: str, arguments: list[str]) -> Answer:
    sys.path[0] = str(Path(program).parent)  # as if the program had been started by itself
    spec = importlib.util.spec_from_file_location("program", program)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    answer: Answer = module.prepare(*arguments)
    return answer


def _fork_for_requests(answer: Answer) -> None:
    """Fork a process for each request, until the test process closes its end of the socket."""
    control = socket.socket(fileno=0)
    while True:
        request, files, _, _ = socket.recv_fds(control, MOST_BYTES, 4)
        if not request:
            control.detach()
            return
        if os.fork() == 0:
            _supervise(json.loads(request), files, answer)
        for one in files:
            os.close(one)
        _reap()


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _supervise(request: list[Any], files: list[int], answer: Answer) -> NoReturn:
    """Fork the process of a request, wait for it, and report its exit status and its processor time."""
    report, *streams = files
    pid = os.fork()
    if pid == 0:
        os.close(report)
        _answer(request, streams, answer)
    for one in streams:
        os.close(one)
    os.write(report, str(pid).encode())
    _, status, usage = os.wait4(pid, 0)
    outcome = [os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime]
    os.write(report, json.dumps(outcome).encode())
    os._exit(0)


def _answer(request: list[Any], streams: list[int], answer: Answer) -> NoReturn:
    arguments, environment, folder = request
    status = 1
    try:
        for number, one in enumerate(streams):
            os.dup2(one, number)
            os.close(one)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        answer(*arguments)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:  # noqa: BLE001 - a program prints any error and ends
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    if sys.argv[1] == NO_DISK_WAITS:
        del sys.argv[1]
        skip_disk_waits()
    _fork_for_requests(_prepare(sys.argv[1], sys.argv[2:]))

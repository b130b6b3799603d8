"""Processes of tests without the cost of starting Python: one that has imported what they need forks for each.

To start Python, import the engine and load YAML takes a quarter of a second of the processor, a server for MCP five
times as long; a fork of a process that has done so takes milliseconds. What is forked is a process of its own all the
same, with its own memory, environment, limits and standard streams.

As a program, ``nursery.py PROGRAM ARGUMENTS…`` calls ``prepare(*arguments)`` of that file, which imports what is needed
and returns a function; each request is answered by that function in a new process. Needs ``os.fork``.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import traceback
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

_nursery_options: list[str] = []


def skip_disk_waits() -> None:
    """Have this process, and what nurseries fork for it, go on without waiting until the disk holds what was written.

    That is most of the time of an install, and shows only after a power cut, which no test brings about. Programs that
    are started, and the whole run with ``--full``, wait.
    """
    _nursery_options[:] = [NO_DISK_WAITS]
    os.fsync = os.fstat  # type: ignore[assignment]  # which refuses a descriptor that is not open, too


# -- in the test -------------------------------------------------------------------------------------------------------


class Forked:
    """A process that a nursery forked."""

    def __init__(self, report: socket.socket) -> None:
        self._report = report
        self.is_over = False
        self.pid = int(report.recv(MOST_BYTES))

    def wait(self, seconds: float = SECONDS) -> int:
        """Its exit status, negative for a signal, as ``subprocess`` has it; ``TimeoutError`` after ``seconds``."""
        from tests.costs import count_elsewhere  # noqa: PLC0415 - the nursery itself has no pytest

        self._report.settimeout(seconds)
        status, spent = json.loads(self._report.recv(MOST_BYTES))
        count_elsewhere(spent)
        self._report.close()
        self.is_over = True
        return int(status)

    def kill(self) -> None:
        """End it at once where it still runs."""
        if not self.is_over:
            self.end(signal.SIGKILL)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Its exit status after it got this signal."""
        os.kill(self.pid, number)
        return self.wait()


class Nursery:
    """A process that has imported what a program needs, and forks when asked to."""

    def __init__(self, program: Path, *arguments: str, env: tuple[tuple[str, str], ...] = ()) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, __file__, *_nursery_options, str(program), *arguments]
        self._process = subprocess.Popen(command, stdin=theirs.fileno(), env={**os.environ, **dict(env)})
        self._env = env
        theirs.close()
        atexit.register(self._close)

    def _close(self) -> None:
        self._control.close()
        self._process.wait()

    def fork(
        self,
        *arguments: Any,  # noqa: ANN401 - what JSON holds
        stdin: IO[Any] | int,
        stdout: IO[Any] | int,
        stderr: IO[Any] | int,
    ) -> Forked:
        """A new process that answers ``arguments``, with these streams, our environment and our working folder."""
        report, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = json.dumps([arguments, {**os.environ, **dict(self._env)}, str(Path.cwd())]).encode()
        files = [theirs.fileno(), *(one if isinstance(one, int) else one.fileno() for one in (stdin, stdout, stderr))]
        socket.send_fds(self._control, [request], files)
        theirs.close()
        return Forked(report)

    def run(self, *arguments: Any, given: str = "", seconds: float = SECONDS) -> subprocess.CompletedProcess[str]:  # noqa: ANN401 - what JSON holds
        """What a new process printed, with ``given`` as its input; after ``seconds`` it is killed: ``TimeoutError``."""
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
def nursery_of(program: Path, *arguments: str, env: tuple[tuple[str, str], ...] = ()) -> Nursery:
    """The nursery of a program, one for all tests of this process.

    ``env``: what is added to its environment. That of a forked process can be changed, but what the system tells of it
    (``/proc/self/environ``) is what the nursery was started with.
    """
    if not hasattr(os, "fork"):
        import pytest  # noqa: PLC0415 - the nursery itself has no pytest

        pytest.skip("NOT TESTED: needs processes that are forked")
    return Nursery(program, *arguments, env=env)


# -- in the nursery ----------------------------------------------------------------------------------------------------


def _prepare(program: str, arguments: list[str]) -> Answer:
    sys.path[0] = str(Path(program).parent)  # as if it had been started; in place of the folder of this file
    spec = importlib.util.spec_from_file_location("program", program)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    answer: Answer = module.prepare(*arguments)
    return answer


def _fork_for_requests(answer: Answer) -> None:
    """Fork for each request, until whoever asks is gone."""
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
    """Between the nursery and the process, so that somebody waits for it and can tell what it cost."""
    report, *streams = files
    pid = os.fork()
    if pid == 0:
        os.close(report)
        _answer(request, streams, answer)
    for one in streams:
        os.close(one)
    os.write(report, str(pid).encode())
    _, status, usage = os.wait4(pid, 0)
    told = [os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime]
    os.write(report, json.dumps(told).encode())
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
    except BaseException:  # noqa: BLE001 - as a program of its own: the error is printed, and it ends
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    if sys.argv[1] == NO_DISK_WAITS:
        del sys.argv[1]
        skip_disk_waits()
    _fork_for_requests(_prepare(sys.argv[1], sys.argv[2:]))

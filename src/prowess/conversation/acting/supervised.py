"""The host's side of the supervisor: running a program within limits, and ending all of its processes.

The supervisor (``supervisor.py``) is a process of its own, so nothing changes in the host's process: it gets no signal
handlers, and none of its own children are reaped.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from prowess.conversation.acting.process_table import end_descendants
from prowess.conversation.acting.sandbox.layout import Confined
from prowess.errors import SandboxError
from prowess.thread_work import call_on_cancel

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable, Mapping, Sequence

    from prowess.limits import Limits

LimitName = Literal["", "timeout", "output", "memory", "processes", "files", "disk", "cancelled"]

INHERITED_VARIABLES = (
    "PATH",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "TZ",
    "TMPDIR",
    "TEMP",
    "TMP",
    "SYSTEMROOT",
)
"""The variables that a program of a skill sees of the host's environment; nothing else, so no secrets."""

_SUPERVISOR_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
_SUPERVISOR_PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "supervisor.py")
_DELETED_FILES_GAP = "deleted files that a program keeps are counted only where the system shows them as open"
_GRACE_SECONDS = 4.0  # the supervisor ends everything within a second of the timeout; this is for a machine under load


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """The outcome of a program: its exit status (negative: a signal), what it printed, and which limit ended it."""

    status: int
    stdout: bytes
    stderr: bytes
    seconds: float
    limit: LimitName = ""
    stdout_cut: bool = False
    stderr_cut: bool = False
    gaps: tuple[str, ...] = ()
    """What the limits cannot prevent on this machine."""


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """What a program may use; 0 means no limit."""

    seconds: float
    output: int
    memory: int = 0
    processes: int = 0
    disk: int = 0
    files: int = 0

    @classmethod
    def for_commands(cls, limits: Limits) -> ProcessLimits:
        """Return the limits of commands in instructions."""
        return cls(limits.max_command_seconds, limits.max_command_output_bytes)

    @classmethod
    def for_scripts(cls, limits: Limits) -> ProcessLimits:
        """Return the limits of scripts."""
        return cls(
            limits.max_script_seconds,
            limits.max_script_output_bytes,
            limits.max_script_memory_bytes,
            limits.max_script_processes,
            limits.max_script_disk_bytes,
            limits.max_script_files,
        )


def make_environment(extra: Mapping[str, str] | None = None, names: Iterable[str] = ()) -> dict[str, str]:
    """Return the environment of a skill's program: the allow-list, the host's variables ``names``, and ``extra``."""
    inherited = {name: os.environ[name] for name in (*INHERITED_VARIABLES, *names) if name in os.environ}
    return {**inherited, **(extra or {})}


def run_under_supervisor(
    command: Sequence[str] | Confined,
    bounds: ProcessLimits,
    *,
    cwd: str,
    env: Mapping[str, str],
    stdin: bytes = b"",
    watched: Sequence[str] = (),
    room: str = "",
) -> ProcessResult:
    """Run a program to its end, or to the first limit that it meets; return its outcome. No process of it is left.

    ``command``: its words, or a command line in a sandbox. ``watched``: folders whose size is limited.
    ``room``: a folder with all of them in it, over which memory of that size may be mounted for the program. Raises
    ``SandboxError`` when it cannot be started.
    """
    argv, inherited, restrictions = command if isinstance(command, Confined) else Confined(list(command))
    task = {
        "argv": argv,
        "inherited": {number: base64.b64encode(content).decode() for number, content in inherited.items()},
        "restrictions": restrictions,
        "cwd": cwd,
        "env": dict(env),
        "stdin": base64.b64encode(stdin).decode(),
        "watched": list(watched),
        "room": room,
        "timeout": bounds.seconds,
        "max_output": bounds.output,
        "memory": bounds.memory,
        "processes": bounds.processes,
        "disk": bounds.disk,
        "files": bounds.files,
        # What the kernel enforces by itself: no core files, which could be large and hold secrets, and no single file
        # beyond the limit of the disk.
        "rlimits": {"RLIMIT_CORE": 0, **({"RLIMIT_FSIZE": bounds.disk} if bounds.disk else {})},
    }
    answer = _ask_supervisor(task, bounds.seconds + _GRACE_SECONDS)
    if "failed" in answer:
        raise SandboxError(f"cannot start {argv[0]!r}: {answer['failed']}", code="cannot-start")
    return ProcessResult(
        answer["status"] if answer["status"] is not None else -9,
        base64.b64decode(answer["out"]),
        base64.b64decode(answer["err"]),
        answer["seconds"],
        answer["limit"],
        answer["out_cut"],
        answer["err_cut"],
        () if not room or answer["counts_deleted"] else (_DELETED_FILES_GAP,),
    )


def _ask_supervisor(task: dict[str, Any], timeout: float) -> dict[str, Any]:
    """Return the supervisor's answer to a task; raise ``SandboxError`` where it gives none in time."""
    import subprocess

    supervisor = subprocess.Popen(  # noqa: S603 - our own program; the task reaches it as data
        [sys.executable, "-I", "-S", "-B", _SUPERVISOR_PATH],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # A program without a sandbox could read the environment of the supervisor, so it holds no secrets.
        env={name: os.environ[name] for name in _SUPERVISOR_VARIABLES if name in os.environ},
        start_new_session=os.name == "posix",
        close_fds=True,
    )
    answers: list[bytes] = []
    ended = threading.Event()

    # In a thread of its own, since reading from a pipe cannot be given a timeout.
    def read_answer() -> None:
        answers.append(_read_output(supervisor))
        ended.set()

    try:
        threading.Thread(target=read_answer, daemon=True).start()
        with suppress(OSError):
            assert supervisor.stdin is not None
            supervisor.stdin.write(json.dumps(task).encode() + b"\n")
            supervisor.stdin.flush()
        with call_on_cancel(ended.set):  # when the host cancels the call, the supervisor is stopped at once
            ended.wait(timeout)
    finally:
        _stop_supervisor(supervisor)
    try:
        answer: dict[str, Any] = json.loads(answers[0])
    except (IndexError, ValueError):
        raise SandboxError("the supervisor of a program ended without an answer", code="no-answer") from None
    return answer


def _read_output(supervisor: subprocess.Popen[bytes]) -> bytes:
    with suppress(OSError, ValueError):
        assert supervisor.stdout is not None
        return supervisor.stdout.read()
    return b""


def _stop_supervisor(supervisor: subprocess.Popen[bytes]) -> None:
    """Close the supervisor's input, on which it ends everything; if that takes too long, kill it and its children."""
    import subprocess

    with suppress(OSError):
        supervisor.stdin.close()  # type: ignore[union-attr]
    if hasattr(signal, "SIGCONT"):  # a program without a sandbox may have stopped it
        supervisor.send_signal(signal.SIGCONT)
    try:
        supervisor.wait(2)
    except subprocess.TimeoutExpired:
        # The program may stop the supervisor again and again; then the host itself ends the program.
        if sys.platform.startswith("linux"):
            end_descendants(supervisor.pid)
        supervisor.kill()
        supervisor.wait()
    with suppress(OSError):
        supervisor.stdout.close()  # type: ignore[union-attr]

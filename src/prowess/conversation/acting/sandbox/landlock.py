"""The sandbox ``landlock``, for hosts that refuse user namespaces, as most containers do.

Landlock lets a program open only the files that are named. A filter of system calls refuses sockets and whatever
Landlock does not govern, and all capabilities are dropped. Unlike in ``bwrap``, folders have their real paths, and a
program may learn whether any file exists, how large it is and when it changed, but not its content.
"""

from __future__ import annotations

import base64
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from prowess.conversation.acting.sandbox import layout
from prowess.conversation.acting.sandbox.layout import (
    PROBE_COMMAND,
    Confined,
    Jail,
    Protected,
    Sandbox,
    explain_failure,
    list_open_entries,
)
from prowess.conversation.acting.sandbox.seccomp import build_sandbox_filter, can_filter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# The bits of LANDLOCK_ACCESS_FS_…, in the kernel's order.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_DEVICES = 1 << 6 | 1 << 11  # character and block devices: only root can, and no script should
_TRUNCATE, _DEVICE_COMMANDS = 1 << 14, 1 << 15
_FILE_ACCESS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _DEVICE_COMMANDS
_READ = _EXECUTE | _READ_FILE | _READ_FOLDER
_WRITE = (1 << 15) - 1 & ~_MAKE_DEVICES
_USE_DEVICE = _READ_FILE | _WRITE_FILE | _TRUNCATE | _DEVICE_COMMANDS
_TCP_ACCESS = 3  # to bind and to connect
_SCOPED_ACCESS = 3  # abstract sockets and signals

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# Facts about the machine that interpreters ask for. Nothing of any process: a rule cannot name just the own one.
_READABLE_PROC_FILES = tuple(
    f"/proc/{name}" for name in ("cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "uptime", "version")
)

_MIN_AUTO_VERSION = 3  # before that, a program could empty files that it may not open
_GAP_BY_VERSION = {
    2: "files cannot be moved from one folder to another",
    3: "files that it may not open can be cut to nothing by truncate",
    4: "TCP is held back by the filter of system calls alone",
    5: "commands to devices (ioctl) are not held back",
    6: "signals to other processes of the same user are not held back",
}
"""The version of Landlock that closes each gap."""


@cache
def probe_landlock() -> Sandbox:
    """Return the sandbox, with whether it works on this machine, which is tried once."""
    if not sys.platform.startswith("linux"):
        return _make_unusable("it is for Linux only")
    if not can_filter():
        return _make_unusable("its filter of system calls is for x86_64 and aarch64 only")
    from prowess.conversation.acting.confinement import landlock_version

    version = landlock_version()
    if not version:
        return _make_unusable("this kernel has none (it came with 5.13), or does not let it be used")
    message = explain_failure(landlock_command(PROBE_COMMAND, Jail("/", "/", "/", "/"), version=version))
    return _make_unusable(f"it does not work here: {message}") if message else describe_version(version)


def _make_unusable(why: str) -> Sandbox:
    return Sandbox("landlock", usable=False, why=f"landlock: {why}")


def describe_version(version: int) -> Sandbox:
    """Return the sandbox with a version of Landlock: what it cannot prevent, and whether ``auto`` may take it."""
    gaps = tuple(gap for since, gap in _GAP_BY_VERSION.items() if version < since)
    why = f"only the system and the skill can be read, no network; version {version} of Landlock"
    why += f", too old for 'auto': {'; '.join(gaps)}" if version < _MIN_AUTO_VERSION else ""
    return Sandbox("landlock", usable=True, why=why, gaps=gaps, automatic=version >= _MIN_AUTO_VERSION)


def landlock_command(argv: Sequence[str], jail: Jail, *, version: int | None = None) -> Confined:
    """Return ``argv`` with the restrictions that the supervisor imposes before it starts.

    ``version``: the version of Landlock to use; without it, the kernel's.
    """
    if version is None:
        from prowess.conversation.acting.confinement import landlock_version

        version = landlock_version()
    program = build_sandbox_filter("landlock", network=jail.network, folder=jail.is_folder_of_host)
    is_shared = bool(jail.protected.entries or jail.protected.closed)
    readable = (*layout.SYSTEM_FOLDERS, *layout.settings_files(network=jail.network), jail.skill, *jail.needs)
    restrictions: dict[str, Any] = {
        **_make_access_bits(version, network=jail.network),
        "rules": [
            *((path, _READ) for path in readable),
            *((path, _READ_FILE) for path in _READABLE_PROC_FILES),
            *((path, _USE_DEVICE) for path in _DEVICES),
            (jail.temporary, _READ | _WRITE),
            (jail.work, _READ if is_shared else _READ | _WRITE),
        ],
        "work": jail.work,
        # Rights only add up: whoever may make files in a folder may change everything in it.
        "work_rules": [(path, _READ | _WRITE) for path in _list_writable(jail)] if is_shared else [],
        "file_access": _FILE_ACCESS,
        "filter": base64.b64encode(program).decode(),
    }
    return Confined(list(argv), restrictions=restrictions)


def closed_folders(protected: Protected) -> tuple[str, ...]:
    """Return the folders where nothing can be made, renamed or deleted, because something in them is protected."""
    if not (protected.entries or protected.closed):
        return ()
    return tuple(sorted({"", *protected.between, *protected.closed}))


def _list_writable(jail: Jail) -> Iterator[str]:
    return list_open_entries(jail.work, closed_folders(jail.protected), jail.protected)


def _make_access_bits(version: int, *, network: bool) -> dict[str, int]:
    """Return the bits of what a version of Landlock can prevent, and the size of the kernel's structure for them."""
    # A kernel refuses bits that it does not know, so each bit is set only from the version on that brought it.
    newest_file_bit = 12 + (version >= 2) + (version >= 3) + (version >= 5)  # noqa: PLR2004 - versions
    return {
        "files": (1 << newest_file_bit + 1) - 1,
        "network": _TCP_ACCESS if version >= 4 and not network else 0,  # noqa: PLR2004
        "scoped": _SCOPED_ACCESS if version >= 6 else 0,  # noqa: PLR2004
        "size": 8 if version < 4 else 16 if version < 6 else 24,  # noqa: PLR2004
    }

"""What all kinds of sandbox share: their description, the folders of a run, the readable system files, a probe."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.errors import SandboxError
from prowess.files.paths import is_inside

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
"""The folders of the system's programs and libraries."""
# Only what programs fail without. The rest of /etc may hold passwords of services, and names of users and hosts.
_SETTINGS = (
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime"),
    *("ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "pki/ca-trust", "ca-certificates"),
)
_NETWORK_SETTINGS = ("resolv.conf", "hosts", "nsswitch.conf", "services", "protocols")


class Sandbox(NamedTuple):
    """One kind of sandbox, and whether it works on this machine."""

    name: str
    usable: bool
    why: str
    """What it does, or why it does not work."""
    gaps: tuple[str, ...] = ()
    """What it cannot prevent with the kernel of this machine; each result of a script repeats it."""
    automatic: bool = True
    """Whether ``auto`` may take it; a sandbox that works may still be too weak for that."""
    program: str = ""
    """The path of the program that confines, where there is one."""


class Protected(NamedTuple):
    """What a program may not change in its working folder; every path is relative to that folder."""

    entries: tuple[str, ...] = ()
    """Files and folders that stay as they are, with everything in them."""
    between: tuple[str, ...] = ()
    """The folders around those: they keep their names, because a renamed folder would take what is in it along."""
    closed: tuple[str, ...] = ()
    """Folders where nothing can be made, renamed or deleted; ``""`` is the working folder itself."""
    unwelcome: tuple[str, ...] = ()
    """Files that do not exist, and that are deleted again when the program has made them."""


class Jail(NamedTuple):
    """What a program in a sandbox may use besides the system, by its paths outside of the sandbox."""

    skill: str
    work: str
    temporary: str
    shared_memory: str
    needs: tuple[str, ...] = ()
    """The files and folders that its interpreter must be able to read."""
    network: bool = False
    protected: Protected = Protected()
    is_folder_of_host: bool = False
    """Whether ``work`` is a folder of the host, and not one that was made for this program."""


class Places(NamedTuple):
    """The folders of a jail by their paths inside of the sandbox."""

    skill: str
    work: str
    temporary: str


class Confined(NamedTuple):
    """A command line in a sandbox, and what the supervisor must do before it starts the command."""

    argv: list[str]
    inherited: Mapping[int, bytes] = {}
    """The content of each open file that the program inherits, by its file descriptor."""
    restrictions: Mapping[str, Any] | None = None
    """The restrictions that ``confine_process`` imposes on the program."""


def list_open_entries(work: str, folders: Iterable[str], protected: Protected) -> Iterator[str]:
    """Yield the entries of folders that the program may change although nothing can be made in the folder itself.

    Links are left out: as long as nothing can be made in their folder, they stay as they are.
    """
    kept = {*protected.entries, *protected.between, *protected.closed}
    for folder in folders:
        with suppress(OSError), os.scandir(os.path.join(work, folder)) as children:
            for child in children:
                path = f"{folder}/{child.name}" if folder else child.name
                if path not in kept and not child.is_symlink():
                    yield path


def settings_files(*, network: bool) -> list[str]:
    """Return the files and folders below ``/etc`` that programs need; those for the network only with ``network``."""
    return [f"/etc/{name}" for name in (*_SETTINGS, *(_NETWORK_SETTINGS if network else ()))]


def is_system_path(path: str) -> bool:
    """Return whether a path is in one of the system's folders."""
    return any(is_inside(path, top) for top in SYSTEM_FOLDERS)


PROBE_COMMAND = ("/bin/sh", "-c", "exit 0")
"""The program that is confined to find out whether a sandbox works."""
# It ends within milliseconds: a sandbox that hangs must not hold up the host.
_MAX_SECONDS, _MAX_OUTPUT_BYTES = 10, 4096


def explain_failure(confined: Confined) -> str | None:
    """Return why a confined probe fails, ``None`` when it succeeds."""
    from prowess.conversation.acting.supervised import (
        ProcessLimits,
        run_under_supervisor,
    )  # a cycle: it imports layout from this package

    try:
        finished = run_under_supervisor(confined, ProcessLimits(_MAX_SECONDS, _MAX_OUTPUT_BYTES), cwd="/", env={})
    except SandboxError as error:
        return error.message
    if finished.status == 0 and not finished.limit:
        return None
    message = finished.stderr.decode("utf-8", "replace").strip()
    return message or finished.limit or f"exit status {finished.status}"

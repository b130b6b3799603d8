"""What all kinds of sandbox share: their description, the folders of a run, the readable parts of the system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.files.paths import is_inside

if TYPE_CHECKING:
    from collections.abc import Mapping

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


class Jail(NamedTuple):
    """What a program in a sandbox may use besides the system, by its paths outside of the sandbox."""

    skill: str
    work: str
    temporary: str
    shared_memory: str
    needs: tuple[str, ...] = ()
    """The files and folders that its interpreter must be able to read."""
    network: bool = False


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


def settings_files(*, network: bool) -> list[str]:
    """Return the files and folders below ``/etc`` that programs need; those for the network only with ``network``."""
    return [f"/etc/{name}" for name in (*_SETTINGS, *(_NETWORK_SETTINGS if network else ()))]


def is_system_path(path: str) -> bool:
    """Return whether a path lies in one of the system's folders."""
    return any(is_inside(path, top) for top in SYSTEM_FOLDERS)

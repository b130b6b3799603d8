"""What every kind of sandbox shares: the folders of a run, and which parts of the system a program may read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.files.paths import is_inside

if TYPE_CHECKING:
    from collections.abc import Mapping

SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
"""The folders of the system's programs and libraries."""
_SETTINGS = (
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime"),
    *("ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "pki/ca-trust", "ca-certificates"),
)
_NETWORK_SETTINGS = ("resolv.conf", "hosts", "nsswitch.conf", "services", "protocols")


class Sandbox(NamedTuple):
    """One kind of isolation: whether it works here, and why not."""

    name: str
    usable: bool
    why: str
    """What it does, or what keeps it from working."""
    gaps: tuple[str, ...] = ()
    """What this machine's kernel keeps it from promising; each result repeats it."""
    automatic: bool = True
    """Whether ``auto`` may take it; one that works may still be too weak for that."""
    program: str = ""
    """The program that does it, where one does."""


class Jail(NamedTuple):
    """What a program in a sandbox may use besides the system: each a folder outside."""

    skill: str
    work: str
    temporary: str
    shared_memory: str
    needs: tuple[str, ...] = ()
    network: bool = False


class Places(NamedTuple):
    """The same folders under the names that the program inside has for them."""

    skill: str
    work: str
    temporary: str


class Confined(NamedTuple):
    """A command line in a sandbox, and what the supervisor must do before it starts it."""

    argv: list[str]
    inherited: Mapping[int, bytes] = {}
    """The numbers of open files that the program finds, and what is in them."""
    restrictions: Mapping[str, Any] | None = None
    """What ``confinement.py`` is to impose on the program."""


def settings_files(*, network: bool) -> list[str]:
    """Return the files and folders below ``/etc`` that programs need, those for the network only if they may use it."""
    return [f"/etc/{name}" for name in (*_SETTINGS, *(_NETWORK_SETTINGS if network else ()))]


def is_system_path(path: str) -> bool:
    """Return whether a path lies in one of the system's folders."""
    return any(is_inside(path, top) for top in SYSTEM_FOLDERS)

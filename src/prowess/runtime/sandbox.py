"""Isolation for scripts: which kinds this machine has, and how a program is wrapped in one.

``bwrap`` (bubblewrap, Linux): the system read-only, the skill read-only, a work folder, nothing else; its own
processes, no network unless it is asked for. ``none``: no isolation at all, only when it is asked for by name.
"""

from __future__ import annotations

import os
import shutil
import sys
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from prowess.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Sequence

Kind = Literal["auto", "bwrap", "none"]

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
_SETTINGS = (
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime"),
    *("ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "pki/ca-trust", "ca-certificates"),
)
_NETWORK_SETTINGS = ("resolv.conf", "hosts", "nsswitch.conf", "services", "protocols")
_KERNEL = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "pressure")  # settings that root could write
_CLOSED = ("--remount-ro", "/dev", "--remount-ro", "/")  # what is mounted below stays as it was mounted
_PROBE_SECONDS = 10


class Sandbox(NamedTuple):
    """One kind of isolation: whether it works here, and why not."""

    name: str
    usable: bool
    why: str
    """What it does, or what keeps it from working."""


class Jail(NamedTuple):
    """What a program in a sandbox sees besides the system: each a folder outside."""

    skill: str
    work: str
    temporary: str
    needs: tuple[str, ...] = ()
    network: bool = False


SKILL, WORK, TEMPORARY = "/prowess/skill", "/prowess/work", "/tmp"  # noqa: S108 - names inside of the sandbox
"""Where the three folders are inside."""
PASSWD, SHARED_MEMORY = ".passwd", ".shm"
"""What there must be in the folder for temporary files."""


def available() -> tuple[Sandbox, ...]:
    """The kinds of isolation, best first, and what each lacks here."""
    return _bwrap(), Sandbox("none", usable=True, why="no isolation: only when it is asked for by name")


def chosen(kind: Kind) -> str:
    """The sandbox to use; ``SandboxError`` when the one asked for does not work, or none does."""
    if kind == "none":
        return "none"
    if kind not in {"auto", "bwrap"}:
        raise SandboxError(f"unknown sandbox {kind!r}; one of auto, bwrap, none", code="bad-argument")
    found = _bwrap()
    if not found.usable:
        raise SandboxError(f"no sandbox: {found.why}")
    return found.name


@cache
def _bwrap() -> Sandbox:
    """Whether bubblewrap is there and works: it is tried once."""
    if not sys.platform.startswith("linux"):
        return Sandbox("bwrap", usable=False, why="bubblewrap is for Linux only")
    program = shutil.which("bwrap")
    if program is None:
        return Sandbox("bwrap", usable=False, why="bubblewrap (bwrap) is not installed")
    said = _tried([program, *_isolation(network=False), *_system(), *_CLOSED, "--", "/bin/sh", "-c", "exit 0"])
    if said is not None:
        return Sandbox("bwrap", usable=False, why=f"bubblewrap does not work here: {said}")
    return Sandbox("bwrap", usable=True, why="read-only system and skill, own processes, no network")


@cache
def _no_nesting() -> tuple[str, ...]:
    """No further user namespaces inside, where bubblewrap knows how."""
    words = ("--unshare-user", "--disable-userns")
    program = shutil.which("bwrap") or "bwrap"
    said = _tried([program, "--unshare-all", *words, *_system(), "--", "/bin/sh", "-c", "exit 0"])
    return words if said is None else ()


def _tried(argv: Sequence[str]) -> str | None:
    """What a program says when it fails, or ``None``."""
    import subprocess  # noqa: PLC0415 - only when scripts are run

    try:
        done = subprocess.run(  # noqa: S603 - fixed arguments
            argv, capture_output=True, timeout=_PROBE_SECONDS, check=False, stdin=subprocess.DEVNULL, env={}
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = done.stderr.decode("utf-8", "replace").strip()
    return None if done.returncode == 0 else said or f"exit status {done.returncode}"


def _isolation(*, network: bool) -> list[str]:
    shared = ["--share-net"] if network else []
    own = ("--unshare-all", *shared, *_no_nesting())
    return [*own, "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "skill"]


def _system() -> list[str]:
    """The system's programs and libraries, read-only, without the home folders."""
    words: list[str] = []
    for path in _SYSTEM:
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            words += ["--ro-bind", path, path]
    kernel = [word for name in _KERNEL for word in ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}")]
    return [*words, "--proc", "/proc", *kernel, "--dev", "/dev"]


def jailed(argv: Sequence[str], jail: Jail) -> list[str]:
    """A command line that runs ``argv`` in bubblewrap."""
    program = shutil.which("bwrap") or "bwrap"
    names = (*_SETTINGS, *(_NETWORK_SETTINGS if jail.network else ()))
    settings = [word for name in names for word in ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")]
    needs = [word for path in jail.needs if not _is_system(path) for word in ("--ro-bind", path, path)]
    folders = ["--ro-bind", jail.skill, SKILL, "--bind", jail.work, WORK, "--bind", jail.temporary, TEMPORARY]
    folders += ["--bind", os.path.join(jail.temporary, SHARED_MEMORY), "/dev/shm"]  # noqa: S108 - inside
    user = ["--ro-bind", os.path.join(jail.temporary, PASSWD), "/etc/passwd"]
    return [
        *(program, *_isolation(network=jail.network), *_system(), *settings, *user, *folders, *needs),
        *(*_CLOSED, "--chdir", WORK, "--", *argv),
    ]


def _is_system(path: str) -> bool:
    return any(path == top or path.startswith(f"{top}/") for top in _SYSTEM)


def passwd_line() -> bytes:
    """The only user that a program inside knows of."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    group = os.getgid() if hasattr(os, "getgid") else 0
    return f"skill:x:{user}:{group}::{WORK}:/bin/sh\n".encode()

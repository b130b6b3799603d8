"""A program that runs code with fewer rights than the tests have: ``restricted_host.py OPTIONS CODE WORD…``.

``OPTIONS`` is JSON. ``ordinary`` is a folder: the code runs as a user without privileges. Where the Python of the tests
lies in a home folder, which that user may not enter, it is mounted at this folder. ``refuse`` is a list of system calls
that fail with EPERM, as they do in most containers. The code then runs in a new process of the same Python.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import sys

NOBODY = 65534
CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 4096, 16384, 1 << 18


def mount_python(folder: str) -> str:
    """Mount this Python at ``folder``, for this process only, and return the path of its program."""
    libc = ctypes.CDLL(None, use_errno=True)
    private = libc.unshare(CLONE_NEWNS) or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    if private or libc.mount(sys.base_prefix.encode(), folder.encode(), None, MS_BIND, None):
        sys.exit("unavailable: this Python cannot be shown to another user")
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return f"{folder}/bin/{name}"


def become_nobody() -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def refuse_calls(names: list[str]) -> None:
    from prowess.conversation.acting import confinement
    from prowess.conversation.acting.sandbox.seccomp import SYSCALL_NUMBERS, SeccompRule, assemble_filter

    SYSCALL_NUMBERS["landlock_create_ruleset"] = (444, 444)  # no sandbox refuses it, so the table does not have it
    confinement.forbid_privileges()
    confinement.set_seccomp_filter(assemble_filter([SeccompRule(tuple(names))], platform.machine()))


def main() -> None:
    options, words = json.loads(sys.argv[1]), sys.argv[2:]
    program = sys.executable
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    if options["ordinary"] and os.geteuid() == 0:
        program = mount_python(options["ordinary"])
    if options["refuse"]:
        refuse_calls(options["refuse"])
    if options["ordinary"] and os.geteuid() == 0:
        become_nobody()
    os.execve(program, [program, "-c", *words], environment)  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main()

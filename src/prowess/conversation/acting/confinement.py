"""System calls that confine a process: Landlock, seccomp, dropped capabilities, a folder of limited size.

A part of the supervisor, which loads this file by its path: only the standard library, and nothing of the package.
Linux only. Every function raises ``OSError`` when the kernel refuses.
"""

from __future__ import annotations

import base64
import ctypes
import errno
import os
import stat
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)

_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446  # on every machine
_QUERY_VERSION, _RULE_PATH_BENEATH = 1, 1
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_PR_CAPBSET_READ, _PR_CAPBSET_DROP = 23, 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_CAPABILITY_VERSION_3 = 0x20080522
_MAX_CAPABILITIES = 64
_INSTRUCTION_SIZE = 8
_CLONE_NEWNS, _CLONE_NEWUSER = 0x20000, 0x10000000
_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_PRIVATE = 2, 4, 16384, 1 << 18


class _RulesetAttributes(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def landlock_version() -> int:
    """Return the version of Landlock that the kernel has, 0 where it has none or forbids its use."""
    version: int = _libc.syscall(_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), _QUERY_VERSION)
    return max(version, 0)


def confine_process(restrictions: dict[str, Any]) -> None:
    """Impose restrictions, as ``landlock_command`` makes them, on this process and all that it starts.

    They can never be lifted.
    """
    # The order matters: the bounding set can only be emptied while there are capabilities, and the filter comes last
    # because it refuses some of the calls before.
    _empty_bounding_set()
    forbid_privileges()
    _enter_landlock(restrictions)
    _drop_capabilities()
    set_seccomp_filter(base64.b64decode(restrictions["filter"]))


def forbid_privileges() -> None:
    """Let no program that this process starts gain privileges by its file, as setuid programs do."""
    _check_result(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def set_seccomp_filter(program: bytes) -> None:
    """Set a seccomp filter for this process and all that it starts."""
    buffer = ctypes.create_string_buffer(program, len(program))
    described_program = _FilterProgram(len(program) // _INSTRUCTION_SIZE, ctypes.addressof(buffer))
    _check_result(_libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(described_program), 0, 0))


def mount_limited_folder(folder: str, size: int, inodes: int) -> bool:
    """Mount memory of a size over a folder, for this process and all that it starts; return whether that was possible.

    The file system itself counts what it holds, so a file that is deleted, mapped or sent through a socket counts.
    """
    if not _can_mount(folder, size, inodes):
        return False
    _mount_privately(folder, size, inodes)
    return True


def _can_mount(folder: str, size: int, inodes: int) -> bool:
    """Return whether a child process can mount memory over a folder."""
    # Tried in a child first, because a failure half-way could not be undone: some systems let everybody make a user
    # namespace and then refuse to mount anything in it, and bubblewrap would fail in that namespace too.
    child = os.fork()
    if not child:
        try:
            _mount_privately(folder, size, inodes)
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def _mount_privately(folder: str, size: int, inodes: int) -> None:
    user, group = os.getuid(), os.getgid()
    try:
        _check_result(_libc.unshare(_CLONE_NEWNS))
    except OSError:
        # Only root may make a mount namespace by itself. In a user namespace of its own everybody may, and keeps its
        # user and group by these maps.
        _check_result(_libc.unshare(_CLONE_NEWNS | _CLONE_NEWUSER))
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    # Private, so that the mount is not seen by the rest of the system.
    _check_result(_libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None))
    options = f"size={size},nr_inodes={inodes},mode=700".encode()
    _check_result(
        _libc.mount(b"prowess", os.fsencode(folder), b"tmpfs", ctypes.c_ulong(_MS_NOSUID | _MS_NODEV), options)
    )


def _enter_landlock(restrictions: dict[str, Any]) -> None:
    """Let this process open only what the rules name, and reach only what is not scoped."""
    handled = _RulesetAttributes(restrictions["files"], restrictions["network"], restrictions["scoped"])
    size = ctypes.c_size_t(restrictions["size"])
    ruleset = _check_result(_libc.syscall(_LANDLOCK_CREATE_RULESET, ctypes.byref(handled), size, 0))
    try:
        handled_access, file_access = restrictions["files"], restrictions["file_access"]
        for path, access in restrictions["rules"]:
            _add_rule(ruleset, path, access & handled_access, file_access)
        for path, access in restrictions["work_rules"]:
            _add_rule(ruleset, path, access & handled_access, file_access, beneath=restrictions["work"])
        _check_result(_libc.syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _add_rule(ruleset: int, path: str, access: int, file_access: int, beneath: str = "") -> None:
    """Allow access below a path; a path that does not exist needs no rule, and one through a link gets none.

    ``beneath``: the folder that the path is relative to; a program may swap a folder in it for a link meanwhile.
    """
    try:
        handle = _open_beneath(beneath, path) if beneath else os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            access &= file_access  # the kernel refuses a rule that allows a file what only folders have
        rule = _PathBeneath(access, handle)
        _check_result(_libc.syscall(_LANDLOCK_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(handle)


def _open_beneath(folder: str, path: str) -> int:
    """Return a handle of an entry below a folder; no link is followed below the folder."""
    handle = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    *parents, name = path.split("/")
    for part, kind in (*((parent, os.O_DIRECTORY) for parent in parents), (name, 0)):
        try:
            inner = os.open(part, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW | kind, dir_fd=handle)
        finally:
            os.close(handle)
        handle = inner
    return handle


def _empty_bounding_set() -> None:
    for number in range(_MAX_CAPABILITIES):
        if _libc.prctl(_PR_CAPBSET_READ, number, 0, 0, 0) == 1 and _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0):
            if ctypes.get_errno() == errno.EPERM:
                return  # an ordinary user has no capabilities, and forbid_privileges keeps it so
            _check_result(-1)


def _drop_capabilities() -> None:
    _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)  # kernels before 4.3 have no such set
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _check_result(_libc.capset(ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)())))


def _check_result(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result

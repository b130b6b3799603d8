"""The filter of system calls that every sandbox sets: its rules, and the assembler of its seccomp program.

A call that a filter refuses fails with EPERM. There are two exceptions: ``clone3`` fails with ENOSYS, so that
libraries fall back to ``clone``, whose flags a filter can see, and reading attributes by path fails with EOPNOTSUPP. No
program is killed, so it can say what it missed. Calls that no rule names are allowed: namespaces or Landlock are the
walls, and the filter closes the ways around them.

Only the low half of each argument is compared. The kernel takes all arguments that are compared here as 32-bit numbers,
or has their flags in the low half, so the high half changes nothing.
"""

from __future__ import annotations

import errno
import platform
import struct
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # AUDIT_ARCH_…
_X32_BIT = 0x40000000  # in the number of a call: the x32 ABI of x86_64, under which every call has another number
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _ARGUMENT_SIZE = 0, 4, 16, 8  # offsets in struct seccomp_data
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000

_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_SOCK_DGRAM_BIT = 2  # set in SOCK_DGRAM and SOCK_RAW, not in SOCK_STREAM and SOCK_SEQPACKET
_NETLINK_ROUTE = 0
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_PR_SET_DUMPABLE = 4
_SET_ID_BITS = 0o6000  # S_ISUID and S_ISGID
_O_CREAT_OR_TMPFILE = 0o20000100
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_PRIO_USER, _IOPRIO_WHO_USER = 2, 3
_FILE_ATTRIBUTES = (
    *(0x40086602, 0x40046602, 0x40087602),  # FS_IOC_SETFLAGS, FS_IOC32_SETFLAGS, FS_IOC_SETVERSION
    *(0x401C5820, 0x40806685, 0x800C6613),  # FS_IOC_FSSETXATTR, FS_IOC_ENABLE_VERITY, FS_IOC_SET_ENCRYPTION_POLICY
)


class ArgumentTest(NamedTuple):
    """A test of one argument: whether it is one of ``values``, is none of these, or has any of their bits."""

    argument: int
    how: Literal["is", "is not", "has"]
    values: tuple[int, ...]


class SeccompRule(NamedTuple):
    """Calls that are refused when every test holds, and the error with which they fail."""

    calls: tuple[str, ...]
    tests: tuple[ArgumentTest, ...] = ()
    error: int = errno.EPERM


def _refuse_calls(calls: str, *tests: ArgumentTest, error: int = errno.EPERM) -> SeccompRule:
    return SeccompRule(tuple(calls.split()), tests, error)


_COMMON_RULES = (
    _refuse_calls("add_key request_key keyctl"),  # keyrings have no namespaces: a program would see those of the user
    _refuse_calls("ptrace process_vm_readv process_vm_writev pidfd_getfd"),
    _refuse_calls("io_uring_setup io_uring_enter io_uring_register"),  # no filter sees its requests
    _refuse_calls("userfaultfd bpf perf_event_open kexec_load kexec_file_load init_module finit_module delete_module"),
    _refuse_calls("mount umount2 pivot_root chroot fsopen fsconfig fsmount fspick move_mount"),
    _refuse_calls("open_tree open_tree_attr mount_setattr unshare setns"),
    _refuse_calls("clone", ArgumentTest(0, "has", (_NEW_NAMESPACES,))),
    _refuse_calls("clone3", error=errno.ENOSYS),
    _refuse_calls("acct swapon swapoff reboot quotactl quotactl_fd syslog nfsservctl lookup_dcookie fanotify_init"),
    _refuse_calls("open_by_handle_at name_to_handle_at"),
    _refuse_calls("ioctl", ArgumentTest(1, "is", (_TIOCSTI, _TIOCLINUX))),  # they type into the terminal of the host
    # The supervisor cannot count memory that belongs to no process: a memory file whose descriptor is on its way
    # through a socket, and the content of System V and POSIX queues.
    _refuse_calls("memfd_create memfd_secret mq_open shmget shmat shmctl msgget msgsnd msgrcv msgctl"),
    _refuse_calls("semget semop semtimedop semctl"),
    # It would hide open files and memory from the supervisor.
    _refuse_calls("prctl", ArgumentTest(0, "is", (_PR_SET_DUMPABLE,))),
    _refuse_calls("socket", ArgumentTest(0, "is", (_AF_NETLINK,)), ArgumentTest(2, "is not", (_NETLINK_ROUTE,))),
    # Outside of the sandbox, a program with these bits gives its user or group to whoever starts it.
    _refuse_calls("chmod fchmod creat mknod", ArgumentTest(1, "has", (_SET_ID_BITS,))),
    _refuse_calls("fchmodat fchmodat2 mknodat", ArgumentTest(2, "has", (_SET_ID_BITS,))),
    _refuse_calls("open", ArgumentTest(1, "has", (_O_CREAT_OR_TMPFILE,)), ArgumentTest(2, "has", (_SET_ID_BITS,))),
    _refuse_calls("openat", ArgumentTest(2, "has", (_O_CREAT_OR_TMPFILE,)), ArgumentTest(3, "has", (_SET_ID_BITS,))),
    _refuse_calls("openat2", error=errno.ENOSYS),  # its mode is in memory, which no filter sees; programs use openat
)
_BWRAP_RULES = (_refuse_calls("socket", ArgumentTest(0, "is not", (_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK))),)
# Where sockets of the host can be named: by a path, which Landlock does not govern, or in the network that a program
# shares with the host, to which abstract sockets belong. A pair of datagram sockets could be connected elsewhere
# later; pairs of streams cannot.
_STREAM_PAIRS_ONLY = (
    _refuse_calls("socketpair", ArgumentTest(0, "is not", (_AF_UNIX,))),
    _refuse_calls("socketpair", ArgumentTest(1, "has", (_SOCK_DGRAM_BIT,))),
)
_INTERNET_SOCKETS_ONLY = _refuse_calls("socket", ArgumentTest(0, "is not", (_AF_INET, _AF_INET6, _AF_NETLINK)))
_LANDLOCK_RULES = (
    *_STREAM_PAIRS_ONLY,
    # Landlock does not govern these. Those that take a descriptor are refused too: one for reading is enough for them.
    _refuse_calls("chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat"),
    _refuse_calls("setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat"),
    # Reading attributes by path fails as on a file system without any, which programs that copy files expect.
    _refuse_calls("getxattr lgetxattr getxattrat listxattr llistxattr listxattrat", error=errno.EOPNOTSUPP),
    _refuse_calls("utime utimes futimesat utimensat file_setattr"),
    _refuse_calls("ioctl", ArgumentTest(1, "is", _FILE_ATTRIBUTES)),
    _refuse_calls("inotify_add_watch"),  # it would show the names of files in folders that a program may not read
    # Without a PID namespace, other processes of the user have numbers that a program can name.
    _refuse_calls(
        "prlimit64 sched_setscheduler sched_setparam sched_setattr sched_setaffinity", ArgumentTest(0, "is not", (0,))
    ),
    _refuse_calls("setpriority ioprio_set", ArgumentTest(1, "is not", (0,))),
    _refuse_calls("setpriority", ArgumentTest(0, "is", (_PRIO_USER,))),
    _refuse_calls("ioprio_set", ArgumentTest(0, "is", (_IOPRIO_WHO_USER,))),
)


def filter_rules(kind: Literal["bwrap", "landlock"], *, network: bool, folder: bool = False) -> tuple[SeccompRule, ...]:
    """Return the rules of the filter of a kind of sandbox.

    ``network``: the program has the network of the host. ``folder``: it works in a folder of the host.
    """
    if kind == "bwrap":
        # In a folder of the host there may be sockets of programs that run outside, such as those of Docker and tmux.
        is_host_reached = network or folder
        return (*_COMMON_RULES, *((*_STREAM_PAIRS_ONLY, _INTERNET_SOCKETS_ONLY) if is_host_reached else _BWRAP_RULES))
    return (*_COMMON_RULES, *_LANDLOCK_RULES, _INTERNET_SOCKETS_ONLY if network else _refuse_calls("socket"))


def can_filter() -> bool:
    """Return whether filters can be assembled for this machine and this Python."""
    return platform.machine() in MACHINES and struct.calcsize("P") == 8  # noqa: PLR2004 - bytes of a 64-bit pointer


def assemble_filter(rules: Sequence[SeccompRule], machine: str) -> bytes:
    """Return a seccomp program for a machine, as ``bwrap --seccomp`` and the kernel take it."""
    # Calls of another architecture, or by the x32 ABI, are all refused: their numbers mean other calls.
    refused = _encode_instruction(_RETURN, _ERRNO | errno.EPERM)
    program = [
        _encode_instruction(_LOAD, _ARCHITECTURE),
        _encode_instruction(_JUMP_EQUAL, _ARCHITECTURES[machine], 1, 0),
        refused,
    ]
    if machine == "x86_64":
        program += [_encode_instruction(_LOAD, _NUMBER), _encode_instruction(_JUMP_AT_LEAST, _X32_BIT, 0, 1), refused]
    for rule in rules:
        numbers = (SYSCALL_NUMBERS[call][MACHINES.index(machine)] for call in rule.calls)
        program += [code for number in numbers if number is not None for code in _assemble_rule(number, rule)]
    return b"".join((*program, _encode_instruction(_RETURN, _ALLOW)))


def _assemble_rule(number: int, rule: SeccompRule) -> Iterator[bytes]:
    """Yield the instructions that refuse one call when every test of a rule holds."""
    # Assembled backwards, because a jump must know how many instructions follow it. The number of the call is loaded
    # again for each rule, because a test leaves an argument in the register.
    code = [_encode_instruction(_RETURN, _ERRNO | rule.error)]
    for test in reversed(rule.tests):
        code = [*_assemble_test(test, len(code)), *code]
    yield _encode_instruction(_LOAD, _NUMBER)
    yield _encode_instruction(_JUMP_EQUAL, number, 0, len(code))
    yield from code


def _assemble_test(test: ArgumentTest, left: int) -> Iterator[bytes]:
    """Yield the instructions that continue when a test holds, and otherwise jump over the next ``left`` ones."""
    yield _encode_instruction(_LOAD, _FIRST_ARGUMENT + _ARGUMENT_SIZE * test.argument)
    if test.how == "has":
        yield _encode_instruction(_JUMP_ANY_BIT, test.values[0], 0, left)
        return
    for behind, value in reversed(list(enumerate(reversed(test.values)))):
        if test.how == "is not":
            yield _encode_instruction(_JUMP_EQUAL, value, left + behind, 0)
        else:
            yield _encode_instruction(_JUMP_EQUAL, value, behind, 0 if behind else left)


def _encode_instruction(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, operand)


def build_sandbox_filter(kind: Literal["bwrap", "landlock"], *, network: bool, folder: bool) -> bytes:
    """Return the seccomp program of a kind of sandbox for this machine; ``can_filter`` must be true."""
    return assemble_filter(filter_rules(kind, network=network, folder=folder), platform.machine())


MACHINES = ("x86_64", "aarch64")
"""The machines of the table as ``platform.machine`` names them, in the order of its columns."""

SYSCALL_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "userfaultfd": (323, 282),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "clone": (56, 220),
    "clone3": (435, 435),
    "acct": (163, 89),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "nfsservctl": (180, 42),
    "lookup_dcookie": (212, 18),
    "fanotify_init": (300, 262),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "mq_open": (240, 180),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "ioctl": (16, 29),
    "prctl": (157, 167),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "open": (2, None),
    "openat": (257, 56),
    "openat2": (437, 437),
    "creat": (85, None),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "getxattr": (191, 8),
    "lgetxattr": (192, 9),
    "getxattrat": (464, 464),
    "listxattr": (194, 11),
    "llistxattr": (195, 12),
    "listxattrat": (465, 465),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "file_setattr": (469, 469),
    "inotify_add_watch": (254, 27),
    "prlimit64": (302, 261),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "sched_setaffinity": (203, 122),
    "shmctl": (31, 195),
    "msgctl": (71, 187),
    "semctl": (66, 191),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
}
"""Each call by name, with its number on each of the machines."""

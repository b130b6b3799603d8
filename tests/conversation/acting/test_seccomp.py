"""The filter of system calls: the assembled program refuses what its rules name, on each machine, and no more."""

from __future__ import annotations

import errno
import json
import re
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prowess.conversation.acting.sandbox.seccomp import (
    MACHINES,
    SYSCALL_NUMBERS,
    ArgumentTest,
    SeccompRule,
    assemble_filter,
    can_filter,
    filter_rules,
)

if TYPE_CHECKING:
    from prowess.conversation.acting.sandbox import Kind
    from tests.conversation.conftest import Acting

Confining = Literal["bwrap", "landlock"]
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "i386": 0x40000003, "arm": 0x40000028}
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
KINDS: tuple[Confining, ...] = ("bwrap", "landlock")


def interpret(program: bytes, architecture: int, number: int, arguments: tuple[int, ...]) -> int:
    """What the kernel's machine for such programs answers: the five instructions that are used here."""
    data = struct.pack("=iIQ6Q", number, architecture, 0, *arguments)
    code = list(struct.iter_unpack("=HBBI", program))
    accumulator = position = 0
    while True:
        instruction, if_true, if_false, operand = code[position]
        position += 1
        if instruction == 0x20:  # load a word
            (accumulator,) = struct.unpack_from("=I", data, operand)
        elif instruction == 0x06:  # return
            return int(operand)
        else:
            tests = {0x15: accumulator == operand, 0x35: accumulator >= operand, 0x45: accumulator & operand}
            position += if_true if tests[instruction] else if_false


def expected(rules: tuple[SeccompRule, ...], machine: str, number: int, arguments: tuple[int, ...]) -> int:
    """What the rules say, read one by one without any assembler."""
    if machine == "x86_64" and number >= 0x40000000:
        return REFUSE | errno.EPERM
    for rule in rules:
        if number in {SYSCALL_NUMBERS[call][MACHINES.index(machine)] for call in rule.calls} and all(
            holds(test, arguments) for test in rule.tests
        ):
            return REFUSE | rule.error
    return ALLOW


def holds(test: ArgumentTest, arguments: tuple[int, ...]) -> bool:
    value = arguments[test.argument] & 0xFFFFFFFF
    if test.how == "has":
        return bool(value & test.values[0])
    return (value in test.values) is (test.how == "is")


NAMED = sorted({number for numbers in SYSCALL_NUMBERS.values() for number in numbers if number is not None})
TELLING = sorted(
    {0, 3, 5, *(v for k in KINDS for r in filter_rules(k, network=True) for t in r.tests for v in t.values)}
)
arguments = st.one_of(
    st.sampled_from(TELLING),
    st.builds(lambda low, high: low | high << 32, st.sampled_from(TELLING), st.integers(0, 2**32 - 1)),
    st.integers(0, 2**64 - 1),
)


@given(
    kind=st.sampled_from(KINDS),
    network=st.booleans(),
    machine=st.sampled_from(MACHINES),
    number=st.one_of(st.sampled_from(NAMED), st.integers(0, 600), st.integers(0x40000000, 0x40000300)),
    given_arguments=st.tuples(*[arguments] * 6),
)
def test_the_program_answers_as_its_rules_say(
    kind: Confining, network: bool, machine: str, number: int, given_arguments: tuple[int, ...]
) -> None:
    rules = filter_rules(kind, network=network)
    program = assemble_filter(rules, machine)
    found = interpret(program, ARCHITECTURES[machine], number, given_arguments)
    assert found == expected(rules, machine, number, given_arguments)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("machine", MACHINES)
def test_calls_of_another_architecture_are_refused_altogether(machine: str, kind: Confining) -> None:
    """On a machine that runs 32-bit programs too, their numbers mean other calls."""
    program = assemble_filter(filter_rules(kind, network=False), machine)
    for name, architecture in ARCHITECTURES.items():
        answers = {interpret(program, architecture, number, (0,) * 6) for number in (0, 1, 4, 63)}
        assert answers == ({ALLOW} if name == machine else {REFUSE | errno.EPERM})


def answers_to(
    call: str, *given_arguments: int, kind: Confining = "bwrap", network: bool = False, folder: bool = False
) -> set[int]:
    """What the program says to a call on every machine that has it."""
    rules = filter_rules(kind, network=network, folder=folder)
    padded = (*given_arguments, *(0,) * (6 - len(given_arguments)))
    numbers = [(machine, SYSCALL_NUMBERS[call][MACHINES.index(machine)]) for machine in MACHINES]
    return {
        interpret(assemble_filter(rules, machine), ARCHITECTURES[machine], number, padded)
        for machine, number in numbers
        if number is not None
    }


EPERM = {REFUSE | errno.EPERM}


def test_what_programs_need_stays_allowed_and_what_leads_out_is_refused() -> None:
    fork, thread, new_user = 17, 0x3D0F00, 0x10000000 | 17
    assert answers_to("clone", fork) == answers_to("clone", thread) == {ALLOW}
    assert answers_to("clone", new_user) == answers_to("clone", 0x20000) == EPERM
    assert answers_to("clone3") == {REFUSE | errno.ENOSYS}
    unix, inet, inet6, netlink, packet, alg, vsock = 1, 2, 10, 16, 17, 38, 40
    assert answers_to("socket", unix) == answers_to("socket", inet) == answers_to("socket", inet6) == {ALLOW}
    assert answers_to("socket", netlink, 3, 0) == {ALLOW}
    assert answers_to("socket", netlink, 3, 12) == answers_to("socket", packet) == EPERM
    assert answers_to("socket", alg) == answers_to("socket", vsock) == answers_to("socket", vsock | 1 << 32) == EPERM
    assert answers_to("ioctl", 0, 0x5412) == answers_to("ioctl", 0, 0x5412 | 1 << 40) == EPERM
    assert answers_to("ioctl", 0, 0x5401) == {ALLOW}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("network", [False, True])
def test_in_a_folder_of_the_host_no_socket_with_a_name_can_be_reached(kind: Confining, network: bool) -> None:
    unix, inet, stream, datagram = 1, 2, 1, 2
    inside: dict[str, Any] = {"kind": kind, "network": network, "folder": True}
    assert answers_to("socket", unix, stream, **inside) == answers_to("socketpair", unix, datagram, **inside) == EPERM
    assert answers_to("socketpair", unix, stream, **inside) == {ALLOW}
    assert answers_to("socket", inet, stream, **inside) == ({ALLOW} if network or kind == "bwrap" else EPERM)


@pytest.mark.parametrize("kind", KINDS)
def test_no_program_is_made_that_gives_its_user_to_others(kind: Confining) -> None:
    create, temporary, mode = 0o100, 0o20200000, 0o755
    for bit in (0o4000, 0o2000):
        assert answers_to("fchmodat", 0, 0, bit | mode, kind=kind) == answers_to("fchmod", 0, bit, kind=kind) == EPERM
        assert answers_to("mknodat", 0, 0, 0o100000 | bit, kind=kind) == EPERM
        for flags in (create, temporary, create | 1 << 40):
            assert answers_to("openat", 0, 0, flags, bit | mode, kind=kind) == EPERM
            assert answers_to("open", 0, flags, bit | mode, kind=kind) == EPERM
        # Without either flag the kernel does not look at the mode, which may be anything.
        assert answers_to("openat", 0, 0, 0o2, bit | mode, kind=kind) == {ALLOW}
    assert answers_to("openat", 0, 0, create, mode, kind=kind) == answers_to("creat", 0, mode, kind=kind) == {ALLOW}
    assert answers_to("fchmodat", 0, 0, mode, kind="bwrap") == {ALLOW}


def test_with_landlock_there_are_no_sockets_but_pairs_of_streams() -> None:
    unix, inet, stream, datagram, raw, packets, flags = 1, 2, 1, 2, 3, 5, 0o2004000
    assert answers_to("socket", unix, kind="landlock") == answers_to("socket", inet, kind="landlock") == EPERM
    assert answers_to("socket", inet, kind="landlock", network=True) == {ALLOW}
    assert answers_to("socket", unix, kind="landlock", network=True) == EPERM
    for kind in (stream, packets):
        assert answers_to("socketpair", unix, kind | flags, kind="landlock") == {ALLOW}
    for kind in (datagram, raw):
        assert answers_to("socketpair", unix, kind | flags, kind="landlock", network=True) == EPERM


def test_with_landlock_limits_and_priorities_of_other_processes_cannot_be_set() -> None:
    assert answers_to("prlimit64", 0, kind="landlock") == answers_to("setpriority", 0, 0, kind="landlock") == {ALLOW}
    assert (
        answers_to("prlimit64", 1234, kind="landlock") == answers_to("sched_setaffinity", 1, kind="landlock") == EPERM
    )
    assert (
        answers_to("setpriority", 0, 1234, kind="landlock") == answers_to("setpriority", 2, 0, kind="landlock") == EPERM
    )


HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


@pytest.mark.parametrize("machine", MACHINES)
def test_the_numbers_are_those_of_the_kernel(machine: str) -> None:
    """As far as the headers of this machine know them: they may be older than the newest calls."""
    if not HEADERS[machine].exists():
        pytest.skip("needs the headers of the kernel, which are not on this machine")
    rows = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", HEADERS[machine].read_text(encoding="utf-8"))
    known = {name: int(number) for name, number in rows}
    ours = {name: numbers[MACHINES.index(machine)] for name, numbers in SYSCALL_NUMBERS.items() if name in known}
    assert len(ours) > 80
    assert ours == {name: known[name] for name in ours}


TRY_ALL = """
import ctypes, json, sys
libc, found = ctypes.CDLL(None, use_errno=True), {}
for number in json.loads(sys.argv[1]):
    ctypes.set_errno(0)
    found[number] = [libc.syscall(number, 0, 0, 0, 0, 0, 0), ctypes.get_errno()]
print(json.dumps(found))
"""


@pytest.mark.skipif(not can_filter(), reason="NOT TESTED: filters are assembled for x86_64 and aarch64 only")
def test_in_a_sandbox_every_refused_call_fails_with_an_error_and_nothing_is_killed(acting: Acting, jail: Kind) -> None:
    """The real program in the real kernel, call by call."""
    import platform

    column = MACHINES.index(platform.machine())
    rules = [rule for rule in filter_rules(jail, network=False) if not rule.tests]  # type: ignore[arg-type]
    wanted = {
        SYSCALL_NUMBERS[call][column]: rule.error
        for rule in rules
        for call in rule.calls
        if SYSCALL_NUMBERS[call][column]
    }
    result = acting.run("scripts/a.py", TRY_ALL, [json.dumps(list(wanted))], sandbox=jail)
    assert result.ok, result
    assert json.loads(result.stdout) == {str(number): [-1, error] for number, error in wanted.items()}

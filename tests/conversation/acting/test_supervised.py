"""Programs under their supervisor: nothing of them outlives the run or the host, and the host stays as it is."""

from __future__ import annotations

import hashlib
import os
import select
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.conversation.acting.supervised import ProcessLimits, ProcessResult, make_environment, run_under_supervisor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.conversation.acting.sandbox import Kind
    from tests.conversation.conftest import Acting, Marked

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the programs of these tests are for POSIX")

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="promised on Linux only")
PATIENCE = 30.0  # how long a test waits for what must happen; none of them waits that long unless it fails


def run(code: str, folder: Path, *, seconds: float = 20, output: int = 1 << 20, stdin: bytes = b"") -> ProcessResult:
    """Python code as a program."""
    argv = [sys.executable, "-c", code]
    return run_under_supervisor(
        argv, ProcessLimits(seconds, output), cwd=str(folder), env=make_environment(), stdin=stdin
    )


def shell(code: str, folder: Path, *, seconds: float = 20, env: dict[str, str] | None = None) -> ProcessResult:
    """A line of shell as a program."""
    argv = ["/bin/sh", "-c", code]
    return run_under_supervisor(argv, ProcessLimits(seconds, 1 << 20), cwd=str(folder), env=make_environment(env))


# -- streams ----------------------------------------------------------------------------------------------------------


def test_what_goes_in_comes_out_byte_for_byte(tmp_path: Path) -> None:
    data = bytes(range(256)) * 2_000
    code = "import sys\nd = sys.stdin.buffer.read()\nsys.stdout.buffer.write(d)\nsys.stderr.buffer.write(d[::-1])"
    found = run(code, tmp_path, stdin=data)
    assert (found.stdout, found.stderr, found.status) == (data, data[::-1], 0)


def test_a_large_input_arrives_whole(tmp_path: Path) -> None:
    data = os.urandom(16 << 20)
    found = run("import hashlib, sys\nprint(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())", tmp_path, stdin=data)
    assert found.stdout.decode().strip() == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("code", ["pass", "import sys; sys.stdin.close()", "import os; os.read(0, 1)"])
def test_a_program_need_not_read_its_input(tmp_path: Path, code: str) -> None:
    found = run(code, tmp_path, stdin=b"x" * (4 << 20))
    assert (found.status, found.limit, found.stderr) == (0, "", b"")


def test_output_just_before_the_end_is_not_lost(tmp_path: Path) -> None:
    for _ in range(10):
        found = run("import os\nos.write(1, b'x' * 60_000)\nos._exit(0)", tmp_path)
        assert (len(found.stdout), found.stdout_cut) == (60_000, False)


def test_a_program_that_closes_its_streams_is_waited_for(tmp_path: Path) -> None:
    found = shell("exec >&- 2>&- <&-; sleep 0.3; : > made; exit 3", tmp_path)
    assert (found.status, found.limit, found.stdout) == (3, "", b"")
    assert (tmp_path / "made").exists()


def test_a_program_that_closes_its_streams_meets_its_timeout(tmp_path: Path) -> None:
    found = shell("exec >&- 2>&- <&-; sleep 60", tmp_path, seconds=0.3)
    assert found.limit == "timeout"


def test_endless_output_is_cut_at_the_limit(tmp_path: Path) -> None:
    found = run("import os\nwhile True: os.write(1, b'x' * 65536)", tmp_path, output=100_000)
    assert (len(found.stdout), found.stdout_cut, found.limit) == (100_000, True, "output")


def test_two_streams_that_are_full_do_not_block_each_other(tmp_path: Path) -> None:
    code = "import os\nfor _ in range(8):\n    os.write(1, b'o' * 65536); os.write(2, b'e' * 65536)"
    found = run(code, tmp_path)
    assert (len(found.stdout), len(found.stderr), found.status) == (524_288, 524_288, 0)


# -- ends -------------------------------------------------------------------------------------------------------------


def test_a_program_that_ignores_signals_is_ended(tmp_path: Path, marked: Marked) -> None:
    code = "trap '' TERM INT HUP QUIT; while :; do sleep 60; done"
    found = shell(code, tmp_path, seconds=0.3, env=marked.env)
    assert (found.limit, found.status) == ("timeout", -signal.SIGKILL)
    assert marked.alive() == []


def test_a_program_that_stops_itself_is_ended(tmp_path: Path, marked: Marked) -> None:
    found = shell("kill -STOP $$; echo on", tmp_path, seconds=0.3, env=marked.env)
    assert (found.limit, found.stdout) == ("timeout", b"")
    assert marked.alive() == []


@linux
@pytest.mark.parametrize(
    "code",
    [
        "sleep 60 & echo done",
        "setsid sleep 60 & echo done",
        "(setsid sh -c 'setsid sleep 60 & exec sleep 60' &) ; echo done",
        "trap '' TERM; (trap '' HUP; sleep 60 < /dev/null > /dev/null 2>&1 &) ; echo done",
    ],
    ids=["child", "session", "double", "daemon"],
)
def test_what_a_program_leaves_running_is_ended_with_it(tmp_path: Path, marked: Marked, code: str) -> None:
    found = shell(code, tmp_path, env=marked.env)
    assert (found.stdout, found.status, found.limit) == (b"done\n", 0, "")
    assert marked.alive() == []


ABOVE = "up=$PPID; top=$(cut -d ' ' -f 4 /proc/$PPID/stat); "
AGAINST_THOSE_ABOVE = {
    "kills its parent": "kill -9 $up",
    "stops its parent": "kill -STOP $up",
    "kills the parent of its parent": "kill -9 $top",
    "stops the parent of its parent": "kill -STOP $top",
    "stops both": "kill -STOP $top $up",
    "kills the group of its parent": "kill -9 -$up",
    "stops its parent again and again": "while kill -STOP $up; do :; done",
}


@linux
@pytest.mark.parametrize("attack", AGAINST_THOSE_ABOVE)
def test_a_program_outlives_its_timeout_by_no_attack_on_what_watches_it(
    tmp_path: Path, marked: Marked, attack: str
) -> None:
    """A child leaves the session and every group, ends or stops what it can, and waits in a process of its own."""
    code = f"export up top; setsid sh -c '{AGAINST_THOSE_ABOVE[attack]}; setsid sleep 600 & sleep 600' & sleep 600"
    with suppress(prowess.SandboxError):  # nobody is left who could say how it ended
        found = shell(ABOVE + code, tmp_path, seconds=0.5, env=marked.env)
        assert found.limit in {"timeout", "cancelled"}
    assert marked.alive() == []


@pytest.mark.parametrize(
    ("argv", "folder"),
    [(["/no/such/program"], "."), (["/bin/sh", "-c", "true"], "no/such/folder"), (["/etc/passwd"], "."), ([""], ".")],
)
def test_a_program_that_cannot_be_started_is_an_error(tmp_path: Path, argv: list[str], folder: str) -> None:
    with pytest.raises(prowess.SandboxError) as caught:
        run_under_supervisor(argv, ProcessLimits(5, 100), cwd=str(tmp_path / folder), env={})
    assert caught.value.code == "cannot-start"


@pytest.mark.parametrize("status", [0, 1, 2, 126, 127, 255])
def test_every_exit_status_is_passed_on(tmp_path: Path, status: int) -> None:
    assert shell(f"exit {status}", tmp_path).status == status


# -- the host's process -----------------------------------------------------------------------------------------------


def handlers() -> dict[int, object]:
    return {number: signal.getsignal(number) for number in signal.valid_signals()}


def open_files() -> list[str]:
    """What this process has open; nothing where the system does not say."""
    found: list[str] = []
    for path in Path("/proc/self/fd").glob("*"):
        with suppress(OSError):
            found.append(f"{path.name} {path.readlink()}")
    return sorted(row for row in found if "/proc/" not in row)


def children() -> list[str]:
    found: list[str] = []
    for path in Path("/proc/self/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            found += path.read_text(encoding="ascii").split()
    return found


def test_no_signal_handler_of_the_host_changes(tmp_path: Path) -> None:
    before, mask = handlers(), signal.pthread_sigmask(signal.SIG_BLOCK, ())
    wakeup = signal.set_wakeup_fd(-1)
    run("print(1)", tmp_path)
    run("import time; time.sleep(60)", tmp_path, seconds=0.2)
    assert handlers() == before
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == mask
    assert signal.set_wakeup_fd(wakeup) == -1


def test_nothing_leaks_over_many_runs(acting: Acting) -> None:
    skill = acting.granted({"scripts/a.sh": "sleep 60 & echo ran"})
    scripts = prowess.Scripts(sandbox="none")
    scripts.run(skill, "scripts/a.sh", trust=acting.trust)
    before = threading.active_count(), open_files(), children(), os.getcwd(), dict(os.environ)  # noqa: PTH109
    for _ in range(20):
        assert scripts.run(skill, "scripts/a.sh", trust=acting.trust).stdout == "ran\n"
    after = threading.active_count(), open_files(), children(), os.getcwd(), dict(os.environ)  # noqa: PTH109
    assert after == before
    assert acting.left() == []


def test_a_run_that_fails_to_start_leaks_nothing(tmp_path: Path) -> None:
    run("pass", tmp_path)
    before = threading.active_count(), open_files(), children()
    for _ in range(10):
        with pytest.raises(prowess.SandboxError):
            run_under_supervisor(["/no/such/program"], ProcessLimits(5, 100), cwd=str(tmp_path), env={})
    assert (threading.active_count(), open_files(), children()) == before


def test_a_program_gets_none_of_the_hosts_open_files(tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w") as file:
        os.set_inheritable(file.fileno(), True)  # noqa: FBT003 - positional only
        code = "import os\nprint([n for n in range(3, 256) if os.path.exists(f'/dev/fd/{n}')])"
        said = run(code, tmp_path).stdout
    assert said == b"[]\n"


def test_runs_in_many_threads_do_not_mix_their_output(tmp_path: Path) -> None:
    def one(number: int) -> bool:
        code = "import sys\nd = sys.stdin.read()\nprint(d * 1000)\nprint(d, file=sys.stderr)\nsys.exit(int(d))"
        found = run(code, tmp_path, stdin=str(number).encode())
        expected = f"{str(number) * 1000}\n".encode(), f"{number}\n".encode(), number
        return (found.stdout, found.stderr, found.status) == expected

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one, range(16)))


# -- the host's end ---------------------------------------------------------------------------------------------------

TREE = """
exec 9> "$PIPE"
sleep 600 &
setsid sleep 600 &
(setsid sh -c 'trap "" TERM HUP; sleep 600 & sleep 600' &)
echo ready >&9
sleep 600
"""
HOST = """
import sys, prowess
skill, trust = prowess.scan(sys.argv[1])["act"], prowess.Trust(sys.argv[2])
scripts = prowess.Scripts(sandbox=sys.argv[3], folder=sys.argv[4], env={"PIPE": sys.argv[5]})
try:
    scripts.run(skill, "scripts/a.sh", trust=trust)
except KeyboardInterrupt:
    print("interrupted")
"""


class Pipe:
    """A named pipe that every process of a tree holds open: it ends when the last of them has gone."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self.fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def next(self) -> bytes:
        """What is written, ``b""`` when nobody is left to write."""
        waiting = select.poll()
        waiting.register(self.fd, select.POLLIN | select.POLLHUP)
        assert waiting.poll(PATIENCE * 1000), "processes are still there"
        return os.read(self.fd, 100)


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[Pipe]:
    (tmp_path / "work").mkdir()
    made = Pipe(tmp_path / "work" / "pipe")
    yield made
    os.close(made.fd)


@linux
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=["kill", "term", "interrupt"])
def test_the_tree_of_a_script_ends_with_its_host(
    acting: Acting, kind: Kind, pipe: Pipe, number: signal.Signals
) -> None:
    acting.granted({"scripts/a.sh": TREE})
    seen = "/prowess/work/pipe" if kind == "bwrap" else str(pipe.path)
    words = (acting.folder.parent, acting.trust.path, kind, pipe.path.parent, seen)
    env = {**os.environ, "TMPDIR": str(acting.temporary)}
    with subprocess.Popen([sys.executable, "-c", HOST, *words], stdout=subprocess.PIPE, env=env) as host:
        assert pipe.next() == b"ready\n"
        host.send_signal(number)
        said, _ = host.communicate(timeout=PATIENCE)
    assert pipe.next() == b""
    assert said == (b"interrupted\n" if number == signal.SIGINT else b"")

"""What a server of skills costs beside FastMCP's: the same folder, the same requests, one after the other.

Both are programs on stdio, asked in turns; what counts is the processor time of the server, from its start or from one
request to the next, and the memory that it has in the end.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bench import measure
from bench.environments import NotInstalledError, python_with, version_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ADAPTER = Path(__file__).parent / "adapters" / "fastmcp_server.py"
REPEATS = 20
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/skills": {}}},
}
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class CostPlugin(NamedTuple):
    """What one run cost, in seconds of the processor and of the clock, and in KiB."""

    start: float
    first: float
    """From the start to the first answer, by the clock."""
    tools: float
    """From the start to the first list of tools."""
    tools_clock: float
    whole_clock: float
    """From the start to the content of a first file, by the clock: everything has been loaded."""
    listing: float
    get: float
    read: float
    memory: int


class Talk:
    """A server on stdio, asked line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._number = 0

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The result; notifications are passed over."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": {**params, "_meta": _META}}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        while line := self._process.stdout.readline():
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == self._number:
                found: dict[str, Any] = answer["result"]
                return found
        raise RuntimeError(f"{method}: no answer")

    def list_all(self) -> list[dict[str, Any]]:
        """Every entry, page by page."""
        found: list[dict[str, Any]] = []
        cursor: dict[str, str] = {}
        while True:
            answer = self.ask("skills/list", **cursor)
            found += answer["skills"]
            if not answer.get("nextCursor"):
                return found
            cursor = {"cursor": answer["nextCursor"]}

    def busy(self) -> float:
        """Seconds of the processor so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def memory(self) -> int:
        """KiB at the peak."""
        rows = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(row.split()[1]) for row in rows if row.startswith("VmHWM"))


@contextmanager
def started(command: tuple[str, ...]) -> Iterator[Talk]:
    """A server that ends with the block."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    env = measure.clean_environment()
    with subprocess.Popen(command, text=True, env=env, cwd=measure.CHECKOUT, **pipes) as process:  # type: ignore[call-overload]
        yield Talk(process)
        process.kill()


def run(command: tuple[str, ...], root: Path, count: int) -> CostPlugin:
    """One run of the whole conversation, with a server that starts for it."""
    began = time.monotonic()
    with started((*command, str(root))) as talk:
        talk.ask("server/discover")
        first, start = time.monotonic() - began, talk.busy()
        talk.ask("tools/list")
        tools_clock, tools = time.monotonic() - began, talk.busy()
        talk.ask("resources/read", uri=f"skill://{min(path.name for path in root.iterdir())}/SKILL.md")
        whole_clock, loaded = time.monotonic() - began, talk.busy()
        entries = talk.list_all()
        assert len(entries) == count, f"{len(entries)} of {count} skills are listed"
        listing = talk.busy() - loaded
        uris = [entry["uri"] for entry in entries]
        get = _each(talk, "skills/get", uris)
        read = _each(talk, "resources/read", uris)
        return CostPlugin(start, first, tools, tools_clock, whole_clock, listing, get, read, talk.memory())


def _each(talk: Talk, method: str, uris: list[str]) -> float:
    before = talk.busy()
    step = max(1, len(uris) // REPEATS)
    chosen = (uris[::step] * REPEATS)[:REPEATS]
    for _ in range(10):
        for uri in chosen:
            talk.ask(method, uri=uri)
    return (talk.busy() - before) / (10 * REPEATS)


class Compared(NamedTuple):
    """The best of several runs of both."""

    version: str
    ours: dict[int, CostPlugin]
    theirs: dict[int, CostPlugin]


def compare(roots: dict[int, Path], rounds: int) -> Compared | str:
    """Ours and FastMCP's for each folder, in turns; or the reason in a word why there is nothing to compare."""
    if not Path("/proc/self/stat").exists():
        return "no /proc"
    try:
        python = python_with("fastmcp")
    except NotInstalledError as error:
        return str(error)
    ours: dict[int, list[CostPlugin]] = {size: [] for size in roots}
    theirs: dict[int, list[CostPlugin]] = {size: [] for size in roots}
    for _ in range(rounds):
        for size, root in roots.items():
            ours[size].append(run((sys.executable, "-m", "prowess", "serve"), root, size))
            theirs[size].append(run((python, str(ADAPTER)), root, size))
    version = version_of(python, "fastmcp")
    return Compared(version, {n: _best(c) for n, c in ours.items()}, {n: _best(c) for n, c in theirs.items()})


# -- under siege -------------------------------------------------------------------------------------------------------

IDLERS = 1_000


class Siege(NamedTuple):
    """Seconds of the clock for one read by an honest client: alone, and beside a thousand that want a stream each."""

    alone: float
    beside: float


def besieged(root: Path, uri: str) -> Siege:
    """Reads of one file over HTTP before and after a thousand connections asked for changes and then kept silent."""
    command = (sys.executable, "-m", "prowess", "serve", str(root), "--http", "127.0.0.1:0")
    env = measure.clean_environment()
    with subprocess.Popen(command, text=True, env=env, cwd=measure.CHECKOUT, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        place = process.stderr.readline().split("//")[-1].partition("/")[0]
        idlers: list[socket.socket] = []
        try:
            alone = _median_read(place, uri)
            host, port = place.split(":")
            idlers += [socket.create_connection((host, int(port))) for _ in range(IDLERS)]
            for idler in idlers:
                with suppress(ConnectionError):  # let go already
                    idler.sendall(_http(place, "subscriptions/listen", notifications={"resourcesListChanged": True}))
            _wait_out(place, uri)
            return Siege(alone, _median_read(place, uri))
        finally:
            for idler in idlers:
                idler.close()
            process.kill()


def _wait_out(place: str, uri: str) -> None:
    """Until the burst, which used up the connections and the rate of this address, is over."""
    while True:
        with suppress(ConnectionError):
            if _read(place, uri)[0] == HTTPStatus.OK:
                return
        time.sleep(0.05)


def _median_read(place: str, uri: str) -> float:
    times = []
    for _ in range(10 * REPEATS):
        status, seconds = _read(place, uri)
        assert status == HTTPStatus.OK, status
        times.append(seconds)
    return sorted(times)[len(times) // 2]


def _read(place: str, uri: str) -> tuple[int, float]:
    """The status of a whole request, connection and all, and its time."""
    host, port = place.split(":")
    began = time.perf_counter()
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(_http(place, "resources/read", "Connection: close", uri=uri))
        answer = b""
        while part := connection.recv(65_536):
            answer += part
    return int(answer.split(maxsplit=2)[1]), time.perf_counter() - began


def _http(place: str, method: str, *headers: str, **params: Any) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": _META}})
    rows = [f"Host: {place}", "Content-Type: application/json", "Accept: application/json, text/event-stream"]
    rows += ["MCP-Protocol-Version: 2026-07-28", f"Mcp-Method: {method}", f"Content-Length: {len(body)}", *headers]
    rows += [f"Mcp-Name: {params['uri']}"] if "uri" in params else []
    return "\r\n".join(["POST /mcp HTTP/1.1", *rows, "", body]).encode()


def _best(costs: list[CostPlugin]) -> CostPlugin:
    return CostPlugin(*(min(values) for values in zip(*costs, strict=True)))

"""``python -m bench.soak``: mixed requests of several clients to a server on HTTP while its skills change on disk.

Exits with 1 when a request failed that should not, when anything was stale after the server told of a change, or when
the server's memory or handles grew after the time to warm up.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp import Client
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

ANYTHING: TypeAdapter[Any] = TypeAdapter(dict[str, Any])
SECONDS = 600.0
SKILLS = 200
CLIENTS = 5
RATE = 50.0
MEMORY_BOUND = 24 * 1024  # KiB
HANDLES_BOUND = 16
THREADS_BOUND = 8
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def text_of(name: str, version: int) -> str:
    return f"---\nname: {name}\ndescription: Does what {name} does.\n---\nVersion {version} of {name}.\n"


@dataclass
class Library:
    """The skills on disk, and which version of each is there."""

    root: Path
    versions: dict[str, int] = field(default_factory=dict)
    coming: set[str] = field(default_factory=set)

    def build(self, count: int) -> None:
        for number in range(count):
            self.write(f"skill-{number:03}", 0)

    def write(self, name: str, version: int) -> None:
        """A file is replaced at once, as an editor or an installer does it."""
        folder = self.root / name
        folder.mkdir(exist_ok=True)
        staged = self.root / f".{name}.tmp"
        staged.write_text(text_of(name, version), encoding="utf-8")
        staged.replace(folder / "SKILL.md")
        (folder / "notes.md").write_text(f"Notes {version}\n", encoding="utf-8")
        self.versions[name] = version

    def come_and_go(self, rng: random.Random) -> None:
        name = f"coming-{rng.randrange(5)}"
        if name in self.coming:
            for file in (self.root / name).iterdir():
                file.unlink()
            (self.root / name).rmdir()
            self.coming.discard(name)
        else:
            (self.root / name).mkdir()
            (self.root / name / "SKILL.md").write_text(text_of(name, 0), encoding="utf-8")
            self.coming.add(name)


@dataclass
class Soak:
    """One run: what was asked, what went wrong, and what the server costs."""

    library: Library
    url: str
    pid: int
    until: float
    rng: random.Random
    asked: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    handles: list[int] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)
    told: int = 0

    def is_on(self) -> bool:
        return time.monotonic() < self.until and len(self.wrong) < 20

    def complain(self, what: str) -> None:
        self.wrong.append(what)

    # -- those who ask -----------------------------------------------------------------------------------------------

    async def client(self, rate: float) -> None:
        """Mixed requests; now and then it hangs up and comes again."""
        while self.is_on():
            async with Client(self.url, cache=None) as client:
                for _ in range(100):
                    if not self.is_on():
                        break
                    await self._ask_something(client)
                    await asyncio.sleep(self.rng.expovariate(rate))

    async def _ask_something(self, client: Client) -> None:
        name = self.rng.choice(sorted(self.library.versions))
        least = self.library.versions[name]
        kind = self.rng.choice(
            ["list", "get", "read", "read", "load", "load", "prompt", "folder", "digest", "missing", "coming"]
        )
        self.asked[kind] += 1
        try:
            await getattr(self, f"_{kind}")(client, name, least)
        except MCPError as error:
            if kind not in {"missing", "coming"} or error.code != types.INVALID_PARAMS:
                self.complain(f"{kind} {name}: {error.code} {error.message}")
        except Exception as error:  # noqa: BLE001 - whatever fails is what is looked for
            self.complain(f"{kind} {name}: {type(error).__name__}: {error}")

    def _check(self, kind: str, name: str, text: str, least: int) -> None:
        """What was there when the question was asked, or something newer."""
        found = [int(word) for before, word in zip(text.split(), text.split()[1:], strict=False) if before == "Version"]
        if not found or found[0] < least:
            self.complain(f"{kind} {name}: {text[-60:]!r}, but version {least} was there")

    async def _list(self, client: Client, _name: str, _least: int) -> None:
        answer = await ask(client, "skills/list")
        names = [entry["frontmatter"]["name"] for entry in answer["skills"]]
        steady = [name for name in names if name in self.library.versions]
        if len(steady) < 90 or steady != sorted(self.library.versions)[: len(steady)]:
            self.complain(f"list: a page of {len(steady)} entries, with gaps")

    async def _get(self, client: Client, name: str, _least: int) -> None:
        answer = await ask(client, "skills/get", uri=f"skill://{name}/SKILL.md")
        if len(answer["skill"]["resources"]) != 2:
            self.complain(f"get {name}: {len(answer['skill']['resources'])} files")

    async def _digest(self, client: Client, name: str, _least: int) -> None:
        """What an entry says of a file is what a read gives, unless it changes in between, and not every time."""
        for _ in range(5):
            entry = (await ask(client, "skills/get", uri=f"skill://{name}/SKILL.md"))["skill"]
            told = next(row["digest"] for row in entry["resources"] if row["uri"].endswith("/SKILL.md"))
            answer = await ask(client, "resources/read", uri=f"skill://{name}/SKILL.md")
            if told == f"sha256:{hashlib.sha256(answer['contents'][0]['text'].encode()).hexdigest()}":
                return
        self.complain(f"digest {name}: it is never that of the file")

    async def _read(self, client: Client, name: str, least: int) -> None:
        answer = await ask(client, "resources/read", uri=f"skill://{name}/SKILL.md")
        self._check("read", name, answer["contents"][0]["text"], least)

    async def _load(self, client: Client, name: str, least: int) -> None:
        answer = await client.call_tool("load_skill", {"name": name})
        text = getattr(answer.content[0], "text", "")
        if answer.is_error:
            self.complain(f"load {name}: {text}")
        else:
            self._check("load", name, text, least)

    async def _prompt(self, client: Client, name: str, least: int) -> None:
        answer = await client.get_prompt(name)
        self._check("prompt", name, getattr(answer.messages[0].content, "text", ""), least)

    async def _folder(self, client: Client, name: str, _least: int) -> None:
        await ask(client, "resources/directory/read", uri=f"skill://{name}")

    async def _missing(self, client: Client, _name: str, _least: int) -> None:
        await ask(client, "resources/read", uri="skill://no-such/SKILL.md")
        self.complain("missing: was answered")

    async def _coming(self, client: Client, _name: str, _least: int) -> None:
        await ask(client, "skills/get", uri=f"skill://coming-{self.rng.randrange(5)}/SKILL.md")

    # -- those who listen, change and leave --------------------------------------------------------------------------

    async def listener(self) -> None:
        """After the server tells of a change, what it gives is not older than what was there before it told."""
        while self.is_on():
            async with Client(self.url, cache=None) as client, client.listen(resources_list_changed=True) as changes:
                while self.is_on() and await self._hears(changes):
                    self.told += 1
                    await self._compare(client)

    async def _hears(self, changes: AsyncIterator[object]) -> bool:
        """Whether a change is told of before the end; only the wait is cut short, never a request."""
        with contextlib.suppress(TimeoutError, StopAsyncIteration):
            async with asyncio.timeout(max(0.1, self.until - time.monotonic())):
                await anext(changes)
                return True
        return False

    async def _compare(self, client: Client) -> None:
        for name in self.rng.sample(sorted(self.library.versions), 3):
            least = self.library.versions[name]
            await self._read(client, name, least)

    async def writer(self) -> None:
        while self.is_on():
            await asyncio.sleep(0.2)
            name = self.rng.choice(sorted(self.library.versions))
            self.library.write(name, self.library.versions[name] + 1)
            if self.rng.random() < 0.3:
                self.library.come_and_go(self.rng)

    async def deserter(self) -> None:
        """Hangs up in the middle of a request, of an answer, of a stream, or leaves a session behind."""
        while self.is_on():
            await asyncio.sleep(0.3)
            way = self.rng.choice(("request", "answer", "stream", "session"))
            self.asked[f"deserted {way}"] += 1
            with contextlib.suppress(ConnectionError):
                await getattr(self, f"_desert_{way}")()

    async def _desert_request(self) -> None:
        data = self._http("skills/list")
        await self._send(data[: self.rng.randrange(len(data))])

    async def _desert_answer(self) -> None:
        await self._send(self._http("skills/list"), self.rng.choice((0, 1, 1_000, 20_000)))

    async def _desert_stream(self) -> None:
        wanted = {"resourcesListChanged": True}
        head = await self._send(self._http("subscriptions/listen", notifications=wanted), 300)
        if b" 200 " not in head or b"text/event-stream" not in head:
            self.complain(f"a stream that was to be left did not begin: {head[:100]!r}")

    async def _desert_session(self) -> None:
        """A client of the older protocol that says nothing when it goes, with its stream open."""
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode()
        head = await self._send(self._posted(body), 2_000)
        names = [row.split()[1] for row in head.split(b"\r\n") if row.lower().startswith(b"mcp-session-id:")]
        if not names:
            self.complain(f"a session of the older protocol did not begin: {head[:100]!r}")
            return
        place = self._place()
        await self._send(
            f"GET /mcp HTTP/1.1\r\nHost: {place}\r\nAccept: text/event-stream\r\nMcp-Session-Id: ".encode()
            + names[0]
            + b"\r\n\r\n",
            100,
        )

    async def _send(self, data: bytes, read: int = 0) -> bytes:
        """The first so many bytes of the answer; then the connection ends."""
        host, port = self._place().split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(data)
            await writer.drain()
            got = b""
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(5):
                    while len(got) < read and (part := await reader.read(read - len(got))):
                        got += part
                        if got.endswith(b"}") or b"\r\n\r\n" in got:
                            break
            return got
        finally:
            writer.close()

    def _place(self) -> str:
        return self.url.removeprefix("http://").partition("/")[0]

    def _http(self, method: str, **params: object) -> bytes:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}})
        return self._posted(body.encode(), "MCP-Protocol-Version: 2026-07-28", f"Mcp-Method: {method}")

    def _posted(self, body: bytes, *headers: str) -> bytes:
        rows = [f"Host: {self._place()}", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
        rows.append("Accept: application/json, text/event-stream")
        return "\r\n".join(["POST /mcp HTTP/1.1", *rows, "", ""]).encode() + body

    async def accountant(self, warm: float) -> None:
        await asyncio.sleep(warm)
        while self.is_on():
            self.memory.append(resident(self.pid))
            self.handles.append(handles_of(self.pid))
            self.threads.append(threads_of(self.pid))
            await asyncio.sleep(0.5)

    # -- the verdict -------------------------------------------------------------------------------------------------

    def judge(self) -> None:
        if not self.told:
            self.complain("the server never told of a change")
        if not self.memory:
            return
        for what, values, bound in (
            ("memory (KiB)", self.memory, MEMORY_BOUND),
            ("handles", self.handles, HANDLES_BOUND),
            ("threads", self.threads, THREADS_BOUND),
        ):
            early, late = _median(values[: _part(values)]), _median(values[-_part(values) :])
            if late - early > bound:
                self.complain(f"{what} grew from {early} to {late}")

    def __str__(self) -> str:
        """A few lines for people."""
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.asked.items()))
        memory = f"{self.memory[0]:,} → {self.memory[-1]:,} KiB" if self.memory else "not measured here"
        handles = f"{self.handles[0]} → {self.handles[-1]}" if self.handles else "not measured here"
        rows = [f"{sum(self.asked.values()):,} requests ({kinds}); told of changes {self.told:,} times"]
        threads = f"{self.threads[0]} → {self.threads[-1]}" if self.threads else "not measured here"
        rows += [
            f"memory {memory}, handles {handles}, threads {threads}",
            *self.wrong,
            "FAILED" if self.wrong else "PASSED",
        ]
        return "\n".join(rows)


def _part(values: list[int]) -> int:
    return max(1, len(values) // 5)


def _median(values: list[int]) -> int:
    return sorted(values)[len(values) // 2]


def resident(pid: int) -> int:
    rows = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith("VmRSS"))


def handles_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def threads_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


HAS_PROC = Path("/proc/self/fd").exists()


async def ask(client: Client, method: str, **params: str) -> dict[str, Any]:
    request = types.Request[dict[str, Any], str](method=method, params=dict(params))
    answer: dict[str, Any] = await client.session.send_request(request, ANYTHING)
    return answer


@contextlib.asynccontextmanager
async def serving(root: Path) -> AsyncIterator[tuple[str, int]]:
    """A server of that folder in a process of its own: its address and its number."""
    command = (sys.executable, "-m", "prowess", "serve", str(root), "--http", "127.0.0.1:0")
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    try:
        said = (await process.stderr.readline()).decode()
        yield said.split()[-1], process.pid
    finally:
        process.terminate()
        rest = (await process.stderr.read()).decode()
        await process.wait()
        if rest.strip():
            print(rest[-2_000:], file=sys.stderr)


async def soak(seconds: float, *, seed: int, skills: int = SKILLS) -> Soak:
    """One run of so many seconds."""
    with tempfile.TemporaryDirectory(prefix="prowess-soak-") as folder:
        library = Library(Path(folder))
        library.build(skills)
        async with serving(library.root) as (url, pid):
            run = Soak(library, url, pid, time.monotonic() + seconds, random.Random(seed))
            parts: list[Callable[[], Awaitable[None]]] = [run.listener, run.writer, run.deserter]
            parts += [lambda: run.client(RATE / CLIENTS)] * CLIENTS
            if HAS_PROC:
                parts.append(lambda: run.accountant(min(60.0, seconds / 3)))
            async with asyncio.TaskGroup() as group:
                for part in parts:
                    group.create_task(part())  # type: ignore[arg-type]  # each is a coroutine
            run.judge()
            return run


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long (%(default)s)")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32), help="what the choices are drawn with")
    options = parser.parse_args(arguments)
    run = asyncio.run(soak(options.seconds, seed=options.seed))
    print(f"seed {options.seed}\n{run}")
    return 1 if run.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

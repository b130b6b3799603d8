"""HTTP servers of Prowess in processes of their own, and requests to them byte by byte."""

from __future__ import annotations

import json
import os
import socket
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.fork_server import fork_server_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SECONDS = 20.0
HERE = Path(__file__).parent


class Reply(NamedTuple):
    """The status of an answer, its headers as text, and its body. The status is 0 when the server just hung up."""

    status: int
    head: str = ""
    body: bytes = b""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Served(NamedTuple):
    """A running server."""

    host: str
    port: int
    pid: int
    source: str = ""
    """The address of this machine from which requests are sent; ``""``: any."""

    @property
    def name(self) -> str:
        return f"{self.host}:{self.port}"

    def connect(self) -> socket.socket:
        return socket.create_connection(
            (self.host, self.port), timeout=SECONDS, source_address=(self.source, 0) if self.source else None
        )

    def raw(self, data: bytes) -> Reply:
        """Send exactly these bytes, and return the reply."""
        with self.connect() as connection:
            with suppress(BrokenPipeError, ConnectionResetError):  # it has answered already, and hung up
                connection.sendall(data)
            return read_reply(connection)

    def post(self, body: bytes, *headers: str, host: str = "", version: str = "2026-07-28", length: int = -1) -> Reply:
        """Send a POST request as a client does, except for what the arguments change, and return the reply."""
        own = [
            f"Host: {host or self.name}",
            "Accept: application/json, text/event-stream",
            f"Content-Length: {len(body) if length < 0 else length}",
        ]
        if not any(row.lower().startswith("content-type") for row in headers):
            own.append("Content-Type: application/json")
        own += [f"MCP-Protocol-Version: {version}"] if version else []
        rows = "\r\n".join(["POST /mcp HTTP/1.1", *own, *headers, "", ""])
        return self.raw(rows.encode("latin-1") + body)

    def ask(self, method: str, *headers: str, **params: Any) -> Reply:
        """Send a valid request of the protocol, and return the reply."""
        extra = [f"Mcp-Name: {params[key]}" for key in ("uri",) if method == "resources/read" and key in params]
        return self.post(request(method, **params), f"Mcp-Method: {method}", *extra, *headers)

    def memory(self) -> int:
        """Return how many KiB of memory the server uses."""
        rows = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(row.split()[1]) for row in rows if row.startswith("VmRSS"))


def request(method: str, **params: Any) -> bytes:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    whole = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    return json.dumps(whole).encode()


def read_reply(connection: socket.socket) -> Reply:
    """Read one answer up to the length that it announces."""
    data = b""
    try:
        while b"\r\n\r\n" not in data:
            part = connection.recv(65_536)
            if not part:
                return Reply(0)
            data += part
        head, _, body = data.partition(b"\r\n\r\n")
        text = head.decode("latin-1")
        sizes = [row for row in text.lower().split("\r\n") if row.startswith("content-length:")]
        wanted = int(sizes[0].partition(":")[2]) if sizes else 0
        while len(body) < wanted and (part := connection.recv(65_536)):
            body += part
    except ConnectionResetError:
        return Reply(0)
    return Reply(int(text.split()[1]), text, body)


@contextmanager
def served(
    root: Path,
    bind: str = "127.0.0.1:0",
    token: str | None = None,
    *,
    hosts: Sequence[str] = (),
    handles: int = 0,
    **limits: float,
) -> Iterator[Served]:
    """Serve a folder until the block ends. ``handles``: how many files and connections the server may have open."""
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="ascii") as printed, Path(os.devnull).open("r+b") as nothing:
        process = fork_server_for(HERE / "server_process.py").fork(
            str(root),
            bind,
            {"token": token, "hosts": hosts},
            handles,
            limits,
            stdin=nothing,
            stdout=writing,
            stderr=nothing,
        )
        os.close(writing)
        try:
            url = printed.readline().strip()
            yield Served("127.0.0.1", int(url.rpartition(":")[2].removesuffix("/mcp")), process.pid)
        finally:
            process.end()

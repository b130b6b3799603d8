"""Git servers on this machine: git's own daemon, and git's HTTP program behind a small web server."""

from __future__ import annotations

import gzip
import os
import socket
import ssl
import subprocess
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tests.repositories import ENV

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


LARGE = 50_000
"""More bytes than any answer without files has."""


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Return once the port accepts connections. Fails when the process has ended."""
    while process.poll() is None:
        with socket.socket() as probe:
            probe.settimeout(0.2)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
    raise AssertionError("git daemon has ended")


@contextmanager
def daemon(root: Path) -> Iterator[str]:
    """Run a git daemon for every repository below ``root`` until the block ends, and yield its address."""
    port = free_port()
    options = ("--export-all", f"--base-path={root}", "--reuseaddr", "--listen=127.0.0.1", f"--port={port}")
    process = subprocess.Popen(
        ["git", "daemon", *options, str(root)], env={**os.environ, **ENV}, start_new_session=True
    )
    try:
        _wait_for(port, process)
        yield f"git://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, 15)
        process.wait()


class Handler(BaseHTTPRequestHandler):
    """Hands each request to ``git http-backend``, and records it in ``server.seen``."""

    server: HttpServer

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length")
        self._answer(self.rfile.read(int(length)) if length else self._chunked())

    def _chunked(self) -> bytes:
        parts: list[bytes] = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _answer(self, body: bytes) -> None:
        self.server.seen.append((self.path, dict(self.headers.items())))
        self.server.fetches += b"command=fetch" in _unzipped(body, self.headers.get("Content-Encoding", ""))
        if self.server.before is not None and self.server.before(self):
            return
        parts = urlsplit(self.path)
        env = {
            **os.environ,
            **ENV,
            "GIT_PROJECT_ROOT": str(self.server.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": parts.path,
            "QUERY_STRING": parts.query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        rows = [row.partition(": ") for row in head.decode("ascii").split("\r\n") if row]
        status = next((int(value.split()[0]) for name, _, value in rows if name == "Status"), 200)
        self.send_response(status)
        for name, _, value in rows:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.server.sent.append((self.path, len(content)))
        half = len(content) // 2
        self.wfile.write(content[:half])
        if self.server.midway is not None and half > LARGE:
            self.server.midway()
        self.wfile.write(content[half:])

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Tests print nothing."""


def _unzipped(body: bytes, encoding: str) -> bytes:
    return gzip.decompress(body) if encoding == "gzip" else body


def demand_password(handler: Handler) -> bool:
    """Answer a request without a password with status 401, and return whether the request had none."""
    if handler.headers.get("Authorization"):
        return False
    handler.send_response(401)
    handler.send_header("WWW-Authenticate", 'Basic realm="x"')
    handler.send_header("Content-Length", "0")
    handler.end_headers()
    return True


class HttpServer(ThreadingHTTPServer):
    """A web server for the repositories below ``root``, which records requests and answers."""

    daemon_threads = True

    def __init__(
        self, root: Path, before: Callable[[Handler], bool] | None = None, *, tls: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.scheme = "https" if tls else "http"
        self.root = root
        self.before = before
        self.midway: Callable[[], object] | None = None
        """A function that is called when half of a large answer has been sent."""
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.sent: list[tuple[str, int]] = []
        """The path and the number of bytes of each answer of git."""
        self.fetches = 0
        """How many requests asked for objects, in version 2 of git's protocol."""

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        """Close TLS properly: some clients take a connection that merely ends for an attack."""
        if isinstance(request, ssl.SSLSocket):
            with suppress(OSError, ValueError):
                request.settimeout(5)
                request.unwrap()
        super().shutdown_request(request)

    def forget(self) -> None:
        """Clear the record of requests and answers."""
        self.seen.clear()
        self.sent.clear()
        self.fetches = 0

    @property
    def bytes_sent(self) -> int:
        """How many bytes git has sent since the record was cleared."""
        return sum(count for _, count in self.sent)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def address(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"


@contextmanager
def http(
    root: Path, before: Callable[[Handler], bool] | None = None, *, tls: ssl.SSLContext | None = None
) -> Iterator[HttpServer]:
    """Run a web server for every repository below ``root`` until the block ends, and yield it.

    ``before`` sees each request first. It returns true where it has answered the request itself.
    """
    server = HttpServer(root, before, tls=tls)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def dumb(root: Path, *, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve the files below ``root`` as they are until the block ends, and yield the address.

    Git reads a repository there once ``git update-server-info`` has been run in it.
    """

    class Files(SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(root))

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Files)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

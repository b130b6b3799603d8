"""Web servers on loopback for tests. They record what clients ask for.

``Site`` answers requests from a table of paths, or of methods and paths (``"PUT /x"``), with or without TLS.
``RawSite`` sends exactly the bytes that a test gives it, so it can lie about lengths, stall, or never end.
"""

from __future__ import annotations

import hashlib
import json
import socket
import ssl
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
NEW, OLD = "/.well-known/agent-skills", "/.well-known/skills"


def skill_md(name: str, description: str = "Does it.", body: str = "Do it.\n", fields: str = "") -> bytes:
    """Return the bytes of a valid SKILL.md."""
    return f"---\nname: {name}\ndescription: {description}\n{fields}---\n{body}".encode()


def sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@dataclass
class Reply:
    """The answer to requests for one path."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """The path, the headers, the method and the body of one request."""

    path: str
    headers: Mapping[str, str]
    method: str = "GET"
    body: bytes = b""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: clients are expected to hang up on hostile servers."""


class _Server6(_Server):
    address_family = socket.AF_INET6


class Site:
    """A web site that answers from a table of paths. It runs inside its ``with`` block."""

    def __init__(self, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self.replies: dict[str, Reply | Callable[[Asked], Reply]] = {}
        self.asked: list[Asked] = []
        self._server = (_Server6 if ":" in host else _Server)((host, 0), self._handler())
        self.scheme = "https" if tls else "http"
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.host = host
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                body = self.rfile.read(int(headers.get("content-length", 0)))
                asked = Asked(self.path, headers, self.command, body)
                site.asked.append(asked)
                reply = site.replies.get(f"{self.command} {self.path}") or site.replies.get(
                    self.path, Reply(status=404)
                )
                reply = reply(asked) if callable(reply) else reply
                self.send_response(reply.status)
                for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(reply.body)

            do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815 - the names that the server looks for

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        return Handler

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def paths(self) -> list[str]:
        """The paths of all requests, in order."""
        return [asked.path for asked in self.asked]

    def put(self, path: str, body: bytes, status: int = 200, /, **headers: str) -> str:
        """Answer requests for a path with these bytes from now on, and return its URL."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.replies[path] = Reply(body, status, named)
        return f"{self.url}{path}"

    def index(self, *entries: object, **headers: str) -> None:
        """Publish an index in the newer format."""
        body = json.dumps({"$schema": SCHEMA, "skills": entries}).encode()
        self.put(f"{NEW}/index.json", body, **headers)

    def old_index(self, *entries: object, **headers: str) -> None:
        """Publish an index in the older format."""
        self.put(f"{OLD}/index.json", json.dumps({"skills": entries}).encode(), **headers)

    def entry(self, name: str, artifact: bytes, kind: str = "skill-md", **fields: object) -> dict[str, object]:
        """Publish an artifact, and return its entry for an index in the newer format."""
        path = f"{NEW}/{name}/SKILL.md" if kind == "skill-md" else f"{NEW}/{name}.archive"
        self.put(path, artifact)
        entry = {"name": name, "type": kind, "description": "Does it.", "url": path, "digest": sha256(artifact)}
        return entry | fields

    def old_entry(self, name: str, files: dict[str, bytes], **fields: object) -> dict[str, object]:
        """Publish files, and return their entry for an index in the older format."""
        for path, content in files.items():
            self.put(f"{OLD}/{name}/{path}", content)
        return {"name": name, "description": "Does it.", "files": list(files)} | fields


class RawSite:
    """A server that calls a function with the socket of each connection. It runs inside its ``with`` block."""

    def __init__(self, answer: Callable[[socket.socket, bytes], None]) -> None:
        self._answer = answer
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.connections = 0
        self.over = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            request = b""
            while b"\r\n\r\n" not in request:
                got = connection.recv(65_536)
                if not got:
                    return
                request += got
            self._answer(connection, request)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listening.close()
        self._thread.join()


def certificate(folder: Path, *names: str) -> tuple[Path, ssl.SSLContext]:
    """Make a self-signed certificate for these names, and return its path and a TLS context for a server."""
    key, cert = folder / "key.pem", folder / "cert.pem"
    alternatives = ",".join(f"IP:{name}" if name[0].isdigit() else f"DNS:{name}" for name in names)
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=prowess tests"]
    command += ["-addext", f"subjectAltName={alternatives}", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return cert, context


class Names:
    """A name service for tests: each name has a list of answers, given in turn. The system answers for others."""

    def __init__(self, answers: Mapping[str, list[str]]) -> None:
        self._answers = {name: list(found) for name, found in answers.items()}
        self._system = socket.getaddrinfo
        self.asked: list[str] = []

    def getaddrinfo(self, host: Any, port: Any, *args: Any, **options: Any) -> Any:
        """Return the next answer for a known name, or what the system says. The last answer is given for ever."""
        found = self._answers.get(host.decode() if isinstance(host, bytes) else host)  # anyio asks with bytes
        if found is None:
            return self._system(host, port, *args, **options)
        self.asked.append(host)
        address = found.pop(0) if len(found) > 1 else found[0]
        return self._system(address, port, *args, **options)

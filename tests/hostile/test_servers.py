"""Attacks on our servers: URIs that lead out, web pages that reach in, requests without end, and long runs."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import select
import socket
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

import prowess
from bench.soak import HAS_PROC, handles_of, soak
from tests.hostile.http_servers import Reply, Served, read_reply, request, served
from tests.hostile.invariants import MARKER, Library, skill_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOKEN = "a-long-random-token-0123456789"  # noqa: S105 - of the tests
WAYS_OUT = [
    *("%2e%2e/%2e%2e/outside/secret.md", "..%2f..%2foutside%2fsecret.md", "../../outside/secret.md"),
    *("..%5c..%5coutside%5csecret.md", "%00", "references%2fa.md", "a.md%00.txt", "/etc/passwd", "%2fetc%2fpasswd"),
    *("%252e%252e/%252e%252e/outside/secret.md", "..%252f..%252foutside%252fsecret.md", "%c0%ae%c0%ae/secret.md"),
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Library:
    library = Library(tmp_path_factory.mktemp("served")).build()
    library.put("evil/SKILL.md", skill_text("evil"))
    (library.evil / "link.md").symlink_to(library.outside / "secret.md")
    return library


@pytest.fixture(scope="module")
def server(base: Library) -> Iterator[Served]:
    with served(base.root, max_http_header_seconds=2.0, max_http_streams=8) as running:
        yield running


def good(server: Served) -> bool:
    """Whether the good skill is there for an honest client."""
    reply = server.ask("resources/read", uri="skill://good/SKILL.md")
    return reply.status == 200 and "Do good." in reply.json["result"]["contents"][0]["text"]


# -- addresses ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS_OUT)
def test_no_address_leads_out_of_a_skill(server: Served, base: Library, way: str) -> None:
    """Case 48: a URI is decoded once and obeys the rules for paths. What was encoded twice does not exist."""
    with base.assert_unchanged():
        for method in ("resources/read", "skills/get", "resources/directory/read"):
            for skill in ("evil", "evil/.."):
                reply = server.ask(method, uri=f"skill://{skill}/{way}")
                assert reply.json["error"]["code"] == -32602, reply
                assert MARKER.encode() not in reply.body
        assert server.ask("resources/read", uri="skill://evil/link.md").json["error"]["code"] == -32602
        assert good(server)


def test_decoding_twice_leads_out(base: Library) -> None:
    """Twin of case 48: a reader that decodes until nothing changes, and joins, gives the secret away."""
    path = "%252e%252e/%252e%252e/outside/secret.md"
    while unquote(path) != path:
        path = unquote(path)
    assert MARKER in (base.root / "evil" / path).read_text(encoding="utf-8")


# -- who may ask -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}"),
        *("127.0.0.1:{port}@evil.example", "[::1", "127.0.0.1:{port}/x", "a b", "127.0.0.1.evil.example:{port}"),
    ],
)
def test_a_foreign_host_is_refused(server: Served, host: str) -> None:
    """Case 126: a Host header with another name or port gets 421, in both versions of the protocol."""
    for version in ("2026-07-28", ""):
        reply = server.post(request("skills/list"), host=host.format(port=server.port), version=version)
        assert reply.status == 421
    assert good(server)


def test_a_missing_host_is_refused(server: Served) -> None:
    """Case 126: a request of HTTP/1.0 has no Host."""
    body = request("skills/list")
    head = f"POST /mcp HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    assert server.raw(head.encode() + body).status == 421
    head = head.replace("1.0", "1.1", 1)
    assert server.raw(head.encode() + body).status == 400


def test_two_hosts_are_none(server: Served) -> None:
    """Case 126: it is unclear which of the two Host headers counts."""
    assert server.post(request("skills/list"), f"Host: {server.name}").status in {400, 421}


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "", "http://127.0.0.1", "http://127.0.0.1:1", "file://", "http://[", "https://x"],
)
def test_a_foreign_page_is_refused(server: Served, origin: str) -> None:
    """Case 126: an Origin that is not our own gets 403."""
    for version in ("2026-07-28", ""):
        assert server.post(request("skills/list"), f"Origin: {origin}", version=version).status == 403
    own = f"http://{server.name}"
    assert server.ask("skills/list", f"Origin: {own}").status == 200


def test_a_server_for_others_needs_a_token(base: Library) -> None:
    """Case 126: a server on other addresses does not start without a token, and answers nobody who lacks it."""
    code = "import sys, prowess; prowess.mcp.serve(sys.argv[1], http='0.0.0.0:0')"
    done = subprocess.run(
        [sys.executable, "-c", code, str(base.root)], capture_output=True, text=True, timeout=60, check=False
    )
    assert "needs a token" in done.stderr
    with served(base.root, "0.0.0.0:0", TOKEN) as running:
        assert running.ask("skills/list").status == 401
        for wrong in (f"Bearer {TOKEN}x", "Bearer ", f"Basic {TOKEN}", f"Bearer {TOKEN[:-1]}", "Bearer \xff"):
            assert running.ask("skills/list", f"Authorization: {wrong}").status == 401
        reply = running.ask("skills/list", f"Authorization: Bearer {TOKEN}")
        assert reply.status == 200
        assert str(base.root).encode() not in reply.body
        assert running.post(request("skills/list"), f"Authorization: Bearer {TOKEN}", host="evil.example").status == 421


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """It breaks: that is the point."""


class _Naive(BaseHTTPRequestHandler):
    """A server that answers whoever reaches it."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"result": body["method"]}).encode())

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def careless() -> Iterator[Served]:
    with _Quiet(("127.0.0.1", 0), _Naive) as running:
        Thread(target=partial(running.serve_forever, 0.01), daemon=True).start()
        yield Served("127.0.0.1", running.server_address[1], 0)
        running.shutdown()


def test_a_careless_server_answers_any_page(careless: Served) -> None:
    """Twin of case 126: it answers under any host name, and to any page."""
    assert careless.post(request("skills/list"), host="evil.example").status == 200
    assert careless.post(request("skills/list"), "Origin: http://evil.example").status == 200


# -- too much ----------------------------------------------------------------------------------------------------------

MIB = 1 << 20
DEEP = b"[" * 100_000 + b"]" * 100_000
BODIES = {
    "deep": DEEP,
    "deep-params": b'{"jsonrpc":"2.0","id":1,"method":"skills/list","params":{"x":' + DEEP + b"}}",
    "batch": json.dumps([json.loads(request("skills/list"))] * 10_000).encode(),
    "not-utf8": b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}',
    "huge-id": b'{"jsonrpc":"2.0","id":1e400,"method":"skills/list","params":{}}',
    "huge-number": b'{"jsonrpc":"2.0","id":' + b"9" * 100_000 + b',"method":"skills/list"}',
    "empty": b"",
    "text": b"hello",
    "nothing": b"null",
}


@pytest.mark.parametrize("what", BODIES)
@pytest.mark.parametrize("version", ["2026-07-28", ""])
def test_a_body_that_makes_no_sense_is_refused(server: Served, what: str, version: str) -> None:
    """Case 127: the status is 4xx, and the next client is served."""
    assert 400 <= server.post(BODIES[what], version=version).status < 500
    assert good(server)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_form_of_a_page_is_refused(server: Served, kind: str) -> None:
    """Case 127: a page may send a form without asking the server first, so a form is not accepted."""
    for version in ("2026-07-28", ""):
        reply = server.post(request("skills/list"), f"Content-Type: {kind}", version=version)
        assert 400 <= reply.status < 500


def test_sizes_are_bounded_and_memory_stays_flat(server: Served) -> None:
    """Case 127: 60 MB, a compressed bomb, 10,000 headers, endless chunks: refused before they are kept."""
    if not HAS_PROC:
        pytest.skip("needs /proc to measure memory")
    good(server)
    before = server.memory()
    for _ in range(3):
        assert server.post(b"x" * MIB, length=60 * MIB).status in {0, 408, 413}
        assert server.post(b"x" * 5 * MIB).status in {0, 413}
        assert server.post(gzip.compress(b"[" * 50 * MIB), "Content-Encoding: gzip").status == 415
        assert server.post(b"", *(f"X-{n}: y" for n in range(10_000))).status in {0, 400, 431}
        assert server.post(b"", "X: " + "y" * 70_000).status in {0, 400, 431}
        chunks = b"".join(b"%x\r\n%s\r\n" % (MIB, b"x" * MIB) for _ in range(8))
        head = f"POST /mcp HTTP/1.1\r\nHost: {server.name}\r\nTransfer-Encoding: chunked\r\n"
        assert server.raw(f"{head}Content-Type: application/json\r\n\r\n".encode() + chunks).status in {0, 413}
    assert good(server)
    assert server.memory() - before < 64 * 1024


def test_slow_clients_are_let_go_and_hold_up_nobody(server: Served) -> None:
    """Case 127: headers that trickle in end the connection; others are answered meanwhile."""
    slow = [server.connect() for _ in range(100)]
    try:
        for connection in slow:
            connection.sendall(b"POST /mcp HTTP/1.1\r\nX: ")
        assert good(server)
        assert {_is_closed(connection) for connection in slow} == {True}
        assert good(server)
    finally:
        for connection in slow:
            connection.close()


def _is_closed(connection: socket.socket) -> bool:
    """Whether the server hangs up before we lose patience."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def listen(name: str) -> bytes:
    """A request for a stream of changes."""
    body = request("subscriptions/listen", notifications={"resourcesListChanged": True})
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: {name}\r\nContent-Type: application/json\r\n"
        "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
        f"Mcp-Method: subscriptions/listen\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def test_many_idle_streams_are_bounded_and_hold_up_nobody(base: Library, full: bool) -> None:
    """Case 127: beyond the bounds they are refused or let go, and whoever comes then is served."""
    with served(base.root) as server:
        good(server)
        before = server.memory() if HAS_PROC else 0
        streams = [server.connect() for _ in range(1_000 if full else 300)]
        try:
            for connection in streams:
                with suppress(ConnectionError):  # let go already
                    connection.sendall(listen(server.name))
            while server.ask("resources/read", uri="skill://good/SKILL.md").status == 429:  # the burst was at its rate
                pass
            assert all(good(server) for _ in range(20))
            replies = [reply_or_none(connection) for connection in streams]
            opened = [reply for reply in replies if "text/event-stream" in reply.head]
            assert 0 < len(opened) <= prowess.Limits().max_http_streams
            assert all(not reply.status or b"error" in reply.body for reply in replies if reply not in opened)
            assert good(server)
            assert not HAS_PROC or server.memory() - before < 64 * 1024
        finally:
            for connection in streams:
                connection.close()


def test_many_idle_connections_keep_nobody_out(base: Library, full: bool) -> None:
    """Case 127: of too many, those that have been idle for longest are let go; the newest are served."""
    with served(base.root, max_http_connections=100) as server:
        idle = [server.connect() for _ in range(1_000 if full else 300)]
        try:
            assert all(good(server) for _ in range(20))
            assert sum(_is_closed_by_now(connection) for connection in idle) >= len(idle) - 100
        finally:
            for connection in idle:
                connection.close()


def reply_or_none(connection: socket.socket) -> Reply:
    """What was answered, where anything was."""
    try:
        return read_reply(connection)
    except ConnectionError:
        return Reply(0)


def _is_closed_by_now(connection: socket.socket) -> bool:
    connection.settimeout(0)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


@pytest.mark.sampled(0.25)  # slow
def test_answers_that_nobody_takes_do_not_pile_up(tmp_path: Path) -> None:
    """Case 127: of large answers only some are made and kept at one time; small ones are given in between."""
    library = Library(tmp_path).build()
    library.put("evil/SKILL.md", skill_text("evil"))
    (library.evil / "large.bin").write_bytes(b"\xff" * 12 * MIB)
    with served(library.root, max_http_header_seconds=3.0) as server:
        good(server)
        before, handles = (server.memory(), handles_of(server.pid)) if HAS_PROC else (0, 0)
        deaf = [server.connect() for _ in range(30)]  # 480 MiB of answers
        try:
            for connection in deaf:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.sendall(reading(server.name, "skill://evil/large.bin"))
            for _ in range(20):
                assert good(server)
                assert not HAS_PROC or server.memory() - before < 400 * 1024
            assert not HAS_PROC or lets_go(server, handles + 8), "nobody is waited for without end"
        finally:
            for connection in deaf:
                connection.close()
        whole = server.ask("resources/read", uri="skill://evil/large.bin")
        assert len(base64.b64decode(whole.json["result"]["contents"][0]["blob"])) == 12 * MIB


def reading(name: str, uri: str) -> bytes:
    """A request for a file."""
    body = request("resources/read", uri=uri)
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: {name}\r\nContent-Type: application/json\r\n"
        "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
        f"Mcp-Method: resources/read\r\nMcp-Name: {uri}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def lets_go(server: Served, handles: int) -> bool:
    """Whether the server comes back to so many handles, though nobody hangs up."""
    until = time.monotonic() + 60
    while handles_of(server.pid) > handles:
        if time.monotonic() > until:
            return False
        select.select([], [], [], 0.05)  # the server needs the processor more than this question does
    return True


def test_half_sent_requests_do_not_pile_up(base: Library) -> None:
    """Case 127: all together may hold a few mebibytes; small requests need no room."""
    with served(base.root) as server:
        good(server)
        before = server.memory() if HAS_PROC else 0
        head = f"POST /mcp HTTP/1.1\r\nHost: {server.name}\r\nContent-Type: application/json\r\n"
        half = f"{head}Content-Length: {4 * MIB}\r\n\r\n".encode() + b"x" * (3 * MIB)
        slow = [server.connect() for _ in range(60)]
        try:
            for connection in slow:
                with suppress(ConnectionError):  # refused before everything was sent
                    connection.sendall(half)
                assert good(server)
            assert not HAS_PROC or server.memory() - before < 96 * 1024
        finally:
            for connection in slow:
                connection.close()
        assert good(server)


def test_a_client_may_not_listen_to_everything_at_once(server: Served) -> None:
    """Case 127: 150,000 addresses in one request are refused before any is looked at."""
    uris = [f"skill://good/{number}" for number in range(150_000)]
    reply = server.ask("subscriptions/listen", notifications={"resourceSubscriptions": uris})
    assert reply.json["error"]["code"] == -32602
    assert good(server)


HELLO = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
    }
).encode()
PING = b'{"jsonrpc":"2.0","id":2,"method":"ping"}'


def begin(server: Served) -> str:
    """A session of the older protocol: its number."""
    reply = server.post(HELLO, version="")
    assert reply.status == 200, reply
    return next(row.split()[1] for row in reply.head.split("\r\n") if row.lower().startswith("mcp-session-id:"))


def test_sessions_that_nobody_ends_keep_nobody_out(base: Library) -> None:
    """Case 127: of too many, those that were idle for longest end, and nobody hears of an error of the server."""
    with served(base.root, max_http_sessions=20) as server:
        first, *others = [begin(server) for _ in range(10)]
        for _ in range(60):
            begin(server)
            assert server.post(PING, f"Mcp-Session-Id: {first}", version="").status == 200, "it is not idle"
        assert {server.post(PING, f"Mcp-Session-Id: {other}", version="").status for other in others} == {404}
        newest = begin(server)
        assert server.post(PING, f"Mcp-Session-Id: {newest}", version="").status == 200
        assert good(server)


def use(server: Served, session: str, *headers: str) -> int:
    """The status of a request of a session: 404 once it has ended."""
    return server.post(PING, f"Mcp-Session-Id: {session}", *headers, version="").status


def send_bare(server: Served, line: str, *headers: str) -> int:
    """The status of a request without a body."""
    rows = [f"{line} HTTP/1.1", f"Host: {server.name}", "Accept: application/json, text/event-stream", *headers]
    return server.raw("\r\n".join([*rows, "Content-Length: 0", "", ""]).encode()).status


def test_ids_that_strangers_make_up_end_no_session(base: Library) -> None:
    """Case 127: only sessions that the server began count, whatever requests say and wherever they go."""
    with served(base.root, max_http_sessions=20) as server:
        sessions = [begin(server) for _ in range(20)]
        for number in range(60):
            assert use(server, f"{number:032x}") == 404
            assert send_bare(server, "DELETE /mcp", f"Mcp-Session-Id: {number:032x}") == 404
            assert send_bare(server, "GET /elsewhere", f"Mcp-Session-Id: {number:032x}") == 404
            assert server.ask("skills/list", f"Mcp-Session-Id: {number:032x}").status == 200
        begin(server)
        assert [use(server, session) for session in sessions] == [404, *([200] * 19)]


def test_only_a_new_session_ends_an_old_one(base: Library) -> None:
    """Case 127: requests of the protocol without sessions, and requests that are refused, end none."""
    with served(base.root, max_http_sessions=20) as server:
        sessions = [begin(server) for _ in range(20)]
        assert server.post(b"{}", version="").status == 400
        assert good(server)
        assert send_bare(server, "POST /elsewhere") == 404
        assert {use(server, session) for session in sessions} == {200}


def test_no_answer_but_that_to_its_end_makes_a_session_uncounted(base: Library) -> None:
    """Case 127: whoever has sessions cannot hide them from the count, so that there are never too many."""
    with served(base.root, max_http_sessions=20) as server:
        sessions: list[str] = []
        for number in range(60):
            session = begin(server)
            header = f"Mcp-Session-Id: {session}"
            assert send_bare(server, "GET /elsewhere", header) == 404
            assert send_bare(server, "DELETE /elsewhere", header) == 404
            send_bare(server, "DELETE /mcp", header, "MCP-Protocol-Version: 2026-07-28")
            server.ask("no/such-method", header)
            if number % 2:  # another one is named behind the one that ends
                send_bare(server, "DELETE /mcp", f"Mcp-Session-Id: {sessions[-1]}", header)
            sessions.append(session)
        assert 0 < sum(use(server, session) == 200 for session in sessions) <= 20
        assert use(server, begin(server)) == 200
        assert good(server)


def test_sessions_that_end_make_room(base: Library) -> None:
    """Case 127: a client that ends its sessions never ends those of others."""
    with served(base.root, max_http_sessions=3) as server:
        first = begin(server)
        for _ in range(20):
            session = begin(server)
            assert send_bare(server, "DELETE /mcp", f"Mcp-Session-Id: {session}") == 200
        assert use(server, first) == 200


@pytest.mark.skipif(not HAS_PROC, reason="needs further addresses of this machine, as Linux has them")
def test_many_sessions_of_one_address_end_none_of_another(base: Library) -> None:
    """Case 127: of too many sessions, those of the address that has the most end first."""
    with served(base.root, max_http_sessions=20) as server:
        sessions = [begin(server) for _ in range(3)]
        stranger = server._replace(source="127.0.0.2")
        others = [begin(stranger) for _ in range(60)]
        assert {use(server, session) for session in sessions} == {200}
        assert sum(use(stranger, session) == 200 for session in others) == 17


@pytest.mark.skipif(not HAS_PROC, reason="needs the handles of a process to be limited")
def test_fewer_handles_than_connections_keep_nobody_out(base: Library) -> None:
    """Case 127: a process that may open few files serves fewer at once, and says nothing a thousand times."""
    with served(base.root, handles=128) as server:
        idle = [server.connect() for _ in range(200)]
        try:
            assert all(good(server) for _ in range(10))
        finally:
            for connection in idle:
                connection.close()


def test_open_streams_are_bounded(server: Served) -> None:
    """Case 127: streams for changes beyond the bound are refused, and everybody else is served."""
    streams = [server.connect() for _ in range(40)]
    try:
        for connection in streams:
            connection.sendall(listen(server.name))
        replies = [read_reply(connection) for connection in streams]
        opened = [reply for reply in replies if "text/event-stream" in reply.head]
        assert len(opened) == 8
        assert all(b"error" in reply.body for reply in replies if reply not in opened)
        assert good(server)
    finally:
        for connection in streams:
            connection.close()


def test_a_flood_of_requests_is_slowed_down(base: Library) -> None:
    """Case 127: requests beyond the rate get 429. Later requests are served again."""
    with served(base.root, max_http_requests=5) as running:
        found = [running.ask("skills/list").status for _ in range(30)]
        assert set(found) == {200, 429}


def test_a_careless_server_breaks_on_depth(careless: Served) -> None:
    """Twin of case 127: deep brackets break what reads them, and the client gets no answer."""
    with pytest.raises(RecursionError):
        json.loads(DEEP)
    assert careless.post(DEEP).status == 0


# -- a long day --------------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_a_server_lasts(seed: int) -> None:
    """Case 128: mixed requests while skills change and clients hang up: no error, nothing grows, nothing is stale."""
    seconds = 20
    run = asyncio.run(soak(seconds, seed=seed))
    assert run.wrong == []
    assert run.told > seconds / 2
    assert sum(run.asked.values()) > 5 * seconds


def test_a_server_that_remembers_is_stale(tmp_path: Path) -> None:
    """Twin of case 128: one that keeps what it read gives the old text after a change."""
    library = Library(tmp_path).build()
    kept = {skill.name: skill.read_body() for skill in prowess.scan(library.root)}
    library.put("good/SKILL.md", skill_text("good", body="Do better.\n"))
    assert kept["good"] == "Do good.\n"
    assert prowess.scan(library.root)["good"].read_body() == "Do better.\n"

"""A guarded GET request: redirects, lengths, encodings, timeouts, TLS and proxies, with real servers on loopback."""

from __future__ import annotations

import gzip
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

import prowess
from prowess.fetch.client import Fetcher
from prowess.fetch.url_policy import UrlPolicy
from tests.web_sites import NEW, Asked, Names, RawSite, Reply, Site, certificate, skill_md

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from prowess.fetch.client import HttpResponse
    from tests.sources.conftest import Load

pytestmark = pytest.mark.usefixtures("plain_network")
HERE = UrlPolicy(private=True, http=True)
QUICK = prowess.Limits(fetch_idle_seconds=0.3, fetch_total_seconds=1.0)
PDF = skill_md("pdf")


def get(url: str, most: int = 1000, *, allowed: UrlPolicy = HERE, limits: prowess.Limits | None = None) -> HttpResponse:
    return Fetcher(url, allowed, limits or prowess.Limits()).get(url, most, limit_name="max_download_bytes")


def refused(url: str, code: str, most: int = 1000, *, allowed: UrlPolicy = HERE, limits: prowess.Limits = QUICK) -> str:
    with pytest.raises(prowess.FetchError) as caught:
        get(url, most, allowed=allowed, limits=limits)
    assert caught.value.code == code, caught.value
    return str(caught.value)


# -- redirects ---------------------------------------------------------------------------------------------------------


def test_redirects_within_the_site_are_followed_up_to_the_limit(site: Site) -> None:
    site.put("/5", b"there")
    for step in range(5):
        site.put(f"/{step}", b"", (301, 302, 303, 307, 308)[step], Location=f"/{step + 1}")
    answer = get(f"{site.url}/0")
    assert (answer.body, answer.url) == (b"there", f"{site.url}/5")
    site.put("/start", b"", 302, Location="0")
    assert "5 redirects" in refused(f"{site.url}/start", "redirect-refused")


@pytest.mark.parametrize("target", ["", "file:///etc/passwd", "ftp://x/", "javascript:x", "http://[", "data:,x"])
def test_a_redirect_to_no_web_address_is_refused(site: Site, target: str) -> None:
    site.put("/x", b"", 302, Location=target)
    refused(f"{site.url}/x", "redirect-refused")


def test_a_redirect_to_another_origin_is_followed_only_if_it_was_named(site: Site) -> None:
    with Site() as other:
        other.put("/y", b"there")
        site.put("/x", b"", 302, Location=f"{other.url}/y")
        assert other.url in refused(f"{site.url}/x", "redirect-refused")
        assert other.asked == []
        for named in ("127.0.0.1", f"127.0.0.1:{other.port}"):
            assert get(f"{site.url}/x", allowed=HERE._replace(hosts=frozenset([named]))).body == b"there"


def test_headers_for_the_site_are_not_sent_to_another_host(site: Site) -> None:
    with Site() as other:
        other.put("/y", b"there")
        site.put("/x", b"", 302, Location=f"{other.url}/y", Set_Cookie="id=secret; Path=/")
        allowed = HERE._replace(hosts=frozenset([f"127.0.0.1:{other.port}"]))
        fetcher = Fetcher(site.url, allowed, QUICK, {"Authorization": "Bearer t", "Cookie": "a=b"})
        assert fetcher.get(f"{site.url}/x", 10, limit_name="max_download_bytes").body == b"there"
        assert site.asked[0].headers["authorization"] == "Bearer t"
        assert {"authorization", "cookie"} & other.asked[0].headers.keys() == set()


def test_plain_http_is_refused_also_behind_a_redirect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cert, context = certificate(tmp_path, "127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    with Site(tls=context) as secure, Site() as plain:
        plain.put("/y", b"there")
        secure.put("/x", b"", 302, Location=f"{plain.url}/y")
        allowed = UrlPolicy(private=True, hosts=frozenset([f"127.0.0.1:{plain.port}"]))
        refused(f"{secure.url}/x", "plain-http", allowed=allowed)
        assert plain.asked == []


# -- lengths and encodings ---------------------------------------------------------------------------------------------


def test_the_limit_is_kept_to_the_byte(site: Site) -> None:
    site.put("/x", b"x" * 1000)
    assert get(f"{site.url}/x").body == b"x" * 1000
    site.put("/x", b"x" * 1001)
    message = refused(f"{site.url}/x", "download-too-large")
    assert "max_download_bytes" in message
    assert "1000" in message


def test_the_limit_counts_bytes_after_decoding(site: Site) -> None:
    site.put("/x", gzip.compress(b"x" * 1000), Content_Encoding="gzip")
    assert get(f"{site.url}/x").body == b"x" * 1000
    site.put("/x", gzip.compress(b"x" * 1001), Content_Encoding="gzip")
    refused(f"{site.url}/x", "download-too-large")
    assert site.asked[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("encoding", ["br", "zstd", "deflate", "gzip, gzip", "compress", "unknown"])
def test_an_encoding_that_was_not_asked_for_is_refused(site: Site, encoding: str) -> None:
    site.put("/x", gzip.compress(b"x"), Content_Encoding=encoding)
    refused(f"{site.url}/x", "fetch-failed")


@pytest.mark.parametrize("cut", [slice(0, -4), slice(0, 12), slice(5, None)])
def test_a_compressed_answer_must_be_whole(site: Site, cut: slice) -> None:
    site.put("/x", gzip.compress(b"x" * 500)[cut], Content_Encoding="gzip")
    refused(f"{site.url}/x", "fetch-failed")
    site.put("/x", gzip.compress(b"x" * 500) + b"more", Content_Encoding="gzip")
    refused(f"{site.url}/x", "fetch-failed")


RAW: dict[str, bytes] = {
    "a body that is shorter than announced": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nshorty",
    "a length that is not a number": b"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nshort",
    "chunks that do not end": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
    "a chunk that is cut": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nshort",
    "no answer": b"",
    "something else than HTTP": b"220 mail ready\r\n",
    "a header without an end": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000,
}


@pytest.mark.parametrize("kind", RAW)
def test_an_answer_that_is_not_whole_is_an_error(kind: str) -> None:
    with RawSite(lambda connection, _: connection.sendall(RAW[kind])) as raw:
        refused(f"{raw.url}/x", "fetch-failed")


def test_an_answer_in_chunks_is_read_to_its_end() -> None:
    whole = RAW["chunks that do not end"] + b"0\r\n\r\n"
    with RawSite(lambda connection, _: connection.sendall(whole)) as raw:
        assert get(f"{raw.url}/x").body == b"short"


@pytest.mark.parametrize("version", [b"HTTP/1.0", b"HTTP/1.1"])
def test_an_answer_without_a_length_ends_with_its_connection(version: bytes) -> None:
    with RawSite(lambda connection, _: connection.sendall(version + b" 200 OK\r\n\r\nwhole")) as raw:
        assert get(f"{raw.url}/x", 5).body == b"whole"
        refused(f"{raw.url}/x", "download-too-large", 4)


# -- time --------------------------------------------------------------------------------------------------------------


def test_a_silent_server_is_a_timeout() -> None:
    with RawSite(lambda connection, _: wait(connection)) as raw:
        assert "took too long" in refused(f"{raw.url}/x", "fetch-timeout")


def test_a_server_that_sends_byte_by_byte_is_a_timeout_after_the_total_time() -> None:
    """Each byte comes before the server counts as silent, in the headers as in the body."""
    for begin in (b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"):
        over = threading.Event()

        def trickle(connection: socket.socket, _: bytes, begin: bytes = begin, over: threading.Event = over) -> None:
            connection.sendall(begin)
            while not over.wait(0.05):
                connection.sendall(b"x")

        with RawSite(trickle) as raw:
            refused(f"{raw.url}/x", "fetch-timeout", most=10**6)
        over.set()


def wait(connection: socket.socket) -> None:
    """Until the client hangs up."""
    connection.recv(1)


# -- TLS ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def secure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site with TLS that is known as skills.test; its certificate is nobody's until a test says so."""
    _, context = certificate(tmp_path, "skills.test")
    with Site(tls=context) as running:
        monkeypatch.setattr(socket, "getaddrinfo", Names({"skills.test": ["127.0.0.1"]}).getaddrinfo)
        yield running


def test_a_certificate_of_an_unknown_authority_is_refused(secure: Site, load: Load) -> None:
    (issue,) = load(f"https://skills.test:{secure.port}").issues
    assert issue.code == "fetch-failed"
    assert "CERTIFICATE" in issue.message.upper()


def test_the_authorities_of_the_environment_count_and_the_name_stays_intact(
    secure: Site, load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    secure.index(secure.entry("pdf", PDF))
    catalog = load(f"https://skills.test:{secure.port}", allow_http=False)
    assert catalog.load("pdf").instructions == "Do it."
    assert catalog["pdf"].virtual_path == "skills.test/pdf"
    assert {asked.headers["host"] for asked in secure.asked} == {f"skills.test:{secure.port}"}


def test_a_certificate_for_another_name_is_refused(
    secure: Site, load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    (issue,) = load(f"https://127.0.0.1:{secure.port}").issues
    assert issue.code == "fetch-failed"
    assert secure.asked == []


def test_a_missing_file_of_authorities_is_an_error_that_names_it(
    secure: Site, load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    (issue,) = load(f"https://skills.test:{secure.port}").issues
    assert issue.code == "fetch-failed"


# -- proxies -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A proxy that answers for skills.example itself: plain http through a proxy asks for the whole URL."""
    with Site() as running:
        monkeypatch.setenv("HTTP_PROXY", f"http://name:secret@127.0.0.1:{running.port}")
        yield running


def test_the_proxy_of_the_environment_is_used(proxy: Site, load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy.index(proxy.entry("pdf", PDF))
    for path in list(proxy.replies):
        proxy.replies[f"http://skills.invalid{path}"] = proxy.replies[path]
    catalog = load("http://skills.invalid", allow_private=False)
    assert catalog.load("pdf").instructions == "Do it."
    assert proxy.paths[0] == f"http://skills.invalid{NEW}/index.json"
    assert proxy.asked[0].headers["proxy-authorization"] == "Basic bmFtZTpzZWNyZXQ="
    monkeypatch.setenv("NO_PROXY", "skills.invalid")
    (issue,) = load("http://skills.invalid", missing="ignore", cache_dir=None).issues
    assert issue.code == "fetch-failed"
    assert "secret" not in str(issue)


def test_a_host_that_is_private_here_is_refused_before_the_proxy_is_asked(
    proxy: Site, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", Names({"inner.example": ["10.0.0.1"]}).getaddrinfo)
    for host in ("inner.example", "10.0.0.1", "0x7f000001", "localhost"):
        (issue,) = load(f"http://{host}", allow_private=False).issues
        assert issue.code == "address-refused"
    assert proxy.asked == []


def test_this_machine_is_never_reached_by_a_proxy(proxy: Site, site: Site) -> None:
    site.put("/x", b"here")
    assert get(f"{site.url}/x").body == b"here"
    assert proxy.asked == []


def test_a_secure_site_is_reached_through_a_tunnel(
    secure: Site, load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy is told the name, resolves it itself, and sees nothing of what passes."""
    told: list[bytes] = []

    def tunnel(connection: socket.socket, request: bytes) -> None:
        told.append(request.split(b"\r\n")[0])
        with socket.create_connection(("127.0.0.1", secure.port)) as beyond:
            connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            threading.Thread(target=copy, args=(beyond, connection), daemon=True).start()
            copy(connection, beyond)

    secure.index(secure.entry("pdf", PDF))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    with RawSite(tunnel) as raw:
        monkeypatch.setenv("HTTPS_PROXY", raw.url)
        assert load(f"https://skills.test:{secure.port}").load("pdf").instructions == "Do it."
    assert set(told) == {b"CONNECT skills.test:%d HTTP/1.1" % secure.port}


def copy(source: socket.socket, target: socket.socket) -> None:
    """Everything from one socket to the other, until one of them ends."""
    try:
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return


def test_a_proxy_of_another_kind_is_refused(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    (issue,) = load("https://skills.invalid").issues
    assert issue.code == "bad-address"


# -- addresses ---------------------------------------------------------------------------------------------------------


def test_every_address_of_a_host_is_tried(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.put("/x", b"there")
    known: dict[str, list[str]] = {"two.test": ["127.0.0.3", "127.0.0.1"]}

    system = socket.getaddrinfo

    def both(host: str, port: int, *_: object, **__: object) -> list[tuple[Any, ...]]:
        found = (system(address, port, type=socket.SOCK_STREAM) for address in known.get(host, [host]))
        return [row for rows in found for row in rows]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    assert get(f"http://two.test:{site.port}/x").body == b"there"


def test_a_host_is_reached_by_an_ipv6_address(plain_network: None) -> None:  # noqa: ARG001 - for its effect
    try:
        running = Site(host="::1")
    except OSError:
        pytest.skip("this machine has no such addresses")
    with running:
        running.replies["/x"] = lambda asked: Reply(asked.headers["host"].encode())
        assert get(f"http://[::1]:{running.port}/x").body == f"[::1]:{running.port}".encode()


def test_the_server_learns_no_more_than_it_must(site: Site) -> None:
    site.replies["/x"] = lambda asked: Reply(",".join(sorted(asked.headers)).encode())
    assert get(f"{site.url}/x").body == b"accept,accept-encoding,connection,host,user-agent"
    assert isinstance(site.asked[0], Asked)

"""Web sites that lie, stall, never end, or lead elsewhere."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import zlib
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.fetch.cache import sha256_hex as plain_sha256
from tests.web_sites import NEW, OLD, Names, RawSite, Site, certificate, sha256, skill_md

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import ModuleType

    from tests.hostile.conftest import Children, Remote
    from tests.hostile.invariants import Library

pytestmark = pytest.mark.usefixtures("plain_network")
EVIL = skill_md("evil", body="Announced.\n")
OTHER = skill_md("evil", body="Something else.\n")
MIB = 1 << 20
QUICK = prowess.Limits(fetch_idle_seconds=0.3, fetch_total_seconds=1.0)


def codes(catalog: prowess.Catalog) -> list[str]:
    return [issue.code for issue in catalog.issues]


# -- pinned ------------------------------------------------------------------------------------------------------------


def test_bytes_that_changed_after_they_were_announced_are_refused(
    library: Library, site: Site, remote: Remote, cache: Path
) -> None:
    """Case 67: the file changes at the server, or in the cache, after the index pinned it."""
    site.index(site.entry("evil", EVIL))
    catalog = remote(site.url)
    site.put(f"{NEW}/evil/SKILL.md", OTHER)
    library.assert_refused(lambda: catalog.load("evil"), "digest-mismatch")
    assert all(OTHER not in path.read_bytes() for path in remote.copies())
    site.put(f"{NEW}/evil/SKILL.md", EVIL)
    assert catalog.load("evil").instructions == "Announced."
    digest = plain_sha256(EVIL)
    (cache / "sha256" / digest[:2] / digest[2:]).write_bytes(OTHER)
    site.put(f"{NEW}/evil/SKILL.md", OTHER)
    library.assert_refused(lambda: catalog.load("evil"), "digest-mismatch")


def test_the_twin_reads_whatever_lies_in_its_cache(library: Library, naive: ModuleType) -> None:
    """Twin of case 67: it hashed the file once, and reads it later."""
    path = library.write(EVIL)
    announced = sha256(path.read_bytes())
    path.write_bytes(OTHER)
    assert sha256(naive.read(library.evil, "SKILL.md").encode()) != announced


@pytest.mark.parametrize("digest", ["md5:" + "0" * 32, "none", "sha1:" + "0" * 40, "sha256:", "sha256:" + "0" * 63, ""])
def test_a_digest_that_is_not_a_sha256_refuses_the_entry(
    library: Library, site: Site, remote: Remote, digest: str
) -> None:
    """Case 114: the digest is weaker, missing or not a digest."""
    site.index(site.entry("evil", EVIL, digest=digest))
    catalog = remote(site.url)
    assert catalog.names == ("good",)
    assert codes(catalog) == ["bad-digest" if digest else "bad-entry"]
    assert "evil" in str(catalog.issues[0])
    library.assert_refused(lambda: catalog["evil"], "unknown-skill")


def test_a_digest_or_size_that_does_not_fit_refuses_the_bytes(library: Library, site: Site, remote: Remote) -> None:
    """Case 114: the index says one digest or size, the body has another."""
    for fields in ({"digest": sha256(OTHER)}, {"size": len(EVIL) + 1}):
        site.index(site.entry("evil", EVIL, **fields))
        catalog = remote(site.url)
        for call in (lambda: catalog.load("evil"), lambda: catalog["evil"].read_bytes("SKILL.md")):  # noqa: B023
            library.assert_refused(call, "digest-mismatch")


def test_one_digest_under_two_names_refuses_both(site: Site, remote: Remote) -> None:
    """Case 114: which of the two names the bytes belong to cannot be told."""
    fine = site.entry("fine", skill_md("fine"))
    site.index(site.entry("evil", EVIL), site.entry("devil", EVIL), fine)
    catalog = remote(site.url)
    assert catalog.names == ("fine", "good")
    assert codes(catalog) == ["shared-digest"] * 2


def test_the_twin_takes_any_body_for_the_announced_one(site: Site, naive: ModuleType) -> None:
    """Twin of case 114: the digest is there, and nobody looks at it."""
    site.index(site.entry("evil", EVIL))
    site.put(f"{NEW}/evil/SKILL.md", OTHER)
    (entry,) = naive.index(f"{site.url}{NEW}/index.json")
    assert naive.fetch(site.url + entry["url"]) == OTHER
    assert entry["digest"] != sha256(OTHER)


# -- the index ---------------------------------------------------------------------------------------------------------

NAMES = ["../../x", "/x", "", "x" * 3_000_000, "..", "a/b", "a\\b", "C:\\x", "con", "a\0b", "%2e%2e", "~", "\ud800"]
PATHS = ["../x", "/x", "a\\b", "..%2fx", "https://other/x", "a/../../x", "", "x?y", "x#y", "a\0b", "NUL", "\ud800"]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name[:10]))
def test_an_entry_with_a_name_that_leaves_its_place_is_refused(
    site: Site, remote: Remote, cache: Path, name: str
) -> None:
    """Case 107: names that are paths, none, huge or half a character; the entry beside them stays."""
    for index in (site.index, site.old_index):
        make = (
            site.entry("fine", skill_md("fine")) if index == site.index else site.old_entry("fine", {"SKILL.md": EVIL})
        )
        index(make | {"name": name, "digest": "sha256:" + "0" * 64}, make)
        catalog = remote(site.url)
        assert catalog.names == ("fine", "good")
        assert codes(catalog)[0] in {"bad-name", "bad-entry"}
        assert len(str(catalog.issues[0])) < 1000
        assert all(path.is_relative_to(cache) for path in remote.copies())
        del site.replies[f"{NEW if index == site.index else OLD}/index.json"]


@pytest.mark.parametrize("path", PATHS, ids=ascii)
def test_an_entry_with_a_file_that_leaves_its_place_is_refused(site: Site, remote: Remote, path: str) -> None:
    """Case 107: files that climb, are absolute, or belong to another site; nothing of the entry is asked for."""
    fine = site.old_entry("fine", {"SKILL.md": skill_md("fine")})
    site.old_index(site.old_entry("evil", {"SKILL.md": EVIL}) | {"files": ["SKILL.md", path]}, fine)
    catalog = remote(site.url, prefetch=True)
    assert catalog.names == ("fine", "good")
    assert codes(catalog)[:1] in (["path-escape"], ["bad-path"])
    assert not [asked for asked in site.paths if "evil" in asked]


def test_the_twin_writes_where_an_index_says(library: Library, site: Site, naive: ModuleType) -> None:
    """Twin of case 107: a name with two dots leads out."""
    site.old_index({"name": "../outside", "description": "d", "files": ["secret.md"]})
    site.put(f"{OLD}/skill/file", b"pwned")
    naive.mirror(site.url, library.root)
    assert (library.outside / "secret.md").read_bytes() == b"pwned"


def index_of(skills: str) -> bytes:
    return b'{"skills": %s}' % skills.encode()


LARGE_INDEXES: dict[str, tuple[bytes, str]] = {
    "over the limit": (b" " * (4 * MIB) + b"{}", "download-too-large"),
    "a million entries": (index_of("[" + "{}," * 999_999 + "{}]"), "too-many-entries"),
    "a million lists": (index_of("[" + "[]," * 999_999 + "[]]"), "too-many-entries"),
    "one entry too many": (index_of("[" + "7," * 10_000 + "7]"), "too-many-entries"),
    "depth": (b"[" * 60_000 + b"]" * 60_000, "bad-index"),
    "depth of objects": (b'{"a":' * 60_000, "bad-index"),
    "depth beyond all counting": (b"[" * 100_000, "too-many-entries"),
    "a number without end": (index_of("[" + "9" * MIB + "]"), "bad-index"),
}
SMALL_INDEXES: dict[str, tuple[bytes, str]] = {
    "NaN": (index_of("[NaN]"), "bad-index"),
    "infinity": (index_of("[-Infinity]"), "bad-index"),
    "a key twice": (b'{"skills": [], "skills": [{"name": "evil"}]}', "bad-index"),
    "no JSON": (b"{", "bad-index"),
    "no object": (b"[]", "bad-index"),
    "no list": (b'{"skills": {}}', "bad-index"),
    "UTF-16": ('{"skills": []}'.encode("utf-16"), "bad-index"),
    "no text": (b"\xff\xfe\x80", "bad-index"),
    "nothing": (b"", "bad-index"),
}
ASK = """
source = prowess.Source.url(args[0], allow_http=True, allow_private=True, cache_dir=args[1])
with library.assert_unchanged():
    catalog = prowess.Catalog.from_sources([prowess.Source.directory(library.root), source])
    library.check(catalog)
result = [list(catalog.names), [issue.code for issue in catalog.issues]]
"""
LOADING = 32 * MIB  # what the HTTP client itself takes


@pytest.mark.parametrize("kind", LARGE_INDEXES)
def test_an_index_that_is_too_much_is_refused_within_bounds(
    library: Library, site: Site, child: Children, cache: Path, kind: str
) -> None:
    """Case 108: an index that is too large, too long or too deep is an issue, within bounded memory."""
    body, code = LARGE_INDEXES[kind]
    site.put(f"{NEW}/index.json", body)
    outcome = child.answer(ASK, library, site.url, str(cache), memory=384)
    assert outcome.result == [["good"], [code]]
    assert outcome.grown < 64 * MIB + LOADING
    assert outcome.busy < 5


@pytest.mark.parametrize("kind", SMALL_INDEXES)
def test_an_index_that_makes_no_sense_is_an_issue(site: Site, remote: Remote, kind: str) -> None:
    """Case 108: the index is not JSON, or JSON that readers understand differently."""
    body, code = SMALL_INDEXES[kind]
    site.put(f"{NEW}/index.json", body)
    catalog = remote(site.url)
    assert (catalog.names, [issue.code for issue in catalog.issues]) == (("good",), [code])


def test_a_byte_order_mark_before_an_index_is_harmless(site: Site, remote: Remote) -> None:
    """Case 108: the mark is skipped, and the entries are read."""
    site.put(
        f"{OLD}/index.json",
        b"\xef\xbb\xbf" + json.dumps({"skills": [site.old_entry("fine", {"SKILL.md": EVIL})]}).encode(),
    )
    assert remote(site.url).names == ("fine", "good")


def endless(connection: socket.socket, _: bytes) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        connection.sendall(b"10000\r\n" + b" " * 0x10000 + b"\r\n")


def huge(connection: socket.socket, _: bytes) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (1 << 30))
    endless(connection, b"")


def bomb(connection: socket.socket, _: bytes) -> None:
    """Ten mebibytes that become ten gibibytes."""
    engine = zlib.compressobj(9, zlib.DEFLATED, -15)
    one = engine.compress(b" " * MIB) + engine.flush(zlib.Z_FULL_FLUSH)
    body = gzip.compress(b"")[:10] + one * 10_240
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    connection.sendall(head + body)


@pytest.mark.parametrize("answer", [endless, huge, bomb])
def test_an_index_that_never_ends_is_refused_within_bounds(
    library: Library, child: Children, cache: Path, answer: Callable[[socket.socket, bytes], None]
) -> None:
    """Case 108: endless chunks, a gigabyte by its own word, ten gibibytes packed; the reader stops at the limit."""
    with RawSite(answer) as raw:
        outcome = child.answer(ASK, library, raw.url, str(cache), memory=384)
    assert outcome.result == [["good"], ["download-too-large"]]
    assert outcome.grown < 64 * MIB + LOADING


def test_the_twin_swallows_an_endless_index(library: Library, child: Children, site: Site) -> None:
    """Twin of case 108: it takes what comes, and falls over a deep one."""
    with RawSite(endless) as raw:
        assert child("naive.fetch(args[0])", library, raw.url, memory=128, kill_after=60).raised == "MemoryError"
    site.put("/deep", b"[" * 60_000)
    outcome = child("naive.index(args[0])", library, f"{site.url}/deep")
    assert (outcome.raised, outcome.typed) == ("RecursionError", False)


# -- addresses ---------------------------------------------------------------------------------------------------------

HOSTS = [
    *("127.0.0.1", "127.1", "[::1]", "169.254.169.254", "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "0"),
    *("0x7f000001", "2130706433", "[::ffff:127.0.0.1]", "localhost", "localhost.", "a.localhost", "0.0.0.0"),  # noqa: S104
    *("[fe80::1]", "[fd00::1]", "224.0.0.1", "inner.test"),
]


@pytest.mark.parametrize("host", HOSTS)
def test_a_private_machine_is_not_asked_unless_that_is_allowed(
    site: Site, remote: Remote, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """Case 109: every spelling of an address that is not public, and a name that leads to one."""
    monkeypatch.setattr(socket, "getaddrinfo", Names({"inner.test": ["127.0.0.1"]}).getaddrinfo)
    catalog = remote(f"http://{host}:{site.port}", allow_private=False)
    assert catalog.names == ("good",)
    assert codes(catalog) == ["address-refused"]
    assert site.asked == []


def test_a_name_that_changes_its_answer_leads_nowhere_else(
    site: Site, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 109: the answer that was checked is the one that is used; the next one is never asked for."""
    names = Names({"rebind.test": ["203.0.112.1", "127.0.0.1"]})
    monkeypatch.setattr(socket, "getaddrinfo", names.getaddrinfo)
    catalog = remote(f"http://rebind.test:{site.port}", allow_private=False, limits=QUICK)
    assert codes(catalog)[0] in {"fetch-failed", "fetch-timeout"}
    assert names.asked == ["rebind.test"]
    assert site.asked == []


def test_the_machine_that_was_connected_is_checked_too(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 109: whatever the name service said, a connection that ends up here is closed before a byte is sent."""
    from prowess.fetch import transport
    from prowess.fetch.url_policy import UrlPolicy

    def rerouted(address: tuple[str, int], *args: object, **options: object) -> socket.socket:
        return connect(("127.0.0.1", address[1]), *args, **options)  # type: ignore[arg-type]  # passed on as they came

    connect = socket.create_connection
    monkeypatch.setattr(socket, "create_connection", rerouted)
    guard = transport.GuardedBackend(transport.Deadline(5), UrlPolicy(http=True), "http")
    with pytest.raises(prowess.FetchError) as caught:
        guard.connect_tcp("93.184.216.34", site.port, 5)
    assert caught.value.code == "address-refused"
    assert site.asked == []


def test_the_twin_is_led_inside_by_a_second_answer(
    site: Site, naive: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twin of case 109: it checks one answer and connects to the next."""
    site.put("/x", b"inside")
    names = Names({"rebind.test": ["203.0.112.1", "127.0.0.1"]})
    monkeypatch.setattr(socket, "getaddrinfo", names.getaddrinfo)
    assert naive.checked_fetch(f"http://rebind.test:{site.port}/x") == b"inside"


# -- redirects ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A public site, reached through a proxy on loopback that answers for it."""
    with Site() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        yield proxy


def test_a_redirect_to_a_private_machine_is_refused_even_by_its_name(
    outside: Site, site: Site, remote: Remote, invariants: ModuleType
) -> None:
    """Case 110: a public site leads inside; the host is allowed as a redirect, and its address still is not."""
    site.put("/secret", invariants.MARKER.encode())
    for target in (f"{site.url}/secret", f"http://localhost:{site.port}/secret", "http://10.0.0.1/secret"):
        outside.put(f"http://skills.invalid{NEW}/index.json", b"", 302, Location=target)
        hosts = ["127.0.0.1", "localhost", "10.0.0.1"]
        catalog = remote("http://skills.invalid", allow_private=False, allow_redirects_to=hosts)
        assert codes(catalog) == ["address-refused"]
    assert site.asked == []


@pytest.mark.parametrize(
    "target", ["https://other.invalid/", "//other.invalid/", "http://127.0.0.2/", "file:///etc/passwd", "/loop"]
)
def test_a_redirect_that_leads_elsewhere_or_nowhere_is_refused(site: Site, remote: Remote, target: str) -> None:
    """Case 110: the redirect leads to another origin, to another scheme or in a circle."""
    site.put(f"{NEW}/index.json", b"", 302, Location=target)
    site.put("/loop", b"", 302, Location="/loop")
    catalog = remote(site.url)
    assert codes(catalog) == ["redirect-refused"]
    assert len(site.asked) <= 6


def test_fifty_redirects_are_too_many(site: Site, remote: Remote) -> None:
    """Case 110: the sixth request is the last."""
    site.put(f"{NEW}/index.json", b"", 302, Location="/0")
    for step in range(50):
        site.put(f"/{step}", b"", 302, Location=f"/{step + 1}")
    assert codes(remote(site.url)) == ["redirect-refused"]
    assert len(site.asked) == 6


def test_what_was_meant_for_one_site_is_not_sent_to_another(site: Site, remote: Remote) -> None:
    """Case 110: an allowed redirect to another origin carries no credentials."""
    with Site() as other:
        other.index(other.entry("fine", skill_md("fine")))
        site.put(f"{NEW}/index.json", b"", 302, Location=f"{other.url}{NEW}/index.json")
        catalog = remote(
            site.url, headers={"Authorization": "Bearer secret"}, allow_redirects_to=[f"127.0.0.1:{other.port}"]
        )
        assert catalog.load("fine").instructions == "Do it."
    assert "authorization" in site.asked[0].headers
    assert not [asked for asked in other.asked if "authorization" in asked.headers]


def test_a_redirect_to_plain_http_is_refused(
    site: Site, remote: Remote, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 110: a secure site leads to a plain one, which is allowed as a redirect and not as plain http."""
    cert, context = certificate(tmp_path_factory.mktemp("tls"), "127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    site.index(site.entry("evil", EVIL))
    with Site(tls=context) as secure:
        secure.put(f"{NEW}/index.json", b"", 302, Location=f"{site.url}{NEW}/index.json")
        catalog = remote(secure.url, allow_http=False, allow_redirects_to=["127.0.0.1"])
        assert len(secure.asked) == 1
    assert codes(catalog) == ["plain-http"]
    assert site.asked == []


def test_the_twin_carries_credentials_to_wherever_it_is_led(site: Site, naive: ModuleType) -> None:
    """Twin of case 110: the other site learns the secret."""
    with Site() as other:
        other.put("/y", b"thanks")
        site.put("/x", b"", 302, Location=f"{other.url}/y")
        assert naive.fetch(f"{site.url}/x", {"Authorization": "Bearer secret"}) == b"thanks"
        assert other.asked[0].headers["authorization"] == "Bearer secret"


# -- bodies ------------------------------------------------------------------------------------------------------------


def never(connection: socket.socket, _: bytes) -> None:
    connection.recv(1)


def stalled(connection: socket.socket, _: bytes) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
    connection.recv(1)


def trickling(connection: socket.socket, _: bytes) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    pause = threading.Event()
    while not pause.wait(0.05):
        connection.sendall(b" ")


def truncated(connection: socket.socket, _: bytes) -> None:
    body = json.dumps({"skills": []}).encode()
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(body) + 1) + body)


@pytest.mark.parametrize(
    ("answer", "code"),
    [(never, "fetch-timeout"), (stalled, "fetch-timeout"), (trickling, "fetch-timeout"), (truncated, "fetch-failed")],
)  # fmt: skip
def test_a_body_that_does_not_come_whole_is_an_error_and_is_not_kept(
    remote: Remote, answer: Callable[[socket.socket, bytes], None], code: str
) -> None:
    """Case 112: a body that stalls, trickles, or is cut is an error, and no copy is kept."""
    with RawSite(answer) as raw:
        catalog = remote(raw.url, limits=QUICK)
    assert codes(catalog) == [code]
    assert remote.copies() == []


def test_the_waiting_times_are_those_of_the_promise() -> None:
    """Case 112: the limits are half a minute of silence and five minutes in all."""
    limits = prowess.Limits()
    assert (limits.fetch_idle_seconds, limits.fetch_total_seconds) == (30.0, 300.0)


def test_the_twin_takes_half_a_body_for_the_whole(naive: ModuleType) -> None:
    """Twin of case 112: the connection ends, and so does its reading."""
    with RawSite(truncated) as raw:
        assert naive.fetch(f"{raw.url}/x") == b'{"skills": []}'


def test_a_body_one_byte_over_the_limit_is_an_error(library: Library, site: Site, remote: Remote) -> None:
    """Case 113: an index, a pinned file and a listed one, at the limit and one byte beyond."""
    site.index(site.entry("evil", EVIL))
    index = len(site.replies[f"{NEW}/index.json"].body)  # type: ignore[union-attr]  # it is a plain reply
    at_limit = prowess.Limits(max_index_bytes=index, max_download_bytes=len(EVIL))
    assert remote(site.url, limits=at_limit).load("evil").instructions == "Announced."
    for limits in (prowess.Limits(max_index_bytes=index - 1), prowess.Limits(max_download_bytes=len(EVIL) - 1)):
        catalog = remote(site.url, limits=limits)
        error = codes(catalog) or [library.assert_refused(lambda: catalog.load("evil")).code]  # noqa: B023 - called at once
        assert error == ["download-too-large"]
    del site.replies[f"{NEW}/index.json"]
    site.old_index(site.old_entry("evil", {"SKILL.md": EVIL}))
    catalog = remote(site.url, limits=prowess.Limits(max_download_bytes=len(EVIL) - 1))
    library.assert_refused(lambda: catalog.load("evil"), "download-too-large")


def test_the_twin_cuts_what_is_too_long(site: Site, naive: ModuleType) -> None:
    """Twin of case 113: half a skill passes for a whole one."""
    site.put("/SKILL.md", EVIL)
    assert naive.fetch(f"{site.url}/SKILL.md", most=len(EVIL) - 5) == EVIL[:-5]

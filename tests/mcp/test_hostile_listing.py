"""Listings that lie, are too long, too slow or too heavy: one server's are never another's trouble."""

from __future__ import annotations

import json
import math
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import prowess
from prowess.sources.mcp.entry import parse_entry
from prowess.sources.mcp.quota import JsonMeter, ReceiveQuota
from tests.mcp_peers import Plan, entry_of, skill_md

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prowess.sources.mcp.source import McpSource

    Connect = Callable[..., McpSource]

FILES = {"SKILL.md": skill_md("pdf"), "a.md": b"a"}
FRESH = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
PATIENT = prowess.Limits(max_mcp_list_seconds=120.0, max_mcp_call_seconds=120.0)
HUGE = int("9" * 4_300)


def codes(catalog: prowess.Catalog) -> list[str]:
    return [issue.code for issue in catalog.issues]


def deep(levels: int) -> object:
    value: object = "x"
    for _ in range(levels):
        value = [value]
    return value


# -- lies --------------------------------------------------------------------------------------------------------------

ROWS = entry_of("pdf", FILES)["resources"]
LIES: dict[str, dict[str, Any]] = {
    "two sizes too large to print": {"resources": [{**row, "size": HUGE} for row in ROWS]},
    "a number too large to print": {"frontmatter": {"name": "pdf", "description": "Does it.", "x": HUGE}},
    "a value of many levels": {"frontmatter": {"name": "pdf", "description": "Does it.", "x": deep(150)}},
    "half a character in a value": {"frontmatter": {"name": "pdf", "description": "Does it.", "x": "\ud800"}},
    "half a character in a key": {"frontmatter": {"name": "pdf", "description": "Does it.", "\ud800": "x"}},
    "half a character in an address": {"uri": "skill://\ud800/pdf/SKILL.md"},
    "frontmatter that fits no file": {"frontmatter": {"name": "pdf", "description": "Does it.", "x": "y" * 70_000}},
    "too many values": {"frontmatter": {"name": "pdf", "description": "Does it.", "x": ["y"] * 4_000}},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_of_any_kind_makes_an_entry_that_is_not_used(lie: str) -> None:
    with pytest.raises(prowess.FetchError) as caught:
        parse_entry({**entry_of("pdf", FILES), **LIES[lie]}, prowess.Limits())
    assert caught.value.code in {"bad-entry", "too-many-bytes"}
    assert len(str(caught.value).encode()) < 1_000, "it can be printed, and is short"


def test_keys_that_are_not_text_are_refused() -> None:
    with pytest.raises(prowess.FetchError):
        parse_entry({1: 2}, prowess.Limits())
    with pytest.raises(prowess.FetchError):
        parse_entry({**entry_of("pdf", FILES), "frontmatter": {1: 2}}, prowess.Limits())


def test_sizes_that_cannot_be_printed_hide_no_other_source(plan: Plan, connect: Connect, tmp_path: Path) -> None:
    plan.skills.append({**entry_of("pdf", FILES), **LIES["two sizes too large to print"]})
    (tmp_path / "good").mkdir()
    good = Plan(tmp_path / "good")
    good.add("pdf")
    inline = prowess.Source.inline("ours", "Does.", "Do.")
    with prowess.Source.mcp("good", command=good.command()) as right:
        catalog = prowess.Catalog.from_sources([connect("bad"), right, inline])
    assert catalog.names == ("good:pdf", "ours")
    assert codes(catalog) == ["too-many-bytes"]


NUMBERS = st.just(HUGE) | st.sampled_from([-HUGE, 2**63, -1, 0, 1.5, True, math.nan, math.inf])
TEXTS = st.text(max_size=20) | st.sampled_from(
    ["", "dynamic", "skill://pdf/../x", "x" * 3_000, "\ud800", "\u202e", "\0"]
)
VALUES = st.recursive(
    st.none() | NUMBERS | TEXTS | st.just(150).map(deep),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def alike(value: object) -> st.SearchStrategy[Any]:
    """Values of the same kind, most of them wrong: these get furthest."""
    return NUMBERS if isinstance(value, int) else TEXTS if isinstance(value, str) else VALUES


def places(inside: Any) -> Iterator[tuple[Any, Any]]:
    """Every list and object, with each of its keys."""
    for key in list(inside) if isinstance(inside, dict) else range(len(inside)):
        yield inside, key
        if isinstance(inside[key], dict | list):
            yield from places(inside[key])


@st.composite
def changed(draw: st.DrawFn, what: dict[str, Any]) -> dict[str, Any]:
    """The same with up to three places somewhere inside replaced, removed or added."""
    whole: dict[str, Any] = json.loads(json.dumps(what))
    for _ in range(draw(st.integers(min_value=1, max_value=3))):
        around, key = draw(st.sampled_from(list(places(whole))))
        act = draw(st.sampled_from(["replace", "alike", "alike", "remove", "add"]))
        if act == "remove":
            del around[key]
        elif act == "replace":
            around[key] = draw(VALUES)
        elif act == "alike":
            around[key] = draw(alike(around[key]))
        elif isinstance(around, list):
            around.append(draw(VALUES))
        else:
            around[draw(st.text(max_size=6))] = draw(VALUES)
    return whole


@pytest.fixture(scope="module")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[Any]]]:
    """A file that a bad server lists, and three sources: that server, a good one, and a folder."""
    folder = tmp_path_factory.mktemp("trio")
    plans = {label: Plan(folder / label) for label in ("bad", "good")}
    for plan in plans.values():
        plan.folder.mkdir()
    listed = plans["bad"].folder / "result.json"
    plans["bad"].listing = {"file": str(listed)}
    plans["good"].add("pdf")
    (folder / "here" / "ours").mkdir(parents=True)
    (folder / "here" / "ours" / "SKILL.md").write_bytes(skill_md("ours"))
    soon = prowess.Limits(max_mcp_call_seconds=1.0)  # what is not JSON at all is not an answer
    bad = prowess.Source.mcp("bad", command=plans["bad"].command(), limits=soon)
    good = prowess.Source.mcp("good", command=plans["good"].command())
    with bad, good:
        yield listed, [bad, good, prowess.Source.directory(folder / "here")]


MORE = {"SKILL.md": skill_md("other"), **{f"references/{number}.md": b"x" for number in range(4)}}
RIGHT = {"skills": [entry_of("pdf", FILES), entry_of("other", MORE, {"metadata": {"a": "b"}})], **FRESH}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(result=changed(RIGHT))
def test_whatever_a_server_lists_hides_nothing_of_others(trio: tuple[Path, list[Any]], result: dict[str, Any]) -> None:
    listed, sources = trio
    listed.write_text(json.dumps(result), encoding="utf-8")
    catalog = prowess.Catalog.from_sources(sources)
    assert {"good:pdf", "ours"} <= set(catalog.names)
    assert all(name.startswith("bad:") for name in set(catalog.names) - {"good:pdf", "ours"})
    assert all(str(issue).encode() for issue in catalog.issues), "they can be printed"
    assert prowess.Toolset(prowess.Session(catalog)).prompt().encode()


def test_the_result_that_these_were_made_from_is_used(trio: tuple[Path, list[Any]]) -> None:
    listed, sources = trio
    listed.write_text(json.dumps(RIGHT), encoding="utf-8")
    catalog = prowess.Catalog.from_sources(sources)
    assert catalog.names == ("bad:other", "bad:pdf", "good:pdf", "ours")
    assert catalog.issues == ()


@pytest.mark.parametrize("cursor", [7, True, [], "x" * 5_000])
def test_a_cursor_that_is_none_ends_the_listing(trio: tuple[Path, list[Any]], cursor: object) -> None:
    listed, sources = trio
    listed.write_text(json.dumps({**RIGHT, "nextCursor": cursor}), encoding="utf-8")
    catalog = prowess.Catalog.from_sources(sources)
    assert len(catalog) == 4
    assert codes(catalog) == ["endless-listing"]


# -- weight ------------------------------------------------------------------------------------------------------------


def resident() -> int:
    rows = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith("VmRSS"))


needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to measure memory")


def grown(source: McpSource, most_issues: int = 1) -> tuple[prowess.Catalog, int]:
    """What is listed, and how many KiB are kept for it beyond the SDK's own."""
    source._connection.capabilities()  # noqa: SLF001 - connected, so that the SDK's own memory does not count
    before = resident()
    catalog = source.load()
    assert len(catalog.issues) <= most_issues
    return catalog, resident() - before


@needs_proc
def test_an_answer_without_an_end_costs_little_memory(plan: Plan, connect: Connect) -> None:
    plan.add("pdf")
    plan.listing = {"flood": 400}
    catalog, kept = grown(connect(limits=prowess.Limits(max_mcp_message_bytes=4 << 20)))
    assert codes(catalog) == ["download-too-large"]
    assert "max_mcp_message_bytes" in catalog.issues[0].message
    assert [method for method, _ in plan.asked()].count("skills/list") == 1, "it is not asked again"
    assert kept < 64 * 1024


@needs_proc
def test_pages_of_heavy_entries_are_cut_by_their_bytes(plan: Plan, connect: Connect) -> None:
    """Each entry is right, and takes a megabyte; without a bound there would be ten thousand of them."""
    plan.listing = {"fat": True}
    catalog, kept = grown(connect(limits=PATIENT))
    assert codes(catalog) == ["download-too-large"]
    assert "max_mcp_list_bytes" in catalog.issues[0].message
    assert 0 < len(catalog) <= 32, "what was listed before is used"
    assert [method for method, _ in plan.asked()].count("skills/list") <= 4
    assert kept < 256 * 1024


@needs_proc
def test_many_values_in_few_bytes_are_cut_before_they_are_parsed(plan: Plan, connect: Connect) -> None:
    plan.listing = {"hollow": 5_000_000}
    catalog, kept = grown(connect(limits=PATIENT))
    assert codes(catalog) == ["download-too-large"]
    assert kept < 64 * 1024


def test_a_single_page_of_too_many_is_cut(plan: Plan, connect: Connect) -> None:
    plan.listing = {"hollow": 5_000}
    catalog = connect(limits=prowess.Limits(max_mcp_skills=50)).load()
    assert codes(catalog) == ["bad-entry"] * 50 + ["endless-listing"]


def test_a_listing_may_be_as_heavy_as_it_is_allowed_to_be(plan: Plan, connect: Connect) -> None:
    """The same listing is used under one bound and refused under another, by the weight of its bytes."""
    plan.skills = [entry_of(f"s{number}", {"SKILL.md": skill_md("x")}) for number in range(200)]
    assert len(connect(limits=prowess.Limits(max_mcp_list_bytes=200_000)).load()) == 200
    refused = connect("again", limits=prowess.Limits(max_mcp_list_bytes=40_000)).load()
    assert (refused.names, codes(refused)) == ((), ["download-too-large"])


PIECES = [
    b'{"a": [1, 2], "b": "x,[{\\"", "c": "\\\\", "d": {}}',
    b'["unfinished\n[,',
    b'"a\\\n[,{',
    b"[[[[",
    b'"' * 9 + b",,",
]


@pytest.mark.parametrize("text", PIECES)
def test_weight_does_not_depend_on_how_the_bytes_come(text: bytes) -> None:
    whole = JsonMeter().measure(text)
    for size in range(1, len(text)):
        scale = JsonMeter()
        assert sum(scale.measure(text[at : at + size]) for at in range(0, len(text), size)) == whole


def test_a_string_of_escaped_quotes_that_never_ends_is_measured_quickly() -> None:
    began = time.process_time()
    assert JsonMeter().measure(b'["' + b'\\" ' * 40_000) == 120_002 + 32
    assert time.process_time() - began < 2


def test_every_value_weighs_and_text_does_not_count_as_values() -> None:
    assert JsonMeter().measure(PIECES[0]) == 48 + 32 * 7
    assert JsonMeter().measure(b'"never closed\n[') == 15 + 32


def test_what_one_question_did_not_use_is_not_left_for_the_next() -> None:
    allowance = ReceiveQuota(prowess.Limits(max_mcp_message_bytes=10, max_mcp_list_bytes=20))
    with allowance.reserve("max_mcp_list_bytes"):
        with allowance.reserve("max_mcp_message_bytes"):
            assert allowance.consume(8)
        assert allowance.consume(20)
        assert not allowance.consume(1)
        assert "max_mcp_list_bytes" in allowance.excess_reason
    with allowance.reserve("max_mcp_message_bytes"):
        assert allowance.consume(10), "a new question has an allowance of its own"
    assert allowance.consume(10)
    assert not allowance.consume(1), "and so has what nobody asked for"


# -- on HTTP -----------------------------------------------------------------------------------------------------------


class Flooding(BaseHTTPRequestHandler):
    """Answers its first request as it should, and the listing with whatever never ends."""

    protocol_version = "HTTP/1.1"
    kind, piece = "", b""
    sent = 0

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if message["method"] == "server/discover":
            capabilities: dict[str, Any] = {"resources": {}, "extensions": {"io.modelcontextprotocol/skills": {}}}
            result = {"supportedVersions": ["2026-07-28"], "capabilities": capabilities, **FRESH}
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            self.head("application/json", json.dumps(answer).encode())
            return
        self.head(self.kind, None)
        with suppress(OSError):
            while type(self).sent < 400 << 20:
                self.wfile.write(self.piece)
                type(self).sent += len(self.piece)
        self.close_connection = True

    def head(self, kind: str, body: bytes | None) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        if body is not None:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


NOTE = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 9_000}}
FLOODS = {
    "one answer": ("application/json", b"x" * 65_536),
    "one answer of many values": ("application/json", b"{}," * 20_000),
    "one message of a stream": ("text/event-stream", b"data: " + b"x" * 65_536 + b"\n"),
    "many messages of a stream": ("text/event-stream", f"event: message\ndata: {json.dumps(NOTE)}\n\n".encode() * 7),
    "remarks in a stream": ("text/event-stream", b": x\n" * 16_000),
}


@pytest.mark.sampled(0.25)  # slow
@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_on_http_is_cut_where_it_arrives(flood: str) -> None:
    kind, piece = FLOODS[flood]

    class Handler(Flooding):
        sent = 0

    Handler.kind, Handler.piece = kind, piece
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        with prowess.Source.mcp("web", url=f"http://127.0.0.1:{server.server_port}/mcp", limits=PATIENT) as source:
            assert codes(source.load()) == ["download-too-large"]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert Handler.sent < 64 << 20, "what was read, and what the buffers of the system hold"


# -- time --------------------------------------------------------------------------------------------------------------


def lists(plan: Plan) -> int:
    return [method for method, _ in plan.asked()].count("skills/list")


def test_a_page_that_never_comes_costs_only_what_is_left_of_the_time(plan: Plan, connect: Connect) -> None:
    """The first page is used; the second is waited for as long as the listing may take, not as long as a call may."""
    plan.add("pdf")
    plan.listing = {"endless": True, "hang_after": 1}
    catalog = connect(limits=prowess.Limits(max_mcp_list_seconds=5.0, max_mcp_call_seconds=600.0)).load()
    assert catalog.names == ("docs:pdf",)
    assert codes(catalog) == ["mcp-timeout"]
    assert lists(plan) == 2


def test_connecting_and_every_page_count_against_one_deadline(plan: Plan, connect: Connect) -> None:
    """After a second for connecting, less than two are left, in which no more than four pages of half a second fit."""
    plan.add("pdf")
    plan.start = {"slow": 1.0}
    plan.listing = {"endless": True, "slow": 0.5}
    catalog = connect(limits=prowess.Limits(max_mcp_list_seconds=3.0, max_mcp_call_seconds=0.9)).load()
    assert codes(catalog) == ["mcp-timeout"]
    assert lists(plan) <= 4


def test_connecting_again_counts_against_the_same_deadline(plan: Plan, connect: Connect) -> None:
    """It dies when it is asked for its skills, and would take too long to start again."""
    plan.start = {"slow": 2.0}
    plan.listing = {"die": True}
    catalog = connect(limits=prowess.Limits(max_mcp_list_seconds=3.9)).load()
    assert codes(catalog) == ["mcp-timeout"]
    assert lists(plan) <= 1


def test_a_listing_that_ends_early_is_an_error_for_whoever_wants_everything(plan: Plan, connect: Connect) -> None:
    plan.add("pdf")
    plan.listing = {"endless": True, "hang_after": 1}
    source = connect(limits=prowess.Limits(max_mcp_list_seconds=2.0), missing="error")
    with pytest.raises(prowess.FetchError) as caught:
        source.load()
    assert caught.value.code == "mcp-timeout"
    assert "max_mcp_list_seconds" in str(caught.value)

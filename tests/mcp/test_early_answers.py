"""The answers that a client gets while the SDK loads: the same as the SDK gives, and none where there is a doubt."""

from __future__ import annotations

import asyncio
import json
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from mcp_types.methods import validate_client_request
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

import prowess
from prowess.limits import DEFAULT_LIMITS
from prowess.mcp.answers import LIST_METHODS
from prowess.mcp.early.answers import MODERN_VERSION, EarlyAnswers, EarlyReply
from prowess.mcp.early.client import ReplayedInput, ReplayedOutput
from prowess.mcp.handlers import make_snapshot
from prowess.mcp.listing_text import write_search_guide
from prowess.mcp.manifests import ManifestCache
from prowess.mcp.options import PARTS, make_options
from prowess.mcp.served_skills import SkillLoader, build_from_catalog
from tests.clients.programs import CLIENTS
from tests.mcp_peers import put, skill_md, talk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prowess.mcp.handlers import ServerSnapshot
    from prowess.mcp.options import ServeOptions
    from prowess.mcp.served_skills import ServedSkills
    from tests.mcp_peers import Talk

HANDSHAKES = Path(__file__).parent / "handshakes"
"""What each client of ``make test-clients`` sends at its start, one message in a line."""
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
CLIENT = {"name": "tests", "title": "Tests", "version": "1"}
NEVER_EARLY = {"subscriptions/listen", "tools/call"}
SECONDS = 30
EMPTY = make_snapshot(
    build_from_catalog(prowess.Catalog([]), DEFAULT_LIMITS),
    ManifestCache(DEFAULT_LIMITS),
    make_options(),
    DEFAULT_LIMITS,
)


def request(number: int | str, method: str, version: str = "2025-06-18", **params: Any) -> dict[str, Any]:
    """A request as a client of a version sends it."""
    if version in MODERN_PROTOCOL_VERSIONS:
        names = {"protocolVersion": version, "clientInfo": CLIENT, "clientCapabilities": {}}
        params["_meta"] = {f"io.modelcontextprotocol/{name}": value for name, value in names.items()}
    return {"jsonrpc": "2.0", "id": number, "method": method, **({"params": params} if params else {})}


def opening(version: str, **changes: Any) -> dict[str, Any]:
    """The request that opens a connection."""
    if version in MODERN_PROTOCOL_VERSIONS:
        return request(0, "server/discover", version, **changes)
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT, **changes}
    return request(0, "initialize", version, **params)


def encode(message: object) -> bytes:
    return json.dumps(message).encode() + b"\n"


def make_early(library: Path, *, is_small: bool = True, **options: Any) -> EarlyAnswers:
    """The early answers for a library."""
    made = make_options(**options)

    def load() -> ServerSnapshot:
        served = SkillLoader((str(library),), DEFAULT_LIMITS).load()
        return make_snapshot(served, ManifestCache(DEFAULT_LIMITS), made, DEFAULT_LIMITS)

    return EarlyAnswers(made, load, lambda: is_small, prowess.__version__)


def ask_sdk(library: Path, lines: Iterable[bytes], **options: Any) -> list[dict[str, Any]]:
    """What the SDK sends when it gets these lines, and each only when the one before is answered."""
    server = prowess.mcp.Server(library, notice=None, **options)
    messages = [types.jsonrpc_message_adapter.validate_json(line, by_name=False) for line in lines]

    async def converse() -> list[dict[str, Any]]:
        to_server, input_stream = anyio.create_memory_object_stream[SessionMessage | Exception](1)
        output_stream, from_server = anyio.create_memory_object_stream[SessionMessage](100)
        sent: list[dict[str, Any]] = []
        async with asyncio.timeout(SECONDS), from_server, anyio.create_task_group() as group:
            group.start_soon(server.lowlevel.run, input_stream, output_stream)
            for message in messages:
                await to_server.send(SessionMessage(message))
                if isinstance(message, types.JSONRPCRequest):
                    answer = (await from_server.receive()).message
                    sent.append(json.loads(answer.model_dump_json(by_alias=True, exclude_unset=True)))
            await to_server.aclose()
        return sent

    return asyncio.run(converse())


def ask_early(early: EarlyAnswers, lines: Iterable[bytes]) -> list[dict[str, Any]]:
    """What is sent early for these lines."""
    replies = [early.reply(line) for line in lines]
    return [json.loads(reply.encode()) for reply in replies if reply is not None and reply.result is not None]


def every_request(version: str) -> list[bytes]:
    """An opening, and every request that may be answered early in that version."""
    methods = [name for name in LIST_METHODS if name != "skills/list" or version in MODERN_PROTOCOL_VERSIONS]
    methods += ["server/discover"] if version in MODERN_PROTOCOL_VERSIONS else ["ping"]
    asked = [request(f"r-{method}", method, version) for method in methods]
    ready = [] if version in MODERN_PROTOCOL_VERSIONS else [READY]
    return [encode(message) for message in (opening(version), *asked[:1], *ready, *asked[1:])]


def test_every_version_that_the_sdk_knows_is_answered_early(library: Path) -> None:
    for version in KNOWN_PROTOCOL_VERSIONS:
        assert len(ask_early(make_early(library), [encode(opening(version))])) == 1


@pytest.mark.parametrize("version", KNOWN_PROTOCOL_VERSIONS)
@pytest.mark.parametrize("without", [(), *((part,) for part in PARTS), ("extension", "prompts")])
def test_an_early_answer_is_the_one_of_the_sdk(library: Path, version: str, without: tuple[str, ...]) -> None:
    options = dict.fromkeys(without, False)
    lines = every_request(version)
    early = make_early(library, **options)
    answered = [line for line in lines if (reply := early.reply(line)) is not None and reply.result is not None]
    assert len(answered) >= len(lines) - 1 - len([m for m in LIST_METHODS.values() if m.part in without])
    notified = [line for line in lines if line in answered or b"notifications" in line]
    assert ask_early(make_early(library, **options), notified) == ask_sdk(library, notified, **options)


@pytest.mark.parametrize("name", sorted({client.configuration for client in CLIENTS.values()}))
def test_a_client_gets_the_answers_of_the_sdk_to_its_handshake(library: Path, name: str) -> None:
    rows = (HANDSHAKES / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
    lines = [row for row in rows if json.loads(row)["method"] not in NEVER_EARLY]
    early = make_early(library)
    replies = [early.reply(row) for row in rows]
    assert all(replies), "no line of a handshake ends the early answers"
    sent = [json.loads(reply.encode()) for reply in replies if reply and reply.result is not None]
    assert len(sent) == sum("id" in json.loads(line) for line in lines)
    assert sent == ask_sdk(library, lines)


def test_pages_are_those_of_the_sdk(tmp_path: Path) -> None:
    for number in range(DEFAULT_LIMITS.max_page_entries + 5):
        put(tmp_path, f"s{number:03}/SKILL.md", skill_md(f"s{number:03}"))
    begin = [encode(opening(MODERN_VERSION)), encode(request(1, "skills/list", MODERN_VERSION))]
    cursor = ask_early(make_early(tmp_path), begin)[1]["result"]["nextCursor"]
    lines = [*begin, *(encode(request(name, name, MODERN_VERSION, cursor=cursor)) for name in LIST_METHODS)]
    assert ask_early(make_early(tmp_path), lines) == ask_sdk(tmp_path, lines)


@pytest.mark.parametrize("version", KNOWN_PROTOCOL_VERSIONS)
def test_the_handshake_of_a_large_library_is_answered_as_the_sdk_does_before_the_load(
    library: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    may_load = threading.Event()
    load = SkillLoader.load

    def load_late(loader: SkillLoader) -> ServedSkills:
        may_load.wait(SECONDS)
        return load(loader)

    def write_guide(options: ServeOptions) -> str:
        may_load.set()  # the handshake has not waited
        return write_search_guide(options)

    lines = [encode(opening(version))]
    early = make_early(library, is_small=False)
    answers = ask_early(early, lines)
    assert early.snapshot is None
    monkeypatch.setattr(SkillLoader, "load", load_late)
    monkeypatch.setattr("prowess.mcp.server.write_search_guide", write_guide)
    assert answers == ask_sdk(library, lines, limits=prowess.Limits(max_awaited_entries=1))
    assert answers[0]["result"]["instructions"] == write_search_guide(make_options())


@pytest.mark.parametrize("version", KNOWN_PROTOCOL_VERSIONS)
def test_the_lists_of_a_large_library_are_those_of_the_sdk(library: Path, version: str) -> None:
    lines = every_request(version)
    assert ask_early(make_early(library, is_small=False), lines)[1:] == ask_sdk(library, lines)[1:]


def test_nothing_is_loaded_for_a_handshake_without_instructions(library: Path) -> None:
    early = make_early(library, instructions=False)
    assert len(ask_early(early, [encode(opening(MODERN_VERSION))])) == 1
    assert early.snapshot is None


# -- what is left to the SDK -------------------------------------------------------------------------------------------

LEGACY = encode(opening("2025-06-18")), encode(READY)
MODERN = (encode(opening(MODERN_VERSION)),)
TOOLS = request("tools", "tools/list")
CALL = request("call", "tools/call", name="load_skill", arguments={"name": "pdf"})
CANCELLED = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "tools"}}


def change(message: dict[str, Any], **fields: object) -> bytes:
    return encode({**message, **fields})


NOT_OPENING = {
    "a notification": encode(READY),
    "a list": encode(TOOLS),
    "a ping": encode(request(1, "ping")),
    "a call": encode(CALL),
    "an unknown version": encode(opening("2099-01-01")),
    "a version that is not text": encode(opening("2025-06-18", protocolVersion=20250618)),
    "no client": encode(request(0, "initialize", protocolVersion="2025-06-18", capabilities={})),
    "a client without a version": encode(opening("2025-06-18", clientInfo={"name": "x"})),
    "a client with icons": encode(opening("2025-06-18", clientInfo={**CLIENT, "icons": []})),
    "a capability that is not an object": encode(opening("2025-06-18", capabilities={"sampling": True})),
    "an unknown capability": encode(opening("2025-06-18", capabilities={"flying": {}})),
    "a further field": encode(opening("2025-06-18", more=1)),
    "a carriage return": LEGACY[0].rstrip() + b"\r\n",
    "half a surrogate pair": LEGACY[0].replace(b'"Tests"', b'"\\uD800"'),
    "bytes that are not UTF-8": LEGACY[0].replace(b'"Tests"', b'"\xff"'),
    "a repeated key": LEGACY[0].replace(b'"id": 0', b'"id": 0, "id": 1'),
    "no number": LEGACY[0].replace(b'"capabilities": {}', b'"capabilities": {"experimental": {"a": {"b": NaN}}}'),
    "a batch": b"[" + LEGACY[0].rstrip() + b"]\n",
    "deep JSON": b"[" * 30_000 + b"]" * 30_000 + b"\n",
    "a long line": LEGACY[0].rstrip() + b" " * 70_000 + b"\n",
    "an empty line": b"\n",
    "a null id": change(opening("2025-06-18"), id=None),
    "a fraction as the id": change(opening("2025-06-18"), id=1.5),
    "a boolean as the id": change(opening("2025-06-18"), id=True),
    "a huge id": change(opening("2025-06-18"), id=10**30),
    "another JSON-RPC": change(opening("2025-06-18"), jsonrpc="1.0"),
    "parameters in a list": change(opening("2025-06-18"), params=[]),
    "a modern request of an unknown client": change(request(1, "tools/list", MODERN_VERSION), params={"_meta": {}}),
}


@pytest.mark.parametrize("line", NOT_OPENING.values(), ids=NOT_OPENING)
def test_a_connection_that_does_not_open_plainly_is_left_to_the_sdk(library: Path, line: bytes) -> None:
    early = make_early(library)
    assert early.reply(line) is None
    assert early.snapshot is None, "nothing is loaded for it"


WAITING = {
    "a call": encode(CALL),
    "an unknown method": encode(request(1, "tools/fly")),
    "a method of another version": encode(request(1, "skills/list")),
    "a cursor that is not text": encode(request(1, "tools/list", cursor=1)),
    "a cursor that nobody made": encode(request(1, "prompts/list", cursor="#")),
    "a further parameter": encode(request(1, "tools/list", more=True)),
    "a modern request": encode(request(1, "tools/list", MODERN_VERSION)),
    "a token for progress that is none": encode(request(1, "tools/list", _meta={"progressToken": []})),
    "a trace": encode(request(1, "tools/list", _meta={"traceparent": "00"})),
}


@pytest.mark.parametrize("line", WAITING.values(), ids=WAITING)
def test_a_request_in_doubt_waits_for_the_sdk_and_the_next_ones_do_not(library: Path, line: bytes) -> None:
    early = make_early(library)
    assert all(early.reply(one) for one in LEGACY)
    reply = early.reply(line)
    assert reply is not None
    assert reply.result is None
    assert len(ask_early(early, [encode(TOOLS)])) == 1


ENDING = {
    "a second handshake": encode(request(1, "initialize", **opening("2025-06-18")["params"])),
    "an id that is in use": change(TOOLS, id=0),
    "the same id as a text": change(TOOLS, id="0"),
    "an answer": b'{"jsonrpc":"2.0","id":1,"result":{}}\n',
    "no JSON": b"{\n",
}


@pytest.mark.parametrize("line", ENDING.values(), ids=ENDING)
def test_a_line_that_is_not_plain_message_ends_the_early_answers(library: Path, line: bytes) -> None:
    early = make_early(library)
    assert all(early.reply(one) for one in LEGACY)
    assert early.reply(line) is None


def test_a_text_that_utf_8_cannot_hold_is_not_sent_early() -> None:
    with pytest.raises(UnicodeEncodeError):
        EarlyReply(1, {"text": "\ud800"}).encode()


def test_a_list_of_skills_that_are_gone_waits_for_the_sdk(library: Path) -> None:
    early = make_early(library)
    assert all(early.reply(one) for one in MODERN)
    (library / "billing/invoices/SKILL.md").unlink()
    reply = early.reply(encode(request(1, "skills/list", MODERN_VERSION)))
    assert reply == EarlyReply(1, None)


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("ab"), inner, max_size=2)),
    max_leaves=4,
)
capability_names = st.sampled_from(["roots", "sampling", "elicitation", "experimental", "extensions", "tasks", "new"])
setting_names = st.sampled_from(["listChanged", "form", "url", "context", "tools", "list", "requests"])
capabilities = st.dictionaries(capability_names, st.one_of(values, st.dictionaries(setting_names, values, max_size=2)))
client_fields = st.sampled_from(["name", "version", "title", "description", "websiteUrl", "icons"])
clients = st.dictionaries(client_fields, st.one_of(st.text(max_size=3), values), max_size=5).map(
    lambda info: {"name": "x", "version": "1", **info}
)


@settings(max_examples=50)
@given(clients, capabilities)
def test_a_handshake_that_is_answered_early_is_valid_for_the_sdk(info: object, offered: object) -> None:
    for version in KNOWN_PROTOCOL_VERSIONS[-2:]:  # the SDK checks all older ones as it checks the last of them
        message = opening(version)
        params = message["params"]
        if version in MODERN_PROTOCOL_VERSIONS:
            prefix = "io.modelcontextprotocol/"
            params["_meta"] |= {f"{prefix}clientInfo": info, f"{prefix}clientCapabilities": offered}
        else:
            params |= {"clientInfo": info, "capabilities": offered}
        early = EarlyAnswers(make_options(), lambda: EMPTY, lambda: True, "1")
        if early.reply(encode(message)) is not None:
            validate_client_request(message["method"], version, params)


# -- what the SDK gets -------------------------------------------------------------------------------------------------


def converse(
    library: Path,
    lines: list[bytes],
    answers: int,
    *,
    early: bool = True,
    is_small: bool = True,
    change_library: Callable[[], object] = int,
) -> list[dict[str, Any]]:
    """Everything that a client gets for its lines, until so many messages have come; the early ones are the first.

    ``change_library`` is called between the early answers and those of the SDK.
    """
    limits = prowess.Limits() if is_small else prowess.Limits(max_awaited_entries=1)
    server = prowess.mcp.Server(library, notice=None, limits=limits)
    answering = make_early(library, is_small=is_small)
    kept: list[tuple[str, EarlyReply | None]] = []
    is_over = not early
    for line in lines:
        reply = None if is_over else answering.reply(line)
        is_over = reply is None
        kept.append((line.decode(errors="replace"), reply))
    got = [json.loads(reply.encode()) for _, reply in kept if reply is not None and reply.result is not None]
    if answering.snapshot is not None:
        server.begin_with(answering.snapshot)
    change_library()

    async def run() -> None:
        to_server, input_stream = anyio.create_memory_object_stream[SessionMessage | Exception](1)
        output_stream, from_server = anyio.create_memory_object_stream[SessionMessage](100)
        output = ReplayedOutput(output_stream)
        replayed = ReplayedInput(input_stream, kept, output, lambda: server.renew_early_answers(answering.snapshot))
        async with asyncio.timeout(SECONDS), to_server, from_server, anyio.create_task_group() as group:
            group.start_soon(server.lowlevel.run, replayed, output)
            while len(got) < answers:
                message = (await from_server.receive()).message
                got.append(json.loads(message.model_dump_json(by_alias=True, exclude_unset=True)))
            await to_server.aclose()
            got.extend([{"more": str(item)} async for item in from_server])

    asyncio.run(run())
    return got


CONVERSATIONS: dict[str, tuple[list[bytes], int]] = {
    "a handshake": ([*LEGACY], 1),
    "a list before the client is ready": ([LEGACY[0], encode(TOOLS), LEGACY[1]], 2),
    "a call behind a list": ([*LEGACY, encode(TOOLS), encode(CALL)], 3),
    "a call before a list": ([*LEGACY, encode(CALL), encode(TOOLS)], 3),
    "a second handshake": ([*LEGACY, ENDING["a second handshake"], encode(TOOLS)], 3),
    "no JSON in between": ([*LEGACY, b"{\n", encode(TOOLS)], 2),
    "a method of another version": ([*LEGACY, encode(request(5, "skills/list")), encode(TOOLS)], 3),
    "a modern request after a handshake": ([*LEGACY, encode(request(5, "tools/list", MODERN_VERSION))], 2),
    "a handshake after a modern request": ([*MODERN, change(opening("2025-06-18"), id=1)], 2),
    "a call of the modern version": ([*MODERN, encode(request(5, "tools/call", MODERN_VERSION, name="none"))], 2),
}


@pytest.mark.parametrize(("lines", "answers"), CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_a_client_gets_what_it_would_have_got_without_early_answers(
    library: Path, lines: list[bytes], answers: int
) -> None:
    expected = converse(library, lines, answers, early=False)
    got = converse(library, lines, answers)
    assert sorted(got, key=json.dumps) == sorted(expected, key=json.dumps)


def test_a_request_that_is_cancelled_after_its_early_answer_is_answered_once(library: Path) -> None:
    lines = [*LEGACY, encode(TOOLS), encode(CANCELLED), encode(CALL)]
    assert [message["id"] for message in converse(library, lines, 3)] == [0, "tools", "call"]


LISTS_CHANGED = {f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")}


@pytest.mark.parametrize("is_ready", [True, False])
def test_a_client_is_told_when_skills_change_while_the_sdk_loads(library: Path, *, is_ready: bool) -> None:
    """Also when it gets ready only after it has asked for its lists."""
    lines = [LEGACY[0], LEGACY[1], encode(TOOLS)] if is_ready else [LEGACY[0], encode(TOOLS), LEGACY[1]]
    change_library = partial(put, library, "third/SKILL.md", skill_md("third"))
    got = converse(library, lines, 5, change_library=change_library)
    assert [message.get("id") for message in got[:2]] == [0, "tools"]
    assert {message.get("method") for message in got[2:]} == LISTS_CHANGED


def test_a_client_is_told_when_a_file_whose_digest_it_has_changes_while_the_sdk_loads(library: Path) -> None:
    listen = encode(request("listen", "subscriptions/listen", MODERN_VERSION, notifications={"toolsListChanged": True}))
    lines = [*MODERN, encode(request("skills", "skills/list", MODERN_VERSION)), listen]
    put(library, "pdf/references/a.md", "before\n")
    change_library = partial(put, library, "pdf/references/a.md", "after\n")
    got = converse(library, lines, 4, change_library=change_library)
    assert "notifications/tools/list_changed" in {message.get("method") for message in got}


@pytest.mark.parametrize("name", ["tools/call", "skills/get"])
def test_a_skill_that_came_while_the_sdk_loaded_is_found(library: Path, name: str) -> None:
    early = make_early(library)
    assert ask_early(early, [*MODERN])
    assert early.snapshot is not None
    put(library, "third/SKILL.md", skill_md("third"))
    server = prowess.mcp.Server(library, notice=None)
    server.begin_with(early.snapshot)
    arguments = {"name": "load_skill", "arguments": {"name": "third"}} if name == "tools/call" else {}

    async def ask(connection: Talk) -> dict[str, Any]:
        return await connection.ask(name, **arguments or {"uri": "skill://third/SKILL.md"})

    assert not talk(server, ask).get("isError")


@pytest.mark.parametrize("lines", [[*LEGACY], [*LEGACY, encode(TOOLS)]], ids=["only a handshake", "a list"])
def test_a_client_of_a_large_library_is_told_once_to_ask_again(library: Path, lines: list[bytes]) -> None:
    answers = len(lines) - 1
    got = converse(library, lines, answers + len(LISTS_CHANGED), is_small=False)
    assert len(got) == answers + len(LISTS_CHANGED)
    assert {message.get("method") for message in got[answers:]} == LISTS_CHANGED


def test_a_client_is_told_when_a_skill_gets_its_first_file_while_the_sdk_loads(tmp_path: Path) -> None:
    """The file makes another tool useful, and no SKILL.md changes."""
    for number in range(700):  # so many that the second load ends after the SDK has answered
        put(tmp_path, f"pdf{number}/SKILL.md", skill_md(f"pdf{number}"))
    change_library = partial(put, tmp_path, "pdf1/references/a.md", "text\n")
    got = converse(tmp_path, [*LEGACY, encode(TOOLS)], 5, change_library=change_library)
    assert {message.get("method") for message in got[2:]} == LISTS_CHANGED


def test_a_modern_client_that_listens_is_told_when_skills_change_while_the_sdk_loads(library: Path) -> None:
    wanted = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
    listen = encode(request("listen", "subscriptions/listen", MODERN_VERSION, notifications=wanted))
    lines = [*MODERN, listen, encode(request("tools", "tools/list", MODERN_VERSION))]
    change_library = partial(put, library, "third/SKILL.md", skill_md("third"))
    got = converse(library, lines, 6, change_library=change_library)
    assert {message.get("method") for message in got} >= LISTS_CHANGED


def test_skills_that_came_while_the_sdk_loaded_are_told_in_the_answer_of_a_tool(library: Path) -> None:
    early = make_early(library)
    assert all(early.reply(one) for one in LEGACY)
    put(library, "third/SKILL.md", skill_md("third"))
    server = prowess.mcp.Server(library, notice=None)
    server.tell_arrivals()

    async def call(connection: Talk) -> dict[str, Any]:
        server.renew_early_answers(early.snapshot)
        return await connection.ask("tools/call", name="load_skill", arguments={"name": "pdf"})

    assert "- third: Does it." in talk(server, call)["content"][-1]["text"]

"""The answers that a client gets while the SDK loads: the same as the SDK gives, and none where there is a doubt."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from mcp_types.methods import validate_client_request
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, KNOWN_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

import prowess
from prowess.limits import DEFAULT_LIMITS
from prowess.mcp.early_answers import MODERN_VERSION, EarlyAnswers
from prowess.mcp.lists import LIST_METHODS
from prowess.mcp.manifests import ManifestCache
from prowess.mcp.options import PARTS, make_options
from prowess.mcp.replay import ReplayedInput, ReplayedOutput
from prowess.mcp.skill_loader import SkillLoader
from prowess.mcp.snapshot import make_snapshot
from tests.clients.programs import CLIENTS
from tests.mcp_peers import put, skill_md

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.mcp.early_answers import EarlyReply
    from prowess.mcp.snapshot import ServerSnapshot

HANDSHAKES = Path(__file__).parent / "handshakes"
"""What each client of ``make test-clients`` sends at its start, one message in a line."""
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
CLIENT = {"name": "tests", "title": "Tests", "version": "1"}
NEVER_EARLY = {"subscriptions/listen", "tools/call"}
SECONDS = 30


def request(number: int | str, method: str, version: str = "2025-06-18", **params: Any) -> dict[str, Any]:  # noqa: ANN401
    """A request as a client of a version sends it."""
    if version in MODERN_PROTOCOL_VERSIONS:
        names = {"protocolVersion": version, "clientInfo": CLIENT, "clientCapabilities": {}}
        params["_meta"] = {f"io.modelcontextprotocol/{name}": value for name, value in names.items()}
    return {"jsonrpc": "2.0", "id": number, "method": method, **({"params": params} if params else {})}


def opening(version: str, **changes: Any) -> dict[str, Any]:  # noqa: ANN401
    """The request that opens a connection."""
    if version in MODERN_PROTOCOL_VERSIONS:
        return request(0, "server/discover", version, **changes)
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT, **changes}
    return request(0, "initialize", version, **params)


def encode(message: object) -> bytes:
    return json.dumps(message).encode() + b"\n"


def make_early(library: Path, **options: Any) -> EarlyAnswers:  # noqa: ANN401
    """The early answers for a library."""
    made = make_options(**options)

    def load() -> ServerSnapshot:
        served = SkillLoader((str(library),), DEFAULT_LIMITS).load()
        return make_snapshot(served, ManifestCache(DEFAULT_LIMITS), made, DEFAULT_LIMITS)

    return EarlyAnswers(made, load, prowess.__version__)


def ask_sdk(library: Path, lines: Iterable[bytes], **options: Any) -> list[dict[str, Any]]:  # noqa: ANN401
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
    first = ask_early(make_early(tmp_path), [encode(opening(MODERN_VERSION)), encode(request(1, "skills/list", MODERN_VERSION))])
    cursor = first[1]["result"]["nextCursor"]
    lines = [encode(opening(MODERN_VERSION))]
    lines += [encode(request(f"{m}", m, MODERN_VERSION, cursor=cursor)) for m in LIST_METHODS]
    assert ask_early(make_early(tmp_path), lines) == ask_sdk(tmp_path, lines)

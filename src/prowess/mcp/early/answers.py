"""Answers to the first requests of a client, made before the MCP SDK is loaded.

Loading the SDK takes about three quarters of the time to a first answer, and a client that starts a server waits for
it. A handshake, a ping and the lists need nothing of the SDK, so this module answers them meanwhile.

It answers only requests that leave no doubt: well-formed, of a known version, with nothing but the usual fields. Any
other request waits for the SDK, and so does everything behind a line that is not a plain message. The SDK gets every
line in the end, also those that were answered here, so that it is in the same state as if it had answered alone
(``mcp/early/client.py`` drops its second answers, and compares them). ``tests/mcp/test_early_answers.py`` compares what
both say for every version of the protocol and for every client of ``make test-clients``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.errors import SkillError
from prowess.mcp.answers import EXTENSION_METHODS, EXTENSION_SETTINGS, LIST_METHODS, NO_CACHE
from prowess.mcp.listing_text import write_search_guide
from prowess.sources.mcp import EXTENSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from prowess.mcp.handlers import ServerSnapshot
    from prowess.mcp.options import ServeOptions

HANDSHAKE_VERSIONS = frozenset(("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"))
"""The versions of the protocol whose connections begin with ``initialize``."""
MODERN_VERSION = "2026-07-28"
"""The version of the protocol whose requests name the version and the client."""
_PREFIX = "io.modelcontextprotocol/"
_LOG_LEVELS = frozenset(("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"))
_MODERN_FIELDS = frozenset(("resultType", *NO_CACHE))
"""The fields of a page that the older versions do not have."""
_MAX_LINE_BYTES = 65_536  # a handshake is short: a longer line is read and checked once, by the SDK
_MAX_NUMBER = 2**53  # every reader of JSON agrees about smaller numbers


class EarlyReply(NamedTuple):
    """What is done about one line: a result is sent, or the line waits for the SDK (``result`` is ``None``)."""

    request_id: int | str | None
    """The id of a request, ``None`` for a notification."""
    result: dict[str, Any] | None

    def encode(self) -> bytes:
        """Return the line to send; raises ``UnicodeEncodeError`` for a string that UTF-8 cannot encode."""
        message = {"jsonrpc": "2.0", "id": self.request_id, "result": self.result}
        return (json.dumps(message, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


class EarlyAnswers:
    """Answers the lines of one client from one snapshot, in the order in which they come.

    ``load`` makes the snapshot when the first answer needs it. ``is_small`` returns whether a handshake waits for that,
    as in ``LiveCatalog.get_handshake_snapshot``.
    """

    def __init__(
        self,
        options: ServeOptions,
        load: Callable[[], ServerSnapshot],
        is_small: Callable[[], bool],
        server_version: str,
    ) -> None:
        self._options = options
        self._load = load
        self._is_small = is_small
        self._server_info = {"name": "prowess", "version": server_version}
        self._version: str | None = None
        self._known_ids: set[str] = set()
        self.snapshot: ServerSnapshot | None = None
        """What the lists were answered from, ``None`` before it is needed."""

    def reply(self, line: bytes) -> EarlyReply | None:
        """Return the reply to a line; ``None`` when this line and all later ones are for the SDK."""
        message = _parse_plain_message(line)
        if message is None:
            return None
        request_id, method, params = message.get("id"), message["method"], message.get("params", {})
        if self._version is None:
            # The first request decides which protocol the connection speaks.
            version = params.get("protocolVersion") if method == "initialize" else MODERN_VERSION
            if request_id is None or not _is_plain_opening(method, version, params):
                return None
            self._version = version
        elif method == "initialize" or str(request_id) in self._known_ids:
            return None
        if request_id is None:
            return EarlyReply(None, None)
        self._known_ids.add(str(request_id))
        return EarlyReply(request_id, self._make_result(method, params))

    def _get_snapshot(self) -> ServerSnapshot:
        if self.snapshot is None:
            self.snapshot = self._load()
        return self.snapshot

    def _make_result(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        """Return the result of a request, or ``None`` for a request that waits for the SDK."""
        if method == "initialize":
            return self._initialize()
        is_modern = self._version == MODERN_VERSION
        has_plain_meta = _is_modern_meta if is_modern else _is_older_meta
        if not has_plain_meta(params.get("_meta", {})) or not params.keys() <= {"_meta", "cursor"}:
            return None
        if method in LIST_METHODS:
            result = self._list_page(method, params.get("cursor"))
        else:
            simple = {"server/discover": self._discover} if is_modern else {"ping": dict}
            result = simple[method]() if method in simple and "cursor" not in params else None
        # The modern version names the server in each answer.
        return {**result, "_meta": {f"{_PREFIX}serverInfo": self._server_info}} if result and is_modern else result

    def _initialize(self) -> dict[str, Any]:
        return {
            "protocolVersion": self._version,
            "capabilities": self._list_capabilities(),
            "serverInfo": self._server_info,
            **self._give_instructions(),
        }

    def _discover(self) -> dict[str, Any]:
        return {
            "supportedVersions": [MODERN_VERSION],
            "capabilities": self._list_capabilities(),
            **self._give_instructions(),
            "resultType": "complete",
            **NO_CACHE,
        }

    def _give_instructions(self) -> dict[str, str]:
        if not self._options.instructions:
            return {}
        has_listing = self.snapshot is not None or self._is_small()
        text = self._get_snapshot().tools.instructions if has_listing else write_search_guide(self._options)
        return {"instructions": text} if text else {}

    def _list_capabilities(self) -> dict[str, Any]:
        options, is_modern = self._options, self._version == MODERN_VERSION
        offers = {
            "completions": (options.extension or options.prompts, {}),
            "prompts": (options.prompts, {"listChanged": True}),
            "resources": (options.extension, {"listChanged": True, "subscribe": is_modern}),
            "tools": (options.tools, {"listChanged": True}),
            "extensions": (options.extension and is_modern, {EXTENSION: EXTENSION_SETTINGS}),
        }
        return {name: settings for name, (is_offered, settings) in offers.items() if is_offered}

    def _list_page(self, method: str, cursor: object) -> dict[str, Any] | None:
        part, list_page = LIST_METHODS[method]
        is_modern = self._version == MODERN_VERSION
        is_offered = getattr(self._options, part) and (is_modern or method not in EXTENSION_METHODS)
        if not is_offered or not (cursor is None or isinstance(cursor, str)):
            return None
        try:
            answer = list_page(self._get_snapshot(), cursor)
        except SkillError:  # the SDK says what is wrong
            return None
        if answer.state != "current":
            return None
        return {key: value for key, value in answer.result.items() if is_modern or key not in _MODERN_FIELDS}


def _parse_plain_message(line: bytes) -> dict[str, Any] | None:
    """Return a request or a notification that every reader of JSON understands in one way, or ``None``."""
    # A carriage return ends a line for the SDK, and half of a pair of surrogates is an error for it.
    if len(line) > _MAX_LINE_BYTES or b"\r" in line or b"\\ud" in line.lower():
        return None
    try:
        message = json.loads(line.decode(), object_pairs_hook=_make_object, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or not {"jsonrpc", "method"} <= message.keys() <= {
        "jsonrpc",
        "id",
        "method",
        "params",
    }:
        return None
    is_plain = (
        message["jsonrpc"] == "2.0"
        and isinstance(message["method"], str)
        and isinstance(message.get("params", {}), dict)
        and _is_plain_id(message.get("id", ""))
    )
    return message if is_plain else None


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; raises ``ValueError`` for a repeated key, since readers take the first or last."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key is repeated")
    return made


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _is_plain_id(value: object) -> bool:
    return isinstance(value, str) or (type(value) is int and abs(value) < _MAX_NUMBER)


def _is_plain_opening(method: str, version: object, params: dict[str, Any]) -> bool:
    """Return whether a request opens a connection that can be answered here."""
    if method == "initialize":
        return version in HANDSHAKE_VERSIONS and _is_plain_handshake(params)
    return _is_modern_meta(params.get("_meta"))


def _is_plain_handshake(params: dict[str, Any]) -> bool:
    return params.keys() == {"protocolVersion", "capabilities", "clientInfo"} and _is_plain_client(
        params["clientInfo"], params["capabilities"]
    )


def _is_older_meta(meta: object) -> bool:
    """Return whether ``_meta`` has at most a token for reports of progress, which no answer here makes."""
    return isinstance(meta, dict) and meta.keys() <= {"progressToken"} and all(map(_is_plain_id, meta.values()))


def _is_modern_meta(meta: object) -> bool:
    """Return whether ``_meta`` names the modern version and a plain client; a level for log messages may be there."""
    if not isinstance(meta, dict):
        return False
    rest = {key.removeprefix(_PREFIX): value for key, value in meta.items() if key.startswith(_PREFIX)}
    info, capabilities = rest.pop("clientInfo", None), rest.pop("clientCapabilities", None)
    return (
        rest.pop("protocolVersion", None) == MODERN_VERSION
        and rest.pop("logLevel", "info") in _LOG_LEVELS
        and not rest
        and _is_plain_client(info, capabilities)
        and _is_older_meta({key: value for key, value in meta.items() if not key.startswith(_PREFIX)})
    )


def _is_plain_client(info: object, capabilities: object) -> bool:
    """Return whether a client describes itself with the usual fields only."""
    return (
        isinstance(info, dict)
        and {"name", "version"} <= info.keys() <= {"name", "version", "title", "description", "websiteUrl"}
        and all(isinstance(value, str) for value in info.values())
        and isinstance(capabilities, dict)
        and all(_is_plain_capability(name, settings) for name, settings in capabilities.items())
    )


def _is_plain_capability(name: str, settings: object) -> bool:
    if not isinstance(settings, dict):
        return False
    if name == "roots":
        return settings.keys() <= {"listChanged"} and all(type(value) is bool for value in settings.values())
    is_known = name in {"elicitation", "experimental", "extensions", "sampling"}
    return is_known and all(isinstance(value, dict) for value in settings.values())

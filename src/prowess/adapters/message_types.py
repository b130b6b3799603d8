"""The types of a run over a provider's own client: tools of the host and their arguments, events, replies, results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from prowess.tools.definitions import ToolDefinition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from prowess.conversation.acting.trust_request import TrustRequest
    from prowess.tools.definitions import ToolResult


Message = dict[str, Any]
"""A message, or an item, in the shape of the provider."""

StopReason = Literal["done", "pending", "max_turns", "length", "refusal"]
"""Why a run ended: the model was done; a person has to decide; it had its turns; the answer met the limit of output
tokens; the provider or the model refused."""

ReplyEnding = Literal["done", "again", "length", "refusal"]
"""Why one reply ended; ``again``: the provider paused, and goes on when it is asked again."""


@dataclass(frozen=True, slots=True)
class HostTool:
    """A tool of the host: what the model knows of it, and the function that answers a call.

    The function gets the arguments by name. It returns text, a ``ToolResult``, or anything that JSON can hold. It may
    be asynchronous. What it raises is logged, and the model learns only that the call failed.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    """The parameters as JSON Schema, an object."""
    function: Callable[..., Any]
    parallel: bool = True
    """Whether asynchronous runs may make a call of it beside other calls of the same reply."""

    @property
    def definition(self) -> ToolDefinition:
        """The tool as skill tools are defined."""
        return ToolDefinition(self.name, self.description, self.parameters, self.parallel)


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A call that a model made; arguments that are not a JSON object are kept as the model wrote them."""

    id: str
    name: str
    arguments: Mapping[str, Any] | str


@dataclass(frozen=True, slots=True)
class TextEvent:
    """A piece of the model's text, as it came."""

    text: str


@dataclass(frozen=True, slots=True)
class CallEvent:
    """A call of the model that is about to be made."""

    call: ModelCall


@dataclass(frozen=True, slots=True)
class ResultEvent:
    """The result of a call; with ``result.pending`` the call waits for a person, and has done nothing."""

    call: ModelCall
    result: ToolResult


@dataclass(frozen=True, slots=True)
class ChildEvent:
    """What happened in a child agent, which carries out a skill; it is not part of the messages of the run."""

    skill: str
    event: TextEvent | CallEvent | ResultEvent


class Usage(NamedTuple):
    """The tokens of one request to a model; ``cached``: the part of the input that came from the provider's cache."""

    input: int
    output: int
    cached: int = 0
    skill: str = ""
    """The skill whose child agent made the request; ``""``: the agent itself did."""


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call that waits for a person; ``request`` says what it would run, and nothing of it has run."""

    id: str
    """The id of the question, for ``decisions``: another one when the call would run something else."""
    name: str
    arguments: Mapping[str, Any] | str
    request: TrustRequest


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run gives: the last text of the model, and what is needed to go on."""

    text: str
    messages: list[Any]  # not list[Message]: programs have a type of the client for them
    """The messages, in the shape of the provider, without the system text: pass them on with the next message."""
    stop: StopReason
    pending: tuple[PendingCall, ...] = ()
    """The calls that wait for a person: run again with these messages and ``decisions={call.id: True}``."""
    usage: tuple[Usage, ...] = ()
    """The tokens of each request, those of child agents included."""
    saved: str = field(default="", repr=False)
    """The conversation as text: pass it as ``saved`` to go on in another process, or without a key."""


@dataclass(frozen=True, slots=True)
class PartialRun:
    """What a run has so far: an event after each turn, and ``error.partial`` of whatever ends a run.

    To go on, run again with these messages and this save, without the decisions that were passed. A call that had
    begun when the run ended has a result that says so, so that it is not made a second time.
    """

    text: str
    """The last text of the model."""
    messages: list[Any]
    usage: tuple[Usage, ...] = ()
    saved: str = field(default="", repr=False)


RunEvent = TextEvent | CallEvent | ResultEvent | ChildEvent | PartialRun | RunResult


@dataclass(frozen=True, slots=True)
class ModelReply:
    """One reply of a model, read from the shape of its provider."""

    messages: list[Message]
    """What joins the messages."""
    text: str
    calls: tuple[ModelCall, ...]
    usage: Usage
    ending: ReplyEnding


class ReplyReader(Protocol):
    """Puts the events of a stream together."""

    def read_event(self, event: Message) -> str:
        """Take the next event; return the text that it adds, or ``""``."""

    def finish_reply(self) -> Message | None:
        """Return the whole response, in the shape that a request without a stream gets; ``None``: it is not whole."""


class MessageFormat(Protocol):
    """One API of a provider: how requests are written, how replies are read, and where results go."""

    def send_request(self, client: Any, request: Message) -> Any:
        """Return what the client answers: a response, a stream, or an awaitable of one."""

    def make_request(
        self, messages: list[Message], system: str, prompt: str, tools: Sequence[ToolDefinition], *, is_stream: bool
    ) -> Message:
        """Return the arguments of a request, besides the model and the caller's own."""

    def read_reply(self, response: Message) -> ModelReply:
        """Return a whole response in the terms of the loop; raises ``FetchError`` for one that says it failed."""

    def open_reader(self) -> ReplyReader:
        """Return what puts a stream together."""

    def find_open_calls(self, messages: list[Message]) -> tuple[ModelCall, ...]:
        """Return the calls of the last reply that have no result yet."""

    def add_results(self, messages: list[Message], results: Sequence[tuple[ModelCall, ToolResult]]) -> list[Message]:
        """Return the messages with the results of calls of the last reply, where the API wants them."""


def to_plain(value: Any) -> Any:
    """Return a copy of a value as plain JSON types: the objects of the SDKs become dictionaries."""
    if hasattr(value, "model_dump"):
        # Only what the provider sent, and without warnings: models send what their schemas do not have.
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)
    if isinstance(value, dict):
        return {key: to_plain(part) for key, part in value.items()}
    return [to_plain(part) for part in value] if isinstance(value, (list, tuple)) else value


def parse_object(text: str) -> Mapping[str, Any] | str:
    """Return the object in a JSON string; ``{}`` for an empty one, and any other string as it is."""
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict) else text


def find_last_reply(messages: list[Message]) -> int | None:
    """Return the place of the model's last message; ``None`` when it has said nothing yet."""
    places = reversed(range(len(messages)))
    return next((place for place in places if messages[place].get("role") == "assistant"), None)


def find_text(content: str | Iterable[Any] | None) -> str:
    """Return the text of a message's content, its parts on lines of their own."""
    if isinstance(content, str):
        return content
    parts = [part.get("text") for part in content or () if isinstance(part, Mapping)]
    return "\n".join(part for part in parts if isinstance(part, str))


def find_query(messages: Sequence[Any]) -> str:
    """Return the text of the user's last message that has text; ``""`` when there is none.

    Results of calls, and images of tools, may be in messages of the user too, without text.
    """
    said = (message for message in reversed(messages) if isinstance(message, Mapping))
    strings = (find_text(message.get("content")) for message in said if message.get("role") == "user")
    return next(filter(None, strings), "")


_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def find_mistakes(value: Any, schema: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """Yield what is wrong with a value, by the keywords that tools of models use; others are not looked at."""
    named = place or "the arguments"
    kinds = schema.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    if kinds and not any(_is_kind(value, kind) for kind in kinds):
        yield f"{named} must be of type {' or '.join(kinds)}"
        return
    choices = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if choices is not None and value not in choices:
        yield f"{named} must be one of {', '.join(map(repr, choices))}"
    ways = schema.get("anyOf") or ()
    if ways and all(any(find_mistakes(value, way, place)) for way in ways):
        yield next(find_mistakes(value, ways[0], place))
    if isinstance(value, dict):
        yield from _find_mistakes_inside(value, schema, place)
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        for index, item in enumerate(value):
            yield from find_mistakes(item, schema["items"], f"{place}[{index}]")


def _find_mistakes_inside(value: dict[str, Any], schema: Mapping[str, Any], place: str) -> Iterator[str]:
    properties = schema.get("properties") or {}
    before = f"{place}." if place else ""
    for name in schema.get("required") or ():
        if name not in value:
            yield f"{before}{name} is required"
    for name, part in value.items():
        if isinstance(properties.get(name), Mapping):
            yield from find_mistakes(part, properties[name], f"{before}{name}")
        elif schema.get("additionalProperties") is False:
            yield f"{before}{name} is not a parameter; the parameters are {', '.join(properties) or 'none'}"


def _is_kind(value: Any, kind: str) -> bool:
    if isinstance(value, bool):  # to Python it is a number
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _KINDS.get(kind, (object,)))


def explain_mistakes(value: Any, schema: Mapping[str, Any]) -> str:
    """Return what is wrong with the arguments of a call, all of it; ``""`` for nothing."""
    return "; ".join(find_mistakes(value, schema))


def name_provider_tool(tool: Mapping[str, Any]) -> str:
    """Return the name by which a skill allows a tool that the provider runs: its name, or its type."""
    inner = tool.get("function")
    named = inner.get("name") if isinstance(inner, Mapping) else None
    return str(named or tool.get("name") or tool.get("type") or "")


def _is_provider_tool(tool: object) -> bool:
    """Return whether a tool is a dictionary in the shape of the provider."""
    return isinstance(tool, Mapping) and bool(name_provider_tool(tool))

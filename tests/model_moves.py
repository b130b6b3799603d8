"""What a scripted model can do: answer, call tools, and fail in the ways in which providers fail."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Ending = Literal["end", "length", "refusal"]
"""Why an answer ends: the model is done, it ran out of tokens, or the provider refused."""


@dataclass(frozen=True)
class ToolCall:
    """A move of the model: it calls a tool, by the name that the client gave it.

    Arguments that are text are sent as they are, so that they can be malformed.
    """

    tool: str
    arguments: dict[str, Any] | str


@dataclass(frozen=True)
class Text:
    """A move of the model: it answers with text, which ends its turn."""

    text: str
    ending: Ending = "end"


@dataclass(frozen=True)
class Calls:
    """A move of the model: it calls several tools at once, and may say something before."""

    calls: tuple[ToolCall, ...]
    text: str = ""
    ending: Ending = "end"


Move = ToolCall | Text | Calls


@dataclass(frozen=True)
class Failure:
    """A fault: the request is answered with an error status, such as 429, 500 or 529.

    ``retry_after``: the seconds after which a client may ask again, in the headers that the SDKs read.
    """

    status: int
    retry_after: float | None = None


@dataclass(frozen=True)
class Cut:
    """A fault: the connection ends after so many events of the stream; of an answer without stream, in its middle."""

    move: Move
    events: int = 2


@dataclass(frozen=True)
class Slow:
    """A fault: after so many events of its stream the model waits until ``wait`` returns, and then goes on.

    Without ``wait`` it waits until the client hangs up, which ``Provider.hung_up`` tells, and never answers.
    """

    move: Move
    wait: Callable[[], object] | None = None
    events: int = 0


@dataclass(frozen=True)
class Raw:
    """A fault: these pieces are the body, of an answer with a stream or without, until the client hangs up."""

    pieces: Callable[[], Iterable[bytes]]
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 200


Reply = Move | Failure | Cut | Slow | Raw


@dataclass(frozen=True)
class Answer:
    """A move in one form: text, calls, and why it ends."""

    text: str
    calls: tuple[ToolCall, ...]
    ending: Ending

    @property
    def pieces(self) -> tuple[str, str]:
        """The text in the two pieces in which streams send it."""
        middle = len(self.text) // 2
        return self.text[:middle], self.text[middle:]


def make_answer(move: Move) -> Answer:
    """Return a move in the form that the wire formats write."""
    if isinstance(move, Text):
        return Answer(move.text, (), move.ending)
    if isinstance(move, ToolCall):
        return Answer("", (move,), "end")
    return Answer(move.text, move.calls, move.ending)


@dataclass(frozen=True)
class ModelRequest:
    """What a client sent to the model, in one form for every provider."""

    body: dict[str, Any]
    tools: dict[str, str]
    """The description of each tool, by its name."""
    results: list[str]
    """What the calls so far have answered, in their order."""
    system: str = ""
    """The system text, or the instructions."""
    said: str = ""
    """What the user said last."""

    def tool_named(self, ending: str) -> str | None:
        """The name of the tool that ends so: clients put the server's name before it; ``None`` where there is none."""
        return next((name for name in self.tools if name.endswith(ending)), None)

    @property
    def text(self) -> str:
        """Every text of the request, wherever the client has put it."""
        return "\n".join(texts_in(self.body))


Script = "Callable[[ModelRequest], Reply]"


def texts_in(value: object) -> Iterator[str]:
    """Yield every text in a value of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from texts_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts_in(part)


def play(*replies: Reply) -> Callable[[ModelRequest], Reply]:
    """Return a script that makes these moves, one for each request, and repeats the last: a loop without an end."""
    left = list(replies)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def play_each(**scripts: Callable[[ModelRequest], Reply]) -> Callable[[ModelRequest], Reply]:
    """Return a script that asks one of several, by a word that the user's last message has."""
    return lambda request: next(script(request) for word, script in scripts.items() if word in request.said)

"""A model that plays a script from a file: the same turns each time, without a key and without a network.

The file is YAML or JSON: a mapping with the list ``turns``. A turn has ``text``, ``calls`` (each with ``tool`` and
``arguments``), or both. ``when`` is a string that must occur in the newest message, and ``system`` one
that must occur in the system prompt, for the turn to be played. A turn with ``repeat: true`` may be played again and
again.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.usage import RequestUsage

from prowess.errors import ModelError, ResourceError
from prowess.files.read import OpenFile
from prowess.format.frontmatter.json_types import parse_typed_yaml
from prowess.format.frontmatter.yaml_events import YamlError
from prowess.limits import DEFAULT_LIMITS
from prowess.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence

    from pydantic_ai import RunContext
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import ModelRequestParameters, StreamedResponse
    from pydantic_ai.models.function import AgentInfo
    from pydantic_ai.settings import ModelSettings

_MAX_YAML_EVENTS = 100_000  # a script may be much longer than the head of a skill
_WORD = re.compile(r"\s*\S+\s?|\s+")
_PIECE_CHARS = 16  # how much of the arguments of a call comes at a time, as a real model streams them
_FIELDS = frozenset(("text", "calls", "when", "system", "repeat"))


class ScriptedCall(NamedTuple):
    """One call of a tool in a script; a string in ``arguments`` is sent as it is, even if it is not JSON."""

    tool: str
    arguments: str


class ScriptedTurn(NamedTuple):
    """One turn of a script: what the model says and calls, and what it must have seen for that."""

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    when: str = ""
    system: str = ""
    repeat: bool = False

    def fits(self, newest: str, system: str) -> bool:
        """Return whether the turn may be played after these words."""
        return self.when in newest and self.system in system


class ScriptedModel(FunctionModel):
    """A model that answers each request with the first turn of its script that was not played yet and that fits."""

    def __init__(self, turns: Sequence[ScriptedTurn], name: str = "script") -> None:
        super().__init__(self._answer, stream_function=self._stream, model_name=name)
        self._system = "scripted"
        self._left = list(turns)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Stream the next turn; its tokens are estimated, as far as the messages are text."""
        arguments = (messages, model_settings, model_request_parameters, run_context)
        async with super().request_stream(*arguments) as response:
            # The base class counts every request as 50 tokens, which would be meaningless.
            tokens = _estimate_request(messages, model_request_parameters)
            response._usage = RequestUsage(input_tokens=tokens)  # noqa: SLF001 - it has no other way
            yield response

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = self._take_turn(_read_newest(messages), info.instructions or "")
        parts: list[TextPart | ToolCallPart] = [TextPart(turn.text)] if turn.text else []
        return ModelResponse([*parts, *(ToolCallPart(call.tool, call.arguments) for call in turn.calls)])

    async def _stream(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        turn = self._take_turn(_read_newest(messages), info.instructions or "")
        for word in _WORD.findall(turn.text):
            yield word
            await asyncio.sleep(0)  # as between two packets: whoever waits for its turn gets it
        for index, call in enumerate(turn.calls):
            yield {index: DeltaToolCall(call.tool, "", tool_call_id=f"call-{uuid4().hex[:12]}")}
            for begin in range(0, len(call.arguments), _PIECE_CHARS):
                yield {index: DeltaToolCall(json_args=call.arguments[begin : begin + _PIECE_CHARS])}
                await asyncio.sleep(0)

    def _take_turn(self, newest: str, system: str) -> ScriptedTurn:
        for index, turn in enumerate(self._left):
            if turn.fits(newest, system):
                if not turn.repeat:
                    del self._left[index]
                return turn
        left = f"none of its {len(self._left)} turns that are left fits" if self._left else "it has no turn left"
        raise ModelError(f"the script of the model cannot go on: {left}", code="script-ended")


def load_scripted_model(path: str) -> ScriptedModel:
    """Return the model that plays the script in a file; raise ``ModelError`` (``bad-script``) where it is none."""
    if not path:
        raise ModelError("no file is named after 'scripted:'", code="bad-script")
    folder, name = os.path.split(os.path.abspath(path))
    try:
        with OpenFile(folder, (name,)) as file:
            text = file.read_all(DEFAULT_LIMITS.max_file_bytes).decode("utf-8")
        # JSON first: it is YAML as well, but a reader of JSON also takes what is nested deeper.
        data = json.loads(text) if text.lstrip().startswith("{") else _parse_yaml(text)
        return ScriptedModel(parse_script(data), name)
    except ResourceError as error:
        raise ModelError(f"cannot read the script of the model: {error.message}", path, "bad-script") from None
    except (ValueError, YamlError, RecursionError) as error:
        raise ModelError(f"this is not a script of a model: {error}", path, "bad-script") from None


def _parse_yaml(text: str) -> dict[str, Any]:
    limits = replace(DEFAULT_LIMITS, max_yaml_events=_MAX_YAML_EVENTS)
    try:
        return dict(parse_typed_yaml(text, limits))
    except YamlError as error:
        if error.code in {"empty-frontmatter", "yaml-not-a-mapping"}:  # YAML, but no mapping: parse_script says so
            return {}
        raise


def parse_script(data: Any) -> list[ScriptedTurn]:
    """Return the turns of a script; raise ``ValueError`` with the number of the turn that is malformed."""
    turns = data.get("turns") if isinstance(data, dict) else None
    if not isinstance(turns, list) or not turns:
        raise ValueError("it needs a list 'turns' with at least one turn")
    return [_parse_turn(turn, f"turn {number}") for number, turn in enumerate(turns, 1)]


def _parse_turn(data: Any, place: str) -> ScriptedTurn:
    if not isinstance(data, dict) or not data.keys() <= _FIELDS:
        raise ValueError(f"{place} must be a mapping with the keys {', '.join(sorted(_FIELDS))}")
    strings = {key: data.get(key) or "" for key in ("text", "when", "system")}
    wrong = next((key for key, value in strings.items() if not isinstance(value, str)), "")
    if wrong:
        raise ValueError(f"{place}: {wrong!r} must be a string")
    calls, repeat = data.get("calls") or [], data.get("repeat") or False
    if not isinstance(calls, list) or not isinstance(repeat, bool):
        raise ValueError(f"{place}: 'calls' must be a list, and 'repeat' must be true or false")  # noqa: TRY004 - the file is wrong  # noqa: TRY004 - the file is wrong
    if not strings["text"] and not calls:
        raise ValueError(f"{place} has neither 'text' nor 'calls'")
    return ScriptedTurn(**strings, calls=tuple(_parse_call(call, place) for call in calls), repeat=repeat)


def _parse_call(data: Any, place: str) -> ScriptedCall:
    if not isinstance(data, dict) or not data.keys() <= {"tool", "arguments"} or not isinstance(data.get("tool"), str):
        raise ValueError(f"{place}: a call needs 'tool' and 'arguments'")
    arguments = data.get("arguments", {})
    if not isinstance(arguments, (dict, str)):
        raise ValueError(f"{place}: 'arguments' must be a mapping, or a string that is sent as it is")  # noqa: TRY004 - as above
    return ScriptedCall(data["tool"], arguments if isinstance(arguments, str) else json.dumps(arguments))


def _estimate_request(messages: list[ModelMessage], parameters: ModelRequestParameters) -> int:
    """Return about how many tokens a request has: the system text, the tools, and every message."""
    strings = [_read_words(message) for message in messages]
    strings += [message.instructions or "" for message in messages[-1:] if isinstance(message, ModelRequest)]
    for tool in parameters.function_tools:
        strings.append(f"{tool.name} {tool.description} {json.dumps(tool.parameters_json_schema)}")
    return sum(map(estimate_tokens, strings))


def _read_newest(messages: list[ModelMessage]) -> str:
    """Return the words of the newest message: the request of a person, or the results of calls."""
    return _read_words(messages[-1]) if messages else ""


def _read_words(message: ModelMessage) -> str:
    """Return the text of one message, with the arguments of its calls and their results."""
    words: list[str] = []
    for part in message.parts:
        if isinstance(part, ToolReturnPart):
            words.append(part.model_response_str())
        elif isinstance(part, ToolCallPart):
            words.append(f"{part.tool_name} {part.args_as_json_str()}")
        elif isinstance(part, UserPromptPart):
            contents = [part.content] if isinstance(part.content, str) else part.content
            words += [content for content in contents if isinstance(content, str)]
        else:
            words.append(str(getattr(part, "content", "")))
    return "\n".join(words)

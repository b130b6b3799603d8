"""The transcript of a run: JSON lines in a file of its owner alone, written as things happen, from which a run goes on.

Besides the events, except single pieces of text, a line has each message of the conversation with its place. A message
that changes is written again with the same place, and the last one counts.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from pydantic import ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
)

from prowess.agent.api_keys import hide_keys_in
from prowess.errors import BusyError, ResourceError, SourceError
from prowess.files import syscalls
from prowess.files.lock import lock_open_file
from prowess.files.paths import is_owned_alone
from prowess.files.read import OpenFile
from prowess.text.redaction import hide_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.agent.task_result import AgentEvent


_VERSION = 1
_MAX_BYTES = 1 << 30


class FileKind(NamedTuple):
    """What such a file is called in messages, and the code of an error about it."""

    name: str
    code: str


class JsonLines:
    """A file to which lines are appended, locked against other processes; a context manager."""

    def __init__(self, path: str, descriptor: int, kind: FileKind) -> None:
        self.path = path
        self._kind = kind
        self._descriptor = descriptor

    @classmethod
    def create(cls, path: str, kind: FileKind) -> Self:
        """Create a new file; raise ``FileExistsError`` where there is one, ``SourceError`` where none can be."""
        try:
            descriptor = syscalls.create_file(path, 0o600)
        except FileExistsError:
            raise
        except OSError as error:
            raise _unwritable_error(path, kind, error) from None
        lock_open_file(descriptor)  # nobody else can have it: the file is new
        return cls(path, descriptor, kind)

    @classmethod
    def reopen(cls, path: str, kind: FileKind) -> Self:
        """Open a file to go on in it; raise ``SourceError`` where there is none, ``BusyError`` while it is in use.

        Nothing is written yet: whoever goes on reads the file first, and then calls ``begin_line``.
        """
        try:
            descriptor = syscalls.open_to_append(path)
        except OSError as error:
            raise SourceError(f"cannot read the {kind.name}: {error.strerror}", path, kind.code) from None
        if not lock_open_file(descriptor):
            os.close(descriptor)
            raise BusyError(f"another run writes to this {kind.name}", path)
        return cls(path, descriptor, kind)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, and give up its lock."""
        os.close(self._descriptor)

    def begin_line(self) -> None:
        """Begin a new line: a crash may have cut the last one. Raises ``SourceError`` where it cannot be written."""
        self._write(b"\n")

    def write_line(self, data: dict[str, Any]) -> None:
        """Append one line without keys; raise ``SourceError`` where it cannot be written, as on a full disk."""
        # One call for one line: a reader never sees half of two lines, whatever ends this process.
        line = json.dumps({"version": _VERSION, **hide_keys_in(data)}, ensure_ascii=True)
        self._write(line.encode() + b"\n")

    def _write(self, data: bytes) -> None:
        try:
            syscalls.write_all(self._descriptor, data, self.path)
        except OSError as error:
            raise _unwritable_error(self.path, self._kind, error) from None


def _unwritable_error(path: str, kind: FileKind, error: OSError) -> SourceError:
    return SourceError(f"cannot write the {kind.name}: {error.strerror}", path, "unwritable")


def read_json_lines(path: str, kind: FileKind) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file as mappings, without those that a crash has cut.

    Raises ``SourceError`` for a file that cannot be read, or that somebody else could have written.
    """
    folder, name = os.path.split(os.path.abspath(path))
    try:
        with OpenFile(folder, (name,)) as file:
            if not is_owned_alone(file.info):
                message = f"the {kind.name} belongs to somebody else, or others may write to it"
                raise SourceError(message, path, kind.code)
            text = file.read_all(_MAX_BYTES).decode("utf-8", "replace")
    except ResourceError as error:
        raise SourceError(f"cannot read the {kind.name}: {error.message}", path, kind.code) from None
    for line in text.splitlines():
        with suppress(ValueError, RecursionError):
            data = json.loads(line)
            if isinstance(data, dict) and data.get("version") == _VERSION:
                yield data


_KIND = FileKind("transcript", "bad-transcript")


@dataclass
class EarlierRun:
    """What a transcript holds of the runs before: the key of the conversation, its messages, folders and bounds."""

    key: str = ""
    folder: str = ""
    tools: tuple[str, ...] | None = None
    """The ceiling of the last run; ``None``: the transcript does not say."""
    trust: str = ""
    places: tuple[str, ...] = ()
    """The folders that its skills were from; empty: the standard places."""
    messages: list[ModelMessage] = field(default_factory=list)
    is_finished: bool = False
    """Whether the last run came to its end, so that going on needs a new task."""


class Transcript:
    """A file to which the lines of a run are appended; a context manager."""

    def __init__(self, file: JsonLines, written: Sequence[ModelMessage] = ()) -> None:
        self.path = file.path
        self._file = file
        self._written: list[ModelMessage] = list(written)

    @classmethod
    def create(cls, path: str) -> Self:
        """Begin a transcript in a new file; raise ``SourceError`` where there is a file already, or none can be."""
        try:
            return cls(JsonLines.create(path, _KIND))
        except FileExistsError:
            message = "this file exists: --resume goes on in a transcript, and --transcript begins a new file"
            raise SourceError(message, path, _KIND.code) from None

    @classmethod
    def resume(cls, path: str) -> tuple[Self, EarlierRun]:
        """Return a transcript to go on in, and what it holds.

        Raises ``SourceError`` (``bad-transcript``) for a file that is none, or that somebody else could have written,
        and ``BusyError`` while another run writes to it.
        """
        file = JsonLines.reopen(path, _KIND)
        try:
            earlier = read_transcript(path)
            file.begin_line()
        except BaseException:
            file.close()
            raise
        return cls(file, earlier.messages), earlier

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write_event(self, event: AgentEvent) -> None:
        """Append a line for an event; pieces of text are left out, since the messages hold them."""
        if event.kind != "text":
            self._file.write_line(event.to_dict())

    def write_messages(self, messages: Sequence[ModelMessage]) -> None:
        """Append a line for each message of the conversation that is new, or another than was written."""
        for place, message in enumerate(messages):
            is_known = place < len(self._written)
            if is_known and self._written[place] is message:
                continue
            self._written[place : place + 1] = [message]
            data = ModelMessagesTypeAdapter.dump_python([message], mode="json")[0]
            if data.get("provider_url"):  # the address of --base-url, which may have a password
                data["provider_url"] = hide_secrets(data["provider_url"])
            self._file.write_line({"event": "message", "place": place, "message": data})


def read_transcript(path: str) -> EarlierRun:
    """Return what a transcript holds; raise ``SourceError`` (``bad-transcript``) for a file that is none."""
    run, messages, results = EarlierRun(), dict[int, Any](), dict[str, Any]()
    for data in read_json_lines(path, _KIND):
        match data.get("event"):
            case "start":
                run.key, run.folder, run.is_finished = str(data.get("key", "")), str(data.get("folder", "")), False
                run.trust, run.places = str(data.get("trust", "")), _read_texts(data, "places")
                run.tools = _read_texts(data, "tools") if "tools" in data else None
            case "message":
                place = data.get("place")
                messages[place if isinstance(place, int) else -1] = data.get("message")
            case "result":
                results[str(data.get("id", ""))] = data
            case "end":
                run.is_finished = data.get("status") == "done"
    if not run.key:
        raise SourceError("this is not a transcript of a run", path, _KIND.code)
    try:
        run.messages = ModelMessagesTypeAdapter.validate_python([messages[place] for place in sorted(messages)])
    except (ValidationError, TypeError):
        raise SourceError("the messages of this transcript cannot be read", path, _KIND.code) from None
    _add_lost_results(run.messages, results)
    return run


def _read_texts(data: dict[str, Any], field: str) -> tuple[str, ...]:
    """Return the strings of a list; none for anything else, since somebody may have edited the file."""
    values = data.get(field)
    return tuple(value for value in values if isinstance(value, str)) if isinstance(values, list) else ()


def _add_lost_results(messages: list[ModelMessage], results: dict[str, Any]) -> None:
    """Append the results that are in events alone, as after a crash, so that no call is made a second time.

    The framework answers the calls that have no result, because the messages say that they were interrupted.
    """
    last = messages[-1] if messages else None
    calls = [part for part in last.parts if isinstance(part, ToolCallPart)] if isinstance(last, ModelResponse) else []
    parts = [_make_return(call, results[call.tool_call_id]) for call in calls if call.tool_call_id in results]
    if parts:
        messages.append(ModelRequest(parts=parts, state="interrupted"))
    elif calls and isinstance(last, ModelResponse):
        messages[-1] = replace(last, state="interrupted")


def _make_return(call: ToolCallPart, result: dict[str, Any]) -> ToolReturnPart:
    outcome: Literal["failed", "success"] = "failed" if result.get("is_error") else "success"
    return ToolReturnPart(call.tool_name, str(result.get("content", "")), call.tool_call_id, outcome=outcome)

"""A run of the agent on the terminal: what it shows as it happens, and what it asks the user."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from prowess.agent.models import explain_failure, is_limit
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Line, Span, Table, diff_to_lines, line, show_unseen
from prowess.limits import DEFAULT_LIMITS
from prowess.text.escapes import escape_line
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic_ai.models import Model

    from prowess.agent.approval import ToolAnswer, ToolRequest
    from prowess.agent.task_result import AgentEvent
    from prowess.cli.terminal import Terminal
    from prowess.conversation.acting.trust import AskAnswer
    from prowess.conversation.acting.trust_request import TrustRequest


_MAX_SHOWN = 160
_MAX_PROTECTED_SHOWN = 5


def print_event_data(event: AgentEvent) -> None:
    """Print an event as a line of JSON."""
    printer.print_data_line(event.to_dict())


class AgentScreen:
    """Prints the events of a run for people."""

    def __init__(self) -> None:
        self._is_within_line = False

    def show(self, event: AgentEvent) -> None:
        """Print one event."""
        if event.kind == "text":
            text = event.detail["text"]
            printer.print_piece(text)
            self._is_within_line = not text.endswith("\n")
            return
        rows = list(_describe(event))
        if rows or event.kind == "end":
            self.end_line()
        printer.print_blocks(rows, error=True)

    def end_line(self) -> None:
        """Begin a new line, if the model has not ended its last one."""
        if self._is_within_line:
            printer.print_piece("\n")
            self._is_within_line = False


class ChildErrorHandler(logging.Handler):
    """Prints why a child agent failed, in one line. Without a handler, Python would print the whole traceback."""

    def __init__(self, screen: AgentScreen, model: Model) -> None:
        super().__init__()
        self._screen = screen
        self._model = model

    def emit(self, record: logging.LogRecord) -> None:
        """Print the error of a record, except a limit, with which the whole run ends."""
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, Exception) or is_limit(error):
            return
        self._screen.end_line()
        printer.warn(f"a child agent failed: {explain_failure(error, self._model).message}")


def _describe(event: AgentEvent) -> Iterator[Block]:
    detail = event.detail
    match event.kind:
        case "start":
            skills = format_count(detail["skills"], "skill")
            yield line((f"{detail['model']}, {skills}, working in {detail['folder']}", "dim"))
            yield from (line((words, "dim")) for words in _describe_sandbox(detail))
        case "call":
            yield line(
                *_describe_caller(detail), (_shorten(detail["tool"]), "name"), f" {_shorten(detail['arguments'])}"
            )
        case "result" if detail["is_error"]:
            yield line((f"{detail['tool']} ", "dim"), ("failed: ", "bad"), _shorten(detail["content"]), indent=2)
        case "result":
            yield line((f"{detail['tool']}: {_shorten(detail['content'])}", "dim"), indent=2)
        case "decision" if detail["is_allowed"] and detail["by"] == "skill":  # the result shows refusals
            yield line((f"{detail['tool']} approved by an active skill", "dim"), indent=2)
        case "skill":
            yield from _describe_skill(detail)
        case "turn":
            cached = f" ({detail['cached']:,} of them cached)" if detail["cached"] else ""
            words = f"turn {detail['turn']}: {detail['sent']:,} tokens sent{cached}, {detail['received']:,} received"
            yield line((words, "dim"))
        case "end" if detail["made"]:
            made = ", ".join(map(_shorten, detail["made"][:_MAX_PROTECTED_SHOWN]))
            yield line((f"new, and obeyed by other programs: {made}; look before you use git or an agent here", "warn"))
        case _:
            return


def _describe_sandbox(detail: Any) -> Iterator[str]:
    """Yield where commands may write."""
    if detail["sandbox"] == "none":
        yield "commands run without a sandbox: they may write wherever you may"
    elif detail["sandbox"]:
        kept = detail["protected"]
        more = f" and {len(kept) - _MAX_PROTECTED_SHOWN} more" if len(kept) > _MAX_PROTECTED_SHOWN else ""
        but = f", but not to {', '.join(map(_shorten, kept[:_MAX_PROTECTED_SHOWN]))}{more}" if kept else ""
        yield f"commands may write in this folder{but} (sandbox: {detail['sandbox']})"
        if detail["closed"]:
            yield detail["closed"]


def _describe_caller(detail: Any) -> tuple[Span, ...]:
    return ((f"{detail['skill']}: ", "dim"),) if detail["skill"] else ()


def _describe_skill(detail: Any) -> Iterator[Line]:
    """Yield what the engine did with a skill, where the call and its result do not say it already."""
    skill = detail["skill"]
    match detail["what"]:
        case "forked":
            yield line((f"{skill} runs as a child agent", "dim"), indent=2)
        case "ran":
            words = f"{detail.get('script', '')} of {skill} ended with status {detail.get('status')}"
            yield line((f"{words} (sandbox: {detail.get('sandbox')})", "dim"), indent=2)
        case "expanded":
            yield line((f"commands of {skill} ran", "dim"), indent=2)
        case "not-expanded":
            yield line((f"commands in the instructions of {skill} did not run", "warn"), indent=2)
        case _:
            return


def _shorten(value: object) -> str:
    """Return the first line of a string, or of data as JSON, as far as it fits."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    first, _, rest = text.strip().partition("\n")
    more = f" (and {format_count(rest.count(chr(10)) + 1, 'line')} more)" if rest else ""
    return (first if len(first) <= _MAX_SHOWN else f"{first[:_MAX_SHOWN]}…") + more


_MAX_LINE_BYTES = 4_096


class TerminalPerson:
    """Asks on a terminal: about one thing at a time, and so that a cancelled run does not wait for an answer."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._lock = asyncio.Lock()

    async def ask_tool(self, request: ToolRequest) -> ToolAnswer:
        """Show a call of one of the agent's own tools, and return the person's answer."""
        who = f"The skill {request.skill}" if request.skill else "The agent"
        blocks: list[Block] = [line((f"{who} wants to use ", "warn"), (request.tool, "name"), ":")]
        blocks.append(_indent_rows(line(row) for row in request.subject.split("\n")))
        if request.preview:
            rows = _cut_middles(request.preview.removesuffix("\n").split("\n"))
            blocks.append(_indent_rows(diff_to_lines("\n".join(rows))))
        what = (
            "this command" if request.tool == "Bash" else "this file" if request.is_hidden else f"every {request.tool}"
        )
        question = f"Allow it? once, always ({what} in this run), or no"
        answer = await self._ask(blocks, question)
        return "once" if answer == "once" else "always" if answer == "always" else "no"

    async def ask_trust(self, request: TrustRequest) -> AskAnswer:
        """Show what a skill would run, in which state of its files, and return the person's answer."""
        blocks = [line((f"The skill {request.skill.name} wants to run something of its own:", "warn"))]
        question = "Allow it? once, always (as long as no byte of it changes), or no"
        rows = (line(row) for row in str(request).split("\n"))
        answer = await self._ask([*blocks, _indent_rows(rows)], question)
        return "always" if answer == "always" else answer == "once"

    async def _ask(self, blocks: list[Block], question: str) -> str:
        """Show blocks, then ask until a person answers with a word; the end of the input means no."""
        async with self._lock:
            printer.flush()  # what the model said comes first
            screen = self._terminal.screen
            printer.print_blocks(map(show_unseen, blocks), screen)
            self._drop_typed_keys()
            while True:
                screen.write(f"{escape_line(question)} [o/a/n] ")
                screen.flush()
                typed = await self._read_line()
                if typed is None:
                    return "no"
                words = [word for word in ("once", "always", "no") if typed and word.startswith(typed)]
                if words:
                    return words[0]

    def _drop_typed_keys(self) -> None:
        """Forget what was typed before the question was there: nobody has answered a question before reading it."""
        with suppress(ImportError, OSError):
            import termios

            termios.tcflush(self._terminal.keys.fileno(), termios.TCIFLUSH)

    async def _read_line(self) -> str | None:
        """Return the line that a person types, in small letters; ``None`` at the end of the input."""
        loop = asyncio.get_running_loop()
        keys = self._terminal.keys
        ready = asyncio.Event()
        try:
            # A terminal is readable when a line is complete. Waiting in the loop, and not in a thread, lets Ctrl-C end
            # the wait.
            loop.add_reader(keys.fileno(), ready.set)
        except (NotImplementedError, OSError):  # Windows, and terminals that the system cannot watch
            typed = await asyncio.to_thread(keys.readline)
            return typed.strip().lower() if typed else None
        try:
            await ready.wait()
        finally:
            loop.remove_reader(keys.fileno())
        data = os.read(keys.fileno(), _MAX_LINE_BYTES)
        return data.decode("utf-8", "replace").strip().lower() if data else None


def _cut_middles(rows: list[str]) -> Iterator[str]:
    """Yield the rows of a difference, without the middle of a long one and of too many; each cut says how much."""
    most, width = DEFAULT_LIMITS.max_shown_diff_lines, DEFAULT_LIMITS.max_shown_line_chars
    begin, end = (rows, []) if len(rows) <= most else (rows[: most // 2], rows[-(most // 2) :])
    yield from (_cut_middle(row, width) for row in begin)
    if end:
        yield f"[{format_count(len(rows) - len(begin) - len(end), 'line')} between are not shown]"
        yield from (_cut_middle(row, width) for row in end)


def _cut_middle(row: str, width: int) -> str:
    left_out = len(row) - width
    if left_out <= 0:
        return row
    return f"{row[: width // 2]} [{format_count(left_out, 'character')} not shown] {row[-(width // 2) :]}"


def _indent_rows(rows: Iterable[Line]) -> Table:
    """Return lines behind a bar. A table, because a narrow terminal wraps its last column within the column.

    So no part of what a model or a skill wrote can begin where our own lines begin, and look like a question of ours.
    """
    return Table([("|", row.spans) for row in rows], indent=2)

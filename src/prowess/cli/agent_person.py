"""The person at the terminal, who is asked before the agent does something."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Line, Table, diff_to_lines, line, show_unseen
from prowess.limits import DEFAULT_LIMITS
from prowess.text.escapes import escape_line
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prowess.agent.approval import ToolAnswer, ToolRequest
    from prowess.cli.terminal import Terminal
    from prowess.conversation.acting.trust import AskAnswer
    from prowess.conversation.acting.trust_request import TrustRequest

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

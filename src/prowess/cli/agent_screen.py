"""Shows a run of the agent as it happens: what the model says on the output stream, the rest on the error stream."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

from prowess.agent.model_failures import explain_failure, is_limit
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Line, Span, line
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_ai.models import Model

    from prowess.agent.events import AgentEvent

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
        case "decision" if detail["is_allowed"] and detail["by"] == "skill":  # refusals are told by the result
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
    """Return the first line of a text, or of data as JSON, as far as it fits."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    first, _, rest = text.strip().partition("\n")
    more = f" (and {format_count(rest.count(chr(10)) + 1, 'line')} more)" if rest else ""
    return (first if len(first) <= _MAX_SHOWN else f"{first[:_MAX_SHOWN]}…") + more

"""The one way in which a command changes something: it shows the plan, asks, does it, and reports.

The plan and the report are the answer, on the output stream (with ``--json`` as one JSON object); the question goes to
the terminal; what else is worth knowing goes to the error stream.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import click

from prowess.cli.render import printer
from prowess.cli.render.blocks import Line, line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import prowess
    from prowess.cli.render.blocks import Block

T = TypeVar("T")

DECLINED_STATUS = 1
"""The exit status where a person says no."""


def plan_to_blocks(rows: Sequence[str]) -> list[Block]:
    """The rows of a plan for people; nothing where there are none."""
    return [line(("Plan:", "title")), *(line(f"- {row}", indent=2) for row in rows), Line()] if rows else []


@dataclass(frozen=True, kw_only=True)
class PlannedChange(Generic[T]):
    """What a command is going to change."""

    plan: Sequence[Block]
    """What is going to happen, for people."""
    needs_consent: bool
    """Whether a person is asked; where nothing is to be done, nobody is."""
    progress_text: str
    """What the bar says meanwhile."""
    apply: Callable[[], T]
    to_dict: Callable[[T | None], Mapping[str, object]]
    """The answer as data; of ``None`` where nothing was done."""
    report: Callable[[T], Iterable[Block]]
    """What was done, for people."""
    declined_text: str
    """What a person hears who said no: what was not done."""
    question: str = "Do this?"
    idle_text: str = "Nothing to do."
    """What is said where nothing was to be done; may be empty, where the plan says it."""
    issues: Callable[[], Iterable[prowess.Issue]] = tuple
    """What was found worth saying so far."""
    status: Callable[[T], int] = lambda _: 0
    """The exit status, once it was done."""
    dry_status: int = 0
    """The exit status of ``--dry-run``."""


def carry_out(change: PlannedChange[T], *, yes: bool, as_data: bool, dry_run: bool = False) -> int:
    """Show the plan, ask unless ``yes``, do it and report; the exit status.

    Raises ``click.UsageError`` where somebody would have to be asked and nobody is there.
    """
    if not as_data:
        printer.print_blocks(change.plan)
    printer.print_issues(change.issues())
    if dry_run:
        printer.print_answer(
            lambda: change.to_dict(None), lambda: [] if change.plan else _idle_to_blocks(change), as_data=as_data
        )
        return change.dry_status
    if change.needs_consent and not yes and not _has_consent(change, as_data=as_data):
        printer.print_answer(lambda: change.to_dict(None), lambda: [line(change.declined_text)], as_data=as_data)
        return DECLINED_STATUS
    with printer.show_progress(change.progress_text):
        done = change.apply()
    printer.print_answer(
        lambda: change.to_dict(done), lambda: [*change.report(done)] or _idle_to_blocks(change), as_data=as_data
    )
    printer.print_issues(change.issues())
    return change.status(done)


def _idle_to_blocks(change: PlannedChange[T]) -> list[Block]:
    return [line(change.idle_text)] if change.idle_text else []


def _has_consent(change: PlannedChange[T], *, as_data: bool) -> bool:
    """Ask on the terminal, where the plan is shown as well unless it stands there already."""
    shown = change.plan if as_data or not printer.is_terminal(sys.stdout) else ()
    answer = ask_person(change.question, shown)
    if answer is None:
        raise click.UsageError("nobody is here to ask: say --yes to go on without being asked")
    return answer


def ask_person(question: str, shown: Sequence[Block]) -> bool | None:
    """Show something on the terminal and ask there whether to do it; ``None`` where nobody is there to ask."""
    from prowess.cli.terminal import confirm, open_terminal  # noqa: PLC0415 - only to ask

    with open_terminal() as terminal:
        if terminal is None:
            return None
        printer.flush()  # the plan before the question, also where the output is written in blocks
        printer.print_blocks(shown, terminal.screen)
        return confirm(question, terminal)

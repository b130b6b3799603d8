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

DECLINED = 1
"""The exit status where a person says no."""


def plan_of(rows: Sequence[str]) -> list[Block]:
    """The rows of a plan for people; nothing where there are none."""
    return [line(("Plan:", "title")), *(line(f"- {row}", indent=2) for row in rows), Line()] if rows else []


@dataclass(frozen=True, kw_only=True)
class Change(Generic[T]):
    """What a command is going to change."""

    plan: Sequence[Block]
    """What is going to happen, for people."""
    needs_consent: bool
    """Whether a person is asked; where nothing is to be done, nobody is."""
    doing: str
    """What the bar says meanwhile."""
    do: Callable[[], T]
    data: Callable[[T | None], Mapping[str, object]]
    """The answer as data; of ``None`` where nothing was done."""
    report: Callable[[T], Iterable[Block]]
    """What was done, for people."""
    declined: str
    """What a person hears who said no: what was not done."""
    question: str = "Do this?"
    idle: str = "Nothing to do."
    """What is said where nothing was to be done; may be empty, where the plan says it."""
    issues: Callable[[], Iterable[prowess.Issue]] = tuple
    """What was found worth saying so far."""
    status: Callable[[T], int] = lambda _: 0
    """The exit status, once it was done."""
    dry_status: int = 0
    """The exit status of ``--dry-run``."""


def carry_out(change: Change[T], *, yes: bool, as_data: bool, dry_run: bool = False) -> int:
    """Show the plan, ask unless ``yes``, do it and report; the exit status.

    Raises ``click.UsageError`` where somebody would have to be asked and nobody is there.
    """
    if not as_data:
        printer.show(change.plan)
    printer.tell_issues(change.issues())
    if dry_run:
        printer.answer(lambda: change.data(None), lambda: [] if change.plan else _idle(change), as_data=as_data)
        return change.dry_status
    if change.needs_consent and not yes and not _has_consent(change, as_data=as_data):
        printer.answer(lambda: change.data(None), lambda: [line(change.declined)], as_data=as_data)
        return DECLINED
    with printer.busy(change.doing):
        done = change.do()
    printer.answer(lambda: change.data(done), lambda: [*change.report(done)] or _idle(change), as_data=as_data)
    printer.tell_issues(change.issues())
    return change.status(done)


def _idle(change: Change[T]) -> list[Block]:
    return [line(change.idle)] if change.idle else []


def _has_consent(change: Change[T], *, as_data: bool) -> bool:
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
        printer.show(shown, terminal.screen)
        return confirm(question, terminal)

"""The one way in which a command changes what is there: it shows the plan, asks, applies it and reports.

The plan and the report are the answer, on the output stream (with ``--json`` as one JSON object). The question goes to
the terminal. Issues go to the error stream.

Every command uses it that may replace or remove something. ``new``, ``pack`` and ``unpack`` only make a new file or
folder, and ``check --fix``, ``trust revoke`` and ``lock --merge`` do what their option says: these ask nothing.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import click

from prowess.cli.options import group_options, json_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Line, line, show_unseen
from prowess.cli.terminal import confirm, open_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import prowess

T = TypeVar("T")

DECLINED_STATUS = 1
"""The exit status after a person said no."""


class ChangeFlags(NamedTuple):
    """How the command line wants a change to be made."""

    dry_run: bool
    """Show the plan and stop."""
    yes: bool
    """Ask nobody."""
    as_data: bool
    """Answer with JSON."""

    @property
    def may_ask(self) -> bool:
        """True when a person may be asked something before the change."""
        return not (self.dry_run or self.yes)


yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask.")
change_options = group_options(
    "flags",
    ChangeFlags,
    dry_run=click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing."),
    yes=yes_option,
    as_data=json_option,
)
"""``--dry-run``, ``--yes`` and ``--json``; the command gets them as ``flags``, for ``carry_out``."""


def plan_to_blocks(steps: Sequence[str]) -> list[Block]:
    """Return the steps of a plan for people; nothing if there are none."""
    return [line(("Plan:", "title")), *(line(f"- {step}", indent=2) for step in steps), Line()] if steps else []


@dataclass(frozen=True, kw_only=True)
class PlannedChange(Generic[T]):
    """What a command is going to change. ``T`` is what applying it returns."""

    plan: Sequence[Block]
    """What is going to happen, for people."""
    needs_consent: bool
    """False when there is nothing to do, so that nobody is asked."""
    progress_text: str
    """What the progress bar says while the change is applied."""
    apply: Callable[[], T]
    to_dict: Callable[[T | None], Mapping[str, object]]
    """The answer as data, from what ``apply`` returned; from ``None`` if nothing was applied."""
    report: Callable[[T], Iterable[Block]]
    """What was done, for people."""
    declined_text: str
    """What a person reads after saying no."""
    question: str = "Do this?"
    idle_text: str = "Nothing to do."
    """What is printed if there was nothing to do. It may be empty if the plan says so already."""
    issues: Callable[[], Iterable[prowess.Issue]] = tuple
    """The issues that were met so far."""
    status: Callable[[T], int] = lambda _: 0
    """The exit status, from what ``apply`` returned."""
    dry_status: int = 0
    """The exit status with ``--dry-run``."""


def carry_out(change: PlannedChange[T], flags: ChangeFlags) -> int:
    """Show the plan, ask unless ``--yes``, apply the change, report, and return the exit status.

    Raise ``click.UsageError`` if a person has to be asked and no terminal is there.
    """
    as_data = flags.as_data
    if not as_data:  # a person decides on it: nothing in it may be unseen
        printer.print_blocks(map(show_unseen, change.plan))
    printer.print_issues(change.issues())
    # Issues come before the question, since they may change the answer.
    if flags.dry_run:
        printer.print_answer(
            lambda: change.to_dict(None), lambda: [] if change.plan else _idle_to_blocks(change), as_data=as_data
        )
        return change.dry_status
    if change.needs_consent and not flags.yes and not _has_consent(change, as_data=as_data):
        printer.print_answer(lambda: change.to_dict(None), lambda: [line(change.declined_text)], as_data=as_data)
        return DECLINED_STATUS
    with printer.show_progress(change.progress_text):
        result = change.apply()
    printer.print_answer(
        lambda: change.to_dict(result), lambda: [*change.report(result)] or _idle_to_blocks(change), as_data=as_data
    )
    # Applying may have met further issues; the printer leaves out those that it printed above.
    printer.print_issues(change.issues())
    return change.status(result)


def _idle_to_blocks(change: PlannedChange[T]) -> list[Block]:
    return [line(change.idle_text)] if change.idle_text else []


def _has_consent(change: PlannedChange[T], *, as_data: bool) -> bool:
    # A person decides about the plan, so it is on the terminal even when the output goes elsewhere.
    answer = ask_person(change.question, change.plan if as_data or not printer.is_terminal(sys.stdout) else ())
    if answer is None:
        raise click.UsageError("there is no terminal to ask on: say --yes to go on without a question")
    return answer


def ask_person(question: str, blocks: Sequence[Block]) -> bool | None:
    """Show ``blocks`` on the terminal and ask there for a yes or no; ``None`` if there is no terminal."""
    with open_terminal() as terminal:
        if terminal is None:
            return None
        printer.flush()  # the plan before the question, also where the output is written in blocks
        printer.print_blocks(map(show_unseen, blocks), terminal.screen)
        return confirm(question, terminal)

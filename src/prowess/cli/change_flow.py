"""The one way in which a command changes installs and files: it shows the plan, asks, applies it and reports.

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

    from prowess.changes.change import Change


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
    return [line(("Plan:", "title")), *[line(f"- {step}", indent=2) for step in steps], Line()] if steps else []


@dataclass(frozen=True, kw_only=True)
class ChangeView(Generic[T]):
    """How a command shows a change. ``T`` is what making the change returns."""

    progress_text: str
    """What the progress bar says while the change is made."""
    to_dict: Callable[[T | None], Mapping[str, object]]
    """The answer as data, from what making the change returned; from ``None`` if it was not made."""
    declined_text: str
    """What a person reads after saying no."""
    report: Callable[[T], Iterable[Block]] | None = None
    """What was done, for people; without it, as the change describes it."""
    plan: Sequence[Block] | None = None
    """What is going to happen, for people; without it, the steps of the change."""
    needs_consent: bool | None = None
    """Whether a person is asked; without it, if there are steps."""
    question: str = "Do this?"
    idle_text: str | None = None
    """What is printed if there was nothing to do; without it, as the change says. It may be empty."""
    status: Callable[[T], int] = lambda _: 0
    """The exit status, from what making the change returned."""
    dry_status: int = 0
    """The exit status with ``--dry-run``."""


def carry_out(change: Change[T], view: ChangeView[T], flags: ChangeFlags) -> int:
    """Show the plan, ask unless ``--yes``, make the change, report, and return the exit status.

    Raise ``click.UsageError`` if the user has to be asked and there is no terminal.
    """
    as_data = flags.as_data
    plan = plan_to_blocks(change.steps) if view.plan is None else view.plan
    idle_text = change.idle_text if view.idle_text is None else view.idle_text
    idle = [line(idle_text)] if idle_text else []
    if not as_data:  # a person decides on it: nothing in it may be unseen
        printer.print_blocks(map(show_unseen, plan))
    printer.print_issues(change.issues())
    # Issues come before the question, since they may change the answer.
    if flags.dry_run:
        printer.print_answer(lambda: view.to_dict(None), lambda: [] if plan else idle, as_data=as_data)
        return view.dry_status
    needs_consent = bool(change.steps) if view.needs_consent is None else view.needs_consent
    if needs_consent and not flags.yes and not _has_consent(view.question, plan, as_data=as_data):
        printer.print_answer(lambda: view.to_dict(None), lambda: [line(view.declined_text)], as_data=as_data)
        return DECLINED_STATUS
    with printer.show_progress(view.progress_text):
        result = change.apply()
    report = view.report or (lambda done: map(line, change.describe(done)))
    printer.print_answer(lambda: view.to_dict(result), lambda: [*report(result)] or idle, as_data=as_data)
    # Making the change may have met further issues; the printer leaves out those that it printed above.
    printer.print_issues(change.issues())
    return view.status(result)


def _has_consent(question: str, plan: Sequence[Block], *, as_data: bool) -> bool:
    # A person decides about the plan, so it is on the terminal even when the output goes elsewhere.
    answer = ask_person(question, plan if as_data or not printer.is_terminal(sys.stdout) else ())
    if answer is None:
        raise click.UsageError("there is no terminal to ask on: use --yes to go on without a question")
    return answer


def ask_person(question: str, blocks: Sequence[Block]) -> bool | None:
    """Show ``blocks`` on the terminal and ask there for a yes or no; ``None`` if there is no terminal."""
    with open_terminal() as terminal:
        if terminal is None:
            return None
        printer.flush()  # the plan before the question, also where the output is written in blocks
        printer.print_blocks(map(show_unseen, blocks), terminal.screen)
        return confirm(question, terminal)

"""Links of an installed skill for agents, made or taken away: the plan, the question, the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.cli import output
from prowess.cli.blocks import line
from prowess.cli.installing import refs_of, show_plan
from prowess.install.installer import Installer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Change = Callable[[Installer, Sequence[str], Sequence[str]], tuple[str, ...]]
    """What makes, or takes away, the links of installs for agents; which they are."""


def relink(
    what: str, change: Change, names: Sequence[str], agents: Sequence[str], *, dry_run: bool, yes: bool, as_data: bool
) -> int:
    """Do what is called ``link`` or ``unlink``, once a person has seen it; the exit status."""
    installer, done = Installer(), f"{what}ed"
    refs = refs_of(installer, names)
    rows = [f"{what} {ref} for {agent}" for ref in refs for agent in agents]
    show_plan(rows)
    if dry_run or not output.confirm("Do this?", yes=yes):
        output.answer(lambda: {"plan": rows, done: []}, list, as_data=as_data)
        return 0 if dry_run else 1
    links = change(installer, refs, agents)
    output.answer(
        lambda: {"plan": rows, done: list(links)},
        lambda: [line(f"{done.capitalize()} ", (link, "name")) for link in links] or [line("Nothing to do.")],
        as_data=as_data,
    )
    return 0

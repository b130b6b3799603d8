"""Links of an installed skill for agents, made or taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.cli.change_flow import PlannedChange, carry_out, plan_to_blocks
from prowess.cli.install_options import find_install_refs
from prowess.cli.render.blocks import line
from prowess.install.installer import Installer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    LinkChange = Callable[[Installer, Sequence[str], Sequence[str]], tuple[str, ...]]
    """What makes, or takes away, the links of installs for agents; which they are."""


def change_links(
    what: str,
    change: LinkChange,
    names: Sequence[str],
    agents: Sequence[str],
    *,
    dry_run: bool,
    yes: bool,
    as_data: bool,
) -> int:
    """Do what is called ``link`` or ``unlink``, once a person has seen it; the exit status."""
    installer, done = Installer(), f"{what}ed"
    refs = find_install_refs(installer, names)
    rows = [f"{what} {ref} for {agent}" for ref in refs for agent in agents]
    return carry_out(
        PlannedChange(
            plan=plan_to_blocks(rows),
            needs_consent=True,
            progress_text=f"{what}ing",
            apply=lambda: change(installer, refs, agents),
            to_dict=lambda links: {"plan": rows, done: list(links or ())},
            report=lambda links: [line(f"{done.capitalize()} ", (link, "name")) for link in links],
            declined_text=f"Nothing was {done}.",
            issues=lambda: installer.issues,
        ),
        yes=yes,
        as_data=as_data,
        dry_run=dry_run,
    )

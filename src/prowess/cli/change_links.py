"""The change that ``link`` and ``unlink`` make: links of installed skills for agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.cli.change_flow import ChangeFlags, PlannedChange, carry_out, plan_to_blocks
from prowess.cli.install_options import find_install_refs
from prowess.cli.render.blocks import line
from prowess.install.installer import Installer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    LinkChange = Callable[[Installer, Sequence[str], Sequence[str]], tuple[str, ...]]
    """A method of the installer that makes or removes links of installs for agents, and returns their paths."""


def change_links(verb: str, change: LinkChange, names: Sequence[str], agents: Sequence[str], flags: ChangeFlags) -> int:
    """Plan, confirm, apply and report a change of links; ``verb`` is ``link`` or ``unlink``. Return the exit status."""
    installer, past_verb = Installer(), f"{verb}ed"
    refs = find_install_refs(installer, names)
    steps = [f"{verb} {ref} for {agent}" for ref in refs for agent in agents]
    return carry_out(
        PlannedChange(
            plan=plan_to_blocks(steps),
            needs_consent=True,
            progress_text=f"{verb}ing",
            apply=lambda: change(installer, refs, agents),
            to_dict=lambda links: {"plan": steps, past_verb: list(links or ())},
            report=lambda links: [line(f"{past_verb.capitalize()} ", (link, "name")) for link in links],
            declined_text=f"Nothing was {past_verb}.",
            issues=lambda: installer.issues,
        ),
        flags,
    )

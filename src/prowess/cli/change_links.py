"""The change that ``link`` and ``unlink`` make: links of installed skills for agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.cli.change_flow import ChangeFlags, PlannedChange, carry_out, plan_to_blocks
from prowess.cli.install_options import find_installs, find_location
from prowess.cli.render.blocks import line
from prowess.install.installer import Installer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    import prowess
    from prowess.cli.options import AskedLocation


def change_links(
    verb: Literal["link", "unlink"],
    names: Sequence[str],
    agents: Sequence[str],
    asked: AskedLocation,
    flags: ChangeFlags,
) -> int:
    """Plan, confirm, apply and report a change of links. Return the exit status."""
    installer, past_verb = Installer(), f"{verb}ed"
    installs = find_installs(installer, names, find_location(installer, asked))
    steps = [f"{verb} {ref} for {agent}" for found in installs for ref in found.refs for agent in agents]
    change = installer.link if verb == "link" else installer.unlink
    issues: list[prowess.Issue] = []

    def change_all() -> list[str]:
        links: list[str] = []
        for found in installs:
            try:
                links += change(found.refs, agents, location=found.scope.location)
            finally:
                issues.extend(installer.issues)
        return links

    return carry_out(
        PlannedChange(
            plan=plan_to_blocks(steps),
            needs_consent=True,
            progress_text=f"{verb}ing",
            apply=change_all,
            to_dict=lambda links: {"plan": steps, past_verb: list(links or ())},
            report=lambda links: [line(f"{past_verb.capitalize()} ", (link, "name")) for link in links],
            declined_text=f"Nothing was {past_verb}.",
            issues=lambda: issues,
        ),
        flags,
    )

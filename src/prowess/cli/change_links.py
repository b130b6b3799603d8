"""The change that ``link`` and ``unlink`` make: links of installed skills for agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.changes.links import prepare_links
from prowess.cli.change_flow import ChangeFlags, ChangeView, carry_out
from prowess.cli.install_options import find_installs, find_location
from prowess.cli.render.blocks import line
from prowess.install.installer import Installer
from prowess.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

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
    refs = {found.scope: found.refs for found in find_installs(installer, names, find_location(installer, asked))}
    change = prepare_links(installer, refs, agents, adds=verb == "link", limits=DEFAULT_LIMITS)
    view: ChangeView[list[str]] = ChangeView(
        progress_text=f"{verb}ing",
        to_dict=lambda links: {"plan": [*change.steps], past_verb: list(links or ())},
        report=lambda links: [line(f"{past_verb.capitalize()} ", (link, "name")) for link in links],
        declined_text=f"Nothing was {past_verb}.",
    )
    return carry_out(change, view, flags)

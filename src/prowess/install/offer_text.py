"""An offer and the plan of its install in lines for people, wherever these are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from prowess.install.offer import Offer
    from prowess.install.plan import Plan

_SHORT_ID_LENGTH = 12


def summarize_offer(offer: Offer) -> str:
    """Return one line: the commit, its date, the number of skills and files, and the size."""
    commit = f"commit {offer.commit[:_SHORT_ID_LENGTH]}" if offer.commit else ""
    date = f"{offer.date:%Y-%m-%d}" if offer.date else ""
    size = format_count(offer.bytes, "byte")
    # A large source is fetched in part: until something is installed, the size is that of SKILL.md files alone.
    size = size if offer.is_complete else f"{size} of SKILL.md files fetched so far"
    parts = (commit, date, format_count(len(offer.skills), "skill"), format_count(offer.files, "file"), size)
    return ", ".join(part for part in parts if part)


def describe_plan(plan: Plan, offer: Offer) -> list[str]:
    """Return the steps of an install, each as a line: the commit, the skills and the agents by name."""
    fetch, *rest = str(plan).splitlines()
    names = ", ".join(skill.name for skill in offer.skills)
    agents = [f"show it to {', '.join(plan.seen_by)}"] if plan.seen_by else []
    return [fetch, f"take {summarize_offer(offer)}: {names}", *agents, *rest]

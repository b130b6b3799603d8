"""What a source offers, for people and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.cli.blocks import Title, line
from prowess.cli.installing import issue_data
from prowess.spec.counted import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    import prowess
    from prowess.cli.blocks import Block

_SHOWN = 5
_SHORT_ID = 12


def offer_blocks(offer: prowess.Offer) -> Iterator[Block]:
    """An offer for people: the source, then each skill."""
    yield Title(str(offer.spec), offer_summary(offer))
    for skill in offer.skills:
        yield from skill_blocks(skill)


def offer_summary(offer: prowess.Offer) -> str:
    """The commit, its date, and how much there is, in one line."""
    commit = f"commit {offer.commit[:_SHORT_ID]}" if offer.commit else ""
    date = f"{offer.date:%Y-%m-%d}" if offer.date else ""
    size = counted(offer.bytes, "byte")
    size = size if offer.is_complete else f"{size} of SKILL.md files fetched so far"
    parts = (commit, date, counted(len(offer.skills), "skill"), counted(offer.files, "file"), size)
    return ", ".join(part for part in parts if part)


def skill_blocks(skill: prowess.OfferedSkill) -> Iterator[Block]:
    """One offered skill for people: what it is, what it costs, what of it could run, what is wrong with it."""
    internal = (("  only when it is named", "dim"),) if skill.is_internal else ()
    cost = f"  {skill.listing_tokens:,} tokens to list, {skill.body_tokens:,} to load"
    yield line((skill.name, "name"), (cost, "dim"), *internal, indent=2)
    yield line(" ".join(skill.description.split()), indent=4, cut=True)
    for what, texts in (
        ("would run", skill.commands),
        ("could run", skill.scripts),
        ("asks for", skill.powers),
    ):
        if texts:
            yield line((f"{what}: ", "warn"), _some(texts), indent=4)
    for issue in skill.issues:
        if issue.severity != "info":
            yield line((f"{issue.severity}: ", "warn"), f"[{issue.code}] {issue.field} {issue.message}", indent=4)


def _some(texts: tuple[str, ...]) -> str:
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return ", ".join(" ".join(text.split()) for text in texts[:_SHOWN]) + more


def offer_data(offer: prowess.Offer) -> dict[str, object]:
    """An offer as data."""
    return {
        "source": str(offer.spec),
        "commit": offer.commit,
        "date": offer.date.isoformat() if offer.date else None,
        "bytes": offer.bytes,
        "complete": offer.is_complete,
        "skills": [_skill_data(skill) for skill in offer.skills],
        "issues": [issue_data(issue) for issue in offer.issues],
    }


def _skill_data(skill: prowess.OfferedSkill) -> dict[str, object]:
    return {
        "name": skill.name,
        "description": skill.description,
        "folder": skill.folder,
        "listing_tokens": skill.listing_tokens,
        "body_tokens": skill.body_tokens,
        "files": list(skill.files),
        "bytes": skill.bytes,
        "complete": skill.is_complete,
        "commands": list(skill.commands),
        "scripts": list(skill.scripts),
        "powers": list(skill.powers),
        "internal": skill.is_internal,
        "issues": [issue_data(issue) for issue in skill.issues],
    }

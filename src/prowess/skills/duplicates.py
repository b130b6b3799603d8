"""Two skills of one name: whether they are one file, identical copies or two skills, and which of them wins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.errors import SkillError, SourceError

if TYPE_CHECKING:
    from prowess.skills.skill import Skill


def check_server_labels(first: Skill, second: Skill) -> None:
    """Raise ``SourceError`` (``duplicate-label``) for skills of two servers that have one label."""
    # Approvals know a skill by the label of its server: one server's skill must not pass for the other's.
    if first.source_label and first.source_label == second.source_label and first.server != second.server:
        message = f"{first.name!r} is a skill of two servers, and both are {first.source_label}"
        raise SourceError(message, first.location, "duplicate-label")


def may_be_identical(first: Skill, second: Skill) -> bool:
    """True when two skills of one name may be identical copies for several agents, as far as is known without hashing.

    Both are in standard places of one scope, and their SKILL.md files have one size.
    """
    if first.scope is None or first.scope is not second.scope or first.identity is None or second.identity is None:
        return False
    return first.is_local and second.is_local and first.identity[2] == second.identity[2]


def find_identical_copies(winners: dict[str, Skill], losers: dict[str, Skill]) -> set[str]:
    """The locations of the losers whose files are all equal to those of the winner of their name."""
    # Each winner is hashed once, however many copies lost to it.
    digests = {name: _try_digest(winners[name]) for name in {lost.name for lost in losers.values()} if name in winners}
    return {location for location, lost in losers.items() if (digests.get(lost.name) or "none") == _try_digest(lost)}


def _try_digest(skill: Skill) -> str:
    """The digest of a skill; ``""`` for a folder that cannot be hashed, which then equals no other."""
    try:
        return skill.digest()
    except (SkillError, OSError):
        return ""

"""Two skills of one name: whether they are one file, identical copies or two skills, and which of them wins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.errors import SkillError, SourceError
from prowess.model import SkillScope

if TYPE_CHECKING:
    from prowess.model import OnDuplicate
    from prowess.skills.skill import Skill


def check_server_labels(one: Skill, other: Skill) -> None:
    """Raise where two servers have one label: no skill of one may stand for a skill of the other."""
    if one.source_label and one.source_label == other.source_label and one.server != other.server:
        message = f"{one.name!r} is a skill of two servers, and both are {one.source_label}"
        raise SourceError(message, one.location, "duplicate-label")


def is_same_file(one: Skill, other: Skill) -> bool:
    return one.identity is not None and other.identity is not None and one.identity[:2] == other.identity[:2]


def may_be_identical(one: Skill, other: Skill) -> bool:
    """True when two skills of one name may be copies for several agents: in standard places, their files as long."""
    if one.scope is None or one.scope is not other.scope or one.identity is None or other.identity is None:
        return False
    return one.is_local and other.is_local and one.identity[2] == other.identity[2]


def find_identical_copies(winners: dict[str, Skill], losers: dict[str, Skill]) -> set[str]:
    """The locations of the losers that have the same files as the winner of their name; each is hashed once."""
    digests = {name: _try_digest(winners[name]) for name in {lost.name for lost in losers.values()} if name in winners}
    return {location for location, lost in losers.items() if (digests.get(lost.name) or "none") == _try_digest(lost)}


def _try_digest(skill: Skill) -> str:
    """The digest of a skill; ``""`` for a folder that cannot be hashed, which is then like no other."""
    try:
        return skill.digest()
    except (SkillError, OSError):
        return ""


def explain_winner(winner: Skill, loser: Skill, on_duplicate: OnDuplicate) -> str:
    if winner.scope is SkillScope.PROJECT and loser.scope is SkillScope.USER:
        return "a project's skill wins over the user's"
    return f"the {on_duplicate} one found wins"

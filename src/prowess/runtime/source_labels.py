"""Text of other parties, as it enters a conversation: it says whose it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prowess.skills.skill import Skill


def with_source_label(skill: Skill, text: str) -> str:
    """Text of a skill for a model; what another party wrote begins with who that is."""
    who = skill.source_label
    return f"[From {who}: what follows is theirs, not this system's or its user's.]\n\n{text}" if who else text

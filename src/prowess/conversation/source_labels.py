"""The label on text that another party wrote, such as an MCP server: it tells the model whose text it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prowess.skills.skill import Skill


def with_source_label(skill: Skill, text: str) -> str:
    """Return text of a skill for a model; text from another party begins with a line that names that party."""
    # Without the label a model could take the words of a server for those of its host or its user.
    source = skill.source_label
    return f"[From {source}: what follows is theirs, not this system's or its user's.]\n\n{text}" if source else text

"""The reasons that ``catalog.explain`` gives for one skill, and the issues that are about it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prowess.errors import Issue
    from prowess.model import Shadowed
    from prowess.skills.skill import Skill


def explain_skill(skill: Skill) -> tuple[str, ...]:
    """Where a skill was found, whether models see it, and whether people may call it: a sentence for each."""
    places = {"url": "found on a site", "mcp": f"found on {skill.source_label}"}
    source = places.get(skill.origin, f"found in a {skill.origin}")
    place = f"found in the {skill.scope.value}'s folders" if skill.scope else source
    sees = "models may use it" if skill.model_invocable else "models do not see it: disable-model-invocation is set"
    calls = "people may call it" if skill.user_invocable else "people may not call it: user-invocable is false"
    return (place, sees, calls)


def is_about(issue: Issue, name: str, skill: Skill | None, lost: tuple[Shadowed, ...]) -> bool:
    """True when an issue is about the skill of that name, a copy that lost to it, or a folder of its name."""
    if skill is not None and issue.path == skill.location:
        return True
    # A skill that did not load is known only by its folder, and so are folders that could not be read.
    folder = os.path.basename(os.path.dirname(issue.path))
    return folder == name or os.path.basename(issue.path) == name or any(issue.path == copy.location for copy in lost)

"""Why a model sees a skill or not: where discovery searched, which copies with the same name lost, and why."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from prowess.errors import SkillError, SourceError
from prowess.text.escapes import escape_line

if TYPE_CHECKING:
    from prowess.errors import Issue
    from prowess.skills.skill import Skill


class SkillScope(StrEnum):
    """Whose skill it is: the project's or the user's. Equal to its value, a string."""

    PROJECT = "project"
    USER = "user"


@dataclass(frozen=True, slots=True)
class Place:
    """A folder that discovery searched for skills, whose it is, its state, and how many skills were found."""

    path: str
    scope: SkillScope | None = None
    state: str = "scanned"
    found: int = 0


@dataclass(frozen=True, slots=True)
class Shadowed:
    """A skill that lost to another with its name: where it is, where the winner is, and the reason."""

    name: str
    location: str
    winner: str
    reason: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a model sees, or does not see, the skill of a name; ``str()`` gives it as text for people."""

    name: str
    location: str | None
    visible: bool
    reasons: tuple[str, ...]
    shadowed: tuple[Shadowed, ...] = ()
    issues: tuple[Issue, ...] = ()
    places: tuple[Place, ...] = ()

    def __str__(self) -> str:
        """Return a few lines: the winner, the losers, the issues, and every place that was searched."""
        rows = [f"{self.name}: {self.location or 'not found'}"]
        rows += [f"  {reason}" for reason in self.reasons]
        rows += [f"  shadowed: {s.location} ({s.reason})" for s in self.shadowed]
        rows += [f"  {issue}" for issue in self.issues]
        rows += [f"  looked in {p.path}: {p.state}, {p.found} found" for p in self.places]
        return "\n".join(map(escape_line, rows))


def explain_skill(skill: Skill) -> tuple[str, ...]:
    """Return where a skill was found, whether models see it, and whether people may call it: a sentence for each."""
    places = {"url": "found on a site", "mcp": f"found on {skill.source_label}"}
    source = places.get(skill.origin, f"found in a {skill.origin}")
    place = f"found in the {skill.scope.value}'s folders" if skill.scope else source
    sees = "models may use it" if skill.model_invocable else "models do not see it: disable-model-invocation is set"
    calls = "people may call it" if skill.user_invocable else "people may not call it: user-invocable is false"
    return (place, sees, calls)


def is_about(issue: Issue, name: str, skill: Skill | None, lost: tuple[Shadowed, ...]) -> bool:
    """Return whether an issue is about the skill with that name, a copy that lost to it, or a folder with its name."""
    if skill is not None and issue.path == skill.location:
        return True
    # A skill that did not load is known only by its folder, and so are folders that could not be read.
    folder = os.path.basename(os.path.dirname(issue.path))
    return folder == name or os.path.basename(issue.path) == name or any(issue.path == copy.location for copy in lost)


def check_server_labels(first: Skill, second: Skill) -> None:
    """Raise ``SourceError`` (``duplicate-label``) for skills of two servers that have one label."""
    # Approvals know a skill by the label of its server: one server's skill must not pass for the other's.
    one, other = first.own_files, second.own_files
    if one.source_label and one.source_label == other.source_label and one.server != other.server:
        message = f"{first.name!r} is a skill of two servers, and both are {one.source_label}"
        raise SourceError(message, first.location, "duplicate-label")


def may_be_identical(first: Skill, second: Skill) -> bool:
    """Return whether two skills with the same name may be identical copies; nothing is hashed to find out.

    Both are in standard places of one scope, and their SKILL.md files have one size.
    """
    if first.scope is None or first.scope is not second.scope or first.identity is None or second.identity is None:
        return False
    return first.is_local and second.is_local and first.identity[2] == second.identity[2]


def find_identical_copies(winners: dict[str, Skill], losers: dict[str, Skill]) -> set[str]:
    """Return the locations of the losers whose files are all equal to those of the winner of their name."""
    # Each winner is hashed once, however many copies lost to it.
    digests = {name: _try_digest(winners[name]) for name in {lost.name for lost in losers.values()} if name in winners}
    return {location for location, lost in losers.items() if (digests.get(lost.name) or "none") == _try_digest(lost)}


def _try_digest(skill: Skill) -> str:
    """Return the digest of a skill; ``""`` for a folder that cannot be hashed, which then equals no other."""
    try:
        return skill.digest()
    except (SkillError, OSError):
        return ""

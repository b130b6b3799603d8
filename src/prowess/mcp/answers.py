"""The answer to a request, with what the server has to know about it before it sends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from prowess.files.identity import identity_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from prowess.skills.skill import Skill

    Result = dict[str, Any]
    AnswerState = Literal["current", "skill-changed", "skills-gone"]


class Answer(NamedTuple):
    """The result of a request, and whether the disk has moved on since the snapshot that it was made from."""

    result: Result
    state: AnswerState = "current"
    """``skill-changed``: the SKILL.md of the skill is not the one that was loaded. ``skills-gone``: skills of the
    snapshot are no longer on the disk, and the result leaves them out."""


class LargeFile(NamedTuple):
    """A file so large that the server reads only a few of its size at once; ``read`` makes the answer."""

    read: Callable[[], Answer]


def answer_about_skill(skill: Skill | None, result: Result) -> Answer:
    """Return the result as an answer, marked ``skill-changed`` when the skill's SKILL.md has changed since the load.

    Instructions are read when a client asks for them, but the name and the fields are as old as the snapshot: an
    answer that mixes both may contradict itself.
    """
    return Answer(result, "skill-changed" if skill is not None and has_changed(skill) else "current")


def has_changed(skill: Skill) -> bool:
    """Return whether the SKILL.md of a skill on this machine is not the one that was loaded, or is gone."""
    known = skill.identity if skill.is_local else None
    return known is not None and identity_at(skill.location) != known

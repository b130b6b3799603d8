"""Skills that arrive while a client is connected: its model is told once, in the answer to a tool call.

Every client is notified that the tools have changed, but Claude Code and Codex go on showing their model the first
listing for as long as the conversation lasts (tests/clients measures it). Only the answer of a tool reaches such a
model later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.skills.skill import Skill


class NewSkills:
    """Remembers which skills the model of the server's one client knows: from the listing, an answer, or a load."""

    def __init__(self) -> None:
        self._known_to_model: set[str] = set()
        self._has_changed = False

    def record_change(self, before: Iterable[Skill]) -> None:
        """Remember that the listing has changed; ``before`` are the skills that it had."""
        if not self._has_changed:  # the model saw only the first listing: skills of later ones are told in answers
            self._known_to_model.update(skill.name for skill in before)
            self._has_changed = True

    def take_new(self, listed: Iterable[Skill], called: object) -> list[Skill]:
        """Return the listed skills that the model does not know, each skill once.

        ``called`` is the name in the arguments of the call, a skill that the model knows from now on.
        """
        if isinstance(called, str):
            self._known_to_model.add(called)
        if not self._has_changed:
            return []
        new = [skill for skill in listed if skill.name not in self._known_to_model]
        self._known_to_model.update(skill.name for skill in new)
        return new

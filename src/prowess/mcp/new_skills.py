"""Skills that came while a client was connected, told once to its model in the answer to a call.

Claude Code and Codex are told that the tools have changed, as every client is, and show their model the listing of
before for as long as the conversation lasts (tests/clients measures it). What a tool answers is the one text that
reaches such a model later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.skills.skill import Skill


class NewSkills:
    """Knows which skills the model of a server's one client has been shown, listed or told, and which it has loaded."""

    def __init__(self) -> None:
        self._known_to_model: set[str] = set()
        self._has_changed = False

    def record_change(self, before: Iterable[Skill]) -> None:
        """Take note that the listing has changed; ``before`` are the skills that it had."""
        if not self._has_changed:  # what is listed later has to be told first
            self._known_to_model.update(skill.name for skill in before)
            self._has_changed = True

    def take_new(self, listed: Iterable[Skill], called: object) -> list[Skill]:
        """Those of the listed skills that the model has not been shown, each only once; ``called`` it has loaded."""
        if isinstance(called, str):
            self._known_to_model.add(called)
        if not self._has_changed:
            return []
        new = [skill for skill in listed if skill.name not in self._known_to_model]
        self._known_to_model.update(skill.name for skill in new)
        return new

"""Whether skills are trusted, for commands that show it: only skills that somebody granted are hashed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.errors import NotTrustedError
from prowess.files.projects import config_home

if TYPE_CHECKING:
    import prowess


class TrustStates:
    """The grants of this user, read once."""

    def __init__(self) -> None:
        self._trust: prowess.Trust | None = None
        self._granted_skills: frozenset[str] = frozenset()
        path = os.path.join(config_home(os.path.expanduser("~"), os.environ), "prowess", "trust.json")
        if os.path.lexists(path):
            from prowess.runtime.acting.trust import Trust  # noqa: PLC0415 - only where there are grants

            self._trust = Trust()
            try:
                self._granted_skills = frozenset(
                    where for grant in self._trust for where in (grant.location, grant.name)
                )
            except NotTrustedError:
                self._trust = None

    def find_state(self, skill: prowess.Skill) -> str:
        """``trusted``, ``changed since trusted`` where another state of it was granted, or ``""``."""
        if self._trust is None or not self._granted_skills.intersection((skill.location, skill.name)):
            return ""
        if self._trust.is_trusted(skill):
            return "trusted"
        return "changed since trusted" if skill.location in self._granted_skills else ""

"""Whether skills are trusted, for those who show many of them. Only skills with a grant are hashed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.errors import NotTrustedError

if TYPE_CHECKING:
    from prowess.conversation.acting.trust import Trust
    from prowess.skills.skill import Skill


class TrustStates:
    """The grants of a user, read once."""

    def __init__(self, trust: Trust) -> None:
        self._trust = trust
        try:
            self._granted_skills = frozenset(key for grant in trust for key in (grant.location, grant.name))
        except NotTrustedError:  # a file that others may write grants nothing; 'prowess doctor' says why
            self._granted_skills = frozenset()

    def find_state(self, skill: Skill) -> str:
        """Return ``trusted``, ``changed since trusted`` if an earlier state has a grant, or ``""``."""
        # Fast path: hashing reads every file of a skill, so a skill without any grant is not hashed.
        if not self._granted_skills.intersection((skill.location, skill.name)):
            return ""
        if self._trust.is_trusted(skill):
            return "trusted"
        return "changed since trusted" if skill.location in self._granted_skills else ""

"""Whether skills are trusted, for commands that show it. Only skills with a grant are hashed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.errors import NotTrustedError
from prowess.files.projects import user_config_file

if TYPE_CHECKING:
    import prowess


class TrustStates:
    """The grants of this user, read once for a command."""

    def __init__(self) -> None:
        self._trust: prowess.Trust | None = None
        self._granted_skills: frozenset[str] = frozenset()
        # The path that Trust itself uses; it is looked for without loading the runtime.
        path = user_config_file("trust.json")
        if os.path.lexists(path):
            # 'prowess list' without grants loads no runtime: it only looks for the file.
            from prowess.runtime.acting.trust import Trust  # noqa: PLC0415 - see above

            self._trust = Trust()
            try:
                self._granted_skills = frozenset(key for grant in self._trust for key in (grant.location, grant.name))
            except NotTrustedError:  # a file that others may write grants nothing; 'prowess doctor' says why
                self._trust = None

    def find_state(self, skill: prowess.Skill) -> str:
        """Return ``trusted``, ``changed since trusted`` if an earlier state has a grant, or ``""``."""
        # Fast path: hashing reads every file of a skill, so a skill without any grant is not hashed.
        if self._trust is None or not self._granted_skills.intersection((skill.location, skill.name)):
            return ""
        if self._trust.is_trusted(skill):
            return "trusted"
        return "changed since trusted" if skill.location in self._granted_skills else ""

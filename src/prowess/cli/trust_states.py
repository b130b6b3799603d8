"""Whether skills are trusted, for commands that show it. Without any grant nothing is loaded."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.files.projects import user_config_file

if TYPE_CHECKING:
    import prowess
    from prowess.conversation.acting import trust_states


class LazyTrustStates:
    """The grants of this user, read once for a command.

    It has the answers of ``prowess.conversation.acting.trust_states.TrustStates``, which is loaded only where there are
    grants.
    """

    def __init__(self) -> None:
        self._states: trust_states.TrustStates | None = None
        # The path that Trust itself uses. 'prowess list' without grants does not load `conversation`: it only looks
        # for the file.
        if os.path.lexists(user_config_file("trust.json")):
            from prowess.conversation.acting import trust, trust_states

            self._states = trust_states.TrustStates(trust.Trust())

    def find_state(self, skill: prowess.Skill) -> str:
        """Return ``trusted``, ``changed since trusted`` if an earlier state has a grant, or ``""``."""
        return "" if self._states is None else self._states.find_state(skill)

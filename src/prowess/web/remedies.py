"""Remedies in the words of the console, for codes whose hint in the library names a Python keyword."""

from __future__ import annotations

from typing import Protocol

REPLACE_TITLE = "Replace what is there"
ROLLBACK_TITLE = "Follow sources that went back to an older state"
REMOVE_TITLE = "Remove what nothing asks for any more"
REMEDIES: dict[str, str] = {
    "address-refused": "say 'prowess install --allow-private' if that machine is meant",
    "already-installed": f"ask for an update of it, or tick “{REPLACE_TITLE}” when you install it",
    "declared-no-more": f"declare it again in prowess.toml, or tick “{REMOVE_TITLE}” in a sync",
    "local-edits": "keep your changes elsewhere, or plan to overwrite them in an update, which keeps a backup",
    "name-taken": f"remove the other one, or tick “{REPLACE_TITLE}” when you install this one",
    "not-in-lock": f"take it over on the page of agents, or tick “{REMOVE_TITLE}” in a sync, which keeps a backup",
    "plain-http": "use https, or say 'prowess install --allow-http' if the network is trusted",
    "rolled-back": f"ask whoever publishes it; if going back is meant, tick “{ROLLBACK_TITLE}” in an update",
}


class HintedProblem(Protocol):
    """An error, an issue, a finding or the page of an error: it has a code, and the hint of the library."""

    @property
    def code(self) -> str:
        """The code of the problem."""

    @property
    def hint(self) -> str:
        """What the library says to do about it."""


def find_remedy(problem: HintedProblem) -> str:
    """Return what to do about a problem, in the words of the console; ``""`` if nothing is known."""
    return REMEDIES.get(problem.code) or problem.hint

"""Approvals: which skills of MCP servers may name tools, each for one state of its files.

They are a small JSON file of the user's. An approval ends when a file of the skill changes. It lets the tools that the
skill names count, and nothing else that the skill asks for. No script of such a skill ever runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prowess.errors import SourceError
from prowess.files.owned_json import OwnedJson
from prowess.files.paths import as_absolute
from prowess.files.projects import user_config_file

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from prowess.skills.skill import Skill

    States = dict[str, str]
    """The approved state of a skill by its location."""


class Approvals:
    """The approvals of a user, by server label and address of the skill, each for one set of files."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._path = as_absolute(path if path is not None else user_config_file("approvals.json"), "path")
        self._file = OwnedJson(self._path, "approvals", "approval-store")

    def __repr__(self) -> str:
        """Show the path of the file."""
        return f"Approvals({self._path!r})"

    def approve(self, skill: Skill) -> None:
        """Let the tools that a skill names count, for as long as its files are what its server lists now.

        Raises ``SourceError`` for a skill that is not from an MCP server.
        """
        if skill.origin != "mcp":
            raise SourceError(f"skill {skill.name!r} is not a skill of an MCP server")
        self._update_file(lambda states: {**states, skill.location: str(skill.state)})

    def revoke(self, skill: Skill) -> bool:
        """Take the approval of a skill back, and return whether there was one."""
        was_approved = skill.location in self._read()
        self._update_file(lambda states: {key: value for key, value in states.items() if key != skill.location})
        return was_approved

    def is_approved(self, location: str, state: str) -> bool:
        """Return whether a person approved the skill at ``location`` in this ``state`` of its files.

        An approval of another state ends here, so that it does not come back when the files do.
        """
        known = self._read().get(location)
        if known is not None and known != state:
            self._update_file(lambda states: {key: value for key, value in states.items() if key != location})
        return known == state

    def expire(self, states: Mapping[str, str]) -> None:
        """End the approvals of the skills whose files have changed. ``states`` holds the new state by location.

        The file of the approvals is read once for all of them, and written only when an approval ends.
        """
        # Most listings end no approval, so the file is first read without a lock.
        if any(states.get(location, known) != known for location, known in self._read().items()):
            self._update_file(
                lambda approved: {key: value for key, value in approved.items() if states.get(key, value) == value}
            )

    # -- the file ----------------------------------------------------------------------------------------------------

    def _read(self) -> States:
        return self._file.read(_parse_states) or {}

    def _update_file(self, change: Callable[[States], States]) -> None:
        # Read again while the file is locked: another process may have changed it since.
        self._file.update(lambda: {"version": 1, "approvals": dict(sorted(change(self._read()).items()))})


def _parse_states(content: Any) -> States:
    # What a later Prowess wrote is not understood, and approves nothing.
    return {str(key): str(value) for key, value in content["approvals"].items()} if content["version"] == 1 else {}

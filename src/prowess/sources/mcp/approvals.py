"""Approvals: what a person allowed a skill of an MCP server, for one state of it. When a file changes, it is over.

They are a small JSON file of the user's. An approval lets the tools that a skill names count, and no other wish of it;
nothing of it ever runs.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from prowess.arguments import as_absolute
from prowess.errors import SourceError
from prowess.files.owned_json import OwnedJson
from prowess.files.projects import config_home

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from prowess.skills.skill import Skill

    Rows = dict[str, str]


def default_approvals_file() -> str:
    """Where the approvals of this user are: ``prowess/approvals.json`` in the user's configuration."""
    return os.path.join(config_home(os.path.expanduser("~"), os.environ), "prowess", "approvals.json")


class Approvals:
    """The approvals of a user, by server label and address of the skill, each for one set of files."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._path = as_absolute(path if path is not None else default_approvals_file(), "path")
        self._file = OwnedJson(self._path, "approvals", "approval-store")

    def __repr__(self) -> str:
        """The file."""
        return f"Approvals({self._path!r})"

    def approve(self, skill: Skill) -> None:
        """Let the tools that a skill names count, as long as its files are what its server lists now."""
        if skill.origin != "mcp":
            raise SourceError(f"skill {skill.name!r} is no skill of an MCP server")
        self._update_file(lambda rows: {**rows, skill.location: str(skill.state)})

    def revoke(self, skill: Skill) -> bool:
        """Take it back; whether there was one."""
        had = skill.location in self._read()
        self._update_file(lambda rows: {key: value for key, value in rows.items() if key != skill.location})
        return had

    def is_approved(self, location: str, state: str) -> bool:
        """Whether a person approved this very set of files; an approval of another set ends here."""
        known = self._read().get(location)
        if known is not None and known != state:
            self._update_file(lambda rows: {key: value for key, value in rows.items() if key != location})
        return known == state

    def expire(self, states: Mapping[str, str]) -> None:
        """End the approvals of those locations whose files are others now, all with one look at the file."""
        if any(states.get(where, known) != known for where, known in self._read().items()):
            self._update_file(
                lambda rows: {key: value for key, value in rows.items() if states.get(key, value) == value}
            )

    # -- the file ----------------------------------------------------------------------------------------------------

    def _read(self) -> Rows:
        return self._file.read(_parse_rows) or {}

    def _update_file(self, change: Callable[[Rows], Rows]) -> None:
        self._file.update(lambda: {"version": 1, "approvals": dict(sorted(change(self._read()).items()))})


def _parse_rows(content: Any) -> Rows:  # noqa: ANN401 - any JSON
    if content["version"] != 1:
        return {}
    return {str(key): str(value) for key, value in content["approvals"].items()}

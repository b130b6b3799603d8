"""Approvals: what a person allowed a skill of an MCP server, for one state of it. When a file changes, it is over.

They are a small JSON file of the user's. An approval lets the tools that a skill names count, and no other wish of it;
nothing of it ever runs.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from prowess.errors import NotTrustedError, ResourceError, ResourceNotFoundError, SourceError
from prowess.files.reading import OpenFile
from prowess.files.writing import make_folders, write_atomic
from prowess.library.places import config_home

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from prowess.library.skill import Skill

    Rows = dict[str, str]

_MOST_BYTES = 16 << 20
_OTHERS_WRITE = 0o022


def default_approvals_file() -> str:
    """Where the approvals of this user are: ``prowess/approvals.json`` in the user's configuration."""
    return os.path.join(config_home(os.path.expanduser("~"), os.environ), "prowess", "approvals.json")


class Approvals:
    """The approvals of a user, by server label and address of the skill, each for one set of files."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._path = os.path.abspath(os.fspath(path) if path is not None else default_approvals_file())

    def __repr__(self) -> str:
        """The file."""
        return f"Approvals({self._path!r})"

    def approve(self, skill: Skill) -> None:
        """Let the tools that a skill names count, as long as its files are what its server lists now."""
        if skill.origin != "mcp":
            raise SourceError(f"skill {skill.name!r} is no skill of an MCP server")
        self._change(lambda rows: {**rows, skill.location: str(skill.state)})

    def revoke(self, skill: Skill) -> bool:
        """Take it back; whether there was one."""
        had = skill.location in self._read()
        self._change(lambda rows: {key: value for key, value in rows.items() if key != skill.location})
        return had

    def is_approved(self, location: str, state: str) -> bool:
        """Whether a person approved this very set of files; an approval of another set ends here."""
        known = self._read().get(location)
        if known is not None and known != state:
            self._change(lambda rows: {key: value for key, value in rows.items() if key != location})
        return known == state

    def expire(self, states: Mapping[str, str]) -> None:
        """End the approvals of those locations whose files are others now, all with one look at the file."""
        if any(states.get(where, known) != known for where, known in self._read().items()):
            self._change(lambda rows: {key: value for key, value in rows.items() if states.get(key, value) == value})

    # -- the file ----------------------------------------------------------------------------------------------------

    def _read(self) -> Rows:
        folder, name = os.path.split(self._path)
        try:
            with OpenFile(folder, (name,)) as file:
                self._check_owner(file.info)
                data = json.loads(file.read_all(_MOST_BYTES))
            return {str(key): str(value) for key, value in data["approvals"].items()} if data["version"] == 1 else {}
        except ResourceNotFoundError:
            return {}
        except ResourceError as error:
            raise NotTrustedError(f"cannot read the approvals: {error.message}", self._path, "approval-store") from None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise NotTrustedError("the file with the approvals is damaged", self._path, "approval-store") from None

    def _check_owner(self, info: os.stat_result) -> None:
        if hasattr(os, "geteuid") and (info.st_uid != os.geteuid() or info.st_mode & _OTHERS_WRITE):
            message = "the file with the approvals belongs to somebody else, or others may write to it"
            raise NotTrustedError(message, self._path, "approval-store")

    def _change(self, change: Callable[[Rows], Rows]) -> None:
        from filelock import FileLock, Timeout  # noqa: PLC0415 - only when something is approved or revoked

        make_folders(os.path.dirname(self._path), 0o700)
        try:
            with FileLock(f"{self._path}.lock", timeout=10, mode=0o600):
                rows = change(self._read())
                data = {"version": 1, "approvals": dict(sorted(rows.items()))}
                write_atomic(self._path, json.dumps(data, indent=2).encode() + b"\n")
        except Timeout:
            raise NotTrustedError("somebody else is changing the approvals", self._path, "approval-store") from None
        except OSError as error:
            message = f"cannot write the approvals: {error.strerror}"
            raise NotTrustedError(message, self._path, "approval-store") from None

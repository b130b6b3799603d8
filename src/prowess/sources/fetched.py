"""A source whose skills are fetched whole, without an install: each version into a folder of this process."""

from __future__ import annotations

import atexit
import os
from abc import ABC, abstractmethod
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, ClassVar, Literal

from prowess.errors import Issue, SkillError, SourceError
from prowess.files.delete import delete_tree, make_temporary_folder
from prowess.files.write import write_tree
from prowess.policy.files import current_policy
from prowess.policy.rules import to_address
from prowess.skills.catalog import Catalog
from prowess.skills.explanation import Place
from prowess.sources.directory import DirectorySource
from prowess.text.redaction import show_address

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from prowess.files.write import NewFile
    from prowess.limits import Limits


class FetchedSource(ABC):
    """The skills of a repository at the state that its version means when the source is loaded.

    The files of each state are in a folder of their own until the process ends: a conversation that has a skill of an
    earlier state active goes on with the files of that state.
    """

    kind: ClassVar[str]
    """The constructor of ``Source`` that makes it, which the names of its folders hold."""

    def __init__(
        self,
        address: str,
        *,
        missing: Literal["ignore", "error"] = "ignore",
        limits: Limits | None = None,
        mount_as: str = "",
        preload: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if missing not in {"ignore", "error"}:
            raise SourceError(f"missing must be 'ignore' or 'error', not {missing!r}")
        self._address, self._missing = address, missing
        self._keywords: dict[str, Any] = {
            "mount_as": mount_as,
            "preload": preload,
            "options": {**(options or {}), "limits": limits},
        }
        self._lock = Lock()
        self._folders: dict[str, str] = {}

    @abstractmethod
    def resolve(self) -> str:
        """Return the commit or the digest that the version means now."""

    @abstractmethod
    def read_files(self, state: str) -> Sequence[NewFile]:
        """Return the files of a commit or a digest."""

    def load(self) -> Catalog:
        """Return the skills of the state that the version means now.

        What cannot be fetched is an issue, and what was loaded last stays in use. Raises ``SkillError`` for it with
        ``missing="error"`` when nothing was loaded before.
        """
        with self._lock:
            try:
                return DirectorySource(self._fetch(), **self._keywords).load()
            except SkillError as error:
                if self._missing == "error" and not self._folders:
                    raise
                issue = Issue(error.code, "", error.message, show_address(self._address), 0, "warning")
        if not self._folders:
            return Catalog(issues=[issue], places=[Place(show_address(self._address), state="not fetched")])
        last = DirectorySource([*self._folders.values()][-1], **self._keywords).load()
        return Catalog(last.skills, issues=[*last.issues, issue], places=last.places)

    def _fetch(self) -> str:
        """Return the folder of the present state, which is fetched when it is another than before."""
        current_policy().check_source(to_address(self._address))
        state = self.resolve()
        folder = self._folders.pop(state, "")
        if not folder:
            files = self.read_files(state)
            folder = make_temporary_folder(f"prowess-{self.kind}-")
            atexit.register(_delete_folder, folder, os.getpid())
            write_tree(folder, files, read_only=True)
        self._folders[state] = folder  # the newest is the last
        return folder


def _delete_folder(path: str, owner: int) -> None:
    if os.getpid() == owner:  # a worker that was forked must not delete what its server still reads
        with suppress(OSError):
            delete_tree(path)

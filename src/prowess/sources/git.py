"""The skills of a git repository, fetched into a folder of this process without an install."""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Literal

from prowess.addresses.source_spec import parse_source
from prowess.errors import Issue, SkillError, SourceError
from prowess.fetch.cache import Cache
from prowess.fetch.git.repository import GitRemote, select_skill_files
from prowess.files.delete import delete_tree, make_temporary_folder
from prowess.files.write import write_tree
from prowess.limits import DEFAULT_LIMITS
from prowess.names import is_below
from prowess.skills.catalog import Catalog
from prowess.skills.explanation import Place
from prowess.sources.directory import DirectorySource
from prowess.text.redaction import show_address

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from prowess.limits import Limits


class GitSource:
    """The skills of a repository at the commit that its version means when the source is loaded.

    The files of each commit are in a folder of their own until the process ends: a conversation that has a skill of an
    earlier commit active goes on with the files of that commit.
    """

    def __init__(
        self,
        address: str,
        ref: str = "",
        *,
        path: str = "",
        missing: Literal["ignore", "error"] = "ignore",
        limits: Limits | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        spec = parse_source(address)
        if spec.kind != "git" and not spec.local:
            raise SourceError(f"{show_address(address)} is not a git repository", code="bad-address")
        if ref and spec.ref and ref != spec.ref:
            raise SourceError(f"{show_address(address)} names a version already, and ref is another: {ref!r}")
        if missing not in {"ignore", "error"}:
            raise SourceError(f"missing must be 'ignore' or 'error', not {missing!r}")
        self._address = os.path.abspath(os.path.expanduser(spec.address)) if spec.local else spec.address
        self._ref = ref or spec.ref
        self._path = "/".join(filter(None, (spec.subpath.strip("/"), path.strip("/"))))
        self._missing = missing
        self._options = {**(options or {}), "limits": limits}
        # A repository on this machine is not cached: asking it costs as much as reading the cache.
        cache = None if spec.local else Cache()
        self._remote = GitRemote(self._address, local=spec.local, limits=limits or DEFAULT_LIMITS, cache=cache)
        self._lock = Lock()
        self._folders: dict[str, str] = {}

    def __repr__(self) -> str:
        """Show the repository and the version."""
        return f"Source.git({show_address(self._address)!r}, {self._ref!r})"

    def load(self) -> Catalog:
        """Return the skills of the commit that the version means now.

        What cannot be fetched is an issue, and the commit that was loaded last stays in use. Raises ``GitError`` for it
        with ``missing="error"`` when nothing was loaded before.
        """
        with self._lock:
            try:
                return DirectorySource(self._fetch(), options=self._options).load()
            except SkillError as error:
                if self._missing == "error" and not self._folders:
                    raise
                issue = Issue(error.code, "", error.message, show_address(self._address), 0, "warning")
        if not self._folders:
            return Catalog(issues=[issue], places=[Place(show_address(self._address), state="not fetched")])
        last = DirectorySource([*self._folders.values()][-1], options=self._options).load()
        return Catalog(last.skills, issues=[*last.issues, issue], places=last.places)

    def _fetch(self) -> str:
        """Return the folder of the present commit, which is fetched when it is another than before."""
        commit_id = self._remote.resolve_ref(self._ref)
        folder = self._folders.pop(commit_id, "")
        if not folder:
            folder = make_temporary_folder("prowess-git-")
            atexit.register(_delete_folder, folder, os.getpid())
            with self._remote.open_commit(commit_id) as commit:
                chosen = [file for file in commit.files if not self._path or is_below(file.path, {self._path})]
                write_tree(folder, commit.read_files(select_skill_files(chosen), self._remote.limits), read_only=True)
        self._folders[commit_id] = folder  # the newest is the last
        return folder


def _delete_folder(path: str, owner: int) -> None:
    if os.getpid() == owner:  # a worker that was forked must not delete what its server still reads
        with suppress(OSError):
            delete_tree(path)

"""Sources that fetch whole versions into a folder of this process, without an install: git and OCI registries."""

from __future__ import annotations

import atexit
import os
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from operator import attrgetter
from threading import Lock
from typing import TYPE_CHECKING, ClassVar, Literal

from prowess.addresses.source_spec import parse_source
from prowess.errors import Issue, SkillError, SourceError
from prowess.fetch.cache import Cache
from prowess.fetch.git.repository import GitRemote, select_skill_files
from prowess.fetch.oci.pull import Repository
from prowess.fetch.oci.registry import Registry
from prowess.fetch.signers import check_signers, find_signed_tag
from prowess.fetch.url_policy import UrlPolicy
from prowess.files.delete import delete_tree, make_temporary_folder
from prowess.files.write import write_tree
from prowess.limits import DEFAULT_LIMITS
from prowess.names import select_below
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


class GitSource(FetchedSource):
    """The skills of a repository at the commit that its version means when the source is loaded."""

    kind = "git"

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
        shown = os.path.abspath(os.path.expanduser(spec.address)) if spec.local else spec.address
        super().__init__(shown, missing=missing, limits=limits, options=options)
        self._ref = ref or spec.ref
        self._path = "/".join(filter(None, (spec.subpath.strip("/"), path.strip("/"))))
        # A repository on this machine is not cached: asking it costs as much as reading the cache.
        cache = None if spec.local else Cache()
        self._remote = GitRemote(shown, local=spec.local, limits=limits or DEFAULT_LIMITS, cache=cache)

    def __repr__(self) -> str:
        """Show the repository and the version."""
        return f"Source.git({show_address(self._address)}, {self._ref!r})"

    def resolve(self) -> str:
        """Return the commit that the version means now."""
        return self._remote.resolve_ref(self._ref)

    def read_files(self, state: str) -> Sequence[NewFile]:
        """Return the files of the skills of a commit."""
        policy, version = current_policy(), f"{to_address(self._address)} at {self._ref or 'its newest commit'}"
        with self._remote.open_commit(state) as commit:
            if policy.find_rules("versions.signers"):
                check_signers(policy, find_signed_tag(self._remote, self._ref, commit, searches=True), version)
            policy.check_age(commit.date.timestamp() if commit.date else time.time(), version)
            chosen = select_below(commit.files, {self._path}, attrgetter("path"))
            return tuple(commit.read_files(select_skill_files(chosen), self._remote.limits))


class OciSource(FetchedSource):
    """The skills of a repository at the digest that its version means when the source is loaded."""

    kind = "oci"

    def __init__(
        self,
        address: str,
        ref: str = "",
        *,
        allowed: UrlPolicy = UrlPolicy(),  # noqa: B008 - a frozen default
        path: str = "",
        missing: Literal["ignore", "error"] = "ignore",
        limits: Limits | None = None,
        mount_as: str = "",
        preload: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        spec = parse_source(address)
        if spec.kind != "oci":
            raise SourceError(f"{show_address(address)} is not oci://HOST/REPOSITORY", code="bad-address")
        if ref and spec.ref and ref != spec.ref:
            raise SourceError(f"{show_address(address)} names a version already, and ref is another: {ref!r}")
        keywords: dict[str, Any] = {"mount_as": mount_as, "preload": preload, "options": options}
        super().__init__(spec.address, missing=missing, limits=limits, **keywords)
        self._ref = (ref or spec.ref).removeprefix("sha256:")
        self._path = "/".join(filter(None, (spec.subpath.strip("/"), path.strip("/"))))
        self._allowed, self._limits = allowed, limits or DEFAULT_LIMITS

    def __repr__(self) -> str:
        """Show the repository and the version."""
        return f"Source.oci({show_address(self._address)}, {self._ref!r})"

    def _open(self) -> Repository:
        # Made anew each time: a login may have changed, and tags have.
        return Repository(Registry(current_policy().mirror(self._address), self._allowed, self._limits), Cache())

    def resolve(self) -> str:
        """Return the digest that the version means now."""
        return self._open().resolve_ref(self._ref)

    def read_files(self, state: str) -> Sequence[NewFile]:
        """Return the files of a digest."""
        return select_below(self._open().pull(state).files, {self._path}, attrgetter("path"))

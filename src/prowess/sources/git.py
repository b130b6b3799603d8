"""The skills of a git repository, fetched into a folder of this process without an install."""

from __future__ import annotations

import os
import time
from operator import attrgetter
from typing import TYPE_CHECKING, Literal

from prowess.addresses.source_spec import parse_source
from prowess.errors import SourceError
from prowess.fetch.cache import Cache
from prowess.fetch.git.repository import GitRemote, select_skill_files
from prowess.fetch.signers import check_signers, find_signed_tag
from prowess.limits import DEFAULT_LIMITS
from prowess.names import select_below
from prowess.policy.files import current_policy
from prowess.policy.rules import to_address
from prowess.sources.fetched import FetchedSource
from prowess.text.redaction import show_address

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from prowess.files.write import NewFile
    from prowess.limits import Limits


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

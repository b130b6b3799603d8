"""The skills of a repository in an OCI registry, fetched into a folder of this process without an install."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Literal

from prowess.addresses.source_spec import parse_source
from prowess.errors import SourceError
from prowess.fetch.cache import Cache
from prowess.fetch.oci.pull import Repository
from prowess.fetch.oci.registry import Registry
from prowess.fetch.url_policy import UrlPolicy
from prowess.limits import DEFAULT_LIMITS
from prowess.names import select_below
from prowess.sources.fetched import FetchedSource
from prowess.text.redaction import show_address

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from prowess.files.write import NewFile
    from prowess.limits import Limits


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
        return Repository(Registry(self._address, self._allowed, self._limits), Cache())

    def resolve(self) -> str:
        """Return the digest that the version means now."""
        return self._open().resolve_ref(self._ref)

    def read_files(self, state: str) -> Sequence[NewFile]:
        """Return the files of a digest."""
        return select_below(self._open().pull(state).files, {self._path}, attrgetter("path"))

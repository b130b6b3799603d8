"""Where skills are published to: a folder of this machine, an object store, or an OCI registry."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.addresses.source_spec import parse_source
from prowess.errors import SourceError
from prowess.fetch.stores import open_store
from prowess.text.redaction import show_address

if TYPE_CHECKING:
    from prowess.addresses.source_spec import SourceSpec
    from prowess.fetch.stores import SiteStore


def parse_target(text: str | os.PathLike[str]) -> SourceSpec:
    """Return the place that an address names.

    Raises ``SourceError`` for a place that can only be read, and ``BadReferenceError`` for a string that names none.
    """
    spec = parse_source(os.fspath(text), is_there=os.path.exists)
    is_writable = spec.local or not spec.address.startswith(("https://", "http://"))
    if spec.kind not in {"site", "folder", "oci"} or not is_writable or spec.ref or spec.skills or spec.subpath:
        wanted = "a folder (./site), s3://, gs:// or az://BUCKET/PREFIX, or oci://HOST/PREFIX, without a version"
        message = f"{show_address(os.fspath(text))} is not a place to publish to: name {wanted}"
        raise SourceError(message, code="bad-target")
    return spec


def open_target(spec: SourceSpec) -> SiteStore:
    """Return the store of a place that is a site."""
    path = os.path.abspath(os.path.expanduser(spec.address)) if spec.local else spec.address
    return open_store(path, local=spec.local)

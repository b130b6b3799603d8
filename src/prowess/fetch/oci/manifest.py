"""Manifests of OCI registries: what an image or an artifact consists of, or which manifests an index lists."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.errors import FetchError

if TYPE_CHECKING:
    from collections.abc import Mapping

OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_OCI_INDEX = "application/vnd.oci.image.index.v1+json"
_DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
_DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
_MANIFESTS, _INDEXES = (OCI_MANIFEST, _DOCKER_MANIFEST), (_OCI_INDEX, _DOCKER_LIST)
MANIFEST_TYPES = (*_MANIFESTS, *_INDEXES)
TITLE = "org.opencontainers.image.title"
_ATTESTATION = "vnd.docker.reference.type"
"""The annotation of a manifest beside an image in an index that describes it, and is not an image."""
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Descriptor(NamedTuple):
    """What a manifest says of one blob: its media type, the hex of its SHA-256, its size, and annotations."""

    media_type: str
    digest: str
    size: int
    annotations: Mapping[str, str] = {}

    @property
    def title(self) -> str:
        """The name of the file that a blob is, or ``""``."""
        return self.annotations.get(TITLE, "")


class Manifest(NamedTuple):
    """The layers of an image or an artifact; of an index the usable manifests instead."""

    layers: tuple[Descriptor, ...] = ()
    manifests: tuple[Descriptor, ...] = ()


def parse_manifest(data: bytes, announced: str, where: str) -> Manifest:
    """Return a manifest. ``announced`` is the media type that the server gave; ``""`` where nobody knows it any more.

    Raises ``FetchError`` for anything but a manifest of an image, an artifact or an index, and for one that two readers
    could take for different things.
    """
    try:
        fields = json.loads(data, object_pairs_hook=_refuse_repeated)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict) or fields.get("schemaVersion") != 2:  # noqa: PLR2004 - the format's own version
        raise _make_error(where, "is not a manifest of an image or an artifact")
    announced = announced.partition(";")[0].strip().lower()
    guessed = "" if announced else OCI_MANIFEST if "layers" in fields else _OCI_INDEX  # out of the cache
    media_type = fields.get("mediaType") or announced or guessed
    if media_type not in MANIFEST_TYPES:
        raise _make_error(where, f"has the media type {str(media_type)[:80]!a}")
    if announced in MANIFEST_TYPES and announced != media_type:
        raise _make_error(where, "has one media type in itself and another in front of it")
    # A reader that goes by the fields would take one with both for what another does not see.
    if ("manifests" in fields) != (media_type in _INDEXES) or ("layers" in fields) == (media_type in _INDEXES):
        raise _make_error(where, "has not the fields of its media type")
    if media_type in _INDEXES:
        rows = [(_parse_descriptor(row, where), row) for row in _rows(fields, "manifests", where)]
        return Manifest(manifests=tuple(found for found, row in rows if _is_usable(found, row)))
    _parse_descriptor(fields.get("config"), where)
    return Manifest(tuple(_parse_descriptor(row, where) for row in _rows(fields, "layers", where)))


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a key is there twice")
    return fields


def _rows(fields: dict[str, Any], key: str, where: str) -> list[Any]:
    rows = fields[key]
    if not isinstance(rows, list):
        raise _make_error(where, f"has {key} that are not a list")
    return rows


def _parse_descriptor(row: Any, where: str) -> Descriptor:
    if not isinstance(row, dict):
        raise _make_error(where, "names a blob without saying what it is")
    media_type, digest, size, notes = (row.get(key) for key in ("mediaType", "digest", "size", "annotations"))
    if not isinstance(digest, str) or _DIGEST.fullmatch(digest) is None:
        raise _make_error(where, f"names a blob by something else than sha256: {str(digest)[:80]!a}")
    if not isinstance(media_type, str) or type(size) is not int or size < 0:
        raise _make_error(where, f"names the blob {digest} without a media type or a size")
    notes = notes if isinstance(notes, dict) else {}
    kept = {key: value for key, value in notes.items() if isinstance(value, str)}
    return Descriptor(media_type.lower(), digest.removeprefix("sha256:"), size, kept)


def _is_usable(found: Descriptor, row: dict[str, Any]) -> bool:
    platform = row.get("platform")
    is_unknown = isinstance(platform, dict) and platform.get("os") == "unknown"
    return found.media_type in _MANIFESTS and _ATTESTATION not in found.annotations and not is_unknown


def _make_error(where: str, why: str) -> FetchError:
    return FetchError(f"{where} {why}", code="bad-artifact")

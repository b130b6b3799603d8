"""Pulls a skill from an OCI registry: a version becomes a manifest, the manifest its layers, and the layers files.

A layer is a tar, or a file if it has a title; anything else is refused. Manifests and layers are kept in the cache by
their digests, so what a lock file pins can be had again while the registry is away.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

from prowess.addresses.source_grammar import ARCHIVE_SUFFIXES
from prowess.errors import FetchError
from prowess.fetch.archive.unpack import unpack_layers, unpack_tree
from prowess.fetch.oci.manifest import parse_manifest
from prowess.progress_steps import report_steps
from prowess.text.quantities import join_first
from prowess.text.versions import find_latest_in_range, is_range

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.fetch.cache import Cache
    from prowess.fetch.oci.manifest import Descriptor
    from prowess.fetch.oci.registry import Registry
    from prowess.files.write import NewFile

_DEFAULT_TAG = "latest"
_UNPACK = "io.deis.oras.content.unpack"
_TAR = re.compile(r".*[./-]tar(?P<packed>[+.](?:gzip|zstd))?")
"""The media types of a tar, whatever is in front."""
_FOREIGN = ("nondistributable", "foreign")
"""Words in the media types of layers that are elsewhere than in the registry."""
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MAX_NAMED_TAGS = 5


class PulledArtifact(NamedTuple):
    """The hex of the manifest's digest, and the files of all layers."""

    digest: str
    files: tuple[NewFile, ...]


class _Found(NamedTuple):
    digest: str
    data: bytes
    media_type: str


class Repository:
    """A repository as a source of skills: which versions it has, and the files of each."""

    def __init__(self, registry: Registry, cache: Cache) -> None:
        self._registry, self._cache = registry, cache
        self._limits = registry.limits
        self._tags: dict[str, str] | None = None

    def resolve_ref(self, ref: str = "") -> str:
        """Return the hex of the digest that a tag, a range of tags, a digest or ``""`` (``latest``) means now."""
        return ref if _is_digest(ref) else self._find_manifest(ref).digest

    def pull(self, ref: str = "") -> PulledArtifact:
        """Return the files of a version; raises ``FetchError`` for what is not a skill, or not what its digest says."""
        found = self._find_manifest(ref)
        layers = self._list_layers(found)
        size = sum(layer.size for layer in layers)
        if len(layers) > self._limits.max_layers:
            raise self._refuse(f"has more than Limits.max_layers ({self._limits.max_layers}) layers", "too-many-layers")
        if size > self._limits.max_install_bytes:
            why = f"has more than Limits.max_install_bytes ({self._limits.max_install_bytes}) bytes"
            raise self._refuse(why, "download-too-large")
        kinds = [self._path_of(layer) for layer in layers]  # all, before the first is fetched
        blobs = [
            self._get_blob(layer) for layer in report_steps(layers, lambda layer: layer.title or layer.digest[:12])
        ]
        return PulledArtifact(found.digest, self._unpack(blobs, kinds))

    def list_tags(self) -> dict[str, str]:
        """Return the tags, each with ``""`` in place of a digest, which registries do not list."""
        if self._tags is None:
            self._tags = dict.fromkeys(self._fetch_tags(), "")
        return self._tags

    # -- manifests -----------------------------------------------------------------------------------------------------

    def _find_manifest(self, ref: str) -> _Found:
        if _is_digest(ref):
            kept = self._cache.read(ref, self._limits.max_manifest_bytes) if self._registry.may_use_cache else None
            return _Found(ref, kept, "") if kept is not None else self._fetch_manifest(f"sha256:{ref}")
        return self._fetch_manifest(self._choose_tag(ref))

    def _fetch_manifest(self, reference: str, what: str = "") -> _Found:
        answer = self._registry.get_manifest(reference)
        if answer is None:
            raise self._make_version_error(what or reference)
        data, media_type = answer
        # With the media type in it: one that only the server says is not known when it comes from the cache.
        parse_manifest(data, media_type, self._registry.address)
        return _Found(self._cache.write(data), data, media_type)

    def _choose_tag(self, ref: str) -> str:
        if not is_range(ref):
            return ref or _DEFAULT_TAG
        tag = find_latest_in_range(ref, self.list_tags())
        if not tag:
            raise self._make_version_error(ref)
        return tag

    def _make_version_error(self, what: str) -> FetchError:
        if what.startswith("sha256:"):
            return FetchError(f"{self._registry.address} does not have {what}", code="unknown-version")
        tags = [*self.list_tags()]
        there = f"it has {join_first(tags, _MAX_NAMED_TAGS)}" if tags else "there is nothing at this address"
        return FetchError(f"{self._registry.address} has no tag {what}: {there}", code="unknown-tag")

    def _list_layers(self, found: _Found) -> Sequence[Descriptor]:
        manifest = parse_manifest(found.data, found.media_type, self._registry.address)
        if not manifest.manifests:
            if not manifest.layers:
                raise self._refuse("has nothing in it", "bad-artifact")
            return manifest.layers
        # One image for several platforms, as some tools publish a skill, has the same layers for each.
        if len(manifest.manifests) <= self._limits.max_layers:
            inner = [self._find_manifest(row.digest) for row in manifest.manifests]
            layers = [parse_manifest(one.data, one.media_type, self._registry.address).layers for one in inner]
            if layers[0] and all(others == layers[0] for others in layers):
                return layers[0]
        digests = [f"sha256:{row.digest}" for row in manifest.manifests]
        raise self._refuse(
            f"is an index of {len(digests)} manifests with different content; name one: "
            f"{join_first(digests, _MAX_NAMED_TAGS)}",
            "several-manifests",
        )

    def _fetch_tags(self) -> list[str]:
        tags: list[str] = []
        path, last = "tags/list?n=1000", None
        while path:
            response = self._registry.send("GET", path, statuses=frozenset((HTTPStatus.OK, HTTPStatus.NOT_FOUND)))
            if response.status == HTTPStatus.NOT_FOUND:
                return tags
            tags += _parse_tags(response.body)
            if len(tags) > self._limits.max_index_entries:
                raise self._refuse("has more tags than Limits.max_index_entries", "too-many-entries")
            link = response.headers.get("link", "").partition(">")[0].lstrip("< ")
            begin = parse_qs(urlsplit(link).query).get("last", [""])[0]
            # Only the place where the next page begins is taken from the answer, and it must move on.
            path = f"tags/list?{urlencode({'n': 1000, 'last': begin})}" if begin and begin != last else ""
            last = begin
        return tags

    # -- layers --------------------------------------------------------------------------------------------------------

    def _path_of(self, layer: Descriptor) -> str:
        """Return the path of the file that a layer is, ``""`` for a tar; raises ``FetchError`` for anything else."""
        if not any(word in layer.media_type for word in _FOREIGN):
            tar = _TAR.fullmatch(layer.media_type)
            # oras gives plain files the type of a tar, and says of a folder that it is to be unpacked.
            is_file = layer.title and layer.annotations.get(_UNPACK, "").lower() != "true"
            if tar and (tar["packed"] or not is_file):
                return ""
            if layer.title:
                return layer.title
        raise self._refuse(f"has a layer that is neither a tar nor a file: {layer.media_type[:80]!a}", "bad-layer")

    def _get_blob(self, layer: Descriptor) -> bytes:
        kept = self._cache.read(layer.digest, layer.size) if self._registry.may_use_cache else None
        if kept is None or len(kept) != layer.size:
            kept = self._registry.get_blob(layer.digest, layer.size)
            self._cache.write(kept)
            self._cache.prune_daily(self._limits)
        return kept

    def _unpack(self, blobs: Sequence[bytes], paths: Sequence[str]) -> tuple[NewFile, ...]:
        if len(paths) == 1 and paths[0].lower().endswith(ARCHIVE_SUFFIXES):
            return unpack_tree(blobs[0], name=self._registry.address, limits=self._limits)
        return unpack_layers(zip(blobs, paths, strict=True), name=self._registry.address, limits=self._limits)

    def _refuse(self, why: str, code: str) -> FetchError:
        return FetchError(f"{self._registry.address} {why}", code=code)


def _is_digest(ref: str) -> bool:
    return _DIGEST.fullmatch(ref) is not None


def _parse_tags(body: bytes) -> list[str]:
    import json

    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return []
    tags = answer.get("tags") if isinstance(answer, dict) else None
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []

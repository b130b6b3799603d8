"""Pushes a skill to an OCI registry: a version that never changes, and aliases that move.

The artifact is one layer, a tar with everything in a folder of the skill's name, which ``oras pull`` unpacks. Equal
skills give equal artifacts.
"""

from __future__ import annotations

import hashlib
import json
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin

from prowess.errors import FetchError
from prowess.fetch.archive.tar import compress_gzip, make_tar
from prowess.fetch.cache import sha256_hex
from prowess.fetch.client import UNREACHABLE_CODES
from prowess.fetch.oci.manifest import OCI_MANIFEST, TITLE
from prowess.fetch.oci.registry import check_tag
from prowess.files.tree import digest_tree, hash_bytes
from prowess.progress_steps import report_steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.fetch.oci.registry import Registry
    from prowess.files.write import NewFile

ARTIFACT_TYPE = "application/vnd.agentskills.skill.v1"
SKILL_DIGEST = "dev.prowess.skill.digest"
"""The annotation with the digest of the skill, as lock files and policies name it."""
_EMPTY_TYPE, _EMPTY = "application/vnd.oci.empty.v1+json", b"{}"
_LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"
_WRITTEN = frozenset((HTTPStatus.CREATED, HTTPStatus.ACCEPTED, HTTPStatus.NO_CONTENT))
_PAUSE_SECONDS = 0.5


class SkillArtifact(NamedTuple):
    """A skill as a registry stores it: the manifest, and the blobs that it names, each by the hex of its SHA-256."""

    manifest: bytes
    blobs: dict[str, bytes]

    @property
    def digest(self) -> str:
        """The hex of the manifest's digest, which a lock file records."""
        return sha256_hex(self.manifest)


class PushedSkill(NamedTuple):
    """What a push did: the digest, whether the version was there already, what was sent, and what moved."""

    digest: str
    existed: bool
    sent_bytes: int
    moved: tuple[str, ...]
    """The aliases that meant something else before, or nothing."""


def make_artifact(files: Sequence[NewFile], *, name: str, version: str, description: str = "") -> SkillArtifact:
    """Return the artifact of a skill; equal arguments give equal bytes."""
    ordered = sorted(files, key=lambda file: file.path.encode())
    tar = make_tar(ordered, name)
    layer = compress_gzip(tar)
    unpacked = {"io.deis.oras.content.digest": f"sha256:{sha256_hex(tar)}", "io.deis.oras.content.unpack": "true"}
    digest = digest_tree({file.path: hash_bytes(file.content, executable=file.executable) for file in ordered})
    notes = {
        TITLE: name,
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.description": description,
        "io.agentskills.skill.name": name,
        SKILL_DIGEST: digest,
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "artifactType": ARTIFACT_TYPE,
        "config": _describe(_EMPTY_TYPE, _EMPTY),
        "layers": [{**_describe(_LAYER_TYPE, layer), "annotations": {TITLE: name, **unpacked}}],
        "annotations": {key: value for key, value in notes.items() if value},
    }
    data = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    return SkillArtifact(data, {sha256_hex(blob): blob for blob in (_EMPTY, layer)})


def _describe(media_type: str, blob: bytes) -> dict[str, object]:
    return {"mediaType": media_type, "digest": f"sha256:{hashlib.sha256(blob).hexdigest()}", "size": len(blob)}


def push_artifact(
    registry: Registry, artifact: SkillArtifact, *, version: str, aliases: Sequence[str] = ()
) -> PushedSkill:
    """Push an artifact as ``version``, and let ``aliases`` mean it. ``registry`` must be made with ``push=True``.

    Pushing the same again changes nothing. Raises ``FetchError`` with the code ``version-exists`` when the version is
    there with other content: nothing is changed then. Blobs that are there are not sent again.
    """
    for tag in (version, *aliases):
        check_tag(tag)
    digest = artifact.digest
    existed = _refuse_other(registry, version, digest)
    sent = 0
    if not existed:
        for blob_digest, blob in report_steps([*artifact.blobs.items()], lambda row: row[0][:12]):
            sent += _push_blob(registry, blob_digest, blob)
        _put_manifest(registry, version, artifact)
        _refuse_other(registry, version, digest)  # registries cannot create a tag only: another push may have won
    moved = tuple(alias for alias in dict.fromkeys(aliases) if _digest_of(registry, alias) != digest)
    for alias in moved:
        _put_manifest(registry, alias, artifact)
    return PushedSkill(digest, existed, sent, moved)


def _refuse_other(registry: Registry, version: str, digest: str) -> bool:
    """Return whether the version is there; raises ``FetchError`` when it is there with other content."""
    there = _digest_of(registry, version)
    if there not in {"", digest}:
        raise FetchError(
            f"{registry.address} has version {version} with other content: sha256:{there}, not sha256:{digest}",
            code="version-exists",
        )
    return bool(there)


def _digest_of(registry: Registry, tag: str) -> str:
    answer = registry.get_manifest(tag)
    return "" if answer is None else sha256_hex(answer[0])


def _put_manifest(registry: Registry, tag: str, artifact: SkillArtifact) -> None:
    headers = {"Content-Type": OCI_MANIFEST}
    registry.send("PUT", f"manifests/{tag}", headers=headers, body=artifact.manifest, statuses=_WRITTEN)


# -- uploads -----------------------------------------------------------------------------------------------------------


def _push_blob(registry: Registry, digest: str, blob: bytes) -> int:
    """Upload a blob unless it is there; return how many bytes it has, 0 when it was there.

    When the connection breaks, the upload goes on where the registry has got to, or begins again.
    """
    found = registry.send(
        "HEAD", f"blobs/sha256:{digest}", statuses=frozenset((HTTPStatus.OK, HTTPStatus.NOT_FOUND)), any_host=True
    )
    if found.status == HTTPStatus.OK:
        return 0
    location, offset = "", 0
    for attempt in range(registry.limits.max_upload_attempts, 0, -1):
        try:
            location = location or _begin_upload(registry)
            _finish_upload(registry, location, offset, digest, blob)
        except FetchError as error:
            if error.code not in UNREACHABLE_CODES or attempt == 1:
                raise
            time.sleep(_PAUSE_SECONDS)
            location, offset = _find_progress(registry, location, len(blob))
        else:
            return len(blob)
    raise AssertionError("the last attempt returns or raises")


def _begin_upload(registry: Registry) -> str:
    path = "blobs/uploads/"
    answer = registry.send("POST", path, statuses=frozenset((HTTPStatus.ACCEPTED,)))
    return _location_of(registry, registry.url_of(path), answer.headers.get("location", ""))


def _location_of(registry: Registry, url: str, location: str) -> str:
    if not location:
        raise FetchError(f"{registry.address} does not say where an upload goes", code="bad-upload")
    return urljoin(url, location)


def _finish_upload(registry: Registry, location: str, offset: int, digest: str, blob: bytes) -> None:
    headers = {"Content-Type": "application/octet-stream"}
    if offset:
        headers["Content-Range"] = f"{offset}-{len(blob) - 1}"
    url = f"{location}{'&' if '?' in location else '?'}digest=sha256:{digest}"
    registry.send("PUT", url, headers=headers, body=blob[offset:], statuses=frozenset((HTTPStatus.CREATED,)))


def _find_progress(registry: Registry, location: str, size: int) -> tuple[str, int]:
    """Return where an upload goes on and after how many bytes; ``("", 0)`` where it has to begin again."""
    if not location:
        return "", 0
    try:
        answer = registry.send("GET", location, statuses=frozenset((HTTPStatus.NO_CONTENT,)))
    except FetchError as error:
        if error.code in UNREACHABLE_CODES or error.code == "http-status":
            return "", 0
        raise
    last = answer.headers.get("range", "").rpartition("-")[2]
    offset = int(last) + 1 if last.isdigit() and len(last) <= len(str(size)) else 0
    if not 1 < offset < size:  # 0-0 stands for one byte and for none
        return "", 0
    return _location_of(registry, location, answer.headers.get("location", location)), offset

"""A repository of an OCI registry that a test writes itself, with or without lies, on a site on loopback."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from typing import TYPE_CHECKING, Any

import prowess
from prowess.fetch.cache import Cache
from prowess.fetch.oci.pull import PulledArtifact, Repository
from prowess.fetch.oci.registry import Registry
from prowess.fetch.url_policy import UrlPolicy
from tests.web_sites import Site, skill_md

if TYPE_CHECKING:
    from pathlib import Path

HERE = UrlPolicy(private=True, http=True)
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
TAR, TAR_GZIP = "application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.layer.v1.tar+gzip"
SKILL = skill_md("pdf")
TITLE, UNPACK = "org.opencontainers.image.title", "io.deis.oras.content.unpack"


def sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def tar_of(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for path, content in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return made.getvalue()


class FakeRepository:
    """The repository ``team/pdf`` of a registry."""

    def __init__(self, site: Site, cache: Path) -> None:
        self.site, self._cache = site, cache
        self.address = f"oci://127.0.0.1:{site.port}/team/pdf"

    def layer(self, data: bytes, media_type: str = TAR_GZIP, **notes: str) -> dict[str, Any]:
        """Publish a blob, and return its descriptor."""
        self.site.put(f"/v2/team/pdf/blobs/{sha256(data)}", data)
        annotations = {{"title": TITLE, "unpack": UNPACK}.get(key, key): value for key, value in notes.items()}
        return {"mediaType": media_type, "digest": sha256(data), "size": len(data), "annotations": annotations}

    def skill_layer(self, **files: bytes) -> dict[str, Any]:
        """Publish a tar with a skill."""
        return self.layer(gzip.compress(tar_of({"pdf/SKILL.md": SKILL, **files})))

    def manifest(self, *layers: dict[str, Any], tag: str = "1", **fields: Any) -> str:
        """Publish a manifest under a tag and its digest, which is returned."""
        config = self.layer(b"{}", "application/vnd.oci.empty.v1+json")
        whole = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers} | fields
        return self.document({key: value for key, value in whole.items() if value is not None}, tag)

    def document(self, fields: object, tag: str = "1", media_type: str = MANIFEST) -> str:
        """Publish any JSON as a manifest."""
        return self.raw(json.dumps(fields).encode(), tag, media_type)

    def raw(self, data: bytes, tag: str = "1", media_type: str = MANIFEST) -> str:
        """Publish any bytes as a manifest."""
        for reference in (tag, sha256(data)):
            self.site.put(f"/v2/team/pdf/manifests/{reference}", data, Content_Type=media_type)
        return sha256(data)

    def open(self, *, allowed: UrlPolicy = HERE, limits: prowess.Limits | None = None) -> Repository:
        return Repository(Registry(self.address, allowed, limits or prowess.Limits()), Cache(self._cache))

    def pull(self, ref: str = "1", **options: Any) -> PulledArtifact:
        return self.open(**options).pull(ref.removeprefix("sha256:"))

    @property
    def asked_blobs(self) -> list[str]:
        return [path for path in self.site.paths if "/blobs/" in path]

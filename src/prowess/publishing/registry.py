"""Publishes skills to an OCI registry: a repository for each skill, a tag for each version and alias."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from prowess.errors import SourceError
from prowess.fetch.archive.unpack import unpack
from prowess.fetch.cache import sha256_hex
from prowess.fetch.oci.manifest import parse_manifest
from prowess.fetch.oci.push import SkillArtifact, make_artifact, push_artifact
from prowess.fetch.oci.registry import Registry
from prowess.fetch.url_policy import UrlPolicy, is_loopback
from prowess.progress_steps import report_steps
from prowess.publishing.site import PublishedSkill, PublishReport

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.limits import Limits
    from prowess.publishing.site import NewVersion


def publish_to_registry(
    fresh: Sequence[NewVersion],
    named: Sequence[tuple[str, str]],
    address: str,
    *,
    aliases: Sequence[str],
    dry_run: bool,
    limits: Limits,
) -> PublishReport:
    """Push skills to ``address/NAME:VERSION``, and let aliases mean them; returns what was done, or would be."""
    # Whoever names a registry of the own network means it; plain http is for a registry of this machine.
    allowed = UrlPolicy(private=True, http=is_loopback(urlsplit(address).hostname or ""))
    rows: list[PublishedSkill] = []
    moved: list[tuple[str, str, str]] = []
    uploads: list[str] = []
    ready = [*_list_new(fresh, limits), *((name, version, None) for name, version in named)]
    for name, version, packed in report_steps(ready, lambda row: row[0]):
        registry = Registry(f"{address}/{name}", allowed, limits, push=True)
        there = registry.get_manifest(version)
        artifact = packed or SkillArtifact(there[0] if there is not None else b"", {})
        if packed is None and there is None:
            raise SourceError(f"{name}:{version} is not in {registry.address}", code="unknown-version")
        if there is not None and sha256_hex(there[0]) != artifact.digest:
            message = f"{registry.address}:{version} is published with other content: choose another version"
            raise SourceError(message, code="version-exists")
        moved += ((alias, name, version) for alias in aliases if _means_other(registry, alias, artifact))
        if there is None:
            uploads += (f"{name}/blobs/sha256:{digest}" for digest in artifact.blobs)
        if not dry_run:
            push_artifact(registry, artifact, version=version, aliases=aliases)
        size = sum(layer.size for layer in parse_manifest(artifact.manifest, "", registry.address).layers)
        rows.append(
            PublishedSkill(name, version, artifact.digest, "unchanged" if there is not None else "published", size)
        )
    return PublishReport(address, tuple(rows), tuple(moved), 0, "", tuple(uploads))


def _list_new(fresh: Sequence[NewVersion], limits: Limits) -> Iterator[tuple[str, str, SkillArtifact | None]]:
    for one in fresh:
        files = unpack(one.archive, name=one.listed.name, limits=limits)
        listed = one.listed
        artifact = make_artifact(files, name=listed.name, version=listed.version, description=listed.description)
        yield listed.name, listed.version, artifact


def _means_other(registry: Registry, alias: str, artifact: SkillArtifact) -> bool:
    there = registry.get_manifest(alias)
    return there is None or sha256_hex(there[0]) != artifact.digest

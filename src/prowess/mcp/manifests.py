"""Manifests: the files of a skill with sizes and digests, computed when first asked for and kept while unchanged."""

from __future__ import annotations

from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import ResourceChangedError, ResourceNotFoundError
from prowess.files.identity import hash_with_identity, read_with_identity
from prowess.mcp.served_skills import make_uri
from prowess.names import SKILL_FILE
from prowess.skills.mcp_rules import check_total_size, list_served_files, parse_strict_fields

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.files.identity import HashedFile
    from prowess.files.read import Identity
    from prowess.format.frontmatter.json_types import Json
    from prowess.limits import Limits
    from prowess.skills.skill import Skill


_MAX_TRIES = 4  # somebody may be writing to the skill at this moment


class ManifestFile(NamedTuple):
    """A file of a skill: its path in the skill's folder, and its digest with the state that it was hashed in."""

    path: str
    hashed: HashedFile


class ServedManifest(NamedTuple):
    """The frontmatter and all files of a skill, as they were at one moment."""

    fields: dict[str, Json]
    files: tuple[ManifestFile, ...]

    def to_entry(self, path: str) -> dict[str, Json]:
        """Return the skill as an entry of the protocol, served under ``path``."""
        resources: list[Json] = [
            {"uri": make_uri(path, file.path), "digest": f"sha256:{file.hashed.digest.hex()}", "size": file.hashed.size}
            for file in self.files
        ]
        return {"uri": make_uri(path, SKILL_FILE), "frontmatter": self.fields, "resources": resources}


class ManifestCache:
    """Keeps the manifests that were asked for so far, by the folder of the skill."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._cached: dict[str, ServedManifest] = {}
        self._lock = Lock()  # requests are answered in several threads

    def get_manifest(self, skill: Skill) -> ServedManifest:
        """Return the manifest of a skill as it is now; raises ``SkillError`` when the skill cannot be served."""
        for _ in range(_MAX_TRIES):
            with suppress(ResourceChangedError, ResourceNotFoundError):
                return self._get_once(skill)
        return self._get_once(skill)

    def _get_once(self, skill: Skill) -> ServedManifest:
        known = self._cached.get(skill.real_folder)
        files = list_served_files(skill, self._limits)
        # Fast path: no file is read while every identity (inode, size, times) is what it was.
        if known is not None and _matches_files(known, files):
            return known
        manifest = self._build_manifest(skill, files, known)
        with self._lock:
            self._cached[skill.real_folder] = manifest
        return manifest

    def keep_only(self, skills: Iterable[Skill]) -> None:
        """Forget the manifests of all other skills."""
        folders = {skill.real_folder for skill in skills}
        with self._lock:
            for folder in self._cached.keys() - folders:
                del self._cached[folder]

    def find_manifest(self, skill: Skill) -> ServedManifest | None:
        """Return the manifest that was computed last, or ``None`` when nobody has asked for it."""
        return self._cached.get(skill.real_folder)

    def _build_manifest(
        self, skill: Skill, listed: list[tuple[str, Identity]], known: ServedManifest | None
    ) -> ServedManifest:
        # Only settled files: one that was written within the clock's resolution may change without a new time.
        kept = {file.path: file.hashed for file in known.files if file.hashed.settled} if known is not None else {}
        limit = self._limits.max_served_bytes
        # SKILL.md is read once, so that its digest and its fields are of the same state.
        data, skill_file = read_with_identity(skill.base, (*skill.parts, SKILL_FILE), limit)
        hashed = {SKILL_FILE: skill_file}
        for path, identity in listed:
            before = kept.get(path)
            same = before if before is not None and before.identity == identity else None
            if path != SKILL_FILE:
                hashed[path] = same or hash_with_identity(skill.base, (*skill.parts, *path.split("/")), limit)
        files = tuple(ManifestFile(path, hashed[path]) for path, _ in listed)
        # The bytes that were read count: some special files claim to be empty.
        check_total_size(sum(file.hashed.size for file in files), self._limits)
        return ServedManifest(parse_strict_fields(data, skill, self._limits), files)


def _matches_files(known: ServedManifest, files: list[tuple[str, Identity]]) -> bool:
    return len(known.files) == len(files) and all(
        old.hashed.settled and old.path == path and old.hashed.identity == identity
        for old, (path, identity) in zip(known.files, files, strict=True)
    )

"""What a skill's entry says of its files: sizes and digests, computed when first asked for, kept while files stay."""

from __future__ import annotations

from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import ResourceChangedError, ResourceNotFoundError
from prowess.files.identity import hash_with_identity, read_with_identity
from prowess.mcp.uris import make_uri
from prowess.names import SKILL_FILE
from prowess.skills.mcp_rules import check_total_size, list_served_files, parse_strict_fields

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.files.identity import HashedFile
    from prowess.files.read import Identity
    from prowess.limits import Limits
    from prowess.skills.skill import Skill
    from prowess.spec.frontmatter.json_types import Json


_MAX_TRIES = 4


class ManifestFile(NamedTuple):
    """One file of a skill."""

    path: str
    hashed: HashedFile

    @property
    def size(self) -> int:
        return self.hashed.size


class ServedManifest(NamedTuple):
    """The frontmatter and every file of a skill in one state."""

    fields: dict[str, Json]
    files: tuple[ManifestFile, ...]

    def to_entry(self, path: str) -> dict[str, Json]:
        """The skill as the protocol wants it, served under ``path``."""
        rows: list[Json] = [
            {"uri": make_uri(path, file.path), "digest": f"sha256:{file.hashed.digest.hex()}", "size": file.size}
            for file in self.files
        ]
        return {"uri": make_uri(path, SKILL_FILE), "frontmatter": self.fields, "resources": rows}


class ManifestCache:
    """The manifests that were asked for so far, by the folder of the skill."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._cached: dict[str, ServedManifest] = {}
        self._lock = Lock()

    def get_manifest(self, skill: Skill) -> ServedManifest:
        """The manifest of a skill as it is now; raises ``SkillError`` for one that cannot be served."""
        for _ in range(_MAX_TRIES):
            with suppress(ResourceChangedError, ResourceNotFoundError):  # somebody is writing to it just now
                return self._get_once(skill)
        return self._get_once(skill)

    def _get_once(self, skill: Skill) -> ServedManifest:
        known = self._cached.get(skill.real_folder)
        files = list_served_files(skill, self._limits)
        if known is not None and _is_unchanged(known, files):
            return known
        found = self._build_manifest(skill, files, known)
        with self._lock:
            self._cached[skill.real_folder] = found
        return found

    def keep_only(self, skills: Iterable[Skill]) -> None:
        """Forget those of skills that are gone."""
        folders = {skill.real_folder for skill in skills}
        with self._lock:
            for folder in self._cached.keys() - folders:
                del self._cached[folder]

    def get_cached(self, skill: Skill) -> ServedManifest | None:
        """What was told of a skill last."""
        return self._cached.get(skill.real_folder)

    def _build_manifest(
        self, skill: Skill, marks: list[tuple[str, Identity]], known: ServedManifest | None
    ) -> ServedManifest:
        kept = {file.path: file.hashed for file in known.files if file.hashed.settled} if known is not None else {}
        limit = self._limits.max_served_bytes
        data, own = read_with_identity(skill.base, (*skill.parts, SKILL_FILE), limit)
        hashed = {SKILL_FILE: own}
        for path, mark in marks:
            before = kept.get(path)
            same = before if before is not None and before.identity == mark else None
            if path != SKILL_FILE:
                hashed[path] = same or hash_with_identity(skill.base, (*skill.parts, *path.split("/")), limit)
        files = tuple(ManifestFile(path, hashed[path]) for path, _ in marks)
        check_total_size(sum(file.size for file in files), self._limits)  # as read: some files say that they are empty
        return ServedManifest(parse_strict_fields(data, skill, self._limits), files)


def _is_unchanged(known: ServedManifest, files: list[tuple[str, Identity]]) -> bool:
    if len(known.files) != len(files):
        return False
    return all(
        old.hashed.settled and old.path == path and old.hashed.identity == mark
        for old, (path, mark) in zip(known.files, files, strict=True)
    )

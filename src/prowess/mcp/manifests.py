"""What a skill's entry says of its files: sizes and digests, computed when first asked for, kept while files stay."""

from __future__ import annotations

from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import ResourceChangedError, ResourceNotFoundError
from prowess.files.identity import hash_marked, read_marked
from prowess.mcp.uris import SKILL_MD, uri_of
from prowess.skills.mcp_rules import refuse_size, served_files, strict_fields

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.files.identity import Hashed
    from prowess.files.read import Identity
    from prowess.limits import Limits
    from prowess.skills.skill import Skill
    from prowess.spec.frontmatter.json_types import Json


_TRIES = 4


class Listed(NamedTuple):
    """One file of a skill."""

    path: str
    hashed: Hashed

    @property
    def size(self) -> int:
        return self.hashed.size


class Manifest(NamedTuple):
    """The frontmatter and every file of a skill in one state."""

    fields: dict[str, Json]
    files: tuple[Listed, ...]

    def entry(self, path: str) -> dict[str, Json]:
        """The skill as the protocol wants it, served under ``path``."""
        rows: list[Json] = [
            {"uri": uri_of(path, file.path), "digest": f"sha256:{file.hashed.digest.hex()}", "size": file.size}
            for file in self.files
        ]
        return {"uri": uri_of(path, SKILL_MD), "frontmatter": self.fields, "resources": rows}


class Manifests:
    """The manifests that were asked for so far, by the folder of the skill."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._known: dict[str, Manifest] = {}
        self._lock = Lock()

    def of(self, skill: Skill) -> Manifest:
        """The manifest of a skill as it is now; raises ``SkillError`` for one that cannot be served."""
        for _ in range(_TRIES):
            with suppress(ResourceChangedError, ResourceNotFoundError):  # somebody is writing to it just now
                return self._of(skill)
        return self._of(skill)

    def _of(self, skill: Skill) -> Manifest:
        known = self._known.get(skill.real_folder)
        files = served_files(skill, self._limits)
        if known is not None and _is_still(known, files):
            return known
        found = self._read(skill, files, known)
        with self._lock:
            self._known[skill.real_folder] = found
        return found

    def keep_only(self, skills: Iterable[Skill]) -> None:
        """Forget those of skills that are gone."""
        folders = {skill.real_folder for skill in skills}
        with self._lock:
            for folder in self._known.keys() - folders:
                del self._known[folder]

    def known(self, skill: Skill) -> Manifest | None:
        """What was told of a skill last."""
        return self._known.get(skill.real_folder)

    def _read(self, skill: Skill, marks: list[tuple[str, Identity]], known: Manifest | None) -> Manifest:
        kept = {file.path: file.hashed for file in known.files if file.hashed.settled} if known is not None else {}
        limit = self._limits.max_served_bytes
        data, own = read_marked(skill.base, (*skill.parts, SKILL_MD), limit)
        hashed = {SKILL_MD: own}
        for path, mark in marks:
            before = kept.get(path)
            same = before if before is not None and before.identity == mark else None
            if path != SKILL_MD:
                hashed[path] = same or hash_marked(skill.base, (*skill.parts, *path.split("/")), limit)
        files = tuple(Listed(path, hashed[path]) for path, _ in marks)
        refuse_size(sum(file.size for file in files), self._limits)  # as read: some files say that they are empty
        return Manifest(strict_fields(data, skill, self._limits), files)


def _is_still(known: Manifest, files: list[tuple[str, Identity]]) -> bool:
    if len(known.files) != len(files):
        return False
    return all(
        old.hashed.settled and old.path == path and old.hashed.identity == mark
        for old, (path, mark) in zip(known.files, files, strict=True)
    )

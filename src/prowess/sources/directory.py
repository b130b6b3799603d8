"""The source of skills below a folder, which may be mounted as a virtual folder.

Mounting changes the paths that are shown and filtered by, never the files that are read.
"""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING, Any

from prowess.arguments import check_text
from prowess.discovery.scan import root_folder, scan
from prowess.errors import SourceError
from prowess.files.paths import check_path
from prowess.names import SKILL_FILE
from prowess.skills.skill_files import as_scope

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from prowess.skills.catalog import Catalog
    from prowess.skills.explanation import SkillScope
    from prowess.skills.skill import Skill

_GLOB_CHARACTERS = frozenset("*?[")


class DirectorySource:
    """The skills below a folder, found by a scan."""

    __slots__ = ("_folder", "_mount_as", "_options", "_path", "_preload", "_scope")

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        mount_as: str = "",
        preload: bool = False,
        scope: SkillScope | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._path = check_path(path, "path")
        # Absolute from now on: a program may change its working folder before it loads.
        self._folder = root_folder(self._path, str((options or {}).get("filename", SKILL_FILE)))
        self._mount_as = mount_as
        self._preload = preload
        self._scope = as_scope(scope)
        self._options = dict(options or {})

    def __repr__(self) -> str:
        """Show the folder, and where it is mounted."""
        mounted = f", mount_as={self._mount_as!r}" if self._mount_as else ""
        return f"Source.directory({self._path!r}{mounted})"

    @property
    def dir(self) -> Path | None:
        """The absolute folder that is scanned, wherever it is mounted; ``None`` for the empty path.

        Where the source was given the path of a SKILL.md, it is the folder around that file.
        """
        from pathlib import Path

        return Path(self._folder) if self._folder else None

    def load(self) -> Catalog:
        """Scan the folder, and return the skills that are there now; raises ``SourceError`` for a bad ``mount_as``."""
        check_mount(self._mount_as)
        return scan(self._folder, **self._options).map_skills(lambda skill: self._mount_skill(skill, self._folder))

    def _mount_skill(self, skill: Skill, root: str) -> Skill:
        virtual = None
        if self._mount_as:
            folder = os.path.relpath(skill.folder, root).replace(os.sep, "/")
            # Normalized, so that "skills/", "./skills" and "skills" are one mount.
            virtual = posixpath.normpath(f"{self._mount_as}/{folder}")
        return skill.with_source(virtual_path=virtual, preload=self._preload or None, scope=self._scope)


def check_mount(mount_as: str) -> None:
    """Raise ``SourceError`` unless ``mount_as`` is the path of a folder, without patterns and without ``..``."""
    check_text(mount_as, "mount_as")
    # Filters are patterns over virtual paths. A mount with a pattern or ".." in it could match what it does not hold.
    if _GLOB_CHARACTERS & set(mount_as):
        raise SourceError(f"mount_as must be a literal folder, not a pattern: {mount_as!r}")
    if ".." in mount_as.replace("\\", "/").split("/"):
        raise SourceError(f"mount_as must not contain '..': {mount_as!r}")

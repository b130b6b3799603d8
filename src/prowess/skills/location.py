"""The location of a skill: its folder or what is in place of one, and how discovery found it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from prowess.format.document import LoadPolicy
from prowess.skills.folder_files import FolderFiles
from prowess.skills.head import SkillHead

if TYPE_CHECKING:
    from pathlib import Path

    from prowess.files.read import Identity
    from prowess.limits import Limits
    from prowess.model import SkillScope
    from prowess.skills.skill_files import SkillFiles


class SkillLocation(NamedTuple):
    """Where and how skills were found. Most skills of a root share one location, so a scan makes few of them."""

    base: str = ""
    """The folder that the caller gave, or that a link was allowed to lead to: reads stay below it."""
    file: str = ""
    """The name of the SKILL.md as it was found."""
    scope: SkillScope | None = None
    policy: LoadPolicy = LoadPolicy()
    origin: str = "directory"
    """The kind of source: ``"directory"``, ``"inline"``, ``"url"`` or ``"mcp"``."""
    link_folder: str | None = None
    """The folder as it was found, where that is a link."""
    links: tuple[str, ...] = ()
    """The links that the walk followed on its way to the folder, the first one first."""
    virtual_path: str | None = None
    """The folder under which filters and listings know the skill, where that is not its own."""
    preload: bool = False
    """Whether the instructions stand in the prompt from the start."""
    is_body_seen: bool = True
    """Whether discovery saw that the body is not blank."""
    is_searched_below: bool = False
    """Whether discovery looked below its folder for further skills."""
    files: SkillFiles = FolderFiles()
    """How the files are reached: one object for all skills in folders, one of its own for any other skill."""


# A base of ``Skill`` and not an object in it, as ``SkillHead``: a scan makes one object for each skill.
class LocatedHead(SkillHead):
    """A head and its location: what is asked of a skill about its place, answered without opening anything."""

    __slots__ = ("_identity", "_location", "_offset", "_rel")

    _identity: Identity | None
    _location: SkillLocation
    _offset: int
    _rel: str

    @property
    def is_inline(self) -> bool:
        """True for a text in a program, which has no files."""
        return self._location.files.is_inline

    @property
    def is_local(self) -> bool:
        """True for a folder on this machine. Nothing of any other skill can ever run."""
        return bool(self._location.base)

    @property
    def dir(self) -> Path | None:
        """Its folder, as it was found; ``None`` without one."""
        from pathlib import Path

        return Path(self._folder()) if self._location.base else None

    @property
    def path(self) -> Path | None:
        """Its SKILL.md; ``None`` without a folder."""
        from pathlib import Path

        return Path(self._folder(), self._location.file) if self._location.base else None

    def _folder(self) -> str:
        """The folder under which people know the skill; ``""`` where it has none."""
        location = self._location
        if location.link_folder is not None:
            return location.link_folder
        return f"{location.base}{os.sep}{self._rel}" if self._rel else location.base

    @property
    def folder(self) -> str:
        """Its folder as text, ``""`` without one."""
        # A skill without a folder can be shown under a name of one, such as its URI, which is no folder.
        return self._folder() if self._location.base else ""

    @property
    def folder_name(self) -> str:
        """The name of its folder, ``""`` without one."""
        if self._rel and self._location.link_folder is None:  # the usual case: ``catalog.issues`` asks each skill
            return self._rel.rpartition(os.sep)[2]
        return os.path.basename(self._folder())

    @property
    def real_folder(self) -> str:
        """Its folder by the path that reads use, without the link that led there; ``""`` without a folder."""
        return os.path.join(self._location.base, self._rel) if self._rel else self._location.base

    @property
    def base(self) -> str:
        """The folder that reads stay below; its own folder is ``parts`` below it."""
        return self._location.base

    @property
    def parts(self) -> tuple[str, ...]:
        """The folders from ``base`` to its own folder, by name."""
        return tuple(self._rel.split(os.sep)) if self._rel else ()

    @property
    def file_name(self) -> str:
        """The name of its SKILL.md as it was found."""
        return self._location.file

    @property
    def is_linked(self) -> bool:
        """True when it was reached through a link."""
        return self._location.link_folder is not None

    @property
    def paths_followed(self) -> tuple[str, ...]:
        """The path of each link that was followed to its folder, and the path of the folder."""
        return (*self._location.links, self._folder())

    @property
    def virtual_path(self) -> str:
        """The folder under which filters and listings know it; the real one unless it was mounted elsewhere."""
        virtual = self._location.virtual_path
        return virtual if virtual is not None else self._folder().replace(os.sep, "/")

    @property
    def scope(self) -> SkillScope | None:
        """Whose folders it was found in, the project's or the user's; ``None`` for any other place."""
        return self._location.scope

    @property
    def origin(self) -> str:
        """What kind of source it came from."""
        return self._location.origin

    @property
    def source_label(self) -> str:
        """Who says what is in it, where a model must be told; ``""``: it is the user's own."""
        return self._location.files.source_label

    @property
    def server(self) -> object:
        """The server that gives its files, to be compared with another; ``None`` where no server gives them."""
        return self._location.files.server

    def find_changes(self) -> str:
        """Ask the server that it comes from, if it comes from one, which files differ there now, in one line.

        ``""`` where none does, and for every skill that no server gives. Raises ``FetchError`` where the server cannot
        be asked, or no longer gives the skill.
        """
        return self._location.files.find_changes()

    @property
    def preload(self) -> bool:
        """Whether its instructions stand in the prompt from the start."""
        return self._location.preload

    @property
    def body_offset(self) -> int:
        """The byte of the file at which the body began when the head was read."""
        return self._offset

    @property
    def is_body_seen(self) -> bool:
        """True when discovery saw that its body is not blank."""
        return self._location.is_body_seen

    @property
    def is_searched_below(self) -> bool:
        """True when discovery looked below its folder for further skills."""
        return self._location.is_searched_below

    @property
    def identity(self) -> Identity | None:
        """Device, inode, size and times of the file when its head was read."""
        return self._identity

    @property
    def policy(self) -> LoadPolicy:
        """How strictly its file is read."""
        return self._location.policy

    @property
    def limits(self) -> Limits:
        """The bounds under which it was found."""
        return self._location.policy.limits

"""Where a skill lives: which folder, reached how, found by whom; or what stands in for a folder."""

from __future__ import annotations

import os

from prowess.on_demand import OnDemand
from prowess.records import NamedTuple
from prowess.skills.head import SkillHead
from prowess.spec.document import LoadPolicy

TYPE_CHECKING = False

if TYPE_CHECKING:
    from pathlib import Path

    from prowess.files.read import Identity
    from prowess.limits import Limits
    from prowess.model import SkillScope
    from prowess.skills import skill_files
    from prowess.skills.skill_files import FilePin, SkillFiles
else:
    skill_files = OnDemand("prowess.skills.skill_files")


class SkillLocation(NamedTuple):
    """Where and how skills were found; most skills of a root share one."""

    base: str = ""
    """The folder that the caller gave, or that a link was allowed to lead to: reads stay below it."""
    file: str = ""
    scope: SkillScope | None = None
    policy: LoadPolicy = LoadPolicy()
    origin: str = "directory"
    shown: str | None = None
    """The folder as it was found, where that is a link."""
    links: tuple[str, ...] = ()
    """The links that the walk followed on its way to the folder, the first one first."""
    virtual: str | None = None
    preload: bool = False
    body: str | None = None
    """The whole text of a skill that has no file."""
    body_seen: bool = True
    """Whether discovery saw that the body is not blank."""
    searched: bool = False
    """Whether discovery looked below its folder for further skills."""
    contents: SkillFiles | None = None
    """What gives the files of a skill that has no folder here."""
    pin: FilePin | None = None
    """What a lock file says of its files; every read is compared with it."""


class LocatedHead(SkillHead):
    """A head with a home: what is asked of a skill about its place, answered without opening anything."""

    __slots__ = ("_home", "_identity", "_offset", "_rel")

    _home: SkillLocation
    _identity: Identity | None
    _offset: int
    _rel: str

    @property
    def is_inline(self) -> bool:
        """Whether it is text in a program, without files."""
        return not self._home.base and self._home.contents is None

    @property
    def dir(self) -> Path | None:
        """Its folder, as it was found; ``None`` without one."""
        from pathlib import Path  # noqa: PLC0415 - discovery works without path objects

        return Path(self._folder()) if self._home.base else None

    @property
    def path(self) -> Path | None:
        """Its SKILL.md; ``None`` without a folder."""
        from pathlib import Path  # noqa: PLC0415

        return Path(self._folder(), self._home.file) if self._home.base else None

    @property
    def location(self) -> str:
        """The path of its SKILL.md, or its URL, or ``inline:NAME``."""
        if self._home.base:
            return f"{self._folder()}{os.sep}{self._home.file}"
        return f"inline:{self._name}" if self._home.contents is None else self._home.contents.location

    def _folder(self) -> str:
        if self._home.shown is not None:
            return self._home.shown
        return f"{self._home.base}{os.sep}{self._rel}" if self._rel else self._home.base

    @property
    def folder(self) -> str:
        """Its folder as text, ``""`` without one."""
        return self._folder() if self._home.base else ""

    @property
    def is_local(self) -> bool:
        """Whether it is a folder on this machine: only then can anything of it ever run."""
        return bool(self._home.base)

    @property
    def base(self) -> str:
        """The folder that reads stay below; its own folder is ``parts`` below it."""
        return self._home.base

    @property
    def parts(self) -> tuple[str, ...]:
        """The way from ``base`` to its folder."""
        return self._parts()

    @property
    def file_name(self) -> str:
        """The name of its SKILL.md as it was found."""
        return self._home.file

    @property
    def is_linked(self) -> bool:
        """Whether it was reached through a link."""
        return self._home.shown is not None

    @property
    def real_folder(self) -> str:
        """Its folder without the link that led there, ``""`` without one."""
        return os.path.join(self._home.base, self._rel) if self._rel else self._home.base

    @property
    def ways(self) -> tuple[str, ...]:
        """The paths that led to its folder: of each link that was followed, and its own."""
        return (*self._home.links, self._folder())

    @property
    def folder_name(self) -> str:
        """The name of its folder, ``""`` without one."""
        return os.path.basename(self._folder())

    @property
    def virtual_path(self) -> str:
        """The folder under which filters and listings know it; the real one unless it was mounted elsewhere."""
        return self._home.virtual if self._home.virtual is not None else self._folder().replace(os.sep, "/")

    @property
    def scope(self) -> SkillScope | None:
        return self._home.scope

    @property
    def origin(self) -> str:
        """What kind of source it came from."""
        return self._home.origin

    @property
    def told_by(self) -> str:
        """Who says what is in it, where a model must be told; ``""``: it is the user's own."""
        return skill_files.get_source_label(self._home.contents)

    def find_changes(self) -> str:
        """Ask the server that it comes from, if it comes from one, which files differ there now, in one line.

        ``""`` where none does, and for every skill that no server gives. Raises ``FetchError`` where the server cannot
        be asked, or no longer gives the skill.
        """
        return skill_files.find_changes(self._home.contents)

    @property
    def preload(self) -> bool:
        """Whether its instructions stand in the prompt from the start."""
        return self._home.preload

    @property
    def body_offset(self) -> int:
        """The byte of the file at which the body began when the head was read."""
        return self._offset

    @property
    def identity(self) -> Identity | None:
        """Device, inode, size and times of the file when its head was read."""
        return self._identity

    @property
    def state(self) -> object:
        """What differs when its SKILL.md may have changed: the file's identity, or what its source says of it."""
        return self._identity if self._home.contents is None else self._home.contents.state

    @property
    def limits(self) -> Limits:
        """The bounds under which it was found."""
        return self._home.policy.limits

    def _parts(self) -> tuple[str, ...]:
        return tuple(self._rel.split(os.sep)) if self._rel else ()

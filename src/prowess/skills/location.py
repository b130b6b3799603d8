"""The location of a skill: its folder or what is in place of one, and how discovery found it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from prowess.arguments import raise_bad_argument
from prowess.format.head import LoadPolicy
from prowess.model import SkillScope
from prowess.skills.skill_files import FolderFiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from prowess.skills.skill_files import FolderPlace, SkillFiles


def as_scope(given: str | None) -> SkillScope | None:
    """Return the scope that a caller gave, perhaps as a string; raise ``SourceError`` for any other value."""
    if given is None:
        return None
    try:
        return SkillScope(given)
    except ValueError:
        raise_bad_argument("scope", 'is "project", "user" or None', given)


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
    """Whether the instructions are in the prompt from the start."""
    is_body_seen: bool = True
    """Whether discovery saw that the body is not blank."""
    is_searched_below: bool = False
    """Whether discovery looked below its folder for further skills."""
    open_folder: Callable[[FolderPlace], SkillFiles] = FolderFiles
    """What gives a skill in a folder its files."""
    files: SkillFiles | None = None
    """The files of a skill that is in no folder."""

"""Plain data that passes between the layers; it opens no file and knows no rule."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from prowess.text.escapes import escape_line

if TYPE_CHECKING:
    from prowess.errors import Issue

Value: TypeAlias = "str | list[Value] | dict[str, Value]"
"""A frontmatter value: text as it was written, a list of values, or a mapping of text to values."""


class SkillScope(StrEnum):
    """Whose skill it is: the project's or the user's. Equal to its value, a string."""

    PROJECT = "project"
    USER = "user"


@dataclass(frozen=True, slots=True)
class Resources:
    """The names of the supporting files of a skill, one level deep; ``paths`` has them relative to its folder."""

    scripts: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    assets: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    issues: tuple[Issue, ...] = field(default=(), compare=False)

    @property
    def paths(self) -> tuple[str, ...]:
        """The relative paths of the files: assets, scripts, references, then those beside SKILL.md."""
        groups = (("assets", self.assets), ("scripts", self.scripts), ("references", self.references))
        return tuple(f"{folder}/{name}" for folder, names in groups for name in names) + self.other

    def __bool__(self) -> bool:
        """Whether there is any supporting file."""
        return bool(self.scripts or self.references or self.assets or self.other)


class FileList(tuple[str, ...]):  # noqa: SLOT001 - a tuple with slots cannot carry its issues
    """Relative POSIX paths in byte order, with the ``issues`` of the listing, such as a limit that was hit."""

    issues: tuple[Issue, ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Shadowed:
    """A skill that lost to another of its name: where it is, where the winner is, and the reason."""

    name: str
    location: str
    winner: str
    reason: str


@dataclass(frozen=True, slots=True)
class Place:
    """A folder that discovery searched for skills, whose it is, its state, and how many skills were found."""

    path: str
    scope: SkillScope | None = None
    state: str = "scanned"
    found: int = 0


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a model sees, or does not see, the skill of a name; ``str()`` gives it as text for people."""

    name: str
    location: str | None
    visible: bool
    reasons: tuple[str, ...]
    shadowed: tuple[Shadowed, ...] = ()
    issues: tuple[Issue, ...] = ()
    places: tuple[Place, ...] = ()

    def __str__(self) -> str:
        """Return a few lines: the winner, the losers, the issues, and every place that was searched."""
        rows = [f"{self.name}: {self.location or 'not found'}"]
        rows += [f"  {reason}" for reason in self.reasons]
        rows += [f"  shadowed: {s.location} ({s.reason})" for s in self.shadowed]
        rows += [f"  {issue}" for issue in self.issues]
        rows += [f"  looked in {p.path}: {p.state}, {p.found} found" for p in self.places]
        return "\n".join(map(escape_line, rows))

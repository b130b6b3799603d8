"""The source of one skill that is text in a program. It has no files, and is checked like a skill in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.arguments import check_flag, check_text
from prowess.errors import SourceError
from prowess.format.frontmatter.fields import Frontmatter
from prowess.format.rules import is_usable_name
from prowess.skills.catalog import Catalog
from prowess.skills.skill import Skill

if TYPE_CHECKING:
    from collections.abc import Mapping

_CONTEXTS = (None, "", "fork")


class InlineSource:
    """One skill that is given as text."""

    __slots__ = ("_front", "_instructions", "_preload")

    def __init__(
        self,
        name: str,
        description: str,
        instructions: str,
        *,
        preload: bool = False,
        context: str | None = None,
        model: str | None = None,
        allowed_tools: tuple[str, ...] = (),
        tags: tuple[str, ...] = (),
        metadata: Mapping[str, str] | None = None,
        toolsets: tuple[str, ...] = (),
    ) -> None:
        check_text(instructions, "instructions")
        check_flag(preload, "preload")
        self._front = Frontmatter(
            name=name,
            description=description,
            context=context or None,
            model=model,
            allowed_tools=allowed_tools,
            allowed_tools_raw=" ".join(allowed_tools) or None,
            tags=tags,
            metadata=metadata or {},
            extra={"toolsets": list(toolsets)} if toolsets else {},
        )
        self._instructions = instructions
        self._preload = preload

    def __repr__(self) -> str:
        """Show the name of the skill."""
        return f"Source.inline({self._front.name!r})"

    @property
    def dir(self) -> None:
        """Always ``None``, because a string has no folder."""
        return None

    def load(self) -> Catalog:
        """Return the one skill; raises ``SourceError`` when a file with this text would not be a skill either."""
        self._check_fields()
        return Catalog([Skill(self._front, body=self._instructions).with_source(preload=self._preload)])

    def _check_fields(self) -> None:
        front = self._front
        _refuse_odd_text(front.name, f"{front.description}\n{self._instructions}")
        if not is_usable_name(front.name) or any(char.isspace() for char in front.name):
            raise SourceError(f"an inline skill cannot be named {front.name!r}", code="bad-name")
        # A preloaded skill is active from the start, so nobody chooses it by its description.
        if not front.description.strip() and not self._preload:
            raise SourceError(f"inline skill {front.name!r} needs a description", code="missing-description")
        if not self._instructions.strip():
            raise SourceError(f"inline skill {front.name!r} needs instructions", code="empty-body")
        if front.context not in _CONTEXTS:
            raise SourceError(f"inline skill {front.name!r}: context must be 'fork' or nothing, not {front.context!r}")
        if "toolsets" in front.extra and front.context != "fork":
            raise SourceError(f"inline skill {front.name!r}: only a skill with context='fork' has toolsets")


def _refuse_odd_text(name: str, text: str) -> None:
    """Raise ``SourceError`` for a string that could not be in a SKILL.md either."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise SourceError(f"inline skill {name!r} holds an unpaired surrogate", code="not-utf8") from None
    if "\0" in text:
        raise SourceError(f"inline skill {name!r} holds a control character", code="control-character")

"""Skills that people call by name, as prompts: ``/name arguments``, with completion of what can be completed."""

from __future__ import annotations

import re
import shlex
from bisect import bisect_left, bisect_right
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import ResourceNotFoundError, SkillError, SourceError
from prowess.mcp.handlers import current_answer
from prowess.mcp.pagination import complete, item_before
from prowess.mcp.uris import TEMPLATE
from prowess.spec.hidden_characters import one_line
from prowess.spec.placeholders import argument_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.limits import Limits
    from prowess.mcp.served_skills import Shelf
    from prowess.mcp.tools import ModelTools
    from prowess.skills.skill import Skill
    from prowess.spec.frontmatter.json_types import Json

    Result = dict[str, Json]

_ANY = "arguments"
_WORDS = re.compile(r"[\[<(]([^\]>)]*)[\]>)]|(\S+)")
_MOST_VALUES = 100
_MOST_CHARS = 200


class Argument(NamedTuple):
    """One argument of a prompt, and the values that its hint lists."""

    name: str
    about: str = ""
    values: tuple[str, ...] = ()


def arguments_of(skill: Skill) -> tuple[Argument, ...]:
    """The arguments that a skill names, each with its part of the hint; else one for everything that is said."""
    front = skill.peek()
    hint = front.extra.get("argument-hint")
    said = one_line(hint)[:_MOST_CHARS] if isinstance(hint, str) else ""
    names = argument_names(front.extra.get("arguments"))
    if not names:
        return (Argument(_ANY, said, _values(said)),)
    parts = [match[1] or match[2] for match in _WORDS.finditer(said)]
    parts += [""] * (len(names) - len(parts))
    return tuple(Argument(name, part, _values(part)) for name, part in zip(names, parts, strict=False))


def _values(hint: str) -> tuple[str, ...]:
    """``low|high`` in a hint, also after a colon, is a choice."""
    choice = hint.strip("[]<>()").rpartition(":")[2].strip()
    values = tuple(value.strip() for value in choice.split("|"))
    return values if len(values) > 1 and all(values) else ()


class Prompts:
    """The prompts for one shelf."""

    def __init__(self, shelf: Shelf, tools: ModelTools, limits: Limits) -> None:
        self._shelf = shelf
        self._tools = tools
        self._limits = limits

    @cached_property
    def names(self) -> list[str]:
        """The skills that people may call, by name."""
        return [skill.name for skill in self._shelf.catalog if skill.user_invocable]

    def page(self, cursor: str | None) -> Result:
        """A page of prompts."""
        after, most = item_before(cursor), self._limits.max_page_entries
        begin = bisect_right(self.names, after) if after else 0
        page = self.names[begin : begin + most]
        more = begin + most < len(self.names)
        return complete("prompts", [self._row(self._shelf.catalog[name]) for name in page], page[-1] if more else None)

    def _row(self, skill: Skill) -> Json:
        rows: list[Json] = [
            {"name": arg.name, **({"description": arg.about} if arg.about else {}), "required": False}
            for arg in arguments_of(skill)
        ]
        return {"name": skill.name, "description": one_line(skill.description), "arguments": rows}

    def get(self, name: str, given: Mapping[str, str]) -> Result:
        """The text that the call of a skill sends to the model."""
        skill = self._callable(name)
        known = [argument.name for argument in arguments_of(skill)]
        unknown = [key for key in given if key not in known]
        if unknown:
            raise SourceError(f"prompt {name!r} has no argument {unknown[0][:64]!r}; known: {', '.join(known)}")
        said = given.get(_ANY, "") if known == [_ANY] else _line([given.get(key, "") for key in known])
        text = self._tools.write_call(skill, said)
        message: Json = {"role": "user", "content": {"type": "text", "text": text}}
        said_about = one_line(skill.description)
        answer: Result = {"resultType": "complete", "description": said_about, "messages": [message]}
        return current_answer(skill, answer)

    def _callable(self, name: str) -> Skill:
        skill = self._shelf.catalog.get(name)
        if skill is None or not skill.user_invocable:
            raise ResourceNotFoundError(f"no prompt {name[:64]!r}")
        return skill

    # -- completion --------------------------------------------------------------------------------------------------

    def complete(self, ref: Mapping[str, object], name: str, value: str, said: Mapping[str, str]) -> Result:
        """The values that an argument of a prompt, or of the template of resources, may have."""
        if ref.get("type") == "ref/prompt":
            skill = self._callable(str(ref.get("name")))
            known = next((argument for argument in arguments_of(skill) if argument.name == name), None)
            found = [one for one in (known.values if known else ()) if one.startswith(value)]
        elif ref.get("uri") == TEMPLATE:
            found = self._paths(value) if name == "skill" else self._files(said.get("skill", ""), value)
        else:
            raise ResourceNotFoundError(f"nothing to complete for {str(ref.get('uri'))[:200]!r}")
        values: list[Json] = [*found[:_MOST_VALUES]]
        shown: Json = {"values": values, "total": len(found), "hasMore": len(found) > _MOST_VALUES}
        return {"resultType": "complete", "completion": shown}

    def _paths(self, begin: str) -> list[str]:
        listed = self._shelf.listed
        return listed[bisect_left(listed, begin) : bisect_left(listed, begin + "\U0010ffff")]

    def _files(self, path: str, begin: str) -> list[str]:
        skill = self._shelf.skills.get(path)
        try:
            return [file for file in skill.files() if file.startswith(begin)] if skill is not None else []
        except SkillError:
            return []


def _line(words: list[str]) -> str:
    """Words as one line that splits into them again; missing ones at the end are left out."""
    while words and not words[-1]:
        words.pop()
    return " ".join(shlex.quote(word) for word in words)

"""Skills that people call by name, as prompts: ``/name arguments``, with completion of what can be completed."""

from __future__ import annotations

import re
import shlex
from bisect import bisect_left, bisect_right
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import ResourceNotFoundError, SkillError, SourceError
from prowess.mcp.answers import Answer, answer_about_skill
from prowess.mcp.pagination import decode_cursor, make_page
from prowess.mcp.uris import URI_TEMPLATE
from prowess.spec.hidden_characters import to_one_line
from prowess.spec.placeholders import parse_argument_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.limits import Limits
    from prowess.mcp.served_skills import ServedSkills
    from prowess.mcp.tools import ModelTools
    from prowess.skills.skill import Skill
    from prowess.spec.frontmatter.json_types import Json

_FREE_ARGUMENT = "arguments"
_HINT_PARTS = re.compile(r"[\[<(]([^\]>)]*)[\]>)]|(\S+)")
_MAX_VALUES = 100
_MAX_HINT_CHARS = 200


class PromptArgument(NamedTuple):
    """One argument of a prompt, and the values that its hint lists."""

    name: str
    hint: str = ""
    values: tuple[str, ...] = ()


def list_arguments(skill: Skill) -> tuple[PromptArgument, ...]:
    """The arguments that a skill names, each with its part of the hint; else one for everything that is said."""
    front = skill.peek()
    hint = front.extra.get("argument-hint")
    said = to_one_line(hint)[:_MAX_HINT_CHARS] if isinstance(hint, str) else ""
    names = parse_argument_names(front.extra.get("arguments"))
    if not names:
        return (PromptArgument(_FREE_ARGUMENT, said, _parse_choices(said)),)
    parts = [match[1] or match[2] for match in _HINT_PARTS.finditer(said)]
    parts += [""] * (len(names) - len(parts))
    return tuple(PromptArgument(name, part, _parse_choices(part)) for name, part in zip(names, parts, strict=False))


def _parse_choices(hint: str) -> tuple[str, ...]:
    """``low|high`` in a hint, also after a colon, is a choice."""
    choice = hint.strip("[]<>()").rpartition(":")[2].strip()
    values = tuple(value.strip() for value in choice.split("|"))
    return values if len(values) > 1 and all(values) else ()


class Prompts:
    """The prompts for one shelf."""

    def __init__(self, shelf: ServedSkills, tools: ModelTools, limits: Limits) -> None:
        self._served = shelf
        self._tools = tools
        self._limits = limits

    @cached_property
    def names(self) -> list[str]:
        """The skills that people may call, by name."""
        return [skill.name for skill in self._served.catalog if skill.user_invocable]

    def list_prompts(self, cursor: str | None) -> Answer:
        """A page of prompts."""
        after, most = decode_cursor(cursor), self._limits.max_page_entries
        begin = bisect_right(self.names, after) if after else 0
        page = self.names[begin : begin + most]
        more = begin + most < len(self.names)
        prompts = [self._describe_prompt(self._served.catalog[name]) for name in page]
        return Answer(make_page("prompts", prompts, page[-1] if more else None))

    def _describe_prompt(self, skill: Skill) -> Json:
        rows: list[Json] = [
            {"name": arg.name, **({"description": arg.hint} if arg.hint else {}), "required": False}
            for arg in list_arguments(skill)
        ]
        return {"name": skill.name, "description": to_one_line(skill.description), "arguments": rows}

    def get_prompt(self, name: str, given: Mapping[str, str]) -> Answer:
        """The text that the call of a skill sends to the model."""
        skill = self._find_prompt_skill(name)
        known = [argument.name for argument in list_arguments(skill)]
        unknown = [key for key in given if key not in known]
        if unknown:
            raise SourceError(f"prompt {name!r} has no argument {unknown[0][:64]!r}; known: {', '.join(known)}")
        said = (
            given.get(_FREE_ARGUMENT, "")
            if known == [_FREE_ARGUMENT]
            else _quote_words([given.get(key, "") for key in known])
        )
        text = self._tools.write_user_call(skill, said)
        message: Json = {"role": "user", "content": {"type": "text", "text": text}}
        about = to_one_line(skill.description)
        return answer_about_skill(skill, {"resultType": "complete", "description": about, "messages": [message]})

    def _find_prompt_skill(self, name: str) -> Skill:
        skill = self._served.catalog.get(name)
        if skill is None or not skill.user_invocable:
            raise ResourceNotFoundError(f"no prompt {name[:64]!r}")
        return skill

    # -- completion --------------------------------------------------------------------------------------------------

    def complete_argument(self, ref: Mapping[str, object], name: str, value: str, said: Mapping[str, str]) -> Answer:
        """The values that an argument of a prompt, or of the template of resources, may have."""
        if ref.get("type") == "ref/prompt":
            skill = self._find_prompt_skill(str(ref.get("name")))
            known = next((argument for argument in list_arguments(skill) if argument.name == name), None)
            found = [one for one in (known.values if known else ()) if one.startswith(value)]
        elif ref.get("uri") == URI_TEMPLATE:
            found = (
                self._complete_paths(value) if name == "skill" else self._complete_files(said.get("skill", ""), value)
            )
        else:
            raise ResourceNotFoundError(f"nothing to complete for {str(ref.get('uri'))[:200]!r}")
        values: list[Json] = [*found[:_MAX_VALUES]]
        shown: Json = {"values": values, "total": len(found), "hasMore": len(found) > _MAX_VALUES}
        return Answer({"resultType": "complete", "completion": shown})

    def _complete_paths(self, begin: str) -> list[str]:
        listed = self._served.listed_paths
        return listed[bisect_left(listed, begin) : bisect_left(listed, begin + "\U0010ffff")]

    def _complete_files(self, path: str, begin: str) -> list[str]:
        skill = self._served.skills.get(path)
        try:
            return [file for file in skill.files() if file.startswith(begin)] if skill is not None else []
        except SkillError:
            return []


def _quote_words(words: list[str]) -> str:
    """Words as one line that splits into them again; missing ones at the end are left out."""
    while words and not words[-1]:
        words.pop()
    return " ".join(shlex.quote(word) for word in words)

"""Prompts: the skills that people call by name, as ``/name arguments``, and the completion of their arguments."""

from __future__ import annotations

import re
import shlex
from bisect import bisect_left, bisect_right
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import ResourceNotFoundError, SkillError, SourceError
from prowess.format.placeholders import parse_argument_names
from prowess.mcp.answers import Answer, answer_about_skill, decode_cursor, make_page
from prowess.mcp.served_skills import URI_TEMPLATE
from prowess.text.hidden_characters import to_one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.format.frontmatter.json_types import Json
    from prowess.limits import Limits
    from prowess.mcp.served_skills import ServedSkills
    from prowess.mcp.tools import ModelTools
    from prowess.skills.skill import Skill

_FREE_ARGUMENT = "arguments"
_HINT_PARTS = re.compile(r"[\[<(]([^\]>)]*)[\]>)]|(\S+)")
_MAX_VALUES = 100  # the protocol allows no more values in one completion
_MAX_HINT_CHARS = 200


class PromptArgument(NamedTuple):
    """An argument of a prompt, with its hint and the values that the hint lists."""

    name: str
    hint: str = ""
    values: tuple[str, ...] = ()


def list_arguments(skill: Skill) -> tuple[PromptArgument, ...]:
    """Return the arguments that a skill names, each with its part of the hint.

    A skill that names none has a single argument for the whole text.
    """
    front = skill.peek()
    field = front.extra.get("argument-hint")
    hint = to_one_line(field)[:_MAX_HINT_CHARS] if isinstance(field, str) else ""
    names = parse_argument_names(front.extra.get("arguments"))
    if not names:
        return (PromptArgument(_FREE_ARGUMENT, hint, _parse_choices(hint)),)
    parts = [match[1] or match[2] for match in _HINT_PARTS.finditer(hint)]
    parts += [""] * (len(names) - len(parts))
    return tuple(PromptArgument(name, part, _parse_choices(part)) for name, part in zip(names, parts, strict=False))


def _parse_choices(hint: str) -> tuple[str, ...]:
    """Return the values that a hint such as ``low|high`` or ``level: low|high`` lists, none for any other hint."""
    choice = hint.strip("[]<>()").rpartition(":")[2].strip()
    values = tuple(value.strip() for value in choice.split("|"))
    return values if len(values) > 1 and all(values) else ()


class Prompts:
    """The prompts for one set of served skills."""

    def __init__(self, served: ServedSkills, tools: ModelTools, limits: Limits) -> None:
        self._served = served
        self._tools = tools
        self._limits = limits

    @cached_property
    def names(self) -> list[str]:
        """The sorted names of the skills that people may call."""
        return [skill.name for skill in self._served.catalog if skill.user_invocable]

    def list_prompts(self, cursor: str | None) -> Answer:
        """Return a page of prompts."""
        after, limit = decode_cursor(cursor), self._limits.max_page_entries
        begin = bisect_right(self.names, after) if after else 0
        page = self.names[begin : begin + limit]
        more = begin + limit < len(self.names)
        prompts = [self._describe_prompt(self._served.catalog[name]) for name in page]
        return Answer(make_page("prompts", prompts, page[-1] if more else None))

    def _describe_prompt(self, skill: Skill) -> Json:
        arguments: list[Json] = [
            {"name": arg.name, **({"description": arg.hint} if arg.hint else {}), "required": False}
            for arg in list_arguments(skill)
        ]
        return {"name": skill.name, "description": to_one_line(skill.description), "arguments": arguments}

    def get_prompt(self, name: str, given: Mapping[str, str]) -> Answer:
        """Return the message that a person's call of a skill sends to the model.

        Raises ``ResourceNotFoundError`` for a skill that people may not call, and ``SourceError`` for an argument that
        the prompt does not have.
        """
        skill = self._find_prompt_skill(name)
        known = [argument.name for argument in list_arguments(skill)]
        unknown = [key for key in given if key not in known]
        if unknown:
            raise SourceError(f"prompt {name!r} has no argument {unknown[0][:64]!r}; known: {', '.join(known)}")
        is_free = known == [_FREE_ARGUMENT]
        text = given.get(_FREE_ARGUMENT, "") if is_free else _quote_words([given.get(key, "") for key in known])
        text = self._tools.write_user_call(skill, text)
        message: Json = {"role": "user", "content": {"type": "text", "text": text}}
        about = to_one_line(skill.description)
        return answer_about_skill(skill, {"resultType": "complete", "description": about, "messages": [message]})

    def _find_prompt_skill(self, name: str) -> Skill:
        skill = self._served.catalog.get(name)
        if skill is None or not skill.user_invocable:
            raise ResourceNotFoundError(f"no prompt {name[:64]!r}")
        return skill

    # -- completion --------------------------------------------------------------------------------------------------

    def complete_argument(self, ref: Mapping[str, object], name: str, value: str, given: Mapping[str, str]) -> Answer:
        """Return the values that an argument of a prompt or of the resource template may have, as ``value`` begins.

        ``given`` are the arguments that the client knows already. Raises ``ResourceNotFoundError`` for another ``ref``.
        """
        if ref.get("type") == "ref/prompt":
            skill = self._find_prompt_skill(str(ref.get("name")))
            known = next((argument for argument in list_arguments(skill) if argument.name == name), None)
            values = [choice for choice in (known.values if known else ()) if choice.startswith(value)]
        elif ref.get("uri") == URI_TEMPLATE:
            values = (
                self._complete_paths(value) if name == "skill" else self._complete_files(given.get("skill", ""), value)
            )
        else:
            raise ResourceNotFoundError(f"nothing to complete for {str(ref.get('uri'))[:200]!r}")
        completion = {"values": values[:_MAX_VALUES], "total": len(values), "hasMore": len(values) > _MAX_VALUES}
        return Answer({"resultType": "complete", "completion": completion})

    def _complete_paths(self, begin: str) -> list[str]:
        listed = self._served.extension.listed_paths
        # Paths are sorted, and no path has a character behind U+10FFFF: two searches give all that begin so.
        return listed[bisect_left(listed, begin) : bisect_left(listed, begin + "\U0010ffff")]

    def _complete_files(self, path: str, begin: str) -> list[str]:
        skill = self._served.find_skill(path)
        try:
            return [file for file in skill.files() if file.startswith(begin)] if skill is not None else []
        except SkillError:
            return []


def _quote_words(words: list[str]) -> str:
    """Return one line that a shell would split into ``words`` again, without empty words at the end."""
    while words and not words[-1]:
        words.pop()
    return " ".join(shlex.quote(word) for word in words)

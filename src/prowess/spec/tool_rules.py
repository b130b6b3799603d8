"""``allowed-tools`` as rules: what a ceiling leaves of them, and whether one covers a command."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

ToolAnswer = Literal["allowed", "refused", "not-mentioned"]
ANY_TOOL: Final = "any"
"""What a host says in place of a list of tools: no ceiling, and skills approve what they name."""

# Whatever lets a shell do more than the one command: operators, substitution, redirection, another line.
_MORE_THAN_ONE = re.compile(r"[;&|<>`\n\r\x00]|\$[\w({\[@*?$!#-]")

# In no name of a tool: two in one text, or a parenthesis that was never opened.
_NO_NAME = re.compile(r"[\s,)]")


class ToolPattern(NamedTuple):
    """``Bash(git:*)``: the tool, and what is in the parentheses; ``None`` without any."""

    tool: str
    inside: str | None


@lru_cache(maxsize=4096)
def parse_tool_pattern(written: str) -> ToolPattern:
    """A tool as it is written, in its parts."""
    tool, parenthesis, rest = written.partition("(")
    return ToolPattern(tool.strip(), rest.removesuffix(")").strip() if parenthesis else None)


def is_tool_pattern(written: str) -> bool:
    """Whether a text is one tool (``Read``), or one with a pattern in parentheses behind it (``Bash(git:*)``)."""
    tool, parenthesis, inside = written.strip().partition("(")
    is_name = _NO_NAME.search(tool.strip()) is None and bool(tool.strip())
    return is_name and (not parenthesis or inside.endswith(")"))


def grant_tools(wanted: Iterable[str], ceiling: Iterable[str] | None) -> tuple[str, ...]:
    """What a host with this ceiling grants of the tools that a skill wants, sorted; ``None`` is no ceiling.

    A pattern under a ceiling of its whole tool, or of the same pattern, is granted as written; a whole tool under a
    ceiling of patterns is granted as those patterns. ``mcp__*`` in a ceiling is every tool whose name begins so; a
    ceiling that a host gives has no such names (``without_wildcards``).
    """
    if ceiling is None:
        return tuple(sorted(set(wanted)))
    allowed = set(ceiling)
    whole = {pattern.tool for pattern in map(parse_tool_pattern, allowed) if pattern.inside is None}
    found: set[str] = set()
    for written in wanted:
        pattern = parse_tool_pattern(written)
        if written in allowed or any(is_tool_match(pattern.tool, tool) for tool in whole):
            found.add(written)
        elif pattern.inside is None:
            found.update(one for one in allowed if parse_tool_pattern(one).tool == pattern.tool)
    return tuple(sorted(found))


class ToolCeiling(NamedTuple):
    """What a host says about tools: the most that it allows, and whether skills may approve any of it."""

    tools: tuple[str, ...] | None = None
    """The only tools that are allowed; ``None``: no tool is refused."""
    grants: bool = False
    """Whether the ``allowed-tools`` of active skills approve calls. They do only where the host said so: a skill that
    somebody downloaded must not have the user's shell because of a line in its own head."""

    @classmethod
    def of(cls, tools: Iterable[str] | Literal["any"] | None) -> ToolCeiling:
        """The ceiling for what a host gave as ``tools``: the names, ``"any"``, or ``None`` for nothing."""
        if tools is None or tools == ANY_TOOL:
            return cls(None, tools == ANY_TOOL)
        return cls(without_wildcards(tools), grants=True)

    def grant(self, wanted: Iterable[str]) -> tuple[str, ...]:
        """What is approved of the tools that a skill wants, sorted."""
        return grant_tools(wanted, self.tools) if self.grants else ()

    def intersect(self, other: ToolCeiling) -> ToolCeiling:
        """The ceiling that allows and grants what both do."""
        return ToolCeiling(intersect_ceilings(self.tools, other.tools), self.grants and other.grants)


def without_wildcards(tools: Iterable[str]) -> tuple[str, ...]:
    """The tools whose names have no asterisk: a ceiling names what it allows, so that no ``*`` of a host allows all.

    Only the list of a fork may mean a family of tools; what it leaves of a ceiling is named again.
    """
    return tuple(written for written in tools if "*" not in parse_tool_pattern(written).tool)


def intersect_ceilings(one: Iterable[str] | None, other: Iterable[str] | None) -> tuple[str, ...] | None:
    """The ceiling that allows what both allow, sorted; ``None`` is no ceiling.

    Of two patterns of one tool the narrower stays, where one covers the other; two that merely overlap leave nothing.
    """
    if one is None or other is None:
        only = other if one is None else one
        return None if only is None else tuple(sorted(set(only)))
    first, second = set(one), set(other)
    narrower = {a for a in first for b in second if _is_within(parse_tool_pattern(a), parse_tool_pattern(b))}
    narrower |= {b for b in second for a in first if _is_within(parse_tool_pattern(b), parse_tool_pattern(a))}
    return tuple(sorted(narrower))


def _is_within(narrow: ToolPattern, wide: ToolPattern) -> bool:
    """Whether whatever ``narrow`` covers is covered by ``wide`` as well; ``False`` where that is hard to tell."""
    if not is_tool_match(narrow.tool, wide.tool):
        return False
    if wide.inside is None or narrow == wide:
        return True
    if narrow.inside is None or narrow.tool != wide.tool:
        return False
    begin = narrow.inside.removesuffix(":*")
    return wide.inside.endswith(":*") and "*" not in begin and _is_command_match(wide.inside, begin)


def is_tool_match(tool: str, name: str) -> bool:
    """Whether ``tool`` goes by ``name``, in which an asterisk stands for any characters: ``mcp__*``, ``*``.

    A tool with asterisks of its own goes by a name only where every tool that it stands for does.
    """
    return tool == name or ("*" in name and _is_wildcard_match(name.split("*"), tool))


def judge_call(tool: str, command: str | None, patterns: Iterable[str], *, has_families: bool = False) -> ToolAnswer:
    """Whether ``patterns`` cover a call of ``tool``; a command that could do more than one thing is never covered.

    ``has_families``: asterisks in the names of tools count, so that ``mcp__*`` mentions ``mcp__git__log``. They do in
    what bounds a conversation, not in what a skill asks for.
    """
    named = is_tool_match if has_families else str.__eq__
    own = [pattern for pattern in map(parse_tool_pattern, patterns) if named(tool, pattern.tool)]
    if not own:
        return "not-mentioned"
    if any(pattern.inside is None for pattern in own):
        return "allowed"
    if command is None or _MORE_THAN_ONE.search(command):
        return "refused"
    return "allowed" if any(_is_command_match(pattern.inside or "", command.strip()) for pattern in own) else "refused"


def _is_command_match(inside: str, command: str) -> bool:
    if inside in {"", "*"}:
        return inside == "*"
    if inside.endswith(":*"):
        begin = inside.removesuffix(":*")
        return command == begin or command.startswith(begin + " ")
    return _is_wildcard_match(inside.split("*"), command)


def _is_wildcard_match(parts: list[str], command: str) -> bool:
    """Whether the parts of a pattern between its asterisks stand in the command, in order, the ends at its ends."""
    first, last = parts[0], parts[-1]
    if len(parts) == 1:
        return command == first
    at, end = len(first), len(command) - len(last)
    if at > end or not command.startswith(first) or not command.endswith(last):
        return False
    for part in parts[1:-1]:
        found = command.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True

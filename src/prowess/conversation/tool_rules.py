"""The rules for tools: what a host's ceiling leaves of a skill's ``allowed-tools``, and which calls they cover."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from prowess.arguments import check_texts, raise_bad_argument

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

ANY_TOOL: Final = "any"
"""What a host passes in place of a list of tools: no ceiling, and skills approve the tools that they name."""

# What lets a shell do more than one command: operators, substitution, redirection, another line. A pattern such as
# ``git:*`` must never cover ``git log; rm -rf ~``.
_MORE_THAN_ONE = re.compile(r"[;&|<>`\n\r\x00]|\$[\w({\[@*?$!#-]")

# Signs that are not in names of tools: they show two names in one string, or a parenthesis that was never opened.
_NO_NAME = re.compile(r"[\s,)]")


class ToolAnswer(str):
    """The answer about one call of a tool: the string ``allowed``, ``refused`` or ``not-mentioned``.

    Only ``allowed`` is true, so that ``if session.allows(…)`` never runs a call that no skill approves.
    """

    __slots__ = ()

    def __bool__(self) -> bool:
        return self == "allowed"


ALLOWED, REFUSED, NOT_MENTIONED = map(ToolAnswer, ("allowed", "refused", "not-mentioned"))


class ToolPattern(NamedTuple):
    """A tool such as ``Bash(git:*)``: its name, and the text in the parentheses, or ``None`` without parentheses."""

    tool: str
    inside: str | None


@lru_cache(maxsize=4096)  # every call of a tool is judged against all patterns of the active skills
def parse_tool_pattern(written: str) -> ToolPattern:
    """Return the name and the pattern of a tool that is written as ``Read`` or ``Bash(git:*)``."""
    tool, parenthesis, rest = written.partition("(")
    return ToolPattern(tool.strip(), rest.removesuffix(")").strip() if parenthesis else None)


def is_tool_pattern(written: str) -> bool:
    """Return whether a string is one tool (``Read``), or one with a pattern in parentheses (``Bash(git:*)``)."""
    tool, parenthesis, inside = written.strip().partition("(")
    is_name = _NO_NAME.search(tool.strip()) is None and bool(tool.strip())
    return is_name and (not parenthesis or inside.endswith(")"))


def grant_tools(wanted: Iterable[str], ceiling: Iterable[str] | None) -> tuple[str, ...]:
    """Return the tools that a host with this ceiling grants of those that a skill wants, sorted.

    ``None`` means no ceiling. A pattern is granted as written where the ceiling has it, or has its whole tool. A whole
    tool is granted as the patterns of it that the ceiling has. ``mcp__*`` in a ceiling means every tool whose name
    begins so; a ceiling that a host gives has no such names.
    """
    if ceiling is None:
        return tuple(sorted(set(wanted)))
    allowed = set(ceiling)
    whole_tools = {pattern.tool for pattern in map(parse_tool_pattern, allowed) if pattern.inside is None}
    granted: set[str] = set()
    for written in wanted:
        pattern = parse_tool_pattern(written)
        if written in allowed or any(is_tool_match(pattern.tool, tool) for tool in whole_tools):
            granted.add(written)
        elif pattern.inside is None:
            granted.update(narrower for narrower in allowed if parse_tool_pattern(narrower).tool == pattern.tool)
    return tuple(sorted(granted))


class ToolCeiling(NamedTuple):
    """What a host allows: the tools that may be called at all, and whether skills may approve calls of them."""

    tools: tuple[str, ...] | None = None
    """The only tools that are allowed; ``None`` when no tool is refused."""
    grants: bool = False
    """Whether the ``allowed-tools`` of active skills approve calls. They do so only when the host asked for it: a skill
    that somebody downloaded must not get the user's shell because of a line in its own head."""

    @classmethod
    def of(cls, tools: Iterable[str] | Literal["any"] | None) -> ToolCeiling:
        """Return the ceiling for what a host passed as ``tools``: names, ``"any"``, or ``None``.

        Raises ``SourceError`` for a tool that could never allow what its author meant.
        """
        if tools is None or tools == ANY_TOOL:
            return cls(None, tools == ANY_TOOL)
        written = check_texts(tools, "tools")
        if ANY_TOOL in written:
            expected = f"must be {ANY_TOOL!r} or a list of tools"
            raise_bad_argument("tools", expected, list(written), f"pass tools={ANY_TOOL!r}")
        for index, tool in enumerate(written):
            if not is_tool_pattern(tool):
                expected = "must be a tool or a tool with a pattern in parentheses"
                raise_bad_argument(f"tools[{index}]", expected, tool, "pass 'Bash(git:*)' or 'Bash'")
        # A ceiling names each tool, so that no ``*`` can allow them all. Only the list of a fork may name a family of
        # tools such as ``mcp__*``; it can only narrow a ceiling.
        return cls(tuple(tool for tool in written if "*" not in parse_tool_pattern(tool).tool), grants=True)


def intersect_ceilings(first: Iterable[str] | None, second: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return the tools that both ceilings allow, sorted; ``None`` means no ceiling.

    Of two patterns of one tool the narrower stays where one covers the other. Two patterns that merely overlap leave
    nothing: to refuse too much is safe, to allow too much is not.
    """
    if first is None or second is None:
        only = second if first is None else first
        return None if only is None else tuple(sorted(set(only)))
    first, second = set(first), set(second)
    narrower = {a for a in first for b in second if _is_within(parse_tool_pattern(a), parse_tool_pattern(b))}
    narrower |= {b for b in second for a in first if _is_within(parse_tool_pattern(b), parse_tool_pattern(a))}
    return tuple(sorted(narrower))


def find_wider_tools(tools: Iterable[str], before: Iterable[str]) -> tuple[str, ...]:
    """Return those of some tools that cover calls which those of ``before`` do not cover, each once."""
    old = [parse_tool_pattern(written) for written in before]
    return tuple(
        written
        for written in dict.fromkeys(tools)
        if not any(_is_within(parse_tool_pattern(written), pattern) for pattern in old)
    )


def _is_within(narrow: ToolPattern, wide: ToolPattern) -> bool:
    """Return whether ``wide`` covers every call that ``narrow`` covers; ``False`` where that is hard to know."""
    if not is_tool_match(narrow.tool, wide.tool):
        return False
    if wide.inside is None or narrow == wide:
        return True
    if narrow.inside is None or narrow.tool != wide.tool:
        return False
    begin = narrow.inside.removesuffix(":*")
    return wide.inside.endswith(":*") and "*" not in begin and _is_command_match(wide.inside, begin)


def is_tool_match(tool: str, name: str) -> bool:
    """Return whether ``name`` means ``tool``; an asterisk in ``name`` stands for any characters: ``mcp__*``, ``*``.

    A ``tool`` with asterisks of its own is meant only when every tool that it stands for is.
    """
    return tool == name or ("*" in name and _is_wildcard_match(name.split("*"), tool))


def judge_call(tool: str, command: str | None, patterns: Iterable[str], *, has_families: bool = False) -> ToolAnswer:
    """Return whether ``patterns`` allow a call of ``tool``, refuse it, or do not mention the tool.

    A command that could do more than one thing is never allowed by a pattern. ``has_families``: asterisks in the names
    of tools count, so that ``mcp__*`` mentions ``mcp__git__log``. They count in the list that bounds a fork, and not in
    what a skill asks for.
    """
    is_meant = is_tool_match if has_families else str.__eq__
    matching = [pattern for pattern in map(parse_tool_pattern, patterns) if is_meant(tool, pattern.tool)]
    if not matching:
        return NOT_MENTIONED
    if any(pattern.inside is None for pattern in matching):
        return ALLOWED
    if command is None or _MORE_THAN_ONE.search(command):
        return REFUSED
    is_covered = any(_is_command_match(pattern.inside or "", command.strip()) for pattern in matching)
    return ALLOWED if is_covered else REFUSED


def _is_command_match(inside: str, command: str) -> bool:
    """Return whether a command fits what is in the parentheses of a tool; ``Bash()`` fits no command."""
    if inside in {"", "*"}:
        return inside == "*"
    if inside.endswith(":*"):
        # Whole words only: ``git:*`` must not cover ``git-shell``.
        begin = inside.removesuffix(":*")
        return command == begin or command.startswith(begin + " ")
    return _is_wildcard_match(inside.split("*"), command)


def _is_wildcard_match(parts: list[str], text: str) -> bool:
    """Return whether a string begins with the first part, ends with the last, and holds the others between, in order.

    ``parts`` are the parts of a pattern between its asterisks.
    """
    first, last = parts[0], parts[-1]
    if len(parts) == 1:
        return text == first
    offset, end = len(first), len(text) - len(last)
    if offset > end or not text.startswith(first) or not text.endswith(last):
        return False
    # The leftmost place of each part is always right, so nothing is tried twice, and no pattern is slow.
    for part in parts[1:-1]:
        index = text.find(part, offset, end)
        if index < 0:
            return False
        offset = index + len(part)
    return True

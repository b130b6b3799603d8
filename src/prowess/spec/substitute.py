"""Arguments and folders put into instructions: one pass over the author's text, values are data.

``$ARGUMENTS`` is everything that was said; ``$ARGUMENTS[N]`` and ``$N`` are the words of it, counted from 0, as a shell
would split them; ``$name`` is the word in the place that ``arguments:`` gives the name. A missing word stays as it is
written, a missing named one is empty. ``${SKILL_DIR}`` is the skill's folder, also in other clients' spellings. A
backslash before ``$`` keeps it literal.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prowess.model import Value

FOLDER_NAMES = ("SKILL_DIR", "CLAUDE_SKILL_DIR", "CLAUDE_PLUGIN_ROOT", "SKILL_ROOT", "PROWESS_SKILL_DIR")
PROJECT_NAMES = ("PROJECT_DIR", "CLAUDE_PROJECT_DIR")
SESSION_NAMES = ("SESSION_ID", "CLAUDE_SESSION_ID")

_TOKEN = re.compile(
    r"\\(?P<escaped>\$)"
    r"|\$ARGUMENTS\[(?P<index>\d+)\]"
    r"|\$(?P<all>ARGUMENTS)\b"
    r"|\$(?P<position>\d{1,4})(?!\w|\.\d)"
    r"|\$\{(?P<braced>[A-Z_]{1,40})\}"
    r"|\$(?P<named>[A-Za-z_][A-Za-z0-9_-]{0,63})"
    r"|(?P<base>\{baseDir\})",
)


FOLDER = re.compile(r"\$\{(?:" + "|".join(FOLDER_NAMES) + r")\}|\{baseDir\}")


class Substituted(NamedTuple):
    """The text, and whether it said where the arguments belong."""

    text: str
    used_arguments: bool


class Filled(NamedTuple):
    """The text, whether it said where the arguments belong, and where in it something was put in."""

    text: str
    used_arguments: bool
    spans: tuple[tuple[int, int], ...] = ()


def substitute(
    text: str,
    arguments: str = "",
    *,
    names: Sequence[str] = (),
    folder: str = "",
    variables: Mapping[str, str] | None = None,
) -> Substituted:
    """``text`` with its placeholders filled, each once; what is put in is never looked at again."""
    made = filled(text, arguments, names=names, folder=folder, variables=variables)
    return Substituted(made.text, made.used_arguments)


def filled(
    text: str,
    arguments: str = "",
    *,
    names: Sequence[str] = (),
    folder: str = "",
    variables: Mapping[str, str] | None = None,
) -> Filled:
    """What ``substitute`` gives, and where it put something in."""
    if "$" not in text and "{baseDir}" not in text:
        return Filled(text, used_arguments=False)
    words = split_arguments(arguments)
    known = dict.fromkeys(FOLDER_NAMES, folder) if folder else {}
    known.update(variables or {})
    used = False
    spans: list[tuple[int, int]] = []
    grown = 0

    def value(match: re.Match[str]) -> str:
        nonlocal used
        kind = match.lastgroup
        if kind == "escaped":
            return "$"
        if kind == "base":
            return folder or match[0]
        if kind == "braced":
            return known.get(match["braced"], match[0])
        found = _argument(match, arguments, words, names)
        if found is None:
            return match[0]
        used = True
        return found

    def fill(match: re.Match[str]) -> str:
        nonlocal grown
        put = value(match)
        if put != match[0] and match.lastgroup != "escaped":
            spans.append((match.start() + grown, match.start() + grown + len(put)))
        grown += len(put) - len(match[0])
        return put

    made = _TOKEN.sub(fill, text)
    return Filled(made, used, tuple(spans))


def fill_folder(text: str, folder: str) -> str:
    """``text`` with only the skill's folder put in: what a model that loads a skill is given."""
    if "{" not in text:
        return text
    return FOLDER.sub(lambda _: folder, text)


def _argument(match: re.Match[str], arguments: str, words: Sequence[str], names: Sequence[str]) -> str | None:
    if match["all"]:
        return arguments
    if match["named"] is not None:
        return _named(match["named"], words, names)
    place = int((match["index"] or match["position"])[:6])
    return words[place] if place < len(words) else None


def _named(written: str, words: Sequence[str], names: Sequence[str]) -> str | None:
    """The longest name that ``written`` begins with, up to a hyphen: ``$from-$to`` holds two."""
    known = [name for name in names if written == name or written.startswith(f"{name}-")]
    if not known:
        return None
    name = max(known, key=len)
    place = names.index(name)
    return (words[place] if place < len(words) else "") + written[len(name) :]


def split_arguments(arguments: str) -> tuple[str, ...]:
    """Words as a shell splits them; by blanks alone where the quotes do not match."""
    try:
        return tuple(shlex.split(arguments))
    except ValueError:
        return tuple(arguments.split())


def argument_names(value: Value | None) -> tuple[str, ...]:
    """The names that ``arguments:`` lists: a list, or text with blanks or commas between."""
    if isinstance(value, str):
        return tuple(value.replace(",", " ").split())
    if isinstance(value, list):
        return tuple(item for item in value if isinstance(item, str))
    return ()

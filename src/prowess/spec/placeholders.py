"""Arguments and folders put into instructions: one pass over the author's text, values are data.

``$ARGUMENTS`` is everything that was said; ``$ARGUMENTS[N]`` and ``$N`` are the words of it, counted from 0, as a shell
would split them; ``$name`` is the word in the place that ``arguments:`` gives the name. A missing word stays as it is
written, a missing named one is empty. ``${SKILL_DIR}`` is the skill's folder, also in other clients' spellings. A
backslash before a placeholder keeps it literal.

Many skills hold ``$1`` that is a price, a cell of a table or a parameter of a shell function. So ``$N`` and ``$name``
are placeholders only where the author shows that the skill takes arguments: the frontmatter has ``arguments`` or
``argument-hint``, or the text uses ``$ARGUMENTS``; and never between single quotes in shell code, where a shell would
put nothing in either (``awk '{print $1}'``).
"""

from __future__ import annotations

import re
import shlex
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from prowess.spec.hidden_characters import to_one_line
from prowess.spec.markdown_code import find_single_quotes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prowess.model import Value
    from prowess.spec.commands import Span

FOLDER_NAMES = ("SKILL_DIR", "CLAUDE_SKILL_DIR", "CLAUDE_PLUGIN_ROOT", "SKILL_ROOT", "PROWESS_SKILL_DIR")
PROJECT_NAMES = ("PROJECT_DIR", "CLAUDE_PROJECT_DIR")
SESSION_NAMES = ("SESSION_ID", "CLAUDE_SESSION_ID")
_FOLDER = re.compile(r"\$\{(?:" + "|".join(FOLDER_NAMES) + r")\}")

_TOKEN = re.compile(
    r"(?P<escape>\\)?(?:"
    r"\$ARGUMENTS\[(?P<index>\d+)\]"
    r"|\$(?P<all>ARGUMENTS)\b"
    r"|\$(?P<position>\d{1,4})(?!\w|[.,]\d)"
    r"|\$\{(?P<braced>[A-Z_]{1,40})\}"
    r"|\$(?P<named>[A-Za-z_][A-Za-z0-9_-]{0,63})"
    r")"
    r"|(?P<base>\{baseDir\})",
)
_ALL_ARGUMENTS = re.compile(r"(?<!\\)\$ARGUMENTS\b")
_MAX_EXPLAINED = 8
_MAX_HINT_CHARS = 200
_WORDS_HINT = "what the user asks for, counted from 0"


class Substituted(NamedTuple):
    """The text, and whether everything that was said has a place in it."""

    text: str
    used_arguments: bool


class FilledText(NamedTuple):
    """The text, whether everything that was said has a place in it, and where in it something was put in."""

    text: str
    used_arguments: bool
    spans: tuple[Span, ...] = ()
    placeholders: tuple[str, ...] = ()
    """The placeholders for arguments, as they were written, each once."""


def fill_folder(word: str, folder: str) -> str:
    """An argument of a script in which ``${SKILL_DIR}``, by whichever of its names, is the folder of the skill."""
    return _FOLDER.sub(lambda _: folder, word)


def substitute(
    text: str,
    arguments: str = "",
    *,
    names: Sequence[str] = (),
    folder: str = "",
    variables: Mapping[str, str] | None = None,
) -> Substituted:
    """``text`` with its placeholders filled, each once; what is put in is never looked at again.

    The text is taken for one that declares arguments: ``$N`` is filled, except between single quotes in shell code.
    """
    made = fill_placeholders(text, arguments, names=names, folder=folder, variables=variables)
    return Substituted(made.text, made.used_arguments)


def fill_placeholders(
    text: str,
    arguments: str | None = "",
    *,
    names: Sequence[str] = (),
    folder: str = "",
    variables: Mapping[str, str] | None = None,
    declared: bool = True,
    outputs: Sequence[Span] = (),
) -> FilledText:
    """What ``substitute`` gives, where it put something in, and which placeholders for arguments there were.

    ``arguments=None``: nothing was given, and the placeholders for arguments stay as they are written.
    ``declared``: the skill says that it takes arguments, so that ``$N`` and ``$name`` count.
    ``outputs``: where the text holds what a command printed. That is data: it stays as it is, decides nothing about
    the text around it, and is among the spans of the result.
    """
    # Fast path: a single character is found ten times as fast as several, and most texts have no braces either.
    if "$" not in text and ("{" not in text or "{baseDir}" not in text):
        return FilledText(text, used_arguments=False, spans=tuple(outputs))
    written = _blank_outputs(text, outputs)
    values = _PlaceholderValues(arguments, tuple(names), folder, variables or {})
    values.counts_words = declared or _ALL_ARGUMENTS.search(written) is not None
    edits = [(begin, end, text[begin:end], True) for begin, end in outputs]
    for match in _TOKEN.finditer(written):
        value = values.value_of(match)
        if value is not None:
            edits.append((match.start(), match.end(), value, not match["escape"]))
    made, spans = _apply_edits(text, sorted(edits))
    return FilledText(made, values.are_used, spans, tuple(values.placeholders))


def _blank_outputs(text: str, outputs: Sequence[Span]) -> str:
    """``text`` with blanks for what commands printed, so that every place in it keeps its number."""
    parts: list[str] = []
    at = 0
    for begin, end in outputs:
        parts += (text[at:begin], " " * (end - begin))
        at = end
    return "".join((*parts, text[at:]))


def _apply_edits(text: str, edits: Sequence[tuple[int, int, str, bool]]) -> tuple[str, tuple[Span, ...]]:
    """``text`` with each edit made, in order; and where those stand in the result that are to be marked."""
    parts: list[str] = []
    spans: list[Span] = []
    at = length = 0
    for begin, end, value, is_marked in edits:
        length += begin - at
        parts += (text[at:begin], value)
        if is_marked:
            spans.append((length, length + len(value)))
        length += len(value)
        at = end
    return "".join((*parts, text[at:])), tuple(spans)


class _PlaceholderValues:
    """What takes the place of each placeholder of one text; and which there were, and which words were put in."""

    counts_words = True

    def __init__(
        self, arguments: str | None, names: tuple[str, ...], folder: str, variables: Mapping[str, str]
    ) -> None:
        self._arguments = arguments
        self._words = split_arguments(arguments or "")
        self._names = names
        self._folder = folder
        self._known = {**(dict.fromkeys(FOLDER_NAMES, folder) if folder else {}), **variables}
        self._quoted: list[Span] | None = None
        self._is_all_used = False
        self._used_indexes: set[int] = set()
        self.placeholders: dict[str, None] = {}

    @property
    def are_used(self) -> bool:
        """Whether everything that was said has been put in: all of it, or each of its words."""
        return self._is_all_used or bool(self._used_indexes and self._used_indexes.issuperset(range(len(self._words))))

    def value_of(self, match: re.Match[str]) -> str | None:
        """What takes the place of a match; ``None``: it stays."""
        kind = match.lastgroup
        if kind == "base":
            return self._folder or None
        literal = match[0][1:] if match["escape"] else None
        if kind == "braced":
            value = self._known.get(match["braced"])
            return value if value is None or literal is None else literal
        place = self._word_index(match)
        if place is None or (kind in {"position", "named"} and self._is_literal(match)):
            return None
        if literal is not None:
            return literal if self._arguments is not None else None
        self.placeholders[f"${self._names[place]}" if kind == "named" else match[0]] = None
        return self._argument_value(match, place)

    def _word_index(self, match: re.Match[str]) -> int | None:
        """Which word a placeholder means, -1 for all of them; ``None`` if it is no placeholder."""
        if match["all"]:
            return -1
        if match["named"] is None:
            return int((match["index"] or match["position"])[:6])
        # The longest name that it begins with, up to a hyphen: ``$from-$to`` holds two.
        written = match["named"]
        known = [name for name in self._names if written == name or written.startswith(f"{name}-")]
        return self._names.index(max(known, key=len)) if known else None

    def _is_literal(self, match: re.Match[str]) -> bool:
        """Whether what looks like ``$N`` or ``$name`` is none: the skill takes no arguments, or it is shell code's."""
        if not self.counts_words:
            return True
        if self._quoted is None:  # looked for once, and only in texts where it matters
            self._quoted = find_single_quotes(match.string)
        at = bisect_right(self._quoted, (match.start(), len(match.string))) - 1
        return at >= 0 and match.start() < self._quoted[at][1]

    def _argument_value(self, match: re.Match[str], place: int) -> str | None:
        if self._arguments is None:
            return None
        if place < 0:
            self._is_all_used = True
            return self._arguments
        rest = match["named"][len(self._names[place]) :] if match["named"] is not None else ""
        if place < len(self._words):
            self._used_indexes.add(place)
            return self._words[place] + rest
        return rest if match["named"] is not None else None


def explain_placeholders(placeholders: Sequence[str], hint: str = "") -> str:
    """A sentence without its full stop that says what placeholders stand for; ``""`` where there are none."""
    shown = placeholders[:_MAX_EXPLAINED]
    whole = [one for one in shown if one == "$ARGUMENTS"]
    words = [one for one in shown if one[-1] == "]" or one[1:].isdigit()]
    named = [one for one in shown if one not in {*whole, *words}]
    said = [
        f"{group[0]} stands for {one}" if len(group) == 1 else f"{', '.join(group)} stand for {several}"
        for group, one, several in (
            (whole, "everything that the user asks for", ""),
            (words, f"a word of {_WORDS_HINT}", f"words of {_WORDS_HINT}"),
            (named, "what the user gives under that name", "what the user gives under these names"),
        )
        if group
    ]
    expected = f" (expected: {to_one_line(hint)[:_MAX_HINT_CHARS]})" if hint else ""
    return f"no arguments were given; {', '.join(said)}{expected}" if said else ""


def split_arguments(arguments: str) -> tuple[str, ...]:
    """Words as a shell splits them; by blanks alone where the quotes do not match."""
    try:
        return tuple(shlex.split(arguments))
    except ValueError:
        return tuple(arguments.split())


def parse_argument_names(value: Value | None) -> tuple[str, ...]:
    """The names that ``arguments:`` lists: a list, or text with blanks or commas between."""
    if isinstance(value, str):
        return tuple(value.replace(",", " ").split())
    if isinstance(value, list):
        return tuple(item for item in value if isinstance(item, str))
    return ()


def parse_argument_hint(value: Value | None) -> str:
    """What ``argument-hint:`` says, as one text; brackets that YAML took for a list are put back."""
    if isinstance(value, list):
        return " ".join(f"[{item}]" for item in value if isinstance(item, str))
    return value if isinstance(value, str) else ""

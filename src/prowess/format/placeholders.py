"""Placeholders in instructions, and the arguments and folders that take their place.

- ``$ARGUMENTS`` stands for all arguments as they were given.
- ``$ARGUMENTS[N]`` and ``$N`` stand for one word of them, counted from 0 and split as a shell splits. Where there is no
  such word, the placeholder stays as it is written.
- ``$name`` stands for the word in the position that ``arguments:`` gives the name. Where there is no such word, nothing
  takes its place.
- ``${SKILL_DIR}``, also in other clients' spellings, stands for the skill's folder.
- A backslash before a placeholder keeps it literal.

The author's text is searched once, and values are never searched: they are data.

In many skills ``$1`` is a price, a cell of a table or a parameter of a shell function. So ``$N`` and ``$name`` are
placeholders only where the author shows that the skill takes arguments: the frontmatter has ``arguments`` or
``argument-hint``, or the text uses ``$ARGUMENTS``. They never are between single quotes in shell code, where a shell
replaces nothing either (``awk '{print $1}'``).
"""

from __future__ import annotations

import re
import shlex
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from prowess.text.hidden_characters import to_one_line
from prowess.text.markdown_code import find_single_quotes
from prowess.text.spans import replace_spans

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prowess.format.frontmatter.yaml_events import Value
    from prowess.text.spans import Span

FOLDER_NAMES = ("SKILL_DIR", "CLAUDE_SKILL_DIR", "CLAUDE_PLUGIN_ROOT", "SKILL_ROOT", "PROWESS_SKILL_DIR")
PROJECT_NAMES = ("PROJECT_DIR", "CLAUDE_PROJECT_DIR")
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
# The explanation goes to a model beside the instructions, so that a long list or hint must not crowd these out.
_MAX_EXPLAINED = 8
_MAX_HINT_CHARS = 200
_WORDS_HINT = "what the user asks for, counted from 0"


class Substituted(NamedTuple):
    """The text with its placeholders filled, and whether all arguments have a place in it."""

    text: str
    used_arguments: bool


class FilledText(NamedTuple):
    """The text with its placeholders filled, whether all arguments have a place in it, and where values are."""

    text: str
    used_arguments: bool
    spans: tuple[Span, ...] = ()
    placeholders: tuple[str, ...] = ()
    """The placeholders for arguments, as they were written, each once."""


def fill_folder(word: str, folder: str) -> str:
    """Return an argument of a script with the skill's folder in place of ``${SKILL_DIR}``, by any of its names."""
    return _FOLDER.sub(lambda _: folder, word)


def substitute(
    text: str,
    arguments: str = "",
    *,
    names: Sequence[str] = (),
    folder: str = "",
    variables: Mapping[str, str] | None = None,
) -> Substituted:
    """Return ``text`` with its placeholders filled; values are not searched for placeholders.

    The text counts as one that declares arguments: ``$N`` is filled, except between single quotes in shell code.
    """
    filled = fill_placeholders(text, arguments, names=names, folder=folder, variables=variables)
    return Substituted(filled.text, filled.used_arguments)


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
    """Return ``text`` with its placeholders filled, where values are in it, and which placeholders there were.

    ``arguments=None``: none were given, and the placeholders for arguments stay as they are written.
    ``declared``: the skill says that it takes arguments, so that ``$N`` and ``$name`` count.
    ``outputs``: where the text holds what a command printed. That is data: it stays as it is, decides nothing about
    the text around it, and is among the spans of the result.
    """
    # Fast path of the bench row "load_skill, first call": a single character is found ten times as fast as several,
    # and most strings have no braces either.
    if "$" not in text and ("{" not in text or "{baseDir}" not in text):
        return FilledText(text, used_arguments=False, spans=tuple(outputs))
    # Blanks in place of the outputs, so that every offset stays right.
    written, _ = replace_spans(text, ((begin, end, " " * (end - begin)) for begin, end in outputs))
    values = _PlaceholderValues(arguments, tuple(names), folder, variables or {})
    values.counts_words = declared or _ALL_ARGUMENTS.search(written) is not None
    edits = [(begin, end, text[begin:end]) for begin, end in outputs]
    literals: set[Span] = set()
    for match in _TOKEN.finditer(written):
        value = values.value_of(match)
        if value is not None:
            edits.append((match.start(), match.end(), value))
            if match["escape"]:  # a placeholder without its backslash is the author's text, and no value
                literals.add(match.span())
    edits.sort()
    filled, spans = replace_spans(text, edits)
    values_at = tuple(span for span, edit in zip(spans, edits, strict=True) if edit[:2] not in literals)
    return FilledText(filled, values.are_used, values_at, tuple(values.placeholders))


class _PlaceholderValues:
    """The values for the placeholders of one text, with a record of the placeholders and of the words used so far."""

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
        """Whether all arguments have a place in the text: as a whole, or each of their words."""
        return self._is_all_used or bool(self._used_indexes and self._used_indexes.issuperset(range(len(self._words))))

    def value_of(self, match: re.Match[str]) -> str | None:
        """Return the value that takes the place of a match, or ``None`` when the match stays as it is."""
        kind = match.lastgroup
        if kind == "base":
            return self._folder or None
        literal = match[0][1:] if match["escape"] else None
        if kind == "braced":
            value = self._known.get(match["braced"])
            return value if value is None or literal is None else literal
        word_index = self._word_index(match)
        if word_index is None or (kind in {"position", "named"} and self._is_literal(match)):
            return None
        if literal is not None:
            return literal if self._arguments is not None else None
        self.placeholders[f"${self._names[word_index]}" if kind == "named" else match[0]] = None
        return self._argument_value(match, word_index)

    def _word_index(self, match: re.Match[str]) -> int | None:
        """Return which word a placeholder means, -1 for all of them, or ``None`` if it is not a placeholder."""
        if match["all"]:
            return -1
        if match["named"] is None:
            return int((match["index"] or match["position"])[:6])  # Python refuses to read thousands of digits
        # A name may hold hyphens, and a hyphen may follow a name: ``$from-$to`` holds two. The longest name is meant.
        written = match["named"]
        known = [name for name in self._names if written == name or written.startswith(f"{name}-")]
        return self._names.index(max(known, key=len)) if known else None

    def _is_literal(self, match: re.Match[str]) -> bool:
        """Return whether ``$N`` or ``$name`` is plain text: the skill takes no arguments, or shell code quotes it."""
        if not self.counts_words:
            return True
        if self._quoted is None:  # searched once, and only where it matters
            self._quoted = find_single_quotes(match.string)
        before = bisect_right(self._quoted, (match.start(), len(match.string))) - 1
        return before >= 0 and match.start() < self._quoted[before][1]

    def _argument_value(self, match: re.Match[str], word_index: int) -> str | None:
        if self._arguments is None:
            return None
        if word_index < 0:
            self._is_all_used = True
            return self._arguments
        rest = match["named"][len(self._names[word_index]) :] if match["named"] is not None else ""
        if word_index < len(self._words):
            self._used_indexes.add(word_index)
            return self._words[word_index] + rest
        return rest if match["named"] is not None else None


def explain_placeholders(placeholders: Sequence[str], hint: str = "") -> str:
    """Return a sentence, without its full stop, about what placeholders stand for; ``""`` where there are none."""
    shown = placeholders[:_MAX_EXPLAINED]
    whole = [placeholder for placeholder in shown if placeholder == "$ARGUMENTS"]
    words = [placeholder for placeholder in shown if placeholder[-1] == "]" or placeholder[1:].isdigit()]
    named = [placeholder for placeholder in shown if placeholder not in {*whole, *words}]
    clauses = [
        f"{group[0]} stands for {singular}" if len(group) == 1 else f"{', '.join(group)} stand for {plural}"
        for group, singular, plural in (
            (whole, "everything that the user asks for", ""),
            (words, f"a word of {_WORDS_HINT}", f"words of {_WORDS_HINT}"),
            (named, "what the user gives under that name", "what the user gives under these names"),
        )
        if group
    ]
    expected = f" (expected: {to_one_line(hint)[:_MAX_HINT_CHARS]})" if hint else ""
    return f"no arguments were given; {', '.join(clauses)}{expected}" if clauses else ""


def split_arguments(arguments: str) -> tuple[str, ...]:
    """Return the words as a shell splits them, or split at spaces alone where the quotes do not match."""
    try:
        return tuple(shlex.split(arguments))
    except ValueError:
        return tuple(arguments.split())


def parse_argument_names(value: Value | None) -> tuple[str, ...]:
    """Return the names that ``arguments:`` lists: in a list, or in a string with spaces or commas between them."""
    if isinstance(value, str):
        return tuple(value.replace(",", " ").split())
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def parse_argument_hint(value: Value | None) -> str:
    """Return the value of ``argument-hint:`` as one string; brackets that YAML took for a list are written again."""
    if isinstance(value, list):
        return " ".join(f"[{item}]" for item in value if isinstance(item, str))
    return value if isinstance(value, str) else ""

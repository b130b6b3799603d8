"""Repair of frontmatter that is not YAML, so that it reads as its author meant it.

The text is cut into its top-level entries. An entry that is YAML keeps its value, and any other gets the author's whole
text. What the YAML rules refuse (anchors, tags, duplicate keys …) is never repaired, and a complex key is never taken
for text of the entry above it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from prowess.format.frontmatter.yaml_events import YamlError, YamlRefusedError, parse_yaml

if TYPE_CHECKING:
    from prowess.format.frontmatter.yaml_events import Value
    from prowess.limits import Limits

# Each entry is parsed by itself, some several times, so that these bounds keep the work small for any file.
MAX_ENTRIES = 400
_MAX_NESTED_BLOCKS = 4  # blocks within blocks that are repaired entry by entry
_MAX_JOINED_ENTRIES = 12  # entries that may turn out to be lines of one quoted text

_TEXT_KEYS = frozenset(
    ["name", "description", "license", "compatibility", "version", "author", "title", "argument-hint", "when_to_use"]
)
# After a key a colon needs a space or the beginning of a value. Only the commonest keys may do without (``name:pdf``):
# any other line with a colon may be an address, or text of the entry above.
_KEY_LINE = re.compile(r"([A-Za-z_][\w.-]{0,127}+)[ \t]*+:(?=[ \t\"'\[{]|$)[ \t]*+(.*)")
_TIGHT_KEY_LINE = re.compile(r"(name|description|license|version|author|metadata|tags|allowed-tools):(.*)")
_BLOCK_TEXT = re.compile(r"([>|])[-+0-9]{0,2}[ \t]+(\S.*)")
_WORDS = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ,.()/_-]*+")
_MERGE = re.compile(r"<<[ \t]*+:")
# ``? key`` on a line of its own, or a list or mapping with a colon behind it.
_COMPLEX_KEY = re.compile(r"\?(?:[ \t]|$)|[\[{].*[\]}][ \t]*+:(?:[ \t]|$)")
_TRAILING_COMMA = re.compile(r",(\s*+[}\]])")
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]|\\U0000[dD][89a-fA-F]")


class Repair(NamedTuple):
    """One value that was repaired: the code of the rule, the key, the message, and the line counted from 0."""

    code: str
    key: str
    message: str
    line: int


class _YamlEntry(NamedTuple):
    """One top-level key with its lines."""

    key: str
    first: str
    """The text behind the colon."""
    more: list[str]
    """The lines below the key."""
    line: int
    source: list[str]
    """All lines as they are written."""


RepairResult = tuple["dict[str, Value]", dict[str, int], list[Repair]]


def repair_yaml(text: str, limits: Limits, depth: int = 0) -> RepairResult:
    """Return the values of ``text``, the line of each key, and the repairs that were made.

    Raises ``YamlError`` where nothing can be repaired, and ``YamlRefusedError`` for what the rules refuse.
    """
    entries = _split_entries(text.split("\n"))
    if not entries:
        raise YamlError("yaml-syntax", "no 'key: value' line was found", 0)
    if len(entries) > MAX_ENTRIES:
        raise YamlError("yaml-syntax", "too many entries to repair", 0)
    values: dict[str, Value] = {}
    lines: dict[str, int] = {}
    state = _RepairState(limits, [], depth)
    index = 0
    while index < len(entries):
        entry = entries[index]
        value, count = _read_entry(entries, index, state)
        if entry.key in values:
            raise YamlRefusedError("yaml-duplicate-key", f"duplicate key {entry.key!r}", entry.line)
        values[entry.key] = value
        lines[entry.key] = entry.line
        index += count
    return values, lines, state.repairs


def _split_entries(lines: list[str]) -> list[_YamlEntry]:
    """Return the entries of the lines, each with what follows it; none when there is text before the first key."""
    entries: list[_YamlEntry] = []
    for number, line in enumerate(lines):
        # No key begins with a space, and a third of the lines do.
        match = None if line.startswith(" ") else _KEY_LINE.fullmatch(line) or _TIGHT_KEY_LINE.fullmatch(line)
        if match:
            entries.append(_YamlEntry(match[1], match[2], [], number, [line]))
        elif entries and not line.startswith("#"):
            _refuse_line(line, number)
            entries[-1].more.append(line)
            entries[-1].source.append(line)
        elif line.strip() and not line.startswith("#"):
            _refuse_line(line, number)
            return []
    return entries


def _refuse_line(line: str, number: int) -> None:
    """Raise ``YamlRefusedError`` for a line that the rules refuse: it must not become part of the text above it."""
    if line.startswith("%"):
        raise YamlRefusedError("yaml-directive", "YAML directives are not allowed", number)
    if _MERGE.match(line):
        raise YamlRefusedError("yaml-merge-key", "YAML merge keys are not allowed", number)
    if _COMPLEX_KEY.match(line):
        raise YamlRefusedError("yaml-complex-key", "a key must be text", number)


class _RepairState(NamedTuple):
    limits: Limits
    repairs: list[Repair]
    depth: int


def _read_entry(entries: list[_YamlEntry], index: int, state: _RepairState) -> tuple[Value, int]:
    """Return the value of an entry, and how many entries belong to it."""
    entry = entries[index]
    value = _parse_entry(entry, state.limits)
    if value is not None:
        return value, 1
    # A line of a quoted text may look like a key, so that the text was cut into several entries.
    if entry.first[:1] in {'"', "'"}:
        for count in range(2, min(_MAX_JOINED_ENTRIES, len(entries) - index) + 1):
            lines = [line for part in entries[index : index + count] for line in part.source]
            value = _parse_entry(entry._replace(source=lines), state.limits)
            if value is not None:
                return value, count
    code, value = _repair_entry(entry, state)
    state.repairs.append(Repair(code, entry.key, _MESSAGES[code], entry.line))
    return value, 1


def _parse_entry(entry: _YamlEntry, limits: Limits) -> Value | None:
    """Return the value of an entry that is YAML, or ``None``. Raises ``YamlRefusedError`` with the line of the file."""
    # Fast path: most entries are a line of words, which no parser has to read.
    has_words = _WORDS.fullmatch(entry.first) is not None and entry.source[0].startswith(f"{entry.key}: ")
    if has_words and not any(entry.source[1:]) and len(entry.first) <= limits.max_scalar_chars:
        return entry.first.rstrip(" ")
    try:
        values, _ = parse_yaml("\n".join(entry.source) + "\n", limits)
    except YamlRefusedError as error:
        raise YamlRefusedError(error.code, error.message, entry.line + error.line) from None
    except YamlError:
        return None
    return values[entry.key] if list(values) == [entry.key] else None


_MESSAGES = {
    "repaired-colon": "the text holds a colon followed by a space, and is not quoted",
    "repaired-block-text": "there is text on the line of the '>' or '|'",
    "repaired-leading-character": "the text begins with a character that means something else to YAML",
    "repaired-missing-blank": "there is no space after the colon",
    "repaired-brackets": "brackets that are not a YAML list; kept as text",
    "repaired-metadata": "the inline JSON is broken",
    "repaired-quotes": "the quotes do not match; kept as text",
    "repaired-value": "the value is not YAML; kept as text",
}


def _repair_entry(entry: _YamlEntry, state: _RepairState) -> tuple[str, Value]:
    """Return the code and the value of the first repair that fits the entry; its whole text when none does."""
    # The order counts: each repair may assume that those before it did not fit.
    for repair in (_repair_block_text, _repair_missing_blank, _repair_metadata_json, _repair_inner_block):
        repaired = repair(entry, state)
        if repaired is not None:
            return repaired
    text = _fold_lines([entry.first, *entry.more])
    return _code_for_text(text), _remove_quotes(text, entry.line)


def _code_for_text(text: str) -> str:
    if text[:1] in {'"', "'"}:
        return "repaired-quotes"
    if text[:1] == "[":
        return "repaired-brackets"
    if text[:1] in set("*&@`%{!"):
        return "repaired-leading-character"
    return "repaired-colon" if ": " in text or text.endswith(":") else "repaired-value"


def _repair_block_text(entry: _YamlEntry, _state: _RepairState) -> tuple[str, Value] | None:
    """Repair text on the line of a ``>`` or ``|``: it is the first line of the block."""
    match = _BLOCK_TEXT.fullmatch(entry.first.rstrip())
    if match is None:
        return None
    lines = [match[2], *entry.more]
    if match[1] == ">":
        return "repaired-block-text", _fold_lines(lines)
    return "repaired-block-text", "\n".join(line.strip() for line in lines).strip("\n")


def _repair_missing_blank(entry: _YamlEntry, state: _RepairState) -> tuple[str, Value] | None:
    """Repair ``name:pdf``, where YAML sees no key."""
    key, colon, text = entry.source[0].partition(":")
    if key != entry.key or not colon or not text[:1].strip():
        return None
    line = f"{entry.key}: {entry.first}"
    value = _parse_entry(entry._replace(source=[line, *entry.source[1:]]), state.limits)
    return "repaired-missing-blank", value if value is not None else _fold_lines([entry.first, *entry.more])


def _repair_metadata_json(entry: _YamlEntry, state: _RepairState) -> tuple[str, Value] | None:
    """Repair JSON in ``metadata`` with a comma too many; JSON that is broken in other ways is kept as text."""
    text = _fold_lines([entry.first, *entry.more]).replace("\t", " ")
    if entry.key != "metadata" or not text.startswith("{"):
        return None
    tidy = _TRAILING_COMMA.sub(r"\1", text)
    value = _parse_entry(entry._replace(source=[f"metadata: {tidy}"]), state.limits)
    return "repaired-metadata", value if isinstance(value, dict) else text


def _repair_inner_block(entry: _YamlEntry, state: _RepairState) -> tuple[str, Value] | None:
    """Repair the list or the entries below a key that takes no text: each entry is read or repaired by itself."""
    lines = [line for line in entry.more if line.strip() and not line.lstrip().startswith("#")]
    if entry.first.strip() or entry.key in _TEXT_KEYS or not lines:
        return None
    if lines[0].lstrip().startswith("-"):
        return "repaired-value", [line.strip().removeprefix("-").strip() for line in lines]
    indent = len(lines[0]) - len(lines[0].lstrip(" "))
    if not indent or state.depth >= _MAX_NESTED_BLOCKS:
        return None
    return _repair_inner_entries(entry, indent, state)


def _repair_inner_entries(entry: _YamlEntry, indent: int, state: _RepairState) -> tuple[str, Value] | None:
    inner = [line[indent:] if not line[:indent].strip() else line for line in entry.more]
    first = entry.line + 1  # lines are counted within the block, and reported within the file
    try:
        if not _split_entries(inner):
            return None
        values, _, repairs = repair_yaml("\n".join(inner), state.limits, state.depth + 1)
    except YamlRefusedError as error:
        raise YamlRefusedError(error.code, error.message, first + error.line) from None
    state.repairs.extend(r._replace(key=f"{entry.key}.{r.key}", line=first + r.line) for r in repairs)
    return (repairs[0].code if repairs else "repaired-value"), values


def _fold_lines(lines: list[str]) -> str:
    """Return the lines joined by spaces, as YAML folds them; a blank line between two of them is a line break."""
    paragraphs: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            paragraphs[-1].append(line.strip())
        elif paragraphs[-1]:
            paragraphs.append([])
    return "\n".join(" ".join(words) for words in paragraphs if words)


def _remove_quotes(text: str, line: int) -> str:
    """Return the text without the quotes that were meant to enclose it; quotes that belong to the text stay.

    Raises ``YamlRefusedError`` for half a character that is written as an escape.
    """
    quote = text[:1]
    if quote not in {'"', "'"}:
        return text
    if quote == '"' and _HALF_CHARACTER.search(text):
        raise YamlRefusedError("yaml-surrogate", "a value holds an unpaired surrogate (a lone surrogate)", line)
    if len(text) > 1 and text.endswith(quote):
        return text[1:-1]
    return text[1:].lstrip() if quote not in text[1:] else text

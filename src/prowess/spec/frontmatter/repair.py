"""Frontmatter that YAML refuses, read as its author meant it.

The text is cut into its top-level entries. An entry that is YAML keeps its value; one that is not gets the author's
text, whole. What the YAML rules refuse (anchors, tags, duplicate keys …) is never repaired, and a complex key is never
taken for text of the entry above it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from prowess.spec.frontmatter.yaml_events import YamlError, YamlRefusedError, parse_yaml

if TYPE_CHECKING:
    from collections.abc import Callable

    from prowess.limits import Limits
    from prowess.model import Value

MAX_ENTRIES = 400
_MAX_NESTED_BLOCKS = 4  # blocks within blocks that are mended entry by entry
_MAX_JOINED_ENTRIES = 12  # entries that may turn out to be lines of one quoted text

_TEXT_KEYS = frozenset(
    ["name", "description", "license", "compatibility", "version", "author", "title", "argument-hint", "when_to_use"]
)
_KEY_LINE = re.compile(r"([A-Za-z_][\w.-]{0,127}+)[ \t]*+:(?=[ \t\"'\[{]|$)[ \t]*+(.*)")
_TIGHT_KEY_LINE = re.compile(r"(name|description|license|version|author|metadata|tags|allowed-tools):(.*)")
_BLOCK_TEXT = re.compile(r"([>|])[-+0-9]{0,2}[ \t]+(\S.*)")
_MERGE = re.compile(r"<<[ \t]*+:")
# ``? key`` on a line of its own, or a list or mapping with a colon behind it.
_COMPLEX_KEY = re.compile(r"\?(?:[ \t]|$)|[\[{].*[\]}][ \t]*+:(?:[ \t]|$)")
_TRAILING_COMMA = re.compile(r",(\s*+[}\]])")
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]|\\U0000[dD][89a-fA-F]")


class Repair(NamedTuple):
    """One value that was not YAML: which rule, which key, on which line (from 0)."""

    code: str
    key: str
    message: str
    line: int


class _YamlEntry(NamedTuple):
    key: str
    first: str
    more: list[str]
    line: int
    source: list[str]


RepairResult = tuple["dict[str, Value]", dict[str, int], list[Repair]]


def repair_yaml(text: str, limits: Limits, depth: int = 0) -> RepairResult:
    """Values, lines and repairs for ``text``; raises ``YamlError`` where there is nothing to repair."""
    entries = _split_entries(text.split("\n"))
    if not entries:
        raise YamlError("yaml-syntax", "no 'key: value' line was found", 0)
    if len(entries) > MAX_ENTRIES:
        raise YamlError("yaml-syntax", "too many entries to repair", 0)
    values: dict[str, Value] = {}
    lines: dict[str, int] = {}
    repairs: list[Repair] = []
    at = 0
    while at < len(entries):
        entry, value, used = _read_entry(entries, at, _RepairState(limits, repairs, depth))
        if entry.key in values:
            raise YamlRefusedError("yaml-duplicate-key", f"duplicate key {entry.key!r}", entry.line)
        values[entry.key] = value
        lines[entry.key] = entry.line
        at += used
    return values, lines, repairs


def _split_entries(rows: list[str]) -> list[_YamlEntry]:
    entries: list[_YamlEntry] = []
    for number, row in enumerate(rows):
        match = _KEY_LINE.fullmatch(row) or _TIGHT_KEY_LINE.fullmatch(row)
        if match:
            entries.append(_YamlEntry(match[1], match[2], [], number, [row]))
        elif entries and not row.startswith("#"):
            _refuse_row(row, number)
            entries[-1].more.append(row)
            entries[-1].source.append(row)
        elif row.strip() and not row.startswith("#"):
            _refuse_row(row, number)
            return []
    return entries


def _refuse_row(row: str, number: int) -> None:
    """What the rules refuse must not become part of the text above it."""
    if row.startswith("%"):
        raise YamlRefusedError("yaml-directive", "YAML directives are not allowed", number)
    if _MERGE.match(row):
        raise YamlRefusedError("yaml-merge-key", "YAML merge keys are not allowed", number)
    if _COMPLEX_KEY.match(row):
        raise YamlRefusedError("yaml-complex-key", "a key must be text", number)


class _RepairState(NamedTuple):
    limits: Limits
    repairs: list[Repair]
    depth: int


def _read_entry(entries: list[_YamlEntry], at: int, work: _RepairState) -> tuple[_YamlEntry, Value, int]:
    entry = entries[at]
    limits = work.limits
    value = _parse_entry(entry, limits)
    if value is not None:
        return entry, value, 1
    if entry.first[:1] in {'"', "'"}:
        for used in range(2, min(_MAX_JOINED_ENTRIES, len(entries) - at) + 1):
            rows = [row for part in entries[at : at + used] for row in part.source]
            value = _parse_entry(entry._replace(source=rows), limits)
            if value is not None:
                return entry, value, used
    code, value = _repair_entry(entry, work)
    work.repairs.append(Repair(code, entry.key, _MESSAGES[code], entry.line))
    return entry, value, 1


def _parse_entry(entry: _YamlEntry, limits: Limits) -> Value | None:
    try:
        values, _ = parse_yaml("\n".join(entry.source) + "\n", limits)
    except YamlRefusedError as error:
        raise YamlRefusedError(error.code, error.message, entry.line + error.line) from None
    except YamlError:
        return None
    return values[entry.key] if list(values) == [entry.key] else None


_MESSAGES = {
    "repaired-colon": "the text holds a colon followed by a blank, and is not quoted",
    "repaired-block-text": "there is text on the line of the '>' or '|'",
    "repaired-leading-character": "the text begins with a character that means something else to YAML",
    "repaired-missing-blank": "there is no blank after the colon",
    "repaired-brackets": "brackets that are no YAML list; kept as text",
    "repaired-metadata": "the inline JSON is broken",
    "repaired-quotes": "the quotes do not match; kept as text",
    "repaired-value": "the value is not YAML; kept as text",
}


def _repair_entry(entry: _YamlEntry, work: _RepairState) -> tuple[str, Value]:
    """The first remedy that fits the entry."""
    for remedy in (_repair_block_text, _repair_missing_blank, _repair_metadata_json, _repair_inner_block):
        mended = remedy(entry, work)
        if mended is not None:
            return mended
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


def _repair_block_text(entry: _YamlEntry, _work: _RepairState) -> tuple[str, Value] | None:
    match = _BLOCK_TEXT.fullmatch(entry.first.rstrip())
    if match is None:
        return None
    rows = [match[2], *entry.more]
    return "repaired-block-text", _fold_lines(rows) if match[1] == ">" else _keep_lines(rows)


def _repair_missing_blank(entry: _YamlEntry, work: _RepairState) -> tuple[str, Value] | None:
    if not re.match(rf"{re.escape(entry.key)}:\S", entry.source[0]):
        return None
    row = f"{entry.key}: {entry.first}"
    value = _parse_entry(entry._replace(source=[row, *entry.source[1:]]), work.limits)
    return "repaired-missing-blank", value if value is not None else _fold_lines([entry.first, *entry.more])


def _repair_metadata_json(entry: _YamlEntry, work: _RepairState) -> tuple[str, Value] | None:
    text = _fold_lines([entry.first, *entry.more]).replace("\t", " ")
    if entry.key != "metadata" or not text.startswith("{"):
        return None
    tidy = _TRAILING_COMMA.sub(r"\1", text)
    value = _parse_entry(entry._replace(source=[f"metadata: {tidy}"]), work.limits)
    return "repaired-metadata", value if isinstance(value, dict) else text


def _repair_inner_block(entry: _YamlEntry, work: _RepairState) -> tuple[str, Value] | None:
    """A block of entries under a key that is not a text: each of them is read, or mended, by itself."""
    rows = [row for row in entry.more if row.strip() and not row.lstrip().startswith("#")]
    if entry.first.strip() or entry.key in _TEXT_KEYS or not rows:
        return None
    indent = len(rows[0]) - len(rows[0].lstrip(" "))
    if rows[0].lstrip().startswith("-"):
        return "repaired-value", [row.strip().removeprefix("-").strip() for row in rows]
    inner = [row[indent:] if not row[:indent].strip() else row for row in entry.more]
    if not indent or work.depth >= _MAX_NESTED_BLOCKS:
        return None
    try:
        if not _split_entries(inner):
            return None
        values, _, found = repair_yaml("\n".join(inner), work.limits, work.depth + 1)
    except YamlRefusedError as error:
        raise YamlRefusedError(error.code, error.message, entry.line + 1 + error.line) from None
    work.repairs.extend(r._replace(key=f"{entry.key}.{r.key}", line=entry.line + 1 + r.line) for r in found)
    return (found[0].code if found else "repaired-value"), values


def _fold_lines(rows: list[str]) -> str:
    """Lines joined by blanks, as YAML folds them; a blank line between two of them is a line break."""
    return _join_paragraphs(rows, lambda row: row.strip())


def _join_paragraphs(rows: list[str], trim: Callable[[str], str]) -> str:
    paragraphs: list[list[str]] = [[]]
    for row in rows:
        if row.strip():
            paragraphs[-1].append(trim(row))
        elif paragraphs[-1]:
            paragraphs.append([])
    return "\n".join(" ".join(lines) for lines in paragraphs if lines)


def _keep_lines(rows: list[str]) -> str:
    return "\n".join(row.strip() for row in rows).strip("\n")


def _remove_quotes(text: str, line: int) -> str:
    """Without the quotes that were meant to enclose it; quotes that belong to the text stay."""
    quote = text[:1]
    if quote not in {'"', "'"}:
        return text
    if quote == '"' and _HALF_CHARACTER.search(text):
        raise YamlRefusedError("yaml-surrogate", "a value holds half a character (a lone surrogate)", line)
    if len(text) > 1 and text.endswith(quote):
        return text[1:-1]
    return text[1:].lstrip() if quote not in text[1:] else text

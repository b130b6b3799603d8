"""Edits of the text of a manifest: the entries of its list ``skills`` change, and comments and order stay.

What is added gets a line of its own, in the order of the alphabet and with a comma behind it, whether it is an entry or
the name of a skill in an entry. So git can merge what two people added.

A small scanner of TOML finds the list, and each edit replaces a part of the text. The scanner refuses what it does not
know, and never guesses: at the end the TOML parser reads the result, which must say exactly what was meant.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.lockfile.read import toml_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

ManifestEntry = str | dict[str, Any]
"""An entry as the TOML parser gives it: a source, or a table."""
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_STRINGS = (('"""', True), ("'''", False), ('"', True), ("'", False))
_BARE_VALUE = re.compile(r"[^,\]}#\r\n]+")
_KEY = re.compile(r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[ \t.])+""")
_HEADER = re.compile(r"\[\[?[^\n#]*\]")
_FIRST_KEYS = ("source", "ref")
_INDENT = "  "


class UneditableError(Exception):
    """The text is written in a way that the scanner does not know, though it may be good TOML."""


class Span(NamedTuple):
    """A part of the text, from ``start`` up to but not including ``end``."""

    start: int
    end: int


class EntryList(NamedTuple):
    """Where a list is in the text: all between its brackets, and each of its entries, or of its names of skills."""

    inner: Span
    entries: tuple[Span, ...]


def change_entries(
    text: str, table: Sequence[str], edits: Mapping[int, ManifestEntry | None], added: Sequence[ManifestEntry]
) -> str:
    """Return the text with some entries replaced, by their index, and with others added to the list.

    An edit of ``None`` removes the entry. ``table`` is the table that has ``skills``: ``()`` or ``("tool",
    "prowess")``. Raises ``UneditableError`` when the list is not written as ``skills = [ … ]``.
    """
    data = _parse_toml(text)
    inner = data
    for part in table:
        inner = inner.setdefault(part, {})
    entries: list[ManifestEntry] = inner.get("skills", [])
    changed = text
    entry_list = _find_entry_list(text, table) if edits else None
    # From the end to the beginning: the entries in front keep their offsets, so the list is scanned once.
    for index in sorted(edits, reverse=True):
        entry = edits[index]
        if entry_list is None or index >= len(entry_list.entries):
            raise UneditableError
        span = entry_list.entries[index]
        changed = (
            _without_entry(changed, entry_list, span)
            if entry is None
            else _with_changed_entry(changed, span, entries[index], entry)
        )
    after = [edits.get(index, entry) for index, entry in enumerate(entries)]
    current = [entry for entry in after if entry is not None]
    for entry in added:
        entry_list = _find_entry_list(changed, table)
        position = _find_position([_sort_key(other) for other in current], _sort_key(entry))
        changed = (
            _with_new_list(changed, table, entry)
            if entry_list is None
            else _with_entry(changed, entry_list, entry, position)
        )
        current.insert(position, entry)
    inner["skills"] = current
    try:
        is_right = _without_order(_parse_toml(changed), table) == _without_order(data, table)
    except ValueError:
        is_right = False
    if not is_right:
        raise UneditableError
    return changed


def _parse_toml(text: str) -> dict[str, Any]:
    return tomllib.loads(text)


def _without_order(data: dict[str, Any], table: Sequence[str]) -> dict[str, Any]:
    """What a manifest says, with its entries and their skills sorted: their order means nothing."""
    if table:
        return {**data, table[0]: _without_order(data[table[0]], table[1:])}
    return {**data, "skills": sorted(map(manifest_entry_text, map(_with_sorted_skills, data.get("skills", []))))}


def _with_sorted_skills(entry: ManifestEntry) -> ManifestEntry:
    return {**entry, "skills": sorted(entry["skills"])} if isinstance(entry, dict) and "skills" in entry else entry


def _sort_key(entry: ManifestEntry) -> tuple[str, str]:
    return (entry if isinstance(entry, str) else str(entry.get("source", "")), manifest_entry_text(entry))


def _find_position(keys: Sequence[Any], key: object) -> int:
    """Return where a key goes into keys that are sorted; the end, where a person keeps them in another order."""
    return bisect(keys, key) if list(keys) == sorted(keys) else len(keys)


def manifest_entry_text(entry: ManifestEntry) -> str:
    """Return an entry as TOML, on one line."""
    return toml_value(entry if isinstance(entry, str) else {key: entry[key] for key in _ordered_keys(entry)})


def _ordered_keys(entry: dict[str, Any]) -> list[str]:
    """The keys of an entry as they are written, ``skills`` as the last: its names may be on lines of their own."""
    others = [key for key in entry if key not in {*_FIRST_KEYS, "skills"}]
    return [key for key in (*_FIRST_KEYS, *others, "skills") if key in entry]


def _format_entry(entry: ManifestEntry, indent: str, newline: str) -> str:
    """Return an entry as TOML, with each name of a skill on a line of its own."""
    if isinstance(entry, str) or not entry.get("skills"):
        return manifest_entry_text(entry)
    rows = [f"{key} = {toml_value(entry[key])}" for key in _ordered_keys(entry) if key != "skills"]
    names = _format_list(map(toml_value, entry["skills"]), indent, newline)
    return f"{{ {', '.join([*rows, f'skills = [{names}]'])} }}"


def _format_list(rows: Iterable[str], indent: str, newline: str) -> str:
    """What is between the brackets of a list whose entries have lines of their own."""
    return newline + "".join(f"{indent}{_INDENT}{row},{newline}" for row in rows) + indent


# -- finding the list --------------------------------------------------------------------------------------------------


def _find_entry_list(text: str, table: Sequence[str]) -> EntryList | None:
    """Return where the list ``skills`` of a table is; ``None`` when the table has no such list."""
    here: tuple[str, ...] = ()
    offset = _skip_blanks(text, 0)
    while offset < len(text):
        if text[offset] == "[":
            header = _HEADER.match(text, offset)
            here, offset = _header_path(header), header.end() if header else offset
        else:
            key = _KEY.match(text, offset)
            if key is None or text[key.end() : key.end() + 1] != "=":
                raise UneditableError
            offset = _skip_spaces(text, key.end() + 1)
            if (*here, *_split_key(key[0])) == (*table, "skills"):
                return _read_entry_list(text, offset)
            offset = _value_end(text, offset)
        offset = _skip_blanks(text, offset)
    return None


def _header_path(header: re.Match[str] | None) -> tuple[str, ...]:
    if header is None:
        raise UneditableError
    inner = header[0].strip("[]")
    return (*_split_key(inner), "[]") if header[0].startswith("[[") else _split_key(inner)


def _split_key(key: str) -> tuple[str, ...]:
    """Return the parts of a dotted key, as the TOML parser reads them."""
    try:
        data: Any = _parse_toml(f"{key} = 0")
    except ValueError:
        raise UneditableError from None
    parts: list[str] = []
    while isinstance(data, dict):
        part = next(iter(data))
        parts.append(part)
        data = data[part]
    return tuple(parts)


def _read_entry_list(text: str, offset: int) -> EntryList:
    if text[offset : offset + 1] != "[":
        raise UneditableError
    inner, entries = offset + 1, []
    offset = _skip_blanks(text, inner)
    while text[offset : offset + 1] not in {"]", ""}:
        end = _value_end(text, offset)
        entries.append(Span(offset, end))
        offset = _skip_blanks(text, end)
        if text[offset : offset + 1] == ",":
            offset = _skip_blanks(text, offset + 1)
        elif text[offset : offset + 1] != "]":
            raise UneditableError
    return EntryList(Span(inner, offset), tuple(entries))


def _value_end(text: str, offset: int) -> int:
    """Return the offset after the value that begins at ``offset``."""
    for quote, has_escapes in _STRINGS:
        if text.startswith(quote, offset):
            return _string_end(text, offset + len(quote), quote, has_escapes=has_escapes)
    if text[offset : offset + 1] in {"[", "{"}:
        close = "]" if text[offset] == "[" else "}"
        offset = _skip_blanks(text, offset + 1)
        while text[offset : offset + 1] != close:
            if offset >= len(text):
                raise UneditableError
            # Keys of inline tables, "=" and commas hold no bracket, and a string is skipped as a whole.
            offset = _skip_blanks(text, offset + 1 if text[offset] in {",", "=", "."} else _value_end(text, offset))
        return offset + 1
    bare = _BARE_VALUE.match(text, offset)
    if bare is None:
        raise UneditableError
    # The key of an inline table ends at its "="; a bare value has none.
    return offset + max(len(bare[0].partition("=")[0].rstrip()), 1)


def _string_end(text: str, offset: int, quote: str, *, has_escapes: bool) -> int:
    while offset < len(text):
        if has_escapes and text[offset] == "\\":
            offset += 2
        elif text.startswith(quote, offset):
            offset += len(quote)
            # Up to two more quotes may belong to a string that is in three quotes.
            while len(quote) > 1 and text[offset : offset + 1] == quote[0]:
                offset += 1
            return offset
        else:
            offset += 1
    raise UneditableError


def _skip_blanks(text: str, offset: int) -> int:
    """Return the offset after spaces, line ends and comments."""
    match = _BLANK.match(text, offset)
    return match.end() if match else offset


def _skip_spaces(text: str, offset: int) -> int:
    while text[offset : offset + 1] in {" ", "\t"}:
        offset += 1
    return offset


def _find_table_values(text: str, span: Span) -> dict[str, Span]:
    """Return where the values of an inline table are, by their keys."""
    values: dict[str, Span] = {}
    offset = _skip_blanks(text, span.start + 1)
    while offset < span.end - 1:
        key = _KEY.match(text, offset)
        if key is None or text[key.end() : key.end() + 1] != "=":
            raise UneditableError
        start = _skip_spaces(text, key.end() + 1)
        end = _value_end(text, start)
        values[".".join(_split_key(key[0]))] = Span(start, end)
        offset = _skip_blanks(text, end)
        offset = _skip_blanks(text, offset + 1) if text[offset] == "," else offset
    return values


# -- changing the list -------------------------------------------------------------------------------------------------


def _replace_span(text: str, span: Span, new_text: str) -> str:
    return text[: span.start] + new_text + text[span.end :]


def _newline_of(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent_at(text: str, offset: int) -> str:
    """Return the spaces at the beginning of the line of an offset."""
    begin = text.rfind("\n", 0, offset) + 1
    return text[begin : _skip_spaces(text, begin)]


def _with_changed_entry(text: str, span: Span, old: ManifestEntry, new: ManifestEntry) -> str:
    """Return the text with an entry changed.

    Of a table with the same keys, only the values that differ are written anew.
    """
    if isinstance(old, str) or isinstance(new, str) or old.keys() != new.keys():
        return _replace_span(text, span, _format_entry(new, _indent_at(text, span.start), _newline_of(text)))
    values = _find_table_values(text, span)
    if values.keys() != new.keys():
        raise UneditableError
    changed = [key for key in new if old[key] != new[key]]
    for key in sorted(changed, key=lambda key: values[key].start, reverse=True):
        text = (
            _with_changed_names(text, values[key].start, old[key], new[key])
            if key == "skills"
            else _replace_span(text, values[key], toml_value(new[key]))
        )
    return text


def _with_changed_names(text: str, offset: int, old: Sequence[str], new: Sequence[str]) -> str:
    """Return the text with the list of names at an offset changed, so that the lines of the other names stay."""
    names = _read_entry_list(text, offset)
    for index in reversed(range(len(old))):
        if old[index] not in new:
            text = _without_entry(text, names, names.entries[index])
    left = [name for name in old if name in new]
    names = _read_entry_list(text, offset)
    added = sorted(set(new).difference(old))
    if _has_own_lines(text, names):
        # From the end to the beginning, so that the list is scanned once.
        for name in reversed(added):
            text = _with_row(text, names, name, _find_position(left, name))
    elif added and not _has_comment(text, names):
        rows = map(toml_value, sorted(new))
        text = _replace_span(text, names.inner, _format_list(rows, _indent_at(text, offset), _newline_of(text)))
    else:
        for name in added:
            text = _with_entry(text, _read_entry_list(text, offset), name, len(left))
    return text


def _without_entry(text: str, entry_list: EntryList, span: Span) -> str:
    """Return the text without an entry; an entry that is alone on its line goes with the line and its comment."""
    begin = text.rfind("\n", 0, span.start) + 1
    after = _skip_blanks(text, span.end)
    has_comma = text[after : after + 1] == ","
    if has_comma and "\n" in text[span.end : after]:  # the comma is on another line, with comments between
        return text[: span.start] + text[span.end : after] + text[after + 1 :]
    comma = after + 1 if has_comma else span.end
    line_end = text.find("\n", comma)
    rest = text[comma:line_end].strip() if line_end >= 0 else "]"
    if begin > entry_list.inner.start and not text[begin : span.start].strip() and (not rest or rest.startswith("#")):
        return text[:begin] + text[line_end + 1 :]
    if comma > span.end:
        return text[: span.start] + text[_skip_spaces(text, comma) :]
    # The last of several entries on one line.
    return text[: span.start].rstrip(" \t").removesuffix(",") + text[span.end :]


def _with_entry(text: str, entry_list: EntryList, entry: ManifestEntry, position: int) -> str:
    """Return the text with an entry at a position of a list: on a line of its own, as are the others then."""
    if _has_own_lines(text, entry_list):
        return _with_row(text, entry_list, entry, position)
    newline, spans, outer = _newline_of(text), entry_list.entries, _indent_at(text, entry_list.inner.start)
    new_text = _format_entry(entry, outer + _INDENT, newline)
    if not _has_comment(text, entry_list):
        rows = [text[span.start : span.end] for span in spans]
        rows.insert(position, new_text)
        return _replace_span(text, entry_list.inner, _format_list(rows, outer, newline))
    if not spans:
        return text[: entry_list.inner.end] + f"{_INDENT}{new_text},{newline}" + text[entry_list.inner.end :]
    # Among comments no entry is moved to another line.
    return _replace_span(text, Span(spans[-1].end, spans[-1].end), f", {new_text}")


def _with_row(text: str, entry_list: EntryList, entry: ManifestEntry, position: int) -> str:
    """The text with an entry at a position of a list whose entries have lines of their own, with a comma behind it."""
    newline, spans = _newline_of(text), entry_list.entries
    indent = _indent_at(text, spans[0].start)
    row = f"{indent}{_format_entry(entry, indent, newline)},{newline}"
    if position == 0:  # before the comments above the first entry, which are about that
        line_end = text.find("\n", entry_list.inner.start)
        return text[: line_end + 1] + row + text[line_end + 1 :]
    before = spans[position - 1]
    after = _skip_blanks(text, before.end)
    has_comma = text[after : after + 1] == ","
    line_end = text.find("\n", after if has_comma else before.end)
    changed = text[: line_end + 1] + row + text[line_end + 1 :]
    return changed if has_comma else _replace_span(changed, Span(before.end, before.end), ",")


def _has_own_lines(text: str, entry_list: EntryList) -> bool:
    """Return whether each entry of a list begins a line, and the brackets are on other lines."""
    spans, inner = entry_list.entries, entry_list.inner
    starts = [text.rfind("\n", 0, span.start) + 1 for span in spans]
    begins_line = all(not text[start : span.start].strip() for start, span in zip(starts, spans, strict=True))
    if not spans or not begins_line or starts[0] <= inner.start:
        return False
    after = _skip_blanks(text, spans[-1].end)
    end = after if text[after : after + 1] == "," else spans[-1].end
    return 0 <= text.find("\n", end) < inner.end


def _has_comment(text: str, entry_list: EntryList) -> bool:
    """Return whether there is a comment between the entries of a list."""
    ends = [entry_list.inner.start, *(span.end for span in entry_list.entries)]
    starts = [*(span.start for span in entry_list.entries), entry_list.inner.end]
    return any("#" in text[end:start] for end, start in zip(ends, starts, strict=True))


def _with_new_list(text: str, table: Sequence[str], entry: ManifestEntry) -> str:
    """Return the text with a new list that holds one entry, after the other keys of the table, or before all tables."""
    newline = _newline_of(text)
    new_text = f"skills = [{_format_list([_format_entry(entry, _INDENT, newline)], '', newline)}]{newline}"
    header = re.compile(r"^[ \t]*\[", re.MULTILINE).search(text, _find_table_start(text, table))
    offset = header.start() if header else len(text)
    front = text[:offset]
    if front and not front.endswith("\n"):
        front += newline
    return front + new_text + (newline if header and not table else "") + text[offset:]


def _find_table_start(text: str, table: Sequence[str]) -> int:
    if not table:
        return 0
    for header in re.finditer(r"^[ \t]*\[[^\n#]*\][^\n]*\n?", text, re.MULTILINE):
        inner = _HEADER.match(header[0].lstrip(" \t"))
        if inner and not inner[0].startswith("[[") and _split_key(inner[0].strip("[]")) == tuple(table):
            return header.end()
    raise UneditableError

"""Edits of the text of a manifest: the entries of its list ``skills`` change, and comments and order stay.

A small scanner of TOML finds the list, and each edit replaces a part of the text. The scanner refuses what it does not
know, and never guesses: at the end the TOML parser reads the result, which must say exactly what was meant.
"""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.lockfile.write import toml_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ManifestEntry = str | dict[str, Any]
"""An entry as the TOML parser gives it: a source, or a table."""
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_STRINGS = (('"""', True), ("'''", False), ('"', True), ("'", False))
_BARE_VALUE = re.compile(r"[^,\]}#\r\n]+")
_KEY = re.compile(r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[ \t.])+""")
_HEADER = re.compile(r"\[\[?[^\n#]*\]")
_KEY_ORDER = ("source", "ref", "skills", "agents")


class UneditableError(Exception):
    """The text is written in a way that the scanner does not know, though it may be good TOML."""


class Span(NamedTuple):
    """A part of the text, from ``start`` up to but not including ``end``."""

    start: int
    end: int


class EntryList(NamedTuple):
    """Where the list of entries is in the text: all between its brackets, and each entry."""

    inner: Span
    entries: tuple[Span, ...]


def change_entries(
    text: str, table: Sequence[str], edits: Mapping[int, ManifestEntry | None], added: Sequence[ManifestEntry]
) -> str:
    """The text with some entries replaced, by their index, and with others added at the end of the list.

    An edit of ``None`` removes the entry. ``table`` is the table that has ``skills``: ``()`` or ``("tool",
    "prowess")``. Raises ``UneditableError`` when the list is not written as ``skills = [ … ]``.
    """
    expected = _expected_data(text, table, edits, added)
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
            else _replace_span(changed, span, manifest_entry_text(entry))
        )
    for entry in added:
        entry_list = _find_entry_list(changed, table)
        changed = (
            _with_new_list(changed, table, entry)
            if entry_list is None
            else _with_entry(changed, entry_list, manifest_entry_text(entry))
        )
    try:
        is_right = _parse_toml(changed) == expected
    except ValueError:
        is_right = False
    if not is_right:
        raise UneditableError
    return changed


def _parse_toml(text: str) -> dict[str, Any]:
    return tomllib.loads(text)


def manifest_entry_text(entry: ManifestEntry) -> str:
    """An entry as TOML, on one line."""
    if isinstance(entry, str):
        return toml_value(entry)
    keys = [key for key in _KEY_ORDER if key in entry] + [key for key in entry if key not in _KEY_ORDER]
    return f"{{ {', '.join(f'{key} = {toml_value(entry[key])}' for key in keys)} }}"


def _expected_data(
    text: str, table: Sequence[str], edits: Mapping[int, ManifestEntry | None], added: Sequence[ManifestEntry]
) -> object:
    data = _parse_toml(text)
    inner = data
    for part in table:
        inner = inner.setdefault(part, {})
    old = [edits.get(index, entry) for index, entry in enumerate(inner.get("skills", []))]
    inner["skills"] = [*(entry for entry in old if entry is not None), *added]
    return data


# -- finding the list --------------------------------------------------------------------------------------------------


def _find_entry_list(text: str, table: Sequence[str]) -> EntryList | None:
    """Where the list ``skills`` of a table is; ``None`` when the table has no such list."""
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
    """The parts of a dotted key, as the TOML parser reads them."""
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
    """The offset after the value that begins at ``offset``."""
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
    """The offset after blanks, line ends and comments."""
    match = _BLANK.match(text, offset)
    return match.end() if match else offset


def _skip_spaces(text: str, offset: int) -> int:
    while text[offset : offset + 1] in {" ", "\t"}:
        offset += 1
    return offset


# -- changing the list -------------------------------------------------------------------------------------------------


def _replace_span(text: str, span: Span, new_text: str) -> str:
    return text[: span.start] + new_text + text[span.end :]


def _without_entry(text: str, entry_list: EntryList, span: Span) -> str:
    """The text without an entry; an entry that is alone on its line goes with the line and its comment."""
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


def _with_entry(text: str, entry_list: EntryList, entry: str) -> str:
    """The text with an entry at the end of the list, written like the other entries."""
    newline = "\r\n" if "\r\n" in text else "\n"
    if not entry_list.entries:
        if not text[entry_list.inner.start : entry_list.inner.end].strip():
            return _replace_span(text, entry_list.inner, f"{newline}  {entry},{newline}")
        return text[: entry_list.inner.end] + f"  {entry},{newline}" + text[entry_list.inner.end :]
    last = entry_list.entries[-1]
    begin = text.rfind("\n", 0, last.start) + 1
    indent = text[begin : last.start]
    after = _skip_blanks(text, last.end)
    has_comma = text[after : after + 1] == ","
    line_end = text.find("\n", after if has_comma else last.end)
    if begin <= entry_list.inner.start or indent.strip() or not 0 <= line_end < entry_list.inner.end:
        return _replace_span(
            text, Span(last.end, last.end), f", {entry}"
        )  # on one line with others, or with the bracket
    new_text = f"{indent}{entry}{',' if has_comma else ''}{newline}"
    changed = text[: line_end + 1] + new_text + text[line_end + 1 :]
    return changed if has_comma else _replace_span(changed, Span(last.end, last.end), ",")


def _with_new_list(text: str, table: Sequence[str], entry: ManifestEntry) -> str:
    """The text with a new list that holds one entry, after the other keys of the table, or before all tables."""
    newline = "\r\n" if "\r\n" in text else "\n"
    new_text = f"skills = [{newline}  {manifest_entry_text(entry)},{newline}]{newline}"
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

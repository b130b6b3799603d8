"""A lock file as Prowess writes it, parsed in a tenth of the time that a TOML parser takes."""

from __future__ import annotations

import json
from typing import Any

from prowess.text.patterns import compile_pattern

_LIST_BEGIN = compile_pattern(r"(?<=\n)(files|links|copies) = \[\n")
_LIST = compile_pattern(r'(?:  "[^"\\\n]*+",\n)*+')
_PLAIN_ROW = compile_pattern(r'("?)([A-Za-z0-9_-]++)\1 = (?:"([^"\\]*+)"|\["([^"\\]*+)"\])')
"""A key with one text, or with a list of one text: nothing in it is escaped."""
_TEXT_GROUP = 3
_BARE_KEY = compile_pattern(r"[A-Za-z0-9_-]+")
_CONTROLS = bytes((*range(10), *range(11, 32), 127))  # all but the line break


def parse_plain_toml(text: str) -> dict[str, Any] | None:
    """What a TOML parser gives for a lock file as Prowess writes it; ``None`` for any other text.

    Fast path of the bench rows that verify installs. The slow twin is ``tomllib``; tests/lockfile/test_read.py and
    bench/fuzz.py compare the two.
    """
    encoded = text.encode("utf-8", "surrogatepass")
    if len(encoded.translate(None, _CONTROLS)) < len(encoded):
        return None  # TOML refuses most of them, even in a comment
    data: dict[str, Any] = {"skill": []}
    # Each list with a line for each value is cut out as one text: of most lock files they are the greatest part.
    head, *parts = _LIST_BEGIN.split(text)
    table = _add_rows(head, data, data)
    for key, part in zip(parts[::2], parts[1::2], strict=True):
        values, end, rest = part.partition("]\n")
        if table is None or not end or key in table or _LIST.fullmatch(values) is None:
            return None
        table[key] = values[3:-3].split('",\n  "') if values else []
        table = _add_rows(rest, data, table)
    return data if table is not None and data["skill"] else None


def _add_rows(text: str, data: dict[str, Any], table: dict[str, Any]) -> dict[str, Any] | None:
    """Put each row into the table that it belongs to, and return the last table; ``None`` where a row is not plain."""
    for row in text.split("\n"):
        if row == "[[skill]]":
            table = {}
            data["skill"].append(table)
        elif row == "[skill.skills]" and data["skill"] and table is data["skill"][-1] and "skills" not in table:
            table["skills"] = table = {}
        elif row and row[0] != "#" and not _add_row(row, table):
            return None
    return table


def _add_row(row: str, table: dict[str, Any]) -> bool:
    """Put a row into the table and return True when it is a key with a value that JSON writes as TOML does."""
    match = _PLAIN_ROW.fullmatch(row)  # fast path of nearly every row: the rest of this function gives the same value
    if match is not None and match[2] not in table:
        table[match[2]] = match[3] if match.lastindex == _TEXT_GROUP else [match[4]]
        return True
    key, equals, value = row.partition(" = ")
    if not equals or "\\" in row:  # JSON and TOML have different escapes
        return False
    try:
        name = json.loads(key) if key[:1] == '"' else key
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return False
    is_new_name = isinstance(name, str) and name not in table
    if not is_new_name or (key is name and _BARE_KEY.fullmatch(name) is None) or not _is_plain_value(parsed):
        return False
    table[name] = parsed
    return True


def _is_plain_value(value: object) -> bool:
    """True for a text, an integer or a list of texts: JSON has more kinds of values, and a lock file does not."""
    return type(value) in {str, int} or (isinstance(value, list) and all(type(text) is str for text in value))

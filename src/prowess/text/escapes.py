r"""Escaping of text for terminals and logs: control and invisible characters are written out, such as ``\x1b``."""

from __future__ import annotations

import re

# Controls (C0, DEL, C1), line and paragraph separators, direction marks and overrides, zero-width and tag characters,
# halves of characters. Joiners stay: whole scripts, and families of emoji, are written with them.
_UNSAFE_RANGES = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f"
)
# Texts, not compiled patterns: every module imports errors, which seldom need one, and ``re`` keeps what it compiled.
_UNSAFE_IN_TEXT = f"[{_UNSAFE_RANGES}]"
_UNSAFE_IN_LINE = f"[\t\n{_UNSAFE_RANGES}]"


def escape_line(text: str) -> str:
    r"""Return ``text`` on one line with every unsafe character written out: a line break as ``\n``."""
    # Fast path: no character is both printable to Python and unsafe, and the pattern takes a millisecond to compile.
    return text if text.isprintable() else re.sub(_UNSAFE_IN_LINE, _write_escape, text)


def escape_text(text: str) -> str:
    """Return ``text`` with its line breaks and tabs, and with every other unsafe character written out."""
    return re.sub(_UNSAFE_IN_TEXT, _write_escape, text.replace("\r\n", "\n"))


def _write_escape(match: re.Match[str]) -> str:
    point = ord(match[0])
    names = {9: "\\t", 10: "\\n", 13: "\\r"}
    if point in names:
        return names[point]
    if point <= 0xFF:  # noqa: PLR2004 - the points that two digits can write
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"  # noqa: PLR2004


def dump_json(data: object, indent: int | None = 2) -> str:
    """Return JSON in which every unsafe character is escaped, so that the data is exact and harmless."""
    import json  # every command imports this module, and few print JSON

    return re.sub(_UNSAFE_IN_TEXT, _escape_in_json, json.dumps(data, ensure_ascii=False, indent=indent))


def _escape_in_json(match: re.Match[str]) -> str:
    # JSON escapes units of UTF-16, so that a character beyond the first 65,536 becomes two of them.
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[index]:02x}{units[index + 1]:02x}" for index in range(0, len(units), 2))

"""The commonest heads understood by one compiled pattern over the raw bytes.

A match proves that the whole frontmatter lies in the plain subset, that no rule refuses it, that name and description
are usable as they stand, and that a body follows; so discovery may keep the bytes and read the other fields when they
are asked for. Anything else, however small the doubt, is no match and takes the full path.
"""

from __future__ import annotations

import re

from prowess.limits import MAX_NAME_LENGTH
from prowess.names import DEVICES

_DEVICES = frozenset(name.encode() for name in DEVICES)
MAX_BYTES = 4096  # parse_plain reads as many characters at most, and every byte limit is larger

_CHAR = rb"[^\x00-\x1f\x7f:#]"
_FIRST = rb"[^-?:,\[\]{}#&*!|>'\"%@` \x00-\x1f\x7f]"
_PLAIN = _FIRST + _CHAR + rb"*+(?:(?::(?=[^ \n])|(?<=[^ ])#)" + _CHAR + rb"*+)*+"
_DOUBLE = rb'"[^\x00-\x1f\x7f"\\]*+"'
_SINGLE = rb"'[^\x00-\x1f\x7f']*+'"
_TEXT = rb"(?:" + _PLAIN + rb"|" + _DOUBLE + rb"|" + _SINGLE + rb")"
_KEY = rb"[A-Za-z_][A-Za-z0-9_-]{0,63}+"
_ITEM = rb"(?:" + _FIRST + rb"[^\x00-\x1f\x7f:#,\[\]{}?]*+|" + _DOUBLE + rb")"
_FLOW = rb"\[" + _ITEM + rb"(?:, " + _ITEM + rb")*+\]"

_COMMON = re.compile(
    rb"---\n(?:"
    rb"name: ([a-z0-9]++(?:-[a-z0-9]++)*+)\n"
    rb"|description: (" + _TEXT + rb")\n"
    rb"|" + _KEY + rb":(?: (?:" + _TEXT + rb"|" + _FLOW + rb")\n"
    rb"|\n(?:  " + _KEY + rb": " + _TEXT + rb"\n)++"
    rb"|\n(?:  - " + _TEXT + rb"\n)++)"
    rb")++()---\n\s*+(?=\S)",  # the empty group marks where the closing dashes begin
)
# In UTF-8: C1 controls and NBSP, the line and paragraph separators, a byte order mark, the two non-characters.
_ODD = re.compile(rb"\xc2[\x80-\xa0]|\xe2\x80[\xa8\xa9]|\xef\xbb\xbf|\xef\xbf[\xbe\xbf]")


_BEFORE_COLONS = re.compile(rb"\n([^:\n]*+)")

Glance = tuple[str, str, bytes, int]
"""Name, description, the frontmatter's own bytes, and where the body begins."""


def glance(head: bytes) -> Glance | None:
    """What a head of the commonest shape says, or ``None``."""
    match = _COMMON.match(head)
    if match is None:
        return None
    name, described = match.group(1, 2)
    if name is None or described is None or len(name) > MAX_NAME_LENGTH or name in _DEVICES:
        return None
    end = match.start(3)
    # Rows that differ before their first colon cannot repeat a key, on any level.
    keys = _BEFORE_COLONS.findall(head, 3, end - 1)
    if len(set(keys)) != len(keys):
        return None
    raw = head[4:end]
    if not raw.isascii() and not _is_ordinary(raw):
        return None
    if described[0] in b"\"'":
        described = described[1:-1].strip()
        if not described:
            return None
    return name.decode(), described.decode().rstrip(), raw, end + 4


def _is_ordinary(raw: bytes) -> bool:
    """UTF-8 without the breaks and marks that YAML treats in its own way."""
    if _ODD.search(raw):
        return False
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True

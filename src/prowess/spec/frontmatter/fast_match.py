"""The commonest heads understood without parsing them: discovery's short cut.

First one compiled pattern over the raw bytes, then, for heads that are plain all the same, ``parse_plain_yaml``. A
match proves that no rule refuses the frontmatter, that name and description are usable as they stand, and that a body
follows; so discovery may keep the bytes and read the other fields when they are asked for. Anything else, however small
the doubt, is no match and takes the full path.
"""

from __future__ import annotations

import re

from prowess.errors import InvalidFrontmatterError
from prowess.limits import MAX_NAME_LENGTH
from prowess.names import DEVICE_NAMES
from prowess.on_demand import OnDemand
from prowess.spec.frontmatter.plain_yaml import MAX_PLAIN_CHARS, parse_plain_yaml

TYPE_CHECKING = False

if TYPE_CHECKING:
    from prowess.spec import rules
    from prowess.spec.frontmatter import fences as fence
else:
    fence, rules = OnDemand("prowess.spec.frontmatter.fences"), OnDemand("prowess.spec.rules")

MAX_HEAD_BYTES = 4096
_BLANK, _BAR, _BRACKET = b" |["
_DEVICES = frozenset(name.encode() for name in DEVICE_NAMES)

_CHAR = rb"[^\x00-\x1f\x7f:#]"
_FIRST = rb"[^-?:,\[\]{}#&*!|>'\"%@` \x00-\x1f\x7f]"
_REST = _CHAR + rb"*+(?:(?::(?=[^ \n])|(?<=[^ ])#)" + _CHAR + rb"*+)*+"
_PLAIN = _FIRST + _REST
_CONTINUATION = rb"(?: ++(?=[^# \n])" + _REST + rb"\n)*+"
_QUOTED = rb'"[^\x00-\x1f\x7f"\\]*+"|' + rb"'[^\x00-\x1f\x7f']*+'"
_TEXT = rb"(?:" + _PLAIN + rb"|" + _QUOTED + rb")"
_KEY = rb"[A-Za-z_][A-Za-z0-9_-]{0,63}+"
_ITEM = rb'(?:[A-Za-z0-9_(./](?:[^\x00-\x1f\x7f:#,\[\]{}?]++|:(?=[\w*./-]))*+|"[^\x00-\x1f\x7f"\\]*+")'
_FLOW = rb"\[" + _ITEM + rb"(?:, " + _ITEM + rb")*+\]"
_LINE = rb"[^ \x00-\x1f\x7f][^\x00-\x1f\x7f]*+\n"

# The next byte begins a character that is not blank: the wide blanks of Unicode count as blanks.
_VISIBLE_NEXT = rb"(?=[!-~]|(?!\xe3\x80\x80|\xe2\x80|\xe2\x81\x9f|\xe1\x9a\x80|\xc2[\x85\xa0])[\x80-\xff])"
# Nothing is captured inside the loop: what an alternative captured before it failed would stay.
_COMMON_HEAD = re.compile(
    rb"---\n(?:" + _KEY + rb":(?: (?:" + _PLAIN + rb"\n" + _CONTINUATION + rb"|(?:" + _QUOTED + rb"|" + _FLOW + rb")\n"
    rb"|[>|]-?\n(?:  " + _LINE + rb")++)"
    rb"|\n(?:(?:  " + _KEY + rb": " + _TEXT + rb"\n)++|(?:  - " + _TEXT + rb"\n)++|(?:- " + _TEXT + rb"\n)++))"
    rb")++()---\n\s*+" + _VISIBLE_NEXT,  # the empty group marks where the closing dashes begin
)
_KEBAB = re.compile(rb"[a-z0-9]++(?:-[a-z0-9]++)*+")
# In UTF-8: C1 controls and NBSP, the line and paragraph separators, a byte order mark, the two non-characters.
_ODD = re.compile(rb"\xc2[\x80-\xa0]|\xe2\x80[\xa8\xa9]|\xef\xbb\xbf|\xef\xbf[\xbe\xbf]")

HeadMatch = tuple[str, str, bytes, int]
"""Name, description, the frontmatter's own bytes, and where the body begins."""


def match_head(head: bytes) -> HeadMatch | None:
    """What a head says that is plain and has nothing to mend, or ``None``."""
    match = _COMMON_HEAD.match(head)
    if match is None:
        return _match_plain(head)
    end = match.start(1)
    raw = head[4:end]
    rows = raw.split(b"\n")
    # Rows that differ before their first colon cannot repeat a key, on any level.
    if len({row.partition(b":")[0] for row in rows}) != len(rows):
        return _match_plain(head)
    named = head.find(b"\nname: ", 3, end)
    described = head.find(b"\ndescription: ", 3, end)
    if named < 0 or described < 0:
        return None
    stop = head.index(b"\n", named + 7)
    name = head[named + 7 : stop]
    if len(name) > MAX_NAME_LENGTH or name in _DEVICES or head[stop + 1] == _BLANK or not _KEBAB.fullmatch(name):
        return None
    if not raw.isascii() and not _is_plain_utf8(raw):
        return None
    value = _read_value(head, described + 14)
    text = value.decode().strip() if value else ""
    return (name.decode(), text, raw, end + 4) if text else None


def _read_value(head: bytes, at: int) -> bytes | None:
    """The text of a value of the matched shapes that begins at ``at``, without blanks at both ends."""
    end = head.index(b"\n", at)
    if head[at] == _BRACKET:
        return None
    if head[end + 1] != _BLANK:
        return (head[at + 1 : end - 1] if head[at] in b"\"'" else head[at:end]).strip(b" ")
    more: list[bytes] = []
    after = end + 1
    while head[after] == _BLANK:
        stop = head.index(b"\n", after)
        more.append(head[after:stop])
        after = stop + 1
    if head[at] not in b">|":
        return b" ".join((head[at:end].rstrip(b" "), *(line.strip(b" ") for line in more)))
    if any(line.endswith(b" ") for line in more):
        return None
    return (b"\n" if head[at] == _BAR else b" ").join(line[2:] for line in more)


def _is_plain_utf8(raw: bytes) -> bool:
    """UTF-8 without the breaks and marks that YAML treats in its own way."""
    if _ODD.search(raw):
        return False
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _match_plain(head: bytes) -> HeadMatch | None:
    """The same for heads whose shape is not the commonest, and plain."""
    try:
        fences = fence.find_fences(head, whole=False) if head.startswith(b"---\n") else None
        text = fence.decode_frontmatter(head, fences) if fences is not None and fences.body <= MAX_PLAIN_CHARS else ""
    except InvalidFrontmatterError:
        return None
    if fences is None or not text or b"\r" in head[fences.start : fences.end]:
        return None
    parsed = parse_plain_yaml(text)
    if parsed is None or not head[fences.body :].decode("utf-8", "ignore").strip():
        return None
    name, description = (parsed[0].get(key) for key in ("name", "description"))
    if isinstance(name, str) and isinstance(description, str) and rules.is_spec_name(name) and description.strip():
        return name, description.strip(), head[fences.start : fences.end], fences.body
    return None

"""The fast path of discovery: the name and description of the commonest heads, without parsing their YAML.

One compiled pattern over the raw bytes comes first. Heads that it does not know, and that are plain nevertheless, are
read by ``parse_plain_yaml``. A match proves that no rule refuses the frontmatter, that name and description are usable
as they stand, and that a body follows; discovery may then keep the bytes and read the other fields when they are asked
for. A head about which there is the smallest doubt is no match, and is parsed.

A scan takes about three times as long without it (the bench row "scan"). The slow twin is ``parse_head``;
tests/spec/frontmatter/test_fast_paths.py compares the two on real, disturbed and generated heads.
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

# Each class names the bytes that it takes: `re` needs about twice as long a byte for a class of those it leaves out.
_CHAR = rb"[ !\"$-9;-~\x80-\xff]"  # no control, ':' or '#'
_FIRST = rb"[$()+./0-9;<=A-Z\\^_a-z~\x80-\xff]"  # no blank and nothing that means something to YAML
_REST = _CHAR + rb"*+(?:(?::(?=[^ \n])|(?<=[^ ])#)" + _CHAR + rb"*+)*+"
_PLAIN = _FIRST + _REST
_CONTINUATION = rb"(?: ++(?=[^# \n])" + _REST + rb"\n)*+"
_QUOTED = rb'"[ !#-\[\]-~\x80-\xff]*+"|' + rb"'[ -&(-~\x80-\xff]*+'"
_TEXT = rb"(?:" + _PLAIN + rb"|" + _QUOTED + rb")"
_KEY = rb"[A-Za-z_][A-Za-z0-9_-]{2,63}+"  # at least three: ``_find_row_starts`` relies on it
_INNER_KEY = rb"[A-Za-z_][A-Za-z0-9_-]{0,63}+"
_ITEM = rb'(?:[A-Za-z0-9_(./](?:[ !"$-+\--9;->@-Z\\^-z|~\x80-\xff]++|:(?=[\w*./-]))*+|"[ !#-\[\]-~\x80-\xff]*+")'
_FLOW = rb"\[" + _ITEM + rb"(?:, " + _ITEM + rb")*+\]"
_LINE = rb"[!-~\x80-\xff][ -~\x80-\xff]*+\n"
_KEBAB_NAME = rb"[a-z0-9]++(?:-[a-z0-9]++)*+"

# The next byte begins a character that is not blank. The wide blanks of Unicode count as blanks, because the body is
# stripped as text.
_VISIBLE_NEXT = rb"(?=[!-~]|(?!\xe3\x80\x80|\xe2\x80|\xe2\x81\x9f|\xe1\x9a\x80|\xc2[\x85\xa0])[\x80-\xff])"
# Most heads begin with the name, and with the description in one line: these two are captured at once. The empty group
# after them shows that all of that was there, since what was captured before something failed may stay. Nothing is
# captured inside the loop for that reason. The last group marks where the closing dashes begin.
_COMMON_HEAD = re.compile(
    rb"---\n(?:name: (" + _KEBAB_NAME + rb")\ndescription: (" + _TEXT + rb")\n(?! )())?+"
    rb"(?:" + _KEY + rb":(?: (?:" + _PLAIN + rb"\n" + _CONTINUATION + rb"|(?:" + _QUOTED + rb"|" + _FLOW + rb")\n"
    rb"|[>|]-?\n(?:  " + _LINE + rb")++)"
    rb"|\n(?:(?:  " + _INNER_KEY + rb": " + _TEXT + rb"\n)++|(?:  - " + _TEXT + rb"\n)++|(?:- " + _TEXT + rb"\n)++))"
    rb")*+()---\n\s*+" + _VISIBLE_NEXT,
)
_KEBAB = re.compile(_KEBAB_NAME)
# The first four bytes of each row that may hold a key: an item of a list begins with a dash, or has a blank there.
# Rows that differ in these bytes have different keys, because keys have three letters or more, or stand behind two
# blanks: rows of one key agree in these bytes.
_find_row_starts = re.compile(rb"\n([ A-Z_a-z]..[!-~])").findall
# In UTF-8: C1 controls and NBSP, the line and paragraph separators, a byte order mark, the two non-characters.
_ODD = re.compile(rb"\xc2[\x80-\xa0]|\xe2\x80[\xa8\xa9]|\xef\xbb\xbf|\xef\xbf[\xbe\xbf]")

HeadMatch = tuple[str, str, bytes, int]
"""The name, the description, the bytes between the dashes, and the offset at which the body begins."""


def match_head(head: bytes) -> HeadMatch | None:
    """Return what a head says when it is plain and has nothing to mend; ``None`` when only a closer look can tell."""
    match = _COMMON_HEAD.match(head)
    if match is None:
        return _match_plain(head)
    begin, end = match.start(3), match.start(4)
    if begin < 0:
        return _match_in_any_order(head, end)
    # Many heads end with the description, and then there is nothing to compare.
    if begin < end:
        starts = _find_row_starts(head, begin - 1, end)
        if len({b"name", b"desc", *starts}) < len(starts) + 2 and not _has_distinct_rows(head[4:end]):
            return _match_plain(head)
    raw, name, value = head[4:end], match[1], match[2]
    if len(name) > MAX_NAME_LENGTH or name in _DEVICES or not (raw.isascii() or _is_plain_utf8(raw)):
        return None
    text = (value[1:-1] if value[0] in b"\"'" else value).decode().strip()
    return (name.decode(), text, raw, end + 4) if text else None


def _has_distinct_rows(raw: bytes) -> bool:
    """Whether no two rows can hold one key, on any level: those that differ before their first colon cannot."""
    rows = raw.split(b"\n")
    return len({row.partition(b":")[0] for row in rows}) == len(rows)


def _match_in_any_order(head: bytes, end: int) -> HeadMatch | None:
    """Return what a head of the common shape says whose name and description are anywhere, and of any shape.

    ``end`` is the offset of the closing dashes.
    """
    raw, starts = head[4:end], _find_row_starts(head, 3, end)
    if len(set(starts)) < len(starts) and not _has_distinct_rows(raw):
        return _match_plain(head)
    name_row = head.find(b"\nname: ", 3, end)
    description_row = head.find(b"\ndescription: ", 3, end)
    if name_row < 0 or description_row < 0:
        return None
    stop = head.index(b"\n", name_row + 7)
    name = head[name_row + 7 : stop]
    if name[0] in b"\"'":
        name = name[1:-1]
    if len(name) > MAX_NAME_LENGTH or name in _DEVICES or head[stop + 1] == _BLANK or not _KEBAB.fullmatch(name):
        return None
    if not raw.isascii() and not _is_plain_utf8(raw):
        return None
    value = _read_value(head, description_row + 14)
    text = value.decode().strip() if value else ""
    return (name.decode(), text, raw, end + 4) if text else None


def _read_value(head: bytes, start: int) -> bytes | None:
    """Return the text of the value that begins at ``start``, stripped; ``None`` when its shape needs a closer look."""
    end = head.index(b"\n", start)
    if head[start] == _BRACKET:
        return None
    if head[end + 1] != _BLANK:
        return (head[start + 1 : end - 1] if head[start] in b"\"'" else head[start:end]).strip(b" ")
    stop = end
    while head[stop + 1] == _BLANK:
        stop = head.index(b"\n", stop + 1)
    if head[start] not in b">|":
        return b" ".join([line.strip(b" ") for line in head[start:stop].split(b"\n")])
    # The pattern has seen that each line of a block stands behind two blanks. Blanks at the end of a line are text.
    return head[end + 3 : stop].replace(b"\n  ", b"\n" if head[start] == _BAR else b" ")


def _is_plain_utf8(raw: bytes) -> bool:
    """Whether bytes are UTF-8 without the breaks and marks that YAML treats in its own way."""
    # The bytes that an odd character begins with are rare: looking for them is faster than the pattern.
    if (b"\xc2" in raw or b"\xef" in raw or b"\xe2\x80\xa8" in raw or b"\xe2\x80\xa9" in raw) and _ODD.search(raw):
        return False
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _match_plain(head: bytes) -> HeadMatch | None:
    """Return what a head says that is plain and not of the common shape; ``None`` when only a closer look can tell."""
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

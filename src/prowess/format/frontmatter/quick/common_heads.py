"""The name and description of nearly every head, without parsing its YAML.

Two compiled patterns look at the raw bytes. The first knows the commonest shapes, and the second, in ``nested_heads``,
those that go deeper. A match proves that lenient mode accepts the frontmatter, that name and description are usable as
they stand, and that a body follows; discovery may then keep the bytes and read the other fields when they are asked
for. A head with the smallest doubt does not match, and is parsed.

It buys the rows "scan" of the bench: a scan takes three to five times as long without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from prowess.format import rules
from prowess.limits import MAX_NAME_LENGTH
from prowess.names import DEVICE_NAMES
from prowess.text.patterns import compile_pattern

if TYPE_CHECKING:
    import re


MAX_HEAD_BYTES = 4096
MAX_CHARS = 4096
"""A head as short as this stays within every bound of the default limits on events and lengths."""
_BAR, _APOSTROPHE = b"|'"
_MARKS = b"\"'[{>|\n"  # what a value begins with that is not an unquoted string
_DEVICES = frozenset(name.encode() for name in DEVICE_NAMES)

# Each class names the bytes that it takes: `re` needs about twice as long a byte for a class of those it leaves out.
_CHAR = rb"[ !\"$-9;-~\x80-\xff]"  # no control, ':' or '#'
_FIRST = rb"[$()+./0-9;<=A-Z\\^_a-z~\x80-\xff]"  # no space and nothing that means something to YAML
REST = _CHAR + rb"*+(?:(?::(?=[^ \n])|(?<=[^ ])#)" + _CHAR + rb"*+)*+"
PLAIN = _FIRST + REST
_CONTINUATION = rb"(?: ++(?=[^# \n])" + REST + rb"\n)*+"
QUOTED = rb'"[ !#-\[\]-~\x80-\xff]*+"|' + rb"'[ -&(-~\x80-\xff]*+'"
TEXT = rb"(?:" + PLAIN + rb"|" + QUOTED + rb")"
KEY = rb"[A-Za-z_][A-Za-z0-9_-]{2,63}+"  # at least three: ``_find_row_starts`` relies on it
INNER_KEY = rb"[A-Za-z_][A-Za-z0-9_-]{0,63}+"
_ITEM = rb'(?:[A-Za-z0-9_(./](?:[ !"$-+\--9;->@-Z\\^-z|~\x80-\xff]++|:(?=[\w*./-]))*+|"[ !#-\[\]-~\x80-\xff]*+")'
_FLOW = rb"\[" + _ITEM + rb"(?:, " + _ITEM + rb")*+\]"
_LINE = rb"[!-~\x80-\xff][ -~\x80-\xff]*+\n"
# Every such name is usable. Lenient mode only warns of a name with two hyphens in a row, or one at its end.
USUAL_NAME = rb"[a-z0-9][a-z0-9-]{0,%d}+" % (MAX_NAME_LENGTH - 1)

# Most heads begin with the name, and with the description in one line. The name is captured at once. The empty group
# after the two shows that all of that was there, since what was captured before something failed may stay. Nothing is
# captured inside the loop for that reason.
_BEGINNING = rb"---\n(?:name: (" + USUAL_NAME + rb")\ndescription: " + TEXT + rb"\n(?! )())?+"
# The empty group marks where the closing dashes begin. The next byte begins a character that is not a space: the wide
# spaces of Unicode count as spaces, because the body is stripped as text.
ENDING = rb"()---\n\s*+(?=[!-~]|(?!\xe3\x80\x80|\xe2\x80|\xe2\x81\x9f|\xe1\x9a\x80|\xc2[\x85\xa0])[\x80-\xff])"
_COMMON_HEAD = compile_pattern(
    _BEGINNING + rb"(?:" + KEY + rb":(?: (?:" + PLAIN + rb"\n" + _CONTINUATION + rb"|(?:" + QUOTED + rb"|" + _FLOW
    + rb")\n|[>|]-?\n(?:  " + _LINE + rb")++)"
    rb"|\n(?:(?:  " + INNER_KEY + rb": " + TEXT + rb"\n)++|(?:  - " + TEXT + rb"\n)++|(?:- " + TEXT + rb"\n)++))"
    rb")*+" + ENDING,
)  # fmt: skip
_match_name = compile_pattern(USUAL_NAME + rb"(?=\n[^ \n])").match
# The first four bytes of each row that may hold a key: an item of a list begins with a dash, or has a space there.
# Rows that differ in these bytes have different keys, because keys have three letters or more, or stand behind two
# blanks: rows of one key agree in these bytes.
_find_row_starts = compile_pattern(rb"\n([ A-Z_a-z]..[!-~])").findall
# In UTF-8: C1 controls and NBSP, a byte order mark, the two non-characters.
_ODD_LEADS = 0xC2, 0xEF
_ODD = compile_pattern(rb"\xc2[\x80-\xa0]|\xef\xbb\xbf|\xef\xbf[\xbe\xbf]")
_find_keys = compile_pattern(rb"\n( *+" + INNER_KEY + rb":)(?=[ \n])").findall
_find_key_rows = compile_pattern(rb"\n( *+)(- )?(" + INNER_KEY + rb"):(?=[ \n])").findall
_find_value_end = compile_pattern(rb"\n(?=[^ \n])").search
# A break inside a quoted string, with the spaces around it and the empty lines that follow.
_QUOTED_BREAK = compile_pattern(rb"(?:(?<! ) ++)?+\n(\n*+) *+")
_ESCAPED = compile_pattern(rb'\\(["\\])')
_FOLDED_BREAKS = compile_pattern(rb"\n++")

heads_before_compiling = iter(range(100))
"""One number for each head that the first pattern does not know, and that is left to the parser nevertheless.

Compiling the second pattern takes as long as parsing so many heads. Only a large library gains by it.
"""


class QuickHead(NamedTuple):
    """What a quick reader knows of a head without fault; its fields are parsed when they are asked for."""

    name: str
    description: str
    raw: bytes
    """The bytes between the dashes."""
    body_offset: int


def match_head(head: bytes) -> QuickHead | None:
    """Return what a head says when it is plain and has nothing to fix; ``None`` when that needs a closer look."""
    match = _COMMON_HEAD.match(head)
    if match is None:
        return _match_nested(head)
    begin, end = match.start(2), match.start(3)
    if begin < 0:
        starts = _find_row_starts(head, 3, end)
        is_distinct = len(set(starts)) == len(starts) or has_distinct_keys(head, end)
        return _match_in_any_order(head, end) if is_distinct else None
    # Many heads end with the description, and then there is nothing to compare.
    if begin < end:
        starts = _find_row_starts(head, begin - 1, end)
        if len({b"name", b"desc", *starts}) < len(starts) + 2 and not has_distinct_keys(head, end):
            return None
    raw, name = head[4:end], match[1]
    if name in _DEVICES or end > MAX_CHARS or not (raw.isascii() or is_plain_utf8(raw)):
        return None
    # The text between the row's key and its break, without quotes. Cut out here, it costs less than a group.
    start = match.end(1) + 14  # behind "\ndescription: "
    value = head[start + 1 : begin - 2] if head[start] in b"\"'" else head[start : begin - 1]
    description = value.decode().strip()
    return QuickHead(name.decode(), description, raw, end + 4) if description else None


def _match_nested(head: bytes) -> QuickHead | None:
    """Return what a head says that the first pattern does not know."""
    if not head.startswith(b"---\n") or next(heads_before_compiling, None) is not None:
        return None
    from prowess.format.frontmatter.quick import nested_heads

    end = nested_heads.find_nested_end(head)
    return _match_in_any_order(head, end) if end is not None else None


def _match_in_any_order(head: bytes, end: int) -> QuickHead | None:
    """Return what a head says whose name and description are anywhere, and of any shape.

    A pattern has matched the head, and no key is written twice. ``end`` is the offset of the closing dashes.
    """
    name_row = head.find(b"\nname: ", 3, end)
    description_row = head.find(b"\ndescription: ", 3, end)
    raw = head[4:end]
    if name_row < 0 or description_row < 0 or end > MAX_CHARS or not (raw.isascii() or is_plain_utf8(raw)):
        return None
    name = _read_name(head, name_row + 7)
    if name is None:
        return None
    text = _read_text(head, description_row + 14)
    description = text.decode().strip() if text is not None else ""
    return QuickHead(name.decode(), description, raw, end + 4) if description else None


def _read_name(head: bytes, start: int) -> bytes | None:
    """Return the name that begins at ``start``; ``None`` when it may be unusable."""
    usual = _match_name(head, start)
    if usual is not None and usual[0] not in _DEVICES:  # nearly every name: the pattern is faster than what follows
        return usual[0]
    if head[start] in b"|>":  # a block of text ends with a line break, and no name may
        return None
    name = _read_text(head, start)
    if not name or len(name) > MAX_NAME_LENGTH:  # whether a longer name is kept depends on the limits
        return None
    return name if rules.is_usable_name(name.decode()) else None


def _read_text(head: bytes, start: int) -> bytes | None:
    """Return the text of the value that begins at ``start``; ``None`` when it is not a string on the line of its key.

    Of a block of text it may lack the break at its end.
    """
    end = head.index(b"\n", start)
    mark = head[start]
    if head[end + 1] not in b" \n" and mark not in _MARKS:  # fast path: unquoted, and on one line
        return head[start:end].rstrip(b" ")
    if mark in b"[{\n":
        return None
    end = _find_value_end(head, end).start()  # type: ignore[union-attr]  # the closing dashes are at the margin
    value = head[start:end].rstrip(b"\n")
    if mark in b"\"'":
        text = value[1:-1]
        if b"\n" in text:
            text = _QUOTED_BREAK.sub(lambda match: match[1] or b" ", text)
        return text.replace(b"''", b"'") if mark == _APOSTROPHE else _ESCAPED.sub(rb"\1", text)
    if mark not in b">|":
        return b" ".join([line.strip(b" ") for line in value.split(b"\n")]).rstrip(b" ")
    # The pattern has seen that each line is indented like the first one, or is empty. Spaces at the end of a
    # line are text.
    text = value.partition(b"\n")[2]
    block = text.lstrip(b" ")
    block = block.replace(b"\n" + b" " * (len(text) - len(block)), b"\n")
    if mark == _BAR:
        return block
    return _FOLDED_BREAKS.sub(_fold_breaks, block) if b"\n\n" in block else block.replace(b"\n", b" ")


def _fold_breaks(match: re.Match[bytes]) -> bytes:
    """Fold a run of line breaks as YAML does: one break fewer, and a space in place of a single one."""
    return match[0][1:] or b" "


def has_distinct_keys(head: bytes, end: int) -> bool:
    """Return whether no mapping has a key twice, in a head that a pattern has matched up to ``end``.

    False says nothing, because a line of text may look like a key.
    """
    # Fast path: most heads have no key twice in one column, of whatever mappings. A key may follow a bullet.
    rows = _find_keys(head[3:end].replace(b"- ", b"  "))
    if len(set(rows)) == len(rows):
        return True
    keys: dict[int, set[bytes]] = {}  # by the column where the keys of a mapping begin
    last = 0
    for indent, bullet, key in _find_key_rows(head, 3, end):
        column = len(indent)
        if column < last:  # this row ends every mapping that is deeper
            keys = {other: names for other, names in keys.items() if other <= column}
        if bullet:  # a mapping begins behind it
            column += len(bullet)
            keys[column] = set()
        last = column
        names = keys.setdefault(column, set())
        if key in names:
            return False
        names.add(key)
    return True


def is_plain_utf8(raw: bytes) -> bool:
    """Return whether bytes are UTF-8 without the breaks and marks that YAML treats in its own way."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return False
    # Looking for the bytes that most odd characters begin with, which are rare, is faster than the pattern. They are
    # numbers here, because ``in`` makes and drops an exception where both sides are bytes.
    if (_ODD_LEADS[0] in raw or _ODD_LEADS[1] in raw) and _ODD.search(raw):
        return False
    return "\u2028" not in text and "\u2029" not in text

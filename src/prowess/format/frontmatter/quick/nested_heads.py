"""The pattern of heads that ``common_heads`` does not know: nested values, lists of mappings, text of several lines.

It is a module of its own because its pattern takes as long to compile as a hundred such heads take to parse, and a
library of common heads does without it. It buys the row "scan, real heads": the scan takes half as long again
without it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from prowess.format.frontmatter.quick.common_heads import ENDING, INNER_KEY, PLAIN, QUOTED, REST, has_distinct_keys
from prowess.text.patterns import compile_pattern

if TYPE_CHECKING:
    import re

_DEEPEST = 6  # The indentation of the deepest mapping whose values may be mappings.
_DEEPEST_MARGIN_LIST = 2  # The deepest key that may have a list in its own column.
_VISIBLE = rb"[!-~\x80-\xff]"
_LINE = _VISIBLE + rb"[ -~\x80-\xff]*+\n"
_FLOW_CHARS = rb'[ !"$-+\--9;->@-Z\\^-z|~\x80-\xff]*+'
_FLOW_ITEM = rb"(?:[A-Za-z0-9_(./]" + _FLOW_CHARS + rb"(?::(?=[\w*./-])" + _FLOW_CHARS + rb")*+|" + QUOTED + rb")"
_FLOW = rb"\[(?:" + _FLOW_ITEM + rb"(?:, (?!\])|(?=\])))*+\]"
_ONE_LINE = rb"(?:" + PLAIN + rb"|" + QUOTED + rb"|" + _FLOW + rb")\n"


def _make_value(indent: int) -> bytes:
    """Return the pattern of what may follow a key in the column ``indent``.

    Each level is two spaces deeper. No group holds an indentation, so that any indentation would do: in some versions
    of Python what was captured in a loop of this kind may be wrong.
    """
    blanks, inner = b" " * indent, b" " * (indent + 2)
    ways = [rb" " + _make_text(blanks), rb" " + _FLOW + rb"\n"]
    if indent < _DEEPEST:
        ways.append(rb" [>|]-?\n" + inner + _LINE + rb"(?:" + inner + _LINE + rb"|(?:" + inner + rb")?+\n)*+")
    value = _make_value(indent + 2) if indent < _DEEPEST else rb": " + _ONE_LINE
    below = [rb"(?:" + inner + INNER_KEY + value + rb")++", _make_list(inner)]
    if indent <= _DEEPEST_MARGIN_LIST:
        below.append(_make_list(blanks))
    if not indent:
        below.append(rb"(?:    " + INNER_KEY + rb": " + _ONE_LINE + rb")++")
    # With nothing below it a key has an empty text. What no pattern here knows ends the match at the next row.
    ways.append(rb" ?+\n(?:" + rb"|".join(below) + rb")?+")
    return rb":(?:" + rb"|".join(ways) + rb")"


def _make_text(blanks: bytes) -> bytes:
    """Return the pattern of a string, with the lines below it that are deeper than ``blanks``."""
    plain = PLAIN + rb"\n(?:" + blanks + rb" ++(?=[^# \n])" + REST + rb"\n)*+"
    if blanks:
        return rb"(?:" + plain + rb"|(?:" + QUOTED + rb")\n)"
    # Inside of quotes a line may end. The text then goes on in a deeper line, perhaps behind empty ones.
    line_end = rb"\n++ ++(?=" + _VISIBLE + rb")"
    double = rb'"(?:[ !#-\[\]-~\x80-\xff]++|\\["\\]|' + line_end + rb')*+"\n'
    single = rb"'(?:[ -&(-~\x80-\xff]++|''|" + line_end + rb")*+'\n"
    return rb"(?:" + plain + rb"|" + double + rb"|" + single + rb")"


def _make_list(blanks: bytes) -> bytes:
    """Return the pattern of a list of strings, or of mappings from keys to a string or a list of strings."""
    pair = rb"(?:- |  )" + INNER_KEY + rb": " + _ONE_LINE
    # No text may be followed by anything deeper, which would be a part of it.
    text = rb"- " + _make_text(blanks) + rb"(?!" + blanks + rb" )"
    return rb"(?=" + blanks + rb"- )(?:" + blanks + rb"(?:" + text + rb"|" + pair + rb"))++"


@cache
def _compile_head() -> re.Pattern[bytes]:
    """Return the pattern of a whole head, whose last group is empty and precedes the closing dashes."""
    return compile_pattern(rb"---\n(?:" + INNER_KEY + _make_value(0) + rb"|\n)*+" + ENDING)


def find_nested_end(head: bytes) -> int | None:
    """Return the offset of the closing dashes of a plain head without a repeated key; ``None`` for others."""
    match = _compile_head().match(head)
    if match is None:
        return None
    end = match.start(match.re.groups)
    return end if has_distinct_keys(head, end) else None

"""The fast path of discovery for heads with a description that YAML cannot read, and that a repair reads as text.

Of the real heads that ``fast_match`` does not know, half are of this kind. What the repair would make of the name and
the description is plain to see; the repair itself may wait until another field, or an issue, is asked for.
"""

from __future__ import annotations

from prowess.format.frontmatter.fast_match import PLAIN, USUAL_NAME, HeadMatch, is_plain_utf8, match_head
from prowess.format.frontmatter.plain_yaml import MAX_PLAIN_CHARS
from prowess.text.patterns import compile_pattern

# Text on the line of a '>' or '|', or an unquoted text with a colon and a blank in it: YAML gives up at that place,
# whatever follows. The first group is the value as it is written, the second the text that the repair makes of it.
_BROKEN_DESCRIPTION = compile_pattern(
    rb"---\nname: " + USUAL_NAME + rb"\ndescription: ((?:[>|]-?+ ++(?=[!-~])(?!#)|(?=" + PLAIN + rb":[ \n]))"
    rb"([!-~\x80-\xff][ -~\x80-\xff]*+))\n(?! )"
)  # fmt: skip


def match_broken_head(head: bytes) -> HeadMatch | None:
    """Return what a head says once its description is repaired; ``None`` when only parsing it can tell.

    The bytes in the result include the dashes, unlike those of ``match_head``. The slow twin is ``read_document``;
    tests/format/frontmatter/test_fast_paths.py compares the two.
    """
    broken = _BROKEN_DESCRIPTION.match(head)
    if broken is None:
        return None
    begin, end = broken.span(1)
    # A repair reads every row by itself, so the other rows say what they would say beside a sound description.
    sound = match_head(head[:begin] + b"x" + head[end:])
    if sound is None:
        return None
    text, offset = broken[2], sound[3] + end - begin - 1
    if offset > MAX_PLAIN_CHARS or not (text.isascii() or is_plain_utf8(text)):
        return None
    return sound[0], text.decode().strip(), head[:offset], offset

"""The pattern of heads without any finding.

It buys the row "catalog.issues" of the bench: parsing was more than half of it. The slow path is
``rules.field_issues``; tests/skills/test_fast_paths.py compares the two.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from prowess.format import rules
from prowess.limits import MAX_DESCRIPTION_LENGTH, MAX_NAME_LENGTH
from prowess.text import hidden_characters
from prowess.text.patterns import compile_pattern

if TYPE_CHECKING:
    import re

# One line that begins with a letter or a digit, perhaps in quotes: neither a space nor a structure.
_TEXT = rb"[\"']?[A-Za-z0-9][ -~\x80-\xff]{0,%d}+\n"
# An entry of a list. A colon with a space after it, or at the end, would make a mapping of it.
_ITEM = rb"[A-Za-z0-9][\w()*./-]*+(?:[ :][\w()*./-]++)*+"


@cache
def _faultless_head() -> re.Pattern[bytes]:
    """Return the pattern of heads without any finding, provided that the description is as it should be.

    It is compiled on first use: a scan alone does without it (bench row "import and first scan").
    """
    # A text of 400 bytes is shorter than every limit. Of keys outside the specification only those are here that no
    # rule reports, and that may have a value.
    keys = "|".join(sorted({"license", "compatibility", "allowed-tools", *rules.EXTENSION_FIELDS} - rules.INERT_FIELDS))
    rows = (
        rb"name: (?=[a-z0-9-]{1,%d}\n)[a-z0-9]++(?:-[a-z0-9]++)*+\n" % MAX_NAME_LENGTH,
        rb"description: (?:%s|[>|]-?\n(?:  [!-~\x80-\xff][ -~\x80-\xff]*+\n)++)" % (_TEXT % 1024),
        rb"(?:%s): %s" % (keys.encode(), _TEXT % 400),
        rb"(?:allowed-tools|tags):(?: \[%b(?:, %b)*+\]\n|\n(?:  - %b\n)++)" % (_ITEM, _ITEM, _ITEM),
        rb"metadata:\n(?:  [a-z_-]++: %s)++" % (_TEXT % 400),
    )
    return compile_pattern(rb"(?:%s)++" % rb"|".join(rows))


def is_faultless(raw: bytes, description: str) -> bool:
    """Return True when no rule finds anything in a head of these bytes; False does not mean the opposite: parse it.

    The head is one that a quick reader has read, so it has no odd key and none twice.
    """
    # The whole head is compared with the limit of the description: a description in quotes or in a block may have
    # whitespace at its end that counts, and that the kept copy lacks.
    return (
        len(raw) <= MAX_DESCRIPTION_LENGTH
        and _faultless_head().fullmatch(raw) is not None
        and (raw.isascii() or not hidden_characters.find_hidden_points(description))
    )

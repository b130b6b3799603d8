"""The escaping of text for terminals and logs."""

from __future__ import annotations

import sys

from prowess.text.escapes import escape_line


def test_no_character_that_python_takes_for_printable_is_escaped() -> None:
    """A printable text is returned as it is, without a look at its characters; so none of them may need an escape."""
    printable = "".join(character for character in map(chr, range(sys.maxunicode + 1)) if character.isprintable())
    assert escape_line(printable) == printable
    assert escape_line(f"\0{printable}") == f"\\x00{printable}"


def test_a_line_keeps_no_control_character_and_no_invisible_one() -> None:
    assert escape_line("a\tb\nc\x1b[2J\u200b\u202e\U000e0041") == "a\\tb\\nc\\x1b[2J\\u200b\\u202e\\U000e0041"

"""Parts of a string by their offsets, and the replacement of several parts at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Span = tuple[int, int]
"""The offsets at which a part of a string begins and ends."""


def replace_spans(text: str, edits: Iterable[tuple[int, int, str]]) -> tuple[str, tuple[Span, ...]]:
    """Return ``text`` with each part from a begin to an end replaced by a value, and where the values are in it.

    ``edits`` are in the order of the text and do not overlap.
    """
    parts: list[str] = []
    spans: list[Span] = []
    offset = length = 0
    for begin, end, value in edits:
        parts += (text[offset:begin], value)
        length += begin - offset
        spans.append((length, length + len(value)))
        length += len(value)
        offset = end
    return "".join((*parts, text[offset:])), tuple(spans)

"""JSON in a head, as in ``metadata: {"author": "me"}``, read by Python's JSON parser and not by YAML's.

Many heads hold a line of JSON, and YAML's parser needs ten times as long for it. JSON without backslashes means to YAML
what it means to JSON, except that every scalar is the text that was written. Anything else is left to YAML;
tests/format/frontmatter/test_fast_paths.py compares the two.
"""

from __future__ import annotations

import re
from json import JSONDecoder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prowess.model import Value

_MAX_KEY_CHARS = 1000  # YAML refuses longer keys, from about this length on.
_KEY = re.compile(r'[ \n]*+"([^"\n]*+)" *+:[ \n]*+')
# An escaped character, and a colon that is not on the line of its key.
_DIFFERS_IN_YAML = re.compile(r"\\|\n *+:")
_COMMA = re.compile(r"[ \n]*+,")
_CLOSING = re.compile(r"[ \n]*+\}")
_WORDS = {True: "true", False: "false", None: "null"}


def read_json_mapping(text: str, start: int, max_depth: int) -> tuple[dict[str, Value], dict[str, int], int] | None:
    """Return the JSON mapping whose brace is at ``start``, the offset of each of its keys, and the offset of its end.

    Returns ``None`` when YAML might not read it in the same way, and when it has more levels than ``max_depth``. The
    text has no control characters other than line feeds.
    """
    try:
        mapping = _read_mapping(text, start + 1, max_depth)
    except (ValueError, RecursionError):  # no JSON, or thousands of brackets
        return None
    return None if _DIFFERS_IN_YAML.search(text, start, mapping[2]) else mapping


def _read_mapping(text: str, at: int, max_depth: int) -> tuple[dict[str, Value], dict[str, int], int]:
    values: dict[str, Value] = {}
    offsets: dict[str, int] = {}
    closing = _CLOSING.match(text, at)
    while closing is None:
        key = _KEY.match(text, at)
        if key is None or key[1] in values or len(key[1]) > _MAX_KEY_CHARS:
            raise ValueError
        value, at = _decode(text, key.end())
        values[key[1]] = _to_texts(value, max_depth - 1)
        offsets[key[1]] = key.start(1)
        closing = _CLOSING.match(text, at)
        comma = None if closing else _COMMA.match(text, at)
        if comma is not None:
            at = comma.end()
        elif closing is None:
            raise ValueError
    return values, offsets, closing.end()


def _make_mapping(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) < len(pairs) or any(len(key) > _MAX_KEY_CHARS for key in values):
        raise ValueError
    return values


def _to_texts(value: object, max_depth: int) -> Value:
    """Return a value with the text that was written in the place of each scalar."""
    if isinstance(value, str):
        return value
    if not isinstance(value, (dict, list)):
        return _WORDS[value]  # type: ignore[index]  # numbers are texts already
    if max_depth < 1:
        raise ValueError
    if isinstance(value, dict):
        return {key: _to_texts(item, max_depth - 1) for key, item in value.items()}
    return [_to_texts(item, max_depth - 1) for item in value]


_decode = JSONDecoder(
    object_pairs_hook=_make_mapping, parse_int=str, parse_float=str, parse_constant=str
).raw_decode  # numbers as they were written

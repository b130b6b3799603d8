"""The keys of models and services in the environment, taken out of what a server said: some repeat what they got.

A key is also found where a line is broken inside it, in JSON inside JSON, and in pieces that a reader sees as one text.
A server that wants to hide a key that it has can encode it in other ways, which nobody can find.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

FieldPath: TypeAlias = tuple[str, ...]

_KEY_ENDINGS = ("_KEY", "_TOKEN", "_SECRET", "_TOKEN_BEDROCK")
_MIN_KEY_CHARS = 8  # a shorter value, such as a placeholder for a local server, occurs in ordinary words
_MAX_HELD_CHARS = 1 << 14  # in which a key can be spread over many lines; without a bound, each piece would cost more
# What may be inside a key that is written down: the escapes of JSON, which double with each string inside a string,
# and a line end with the indentation of the next line.
_INSIDE = re.compile(r"\\+u([0-9a-fA-F]{4})|\\+(?:[nr]|u[0-9a-fA-F]{0,3}\Z)?|[\r\n]\s*")
_OPEN_ESCAPE = re.compile(r"(?<!\\)\\+(?:u[0-9a-fA-F]{0,3})?\Z")


def hide_keys(text: str) -> str:
    """Return ``text`` with the names of variables in place of the keys that they hold."""
    return _hide([text], _list_keys())[0]


class KeyFilter:
    """Takes keys out of text that comes in pieces: the end of a piece waits while a key may begin there."""

    def __init__(self) -> None:
        self._keys = _list_keys()
        self._held = ""

    def add(self, piece: str) -> str:
        """Return what can be shown after another piece."""
        text = self._held + piece
        shown, end, beginnings = list[_Span](), 0, self._find_beginnings(text)
        for span in _find_keys(text, self._keys):
            if any(end <= place <= span.start for place in beginnings):  # a longer key may follow, which counts instead
                break
            shown.append(span)
            end = span.end
        begins = min((place for place in beginnings if place >= end), default=len(text))
        begins = max(begins, end, len(text) - _MAX_HELD_CHARS)
        self._held = text[begins:]
        return _replace(text[:begins], shown)

    def finish(self) -> str:
        """Return what was still waiting, since the text has come to its end."""
        held, self._held = self._held, ""
        return hide_keys(held)

    def _find_beginnings(self, text: str) -> list[int]:
        """Return the places from which on the rest of ``text`` may be the beginning of a key."""
        forms = [_Squeezed(text, range(len(text)), range(1, len(text) + 1))]
        if _INSIDE.search(text):
            forms.append(_squeeze(text))
        found = [
            form.starts[place]
            for form in forms
            for _, key in self._keys
            for place in _find_all(form.text, key[0], max(0, len(form.text) - len(key) + 1))
            if key.startswith(form.text[place:])
        ]
        escape = _OPEN_ESCAPE.search(text)
        return [*found, escape.start()] if escape and self._keys else found


def hide_keys_in(data: dict[str, Any]) -> dict[str, Any]:
    """Return JSON data with the names of variables in place of keys, in every string.

    The strings of one field in the entries of a list count as one text, as the parts of a message do.
    """
    keys = _list_keys()
    if not keys:
        return data
    strings = defaultdict[FieldPath, list[str]](list)

    def collect(path: FieldPath, text: str) -> str:
        strings[path].append(text)
        return text

    _map_strings(data, (), collect)
    hidden: dict[FieldPath, Iterator[str]] = {path: iter(_hide(found, keys)) for path, found in strings.items()}
    result: dict[str, Any] = _map_strings(data, (), lambda path, _: next(hidden[path]))
    return result


def _map_strings(value: Any, path: FieldPath, change: Callable[[FieldPath, str], str]) -> Any:
    """Return JSON data with each string changed; ``path`` are the fields that lead to a value, without the places."""
    if isinstance(value, str):
        return change(path, value)
    if isinstance(value, dict):
        inside = (*path, str(value.get("part_kind", "")))  # text and reasoning are different texts
        return {change(inside, name): _map_strings(each, (*inside, name), change) for name, each in value.items()}
    return [_map_strings(each, path, change) for each in value] if isinstance(value, (list, tuple)) else value


def _list_keys() -> list[tuple[str, str]]:
    # A server gets a key from a header, without the spaces and line ends that the variable may hold.
    keys = ((name, " ".join(value.split())) for name, value in os.environ.items() if name.endswith(_KEY_ENDINGS))
    found = {(name, form) for name, key in keys if len(key) >= _MIN_KEY_CHARS for form in (key, _squeeze(key).text)}
    return sorted(found, key=lambda item: (-len(item[1]), item))  # a key may begin with another one


class _Span(NamedTuple):
    """A key in a text, and the name of its variable."""

    start: int
    end: int
    name: str


class _Squeezed(NamedTuple):
    """A text without what may be inside a key; ``starts`` and ``ends`` say where each character was."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]


def _squeeze(text: str) -> _Squeezed:
    chars, starts, ends, at = list[str](), list[int](), list[int](), 0
    for match in _INSIDE.finditer(text):
        chars.append(text[at : match.start()])
        starts += range(at, match.start())
        ends += range(at + 1, match.start() + 1)
        at = match.end()
        if match[1]:
            chars.append(chr(int(match[1], 16)))
            starts.append(match.start())
            ends.append(at)
    chars.append(text[at:])
    return _Squeezed("".join(chars), [*starts, *range(at, len(text))], [*ends, *range(at + 1, len(text) + 1)])


def _find_keys(text: str, keys: list[tuple[str, str]]) -> list[_Span]:
    """Return where the keys are in a text, in order; of two that overlap, the one that begins first, or is longer."""
    found = [_Span(at, at + len(key), name) for name, key in keys for at in _find_all(text, key)]
    if _INSIDE.search(text):
        form = _squeeze(text)
        for name, key in keys:
            found += [_Span(form.starts[at], form.ends[at + len(key) - 1], name) for at in _find_all(form.text, key)]
    spans: list[_Span] = []
    for span in sorted(found, key=lambda one: (one.start, -one.end)):
        if not spans or span.start >= spans[-1].end:
            spans.append(span)
    return spans


def _find_all(text: str, key: str, begin: int = 0) -> Iterator[int]:
    at = text.find(key, begin)
    while at >= 0:
        yield at
        at = text.find(key, at + 1)  # one that overlaps counts where the first turns out to be another key's end


def _replace(text: str, spans: list[_Span]) -> str:
    pieces, at = [], 0
    for span in spans:
        pieces.append(f"{text[at : span.start]}[{span.name}]")
        at = span.end
    return "".join(pieces) + text[at:]


def _hide(strings: Sequence[str], keys: list[tuple[str, str]]) -> list[str]:
    """Return strings that a reader sees one after the other, with the names of variables in place of keys."""
    spans = _find_keys("".join(strings), keys)
    hidden, begin = [], 0
    for text in strings:
        end = begin + len(text)
        # A key in several strings is named in the first of them, and cut out of the others.
        inside = [span for span in spans if span.start < end and span.end > begin]
        shown, at = "", begin
        for span in inside:
            shown += text[at - begin : max(span.start, begin) - begin]
            shown += f"[{span.name}]" if span.start >= begin else ""
            at = min(span.end, end)
        hidden.append(shown + text[at - begin :])
        begin = end
    return hidden

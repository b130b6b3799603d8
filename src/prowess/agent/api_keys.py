"""The keys of models and services in the environment, taken out of what a server said: some repeat what they got."""

from __future__ import annotations

import json
import os
import re
from typing import Any

_KEY_ENDINGS = ("_KEY", "_TOKEN", "_SECRET", "_TOKEN_BEDROCK")
_MIN_KEY_CHARS = 8  # a shorter value, such as a placeholder for a local server, occurs in ordinary words


def hide_keys(text: str) -> str:
    """Return ``text`` with the names of variables in place of the keys that they hold."""
    return _replace(text, _list_keys())


class KeyFilter:
    """Takes keys out of text that comes in pieces: the end of a piece waits while a key may begin there."""

    def __init__(self) -> None:
        self._names = {key: name for name, key in _list_keys()}
        """The name of each key; the longest key comes first."""
        self._pattern = _compile_keys(tuple(self._names))
        self._most = max(map(len, self._names), default=1) - 1
        self._held = ""

    def add(self, piece: str) -> str:
        """Return what can be shown after another piece."""
        text, shown, at = self._held + piece, "", 0
        while True:
            found = self._pattern.search(text, at)
            begins = self._find_beginning(text, at)
            if found is None or found.start() >= begins:
                self._held = text[begins:]
                return shown + text[at:begins]
            shown += f"{text[at : found.start()]}[{self._names[found[0]]}]"
            at = found.end()

    def finish(self) -> str:
        """Return what was still waiting, since the text has come to its end."""
        held, self._held = self._held, ""
        return hide_keys(held)

    def _find_beginning(self, text: str, at: int) -> int:
        """Return where the end of ``text``, from ``at`` on, is the beginning of a key; its length if it is not."""
        places = range(max(at, len(text) - self._most), len(text))
        return next((place for place in places if self._is_beginning(text[place:])), len(text))

    def _is_beginning(self, end: str) -> bool:
        return any(len(key) > len(end) and key.startswith(end) for key in self._names)


def _compile_keys(keys: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, keys)) or "(?!)")


def hide_keys_in(data: dict[str, Any]) -> dict[str, Any]:
    """Return JSON data with the names of variables in place of keys, in every string."""
    keys = _list_keys()
    hidden: dict[str, Any] = _hide_in(data, keys) if keys else data
    return hidden


def _list_keys() -> list[tuple[str, str]]:
    # A server gets a key from a header, without the spaces and line ends that the variable may hold.
    keys = {name: " ".join(value.split()) for name, value in os.environ.items() if name.endswith(_KEY_ENDINGS)}
    # The arguments of a call are JSON in a string: there, some characters of a key are escaped.
    found = {(name, form) for name, key in keys.items() if len(key) >= _MIN_KEY_CHARS for form in (key, _escape(key))}
    return sorted(found, key=lambda item: -len(item[1]))  # a key may begin with another one


def _escape(key: str) -> str:
    return json.dumps(key)[1:-1]


def _hide_in(value: Any, keys: list[tuple[str, str]]) -> Any:
    if isinstance(value, str):
        return _replace(value, keys)
    if isinstance(value, dict):
        return {_hide_in(name, keys): _hide_in(each, keys) for name, each in value.items()}
    return [_hide_in(each, keys) for each in value] if isinstance(value, (list, tuple)) else value


def _replace(text: str, keys: list[tuple[str, str]]) -> str:
    for name, key in keys:
        text = text.replace(key, f"[{name}]")
    return text

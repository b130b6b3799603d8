"""The keys of models and services in the environment, taken out of what a server said: some repeat what they got."""

from __future__ import annotations

import json
import os
from typing import Any

_KEY_ENDINGS = ("_API_KEY", "_TOKEN")
_MIN_KEY_CHARS = 8  # a shorter value, such as a placeholder for a local server, stands in ordinary words


def hide_keys(text: str) -> str:
    """Return ``text`` with the names of variables in place of the keys that they hold."""
    return _replace(text, _list_keys())


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


def _hide_in(value: Any, keys: list[tuple[str, str]]) -> Any:  # noqa: ANN401 - any value of JSON
    if isinstance(value, str):
        return _replace(value, keys)
    if isinstance(value, dict):
        return {_hide_in(name, keys): _hide_in(each, keys) for name, each in value.items()}
    return [_hide_in(each, keys) for each in value] if isinstance(value, (list, tuple)) else value


def _replace(text: str, keys: list[tuple[str, str]]) -> str:
    for name, key in keys:
        text = text.replace(key, f"[{name}]")
    return text

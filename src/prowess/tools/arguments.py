"""Reads the arguments of a call as models send them: a mapping, or JSON text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_CHARS = 1_000_000  # beyond it, parsing alone would hold up the host


class BadArgumentsError(Exception):
    """The arguments of a call are wrong; the message is for the model."""


def parse_arguments(given: Mapping[str, Any] | str | bytes | None) -> dict[str, Any]:
    """Return the arguments as a dictionary; raises ``BadArgumentsError`` when they are not an object with names."""
    if given is None or given in ("", b""):
        return {}
    if isinstance(given, (str, bytes)):
        if len(given) > _MAX_CHARS:
            raise BadArgumentsError("the arguments are too long")
        try:
            given = json.loads(given)
        except (ValueError, RecursionError) as error:  # a few kilobytes of "[" exhaust the stack
            raise BadArgumentsError(f"not JSON: {error}") from None
    # Fast path: nearly all arguments are dictionaries, and a check against an abstract class is slow.
    if type(given) is not dict and not isinstance(given, Mapping):
        raise BadArgumentsError("expected an object with named parameters")
    for value in given.values():
        if isinstance(value, str) and not value.isascii() and _LONE_SURROGATE.search(value):
            # Half of a character cannot be encoded as UTF-8: it would fail later, in a file name or a log.
            raise BadArgumentsError("a value holds half a character")
    return dict(given)


def required_text(arguments: Mapping[str, Any], key: str) -> str:
    """Return a string parameter; raises ``BadArgumentsError`` when it is missing, empty or not a string."""
    value = optional_text(arguments, key)
    if not value:
        raise BadArgumentsError(f"{key} is required")
    return value


def optional_text(arguments: Mapping[str, Any], key: str) -> str:
    """Return a string parameter, ``""`` when it is absent; raises ``BadArgumentsError`` when it is not a string."""
    value = arguments.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadArgumentsError(f"{key} must be a string")
    return value


def optional_count(arguments: Mapping[str, Any], key: str, default: int, least: int = 0) -> int:
    """Return a whole number, ``default`` when it is absent; raises ``BadArgumentsError`` when it is below ``least``."""
    value = arguments.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadArgumentsError(f"{key} must be a whole number, {least} or more")
    return value

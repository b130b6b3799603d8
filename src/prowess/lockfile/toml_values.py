"""Values as the lock file and the manifest write them in TOML."""

from __future__ import annotations

import json
import re
from datetime import date, time

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def toml_row(key: str, value: object) -> str:
    """A key and its value, on one line."""
    return f"{key if _BARE_KEY.fullmatch(key) else toml_value(key)} = {toml_value(value)}"


def toml_value(value: object) -> str:
    """A value that a TOML parser gave, as TOML on one line; a table becomes an inline table."""
    if isinstance(value, dict):
        rows = ", ".join(toml_row(key, inner) for key, inner in value.items())
        return f"{{ {rows} }}" if rows else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, float):
        return repr(value)
    # Every escape that JSON writes means the same in TOML. Only DEL must be escaped in TOML and is not in JSON.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

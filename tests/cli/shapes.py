"""The documented shapes of ``--json``, and whether data has one: as much of JSON Schema as the schema uses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SCHEMA: dict[str, Any] = json.loads((ROOT / "docs" / "reference" / "cli.schema.json").read_text(encoding="utf-8"))

_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_KEYWORDS = {
    *("type", "description", "properties", "required", "additionalProperties", "items", "enum", "const", "$ref"),
}


def problems(data: object, name: str) -> list[str]:
    """What keeps ``data`` from having the shape of a command."""
    return _problems(data, SCHEMA["properties"][name], "$")


def _problems(data: object, shape: dict[str, Any], at: str) -> list[str]:
    assert set(shape) <= _KEYWORDS, f"the check does not know {set(shape) - _KEYWORDS}"
    if "$ref" in shape:
        return _problems(data, SCHEMA["$defs"][shape["$ref"].rpartition("/")[2]], at)
    if "const" in shape:
        return [] if data == shape["const"] else [f"{at}: {data!r} is not {shape['const']!r}"]
    kinds = shape["type"] if isinstance(shape["type"], list) else [shape["type"]]
    if not any(_is(data, kind) for kind in kinds):
        return [f"{at}: {data!r:.80} is no {' or '.join(kinds)}"]
    found = [f"{at}: {data!r} is not among {shape['enum']}"] if "enum" in shape and data not in shape["enum"] else []
    if isinstance(data, dict) and "properties" in shape:
        found += _object(data, shape, at)
    if isinstance(data, list) and "items" in shape:
        found += [problem for n, item in enumerate(data) for problem in _problems(item, shape["items"], f"{at}[{n}]")]
    return found


def _is(data: object, kind: str) -> bool:
    return isinstance(data, _KINDS[kind]) and (kind == "boolean" or not isinstance(data, bool))


def _object(data: dict[str, Any], shape: dict[str, Any], at: str) -> list[str]:
    found = [f"{at}: {key} is missing" for key in shape.get("required", []) if key not in data]
    found += [f"{at}: {key} is not documented" for key in data if key not in shape["properties"]]
    for key, inner in shape["properties"].items():
        if key in data:
            found += _problems(data[key], inner, f"{at}.{key}")
    return found

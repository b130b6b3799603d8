"""The arguments of a call of a host's tool, checked against the tool's JSON Schema, in words for a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def find_mistakes(value: Any, schema: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """Yield what is wrong with a value, by the keywords that tools of models use; others are not looked at."""
    named = place or "the arguments"
    kinds = schema.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    if kinds and not any(_is_kind(value, kind) for kind in kinds):
        yield f"{named} must be of type {' or '.join(kinds)}"
        return
    choices = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if choices is not None and value not in choices:
        yield f"{named} must be one of {', '.join(map(repr, choices))}"
    ways = schema.get("anyOf") or ()
    if ways and all(any(find_mistakes(value, way, place)) for way in ways):
        yield next(find_mistakes(value, ways[0], place))
    if isinstance(value, dict):
        yield from _find_mistakes_inside(value, schema, place)
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        for index, item in enumerate(value):
            yield from find_mistakes(item, schema["items"], f"{place}[{index}]")


def _find_mistakes_inside(value: dict[str, Any], schema: Mapping[str, Any], place: str) -> Iterator[str]:
    properties = schema.get("properties") or {}
    before = f"{place}." if place else ""
    for name in schema.get("required") or ():
        if name not in value:
            yield f"{before}{name} is required"
    for name, part in value.items():
        if isinstance(properties.get(name), Mapping):
            yield from find_mistakes(part, properties[name], f"{before}{name}")
        elif schema.get("additionalProperties") is False:
            yield f"{before}{name} is not a parameter; the parameters are {', '.join(properties) or 'none'}"


def _is_kind(value: Any, kind: str) -> bool:
    if isinstance(value, bool):  # to Python it is a number
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _KINDS.get(kind, (object,)))


def explain_mistakes(value: Any, schema: Mapping[str, Any]) -> str:
    """Return what is wrong with the arguments of a call, all of it; ``""`` for nothing."""
    return "; ".join(find_mistakes(value, schema))


def name_provider_tool(tool: Mapping[str, Any]) -> str:
    """Return the name by which a skill allows a tool that the provider runs: its name, or its type."""
    inner = tool.get("function")
    named = inner.get("name") if isinstance(inner, Mapping) else None
    return str(named or tool.get("name") or tool.get("type") or "")


def is_provider_tool(tool: object) -> bool:
    """Return whether a tool is a dictionary in the shape of the provider."""
    return isinstance(tool, Mapping) and bool(name_provider_tool(tool))

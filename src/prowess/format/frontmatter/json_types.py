"""Frontmatter as JSON with YAML's types, for MCP and for callers who ask for it.

An unquoted ``1.10`` is a number here and ``true`` a boolean, as YAML's core schema says. A quoted value is text, as
every value is elsewhere in Prowess.
"""

from __future__ import annotations

import math
import re
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from prowess.errors import InvalidFrontmatterError, Issue
from prowess.format.frontmatter.fields import TEXT_FIELDS
from prowess.format.frontmatter.parse import normalize_raw, read_strict_text
from prowess.format.frontmatter.yaml_events import PlainScalar, YamlError, find_unindented_line, parse_styled_yaml
from prowess.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from collections.abc import Callable

    from prowess.format.frontmatter.fields import Frontmatter
    from prowess.format.frontmatter.yaml_events import Value
    from prowess.limits import Limits

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE = frozenset(("true", "True", "TRUE"))
_FALSE = frozenset(("false", "False", "FALSE"))
_INT = re.compile(r"[-+]?[0-9]+")
_BASES = ((re.compile(r"0o[0-7]+"), 8), (re.compile(r"0x[0-9a-fA-F]+"), 16))
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_ODD_FLOAT = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_MAX_INT_DIGITS = 19  # readers disagree about integers that do not fit 64 bits
_MUST_BE_TEXT = ("name", "description", "license", "compatibility", "allowed-tools")


def parse_typed_frontmatter(head: bytes, *, whole: bool = True, limits: Limits = DEFAULT_LIMITS) -> dict[str, Json]:
    """Return every field of the head of a SKILL.md as JSON.

    Raises ``InvalidFrontmatterError`` where no host could read it, or only hosts that do not keep to YAML 1.2.
    """
    styled = parse_styled_frontmatter(head, whole=whole, limits=limits)
    text, first = read_strict_text(head, whole=whole, limits=limits)
    line = find_unindented_line(text)
    if line is not None:
        message = "a value goes on in this line, which is not indented deeper than its key; YAML 1.2 does not allow it"
        raise _invalid_error("yaml-unindented", "", message, first + line)
    return {key: _to_json(value, partial(_refuse_number, key)) for key, value in styled.items()}


def parse_typed_yaml(text: str, limits: Limits = DEFAULT_LIMITS) -> dict[str, Json]:
    """Return the mapping in a YAML document as JSON; a number that JSON cannot hold stays text.

    Raises ``YamlError`` for a string that is not YAML, or not a mapping.
    """
    return {key: _to_json(value, str) for key, value in parse_styled_yaml(text, limits).items()}


def parse_styled_frontmatter(head: bytes, *, whole: bool = True, limits: Limits = DEFAULT_LIMITS) -> dict[str, Value]:
    """Return the fields with every scalar as it was written, as a ``PlainScalar`` where it had no quotes.

    Raises ``InvalidFrontmatterError`` where no host could read the head.
    """
    return _parse_head(head, whole=whole, limits=limits)[0]


def _parse_head(head: bytes, *, whole: bool, limits: Limits) -> tuple[dict[str, Value], int]:
    """Return the fields as they were written, and the number of the first line between the dashes."""
    text, line = read_strict_text(head, whole=whole, limits=limits)
    try:
        return parse_styled_yaml(text, limits), line
    except YamlError as error:
        raise _invalid_error(error.code, "", error.message, line + error.line) from None


def to_typed_fields(front: Frontmatter) -> dict[str, Json]:
    """Return every key of ``front`` with the type that YAML's core schema gives its value; repaired ones stay text."""
    try:
        styled = parse_styled_yaml(normalize_raw(front.raw)) if front.raw else _rebuild_values(front)
    except YamlError:
        styled = _rebuild_values(front)
    fields = {key: _to_json(value, str) for key, value in styled.items()}
    if not styled.get("description") and front.description:  # it begins with a '#', and was repaired
        fields["description"] = front.description
    return fields


def _rebuild_values(front: Frontmatter) -> dict[str, Value]:
    """Return every key that ``front`` has, with its value as text, lists and mappings of text."""
    known: dict[str, Value] = {key: getattr(front, key) for key in TEXT_FIELDS}
    known |= {"metadata": dict(front.metadata), "allowed-tools": front.allowed_tools_raw or "", "tags": [*front.tags]}
    return {**{key: value for key, value in known.items() if value}, **front.extra}


class UnquotedValue(NamedTuple):
    """A value without quotes of a field that must be text, which a reader that types values takes for another type."""

    field: str
    """The name of the field as findings write it: ``license``, ``metadata.count``."""
    text: str
    line: int
    """The line of the file, counted from 1."""
    column: int
    """The index of its first character in that line, counted from 0."""


def find_unquoted_values(head: bytes, *, whole: bool = True, limits: Limits = DEFAULT_LIMITS) -> list[UnquotedValue]:
    """Return the values about which ``find_type_issues`` reports, and which quotes would make text.

    They are in the order of the fields. Raises ``InvalidFrontmatterError`` where no host could read the head of the
    SKILL.md.
    """
    fields, first = _parse_head(head, whole=whole, limits=limits)
    strings: dict[str, Value] = {key: fields[key] for key in _MUST_BE_TEXT if key in fields}
    if isinstance(metadata := fields.get("metadata"), dict):
        strings |= {f"metadata.{key}": value for key, value in metadata.items()}
    return [
        UnquotedValue(field, value, first + value.line, value.column)
        for field, value in strings.items()
        if isinstance(value, PlainScalar) and read_core_scalar(value) != value
    ]


def find_type_issues(fields: dict[str, Json]) -> list[Issue]:
    """Return an issue for each field that must be text, and that hosts which type values take for another type."""
    issues = [
        _not_text_issue(key, fields[key]) for key in _MUST_BE_TEXT if key in fields and not isinstance(fields[key], str)
    ]
    metadata = fields.get("metadata", {})
    if not isinstance(metadata, dict):
        return [*issues, Issue("wrong-type", "metadata", "must be a mapping of text to text")]
    others = [key for key, value in metadata.items() if not isinstance(value, str)]
    return issues + [Issue("metadata-not-text", f"metadata.{key}", "is not text unless it is quoted") for key in others]


def _not_text_issue(key: str, value: Json) -> Issue:
    kind = "a list" if isinstance(value, list) else "a mapping" if isinstance(value, dict) else ""
    return Issue("wrong-type", key, f"must be text, and is {kind or 'not text unless it is quoted'}")


def read_core_scalar(text: str) -> Json:
    """Return the value that YAML's core schema gives an unquoted scalar."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INT.fullmatch(text):
        return _read_integer(text, 10)
    for pattern, base in _BASES:
        if pattern.fullmatch(text):
            return _read_integer(text, base)
    if _FLOAT.fullmatch(text):
        return float(text)
    return math.nan if _ODD_FLOAT.fullmatch(text) else text


def _read_integer(text: str, base: int) -> float | int:
    # Infinity stands for every number that JSON cannot hold exactly: the caller refuses it, or keeps the text.
    return int(text, base) if len(text) <= _MAX_INT_DIGITS else math.inf


def _to_json(value: Value, on_odd_number: Callable[[str], str]) -> Json:
    """Return a value with its type; ``on_odd_number`` gives what replaces a number that JSON cannot hold."""
    if isinstance(value, dict):
        return {name: _to_json(item, on_odd_number) for name, item in value.items()}
    if isinstance(value, list):
        return [_to_json(item, on_odd_number) for item in value]
    typed = read_core_scalar(str(value)) if isinstance(value, PlainScalar) else str(value)
    return on_odd_number(value) if isinstance(typed, float) and not math.isfinite(typed) else typed


def _refuse_number(key: str, _number: str) -> str:
    raise _invalid_error("wrong-type", key, "holds a number that JSON cannot carry; quote it", 1)


def _invalid_error(code: str, key: str, message: str, line: int) -> InvalidFrontmatterError:
    return InvalidFrontmatterError([Issue(code, key, message, line=line)])


# -- what another host read --------------------------------------------------------------------------------------------


def find_differing_fields(written: dict[str, Value], announced: dict[str, Json]) -> tuple[str, ...]:
    """Return the fields whose ``announced`` value is not a reading of the ``written`` one, in order.

    Hosts type unquoted scalars by one of two versions of YAML, or not at all. Each of these is a reading.
    """
    agreeing = {key for key in written if key in announced and _is_reading_of(written[key], announced[key])}
    keys = [*written, *(key for key in announced if key not in written)]
    return tuple(key for key in keys if key not in agreeing)


def _is_reading_of(written: Value, announced: Json) -> bool:
    """Return whether a host that keeps to some version of YAML could have read ``written`` as ``announced``."""
    if isinstance(written, dict):
        if not isinstance(announced, dict) or written.keys() != announced.keys():
            return False
        return all(_is_reading_of(value, announced[key]) for key, value in written.items())
    if isinstance(written, list):
        if not isinstance(announced, list) or len(written) != len(announced):
            return False
        return all(_is_reading_of(*items) for items in zip(written, announced, strict=True))
    if isinstance(announced, str):
        return written == announced
    readings = (read_core_scalar(written), _read_yaml11_scalar(written)) if isinstance(written, PlainScalar) else ()
    # To Python 1 equals True, and to JSON it does not.
    return any(
        reading == announced and isinstance(reading, bool) == isinstance(announced, bool) for reading in readings
    )


# Bounded, so that no server makes us compute with a number of a million digits.
_YAML11_SCALAR = re.compile(r"[-+.:_0-9a-zA-Z]{1,40}")
_YAML11_TRUE = frozenset(("yes", "on"))
_YAML11_FALSE = frozenset(("no", "off"))
_YAML11_INT = re.compile(r"[-+]?(?:0b_*+[01][01_]*+|0[0-7_]+|0x_*+[0-9a-fA-F][0-9a-fA-F_]*+|[1-9][0-9_]*|0)")


def _read_yaml11_scalar(text: str) -> Json:
    """Return the value that version 1.1 of YAML gives an unquoted scalar, where it differs from the core schema."""
    if text.lower() in _YAML11_TRUE or text.lower() in _YAML11_FALSE:
        return text.lower() in _YAML11_TRUE
    if not _YAML11_SCALAR.fullmatch(text) or not _YAML11_INT.fullmatch(text):
        return text
    digits = text.lstrip("+-").replace("_", "")
    base = {"0b": 2, "0x": 16}.get(digits[:2], 8 if digits.startswith("0") and len(digits) > 1 else 10)
    return int(digits, base) * (-1 if text.startswith("-") else 1)

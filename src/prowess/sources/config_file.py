"""A list of sources: a YAML or JSON file, or a mapping in a program, with one entry for each source."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from prowess.arguments import as_optional_absolute, check_instance, check_number, check_texts, raise_bad_argument
from prowess.discovery.scan import check_options
from prowess.discovery.scan_rules import MAX_DEPTH, SKIP_PREFIXES
from prowess.errors import ResourceError, SourceError
from prowess.files.read import OpenFile
from prowess.limits import DEFAULT_LIMITS, Limits
from prowess.skills.catalog import Catalog
from prowess.sources.directory import DirectorySource
from prowess.sources.inline import InlineSource
from prowess.spec.frontmatter.yaml_events import YamlError, parse_yaml_value

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

    from prowess.literals import Mode
    from prowess.skills.skill_source import SkillSource

_TRUE_WORDS = frozenset(("true", "yes", "on", "1"))
_FALSE_WORDS = frozenset(("false", "no", "off", "0", ""))
_NULL_WORDS = frozenset(("", "~", "null", "none"))
_ENTRY_FIELDS = ("dir", "path", "name", "description", "instructions", "mount_as", "preload")
# A file of another tool may have its list under "skills", or no list, beside a name and a description of its own; these
# keys are there only where an entry stands in place of the list, or the list under another name.
_MISPLACED_FIELDS = ("sources", "dir", "path", "instructions", "mount_as", "preload")


class _EmptySource:
    """An entry that says nothing; it keeps its place, so that errors count sources as the list does."""

    def load(self) -> Catalog:
        return Catalog(())


def load_sources(
    file_or_mapping: str | os.PathLike[str] | Mapping[str, object] | Sequence[Mapping[str, object]],
    *,
    base_dir: str | os.PathLike[str] | None = None,
    mode: Mode = "lenient",
    missing: Literal["ignore", "error"] = "ignore",
    max_depth: int | None = MAX_DEPTH,
    nested: bool = False,
    skip_prefixes: Sequence[str] = SKIP_PREFIXES,
    limits: Limits | None = None,
) -> list[SkillSource]:
    """The sources that a file or a mapping lists, in order: a list, or a mapping with the list under ``skills``.

    An entry has ``dir`` (or ``path``; with both, ``dir`` counts), which is a folder or the ``@org/name`` of an install,
    optionally ``mount_as`` and ``preload``; or ``name``, ``description`` and ``instructions``, optionally ``preload``.
    With a folder the inline fields are ignored; an entry with neither has no skills.

    Relative folders are relative to ``base_dir``, by default the folder of the file, and the working folder for a
    mapping. The other keywords are those of ``scan`` and hold for every folder; an entry of a folder may have each of
    them too, ``base_dir`` and ``limits`` (a mapping of the fields to change) included, and its own word counts.

    Raises ``SourceError`` for a list that cannot be read, and for an entry that makes no sense, which it names.
    """
    bounds = limits or DEFAULT_LIMITS
    check_instance(bounds, "limits", Limits, remedy="pass prowess.Limits(…)")
    check_options(mode=mode, missing=missing, max_depth=max_depth)
    usual: dict[str, Any] = {
        "mode": mode,
        "missing": missing,
        "max_depth": max_depth,
        "nested": nested,
        "skip_prefixes": check_texts(skip_prefixes, "skip_prefixes"),
        "limits": bounds,
    }
    chosen = as_optional_absolute(base_dir, "base_dir")
    if isinstance(file_or_mapping, str | os.PathLike):
        where = os.path.abspath(os.fspath(file_or_mapping))
        listed = _parse_text(_read_config(where, bounds), where, bounds)
        folder = os.path.dirname(where) if chosen is None else chosen
    else:
        where, listed, folder = "", file_or_mapping, os.getcwd() if chosen is None else chosen
    return [_make_source(entry, index, folder, usual) for index, entry in enumerate(_list_entries(listed, where))]


def _read_config(where: str, limits: Limits) -> str:
    folder, name = os.path.split(where)
    try:
        with OpenFile(folder, (name,)) as found:
            return found.read_all(limits.max_file_bytes).decode("utf-8")
    except ResourceError as error:
        raise SourceError(f"cannot read the list of sources: {error.message}", where, error.code) from None
    except UnicodeDecodeError:
        raise SourceError("the list of sources is not UTF-8", where, "not-utf8") from None


def _parse_text(text: str, where: str, limits: Limits) -> object:
    try:
        return json.loads(text) if where.endswith(".json") else parse_yaml_value(text, limits)
    except YamlError as error:
        raise SourceError(f"line {error.line + 1}: {error.message}", where, error.code) from None
    except (ValueError, RecursionError) as error:
        raise SourceError(f"not JSON: {error}", where) from None


def _list_entries(value: object, where: str) -> list[dict[str, object]]:
    if isinstance(value, Mapping) and "skills" not in value and any(key in value for key in _MISPLACED_FIELDS):
        raise SourceError("the mapping has no list of sources: write it as 'skills', or give the list alone", where)
    listed = value.get("skills") if isinstance(value, Mapping) else value
    if listed in (None, ""):
        return []
    if isinstance(listed, str) or not isinstance(listed, Sequence):
        raise SourceError("expected a list of entries with 'dir' or 'name'", where)
    for index, entry in enumerate(listed):
        if not isinstance(entry, Mapping):
            remedy = f"; write {{'dir': {entry!r}}}" if isinstance(entry, str) else ""
            message = f"expected a list of entries with 'dir' or 'name', and sources[{index}] is {entry!r}{remedy}"
            raise SourceError(message, where)
    return [dict(entry) for entry in listed]


def _make_source(entry: dict[str, object], index: int, folder: str, usual: Mapping[str, Any]) -> SkillSource:
    try:
        return _build_source(entry, folder, usual)
    except SourceError as error:
        raise SourceError(f"sources[{index}]: {error.message}", error.path, error.code) from None


def _build_source(entry: dict[str, object], folder: str, usual: Mapping[str, Any]) -> SkillSource:
    unknown = [key for key in entry if key not in _ENTRY_FIELDS and key not in _OPTION_READERS and key != "base_dir"]
    if unknown:
        known = (*_ENTRY_FIELDS, "base_dir", *_OPTION_READERS)
        raise SourceError(f"unknown field {unknown[0]!r}; known: {', '.join(known)}")
    path = _read_path(entry, "dir") or _read_path(entry, "path")
    preload = _read_flag(entry.get("preload") or "", "preload", usual)
    mount = _read_text(entry, "mount_as")
    if not path:
        return _make_inline_source(entry, mount, preload=preload)
    options = _read_options(entry, usual)
    if path.startswith("@"):
        from prowess.sources.installed import InstalledSource  # noqa: PLC0415 - only for those who install

        return InstalledSource(path, mount_as=mount, preload=preload, options=options)
    base = os.path.join(folder, _read_path(entry, "base_dir"))
    return DirectorySource(os.path.join(base, path), mount_as=mount, preload=preload, options=options)


def _make_inline_source(entry: dict[str, object], mount: str, *, preload: bool) -> SkillSource:
    if not any(entry.get(key) for key in ("name", "description", "instructions")):
        return _EmptySource()
    if mount:
        raise SourceError("mount_as is only for folders, not for inline skills")
    odd = next((key for key in ("base_dir", *_OPTION_READERS) if key in entry), None)
    if odd is not None:
        raise SourceError(f"{odd} is only for folders, not for inline skills")
    texts = (_read_text(entry, key) for key in ("name", "description", "instructions"))
    return InlineSource(*texts, preload=preload)


def _read_text(entry: dict[str, object], key: str) -> str:
    value = entry.get(key) or ""
    if not isinstance(value, str):
        raise SourceError(f"{key} must be text")
    return value


def _read_path(entry: dict[str, object], key: str) -> str:
    value = entry.get(key) or ""
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(path, str):
        raise SourceError(f"{key} must be text")
    return path


# -- how the folder of an entry is scanned -----------------------------------------------------------------------------


def _read_options(entry: dict[str, object], usual: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords with which the folder of an entry is scanned: its own, and the usual ones for the rest."""
    own = {key: read(entry[key], key, usual) for key, read in _OPTION_READERS.items() if key in entry}
    options = {**usual, **own}
    check_options(mode=options["mode"], missing=options["missing"], max_depth=options["max_depth"])
    return options


def _read_word(value: object, key: str, _usual: Mapping[str, Any]) -> str:
    if not isinstance(value, str):
        raise_bad_argument(key, "is a text", value)
    return value


def _read_flag(value: object, key: str, _usual: Mapping[str, Any]) -> bool:
    """A yes or a no: a file of YAML holds text, whatever it says."""
    word = str(value).strip().lower()
    if word not in _TRUE_WORDS and word not in _FALSE_WORDS and key != "preload":
        raise_bad_argument(key, "is true or false", value)
    return word in _TRUE_WORDS


def _read_depth(value: object, key: str, _usual: Mapping[str, Any]) -> int | None:
    """A whole number, or ``None`` for what YAML and JSON call null."""
    if value is None or (isinstance(value, str) and value.strip().lower() in _NULL_WORDS):
        return None
    number = _read_number(value, key)
    check_number(number, key)
    return int(number)


def _read_prefixes(value: object, key: str, _usual: Mapping[str, Any]) -> tuple[str, ...]:
    return check_texts(() if value in (None, "") else value, key)  # type: ignore[arg-type]  # it is checked there


def _read_limits(value: object, key: str, usual: Mapping[str, Any]) -> Limits:
    """The usual limits with the fields changed that a mapping names; a ``Limits`` stands for itself."""
    if isinstance(value, Limits):
        return value
    if not isinstance(value, Mapping):
        raise_bad_argument(key, "is a mapping of the limits to change", value)
    known = {field.name for field in fields(Limits)}
    unknown = next((name for name in value if name not in known), None)
    if unknown is not None:
        raise SourceError(f"there is no limit {unknown!r}")
    limits: Limits = usual["limits"]
    changed: dict[str, Any] = {name: _read_limit(limits, name, one) for name, one in value.items()}
    return replace(limits, **changed)


def _read_limit(limits: Limits, name: str, value: object) -> float:
    number = _read_number(value, name)
    if not isinstance(getattr(limits, name), float):
        check_number(number, name)
    return number


def _read_number(value: object, key: str) -> float:
    """A number as a program or JSON has it, or as it is written in YAML."""
    if isinstance(value, str):
        with suppress(ValueError):
            return int(value)
        with suppress(ValueError):
            return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise_bad_argument(key, "is a number", value)
    return value


_OPTION_READERS: dict[str, Callable[[object, str, Mapping[str, Any]], object]] = {
    "mode": _read_word,
    "missing": _read_word,
    "max_depth": _read_depth,
    "nested": _read_flag,
    "skip_prefixes": _read_prefixes,
    "limits": _read_limits,
}
"""The keywords of ``scan`` that an entry of a folder may have, with what makes them of the text in a file."""

"""Reads a list of sources from a YAML or JSON file, or from a mapping in a program: one entry for each source."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from prowess.addresses.source_spec import SITE_PREFIX, STORE_SCHEMES
from prowess.arguments import check_instance, check_number, check_texts, raise_bad_argument
from prowess.discovery.scan import check_options
from prowess.discovery.walk import MAX_DEPTH, SKIP_PREFIXES
from prowess.errors import BadReferenceError, ResourceError, SourceError
from prowess.files.paths import as_optional_absolute
from prowess.files.read import OpenFile
from prowess.format.frontmatter.yaml_events import YamlError, parse_yaml_value
from prowess.limits import DEFAULT_LIMITS, Limits
from prowess.skills.catalog import Catalog
from prowess.sources.directory import DirectorySource
from prowess.sources.inline import InlineSource

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

    from prowess.literals import Mode
    from prowess.skills.source_list import SkillSource

_TRUE_WORDS = frozenset(("true", "yes", "on", "1"))
_FALSE_WORDS = frozenset(("false", "no", "off", "0", ""))
_NULL_WORDS = frozenset(("", "~", "null", "none"))
_ENTRY_FIELDS = ("dir", "path", "name", "description", "instructions", "mount_as", "preload")
# A file of another tool may have its list under "skills", or no list, beside a name and a description of its own. These
# keys show a mistake instead: one entry in place of the list, or the list under another name.
_MISPLACED_FIELDS = ("sources", "dir", "path", "instructions", "mount_as", "preload")


class _EmptySource:
    """An entry without content. It keeps its place, so that errors count sources as the list does."""

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
    check_dir: bool = True,
    limits: Limits | None = None,
) -> list[SkillSource]:
    """Return the sources of a file or a mapping, in order. It is a list, or a mapping with the list under ``skills``.

    An entry for a folder has ``dir`` (or ``path``; with both, ``dir`` counts), and optionally ``mount_as`` and
    ``preload``. Instead of a folder, ``dir`` may name an install, ``@org/name``, or a repository in an OCI registry,
    ``oci://host/repository:tag``. An entry for an inline skill has ``name``, ``description`` and ``instructions``, and
    optionally ``preload``; with a folder these fields are ignored. An entry with neither has no skills.

    Relative folders are relative to ``base_dir``: by default the folder of the file, and the working folder for a
    mapping. The other keywords are those of ``scan``, for every folder. An entry for a folder may set each of them, and
    ``base_dir``, for itself. Its ``limits`` is a mapping of the fields to change.

    Raises ``SourceError`` when the list cannot be read, and for a malformed entry, which it names.
    """
    bounds = limits or DEFAULT_LIMITS
    check_instance(bounds, "limits", Limits, remedy="pass prowess.Limits(…)")
    check_options(mode=mode, missing=missing, max_depth=max_depth)
    defaults: dict[str, Any] = {
        "mode": mode,
        "missing": missing,
        "max_depth": max_depth,
        "nested": nested,
        "skip_prefixes": check_texts(skip_prefixes, "skip_prefixes"),
        "check_dir": check_dir,
        "limits": bounds,
    }
    folder = as_optional_absolute(base_dir, "base_dir")
    path, content = _read_content(file_or_mapping, bounds)
    if folder is None:
        folder = os.path.dirname(path) or os.getcwd()
    return [_make_source(entry, index, folder, defaults) for index, entry in enumerate(_list_entries(content, path))]


def _read_content(file_or_mapping: object, limits: Limits) -> tuple[str, object]:
    """Return the path of a file and its content; ``""`` and the value itself for anything but a path."""
    if not isinstance(file_or_mapping, str | os.PathLike):
        return "", file_or_mapping
    path = os.path.abspath(os.fspath(file_or_mapping))
    return path, _parse_text(_read_config(path, limits), path, limits)


def _read_config(path: str, limits: Limits) -> str:
    folder, name = os.path.split(path)
    try:
        with OpenFile(folder, (name,)) as file:
            return file.read_all(limits.max_file_bytes).decode("utf-8")
    except ResourceError as error:
        raise SourceError(f"cannot read the list of sources: {error.message}", path, error.code) from None
    except UnicodeDecodeError:
        raise SourceError("the list of sources is not UTF-8", path, "not-utf8") from None


def _parse_text(text: str, path: str, limits: Limits) -> object:
    try:
        return json.loads(text) if path.endswith(".json") else parse_yaml_value(text, limits)
    except YamlError as error:
        raise SourceError(f"line {error.line + 1}: {error.message}", path, error.code) from None
    except (ValueError, RecursionError) as error:  # the JSON reader calls itself for each bracket
        raise SourceError(f"not JSON: {error}", path) from None


def _list_entries(value: object, path: str) -> list[dict[str, object]]:
    """Return the entries of a list of sources; raises ``SourceError`` when the value is not such a list."""
    if isinstance(value, Mapping) and "skills" not in value and any(key in value for key in _MISPLACED_FIELDS):
        raise SourceError("the mapping has no list of sources: write it as 'skills', or give the list alone", path)
    entries = value.get("skills") if isinstance(value, Mapping) else value
    if entries in (None, ""):
        return []
    if isinstance(entries, str) or not isinstance(entries, Sequence):
        raise SourceError("expected a list of entries with 'dir' or 'name'", path)
    for index, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            remedy = f"; write {{'dir': {entry!r}}}" if isinstance(entry, str) else ""
            raise SourceError(
                f"expected a list of entries with 'dir' or 'name', and sources[{index}] is {entry!r}{remedy}", path
            )
    return [dict(entry) for entry in entries]


def _make_source(entry: dict[str, object], index: int, folder: str, defaults: Mapping[str, Any]) -> SkillSource:
    try:
        return _build_source(entry, folder, defaults)
    except (SourceError, BadReferenceError) as error:
        raise SourceError(f"sources[{index}]: {error.message}", error.path, error.code) from None


def _build_source(entry: dict[str, object], folder: str, defaults: Mapping[str, Any]) -> SkillSource:
    # An error, not a warning: with a misspelled "mount_as" the skills would silently be somewhere else.
    unknown = [key for key in entry if key not in _ENTRY_FIELDS and key not in _OPTION_READERS and key != "base_dir"]
    if unknown:
        known = (*_ENTRY_FIELDS, "base_dir", *_OPTION_READERS)
        raise SourceError(f"unknown field {unknown[0]!r}; known: {', '.join(known)}")
    path = _read_path(entry, "dir") or _read_path(entry, "path")
    preload = _read_flag(entry.get("preload") or "", "preload", defaults)  # an empty value of YAML is a no
    mount = _read_text(entry, "mount_as")
    if not path:
        return _make_inline_source(entry, mount, preload=preload)
    options = _read_options(entry, defaults)
    if path.startswith("@"):
        from prowess.sources.installed import InstalledSource

        return InstalledSource(path, mount_as=mount, preload=preload, options=options)
    if path.startswith("oci://"):
        from prowess.sources.fetched import OciSource

        limits, missing = options["limits"], options["missing"]
        return OciSource(path, missing=missing, limits=limits, mount_as=mount, preload=preload, options=options)
    if path.startswith((SITE_PREFIX, *(f"{scheme}://" for scheme in STORE_SCHEMES))):
        from prowess.sources.published.source import SiteSource

        if mount or preload:
            raise SourceError("mount_as and preload are for folders and repositories, not for published sites")
        return SiteSource(path, missing=options["missing"], limits=options["limits"])
    base = os.path.join(folder, _read_path(entry, "base_dir"))
    return DirectorySource(os.path.join(base, path), mount_as=mount, preload=preload, options=options)


def _make_inline_source(entry: dict[str, object], mount: str, *, preload: bool) -> SkillSource:
    if not any(entry.get(key) for key in ("name", "description", "instructions")):
        return _EmptySource()
    if mount:
        raise SourceError("mount_as is only for folders, not for inline skills")
    folder_field = next((key for key in ("base_dir", *_OPTION_READERS) if key in entry), None)
    if folder_field is not None:
        raise SourceError(f"{folder_field} is only for folders, not for inline skills")
    return InlineSource(*(_read_text(entry, key) for key in ("name", "description", "instructions")), preload=preload)


def _read_text(entry: dict[str, object], key: str) -> str:
    value = entry.get(key) or ""
    if not isinstance(value, str):
        raise SourceError(f"{key} must be a string")
    return value


def _read_path(entry: dict[str, object], key: str) -> str:
    value = entry.get(key) or ""
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(path, str):
        raise SourceError(f"{key} must be a string")
    return path


# -- how the folder of an entry is scanned -----------------------------------------------------------------------------


def _read_options(entry: dict[str, object], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords with which the folder of an entry is scanned: its own, and the defaults for the rest."""
    changed = {key: read(entry[key], key, defaults) for key, read in _OPTION_READERS.items() if key in entry}
    options = {**defaults, **changed}
    check_options(mode=options["mode"], missing=options["missing"], max_depth=options["max_depth"])
    return options


def _read_word(value: object, key: str, _defaults: Mapping[str, Any]) -> str:
    if not isinstance(value, str):
        raise_bad_argument(key, "must be a string", value)
    return value


def _read_flag(value: object, key: str, _defaults: Mapping[str, Any]) -> bool:
    """Return a yes or a no. Our YAML reader gives every value as text, so words such as "on" are read here."""
    word = str(value).strip().lower()
    if word not in _TRUE_WORDS and word not in _FALSE_WORDS and key != "preload":
        raise_bad_argument(key, "must be true or false", value)
    return word in _TRUE_WORDS


def _read_depth(value: object, key: str, _defaults: Mapping[str, Any]) -> int | None:
    """Return a whole number, or ``None`` for null."""
    if value is None or (isinstance(value, str) and value.strip().lower() in _NULL_WORDS):
        return None
    number = _read_number(value, key)
    check_number(number, key)
    return int(number)


def _read_prefixes(value: object, key: str, _defaults: Mapping[str, Any]) -> tuple[str, ...]:
    return check_texts(() if value in (None, "") else value, key)  # type: ignore[arg-type]  # it is checked there


def _read_limits(value: object, key: str, defaults: Mapping[str, Any]) -> Limits:
    """Return the default limits with the changes of a mapping; a ``Limits`` is returned as it is."""
    if isinstance(value, Limits):
        return value
    if not isinstance(value, Mapping):
        raise_bad_argument(key, "must be a mapping of the limits to change", value)
    known = {field.name for field in fields(Limits)}
    unknown = next((name for name in value if name not in known), None)
    if unknown is not None:
        raise SourceError(f"there is no limit {unknown!r}")
    limits: Limits = defaults["limits"]
    changed: dict[str, Any] = {name: _read_limit(limits, name, number) for name, number in value.items()}
    return replace(limits, **changed)


def _read_limit(limits: Limits, name: str, value: object) -> float:
    number = _read_number(value, name)
    if not isinstance(getattr(limits, name), float):
        check_number(number, name)
    return number


def _read_number(value: object, key: str) -> float:
    """Return a number, which a program and JSON give as a number and YAML as text."""
    if isinstance(value, str):
        with suppress(ValueError):  # an int first, since some limits must be whole numbers
            return int(value)
        with suppress(ValueError):
            return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):  # a bool is an int for Python
        raise_bad_argument(key, "must be a number", value)
    return value


_OPTION_READERS: dict[str, Callable[[object, str, Mapping[str, Any]], object]] = {
    "mode": _read_word,
    "missing": _read_word,
    "max_depth": _read_depth,
    "nested": _read_flag,
    "skip_prefixes": _read_prefixes,
    "check_dir": _read_flag,
    "limits": _read_limits,
}
"""The keywords of ``scan`` that an entry for a folder may have, each with the function that reads its value."""

"""A file that lists sources: YAML or JSON, one entry a source."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from prowess.errors import ResourceError, SourceError
from prowess.files.reading import OpenFile
from prowess.library.catalog import Catalog
from prowess.limits import DEFAULT_LIMITS
from prowess.sources.directory import DirectorySource
from prowess.sources.inline import InlineSource
from prowess.spec.yaml_text import YamlError, parse_yaml_value

if TYPE_CHECKING:
    from prowess.library.catalog import SkillSource
    from prowess.limits import Limits

_TRUE = frozenset(("true", "yes", "on", "1"))
_FIELDS = ("dir", "path", "name", "description", "instructions", "mount_as", "preload")


class _NoSource:
    """An entry that says nothing; it keeps its place, so that errors count sources as the file does."""

    def load(self) -> Catalog:
        return Catalog(())


def load_sources(file: str | os.PathLike[str], *, limits: Limits = DEFAULT_LIMITS) -> list[SkillSource]:
    """The sources that a file lists, in order: a list, or a mapping with the list under ``skills``.

    An entry has ``dir`` (or ``path``; with both, ``dir`` counts), which is a folder or the ``@org/name`` of an install,
    optionally ``mount_as`` and ``preload``; or ``name``, ``description`` and ``instructions``, optionally ``preload``.
    With a folder the inline fields are ignored; an entry with neither has no skills. Relative folders are relative to
    the file.
    """
    where = os.path.abspath(os.fspath(file))
    entries = _entries(_text(where, limits), where, limits)
    return [_source(entry, index, os.path.dirname(where)) for index, entry in enumerate(entries)]


def _text(where: str, limits: Limits) -> str:
    folder, name = os.path.split(where)
    try:
        with OpenFile(folder, (name,)) as found:
            return found.read_all(limits.max_file_bytes).decode("utf-8")
    except ResourceError as error:
        raise SourceError(f"cannot read the list of sources: {error.message}", where, error.code) from None
    except UnicodeDecodeError:
        raise SourceError("the list of sources is not UTF-8", where, "not-utf8") from None


def _entries(text: str, where: str, limits: Limits) -> list[dict[str, object]]:
    try:
        value = json.loads(text) if where.endswith(".json") else parse_yaml_value(text, limits)
    except YamlError as error:
        raise SourceError(f"line {error.line + 1}: {error.message}", where, error.code) from None
    except (ValueError, RecursionError) as error:
        raise SourceError(f"not JSON: {error}", where) from None
    listed = value.get("skills") if isinstance(value, dict) else value
    if listed in (None, ""):
        return []
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise SourceError("expected a list of entries with 'dir' or 'name'", where)
    return [dict(entry) for entry in listed if isinstance(entry, dict)]


def _source(entry: dict[str, object], index: int, folder: str) -> SkillSource:
    unknown = [key for key in entry if key not in _FIELDS]
    if unknown:
        raise SourceError(f"sources[{index}]: unknown field {unknown[0]!r}; known: {', '.join(_FIELDS)}")
    path = _str(entry, "dir", index) or _str(entry, "path", index)
    preload = str(entry.get("preload", "")).strip().lower() in _TRUE
    mount = _str(entry, "mount_as", index)
    if path.startswith("@"):
        from prowess.sources.installed import InstalledSource  # noqa: PLC0415 - only for those who install

        return InstalledSource(path, mount_as=mount, preload=preload)
    if path:
        return DirectorySource(os.path.join(folder, path), mount_as=mount, preload=preload)
    if not any(entry.get(key) for key in ("name", "description", "instructions")):
        return _NoSource()
    if mount:
        raise SourceError(f"sources[{index}]: mount_as is only for folders, not for inline skills")
    texts = (_str(entry, key, index) for key in ("name", "description", "instructions"))
    return InlineSource(*texts, preload=preload)


def _str(entry: dict[str, object], key: str, index: int) -> str:
    value = entry.get(key) or ""
    if not isinstance(value, str):
        raise SourceError(f"sources[{index}]: {key} must be text")
    return value

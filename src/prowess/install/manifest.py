"""What a project declares: ``prowess.toml``, or ``[tool.prowess]`` in ``pyproject.toml``.

``skills`` is a list; an entry is a source as people type it, or a table with ``source`` and, as needed, ``ref``,
``skills``, ``agents`` and ``mode``. ``agents`` and ``mode`` beside the list are for all of them; the only mode is
``"copy"``: real files in the agents' folders, in place of links.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.errors import BadReferenceError, InstallError
from prowess.files.folders import exists
from prowess.install.plan import source_from, with_name
from prowess.library.conflicts import find_marker
from prowess.library.lock import COPY, read_text
from prowess.spec.addresses import SourceSpec, with_parts
from prowess.spec.redaction import show_address

if TYPE_CHECKING:
    from prowess.limits import Limits

MANIFEST_FILE = "prowess.toml"
_PYPROJECT = "pyproject.toml"
_KEYS = frozenset(("source", "ref", "skills", "agents", "mode"))


@dataclass(frozen=True, slots=True)
class Declared:
    """One entry: the source, the agents it is linked for, and the entry as text, which the lock file repeats."""

    spec: SourceSpec
    agents: tuple[str, ...]
    text: str
    source: str = ""
    """The source as the manifest has it."""
    mode: str = ""
    """``"copy"``, or ``""`` for links."""

    def __str__(self) -> str:
        """For people: the source, the version, the skills that are chosen."""
        version = f" at {self.spec.ref}" if self.spec.ref and f"#{self.spec.ref}" not in self.source else ""
        chosen = f" ({', '.join(self.spec.skills)})" if self.spec.skills else ""
        return self.source + (version + chosen if self.source != self.text else "")


def read_manifest(folder: str, limits: Limits) -> tuple[Declared, ...] | None:
    """What the manifest in a folder declares; ``None`` when there is none."""
    table = _read_table(folder, limits)
    return None if table is None else _declared(table, folder)


def _read_table(folder: str, limits: Limits) -> dict[str, Any] | None:
    text = read_text(folder, MANIFEST_FILE, limits)
    if text is not None:
        return _parsed(text, folder, MANIFEST_FILE)
    text = read_text(folder, _PYPROJECT, limits)
    if text is None:
        return None
    tool = _parsed(text, folder, _PYPROJECT).get("tool", {})
    table = tool.get("prowess") if isinstance(tool, dict) else None
    return table if isinstance(table, dict) else None


class Defaults(NamedTuple):
    """What a manifest says for every skill, also for one that is installed by hand."""

    agents: tuple[str, ...] = ()
    mode: str = ""


def read_defaults(folder: str, limits: Limits) -> Defaults:
    """The agents and the mode that the manifest in a folder has for all skills; none where there is no manifest."""
    table = _read_table(folder, limits)
    if table is None:
        return Defaults()
    return Defaults(_texts(table.get("agents", []), "agents", folder), _mode(table, folder))


def manifest_file(folder: str) -> str:
    """What the manifest in a folder is called."""
    return MANIFEST_FILE if exists(os.path.join(folder, MANIFEST_FILE)) else _PYPROJECT


def _parsed(text: str, folder: str, file: str) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - only programs that install need it

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a plain ValueError
        line = find_marker(text)
        if line:
            message = f"{file} is in conflict: it holds git's markers (line {line})"
            raise InstallError(message, folder, "manifest-conflict") from None
        raise _bad(f"{file} is not TOML: {error}", folder) from None


def _declared(table: dict[str, Any], folder: str) -> tuple[Declared, ...]:
    entries = table.get("skills", [])
    agents = _texts(table.get("agents", []), "agents", folder)
    if not isinstance(entries, list):
        raise _bad("skills must be a list", folder)
    mode = _mode(table, folder)
    found = [_entry(entry, agents, mode, folder) for entry in entries]
    if len({one.text for one in found}) != len(found):
        raise _bad("a source is declared twice", folder)
    return tuple(found)


def _entry(entry: object, agents: tuple[str, ...], mode: str, folder: str) -> Declared:
    table = {"source": entry} if isinstance(entry, str) else entry
    if not isinstance(table, dict) or not isinstance(table.get("source"), str) or table.keys() - _KEYS:
        # Only the keys are named: a value may be an address with a secret.
        given = f"a table with {', '.join(table)}" if isinstance(table, dict) else type(entry).__name__
        message = f"an entry is a source, or a table with {', '.join(sorted(_KEYS))}; this one is {given[:120]!a}"
        raise _bad(message, folder)
    skills = _texts(table.get("skills", []), "skills", folder)
    own = _texts(table.get("agents", []), "agents", folder)
    ref = table.get("ref", "")
    if not isinstance(ref, str):
        raise _bad(f"{show_address(table['source'])}: ref must be text, in quotes", folder)
    try:
        spec = with_parts(source_from(table["source"], folder), ref=ref, skills=skills)
        spec = with_name(_beside(spec, folder))
    except BadReferenceError as error:
        raise _bad(f"{show_address(table['source'])}: {error}", folder) from None
    text = table["source"] if table.keys() == {"source"} else json.dumps(table, sort_keys=True, ensure_ascii=False)
    return Declared(spec, tuple(dict.fromkeys((*agents, *own))), text, table["source"], _mode(table, folder) or mode)


def _mode(table: dict[str, Any], folder: str) -> str:
    mode = table.get("mode", "")
    if "mode" in table and mode != COPY:
        raise _bad(f'mode can only be "{COPY}"; without it skills are linked', folder)
    return COPY if mode else ""


def _beside(spec: SourceSpec, folder: str) -> SourceSpec:
    """A path is meant from the manifest's folder."""
    return replace(spec, base=folder) if spec.local else spec


def _texts(value: object, key: str, folder: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _bad(f"{key} must be a list of texts", folder)
    return tuple(item for item in value if isinstance(item, str))


def _bad(message: str, folder: str) -> InstallError:
    return InstallError(f"the manifest makes no sense: {message}", folder, "bad-manifest")

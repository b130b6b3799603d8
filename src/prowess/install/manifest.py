"""The manifest of a project, which declares its skills: ``prowess.toml``, or ``[tool.prowess]`` in ``pyproject.toml``.

``skills`` is a list. An entry is a source as people type it, or a table with ``source`` and, as needed, ``ref``,
``skills``, ``agents`` and ``mode``. ``agents`` and ``mode`` beside the list count for all entries. The only mode is
``"copy"``: real files in the agents' folders instead of links. ``requires-prowess`` is the range of versions of Prowess
that the project needs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.addresses.source_spec import SourceSpec, with_parts
from prowess.discovery.agents import get_agent
from prowess.errors import BadReferenceError, InstallError, SourceError
from prowess.files.directory import exists
from prowess.install.typed_source import parse_typed_source, with_safe_name
from prowess.lockfile.merge import find_marker
from prowess.lockfile.read import COPY_MODE, read_text
from prowess.names import link_name
from prowess.settings import MANIFEST_KEYS, SETS_TABLE, SETTINGS_TABLE
from prowess.text.redaction import show_address
from prowess.text.spelling import did_you_mean
from prowess.text.versions import find_latest_in_range, is_range

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.install.manifest_text import ManifestEntry
    from prowess.limits import Limits

MANIFEST_FILE = "prowess.toml"
_PYPROJECT = "pyproject.toml"
MODE_PHRASES = {"": "links", COPY_MODE: "copies"}
"""What an install consists of where agents look, by its mode."""
_TOP_KEYS = tuple(sorted((*MANIFEST_KEYS, SETS_TABLE, SETTINGS_TABLE)))
_ENTRY_KEYS = ("agents", "mode", "ref", "skills", "source")


@dataclass(frozen=True, slots=True)
class Declaration:
    """What one entry of a manifest declares, or a part of its skills: the source, the agents and the mode."""

    spec: SourceSpec
    agents: tuple[str, ...]
    text: str
    """The source, the version and the mode, which the lock file repeats. It names no skills: entries that differ only
    in these are equal."""
    source: str = ""
    """The source as the manifest has it."""
    mode: str = ""
    """``"copy"``, or ``""`` for links."""
    title: str = ""
    """The source without its skills, and the version, for people."""

    def __str__(self) -> str:
        """The source, the version and the chosen skills, for people."""
        return f"{self.title} ({', '.join(self.spec.skills)})" if self.spec.skills else self.title

    def of_skills(self, skills: Iterable[str]) -> Declaration:
        """Return the same declaration of only these of its skills."""
        return replace(self, spec=replace(self.spec, skills=tuple(skills)))


class ManifestDefaults(NamedTuple):
    """What a manifest says for every skill, also for one that a person installs with a command."""

    agents: tuple[str, ...] = ()
    mode: str = ""


class ProjectManifest(NamedTuple):
    """A manifest: its text, and what it declares."""

    folder: str
    file: str
    text: str
    table: tuple[str, ...]
    """The keys of the table in the file that is the manifest: ``()``, or ``("tool", "prowess")``."""
    entries: tuple[ManifestEntry, ...]
    """The entries as the TOML parser gives them, one for each of ``declarations``."""
    declarations: tuple[Declaration, ...]
    defaults: ManifestDefaults
    """What it says for all entries."""


def read_declarations(folder: str, limits: Limits) -> tuple[Declaration, ...] | None:
    """What the manifest in a folder declares; ``None`` without a manifest.

    Raises ``InstallError`` (``bad-manifest``) for a manifest that is malformed.
    """
    manifest = load_manifest(folder, limits)
    return manifest.declarations if manifest is not None else None


def load_manifest(folder: str, limits: Limits) -> ProjectManifest | None:
    """Return the manifest in a folder (``prowess.toml`` wins); ``None`` without a manifest.

    Raises ``InstallError`` (``bad-manifest``) for a manifest that is malformed.
    """
    text = _read_text(folder, MANIFEST_FILE, limits)
    if text is not None:
        return _make_manifest(folder, MANIFEST_FILE, text, (), _parse_toml(text, folder, MANIFEST_FILE))
    text = _read_text(folder, _PYPROJECT, limits)
    if text is None:
        return None
    tool = _parse_toml(text, folder, _PYPROJECT).get("tool", {})
    table = tool.get("prowess") if isinstance(tool, dict) else None
    return _make_manifest(folder, _PYPROJECT, text, ("tool", "prowess"), table) if isinstance(table, dict) else None


def _read_text(folder: str, file: str, limits: Limits) -> str | None:
    """Return the text of a file; ``None`` without a file. Raises ``InstallError`` (``bad-manifest``) for a link."""
    try:
        return read_text(folder, file, limits)
    except InstallError as error:
        raise InstallError(error.message, error.path, "bad-manifest") from None


def _make_manifest(folder: str, file: str, text: str, path: tuple[str, ...], table: dict[str, Any]) -> ProjectManifest:
    _refuse_wrong_prowess(table, folder)
    declared = _parse_declarations(table, folder)
    defaults = ManifestDefaults(_read_agents(table, folder), _read_mode(table, folder))
    return ProjectManifest(folder, file, text, path, tuple(table.get("skills", [])), declared, defaults)


def _refuse_wrong_prowess(table: dict[str, Any], folder: str) -> None:
    """Raise ``InstallError`` (``wrong-prowess``) when the manifest needs another version of Prowess.

    Before the rest is read: a version that is too old must not report the keys of a later one as mistakes.
    """
    from prowess import __version__  # a cycle: the package loads this module on first use

    if "requires-prowess" not in table:
        return
    written = table["requires-prowess"]
    wanted = "".join(written.split()) if isinstance(written, str) else ""
    if not is_range(wanted):
        raise _bad_manifest_error('requires-prowess is a range of versions, such as ">=1.2,<2"', folder)
    release = __version__.partition("+")[0].partition(".dev")[0]
    if not find_latest_in_range(wanted, (release,)):
        message = f"the project needs Prowess {wanted}, and this is {__version__}"
        raise InstallError(message, folder, "wrong-prowess")


def parse_entry(entry: ManifestEntry, defaults: ManifestDefaults, folder: str) -> Declaration:
    """What an entry of the manifest in ``folder`` declares, with the defaults of the whole manifest."""
    return _parse_declaration(entry, defaults.agents, defaults.mode, folder)


def declared_places(spec: SourceSpec) -> list[str]:
    """Return the places, as ``org/name``, that the install of a declared source fills."""
    return list(dict.fromkeys(f"{spec.org}/{link_name(skill)}" for skill in spec.skills)) or [spec.full_name]


def manifest_file_name(folder: str) -> str:
    """Return the file name of the manifest in a folder."""
    return MANIFEST_FILE if exists(os.path.join(folder, MANIFEST_FILE)) else _PYPROJECT


def _parse_toml(text: str, folder: str, file: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a plain ValueError
        line = find_marker(text)
        if line:
            raise InstallError(
                f"{file} is in conflict: it holds git's markers (line {line})", folder, "manifest-conflict"
            ) from None
        raise _bad_manifest_error(f"{file} is not TOML: {error}", folder) from None


def _parse_declarations(table: dict[str, Any], folder: str) -> tuple[Declaration, ...]:
    _refuse_unknown_keys(table, _TOP_KEYS, "the manifest", folder)
    entries = table.get("skills", [])
    agents = _read_agents(table, folder)
    if not isinstance(entries, list):
        raise _bad_manifest_error("skills must be a list", folder)
    mode = _read_mode(table, folder)
    declared = [_parse_declaration(entry, agents, mode, folder) for entry in entries]
    _refuse_duplicates(declared, folder)
    return tuple(declared)


def _refuse_duplicates(declared: list[Declaration], folder: str) -> None:
    """Raise ``InstallError`` when two entries declare one install."""
    # It happens most often when both sides of a merge were kept.
    by_place: dict[str, Declaration] = {}
    for declaration in declared:
        for place in declared_places(declaration.spec):
            first = by_place.setdefault(place, declaration)
            if first is not declaration:
                both = f"{show_address(first.source)} and {show_address(declaration.source)}"
                raise _bad_manifest_error(f"{place} is declared twice, by {both}: keep one of them", folder)


def _parse_declaration(entry: object, agents: tuple[str, ...], mode: str, folder: str) -> Declaration:
    table = {"source": entry} if isinstance(entry, str) else entry
    if isinstance(table, dict):
        _refuse_unknown_keys(table, _ENTRY_KEYS, "an entry of skills", folder)
    if not isinstance(table, dict) or not isinstance(table.get("source"), str):
        # The message names the keys only: a value may be an address with a secret.
        given = f"a table with {', '.join(table)}" if isinstance(table, dict) else type(entry).__name__
        raise _bad_manifest_error(
            f"an entry is a source, or a table with {', '.join(_ENTRY_KEYS)}; this one is {given[:120]!a}", folder
        )
    skills = _check_strings(table.get("skills", []), "skills", folder)
    # The agents of an entry are added to those of the manifest, and its mode replaces that of the manifest.
    entry_agents = _read_agents(table, folder)
    ref = table.get("ref", "")
    if not isinstance(ref, str):
        raise _bad_manifest_error(f"{show_address(table['source'])}: ref must be text, in quotes", folder)
    try:
        typed = parse_typed_source(table["source"], folder)
        spec = with_parts(typed, ref=ref, skills=skills)
        # A path in a manifest starts at the manifest's folder, and not at the working folder.
        spec = with_safe_name(replace(spec, base=folder) if spec.local else spec)
    except BadReferenceError as error:
        raise _bad_manifest_error(f"{show_address(table['source'])}: {error}", folder) from None
    # The names of skills are always the last part of a source.
    address = table["source"].rpartition("@")[0] if typed.skills else table["source"]
    mode = _read_mode(table, folder) or mode
    is_beside = bool(ref) and not typed.ref
    text = f"{address.removesuffix('#')}#{ref}" if is_beside else address
    text += f" as {MODE_PHRASES[mode]}" if mode else ""
    title = f"{address} at {ref}" if is_beside else address
    all_agents = tuple(dict.fromkeys((*agents, *entry_agents)))
    return Declaration(spec, all_agents, text, table["source"], mode, title)


def _read_agents(table: dict[str, Any], folder: str) -> tuple[str, ...]:
    """Return the ids of the agents that a manifest, or an entry of it, names.

    Raises ``InstallError`` for an unknown one.
    """
    names = _check_strings(table.get("agents", []), "agents", folder)
    try:
        return tuple(get_agent(name).id for name in names)
    except SourceError as error:
        raise _bad_manifest_error(f"agents: {error.message}", folder) from None


def _read_mode(table: dict[str, Any], folder: str) -> str:
    mode = table.get("mode", "")
    if "mode" in table and mode != COPY_MODE:
        raise _bad_manifest_error(f'mode can only be "{COPY_MODE}"; without it skills are linked', folder)
    return COPY_MODE if mode else ""


def _refuse_unknown_keys(table: dict[str, Any], known: tuple[str, ...], owner: str, folder: str) -> None:
    """Raise ``InstallError`` for an unknown key: ignoring it would silently leave out what it should declare."""
    for key in table:
        if key not in known:
            hint = did_you_mean(key[:80], known) or f"it may have {', '.join(known)}"
            raise _bad_manifest_error(f"{owner} has no key {key[:80]!a}; {hint}", folder)


def _check_strings(value: object, key: str, folder: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _bad_manifest_error(f"{key} must be a list of strings", folder)
    return tuple(item for item in value if isinstance(item, str))


def _bad_manifest_error(message: str, folder: str) -> InstallError:
    return InstallError(f"the manifest is malformed: {message}", folder, "bad-manifest")

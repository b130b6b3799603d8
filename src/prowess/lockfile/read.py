"""``prowess.lock``, read: an entry for each install, each value checked before anything is done with it."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, time
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.addresses.skill_ref import is_commit
from prowess.errors import (
    MAX_LISTED_NAMES,
    InstallError,
    PathTraversalError,
    ResourceChangedError,
    ResourceError,
    ResourceNotFoundError,
)
from prowess.files.read import OpenFile
from prowess.files.tree import HAS_EXECUTABLE_BITS, FileHash, digest_on_disk, digest_tree
from prowess.format.rules import is_usable_name
from prowess.limits import DEFAULT_LIMITS
from prowess.names import group_by_folder, is_safe_part, link_name, split_relative_path
from prowess.text.patterns import compile_pattern
from prowess.text.redaction import hide_secrets, scrub_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.limits import Limits


LOCK_FILE = "prowess.lock"
VERSION = 1
COPY_MODE = "copy"
"""The mode of an install that puts copies, and not links, into the folders of agents."""
_MAX_TRIES = 100  # reads of a file that other processes keep replacing
_ENTRY_HEADER = re.compile(r"\s*\[\[\s*skill\s*\]\]")
_FILE_ROW = re.compile(r"([0-9a-f]{64}) ([x-]) (\d{1,15}) (.+)", re.ASCII)
_SKILL_ROW = re.compile(r"([0-9a-f]{64}) (.+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class LockEntry:
    """One install as the lock file records it: where it came from, which files it has, where it is linked."""

    name: str
    """``org/name``: its folder below the base."""
    source: str
    """The address, or the folder, that it was installed from; without secrets."""
    kind: str = "git"
    ref: str = ""
    """The branch, tag or commit that was asked for."""
    commit: str = ""
    """The commit that the ref was when it was installed."""
    subpath: str = ""
    """The folder of the source that was installed; ``""`` for all of it."""
    select: str = ""
    """The one skill of the source that this is, where skills were chosen."""
    skills: Mapping[str, str] = field(default_factory=dict)
    """The skills in it by name, each with its folder below the install."""
    digest: str = ""
    """The digest over all its files."""
    files: Mapping[str, FileHash] = field(default_factory=dict)
    """Each file with its hash, by its path below the install."""
    links: tuple[str, ...] = ()
    """The links in the folders of agents, from the root of the scope."""
    copies: tuple[str, ...] = ()
    """Those of ``links`` that are copies: where the system could not link, or all of them in ``mode`` copy."""
    agents: tuple[str, ...] = ()
    """The agents that it is linked for."""
    declared: str = ""
    """The source, version and mode as the manifest declares them; ``""`` where it does not declare this install."""
    mode: str = ""
    """``"copy"`` for an install that is copies in the folders of agents, with nothing in the base; else ``""``."""
    extra_agents: tuple[str, ...] = ()
    """Those of ``agents`` that a declared install has because somebody linked it for them, not because it is declared
    for them."""
    signer: str = ""
    """The fingerprint of the key that signed the tag, or the site, that it was installed from, or ``""``."""
    unknown: tuple[str, ...] = ()
    """The fields that this version of Prowess does not know, each as a row of TOML."""
    _by_folder: dict[str, dict[str, FileHash]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _by_link: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    _digests: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def is_copied(self) -> bool:
        """True for an install in copy mode, which has no folder in the base."""
        return self.mode == COPY_MODE

    def skill_digest(self, skill: str) -> str:
        """Return the digest over the files of one of its skills."""
        folder = self.skills[skill]
        return self.folder_digest(folder) if folder else self.digest

    def folder_digest(self, folder: str) -> str:
        """Return the digest over the files below one folder of the install."""
        if folder not in self._digests:
            self._digests[folder] = digest_tree(self.files_below(folder))
        return self._digests[folder]

    def files_below(self, folder: str) -> dict[str, FileHash]:
        """Return the files below one folder of the install, by their paths from that folder."""
        # An install of a repository may hold thousands of skills, and this is called for each. Grouping all files once
        # keeps that from taking quadratic time.
        if len(self.skills) > 1 and not self._by_folder:
            self._by_folder.update(self._group_files())
        if folder in self._by_folder:
            return self._by_folder[folder]
        prefix = f"{folder}/" if folder else ""
        return {path.removeprefix(prefix): hash_ for path, hash_ in self.files.items() if path.startswith(prefix)}

    def folder_for_link(self, link: str) -> str:
        """Return the folder, below the install, of the skill that a link with that name leads to."""
        if (
            len(self.skills) == 1 and "" in self.skills.values()
        ):  # the install is the skill, whatever the link is called
            return ""
        if not self._by_link:
            for skill, folder in self.skills.items():
                self._by_link.setdefault(link_name(skill), folder)
        return self._by_link.get(link, "")

    def digest_for_link(self, link: str) -> str:
        """The digest by which a copy of the skill that a link with that name leads to is recognized on this disk."""
        return self.placed_digest(self.folder_for_link(link))

    def placed_digest(self, folder: str = "") -> str:
        """Return the digest by which one folder of the install, or the whole, is recognized on this disk."""
        if not HAS_EXECUTABLE_BITS:
            return digest_on_disk(self.files_below(folder) if folder else self.files)
        return self.folder_digest(folder) if folder else self.digest

    def _group_files(self) -> dict[str, dict[str, FileHash]]:
        """Return the files of each skill, by the folder of the skill and by their paths from there."""
        groups = group_by_folder(self.files.items(), self.skills.values(), itemgetter(0))
        return {
            folder: {path[len(folder) + 1 :] if folder else path: hash_ for path, hash_ in files}
            for folder, files in groups.items()
        }


LockEntries = dict[str, LockEntry]
"""Every install of a scope by ``org/name``."""


def read_lock(folder: str, *, limits: Limits = DEFAULT_LIMITS) -> LockEntries:
    """Return the entries of the lock file in ``folder``; none where there is no such file. Raises ``InstallError``."""
    text = read_text(folder, LOCK_FILE, limits)
    return parse_lock(text, os.path.join(folder, LOCK_FILE)) if text is not None else {}


def read_text(folder: str, file: str, limits: Limits = DEFAULT_LIMITS) -> str | None:
    """Return the text of a lock file, a manifest or a journal.

    ``None`` where there is none. Raises ``InstallError``.
    """
    try:
        return _read_whole(folder, file, limits).decode("utf-8")
    except ResourceNotFoundError:
        return None
    except ResourceError as error:
        raise InstallError(f"cannot read {file}: {error.message}", folder, "bad-lock") from None
    except UnicodeDecodeError:
        raise InstallError(f"{file} is not UTF-8", folder, "bad-lock") from None


def _read_whole(folder: str, file: str, limits: Limits) -> bytes:
    """Return the bytes of a file that another process may replace at any moment: all old bytes, or all new ones."""
    for _ in range(_MAX_TRIES):
        with suppress(ResourceChangedError), OpenFile(folder, (file,)) as opened:
            return opened.read_all(limits.max_lock_bytes)
    raise ResourceChangedError(f"{file!r} is replaced all the time", file)


class LockFile(NamedTuple):
    """What the text of a lock file holds."""

    entries: LockEntries
    unknown: tuple[str, ...]
    """The fields of the file itself that this version of Prowess does not know, each as a row of TOML."""


def parse_lock(text: str, path: str = "") -> LockEntries:
    """Return the entries that the text of a lock file holds; raises what ``parse_lock_file`` raises."""
    return parse_lock_file(text, path).entries


def parse_lock_file(text: str, path: str = "") -> LockFile:
    """What the text of a lock file holds; ``InstallError`` names the line and the entry that is wrong.

    A text with git's conflict markers is an ``InstallError`` with the code ``lock-conflict``, and one in a newer format
    has the code ``newer-lock``.
    """
    entries, unknown = _parse_once(text, path)
    return LockFile(dict(entries), unknown)


# Cached because a command reads a lock file several times, and one of thousands of skills takes long to parse.
@lru_cache(2)
def _parse_once(text: str, path: str) -> LockFile:
    text = text.replace("\r\n", "\n")  # as TOML reads it; git writes such line ends on Windows
    data = parse_plain_toml(text)
    if data is None:  # the fast parser accepts no marker of git, so most files need no search for markers
        _refuse_conflict(text, path)
        data = _parse_toml(text, path)
    _check_version(data.get("version"), text, path)
    entries = data.get("skill", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise bad_lock_error(_with_line("the lock file must hold [[skill]] entries", text, 0, "skill"), path)
    locked: LockEntries = {}
    names: set[str] = set()
    # No parser lets the character itself pass: a NUL can only come from an escape.
    may_hold_nul = "\\" in text
    for number, values in enumerate(entries, 1):
        try:
            entry = _parse_entry(values, names, may_hold_nul=may_hold_nul)
        except _BadEntryError as error:
            shown = _with_line(f"{error.message}{_name_entry(values, error.message)}", text, number, error.mark)
            raise bad_lock_error(shown, path) from None
        names.add(entry.name.lower())
        locked[entry.name] = entry
    return LockFile(locked, _read_unknown(data, _FILE_KEYS, path))


def _check_version(version: object, text: str, path: str) -> None:
    """Raise ``InstallError`` for another version of the format than this one: ``newer-lock``, or ``bad-lock``."""
    if isinstance(version, int) and version > VERSION:
        message = f"a newer Prowess wrote the lock file, in format {version}, and this one reads {VERSION}"
        raise InstallError(f"{message}: upgrade Prowess", path, "newer-lock")
    if version != VERSION:
        message = f"the lock file has version {version!r}; this Prowess reads {VERSION}"
        raise bad_lock_error(_with_line(message, text, 0, "version"), path)


def _refuse_conflict(text: str, path: str) -> None:
    """Raise ``InstallError`` (``lock-conflict``) for a file with git's markers; it names the entries that differ."""
    from prowess.lockfile.merge import (
        find_differing_entries,
        find_marker,
        split_conflict,
    )

    line = find_marker(text)
    if not line:
        return
    sides = split_conflict(text)
    names = find_differing_entries(sides) if sides is not None else ()
    more = f" and {len(names) - MAX_LISTED_NAMES} more" if len(names) > MAX_LISTED_NAMES else ""
    shown = f"; the entries that differ: {', '.join(names[:MAX_LISTED_NAMES])}{more}" if names else ""
    raise InstallError(
        f"the lock file is in conflict: it holds git's markers (line {line}){shown}", path, "lock-conflict"
    )


class _BadEntryError(Exception):
    """An entry is invalid: the reason, and a string that finds its line within the entry."""

    def __init__(self, message: str, mark: str) -> None:
        super().__init__(message)
        self.message, self.mark = message, mark


def _name_entry(data: dict[str, Any], message: str) -> str:
    """Return the end of a message that names the entry, where the message does not name it already."""
    name = data.get("name")
    return f", in the entry {name[:80]!a}" if isinstance(name, str) and name and name not in message else ""


def _with_line(message: str, text: str, entry: int, mark: str) -> str:
    """A message with the number of the line that is wrong: the first one that begins with ``mark``, or contains it.

    Only the lines of the entry with that number are searched; 0 stands for the lines before the first entry. Without
    such a line it is the first line of the entry. The message stays as it is where the entry itself is not found.
    """
    rows = text.split("\n")
    heads = [index for index, row in enumerate(rows) if _ENTRY_HEADER.match(row)]
    if entry > len(heads):
        return message
    begin = heads[entry - 1] if entry else 0
    end = heads[entry] if entry < len(heads) else len(rows)
    line = next((index for index in range(begin, end) if rows[index].lstrip().startswith(mark)), None)
    if line is None:
        line = next((index for index in range(begin, end) if mark in rows[index]), begin)
    return f"{message} (line {line + 1})"


def _parse_toml(text: str, path: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a plain ValueError
        raise bad_lock_error(f"the lock file is not TOML: {error}", path) from None


_TEXT_KEYS = ("name", "source", "kind", "ref", "commit", "subpath", "select", "digest", "declared", "mode", "signer")
_LIST_KEYS = ("links", "copies", "agents", "extra_agents")
_ENTRY_KEYS = frozenset((*_TEXT_KEYS, *_LIST_KEYS, "files", "skills"))
_FILE_KEYS = frozenset(("version", "skill"))
_ONLY_TEXT = frozenset((str,))


def _parse_entry(data: dict[str, Any], taken: set[str], *, may_hold_nul: bool) -> LockEntry:
    # Fast path: to check each string by itself makes verifying small installs slower by a tenth.
    strings: dict[str, Any] = {key: data.get(key, "") for key in _TEXT_KEYS}
    if not _ONLY_TEXT.issuperset(map(type, strings.values())):
        strings = {key: _check_text(data, key) for key in _TEXT_KEYS}
    # A file that somebody else wrote may hold a secret, and these values are shown to people and written again.
    strings["source"], strings["declared"] = hide_secrets(strings["source"]), scrub_text(strings["declared"])
    lists: dict[str, Any] = {key: tuple(_check_strings(data.get(key, []), key)) for key in _LIST_KEYS}
    if may_hold_nul and "\0" in "".join((*strings.values(), *(text for values in lists.values() for text in values))):
        raise _BadEntryError("the lock file holds a NUL character, which no path can hold", "\\u0000")
    if strings["commit"] and not is_commit(strings["commit"]):
        raise _BadEntryError(
            f"the lock file's commit is {strings['commit'][:80]!r}, which is not the id of a commit", "commit"
        )
    # The name becomes a path below the base: "..", a device or a hidden name must not get there.
    org, _, name = strings["name"].partition("/")
    if not is_safe_part(org) or not is_safe_part(name):
        raise _BadEntryError(f"the lock file names {strings['name'][:80]!r}, which is not org/name", "name")
    if strings["name"].lower() in taken:  # case does not distinguish folders on every system
        raise _BadEntryError("the lock file records one name twice", "name")
    if strings["mode"] not in {"", COPY_MODE}:
        raise _BadEntryError(f"the lock file's mode is {strings['mode'][:80]!r}; it can only be {COPY_MODE!r}", "mode")
    files = dict(map(_parse_file_row, _check_strings(data.get("files", []), "files")))
    # The digest is what people compare in reviews: it must not say one thing and the list of files another.
    if digest_tree(files) != strings["digest"]:
        raise _BadEntryError(f"the lock file's digest of {strings['name']} does not fit its list of files", "digest")
    # The install of one chosen skill is that skill, so the name is written once.
    if "skills" not in data:
        strings["select"] = strings["select"] or name
    rows = _parse_skill_rows(data.get("skills", {strings["select"]: ""}))
    skills = {skill: folder for skill, (_, folder) in rows.items()}
    entry = LockEntry(**strings, **lists, skills=skills, files=files, unknown=_read_unknown(data, _ENTRY_KEYS))
    _check_skill_digests(entry, rows)
    return entry


def _check_skill_digests(entry: LockEntry, rows: dict[str, tuple[str, str]]) -> None:
    """Raise ``_BadEntryError`` for a skill whose digest is not that of its files."""
    for skill, (digest, folder) in rows.items():
        if folder and digest != entry.skill_digest(skill):
            message = f"the lock file's digest of the skill {skill[:80]!r} does not fit its list of files"
            raise _BadEntryError(message, json.dumps(skill))


def _read_unknown(data: dict[str, Any], known: frozenset[str], path: str = "") -> tuple[str, ...]:
    """Return the rows of the keys that are not known, in the order of the keys."""
    if known.issuperset(data):  # nearly always
        return ()
    try:
        return tuple(toml_row(key, data[key]) for key in sorted(data.keys() - known))
    except RecursionError:
        raise bad_lock_error("the lock file has a field that is nested too deeply", path) from None


def _check_text(data: dict[str, Any], key: str) -> str:
    value = data.get(key, "")
    if not isinstance(value, str):
        raise _BadEntryError(f"the lock file's {key} must be a string", key)
    return value


def _check_strings(value: object, key: str) -> list[str]:
    if not isinstance(value, list) or not _ONLY_TEXT.issuperset(map(type, value)):
        raise _BadEntryError(f"the lock file's {key} must be a list of strings", key)
    return value


def _parse_skill_rows(value: object) -> dict[str, tuple[str, str]]:
    """Return the digest and the folder of each skill; both are ``""`` for a skill that is the whole install."""
    if not isinstance(value, dict) or not all(isinstance(row, str) for row in value.values()):
        raise _BadEntryError("the lock file's skills must be names with digests and folders", "[skill.skills]")
    rows: dict[str, tuple[str, str]] = {}
    for name, row in value.items():
        match = _SKILL_ROW.fullmatch(row)
        rows[name] = (match[1], match[2]) if match else ("", "")
        folder = rows[name][1]
        if (row and match is None) or not is_usable_name(name) or (folder and _check_path(folder) != folder):
            raise _BadEntryError(f"the lock file names the skill {name[:80]!r} in {row[:120]!r}", json.dumps(name))
    return rows


def _parse_file_row(row: str) -> tuple[str, FileHash]:
    match = _FILE_ROW.fullmatch(row)
    if match is None:
        raise _BadEntryError(f"the lock file lists a file as {row[:120]!r}", row)
    content, mode, size, name = match.groups()
    return _check_path(name), FileHash(int(size), mode == "x", content)


def _check_path(name: str) -> str:
    try:
        return _normalise_path(name)
    except PathTraversalError as error:
        raise _BadEntryError(f"the lock file lists a file that leads elsewhere: {error.message}", name) from None


# Cached because most skills name their files alike, and a lock file may list a hundred thousand of them.
@lru_cache(4096)
def _normalise_path(name: str) -> str:
    """Return a relative path, checked."""
    return "/".join(split_relative_path(name))


def bad_lock_error(message: str, path: str) -> InstallError:
    """Return the error for a lock file whose content is invalid."""
    return InstallError(message, path, "bad-lock")


_LIST_BEGIN = compile_pattern(r"(?<=\n)(files|links|copies) = \[\n")
_LIST = compile_pattern(r'(?:  "[^"\\\n]*+",\n)*+')
_PLAIN_ROW = compile_pattern(r'("?)([A-Za-z0-9_-]++)\1 = (?:"([^"\\]*+)"|\["([^"\\]*+)"\])')
"""A key with one string, or with a list of one string: nothing in it is escaped."""
_TEXT_GROUP = 3
_BARE_KEY = compile_pattern(r"[A-Za-z0-9_-]+")
_CONTROLS = bytes((*range(10), *range(11, 32), 127))  # all but the line break


def parse_plain_toml(text: str) -> dict[str, Any] | None:
    """What a TOML parser gives for a lock file as Prowess writes it; ``None`` for any other text.

    Fast path of the bench rows that verify installs. The slow path is ``tomllib``; tests/lockfile/test_read.py and
    bench/fuzz.py compare the two.
    """
    encoded = text.encode("utf-8", "surrogatepass")
    if len(encoded.translate(None, _CONTROLS)) < len(encoded):
        return None  # TOML refuses most of them, even in a comment
    data: dict[str, Any] = {"skill": []}
    # Each list with a line for each value is cut out as one string: these are the greatest part of most lock files.
    head, *parts = _LIST_BEGIN.split(text)
    table = _add_rows(head, data, data)
    for key, part in zip(parts[::2], parts[1::2], strict=True):
        values, end, rest = part.partition("]\n")
        if table is None or not end or key in table or _LIST.fullmatch(values) is None:
            return None
        table[key] = values[3:-3].split('",\n  "') if values else []
        table = _add_rows(rest, data, table)
    return data if table is not None and data["skill"] else None


def _add_rows(text: str, data: dict[str, Any], table: dict[str, Any]) -> dict[str, Any] | None:
    """Put each row into the table that it belongs to, and return the last table; ``None`` where a row is not plain."""
    for row in text.split("\n"):
        if row == "[[skill]]":
            table = {}
            data["skill"].append(table)
        elif row == "[skill.skills]" and data["skill"] and table is data["skill"][-1] and "skills" not in table:
            table["skills"] = table = {}
        elif row and row[0] != "#" and not _add_row(row, table):
            return None
    return table


def _add_row(row: str, table: dict[str, Any]) -> bool:
    """Put a row into the table and return True when it is a key with a value that JSON writes as TOML does."""
    match = _PLAIN_ROW.fullmatch(row)  # fast path of nearly every row: the rest of this function gives the same value
    if match is not None and match[2] not in table:
        table[match[2]] = match[3] if match.lastindex == _TEXT_GROUP else [match[4]]
        return True
    key, equals, value = row.partition(" = ")
    if not equals or "\\" in row:  # JSON and TOML have different escapes
        return False
    try:
        name = json.loads(key) if key[:1] == '"' else key
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return False
    is_new_name = isinstance(name, str) and name not in table
    if not is_new_name or (key is name and _BARE_KEY.fullmatch(name) is None) or not _is_plain_value(parsed):
        return False
    table[name] = parsed
    return True


def _is_plain_value(value: object) -> bool:
    """True for a string, an integer or a list of strings: JSON has more kinds of values, and a lock file does not."""
    return type(value) in {str, int} or (isinstance(value, list) and all(type(text) is str for text in value))


_BARE_TOML_KEY = re.compile(r"[A-Za-z0-9_-]+")


def toml_row(key: str, value: object) -> str:
    """Return a key and its value, on one line."""
    return f"{key if _BARE_TOML_KEY.fullmatch(key) else toml_value(key)} = {toml_value(value)}"


def toml_value(value: object) -> str:
    """Return a value that a TOML parser gave, as TOML on one line; a table becomes an inline table."""
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

"""``skills-lock.json``, which the npm ``skills`` tool writes: read, so that its installs can be taken over."""

from __future__ import annotations

import hashlib
import json
import os
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prowess.limits import DEFAULT_LIMITS
from prowess.lockfile.read import bad_lock_error, read_text
from prowess.spec.rules import is_usable_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.limits import Limits

NPM_LOCK_FILE = "skills-lock.json"
_NPM_KEYS = {
    "source": "source",
    "sourceType": "source_type",
    "sourceUrl": "source_url",
    "ref": "ref",
    "skillPath": "skill_path",
    "computedHash": "computed_hash",
}
"""The names of the fields in the file, and in ``NpmLockEntry``."""
_PUNCTUATION = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$"
"""ASCII punctuation in the order in which JavaScript's locale sorts it."""


@dataclass(frozen=True, slots=True)
class NpmLockEntry:
    """One skill as ``skills-lock.json`` records it; a field that the file does not have is empty."""

    name: str
    source: str
    source_type: str = ""
    source_url: str = ""
    ref: str = ""
    skill_path: str = ""
    computed_hash: str = ""


def read_npm_lock(folder: str, *, limits: Limits = DEFAULT_LIMITS) -> dict[str, NpmLockEntry]:
    """The skills that the npm ``skills`` tool has recorded in ``folder``, by name; none where it has no lock file."""
    text = read_text(folder, NPM_LOCK_FILE, limits)
    return parse_npm_lock(text, os.path.join(folder, NPM_LOCK_FILE)) if text is not None else {}


def parse_npm_lock(text: str, path: str = "") -> dict[str, NpmLockEntry]:
    """The skills that the text of a ``skills-lock.json`` records, by name; raises ``InstallError`` (``bad-lock``)."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise bad_lock_error(f"{NPM_LOCK_FILE} is not JSON{where}", path) from None
    skills = data.get("skills") if isinstance(data, dict) else None
    if not isinstance(skills, dict):
        raise bad_lock_error(f"{NPM_LOCK_FILE} holds no skills", path)
    # The file may be anybody's: a name that cannot be the name of a skill is left out, for it would become a path.
    return {
        name: NpmLockEntry(name, **{ours: str(entry.get(theirs) or "") for theirs, ours in _NPM_KEYS.items()})
        for name, entry in skills.items()
        if is_usable_name(name) and isinstance(entry, dict)
    }


def compute_npm_hash(files: Iterable[tuple[str, bytes]]) -> str:
    """The ``computedHash`` of a skill: SHA-256 over each path and its bytes, sorted as JavaScript's locale compares."""
    total = hashlib.sha256()  # the npm tool puts no separators between files, so neither may this
    for path, content in sorted(files, key=lambda file: _collation_key(file[0])):
        total.update(path.encode())
        total.update(content)
    return total.hexdigest()


def _collation_key(text: str) -> tuple[list[tuple[int, int | str]], list[str], list[bool]]:
    """The key by which JavaScript's ``localeCompare`` sorts: letters, then accents, then lower before upper."""
    plain = unicodedata.normalize("NFD", text)
    base = [char for char in plain if not unicodedata.combining(char)]
    first = [_collation_weight(char) for char in base]
    return first, [char for char in plain if unicodedata.combining(char)], [char.isupper() for char in base]


def _collation_weight(char: str) -> tuple[int, int | str]:
    index = _PUNCTUATION.find(char)
    # Punctuation comes before digits, and digits before letters.
    return (0, index) if index >= 0 else (1 if char.isdigit() else 2, char.lower())

"""What other tools recorded about the skills that they installed: read, so that these can be listed and taken over.

The npm tool ``skills`` writes ``skills-lock.json`` in a project. It and GitHub's ``gh skill`` write
``.agents/.skill-lock.json`` (version 3). ``gh skill`` also writes fields that begin with ``github-``
into the metadata of a SKILL.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prowess.format.rules import is_usable_name
from prowess.limits import DEFAULT_LIMITS
from prowess.lockfile.read import bad_lock_error, read_text
from prowess.names import SKILL_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from prowess.limits import Limits

NPM_LOCK_FILE = "skills-lock.json"
SKILL_LOCK_FILE = ".skill-lock.json"
_SKILL_LOCK_VERSION = 3
_KEYS = {
    "source": "source",
    "sourceType": "source_type",
    "sourceUrl": "source_url",
    "ref": "ref",
    "skillPath": "skill_path",
    "computedHash": "computed_hash",
}
"""The names of the fields in the files, and in ``ForeignEntry``."""
_BRANCH_OR_TAG = re.compile(r"refs/(?:heads|tags)/")
_PUNCTUATION = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$"
"""ASCII punctuation in the order of JavaScript's locale."""


@dataclass(frozen=True, slots=True)
class ForeignEntry:
    """What another tool recorded about one skill; a field that it did not record is empty."""

    name: str
    source: str
    source_type: str = ""
    source_url: str = ""
    ref: str = ""
    skill_path: str = ""
    computed_hash: str = ""

    @property
    def folder(self) -> str:
        """The folder of the skill in its source; some tools record its SKILL.md."""
        return self.skill_path.removesuffix(SKILL_FILE).strip("/")


def read_foreign_entries(
    root: str, *, state_folder: str = "", limits: Limits = DEFAULT_LIMITS
) -> dict[str, ForeignEntry]:
    """What other tools recorded about the skills below ``root``, by name; none where they have no lock file.

    ``state_folder`` is where the npm tool keeps the lock file of a user instead, when there is such a folder. Raises
    ``InstallError`` (``bad-lock``) for a file that is malformed.
    """
    entries: dict[str, ForeignEntry] = {}
    for folder, file in list_foreign_locks(root, state_folder):
        text = read_text(folder, file, limits)
        if text is not None:
            entries = parse_foreign_lock(text, os.path.join(folder, file)) | entries
    return entries


def list_foreign_locks(root: str, state_folder: str = "") -> list[tuple[str, str]]:
    """Return the folder and the name of each lock file of other tools below ``root``, those that win first."""
    files = [(root, NPM_LOCK_FILE), (os.path.join(root, ".agents"), SKILL_LOCK_FILE)]
    return files + ([(os.path.join(state_folder, "skills"), SKILL_LOCK_FILE)] if state_folder else [])


def parse_foreign_lock(text: str, path: str = "") -> dict[str, ForeignEntry]:
    """The skills that the text of a lock file of another tool records, by name; raises ``InstallError`` (``bad-lock``).

    ``path`` is where the file is: of a ``.skill-lock.json`` other versions than 3 record nothing.
    """
    file = os.path.basename(path) or NPM_LOCK_FILE
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise bad_lock_error(f"{file} is not JSON{where}", path) from None
    skills = data.get("skills") if isinstance(data, dict) else None
    if not isinstance(skills, dict):
        raise bad_lock_error(f"{file} holds no skills", path)
    if file == SKILL_LOCK_FILE and data.get("version") != _SKILL_LOCK_VERSION:
        return {}
    # The file may be anybody's: a name that cannot be the name of a skill is left out, for it would become a path.
    return {
        name: ForeignEntry(
            name,
            **{ours: str(entry.get(theirs) or "") for theirs, ours in _KEYS.items()}
            | ({"ref": str(entry["pinnedRef"])} if entry.get("pinnedRef") else {}),
        )
        for name, entry in skills.items()
        if is_usable_name(name) and isinstance(entry, dict)
    }


def entry_from_metadata(name: str, metadata: Mapping[str, str]) -> ForeignEntry | None:
    """What ``gh skill`` wrote into the metadata of a skill; ``None`` when it wrote nothing."""
    repository = metadata.get("github-repo", "")
    if not repository:
        return None
    ref = metadata.get("github-pinned") or metadata.get("github-ref", "")
    short_ref = _BRANCH_OR_TAG.sub("", ref, count=1)
    return ForeignEntry(name, repository, "github", "", short_ref, metadata.get("github-path", ""))


def compute_npm_hash(files: Iterable[tuple[str, bytes]]) -> str:
    """The ``computedHash`` of a skill: SHA-256 over each path and its bytes, sorted as JavaScript's locale compares."""
    total = hashlib.sha256()  # the npm tool puts no separators between files, so neither may this
    for path, content in sorted(files, key=lambda file: _collation_key(file[0])):
        total.update(path.encode())
        total.update(content)
    return total.hexdigest()


def _collation_key(text: str) -> tuple[list[tuple[int, int | str]], list[str], list[bool]]:
    """Return the key by which JavaScript's ``localeCompare`` sorts: letters, then accents, then lower before upper."""
    plain = unicodedata.normalize("NFD", text)
    base = [char for char in plain if not unicodedata.combining(char)]
    first = [_collation_weight(char) for char in base]
    return first, [char for char in plain if unicodedata.combining(char)], [char.isupper() for char in base]


def _collation_weight(char: str) -> tuple[int, int | str]:
    index = _PUNCTUATION.find(char)
    # Punctuation comes before digits, and digits before letters.
    return (0, index) if index >= 0 else (1 if char.isdigit() else 2, char.lower())

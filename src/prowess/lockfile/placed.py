"""What Prowess itself put on this disk: a record that tells an edit from another version of an install.

After ``git pull`` or ``git switch`` the lock file has changed and the installs have not. An install that is still
exactly what Prowess put there is *pristine*: nobody's work is in it, and a sync may replace or remove it without a
question and without a backup. The lock file alone decides what is right. The record holds digests and no paths, so a
forged one can cost a backup and nothing more.
"""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

from prowess.errors import InstallError
from prowess.files import syscalls
from prowess.files.tree import digest_on_disk, hash_tree
from prowess.files.write import write_new_file
from prowess.lockfile.read import read_text
from prowess.lockfile.scopes import STORE_FOLDER

if TYPE_CHECKING:
    from collections.abc import ItemsView, Iterable, Mapping

    from prowess.limits import Limits

RECORD_FILE = ".placed.json"
"""The record, in the install base: whoever restores the base from a cache restores the record that fits it."""
_VERSION = 1


class PlacedTrees:
    """The digest of each tree that Prowess put into one scope.

    An install in the base is known as ``org/name``, a copy in the folder of an agent by the name of its folder.
    """

    def __init__(self, base: str, limits: Limits) -> None:
        """Read the record of an install base. A record that is missing or malformed knows nothing."""
        self._base, self._limits = base, limits
        self._digests = self._read()

    def _read(self) -> dict[str, str]:
        with suppress(InstallError, ValueError, RecursionError):
            data = json.loads(read_text(self._base, RECORD_FILE, self._limits) or "null")
            if isinstance(data, dict) and data.get("version") == _VERSION and isinstance(data.get("trees"), dict):
                trees = {name: digest for name, digest in data["trees"].items() if isinstance(digest, str)}
                json.dumps(trees, ensure_ascii=False).encode()  # half a character is in no name, and cannot be written
                return trees
        return {}

    def digest_of(self, name: str) -> str:
        """The digest of the tree that Prowess put there under this name; ``""`` for none."""
        return self._digests.get(name, "")

    def items(self) -> ItemsView[str, str]:
        """Every name with its digest."""
        return self._digests.items()

    @property
    def copies(self) -> list[str]:
        """The names of the copies that Prowess put into the folders of agents."""
        return [name for name in self._digests if "/" not in name]

    def is_pristine(self, name: str, folder: str) -> bool:
        """True when a folder is exactly what Prowess put there under this name."""
        recorded = self.digest_of(name)
        return recorded != "" and recorded == digest_folder(folder, self._limits)

    def save(self, placed: Mapping[str, str], removed: Iterable[str] = ()) -> None:
        """Add the digests of ``placed`` to the record, and take the names of ``removed`` out of it.

        The caller holds the lock of the scope.
        """
        gone = set(removed)
        digests = {name: digest for name, digest in self._digests.items() if name not in gone} | dict(placed)
        if digests == self._digests:
            return
        self._digests = digests
        # A record that cannot be written costs a backup at the next sync. It must not fail a change that is done.
        with suppress(OSError):
            self._write()

    def _write(self) -> None:
        path = os.path.join(self._base, RECORD_FILE)
        if not self._digests:
            syscalls.delete_file(path)
            return
        data = {"version": _VERSION, "trees": dict(sorted(self._digests.items()))}
        # In the store, whose leftovers every change deletes.
        staged = os.path.join(self._base, STORE_FOLDER, f"{RECORD_FILE}.{secrets.token_hex(6)}.tmp")
        write_new_file(staged, f"{json.dumps(data, indent=1, ensure_ascii=False)}\n".encode(), mode=0o644)
        syscalls.rename(staged, path)


def digest_folder(folder: str, limits: Limits) -> str:
    """The digest by which a folder is recognized on this disk.

    It is ``""`` for a folder that cannot be read whole, or that holds a link.
    """
    with suppress(OSError, ValueError):
        tree = hash_tree(folder, limits)
        return "" if tree.problems else digest_on_disk(tree.files)
    return ""

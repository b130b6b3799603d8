"""The file of a library's index: where it lies in the cache folder, and how it is opened, created and replaced.

::

    CACHE/search/0123…            the name of the database of a library, under the hash of the library
    CACHE/search/0123…-89ab….db   the database: the index of the library

A database gets a name that none had before. So neither a journal that was left behind nor a process that still has an
old database open can spoil a new one. Only the owner may read or write the files. Where none can be used, the library
is indexed in memory.
"""

from __future__ import annotations

import os
import stat
import time
from hashlib import blake2b
from typing import TYPE_CHECKING

from prowess.errors import BusyError
from prowess.files import lock, syscalls, write
from prowess.files.contained_open import READ_FLAGS
from prowess.files.paths import is_link, is_owned_alone
from prowess.files.projects import default_cache_dir, is_private_folder
from prowess.search.index_database import DATABASE_ERRORS, FORMAT_VERSION, DamageError, IndexDatabase, is_damage_error

if TYPE_CHECKING:
    from prowess.limits import Limits

_FOLDER = "search"
_DATABASE_SUFFIX = ".db"
_MAX_POINTER_BYTES = 64
_DAY_SECONDS = 86_400

_warned_paths: set[str] = set()


class IndexFile:
    """The file of one library's index. Nothing that goes wrong with it raises an error."""

    def __init__(self, library: str, limits: Limits) -> None:
        """``library`` names the places of its skills, and whatever else the texts in the index depend on."""
        text = f"{FORMAT_VERSION}\0{library}".encode("utf-8", "surrogatepass")
        self._name = blake2b(text, digest_size=16).hexdigest()
        self._limits = limits
        self._database_name = ""
        """The database that was opened last, or was found to be missing or damaged."""

    def open(self) -> IndexDatabase | None:
        """Connect to the index, which is created where there is none; ``None`` where no file can be used."""
        folder = _find_folder() if self._limits.max_search_indexes else ""
        if not folder:
            return None
        try:
            database = self._open_database(folder)
        except DATABASE_ERRORS as error:
            if not is_damage_error(error):  # locked for too long, or unreadable: whoever has it may need it as it is
                return None
            _warn_of_damage(os.path.join(folder, self._database_name))
            database = None
        return database or self._create(folder)

    def replace(self) -> IndexDatabase | None:
        """Connect to a new index, because the one that was opened is damaged; ``None`` where none can be created."""
        folder = _find_folder()
        _warn_of_damage(os.path.join(folder, self._database_name))
        return self._create(folder) if folder else None

    def _open_database(self, folder: str) -> IndexDatabase | None:
        """Connect to the database in use, if there is one. Raises ``DATABASE_ERRORS`` if it is not an index."""
        self._database_name = _read_pointer(os.path.join(folder, self._name))
        path = os.path.join(folder, self._database_name)
        try:
            info = os.lstat(path)
        except OSError:
            return None
        if not self._database_name:
            return None
        if not stat.S_ISREG(info.st_mode) or not is_owned_alone(info):
            raise DamageError("not a file of this user alone")
        database = IndexDatabase(path, self._limits.max_lock_seconds)
        if not database.has_our_format():
            raise DamageError("not an index of this version")
        return database

    # -- creating ----------------------------------------------------------------------------------------------------

    def _create(self, folder: str) -> IndexDatabase | None:
        try:
            with lock.lock_folder(folder, seconds=self._limits.max_lock_seconds):
                if _read_pointer(os.path.join(folder, self._name)) != self._database_name:  # another process was faster
                    database = self._open_database(folder)
                    if database is not None:
                        return database
                database = self._create_database(folder)
                _prune(folder, self._limits.max_search_indexes)
                return database
        except (OSError, BusyError, *DATABASE_ERRORS):
            return None

    def _create_database(self, folder: str) -> IndexDatabase:
        import secrets

        self._database_name = f"{self._name}-{secrets.token_hex(8)}{_DATABASE_SUFFIX}"
        path = os.path.join(folder, self._database_name)
        try:
            os.close(syscalls.create_file(path, 0o600))
            database = IndexDatabase(path, self._limits.max_lock_seconds)
            database.create_schema()
            write.write_atomic(os.path.join(folder, self._name), self._database_name.encode())
        except BaseException:
            _delete_if_there(path)
            raise
        return database


def _find_folder() -> str:
    """Return the folder of all indexes; ``""`` when there is none that only this user may change."""
    try:
        cache = default_cache_dir()
        folder = os.path.join(cache, _FOLDER)
        if not os.path.isdir(folder):
            if os.path.lexists(cache) and not is_private_folder(cache):
                return ""
            write.make_folders(folder, 0o700)
    except (OSError, ValueError, RuntimeError):  # RuntimeError: nobody knows where the home folder is
        return ""
    is_private = is_private_folder(cache) and is_private_folder(folder) and not is_link(folder)
    return folder if is_private else ""


def _read_pointer(path: str) -> str:
    """Return the name of the database that a library has in use; ``""`` when there is none."""
    try:
        fd = os.open(path, READ_FLAGS)
        try:
            name = os.read(fd, _MAX_POINTER_BYTES)
            age = time.time() - os.fstat(fd).st_mtime
        finally:
            os.close(fd)
        if age > _DAY_SECONDS:
            syscalls.touch_file(path)  # so that ``_prune`` knows which are in use
    except OSError:
        name = b""
    text = name.decode("ascii", "replace")
    own = os.path.basename(path)
    # Nothing but a name that this module made: a path in a pointer would lead elsewhere.
    return text if text.startswith(f"{own}-") and text.endswith(_DATABASE_SUFFIX) and os.sep not in text else ""


def _prune(folder: str, keep: int) -> None:
    """Delete the indexes that were not used for longest, and what an interrupted process has left behind."""
    import re

    our_name = re.compile(
        r"(?P<pointer>[0-9a-f]{32})(?:-[0-9a-f]{16}\.db(?:-journal)?)?|\.[0-9a-f]{32}\.[0-9a-f]+\.tmp"
    )
    with os.scandir(folder) as entries:
        times = {entry.name: entry.stat(follow_symlinks=False).st_mtime for entry in entries}
    ours = {name: match["pointer"] == name for name in times if (match := our_name.fullmatch(name))}
    pointers = sorted((name for name in ours if ours[name]), key=times.__getitem__, reverse=True)[:keep]
    databases = [_read_pointer(os.path.join(folder, name)) for name in pointers]
    for name in ours.keys() - {*pointers, *databases, *(f"{name}-journal" for name in databases)}:
        _delete_if_there(os.path.join(folder, name))


def _delete_if_there(path: str) -> None:
    try:
        syscalls.delete_file(path)
    except OSError:
        return


def _warn_of_damage(path: str) -> None:
    """Tell the log, once, that an index is built again."""
    if path in _warned_paths:
        return
    _warned_paths.add(path)
    import logging

    message = "the search index %s is damaged or of another version, and is built again"
    logging.getLogger("prowess").warning(message, path)

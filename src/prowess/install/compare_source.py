"""One install compared three ways: as it is on this disk, as the lock file records it, and as its source has it now.

The lock file has only the hashes of files, not their bytes. The locked bytes of a file come from the first side that
has bytes of that hash: the disk, what the source has now, and at last the locked commit, which is fetched again.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import (
    FetchError,
    GitError,
    PathTraversalError,
    ResourceError,
    ResourceNotFoundError,
    SkillError,
)
from prowess.files.read import OpenFile
from prowess.files.syscalls import wrap_os_errors
from prowess.files.tree import FileHash, digest_tree, hash_bytes, is_executable, take_recorded_bits
from prowess.install.agent_links import LinkFolders
from prowess.install.entry_source import is_sourceless, missing_install_error, spec_of_entry
from prowess.install.file_diffs import FileDiffs
from prowess.install.install_tree import tree_for_entry
from prowess.install.installed_files import compare_files
from prowess.installed.compare import list_differing
from prowess.installed.scopes import find_copies, locate_install

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from prowess.install.fetch_source import SourceAccess
    from prowess.installed.compare import Difference
    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntry


@dataclass(frozen=True, slots=True)
class SkillDiff:
    """How an install differs from its lock entry: on this disk (``edits``), and at its source (``updates``).

    Both are unified diffs that start at the locked files; ``edited_files`` and ``updated_files`` name the files.
    """

    name: str
    path: Path
    locked: str
    """The locked commit; the locked digest when the source has no commits."""
    newest: str
    """The commit, or the digest, that the source has now; ``""`` when it could not be asked, or there is none."""
    edited_files: tuple[str, ...]
    edits: str
    updated_files: tuple[str, ...]
    updates: str
    has_source: bool = True
    why_unasked: str = ""
    """Why the source could not be asked; ``""`` when it could, or when there is none."""

    @property
    def differs(self) -> bool:
        """Whether any difference is known."""
        return bool(self.edited_files or self.updated_files)


class _Upstream(NamedTuple):
    """What a source has now: its commit or digest, and its files; or why it could not be asked."""

    version: str = ""
    files: Mapping[str, FileHash] = {}
    why_unasked: str = ""
    is_unreachable: bool = False
    """True when the source did not answer, so that it is useless to ask it for another commit."""


def compare_sides(scope: InstallScope, entry: LockEntry, access: SourceAccess) -> SkillDiff:
    """Return the comparison of one install; nothing is changed.

    Raises ``NotInstalledError`` when the install is not on this disk. A source that cannot be asked is not an error:
    ``why_unasked`` then says why.
    """
    link_folders = LinkFolders(scope)
    place = locate_install(entry, scope, entry.name)
    with wrap_os_errors():
        edits = compare_files(entry, link_folders, access.limits)
    if any(edit.code == "missing-skill" for edit in edits) or (entry.is_copied and not find_copies(entry, scope)):
        raise missing_install_error(entry.name, place)
    # Every side adds the bytes that it has; the locked side then takes those of its hashes.
    contents = _BytesByHash(access.limits)
    source = _EntrySource(scope, entry, access, contents)
    upstream = source.fetch_newest()
    updated = tuple(list_differing(entry.files, upstream.files)) if upstream.version else ()
    here = [_read_edit(edit, entry, contents) for edit in edits]
    there = [_FileComparison(path, entry.files.get(path), upstream.files.get(path)) for path in updated]
    differing = {*(_locked_path(entry, edit) for edit in edits), *updated}
    folders = [link_folders.path_of_link(copy) for copy in entry.copies] if entry.is_copied else [place]
    _read_locked_bytes(differing, entry, folders, contents)
    # Another fetch is the last resort: most often the disk or the newest version has the locked bytes.
    if not all(contents.has_bytes(row.locked) for row in (*here, *there)):
        source.fetch_locked_files(upstream)
    return SkillDiff(
        entry.name,
        Path(place),
        entry.commit or entry.digest,
        upstream.version,
        tuple(row.path for row in here),
        "".join(contents.diff_rows(here)),
        updated,
        "".join(contents.diff_rows(there)),
        not is_sourceless(entry),
        upstream.why_unasked,
    )


class _FileComparison(NamedTuple):
    """One file of a side beside the locked one; a file that cannot be read is a sentence that says why."""

    path: str
    locked: FileHash | None
    other: FileHash | str | None


def _lock_prefix(entry: LockEntry, place: str) -> str:
    """Return the folder, with a slash, under which the lock file has the files of a place: a copy holds one skill."""
    folder = entry.folder_for_link(os.path.basename(place)) if entry.is_copied else ""
    return f"{folder}/" if folder else ""


def _locked_path(entry: LockEntry, edit: Difference) -> str:
    """Return the path under which the lock file has an edited file."""
    return f"{_lock_prefix(entry, edit.folder)}{edit.path}"


def _read_locked_bytes(
    paths: Collection[str], entry: LockEntry, folders: Iterable[str], contents: _BytesByHash
) -> None:
    """Read the bytes of files from every folder that may still have them as they were locked."""
    # An install in copy mode has several folders, and somebody may have edited only one of them.
    for folder in folders:
        prefix = _lock_prefix(entry, folder)
        for path in paths:
            if not path.startswith(prefix):
                continue
            with suppress(ResourceError):  # an entry that is not a file is reported as an edit
                contents.read_file(folder, path.removeprefix(prefix))


def _read_edit(edit: Difference, entry: LockEntry, contents: _BytesByHash) -> _FileComparison:
    """Return the comparison of an edited file; a file of a copy is named with the copy, since there may be several."""
    locked = entry.files.get(_locked_path(entry, edit))
    path = "/".join(filter(None, (edit.link, edit.path)))
    try:
        found = contents.read_file(edit.folder, edit.path)
        if found is not None and locked is not None:
            found = take_recorded_bits({path: found}, {path: locked})[path]
        return _FileComparison(path, locked, found)
    except PathTraversalError:  # somebody put a link there: no install holds one
        return _FileComparison(path, locked, f"{path} is a link, not a file")
    except ResourceError as error:
        return _FileComparison(path, locked, f"{path} cannot be compared: {error.message}")


class _BytesByHash:
    """The bytes of files from all sides, by their SHA-256; files that are too large to show are left out."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._by_hash: dict[str, bytes] = {}

    def add(self, content: bytes, *, executable: bool) -> FileHash:
        """Keep the bytes of a file; returns their hash."""
        file = hash_bytes(content, executable=executable)
        if file.size <= self._limits.max_resource_bytes:
            self._by_hash[file.sha256] = content
        return file

    def read_file(self, folder: str, path: str) -> FileHash | None:
        """Keep the bytes of a file on the disk; returns their hash, or ``None`` without a file.

        The hash of a file that is too large has only its size. Raises ``ResourceError`` for an entry that is not a
        file, or cannot be read.
        """
        max_bytes = self._limits.max_resource_bytes
        try:
            with OpenFile(folder, tuple(path.split("/"))) as file:
                if file.info.st_size > max_bytes:
                    return FileHash(file.info.st_size, is_executable(file), "")
                return self.add(file.read_all(max_bytes), executable=is_executable(file))
        except ResourceNotFoundError:
            return None

    def has_bytes(self, file: FileHash | None) -> bool:
        """Whether the bytes of a file are known, or not needed, because the file is missing or too large to show."""
        return file is None or file.size > self._limits.max_resource_bytes or file.sha256 in self._by_hash

    def diff_rows(self, rows: Iterable[_FileComparison]) -> Iterator[str]:
        """Yield the unified diff from the locked files to another side."""
        diffs = FileDiffs(self._limits)
        for path, locked, other in rows:
            if isinstance(other, str):
                yield f"{other}\n"
            elif not self.has_bytes(locked):
                yield f"{path} differs; what was locked is not at hand, so its lines are not shown\n"
            else:
                yield from diffs.diff_file(path, self._diff_side(locked), self._diff_side(other))

    def _diff_side(self, file: FileHash | None) -> tuple[bytes, bool] | None:
        """One side of a diff; ``None`` without a file."""
        # A file that is too large is replaced by too many zeros, so that the diff only names it.
        if file is None:
            return None
        content = self._by_hash.get(file.sha256)
        return bytes(self._limits.max_resource_bytes + 1) if content is None else content, file.executable


class _EntrySource:
    """The source of an entry: what it has now, and what it had when it was locked."""

    def __init__(self, scope: InstallScope, entry: LockEntry, access: SourceAccess, contents: _BytesByHash) -> None:
        self._scope, self._entry, self._access, self._contents = scope, entry, access, contents

    def fetch_newest(self) -> _Upstream:
        """Fetch what the source has now; an entry without a source gives an empty result."""
        if is_sourceless(self._entry):
            return _Upstream(is_unreachable=True)
        try:
            commit, files = self._fetch(self._entry.ref)
        except SkillError as error:
            # A server that answers may still have the locked commit, although the version is gone.
            is_away = isinstance(error, GitError | FetchError) and error.code not in {"unknown-version", "unknown-tag"}
            return _Upstream(why_unasked=error.message, is_unreachable=is_away)
        return _Upstream(commit or digest_tree(files), files)

    def fetch_locked_files(self, upstream: _Upstream) -> None:
        """Fetch the locked commit for its bytes, unless the source has no other commit or does not answer."""
        commit = self._entry.commit
        if commit and commit != upstream.version and not upstream.is_unreachable:
            with suppress(SkillError):  # each file whose bytes are unknown says so in its own row
                self._fetch(commit)

    def _fetch(self, ref: str) -> tuple[str, dict[str, FileHash]]:
        """Return the commit of a version and the hashes of its files, whose bytes are kept."""
        spec = spec_of_entry(self._entry, self._scope, ref=ref)
        with wrap_os_errors(), self._access.open_source(spec) as source_files:
            files = tree_for_entry(self._entry, source_files, spec, self._access.limits).files
            commit = source_files.commit
        return commit, {file.path: self._contents.add(file.content, executable=file.executable) for file in files}

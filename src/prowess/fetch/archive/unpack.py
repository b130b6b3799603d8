"""Unpacks an archive of skills into memory, or refuses it as a whole. Nothing is written to the disk.

An archive is a zip (a ``.skill`` file is one) or a tar, with gzip, zstd or neither; its content decides which.
SKILL.md is at the top, or in the one folder that holds everything. That folder is then left out of the paths.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from prowess.errors import PathTraversalError, SkillValidationError
from prowess.fetch.archive.members import ArchiveMember, RefusedArchiveError
from prowess.fetch.archive.tar import GZIP_MAGIC, ZSTD_MAGIC, is_tar, read_tar
from prowess.fetch.archive.zip import ZIP_MAGIC, read_zip
from prowess.files.write import NewFile
from prowess.limits import DEFAULT_LIMITS
from prowess.names import SKILL_FILE, find_git_repository, fold_path, split_relative_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prowess.limits import Limits

    ArrangeFiles = Callable[[dict[str, NewFile]], tuple[NewFile, ...]]

_WHITEOUT = ".wh."
"""How the name of a file begins that deletes another one of the layers before."""
_MACOS_FOLDER = "__MACOSX"
"""A folder that the archiver of macOS adds to every archive; it holds attributes of files, never content."""
_GIT_CODE = "git-in-skill"
_KEPT_CODES = {_GIT_CODE: _GIT_CODE}
"""Why a name is refused: the reasons that keep their own code. Any other becomes ``bad-archive``."""
_ARCHIVE_SUFFIXES = (".zip", ".skill", ".tar", ".tgz", ".gz", ".bz2", ".tbz2", ".xz", ".txz", ".zst", ".7z", ".rar")


def unpack(data: bytes, *, name: str = "", limits: Limits = DEFAULT_LIMITS) -> tuple[NewFile, ...]:
    """Return the files of an archive with one skill, SKILL.md on top, in byte order of their paths.

    ``name`` names the archive in messages. Raises ``SkillValidationError`` when SKILL.md is missing, for anything but
    regular files and folders whose names are safe and distinct on every platform, for anything that two readers could
    understand differently, and for more than the limits allow.
    """
    return _unpack_files(data, name, limits, _strip_to_skill)


def unpack_tree(data: bytes, *, name: str = "", limits: Limits = DEFAULT_LIMITS) -> tuple[NewFile, ...]:
    """Return the files of an archive with any number of skills, such as that of a repository.

    One folder around everything is left out of the paths. Raises ``SkillValidationError`` as ``unpack`` does, except
    that SKILL.md need not be on top, and that other archives may be among the files.
    """
    return _unpack_files(data, name, limits, _strip_outer_folder)


def unpack_layers(layers: Iterable[tuple[bytes, str]], *, name: str = "", limits: Limits) -> tuple[NewFile, ...]:
    """Return the files of the layers of an image or an artifact, all together, in byte order of their paths.

    A layer is its bytes and the path of the one file that it is, or ``""`` for a tar. Raises ``SkillValidationError``
    as ``unpack_tree`` does, for a path that two layers have, and for a layer that deletes files of the one before.
    """
    try:
        tree = _ArchiveTree(limits, nested=True)
        for member in _read_layers(layers, limits):
            tree.add(member)
        _refuse_repository(tree.files)
    except RefusedArchiveError as error:
        raise SkillValidationError(f"the content is refused: it {error.why}", name, error.code) from None
    return _sort_files(tree.files)


def _read_layers(layers: Iterable[tuple[bytes, str]], limits: Limits) -> Iterator[ArchiveMember]:
    left = limits.max_unpacked_bytes
    for data, path in layers:
        within = replace(limits, max_unpacked_bytes=left)
        for member in [ArchiveMember(path, data, data.startswith(b"#!"))] if path else read_tar(data, within):
            left -= len(member.content)
            if left < 0:
                why = f"unpacks to more than max_unpacked_bytes ({limits.max_unpacked_bytes})"
                raise RefusedArchiveError(why, "archive-too-large")
            if member.name.rpartition("/")[2].startswith(_WHITEOUT):
                raise RefusedArchiveError(f"deletes files of another layer: {member.name[:80]!r}")
            yield member


def _unpack_files(data: bytes, name: str, limits: Limits, arrange: ArrangeFiles) -> tuple[NewFile, ...]:
    try:
        tree = _ArchiveTree(limits, nested=arrange is _strip_outer_folder)
        for member in _read_members(data, limits):
            tree.add(member)
        _refuse_repository(tree.files)
        return arrange(tree.files)
    except RefusedArchiveError as error:
        raise SkillValidationError(f"the archive is refused: it {error.why}", name, error.code) from None


def _refuse_repository(files: dict[str, NewFile]) -> None:
    folder = find_git_repository(files)
    if folder is not None:
        raise RefusedArchiveError(f"has a folder that git takes for a repository: {folder[:80]!r}", _GIT_CODE)


def _read_members(data: bytes, limits: Limits) -> Iterator[ArchiveMember]:
    if data.startswith(ZIP_MAGIC):
        return read_zip(data, limits)
    if data.startswith((GZIP_MAGIC, ZSTD_MAGIC)) or is_tar(data):
        return read_tar(data, limits)
    raise RefusedArchiveError("is neither a zip nor a tar with files in it")


class _ArchiveTree:
    """The files of an archive by path. Two names that some platform takes for one are refused."""

    def __init__(self, limits: Limits, *, nested: bool = False) -> None:
        self._limits = limits
        self._nested = nested  # whether other archives may be among the files
        self._spelled: dict[str, str] = {}
        self._folders: set[str] = set()
        self._members = 0
        self.files: dict[str, NewFile] = {}

    def add(self, member: ArchiveMember) -> None:
        """Add one member; raises ``RefusedArchiveError`` when it is not accepted."""
        self._members += 1
        if self._members > self._limits.max_archive_entries:
            why = f"has more than max_archive_entries ({self._limits.max_archive_entries}) entries"
            raise RefusedArchiveError(why, "archive-too-large")
        if member.folder and member.name.rstrip("/") == ".":  # "tar -c ." writes the top folder too
            return
        parts = self._split_name(member.name)
        self._claim_folders(parts if member.folder else parts[:-1])
        if not member.folder:
            self._claim_file("/".join(parts), member)

    def _split_name(self, name: str) -> tuple[str, ...]:
        try:
            parts = split_relative_path(name)
        except PathTraversalError as error:
            why = f"has a member that cannot be accepted: {error.message}"
            raise RefusedArchiveError(why, _KEPT_CODES.get(error.code, "bad-archive")) from None
        # What is deeper would not be listed among the files of the skill.
        if len(parts) > self._limits.max_depth_per_skill:
            raise RefusedArchiveError(f"has folders more than {self._limits.max_depth_per_skill} deep")
        return parts

    def _claim_folders(self, parts: tuple[str, ...]) -> None:
        for depth in range(1, len(parts) + 1):
            path = "/".join(parts[:depth])
            self._check_spelling(path)
            if path in self.files:
                raise RefusedArchiveError(f"has both a file and a folder {path[:80]!r}")
            self._folders.add(path)

    def _claim_file(self, path: str, member: ArchiveMember) -> None:
        self._check_spelling(path)
        if path in self.files or path in self._folders:
            raise RefusedArchiveError(f"has {path[:80]!r} twice")
        # What is packed twice is seen by nobody who looks at the files before the install.
        if path.lower().endswith(_ARCHIVE_SUFFIXES) and not self._nested:
            raise RefusedArchiveError(f"holds another archive, {path[:80]!r}")
        self.files[path] = NewFile(path, member.content, member.executable)

    def _check_spelling(self, path: str) -> None:
        first = self._spelled.setdefault(fold_path(path), path)
        if first != path:
            raise RefusedArchiveError(f"has {path[:80]!r} and {first[:80]!r}, which are one name on some systems")


def _strip_to_skill(files: dict[str, NewFile]) -> tuple[NewFile, ...]:
    """Return the files without a folder around everything; raises ``RefusedArchiveError`` without SKILL.md on top."""
    kept = _drop_macos_folder(files)
    if SKILL_FILE not in kept:
        tops = {path.partition("/")[0] for path in kept}
        top = next(iter(tops), "")
        if len(tops) != 1 or f"{top}/{SKILL_FILE}" not in kept:
            raise RefusedArchiveError(
                f"has no {SKILL_FILE}, on top or in one folder around everything", "missing-skill-md"
            )
        kept = {path[len(top) + 1 :]: file for path, file in kept.items()}
    return _sort_files(kept)


def _strip_outer_folder(files: dict[str, NewFile]) -> tuple[NewFile, ...]:
    """Return the files without the folder around everything, where there is one."""
    kept = _drop_macos_folder(files)
    tops = {path.partition("/")[0] for path in kept}
    if len(tops) == 1 and all("/" in path for path in kept):
        kept = {path.partition("/")[2]: file for path, file in kept.items()}
    return _sort_files(kept)


def _drop_macos_folder(files: dict[str, NewFile]) -> dict[str, NewFile]:
    return {path: file for path, file in files.items() if path.partition("/")[0] != _MACOS_FOLDER}


def _sort_files(files: dict[str, NewFile]) -> tuple[NewFile, ...]:
    ordered = sorted(files.items(), key=lambda pair: pair[0].encode())
    return tuple(file._replace(path=path) for path, file in ordered)

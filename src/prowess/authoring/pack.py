"""Packs a skill into one archive, and unpacks it; equal content gives equal bytes, whenever and wherever it is packed.

A ``.skill`` is a zip with everything in one folder that is named like the skill; a ``.zip`` or ``.tar.gz`` has
SKILL.md at the top. Names are in byte order, times and owners are left out, modes are 0755 or 0644. (zlib compresses:
another build of zlib may pack equal content into other bytes.)
"""

from __future__ import annotations

import hashlib
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from prowess.authoring.new import place_tree, refuse_existing
from prowess.errors import PathTraversalError, ResourceError, SkillValidationError, SourceError, as_load_error
from prowess.fetch.archive.tar import compress_gzip, make_tar
from prowess.files.read import OpenFile
from prowess.files.tree import find_guesses, is_executable
from prowess.files.write import NewFile, make_folders, write_atomic
from prowess.limits import DEFAULT_LIMITS
from prowess.names import EVALS_FOLDER, SKILL_FILE, split_relative_path
from prowess.progress_steps import report_steps
from prowess.skills.parse import parse_skill, read_metadata, validate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.errors import Issue
    from prowess.limits import Limits
    from prowess.skills.skill import Skill

ArchiveFormat = Literal["skill", "zip", "tar.gz"]
ARCHIVE_FORMATS: tuple[ArchiveFormat, ...] = ("skill", "zip", "tar.gz")

_LEFT_OUT_FOLDERS = frozenset(("__pycache__", "node_modules", "__pypackages__", ".venv"))
_LEFT_OUT_FILES = frozenset((".DS_Store", "Thumbs.db"))
_LEFT_OUT_SUFFIXES = (".pyc", ".pyo", "~", ".swp")
_LEFT_OUT_TOP_FOLDERS = frozenset((EVALS_FOLDER,))
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can hold
_COMPRESSION_LEVEL = 9
_UNIX_SYSTEM = 3


@dataclass(frozen=True, slots=True)
class Packed:
    """A packed skill: its name, the archive, the files in it, and the files that were left out."""

    name: str
    data: bytes
    files: tuple[str, ...]
    left_out: tuple[str, ...]
    issues: tuple[Issue, ...] = ()
    """What was noticed: files that count as executable by a guess."""

    @property
    def digest(self) -> str:
        """The SHA-256 of the archive, in hexadecimal."""
        return hashlib.sha256(self.data).hexdigest()


def pack(path: str | os.PathLike[str], *, form: ArchiveFormat = "skill", limits: Limits = DEFAULT_LIMITS) -> Packed:
    """Return the skill in a folder as an archive, without caches, backup files of editors and a top-level ``evals/``.

    Raises ``SkillLoadError`` with every error that ``validate`` finds: a skill that others get should be right.
    Raises ``SkillValidationError`` for a file that cannot be packed, such as a link.
    """
    if form not in ARCHIVE_FORMATS:
        raise SourceError(f"unknown format {form!r}; one of {', '.join(ARCHIVE_FORMATS)}")
    errors = [issue for issue in validate(path, limits=limits) if issue.severity == "error"]
    if errors:
        raise as_load_error(errors)
    skill = read_metadata(path, limits=limits)
    listed = skill.files()
    for issue in listed.issues:
        raise SkillValidationError(f"cannot be packed: {issue.field} {issue.message}", skill.location, issue.code)
    kept = [name for name in listed if _is_for_archive(name)]
    for name in kept:
        _refuse_unportable_name(name, skill)
    files = _read_files(skill, kept, limits)
    data = (
        compress_gzip(make_tar(files))
        if form == "tar.gz"
        else _make_zip(files, f"{skill.name}/" if form == "skill" else "")
    )
    left_out = tuple(name for name in listed if not _is_for_archive(name))
    guesses = find_guesses((file.path for file in files if file.executable), skill.real_folder)
    return Packed(skill.name, data, tuple(kept), left_out, guesses)


def _refuse_unportable_name(name: str, skill: Skill) -> None:
    """Raise ``SkillValidationError`` for a name that some platform does not allow, where it could not be unpacked."""
    try:
        split_relative_path(name)
    except PathTraversalError as error:
        raise SkillValidationError(f"cannot be packed: {error.message}", skill.location, "bad-file-name") from None


def _is_for_archive(name: str) -> bool:
    *folders, last = name.split("/")
    if folders and folders[0] in _LEFT_OUT_TOP_FOLDERS:
        return False
    return (
        not _LEFT_OUT_FOLDERS.intersection(folders)
        and last not in _LEFT_OUT_FILES
        and not last.endswith(_LEFT_OUT_SUFFIXES)
    )


def _read_files(skill: Skill, names: Sequence[str], limits: Limits) -> list[NewFile]:
    # The bound of unpacking: an archive that nobody could unpack is of no use.
    left = limits.max_unpacked_bytes
    files: list[NewFile] = []
    for name in report_steps(names, str):
        try:
            with OpenFile(skill.base, (*skill.parts, *name.split("/"))) as file:
                files.append(NewFile(name, file.read_all(left), is_executable(file)))
        except ResourceError as error:
            raise SkillValidationError(f"cannot be packed: {error.message}", skill.location, error.code) from None
        left -= len(files[-1].content)
    return files


def _make_zip(files: list[NewFile], prefix: str) -> bytes:
    import zipfile

    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=_COMPRESSION_LEVEL) as archive:
        for file in files:
            info = zipfile.ZipInfo(prefix + file.path, _EPOCH)
            info.create_system = _UNIX_SYSTEM  # the default depends on the platform that packs
            info.external_attr = (0o100755 if file.executable else 0o100644) << 16
            archive.writestr(info, file.content, zipfile.ZIP_DEFLATED, _COMPRESSION_LEVEL)
    return made.getvalue()


def write_packed(packed: Packed, path: str | os.PathLike[str], *, replace: bool = False) -> None:
    """Write an archive; raises ``SourceError`` when the file exists, unless ``replace``, or cannot be written."""
    target = os.path.abspath(os.fspath(path))
    if not replace:
        refuse_existing(target, "would-replace")
    try:
        make_folders(os.path.dirname(target))
        write_atomic(target, packed.data, mode=0o644)
    except OSError as error:
        raise SourceError(f"cannot write the archive: {error.strerror}", target, "unwritable") from None


def unpack_into(
    archive: str | os.PathLike[str],
    folder: str | os.PathLike[str] = ".",
    *,
    replace: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Path:
    """Unpack the skill of an archive into a new folder in ``folder``, named like the skill; return that folder.

    The folder appears whole or not at all. Raises ``SkillValidationError`` for an archive that holds anything but one
    skill and regular files. Raises ``SourceError`` when the folder exists; with ``replace`` only when what exists is
    not a skill's folder.
    """
    from prowess.fetch.archive.unpack import unpack

    source = os.path.abspath(os.fspath(archive))
    files = unpack(_read_archive(source, limits), name=source, limits=limits)
    skill_file = next(file.content for file in files if file.path == SKILL_FILE)
    name = parse_skill(skill_file, mode="strict", check_dir=False, limits=limits).skill.name
    target = os.path.join(os.path.abspath(os.fspath(folder)), name)
    if not replace:
        refuse_existing(target, "would-replace")
    place_tree(target, list(files), replaces=replace)
    return Path(target)


def _read_archive(path: str, limits: Limits) -> bytes:
    folder, name = os.path.split(path)
    try:
        with OpenFile(folder, (name,)) as file:
            return file.read_all(limits.max_download_bytes)
    except ResourceError as error:
        raise SourceError(f"cannot read the archive: {error.message}", path, error.code) from None

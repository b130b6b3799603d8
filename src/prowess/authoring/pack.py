"""A skill as one file: the same bytes for the same content, whenever and wherever it is packed.

A ``.skill`` is a zip in which everything lies in one folder named like the skill; a ``.zip`` or ``.tar.gz`` has
SKILL.md on top. Names are in byte order, times and owners are left out, modes are 0755 or 0644. (Compression is zlib's:
another build of zlib may pack the same content into other bytes.)
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from prowess.authoring.new import place_tree, refuse_existing
from prowess.errors import PathTraversalError, ResourceError, SkillValidationError, SourceError, as_load_error
from prowess.files.read import OpenFile
from prowess.files.tree import is_executable
from prowess.files.write import NewFile, make_folders, write_atomic
from prowess.limits import DEFAULT_LIMITS
from prowess.names import SKILL_FILE, split_relative_path
from prowess.progress_steps import report_steps
from prowess.skills.parse import parse_skill, read_metadata, validate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from prowess.limits import Limits
    from prowess.skills.skill import Skill

ArchiveFormat = Literal["skill", "zip", "tar.gz"]
ARCHIVE_FORMATS: tuple[ArchiveFormat, ...] = ("skill", "zip", "tar.gz")

_LEFT_OUT_FOLDERS = frozenset(("__pycache__", "node_modules", "__pypackages__", ".venv"))
_LEFT_OUT_FILES = frozenset((".DS_Store", "Thumbs.db"))
_LEFT_OUT_SUFFIXES = (".pyc", ".pyo", "~", ".swp")
_LEFT_OUT_TOP_FOLDERS = frozenset(("evals",))
_EPOCH = (1980, 1, 1, 0, 0, 0)
_COMPRESSION_LEVEL = 9
_UNIX_SYSTEM = 3


@dataclass(frozen=True, slots=True)
class Packed:
    """A skill that was packed: its name, the archive, what is in it, and what was left out."""

    name: str
    data: bytes
    files: tuple[str, ...]
    left_out: tuple[str, ...]

    @property
    def digest(self) -> str:
        """The SHA-256 of the archive, in hexadecimal."""
        import hashlib  # noqa: PLC0415 - only when somebody wants to know

        return hashlib.sha256(self.data).hexdigest()


def pack(path: str | os.PathLike[str], *, form: ArchiveFormat = "skill", limits: Limits = DEFAULT_LIMITS) -> Packed:
    """The skill in a folder as an archive. Caches, editors' leavings and ``evals/`` on top are left out.

    Raises ``SkillLoadError`` with every error that ``validate`` finds: what is passed on should be right.
    """
    if form not in ARCHIVE_FORMATS:
        raise SourceError(f"unknown format {form!r}; one of {', '.join(ARCHIVE_FORMATS)}")
    errors = [issue for issue in validate(path, limits=limits) if issue.severity == "error"]
    if errors:
        raise as_load_error(errors)
    skill = read_metadata(path, limits=limits)
    found = skill.files()
    for issue in found.issues:
        raise SkillValidationError(f"cannot be packed: {issue.field} {issue.message}", skill.location, issue.code)
    kept = [name for name in found if _is_for_archive(name)]
    for name in kept:
        _refuse_odd_name(name, skill)
    files = _read_files(skill, kept, limits)
    data = _make_tar_gz(files) if form == "tar.gz" else _make_zip(files, f"{skill.name}/" if form == "skill" else "")
    return Packed(skill.name, data, tuple(kept), tuple(name for name in found if name not in set(kept)))


def _refuse_odd_name(name: str, skill: Skill) -> None:
    """Raise for a name that no platform's rules allow everywhere: what is packed must unpack."""
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
    import zipfile  # noqa: PLC0415 - only when something is packed

    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=_COMPRESSION_LEVEL) as archive:
        for file in files:
            info = zipfile.ZipInfo(prefix + file.path, _EPOCH)
            info.create_system = _UNIX_SYSTEM
            info.external_attr = (0o100755 if file.executable else 0o100644) << 16
            archive.writestr(info, file.content, zipfile.ZIP_DEFLATED, _COMPRESSION_LEVEL)
    return made.getvalue()


def _make_tar_gz(files: list[NewFile]) -> bytes:
    import gzip  # noqa: PLC0415 - only when something is packed
    import tarfile  # noqa: PLC0415

    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for file in files:
            info = tarfile.TarInfo(file.path)
            info.size = len(file.content)
            info.mode = 0o755 if file.executable else 0o644
            archive.addfile(info, io.BytesIO(file.content))
    return gzip.compress(made.getvalue(), _COMPRESSION_LEVEL, mtime=0)


def write_packed(packed: Packed, path: str | os.PathLike[str], *, replace: bool = False) -> None:
    """Write an archive; ``SourceError`` when there is a file already, unless ``replace``."""
    where = os.path.abspath(os.fspath(path))
    if not replace:
        refuse_existing(where, "would-replace")
    try:
        make_folders(os.path.dirname(where))
        write_atomic(where, packed.data, mode=0o644)
    except OSError as error:
        raise SourceError(f"cannot write the archive: {error.strerror}", where, "unwritable") from None


def unpack_into(
    archive: str | os.PathLike[str],
    folder: str | os.PathLike[str] = ".",
    *,
    replace: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Path:
    """The skill of an archive as a new folder, named like the skill, in ``folder``; whole, or not at all.

    Raises ``SkillValidationError`` for an archive that holds anything but one skill and regular files, and
    ``SourceError`` when there is something already; with ``replace`` only when that is no skill's folder.
    """
    from pathlib import Path  # noqa: PLC0415 - nothing else here needs it

    from prowess.fetch.archive.unpack import unpack  # noqa: PLC0415 - loads the readers of archives

    where = os.path.abspath(os.fspath(archive))
    files = unpack(_read_archive(where, limits), name=where, limits=limits)
    own = next(file.content for file in files if file.path == SKILL_FILE)
    name = parse_skill(own, mode="strict", check_dir=False, limits=limits).skill.name
    target = os.path.join(os.path.abspath(os.fspath(folder)), name)
    if not replace:
        refuse_existing(target, "would-replace")
    place_tree(target, list(files), replaces=replace)
    return Path(target)


def _read_archive(where: str, limits: Limits) -> bytes:
    folder, name = os.path.split(where)
    try:
        with OpenFile(folder, (name,)) as file:
            return file.read_all(limits.max_download_bytes)
    except ResourceError as error:
        raise SourceError(f"cannot read the archive: {error.message}", where, error.code) from None

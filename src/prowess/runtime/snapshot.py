"""A private copy of a skill, hashed as it is copied: the bytes that are used are the bytes that were hashed."""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import NotTrustedError, ResourceError, ResourceTooLargeError, SkillValidationError
from prowess.files.reading import OpenFile
from prowess.files.temporary import temporary_folder
from prowess.files.writing import NewFile, write_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prowess.library.skill import Skill


class Snapshot(NamedTuple):
    """A copy of a skill in a folder that only its owner can enter."""

    folder: str
    digest: str
    files: tuple[str, ...]
    skill: Skill
    """The skill as the copy has it."""


@contextmanager
def snapshot(skill: Skill) -> Iterator[Snapshot]:
    """Copy a skill, hash the copy; it is deleted at the end of the block.

    Raises ``NotTrustedError`` for a skill without a folder of its own, ``SkillValidationError`` as ``digest`` does.
    """
    if not skill.is_local:
        message = f"skill {skill.name!r} is not a folder on this machine: nothing in it ever runs"
        raise NotTrustedError(message, skill.location, "not-local")
    with temporary_folder() as folder:
        paths = _copied_paths(skill)
        total = hashlib.sha256()
        write_tree(folder, _hashed(skill, paths, total), read_only=True)
        yield Snapshot(folder, total.hexdigest(), paths, skill.copied_to(folder))


def _hashed(skill: Skill, paths: Iterable[str], total: hashlib._Hash) -> Iterator[NewFile]:
    left = skill.limits.max_digest_bytes
    for path in paths:
        file = _read(skill, path, left)
        left -= len(file.content)
        total.update(_row(file))
        yield file


def _copied_paths(skill: Skill) -> tuple[str, ...]:
    found = skill.files()
    for issue in found.issues:
        raise SkillValidationError(f"cannot be copied: {issue.field} {issue.message}", skill.location, issue.code)
    return tuple(found)


def _read(skill: Skill, path: str, most: int) -> NewFile:
    try:
        with OpenFile(skill.base, (*skill.parts, *path.split("/"))) as file:
            return NewFile(path, file.read_all(most), bool(file.info.st_mode & 0o100))
    except ResourceTooLargeError:
        message = f"has more than {skill.limits.max_digest_bytes} bytes"
        raise SkillValidationError(message, skill.location, "too-many-bytes") from None
    except ResourceError as error:
        raise SkillValidationError(error.message, skill.location, error.code) from None


def _row(file: NewFile) -> bytes:
    content = hashlib.sha256(file.content).hexdigest()
    mark = b"x" if file.executable else b"-"
    return b"%s\0%s\0%d\0%s\n" % (os.fsencode(file.path), mark, len(file.content), content.encode())

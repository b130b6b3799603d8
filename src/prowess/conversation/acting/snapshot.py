"""Snapshots: private copies of skills, hashed while they are copied, so what runs is what was hashed."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import NotTrustedError, ResourceError, ResourceTooLargeError, SkillValidationError
from prowess.files.delete import temporary_folder
from prowess.files.read import OpenFile
from prowess.files.tree import digest_tree, hash_bytes, is_executable
from prowess.files.write import NewFile, write_tree
from prowess.skills.inventory import inventory
from prowess.thread_work import raise_if_cancelled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prowess.files.tree import FileHash
    from prowess.skills.inventory import Inventory
    from prowess.skills.skill import Skill


class Snapshot(NamedTuple):
    """A copy of a skill in a folder that only its owner can enter."""

    folder: str
    digest: str
    files: tuple[str, ...]
    skill: Skill
    """The skill, read from the copy."""


@contextmanager
def take_snapshot(skill: Skill) -> Iterator[Snapshot]:
    """Yield a snapshot of a skill, which is deleted at the end of the block.

    Raises ``NotTrustedError`` for a skill that is not a folder on this machine, ``SkillValidationError`` for one that
    cannot be hashed.
    """
    if not skill.is_local:
        message = f"skill {skill.name!r} is not a folder on this machine: nothing in it ever runs"
        raise NotTrustedError(message, skill.location, "not-local")
    # Whoever can write to the skill could change a file between the check of its digest and its use. The copy is read
    # once, hashed from the bytes that are written, and only its owner can enter the folder.
    with temporary_folder() as folder:
        files = skill.files()
        # A file that was left out of the copy would be left out of the digest too: one issue is one too many.
        for issue in files.issues:
            raise SkillValidationError(f"cannot be copied: {issue.field} {issue.message}", skill.location, issue.code)
        paths = tuple(files)
        hashes: dict[str, FileHash] = {}
        write_tree(folder, _read_and_hash(skill, paths, hashes), read_only=True)
        yield Snapshot(folder, digest_tree(hashes), paths, skill.with_folder(folder))


def describe_state(skill: Skill) -> tuple[str, Inventory]:
    """Return the digest of a skill and its inventory, both of the same bytes, for a person who decides on them.

    Raises as ``take_snapshot`` does.
    """
    with take_snapshot(skill) as snapshot:
        return snapshot.digest, inventory(snapshot.skill)


def _read_and_hash(skill: Skill, paths: Iterable[str], hashes: dict[str, FileHash]) -> Iterator[NewFile]:
    """Yield the files of a skill one by one; the hash of each is put into ``hashes`` before."""
    bytes_left = skill.limits.max_digest_bytes
    for path in paths:
        raise_if_cancelled()  # a large skill takes seconds, and the host may have cancelled the call
        file = _read_file(skill, path, bytes_left)
        bytes_left -= len(file.content)
        hashes[path] = hash_bytes(file.content, executable=file.executable)
        yield file


def _read_file(skill: Skill, path: str, max_bytes: int) -> NewFile:
    try:
        with OpenFile(skill.base, (*skill.parts, *path.split("/"))) as file:
            return NewFile(path, file.read_all(max_bytes), is_executable(file))
    except ResourceTooLargeError:
        raise SkillValidationError(
            f"has more than {skill.limits.max_digest_bytes} bytes", skill.location, "too-many-bytes"
        ) from None
    except ResourceError as error:
        raise SkillValidationError(error.message, skill.location, error.code) from None

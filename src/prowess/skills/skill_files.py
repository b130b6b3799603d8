"""The files of a skill that has no folder here: what a source gives in place of one, read under the same rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from prowess.errors import Issue, ResourceNotFoundError, SkillValidationError
from prowess.files.read import too_large_error
from prowess.files.tree import digest_tree, hash_bytes
from prowess.model import FileList, Resources
from prowess.names import split_resource_path
from prowess.skills.resources import decode_text, find_readable, group_resources, truncate_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.files.tree import FileHash
    from prowess.files.write import NewFile
    from prowess.limits import Limits
    from prowess.spec.frontmatter.fields import Frontmatter

SKILL_FILE = "SKILL.md"


class SkillFiles(Protocol):
    """Where a skill's files are instead of in a folder. Paths are relative, with ``/``; SKILL.md is among them.

    Whatever cannot be had raises ``FetchError``; bytes that are not what was announced are never given.
    """

    @property
    def location(self) -> str:
        """Where its SKILL.md is, for people and models."""
        ...

    @property
    def state(self) -> str:
        """Differs when the source announces other content; known without fetching."""
        ...

    def known_files(self) -> tuple[str, ...] | None:
        """Its files as far as they are known without fetching; ``None``: only fetching tells."""
        ...

    def files(self) -> tuple[str, ...]:
        """Its files, fetched if that is what it takes to know."""
        ...

    def read(self, path: str) -> bytes:
        """The bytes of one of its files."""
        ...

    def read_all(self) -> Iterable[NewFile]:
        """All its files with their bytes."""
        ...

    def issues(self) -> tuple[Issue, ...]:
        """What was noticed while its files were fetched."""
        ...


class FilePin(Protocol):
    """What a lock file says of the files of one skill: each read is compared with it."""

    def check_tree(self, folder: str, location: str, limits: Limits) -> None:
        """Raise ``SkillValidationError`` unless the whole folder is what the lock file says."""
        ...

    def check_instructions(self, file: str, data: bytes, location: str) -> None:
        """Raise ``SkillValidationError`` unless these are the bytes of the SKILL.md that the lock file means."""
        ...

    def check_resource(self, path: str, data: bytes) -> None:
        """Raise ``ResourceError`` unless these are the bytes of the file that the lock file means."""
        ...


@runtime_checkable
class ServerFiles(Protocol):
    """Contents whose source proves every field itself, names the skill, and is to be named to models."""

    @property
    def source_label(self) -> str:
        """Who says what is in it."""
        ...

    @property
    def server(self) -> object:
        """What it is read from, to be compared."""
        ...

    def admit_fields(self, front: Frontmatter, name: str) -> Frontmatter:
        """The fields that count, under the name that the skill goes by."""
        ...

    def renew(self) -> SkillFiles:
        """The contents to load from: itself, or others where the source has changed since; raises ``FetchError``."""
        ...

    def find_changes(self) -> str:
        """Ask the source what differs now, in one line; ``""``: nothing does. Raises ``FetchError``."""
        ...


def get_source_label(contents: object) -> str:
    """Whom to name to a model that reads it; ``""``: nobody."""
    # Asking a protocol costs about as much as reading a SKILL.md, and most skills lie in folders: they have none.
    return contents.source_label if contents is not None and isinstance(contents, ServerFiles) else ""


def get_server(contents: object) -> object:
    """What a model is told by name; ``None``: nobody."""
    return contents.server if isinstance(contents, ServerFiles) else None


def admit_fields(contents: object, front: Frontmatter, name: str) -> Frontmatter:
    """The fields of a fetched file that count, under the name that was announced."""
    return contents.admit_fields(front, name) if isinstance(contents, ServerFiles) else front.renamed(name)


def renew(contents: SkillFiles) -> SkillFiles:
    """The contents that a skill is to be loaded from: those of now where its source can tell that they changed."""
    return contents.renew() if isinstance(contents, ServerFiles) else contents


def find_changes(contents: object) -> str:
    """What differs now at a source that can be asked; ``""``: nothing, or it cannot be. Raises ``FetchError``."""
    return contents.find_changes() if contents is not None and isinstance(contents, ServerFiles) else ""


def read_bytes(contents: SkillFiles, path: str, most: int) -> bytes:
    """The bytes of a file; at most ``most``."""
    data = _read_file(contents, path)
    if len(data) > most:
        raise too_large_error(path, len(data), most)
    return data


def read_text(contents: SkillFiles, path: str, most: int, *, truncate: bool) -> str:
    """The text of a file."""
    data = _read_file(contents, path)
    if len(data) <= most:
        return decode_text(data, path)
    if not truncate:
        raise too_large_error(path, len(data), most)
    return truncate_text(data, most, len(data), path)


def _read_file(contents: SkillFiles, path: str) -> bytes:
    wanted = "/".join(split_resource_path(path))
    if wanted not in contents.files():
        raise ResourceNotFoundError(f"no file {wanted!r}", wanted)
    return contents.read(wanted)


def list_files(contents: SkillFiles, limits: Limits) -> FileList:
    """Every file in byte order, hidden ones too. Sources let no ``.git`` in."""
    found = contents.files()
    files = FileList(sorted(found, key=str.encode)[: limits.max_files_per_skill])
    if len(found) > limits.max_files_per_skill:
        message = f"the skill has more than {limits.max_files_per_skill} files; the rest is not listed"
        files.issues = (Issue("too-many-files", "", message, contents.location, 0, "warning"),)
        files.complete = False
    return files


def list_resources(contents: SkillFiles) -> Resources:
    """Names one level deep, as of a folder."""
    return group_resources(contents.files(), SKILL_FILE)


def known_paths(contents: SkillFiles) -> tuple[str, ...]:
    """The paths of the resources as far as they are known without fetching."""
    return group_resources(contents.known_files() or (), SKILL_FILE).paths


def readable_paths(contents: SkillFiles) -> tuple[str, ...]:
    """The paths of every file that may be named to a model, as far as they are known without fetching."""
    return find_readable(sorted(contents.known_files() or ()), SKILL_FILE)


def digest_files(contents: SkillFiles, limits: Limits) -> str:
    """The digest that a folder with these files has."""
    if not list_files(contents, limits).complete:
        message = f"cannot be hashed: it has more than {limits.max_files_per_skill} files"
        raise SkillValidationError(message, contents.location, "too-many-files")
    hashes: dict[str, FileHash] = {}
    left = limits.max_digest_bytes
    for file in contents.read_all():
        left -= len(file.content)
        if left < 0:
            message = f"cannot be hashed within {limits.max_digest_bytes} bytes"
            raise SkillValidationError(message, contents.location, "too-many-bytes")
        hashes[file.path] = hash_bytes(file.content, executable=file.executable)
    return digest_tree(hashes)


def find_differences(front: Frontmatter, name: str, description: str, location: str) -> list[Issue]:
    """How a file differs from what was announced of it."""
    pairs = (("name", front.name, name), ("description", front.description.strip(), description))
    return [
        Issue("differs-from-index", field, "is not what the index says", location, front.lines.get(field, 1), "warning")
        for field, written, announced in pairs
        if written != announced
    ]

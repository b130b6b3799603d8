"""The files of a skill that a source fetches: what each source has to give, and how a skill is read from that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.errors import Issue, ResourceNotFoundError, SkillValidationError
from prowess.files.tree import digest_tree, hash_bytes
from prowess.names import SKILL_FILE, split_resource_path
from prowess.skills.resources import FileList, Resources, find_readable, group_resources
from prowess.skills.skill_files import SkillFiles

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.files.tree import FileHash
    from prowess.files.write import NewFile
    from prowess.format.frontmatter.fields import Frontmatter
    from prowess.limits import Limits


class RemoteFiles(SkillFiles):
    """The base of what sources give. Paths are relative, with ``/``; SKILL.md is among them.

    A source implements ``location``, ``state``, ``limits``, ``known_files``, ``files``, ``read`` and ``read_all``. A
    file that cannot be had raises ``FetchError``; bytes that are not what was announced are never given.
    """

    _hashed: tuple[str, str] | None = None
    """A state, and the digest of the files in that state."""

    # -- what a source gives -----------------------------------------------------------------------------------------

    @property
    def location(self) -> str:
        """The place of the SKILL.md, for people and models."""
        raise NotImplementedError

    @property
    def state(self) -> str:
        """A value that differs when the source announces other content; it is known without fetching."""
        raise NotImplementedError

    @property
    def limits(self) -> Limits:
        """The bounds of the source."""
        raise NotImplementedError

    def known_files(self) -> tuple[str, ...] | None:
        """Return the files as far as they are known without fetching; ``None`` where only fetching shows them."""
        raise NotImplementedError

    def files(self) -> tuple[str, ...]:
        """Return the files, fetched if that is what it takes to know them."""
        raise NotImplementedError

    def read(self, path: str) -> bytes:
        """Return the bytes of one of the files."""
        raise NotImplementedError

    def read_all(self) -> Iterable[NewFile]:
        """Return all files with their bytes."""
        raise NotImplementedError

    # -- what a skill asks -------------------------------------------------------------------------------------------

    def read_skill_file(self, limit: int) -> tuple[bytes, None]:
        return self.read(SKILL_FILE), None

    def find_differences(self, front: Frontmatter, name: str, description: str) -> list[Issue]:
        # A server names its skills itself, so the name in the file need not be the one that was announced.
        announced = {"name": front.name if self.source_label else name, "description": description}
        written = {"name": front.name, "description": front.description.strip()}
        message = "is not what the index says"
        return [
            Issue("differs-from-index", field, message, self.location, front.lines.get(field, 1), "warning")
            for field, value in announced.items()
            if written[field] != value
        ]

    def note_body(self, body: str) -> None:
        beginning = body[: self.limits.max_indexed_chars]
        if beginning != self.fetched_body:
            self.fetched_body = beginning
            SkillFiles.fetch_count += 1

    def list_files(self) -> FileList:
        paths, limit = self.files(), self.limits.max_files_per_skill
        files = FileList(sorted(paths, key=str.encode)[:limit])
        if len(paths) > limit:
            message = f"the skill has more than {limit} files; the rest is not listed"
            files.issues = (Issue("too-many-files", "", message, self.location, 0, "warning"),)
            files.complete = False
        return files

    def list_resources(self) -> Resources:
        return group_resources(self.files(), SKILL_FILE)

    def resource_paths(self) -> tuple[str, ...]:
        return group_resources(self.known_files() or (), SKILL_FILE).paths

    def readable_paths(self) -> tuple[str, ...]:
        return self.resource_paths() or find_readable(sorted(self.known_files() or ()), SKILL_FILE)

    def may_have_files(self) -> bool:
        # Files that nobody knows without fetching may exist: to say no would hide them from the model.
        return self.known_files() is None or bool(self.readable_paths())

    def _read_whole(self, path: str) -> bytes:
        # Only files that the source lists: a path of a model never becomes a part of a URL by itself.
        wanted = "/".join(split_resource_path(path))
        if wanted not in self.files():
            raise ResourceNotFoundError(f"no file {wanted!r}", wanted)
        return self.read(wanted)

    def announced_digest(self) -> str:
        if self._hashed is None or self._hashed[0] != self.state:
            self._hashed = self.state, self.digest()
        return self._hashed[1]

    def digest(self) -> str:
        """Return the digest that a folder with these files has."""
        limits = self.limits
        if not self.list_files().complete:
            message = f"cannot be hashed: it has more than {limits.max_files_per_skill} files"
            raise SkillValidationError(message, self.location, "too-many-files")
        hashes: dict[str, FileHash] = {}
        left = limits.max_digest_bytes
        for file in self.read_all():
            left -= len(file.content)
            if left < 0:  # before the next file is fetched: a source could give files without end
                raise SkillValidationError(
                    f"cannot be hashed within {limits.max_digest_bytes} bytes", self.location, "too-many-bytes"
                )
            hashes[file.path] = hash_bytes(file.content, executable=file.executable)
        return digest_tree(hashes)

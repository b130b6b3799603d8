"""The files of a skill that a source fetches: what each source has to give, and how a skill is read from that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from prowess.errors import Issue, ResourceNotFoundError, SkillValidationError
from prowess.files.tree import digest_tree, hash_bytes
from prowess.model import FileList, Resources
from prowess.names import SKILL_FILE, split_resource_path
from prowess.skills.instructions import LoadedSkill, extract_instructions, parse_document, parse_file
from prowess.skills.resources import find_readable, group_resources
from prowess.skills.skill_files import SkillFiles

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.files.tree import FileHash
    from prowess.files.write import NewFile
    from prowess.format.frontmatter.fields import Frontmatter
    from prowess.skills.skill import Skill


class RemoteFiles(SkillFiles):
    """The base of what sources give. Paths are relative, with ``/``; SKILL.md is among them.

    A source implements ``location``, ``state``, ``known_files``, ``files``, ``read`` and ``read_all``. A file that
    cannot be had raises ``FetchError``; bytes that are not what was announced are never given.
    """

    # -- what a source gives -----------------------------------------------------------------------------------------

    @property
    def location(self) -> str:
        """The place of the SKILL.md, for people and models."""
        raise NotImplementedError

    @property
    def state(self) -> str:
        """A value that differs when the source announces other content; it is known without fetching."""
        raise NotImplementedError

    def known_files(self) -> tuple[str, ...] | None:
        """The files as far as they are known without fetching; ``None`` where only fetching tells."""
        raise NotImplementedError

    def files(self) -> tuple[str, ...]:
        """The files, fetched if that is what it takes to know them."""
        raise NotImplementedError

    def read(self, path: str) -> bytes:
        """The bytes of one of the files."""
        raise NotImplementedError

    def read_all(self) -> Iterable[NewFile]:
        """All files with their bytes."""
        raise NotImplementedError

    def issues(self) -> tuple[Issue, ...]:
        """What was noticed while files were fetched."""
        return ()

    def admit_fields(self, front: Frontmatter, name: str) -> Frontmatter:
        """The fields of a fetched SKILL.md that count, under the name that was announced."""
        return front.renamed(name)

    def renew(self) -> Self:
        """The files to load the skill from: others where the source has changed since. Raises ``FetchError``."""
        return self

    # -- what a skill asks -------------------------------------------------------------------------------------------

    def get_location(self, skill: Skill) -> str:
        return self.location

    def get_state(self, skill: Skill) -> object:
        return self.state

    def load(self, skill: Skill) -> LoadedSkill:
        files = self.renew()  # instructions and files must be of one state, so the skill goes on with these
        return files.load_bytes(skill, files.read(skill.file_name))

    def load_bytes(self, skill: Skill, data: bytes) -> LoadedSkill:
        """The skill as the bytes of its SKILL.md, which were read before, have it."""
        document = parse_file(skill, data)
        # A server names its skills itself, so the name in the file need not be the one that was announced.
        name = document.front.name if self.source_label else skill.name
        differing = find_differences(document.front, name, skill.description, skill.location)
        fresh = skill.with_fetched_head(
            self.admit_fields(document.front, skill.name),
            document.body_offset,
            (*document.issues, *differing, *self.issues()),
            self,
        )
        loaded = LoadedSkill(fresh, extract_instructions(skill, data, document.body_offset))
        self._note_body(skill, loaded.instructions)
        return loaded

    def _note_body(self, skill: Skill, text: str) -> None:
        beginning = text[: skill.limits.max_indexed_chars]
        if beginning != self.fetched_body:
            self.fetched_body = beginning
            SkillFiles.fetch_count += 1

    def _read_body_bytes(self, skill: Skill, limit: int) -> tuple[bytes, int]:
        data = self.read(skill.file_name)
        offset = parse_document(skill, data).body_offset
        self._note_body(skill, data[offset:].decode("utf-8", "replace"))
        return data[offset:], offset

    def list_files(self, skill: Skill) -> FileList:
        paths, limit = self.files(), skill.limits.max_files_per_skill
        files = FileList(sorted(paths, key=str.encode)[:limit])
        if len(paths) > limit:
            message = f"the skill has more than {limit} files; the rest is not listed"
            files.issues = (Issue("too-many-files", "", message, self.location, 0, "warning"),)
            files.complete = False
        return files

    def list_resources(self, skill: Skill) -> Resources:
        return group_resources(self.files(), SKILL_FILE)

    def resource_paths(self, skill: Skill) -> tuple[str, ...]:
        return group_resources(self.known_files() or (), SKILL_FILE).paths

    def readable_paths(self, skill: Skill) -> tuple[str, ...]:
        return self.resource_paths(skill) or find_readable(sorted(self.known_files() or ()), SKILL_FILE)

    def may_have_files(self, skill: Skill) -> bool:
        # Files that nobody knows without fetching may exist: to say no would hide them from the model.
        return self.known_files() is None or bool(self.readable_paths(skill))

    def _read_whole(self, skill: Skill, path: str) -> bytes:
        # Only files that the source lists: a path of a model never becomes a part of a URL by itself.
        wanted = "/".join(split_resource_path(path))
        if wanted not in self.files():
            raise ResourceNotFoundError(f"no file {wanted!r}", wanted)
        return self.read(wanted)

    def digest(self, skill: Skill) -> str:
        """The digest that a folder with these files has."""
        limits = skill.limits
        if not self.list_files(skill).complete:
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


def find_differences(front: Frontmatter, name: str, description: str, location: str) -> list[Issue]:
    """How the fields of a fetched file differ from what was announced of it: a warning for each field."""
    pairs = (("name", front.name, name), ("description", front.description.strip(), description))
    return [
        Issue("differs-from-index", field, "is not what the index says", location, front.lines.get(field, 1), "warning")
        for field, written, announced in pairs
        if written != announced
    ]

"""How a skill reaches its files: the one protocol, with an implementation for each place where files can be.

The implementations are ``FolderFiles`` (a folder on this machine), ``PinnedFiles`` (a folder whose files must be those
that a lock file lists), ``RemoteFiles`` (a source fetches the files) and ``InlineFiles`` (a text and no files).

Every method is given the skill, because the folder, the limits and the head that was read belong to the skill. So all
skills in folders share one ``FolderFiles``, and a scan of thousands of skills makes no object for their files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.errors import ResourceChangedError, ResourceError
from prowess.skills import instructions, resources

if TYPE_CHECKING:
    from prowess.literals import OnBadBytes
    from prowess.model import FileList, Resources
    from prowess.skills.instructions import LoadedSkill
    from prowess.skills.skill import Skill


class SkillFiles:
    """What a skill asks of its files. A method that an implementation must give raises ``NotImplementedError``."""

    __slots__ = ()

    is_inline = False
    """True for a text in a program, which has no files."""

    announces_fields = False
    """True where a source gives the fields of the skill, so that its SKILL.md needs no frontmatter."""

    fetched_body = ""
    """The beginning of the instructions of a remote skill, once this process has fetched them for use."""

    fetch_count = 0
    """How often this process has set ``fetched_body`` of any skill: a search then has something new to index."""

    @property
    def source_label(self) -> str:
        """Who wrote the files, where a model must be told; ``""`` for files that are the user's own."""
        return ""

    @property
    def server(self) -> object:
        """The server that gives the files, to be compared with another; ``None`` where no server gives them."""
        return None

    def find_changes(self) -> str:
        """Ask the server which files differ there now, and return that in one line; ``""`` where nothing differs.

        Raises ``FetchError`` where the server cannot be asked, or no longer gives the skill.
        """
        return ""

    def get_location(self, skill: Skill) -> str:
        """The place of a SKILL.md that is in no folder, for people and models."""
        raise NotImplementedError

    def get_state(self, skill: Skill) -> object:
        """A value that differs when the SKILL.md may have changed; nothing is read or fetched for it."""
        return skill.identity

    # -- SKILL.md ----------------------------------------------------------------------------------------------------

    def load(self, skill: Skill) -> LoadedSkill:
        """The skill as its SKILL.md is now, with its instructions."""
        raise NotImplementedError

    def read_body(self, skill: Skill, errors: OnBadBytes, limit: int) -> str | bytes:
        """Everything after the closing ``---`` line, at most ``limit`` bytes; as text unless ``errors`` is "bytes"."""
        data, offset = self._read_body_bytes(skill, limit)
        if len(data) > limit:
            raise instructions.too_large_body_error(skill, limit)
        if errors == "bytes":
            return data
        return data.decode("utf-8", "replace") if errors == "replace" else instructions.decode_body(skill, data, offset)

    def _read_body_bytes(self, skill: Skill, limit: int) -> tuple[bytes, int]:
        """The bytes of the body, and the byte of the file at which it begins."""
        raise NotImplementedError

    def read_source(self, skill: Skill) -> str:
        """The whole text of the SKILL.md, frontmatter included.

        Raises ``SkillValidationError`` where the file cannot be read or is no text, as reading its body does.
        """
        name, limits = skill.file_name, skill.limits
        try:
            data = skill.read_bytes(name, limits.max_frontmatter_bytes + limits.max_body_bytes)
            return resources.decode_text(data, name)
        except ResourceChangedError:
            raise  # a caller must be able to tell a file that is not what was listed or locked from one that is gone
        except ResourceError as error:
            raise instructions.unreadable_error(skill, error, limits.max_body_bytes) from None

    # -- all files ---------------------------------------------------------------------------------------------------

    def list_files(self, skill: Skill) -> FileList:
        """Every file, hidden ones too, in byte order; git's own files are no part of a skill."""
        raise NotImplementedError

    def list_resources(self, skill: Skill) -> Resources:
        """The names in ``scripts``, ``references`` and ``assets`` and beside SKILL.md, one level deep."""
        raise NotImplementedError

    def resource_paths(self, skill: Skill) -> tuple[str, ...]:
        """The paths of ``list_resources``, as far as they are known without fetching anything."""
        return self.list_resources(skill).paths

    def readable_paths(self, skill: Skill) -> tuple[str, ...]:
        """The paths of the files to name to a model, as far as they are known without fetching anything."""
        return self.resource_paths(skill)

    def may_have_files(self, skill: Skill) -> bool:
        """True when the skill has a supporting file, or may have one that only fetching would show."""
        return bool(self.readable_paths(skill))

    def read_text(self, skill: Skill, path: str, limit: int, *, truncate: bool) -> str:
        """The text of a file of at most ``limit`` bytes; of a larger one its beginning if ``truncate``, else raises."""
        return resources.decode_within(self._read_whole(skill, path), path, limit, truncate=truncate)

    def read_bytes(self, skill: Skill, path: str, limit: int) -> bytes:
        """The bytes of a file; raises ``ResourceTooLargeError`` for more than ``limit``."""
        return resources.check_size(self._read_whole(skill, path), path, limit)

    def _read_whole(self, skill: Skill, path: str) -> bytes:
        """The bytes of a whole file, whatever the caller's bound: they are checked, or fetched, as a whole."""
        raise NotImplementedError

    def digest(self, skill: Skill) -> str:
        """The SHA-256 of all files together, as hexadecimal digits; never of a part of them."""
        raise NotImplementedError

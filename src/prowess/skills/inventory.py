"""The inventory of a skill: its files with sizes and tokens, and everything in it that could run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import Issue, ResourceError, ResourceTooLargeError, SkillError
from prowess.files.read import OpenFile
from prowess.files.tree import is_executable
from prowess.format.commands import find_commands
from prowess.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.skills.skill import Skill

_SCRIPTS = "scripts/"


class FileInfo(NamedTuple):
    """A file of a skill: its path, size, estimated tokens (``None`` where it is not text) and execute bit."""

    path: str
    size: int
    tokens: int | None
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Inventory:
    """Everything in a skill that a person should see before trusting it."""

    files: tuple[FileInfo, ...]
    commands: tuple[str, ...]
    """The commands in its instructions, which an activation would run if they were trusted."""
    scripts: tuple[str, ...]
    """The files that could be run as scripts."""
    tokens: int
    """The estimated tokens of its instructions."""
    issues: tuple[Issue, ...] = ()

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def acts(self) -> bool:
        """True when anything in it could run."""
        return bool(self.commands or self.scripts)


def inventory(skill: Skill) -> Inventory:
    """Return the inventory of a skill; an issue says which of its files cannot be read."""
    issues: list[Issue] = []
    body = _read_body(skill, issues)
    paths = skill.files()
    files = tuple(_describe_file(skill, path, issues) for path in paths)
    scripts = list_scripts(paths)
    commands = tuple(command.text for command in find_commands(body.strip()))
    return Inventory(files, commands, scripts, estimate_tokens(body.strip()), (*paths.issues, *issues))


def can_act(skill: Skill) -> bool:
    """True when a skill has a script, or a command in its instructions: ``inventory(skill).acts``, with less to read.

    False where neither the instructions nor the list of files can be read, and for a skill that is not a folder on this
    machine: nothing of it can ever run, and nothing is fetched to find out.
    """
    if not skill.is_local:
        return False
    try:
        return bool(list_scripts(skill.files()) or find_commands(skill.read_body().strip()))
    except SkillError:
        return False


def list_scripts(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the files of a skill that could be run as scripts, in the order given."""
    return tuple(path for path in paths if path.startswith(_SCRIPTS) and not path.rsplit("/", 1)[1].startswith("."))


def _read_body(skill: Skill, issues: list[Issue]) -> str:
    try:
        return skill.read_body()
    except SkillError as error:
        issues.append(Issue(error.code, "body", error.message, skill.location, 0, "warning"))
        return ""


def _describe_file(skill: Skill, path: str, issues: list[Issue]) -> FileInfo:
    try:
        if skill.is_local:
            return _describe_local(skill, path)
        return _describe_data(path, skill.read_bytes(path), executable=False)
    except ResourceError as error:
        issues.append(Issue(error.code, path, error.message, skill.location, 0, "warning"))
        return FileInfo(path, 0, None)


def _describe_local(skill: Skill, path: str) -> FileInfo:
    with OpenFile(skill.base, (*skill.parts, *path.split("/"))) as file:
        executable = is_executable(file)  # of the open file, so that nobody can exchange it before it is read
        try:
            data = file.read_all(skill.limits.max_body_bytes)
        except (
            ResourceTooLargeError
        ):  # its size is known; its tokens are not worth reading a file that nobody loads whole
            return FileInfo(path, file.info.st_size, None, executable)
    return _describe_data(path, data, executable=executable)


def _describe_data(path: str, data: bytes, *, executable: bool) -> FileInfo:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return FileInfo(path, len(data), None, executable)
    return FileInfo(path, len(data), None if "\0" in text else estimate_tokens(text), executable)

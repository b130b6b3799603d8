"""The location of a skill and how its files are reached: one class for each kind of place.

Here are ``FolderFiles`` (a folder on this machine), ``FilesWithoutFolder`` (the same without one of its folders) and
``InlineFiles`` (a string and no files). ``skills.remote_files.RemoteFiles`` has files that a source fetches, and
``installed.verifier.PinnedFiles`` a folder whose files must be those that a lock file lists.

Each object is bound to the files of one skill, and knows nothing else of the skill.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from prowess.arguments import raise_bad_argument
from prowess.errors import (
    ResourceError,
    ResourceNotFoundError,
    ResourceTooLargeError,
    SkillLoadError,
    SkillValidationError,
    make_unreadable_error,
)
from prowess.files.read import OpenFile
from prowess.format.frontmatter.parse import find_body_offset
from prowess.format.head import LoadPolicy
from prowess.names import split_resource_path
from prowess.skills import resources
from prowess.skills.explanation import SkillScope
from prowess.skills.resources import FileList, Resources

if TYPE_CHECKING:
    from collections.abc import Callable

    from prowess.errors import Issue
    from prowess.files.read import Identity
    from prowess.format.frontmatter.fields import Frontmatter
    from prowess.limits import Limits


class SkillFiles:
    """What a skill asks of its files. A method that a class must define raises ``NotImplementedError``."""

    __slots__ = ()

    announces_fields = True
    """True where a program or a source gives the fields of the skill, so that its SKILL.md needs no frontmatter."""

    fetched_body = ""
    """The beginning of the instructions of a remote skill, once this process has fetched them for use."""

    fetch_count = 0
    """How often this process has set ``fetched_body`` of any skill: a search then has something new to index."""

    @property
    def location(self) -> str:
        """The place of a SKILL.md that is in no folder, for people and models."""
        return ""

    @property
    def state(self) -> object:
        """A value that differs when a source announces another SKILL.md; known without reading or fetching anything."""
        return None

    @property
    def source_label(self) -> str:
        """Who wrote the files, where a model must know; ``""`` for files that are the user's own."""
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

    # -- SKILL.md ----------------------------------------------------------------------------------------------------

    def renew(self) -> SkillFiles:
        """Return the files to load the skill from: others where its source has changed since."""
        return self

    def read_skill_file(self, limit: int) -> tuple[bytes, Identity | None]:
        """Return the whole SKILL.md and its identity; ``limit``: how many bytes its body may have.

        A file that a source fetches has no identity.
        """
        raise NotImplementedError

    def note_body(self, body: str) -> None:
        """Remember the beginning of a body that was fetched, for ``fetched_body``."""

    def admit_fields(self, front: Frontmatter, name: str) -> Frontmatter:
        """Return the fields of a SKILL.md that count, under the name that was announced."""
        return front.renamed(name)

    def find_differences(self, front: Frontmatter, name: str, description: str) -> list[Issue]:
        """Return a warning for each field of a fetched file that is not what was announced."""
        raise NotImplementedError

    def issues(self) -> tuple[Issue, ...]:
        """Return what was noticed while files were fetched."""
        return ()

    # -- all files ---------------------------------------------------------------------------------------------------

    def list_files(self) -> FileList:
        """Return every file, hidden ones too, in byte order; git's own files are not a part of a skill."""
        raise NotImplementedError

    def list_resources(self) -> Resources:
        """Return the names in ``scripts``, ``references`` and ``assets`` and beside SKILL.md, one level deep."""
        raise NotImplementedError

    def resource_paths(self) -> tuple[str, ...]:
        """Return the paths of ``list_resources``, as far as they are known without fetching anything."""
        return self.list_resources().paths

    def readable_paths(self) -> tuple[str, ...]:
        """Return the paths of the files to name to a model, as far as they are known without fetching anything."""
        return self.resource_paths()

    def may_have_files(self) -> bool:
        """Return True when the skill has a supporting file, or may have one that only fetching would show."""
        return bool(self.readable_paths())

    def read_text(self, path: str, limit: int, *, truncate: bool) -> str:
        """Return the text of a file of at most ``limit`` bytes; of a larger one its beginning, or raise."""
        return resources.decode_within(self._read_whole(path), path, limit, truncate=truncate)

    def read_bytes(self, path: str, limit: int) -> bytes:
        """Return the bytes of a file; raises ``ResourceTooLargeError`` for more than ``limit``."""
        return resources.check_size(self._read_whole(path), path, limit)

    def _read_whole(self, path: str) -> bytes:
        """Return the bytes of a whole file, whatever the caller's bound: they are checked, or fetched, as a whole."""
        raise NotImplementedError

    def announced_digest(self) -> str:
        """Return the digest of what the source announces now; fetched files are hashed once for it."""
        return self.digest()

    def digest(self) -> str:
        """Return the SHA-256 of all files together, as hexadecimal digits; never of a part of them."""
        raise NotImplementedError


class InlineFiles(SkillFiles):
    """The string that is an inline skill, and no files."""

    __slots__ = ("body",)

    def __init__(self, body: str) -> None:
        self.body = body

    def list_files(self) -> FileList:
        return FileList()

    def list_resources(self) -> Resources:
        return Resources()

    def _read_whole(self, path: str) -> NoReturn:
        raise ResourceError("the skill is text only and has no files", code="no-files")

    def digest(self) -> str:
        self._read_whole("")


class FolderPlace(NamedTuple):
    """The folder of one skill, as its files need to know it."""

    base: str
    """The folder that reads stay below."""
    parts: tuple[str, ...]
    """The folders from ``base`` to the skill's own, by name."""
    file: str
    """The name of the SKILL.md."""
    location: str
    """The path of the SKILL.md as people know it."""
    limits: Limits


class FolderFiles(SkillFiles):
    """The files in a folder on this machine: each read stays below the folder, and within the limits."""

    __slots__ = ("_place",)

    def __init__(self, place: FolderPlace) -> None:
        self._place = place

    def read_skill_file(self, limit: int) -> tuple[bytes, Identity | None]:
        base, parts, name, location, limits = self._place
        try:
            with OpenFile(base, (*parts, name)) as file:
                return file.read_all(limits.max_frontmatter_bytes + limit), file.identity
        except ResourceError as error:
            raise unreadable_error(location, error, limit) from None

    def list_files(self) -> FileList:
        base, parts, _, location, limits = self._place
        return resources.list_files(base, parts, location, limits)

    def list_resources(self) -> Resources:
        return resources.list_resources(*self._place)

    def readable_paths(self) -> tuple[str, ...]:
        # Nearly every skill has files in the usual places, and needs no walk of its whole folder.
        return self.list_resources().paths or resources.find_readable(self.list_files(), self._place.file)

    def read_text(self, path: str, limit: int, *, truncate: bool) -> str:
        with self._open(path) as file:
            size = file.info.st_size  # may be 0 for files, such as those in /proc, that do hold something
            data = file.read(limit + 1)  # one byte more shows that there is more
        return resources.decode_within(data, path, limit, truncate=truncate, size=max(size, len(data)))

    def read_bytes(self, path: str, limit: int) -> bytes:
        with self._open(path) as file:
            return file.read_all(limit)

    def _open(self, path: str) -> OpenFile:
        return OpenFile(self._place.base, (*self._place.parts, *split_resource_path(path)), path=path)

    def digest(self) -> str:
        base, parts, _, location, limits = self._place
        return resources.digest_folder(base, parts, location, limits)


class FilesWithoutFolder(SkillFiles):
    """The files in a folder on this machine, except those in one folder at its top.

    ``list_files`` and ``digest`` are still about all files, because they say what a script could use, and a person's
    grant is about them.
    """

    __slots__ = ("_files", "_folder")

    def __init__(self, hidden: str, open_folder: Callable[[FolderPlace], SkillFiles], place: FolderPlace) -> None:
        self._files = open_folder(place)
        self._folder = hidden

    def renew(self) -> SkillFiles:
        self._files.renew()  # a locked folder is checked there
        return self

    def read_skill_file(self, limit: int) -> tuple[bytes, Identity | None]:
        return self._files.read_skill_file(limit)

    def list_files(self) -> FileList:
        return self._files.list_files()

    def list_resources(self) -> Resources:
        return self._files.list_resources()  # it does not go into other folders than the usual ones

    def resource_paths(self) -> tuple[str, ...]:
        return self._files.resource_paths()

    def readable_paths(self) -> tuple[str, ...]:
        return tuple(path for path in self._files.readable_paths() if path.split("/")[0] != self._folder)

    def read_text(self, path: str, limit: int, *, truncate: bool) -> str:
        self._check_path(path)
        return self._files.read_text(path, limit, truncate=truncate)

    def read_bytes(self, path: str, limit: int) -> bytes:
        self._check_path(path)
        return self._files.read_bytes(path, limit)

    def digest(self) -> str:
        return self._files.digest()

    def _check_path(self, path: str) -> None:
        # Some file systems take names of another case for equal.
        if split_resource_path(path)[0].casefold() == self._folder.casefold():
            raise ResourceNotFoundError(f"no file {path[:200]!r}", path)


def as_scope(given: str | None) -> SkillScope | None:
    """Return the scope that a caller gave, perhaps as a string; raise ``SourceError`` for any other value."""
    if given is None:
        return None
    try:
        return SkillScope(given)
    except ValueError:
        raise_bad_argument("scope", 'must be "project", "user" or None', given)


class SkillLocation(NamedTuple):
    """Where and how skills were found. Most skills of a root share one location, so a scan makes few of them."""

    base: str = ""
    """The folder that the caller gave, or that a link was allowed to lead to: reads stay below it."""
    file: str = ""
    """The name of the SKILL.md as it was found."""
    scope: SkillScope | None = None
    policy: LoadPolicy = LoadPolicy()
    origin: str = "directory"
    """The kind of source: ``"directory"``, ``"inline"``, ``"url"`` or ``"mcp"``."""
    link_folder: str | None = None
    """The folder as it was found, where that is a link."""
    links: tuple[str, ...] = ()
    """The links that the walk followed on its way to the folder, the first one first."""
    virtual_path: str | None = None
    """The folder under which filters and listings know the skill, where that is not its own."""
    preload: bool = False
    """Whether the instructions are in the prompt from the start."""
    is_body_seen: bool = True
    """Whether discovery saw that the body is not blank."""
    is_searched_below: bool = False
    """Whether discovery looked below its folder for further skills."""
    open_folder: Callable[[FolderPlace], SkillFiles] = FolderFiles
    """What gives a skill in a folder its files."""
    files: SkillFiles | None = None
    """The files of a skill that is in no folder."""


def strip_body(body: str) -> str:
    """Return a body as instructions are given: LF line ends, without whitespace at both ends."""
    return (body.replace("\r\n", "\n") if "\r" in body else body).strip()  # most bodies need no second copy


def decode_body(data: bytes, offset: int, location: str) -> str:
    """Return the bytes of a body as text; ``offset``: where they begin in the file."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"the body is not UTF-8: byte 0x{data[error.start]:02X} at byte {offset + error.start}"
        raise SkillValidationError(message, location, "body-not-text") from None


def find_offset(data: bytes, policy: LoadPolicy, location: str) -> int:
    """Return the byte at which the body of a whole file begins; only the dashes around the frontmatter count."""
    limit = policy.limits.max_frontmatter_bytes
    try:
        return find_body_offset(data[:limit], whole=len(data) <= limit, repair=policy.repairs, limits=policy.limits)
    except SkillLoadError as error:
        raise type(error)([replace(issue, path=location) for issue in error.issues], location) from None


def unreadable_error(location: str, error: ResourceError, limit: int) -> SkillValidationError:
    """Return the error for a SKILL.md that cannot be read; ``limit``: how many bytes its body may have."""
    if isinstance(error, ResourceTooLargeError):
        return too_large_body_error(location, limit)
    return make_unreadable_error(error, location)


def too_large_body_error(location: str, limit: int) -> SkillValidationError:
    """Return the error for a body of more than ``limit`` bytes."""
    return SkillValidationError(f"the body has more than {limit} bytes", location, "body-too-large")

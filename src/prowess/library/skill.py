"""One discovered skill: its frontmatter and where it lives. Body and files are read on demand, never kept."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import EmptySkillBodyError, Issue, ResourceError, ResourceTooLargeError, SkillValidationError
from prowess.files.reading import OpenFile, read_known
from prowess.library import contents, resources
from prowess.spec.allowed_tools import quick_tools
from prowess.spec.document import Policy, read_document
from prowess.spec.fields import Frontmatter, frontmatter_of
from prowess.spec.frontmatter import needs_more
from prowess.spec.glance import MAX_BYTES, glance
from prowess.spec.plain import parse_plain, suffices
from prowess.spec.render import skill_xml
from prowess.spec.rules import field_issues
from prowess.spec.visibility import model_invocable, user_invocable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from prowess.files.reading import Identity
    from prowess.library.contents import Contents
    from prowess.library.pins import Pin
    from prowess.limits import Limits
    from prowess.model import FileList, Resources, SkillScope, Value
    from prowess.spec.document import Document
    from prowess.spec.glance import Glance


class Home(NamedTuple):
    """Where and how skills were found; most skills of a root share one."""

    base: str = ""
    """The folder that the caller gave, or that a link was allowed to lead to: reads stay below it."""
    file: str = ""
    scope: SkillScope | None = None
    policy: Policy = Policy()
    origin: str = "directory"
    shown: str | None = None
    """The folder as it was found, where that is a link."""
    virtual: str | None = None
    preload: bool = False
    body: str | None = None
    """The whole text of a skill that has no file."""
    body_seen: bool = True
    """Whether discovery saw that the body is not blank."""
    contents: Contents | None = None
    """What gives the files of a skill that has no folder here."""
    pin: Pin | None = None
    """What a lock file says of its files; every read is compared with it."""


class Skill:
    """A skill that was found, read from text, or made by a program.

    Read-only. What discovery did not need (fields beyond name and description) is parsed from the bytes of the head
    when it is first asked for.
    """

    __slots__ = (
        "_description",
        "_front",
        "_home",
        "_identity",
        "_issues",
        "_name",
        "_offset",
        "_raw",
        "_rel",
    )

    def __init__(
        self,
        frontmatter: Frontmatter,
        location: str | os.PathLike[str] | None = None,
        scope: SkillScope | None = None,
        *,
        body: str | None = None,
    ) -> None:
        """A skill with this frontmatter whose SKILL.md is at ``location``; without one, ``body`` is its text."""
        base, file = os.path.split(os.path.abspath(os.fspath(location))) if location is not None else ("", "")
        self._front: Frontmatter | None = frontmatter
        self._raw = b""
        self._name = frontmatter.name
        self._description = frontmatter.description.strip()
        self._home = Home(
            base, file, scope, origin="directory" if base else "inline", body=None if base else body or ""
        )
        self._rel = ""
        self._identity: Identity | None = None
        self._offset = 0
        self._issues: tuple[Issue, ...] | None = ()

    def __repr__(self) -> str:
        """The name and where it lives."""
        return f"Skill({self._name!r}, {self.location!r})"

    # -- what it says ------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._name

    @property
    def description(self) -> str:
        return self._description

    @property
    def frontmatter(self) -> Frontmatter:
        """Every field of the head."""
        front = self._front
        if front is None:
            front = self._front = _front_of(self._raw)
        return front

    def peek(self) -> Frontmatter:
        """Every field of the head, parsed again at each call: for one look at each of many skills."""
        return self._front if self._front is not None else _front_of(self._raw)

    @property
    def plain_head(self) -> bytes | None:
        """Its head where that has the commonest shape and was not parsed yet: no rule of YAML refuses it."""
        return self._raw if self._front is None else None

    @property
    def mended(self) -> tuple[Issue, ...]:
        """What had to be mended before its head could be read."""
        return tuple(i for i in self._issues or () if i.code.startswith("repaired-") or i.code == "line-break")

    @property
    def license(self) -> str | None:
        return self.frontmatter.license

    @property
    def compatibility(self) -> str | None:
        return self.frontmatter.compatibility

    @property
    def metadata(self) -> Mapping[str, str]:
        return self.frontmatter.metadata

    @property
    def allowed_tools(self) -> tuple[str, ...]:
        if self._front is None:  # asked for at each activation, long before anything else
            found = quick_tools(self._raw)
            if found is not None:
                return found
        return self.frontmatter.allowed_tools

    @property
    def allowed_tools_raw(self) -> str | None:
        return self.frontmatter.allowed_tools_raw

    @property
    def tags(self) -> tuple[str, ...]:
        return self.frontmatter.tags

    @property
    def version(self) -> str | None:
        return self.frontmatter.version

    @property
    def model(self) -> str | None:
        return self.frontmatter.model

    @property
    def context(self) -> str | None:
        return self.frontmatter.context

    @property
    def extra(self) -> Mapping[str, Value]:
        return self.frontmatter.extra

    @property
    def is_fork(self) -> bool:
        """Whether it asks to run as a sub-agent of its own (``context: fork``)."""
        return self.context == "fork"

    @property
    def user_invocable(self) -> bool:
        """Whether people may call it by name."""
        if self._front is None and b"nvo" not in self._raw:
            return True
        return user_invocable(self.frontmatter)

    @property
    def model_invocable(self) -> bool:
        """Whether models see it in listings."""
        if self._front is None and b"nvoca" not in self._raw:
            return True
        return model_invocable(self.frontmatter)

    # -- where it lives ----------------------------------------------------------------------------------------------

    @property
    def is_inline(self) -> bool:
        """Whether it is text in a program, without files."""
        return not self._home.base and self._home.contents is None

    @property
    def dir(self) -> Path | None:
        """Its folder, as it was found; ``None`` without one."""
        from pathlib import Path  # noqa: PLC0415 - discovery works without path objects

        return Path(self._folder()) if self._home.base else None

    @property
    def path(self) -> Path | None:
        """Its SKILL.md; ``None`` without a folder."""
        from pathlib import Path  # noqa: PLC0415

        return Path(self._folder(), self._home.file) if self._home.base else None

    @property
    def location(self) -> str:
        """The path of its SKILL.md, or its URL, or ``inline:NAME``."""
        if self._home.base:
            return f"{self._folder()}{os.sep}{self._home.file}"
        return f"inline:{self._name}" if self._home.contents is None else self._home.contents.location

    def _folder(self) -> str:
        if self._home.shown is not None:
            return self._home.shown
        return f"{self._home.base}{os.sep}{self._rel}" if self._rel else self._home.base

    @property
    def folder(self) -> str:
        """Its folder as text, ``""`` without one."""
        return self._folder() if self._home.base else ""

    @property
    def is_local(self) -> bool:
        """Whether it is a folder on this machine: only then can anything of it ever run."""
        return bool(self._home.base)

    @property
    def base(self) -> str:
        """The folder that reads stay below; its own folder is ``parts`` below it."""
        return self._home.base

    @property
    def parts(self) -> tuple[str, ...]:
        """The way from ``base`` to its folder."""
        return self._parts()

    @property
    def file_name(self) -> str:
        """The name of its SKILL.md as it was found."""
        return self._home.file

    @property
    def is_linked(self) -> bool:
        """Whether it was reached through a link."""
        return self._home.shown is not None

    @property
    def real_folder(self) -> str:
        """Its folder without the link that led there, ``""`` without one."""
        return os.path.join(self._home.base, self._rel) if self._rel else self._home.base

    @property
    def folder_name(self) -> str:
        """The name of its folder, ``""`` without one."""
        return os.path.basename(self._folder())

    @property
    def virtual_path(self) -> str:
        """The folder under which filters and listings know it; the real one unless it was mounted elsewhere."""
        return self._home.virtual if self._home.virtual is not None else self._folder().replace(os.sep, "/")

    @property
    def scope(self) -> SkillScope | None:
        return self._home.scope

    @property
    def origin(self) -> str:
        """What kind of source it came from."""
        return self._home.origin

    @property
    def told_by(self) -> str:
        """Who says what is in it, where a model must be told; ``""``: it is the user's own."""
        return contents.told_by(self._home.contents)

    @property
    def preload(self) -> bool:
        """Whether its instructions stand in the prompt from the start."""
        return self._home.preload

    @property
    def body_offset(self) -> int:
        """The byte of the file at which the body began when the head was read."""
        return self._offset

    @property
    def identity(self) -> Identity | None:
        """Device, inode, size and times of the file when its head was read."""
        return self._identity

    @property
    def state(self) -> object:
        """What differs when its SKILL.md may have changed: the file's identity, or what its source says of it."""
        return self._identity if self._home.contents is None else self._home.contents.state

    @property
    def issues(self) -> tuple[Issue, ...]:
        """What was found about its head; for a fetched one also how it differs from what was announced."""
        if self._issues is None:
            found = field_issues(self.frontmatter, mode="lenient", folder=self.folder_name, path=self.location)
            self._issues = tuple(found)
        return self._issues

    @property
    def repairs(self) -> tuple[Issue, ...]:
        """What had to be mended for it to load; empty for a head that nothing was wrong with."""
        return tuple(issue for issue in self._issues or () if issue.code.startswith("repaired-"))

    def placed(
        self,
        *,
        virtual_path: str | None = None,
        preload: bool | None = None,
        scope: SkillScope | None = None,
        origin: str | None = None,
        pin: Pin | None = None,
    ) -> Skill:
        """A copy that differs in what a source decides."""
        home = self._home
        other = Skill.__new__(Skill)
        for slot in Skill.__slots__:
            setattr(other, slot, getattr(self, slot))
        other._home = home._replace(
            virtual=home.virtual if virtual_path is None else virtual_path,
            preload=home.preload if preload is None else preload,
            scope=home.scope if scope is None else scope,
            origin=home.origin if origin is None else origin,
            pin=home.pin if pin is None else pin,
        )
        return other

    def copied_to(self, folder: str) -> Skill:
        """The skill that a copy of its folder holds: read from there and nowhere else."""
        other = self.placed()
        other._home = other._home._replace(base=folder, shown=None)
        other._rel = ""
        other._identity = None
        return other

    def known_as(self, folder: str) -> Skill:
        """The same skill for people and models who know its folder by another name; reads go where they went."""
        other = self.placed()
        other._home = other._home._replace(shown=folder)
        return other

    # -- what it holds -----------------------------------------------------------------------------------------------

    def read_body(self, *, strip: bool = False) -> str:
        """Everything after the closing ``---`` line, byte for byte; the file is read anew at each call.

        ``strip=True``: without blanks at both ends, and ``EmptySkillBodyError`` when nothing is left. Raises
        ``SkillValidationError`` when the file cannot be read, is too large or is not UTF-8.
        """
        text = self._home.body if self._home.body is not None else self._read_body()
        if not strip:
            return text
        if not text.strip():
            raise EmptySkillBodyError("the skill has no instructions", self.location)
        return text.strip()

    def _read_body(self) -> str:
        known = self._identity
        if self._home.pin is not None:
            return self._pinned_body()
        if known is not None:
            data = read_known(self.location, known, self._offset, self._home.policy.limits.max_body_bytes)
            if data is not None:
                return self._decoded(data, self._offset)
        if self._home.contents is not None:
            data, found = self._fetched(self._home.contents)
            return self._decoded(data[found.body :], found.body)
        limits = self._home.policy.limits
        try:
            with self._open() as file:
                data, at = self._body_bytes(file)
        except ResourceTooLargeError:
            message = f"the body has more than {limits.max_body_bytes} bytes"
            raise SkillValidationError(message, self.location, "body-too-large") from None
        except ResourceError as error:
            raise SkillValidationError(f"cannot read the file: {error.message}", self.location, error.code) from None
        return self._decoded(data, at)

    def _pinned_body(self) -> str:
        data, _ = self._read_file()
        most = self.limits.max_frontmatter_bytes
        at = self._document(data[:most], whole=len(data) <= most).body
        return self._decoded(data[at:], at)

    def _decoded(self, data: bytes, at: int) -> str:
        if len(data) > self.limits.max_body_bytes:
            message = f"the body has more than {self.limits.max_body_bytes} bytes"
            raise SkillValidationError(message, self.location, "body-too-large")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            message = f"the body is not UTF-8: byte 0x{data[error.start]:02X} at byte {at + error.start}"
            raise SkillValidationError(message, self.location, "body-not-text") from None

    def read_text(self) -> str:
        """The whole file, frontmatter included; the text alone of a skill without a file."""
        if self._home.body is not None:
            return self._home.body
        limits = self.limits
        most = limits.max_frontmatter_bytes + limits.max_body_bytes
        return resources.decoded(self.read_bytes(self._home.file, most), self._home.file)

    @property
    def limits(self) -> Limits:
        """The bounds under which it was found."""
        return self._home.policy.limits

    def _body_bytes(self, file: OpenFile) -> tuple[bytes, int]:
        at = self._offset
        if self._identity is None or file.identity != self._identity:
            at = self._fresh_document(file).body
        return file.read_all(self.limits.max_body_bytes, at), at

    def _fresh_document(self, file: OpenFile) -> Document:
        limits = self.limits
        repairs = self._home.policy.repairs
        head, whole = file.read_head(
            limits.head_step, limits.max_frontmatter_bytes, lambda head: needs_more(head, repair=repairs)
        )
        return self._document(head, whole=whole)

    def _document(self, head: bytes, *, whole: bool) -> Document:
        return read_document(
            head,
            whole=whole,
            policy=self._home.policy,
            folder=self.folder_name or self._name,
            path=self.location,
            check_dir=False,
        )

    def _open(self) -> OpenFile:
        return OpenFile(self._home.base, (*self._parts(), self._home.file))

    def _parts(self) -> tuple[str, ...]:
        return tuple(self._rel.split(os.sep)) if self._rel else ()

    def load(self) -> LoadedSkill:
        """The skill as its file is now, with its instructions; the file is parsed again, whatever discovery saw."""
        if not self._home.base:
            return self._load_elsewhere()
        if self._home.pin is not None:
            self._home.pin.check_tree(self._real_folder(), self.location, self.limits)
        data, identity = self._read_file()
        if identity is self._identity and self._has_head(data):
            return LoadedSkill(self, _instructions(self._decoded(data[self._offset :], self._offset)))
        seen = glance(data[:MAX_BYTES]) if suffices(self.limits) else None
        if seen is not None and seen[2] == self._raw:  # the very head that was understood before
            same = identity == self._identity and seen[3] == self._offset
            fresh = self if same else self._as_read(None, seen[3], identity)
        else:
            most = self.limits.max_frontmatter_bytes
            found = self._document(data[:most], whole=len(data) <= most)
            fresh = self._as_read(found.front, found.body, identity)
        return LoadedSkill(fresh, _instructions(self._decoded(data[fresh._offset :], fresh._offset)))

    def _load_elsewhere(self) -> LoadedSkill:
        """The same without a folder: the text itself, or the file that a source gives, under the name it announced."""
        if self._home.contents is None:
            return LoadedSkill(self, _instructions(self._home.body or ""))
        data, found = self._fetched(self._home.contents)
        front = contents.admitted(self._home.contents, found.front, self._name)
        fresh = self._as_read(front, found.body, None)
        name = found.front.name if self.told_by else self._name
        differing = contents.differences(found.front, name, self._description, self.location)
        fresh._issues = (*found.issues, *differing, *self._home.contents.issues())
        return LoadedSkill(fresh, _instructions(self._decoded(data[found.body :], found.body)))

    def _fetched(self, given: Contents) -> tuple[bytes, Document]:
        """The bytes of a SKILL.md that a source gives, and what they say."""
        data = given.read(self._home.file)
        most = self.limits.max_frontmatter_bytes
        return data, self._document(data[:most], whole=len(data) <= most)

    def _has_head(self, data: bytes) -> bool:
        """Whether a file begins with the very head that was understood before, fences included."""
        raw = self._raw
        if not raw or len(raw) == self._offset:
            return raw != b"" and data.startswith(raw)
        end = len(raw) + 4
        return data.startswith(raw, 4) and data.startswith(b"---\n") and data[end : self._offset] == b"---\n"

    def _real_folder(self) -> str:
        return os.path.join(self._home.base, *self._parts())

    def _read_file(self) -> tuple[bytes, Identity]:
        data, identity = self._file_bytes()
        if self._home.pin is not None:
            self._home.pin.check_instructions(self._home.file, data, self.location)
        return data, identity

    def _file_bytes(self) -> tuple[bytes, Identity]:
        known = self._identity
        if known is not None:
            data = read_known(self.location, known, 0, self.limits.max_body_bytes)
            if data is not None:
                return data, known
        limits = self.limits
        try:
            with self._open() as file:
                return file.read_all(limits.max_frontmatter_bytes + limits.max_body_bytes), file.identity
        except ResourceTooLargeError:
            message = f"the body has more than {limits.max_body_bytes} bytes"
            raise SkillValidationError(message, self.location, "body-too-large") from None
        except ResourceError as error:
            raise SkillValidationError(f"cannot read the file: {error.message}", self.location, error.code) from None

    def _as_read(self, front: Frontmatter | None, offset: int, identity: Identity | None) -> Skill:
        fresh = self.placed()
        fresh._offset = offset
        fresh._identity = identity
        if front is not None:
            fresh._raw = b""
            fresh._front = front
            fresh._name = front.name
            fresh._description = front.description.strip()
        return fresh

    def resources(self) -> Resources:
        """Its scripts, references, assets and other files, one level deep, by name."""
        if self._home.contents is not None:
            return contents.list_resources(self._home.contents)
        return resources.list_resources(
            self._home.base, self._parts(), self._home.file, self.location, self._home.policy.limits
        )

    def resource_paths(self) -> tuple[str, ...]:
        """``resources().paths`` alone, with fewer steps; of a remote skill what is known without fetching it."""
        if self._home.contents is not None:
            return contents.known_paths(self._home.contents)
        return resources.list_paths(
            self._home.base, self._parts(), self._home.file, self.location, self._home.policy.limits
        )

    def may_have_files(self) -> bool:
        """Whether it has a supporting file, or might have one that only fetching it would tell."""
        if self._home.contents is not None and self._home.contents.names() is None:
            return True
        return bool(self.resource_paths())

    def files(self) -> FileList:
        """Every regular file below its folder, relative, in byte order; what was left out is in ``.issues``."""
        if self._home.contents is not None:
            return contents.list_files(self._home.contents, self.limits)
        return resources.list_files(self._home.base, self._parts(), self.location, self._home.policy.limits)

    def read_resource(self, path: str, max_bytes: int | None = None, *, truncate: bool = False) -> str:
        """The text of one of its files; at most ``max_bytes`` (64 KiB), else ``ResourceTooLargeError``.

        ``truncate=True`` cuts instead, at a character, and says so in the last line.
        """
        most = self._home.policy.limits.max_resource_bytes if max_bytes is None else max_bytes
        if self._home.contents is not None:
            return contents.read_text(self._home.contents, path, most, truncate=truncate)
        if self._home.pin is not None:
            return resources.shown_text(self._pinned_bytes(path), path, most, truncate=truncate)
        return resources.read_text(self._home.base, self._parts(), path, most, truncate=truncate)

    def read_bytes(self, path: str, max_bytes: int | None = None) -> bytes:
        """The bytes of one of its files; at most ``max_bytes`` (10 MiB), else ``ResourceTooLargeError``."""
        most = self._home.policy.limits.max_file_bytes if max_bytes is None else max_bytes
        if self._home.contents is not None:
            return contents.read_bytes(self._home.contents, path, most)
        if self._home.pin is not None:
            return resources.within(self._pinned_bytes(path), path, most)
        return resources.read_bytes(self._home.base, self._parts(), path, most)

    def _pinned_bytes(self, path: str) -> bytes:
        """The whole file, which is what the lock file says: what is given is what was hashed."""
        data = resources.read_bytes(self._home.base, self._parts(), path, self.limits.max_install_bytes)
        if self._home.pin is not None:
            self._home.pin.check_resource(path, data)
        return data

    def digest(self) -> str:
        """The SHA-256 (hex) of everything in its folder; links, special files and limits are errors."""
        if self._home.contents is not None:
            return contents.digest(self._home.contents, self.limits)
        return resources.digest(self._home.base, self._parts(), self.location, self._home.policy.limits)

    # -- how it is shown ---------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, object]:
        """Name, description and whatever else is set, under the names used in JSON; plus ``path`` and ``location``."""
        front = self.frontmatter
        optional = {
            "license": front.license,
            "compatibility": front.compatibility,
            "metadata": dict(front.metadata),
            "allowed_tools": list(front.allowed_tools),
        }
        return {
            "name": self._name,
            "description": self._description,
            **{key: value for key, value in optional.items() if value},
            "path": "" if self.is_inline else self.virtual_path,
            "location": self.location,
        }

    def to_xml(self) -> str:
        """Its entry in an XML listing, with its location; fields escaped and on one line."""
        return skill_xml(self)


@dataclass(frozen=True, slots=True)
class LoadedSkill:
    """A skill with its instructions: the body with LF line ends, without blanks at both ends."""

    skill: Skill
    instructions: str


def _instructions(body: str) -> str:
    return (body.replace("\r\n", "\n") if "\r" in body else body).strip()


def _front_of(raw: bytes) -> Frontmatter:
    """The fields of a head that ``glance`` has understood, hence plain."""
    parsed = parse_plain(raw.decode())
    if parsed is None:  # pragma: no cover - glance accepts only what parse_plain reads; a test compares them
        raise SkillValidationError("the head was understood at first and is not now")
    values, lines = parsed
    return frontmatter_of(values, {key: line + 2 for key, line in lines.items()})


def glanced(home: Home, rel: str, seen: Glance, identity: Identity) -> Skill:
    """The skill behind a head of the commonest shape: discovery's inner loop, hence no constructor."""
    skill = Skill.__new__(Skill)
    skill._name, skill._description, skill._raw, skill._offset = seen
    skill._home = home
    skill._rel = rel
    skill._identity = identity
    skill._front = skill._issues = None
    return skill


def documented(home: Home, rel: str, found: Document, identity: Identity | None, head: bytes = b"") -> Skill:
    """The skill behind a head that was read and judged; ``head`` is kept to tell it again."""
    skill = Skill(found.front)
    skill._raw = head[: found.body]
    skill._home = home
    skill._rel = rel
    skill._offset = found.body
    skill._identity = identity
    skill._issues = found.issues
    return skill


def announced(home: Home, front: Frontmatter, issues: tuple[Issue, ...] = ()) -> Skill:
    """A skill of which a source has told the name and the description, and holds the rest."""
    skill = Skill(front)
    skill._home = home
    skill._issues = issues
    return skill

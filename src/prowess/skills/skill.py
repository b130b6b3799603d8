"""One skill: its frontmatter, its location, and its body and files, which are read when asked for and never kept."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from prowess.arguments import check_instance, check_text
from prowess.errors import (
    EmptySkillBodyError,
    Issue,
    NoFrontmatterError,
    ResourceChangedError,
    ResourceError,
    ResourceNotFoundError,
    SkillError,
    SourceError,
)
from prowess.format import rules
from prowess.format.frontmatter import fields
from prowess.format.frontmatter.quick.faultless_heads import is_faultless
from prowess.format.frontmatter.yaml_events import parse_yaml
from prowess.format.head import Head, is_repair, read_head
from prowess.limits import resolve_bound
from prowess.skills import resources
from prowess.skills.skill_files import (
    FilesWithoutFolder,
    FolderPlace,
    InlineFiles,
    SkillLocation,
    as_scope,
    decode_body,
    find_offset,
    strip_body,
    too_large_body_error,
    unreadable_error,
)
from prowess.text.patterns import compile_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from prowess.files.read import Identity
    from prowess.format.frontmatter.fields import Frontmatter
    from prowess.format.frontmatter.quick.common_heads import QuickHead
    from prowess.format.frontmatter.yaml_events import Value
    from prowess.format.head import LoadPolicy
    from prowess.format.requirements import Requirements
    from prowess.limits import Bound, Limits
    from prowess.literals import OnBadBytes
    from prowess.skills.explanation import SkillScope
    from prowess.skills.resources import FileList, Resources
    from prowess.skills.skill_files import SkillFiles

_HTML_PAGE = compile_pattern(rb"\s*+<(?:!doctype\s++)?html\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LoadedSkill:
    """A skill with its instructions: the body with LF line ends, without whitespace at both ends."""

    skill: Skill
    instructions: str


class Skill:
    """A skill that was found, read from a string, or made by a program.

    A skill is read-only. Discovery needs the name and the description; every other field is parsed from the bytes of
    the head when it is first asked for.
    """

    # One flat object, because a scan makes one for each of thousands of folders.
    __slots__ = ("_description", "_front", "_identity", "_issues", "_location", "_name", "_offset", "_raw", "_rel")

    _description: str
    _front: Frontmatter | None
    _identity: Identity | None
    _issues: tuple[Issue, ...] | None
    _location: SkillLocation
    _name: str
    _offset: int
    _raw: bytes
    _rel: str

    def __init__(
        self,
        frontmatter: Frontmatter,
        location: str | os.PathLike[str] | None = None,
        scope: SkillScope | None = None,
        *,
        body: str | None = None,
    ) -> None:
        """A skill with this frontmatter whose SKILL.md is at ``location``; without one, ``body`` is its text."""
        check_instance(frontmatter, "frontmatter", fields.Frontmatter, remedy="pass Frontmatter(name=…, description=…)")
        if body is not None:
            check_text(body, "body")
        base, file = os.path.split(os.path.abspath(os.fspath(location))) if location is not None else ("", "")
        self._front = frontmatter
        self._raw = b""
        self._name = frontmatter.name
        self._description = frontmatter.description.strip()
        files = None if base else InlineFiles(body or "")
        origin = "directory" if base else "inline"
        self._location = SkillLocation(base, file, as_scope(scope), origin=origin, files=files)
        self._rel = ""
        self._identity = None
        self._offset = 0
        self._issues = ()

    def __repr__(self) -> str:
        """The name and the location."""
        return f"Skill({self._name!r}, {self.location!r})"

    def __copy__(self) -> Self:
        """Itself: nobody can change it."""
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        """Itself: nobody can change it."""
        return self

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        """The slots that a pickle holds; the files are not in it.

        Raises ``SkillError`` for a skill whose files another machine gives: its connection belongs to this process.
        """
        if not self.is_local and not self.is_inline:  # neither a folder nor a string: a source fetches the files
            message = f"skill {self._name!r} cannot be pickled: its files are on another machine"
            raise SkillError(message, self.location, "not-picklable")
        return None, {slot: getattr(self, slot) for slot in Skill.__slots__}

    # -- its head ------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name that the skill goes by."""
        return self._name

    @property
    def written_name(self) -> str:
        """The name as its file has it: ``maestro:agent-base`` where the skill goes by ``maestro-agent-base``."""
        return (self._front.written_name if self._front is not None else "") or self._name

    @property
    def description(self) -> str:
        """What the skill does and when to use it, without whitespace at both ends."""
        return self._description

    @property
    def frontmatter(self) -> Frontmatter:
        """Every field of the head."""
        front = self._front
        if front is None:
            front = self._front = _parse_front(self._raw)
        return front

    def peek(self) -> Frontmatter:
        """Return every field of the head, parsed again at each call: nothing is kept, for one look at many skills."""
        return self._front if self._front is not None else _parse_front(self._raw)

    @property
    def unparsed_head(self) -> bytes | None:
        """The bytes of its head where nothing is wrong with it and nothing has parsed it yet; else ``None``."""
        return self._raw if self._front is None else None

    @property
    def license(self) -> str | None:
        """The field ``license``, or ``None``."""
        return self.frontmatter.license

    @property
    def compatibility(self) -> str | None:
        """The field ``compatibility``, or ``None``."""
        return self.frontmatter.compatibility

    @property
    def metadata(self) -> Mapping[str, str]:
        """The field ``metadata``, each value as text."""
        return self.frontmatter.metadata

    @property
    def allowed_tools(self) -> tuple[str, ...]:
        """The tools that it asks for, one string each (``allowed-tools``)."""
        return self.frontmatter.allowed_tools

    @property
    def allowed_tools_raw(self) -> str | None:
        """The field ``allowed-tools`` as it is written, or ``None``."""
        return self.frontmatter.allowed_tools_raw

    @property
    def tags(self) -> tuple[str, ...]:
        """The field ``tags``."""
        return self.frontmatter.tags

    @property
    def version(self) -> str | None:
        """The field ``version``, or ``None``."""
        return self.frontmatter.version

    @property
    def model(self) -> str | None:
        """The model that it asks for, or ``None``."""
        return self.frontmatter.model

    @property
    def context(self) -> str | None:
        """The field ``context``: ``"fork"`` asks for a sub-agent."""
        return self.frontmatter.context

    @property
    def extra(self) -> Mapping[str, Value]:
        """Every field that no other attribute has, by its key."""
        return self.frontmatter.extra

    @property
    def is_fork(self) -> bool:
        """Whether it asks to run as a sub-agent of its own (``context: fork``)."""
        # Fast path of the bench row "load_skill, first call": parsing the head made it half as long again. In a head
        # that the fast matcher read, a colon follows each key at once. tests/skills/test_fast_paths.py compares both.
        if self._front is None and b"context:" not in self._raw:
            return False
        return self.context == "fork"

    @property
    def takes_arguments(self) -> bool:
        """Whether it says what arguments it takes (``arguments`` or ``argument-hint``)."""
        return "arguments" in self.extra or "argument-hint" in self.extra

    @property
    def user_invocable(self) -> bool:
        """Whether people may call it by name."""
        # Fast path of `prowess list`: every spelling of the key holds one of these two, and "invoice" does not.
        if self._front is None and b"nvoc" not in self._raw and b"nvok" not in self._raw:
            return True
        return fields.is_user_invocable(self.frontmatter)

    @property
    def model_invocable(self) -> bool:
        """Whether models see it in listings."""
        # Fast path, as in ``user_invocable``: every spelling of disable-model-invocation holds this.
        if self._front is None and b"nvocation" not in self._raw:
            return True
        return fields.is_model_invocable(self.frontmatter)

    @property
    def requires(self) -> Requirements:
        """The tools, MCP servers and variables that it needs, as its head says; ``allowed-tools`` is not among them."""
        from prowess.format import requirements

        # Fast path, as in ``is_fork``: most skills need nothing, and 10,000 are asked for one listing.
        if self._front is None and not any(mark in self._raw for mark in requirements.HEAD_MARKS):
            return requirements.Requirements()
        return requirements.read_requirements(self.frontmatter)

    # -- its place ----------------------------------------------------------------------------------------------------

    @property
    def found(self) -> SkillLocation:
        """Where it was found, and how."""
        return self._location

    @property
    def is_inline(self) -> bool:
        """True for a string in a program, which has no files."""
        return isinstance(self._location.files, InlineFiles)

    @property
    def is_local(self) -> bool:
        """True for a folder on this machine. Nothing of any other skill can ever run."""
        return bool(self._location.base)

    @property
    def dir(self) -> Path | None:
        """Its folder, as it was found, or ``None``."""
        from pathlib import Path

        return Path(self._folder()) if self._location.base else None

    @property
    def path(self) -> Path | None:
        """Its SKILL.md; ``None`` without a folder."""
        from pathlib import Path

        return Path(self._folder(), self._location.file) if self._location.base else None

    def _folder(self) -> str:
        """Return the folder under which people know the skill; ``""`` where it has none."""
        location = self._location
        if location.link_folder is not None:
            return location.link_folder
        return f"{location.base}{os.sep}{self._rel}" if self._rel else location.base

    @property
    def folder(self) -> str:
        """Its folder as text, or ``""``."""
        # A skill without a folder can be shown under a name of one, such as its URI, which is not a folder.
        return self._folder() if self._location.base else ""

    @property
    def folder_name(self) -> str:
        """The name of its folder, or ``""``."""
        if self._rel and self._location.link_folder is None:  # the usual case: ``catalog.issues`` asks each skill
            return self._rel.rpartition(os.sep)[2]
        return os.path.basename(self._folder())

    @property
    def real_folder(self) -> str:
        """Its folder by the path that reads use, without the link that led there; ``""`` without a folder."""
        return os.path.join(self._location.base, self._rel) if self._rel else self._location.base

    @property
    def base(self) -> str:
        """The folder that reads stay below; its own folder is ``parts`` below it."""
        return self._location.base

    @property
    def parts(self) -> tuple[str, ...]:
        """The folders from ``base`` to its own folder, by name."""
        return tuple(self._rel.split(os.sep)) if self._rel else ()

    @property
    def file_name(self) -> str:
        """The name of its SKILL.md as it was found."""
        return self._location.file

    @property
    def paths_followed(self) -> tuple[str, ...]:
        """The path of each link that was followed to its folder, and the path of the folder."""
        return (*self._location.links, self._folder())

    @property
    def virtual_path(self) -> str:
        """The folder under which filters and listings know it; the real one unless it was mounted elsewhere."""
        virtual = self._location.virtual_path
        return virtual if virtual is not None else self._folder().replace(os.sep, "/")

    @property
    def scope(self) -> SkillScope | None:
        """Whose folders it was found in, the project's or the user's; ``None`` for any other place."""
        return self._location.scope

    @property
    def origin(self) -> str:
        """What kind of source it came from."""
        return self._location.origin

    @property
    def source_label(self) -> str:
        """Who says what is in it, where a model must know it; ``""``: it is the user's own."""
        files = self._location.files
        return files.source_label if files is not None else ""

    def label_text(self, text: str) -> str:
        """Return text of the skill for a model; text from another party begins with a line that names that party."""
        # Without the label a model could take the words of a server for those of its host or its user.
        source = self.source_label
        return (
            f"[From {source}: what follows is theirs, not this system's or its user's.]\n\n{text}" if source else text
        )

    @property
    def preload(self) -> bool:
        """Whether its instructions are in the prompt from the start."""
        return self._location.preload

    @property
    def body_offset(self) -> int:
        """The byte of the file at which the body began when the head was read."""
        return self._offset

    @property
    def identity(self) -> Identity | None:
        """Device, inode, size and times of the file when its head was read."""
        return self._identity

    @property
    def policy(self) -> LoadPolicy:
        """How strictly its file is read."""
        return self._location.policy

    @property
    def limits(self) -> Limits:
        """The bounds under which it was found."""
        return self._location.policy.limits

    @property
    def location(self) -> str:
        """The path of its SKILL.md, or its URL, or ``inline:NAME``."""
        location = self._location
        if location.files is None:
            return f"{self._folder()}{os.sep}{location.file}"
        return location.files.location or f"inline:{self._name}"

    @property
    def state(self) -> object:
        """A value that differs when its SKILL.md may have changed: the file's identity, or its source's state."""
        files = self._location.files
        return self._identity if files is None else files.state

    @property
    def own_files(self) -> SkillFiles:
        """What reads its files, wherever they are."""
        location = self._location
        if location.files is not None:
            return location.files
        place = FolderPlace(location.base, self.parts, location.file, self.location, location.policy.limits)
        return location.open_folder(place)

    @property
    def issues(self) -> tuple[Issue, ...]:
        """The issues of its head; of a fetched skill also how it differs from what was announced."""
        if self._issues is None:
            self._issues = self._find_issues()
        return self._issues

    def is_faultless(self, folder: str) -> bool:
        """Return True only if no rule finds anything in its head, with this folder's name."""
        return self._front is None and self._name == folder and is_faultless(self._raw, self._description)

    def _find_issues(self) -> tuple[Issue, ...]:
        """Return the issues of a head that a fast matcher has read."""
        # The fields are not kept: a catalogue asks thousands of skills for their issues, and for nothing else.
        folder, path = self.folder_name, self.location
        if self.is_faultless(folder):
            return ()
        expected = folder if self.policy.check_dir else None
        return tuple(rules.field_issues(self.peek(), mode="lenient", folder=expected, path=path))

    @property
    def repair_issues(self) -> tuple[Issue, ...]:
        """What had to be repaired before its head could be read, line breaks included."""
        return tuple(i for i in self._issues or () if is_repair(i) or i.code == "line-break")

    @property
    def repairs(self) -> tuple[Issue, ...]:
        """What had to be repaired for it to load; empty for a head that nothing was wrong with."""
        return tuple(issue for issue in self._issues or () if is_repair(issue))

    # -- copies that differ ------------------------------------------------------------------------------------------

    def _copy(self, **changes: object) -> Skill:
        """Return a copy with other values in some slots."""
        other = Skill.__new__(Skill)  # the constructor would parse a location, and knows fewer slots
        for slot in Skill.__slots__:
            setattr(other, slot, changes[slot] if slot in changes else getattr(self, slot))
        return other

    def with_source(
        self,
        *,
        virtual_path: str | None = None,
        preload: bool | None = None,
        scope: SkillScope | None = None,
        origin: str | None = None,
        open_folder: Callable[[FolderPlace], SkillFiles] | None = None,
    ) -> Skill:
        """Return a copy with the given values, which a source or a lock file decides; ``None`` keeps a value."""
        given = {
            "virtual_path": virtual_path,
            "preload": preload,
            "scope": scope,
            "origin": origin,
            "open_folder": open_folder,
        }
        changes: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
        return self._copy(_location=self._location._replace(**changes))

    def without_folder(self, folder: str) -> Skill:
        """Return the skill without the folder of this name at its top.

        A skill that is not on this machine stays as it is.
        """
        if not self.is_local:
            return self
        return self.with_source(open_folder=partial(FilesWithoutFolder, folder, self._location.open_folder))

    def with_folder(self, folder: str) -> Skill:
        """Return the skill in a copy of its folder: its files are read from there and nowhere else."""
        # Without the identity of the file: the copy is another file, and must not pass for the one that was seen.
        location = self._location._replace(base=folder, link_folder=None)
        return self._copy(_location=location, _rel="", _identity=None)

    def with_shown_folder(self, folder: str) -> Skill:
        """Return the skill as people and models see it who know its folder as ``folder``.

        Reads go where they went before.
        """
        return self._copy(_location=self._location._replace(link_folder=folder))

    def with_file(self, data: bytes, identity: Identity) -> Skill:
        """Return the skill that its whole file ``data`` holds; itself where nothing of its head has changed.

        Raises ``SkillLoadError`` for a head that is no longer that of a skill.
        """
        match = read_head(data, policy=self.policy, quick="only")
        if match is not None and match.raw == self._raw:  # the head is as it was; only the rest of the file changed
            same = identity == self._identity and match.body_offset == self._offset
            return self if same else self._copy(_offset=match.body_offset, _identity=identity)
        document = self.parse_file(data)
        if document.body_offset == 0:  # without frontmatter the fields stay as they were given
            return self
        slots = _head_slots(document.front)
        return self._copy(_offset=document.body_offset, _identity=identity, **slots)

    # -- what it holds -----------------------------------------------------------------------------------------------

    if TYPE_CHECKING:

        @overload
        def read_body(
            self, *, strip: bool = False, errors: Literal["strict", "replace"] = "strict", max_bytes: Bound = ...
        ) -> str: ...

        @overload
        def read_body(self, *, strip: bool = False, errors: Literal["bytes"], max_bytes: Bound = ...) -> bytes: ...

    def read_body(self, *, strip: bool = False, errors: OnBadBytes = "strict", max_bytes: Bound = ...) -> str | bytes:
        """Everything after the closing ``---`` line, byte for byte; the file is read anew at each call.

        ``strip=True``: without whitespace at both ends, and ``EmptySkillBodyError`` when nothing is left. ``errors``: a
        body that is not UTF-8 is an error (``"strict"``), has U+FFFD for each bad byte (``"replace"``), or every body
        comes as its bytes (``"bytes"``). ``max_bytes``: another bound than ``Limits.max_body_bytes``; ``None`` is none.

        Raises ``SkillValidationError`` when the file cannot be read, is too large or is not UTF-8, and
        ``InvalidFrontmatterError`` when it has no frontmatter; which fields that has plays no part. ``load`` and
        sessions take the whole file for the body where ``needs_frontmatter`` is false.
        """
        self.refuse_revoked()
        if errors not in {"strict", "replace", "bytes"}:
            raise SourceError(f"errors must be 'strict', 'replace' or 'bytes', not {errors!r}")
        text = self._read_body(errors, resolve_bound(max_bytes, self.limits.max_body_bytes))
        if not strip:
            return text
        if not text.strip():
            raise EmptySkillBodyError("the skill has no instructions", self.location)
        return text.strip()

    def _read_body(self, errors: OnBadBytes, limit: int) -> str | bytes:
        files = self.own_files
        if isinstance(files, InlineFiles):  # without a limit: the program has the string in memory already
            return files.body.encode() if errors == "bytes" else files.body
        data, identity = files.read_skill_file(limit)
        if identity is None:  # a source has fetched the file
            offset = self._read_head(data).body_offset
            files.note_body(data[offset:].decode("utf-8", "replace"))
        elif identity == self._identity and self._offset:  # the file that was found: bench row "skill.read_body()"
            offset = self._offset
        else:  # only the dashes count: the body is wanted also when a field was lost since the skill was found
            offset = find_offset(data, self.policy, self.location)
        body = data[offset:]
        if len(body) > limit:
            raise too_large_body_error(self.location, limit)
        if errors == "bytes":
            return body
        return body.decode("utf-8", "replace") if errors == "replace" else self._decode_body(body, offset)

    def _decode_body(self, body: bytes, offset: int) -> str:
        return decode_body(body, offset, self.location)

    @property
    def needs_frontmatter(self) -> bool:
        """Whether its file must have frontmatter to load: not if a program or the index of a site gave the fields."""
        files = self._location.files
        if files is None:
            return self._offset != 0  # frontmatter that was read ends behind the first byte
        return not files.announces_fields

    def read_text(self) -> str:
        """Return the whole text of its SKILL.md, frontmatter included; of a skill without a file, its string.

        Raises ``SkillValidationError`` where the file cannot be read or is not text, as reading its body does.
        """
        files, name, limits = self.own_files, self.file_name, self.limits
        if isinstance(files, InlineFiles):
            return files.body
        try:
            return resources.decode_text(
                self.read_bytes(name, limits.max_frontmatter_bytes + limits.max_body_bytes), name
            )
        except ResourceChangedError:
            raise  # a file that is not what was listed or locked is not the same as one that is gone
        except ResourceError as error:
            raise unreadable_error(self.location, error, limits.max_body_bytes) from None

    def load(self) -> LoadedSkill:
        """The skill as its file is now, with its instructions; the file is parsed again, whatever discovery saw."""
        self.refuse_revoked()
        files = (
            self.own_files.renew()
        )  # instructions and files must be of the same state, so the skill goes on with these
        if isinstance(files, InlineFiles):
            return LoadedSkill(self, strip_body(files.body))
        data, identity = files.read_skill_file(self.limits.max_body_bytes)
        if identity is None:
            return self.load_fetched(data, files)
        fresh = self.with_file(data, identity)
        return LoadedSkill(fresh, self._extract_instructions(data, fresh.body_offset))

    def load_fetched(self, data: bytes, files: SkillFiles) -> LoadedSkill:
        """Return the skill as the bytes of its fetched SKILL.md have it; ``files``: those that it was fetched with."""
        document = self.parse_file(data)
        differing = files.find_differences(document.front, self._name, self._description)
        fresh = self._copy(
            _location=self._location._replace(files=files),  # so that its state is that of what was read
            _offset=document.body_offset,
            _identity=None,
            _issues=(*document.issues, *differing, *files.issues()),
            **_head_slots(files.admit_fields(document.front, self._name)),
        )
        text = self._extract_instructions(data, document.body_offset)
        files.note_body(text)
        return LoadedSkill(fresh, text)

    def _extract_instructions(self, data: bytes, offset: int) -> str:
        """Return the instructions in a whole file whose body begins at ``offset``."""
        if len(data) - offset > self.limits.max_body_bytes:
            raise too_large_body_error(self.location, self.limits.max_body_bytes)
        return strip_body(self._decode_body(data[offset:], offset))

    def parse_file(self, data: bytes) -> Head:
        """The document of a whole file. Without frontmatter it is all body, where the fields came from elsewhere.

        They did where a program made the skill, or where the index of a site announced it. Raises ``SkillLoadError``,
        also for an empty file and for an HTML page, with which many sites answer in place of a missing file.
        """
        try:
            return self._read_head(data)
        except NoFrontmatterError:
            if self.needs_frontmatter or not data.strip() or _HTML_PAGE.match(data):
                raise
            message = "the file has no frontmatter; the fields are as announced"
            issue = Issue("no-frontmatter", "", message, self.location, 1, "warning")
            return Head(self.frontmatter, 0, (issue,))

    def _read_head(self, data: bytes) -> Head:
        limit = self.limits.max_frontmatter_bytes
        # Without a check of the folder's name: that was decided when the skill was found.
        policy = self.policy._replace(check_dir=False)
        folder = self.folder_name or self._name
        return read_head(
            data[:limit], quick=False, whole=len(data) <= limit, policy=policy, folder=folder, path=self.location
        )

    def resources(self) -> Resources:
        """Its scripts, references, assets and other files, one level deep, by name."""
        return self.own_files.list_resources()

    def readable_paths(self) -> tuple[str, ...]:
        """The files to name to a model: ``resource_paths()``, or, where there are none, the files in other folders.

        Of a remote skill these are the files that are known without fetching anything. Raises ``SkillValidationError``
        for a folder that cannot be listed.
        """
        return self.own_files.readable_paths()

    def files(self) -> FileList:
        """Return every regular file below its folder, relative, in byte order; what was left out is in ``.issues``."""
        return self.own_files.list_files()

    def read_resource(self, path: str, max_bytes: Bound = ..., *, truncate: bool = False) -> str:
        """Return the text of one of its files; at most ``max_bytes``, else ``ResourceTooLargeError``.

        ``max_bytes`` is ``Limits.max_resource_bytes`` (64 KiB) unless the caller says otherwise; ``None`` lifts the
        bound. ``truncate=True`` cuts instead, at a character, and says so in the last line.
        """
        check_text(path, "path")
        self.refuse_revoked()
        limit = resolve_bound(max_bytes, self.limits.max_resource_bytes)
        try:
            return self.own_files.read_text(path, limit, truncate=truncate)
        except ResourceNotFoundError as error:
            raise self._with_suggestions(error, path) from None

    def read_bytes(self, path: str, max_bytes: Bound = ...) -> bytes:
        """Return the bytes of one of its files; at most ``max_bytes``, else ``ResourceTooLargeError``.

        ``max_bytes`` is ``Limits.max_file_bytes`` (10 MiB) unless the caller says otherwise; ``None`` lifts the bound.
        """
        self.refuse_revoked()
        limit = resolve_bound(max_bytes, self.limits.max_file_bytes)
        try:
            return self.own_files.read_bytes(path, limit)
        except ResourceNotFoundError as error:
            raise self._with_suggestions(error, path) from None

    def refuse_revoked(self) -> None:
        """Raise ``PolicyError`` where the policy files revoke this skill, in the state that its files have now."""
        from prowess.policy.files import current_policy  # a program that only lists skills loads no policy

        policy = current_policy()
        # Hashed at each read: nobody can tell when a file of the skill was changed. Most policies revoke nothing.
        if policy.revoked_digests and not self.is_inline:
            policy.check_revoked(self.name, self.digest() if self.is_local else self.own_files.announced_digest())

    def _with_suggestions(self, error: ResourceNotFoundError, path: str) -> ResourceNotFoundError:
        """The error with the files that may have been meant, as far as they are known without fetching anything."""
        try:
            return resources.with_suggestions(error, path, self.readable_paths())
        except SkillError:  # a folder that cannot be listed
            return error

    def digest(self) -> str:
        """Return the SHA-256 (hexadecimal) over all files in its folder; links, special files and limits are errors."""
        return self.own_files.digest()

    # -- how it is shown ---------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, object]:
        """Return the fields that are set, under their names in JSON, with ``path`` and ``location``."""
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
        """Its entry in an XML listing, with its location; each field is escaped and on one line."""
        from prowess.skills import render

        return render.render_skill_xml(self)


def _head_slots(front: Frontmatter) -> dict[str, object]:
    """The slots of a skill with this head. The bytes of the head are not kept: the fields need no second parsing."""
    return {"_raw": b"", "_front": front, "_name": front.name, "_description": front.description.strip()}


def _parse_front(raw: bytes) -> Frontmatter:
    """Return the fields of a head that a quick reader has read: it is YAML without fault."""
    values, lines = parse_yaml(raw.decode())
    return fields.build_frontmatter(values, {key: line + 2 for key, line in lines.items()}, raw)


# -- constructors for discovery, parsing and sources -------------------------------------------------------------------


def make_skill_from_match(location: SkillLocation, rel: str, match: QuickHead, identity: Identity) -> Skill:
    """Return the skill behind a head of the commonest shape, which the fast matcher has read."""
    # The inner loop of discovery (bench row "scan"): no constructor, and no field is parsed.
    skill = Skill.__new__(Skill)
    skill._name, skill._description, skill._raw, skill._offset = match
    skill._location = location
    skill._rel = rel
    skill._identity = identity
    skill._front = skill._issues = None
    return skill


def make_skill_from_document(location: SkillLocation, rel: str, document: Head, identity: Identity | None) -> Skill:
    """Return the skill behind a head that was parsed in full."""
    skill = Skill(document.front)
    skill._location = location
    skill._rel = rel
    skill._offset = document.body_offset
    skill._identity = identity
    skill._issues = document.issues
    return skill


def make_remote_skill(location: SkillLocation, front: Frontmatter, issues: tuple[Issue, ...] = ()) -> Skill:
    """Return a skill whose name and description a source has announced, and holds the rest."""
    skill = Skill(front)
    skill._location = location
    skill._issues = issues
    return skill

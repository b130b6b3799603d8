"""One skill: its frontmatter, its location, and its body and files, which are read when asked for and never kept."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from prowess.arguments import check_instance, check_text
from prowess.errors import EmptySkillBodyError, ResourceNotFoundError, SkillError, SourceError
from prowess.format import rules
from prowess.format.document import is_repair, read_document
from prowess.format.frontmatter import fields
from prowess.format.frontmatter.fast_match import MAX_HEAD_BYTES, match_head
from prowess.format.frontmatter.plain_yaml import can_skip_limit_checks
from prowess.limits import resolve_bound
from prowess.skills import instructions, resources
from prowess.skills.folder_files import FolderFiles
from prowess.skills.head import SkillHead
from prowess.skills.location import LocatedHead, SkillLocation

if TYPE_CHECKING:
    from prowess.errors import Issue
    from prowess.files.read import Identity
    from prowess.format.document import Document
    from prowess.format.frontmatter.fast_match import HeadMatch
    from prowess.format.frontmatter.fields import Frontmatter
    from prowess.limits import Bound
    from prowess.literals import OnBadBytes
    from prowess.model import FileList, Resources, SkillScope
    from prowess.skills.instructions import LoadedSkill
    from prowess.skills.skill_files import SkillFiles

_ALL_SLOTS = (*SkillHead.__slots__, *LocatedHead.__slots__)


class Skill(LocatedHead):
    """A skill that was found, read from text, or made by a program.

    A skill is read-only. Discovery needs the name and the description; every other field is parsed from the bytes of
    the head when it is first asked for.
    """

    __slots__ = ()

    def __init__(
        self,
        frontmatter: Frontmatter,
        location: str | os.PathLike[str] | None = None,
        scope: SkillScope | None = None,
        *,
        body: str | None = None,
    ) -> None:
        """A skill with this frontmatter whose SKILL.md is at ``location``; without one, ``body`` is its text."""
        from prowess.skills import inline_files

        check_instance(frontmatter, "frontmatter", fields.Frontmatter, remedy="pass Frontmatter(name=…, description=…)")
        if body is not None:
            check_text(body, "body")
        base, file = os.path.split(os.path.abspath(os.fspath(location))) if location is not None else ("", "")
        self._front = frontmatter
        self._raw = b""
        self._name = frontmatter.name
        self._description = frontmatter.description.strip()
        files = FolderFiles() if base else inline_files.InlineFiles(body or "")
        self._location = SkillLocation(base, file, scope, origin="directory" if base else "inline", files=files)
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
        if not self.is_local and not self.is_inline:  # neither a folder nor a text: a source fetches the files
            message = f"skill {self._name!r} cannot be pickled: its files are given by another machine"
            raise SkillError(message, self.location, "not-picklable")
        return None, {slot: getattr(self, slot) for slot in _ALL_SLOTS}

    @property
    def location(self) -> str:
        """The path of its SKILL.md, or its URL, or ``inline:NAME``."""
        location = self._location
        # The path of a folder is known here: asking the files for it would add a tenth to the time of a load.
        return f"{self._folder()}{os.sep}{location.file}" if location.base else location.files.get_location(self)

    @property
    def state(self) -> object:
        """A value that differs when its SKILL.md may have changed: the file's identity, or its source's state."""
        return self._location.files.get_state(self)

    @property
    def issues(self) -> tuple[Issue, ...]:
        """The issues of its head; of a fetched skill also how it differs from what was announced."""
        if self._issues is None:
            self._issues = self._find_issues()
        return self._issues

    def _find_issues(self) -> tuple[Issue, ...]:
        """The issues of a head that a fast matcher has read."""
        # The fields are not kept: a catalogue asks thousands of skills for their issues, and for nothing else.
        folder, path = self.folder_name, self.location
        if self._has_fences:
            return read_document(self._raw, whole=True, policy=self.policy, folder=folder, path=path).issues
        if self.is_surely_faultless(folder):
            return ()
        expected = folder if self.policy.check_dir else None
        return tuple(rules.field_issues(self.peek(), mode="lenient", folder=expected, path=path))

    @property
    def repair_issues(self) -> tuple[Issue, ...]:
        """What had to be repaired before its head could be read, line breaks included."""
        return tuple(i for i in self._head_issues() if is_repair(i) or i.code == "line-break")

    @property
    def repairs(self) -> tuple[Issue, ...]:
        """What had to be repaired for it to load; empty for a head that nothing was wrong with."""
        return tuple(issue for issue in self._head_issues() if is_repair(issue))

    def _head_issues(self) -> tuple[Issue, ...]:
        """The issues, or none where nothing can have been repaired, so that nothing is looked for in vain."""
        return self.issues if self._issues is not None or self._has_fences else ()

    # -- copies that differ ------------------------------------------------------------------------------------------

    def _copy(self, **changes: object) -> Skill:
        """A copy with other values in some slots."""
        other = Skill.__new__(Skill)  # the constructor would parse a location, and knows fewer slots
        for slot in _ALL_SLOTS:
            setattr(other, slot, changes[slot] if slot in changes else getattr(self, slot))
        return other

    def with_source(
        self,
        *,
        virtual_path: str | None = None,
        preload: bool | None = None,
        scope: SkillScope | None = None,
        origin: str | None = None,
        files: SkillFiles | None = None,
    ) -> Skill:
        """A copy with the given values, which a source or a lock file decides; ``None`` keeps a value."""
        given = {"virtual_path": virtual_path, "preload": preload, "scope": scope, "origin": origin, "files": files}
        changes: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
        return self._copy(_location=self._location._replace(**changes))

    def with_folder(self, folder: str) -> Skill:
        """The skill in a copy of its folder: its files are read from there and nowhere else."""
        # Without the identity of the file: the copy is another file, and must not pass for the one that was seen.
        location = self._location._replace(base=folder, link_folder=None)
        return self._copy(_location=location, _rel="", _identity=None)

    def with_shown_folder(self, folder: str) -> Skill:
        """The skill as people and models see it who know its folder as ``folder``; reads go where they went before."""
        return self._copy(_location=self._location._replace(link_folder=folder))

    def with_file(self, data: bytes, identity: Identity) -> Skill:
        """The skill that its whole file ``data`` holds; itself where nothing of its head has changed.

        Raises ``SkillLoadError`` for a head that is no longer that of a skill.
        """
        # Fast path of the bench row "load_skill, first call": the bytes of the head are compared, and not parsed.
        # tests/skills/test_fast_paths.py has a head that changed within one tick of the clock.
        if identity is self._identity and self._begins(data):
            return self
        match = match_head(data[:MAX_HEAD_BYTES]) if can_skip_limit_checks(self.limits) else None
        if match is not None and match[2] == self._raw:  # the head is as it was, and only the rest of the file changed
            same = identity == self._identity and match[3] == self._offset
            return self if same else self._copy(_offset=match[3], _identity=identity)
        document = instructions.parse_file(self, data)
        if document.body_offset == 0:  # without frontmatter the fields stay as they were given
            return self
        slots = _head_slots(document.front)
        # The old bytes of a head that was repaired are not kept, so its issues are looked for before they go.
        issues = self.issues if self._has_fences else self._issues
        return self._copy(_offset=document.body_offset, _identity=identity, _issues=issues, **slots)

    def with_fetched_head(self, front: Frontmatter, offset: int, issues: tuple[Issue, ...], files: SkillFiles) -> Skill:
        """The skill as its fetched SKILL.md has it; ``files``: those that the SKILL.md was fetched with."""
        location = self._location._replace(files=files)  # so that its state is that of what was read
        return self._copy(_location=location, _offset=offset, _identity=None, _issues=issues, **_head_slots(front))

    def _begins(self, data: bytes) -> bool:
        """Whether a file begins with the bytes of the head that was read before, fences included."""
        raw = self._raw
        if not raw or len(raw) == self._offset:  # a head that was parsed in full is kept with its fences
            return raw != b"" and data.startswith(raw)
        end = len(raw) + 4
        return data.startswith(raw, 4) and data.startswith(b"---\n") and data[end : self._offset] == b"---\n"

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

        ``strip=True``: without blanks at both ends, and ``EmptySkillBodyError`` when nothing is left. ``errors``: a
        body that is not UTF-8 is an error (``"strict"``), has U+FFFD for each bad byte (``"replace"``), or every body
        comes as its bytes (``"bytes"``). ``max_bytes``: another bound than ``Limits.max_body_bytes``; ``None`` is none.

        Raises ``SkillValidationError`` when the file cannot be read, is too large or is not UTF-8, and
        ``InvalidFrontmatterError`` when it has no frontmatter; which fields that has plays no part. ``load`` and
        sessions take the whole file for the body where ``needs_frontmatter`` is false.
        """
        if errors not in {"strict", "replace", "bytes"}:
            raise SourceError(f"errors must be 'strict', 'replace' or 'bytes', not {errors!r}")
        limit = resolve_bound(max_bytes, self.limits.max_body_bytes)
        text = self._location.files.read_body(self, errors, limit)
        if not strip:
            return text
        if not text.strip():
            raise EmptySkillBodyError("the skill has no instructions", self.location)
        return text.strip()

    @property
    def needs_frontmatter(self) -> bool:
        """Whether its file must have frontmatter to load: not if a program or the index of a site gave the fields."""
        is_made = self.is_local and self._offset == 0  # frontmatter that was read ends behind the first byte
        return not (is_made or self._location.files.announces_fields)

    def read_text(self) -> str:
        """The whole text of its SKILL.md, frontmatter included; of a skill without a file, its text."""
        return self._location.files.read_source(self)

    def load(self) -> LoadedSkill:
        """The skill as its file is now, with its instructions; the file is parsed again, whatever discovery saw."""
        return self._location.files.load(self)

    def resources(self) -> Resources:
        """Its scripts, references, assets and other files, one level deep, by name."""
        return self._location.files.list_resources(self)

    def resource_paths(self) -> tuple[str, ...]:
        """``resources().paths``, faster; of a remote skill those that are known without fetching anything."""
        return self._location.files.resource_paths(self)

    def readable_paths(self) -> tuple[str, ...]:
        """The files to name to a model: ``resource_paths()``, or, where there are none, the files in other folders.

        Of a remote skill these are the files that are known without fetching anything. Raises ``SkillValidationError``
        for a folder that cannot be listed.
        """
        return self._location.files.readable_paths(self)

    def may_have_files(self) -> bool:
        """True when it has a supporting file, or may have one that only fetching it would show."""
        return self._location.files.may_have_files(self)

    def files(self) -> FileList:
        """Every regular file below its folder, relative, in byte order; what was left out is in ``.issues``."""
        return self._location.files.list_files(self)

    def read_resource(self, path: str, max_bytes: Bound = ..., *, truncate: bool = False) -> str:
        """The text of one of its files; at most ``max_bytes``, else ``ResourceTooLargeError``.

        ``max_bytes`` is ``Limits.max_resource_bytes`` (64 KiB) unless the caller says otherwise; ``None`` lifts the
        bound. ``truncate=True`` cuts instead, at a character, and says so in the last line.
        """
        check_text(path, "path")
        limit = resolve_bound(max_bytes, self.limits.max_resource_bytes)
        try:
            return self._location.files.read_text(self, path, limit, truncate=truncate)
        except ResourceNotFoundError as error:
            raise self._with_suggestions(error, path) from None

    def read_bytes(self, path: str, max_bytes: Bound = ...) -> bytes:
        """The bytes of one of its files; at most ``max_bytes``, else ``ResourceTooLargeError``.

        ``max_bytes`` is ``Limits.max_file_bytes`` (10 MiB) unless the caller says otherwise; ``None`` lifts the bound.
        """
        limit = resolve_bound(max_bytes, self.limits.max_file_bytes)
        try:
            return self._location.files.read_bytes(self, path, limit)
        except ResourceNotFoundError as error:
            raise self._with_suggestions(error, path) from None

    def _with_suggestions(self, error: ResourceNotFoundError, path: str) -> ResourceNotFoundError:
        """The error with the files that may have been meant, as far as they are known without fetching anything."""
        try:
            return resources.with_suggestions(error, path, self.readable_paths())
        except SkillError:  # a folder that cannot be listed
            return error

    def digest(self) -> str:
        """The SHA-256 (hexadecimal) over all files in its folder; links, special files and limits are errors."""
        return self._location.files.digest(self)

    # -- how it is shown ---------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, object]:
        """The fields that are set, under their names in JSON, with ``path`` and ``location``."""
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


# -- constructors for discovery, parsing and sources -------------------------------------------------------------------


def make_skill_from_match(location: SkillLocation, rel: str, match: HeadMatch, identity: Identity) -> Skill:
    """The skill behind a head of the commonest shape, which the fast matcher has read."""
    # The inner loop of discovery (bench row "scan"): no constructor, and no field is parsed.
    skill = Skill.__new__(Skill)
    skill._name, skill._description, skill._raw, skill._offset = match
    skill._location = location
    skill._rel = rel
    skill._identity = identity
    skill._front = skill._issues = None
    return skill


def make_skill_from_document(
    location: SkillLocation, rel: str, document: Document, identity: Identity | None, head: bytes = b""
) -> Skill:
    """The skill behind a head that was parsed in full; ``head``: its bytes, to see later whether it has changed."""
    skill = Skill(document.front)
    skill._raw = head[: document.body_offset]
    skill._location = location
    skill._rel = rel
    skill._offset = document.body_offset
    skill._identity = identity
    skill._issues = document.issues
    return skill


def make_remote_skill(location: SkillLocation, front: Frontmatter, issues: tuple[Issue, ...] = ()) -> Skill:
    """A skill of which a source has announced the name and the description, and holds the rest."""
    skill = Skill(front)
    skill._location = location
    skill._issues = issues
    return skill

"""One discovered skill: its frontmatter and where it lives. Body and files are read on demand, never kept."""

from __future__ import annotations

import os

from prowess.arguments import check_text
from prowess.errors import EmptySkillBodyError, ResourceNotFoundError, SkillError, SourceError
from prowess.limits import resolve_bound
from prowess.on_demand import OnDemand
from prowess.skills.head import SkillHead
from prowess.skills.location import LocatedHead, SkillLocation

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Literal, Self, overload

    from prowess.errors import Issue
    from prowess.files.read import Identity
    from prowess.limits import Bound
    from prowess.literals import OnBadBytes
    from prowess.model import FileList, Resources, SkillScope
    from prowess.skills import instructions, resources, skill_files
    from prowess.skills.instructions import LoadedSkill
    from prowess.skills.skill_files import FilePin
    from prowess.spec import render, rules
    from prowess.spec.document import Document
    from prowess.spec.frontmatter.fast_match import HeadMatch
    from prowess.spec.frontmatter.fields import Frontmatter
else:
    instructions, resources = OnDemand("prowess.skills.instructions"), OnDemand("prowess.skills.resources")
    skill_files = OnDemand("prowess.skills.skill_files")
    render, rules = OnDemand("prowess.spec.render"), OnDemand("prowess.spec.rules")

_ALL_SLOTS = (*SkillHead.__slots__, *LocatedHead.__slots__)


class Skill(LocatedHead):
    """A skill that was found, read from text, or made by a program.

    Read-only. What discovery did not need (fields beyond name and description) is parsed from the bytes of the head
    when it is first asked for.
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
        base, file = os.path.split(os.path.abspath(os.fspath(location))) if location is not None else ("", "")
        self._front = frontmatter
        self._raw = b""
        self._name = frontmatter.name
        self._description = frontmatter.description.strip()
        self._home = SkillLocation(
            base, file, scope, origin="directory" if base else "inline", body=None if base else body or ""
        )
        self._rel = ""
        self._identity = None
        self._offset = 0
        self._issues = ()

    def __repr__(self) -> str:
        """The name and where it lives."""
        return f"Skill({self._name!r}, {self.location!r})"

    def __copy__(self) -> Self:
        """Itself: nobody can change it."""
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        """Itself: nobody can change it."""
        return self

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        """What a pickle holds: everything but the files.

        Raises ``SkillError`` for a skill whose files another machine gives: its connection stays in this process.
        """
        if self._home.contents is not None:
            message = f"skill {self._name!r} cannot be pickled: its files are given by another machine"
            raise SkillError(message, self.location, "not-picklable")
        return None, {slot: getattr(self, slot) for slot in _ALL_SLOTS}

    @property
    def issues(self) -> tuple[Issue, ...]:
        """What was found about its head; for a fetched one also how it differs from what was announced."""
        if self._issues is None:
            found = rules.field_issues(self.frontmatter, mode="lenient", folder=self.folder_name, path=self.location)
            self._issues = tuple(found)
        return self._issues

    # -- the same elsewhere ------------------------------------------------------------------------------------------

    def placed(
        self,
        *,
        virtual_path: str | None = None,
        preload: bool | None = None,
        scope: SkillScope | None = None,
        origin: str | None = None,
        pin: FilePin | None = None,
    ) -> Skill:
        """A copy that differs in what a source decides."""
        home = self._home
        other = Skill.__new__(Skill)
        for slot in _ALL_SLOTS:
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
        ``InvalidFrontmatterError`` when it has no frontmatter any more; which fields that has plays no part.
        """
        if errors not in {"strict", "replace", "bytes"}:
            raise SourceError(f"errors must be 'strict', 'replace' or 'bytes', not {errors!r}")
        if self._home.body is None:
            text = instructions.read_skill_body(self, errors, resolve_bound(max_bytes, self.limits.max_body_bytes))
        else:
            text = self._home.body.encode() if errors == "bytes" else self._home.body
        if not strip:
            return text
        if not text.strip():
            raise EmptySkillBodyError("the skill has no instructions", self.location)
        return text.strip()

    def read_text(self) -> str:
        """The whole file, frontmatter included; the text alone of a skill without a file."""
        return instructions.read_skill_text(self)

    def load(self) -> LoadedSkill:
        """The skill as its file is now, with its instructions; the file is parsed again, whatever discovery saw."""
        return instructions.load_skill(self)

    def resources(self) -> Resources:
        """Its scripts, references, assets and other files, one level deep, by name."""
        if self._home.contents is not None:
            return skill_files.list_resources(self._home.contents)
        return resources.list_resources(
            self._home.base, self._parts(), self._home.file, self.location, self._home.policy.limits
        )

    def resource_paths(self) -> tuple[str, ...]:
        """``resources().paths`` alone, with fewer steps; of a remote skill what is known without fetching it."""
        home = self._home
        if home.contents is not None:
            return skill_files.known_paths(home.contents)
        plain = resources.list_plain_paths(home.base, self._parts(), home.file, home.policy.limits)
        return self.resources().paths if plain is None else plain.paths

    def readable_paths(self) -> tuple[str, ...]:
        """The files to name to a model: ``resource_paths()``, or, without any, those in whatever folders there are.

        Of a remote skill they are what is known without fetching it. Raises ``SkillValidationError`` for a folder that
        cannot be listed.
        """
        home = self._home
        if home.contents is not None:
            return skill_files.known_paths(home.contents) or skill_files.readable_paths(home.contents)
        # Fast path: nearly every skill has files in the usual places or none, and needs no walk of its whole folder.
        plain = resources.list_plain_paths(home.base, self._parts(), home.file, home.policy.limits)
        if plain is not None and (plain.paths or not plain.has_folders):
            return plain.paths
        return self.resources().paths or resources.find_readable(self.files(), home.file)

    def may_have_files(self) -> bool:
        """Whether it has a supporting file, or might have one that only fetching it would tell."""
        if self._home.contents is not None and self._home.contents.known_files() is None:
            return True
        return bool(self.readable_paths())

    def files(self) -> FileList:
        """Every regular file below its folder, relative, in byte order; what was left out is in ``.issues``."""
        if self._home.contents is not None:
            return skill_files.list_files(self._home.contents, self.limits)
        return resources.list_files(self._home.base, self._parts(), self.location, self._home.policy.limits)

    def read_resource(self, path: str, max_bytes: Bound = ..., *, truncate: bool = False) -> str:
        """The text of one of its files; at most ``max_bytes``, else ``ResourceTooLargeError``.

        ``max_bytes`` is ``Limits.max_resource_bytes`` (64 KiB) unless the caller says otherwise; ``None`` lifts the
        bound. ``truncate=True`` cuts instead, at a character, and says so in the last line.
        """
        check_text(path, "path")
        most = resolve_bound(max_bytes, self.limits.max_resource_bytes)
        try:
            return self._read_resource_text(path, most, truncate=truncate)
        except ResourceNotFoundError as error:
            raise self._with_suggestions(error, path) from None

    def _read_resource_text(self, path: str, most: int, *, truncate: bool) -> str:
        if self._home.contents is not None:
            return skill_files.read_text(self._home.contents, path, most, truncate=truncate)
        if self._home.pin is not None:
            return resources.decode_bounded(self._read_pinned_bytes(path), path, most, truncate=truncate)
        return resources.read_text(self._home.base, self._parts(), path, most, truncate=truncate)

    def read_bytes(self, path: str, max_bytes: Bound = ...) -> bytes:
        """The bytes of one of its files; at most ``max_bytes``, else ``ResourceTooLargeError``.

        ``max_bytes`` is ``Limits.max_file_bytes`` (10 MiB) unless the caller says otherwise; ``None`` lifts the bound.
        """
        most = resolve_bound(max_bytes, self.limits.max_file_bytes)
        try:
            return self._read_resource_bytes(path, most)
        except ResourceNotFoundError as error:
            raise self._with_suggestions(error, path) from None

    def _read_resource_bytes(self, path: str, most: int) -> bytes:
        if self._home.contents is not None:
            return skill_files.read_bytes(self._home.contents, path, most)
        if self._home.pin is not None:
            return resources.check_size(self._read_pinned_bytes(path), path, most)
        return resources.read_bytes(self._home.base, self._parts(), path, most)

    def _with_suggestions(self, error: ResourceNotFoundError, path: str) -> ResourceNotFoundError:
        """The error with the files that may have been meant, as far as they are known without fetching anything."""
        try:
            return resources.with_suggestions(error, path, self.readable_paths())
        except SkillError:  # a folder that cannot be listed
            return error

    def _read_pinned_bytes(self, path: str) -> bytes:
        """The whole file, which is what the lock file says: what is given is what was hashed."""
        data = resources.read_bytes(self._home.base, self._parts(), path, self.limits.max_install_bytes)
        if self._home.pin is not None:
            self._home.pin.check_resource(path, data)
        return data

    def digest(self) -> str:
        """The SHA-256 (hex) of everything in its folder; links, special files and limits are errors."""
        if self._home.contents is not None:
            return skill_files.digest_files(self._home.contents, self.limits)
        return resources.digest_folder(self._home.base, self._parts(), self.location, self._home.policy.limits)

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
        return render.render_skill_xml(self)


def make_skill_from_match(home: SkillLocation, rel: str, seen: HeadMatch, identity: Identity) -> Skill:
    """The skill behind a head of the commonest shape: discovery's inner loop, hence no constructor."""
    skill = Skill.__new__(Skill)
    skill._name, skill._description, skill._raw, skill._offset = seen
    skill._home = home
    skill._rel = rel
    skill._identity = identity
    skill._front = skill._issues = None
    return skill


def make_skill_from_document(
    home: SkillLocation, rel: str, found: Document, identity: Identity | None, head: bytes = b""
) -> Skill:
    """The skill behind a head that was read and judged; ``head`` is kept to tell it again."""
    skill = Skill(found.front)
    skill._raw = head[: found.body_offset]
    skill._home = home
    skill._rel = rel
    skill._offset = found.body_offset
    skill._identity = identity
    skill._issues = found.issues
    return skill


def make_remote_skill(home: SkillLocation, front: Frontmatter, issues: tuple[Issue, ...] = ()) -> Skill:
    """A skill of which a source has told the name and the description, and holds the rest."""
    skill = Skill(front)
    skill._home = home
    skill._issues = issues
    return skill

"""The SKILL.md of one skill: its body, its whole text, its instructions; read anew whenever they are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from prowess.errors import ResourceError, ResourceTooLargeError, SkillValidationError
from prowess.files.reading import OpenFile, read_known
from prowess.library import contents, resources
from prowess.spec.document import read_document
from prowess.spec.frontmatter import needs_more
from prowess.spec.glance import MAX_BYTES, glance
from prowess.spec.plain import suffices

if TYPE_CHECKING:
    from prowess.files.reading import Identity
    from prowess.library.contents import Contents
    from prowess.library.skill import Skill
    from prowess.spec.document import Document
    from prowess.spec.fields import Frontmatter


@dataclass(frozen=True, slots=True)
class LoadedSkill:
    """A skill with its instructions: the body with LF line ends, without blanks at both ends."""

    skill: Skill
    instructions: str


# -- the body ----------------------------------------------------------------------------------------------------------


def body_of(skill: Skill) -> str:
    """Everything after the closing ``---`` line of its file; the head is parsed again only if the file has changed."""
    home = skill._home
    if home.pin is not None:
        return _pinned_body(skill)
    known = skill._identity
    if known is not None:
        data = read_known(skill.location, known, skill._offset, home.policy.limits.max_body_bytes)
        if data is not None:
            return _decoded(skill, data, skill._offset)
    if home.contents is not None:
        data, found = _fetched(skill, home.contents)
        return _decoded(skill, data[found.body :], found.body)
    try:
        with _opened(skill) as file:
            data, at = _body_bytes(skill, file)
    except ResourceError as error:
        raise _unreadable(skill, error) from None
    return _decoded(skill, data, at)


def _pinned_body(skill: Skill) -> str:
    data, _ = _read_file(skill)
    at = _document_of(skill, data).body
    return _decoded(skill, data[at:], at)


def _body_bytes(skill: Skill, file: OpenFile) -> tuple[bytes, int]:
    at = skill._offset
    if skill._identity is None or file.identity != skill._identity:
        at = _fresh_document(skill, file).body
    return file.read_all(skill.limits.max_body_bytes, at), at


def _decoded(skill: Skill, data: bytes, at: int) -> str:
    if len(data) > skill._home.policy.limits.max_body_bytes:
        raise _body_too_large(skill)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"the body is not UTF-8: byte 0x{data[error.start]:02X} at byte {at + error.start}"
        raise SkillValidationError(message, skill.location, "body-not-text") from None


def text_of(skill: Skill) -> str:
    """The whole file, frontmatter included; the text alone of a skill without a file."""
    if skill._home.body is not None:
        return skill._home.body
    own, limits = skill._home.file, skill.limits
    most = limits.max_frontmatter_bytes + limits.max_body_bytes
    return resources.decoded(skill.read_bytes(own, most), own)


# -- the skill as its file is now --------------------------------------------------------------------------------------


def loaded(skill: Skill) -> LoadedSkill:
    """The skill as its file is now, with its instructions."""
    home = skill._home
    if not home.base:
        return _loaded_elsewhere(skill)
    if home.pin is not None:
        home.pin.check_tree(skill.real_folder, skill.location, skill.limits)
    data, identity = _read_file(skill)
    same = identity is skill._identity and _has_head(skill, data)
    fresh = skill if same else _understood(skill, data, identity)
    at = fresh._offset
    return LoadedSkill(fresh, _instructions(_decoded(skill, data[at:], at)))


def _loaded_elsewhere(skill: Skill) -> LoadedSkill:
    """The same without a folder: the text itself, or the file that a source gives, under the name it announced."""
    given = skill._home.contents
    if given is None:
        return LoadedSkill(skill, _instructions(skill._home.body or ""))
    given = contents.renew(given)
    data, found = _fetched(skill, given)
    fresh = _as_read(skill, contents.admitted(given, found.front, skill._name), found.body, None)
    fresh._home = fresh._home._replace(contents=given)  # its state is that of what was read
    name = found.front.name if skill.told_by else skill._name
    differing = contents.differences(found.front, name, skill._description, skill.location)
    fresh._issues = (*found.issues, *differing, *given.issues())
    return LoadedSkill(fresh, _instructions(_decoded(skill, data[found.body :], found.body)))


def _instructions(body: str) -> str:
    return (body.replace("\r\n", "\n") if "\r" in body else body).strip()


def _has_head(skill: Skill, data: bytes) -> bool:
    """Whether a file begins with the very head that was understood before, fences included."""
    raw = skill._raw
    if not raw or len(raw) == skill._offset:
        return raw != b"" and data.startswith(raw)
    end = len(raw) + 4
    return data.startswith(raw, 4) and data.startswith(b"---\n") and data[end : skill._offset] == b"---\n"


def _understood(skill: Skill, data: bytes, identity: Identity) -> Skill:
    """The skill that a file holds which may have changed; itself where nothing of its head did."""
    seen = glance(data[:MAX_BYTES]) if suffices(skill.limits) else None
    if seen is not None and seen[2] == skill._raw:  # the very head that was understood before
        same = identity == skill._identity and seen[3] == skill._offset
        return skill if same else _as_read(skill, None, seen[3], identity)
    found = _document_of(skill, data)
    return _as_read(skill, found.front, found.body, identity)


def _as_read(skill: Skill, front: Frontmatter | None, offset: int, identity: Identity | None) -> Skill:
    fresh = skill.placed()
    fresh._offset = offset
    fresh._identity = identity
    if front is not None:
        fresh._raw = b""
        fresh._front = front
        fresh._name = front.name
        fresh._description = front.description.strip()
    return fresh


# -- the file ----------------------------------------------------------------------------------------------------------


def _opened(skill: Skill) -> OpenFile:
    return OpenFile(skill._home.base, (*skill._parts(), skill._home.file))


def _read_file(skill: Skill) -> tuple[bytes, Identity]:
    """The whole file, which is what the lock file says where there is one."""
    data, identity = _file_bytes(skill)
    if skill._home.pin is not None:
        skill._home.pin.check_instructions(skill._home.file, data, skill.location)
    return data, identity


def _file_bytes(skill: Skill) -> tuple[bytes, Identity]:
    known, limits = skill._identity, skill._home.policy.limits
    if known is not None:
        data = read_known(skill.location, known, 0, limits.max_body_bytes)
        if data is not None:
            return data, known
    try:
        with _opened(skill) as file:
            return file.read_all(limits.max_frontmatter_bytes + limits.max_body_bytes), file.identity
    except ResourceError as error:
        raise _unreadable(skill, error) from None


def _fetched(skill: Skill, given: Contents) -> tuple[bytes, Document]:
    """The bytes of a SKILL.md that a source gives, and what they say."""
    data = given.read(skill._home.file)
    return data, _document_of(skill, data)


def _fresh_document(skill: Skill, file: OpenFile) -> Document:
    limits = skill.limits
    repairs = skill._home.policy.repairs
    head, whole = file.read_head(
        limits.head_step, limits.max_frontmatter_bytes, lambda head: needs_more(head, repair=repairs)
    )
    return _document(skill, head, whole=whole)


def _document_of(skill: Skill, data: bytes) -> Document:
    """What a whole file says in its head."""
    most = skill.limits.max_frontmatter_bytes
    return _document(skill, data[:most], whole=len(data) <= most)


def _document(skill: Skill, head: bytes, *, whole: bool) -> Document:
    return read_document(
        head,
        whole=whole,
        policy=skill._home.policy,
        folder=skill.folder_name or skill._name,
        path=skill.location,
        check_dir=False,
    )


def _unreadable(skill: Skill, error: ResourceError) -> SkillValidationError:
    if isinstance(error, ResourceTooLargeError):
        return _body_too_large(skill)
    return SkillValidationError(f"cannot read the file: {error.message}", skill.location, error.code)


def _body_too_large(skill: Skill) -> SkillValidationError:
    message = f"the body has more than {skill.limits.max_body_bytes} bytes"
    return SkillValidationError(message, skill.location, "body-too-large")

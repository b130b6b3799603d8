"""The SKILL.md of one skill: its body, its whole text, its instructions; read anew whenever they are asked for."""

from __future__ import annotations

from prowess.errors import (
    ResourceChangedError,
    ResourceError,
    ResourceTooLargeError,
    SkillLoadError,
    SkillValidationError,
)
from prowess.files.read import OpenFile, read_if_same
from prowess.records import dataclass, replace
from prowess.skills import resources, skill_files
from prowess.spec.document import read_document
from prowess.spec.frontmatter.fast_match import MAX_HEAD_BYTES, match_head
from prowess.spec.frontmatter.parse import find_body_offset, needs_more_bytes
from prowess.spec.frontmatter.plain_yaml import can_skip_limit_checks

TYPE_CHECKING = False

if TYPE_CHECKING:
    from prowess.files.read import Identity
    from prowess.literals import OnBadBytes
    from prowess.skills.skill import Skill
    from prowess.skills.skill_files import SkillFiles
    from prowess.spec.document import Document
    from prowess.spec.frontmatter.fields import Frontmatter


@dataclass(frozen=True, slots=True)
class LoadedSkill:
    """A skill with its instructions: the body with LF line ends, without blanks at both ends."""

    skill: Skill
    instructions: str


# -- the body ----------------------------------------------------------------------------------------------------------


def read_skill_body(skill: Skill, errors: OnBadBytes, most: int) -> str | bytes:
    """Everything after the closing ``---`` line of its file, at most ``most`` bytes; as text unless it asks for bytes.

    The head is parsed again only if the file has changed, and then only for where it ends.
    """
    data, at = _read_body_bytes(skill, most)
    if len(data) > most:
        raise _too_large_error(skill, most)
    if errors == "bytes":
        return data
    return data.decode("utf-8", "replace") if errors == "replace" else _decode_body(skill, data, at)


def _read_body_bytes(skill: Skill, most: int) -> tuple[bytes, int]:
    """The bytes of the body, and the byte of the file at which it begins."""
    home = skill._home
    if home.pin is not None:
        data, _ = _read_file(skill, most)
        at = _find_body_offset(skill, data)
        return data[at:], at
    known = skill._identity
    if known is not None:
        body = read_if_same(skill.location, known, skill._offset, most)
        if body is not None:
            return body, skill._offset
    if home.contents is not None:
        data, found = _fetch_document(skill, home.contents)
        return data[found.body_offset :], found.body_offset
    try:
        with _open_file(skill) as file:
            at = skill._offset if skill._identity == file.identity else _read_body_offset(skill, file)
            return file.read_all(most, at), at
    except ResourceError as error:
        raise _unreadable_error(skill, error, most) from None


def _decode_body(skill: Skill, data: bytes, at: int) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"the body is not UTF-8: byte 0x{data[error.start]:02X} at byte {at + error.start}"
        raise SkillValidationError(message, skill.location, "body-not-text") from None


def read_skill_text(skill: Skill) -> str:
    """The whole file, frontmatter included; the text alone of a skill without a file.

    Raises ``SkillValidationError`` where the file cannot be read or is no text, as reading its body does.
    """
    if skill._home.body is not None:
        return skill._home.body
    own, limits = skill._home.file, skill.limits
    try:
        return resources.decode_text(skill.read_bytes(own, limits.max_frontmatter_bytes + limits.max_body_bytes), own)
    except ResourceChangedError:
        raise  # it differs from what was listed or locked, which a caller can tell from a file that is gone
    except ResourceError as error:
        raise _unreadable_error(skill, error, limits.max_body_bytes) from None


# -- the skill as its file is now --------------------------------------------------------------------------------------


def load_skill(skill: Skill) -> LoadedSkill:
    """The skill as its file is now, with its instructions."""
    home = skill._home
    if not home.base:
        return _load_without_folder(skill)
    if home.pin is not None:
        home.pin.check_tree(skill.real_folder, skill.location, skill.limits)
    data, identity = _read_file(skill, skill.limits.max_body_bytes)
    same = identity is skill._identity and _has_same_head(skill, data)
    fresh = skill if same else _refresh_skill(skill, data, identity)
    return LoadedSkill(fresh, _extract_instructions(skill, data, fresh._offset))


def _load_without_folder(skill: Skill) -> LoadedSkill:
    """The same without a folder: the text itself, or the file that a source gives, under the name it announced."""
    given = skill._home.contents
    if given is None:
        return LoadedSkill(skill, _strip_body(skill._home.body or ""))
    given = skill_files.renew(given)
    data, found = _fetch_document(skill, given)
    fresh = _with_head(skill, skill_files.admit_fields(given, found.front, skill._name), found.body_offset, None)
    fresh._home = fresh._home._replace(contents=given)  # its state is that of what was read
    name = found.front.name if skill.told_by else skill._name
    differing = skill_files.find_differences(found.front, name, skill._description, skill.location)
    fresh._issues = (*found.issues, *differing, *given.issues())
    return LoadedSkill(fresh, _extract_instructions(skill, data, found.body_offset))


def _extract_instructions(skill: Skill, data: bytes, at: int) -> str:
    """What stands in a file from a byte on, within the skill's limits."""
    if len(data) - at > skill.limits.max_body_bytes:
        raise _too_large_error(skill, skill.limits.max_body_bytes)
    return _strip_body(_decode_body(skill, data[at:], at))


def _strip_body(body: str) -> str:
    return (body.replace("\r\n", "\n") if "\r" in body else body).strip()


def _has_same_head(skill: Skill, data: bytes) -> bool:
    """Whether a file begins with the very head that was understood before, fences included."""
    raw = skill._raw
    if not raw or len(raw) == skill._offset:
        return raw != b"" and data.startswith(raw)
    end = len(raw) + 4
    return data.startswith(raw, 4) and data.startswith(b"---\n") and data[end : skill._offset] == b"---\n"


def _refresh_skill(skill: Skill, data: bytes, identity: Identity) -> Skill:
    """The skill that a file holds which may have changed; itself where nothing of its head did."""
    seen = match_head(data[:MAX_HEAD_BYTES]) if can_skip_limit_checks(skill.limits) else None
    if seen is not None and seen[2] == skill._raw:  # the very head that was understood before
        same = identity == skill._identity and seen[3] == skill._offset
        return skill if same else _with_head(skill, None, seen[3], identity)
    found = _parse_document(skill, data)
    return _with_head(skill, found.front, found.body_offset, identity)


def _with_head(skill: Skill, front: Frontmatter | None, offset: int, identity: Identity | None) -> Skill:
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


def _open_file(skill: Skill) -> OpenFile:
    return OpenFile(skill._home.base, (*skill._parts(), skill._home.file))


def _read_file(skill: Skill, most: int) -> tuple[bytes, Identity]:
    """The whole file, which is what the lock file says where there is one; ``most``: bytes of its body."""
    data, identity = _read_file_bytes(skill, most)
    if skill._home.pin is not None:
        skill._home.pin.check_instructions(skill._home.file, data, skill.location)
    return data, identity


def _read_file_bytes(skill: Skill, most: int) -> tuple[bytes, Identity]:
    known, limits = skill._identity, skill._home.policy.limits
    if known is not None:
        data = read_if_same(skill.location, known, 0, most)
        if data is not None:
            return data, known
    try:
        with _open_file(skill) as file:
            return file.read_all(limits.max_frontmatter_bytes + most), file.identity
    except ResourceError as error:
        raise _unreadable_error(skill, error, most) from None


def _fetch_document(skill: Skill, given: SkillFiles) -> tuple[bytes, Document]:
    """The bytes of a SKILL.md that a source gives, and what they say."""
    data = given.read(skill._home.file)
    return data, _parse_document(skill, data)


def _read_body_offset(skill: Skill, file: OpenFile) -> int:
    """Where the body of a file that may have changed begins now."""
    limits = skill.limits
    repairs = skill._home.policy.repairs
    head, whole = file.read_head(
        limits.head_step, limits.max_frontmatter_bytes, lambda head: needs_more_bytes(head, repair=repairs)
    )
    return _parse_body_offset(skill, head, whole=whole)


def _find_body_offset(skill: Skill, data: bytes) -> int:
    """Where the body begins in a whole file."""
    most = skill.limits.max_frontmatter_bytes
    return _parse_body_offset(skill, data[:most], whole=len(data) <= most)


def _parse_body_offset(skill: Skill, head: bytes, *, whole: bool) -> int:
    # Only the dashes count: whoever asks for the body wants it also when a field was lost since the skill was found.
    try:
        return find_body_offset(head, whole=whole, repair=skill._home.policy.repairs, limits=skill.limits)
    except SkillLoadError as error:
        issues = [replace(issue, path=skill.location) for issue in error.issues]
        raise type(error)(issues, skill.location) from None


def _parse_document(skill: Skill, data: bytes) -> Document:
    """What a whole file says in its head."""
    most = skill.limits.max_frontmatter_bytes
    return read_document(
        data[:most],
        whole=len(data) <= most,
        policy=skill._home.policy,
        folder=skill.folder_name or skill._name,
        path=skill.location,
        check_dir=False,
    )


def _unreadable_error(skill: Skill, error: ResourceError, most: int) -> SkillValidationError:
    if isinstance(error, ResourceTooLargeError):
        return _too_large_error(skill, most)
    return SkillValidationError(f"cannot read the file: {error.message}", skill.location, error.code)


def _too_large_error(skill: Skill, most: int) -> SkillValidationError:
    message = f"the body has more than {most} bytes"
    return SkillValidationError(message, skill.location, "body-too-large")

"""Parsing and validation of one SKILL.md: from a string, from a file, or only its head."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import Issue, ResourceError, SkillLoadError, SkillValidationError, make_unreadable_error
from prowess.files.directory import count_hard_links, stat_folder
from prowess.files.read import OpenFile
from prowess.files.tree import list_tree
from prowess.format.frontmatter.parse import needs_more_bytes
from prowess.format.head import LoadPolicy, check_mode, find_strict_issues, is_repair, read_head
from prowess.format.rules import field_issues
from prowess.limits import DEFAULT_LIMITS
from prowess.names import SKILL_FILE
from prowess.skills.resources import git_issues, tree_issues
from prowess.skills.skill import Skill, make_skill_from_document
from prowess.skills.skill_files import InlineFiles, SkillLocation
from prowess.text.hidden_characters import find_hidden_points

if TYPE_CHECKING:
    from prowess.files.tree import TreeListing
    from prowess.format.frontmatter.fields import Frontmatter
    from prowess.format.frontmatter.parse import ParsedHead
    from prowess.limits import Limits
    from prowess.literals import Mode

_NEVER_REFUSED = frozenset(("empty-body", "hidden-text"))
"""Warnings that strict mode does not refuse either: no rule of the specification is broken."""


class ParsedSkill(NamedTuple):
    """A skill, its body without whitespace at both ends, and the issues of its file: warnings and information."""

    skill: Skill
    body: str
    issues: tuple[Issue, ...]

    @property
    def warnings(self) -> tuple[Issue, ...]:
        """The violations that lenient mode accepts and strict mode refuses; in strict mode there are none."""
        return tuple(i for i in self.issues if i.severity == "warning" and i.code not in _NEVER_REFUSED)


def parse_skill(
    text: str | bytes,
    path: str | os.PathLike[str] | None = None,
    mode: Mode = "strict",
    check_dir: bool = True,
    *,
    repair: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> ParsedSkill:
    """Return the skill that ``text`` holds, as if it were the file at ``path``. Nothing is opened.

    Strict mode raises ``SkillLoadError`` with every violation. Lenient mode returns those that it can accept as issues,
    and repairs what real files get wrong (unless ``repair=False``). ``check_dir``: the name must be the folder's.
    """
    check_mode(mode)
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    file_path = "" if path is None else os.path.abspath(os.fspath(path))
    whole = len(data) <= limits.max_frontmatter_bytes
    return _parse_bytes(data, file_path, LoadPolicy(mode, repair, limits, check_dir), whole=whole)


def _parse_bytes(data: bytes, file_path: str, policy: LoadPolicy, *, whole: bool) -> ParsedSkill:
    """Return the skill in the bytes of a file; ``whole``: they end within the limit for frontmatter."""
    limits = policy.limits
    head = data[: limits.max_frontmatter_bytes]
    folder = os.path.basename(os.path.dirname(file_path)) if file_path else None
    document = read_head(head, quick=False, whole=whole, policy=policy, folder=folder, path=file_path)
    body = _decode_body(data[document.body_offset :], document.body_offset, file_path, limits)
    base, file = os.path.split(file_path)
    inline = SkillLocation(policy=policy, origin="inline", files=InlineFiles(body))
    location = SkillLocation(base, file, policy=policy) if file_path else inline
    issues = (*document.issues, *_body_issues(body, document.front, file_path))
    return ParsedSkill(make_skill_from_document(location, "", document, None), body.strip(), issues)


def _decode_body(data: bytes, at: int, file_path: str, limits: Limits) -> str:
    if len(data) > limits.max_body_bytes:
        raise SkillLoadError(
            [Issue("body-too-large", "body", f"has more than {limits.max_body_bytes} bytes", file_path)], file_path
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"the body is not UTF-8: byte 0x{data[error.start]:02X} at byte {at + error.start}"
        raise SkillLoadError([Issue("body-not-text", "body", message, file_path)], file_path) from None


def _body_issues(body: str, front: Frontmatter, file_path: str) -> list[Issue]:
    line = max(front.lines.values(), default=0) + 1
    issues: list[Issue] = []
    if not body.strip():
        issues.append(Issue("empty-body", "body", "there are no instructions", file_path, line, "warning"))
    if points := find_hidden_points(body):
        message = f"holds hidden characters ({', '.join(points[:8])})"
        issues.append(Issue("hidden-text", "body", message, file_path, line, "warning"))
    return issues


def parse_skill_file(
    path: str | os.PathLike[str],
    mode: Mode = "strict",
    check_dir: bool = True,
    *,
    repair: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> ParsedSkill:
    """Return the skill in a SKILL.md (or in a folder that holds one), body included.

    Raises ``SkillValidationError`` when the file cannot be read, ``SkillLoadError`` as ``parse_skill`` does.
    """
    check_mode(mode)
    file_path = _skill_file_path(path)
    policy = LoadPolicy(mode, repair, limits, check_dir)
    data, whole = _read_file(file_path, policy)
    return _parse_bytes(data, file_path, policy, whole=whole)


def _read_file(file_path: str, policy: LoadPolicy) -> tuple[bytes, bool]:
    """The file as far as it is needed, and whether it ends within the limit for frontmatter."""
    try:
        with OpenFile(*_split_path(file_path)) as file:
            data, whole = _read_head(file, policy)
            # Without an end of the frontmatter there is no body to read: the file is refused for its head.
            if whole or not needs_more_bytes(data, repair=policy.repairs):
                data += file.read(policy.limits.max_body_bytes + 1, len(data))  # one byte more shows a body too large
    except ResourceError as error:
        raise make_unreadable_error(error, file_path) from None
    return data, whole


def _read_head(file: OpenFile, policy: LoadPolicy) -> tuple[bytes, bool]:
    limits = policy.limits
    return file.read_head(
        limits.head_step, limits.max_frontmatter_bytes, lambda head: needs_more_bytes(head, repair=policy.repairs)
    )


def read_metadata(
    path: str | os.PathLike[str],
    mode: Mode = "strict",
    check_dir: bool = True,
    *,
    repair: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> Skill:
    """Return the skill in a SKILL.md (or a folder that holds one); only the head of the file is read."""
    check_mode(mode)
    file_path = _skill_file_path(path)
    policy = LoadPolicy(mode, repair, limits, check_dir)
    try:
        with OpenFile(*_split_path(file_path)) as file:
            head, whole = _read_head(file, policy)
            identity = file.identity
    except ResourceError as error:
        raise make_unreadable_error(error, file_path) from None
    folder = os.path.basename(os.path.dirname(file_path))
    document = read_head(head, quick=False, whole=whole, policy=policy, folder=folder, path=file_path)
    base, name = os.path.split(file_path)
    return make_skill_from_document(SkillLocation(base, name, policy=policy), "", document, identity)


def validate(path: str | os.PathLike[str], *, limits: Limits = DEFAULT_LIMITS) -> tuple[Issue, ...]:
    """Return every finding about a skill's folder (or its SKILL.md) under the strict rules.

    A bad skill raises nothing.
    """
    file_path = _skill_file_path(path)
    try:
        issues = list(_file_issues(file_path, limits))
        tree = list_tree(os.path.dirname(file_path), (), limits)
    except SkillValidationError as error:
        return (Issue(error.code, "", error.message, file_path),)
    except OSError as error:
        return (*issues, Issue("unreadable-directory", "", f"cannot be listed: {error.strerror}", file_path))
    return (
        *issues,
        *_missing_reference_issues(file_path, issues, tree, limits),
        *tree_issues(tree, file_path, limits),
        *git_issues(tree, file_path),
        *_hard_link_issues(os.path.dirname(file_path), tree.files, file_path),
    )


def _missing_reference_issues(
    file_path: str, issues: list[Issue], tree: TreeListing, limits: Limits
) -> tuple[Issue, ...]:
    from prowess.skills.missing_references import find_missing_references

    if any(issue.code == "frontmatter-too-large" for issue in issues):  # reading it again would find no body either
        return ()
    try:
        body_offset = read_metadata(file_path, "lenient", limits=limits).body_offset
    except SkillValidationError:  # without a readable head nobody knows where the instructions begin
        return ()
    return tuple(find_missing_references(file_path, body_offset, tree, limits))


def _hard_link_issues(folder: str, files: list[str], file_path: str) -> list[Issue]:
    """Return a warning for each file with hard links: it changes whenever somebody writes to it under another name."""
    names = [path for path in files if count_hard_links(os.path.join(folder, path)) > 1]
    return [Issue("hard-link", path, "has other names elsewhere", file_path, 0, "warning") for path in names]


def _file_issues(file_path: str, limits: Limits) -> tuple[Issue, ...]:
    try:
        return parse_skill_file(file_path, limits=limits).issues
    except SkillLoadError as error:
        data, whole = _read_file(file_path, LoadPolicy(limits=limits))
        return _with_later_issues(error.issues, data, file_path, limits, whole=whole)


def text_issues(
    text: str | bytes, path: str, *, limits: Limits = DEFAULT_LIMITS, head: ParsedHead | None = None
) -> tuple[Issue, ...]:
    """Return every finding about the text of a SKILL.md under the strict rules, as if it were the file at ``path``.

    ``head`` is its head as lenient mode reads it, where the caller has parsed it already.
    """
    if isinstance(text, bytes) and head is not None and not head.issues:  # strict mode reads the same fields
        issues = field_issues(head.front, mode="strict", folder=os.path.basename(os.path.dirname(path)), path=path)
        with suppress(SkillLoadError):
            body = _decode_body(text[head.body_offset :], head.body_offset, path, limits)
            return (*sorted(issues, key=lambda issue: issue.severity != "error"), *_body_issues(body, head.front, path))
    try:
        return parse_skill(text, path, limits=limits).issues
    except SkillLoadError as error:
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        return _with_later_issues(error.issues, data, path, limits, whole=len(data) <= limits.max_frontmatter_bytes)


def _with_later_issues(
    first: tuple[Issue, ...], data: bytes, file_path: str, limits: Limits, *, whole: bool
) -> tuple[Issue, ...]:
    """Return the issues that ended strict parsing, and those that a reader finds who goes on after them."""
    folder = os.path.basename(os.path.dirname(file_path))
    rest: list[Issue] = []
    with suppress(SkillValidationError):  # an author learns of as much as can be read
        head, rest = find_strict_issues(
            data[: limits.max_frontmatter_bytes], whole=whole, folder=folder, path=file_path, limits=limits
        )
        rest += _body_issues(
            _decode_body(data[head.body_offset :], head.body_offset, file_path, limits), head.front, file_path
        )
    known = {(issue.code, issue.field) for issue in first}
    # Repairs are not findings here: the fault that needed one is already among the first issues.
    more = (i for i in rest if (i.code, i.field) not in known and not is_repair(i))
    return (*first, *more)


def _skill_file_path(path: str | os.PathLike[str]) -> str:
    file_path = os.path.abspath(os.fspath(path))
    return os.path.join(file_path, SKILL_FILE) if stat_folder(file_path) is not None else file_path


def _split_path(file_path: str) -> tuple[str, tuple[str, ...]]:
    folder, name = os.path.split(file_path)
    return folder, (name,)

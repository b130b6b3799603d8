"""One SKILL.md, from text or from a file: parsed, validated, or only its head."""

from __future__ import annotations

import os
from contextlib import suppress

from prowess.errors import Issue, ResourceError, SkillLoadError, SkillValidationError
from prowess.files.directory import count_hard_links, stat_folder
from prowess.files.read import OpenFile
from prowess.files.tree import list_tree
from prowess.limits import DEFAULT_LIMITS
from prowess.records import NamedTuple
from prowess.skills.location import SkillLocation
from prowess.skills.resources import git_issues, tree_issues
from prowess.skills.skill import Skill, make_skill_from_document
from prowess.spec.document import LoadPolicy, check_mode, find_strict_issues, read_document
from prowess.spec.frontmatter.parse import needs_more_bytes
from prowess.spec.hidden_characters import find_hidden_points

TYPE_CHECKING = False

if TYPE_CHECKING:
    from prowess.files.tree import TreeListing
    from prowess.limits import Limits
    from prowess.literals import Mode
    from prowess.spec.frontmatter.fields import Frontmatter

SKILL_FILE = "SKILL.md"
_NEVER_REFUSED = frozenset(("empty-body", "hidden-text"))
"""Warnings that both modes give: no rule of the specification is broken."""


class ParsedSkill(NamedTuple):
    """A skill, its body without blanks at both ends, and what was found (warnings and notes; errors raise)."""

    skill: Skill
    body: str
    issues: tuple[Issue, ...]

    @property
    def warnings(self) -> tuple[Issue, ...]:
        """The violations that lenient mode lives with, and strict mode refuses: in strict mode there are none."""
        return tuple(i for i in self.issues if i.severity == "warning" and i.code not in _NEVER_REFUSED)


def parse_skill(
    text: str | bytes,
    path: str | os.PathLike[str] | None = None,
    mode: Mode = "strict",
    check_dir: bool = True,  # noqa: FBT001, FBT002 - the public signature
    *,
    repair: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> ParsedSkill:
    """The skill that ``text`` holds, as if it stood at ``path``. Nothing is opened.

    Strict raises ``SkillLoadError`` with every violation; lenient returns them as issues where it can live with them,
    and repairs what real files get wrong (unless ``repair=False``). ``check_dir``: the name must be the folder's.
    """
    check_mode(mode)
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    where = "" if path is None else os.path.abspath(os.fspath(path))
    whole = len(data) <= limits.max_frontmatter_bytes
    return _parse_bytes(data, where, LoadPolicy(mode, repair, limits), whole=whole, check_dir=check_dir)


def _parse_bytes(data: bytes, where: str, policy: LoadPolicy, *, whole: bool, check_dir: bool) -> ParsedSkill:
    """``whole``: the file ends within the bytes among which its frontmatter must lie."""
    limits = policy.limits
    head = data[: limits.max_frontmatter_bytes]
    folder = os.path.basename(os.path.dirname(where)) if where else None
    found = read_document(head, whole=whole, policy=policy, folder=folder, path=where, check_dir=check_dir)
    body = _decode_body(data[found.body_offset :], found.body_offset, where, limits)
    base, file = os.path.split(where)
    home = (
        SkillLocation(base, file, policy=policy) if where else SkillLocation(policy=policy, origin="inline", body=body)
    )
    issues = (*found.issues, *_body_issues(body, found.front, where))
    return ParsedSkill(make_skill_from_document(home, "", found, None), body.strip(), issues)


def _decode_body(data: bytes, at: int, where: str, limits: Limits) -> str:
    if len(data) > limits.max_body_bytes:
        message = f"has more than {limits.max_body_bytes} bytes"
        raise SkillLoadError([Issue("body-too-large", "body", message, where)], where)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"the body is not UTF-8: byte 0x{data[error.start]:02X} at byte {at + error.start}"
        raise SkillLoadError([Issue("body-not-text", "body", message, where)], where) from None


def _body_issues(body: str, front: Frontmatter, where: str) -> list[Issue]:
    line = max(front.lines.values(), default=0) + 1
    issues: list[Issue] = []
    if not body.strip():
        issues.append(Issue("empty-body", "body", "there are no instructions", where, line, "warning"))
    if points := find_hidden_points(body):
        message = f"holds hidden characters ({', '.join(points[:8])})"
        issues.append(Issue("hidden-text", "body", message, where, line, "warning"))
    return issues


def parse_skill_file(
    path: str | os.PathLike[str],
    mode: Mode = "strict",
    check_dir: bool = True,  # noqa: FBT001, FBT002 - the public signature
    *,
    repair: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> ParsedSkill:
    """The skill in a SKILL.md (or in a folder that holds one), body included.

    Raises ``SkillValidationError`` when the file cannot be read, ``SkillLoadError`` as ``parse_skill`` does.
    """
    check_mode(mode)
    where = _skill_file_path(path)
    policy = LoadPolicy(mode, repair, limits)
    data, whole = _read_file(where, policy)
    return _parse_bytes(data, where, policy, whole=whole, check_dir=check_dir)


def _read_file(where: str, policy: LoadPolicy) -> tuple[bytes, bool]:
    """The file as far as it is needed, and whether it ends among the bytes of its head."""
    try:
        with OpenFile(*_split_path(where)) as file:
            data, whole = _read_head(file, policy)
            if whole or not needs_more_bytes(data, repair=policy.repairs):
                data += file.read(policy.limits.max_body_bytes + 1, len(data))
    except ResourceError as error:
        raise SkillValidationError(f"cannot read the file: {error.message}", where, error.code) from None
    return data, whole


def _read_head(file: OpenFile, policy: LoadPolicy) -> tuple[bytes, bool]:
    limits = policy.limits
    return file.read_head(
        limits.head_step, limits.max_frontmatter_bytes, lambda head: needs_more_bytes(head, repair=policy.repairs)
    )


def read_metadata(
    path: str | os.PathLike[str],
    mode: Mode = "strict",
    check_dir: bool = True,  # noqa: FBT001, FBT002 - the public signature
    *,
    repair: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> Skill:
    """The skill in a SKILL.md (or a folder that holds one); only the head of the file is read."""
    check_mode(mode)
    where = _skill_file_path(path)
    policy = LoadPolicy(mode, repair, limits)
    try:
        with OpenFile(*_split_path(where)) as file:
            head, whole = _read_head(file, policy)
            identity = file.identity
    except ResourceError as error:
        raise SkillValidationError(f"cannot read the file: {error.message}", where, error.code) from None
    folder = os.path.basename(os.path.dirname(where))
    found = read_document(head, whole=whole, policy=policy, folder=folder, path=where, check_dir=check_dir)
    base, own = os.path.split(where)
    return make_skill_from_document(SkillLocation(base, own, policy=policy), "", found, identity, head)


def validate(path: str | os.PathLike[str], *, limits: Limits = DEFAULT_LIMITS) -> tuple[Issue, ...]:
    """Every finding about a skill's folder (or its SKILL.md) under the strict rules; never raises for a bad skill."""
    where = _skill_file_path(path)
    try:
        found = list(_file_issues(where, limits))
        tree = list_tree(os.path.dirname(where), (), limits)
    except SkillValidationError as error:
        code = "missing-skill-md" if error.code == "not-found" else error.code
        return (Issue(code, "", error.message, where),)
    except OSError as error:
        return (*found, Issue("unreadable-directory", "", f"cannot be listed: {error.strerror}", where))
    return (
        *found,
        *_missing_file_issues(where, found, tree, limits),
        *tree_issues(tree, where, limits),
        *git_issues(tree, where),
        *_hard_link_issues(os.path.dirname(where), tree.files, where),
    )


def _missing_file_issues(where: str, found: list[Issue], tree: TreeListing, limits: Limits) -> tuple[Issue, ...]:
    from prowess.skills.missing_files import find_missing_files  # noqa: PLC0415 - loading a skill needs none of it

    if any(issue.code == "frontmatter-too-large" for issue in found):  # it is not read yet another time
        return ()
    try:
        body = read_metadata(where, "lenient", limits=limits).body_offset
    except SkillValidationError:  # where the instructions begin is not known
        return ()
    return tuple(find_missing_files(where, body, tree, limits))


def _hard_link_issues(folder: str, files: list[str], where: str) -> list[Issue]:
    """A file with several names changes with each of them, whoever writes to it."""
    names = [path for path in files if count_hard_links(os.path.join(folder, path)) > 1]
    return [Issue("hard-link", path, "has other names elsewhere", where, 0, "warning") for path in names]


def _file_issues(where: str, limits: Limits) -> tuple[Issue, ...]:
    try:
        return parse_skill_file(where, limits=limits).issues
    except SkillLoadError as error:
        data, whole = _read_file(where, LoadPolicy(limits=limits))
        return _with_later_issues(error.issues, data, where, limits, whole=whole)


def text_issues(text: str | bytes, path: str, *, limits: Limits = DEFAULT_LIMITS) -> tuple[Issue, ...]:
    """Every finding about a text under the strict rules, as if it stood at ``path``."""
    try:
        return parse_skill(text, path, limits=limits).issues
    except SkillLoadError as error:
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        return _with_later_issues(error.issues, data, path, limits, whole=len(data) <= limits.max_frontmatter_bytes)


def _with_later_issues(
    first: tuple[Issue, ...], data: bytes, where: str, limits: Limits, *, whole: bool
) -> tuple[Issue, ...]:
    """What was found, and what can be said beyond the first obstacle."""
    folder = os.path.basename(os.path.dirname(where))
    rest: list[Issue] = []
    with suppress(SkillValidationError):
        head, rest = find_strict_issues(
            data[: limits.max_frontmatter_bytes], whole=whole, folder=folder, path=where, limits=limits
        )
        rest += _body_issues(_decode_body(data[head.body_offset :], head.body_offset, where, limits), head.front, where)
    known = {(issue.code, issue.field) for issue in first}
    more = (i for i in rest if (i.code, i.field) not in known and not i.code.startswith("repaired-"))
    return (*first, *more)


def _skill_file_path(path: str | os.PathLike[str]) -> str:
    where = os.path.abspath(os.fspath(path))
    return os.path.join(where, SKILL_FILE) if stat_folder(where) is not None else where


def _split_path(where: str) -> tuple[str, tuple[str, ...]]:
    folder, name = os.path.split(where)
    return folder, (name,)

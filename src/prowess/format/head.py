"""The one entrance to the head of a SKILL.md: its fields are read, checked under a mode, and its name is chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, overload

from prowess.errors import Issue, SkillLoadError, SourceError, as_load_error
from prowess.format import rules
from prowess.format.frontmatter import parse
from prowess.format.frontmatter.quick.common_heads import MAX_CHARS, MAX_HEAD_BYTES, QuickHead, match_head
from prowess.limits import DEFAULT_LIMITS, MAX_NAME_LENGTH, Limits
from prowess.names import make_slug

if TYPE_CHECKING:
    from prowess.format.frontmatter.fields import Frontmatter
    from prowess.format.frontmatter.parse import ParsedHead
    from prowess.literals import Mode


def check_mode(mode: str) -> None:
    """Raise ``SourceError`` unless ``mode`` is ``"strict"`` or ``"lenient"``."""
    if mode not in {"strict", "lenient"}:
        raise SourceError(f"mode must be 'strict' or 'lenient', not {mode!r}")


class LoadPolicy(NamedTuple):
    """How forgiving a load is: strict mode refuses every violation, lenient mode tolerates and may repair them."""

    mode: Mode = "lenient"
    repair: bool = True
    limits: Limits = DEFAULT_LIMITS
    check_dir: bool = True
    """Whether the name must be that of the folder."""

    @property
    def repairs(self) -> bool:
        """Whether broken frontmatter is repaired: never in strict mode."""
        return self.repair and self.mode == "lenient"


_MAX_QUICK_DEPTH = 8  # no quick reader accepts deeper values

LENIENT_POLICY = LoadPolicy()
STRICT_POLICY = LoadPolicy("strict", repair=False)


class Head(NamedTuple):
    """A head that was parsed: its fields under the name that the skill goes by, and every finding."""

    front: Frontmatter
    body_offset: int
    issues: tuple[Issue, ...]
    parsed: ParsedHead | None = None
    """The fields as they are written; ``None`` for instructions that are not in a file."""


def is_repair(issue: Issue) -> bool:
    """Return whether an issue says what had to be repaired, or filled in, for a skill to load."""
    return issue.code.startswith("repaired-") or issue.code == "description-from-body"


def allows_quick(policy: LoadPolicy) -> bool:
    """Return whether a quick reader may read heads: it overlooks nothing that this mode and these limits refuse."""
    limits = policy.limits
    return policy.mode == "lenient" and (
        limits is DEFAULT_LIMITS
        or (
            limits.max_frontmatter_bytes >= 4 * MAX_CHARS
            and limits.max_yaml_depth >= _MAX_QUICK_DEPTH
            and limits.max_yaml_events >= MAX_CHARS - 96
            and limits.max_scalar_chars >= MAX_CHARS
        )
    )


@overload
def read_head(
    head: bytes,
    *,
    whole: bool = True,
    policy: LoadPolicy = ...,
    folder: str | None = None,
    path: str = "",
    quick: Literal[True] = True,
) -> Head | QuickHead: ...


@overload
def read_head(
    head: bytes,
    *,
    whole: bool = True,
    policy: LoadPolicy = ...,
    folder: str | None = None,
    path: str = "",
    quick: Literal[False],
) -> Head: ...


@overload
def read_head(head: bytes, *, policy: LoadPolicy = ..., quick: Literal["only"]) -> QuickHead | None: ...


def read_head(
    head: bytes,
    *,
    whole: bool = True,
    policy: LoadPolicy = LENIENT_POLICY,
    folder: str | None = None,
    path: str = "",
    quick: bool | Literal["only"] = True,
) -> Head | QuickHead | None:
    """Return the head of a SKILL.md, which ``head`` begins with; ``whole``: the file has no more bytes.

    ``folder`` is the name of the skill's folder. With ``quick`` a head of a usual shape is matched and not parsed: its
    name and its description are known, and nothing else is looked at. ``"only"`` returns ``None`` for any other head.
    ``quick=False`` parses every head; whatever a quick reader returns is equal to that.

    Raises ``SkillLoadError`` with every violation that the mode refuses.
    """
    if quick:
        found = match_head(head[:MAX_HEAD_BYTES]) if allows_quick(policy) else None
        if found is not None or quick == "only":
            return found
    is_lenient = policy.mode == "lenient"
    try:
        parsed = parse.parse_head(head, whole=whole, lenient=is_lenient, repair=policy.repairs, limits=policy.limits)
    except SkillLoadError as error:
        raise type(error)([_with_path(issue, path) for issue in error.issues], path) from None
    expected = folder if policy.check_dir else None
    issues = [_with_path(issue, path) for issue in parsed.issues]
    issues += rules.field_issues(parsed.front, mode=policy.mode, folder=expected, path=path)
    front = parsed.front
    if policy.mode == "lenient" and not rules.is_usable_name(front.name, policy.limits):
        front, issues = _choose_name(front, issues, policy, folder, path)
    if policy.repairs and any(issue.code == "missing-description" for issue in issues):
        # Discovery reads whole steps, so that every other reader has these bytes too, and finds the same paragraph.
        end = -(-parsed.body_offset // policy.limits.head_step) * policy.limits.head_step
        body, is_all = head[parsed.body_offset : end], whole and len(head) <= end
        front, issues = _take_first_paragraph(front, issues, body, whole=is_all, path=path)
    if any(issue.severity == "error" for issue in issues):
        raise as_load_error((issue for issue in issues if issue.severity == "error"), path)
    return Head(front, parsed.body_offset, tuple(issues), parsed)


def _with_path(issue: Issue, path: str) -> Issue:
    return Issue(issue.code, issue.field, issue.message, path, issue.line, issue.severity)  # faster than ``replace``


def find_strict_issues(
    head: bytes, *, whole: bool, folder: str | None, path: str = "", limits: Limits = DEFAULT_LIMITS
) -> tuple[ParsedHead, list[Issue]]:
    """Return the head as lenient mode reads it, and every finding about it with the severity of strict mode.

    Raises ``SkillLoadError`` where nothing can be read.
    """
    parsed = parse.parse_head(head, whole=whole, lenient=True, repair=True, limits=limits)
    # Strict mode would stop at what lenient mode fixed. Read leniently, a head shows all of its faults at once.
    issues = [replace(issue, path=path, severity="error") for issue in parsed.issues]
    return parsed, [*issues, *rules.field_issues(parsed.front, mode="strict", folder=folder, path=path)]


def _replace_colons(
    front: Frontmatter, name: str, issues: list[Issue], folder: str | None, path: str
) -> tuple[Frontmatter, list[Issue]]:
    """Return the fields under ``name``, which has '-' for each ':', and the issues that remain.

    ``written_name`` keeps the name in the file, because people call the skill by it.
    """
    line = front.lines.get("name") or 1
    message = f"holds ':', which paths on some systems may not hold; {name!r} is used"
    others = [i for i in issues if i.field != "name" or (i.code == "name-mismatch" and name != folder)]
    fixed = front.renamed(name)
    # The new name may break the rule for other reasons (capitals, spaces), which the colon hid.
    still_bad = [i for i in rules.field_issues(fixed, mode="lenient", folder=None, path=path) if i.code == "bad-name"]
    return fixed, [*others, *still_bad, Issue("repaired-name-colon", "name", message, path, line, "warning")]


def _choose_name(
    front: Frontmatter, issues: list[Issue], policy: LoadPolicy, folder: str | None, path: str
) -> tuple[Frontmatter, list[Issue]]:
    """Return the fields under a name that lenient mode can use in place of the written one, and the issues.

    A ':' becomes '-'. Otherwise the name of the folder is taken, and a slug with digits of a digest where that is not
    usable either. A name that is missing has to be that of a folder, else one of the issues is an error.
    """
    if ("name", "wrong-type") in {(i.field, i.code) for i in issues}:  # an error already, and not a string to fix
        return front, issues
    fixed = front.name.replace(":", "-")
    if policy.repair and fixed.strip("-") and rules.is_usable_name(fixed, policy.limits):
        return _replace_colons(front, fixed, issues, folder, path)
    is_missing = not front.name.strip()
    line = front.lines.get("name") or min(front.lines.values(), default=1)
    others = [i for i in issues if i.field != "name"]
    if is_missing and not (policy.repair and folder):
        return front, [*others, Issue("missing-name", "name", "is required", path, line)]
    code, fault = ("repaired-name", "missing") if is_missing else ("bad-name", "not usable")
    if folder is not None and rules.is_usable_name(folder, policy.limits):
        name, message = folder, f"is {fault}; the folder's, {folder!r}, is used"
    else:
        name = make_slug(front.name.strip() or folder or "", MAX_NAME_LENGTH)
        message = f"is {fault}, and its folder's is not usable; {name!r} is used"
    return front.renamed(name), [*others, Issue(code, "name", message, path, line, "warning")]


def _take_first_paragraph(
    front: Frontmatter, issues: list[Issue], body: bytes, *, whole: bool, path: str
) -> tuple[Frontmatter, list[Issue]]:
    """Return the fields with the first paragraph of a body as the description, where there is one, and the issues."""
    from prowess.format.first_paragraph import find_first_paragraph

    missing = next(issue for issue in issues if issue.code == "missing-description")
    paragraph = find_first_paragraph(body, whole=whole)
    if not paragraph:
        return front, issues
    message = "is missing; the first paragraph of the instructions is used"
    repaired = Issue("description-from-body", "description", message, path, missing.line, "warning")
    lines = {key: number for key, number in front.lines.items() if key != "description"}  # no line has this text
    described = replace(front, description=paragraph, lines=lines)
    return described, [*(i for i in issues if i is not missing), repaired]

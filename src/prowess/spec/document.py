"""Whether a head makes a skill: its fields judged under a mode, its name settled."""

from __future__ import annotations

from prowess.errors import Issue, SkillLoadError, SourceError, as_load_error
from prowess.limits import DEFAULT_LIMITS, Limits
from prowess.on_demand import OnDemand
from prowess.records import NamedTuple, replace

TYPE_CHECKING = False

if TYPE_CHECKING:
    from prowess.literals import Mode
    from prowess.spec import rules
    from prowess.spec.frontmatter import parse
    from prowess.spec.frontmatter.fields import Frontmatter
    from prowess.spec.frontmatter.parse import ParsedHead
else:
    parse, rules = OnDemand("prowess.spec.frontmatter.parse"), OnDemand("prowess.spec.rules")


def check_mode(mode: str) -> None:
    """Raise ``SourceError`` unless ``mode`` is one of the two."""
    if mode not in {"strict", "lenient"}:
        raise SourceError(f"mode must be 'strict' or 'lenient', not {mode!r}")


class LoadPolicy(NamedTuple):
    """How forgiving a load is. Strict refuses every violation; lenient lives with what it can, and may repair."""

    mode: Mode = "lenient"
    repair: bool = True
    limits: Limits = DEFAULT_LIMITS

    @property
    def repairs(self) -> bool:
        return self.repair and self.mode == "lenient"


STRICT_POLICY = LoadPolicy("strict", repair=False)


class Document(NamedTuple):
    """A head that makes a skill: its fields under the name it goes by, the body's offset, and every finding."""

    front: Frontmatter
    body_offset: int
    issues: tuple[Issue, ...]


def read_document(
    head: bytes, *, whole: bool, policy: LoadPolicy, folder: str | None = None, path: str = "", check_dir: bool = True
) -> Document:
    """The skill that ``head`` describes; raises ``SkillLoadError`` with every violation that the mode refuses."""
    try:
        found = parse.parse_head(
            head, whole=whole, lenient=policy.mode == "lenient", repair=policy.repairs, limits=policy.limits
        )
    except SkillLoadError as error:
        raise type(error)([replace(issue, path=path) for issue in error.issues], path) from None
    return check_head(found, policy=policy, folder=folder, path=path, check_dir=check_dir)


def check_head(
    found: ParsedHead, *, policy: LoadPolicy, folder: str | None, path: str = "", check_dir: bool = True
) -> Document:
    """The fields of ``found`` against the rules."""
    expected = folder if check_dir else None
    issues = [*(replace(i, path=path) for i in found.issues)]
    issues += rules.field_issues(found.front, mode=policy.mode, folder=expected, path=path)
    front = found.front
    if policy.mode == "lenient":
        front, issues = _choose_name(front, issues, policy, folder, path)
    if any(issue.severity == "error" for issue in issues):
        raise as_load_error((issue for issue in issues if issue.severity == "error"), path)
    return Document(front, found.body_offset, tuple(issues))


def find_strict_issues(
    head: bytes, *, whole: bool, folder: str | None, path: str = "", limits: Limits = DEFAULT_LIMITS
) -> tuple[ParsedHead, list[Issue]]:
    """What lenient mode can read of a head, and every finding about it as strict mode ranks them.

    Raises ``SkillLoadError`` where nothing can be read.
    """
    found = parse.parse_head(head, whole=whole, lenient=True, repair=True, limits=limits)
    issues = [replace(issue, path=path, severity="error") for issue in found.issues]  # what strict mode refuses
    return found, [*issues, *rules.field_issues(found.front, mode="strict", folder=folder, path=path)]


def _replace_colons(
    front: Frontmatter, name: str, issues: list[Issue], folder: str | None, path: str
) -> tuple[Frontmatter, list[Issue]]:
    """The fields under a ``name`` with '-' for each ':'; the written one is kept, because people call it by that."""
    line = front.lines.get("name") or 1
    message = f"holds ':', which no path on every system may have; {name!r} is used"
    others = [i for i in issues if i.field != "name" or (i.code == "name-mismatch" and name != folder)]
    mended = front.renamed(name)
    # The new name may break the rule for other reasons (capitals, blanks), which the written one hid.
    still = [i for i in rules.field_issues(mended, mode="lenient", folder=None, path=path) if i.code == "bad-name"]
    return mended, [*others, *still, Issue("repaired-name-colon", "name", message, path, line, "warning")]


def _choose_name(
    front: Frontmatter, issues: list[Issue], policy: LoadPolicy, folder: str | None, path: str
) -> tuple[Frontmatter, list[Issue]]:
    """Lenient mode puts '-' for ':', and takes the folder's name where the written one is missing or unusable."""
    if rules.is_usable_name(front.name):
        return front, issues
    mended = front.name.replace(":", "-")
    if policy.repair and ":" in front.name and mended.strip("-") and rules.is_usable_name(mended):
        return _replace_colons(front, mended, issues, folder, path)
    missing = not front.name.strip()
    line = front.lines.get("name") or min(front.lines.values(), default=1)
    others = [i for i in issues if i.field != "name"] if missing else [i for i in issues if i.code != "name-mismatch"]
    if any(i.field == "name" and i.code == "wrong-type" for i in issues):
        return front, issues
    if folder is None or not rules.is_usable_name(folder) or (missing and not policy.repair):
        why = "is required" if missing else "is not usable, and neither is its folder's"
        return front, [*others, Issue("missing-name" if missing else "bad-name", "name", why, path, line)]
    if missing:
        note = Issue("repaired-name", "name", f"is missing; the folder's, {folder!r}, is used", path, line, "warning")
    else:
        note = Issue("bad-name", "name", f"is not usable; the folder's, {folder!r}, is used", path, line, "warning")
        others = [i for i in others if i.field != "name"]
    return front.renamed(folder), [*others, note]

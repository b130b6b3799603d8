"""Mechanical mending: what can be put right without knowing what the author meant.

A fix never changes what the file says. After each one the text is read again, and unless it says what lenient mode read
before (only the name may become the folder's), the fix is dropped.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from prowess.authoring.findings import read_skill_file
from prowess.errors import Issue, SkillError, SkillLoadError, SkillValidationError
from prowess.files.syscalls import rename, set_mode
from prowess.files.write import write_atomic
from prowess.limits import DEFAULT_LIMITS
from prowess.names import SKILL_FILE
from prowess.skills.parse import parse_skill
from prowess.spec.frontmatter.fields import SPEC_FIELDS
from prowess.spec.frontmatter.json_types import find_unquoted_values
from prowess.spec.frontmatter.unwrap import dedent_text, has_wrapper
from prowess.spec.rules import EXTENSION_FIELDS, is_spec_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prowess.limits import Limits
    from prowess.skills.parse import ParsedSkill

NOT_SERVED = "not-served-over-mcp"

_MAX_ROUNDS = 50
_KEY = re.compile(r"[A-Za-z_][\w.-]{0,127}[ \t]*:")
_INDENTED_KEY = re.compile(r"([ \t]+)([A-Za-z_][\w.-]{0,127})[ \t]*:(?:[ \t]+(\S)|[ \t]*\r?$)")
_SAFE_SCALAR = re.compile(r"[A-Za-z][\w ()/,.;+-]*")
_FENCE = re.compile(r"---[ \t]*")
_ODD_BREAKS = re.compile("\r(?!\n)|[\x85\u2028\u2029]")
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")


@dataclass(frozen=True, slots=True)
class Fix:
    """What mending a file comes to: its text before and after, and the codes of what was mended."""

    path: str
    before: str
    after: str
    codes: tuple[str, ...]
    new_path: str = ""
    """Where the file is going to be, when its own name is not spelled SKILL.md; else ``""``."""

    def __bool__(self) -> bool:
        """Whether anything changes."""
        return self.before != self.after or bool(self.new_path)

    def diff(self, name: str = "") -> str:
        """The change as a unified diff, after the two lines that git writes where a file gets another name."""
        from difflib import unified_diff  # noqa: PLC0415 - only when somebody wants to see it

        shown = name or self.path
        rows = unified_diff(
            self.before.splitlines(keepends=True),
            self.after.splitlines(keepends=True),
            f"{shown} (before)",
            f"{shown} (after)",
        )
        names = f"rename from {os.path.basename(self.path)}\nrename to {SKILL_FILE}\n" if self.new_path else ""
        return names + "".join(row if row.endswith("\n") else f"{row}\n" for row in rows)


class _SkillText(NamedTuple):
    """A SKILL.md that loads leniently: its lines, and where the frontmatter lies among them."""

    rows: list[str]
    parsed: ParsedSkill
    folder: str

    @property
    def line_ending(self) -> str:
        """How lines end in this file, so that a line which is written anew ends as the others do."""
        return "\r\n" if self.rows[0].endswith("\r\n") else "\n"

    @property
    def closing_row(self) -> int:
        """The row of the closing dashes; the rows between stand after row 0."""
        rows = enumerate(self.rows)
        return next((at for at, row in rows if at and _FENCE.fullmatch(row.rstrip("\r\n"))), len(self.rows))

    def find_entry(self, key: str) -> tuple[int, int] | None:
        """The rows of a key: its own, and those below that belong to it."""
        begin = next((at for at in range(1, self.closing_row) if self.rows[at].startswith(f"{key}:")), None)
        if begin is None:
            return None
        end = begin + 1
        while end < self.closing_row and not _KEY.match(self.rows[end]) and not self.rows[end].startswith("#"):
            end += 1
        return begin, end


def fix(path: str | os.PathLike[str], *, limits: Limits = DEFAULT_LIMITS) -> Fix:
    """How the SKILL.md at ``path`` (or in that folder) would be mended; nothing is written."""
    where = _find_file(path)
    before = _read_text(where, limits)
    after = before
    codes: list[str] = []
    for _ in range(_MAX_ROUNDS):
        found = _find_next_fix(after, where, limits, tuple(codes))
        if found is None:
            break
        code, after = found
        codes.append(code)
    # What is no skill may be meant to be none: it keeps its name.
    new_path = _find_right_path(where) if _parse_leniently(after, where, limits) is not None else ""
    if new_path:
        codes.append("filename-case")
    return Fix(where, before, after, tuple(dict.fromkeys(codes)), new_path)


def _find_right_path(where: str) -> str:
    """Where a file that is nearly named SKILL.md belongs; ``""`` for one that is, and where another has that name."""
    folder, name = os.path.split(where)
    if name == SKILL_FILE or name.lower() != SKILL_FILE.lower():
        return ""
    right = os.path.join(folder, SKILL_FILE)
    # Where case does not count, the name that is free already leads to the file itself.
    return right if not os.path.lexists(right) or os.path.samefile(where, right) else ""


def apply_fix(found: Fix, *, limits: Limits = DEFAULT_LIMITS) -> None:
    """Write a mended file, and give it its name; ``SkillValidationError`` when it is not what was looked at."""
    if not found:
        return
    if _read_text(found.path, limits) != found.before:
        raise SkillValidationError("the file has changed since it was looked at", found.path, "changed-during-read")
    if found.new_path and found.new_path != _find_right_path(found.path):
        raise SkillValidationError(f"there is a {SKILL_FILE} already", found.path, "filename-collision")
    mode = os.stat(found.path).st_mode & 0o777
    try:
        if found.after != found.before:
            write_atomic(found.path, found.after.encode("utf-8"), mode=mode)
            set_mode(found.path, mode)  # the file is its owner's, who may let others write to it
        if found.new_path:
            rename(found.path, found.new_path)
    except OSError as error:
        raise SkillValidationError(f"cannot write the file: {error.strerror}", found.path, "unwritable") from None


def _find_file(path: str | os.PathLike[str]) -> str:
    where = os.path.abspath(os.fspath(path))
    if not os.path.isdir(where):
        return where
    files = [os.path.join(where, name) for name in (SKILL_FILE, "skill.md")]
    return next((file for file in files if os.path.lexists(file)), files[0])


def _read_text(where: str, limits: Limits) -> str:
    try:
        return read_skill_file(where, limits).decode("utf-8")
    except UnicodeDecodeError:
        raise SkillValidationError("the file is not UTF-8", where, "not-utf8") from None


def _find_next_fix(text: str, where: str, limits: Limits, done: tuple[str, ...]) -> tuple[str, str] | None:
    """The next fix: its code and the new text."""
    read = _parse_leniently(text, where, limits)
    if read is None:
        return None
    for issue in _find_issues(text, where, read, limits):
        mender = _FIXERS.get(issue.code)
        if mender is None or done.count(issue.code) > _MAX_ROUNDS // 2:
            continue
        folder = os.path.basename(os.path.dirname(where))
        for mended in mender(_SkillText(_LINE.findall(text), read, folder), issue):
            if mended != text and _has_same_meaning(read, mended, where, limits, renamed=issue.code in _NAME_CODES):
                return issue.code, mended
    return None


def _find_issues(text: str, where: str, read: ParsedSkill, limits: Limits) -> tuple[Issue, ...]:
    """What lenient mode mended first, since nothing else is certain before; then what strict mode refuses."""
    repaired = tuple(
        issue for issue in read.issues if issue.code in _FIXERS and issue.code.startswith(("repaired-", "line-"))
    )
    if repaired:
        return repaired
    try:
        return (*parse_skill(text, where, limits=limits).issues, *unquoted_issues(text, where, limits=limits))
    except SkillLoadError as error:
        return error.issues
    except SkillError:
        return ()


def unquoted_issues(text: str, path: str, *, limits: Limits = DEFAULT_LIMITS) -> tuple[Issue, ...]:
    """A ``not-served-over-mcp`` for each value that an MCP server could serve once it is quoted; none for bad text."""
    message = "is not text unless it is quoted"
    try:
        values = find_unquoted_values(text.encode("utf-8", "surrogatepass"), limits=limits)
    except SkillError:
        return ()
    return tuple(Issue(NOT_SERVED, value.field, message, path, value.line, "warning") for value in values)


def _parse_leniently(text: str, where: str, limits: Limits) -> ParsedSkill | None:
    try:
        return parse_skill(text, where, "lenient", limits=limits)
    except SkillError:
        return None


def _has_same_meaning(read: ParsedSkill, mended: str, where: str, limits: Limits, *, renamed: bool) -> bool:
    again = _parse_leniently(mended, where, limits)
    if again is None or again.body != read.body:
        return False
    ours, theirs = read.skill.frontmatter, again.skill.frontmatter
    if renamed:
        theirs = theirs.renamed(ours.name)
    return _nonblank_fields(ours) == _nonblank_fields(theirs)


def _nonblank_fields(front: object) -> dict[str, object]:
    """The fields that say something; a blank line end of a block text says nothing."""
    from dataclasses import fields  # noqa: PLC0415

    found = {field.name: getattr(front, field.name) for field in fields(front) if field.compare}  # type: ignore[arg-type]
    return {name: value.strip() if isinstance(value, str) else value for name, value in found.items() if value}


# -- how each is mended ------------------------------------------------------------------------------------------------


def _rewrite_entry(file: _SkillText, issue: Issue) -> Iterator[str]:
    """The entry of the key as one line, its value quoted where it needs to be."""
    key = issue.field.partition(".")[0]
    at = file.find_entry(key)
    value = _find_value(file.parsed, key)
    if at is None or value is None or any(map(_may_be_a_key, file.rows[at[0] + 1 : at[1]])):
        return
    for written in (quote_yaml(value), _double_quote(value)):
        yield "".join([*file.rows[: at[0]], f"{key}: {written}{file.line_ending}", *file.rows[at[1] :]])


def _may_be_a_key(row: str) -> bool:
    """Whether a line below a value could be a field of its own, wrongly indented: who wrote it has to say."""
    found = _INDENTED_KEY.match(row)
    return found is not None and ("\t" in found[1] or not found[3] or found[2] in SPEC_FIELDS | EXTENSION_FIELDS)


def _find_value(read: ParsedSkill, key: str) -> str | None:
    front = read.skill.frontmatter
    value = front.extra.get(key, getattr(front, key.replace("-", "_"), None))
    if key == "allowed-tools":
        value = front.allowed_tools_raw
    return value if isinstance(value, str) else None


def quote_yaml(value: str) -> str:
    """A text as YAML: bare where nothing in it means anything, else in double quotes."""
    return value if _SAFE_SCALAR.fullmatch(value) and value == value.strip() else _double_quote(value)


def _double_quote(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def _set_name(file: _SkillText, _issue: Issue) -> Iterator[str]:
    """The folder's name, where it can be one."""
    if not is_spec_name(file.folder):
        return
    at = file.find_entry("name")
    row = f"name: {file.folder}{file.line_ending}"
    if at is None:
        yield "".join([file.rows[0], row, *file.rows[1:]])
    else:
        yield "".join([*file.rows[: at[0]], row, *file.rows[at[1] :]])


def _remove_entry(file: _SkillText, issue: Issue) -> Iterator[str]:
    at = file.find_entry(issue.field)
    if at is not None:
        yield "".join([*file.rows[: at[0]], *file.rows[at[1] :]])


def _split_glued_dashes(file: _SkillText, _issue: Issue) -> Iterator[str]:
    """``---# Title`` on two lines."""
    for at, row in enumerate(file.rows):
        if at and row.startswith("---") and not _FENCE.fullmatch(row.rstrip("\r\n")):
            yield "".join([*file.rows[:at], f"---{file.line_ending}", row[3:].lstrip(), *file.rows[at + 1 :]])
        elif at and row.rstrip().endswith("---") and row.strip("- \t\r\n"):
            before = row.rstrip()[:-3].rstrip()
            yield "".join([*file.rows[:at], f"{before}{file.line_ending}---{file.line_ending}", *file.rows[at + 1 :]])


def _remove_wrapping(file: _SkillText, _issue: Issue) -> Iterator[str]:
    """The file from its first dashes on; what stood above goes below the frontmatter where it is a comment."""
    if not has_wrapper("".join(file.rows).encode()):
        return
    first = next((at for at, row in enumerate(file.rows) if _FENCE.fullmatch(row.rstrip("\r\n"))), None)
    if not first:
        return
    rows = file.rows[first:]
    yield "".join(rows)
    ends = [at for at, row in enumerate(rows) if row.strip().startswith("```")]
    for at in ends[:1]:
        yield "".join([*rows[:at], *rows[at + 1 :]])


def _remove_indentation(file: _SkillText, _issue: Issue) -> Iterator[str]:
    """The frontmatter at the margin, both lines of dashes included; the body stays as it is."""
    dashes = [at for at, row in enumerate(file.rows) if _FENCE.fullmatch(row.strip())]
    if len(dashes) > 1:
        first, last = dashes[:2]
        rows = dedent_text("".join(file.rows[first + 1 : last]))
        yield "".join(["---\n", rows, "---\n", *file.rows[last + 1 :]])


def _replace_odd_breaks(file: _SkillText, _issue: Issue) -> Iterator[str]:
    close = file.closing_row
    yield "".join([*(_ODD_BREAKS.sub(" ", row) for row in file.rows[:close]), *file.rows[close:]])


def _quote_in_place(file: _SkillText, _issue: Issue) -> Iterator[str]:
    """Every value that is no text without quotes gets them; no other character changes."""
    rows = [*file.rows]
    # From the end, so that the columns of the values before it on its line still hold.
    values = find_unquoted_values("".join(rows).encode())
    for value in sorted(values, key=lambda one: (one.line, one.column), reverse=True):
        row = rows[value.line - 1]
        before, after = row[: value.column], row[value.column + len(value.text) :]
        rows[value.line - 1] = f"{before}{'' if value.text else ' '}{_double_quote(value.text)}{after}"
    yield "".join(rows)


_FIXERS: dict[str, Callable[[_SkillText, Issue], Iterator[str]]] = {
    "repaired-colon": _rewrite_entry,
    "repaired-block-text": _rewrite_entry,
    "repaired-leading-character": _rewrite_entry,
    "repaired-missing-blank": _rewrite_entry,
    "repaired-brackets": _rewrite_entry,
    "repaired-quotes": _rewrite_entry,
    "repaired-value": _rewrite_entry,
    "repaired-glued-dashes": _split_glued_dashes,
    "repaired-comment": _remove_wrapping,
    "repaired-code-fence": _remove_wrapping,
    "repaired-indentation": _remove_indentation,
    "repaired-name": _set_name,
    "repaired-name-colon": _set_name,
    "line-break": _replace_odd_breaks,
    "missing-name": _set_name,
    "name-mismatch": _set_name,
    "bad-name": _set_name,
    "blank-field": _remove_entry,
    NOT_SERVED: _quote_in_place,
}
_NAME_CODES = frozenset(("missing-name", "name-mismatch", "bad-name", "repaired-name", "repaired-name-colon"))

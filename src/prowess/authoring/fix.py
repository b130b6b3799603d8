"""Fixes in a SKILL.md what can be fixed without knowing what the author meant.

A fix never changes the meaning of the file. After each one the text is parsed again. Unless the result is what lenient
mode read before, the fix is dropped. Only the name may become the folder's, and a key in the wrong case is read then.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NamedTuple

from prowess.authoring.findings import read_skill_file
from prowess.errors import Issue, SkillError, SkillLoadError, SkillValidationError
from prowess.files.syscalls import rename, set_mode
from prowess.files.write import write_atomic
from prowess.format.frontmatter.fences import dedent_text, has_wrapper
from prowess.format.frontmatter.fields import SPEC_FIELDS
from prowess.format.frontmatter.json_types import find_unquoted_values
from prowess.format.rules import EXTENSION_FIELDS, is_spec_name
from prowess.limits import DEFAULT_LIMITS
from prowess.names import SKILL_FILE
from prowess.skills.parse import parse_skill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prowess.format.frontmatter.fields import Frontmatter
    from prowess.limits import Limits
    from prowess.skills.parse import ParsedSkill


_MAX_ROUNDS = 50  # each round fixes one issue; a file of somebody else's may have any number
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")


@dataclass(frozen=True, slots=True)
class Fix:
    """The fixes of a file: its text before and after, and the codes of the fixed issues."""

    path: str
    before: str
    after: str
    codes: tuple[str, ...]
    new_path: str = ""
    """The new path of the file when its name is not spelled SKILL.md; otherwise ``""``."""

    def __bool__(self) -> bool:
        """Return whether anything changes."""
        return self.before != self.after or bool(self.new_path)

    def diff(self, name: str = "") -> str:
        """Return the change as a unified diff, after git's two lines for a file that gets another name."""
        from difflib import unified_diff

        shown = name or self.path
        lines = unified_diff(
            self.before.splitlines(keepends=True),
            self.after.splitlines(keepends=True),
            f"{shown} (before)",
            f"{shown} (after)",
        )
        names = f"rename from {os.path.basename(self.path)}\nrename to {SKILL_FILE}\n" if self.new_path else ""
        return names + "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def fix(path: str | os.PathLike[str], *, limits: Limits = DEFAULT_LIMITS) -> Fix:
    """Return the fixes of the SKILL.md at ``path`` (or in that folder); nothing is written.

    Raises ``SkillValidationError`` when the file cannot be read.
    """
    file = _find_file(path)
    before = _read_text(file, limits)
    after = before
    codes: list[str] = []
    for _ in range(_MAX_ROUNDS):
        fixed = _find_next_fix(after, file, limits, tuple(codes))
        if fixed is None:
            break
        code, after = fixed
        codes.append(code)
    # A file that does not parse as a skill may not be meant as one, and keeps its name.
    new_path = _find_right_path(file) if _parse_leniently(after, file, limits) is not None else ""
    if new_path:
        codes.append("filename-case")
    return Fix(file, before, after, tuple(dict.fromkeys(codes)), new_path)


def _find_right_path(file: str) -> str:
    """Return the path of SKILL.md for a file with another case; ``""`` when it has that name or another file does."""
    folder, name = os.path.split(file)
    if name == SKILL_FILE or name.lower() != SKILL_FILE.lower():
        return ""
    right = os.path.join(folder, SKILL_FILE)
    # On a file system that ignores case (macOS, Windows), the right name already leads to the file itself.
    return right if not os.path.lexists(right) or os.path.samefile(file, right) else ""


def apply_fix(found: Fix, *, limits: Limits = DEFAULT_LIMITS) -> None:
    """Write the fixed text, and rename the file when its name is wrong.

    Raises ``SkillValidationError`` when the file has changed since ``fix`` read it, or cannot be written.
    """
    if not found:
        return
    if _read_text(found.path, limits) != found.before:
        raise SkillValidationError("the file has changed since it was checked", found.path, "changed-during-read")
    # Somebody may have made a SKILL.md since: a rename would replace it without a word.
    if found.new_path and found.new_path != _find_right_path(found.path):
        raise SkillValidationError(f"there is a {SKILL_FILE} already", found.path, "filename-collision")
    mode = os.stat(found.path).st_mode & 0o777
    try:
        if found.after != found.before:
            write_atomic(found.path, found.after.encode("utf-8"), mode=mode)
            set_mode(found.path, mode)  # again, since the umask takes bits that the owner may have granted
        if found.new_path:
            rename(found.path, found.new_path)
    except OSError as error:
        raise SkillValidationError(f"cannot write the file: {error.strerror}", found.path, "unwritable") from None


def _find_file(path: str | os.PathLike[str]) -> str:
    target = os.path.abspath(os.fspath(path))
    if not os.path.isdir(target):
        return target
    files = [os.path.join(target, name) for name in (SKILL_FILE, "skill.md")]
    return next((file for file in files if os.path.lexists(file)), files[0])


def _read_text(file: str, limits: Limits) -> str:
    try:
        return read_skill_file(file, limits).decode("utf-8")
    except UnicodeDecodeError:
        raise SkillValidationError("the file is not UTF-8", file, "not-utf8") from None


def _find_next_fix(text: str, file: str, limits: Limits, done: tuple[str, ...]) -> tuple[str, str] | None:
    """Return the code of the next issue that can be fixed and the new content; ``None`` when there is none."""
    parsed = _parse_leniently(text, file, limits)
    if parsed is None:
        return None
    folder = os.path.basename(os.path.dirname(file))
    for issue in _find_issues(text, file, parsed, limits):
        fixer = _FIXERS.get(issue.code)
        # A fixer that does not end its issue would otherwise use up all rounds, and leave none for the others.
        if fixer is None or done.count(issue.code) > _MAX_ROUNDS // 2:
            continue
        for fixed in fixer(_FixableFile(_LINE.findall(text), parsed, folder), issue):
            if fixed != text and _has_same_meaning(parsed, fixed, file, limits, issue):
                return issue.code, fixed
    return None


def _find_issues(text: str, file: str, parsed: ParsedSkill, limits: Limits) -> tuple[Issue, ...]:
    """Return keys in the wrong case, and what lenient mode repaired; without such repairs, what strict mode refuses."""
    respelled = tuple(issue for issue in parsed.issues if issue.code == RESPELLED)
    # In this order, because strict mode cannot read a file that needs a repair, and would report only its first error.
    repaired = tuple(
        issue for issue in parsed.issues if issue.code in _FIXERS and issue.code.startswith(("repaired-", "line-"))
    )
    if repaired:
        return (*respelled, *repaired)
    try:
        strict = (*parse_skill(text, file, limits=limits).issues, *unquoted_issues(text, file, limits=limits))
    except SkillLoadError as error:
        strict = error.issues
    except SkillError:
        strict = ()
    return (*respelled, *strict)


def unquoted_issues(text: str, path: str, *, limits: Limits = DEFAULT_LIMITS) -> tuple[Issue, ...]:
    """Return a ``not-served-over-mcp`` for each value that an MCP server could serve once it is quoted.

    Returns none for a string that cannot be parsed.
    """
    message = "is not text unless it is quoted"
    try:
        values = find_unquoted_values(text.encode("utf-8", "surrogatepass"), limits=limits)
    except SkillError:
        return ()
    return tuple(Issue(NOT_SERVED, value.field, message, path, value.line, "warning") for value in values)


def _parse_leniently(text: str, file: str, limits: Limits) -> ParsedSkill | None:
    try:
        return parse_skill(text, file, "lenient", limits=limits)
    except SkillError:
        return None


def _has_same_meaning(parsed: ParsedSkill, fixed: str, file: str, limits: Limits, issue: Issue) -> bool:
    again = _parse_leniently(fixed, file, limits)
    if again is None or again.body != parsed.body:
        return False
    before, after = parsed.skill.frontmatter, again.skill.frontmatter
    if issue.code in _NAME_CODES:
        after = after.renamed(before.name)
    keys = {issue.field, issue.field.lower()} if issue.code == RESPELLED else set[str]()
    return _nonblank_fields(before, keys) == _nonblank_fields(after, keys)


def _nonblank_fields(front: Frontmatter, keys: set[str]) -> dict[str, object]:
    """Return the fields that hold something, without whitespace around strings, such as the line end of a block scalar.

    Those of ``keys``, as they are written, are left out.
    """
    values = {field.name: getattr(front, field.name) for field in fields(front) if field.compare}
    values["extra"] = {key: value for key, value in front.extra.items() if key not in keys}
    left_out = {name for key in keys for name in (key.replace("-", "_"), f"{key.replace('-', '_')}_raw")}
    return {
        name: value.strip() if isinstance(value, str) else value
        for name, value in values.items()
        if value and name not in left_out
    }


NOT_SERVED, RESPELLED = "not-served-over-mcp", "unknown-field"

_KEY = re.compile(r"[A-Za-z_][\w.-]{0,127}[ \t]*:")
_INDENTED_KEY = re.compile(r"([ \t]+)([A-Za-z_][\w.-]{0,127})[ \t]*:(?:[ \t]+(\S)|[ \t]*\r?$)")
_SAFE_SCALAR = re.compile(r"[A-Za-z][\w ()/,.;+-]*")
_FENCE = re.compile(r"---[ \t]*")
_ODD_BREAKS = re.compile("\r(?!\n)|[\x85\u2028\u2029]")


class _FixableFile(NamedTuple):
    """The text of a SKILL.md that loads leniently: its lines, what they were parsed to, and the name of its folder."""

    lines: list[str]
    parsed: ParsedSkill
    folder: str

    @property
    def line_ending(self) -> str:
        """The line ending of this file, so that a new line ends as the others do."""
        return "\r\n" if self.lines[0].endswith("\r\n") else "\n"

    @property
    def closing_line(self) -> int:
        """The index of the line with the closing dashes; the number of lines when there is none."""
        lines = enumerate(self.lines)
        return next((index for index, line in lines if index and _is_fence(line)), len(self.lines))

    def find_entry(self, key: str) -> tuple[int, int] | None:
        """Return where the lines of a key begin and end, including those below that belong to it, or ``None``."""
        close = self.closing_line
        begin = next((index for index in range(1, close) if self.lines[index].startswith(f"{key}:")), None)
        if begin is None:
            return None
        end = begin + 1
        while end < close and not _KEY.match(self.lines[end]) and not self.lines[end].startswith("#"):
            end += 1
        return begin, end

    def replace(self, begin: int, end: int, *lines: str) -> str:
        """Return the text with the lines from ``begin`` to ``end`` replaced by ``lines``."""
        return "".join([*self.lines[:begin], *lines, *self.lines[end:]])


def _is_fence(line: str) -> bool:
    return _FENCE.fullmatch(line.rstrip("\r\n")) is not None


def _rewrite_entry(file: _FixableFile, issue: Issue) -> Iterator[str]:
    """Yield the text with the entry of the key on one line, its value quoted when it needs to be."""
    key = issue.field.partition(".")[0]
    entry = file.find_entry(key)
    value = _find_value(file.parsed, key)
    if entry is None or value is None or any(map(_may_be_key, file.lines[entry[0] + 1 : entry[1]])):
        return
    # Bare first, as people write it. Where that reads as something else, such as a number, quotes are tried.
    for written in (quote_yaml(value), _double_quote(value)):
        yield file.replace(*entry, f"{key}: {written}{file.line_ending}")


def _may_be_key(line: str) -> bool:
    """Return whether a line below a value could be a field of its own, wrongly indented; only its author knows."""
    match = _INDENTED_KEY.match(line)
    return match is not None and ("\t" in match[1] or not match[3] or match[2] in SPEC_FIELDS | EXTENSION_FIELDS)


def _find_value(parsed: ParsedSkill, key: str) -> str | None:
    front = parsed.skill.frontmatter
    value = front.extra.get(key, getattr(front, key.replace("-", "_"), None))
    if key == "allowed-tools":
        value = front.allowed_tools_raw
    return value if isinstance(value, str) else None


def quote_yaml(value: str) -> str:
    """Return a string as YAML: bare when no character in it has a meaning, otherwise in double quotes."""
    return value if _SAFE_SCALAR.fullmatch(value) and value == value.strip() else _double_quote(value)


def _double_quote(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def _set_name(file: _FixableFile, _issue: Issue) -> Iterator[str]:
    """Yield the text with the folder's name as the name, when the specification allows it."""
    if is_spec_name(file.folder):
        entry = file.find_entry("name") or (1, 1)  # without a name, as the first line of the frontmatter
        yield file.replace(*entry, f"name: {file.folder}{file.line_ending}")


def _remove_entry(file: _FixableFile, issue: Issue) -> Iterator[str]:
    entry = file.find_entry(issue.field)
    if entry is not None:
        yield file.replace(*entry)


def _split_glued_dashes(file: _FixableFile, _issue: Issue) -> Iterator[str]:
    """Yield the text with ``---# Title``, or dashes at the end of another line, on two lines."""
    dashes = f"---{file.line_ending}"
    for index, line in enumerate(file.lines):
        if index and line.startswith("---") and not _is_fence(line):
            yield file.replace(index, index + 1, dashes, line[3:].lstrip())
        elif index and line.rstrip().endswith("---") and line.strip("- \t\r\n"):
            yield file.replace(index, index + 1, f"{line.rstrip()[:-3].rstrip()}{file.line_ending}", dashes)


def _remove_wrapping(file: _FixableFile, _issue: Issue) -> Iterator[str]:
    """Yield the text from its first dashes on, then also without the first line of backticks."""
    if not has_wrapper("".join(file.lines).encode()):
        return
    first = next((index for index, line in enumerate(file.lines) if _is_fence(line)), None)
    if not first:
        return
    lines = file.lines[first:]
    yield "".join(lines)
    closing = next((index for index, line in enumerate(lines) if line.strip().startswith("```")), None)
    if closing is not None:
        yield "".join([*lines[:closing], *lines[closing + 1 :]])


def _remove_indentation(file: _FixableFile, _issue: Issue) -> Iterator[str]:
    """Yield the text with the frontmatter and its dashes at the margin; the body stays as it is."""
    dashes = [index for index, line in enumerate(file.lines) if _FENCE.fullmatch(line.strip())]
    if len(dashes) > 1:
        first, last = dashes[:2]
        yield file.replace(0, last + 1, "---\n", dedent_text("".join(file.lines[first + 1 : last])), "---\n")


def _replace_odd_breaks(file: _FixableFile, _issue: Issue) -> Iterator[str]:
    close = file.closing_line
    yield file.replace(0, close, *(_ODD_BREAKS.sub(" ", line) for line in file.lines[:close]))


def _quote_in_place(file: _FixableFile, _issue: Issue) -> Iterator[str]:
    """Yield the text with quotes around every value that is not a string without them; no other character changes."""
    lines = [*file.lines]
    values = find_unquoted_values("".join(lines).encode())
    # From the end, so that the columns of earlier values on a line stay right.
    for value in sorted(values, key=lambda unquoted: (unquoted.line, unquoted.column), reverse=True):
        line = lines[value.line - 1]
        before, after = line[: value.column], line[value.column + len(value.text) :]
        lines[value.line - 1] = f"{before}{'' if value.text else ' '}{_double_quote(value.text)}{after}"
    yield "".join(lines)


def _respell_key(file: _FixableFile, issue: Issue) -> Iterator[str]:
    """Yield the text with a key in lower case, if it is one that Prowess reads and the text does not have it yet."""
    key = issue.field.lower()
    entry = file.find_entry(issue.field)
    if entry is not None and key in SPEC_FIELDS | EXTENSION_FIELDS and file.find_entry(key) is None:
        first = file.lines[entry[0]]
        yield file.replace(entry[0], entry[0] + 1, key + first[len(key) :])


_FIXERS: dict[str, Callable[[_FixableFile, Issue], Iterator[str]]] = {
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
    RESPELLED: _respell_key,
}
"""The fixer of each code; it yields contents to try, the best first."""
_NAME_CODES = frozenset(("missing-name", "name-mismatch", "bad-name", "repaired-name", "repaired-name-colon"))
"""The codes whose fixer may change the name."""

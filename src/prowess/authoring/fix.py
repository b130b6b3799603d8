"""Fixes a SKILL.md: mends what can be mended without knowing what the author meant.

A fix never changes the meaning of the file. After each one the text is parsed again. Unless the result is what lenient
mode read before, the fix is dropped. Only the name may become the folder's, and a key in the wrong case is read then.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from prowess.authoring.findings import read_skill_file
from prowess.authoring.fixers import FIXERS, NAME_CODES, NOT_SERVED, RESPELLED, MendableFile
from prowess.errors import Issue, SkillError, SkillLoadError, SkillValidationError
from prowess.files.syscalls import rename, set_mode
from prowess.files.write import write_atomic
from prowess.format.frontmatter.json_types import find_unquoted_values
from prowess.limits import DEFAULT_LIMITS
from prowess.names import SKILL_FILE
from prowess.skills.parse import parse_skill

if TYPE_CHECKING:
    from prowess.format.frontmatter.fields import Frontmatter
    from prowess.limits import Limits
    from prowess.skills.parse import ParsedSkill

_MAX_ROUNDS = 50  # each round mends one issue; a file of somebody else's may have any number
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")


@dataclass(frozen=True, slots=True)
class Fix:
    """The fixes of a file: its text before and after, and the codes of the mended issues."""

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
        mended = _find_next_fix(after, file, limits, tuple(codes))
        if mended is None:
            break
        code, after = mended
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
        raise SkillValidationError("the file has changed since it was looked at", found.path, "changed-during-read")
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
    """Return the code of the next issue that can be mended and the new text; ``None`` when there is none."""
    parsed = _parse_leniently(text, file, limits)
    if parsed is None:
        return None
    folder = os.path.basename(os.path.dirname(file))
    for issue in _find_issues(text, file, parsed, limits):
        fixer = FIXERS.get(issue.code)
        # A fixer that does not end its issue would otherwise use up all rounds, and leave none for the others.
        if fixer is None or done.count(issue.code) > _MAX_ROUNDS // 2:
            continue
        for mended in fixer(MendableFile(_LINE.findall(text), parsed, folder), issue):
            if mended != text and _has_same_meaning(parsed, mended, file, limits, issue):
                return issue.code, mended
    return None


def _find_issues(text: str, file: str, parsed: ParsedSkill, limits: Limits) -> tuple[Issue, ...]:
    """Return keys in the wrong case, and what lenient mode repaired; without such repairs, what strict mode refuses."""
    respelled = tuple(issue for issue in parsed.issues if issue.code == RESPELLED)
    # In this order, because strict mode cannot read a text that needs a repair, and would report only its first error.
    repaired = tuple(
        issue for issue in parsed.issues if issue.code in FIXERS and issue.code.startswith(("repaired-", "line-"))
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

    Returns none for a text that cannot be parsed.
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


def _has_same_meaning(parsed: ParsedSkill, mended: str, file: str, limits: Limits, issue: Issue) -> bool:
    again = _parse_leniently(mended, file, limits)
    if again is None or again.body != parsed.body:
        return False
    before, after = parsed.skill.frontmatter, again.skill.frontmatter
    if issue.code in NAME_CODES:
        after = after.renamed(before.name)
    keys = {issue.field, issue.field.lower()} if issue.code == RESPELLED else set[str]()
    return _nonblank_fields(before, keys) == _nonblank_fields(after, keys)


def _nonblank_fields(front: Frontmatter, keys: set[str]) -> dict[str, object]:
    """Return the fields that hold something, without blanks around texts, such as the line end of a block text.

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

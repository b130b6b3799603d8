"""The fixers: how each kind of issue in the text of a SKILL.md is mended."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from prowess.format.frontmatter.fields import SPEC_FIELDS
from prowess.format.frontmatter.json_types import find_unquoted_values
from prowess.format.frontmatter.unwrap import dedent_text, has_wrapper
from prowess.format.rules import EXTENSION_FIELDS, is_spec_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prowess.errors import Issue
    from prowess.skills.parse import ParsedSkill

NOT_SERVED, RESPELLED = "not-served-over-mcp", "unknown-field"

_KEY = re.compile(r"[A-Za-z_][\w.-]{0,127}[ \t]*:")
_INDENTED_KEY = re.compile(r"([ \t]+)([A-Za-z_][\w.-]{0,127})[ \t]*:(?:[ \t]+(\S)|[ \t]*\r?$)")
_SAFE_SCALAR = re.compile(r"[A-Za-z][\w ()/,.;+-]*")
_FENCE = re.compile(r"---[ \t]*")
_ODD_BREAKS = re.compile("\r(?!\n)|[\x85\u2028\u2029]")


class MendableFile(NamedTuple):
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


def _rewrite_entry(file: MendableFile, issue: Issue) -> Iterator[str]:
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
    """Return a text as YAML: bare when no character in it has a meaning, otherwise in double quotes."""
    return value if _SAFE_SCALAR.fullmatch(value) and value == value.strip() else _double_quote(value)


def _double_quote(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def _set_name(file: MendableFile, _issue: Issue) -> Iterator[str]:
    """Yield the text with the folder's name as the name, when the specification allows it."""
    if is_spec_name(file.folder):
        entry = file.find_entry("name") or (1, 1)  # without a name, as the first line of the frontmatter
        yield file.replace(*entry, f"name: {file.folder}{file.line_ending}")


def _remove_entry(file: MendableFile, issue: Issue) -> Iterator[str]:
    entry = file.find_entry(issue.field)
    if entry is not None:
        yield file.replace(*entry)


def _split_glued_dashes(file: MendableFile, _issue: Issue) -> Iterator[str]:
    """Yield the text with ``---# Title``, or dashes at the end of another line, on two lines."""
    dashes = f"---{file.line_ending}"
    for index, line in enumerate(file.lines):
        if index and line.startswith("---") and not _is_fence(line):
            yield file.replace(index, index + 1, dashes, line[3:].lstrip())
        elif index and line.rstrip().endswith("---") and line.strip("- \t\r\n"):
            yield file.replace(index, index + 1, f"{line.rstrip()[:-3].rstrip()}{file.line_ending}", dashes)


def _remove_wrapping(file: MendableFile, _issue: Issue) -> Iterator[str]:
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


def _remove_indentation(file: MendableFile, _issue: Issue) -> Iterator[str]:
    """Yield the text with the frontmatter and its dashes at the margin; the body stays as it is."""
    dashes = [index for index, line in enumerate(file.lines) if _FENCE.fullmatch(line.strip())]
    if len(dashes) > 1:
        first, last = dashes[:2]
        yield file.replace(0, last + 1, "---\n", dedent_text("".join(file.lines[first + 1 : last])), "---\n")


def _replace_odd_breaks(file: MendableFile, _issue: Issue) -> Iterator[str]:
    close = file.closing_line
    yield file.replace(0, close, *(_ODD_BREAKS.sub(" ", line) for line in file.lines[:close]))


def _quote_in_place(file: MendableFile, _issue: Issue) -> Iterator[str]:
    """Yield the text with quotes around every value that is no text without them; no other character changes."""
    lines = [*file.lines]
    values = find_unquoted_values("".join(lines).encode())
    # From the end, so that the columns of earlier values on a line stay right.
    for value in sorted(values, key=lambda unquoted: (unquoted.line, unquoted.column), reverse=True):
        line = lines[value.line - 1]
        before, after = line[: value.column], line[value.column + len(value.text) :]
        lines[value.line - 1] = f"{before}{'' if value.text else ' '}{_double_quote(value.text)}{after}"
    yield "".join(lines)


def _respell_key(file: MendableFile, issue: Issue) -> Iterator[str]:
    """Yield the text with a key in lower case, if it is one that Prowess reads and the text does not have it yet."""
    key = issue.field.lower()
    entry = file.find_entry(issue.field)
    if entry is not None and key in SPEC_FIELDS | EXTENSION_FIELDS and file.find_entry(key) is None:
        first = file.lines[entry[0]]
        yield file.replace(entry[0], entry[0] + 1, key + first[len(key) :])


FIXERS: dict[str, Callable[[MendableFile, Issue], Iterator[str]]] = {
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
"""The fixer of each code; it yields texts to try, the best first."""
NAME_CODES = frozenset(("missing-name", "name-mismatch", "bad-name", "repaired-name", "repaired-name-colon"))
"""The codes whose fixer may change the name."""

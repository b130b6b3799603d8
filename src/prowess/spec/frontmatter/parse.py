"""From the first bytes of a SKILL.md to its ``Frontmatter`` and the byte at which the body begins."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from prowess.errors import InvalidFrontmatterError, Issue, NoFrontmatterError, UnterminatedFrontmatterError
from prowess.limits import DEFAULT_LIMITS
from prowess.spec.frontmatter.fences import BOM, Fences, decode_frontmatter, find_fences, refuse_other_encodings
from prowess.spec.frontmatter.fields import Frontmatter, build_frontmatter
from prowess.spec.frontmatter.plain_yaml import can_skip_limit_checks, parse_plain_yaml
from prowess.spec.frontmatter.unwrap import (
    MisplacedFrontmatter,
    dedent_text,
    find_indented_frontmatter,
    has_wrapper,
    may_have_indent,
    may_have_wrapper,
    split_glued_dashes,
    unwrap_frontmatter,
)
from prowess.spec.frontmatter.yaml_events import YamlError, YamlRefusedError, parse_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.limits import Limits
    from prowess.model import Value

_OPENER = re.compile(rb"\s*+---[ \t]*+\r?\n")
_COMMENTED_DESCRIPTION = re.compile(r"^description:[ \t]++(#[^\n]*+)", re.MULTILINE)
_FENCE = re.compile(rb"---[ \t]*+\r?\n?")
_ODD_LINE_BREAKS = re.compile("[\r\x85\u2028\u2029]")


class BinaryStream(Protocol):
    """What ``parse_frontmatter`` needs of a stream: ``read``; ``readline``, ``seek`` and ``tell`` help."""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes."""
        ...


class ParsedHead(NamedTuple):
    """What the head of a file says, where its body begins (in bytes), and what was met or mended on the way."""

    front: Frontmatter
    body_offset: int
    issues: tuple[Issue, ...] = ()


# -- bytes in hand -----------------------------------------------------------------------------------------------------


def needs_more_bytes(head: bytes, *, repair: bool) -> bool:
    """Whether the end of the frontmatter lies beyond ``head``."""
    if repair and find_indented_frontmatter(head, whole=False) is not None:
        return False
    try:
        return find_fences(head, whole=False) is None
    except NoFrontmatterError:
        if not repair:
            return False
        return may_have_indent(head) or (may_have_wrapper(head) and unwrap_frontmatter(head, whole=False) is None)
    except InvalidFrontmatterError:
        return False


def parse_head(
    head: bytes, *, whole: bool = True, lenient: bool = False, repair: bool = False, limits: Limits = DEFAULT_LIMITS
) -> ParsedHead:
    """The meaning of ``head``, the first bytes of a file (``whole``: there are no more within the limits).

    Strict by default. ``lenient`` accepts odd line breaks, ``repair`` mends what real files get wrong; each leaves an
    issue. Raises ``InvalidFrontmatterError``; fields are not validated.
    """
    fences, issues = _find_frontmatter(head, whole=whole, repair=repair, limits=limits)
    text = decode_frontmatter(head, fences)
    if issues and issues[0].code == "repaired-indentation":
        text = dedent_text(text)
    if _ODD_LINE_BREAKS.search(text):
        text, issue = _replace_line_breaks(text, fences.line, lenient=lenient)
        issues = (*issues, issue)
    try:
        values, lines = _parse_values(text, limits)
    except YamlRefusedError as error:
        raise _invalid_error(error, fences.line) from None
    except YamlError as error:
        if not repair:
            raise _invalid_error(error, fences.line) from None
        return _repair_head(head, fences, text, issues, limits, error)
    if repair and values.get("description") == "":
        issues = (*issues, *_restore_description(text, values, fences.line))
    return ParsedHead(_build_fields(head, fences, values, lines), fences.body, issues)


def _build_fields(head: bytes, fences: Fences, values: dict[str, Value], lines: dict[str, int]) -> Frontmatter:
    """The fields, with the line of the file on which each key stands, and the bytes that they were read from."""
    raw = head[fences.start : fences.end]
    return build_frontmatter(values, {key: fences.line + number for key, number in lines.items()}, raw)


def find_body_offset(head: bytes, *, whole: bool, repair: bool, limits: Limits = DEFAULT_LIMITS) -> int:
    """The byte at which the body begins, whatever stands between the dashes.

    Raises ``InvalidFrontmatterError`` when there are no dashes that open and close, or none within the limits.
    """
    try:
        return parse_head(head, whole=whole, lenient=True, repair=repair, limits=limits).body_offset
    except InvalidFrontmatterError:  # raised again below where the dashes are at fault
        return _find_frontmatter(head, whole=whole, repair=repair, limits=limits)[0].body


def read_strict_text(head: bytes, *, whole: bool, limits: Limits = DEFAULT_LIMITS) -> tuple[str, int]:
    """The text between the dashes and the number of its first line; nothing mended, odd line breaks refused."""
    fences, _ = _find_frontmatter(head, whole=whole, repair=False, limits=limits)
    text = decode_frontmatter(head, fences)
    if _ODD_LINE_BREAKS.search(text):
        _replace_line_breaks(text, fences.line, lenient=False)
    return text, fences.line


def _restore_description(text: str, values: dict[str, Value], line: int) -> Iterator[Issue]:
    """``description: # Title`` is a comment to YAML and the description to everyone who reads the file."""
    found = _COMMENTED_DESCRIPTION.search(text)
    if found:
        values["description"] = found[1].strip()
        at = line + text.count("\n", 0, found.start())
        message = "the text begins with '#', which makes it a comment"
        yield Issue("repaired-leading-character", "description", message, line=at, severity="warning")


def _parse_values(text: str, limits: Limits) -> tuple[dict[str, Value], dict[str, int]]:
    plain = parse_plain_yaml(text) if can_skip_limit_checks(limits) else None
    return plain if plain is not None else parse_yaml(text, limits)


def _find_frontmatter(head: bytes, *, whole: bool, repair: bool, limits: Limits) -> tuple[Fences, tuple[Issue, ...]]:
    indented = find_indented_frontmatter(head, whole=whole) if repair else None
    if indented is not None:  # first: dashes further down, a rule of the body say, would close it too late
        return indented.fences, (_repair_issue(indented),)
    try:
        fences = find_fences(head, whole=whole)
    except (NoFrontmatterError, UnterminatedFrontmatterError) as error:
        found = _repair_location(head, error) if repair else None
        if found is None:
            raise
        return found.fences, (_repair_issue(found),)
    if fences is None:
        message = f"the frontmatter is longer than {limits.max_frontmatter_bytes} bytes"
        found = _find_glued_dashes(head, len(head)) if repair else None
        if found is None:
            refuse_other_encodings(head)
            raise InvalidFrontmatterError([Issue("frontmatter-too-large", "", message, line=1)])
        return found.fences, (_repair_issue(found),)
    return fences, ()


def _repair_location(head: bytes, error: InvalidFrontmatterError) -> MisplacedFrontmatter | None:
    if isinstance(error, UnterminatedFrontmatterError):
        return _find_glued_dashes(head, len(head))
    return unwrap_frontmatter(head, whole=True) if has_wrapper(head) else None


def _find_glued_dashes(head: bytes, before: int) -> MisplacedFrontmatter | None:
    opener = _OPENER.match(head, len(BOM) if head.startswith(BOM) else 0)
    return split_glued_dashes(head, opener.end(), before) if opener else None


def _repair_issue(found: MisplacedFrontmatter) -> Issue:
    return Issue(found.code, "", found.message, line=found.line, severity="warning")


def normalize_raw(raw: bytes) -> str:
    """The text of frontmatter that was read before, with LF line ends and blanks for odd line breaks."""
    return _ODD_LINE_BREAKS.sub(" ", raw.decode("utf-8").replace("\r\n", "\n"))


def _replace_line_breaks(text: str, line: int, *, lenient: bool) -> tuple[str, Issue]:
    found = _ODD_LINE_BREAKS.search(text)
    at = found.start() if found else 0
    message = f"U+{ord(text[at]):04X} is no line end here"
    issue = Issue("line-break", "", message, line=line + text.count("\n", 0, at), severity="warning")
    if not lenient:
        raise InvalidFrontmatterError([Issue("line-break", "", message, line=issue.line)])
    return _ODD_LINE_BREAKS.sub(" ", text), issue


def _invalid_error(error: YamlError, line: int) -> InvalidFrontmatterError:
    return InvalidFrontmatterError([Issue(error.code, "", error.message, line=line + error.line)])


def _repair_head(  # noqa: PLR0917 - one caller, which has all of it at hand
    head: bytes, fences: Fences, text: str, issues: tuple[Issue, ...], limits: Limits, first: YamlError
) -> ParsedHead:
    from prowess.spec.frontmatter.repair import repair_yaml  # noqa: PLC0415 - few heads need it

    glued = split_glued_dashes(head, fences.start, fences.end)
    if glued is not None:
        shorter = head[: glued.fences.end] + b"---\n"
        inner = parse_head(shorter, lenient=True, repair=True, limits=limits)
        return ParsedHead(inner.front, glued.fences.body, (*issues, _repair_issue(glued), *inner.issues))
    try:
        values, lines, repairs = repair_yaml(text, limits)
    except YamlRefusedError as error:
        raise _invalid_error(error, fences.line) from None
    except YamlError:
        raise _invalid_error(first, fences.line) from None
    mended = (Issue(r.code, r.key, r.message, line=fences.line + r.line, severity="warning") for r in repairs)
    return ParsedHead(_build_fields(head, fences, values, lines), fences.body, (*issues, *mended))


# -- a stream ----------------------------------------------------------------------------------------------------------


def parse_frontmatter(stream: BinaryStream, *, limits: Limits = DEFAULT_LIMITS) -> tuple[Frontmatter, int]:
    """The frontmatter at the start of a binary stream, and the byte offset of the body.

    The stream is left exactly at the first byte of the body, and no more than the limits allow is read. Fields are not
    validated. Raises ``NoFrontmatterError``, ``UnterminatedFrontmatterError`` or ``InvalidFrontmatterError``; a
    seekable stream is then back where it was.
    """
    seek = getattr(stream, "seek", None)
    if seek is None or not getattr(stream, "seekable", lambda: True)():
        data, whole = _read_lines(stream, limits)
        front, body, _ = parse_head(data, whole=whole, limits=limits)
        return front, body
    start = stream.tell()  # type: ignore[attr-defined]  # whatever seeks can tell
    offset = 0
    try:
        data, whole = _read_steps(stream, limits)
        front, offset, _ = parse_head(data, whole=whole, limits=limits)
    finally:
        seek(start + offset)
    return front, offset


def _read_steps(stream: BinaryStream, limits: Limits) -> tuple[bytes, bool]:
    head = b""
    while len(head) < limits.max_frontmatter_bytes:
        step = stream.read(min(limits.head_step, limits.max_frontmatter_bytes - len(head)))
        if not step:
            return head, True
        head += step
        if not needs_more_bytes(head, repair=False):
            return head, False
    return head, not stream.read(1)


def _read_lines(stream: BinaryStream, limits: Limits) -> tuple[bytes, bool]:
    """Line by line up to the second fence, or to the first line that is none."""
    head = bytearray()
    opened = False
    readline = getattr(stream, "readline", None) or partial(_read_line, stream)
    while len(head) < limits.max_frontmatter_bytes:
        line = readline(limits.max_frontmatter_bytes - len(head))
        if not line:
            return bytes(head), True
        begins = not head
        head += line
        text = line.removeprefix(BOM) if begins else line
        is_cut = len(head) >= limits.max_frontmatter_bytes and not line.endswith(b"\n")
        is_fence = not is_cut and _FENCE.fullmatch(text) is not None
        if is_cut:
            break
        if (opened and is_fence) or (not opened and text.strip() and not is_fence):
            return bytes(head), True
        opened = opened or is_fence
    return bytes(head), False


def _read_line(stream: BinaryStream, most: int) -> bytes:
    line = bytearray()
    while len(line) < most and not line.endswith(b"\n"):
        byte = stream.read(1)
        if not byte:
            break
        line += byte
    return bytes(line)

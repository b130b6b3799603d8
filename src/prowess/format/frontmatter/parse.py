"""The parser of a SKILL.md's head: from its first bytes to its ``Frontmatter`` and the offset of the body."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from prowess.errors import InvalidFrontmatterError, Issue, NoFrontmatterError, UnterminatedFrontmatterError
from prowess.format.frontmatter.fences import (
    BOM,
    Fences,
    MisplacedFrontmatter,
    decode_frontmatter,
    dedent_text,
    find_fences,
    find_indented_frontmatter,
    has_wrapper,
    may_have_indent,
    may_have_wrapper,
    refuse_other_encodings,
    split_glued_dashes,
    unwrap_frontmatter,
)
from prowess.format.frontmatter.fields import Frontmatter, build_frontmatter
from prowess.format.frontmatter.yaml_events import YamlError, YamlRefusedError, parse_yaml
from prowess.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.format.frontmatter.yaml_events import Value
    from prowess.limits import Limits

_OPENER = re.compile(rb"\s*+---[ \t]*+\r?\n")
_COMMENTED_DESCRIPTION = re.compile(r"^description:[ \t]++(#[^\n]*+)", re.MULTILINE)
_FENCE = re.compile(rb"---[ \t]*+\r?\n?")
_ODD_LINE_BREAKS = re.compile("[\r\x85\u2028\u2029]")


class BinaryStream(Protocol):
    """A stream of bytes with ``read``; ``readline``, ``seek`` and ``tell`` are used where they exist."""

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes."""
        ...


class ParsedHead(NamedTuple):
    """The fields of a head, the offset in bytes at which the body begins, and the issues of what was repaired."""

    front: Frontmatter
    body_offset: int
    issues: tuple[Issue, ...] = ()


# -- bytes in hand -----------------------------------------------------------------------------------------------------


def needs_more_bytes(head: bytes, *, repair: bool) -> bool:
    """Return whether the frontmatter may end behind ``head``, so that more bytes have to be read."""
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
    """Return the parsed head of a file; ``head`` is its first bytes.

    ``whole``: there are no more bytes within the limits.
    Strict by default. ``lenient`` accepts odd line breaks, and ``repair`` repairs what real files get wrong; each
    leaves an issue. Fields are not validated. Raises ``InvalidFrontmatterError`` for a head that cannot be read.
    """
    fences, issues = _find_frontmatter(head, whole=whole, repair=repair, limits=limits)
    text = decode_frontmatter(head, fences)
    if issues and issues[0].code == "repaired-indentation":
        text = dedent_text(text)
    if not text.replace("\n", "").isprintable() and _ODD_LINE_BREAKS.search(text):  # no odd break is printable
        text, issue = _replace_line_breaks(text, fences.line, lenient=lenient)
        issues = (*issues, issue)
    try:
        values, lines = parse_yaml(text, limits)
    except YamlRefusedError as error:
        raise _invalid_error(error, fences.line) from None
    except YamlError as error:
        if not repair:
            raise _invalid_error(error, fences.line) from None
        return _repair_head(head, fences, text, issues, limits=limits, fault=error)
    if repair and values.get("description") == "":
        issues = (*issues, *_restore_description(text, values, fences.line))
    return ParsedHead(_build_fields(head, fences, values, lines), fences.body, issues)


def _build_fields(head: bytes, fences: Fences, values: dict[str, Value], lines: dict[str, int]) -> Frontmatter:
    """Return the fields with the line of the file that each key is on, and the bytes that they were read from."""
    raw = head[fences.start : fences.end]
    return build_frontmatter(values, {key: fences.line + number for key, number in lines.items()}, raw)


def find_body_offset(head: bytes, *, whole: bool, repair: bool, limits: Limits = DEFAULT_LIMITS) -> int:
    """Return the offset in bytes at which the body begins, even where the fields cannot be read.

    Raises ``InvalidFrontmatterError`` when no dashes open and close the frontmatter within the limits.
    """
    try:
        return parse_head(head, whole=whole, lenient=True, repair=repair, limits=limits).body_offset
    except InvalidFrontmatterError:
        # Only the fields may be at fault. Where the dashes are, this raises again.
        return _find_frontmatter(head, whole=whole, repair=repair, limits=limits)[0].body


def read_strict_text(head: bytes, *, whole: bool, limits: Limits = DEFAULT_LIMITS) -> tuple[str, int]:
    """Return the text between the dashes and the number of its first line, without any repair.

    Raises ``InvalidFrontmatterError`` when it cannot be read, and for odd line breaks.
    """
    fences, _ = _find_frontmatter(head, whole=whole, repair=False, limits=limits)
    text = decode_frontmatter(head, fences)
    if _ODD_LINE_BREAKS.search(text):
        _replace_line_breaks(text, fences.line, lenient=False)
    return text, fences.line


def _restore_description(text: str, values: dict[str, Value], line: int) -> Iterator[Issue]:
    """Set the description of ``description: # Title``, a comment to YAML and the description to every reader."""
    match = _COMMENTED_DESCRIPTION.search(text)
    if match:
        values["description"] = match[1].strip()
        number = line + text.count("\n", 0, match.start())
        message = "the text begins with '#', which makes it a comment"
        yield Issue("repaired-leading-character", "description", message, line=number, severity="warning")


def _find_frontmatter(head: bytes, *, whole: bool, repair: bool, limits: Limits) -> tuple[Fences, tuple[Issue, ...]]:
    """Return the fences of the frontmatter, and the issue of a repair if it is in the wrong place."""
    # Indented frontmatter first: dashes further down, such as a rule of the body, would close it too late.
    misplaced = find_indented_frontmatter(head, whole=whole) if repair else None
    if misplaced is None:
        try:
            fences = find_fences(head, whole=whole)
        except (NoFrontmatterError, UnterminatedFrontmatterError) as error:
            misplaced = _repair_location(head, error) if repair else None
            if misplaced is None:
                raise
        else:
            if fences is not None:
                return fences, ()
            misplaced = _find_glued_dashes(head) if repair else None
    if misplaced is None:
        refuse_other_encodings(head)
        message = f"the frontmatter is longer than {limits.max_frontmatter_bytes} bytes"
        raise InvalidFrontmatterError([Issue("frontmatter-too-large", "", message, line=1)])
    return misplaced.fences, (_repair_issue(misplaced),)


def _repair_location(head: bytes, error: InvalidFrontmatterError) -> MisplacedFrontmatter | None:
    if isinstance(error, UnterminatedFrontmatterError):
        return _find_glued_dashes(head)
    return unwrap_frontmatter(head, whole=True) if has_wrapper(head) else None


def _find_glued_dashes(head: bytes) -> MisplacedFrontmatter | None:
    opener = _OPENER.match(head, len(BOM) if head.startswith(BOM) else 0)
    return split_glued_dashes(head, opener.end(), len(head)) if opener else None


def _repair_issue(misplaced: MisplacedFrontmatter) -> Issue:
    return Issue(misplaced.code, "", misplaced.message, line=misplaced.line, severity="warning")


def normalize_raw(raw: bytes) -> str:
    """Return the text of frontmatter that was read before, with LF line ends and spaces for odd line breaks."""
    return _ODD_LINE_BREAKS.sub(" ", raw.decode("utf-8").replace("\r\n", "\n"))


def _replace_line_breaks(text: str, line: int, *, lenient: bool) -> tuple[str, Issue]:
    """Return the text with spaces for odd line breaks, and an issue about the first; strict mode raises it instead.

    Readers disagree about which of these end a line, so that one file could mean different things.
    """
    match = _ODD_LINE_BREAKS.search(text)
    offset = match.start() if match else 0
    message = f"U+{ord(text[offset]):04X} is not a line end here"
    issue = Issue("line-break", "", message, line=line + text.count("\n", 0, offset), severity="warning")
    if not lenient:
        raise InvalidFrontmatterError([replace(issue, severity="error")])
    return _ODD_LINE_BREAKS.sub(" ", text), issue


def _invalid_error(error: YamlError, line: int) -> InvalidFrontmatterError:
    return InvalidFrontmatterError([Issue(error.code, "", error.message, line=line + error.line)])


def _repair_head(
    head: bytes, fences: Fences, text: str, issues: tuple[Issue, ...], *, limits: Limits, fault: YamlError
) -> ParsedHead:
    """Return the head whose YAML failed with ``fault``, with its values repaired; raises that where nothing can be."""
    from prowess.format.frontmatter.repair import repair_yaml

    # Before the values: dashes that are glued to a heading leave the whole body in the frontmatter.
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
        raise _invalid_error(fault, fences.line) from None
    warnings = (Issue(r.code, r.key, r.message, line=fences.line + r.line, severity="warning") for r in repairs)
    return ParsedHead(_build_fields(head, fences, values, lines), fences.body, (*issues, *warnings))


# -- a stream ----------------------------------------------------------------------------------------------------------


def parse_frontmatter(stream: BinaryStream, *, limits: Limits = DEFAULT_LIMITS) -> tuple[Frontmatter, int]:
    """Return the frontmatter at the start of a binary stream, and the byte offset of the body.

    The stream is left exactly at the first byte of the body, and no more than the limits allow is read. Fields are not
    validated. Raises ``NoFrontmatterError``, ``UnterminatedFrontmatterError`` or ``InvalidFrontmatterError``; a
    seekable stream is then back where it was.
    """
    seek = getattr(stream, "seek", None)
    if seek is None or not getattr(stream, "seekable", lambda: True)():
        data, whole = _read_lines(stream, limits)
        front, body, _ = parse_head(data, whole=whole, limits=limits)
        return front, body
    start = stream.tell()  # type: ignore[attr-defined]  # a stream that can seek has tell
    offset = 0
    try:
        data, whole = _read_steps(stream, limits)
        front, offset, _ = parse_head(data, whole=whole, limits=limits)
    finally:
        seek(start + offset)
    return front, offset


def _read_steps(stream: BinaryStream, limits: Limits) -> tuple[bytes, bool]:
    """Return the first bytes, as many as the frontmatter needs, and whether that is the whole stream."""
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
    """Return the lines up to the second fence, or to a first line that is not a fence, and whether these are enough."""
    # A stream that cannot seek cannot give bytes back, so nothing behind the closing line may be read.
    head = bytearray()
    is_open = False
    readline = getattr(stream, "readline", None) or partial(_read_line, stream)
    while len(head) < limits.max_frontmatter_bytes:
        line = readline(limits.max_frontmatter_bytes - len(head))
        if not line:
            return bytes(head), True
        text = line if head else line.removeprefix(BOM)
        head += line
        if len(head) >= limits.max_frontmatter_bytes and not line.endswith(b"\n"):  # the limit cut the line
            break
        is_fence = _FENCE.fullmatch(text) is not None
        if (is_open and is_fence) or (not is_open and text.strip() and not is_fence):
            return bytes(head), True
        is_open = is_open or is_fence
    return bytes(head), False


def _read_line(stream: BinaryStream, limit: int) -> bytes:
    line = bytearray()
    while len(line) < limit and not line.endswith(b"\n"):
        byte = stream.read(1)
        if not byte:
            break
        line += byte
    return bytes(line)

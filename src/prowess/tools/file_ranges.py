"""Reads files of skills for a model: text whole or in ranges of lines, anything else as data for the host."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

from prowess.errors import BinaryResourceError, ResourceTooLargeError
from prowess.text.hidden_characters import to_one_line
from prowess.text.markup import neutralize_tags
from prowess.tools.definitions import PDF_TYPE, ToolResult

if TYPE_CHECKING:
    from prowess.skills.skill import Skill

DEFAULT_LINES = 2_000
"""How many lines a call reads that does not say."""
_PDF_END_LENGTH = 1_024
"""A PDF document has its end mark within this many characters of its end; strict readers refuse others."""
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", PDF_TYPE),
)


def read_file_range(
    skill: Skill, name: str, path: str, offset: int, limit: int, *, max_bytes: int | None, default_bytes: int
) -> ToolResult:
    """Return the text of a file, or ``limit`` lines of it from ``offset``; a binary file is returned as data.

    ``name`` is what the caller calls the skill. ``max_bytes`` is the most that is read, where the host says so;
    ``default_bytes`` holds for text otherwise.
    """
    try:
        whole = skill.read_resource(path, skill.limits.max_file_bytes)
    except BinaryResourceError:
        return _read_binary(skill, path, max_bytes)
    if _is_pdf_text(whole):  # a small PDF can be pure ASCII, and is of no use to a model as text
        return _read_binary(skill, path, max_bytes)
    shown, count, total = take_lines(whole, path, offset, limit, default_bytes if max_bytes is None else max_bytes)
    data = {"skill": name, "path": path, "offset": offset, "lines": count, "total_lines": total}
    return ToolResult(skill.label_text(shown), data=data)


def take_lines(whole: str, path: str, offset: int, limit: int, max_bytes: int) -> tuple[str, int, int]:
    """Return the lines of a file from an offset, as many as fit, how many they are, and how many the file has.

    A note at the end of the lines says where to go on. Raises ``ResourceTooLargeError`` when already the first line has
    more than ``max_bytes``.
    """
    # Not splitlines(), which also splits at form feeds and other characters that editors do not count as line ends.
    lines = io.StringIO(whole, newline="\n").readlines()
    left = max_bytes
    taken: list[str] = []
    for line in lines[offset : offset + limit]:
        left -= len(line.encode())
        if left < 0:
            break
        taken.append(line)
    if not taken and offset < len(lines):
        size = len(lines[offset].encode())
        raise ResourceTooLargeError(f"line {offset} of {path!r} has {size} bytes; at most {max_bytes} are read", path)
    following = offset + len(taken)
    shown = "".join(taken)
    if following < len(lines):
        shown += f"\n[lines {offset}-{following - 1} of {len(lines)}; go on with offset={following}]"
    return shown, len(taken), len(lines)


def _read_binary(skill: Skill, path: str, max_bytes: int | None) -> ToolResult:
    content = skill.read_bytes(path, max_bytes)
    media_type = detect_media_type(content)
    kind = f", {media_type}" if media_type else ""
    # The picture itself is beside this string where the client of the model shows pictures.
    what = "an image" if media_type.startswith("image/") else "a document" if media_type else "not text"
    end = "" if media_type else "; the host has it as data"
    message = neutralize_tags(f"{to_one_line(path)} is {what} ({len(content)} bytes{kind}){end}.")
    data = {"skill": skill.name, "path": path, "type": "binary", "size": len(content)}
    visible = {"media_type": media_type} if media_type else {}
    encoded = base64.b64encode(content).decode("ascii")
    return ToolResult(skill.label_text(message), data={**data, **visible, "base64": encoded})


def detect_media_type(content: bytes) -> str:
    """Return the media type of a file that models can see, ``""`` for any other file.

    Only the first bytes count and never the name: a provider refuses a call with a block of the wrong type.
    """
    # WebP has its mark behind the length of the file, so no fixed beginning distinguishes it from other RIFF files.
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for signature, kind in _SIGNATURES if content.startswith(signature)), "")


def _is_pdf_text(text: str) -> bool:
    """Return whether a string is a whole PDF document that happens to consist of characters only.

    The end is checked too: a string about the format may begin like one, and providers refuse a broken document.
    """
    return text.startswith("%PDF-") and "%%EOF" in text[-_PDF_END_LENGTH:]

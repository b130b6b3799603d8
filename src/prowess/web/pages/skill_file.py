"""The page of one file of a skill, and the bytes of an image: shown, never run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from prowess.errors import BinaryResourceError, ResourceNotFoundError
from prowess.skills.inventory import list_scripts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.skills.skill import Skill
    from prowess.web.library import Library
    from prowess.web.skill_rows import SkillRow

_IMAGE_STARTS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_WEBP = b"WEBP"
_WEBP_AT = 8


@dataclass(frozen=True, slots=True)
class FileView:
    """What the page of a file shows: its text, or that it is an image, or that it is neither."""

    id: str
    name: str
    path: str
    size: int
    text: str | None = None
    is_image: bool = False
    is_cut: bool = False
    would_run: bool = False


def make_file_view(library: Library, parameters: Mapping[str, str]) -> FileView:
    """Return what the page shows for the id and the ``path`` in its address.

    Raises ``UnknownSkillError`` for an id that no skill has, and ``ResourceError`` for a file that it does not have.
    """
    row, skill = _find_local_skill(library, parameters)
    path = parameters.get("path", "")
    data = skill.read_bytes(path)
    view = FileView(row.id, row.name, path, len(data), would_run=bool(list_scripts([path])))
    if find_image_type(data):
        return replace(view, is_image=True)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return view
    most = library.limits.max_page_chars
    return view if "\0" in text else replace(view, text=text[:most], is_cut=len(text) > most)


def read_image(library: Library, parameters: Mapping[str, str]) -> tuple[bytes, str]:
    """Return the bytes of an image of a skill, and its type by what it begins with, whatever its name says.

    Raises ``BinaryResourceError`` for anything but a PNG, JPEG, GIF or WebP: an SVG can hold scripts, and is shown as
    text.
    """
    _, skill = _find_local_skill(library, parameters)
    path = parameters.get("path", "")
    data = skill.read_bytes(path)
    kind = find_image_type(data)
    if not kind:
        raise BinaryResourceError(f"{path!r} is no PNG, JPEG, GIF or WebP", path)
    return data, kind


def find_image_type(data: bytes) -> str:
    """Return the media type of a PNG, JPEG, GIF or WebP; ``""`` for anything else."""
    if data.startswith(b"RIFF") and data[_WEBP_AT : _WEBP_AT + len(_WEBP)] == _WEBP:
        return "image/webp"
    return next((kind for start, kind in _IMAGE_STARTS if data.startswith(start)), "")


def _find_local_skill(library: Library, parameters: Mapping[str, str]) -> tuple[SkillRow, Skill]:
    state = library.state
    row = state.find_row(parameters["id"])
    skill = state.read_skill(row)
    if skill is None or not skill.is_local:
        # Files of a server or a site are not fetched for somebody who only looks.
        raise ResourceNotFoundError(f"{row.name!r} has no files on this machine", parameters.get("path", ""))
    return row, skill

"""Names that are safe as one part of a path on every platform: pure text, below every layer that joins paths."""

from __future__ import annotations

import re

from prowess.errors import PathTraversalError

MAX_PATH_CHARS = 4096
DEVICES = frozenset(
    ("con", "prn", "aux", "nul", *(f"com{n}" for n in range(10)), *(f"lpt{n}" for n in range(10))),
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def is_device_name(name: str) -> bool:
    """Whether Windows takes ``name`` for a device, with or without an extension."""
    return name.partition(".")[0].strip().lower() in DEVICES


def relative_parts(path: str) -> tuple[str, ...]:
    """The folders and the file that ``path`` names below a skill's folder; ``.`` and empty parts are dropped.

    Raises ``PathTraversalError`` for whatever leaves the folder, or could on some platform: ``..``, absolute paths,
    backslashes, drive letters and streams (a colon), ``~``, control characters, device names, and parts that end in
    a dot or a blank.
    """
    if not path or len(path) > MAX_PATH_CHARS:
        raise _refused(path, "is empty" if not path else f"is longer than {MAX_PATH_CHARS} characters")
    if not _is_utf8(path):
        raise _refused(path, "holds half a character")
    if _CONTROL.search(path):
        raise _refused(path, "holds a control character")
    if path[0] in "/~":
        raise _refused(path, "is not relative to the skill's folder")
    if "\\" in path or ":" in path:
        raise _refused(path, "holds a backslash or a colon")
    parts = tuple(part for part in path.split("/") if part not in {"", "."})
    for part in parts:
        if part == "..":
            raise _refused(path, "holds '..'")
        if part[-1] in ". " or is_device_name(part):
            raise _refused(path, f"holds {part!r}, which is not a file name on every platform")
    if not parts:
        raise _refused(path, "names the folder itself")
    return parts


def _is_utf8(path: str) -> bool:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _refused(path: str, why: str) -> PathTraversalError:
    return PathTraversalError(f"resource path {path[:200]!r} {why}", code="path-escape")

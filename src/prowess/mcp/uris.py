"""The addresses of skills and of their files: ``skill://path/of/the/skill/file``, each part encoded once."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes

from prowess.errors import PathTraversalError
from prowess.names import resource_parts

SCHEME = "skill://"
SKILL_MD = "SKILL.md"
TEMPLATE = "skill://{+skill}/{+file}"

_HALF_ENCODED = re.compile(r"%(?![0-9A-Fa-f]{2})")
_OUTWARD = frozenset(("", ".", ".."))


def uri_of(path: str, file: str = "") -> str:
    """The address of a skill's folder, or of a file in it."""
    whole = f"{path}/{file}" if file else path
    return SCHEME + "/".join(quote(part, safe="") for part in whole.split("/"))


def parts_of(uri: str) -> tuple[str, ...]:
    """The folders and the file that an address names, decoded exactly once.

    Raises ``PathTraversalError`` for whatever is no address of ours, or could lead out of a folder.
    """
    if not uri.startswith(SCHEME):
        raise _refused(uri, f"does not begin with {SCHEME}")
    rest = uri[len(SCHEME) :]
    if "?" in rest or "#" in rest or _HALF_ENCODED.search(rest):
        raise _refused(uri, "is not a plain path")
    parts = tuple(_decoded(part, uri) for part in rest.split("/"))
    if any(part in _OUTWARD or "/" in part for part in parts):
        raise _refused(uri, "holds an empty part, '.', '..' or an encoded '/'")
    return resource_parts("/".join(parts))


def _decoded(part: str, uri: str) -> str:
    try:
        return unquote_to_bytes(part).decode("utf-8")
    except UnicodeError:
        raise _refused(uri, "is not UTF-8") from None


def _refused(uri: str, why: str) -> PathTraversalError:
    return PathTraversalError(f"address {uri[:200]!r} {why}", code="bad-path")

"""The URIs of skills and of their files: ``skill://path/of/the/skill/file``, with each part encoded once."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes

from prowess.errors import PathTraversalError
from prowess.names import split_resource_path

SCHEME = "skill://"
URI_TEMPLATE = "skill://{+skill}/{+file}"

# A "%" without two digits is refused, since decoders disagree about it: some keep it, some fail.
_HALF_ENCODED = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNSAFE_PARTS = frozenset(("", ".", ".."))


def make_uri(path: str, file: str = "") -> str:
    """Return the address of a skill's folder, or of a file in it."""
    whole = f"{path}/{file}" if file else path
    return SCHEME + "/".join(quote(part, safe="") for part in whole.split("/"))


def split_uri(uri: str) -> tuple[str, ...]:
    """Return the decoded parts of an address: the folders, and the file at the end.

    Raises ``PathTraversalError`` for an address that is not ours, or that could lead out of a folder.
    """
    if not uri.startswith(SCHEME):
        raise _make_uri_error(uri, f"does not begin with {SCHEME}")
    rest = uri[len(SCHEME) :]
    if "?" in rest or "#" in rest or _HALF_ENCODED.search(rest):
        raise _make_uri_error(uri, "is not a plain path")
    # Split first, then decode, and only once: an encoded "/" or ".." must not become a separator or a way up.
    parts = tuple(_decode_part(part, uri) for part in rest.split("/"))
    if any(part in _UNSAFE_PARTS or "/" in part for part in parts):
        raise _make_uri_error(uri, "holds an empty part, '.', '..' or an encoded '/'")
    return split_resource_path("/".join(parts))


def _decode_part(part: str, uri: str) -> str:
    try:
        return unquote_to_bytes(part).decode("utf-8")
    except UnicodeError:
        raise _make_uri_error(uri, "is not UTF-8") from None


def _make_uri_error(uri: str, why: str) -> PathTraversalError:
    return PathTraversalError(f"address {uri[:200]!r} {why}", code="bad-path")

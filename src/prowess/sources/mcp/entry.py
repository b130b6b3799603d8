"""Parses the entry with which an MCP server announces one skill, and checks every part of it.

An entry with anything wrong in it is not used at all. A digest that fits proves only that a file is the announced one,
not that it deserves trust: the server made both.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote_to_bytes

from prowess.errors import FetchError, PathTraversalError
from prowess.format.frontmatter.fields import build_frontmatter
from prowess.format.rules import is_spec_name
from prowess.limits import MAX_DESCRIPTION_LENGTH
from prowess.names import SKILL_FILE, split_relative_path
from prowess.text.hidden_characters import to_one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.format.frontmatter.fields import Frontmatter
    from prowess.format.frontmatter.json_types import Json
    from prowess.format.frontmatter.yaml_events import Value
    from prowess.limits import Limits

_META = "_meta"
"""A key that the base protocol allows on every object. We use nothing of it."""
_ENTRY_KEYS = frozenset(("uri", "frontmatter", "resources"))
_FILE_KEYS = frozenset(("uri", "digest", "size"))
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,31}://")
# A "%" without two digits: decoders disagree on what it means.
_HALF_ENCODED = re.compile(r"%(?![0-9A-Fa-f]{2})")
_MAX_URI_LENGTH = 2_048
_MAX_INTEGER_BITS = 128  # Python needs quadratic time to write a large number as text
_UNSAFE_PARTS = frozenset(("", ".", ".."))


class McpFile(NamedTuple):
    """A file of a skill: its address on the server, its SHA-256 (hex) and its size."""

    uri: str
    digest: str
    size: int


class McpEntry(NamedTuple):
    """A skill of a server: the address of its SKILL.md, the fields of its frontmatter, and its files by path."""

    uri: str
    fields: dict[str, Json]
    files: dict[str, McpFile]

    @property
    def name(self) -> str:
        return str(self.fields["name"])

    @property
    def state(self) -> str:
        """A hash over the address and digest of each file. It changes when any file changes."""
        lines = sorted(f"{file.uri}\0{file.digest}\n" for file in self.files.values())
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def to_frontmatter(self) -> Frontmatter:
        """Return the fields as frontmatter, with each value as text, as our YAML reader would give it."""
        return build_frontmatter({key: _to_text(value) for key, value in self.fields.items()})


def _to_text(value: Json) -> Value:
    if isinstance(value, dict):
        return {key: _to_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_to_text(item) for item in value]
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value).lower()
    return str(value)


def parse_entry(raw: object, limits: Limits) -> McpEntry:
    """Return the entry that a server sent; raises ``FetchError`` when anything in it is wrong."""
    try:
        return _build_entry(raw, limits)
    # A server may send any JSON, so whatever it makes the code below raise is a bad entry.
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError):
        raise _make_entry_error("an entry that cannot be read") from None


def _build_entry(raw: object, limits: Limits) -> McpEntry:
    entry = _parse_object(raw, _ENTRY_KEYS, "an entry")
    uri = parse_uri(entry["uri"])
    fields = _parse_fields(entry["frontmatter"], uri, limits)
    resources = entry["resources"]
    if resources == "dynamic":  # such files have no digest that they could be checked against
        raise FetchError(f"{uri}: its files are generated when they are read", uri, "dynamic-skill")
    if not isinstance(resources, list):
        raise _make_entry_error(f"{uri}: 'resources' must be a list or 'dynamic'", uri)
    return McpEntry(uri, fields, _parse_files(resources, uri, limits))


def _parse_object(raw: object, keys: frozenset[str], what: str, uri: str = "") -> dict[str, Json]:
    """Return a JSON object that has these keys and no others, except ``_meta``; raises ``FetchError`` otherwise."""
    mapping = _parse_mapping(raw, what, uri)
    if mapping.keys() - {_META} != keys:
        names = ", ".join(sorted(keys))
        raise _make_entry_error(f"{uri + ': ' if uri else ''}{what} must have {names}, and nothing else", uri)
    return mapping


def _parse_mapping(raw: object, what: str, uri: str = "") -> dict[str, Json]:
    if not isinstance(raw, dict) or not all(isinstance(key, str) for key in raw):
        raise _make_entry_error(f"{uri or what}: {what} must be an object", uri)
    return raw


def parse_uri(raw: object) -> str:
    """Return the address of a skill; raises ``FetchError`` when the value cannot be one."""
    if not isinstance(raw, str) or len(raw) > _MAX_URI_LENGTH or not raw.isprintable():
        raise _make_entry_error("'uri' must be a short string on one line")
    parts = _split_uri(raw)
    if len(parts) < 2 or parts[-1] != SKILL_FILE:  # noqa: PLR2004 - a folder and the file
        raise _make_entry_error(f"{raw} does not name a skill's {SKILL_FILE}", raw)
    return raw


def _split_uri(uri: str) -> tuple[str, ...]:
    """Return the folders and the file of an address, decoded once; raises ``FetchError`` for an unsafe one.

    The first part would be the host of a web address. Nothing is ever looked up under it.
    """
    scheme = _SCHEME.match(uri)
    if scheme is None or "?" in uri or "#" in uri or "\\" in uri or _HALF_ENCODED.search(uri):
        raise _make_entry_error(f"{uri[:200]} is not a plain address", uri[:200])
    try:
        parts = tuple(unquote_to_bytes(part).decode() for part in uri[scheme.end() :].split("/"))
    except UnicodeError:
        raise _make_entry_error(f"{uri[:200]} is not UTF-8", uri[:200]) from None
    if any(part in _UNSAFE_PARTS or "/" in part or "\\" in part for part in parts):
        raise _make_entry_error(f"{uri[:200]} holds '..' or the like", uri[:200])
    return parts


def _parse_fields(raw: object, uri: str, limits: Limits) -> dict[str, Json]:
    fields = _parse_mapping(raw, "frontmatter", uri)
    _SizeCheck(uri, limits).add(fields)
    name, description = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or not is_spec_name(name):
        raise _make_entry_error(f"{uri}: 'name' breaks the rules of the specification", uri)
    # The specification wants a skill to be named like its folder.
    if name != _split_uri(uri)[-2]:
        raise _make_entry_error(f"{uri}: the folder is not named {name!r}", uri)
    if not isinstance(description, str) or not description.strip() or len(description) > MAX_DESCRIPTION_LENGTH:
        raise _make_entry_error(f"{uri}: 'description' breaks the rules of the specification", uri)
    return fields


class _SizeCheck:
    """Refuses a frontmatter that is larger than one in a file may be."""

    def __init__(self, uri: str, limits: Limits) -> None:
        self._uri = uri
        self._bytes = limits.max_frontmatter_bytes
        self._values = limits.max_yaml_events
        self._depth = limits.max_yaml_depth

    def add(self, value: Json, depth: int = 0) -> None:
        """Count a value and everything in it; raises ``FetchError`` when it is too much."""
        self._values -= 1
        if isinstance(value, str):
            self._bytes -= len(value.encode())
        elif isinstance(value, int) and value.bit_length() > _MAX_INTEGER_BITS:
            self._bytes = -1
        if self._values < 0 or self._bytes < 0 or depth > self._depth:
            raise _make_entry_error(f"{self._uri}: the frontmatter holds too much", self._uri)
        if isinstance(value, dict):
            for key, item in value.items():
                self.add(key, depth)
                self.add(item, depth + 1)
        elif isinstance(value, list):
            for item in value:
                self.add(item, depth + 1)


def _parse_files(resources: list[Json], uri: str, limits: Limits) -> dict[str, McpFile]:
    # The announced numbers are checked before anything is read: the server decides how much we would fetch.
    if len(resources) > limits.max_served_files:
        message = f"{uri}: {len(resources)} files; at most {limits.max_served_files} (Limits.max_served_files) are used"
        raise FetchError(message, uri, "too-many-files")
    base = uri.removesuffix(SKILL_FILE)
    files: dict[str, McpFile] = {}
    for raw in resources:
        path, file = _parse_file(_parse_object(raw, _FILE_KEYS, "a resource", uri), base, uri, limits)
        if path in files:
            raise _make_entry_error(f"{uri}: {path} is listed twice", uri)
        files[path] = file
    if sum(file.size for file in files.values()) > limits.max_served_bytes:
        raise _make_size_error(uri, limits)
    if files.get(SKILL_FILE, McpFile("", "", 0)).uri != uri:
        raise _make_entry_error(f"{uri}: its own {SKILL_FILE} is not listed", uri)
    return files


def _parse_file(raw: Mapping[str, Json], base: str, uri: str, limits: Limits) -> tuple[str, McpFile]:
    """Return the path of a file within its skill, and the file; ``base`` is the address of the skill's folder."""
    file_uri, digest, size = raw["uri"], raw["digest"], raw["size"]
    match = _DIGEST.fullmatch(digest) if isinstance(digest, str) else None
    if match is None:
        raise FetchError(f"{uri}: a digest must be 'sha256:' and 64 hexadecimal digits", uri, "bad-digest")
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:  # a bool is an int for Python
        raise _make_entry_error(f"{uri}: a size must be a whole number", uri)
    if size > limits.max_served_bytes:
        raise _make_size_error(uri, limits)
    if not isinstance(file_uri, str) or len(file_uri) > _MAX_URI_LENGTH or not file_uri.startswith(base):
        raise _make_entry_error(f"{uri}: a file is outside the skill", uri)
    # Both addresses are split, so that an encoded "/" or ".." after the common text is found.
    path = "/".join(_split_uri(file_uri)[len(_split_uri(uri)) - 1 :])
    try:
        split_relative_path(path)
    except PathTraversalError as error:
        code = error.code if error.code == "git-in-skill" else "bad-entry"
        raise _make_entry_error(f"{uri}: {error.message}", uri, code) from None
    return path, McpFile(file_uri, match[1], size)


def _make_size_error(uri: str, limits: Limits) -> FetchError:
    message = f"{uri}: more than {limits.max_served_bytes} bytes (Limits.max_served_bytes), which are not used"
    return FetchError(message, uri, "too-many-bytes")


def _make_entry_error(message: str, uri: str = "", code: str = "bad-entry") -> FetchError:
    return FetchError(to_one_line(message)[:400], to_one_line(uri), code)

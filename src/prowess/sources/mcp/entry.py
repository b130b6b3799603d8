"""One skill as an MCP server announces it: checked in every part before anything of it is believed.

Whatever does not fit makes the entry one that is not used, with the reason. A digest that fits is no reason to trust.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote_to_bytes

from prowess.errors import FetchError, PathTraversalError
from prowess.limits import MAX_DESCRIPTION_LENGTH
from prowess.names import SKILL_FILE, split_relative_path
from prowess.spec.frontmatter.fields import build_frontmatter
from prowess.spec.hidden_characters import to_one_line
from prowess.spec.rules import is_spec_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.limits import Limits
    from prowess.model import Value
    from prowess.spec.frontmatter.fields import Frontmatter
    from prowess.spec.frontmatter.json_types import Json

_META = "_meta"
"""What the base protocol allows on every object; nothing of it is used."""
_ENTRY_KEYS = frozenset(("uri", "frontmatter", "resources"))
_FILE_KEYS = frozenset(("uri", "digest", "size"))
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,31}://")
_HALF_ENCODED = re.compile(r"%(?![0-9A-Fa-f]{2})")
_MAX_URI_LENGTH = 2_048
_MAX_INTEGER_BITS = 128
_UNSAFE_PARTS = frozenset(("", ".", ".."))


class McpFile(NamedTuple):
    """A file of a skill: where the server has it, its SHA-256 (hex) and its size."""

    uri: str
    digest: str
    size: int


class McpEntry(NamedTuple):
    """A skill of a server: the address of its SKILL.md, its frontmatter, and every file by its path."""

    uri: str
    fields: dict[str, Json]
    files: dict[str, McpFile]

    @property
    def name(self) -> str:
        return str(self.fields["name"])

    @property
    def state(self) -> str:
        """What differs once any file does: over the pairs of address and digest."""
        rows = sorted(f"{file.uri}\0{file.digest}\n" for file in self.files.values())
        return hashlib.sha256("".join(rows).encode()).hexdigest()

    def to_frontmatter(self) -> Frontmatter:
        """The fields, each value as text."""
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
    """The entry that a server sent; raises ``FetchError`` for one that is not used, whatever is wrong with it."""
    try:
        return _build_entry(raw, limits)
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError):
        raise _make_entry_error("an entry that cannot be read") from None


def _build_entry(raw: object, limits: Limits) -> McpEntry:
    found = _parse_object(raw, _ENTRY_KEYS, "an entry")
    uri = parse_uri(found["uri"])
    fields = _parse_fields(found["frontmatter"], uri, limits)
    resources = found["resources"]
    if resources == "dynamic":
        raise FetchError(f"{uri}: its files are made up as they are read", uri, "dynamic-skill")
    if not isinstance(resources, list):
        raise _make_entry_error(f"{uri}: 'resources' is a list, or 'dynamic'", uri)
    return McpEntry(uri, fields, _parse_files(resources, uri, limits))


def _parse_object(raw: object, keys: frozenset[str], what: str, uri: str = "") -> dict[str, Json]:
    """An object with these keys and no other, but for what the base protocol allows everywhere."""
    found = _parse_mapping(raw, what, uri)
    if found.keys() - {_META} != keys:
        names = ", ".join(sorted(keys))
        raise _make_entry_error(f"{uri + ': ' if uri else ''}{what} has {names}, and nothing else", uri)
    return found


def _parse_mapping(raw: object, what: str, uri: str = "") -> dict[str, Json]:
    if not isinstance(raw, dict) or not all(isinstance(key, str) for key in raw):
        raise _make_entry_error(f"{uri or what}: {what} is an object", uri)
    return raw


def parse_uri(raw: object) -> str:
    """The address of a skill; raises ``FetchError`` for what cannot be one."""
    if not isinstance(raw, str) or len(raw) > _MAX_URI_LENGTH or not raw.isprintable():
        raise _make_entry_error("'uri' is a short line of text")
    parts = _split_uri(raw)
    if len(parts) < 2 or parts[-1] != SKILL_FILE:  # noqa: PLR2004 - a folder and the file
        raise _make_entry_error(f"{raw} does not name a skill's {SKILL_FILE}", raw)
    return raw


def _split_uri(uri: str) -> tuple[str, ...]:
    """The folders and the file, decoded once; nothing is ever looked up under the first of them."""
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
    name, about = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or not is_spec_name(name):
        raise _make_entry_error(f"{uri}: 'name' is against the rules", uri)
    if name != _split_uri(uri)[-2]:
        raise _make_entry_error(f"{uri}: the folder is not named {name!r}", uri)
    if not isinstance(about, str) or not about.strip() or len(about) > MAX_DESCRIPTION_LENGTH:
        raise _make_entry_error(f"{uri}: 'description' is against the rules", uri)
    return fields


class _SizeCheck:
    """A frontmatter that fits no file that would be read is not used."""

    def __init__(self, uri: str, limits: Limits) -> None:
        self._uri = uri
        self._bytes = limits.max_frontmatter_bytes
        self._values = limits.max_yaml_events
        self._depth = limits.max_yaml_depth

    def add(self, value: Json, depth: int = 0) -> None:
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
    where, digest, size = raw["uri"], raw["digest"], raw["size"]
    found = _DIGEST.fullmatch(digest) if isinstance(digest, str) else None
    if found is None:
        raise FetchError(f"{uri}: a digest is 'sha256:' and 64 hexadecimal digits", uri, "bad-digest")
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise _make_entry_error(f"{uri}: a size is a whole number", uri)
    if size > limits.max_served_bytes:
        raise _make_size_error(uri, limits)
    if not isinstance(where, str) or len(where) > _MAX_URI_LENGTH or not where.startswith(base):
        raise _make_entry_error(f"{uri}: a file lies outside the skill", uri)
    path = "/".join(_split_uri(where)[len(_split_uri(uri)) - 1 :])
    try:
        split_relative_path(path)
    except PathTraversalError as error:
        code = error.code if error.code == "git-in-skill" else "bad-entry"
        raise _make_entry_error(f"{uri}: {error.message}", uri, code) from None
    return path, McpFile(where, found[1], size)


def _make_size_error(uri: str, limits: Limits) -> FetchError:
    message = f"{uri}: more than {limits.max_served_bytes} bytes (Limits.max_served_bytes), which are not used"
    return FetchError(message, uri, "too-many-bytes")


def _make_entry_error(message: str, uri: str = "", code: str = "bad-entry") -> FetchError:
    return FetchError(to_one_line(message)[:400], to_one_line(uri), code)

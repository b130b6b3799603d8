"""Reads the index of a site that publishes skills, in two formats; a bad entry never hides a good one.

=======  ==========================================  =========================================================
version  where                                       an entry has
=======  ==========================================  =========================================================
0.2.0    ``/.well-known/agent-skills/index.json``    name, type (``skill-md``, ``archive``), description, url, digest
0.1.0    ``/.well-known/skills/index.json``          name, description, files
=======  ==========================================  =========================================================

The field ``$schema`` has the version: without it, an index is of 0.1.0, and one with an unknown schema is not read.
Unknown fields are ignored, and entries of an unknown type are left out.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urljoin

from prowess.errors import FetchError, Issue, PathTraversalError, PolicyError
from prowess.format.frontmatter.fields import Frontmatter
from prowess.format.rules import field_issues, is_usable_name
from prowess.names import SKILL_FILE, fold_path, split_relative_path
from prowess.text.redaction import hide_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prowess.errors import Severity
    from prowess.limits import Limits

    Row = dict[str, Any]

INDEX_PATHS = ("/.well-known/agent-skills/index.json", "/.well-known/skills/index.json")
_SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_TYPES = ("skill-md", "archive")
_PINNED_KEYS = frozenset(("type", "url", "digest"))
"""Fields that only entries of version 0.2.0 have."""
# In a URL these begin an escape, a query or a fragment; in a folder they are letters of a name.
_URL_CHARACTERS = re.compile(r"[%?#]")
_MAX_BRACKETS = 8  # for each entry, those in its strings included: bounds what parsing makes before entries are counted
_MAX_SHOWN_CHARS = 80


class SiteEntry(NamedTuple):
    """A skill that an index announces: pinned by a digest, or a list of files."""

    front: Frontmatter
    url: str
    """The URL of the SKILL.md or the archive; with ``files``, that of the folder that holds them, ending in ``/``."""
    digest: str = ""
    size: int | None = None
    is_archive: bool = False
    files: tuple[str, ...] = ()
    issues: tuple[Issue, ...] = ()

    @property
    def location(self) -> str:
        """The URL of its SKILL.md or archive, for messages: without a query, which may be a signature."""
        return f"{self.url}{SKILL_FILE}" if self.files else hide_secrets(self.url)


class SiteIndex(NamedTuple):
    """The entries of an index that can be used, and why the others cannot."""

    entries: tuple[SiteEntry, ...]
    issues: tuple[Issue, ...]
    is_published: bool = False
    """Whether the site says that it has a root, which ``prowess publish`` wrote."""


class _SiteEntryError(ValueError):
    """Why one entry is left out; it becomes an issue."""

    def __init__(self, code: str, field: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.field = field


def read_index(body: bytes, url: str, limits: Limits, check: Callable[[str], object]) -> SiteIndex:
    """Return what an index announces. ``check`` raises ``FetchError`` for URLs that may not be asked.

    Raises ``FetchError`` when the bytes are not an index, or one of an unknown version.
    """
    data = _parse_object(body, url, limits)
    rows, is_newer = _find_rows(data, url, limits)
    index = _read_rows(rows, url, limits, _read_newer_entry if is_newer else _read_older_entry, check)
    return index._replace(is_published=data.get("site") == "../../")


def list_states(body: bytes, limits: Limits) -> tuple[str, ...] | None:
    """Return a string for each skill of an index that changes with the skill; ``None`` when the bytes are not an index.

    An index has neither a number nor a date, so only its entries show that it is older.
    """
    try:
        rows, _ = _find_rows(_parse_object(body, "", limits), "", limits)
    except FetchError:
        return None
    entries = (row for row in rows if isinstance(row, dict))
    return tuple(f"{row.get('name')} {row['digest']}" for row in entries if isinstance(row.get("digest"), str))


def _find_rows(data: Row, url: str, limits: Limits) -> tuple[list[Any], bool]:
    """Return the entries of an index as JSON, and whether the index is of version 0.2.0."""
    is_newer = "$schema" in data
    if is_newer and data["$schema"] != _SCHEMA:
        raise FetchError(
            f"the index is of an unknown version, {ascii(data['$schema'])[:_MAX_SHOWN_CHARS]}", url, "unknown-schema"
        )
    rows = data.get("skills")
    if not isinstance(rows, list):
        raise FetchError("the index has no list of skills", url, "bad-index")
    if len(rows) > limits.max_index_entries:
        raise _make_count_error(url, limits)
    return rows, is_newer


def _read_rows(
    rows: list[Any],
    url: str,
    limits: Limits,
    reader: Callable[[Row, str, Limits], SiteEntry],
    check: Callable[[str], object],
) -> SiteIndex:
    entries: list[SiteEntry] = []
    issues: list[Issue] = []
    for number, row in enumerate(rows):
        try:
            entry = reader(_check_row(row), url, limits)
            check(entry.url)  # now, so that a refused address is an issue of the listing and not of a later read
            entries.append(entry)
        except _SiteEntryError as error:
            # A later version of the format may have more types, which is not the fault of the site.
            severity: Severity = "warning" if error.code == "unknown-type" else "error"
            issues.append(Issue(error.code, error.field, f"{_describe_row(row, number)} {error}", url, 0, severity))
        except (FetchError, PolicyError) as error:
            issues.append(Issue(error.code, "url", f"{_describe_row(row, number)} is left out: {error.message}", url))
    shared = _find_shared_digests(entries)
    issues += (
        Issue("shared-digest", "digest", f"{entry.front.name!r} has the digest of another skill", url)
        for entry in entries
        if entry.digest in shared
    )
    return SiteIndex(tuple(entry for entry in entries if entry.digest not in shared), tuple(issues))


def _find_shared_digests(entries: list[SiteEntry]) -> set[str]:
    """Return the digests that occur under more than one name: nobody knows which skill their bytes belong to."""
    names: dict[str, set[str]] = {}
    for entry in entries:
        if entry.digest:
            names.setdefault(entry.digest, set()).add(entry.front.name)
    return {digest for digest, users in names.items() if len(users) > 1}


# -- JSON --------------------------------------------------------------------------------------------------------------


def _parse_object(body: bytes, url: str, limits: Limits) -> Row:
    # Counted before parsing: a few bytes of brackets become many objects in memory.
    if body.count(b"[") + body.count(b"{") > _MAX_BRACKETS * limits.max_index_entries:
        raise _make_count_error(url, limits)
    try:
        text = body.decode("utf-8-sig")  # some editors write a byte order mark
        data = json.loads(text, object_pairs_hook=_refuse_repeated_keys, parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise FetchError("the index is not UTF-8", url, "bad-index") from None
    except RecursionError:
        raise FetchError("the index is nested too deeply", url, "bad-index") from None
    except ValueError as error:
        raise FetchError(f"the index is not JSON: {str(error)[:_MAX_SHOWN_CHARS]}", url, "bad-index") from None
    if not isinstance(data, dict):
        raise FetchError("the index is not a JSON object", url, "bad-index")
    return data


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> Row:
    # Readers disagree on which of two values counts.
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a key occurs twice in one object")
    return values


def _refuse_constant(name: str) -> None:
    # Python reads NaN and Infinity, which are not JSON.
    raise ValueError(f"{name} is not JSON")


def _make_count_error(url: str, limits: Limits) -> FetchError:
    return FetchError(
        f"the index has more than max_index_entries ({limits.max_index_entries}) entries", url, "too-many-entries"
    )


# -- one entry ---------------------------------------------------------------------------------------------------------


def _check_row(row: Any) -> Row:
    if not isinstance(row, dict):
        raise _SiteEntryError("bad-entry", "", "is not a JSON object")
    return row


def _describe_row(row: Any, number: int) -> str:
    name = row.get("name") if isinstance(row, dict) else None
    return f"entry {number}" + (f" ({name[:_MAX_SHOWN_CHARS]!a})" if isinstance(name, str) and name else "")


def _read_text(row: Row, key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value.strip():
        raise _SiteEntryError("bad-entry", key, f"needs a string {key!r}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise _SiteEntryError("bad-entry", key, f"has half a character in {key!r}") from None
    if "\0" in value:
        raise _SiteEntryError("bad-entry", key, f"has a control character in {key!r}")
    return value


def _read_fields(row: Row) -> Frontmatter:
    name, description = _read_text(row, "name"), _read_text(row, "description")
    if not is_usable_name(name):
        raise _SiteEntryError("bad-name", "name", "has a name that cannot be used")
    return Frontmatter(name=name, description=description)


def _read_newer_entry(row: Row, base: str, _limits: Limits) -> SiteEntry:
    front, kind = _read_fields(row), _read_text(row, "type")
    if kind not in _TYPES:
        raise _SiteEntryError("unknown-type", "type", f"is of an unknown type, {kind[:_MAX_SHOWN_CHARS]!a}")
    url = _join_url(base, _read_text(row, "url"))
    digest = _DIGEST.fullmatch(_read_text(row, "digest"))
    if digest is None:
        raise _SiteEntryError("bad-digest", "digest", "has no SHA-256 digest")
    size = row.get("size")
    # A bool is an int for Python.
    if size is not None and (not isinstance(size, int) or isinstance(size, bool) or size < 0):
        raise _SiteEntryError("bad-entry", "size", "has a size that is not a number of bytes")
    issues = tuple(field_issues(front, mode="lenient", path=hide_secrets(url)))
    return SiteEntry(front, url, digest[1], size, kind == "archive", issues=issues)


def _join_url(base: str, url: str) -> str:
    try:
        return urljoin(base, url)
    except ValueError:
        raise _SiteEntryError("bad-entry", "url", "has a url that cannot be read") from None


def _read_older_entry(row: Row, base: str, limits: Limits) -> SiteEntry:
    front = _read_fields(row)
    files = row.get("files")
    if files is None and _PINNED_KEYS & row.keys():
        why = 'the index has no "$schema", so it is read as version 0.1.0, and this entry is one of 0.2.0'
        raise _SiteEntryError("missing-schema", "$schema", f"cannot be used: {why}")
    if not isinstance(files, list) or not files:
        raise _SiteEntryError("bad-entry", "files", "needs a list of files")
    if len(files) > limits.max_files_per_skill:
        raise _SiteEntryError("too-many-files", "files", f"has more than {limits.max_files_per_skill} files")
    paths = tuple(_check_paths(files))
    if SKILL_FILE not in paths:
        raise _SiteEntryError("missing-skill-md", "files", f"has no {SKILL_FILE} among its files")
    url = _join_url(base, f"{quote(front.name, safe='')}/")
    issues = tuple(field_issues(front, mode="lenient", path=f"{url}{SKILL_FILE}"))
    return SiteEntry(front, url, files=paths, issues=issues)


def _check_paths(files: list[Any]) -> Iterator[str]:
    """Yield the paths of files; raises ``_SiteEntryError`` for one that means something else in a URL than in a folder.

    Two paths that some file system takes for one are refused too.
    """
    names: set[str] = set()
    for path in files:
        if not isinstance(path, str) or _URL_CHARACTERS.search(path):
            raise _SiteEntryError(
                "bad-path", "files", f"lists a path that is refused: {ascii(path)[:_MAX_SHOWN_CHARS]}"
            )
        try:
            checked = "/".join(split_relative_path(path))
        except PathTraversalError as error:
            raise _SiteEntryError(error.code, "files", f"lists a path that is refused: {error.message}") from None
        folded = fold_path(checked)
        if folded in names:
            raise _SiteEntryError("bad-path", "files", f"lists a file twice: {ascii(path)[:_MAX_SHOWN_CHARS]}")
        names.add(folded)
        yield checked

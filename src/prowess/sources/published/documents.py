"""The documents of a published site: its root, its versions, and the lists of skills that a reader gets.

::

    site.json                               the root: a serial, and the digest of each document below
    blobs/sha256/HEX.json                   each document under its digest, so that a root and its documents fit
    blobs/sha256/HEX.tar.gz                 the archive of a version
    blobs/sha256/HEX.sig                    the signature of the root with that digest
    versions.json, aliases.json, advisories.json, NAME/VERSION/index.json, aliases/NAME/index.json,
    .well-known/agent-skills/index.json     copies, for people and for other programs

A list of skills is an index of discovery 0.2.0 with more fields, so any client can read it.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from prowess.errors import FetchError
from prowess.files.tree import FileHash
from prowess.format.rules import is_usable_name
from prowess.text.versions import find_latest_in_range, is_range, read_release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

T = TypeVar("T")

ROOT_FILE = "site.json"
SIGNATURE_FILE = f"{ROOT_FILE}.sig"
SIGNATURE_PURPOSE = "prowess-site"
INDEX, VERSIONS, ALIASES, ADVISORIES = "index.json", "versions.json", "aliases.json", "advisories.json"
MARKETPLACE = "marketplace.json"
DISCOVERY_FILE = ".well-known/agent-skills/index.json"
_FORMAT = "prowess-site-1"
_SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
_HEX = re.compile(r"[0-9a-f]{64}")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


def blob_path(digest: str, suffix: str) -> str:
    """Return the path of what is kept under its digest; ``suffix`` is ``json``, ``tar.gz`` or ``sig``."""
    return f"blobs/sha256/{digest}.{suffix}"


def alias_file(alias: str) -> str:
    """Return the name of the list of skills that an alias means."""
    return f"aliases/{alias}/{INDEX}"


def is_version_name(version: str) -> bool:
    """Return whether a string can be the version of a skill, or an alias: a part of a path that no system refuses."""
    return _VERSION.fullmatch(version) is not None and not version.endswith(".") and _HEX.fullmatch(version) is None


@dataclass(frozen=True, slots=True)
class Root:
    """The root of a site: which state it is of, until when it counts, and the digest of each document."""

    serial: int = 0
    updated: float = 0.0
    expires: float = 0.0
    """When the root stops counting, in seconds since 1970; 0 for never."""
    signer: str = ""
    """The fingerprint of the key that signs the root; ``""`` without a signature."""
    url: str = ""
    """The https address at which the site is read, for the marketplace; ``""`` when it is not known."""
    files: Mapping[str, str] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return the root as it is written."""
        return write_json({"format": _FORMAT, **asdict(self)})


@dataclass(frozen=True, slots=True)
class PublishedVersion:
    """One version of a skill, as the site records it for ever."""

    archive: str
    """The SHA-256 of the archive."""
    size: int
    tree: str
    """The digest of the skill, which lock files, grants and policies name."""
    document: str
    """The digest of the list that has this version alone."""
    published: float
    yanked: str = ""
    """Why no new install gets this version; ``""`` while it is offered."""
    purged: str = ""
    """Why the bytes of this version are gone; ``""`` while they are here."""


@dataclass(frozen=True, slots=True)
class ListedSkill:
    """A skill in a list: what it is, which version, and every file with its hash."""

    name: str
    description: str
    version: str
    archive: str
    size: int
    tree: str
    files: Mapping[str, FileHash]

    def to_row(self) -> dict[str, object]:
        """Return the entry of an index, with a URL that holds two folders below the top of the site."""
        return {
            "name": self.name,
            "type": "archive",
            "description": self.description,
            "url": f"../../{blob_path(self.archive, 'tar.gz')}",
            "digest": f"sha256:{self.archive}",
            "size": self.size,
            "version": self.version,
            "tree": f"sha256:{self.tree}",
            "files": {path: [*file] for path, file in self.files.items()},
        }


Versions = dict[str, dict[str, PublishedVersion]]
Aliases = dict[str, dict[str, str]]


def list_offered(versions: Mapping[str, PublishedVersion]) -> list[str]:
    """Return the versions that were neither withdrawn nor purged."""
    return [version for version, row in versions.items() if not row.yanked and not row.purged]


def find_newest(versions: Mapping[str, PublishedVersion]) -> str:
    """Return the newest version that is offered; ``""`` when none is."""
    offered = list_offered(versions)
    # Versions without numbers have only their dates.
    return max(offered, key=lambda one: (read_release(one), versions[one].published), default="")


def find_version(wanted: str, versions: Mapping[str, PublishedVersion]) -> str:
    """Return the version that ``wanted``, a version or a range, means; ``""`` when there is none.

    A version that was yanked is found by its whole name alone.
    """
    if is_range(wanted):
        return find_latest_in_range(wanted, list_offered(versions))
    return wanted if wanted in versions else ""


# -- JSON --------------------------------------------------------------------------------------------------------------


def write_json(content: object) -> bytes:
    """Return a document: equal content gives equal bytes."""
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n"


def write_index(skills: Iterable[ListedSkill]) -> bytes:
    """Return a list of skills, an index of discovery."""
    return write_json(
        {"$schema": _SCHEMA, "skills": [one.to_row() for one in sorted(skills, key=lambda one: one.name)]}
    )


def write_versions(versions: Versions) -> bytes:
    """Return the document of all versions."""
    rows = {name: {version: _to_row(row) for version, row in rows.items()} for name, rows in versions.items()}
    return write_json({"skills": rows})


def _to_row(row: PublishedVersion) -> dict[str, object]:
    return {key: value for key, value in asdict(row).items() if value != ""}


def write_marketplace(name: str, url: str, skills: Iterable[ListedSkill]) -> bytes:
    """Return a plugin marketplace with a plugin for each skill, for clients that know archives as sources."""
    plugins = [
        {
            "name": one.name,
            "description": one.description,
            "version": one.version,
            "source": {"source": "archive", "url": f"{url}/{blob_path(one.archive, 'tar.gz')}", "sha256": one.archive},
        }
        for one in sorted(skills, key=lambda one: one.name)
    ]
    return write_json({"name": name, "owner": {"name": name}, "plugins": plugins})


def read_root(data: bytes, where: str) -> Root:
    """Parse a root; raises ``FetchError`` (``bad-index``) for anything else."""

    def parse(content: dict[str, Any]) -> Root:
        if content.pop("format", _FORMAT) != _FORMAT:
            raise FetchError(
                "the site has a format that this version of Prowess does not know", where, "unknown-schema"
            )
        root = Root(**content)
        kinds = {*map(type, (root.signer, root.url))} | {type(root.serial)}
        numbers = {*map(type, (root.updated, root.expires))} <= {int, float}
        hashes = all(_HEX.fullmatch(digest) for digest in root.files.values())
        if kinds != {str, int} or root.serial < 1 or not numbers or not hashes:
            raise ValueError("a field is malformed")
        return root

    return _parse(data, where, "site.json", parse)


def read_versions(data: bytes, where: str) -> Versions:
    """Parse the document of all versions; raises ``FetchError`` (``bad-index``) for anything else."""

    def parse(content: dict[str, Any]) -> Versions:
        found: Versions = {}
        for name, rows in content["skills"].items():
            if not is_usable_name(name) or not all(map(is_version_name, rows)):
                raise ValueError("a name or a version cannot be used")
            found[name] = {version: _check_version(PublishedVersion(**row)) for version, row in rows.items()}
        return found

    return _parse(data, where, VERSIONS, parse)


def _check_version(row: PublishedVersion) -> PublishedVersion:
    digests = (row.archive, row.tree, row.document)
    kinds = {*map(type, (row.yanked, row.purged))} | {type(row.size)}
    if kinds != {str, int} or type(row.published) not in {int, float} or not all(map(_HEX.fullmatch, digests)):
        raise ValueError("a version is malformed")
    return row


def read_aliases(data: bytes, where: str) -> Aliases:
    """Parse the document of the aliases; raises ``FetchError`` (``bad-index``) for anything else."""

    def parse(content: dict[str, Any]) -> Aliases:
        aliases = content["aliases"]
        for alias, rows in aliases.items():
            if not all(map(is_version_name, (alias, *rows.values()))) or not all(map(is_usable_name, rows)):
                raise ValueError("a name or a version cannot be used")
        return dict(aliases)

    return _parse(data, where, ALIASES, parse)


def read_revoked(data: bytes, where: str) -> dict[str, str]:
    """Return the digests of skills that the advisories of a site name, each with the reason.

    Raises ``FetchError`` (``bad-index``) for anything but advisories.
    """

    def parse(content: dict[str, Any]) -> dict[str, str]:
        found = {}
        for row in content["advisories"]:
            for affected in row["affected"]:
                found[str(affected["database_specific"]["digest"])] = str(row.get("summary", ""))
        return found

    return _parse(data, where, ADVISORIES, parse)


def read_skills(data: bytes, where: str, max_entries: int) -> tuple[ListedSkill, ...]:
    """Parse a list of skills that was published; raises ``FetchError`` (``bad-index``) for anything else."""

    def parse(content: dict[str, Any]) -> tuple[ListedSkill, ...]:
        rows = content["skills"]
        if len(rows) > max_entries:
            message = f"the list has more than max_index_entries ({max_entries}) entries"
            raise FetchError(message, where, "too-many-entries")
        return tuple(map(_parse_skill, rows))

    return _parse(data, where, INDEX, parse)


def _parse_skill(row: dict[str, Any]) -> ListedSkill:
    archive, tree = row["digest"].removeprefix("sha256:"), row["tree"].removeprefix("sha256:")
    files = {
        path: FileHash(int(size), bool(executable), str(digest))
        for path, (size, executable, digest) in row["files"].items()
    }
    texts = (row["name"], row["description"], row["version"])
    if not all(isinstance(text, str) and "\0" not in text for text in texts):
        raise ValueError("an entry is malformed")
    is_sized = type(row["size"]) is int and row["size"] >= 0
    if not is_sized or not is_usable_name(row["name"]) or not all(map(_HEX.fullmatch, (archive, tree))):
        raise ValueError("an entry is malformed")
    return ListedSkill(row["name"], row["description"], row["version"], archive, row["size"], tree, files)


def _parse(data: bytes, where: str, name: str, parse: Callable[[dict[str, Any]], T]) -> T:
    try:
        return parse(json.loads(data))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FetchError(f"the site's {name} is malformed: {ascii(str(error))[1:80]}", where, "bad-index") from None

"""Reads a published site: its root is checked first, and everything else is what the root, or a lock file, names.

Whoever can change the files of a site can therefore change nothing unseen: the root of a signed site has the signature
of the key that was seen first, its serial never goes back, and whatever has another digest than announced is refused.
"""

from __future__ import annotations

import time
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

from prowess.addresses.skill_ref import is_commit
from prowess.errors import FetchError, Issue, NotTrustedError
from prowess.fetch.archive.unpack import unpack
from prowess.fetch.cache import Cache, CacheRecord, sha256_hex
from prowess.fetch.cached_fetcher import DownloadRequest
from prowess.fetch.client import UNREACHABLE_CODES
from prowess.fetch.signers import Signed, check_signers
from prowess.fetch.ssh_signature import MAX_SIGNATURE_BYTES, find_signing_key
from prowess.files.tree import digest_tree, hash_bytes
from prowess.files.write import NewFile
from prowess.names import split_relative_path
from prowess.policy.files import current_policy
from prowess.progress_steps import report_steps
from prowess.sources.published.documents import (
    ADVISORIES,
    ALIASES,
    INDEX,
    ROOT_FILE,
    SIGNATURE_PURPOSE,
    VERSIONS,
    Aliases,
    Root,
    Versions,
    alias_file,
    blob_path,
    find_version,
    read_aliases,
    read_revoked,
    read_root,
    read_skills,
    read_versions,
)
from prowess.sources.published.known_sites import KnownSite, KnownSites

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from prowess.fetch.cached_fetcher import CachedFetcher
    from prowess.fetch.stores import SiteStore
    from prowess.limits import Limits
    from prowess.sources.published.documents import ListedSkill, PublishedVersion


class RootBytes(NamedTuple):
    """The root as it was read, and why it is an old copy; ``""`` when it is not."""

    data: bytes
    stale_reason: str = ""


class SiteFiles(Protocol):
    """The files of a site, wherever it is."""

    address: str
    is_local: bool
    """Whether it is a folder of this machine, whose earlier state may come back: with a branch, or from a backup."""

    def read_root(self) -> RootBytes | None:
        """Return the root of the site as it is now, or an old copy while the site cannot be reached."""
        ...

    def read_blob(self, path: str, digest: str, max_bytes: int) -> bytes:
        """Return what a path has, from the cache where it is there.

        Raises ``FetchError``: ``not-published`` when there is no such file, ``digest-mismatch`` for other bytes.
        """
        ...

    def read_small(self, path: str, max_bytes: int) -> bytes | None:
        """Return a file that has no digest; ``None`` when there is none."""
        ...


class StoreSite:
    """The files of a site in a folder or in an object store."""

    def __init__(self, store: SiteStore, limits: Limits, *, cached: bool) -> None:
        self.address = store.address
        self.store = store
        self._limits = limits
        # A folder of this machine is as near as the cache.
        self._cache = Cache() if cached else None
        self.is_local = not cached

    def read_root(self) -> RootBytes | None:
        key = f"{self.address}/{ROOT_FILE}"
        try:
            found = self.store.read(ROOT_FILE, self._limits.max_index_bytes)
        except FetchError as error:
            record = self._cache.read_record(key) if self._cache is not None else None
            if self._cache is None or record is None or error.code not in UNREACHABLE_CODES:
                raise
            data = self._cache.read(record.digest, self._limits.max_index_bytes)
            if data is None or time.time() - record.stored_at > self._limits.max_stale_seconds:
                raise
            return RootBytes(data, error.message)
        if found is None:
            return None
        if self._cache is not None:
            digest = self._cache.write(found.data)
            self._cache.write_record(CacheRecord(key, key, digest, len(found.data), time.time(), 0))
        return RootBytes(found.data)

    def read_blob(self, path: str, digest: str, max_bytes: int) -> bytes:
        kept = self._cache.read(digest, max_bytes) if self._cache is not None else None
        if kept is not None:
            return kept
        found = self.store.read(path, max_bytes)
        if found is None:
            raise FetchError(f"{self.address} does not have {path}", self.address, "not-published")
        if sha256_hex(found.data) != digest:
            message = f"{self.address}/{path} has the SHA-256 {sha256_hex(found.data)}"
            raise FetchError(message, self.address, "digest-mismatch")
        if self._cache is not None:
            self._cache.write(found.data)
        return found.data

    def read_small(self, path: str, max_bytes: int) -> bytes | None:
        found = self.store.read(path, max_bytes)
        return None if found is None else found.data


class WebSite:
    """The files of a site behind https."""

    def __init__(self, address: str, downloads: CachedFetcher) -> None:
        self.address = address
        self.is_local = False
        self._downloads = downloads

    def read_root(self) -> RootBytes | None:
        limits = self._downloads.limits
        url = f"{self.address}/{ROOT_FILE}"
        copy = self._downloads.get(DownloadRequest(url, limits.max_index_bytes, "max_index_bytes", 0))
        return None if copy is None else RootBytes(copy.body, copy.stale_reason or copy.rollback_reason)

    def read_blob(self, path: str, digest: str, max_bytes: int) -> bytes:  # noqa: ARG002 - the downloads have a bound
        try:
            return self._downloads.get_by_digest(f"{self.address}/{path}", digest)
        except FetchError as error:
            if error.code == "http-status":
                raise FetchError(error.message, error.path, "not-published") from None
            raise

    def read_small(self, path: str, max_bytes: int) -> bytes | None:
        response = self._downloads.fetcher.get(f"{self.address}/{path}", max_bytes, limit_name="max_index_bytes")
        return response.body or None


def read_plain_folder(store: SiteStore, limits: Limits) -> tuple[str, tuple[NewFile, ...]]:
    """Return all files of a store that nobody published to, a prefix with folders of skills, and a name of their state.

    Raises ``FetchError`` for more than the limits of an install allow, and ``PolicyError`` where the policy names
    signers: what nobody published has no signature.
    """
    check_signers(current_policy(), None, store.address)
    listed = store.list_files(limits.max_archive_entries + 1)
    left = limits.max_install_bytes
    if len(listed) > limits.max_archive_entries:
        message = f"{store.address} has more than max_archive_entries ({limits.max_archive_entries}) files"
        raise FetchError(message, store.address, "too-many-entries")
    files = []
    for path in report_steps([*listed], str):
        split_relative_path(path)  # refuses what could lead out of a folder
        found = store.read(path, left)
        if found is not None:
            left -= len(found.data)
            # A store has no file modes: a file that begins with "#!" is taken for an executable script.
            files.append(NewFile(path, found.data, found.data.startswith(b"#!")))
    return sha256_hex(repr(listed).encode()), tuple(files)


class Selection(NamedTuple):
    """The skills of a site at one version or alias, and what must be known about them."""

    skills: tuple[ListedSkill, ...]
    pin: str
    """The digest of the list, by which a lock file can ask for exactly these skills; ``""`` when the site has none."""
    issues: tuple[Issue, ...] = ()
    versions: Mapping[str, Mapping[str, PublishedVersion]] = {}
    """Every version of each skill of the site; empty while it cannot be reached."""


class PublishedSite:
    """One site, whose root was read once."""

    def __init__(self, files: SiteFiles, limits: Limits, *, allow_rollback: bool = False) -> None:
        self._files, self._allow_rollback = files, allow_rollback
        self.address, self.limits = files.address, limits

    @cached_property
    def _read(self) -> tuple[Root, tuple[Issue, ...]] | None:
        try:
            return self._read_root()
        except FetchError as error:
            if error.code != "rolled-back":
                raise
            # Another process may have read and noted a newer root between our reading and our comparing.
            return self._read_root()

    def _read_root(self) -> tuple[Root, tuple[Issue, ...]] | None:
        found = self._files.read_root()
        if found is None:
            return None
        root = read_root(found.data, self.address)
        signer = self._check_signature(root, found.data)
        sites = KnownSites()
        seen = KnownSite(signer, root.serial)
        is_new = sites.check(self.address, seen, allow_rollback=self._allow_rollback)
        if is_new and (signer or not self._files.is_local):
            with suppress(NotTrustedError):  # a service without a home folder remembers nothing
                sites.note(self.address, seen)
        if root.expires and root.expires < time.time():
            when = time.strftime("%Y-%m-%d", time.gmtime(root.expires))
            raise FetchError(f"{self.address} expired {when}, as it says itself", self.address, "site-expired")
        if not found.stale_reason:
            return root, ()
        message = f"is an earlier version that the site announced: {found.stale_reason}"
        return root, (Issue("stale-index", "", message, self.address, 0, "warning"),)

    def _check_signature(self, root: Root, data: bytes) -> str:
        policy = current_policy()
        if not root.signer:
            check_signers(policy, None, self.address)
            return ""
        path = blob_path(sha256_hex(data), "sig")
        signature = self._files.read_small(path, MAX_SIGNATURE_BYTES)
        if signature is None:
            raise FetchError(f"{self.address} has no signature of its root", self.address, "bad-signature")
        key = find_signing_key(data, signature, SIGNATURE_PURPOSE)
        if key != root.signer:
            message = f"the root of {self.address} names {root.signer}, and {key} has signed it"
            raise FetchError(message, self.address, "bad-signature")
        check_signers(policy, Signed(data, signature, SIGNATURE_PURPOSE), self.address)
        return key

    def is_published(self) -> bool:
        """Return whether there is a root; raises ``FetchError`` for one that may not be used."""
        return self._read is not None

    def is_plain_store(self, ref: str) -> bool:
        """Return whether this is an object store that nobody published to, which has no versions."""
        return not ref and not self._files.is_local and isinstance(self._files, StoreSite) and not self.is_published()

    @property
    def root(self) -> Root:
        """The root; an empty one where nothing was published yet."""
        return self._read[0] if self._read is not None else Root()

    @property
    def issues(self) -> tuple[Issue, ...]:
        """The issues of the site as a whole: an old copy is in use."""
        return self._read[1] if self._read is not None else ()

    @cached_property
    def versions(self) -> Versions:
        """Every version of each skill."""
        data = self._read_document(VERSIONS)
        return {} if data is None else read_versions(data, self.address)

    @cached_property
    def aliases(self) -> Aliases:
        """The version of each skill that an alias means."""
        data = self._read_document(ALIASES)
        return {} if data is None else read_aliases(data, self.address)

    @cached_property
    def revoked(self) -> dict[str, str]:
        """The digests of skills that the site has revoked, each with the reason."""
        data = self._read_document(ADVISORIES)
        return {} if data is None else read_revoked(data, self.address)

    def _read_document(self, name: str) -> bytes | None:
        digest = self.root.files.get(name, "")
        return self._read_blob(digest) if digest else None

    def _read_blob(self, digest: str) -> bytes:
        return self._files.read_blob(blob_path(digest, "json"), digest, self.limits.max_index_bytes)

    # -- skills ------------------------------------------------------------------------------------------------------

    def select(self, ref: str = "", names: Collection[str] = ()) -> Selection:
        """Return the skills at a version, a range, an alias, or the digest of a list; the newest of all for ``""``.

        ``names`` limits a version or a range to these skills. Raises ``FetchError`` (``unknown-version``) when
        nothing is published under ``ref``.
        """
        if is_commit(ref):
            return self._select_pinned(ref)
        if not self.is_published():
            raise FetchError(f"{self.address} is not a site of 'prowess publish'", self.address, "not-published")
        name = alias_file(ref) if ref else INDEX
        digest = self.root.files.get(name, "")
        if digest:
            return self._checked(self._parse(self._read_blob(digest)), digest)
        if not ref:  # everything was withdrawn
            return Selection((), "", self.issues)
        chosen = [
            rows[version].document
            for skill, rows in sorted(self.versions.items())
            if (not names or skill in names) and (version := find_version(ref, rows))
        ]
        if not chosen:
            aliases = f"; its aliases are {', '.join(sorted(self.aliases)[:10])}" if self.aliases else ""
            message = f"{self.address} has neither a version nor an alias {ref!a}{aliases}"
            raise FetchError(message, self.address, "unknown-version")
        found = [skill for document in chosen for skill in self._parse(self._read_blob(document))]
        # A list of several skills at single versions is nowhere: the lock file then has the version and the digest.
        return self._checked(tuple(found), chosen[0] if len(chosen) == 1 else "")

    def _select_pinned(self, pin: str) -> Selection:
        """Return the skills of the list that a lock file names, also while the site cannot be reached."""
        try:
            return self._checked(self._parse(self._read_blob(pin)), pin, is_locked=True)
        except FetchError as error:
            if error.code != "not-published":
                raise
            for name, rows in self.versions.items():
                for version, row in rows.items():
                    if row.purged and row.document == pin:
                        message = f"{name}@{version} was purged by its site: {row.purged}"
                        raise FetchError(message, self.address, "revoked") from None
            message = f"{self.address} does not have the locked list {pin[:12]} any more"
            raise FetchError(message, self.address, "unknown-version") from None

    def _parse(self, data: bytes) -> tuple[ListedSkill, ...]:
        return read_skills(data, self.address, self.limits.max_index_entries)

    def _checked(self, skills: tuple[ListedSkill, ...], pin: str, *, is_locked: bool = False) -> Selection:
        """Return the skills without those that were revoked, with a warning for each that was yanked."""
        issues: list[Issue] = []
        try:
            issues += self.issues
            versions, revoked = self.versions, self.revoked
        except FetchError as error:
            if error.code not in UNREACHABLE_CODES or not pin:
                raise
            return Selection(skills, pin)  # offline, from a lock file: nothing newer is known
        kept = []
        for skill in skills:
            row = versions.get(skill.name, {}).get(skill.version)
            where = f"{self.address}#{skill.version}@{skill.name}"
            if skill.tree in revoked or (row is not None and row.purged):
                reason = revoked.get(skill.tree) or (row.purged if row is not None else "")
                message = f"{skill.name}@{skill.version} was purged by its site: {reason}"
                if is_locked:  # without it the rest would not be what the lock file says
                    raise FetchError(message, where, "revoked")
                issues.append(Issue("revoked", skill.name, message, where, 0, "error"))
                continue
            if row is not None and row.yanked:
                message = f"version {skill.version} of {skill.name} was withdrawn: {row.yanked}"
                issues.append(Issue("yanked", skill.name, message, where, 0, "warning"))
            kept.append(skill)
        return Selection(tuple(kept), pin, tuple(issues), versions)

    def read_files(self, skill: ListedSkill) -> tuple[NewFile, ...]:
        """Return the files of a skill; raises ``FetchError`` (``digest-mismatch``) for others than were listed."""
        path = blob_path(skill.archive, "tar.gz")
        data = self._files.read_blob(path, skill.archive, self.limits.max_download_bytes)
        files = unpack(data, name=f"{self.address}/{path}", limits=self.limits)
        hashes = {file.path: hash_bytes(file.content, executable=file.executable) for file in files}
        if digest_tree(hashes) != skill.tree or hashes != {**skill.files}:
            message = f"the archive of {skill.name} {skill.version} does not hold the files that the site lists"
            raise FetchError(message, self.address, "digest-mismatch")
        return files

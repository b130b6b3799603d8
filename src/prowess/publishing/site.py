"""Publishes skills to a site in a folder or an object store: immutable versions, and aliases that move.

The order of the writes keeps a site whole at every moment. Archives and documents are written first, under their
digests. Then the root is replaced, only while it is the one that was read. Copies for other programs come last; whoever
publishes next writes them again, also after a crash.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

from prowess.addresses.source_spec import parse_source
from prowess.arguments import check_texts
from prowess.authoring.check import check
from prowess.authoring.pack import pack
from prowess.errors import BusyError, Issue, SkillLoadError, SourceError
from prowess.fetch.archive.unpack import unpack
from prowess.fetch.cache import sha256_hex
from prowess.fetch.ssh_signature import find_fingerprint, sign_bytes
from prowess.fetch.stores import open_store
from prowess.files.tree import digest_tree, hash_bytes
from prowess.format.rules import is_usable_name
from prowess.limits import DEFAULT_LIMITS
from prowess.names import SKILL_FILE
from prowess.progress_steps import report_steps
from prowess.skills.parse import parse_skill
from prowess.sources.published.documents import (
    ADVISORIES,
    ALIASES,
    DISCOVERY_FILE,
    INDEX,
    MARKETPLACE,
    ROOT_FILE,
    SIGNATURE_FILE,
    SIGNATURE_PURPOSE,
    VERSIONS,
    ListedSkill,
    PublishedVersion,
    Root,
    alias_file,
    blob_path,
    find_newest,
    is_version_name,
    read_skills,
    write_index,
    write_json,
    write_marketplace,
    write_versions,
)
from prowess.sources.published.reader import PublishedSite, StoreSite
from prowess.text.redaction import show_address
from prowess.text.spelling import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from prowess.addresses.source_spec import SourceSpec
    from prowess.fetch.stores import SiteStore, StoredFile
    from prowess.limits import Limits
    from prowess.sources.published.documents import Aliases, Versions


_MAX_TRIES = 200
"""How often a root is tried again that another publisher replaced first."""
_DAY_SECONDS = 86_400

PublishStatus = Literal["published", "unchanged", "yanked", "purged"]


@dataclass(frozen=True, slots=True)
class PublishedSkill:
    """What became of one skill: which version, and whether it was there already."""

    name: str
    version: str
    digest: str
    """The digest of the skill, as lock files and grants have it; in a registry, that of the manifest."""
    status: PublishStatus
    size: int
    """The bytes of its archive."""
    issues: tuple[Issue, ...] = ()


@dataclass(frozen=True, slots=True)
class PublishReport:
    """What a publication did, or would do."""

    address: str
    skills: tuple[PublishedSkill, ...]
    aliases: tuple[tuple[str, str, str], ...]
    """Each alias that moved: its name, the skill, and the version that it means now."""
    serial: int
    """The serial of the root; that of the root before when nothing changed, and 0 in a registry."""
    signer: str
    uploads: tuple[str, ...]
    """The files that had to be written, archives and documents; those that exist are not sent again."""


@dataclass(frozen=True, slots=True)
class SiteOptions:
    """How a root is written: who signs it, when it expires, and where it is read."""

    sign: str = ""
    """The file of an SSH key; ``""`` signs nothing."""
    replace_signer: bool = False
    """True to sign with another key than before. Readers refuse that until they forget the old key."""
    expires_days: int = 0
    url: str = ""


@dataclass(slots=True)
class _State:
    """The content of a site, as it was read and as a change leaves it."""

    versions: Versions
    aliases: Aliases
    advisories: list[dict[str, object]]
    listed: dict[str, ListedSkill]
    """The entries of versions by the digest of their document, as far as they are known."""


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version that is ready to be written."""

    listed: ListedSkill
    archive: bytes
    issues: tuple[Issue, ...]

    @property
    def document(self) -> bytes:
        """The list that has this version alone."""
        return write_index([self.listed])


def publish(
    skills: Sequence[str | os.PathLike[str]],
    to: str | os.PathLike[str],
    *,
    version: str = "",
    aliases: Sequence[str] = (),
    sign: str | os.PathLike[str] = "",
    replace_signer: bool = False,
    expires_days: int = 0,
    url: str = "",
    dry_run: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> PublishReport:
    """Publish skills to a folder, an object store or an OCI registry, and let aliases mean them.

    Args:
        skills: folders, or ``NAME@VERSION`` of versions that are published already.
        to: where: a path such as ``./site``, ``s3://``, ``gs://`` or ``az://BUCKET/PREFIX``, or ``oci://HOST/PREFIX``.
        version: the version of them all; by default that of each frontmatter (``version``, ``metadata.version``).
        aliases: names that mean these versions from now on, such as ``production``.
        sign: the file of an SSH key that signs the site. Readers refuse another key than the first that they saw.
        replace_signer: sign with another key than before.
        expires_days: days after which readers refuse this state of the site; 0 for never.
        url: the https address of the site, with which it gets a ``marketplace.json``.
        dry_run: return what would be done, and do nothing.
        limits: the bounds of archives and documents.

    Publishing the same content again changes nothing. Raises ``SkillLoadError`` when ``check`` finds an error, and
    ``SourceError`` for a version that has other content already (``version-exists``).

    """
    aliases = check_texts(aliases, "aliases")
    options = SiteOptions(os.fspath(sign), replace_signer, expires_days, url)
    target = parse_target(to)
    for alias in (*aliases, *((version,) if version else ())):
        _check_version_name(alias)
    fresh: list[NewVersion] = []
    named: list[tuple[str, str]] = []
    for skill in report_steps([os.fspath(one) for one in skills], str):
        reference = _split_reference(skill)
        if reference is not None:
            named.append(reference)
        else:
            fresh.append(_make_version(skill, version, limits))
    _refuse_repeated(fresh)
    if target.kind == "oci":
        from prowess.publishing.registry import publish_to_registry

        _refuse_site_options(options)
        return publish_to_registry(fresh, named, target.address, aliases=aliases, dry_run=dry_run, limits=limits)

    def change(state: _State) -> list[PublishedSkill]:
        rows = [_add_version(state, one) for one in fresh]
        rows += [_find_published(state, name, wanted) for name, wanted in named]
        _refuse_ambiguous(state, [row.version for row in rows], aliases)
        for alias in aliases:
            for row in rows:
                state.aliases.setdefault(alias, {})[row.name] = row.version
        return rows

    return _Publication(open_target(target), options, limits, dry_run=dry_run).run(change, fresh)


def _refuse_ambiguous(state: _State, versions: Sequence[str], aliases: Sequence[str]) -> None:
    """Raise ``SourceError`` where one word would be a version and an alias: an address could mean either."""
    known = {version for rows in state.versions.values() for version in rows}
    both = next((word for word in aliases if word in known), None) or next(
        (word for word in versions if word in state.aliases or word in aliases), None
    )
    if both is not None:
        raise SourceError(f"{both!r} would be a version and an alias at once", code="bad-version")


def _refuse_site_options(options: SiteOptions) -> None:
    if options != SiteOptions():
        message = "a registry has no root: sign, replace_signer, expires_days and url are for sites"
        raise SourceError(message, code="bad-argument")


def unpublish(
    references: Sequence[str],
    to: str | os.PathLike[str],
    *,
    reason: str,
    purge: bool = False,
    sign: str | os.PathLike[str] = "",
    dry_run: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> PublishReport:
    """Withdraw versions (``NAME@VERSION``): no new install gets them, and what has them locked still works.

    ``to`` and ``sign`` are those of ``publish``; ``reason`` is what people read who have such a version. With
    ``purge``, the bytes are deleted, and readers refuse their digest from then on. Raises ``SourceError`` for a
    version that is not published, or that an alias means.
    """
    named = [_require_reference(text) for text in check_texts(references, "references")]
    if not reason.strip():
        raise SourceError("a version is withdrawn with a reason, which people read who have it", code="bad-argument")
    target = parse_target(to)
    if target.kind == "oci":
        message = f"{target.address} is a registry: delete the tag or the manifest with the tools of the registry"
        raise SourceError(message, target.address, "bad-target")
    store = open_target(target)
    publication = _Publication(store, SiteOptions(os.fspath(sign)), limits, dry_run=dry_run)
    report = publication.run(lambda state: [_withdraw(state, *one, reason, purge=purge) for one in named], [])
    if purge and not dry_run:
        for name, wanted in named:
            row = publication.state.versions[name][wanted]
            for path in (blob_path(row.archive, "tar.gz"), blob_path(row.document, "json"), f"{name}/{wanted}/{INDEX}"):
                store.delete(path)
    return report


def _split_reference(text: str | os.PathLike[str]) -> tuple[str, str] | None:
    """Return the name and the version of ``NAME@VERSION``; ``None`` for a path."""
    name, mark, version = os.fspath(text).partition("@")
    is_path = not mark or os.path.lexists(text) or not {"/", os.sep}.isdisjoint(name)
    return None if is_path or not is_usable_name(name) else (name, version)


def _require_reference(text: str) -> tuple[str, str]:
    reference = _split_reference(text)
    if reference is None:
        raise SourceError(f"{text!r} does not name a version: write NAME@VERSION", code="bad-reference")
    return reference


def _check_version_name(version: str) -> None:
    if not is_version_name(version):
        message = f"{version!r} cannot be a version or an alias: letters, digits, '.', '_', '+' and '-', at most 64"
        raise SourceError(message, code="bad-version")


# -- one skill ---------------------------------------------------------------------------------------------------------


def _make_version(path: str | os.PathLike[str], version: str, limits: Limits) -> NewVersion:
    report = check(path, limits=limits)
    errors = [
        Issue(one.code, one.field, one.message, one.path, one.line, one.severity)
        for one in report.findings
        if one.severity == "error"
    ]
    if errors:
        raise SkillLoadError(errors, os.fspath(path))
    packed = pack(path, form="tar.gz", limits=limits)
    files = {file.path: file for file in unpack(packed.data, name=packed.name, limits=limits)}
    front = parse_skill(files[SKILL_FILE].content, check_dir=False, limits=limits).skill
    chosen = version or front.version or str(front.metadata.get("version", ""))
    if not chosen:
        message = f"{packed.name} has no version: pass one, or write it into its frontmatter as metadata.version"
        raise SourceError(message, os.fspath(path), "missing-version")
    _check_version_name(chosen)
    if not any(map(str.isdigit, chosen)):
        message = f"{chosen!r} is not a version, which has a number; a name that moves is an alias"
        raise SourceError(message, os.fspath(path), "bad-version")
    hashes = {path: hash_bytes(file.content, executable=file.executable) for path, file in files.items()}
    listed = ListedSkill(
        packed.name, front.description, chosen, packed.digest, len(packed.data), digest_tree(hashes), hashes
    )
    unfinished = [
        Issue(one.code, one.field, one.message, one.path, one.line, one.severity)
        for one in report.findings
        if one.code == "placeholder-text"
    ]
    return NewVersion(listed, packed.data, (*packed.issues, *unfinished))


def _refuse_repeated(fresh: Sequence[NewVersion]) -> None:
    names = [one.listed.name for one in fresh]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise SourceError(f"two of the folders hold a skill {repeated!r}", code="duplicate-name")


def _add_version(state: _State, new: NewVersion) -> PublishedSkill:
    listed = new.listed
    known = state.versions.setdefault(listed.name, {}).get(listed.version)
    status: PublishStatus = "published"
    if known is not None:
        if known.purged:
            message = f"{listed.name}@{listed.version} was purged, and a version never comes back: {known.purged}"
            raise SourceError(message, code="version-exists")
        if known.tree != listed.tree:
            message = (
                f"{listed.name}@{listed.version} is published with other content (digest {known.tree[:12]}, "
                f"here {listed.tree[:12]}): choose another version"
            )
            raise SourceError(message, code="version-exists")
        status = "unchanged"
    purged = next((row for row in state.versions[listed.name].values() if row.purged and row.tree == listed.tree), None)
    if purged is not None:
        raise SourceError(f"this content of {listed.name} was purged: {purged.purged}", code="revoked")
    if known is None:
        document = sha256_hex(new.document)
        state.versions[listed.name][listed.version] = PublishedVersion(
            listed.archive, listed.size, listed.tree, document, round(time.time(), 3)
        )
        state.listed[document] = listed
    return PublishedSkill(listed.name, listed.version, listed.tree, status, listed.size, new.issues)


def _find_published(state: _State, name: str, version: str) -> PublishedSkill:
    if not state.versions:
        raise SourceError("nothing is published there yet", code="not-published")
    row = state.versions.get(name, {}).get(version)
    if row is None and name not in state.versions:
        guess = did_you_mean(name, sorted(state.versions))
        raise SourceError(f"{name} is not published{f'; {guess}' if guess else ''}", code="unknown-version")
    if row is None:
        known = ", ".join([*state.versions.get(name, {})][-5:])
        there = f"; its versions are {known}" if known else ""
        raise SourceError(f"{name}@{version} is not published{there}", code="unknown-version")
    if row.purged:
        raise SourceError(f"{name}@{version} was purged: {row.purged}", code="revoked")
    return PublishedSkill(name, version, row.tree, "unchanged", row.size)


def _withdraw(state: _State, name: str, version: str, reason: str, *, purge: bool) -> PublishedSkill:
    row = state.versions.get(name, {}).get(version)
    if purge and row is not None and row.purged:  # a run that was killed may have left the bytes
        return PublishedSkill(name, version, row.tree, "purged", row.size)
    published = _find_published(state, name, version)
    row = state.versions[name][version]
    # Readers refuse purged content under every version.
    gone = {one for one, other in state.versions[name].items() if one == version or (purge and other.tree == row.tree)}
    used = sorted(alias for alias, means in state.aliases.items() if means.get(name) in gone)
    if used:
        meant = f"{name}@{state.aliases[used[0]][name]}"
        same = "" if meant == f"{name}@{version}" else ", which has the same content"
        message = f"the alias {used[0]} means {meant}{same}: move it first, with 'prowess publish --alias'"
        raise SourceError(message, code="version-in-use")
    state.versions[name][version] = replace(row, purged=reason) if purge else replace(row, yanked=reason)
    if purge:
        state.advisories.append(_make_advisory(name, version, row.tree, reason))
    return replace(published, status="purged" if purge else "yanked")


def _make_advisory(name: str, version: str, tree: str, reason: str) -> dict[str, object]:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    package = {"ecosystem": "Agent Skills", "name": name}
    affected = {"package": package, "versions": [version], "database_specific": {"digest": tree}}
    return {"id": f"PROWESS-{tree[:16]}", "modified": now, "summary": reason, "affected": [affected]}


# -- the site ----------------------------------------------------------------------------------------------------------


class _Publication:
    """One change of a site, which is made again on top of what another publisher wrote meanwhile."""

    def __init__(self, store: SiteStore, options: SiteOptions, limits: Limits, *, dry_run: bool) -> None:
        self._store, self._options, self._limits, self._is_dry_run = store, options, limits, dry_run
        self._uploads: list[str] = []
        self.state = _State({}, {}, [], {})

    def run(self, change: Callable[[_State], list[PublishedSkill]], fresh: Sequence[NewVersion]) -> PublishReport:
        """Change the site, and return what was done."""
        signer = find_fingerprint(self._options.sign) if self._options.sign else ""
        for attempt in range(_MAX_TRIES):
            old = self._store.read(ROOT_FILE, self._limits.max_index_bytes)
            site = PublishedSite(StoreSite(self._store, self._limits, cached=False), self._limits)
            self._refuse_signer(site.root, signer)
            before = self._read_state(site)
            self.state = self._read_state(site)
            rows = change(self.state)
            moved = _find_moved(before.aliases, self.state.aliases)
            for one in () if self._is_dry_run else report_steps([*fresh], lambda one: one.listed.name):
                self._upload(blob_path(one.listed.archive, "tar.gz"), one.archive)
                self._upload(blob_path(sha256_hex(one.document), "json"), one.document)
            documents = self._make_documents(self.state, site)
            digests = {name: sha256_hex(data) for name, data in documents.items()}
            if digests == dict(site.root.files) and not self._wants_new_root(site.root, signer):
                if not self._is_dry_run:
                    self._write_copies([(one.listed.name, one.listed.version, one.document) for one in fresh])
                return self._report(rows, moved, site.root)
            if self._is_dry_run:
                self._uploads += [blob_path(one.listed.archive, "tar.gz") for one in fresh]
                return self._report(rows, moved, replace(site.root, serial=site.root.serial + 1, signer=signer))
            for name, data in documents.items():
                self._upload(blob_path(digests[name], "json"), data)
            root = self._write_root(site.root, digests, signer, old)
            if root is not None:
                self._write_copies([(one.listed.name, one.listed.version, one.document) for one in fresh])
                return self._report(rows, moved, root)
            time.sleep(min(0.01 * attempt, 0.5))  # another publisher was first
        raise BusyError(f"other publishers changed {self._store.address} {_MAX_TRIES} times meanwhile")

    def _report(self, rows: list[PublishedSkill], moved: list[tuple[str, str, str]], root: Root) -> PublishReport:
        uploads = tuple(dict.fromkeys(self._uploads))
        return PublishReport(self._store.address, tuple(rows), tuple(moved), root.serial, root.signer, uploads)

    def _refuse_signer(self, root: Root, signer: str) -> None:
        if not root.signer or root.signer == signer or self._options.replace_signer:
            return
        what = f"and this key is {signer}" if signer else "and no key was given"
        message = f"{self._store.address} is signed by {root.signer}, {what}: readers would refuse it"
        raise SourceError(message, self._store.address, "signer-needed")

    def _wants_new_root(self, root: Root, signer: str) -> bool:
        return bool(self._options.expires_days) or root.signer != signer or self._options.url not in {"", root.url}

    def _read_state(self, site: PublishedSite) -> _State:
        import json

        digest = site.root.files.get(ADVISORIES, "")
        advisories: list[dict[str, object]] = []
        if digest:
            found = self._store.read(blob_path(digest, "json"), self._limits.max_index_bytes)
            advisories = json.loads(found.data)["advisories"] if found is not None else []
        versions = {name: dict(rows) for name, rows in site.versions.items()}
        return _State(versions, {alias: dict(rows) for alias, rows in site.aliases.items()}, advisories, {})

    def _make_documents(self, state: _State, site: PublishedSite) -> dict[str, bytes]:
        newest = {name: version for name, rows in state.versions.items() if (version := find_newest(rows))}
        known = self._list_known(site)

        def listed(rows: Mapping[str, str]) -> list[ListedSkill]:
            return [self._find_listed(state, known, state.versions[name][rows[name]].document) for name in sorted(rows)]

        current = listed(newest)
        documents = {
            INDEX: write_index(current),
            VERSIONS: write_versions(state.versions),
            ALIASES: write_json({"aliases": state.aliases}),
            ADVISORIES: write_json({"advisories": state.advisories}),
            **{alias_file(alias): write_index(listed(rows)) for alias, rows in state.aliases.items()},
        }
        url = (self._options.url or site.root.url).rstrip("/")
        if url:
            name = PurePath(url).name.replace(".", "-").replace(":", "-")
            documents[MARKETPLACE] = write_marketplace(name, url, current)
        return documents

    def _list_known(self, site: PublishedSite) -> dict[str, ListedSkill]:
        """Return the entries that the newest list has, so that not each document of a version is read again."""
        digest = site.root.files.get(INDEX, "")
        found = self._store.read(blob_path(digest, "json"), self._limits.max_index_bytes) if digest else None
        if found is None:
            return {}
        rows = read_skills(found.data, self._store.address, self._limits.max_index_entries)
        return {sha256_hex(write_index([row])): row for row in rows}

    def _find_listed(self, state: _State, known: Mapping[str, ListedSkill], document: str) -> ListedSkill:
        listed = state.listed.get(document) or known.get(document)
        if listed is not None:
            return listed
        found = self._store.read(blob_path(document, "json"), self._limits.max_index_bytes)
        if found is None or sha256_hex(found.data) != document:
            message = f"{self._store.address} has lost the list {document[:12]} of a version"
            raise SourceError(message, self._store.address, "digest-mismatch")
        state.listed[document] = read_skills(found.data, self._store.address, 1)[0]
        return state.listed[document]

    def _upload(self, path: str, data: bytes) -> None:
        """Write what is named by its digest; what exists was sent before, perhaps by a run that did not end."""
        if self._store.create(path, data):
            self._uploads.append(path)

    def _write_root(self, before: Root, digests: Mapping[str, str], signer: str, old: StoredFile | None) -> Root | None:
        """Replace the root; return ``None`` when it is another by now."""
        now = round(time.time(), 3)
        expires = now + self._options.expires_days * _DAY_SECONDS if self._options.expires_days else before.expires
        url = (self._options.url or before.url).rstrip("/")
        root = Root(before.serial + 1, now, expires, signer, url, dict(digests))
        data = root.to_bytes()
        if signer:
            signature = sign_bytes(data, self._options.sign, SIGNATURE_PURPOSE)
            self._upload(blob_path(sha256_hex(data), "sig"), signature)
        return root if self._store.replace(ROOT_FILE, data, old) else None

    def _write_copies(self, written: Sequence[tuple[str, str, bytes]]) -> None:
        """Write the copies for other programs, of the newest root: another publisher may have replaced ours."""
        for name, version, document in written:
            self._store.write(f"{name}/{version}/{INDEX}", document)
        last = b""
        while True:
            found = self._store.read(ROOT_FILE, self._limits.max_index_bytes)
            if found is None or found.data == last:
                return
            last = found.data
            site = PublishedSite(StoreSite(self._store, self._limits, cached=False), self._limits)
            for name, digest in site.root.files.items():
                blob = self._store.read(blob_path(digest, "json"), self._limits.max_index_bytes)
                if blob is not None:
                    self._store.write(DISCOVERY_FILE if name == INDEX else name, blob.data)
            if site.root.signer:
                signature = self._store.read(blob_path(sha256_hex(last), "sig"), self._limits.max_index_bytes)
                if signature is not None:
                    self._store.write(SIGNATURE_FILE, signature.data)


def _find_moved(before: Aliases, after: Aliases) -> list[tuple[str, str, str]]:
    return [
        (alias, name, version)
        for alias, rows in sorted(after.items())
        for name, version in sorted(rows.items())
        if before.get(alias, {}).get(name) != version
    ]


def parse_target(text: str | os.PathLike[str]) -> SourceSpec:
    """Return the place that an address names.

    Raises ``SourceError`` for a place that can only be read, and ``BadReferenceError`` for a string that names none.
    """
    spec = parse_source(os.fspath(text), is_there=os.path.exists)
    is_writable = spec.local or not spec.address.startswith(("https://", "http://"))
    if spec.kind not in {"site", "folder", "oci"} or not is_writable or spec.ref or spec.skills or spec.subpath:
        wanted = "a folder (./site), s3://, gs:// or az://BUCKET/PREFIX, or oci://HOST/PREFIX, without a version"
        message = f"{show_address(os.fspath(text))} is not a place to publish to: name {wanted}"
        raise SourceError(message, code="bad-target")
    return spec


def open_target(spec: SourceSpec) -> SiteStore:
    """Return the store of a place that is a site."""
    path = os.path.abspath(os.path.expanduser(spec.address)) if spec.local else spec.address
    return open_store(path, local=spec.local)

"""Fetching: from the address of a source to its files, for repositories, folders, archives and sites."""

from __future__ import annotations

import os
import posixpath
import re
import time
from contextlib import ExitStack, contextmanager, suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from prowess.addresses.source_spec import VERSIONED_KINDS
from prowess.errors import (
    BadReferenceError,
    FetchError,
    InstallError,
    Issue,
    MissingPackageError,
    ResourceError,
    SkillError,
    SkillValidationError,
    UnsafeTreeError,
)
from prowess.fetch.cache import Cache
from prowess.fetch.git.repository import GitRemote, SharedFetches
from prowess.files.directory import exists, stat_folder
from prowess.files.read import OpenFile
from prowess.files.tree import read_tree
from prowess.files.write import NewFile
from prowess.install.entry_source import local_path, policy_address, spec_of_entry
from prowess.install.source_tree import SourceTree
from prowess.names import SKILL_FILE
from prowess.policy.files import current_policy, use_policy
from prowess.progress_steps import report_steps
from prowess.text.versions import has_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Self

    from prowess.addresses.source_spec import SourceSpec
    from prowess.fetch.git.process import GitRunner
    from prowess.fetch.git.repository import GitCommit
    from prowess.fetch.oci.pull import Repository
    from prowess.fetch.url_policy import UrlPolicy
    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntry
    from prowess.policy.rules import Policy
    from prowess.skills.catalog import Catalog
    from prowess.sources.published.documents import ListedSkill
    from prowess.sources.published.reader import PublishedSite, Selection


_ARCHIVE_HOSTS = frozenset(
    ("codeload.github.com", "objects.githubusercontent.com", "release-assets.githubusercontent.com")
)
"""The hosts to which GitHub redirects the addresses of its archives."""


STALE_CODES = frozenset(("rolled-back", "stale-index", "yanked"))
"""The codes of the issues that say that what a site gives is an earlier copy, or was withdrawn."""
BATCH_BYTES = 64 << 20
"""Bytes of trees that wait in memory to be put in place together: enough for thousands of skills."""


def select_stale_issues(issues: Iterable[Issue]) -> list[Issue]:
    """Those of the issues that say that a catalogue is not what its site has now."""
    return [issue for issue in issues if issue.code in STALE_CODES]


class Versions(Protocol):
    """A source that keeps its versions."""

    def resolve_ref(self, ref: str = "") -> str:
        """Return the commit or the digest that a version means now."""
        ...

    def list_tags(self) -> Mapping[str, str]:
        """Return the tags."""
        ...


class SourceAccess(NamedTuple):
    """How sources are reached: by which schemes, with which git, and within which limits."""

    schemes: Sequence[str]
    git: GitRunner | None
    limits: Limits
    allow_private: bool = False
    """True when archives and indexes may come from machines that are not public."""
    allow_rollback: bool = False
    """True when a source may go back behind what it gave before."""
    accepted_signer: str = ""
    """The key that the user accepts in place of the one that a lock file pins."""
    shared_fetches: SharedFetches | None = None
    """The fetches that one command over many entries shares; ``None`` when it fetches for each."""
    policy_folder: str = ""
    """The folder whose policy files count; ``""`` for the working folder."""
    when_dumb: Callable[[str], object] = str
    """Called with the address of each repository whose server gives plain files."""

    def for_entries(self, entries: Iterable[tuple[InstallScope, LockEntry]]) -> SourceAccess:
        """Return an access like this one for one command over many entries, which asks each repository once for all."""
        # Inside of ``asking_once`` the fetches are shared already: all commands must see one state of a repository.
        if self.shared_fetches is not None:
            return self
        shared = SharedFetches()
        for scope, entry in entries:
            if entry.kind != "git":
                continue
            with suppress(SkillError):  # an address that may not be asked is reported where it is asked
                needs = shared.needs_of(_repository_address(spec_of_entry(entry, scope)))
                inside = (posixpath.join(entry.subpath, folder) for folder in entry.skills.values())
                needs.folders.update(path.rstrip("/") for path in inside)
                needs.versions.add(entry.ref)
                needs.commits.add(entry.commit)
        return self._replace(shared_fetches=shared)

    def remote_for(self, spec: SourceSpec) -> GitRemote:
        """Return the git repository that a source names."""
        address = _repository_address(spec)
        # A repository on this machine is not cached: to ask it costs as much as to read the cache.
        cache = None if spec.local else Cache()
        return GitRemote(
            address,
            spec.local,
            self.schemes,
            self.git,
            self.limits,
            cache,
            self.shared_fetches,
            self.when_dumb,
            follow_redirects=not current_policy(self.policy_folder).judges_sources,
        )

    def repository_for(self, spec: SourceSpec) -> Repository:
        """Return the repository of an OCI registry that a source names."""
        from prowess.fetch.oci.pull import Repository
        from prowess.fetch.oci.registry import Registry

        asked = current_policy(self.policy_folder).mirror(spec.address)
        return Repository(Registry(asked, _url_policy(self), self.limits), Cache())

    def versions_of(self, spec: SourceSpec) -> Versions:
        """What says which versions a source has: a git repository, or a repository of an OCI registry."""
        return self.repository_for(spec) if spec.kind == "oci" else self.remote_for(spec)

    def check_policy(self, spec: SourceSpec) -> Policy:
        """Return the policy in force; raise ``PolicyError`` for a source, or a version of it, that it refuses."""
        policy = current_policy(self.policy_folder)
        address = policy_address(spec)
        policy.check_source(address)
        if spec.kind == "git":
            policy.check_ref(spec.ref, address, lambda: spec.ref in self.remote_for(spec).list_tags())
        elif spec.kind in VERSIONED_KINDS:  # a tag or alias without numbers, such as "latest", moves as a branch does
            policy.check_ref(spec.ref, address, lambda: has_numbers(spec.ref))
        return policy

    @contextmanager
    def open_source(self, spec: SourceSpec) -> Iterator[SourceTree]:
        """The files that a source has now. Temporary files that fetching needs are deleted at the end.

        Raises ``SkillError`` when the source cannot be reached or read.
        """
        policy = self.check_policy(spec)
        if spec.kind not in {"git", "index", "site"} and policy.find_rules("versions.signers"):
            from prowess.fetch.signers import check_signers

            check_signers(policy, None, spec.address)
        if spec.kind == "git":
            with self.remote_for(spec).open_commit(spec.ref) as commit:
                # A commit without a date that makes sense is as young as can be.
                policy.check_age(commit.date.timestamp() if commit.date else time.time(), spec.address)
                signer, issues = self._check_tag(spec, commit, policy)
                paths, contents = [entry.path for entry in commit.files], _CommitContents(commit, self.limits)
                yield SourceTree(
                    paths,
                    commit.unsupported,
                    contents,
                    commit=commit.id,
                    date=commit.date,
                    issues=issues,
                    signer=signer,
                )
        elif spec.kind == "folder":
            if not spec.local:
                raise BadReferenceError(f"a folder must be named as a path of this machine: {spec.address[:120]!a}")
            yield _read_folder(spec, self.limits)
        elif spec.kind == "oci":
            with _as_unsafe_tree():
                pulled = self.repository_for(spec).pull(spec.ref)
            yield SourceTree.in_memory(pulled.files, commit=pulled.digest)
        elif spec.kind == "site" or (spec.kind == "index" and spec.ref):
            yield _open_site(spec, self)
        else:
            with _name_token_variable(spec.address):
                source_files = _read_archive(spec, self) if spec.kind == "archive" else _fetch_site(spec, self)
            yield source_files

    def _check_tag(self, spec: SourceSpec, commit: GitCommit, policy: Policy) -> tuple[str, Sequence[Issue]]:
        """Return the key that signed the tag of a version, and a warning where nothing here can verify it.

        Raises ``FetchError`` for a signature that is not of this tag, and ``PolicyError`` where the policy names
        signers and none of them signed it.
        """
        from prowess.fetch.signers import check_signers, find_signed_tag  # tags are seldom signed

        searches = bool(policy.find_rules("versions.signers"))
        signed = find_signed_tag(self.remote_for(spec), spec.ref, commit, searches=searches)
        check_signers(policy, signed, f"{spec.address} at {spec.ref or 'its newest commit'}")
        if signed is None:
            return "", ()
        try:
            return signed.find_key(), ()
        except MissingPackageError as error:
            message = f"the signature of {spec.ref} cannot be verified here: {error.message}"
            return "", (Issue(error.code, "", message, spec.address, 0, "warning"),)


def _repository_address(spec: SourceSpec) -> str:
    """Return the address of a repository, or its path on this machine."""
    return local_path(spec) if spec.local else spec.address


@contextmanager
def _name_token_variable(address: str) -> Iterator[None]:
    """Add the name of the variable for the token to the error of a server that wants a login."""
    try:
        yield
    except FetchError as error:
        variable = token_variable(address)
        if error.code != "login-needed" or not variable:
            raise
        raise FetchError(f"{error.message}; the token for it goes into {variable}", error.path, error.code) from None


class _CommitContents:
    """The files of a commit, each fetched when it is read."""

    def __init__(self, commit: GitCommit, limits: Limits) -> None:
        self._commit, self._limits = commit, limits
        self._entries = {entry.path: entry for entry in commit.files}

    def prefetch(self, paths: Sequence[str]) -> None:
        self._commit.prefetch([self._entries[path] for path in paths])

    def read_files(self, paths: Sequence[str]) -> tuple[NewFile, ...]:
        return tuple(self._commit.read_files([self._entries[path] for path in paths], self._limits))

    def sizes_of(self, paths: Sequence[str]) -> list[int | None]:
        return [self._commit.objects.file_size(self._entries[path].object_id) for path in paths]


class LastOpenSource:
    """Opens sources and keeps the last one open, because many entries of a lock file have one source.

    A context manager: the source is closed at the end of the block.
    """

    def __init__(self, access: SourceAccess) -> None:
        self._access = access
        self._stack = ExitStack()
        self._open: tuple[tuple[object, ...], SourceTree] | None = None
        self._kept: tuple[str, Sequence[SourceTree]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def open_source(self, spec: SourceSpec) -> SourceTree:
        """Return the files that a source has now; the source that was open before is closed, unless it is this one."""
        key = self._key_of(spec)
        if self._open is None or self._open[0] != key:
            self._close()  # one source at a time: a repository that is open holds files and memory
            self._open = key, self._stack.enter_context(self._access.open_source(spec))
        return self._open[1]

    def list_kept_archives(self, spec: SourceSpec) -> Sequence[SourceTree]:
        """What the cache has of an archive at an address, those used last first; whether it is wanted, digests say.

        Raises ``FetchError`` for an address that may not be asked.
        """
        if spec.kind != "archive" or spec.local:
            return ()
        if self._kept is None or self._kept[0] != spec.address:
            self._kept = spec.address, _read_kept_archives(spec, self._access)
        return self._kept[1]

    @property
    def open_issues(self) -> Sequence[Issue]:
        """The issues of the source that is open now."""
        return () if self._open is None else self._open[1].issues

    def is_open_at(self, spec: SourceSpec, commit: str) -> bool:
        """Return whether this source is open now, at that commit."""
        return self._open is not None and self._open[0] == self._key_of(spec) and self._open[1].commit == commit

    @staticmethod
    def _key_of(spec: SourceSpec) -> tuple[object, ...]:
        # A source is opened as a whole: the wanted part of it, and the place that it goes to, do not matter.
        return (spec.kind, spec.address, spec.ref, spec.local, spec.base)

    def _close(self) -> None:
        self._open = None
        self._stack.close()


def _read_folder(spec: SourceSpec, limits: Limits) -> SourceTree:
    path = local_path(spec)
    if stat_folder(path) is None:
        what_is_there = "it is a file" if exists(path) else "nothing is there"
        raise InstallError(f"the source {spec.address!r} is not a directory: {what_is_there}", path, "not-a-directory")
    try:
        files, irregular = read_tree(path, limits)
    except ResourceError as error:
        raise UnsafeTreeError(f"cannot copy the folder: {error.message}", path, error.code) from None
    except OSError as error:
        raise InstallError(f"cannot read the folder: {error.strerror}", path, "unreadable-directory") from None
    return SourceTree.in_memory([NewFile(*file) for file in files], irregular)


def _read_archive(spec: SourceSpec, access: SourceAccess) -> SourceTree:
    data = _read_file(local_path(spec), access.limits) if spec.local else _download(spec.address, access)
    return _unpack_archive(data, spec, access)


def _read_kept_archives(spec: SourceSpec, access: SourceAccess) -> list[SourceTree]:
    from prowess.fetch.url_policy import check_scheme, is_loopback, may_be_private, parse_origin

    # The cache must not answer for what may not be asked.
    origin, allowed = parse_origin(spec.address), _url_policy(access, spec.address)
    check_scheme(origin, allowed)
    if is_loopback(origin.host) and not may_be_private(origin, allowed):
        return []
    found = []
    for data in Cache().read_archives(spec.address, access.limits.max_install_bytes):
        with suppress(SkillError):  # kept under other limits
            found.append(_unpack_archive(data, spec, access))
    return found


def _unpack_archive(data: bytes, spec: SourceSpec, access: SourceAccess) -> SourceTree:
    from prowess.fetch.archive.unpack import unpack_tree

    if data.lstrip(b"\xef\xbb\xbf \r\n").startswith(b"---"):  # the address gave a SKILL.md instead of an archive
        return SourceTree.in_memory([NewFile(SKILL_FILE, data)])
    with _as_unsafe_tree():
        return SourceTree.in_memory(unpack_tree(data, name=spec.address, limits=access.limits))


@contextmanager
def _as_unsafe_tree() -> Iterator[None]:
    """Raise what is wrong with an archive as the error of an install."""
    try:
        yield
    except SkillValidationError as error:
        raise UnsafeTreeError(error.message, error.path, error.code) from None


def _read_file(path: str, limits: Limits) -> bytes:
    folder, name = os.path.split(path)
    try:
        with OpenFile(folder, (name,)) as file:
            return file.read_all(limits.max_install_bytes)
    except ResourceError as error:
        if error.code == "not-found":  # the remedy of that code is about the files of a skill
            raise InstallError("there is no archive at this path", path, "missing-archive") from None
        raise InstallError(f"cannot read the archive: {error.message}", path, error.code) from None


def _download(address: str, access: SourceAccess) -> bytes:
    from prowess.fetch.client import Fetcher
    from prowess.fetch.url_policy import check_headers

    allowed = _url_policy(access, address)
    max_bytes = access.limits.max_install_bytes
    asked = current_policy().mirror(address)
    headers = check_headers(_token_headers(asked))
    answer = Fetcher(asked, allowed, access.limits, headers).get(asked, max_bytes, limit_name="max_install_bytes")
    if answer.status != HTTPStatus.OK:  # the one answer with a body
        raise InstallError(f"there is no archive: the server answered {answer.status}", address)
    if "no-store" not in answer.headers.get("cache-control", "").lower():
        Cache().write_archive(address, answer.body, access.limits)
    return answer.body


def _url_policy(access: SourceAccess, address: str = "") -> UrlPolicy:
    """Return what may be asked for a source; an empty address is for a registry, whose repository was checked."""
    from prowess.fetch.url_policy import UrlPolicy, parse_origin

    policy = current_policy(access.policy_folder)
    is_github = bool(address) and parse_origin(address).host == "github.com"

    def check(url: str) -> None:
        # Only GitHub itself leads to these hosts, with another path for the same archive.
        if not (is_github and parse_origin(url).host in _ARCHIVE_HOSTS):
            policy.check_source(url)

    # GitHub's archives are redirected to other hosts of GitHub; no other change of host is followed.
    return UrlPolicy(access.allow_private, "http" in access.schemes, _ARCHIVE_HOSTS, check if address else str)


def _fetch_site(spec: SourceSpec, access: SourceAccess) -> SourceTree:
    """Return the skills that a site publishes.

    When it has no index, the archive or the SKILL.md at the address itself.
    """
    try:
        return _fetch_index(spec, access)
    except FetchError as error:
        if error.code != "no-index":
            raise
        try:
            return _read_archive(spec, access)
        except (InstallError, FetchError):
            raise error from None  # a person who named a site wants to know what is wrong with its index


def _open_site(spec: SourceSpec, access: SourceAccess) -> SourceTree:
    """Return the skills of a published site at a version or an alias; archives are fetched when files are read."""
    from prowess.fetch.stores import open_store
    from prowess.sources.published.reader import read_plain_folder
    from prowess.sources.published.source import open_site

    address = local_path(spec) if spec.local else spec.address
    is_web = address.startswith(("https://", "http://"))
    with _name_token_variable(address):
        site = open_site(
            address,
            local=spec.local,
            allowed=_url_policy(access, address if is_web else ""),
            headers=_token_headers(address) if is_web else None,
            allow_rollback=access.allow_rollback,
            limits=access.limits,
        )
        if site.is_plain_store(spec.ref):
            return SourceTree.in_memory(read_plain_folder(open_store(address), access.limits)[1])
        return _make_site_tree(site, site.select(spec.ref, spec.skills))


def _make_site_tree(site: PublishedSite, selection: Selection) -> SourceTree:
    from prowess.sources.published.documents import list_offered

    files = _SiteContents(site, selection.skills)
    offered = {skill.name: list_offered(selection.versions.get(skill.name, {})) for skill in selection.skills}
    pin, issues, signer = selection.pin, selection.issues, site.root.signer
    return SourceTree(list(files.owners), (), files, commit=pin, issues=issues, versions=offered, signer=signer)


class _SiteContents:
    """The files of a published site by their paths; each archive is fetched when one of its files is read."""

    def __init__(self, site: PublishedSite, skills: Iterable[ListedSkill]) -> None:
        self._site = site
        self.owners = {f"{skill.name}/{path}": skill for skill in skills for path in skill.files}
        self._read: dict[str, dict[str, NewFile]] = {}

    def prefetch(self, paths: Sequence[str]) -> None:
        for path in paths:
            self._files_of(self.owners[path])

    def read_files(self, paths: Sequence[str]) -> tuple[NewFile, ...]:
        found = []
        for path in paths:
            inner = path.partition("/")[2]
            found.append(self._files_of(self.owners[path])[inner]._replace(path=path))
        return tuple(found)

    def sizes_of(self, paths: Sequence[str]) -> list[int | None]:
        return [self.owners[path].files[path.partition("/")[2]].size for path in paths]

    def _files_of(self, skill: ListedSkill) -> dict[str, NewFile]:
        if skill.name not in self._read:
            self._read[skill.name] = {file.path: file for file in self._site.read_files(skill)}
        return self._read[skill.name]


def _no_usable_skill_error(spec: SourceSpec, failures: Sequence[Issue]) -> InstallError:
    """Return the error for an index without a usable entry; it repeats the first reason."""
    message = f"{spec.address} publishes no skill that can be used"
    if not failures:
        return InstallError(message, "", "no-index")
    return InstallError(f"{message}: {failures[0].message}", failures[0].path, failures[0].code)


def load_site_catalog(spec: SourceSpec, access: SourceAccess) -> Catalog:
    """Return the catalogue of a site: its index is fetched, and no skill.

    Raises ``FetchError`` when it has no index.
    """
    from prowess.sources.source import Source

    options = _site_options(spec, access)
    source = Source.site(str(spec), **options) if spec.kind == "site" else Source.url(spec.address, **options)
    with use_policy(current_policy(access.policy_folder)):
        return source.load()


def _site_options(spec: SourceSpec, access: SourceAccess) -> dict[str, Any]:
    return {
        "allow_http": "http" in access.schemes,
        "allow_private": access.allow_private,
        "allow_rollback": access.allow_rollback,
        "headers": _token_headers(current_policy().mirror(spec.address)),
        "missing": "error",
        "limits": access.limits,
    }


def _fetch_index(spec: SourceSpec, access: SourceAccess) -> SourceTree:
    """Return all skills that the index of a site lists, each in a folder with its name."""
    from prowess.sources.source import Source

    source = Source.url(spec.address, **_site_options(spec, access))
    with use_policy(current_policy(access.policy_folder)):
        catalog = source.load()
    if source.published is not None:
        return _make_site_tree(source.published, source.published.select())
    max_bytes = access.limits.max_install_bytes
    files: list[NewFile] = []
    if not catalog:
        raise _no_usable_skill_error(spec, catalog.failures)
    for skill in report_steps(catalog.skills, lambda skill: skill.name):
        # A site has no file modes: a file that begins with "#!" is taken for an executable script.
        read = ((path, skill.read_bytes(path, max_bytes)) for path in skill.files())
        files += (NewFile(f"{skill.name}/{path}", content, content.startswith(b"#!")) for path, content in read)
    return SourceTree.in_memory(files, issues=(*catalog.failures, *select_stale_issues(catalog.issues)))


_HOST_VARIABLE_PREFIX = "PROWESS_TOKEN_"
_PLAIN_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")


def token_variable(address: str) -> str:
    """Return the name of the variable with the token for an address; ``""`` when no token may be sent there."""
    try:
        parts = urlsplit(address)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:  # it is not an address; the request itself reports that
        return ""
    # A token is never sent without encryption.
    if parts.scheme != "https" or _PLAIN_HOST.fullmatch(host) is None:
        return ""
    name = host.replace("-", "__").replace(".", "_").upper()
    return f"{_HOST_VARIABLE_PREFIX}{name}___{port}" if port else f"{_HOST_VARIABLE_PREFIX}{name}"


def _token_headers(address: str) -> dict[str, str]:
    """Return the header with the token for the server of an address; empty when the environment has no token for it."""
    variable = token_variable(address)
    token = os.environ.get(variable, "").strip() if variable else ""
    return {"Authorization": f"Bearer {token}"} if token else {}

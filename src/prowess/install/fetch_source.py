"""From where a source says it is to its files in memory: repositories, folders, archives, well-known addresses."""

from __future__ import annotations

import os
import posixpath
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import (
    BadReferenceError,
    FetchError,
    InstallError,
    ResourceError,
    SkillValidationError,
    UnsafeTreeError,
)
from prowess.fetch.cache import Cache
from prowess.fetch.git.repository import GitRemote, SharedFetches
from prowess.files.directory import stat_folder
from prowess.files.read import OpenFile
from prowess.files.tree import read_tree
from prowess.files.write import NewFile
from prowess.install.credentials import token_headers, token_variable
from prowess.install.entry_source import local_path
from prowess.names import SKILL_FILE
from prowess.progress_steps import report_steps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime
    from typing import Self

    from prowess.errors import Issue
    from prowess.fetch.git.process import GitRunner
    from prowess.fetch.git.repository import GitCommit
    from prowess.install.tree import SourceFiles
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntry
    from prowess.skills.catalog import Catalog
    from prowess.spec.source_spec import SourceSpec

_ARCHIVE_HOSTS = frozenset(
    ("codeload.github.com", "objects.githubusercontent.com", "release-assets.githubusercontent.com")
)
"""Where GitHub's own addresses of archives lead."""


STALE_CODES = frozenset(("rolled-back", "stale-index"))
"""What a site's catalogue says of itself and an install passes on: it is not what the site has now."""


BATCH_BYTES = 64 << 20
"""Bytes of trees that are in memory before they are put in place together: thousands of skills, and no more."""


class SourceAccess(NamedTuple):
    """How sources are reached: by which schemes, with which git, within which limits."""

    schemes: Sequence[str]
    git: GitRunner | None
    limits: Limits
    allow_private: bool = False
    """Whether archives and indexes may come from machines that are not public."""
    allow_rollback: bool = False
    """Whether a source may go back behind what was seen of it."""
    shared_fetches: SharedFetches | None = None
    """What one command over many entries shares."""

    def for_entries(self, entries: Iterable[LockEntry]) -> SourceAccess:
        """The same, for one command over many entries: each repository is asked once for all of them."""
        if self.shared_fetches is not None:  # inside of such a command already, which has seen one state of each
            return self
        folders: dict[str, list[str]] = {}
        for entry in entries:
            if entry.kind == "git":
                inside = (posixpath.join(entry.subpath, folder) for folder in entry.skills.values())
                folders.setdefault(entry.source, []).extend(path.rstrip("/") for path in inside)
        return self._replace(shared_fetches=SharedFetches(folders))

    def remote_for(self, spec: SourceSpec) -> GitRemote:
        """The repository that a source names."""
        address = local_path(spec) if spec.local else spec.address
        # A repository of this machine is not kept a second time: to ask it costs as much as to read the cache.
        cache = None if spec.local else Cache()
        return GitRemote(address, spec.local, self.schemes, self.git, self.limits, cache, self.shared_fetches)

    @contextmanager
    def open_source(self, spec: SourceSpec) -> Iterator[SourceFiles]:
        """What the source holds now; whatever had to be written for it is gone at the end."""
        if spec.kind == "git":
            with self.remote_for(spec).open_commit(spec.ref) as commit:
                yield _CommitFiles(commit, self.limits)
        elif spec.kind == "folder":
            if not spec.local:
                raise BadReferenceError(f"a folder must be named as a path of this machine: {spec.address[:120]!a}")
            yield _read_folder(spec, self.limits)
        else:
            with _name_token_variable(spec.address):
                bundle = _read_archive(spec, self) if spec.kind == "archive" else _fetch_published(spec, self)
            yield bundle


@contextmanager
def _name_token_variable(address: str) -> Iterator[None]:
    """Have an error that a server wants to know who asks say which variable its token goes into."""
    try:
        yield
    except FetchError as error:
        variable = token_variable(address)
        if error.code != "login-needed" or not variable:
            raise
        raise FetchError(f"{error.message}; the token for it goes into {variable}", error.path, error.code) from None


class _CommitFiles:
    """A commit's files."""

    def __init__(self, commit: GitCommit, limits: Limits) -> None:
        self._commit, self._limits = commit, limits
        self._entries = {entry.path: entry for entry in commit.files}
        self.paths = tuple(entry.path for entry in commit.files)
        self.irregular = commit.unsupported
        self.commit = commit.id
        self.date = commit.date
        self.issues: tuple[Issue, ...] = ()

    def prefetch(self, paths: Sequence[str]) -> None:
        self._commit.prefetch([self._entries[path] for path in paths])

    def read_files(self, paths: Sequence[str]) -> tuple[NewFile, ...]:
        return tuple(self._commit.read_files([self._entries[path] for path in paths], self._limits))

    def size_of(self, path: str) -> int | None:
        return self._commit.objects.file_size(self._entries[path].object_id)

    def has_file(self, path: str) -> bool:
        return path in self._entries


class InMemoryFiles:
    """Files that are in memory already."""

    def __init__(
        self, files: Sequence[NewFile], odd: Sequence[tuple[str, str]] = (), issues: Sequence[Issue] = ()
    ) -> None:
        self._files = {file.path: file for file in files}
        self.paths = tuple(file.path for file in files)
        self.irregular = tuple(odd)
        self.commit = ""
        self.date: datetime | None = None
        self.issues = tuple(issues)

    def prefetch(self, paths: Sequence[str]) -> None:
        """Nothing is left to be fetched."""

    def read_files(self, paths: Sequence[str]) -> tuple[NewFile, ...]:
        return tuple(self._files[path] for path in paths)

    def size_of(self, path: str) -> int:
        return len(self._files[path].content)

    def has_file(self, path: str) -> bool:
        return path in self._files


class LastOpenSource:
    """The source that was asked for last, kept open: many entries of a lock file have one source.

    To open it again for each of them would fetch or read all of it as often. It is to be closed at the end.
    """

    def __init__(self, reach: SourceAccess) -> None:
        self._access = reach
        self._stack = ExitStack()
        self._open: tuple[tuple[object, ...], SourceFiles] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def open_source(self, spec: SourceSpec) -> SourceFiles:
        """What a source holds now, as ``SourceAccess.open_source`` gives it.

        What was open before is closed, unless it is this source.
        """
        key = self._key_of(spec)
        if self._open is None or self._open[0] != key:
            self._close()
            self._open = key, self._stack.enter_context(self._access.open_source(spec))
        return self._open[1]

    def is_open_at(self, spec: SourceSpec, commit: str) -> bool:
        """Whether this very source is open now, at that commit."""
        return self._open is not None and self._open[0] == self._key_of(spec) and self._open[1].commit == commit

    @staticmethod
    def _key_of(spec: SourceSpec) -> tuple[object, ...]:
        # A source is opened whole, whichever part of it is wanted, and wherever that goes.
        return (spec.kind, spec.address, spec.ref, spec.local, spec.base)

    def _close(self) -> None:
        self._open = None
        self._stack.close()


def _read_folder(spec: SourceSpec, limits: Limits) -> InMemoryFiles:
    where = local_path(spec)
    if stat_folder(where) is None:
        raise InstallError(f"source path {spec.address!r} is not a directory", where, "not-a-directory")
    try:
        files, odd = read_tree(where, limits)
    except ResourceError as error:
        raise UnsafeTreeError(f"cannot copy the folder: {error.message}", where, error.code) from None
    except OSError as error:
        raise InstallError(f"cannot read the folder: {error.strerror}", where, "unreadable-directory") from None
    return InMemoryFiles([NewFile(*file) for file in files], odd)


def _read_archive(spec: SourceSpec, reach: SourceAccess) -> InMemoryFiles:
    from prowess.fetch.archive.unpack import unpack_tree  # noqa: PLC0415 - only for archives

    data = _read_file(local_path(spec), reach.limits) if spec.local else _download(spec.address, reach)
    if data.lstrip(b"\xef\xbb\xbf \r\n").startswith(b"---"):  # a SKILL.md by itself
        return InMemoryFiles([NewFile(SKILL_FILE, data)])
    try:
        return InMemoryFiles(unpack_tree(data, name=spec.address, limits=reach.limits))
    except SkillValidationError as error:
        raise UnsafeTreeError(error.message, error.path, error.code) from None


def _read_file(where: str, limits: Limits) -> bytes:
    folder, name = os.path.split(where)
    try:
        with OpenFile(folder, (name,)) as file:
            return file.read_all(limits.max_install_bytes)
    except ResourceError as error:
        raise InstallError(f"cannot read the archive: {error.message}", where, error.code) from None


def _download(address: str, reach: SourceAccess) -> bytes:
    from prowess.fetch.client import Fetcher  # noqa: PLC0415
    from prowess.fetch.url_policy import UrlPolicy, check_headers  # noqa: PLC0415 - only for what is fetched

    allowed = UrlPolicy(reach.allow_private, "http" in reach.schemes, _ARCHIVE_HOSTS)
    most = reach.limits.max_install_bytes
    headers = check_headers(token_headers(address))
    answer = Fetcher(address, allowed, reach.limits, headers).get(address, most, bound="max_install_bytes")
    if answer.status != 200:  # noqa: PLR2004 - the one answer with a body
        raise InstallError(f"there is no archive: the server answered {answer.status}", address)
    return answer.body


def _fetch_published(spec: SourceSpec, reach: SourceAccess) -> InMemoryFiles:
    """What a site publishes; or, where there is no index, what the address itself gives: an archive or a SKILL.md."""
    try:
        return _fetch_index(spec, reach)
    except FetchError as error:
        if error.code != "no-index":
            raise
        try:
            return _read_archive(spec, reach)
        except (InstallError, FetchError):
            raise error from None


def _no_usable_skill_error(spec: SourceSpec, why: Sequence[Issue]) -> InstallError:
    """What an index with no entry that can be used comes to: the reason that it gives, first of all."""
    said = f": {why[0].message}" if why else ""
    message = f"{spec.address} publishes no skill that can be used{said}"
    return InstallError(message, why[0].path if why else "", why[0].code if why else "no-index")


def load_site_catalog(spec: SourceSpec, reach: SourceAccess) -> Catalog:
    """What a site announces: its index is fetched, none of its skills. Raises ``FetchError`` where it has none."""
    from prowess.sources.source import Source  # noqa: PLC0415 - only for what is fetched

    source = Source.url(
        spec.address,
        allow_http="http" in reach.schemes,
        allow_private=reach.allow_private,
        allow_rollback=reach.allow_rollback,
        headers=token_headers(spec.address),
        missing="error",
        limits=reach.limits,
    )
    return source.load()


def _fetch_index(spec: SourceSpec, reach: SourceAccess) -> InMemoryFiles:
    """Every skill that a well-known index lists, each in a folder of its name.

    A site tells nothing of who may execute what; a script says so itself, by its first two characters.
    """
    most = reach.limits.max_install_bytes
    files: list[NewFile] = []
    catalog = load_site_catalog(spec, reach)
    if not catalog:
        raise _no_usable_skill_error(spec, catalog.failures)
    for skill in report_steps(catalog.skills, lambda skill: skill.name):
        read = ((path, skill.read_bytes(path, most)) for path in skill.files())
        files += (NewFile(f"{skill.name}/{path}", content, content.startswith(b"#!")) for path, content in read)
    old_news = (issue for issue in catalog.issues if issue.code in STALE_CODES)
    return InMemoryFiles(files, issues=(*catalog.failures, *old_news))

"""A remote git repository: which commit a version means, and the files of that commit in memory.

Where the server can leave files out, the commit and its folders are fetched first. One more request then fetches the
files that are needed (``GitCommit.prefetch``). A server that cannot leave files out sends everything at once. Where a
server does not give files by their ids, the whole commit is fetched after all. What came may be kept in a cache. The
next time only the version is asked for (``ls-remote``), and what is missing is fetched.
"""

from __future__ import annotations

import os
import re
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from prowess.addresses.skill_ref import check_version, is_commit, is_short_commit
from prowess.addresses.source_grammar import DEFAULT_SCHEMES, check_address, write_file_address
from prowess.errors import BadReferenceError, GitError, UnsafeTreeError
from prowess.fetch.git.objects import GitObjects, dump_objects, load_objects
from prowess.fetch.git.temporary_repository import HISTORY_DEPTHS, WITHOUT_BLOBS, TemporaryRepository
from prowess.files.directory import stat_folder
from prowess.files.write import NewFile
from prowess.limits import DEFAULT_LIMITS
from prowess.names import SKILL_FILE, select_below
from prowess.policy.files import current_policy
from prowess.text.versions import find_latest_in_range, is_range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from prowess.fetch.cache import Cache
    from prowess.fetch.git.objects import GitFile
    from prowess.fetch.git.process import GitRunner
    from prowess.limits import Limits

_REFUSAL_CODES = frozenset((GitError.code, "unknown-version"))
"""The codes with which git fails when a server, or an older git, does not know a way to ask.

Then the plain way, which every server knows, is tried.
"""
_SHA256_CHARS = 64
_TAG_NAME = re.compile(rb"^tag (.+)$", re.MULTILINE)
_ALGORITHM_MISMATCH = "mismatched algorithms"


class GitCommit(NamedTuple):
    """One commit: its id and date, its files (their bytes are read on demand), and the entries that are not files."""

    id: str
    date: datetime | None
    files: tuple[GitFile, ...]
    unsupported: tuple[tuple[str, str], ...]
    objects: GitObjects
    fetch: Callable[[Sequence[str]], None]
    """Called with the ids of objects to fetch; those that the server does not have stay missing."""
    tags: Mapping[str, bytes] = {}
    """The objects of the annotated tags that came with it, by name."""
    is_cached: bool = False
    """Whether it is from the cache, which can lack its tag."""

    def prefetch(self, entries: Sequence[GitFile]) -> None:
        """Fetch the bytes of files, by one request for all that are missing."""
        missing = [
            name for name in dict.fromkeys(entry.object_id for entry in entries) if self.objects.file_size(name) is None
        ]
        if missing:
            self.fetch(missing)

    def read_files(self, entries: Sequence[GitFile], limits: Limits) -> Iterator[NewFile]:
        """Yield some of the files with their bytes.

        Raises ``UnsafeTreeError`` before the first one when they have more bytes than an install may have.
        """
        self.prefetch(entries)
        left = limits.max_install_bytes
        # All sizes before the first bytes: nothing is handed out of a commit that is refused in the end.
        for entry in entries:
            size = self.objects.file_size(entry.object_id)
            if size is None:
                raise UnsafeTreeError(f"{entry.path} was not sent: it is too large", code="missing-blob")
            left -= size
            if left < 0:
                raise UnsafeTreeError(
                    f"the files have more than {limits.max_install_bytes} bytes together", code="too-many-bytes"
                )
        for entry in entries:
            yield NewFile(entry.path, self.objects.get_object(entry.object_id)[1], entry.executable)


@dataclass(slots=True)
class RepositoryNeeds:
    """What a command needs of one repository, for all of its skills."""

    folders: set[str] = field(default_factory=set)
    """The folders whose files are fetched together with any file of the repository."""
    versions: set[str] = field(default_factory=set)
    """The versions that are looked up together with any of them; ``""`` is the default branch."""
    commits: set[str] = field(default_factory=set)
    """The commits that are looked for in a history together with any of them."""


@dataclass(slots=True)
class SharedFetches:
    """What a command over many skills shares: what it needs of each repository, and what repositories answered.

    Each repository is asked once, so that all skills of a branch come from one commit.
    """

    needs: dict[str, RepositoryNeeds] = field(default_factory=dict)
    """By address."""
    commits: dict[tuple[str, str], str] = field(default_factory=dict)
    """By address and version: the id of the commit."""
    ancestors: dict[tuple[str, str, str], bool] = field(default_factory=dict)
    """By address and two commits: whether the second one is in the history of the first."""
    tags: dict[str, dict[str, str]] = field(default_factory=dict)
    """By address: the tags and their commits."""

    def needs_of(self, address: str) -> RepositoryNeeds:
        """Return what is needed of a repository."""
        return self.needs.setdefault(address, RepositoryNeeds())


class GitRemote(NamedTuple):
    """A repository, and how it may be reached."""

    address: str
    local: bool = False
    schemes: Sequence[str] = DEFAULT_SCHEMES
    git: GitRunner | None = None
    limits: Limits = DEFAULT_LIMITS
    cache: Cache | None = None
    """Where objects are kept for later; ``None`` keeps nothing."""
    shared: SharedFetches | None = None
    """What is shared with other repositories of one command; ``None`` shares nothing."""
    when_dumb: Callable[[str], object] = str
    """Called with the address when its server gives plain files, so that the whole history was fetched."""
    follow_redirects: bool = True
    """False where a policy says which addresses may be asked."""

    def check_address(self) -> str:
        """Return the address for git.

        Raises ``BadReferenceError`` for an address that may not be asked, ``GitError`` for a path that is not a folder.
        """
        if self.local:
            return _local_address(self.address)
        mirrored = current_policy().mirror(self.address)
        if mirrored != self.address and mirrored.startswith("file://"):
            return mirrored  # no address leads to this machine but by a policy that may
        return check_address(mirrored, tuple(self.schemes))

    @contextmanager
    def open_commit(self, ref: str = "") -> Iterator[GitCommit]:
        """Open the commit that ``ref`` means there now.

        That is a tag, a branch, a commit id, a range of tags, or ``""`` for the default branch.

        Raises ``GitError`` when there is no such version, or when it cannot be fetched.
        """
        version = self._choose_version(ref)
        with ExitStack() as stack:
            commit_fetch = _CommitFetch(self, stack)
            try:
                commit = commit_fetch.load_commit(version)
            except GitError as error:
                if error.code != "unknown-version" or is_commit(version):
                    raise
                if not is_short_commit(version):
                    raise self._make_version_error(version) from None
                version = self.expand_commit_id(version)
                commit = commit_fetch.load_commit(version)
            if self.shared is not None:
                self.shared.commits[self.address, version] = commit.id
            yield commit
            commit_fetch.write_cache(commit)  # at the end, when the files that were needed are here

    def resolve_ref(self, ref: str = "") -> str:
        """Return the id of the commit that ``ref`` means there now; no object is fetched.

        Raises ``GitError`` when there is no such version.
        """
        version = self._choose_version(ref)
        if is_commit(version):
            return version
        if self.shared is None:
            return self._query_commit(version)
        known = self.shared.commits
        if (self.address, version) not in known:
            known[self.address, version] = self._query_commit(version)
        return known[self.address, version]

    def _choose_version(self, ref: str) -> str:
        """Return the version that git is asked for: for a range of tags, the latest one in it."""
        if not is_range(ref):
            return check_version(ref) if ref else "HEAD"
        tags = self.list_tags()
        tag = find_latest_in_range(ref, tags)
        if not tag:
            latest = find_latest_in_range(">=0", tags)
            why = f"the latest one is {latest}" if latest else "it has no tag such as v1.2.0"
            raise GitError(f"{self.address} has no tag in the range {ref}: {why}", code="unknown-version")
        version = f"refs/tags/{tag}"
        if self.shared is not None:
            self.shared.commits.setdefault((self.address, version), tags[tag])
        return version

    def _query_commit(self, version: str) -> str:
        """Return the commit of a version; what else this command needs is asked for by the same request."""
        needed = self.shared.needs_of(self.address).versions if self.shared is not None else ()
        versions = dict.fromkeys((version, *filter(None, map(_ref_to_ask, sorted(needed)))))
        names = [name for one in versions for name in (one, f"{one}^{{}}")]
        with TemporaryRepository(self) as repository:
            printed = repository.run_online("ls-remote", "--quiet", "--", repository.address, *names).decode(
                "utf-8", "replace"
            )
        lines = (line.partition("\t") for line in printed.splitlines())
        refs = {name: commit for commit, tab, name in lines if tab}
        commits = {one: commit for one in versions if (commit := _find_ref(refs, one))}
        if self.shared is not None:
            for one, commit in commits.items():
                self.shared.commits.setdefault((self.address, one), commit)
        if version in commits:
            return commits[version]
        if is_short_commit(version):
            return self.expand_commit_id(version)
        raise self._make_version_error(version)

    def _make_version_error(self, version: str) -> GitError:
        return GitError(f"{self.address} has no tag, branch or commit {version!r}", code="unknown-version")

    def expand_commit_id(self, digits: str) -> str:
        """Return the id of the one commit, in the history of the branches and tags, that begins with these digits.

        No server can be asked for a commit by its first digits. So the history is fetched and searched, without files
        where the server can leave them out. Raises ``GitError``, which asks for all digits, when the history is larger
        than the limits allow, when no commit begins so, and when several do.
        """
        advice = f"give all 40 digits of the commit that begins with {digits}"
        with TemporaryRepository(self) as repository:
            try:
                repository.fetch_all_history()
            except GitError as error:
                raise GitError(f"{error.message}: {advice}", error.path, error.code) from None
            try:
                # "^{commit}" skips folders and files whose ids begin with these digits.
                return (
                    repository.run_offline("rev-parse", "--verify", "--quiet", f"{digits}^{{commit}}")
                    .decode("ascii")
                    .strip()
                )
            except GitError:
                raise GitError(
                    f"no commit of {self.address} begins with {digits}, or several do: {advice}", code="unknown-version"
                ) from None

    def has_ancestor(self, commit: str, ancestor: str) -> bool:
        """Return whether ``ancestor`` is ``commit`` or in its history; both are whole ids.

        Only the commits of the history are fetched, where the server can leave the files out. Raises ``GitError`` when
        it cannot be fetched within the limits.
        """
        if self.shared is None:
            return self._query_ancestors(commit, [ancestor])[ancestor]
        known = self.shared.ancestors
        if (self.address, commit, ancestor) not in known:
            # An id of the other kind of repository would be taken for the first digits of one.
            needed = sorted(one for one in self.shared.needs_of(self.address).commits if len(one) == len(commit))
            for one, is_ancestor in self._query_ancestors(commit, [ancestor, *needed]).items():
                known[self.address, commit, one] = is_ancestor
        return known[self.address, commit, ancestor]

    def _query_ancestors(self, commit: str, ancestors: Sequence[str]) -> dict[str, bool]:
        """Return whether the first of ``ancestors`` is in the history of a commit, and of the others what is known."""
        found: set[str] = set()
        with TemporaryRepository(self, sha256=len(commit) == _SHA256_CHARS) as repository:
            # Most updates are a few commits apart, so a short history is fetched first.
            for depth in HISTORY_DEPTHS:
                repository.fetch_history(commit, depth)
                found = repository.find_commits(ancestors)
                if not repository.is_shallow():
                    break
                if ancestors[0] in found:
                    return dict.fromkeys(found, True)
        return {one: one in found for one in ancestors}

    def read_tag(self, tag: str) -> bytes:
        """Fetch the object of an annotated tag; ``b""`` for a tag without one, and where there is no such tag."""
        for sha256 in (False, True):
            with TemporaryRepository(self, sha256=sha256) as repository:
                try:
                    repository.fetch(f"refs/tags/{tag}", WITHOUT_BLOBS)
                    return repository.run_offline("cat-file", "tag", repository.fetched)
                except GitError as error:
                    if error.code not in _REFUSAL_CODES:
                        raise
                    if _ALGORITHM_MISMATCH not in error.message:
                        return b""
        return b""

    def list_tags(self) -> Mapping[str, str]:
        """Return the tags that are there now, with the ids of their commits; no object is fetched."""
        if self.shared is None:
            return self._query_tags()
        if self.address not in self.shared.tags:
            self.shared.tags[self.address] = self._query_tags()
        return self.shared.tags[self.address]

    def _query_tags(self) -> dict[str, str]:
        with TemporaryRepository(self) as repository:
            printed = repository.run_online("ls-remote", "--quiet", "--tags", "--", repository.address).decode(
                "utf-8", "replace"
            )
        lines = (line.partition("\trefs/tags/") for line in printed.splitlines())
        # "^{}" is the commit behind an annotated tag, and follows the tag itself.
        return {tag.removesuffix("^{}"): commit for commit, mark, tag in lines if mark}


class _CommitFetch:
    """Gets one commit: out of the cache as far as it is in there, and else from the server."""

    def __init__(self, remote: GitRemote, stack: ExitStack) -> None:
        self._remote = remote
        self._stack = stack
        self._objects = GitObjects()
        self._repository: TemporaryRepository | None = None
        self._id = ""
        self._files: tuple[GitFile, ...] = ()

    def load_commit(self, version: str) -> GitCommit:
        """Return the commit that a version means, with its folders."""
        self._id = self._load_from_cache(version) or self._fetch_commit(version, WITHOUT_BLOBS)
        files, unsupported = self._objects.list_files(self._id, self._remote.limits)
        self._files = tuple(files)
        date = self._objects.commit_date(self._id)
        objects, is_cached = self._objects, self._repository is None
        tags = find_tags(objects.loaded)
        return GitCommit(self._id, date, self._files, tuple(unsupported), objects, self._fetch_files, tags, is_cached)

    def _load_from_cache(self, version: str) -> str:
        """Load the objects that the cache has of a commit, and return its id; ``""`` when the cache has none."""
        remote = self._remote
        if remote.cache is None or not remote.cache.has_repository(remote.address):
            return ""
        remote.check_address()  # the cache must not answer for an address that may not be asked
        try:
            commit = remote.resolve_ref(version)
            dumped = remote.cache.read_objects(remote.address, commit, remote.limits.max_fetch_bytes)
            self._objects = GitObjects(load_objects(dumped or b""))
            self._objects.list_files(commit, remote.limits)  # raises when a folder is missing in the cache
        except GitError as error:
            if error.code not in _REFUSAL_CODES:
                raise
            self._objects = GitObjects()
            return ""
        return commit

    def _fetch_commit(self, version: str, files: str) -> str:
        """Fetch the commit that a version means, and return its id.

        ``files`` is the option of git that says which of its files come along.
        """
        repository = self._stack.enter_context(TemporaryRepository(self._remote))
        try:
            repository.fetch(version, files)
        except GitError as error:
            if _ALGORITHM_MISMATCH not in error.message:
                raise
            # Only its answer shows by which hash a remote names objects, and a repository here has one kind alone.
            repository = self._stack.enter_context(TemporaryRepository(self._remote, sha256=True))
            repository.fetch(version, files)
        self._repository = repository
        self._objects.add_repository(repository.run_offline)
        return self._objects.find_commit(repository.fetched)

    def _find_missing(self) -> Iterator[str]:
        """Yield the ids of files that other skills of this command need, and that are not here yet."""
        shared = self._remote.shared
        folders = shared.needs_of(self._remote.address).folders if shared is not None else set[str]()
        for entry in select_below(self._files, folders, attrgetter("path")) if folders else ():
            if self._objects.file_size(entry.object_id) is None:
                yield entry.object_id

    def _fetch_files(self, names: Sequence[str]) -> None:
        names = list(dict.fromkeys((*names, *self._find_missing())))
        try:
            if self._repository is None:
                sha256 = len(self._id) == _SHA256_CHARS
                self._repository = self._stack.enter_context(TemporaryRepository(self._remote, sha256=sha256))
            self._repository.fetch_objects(names)
            self._objects.add_repository(self._repository.run_offline)
        except GitError as error:
            if error.code not in _REFUSAL_CODES:
                raise
            # This server gives no objects by their ids, or this git cannot ask for them: fetch the whole commit.
            self._fetch_commit(self._id, f"--filter=blob:limit={self._remote.limits.max_install_bytes}")

    def write_cache(self, commit: GitCommit) -> None:
        """Keep what was fetched in the cache: the commit, its folders and the files of its skills; no other files."""
        cache = self._remote.cache
        if cache is None or self._repository is None:
            return
        files = {entry.object_id for entry in select_skill_files(commit.files)}
        objects = {name: pair for name, pair in self._objects.loaded.items() if pair[0] != "blob" or name in files}
        limits = self._remote.limits
        if sum(len(data) for _, data in objects.values()) <= limits.max_install_bytes:
            cache.write_objects(self._remote.address, commit.id, dump_objects(objects), limits)


def find_tags(objects: Mapping[str, tuple[str, bytes]]) -> dict[str, bytes]:
    """Return the annotated tags among some objects, by name."""
    return {
        match[1].decode("utf-8", "replace"): data
        for kind, data in objects.values()
        if kind == "tag" and (match := _TAG_NAME.search(data.partition(b"\n\n")[0])) is not None
    }


def _ref_to_ask(ref: str) -> str:
    """Return a version as git is asked for it; ``""`` for a commit, and for what may not be asked."""
    with suppress(BadReferenceError):  # whoever needs that version reports what is wrong with it
        version = check_version(ref) if ref else "HEAD"
        return "" if is_commit(version) else version
    return ""


def _find_ref(refs: Mapping[str, str], version: str) -> str:
    """Return the commit of a version among the refs that a server listed; ``""`` when none has that name."""
    # Git itself looks a name up in this order. "^{}" is the commit behind an annotated tag.
    patterns = ("{}", "refs/{}", "refs/tags/{}^{{}}", "refs/tags/{}", "refs/heads/{}")
    return next((refs[name] for name in (pattern.format(version) for pattern in patterns) if name in refs), "")


def select_skill_files(files: Iterable[GitFile]) -> list[GitFile]:
    """Return the files in the folder of a SKILL.md, at any depth."""
    files = tuple(files)
    folders = {entry.path.rpartition("/")[0] for entry in files if entry.path.rpartition("/")[2] == SKILL_FILE}
    return select_below(files, folders, attrgetter("path"))


def _local_address(path: str) -> str:
    """Return the address of a repository on this machine that the caller named by its path."""
    folder = os.path.abspath(os.path.expanduser(path))
    if stat_folder(folder) is None:
        raise GitError(f"there is no repository at {folder}", folder, "no-repository")
    return write_file_address(folder)

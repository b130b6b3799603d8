"""A commit of a git repository, as files in memory: fetched alone, into a private place that is then removed.

First come the commit and its folders, without files, where the server can leave them out; then, in one request, the
files that are asked for (``GitCommit.prefetch``). Of a server that cannot leave files out everything comes at once, and
where one does not give files by their ids, the whole commit is fetched after all. What came may be kept in a cache;
then only the version is asked for (``ls-remote``), and what is missing.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Self
from urllib.parse import quote

from prowess.errors import GitError, UnsafeTreeError
from prowess.fetch.git.objects import GitObjects, dump_objects, load_objects
from prowess.fetch.git.process import GitProgram, make_environment, read_connection_settings
from prowess.files.directory import exists, stat_folder
from prowess.files.read import OpenFile
from prowess.files.temp import temporary_folder
from prowess.files.write import NewFile, write_tree
from prowess.limits import DEFAULT_LIMITS
from prowess.names import SKILL_FILE, is_below
from prowess.spec.skill_ref import check_version, is_commit, is_short_commit
from prowess.spec.source_spec import DEFAULT_SCHEMES, check_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from prowess.fetch.cache import Cache
    from prowess.fetch.git.objects import GitFile
    from prowess.fetch.git.process import GitRunner
    from prowess.limits import Limits

_EMPTY_REPOSITORY = (
    NewFile("HEAD", b"ref: refs/heads/none\n"),
    NewFile("objects/info/.keep", b""),
    NewFile("refs/heads/.keep", b""),
)
_CONFIG = "[core]\n\trepositoryformatversion = {version}\n\tbare = true\n{more}"
_SHA256_CHARS = 64
_SHA256_CONFIG = "[extensions]\n\tobjectFormat = sha256\n"
_FETCH_OPTIONS = (
    *("--quiet", "--no-tags", "--no-recurse-submodules", "--no-auto-maintenance"),
    *("--no-write-commit-graph", "--no-show-forced-updates"),
)
_WITHOUT_BLOBS = "--filter=blob:none"
_IDS_AT_ONCE = 20_000
"""How many ids one call of git names: they are arguments, of which Linux takes 2 MiB together."""
_REFUSAL_CODES = frozenset((GitError.code, "unknown-version"))
"""How git fails when a server, or an older git, does not know a way to ask; then the plain way is tried."""
_DEPTHS = (64, 2_147_483_647)
"""How much of a history is fetched: most updates are a few commits; the second number is git's own for all of it."""
_ALGORITHM_MISMATCH = "mismatched algorithms"


class GitCommit(NamedTuple):
    """What a version is: the commit's id and date, its files (their bytes read on demand), and what else it holds."""

    id: str
    date: datetime | None
    files: tuple[GitFile, ...]
    unsupported: tuple[tuple[str, str], ...]
    objects: GitObjects
    fetch: Callable[[Sequence[str]], None]
    """Fetches objects by their ids, as far as the server has them."""

    def prefetch(self, entries: Sequence[GitFile]) -> None:
        """Have the bytes of files here, by one request for all that are missing."""
        missing = [
            name for name in dict.fromkeys(entry.object_id for entry in entries) if self.objects.file_size(name) is None
        ]
        if missing:
            self.fetch(missing)

    def read_files(self, entries: Sequence[GitFile], limits: Limits) -> Iterator[NewFile]:
        """The bytes of some of its files, within the bounds of an install, which are looked at first."""
        self.prefetch(entries)
        left = limits.max_install_bytes
        for entry in entries:
            size = self.objects.file_size(entry.object_id)
            if size is None:
                raise UnsafeTreeError(f"{entry.path} was not sent: it is too large", code="missing-blob")
            left -= size
            if left < 0:
                message = f"the files have more than {limits.max_install_bytes} bytes together"
                raise UnsafeTreeError(message, code="too-many-bytes")
        for entry in entries:
            yield NewFile(entry.path, self.objects.read_blob(entry.object_id), entry.executable)


@dataclass(slots=True)
class SharedFetches:
    """What one command over many skills shares: what repositories answered, and which folders of them are wanted.

    Each repository is asked once, so that all skills of a branch come from one commit, and together.
    """

    folders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By address: once a file of a repository is fetched, the files in these folders come along."""
    commits: dict[tuple[str, str], str] = field(default_factory=dict)
    """By address and version: the commit that it means."""
    ancestors: dict[tuple[str, str, str], bool] = field(default_factory=dict)
    """By address and two commits: whether the second is in the history of the first."""


class GitRemote(NamedTuple):
    """A repository, and how it may be reached."""

    address: str
    local: bool = False
    schemes: Sequence[str] = DEFAULT_SCHEMES
    git: GitRunner | None = None
    limits: Limits = DEFAULT_LIMITS
    cache: Cache | None = None
    """Where objects are kept for later; ``None``: nowhere."""
    shared: SharedFetches | None = None
    """What is shared with other repositories of one command; ``None``: nothing."""

    def check_address(self) -> str:
        """The address for git.

        Raises ``BadReferenceError`` for one that may not be asked, ``GitError`` for a path that is no folder.
        """
        return _local_address(self.address) if self.local else check_address(self.address, tuple(self.schemes))

    @contextmanager
    def open_commit(self, ref: str = "") -> Iterator[GitCommit]:
        """The commit that ``ref`` (a tag, a branch, a commit id; else the default branch) means there now."""
        version = check_version(ref) if ref else "HEAD"
        with ExitStack() as stack:
            fetching = _CommitFetch(self, stack)
            try:
                commit = fetching.load_commit(version)
            except GitError as error:
                if error.code != "unknown-version" or is_commit(version):
                    raise
                if not is_short_commit(version):
                    raise self._make_version_error(version) from None
                version = self.expand_commit_id(version)
                commit = fetching.load_commit(version)
            if self.shared is not None:
                self.shared.commits[self.address, version] = commit.id
            yield commit
            fetching.write_cache(commit)

    def resolve_ref(self, ref: str = "") -> str:
        """The id of the commit that ``ref`` means there now; nothing is fetched."""
        version = check_version(ref) if ref else "HEAD"
        if is_commit(version):
            return version
        if self.shared is None:
            return self._query_commit(version)
        key = (self.address, version)
        if key not in self.shared.commits:
            self.shared.commits[key] = self._query_commit(version)
        return self.shared.commits[key]

    def _query_commit(self, version: str) -> str:
        with _TemporaryRepository(self, "") as at:
            names = (version, f"{version}^{{}}")
            printed = at.run_online("ls-remote", "--quiet", "--", at.address, *names).decode("utf-8", "replace")
        rows = (row.partition("\t") for row in printed.splitlines())
        found = {name: commit for commit, tab, name in rows if tab}
        for pattern in ("{}", "refs/{}", "refs/tags/{}^{{}}", "refs/tags/{}", "refs/heads/{}"):
            name = pattern.format(version)
            if name in found:
                return found[name]
        if is_short_commit(version):
            return self.expand_commit_id(version)
        raise self._make_version_error(version)

    def _make_version_error(self, version: str) -> GitError:
        return GitError(f"{self.address} has no tag, branch or commit {version!r}", code="unknown-version")

    def expand_commit_id(self, digits: str) -> str:
        """The id of the one commit, in the history of the branches and tags, that begins with these digits.

        No server can be asked for a commit by its first digits, so that its history is fetched and looked through,
        without files where the server can leave them out. ``GitError`` says to give all digits where that is more than
        the limits allow, where no commit begins so, and where several do.
        """
        advice = f"give all 40 digits of the commit that begins with {digits}"
        with _TemporaryRepository(self, "") as at:
            try:
                at.fetch_all_history()
            except GitError as error:
                raise GitError(f"{error.message}: {advice}", error.path, error.code) from None
            try:
                # "^{commit}" passes over trees and files whose ids begin alike.
                return (
                    at.run_offline("rev-parse", "--verify", "--quiet", f"{digits}^{{commit}}").decode("ascii").strip()
                )
            except GitError:
                message = f"no commit of {self.address} begins with {digits}, or several do: {advice}"
                raise GitError(message, code="unknown-version") from None

    def has_ancestor(self, commit: str, ancestor: str) -> bool:
        """Whether ``ancestor`` is ``commit`` or in its history, both being whole ids.

        Of the history only the commits are fetched, where the server can leave the files out; ``GitError`` when it
        cannot be had within the limits.
        """
        if self.shared is None:
            return self._query_ancestor(commit, ancestor)
        key = (self.address, commit, ancestor)
        if key not in self.shared.ancestors:
            self.shared.ancestors[key] = self._query_ancestor(commit, ancestor)
        return self.shared.ancestors[key]

    def _query_ancestor(self, commit: str, ancestor: str) -> bool:
        with _TemporaryRepository(self, _SHA256_CONFIG if len(commit) == _SHA256_CHARS else "") as at:
            for depth in _DEPTHS:
                at.fetch_history(commit, depth)
                if at.has_commit(ancestor):
                    return True
                if not at.is_shallow():
                    return False
        return False

    def list_tags(self) -> list[str]:
        """The tags that are there now; nothing is fetched."""
        with _TemporaryRepository(self, "") as at:
            printed = at.run_online("ls-remote", "--quiet", "--tags", "--refs", "--", at.address).decode(
                "utf-8", "replace"
            )
        return [row.partition("\trefs/tags/")[2] for row in printed.splitlines() if "\trefs/tags/" in row]


class _CommitFetch:
    """One commit on its way here: out of the cache as far as it is there, else from the server."""

    def __init__(self, remote: GitRemote, stack: ExitStack) -> None:
        self._remote = remote
        self._stack = stack
        self._objects = GitObjects()
        self._at: _TemporaryRepository | None = None
        self._id = ""
        self._files: tuple[GitFile, ...] = ()

    def load_commit(self, version: str) -> GitCommit:
        """The commit that a version means, with its folders."""
        self._id = self._find_cached(version) or self._fetch_commit(version, _WITHOUT_BLOBS)
        files, odd = self._objects.list_files(self._id, self._remote.limits)
        self._files = tuple(files)
        date = self._objects.commit_date(self._id)
        return GitCommit(self._id, date, self._files, tuple(odd), self._objects, self._fetch_files)

    def _find_cached(self, version: str) -> str:
        """The id of the commit, once what the cache has of it is taken in; ``""`` when it has nothing of it."""
        remote = self._remote
        if remote.cache is None or not remote.cache.has_repository(remote.address):
            return ""
        remote.check_address()  # what may not be asked is refused, whatever is kept of it
        try:
            commit = remote.resolve_ref(version)
            dumped = remote.cache.read_objects(remote.address, commit, remote.limits.max_fetch_bytes)
            self._objects = GitObjects(load_objects(dumped or b""))
            self._objects.list_files(commit, remote.limits)
        except GitError as error:
            if error.code not in _REFUSAL_CODES:
                raise
            self._objects = GitObjects()
            return ""
        return commit

    def _fetch_commit(self, version: str, files: str) -> str:
        """Fetch the commit that a version means; its id. ``files``: git's option that says which of them come along."""
        at = self._stack.enter_context(_TemporaryRepository(self._remote, ""))
        try:
            at.fetch(version, files)
        except GitError as error:
            if _ALGORITHM_MISMATCH not in error.message:
                raise
            at = self._stack.enter_context(_TemporaryRepository(self._remote, _SHA256_CONFIG))
            at.fetch(version, files)
        self._at = at
        self._objects.add_repository(at.run_offline)
        return self._objects.find_commit(at.fetched)

    def _find_missing(self) -> Iterator[str]:
        """The ids of the files that other skills of this command need, and that are not here yet."""
        shared = self._remote.shared
        folders = frozenset(shared.folders.get(self._remote.address, ()) if shared is not None else ())
        for entry in self._files if folders else ():
            if is_below(entry.path, folders) and self._objects.file_size(entry.object_id) is None:
                yield entry.object_id

    def _fetch_files(self, names: Sequence[str]) -> None:
        names = list(dict.fromkeys((*names, *self._find_missing())))
        try:
            if self._at is None:
                longer = len(self._id) == _SHA256_CHARS
                self._at = self._stack.enter_context(
                    _TemporaryRepository(self._remote, _SHA256_CONFIG if longer else "")
                )
            self._at.fetch_objects(names)
            self._objects.add_repository(self._at.run_offline)
        except GitError as error:
            if error.code not in _REFUSAL_CODES:
                raise
            # This server gives no objects by their ids, or this git cannot ask so: the whole commit, then.
            most = self._remote.limits.max_install_bytes
            self._fetch_commit(self._id, f"--filter=blob:limit={most}")

    def write_cache(self, commit: GitCommit) -> None:
        """Keep what came in the cache: the commit, its folders, and the files of its skills, but no other files."""
        cache = self._remote.cache
        if cache is None or self._at is None:
            return
        files = {entry.object_id for entry in select_skill_files(commit.files)}
        here = self._objects.loaded_objects().items()
        objects = {name: pair for name, pair in here if pair[0] != "blob" or name in files}
        limits = self._remote.limits
        if sum(len(data) for _, data in objects.values()) <= limits.max_install_bytes:
            cache.write_objects(self._remote.address, commit.id, dump_objects(objects), limits.max_kept_commits)


def select_skill_files(files: Iterable[GitFile]) -> list[GitFile]:
    """The files that lie in the folder of a SKILL.md, at any depth."""
    files = tuple(files)
    folders = {entry.path.rpartition("/")[0] for entry in files if entry.path.rpartition("/")[2] == SKILL_FILE}
    return [entry for entry in files if is_below(entry.path, folders)]


class _TemporaryRepository:
    """An empty repository of our own, and git running in it; removed at the end, whatever happens."""

    def __init__(self, remote: GitRemote, more: str) -> None:
        self._remote = remote
        self._more = more
        self.folder = ""
        self.schemes: Sequence[str] = ()
        self.address = ""
        self.fetched = ""
        self._connection_settings: Mapping[str, str] = {}
        self._held = ExitStack()

    def __enter__(self) -> Self:
        remote = self._remote
        self.schemes = ("file",) if remote.local else tuple(remote.schemes)
        self.address = remote.check_address()
        with ExitStack() as stack:
            self.folder = stack.enter_context(temporary_folder())
            config = _CONFIG.format(version=1 if self._more else 0, more=self._more)
            write_tree(self.folder, (*_EMPTY_REPOSITORY, NewFile("config", config.encode())))
            if self.address.startswith("https://"):
                self._connection_settings = read_connection_settings(
                    remote.git or GitProgram(remote.limits), self.folder
                )
            self._held = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def fetch(self, version: str, files: str) -> None:
        """Bring one commit here. ``files``: git's option that says which of its files come along."""
        self.run_online("fetch", *_FETCH_OPTIONS, "--depth=1", files, "--", self.address, version)
        with OpenFile(self.folder, ("FETCH_HEAD",)) as file:
            self.fetched = file.read(4096).split(b"\t")[0].decode("ascii", "replace").strip()

    def fetch_objects(self, names: Sequence[str]) -> None:
        """Bring objects here by their ids; nothing is negotiated, since no reference here says what there is."""
        for begin in range(0, len(names), _IDS_AT_ONCE):
            part = names[begin : begin + _IDS_AT_ONCE]
            self.run_online("fetch", *_FETCH_OPTIONS, _WITHOUT_BLOBS, "--", self.address, *part)

    def fetch_history(self, commit: str, depth: int) -> None:
        """Bring so many generations of commits here, without their files where the server can leave them out."""
        self.run_online("fetch", *_FETCH_OPTIONS, f"--depth={depth}", "--filter=tree:0", "--", self.address, commit)

    def fetch_all_history(self) -> None:
        """Bring the commits of every branch and tag here, without their files where the server can leave them out."""
        refs = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
        self.run_online(
            "fetch", *_FETCH_OPTIONS, f"--depth={_DEPTHS[-1]}", "--filter=tree:0", "--", self.address, *refs
        )

    def has_commit(self, commit: str) -> bool:
        """Whether a commit is here; after ``fetch_history`` nothing is but that history."""
        try:
            self.run_offline("cat-file", "-e", f"{commit}^{{commit}}")
        except GitError as error:
            if error.code != GitError.code:
                raise
            return False
        return True

    def is_shallow(self) -> bool:
        """Whether the history that is here ends before its beginning."""
        return exists(os.path.join(self.folder, "shallow"))

    def run_offline(self, *args: str, printed: int | None = None) -> bytes:
        """What git printed, at most so much; it reaches no server.

        Of a partial fetch git would fetch whatever is missing by itself, one object at a time. Git 2.44 has a variable
        against that; for those before it, no way to reach a server is allowed.
        """
        return self._run_git((), args, printed)

    def run_online(self, *args: str) -> bytes:
        """What git printed; it may reach the server."""
        return self._run_git(self.schemes, args, None)

    def _run_git(self, schemes: Sequence[str], args: Sequence[str], printed: int | None) -> bytes:
        limits = self._remote.limits
        slow = {"http.lowSpeedLimit": "1", "http.lowSpeedTime": str(max(1, int(limits.max_idle_seconds)))}
        env = make_environment(schemes, {**slow, **self._connection_settings}) | {"GIT_DIR": self.folder}
        return (self._remote.git or GitProgram(limits, printed=printed))(args, self.folder, env)


def _local_address(path: str) -> str:
    """The address of a repository on this machine that the caller named by its path."""
    where = os.path.abspath(os.path.expanduser(path))
    if stat_folder(where) is None:
        raise GitError(f"there is no repository at {where}", where, "no-repository")
    return f"file://{quote(where)}"

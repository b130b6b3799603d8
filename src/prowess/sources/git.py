"""A commit of a git repository, as files in memory: fetched alone, into a private place that is then removed."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple, Self
from urllib.parse import quote

from prowess.errors import GitError, UnsafeTreeError
from prowess.files.folders import exists, folder_info
from prowess.files.reading import OpenFile
from prowess.files.temporary import temporary_folder
from prowess.files.writing import NewFile, write_tree
from prowess.limits import DEFAULT_LIMITS
from prowess.sources.git_objects import Objects
from prowess.sources.git_program import GitProgram, environment, settings_for_reaching
from prowess.spec.addresses import SCHEMES, checked_address
from prowess.spec.refs import checked_version, is_commit, is_short_commit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from prowess.limits import Limits
    from prowess.sources.git_objects import Entry
    from prowess.sources.git_program import Git

_SKELETON = (
    NewFile("HEAD", b"ref: refs/heads/none\n"),
    NewFile("objects/info/.keep", b""),
    NewFile("refs/heads/.keep", b""),
)
_CONFIG = "[core]\n\trepositoryformatversion = {version}\n\tbare = true\n{more}"
_SHA256_CHARS = 64
_SHA256 = "[extensions]\n\tobjectFormat = sha256\n"
_FETCH = (
    *("--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-auto-maintenance"),
    *("--no-write-commit-graph", "--no-show-forced-updates"),
)
_DEPTHS = (64, 2_147_483_647)
"""How much of a history is fetched: most updates are a few commits; the second number is git's own for all of it."""
_OTHER_IDS = "mismatched algorithms"


class Commit(NamedTuple):
    """What a version is: the commit's id, its files (their bytes read on demand), and what else it holds."""

    id: str
    files: tuple[Entry, ...]
    odd: tuple[tuple[str, str], ...]
    objects: Objects

    def read(self, entries: Sequence[Entry], limits: Limits) -> Iterator[NewFile]:
        """The bytes of some of its files, within the bounds of an install, which are looked at first."""
        left = limits.max_install_bytes
        for entry in entries:
            size = self.objects.size(entry.object)
            if size is None:
                raise UnsafeTreeError(f"{entry.path} was not sent: it is too large", code="missing-blob")
            left -= size
            if left < 0:
                message = f"the files have more than {limits.max_install_bytes} bytes together"
                raise UnsafeTreeError(message, code="too-many-bytes")
        for entry in entries:
            yield NewFile(entry.path, self.objects.blob(entry.object), entry.executable)


class Remote(NamedTuple):
    """A repository, and how it may be reached."""

    address: str
    local: bool = False
    schemes: Sequence[str] = SCHEMES
    git: Git | None = None
    limits: Limits = DEFAULT_LIMITS

    @contextmanager
    def fetched(self, ref: str = "") -> Iterator[Commit]:
        """The commit that ``ref`` (a tag, a branch, a commit id; else the default branch) means there now."""
        version = checked_version(ref) if ref else "HEAD"
        with ExitStack() as stack:
            try:
                commit = self._fetch(version, stack)
            except GitError as error:
                if error.code != "unknown-version" or not is_short_commit(version):
                    raise
                commit = self._fetch(self.whole_commit(version), stack)
            yield commit

    def _fetch(self, version: str, stack: ExitStack) -> Commit:
        at = stack.enter_context(_Workplace(self, ""))
        try:
            at.fetch(version)
        except GitError as error:
            if _OTHER_IDS not in error.message:
                raise
            at = stack.enter_context(_Workplace(self, _SHA256))
            at.fetch(version)
        objects = Objects(at.run)
        commit = objects.commit(at.fetched)
        files, odd = objects.listing(commit, self.limits)
        return Commit(commit, tuple(files), tuple(odd), objects)

    def newest(self, ref: str = "") -> str:
        """The id of the commit that ``ref`` means there now; nothing is fetched."""
        version = checked_version(ref) if ref else "HEAD"
        if is_commit(version):
            return version
        with _Workplace(self, "") as at:
            names = (version, f"{version}^{{}}")
            printed = at.run("ls-remote", "--quiet", "--", at.address, *names).decode("utf-8", "replace")
        rows = (row.partition("\t") for row in printed.splitlines())
        found = {name: commit for commit, tab, name in rows if tab}
        for pattern in ("{}", "refs/tags/{}^{{}}", "refs/tags/{}", "refs/heads/{}"):
            name = pattern.format(version)
            if name in found:
                return found[name]
        if is_short_commit(version):
            return self.whole_commit(version)
        raise GitError(f"{self.address} has no version {version!r}", code="unknown-version")

    def whole_commit(self, digits: str) -> str:
        """The id of the one commit, in the history of the branches and tags, that begins with these digits.

        No server can be asked for a commit by its first digits, so that its history is fetched and looked through,
        without files where the server can leave them out. ``GitError`` says to give all digits where that is more than
        the limits allow, where no commit begins so, and where several do.
        """
        advice = f"give all 40 digits of the commit that begins with {digits}"
        with _Workplace(self, "") as at:
            try:
                at.fetch_all_history()
            except GitError as error:
                raise GitError(f"{error.message}: {advice}", error.path, error.code) from None
            try:
                # "^{commit}" passes over trees and files whose ids begin alike.
                return at.run("rev-parse", "--verify", "--quiet", f"{digits}^{{commit}}").decode("ascii").strip()
            except GitError:
                message = f"no commit of {self.address} begins with {digits}, or several do: {advice}"
                raise GitError(message, code="unknown-version") from None

    def has_ancestor(self, commit: str, ancestor: str) -> bool:
        """Whether ``ancestor`` is ``commit`` or in its history, both being whole ids.

        Of the history only the commits are fetched, where the server can leave the files out; ``GitError`` when it
        cannot be had within the limits.
        """
        with _Workplace(self, _SHA256 if len(commit) == _SHA256_CHARS else "") as at:
            for depth in _DEPTHS:
                at.fetch_history(commit, depth)
                if at.has_commit(ancestor):
                    return True
                if not at.is_shallow():
                    return False
        return False

    def tags(self) -> list[str]:
        """The tags that are there now; nothing is fetched."""
        with _Workplace(self, "") as at:
            printed = at.run("ls-remote", "--quiet", "--tags", "--refs", "--", at.address).decode("utf-8", "replace")
        return [row.partition("\trefs/tags/")[2] for row in printed.splitlines() if "\trefs/tags/" in row]


class _Workplace:
    """An empty repository of our own, and git running in it; removed at the end, whatever happens."""

    def __init__(self, remote: Remote, more: str) -> None:
        self._remote = remote
        self._more = more
        self.folder = ""
        self.schemes: Sequence[str] = ()
        self.address = ""
        self.fetched = ""
        self._reaching: Mapping[str, str] = {}
        self._held = ExitStack()

    def __enter__(self) -> Self:
        remote = self._remote
        self.schemes = ("file",) if remote.local else tuple(remote.schemes)
        self.address = _local(remote.address) if remote.local else checked_address(remote.address, tuple(self.schemes))
        with ExitStack() as stack:
            self.folder = stack.enter_context(temporary_folder())
            config = _CONFIG.format(version=1 if self._more else 0, more=self._more)
            write_tree(self.folder, (*_SKELETON, NewFile("config", config.encode())))
            if self.address.startswith("https://"):
                self._reaching = settings_for_reaching(remote.git or GitProgram(remote.limits), self.folder)
            self._held = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def fetch(self, version: str) -> None:
        """Bring one commit here; from then on nothing is fetched any more, not even what turns out to be missing."""
        blobs = f"--filter=blob:limit={self._remote.limits.max_install_bytes}"
        self.run("fetch", *_FETCH, blobs, "--", self.address, version)
        self.schemes = ()
        with OpenFile(self.folder, ("FETCH_HEAD",)) as file:
            self.fetched = file.read(4096).split(b"\t")[0].decode("ascii", "replace").strip()

    def fetch_history(self, commit: str, depth: int) -> None:
        """Bring so many generations of commits here, without their files where the server can leave them out."""
        self.run("fetch", *_FETCH, f"--depth={depth}", "--filter=tree:0", "--", self.address, commit)

    def fetch_all_history(self) -> None:
        """Bring the commits of every branch and tag here, without their files where the server can leave them out."""
        refs = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
        self.run("fetch", *_FETCH, f"--depth={_DEPTHS[-1]}", "--filter=tree:0", "--", self.address, *refs)

    def has_commit(self, commit: str) -> bool:
        """Whether a commit is here; after ``fetch_history`` nothing is but that history."""
        try:
            self.run("cat-file", "-e", f"{commit}^{{commit}}")
        except GitError as error:
            if error.code != GitError.code:
                raise
            return False
        return True

    def is_shallow(self) -> bool:
        """Whether the history that is here ends before its beginning."""
        return exists(os.path.join(self.folder, "shallow"))

    def run(self, *args: str, printed: int | None = None) -> bytes:
        """What git printed, at most so much."""
        limits = self._remote.limits
        slow = {"http.lowSpeedLimit": "1", "http.lowSpeedTime": str(max(1, int(limits.max_idle_seconds)))}
        env = environment(self.schemes, {**slow, **self._reaching}) | {"GIT_DIR": self.folder}
        return (self._remote.git or GitProgram(limits, printed=printed))(args, self.folder, env)


def _local(path: str) -> str:
    """The address of a repository on this machine that the caller named by its path."""
    where = os.path.abspath(os.path.expanduser(path))
    if folder_info(where) is None:
        raise GitError(f"there is no repository at {where}", where, "no-repository")
    return f"file://{quote(where)}"

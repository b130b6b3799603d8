"""A source that was fetched: its files, whatever kind of source it is. Their bytes are read when they are needed."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple, Protocol

from prowess.errors import UnsafeTreeError
from prowess.files.tree import EXTRA_DEPTH
from prowess.names import find_collision, find_git_repository, find_unsafe_paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime
    from typing import Self

    from prowess.errors import Issue
    from prowess.files.write import NewFile
    from prowess.install.source_survey import SourceSurvey
    from prowess.limits import Limits


_INCOMPLETE_CODES = frozenset(("unreadable-directory", "too-many-files", "too-deep"))
"""The codes that say that a listing is not whole. Nothing of such a source is installed: a skill may lack files."""


class Contents(Protocol):
    """What gives the bytes of a source's files, by their paths. A kind of source differs from the others in this."""

    def prefetch(self, paths: Sequence[str]) -> None:
        """Fetch those of the files that are not here yet, by one request."""
        ...

    def read_files(self, paths: Sequence[str]) -> tuple[NewFile, ...]:
        """Some of the files, within the limits of an install. Files that are not here yet are fetched first."""
        ...

    def sizes_of(self, paths: Sequence[str]) -> list[int | None]:
        """Return how many bytes each of some files has; ``None`` when only fetching it would show that."""
        ...


class FilesInMemory(NamedTuple):
    """The contents of a source that was fetched whole, such as an archive."""

    files: Mapping[str, NewFile]

    def prefetch(self, paths: Sequence[str]) -> None:
        """Do nothing, since every file is in memory."""

    def read_files(self, paths: Sequence[str]) -> tuple[NewFile, ...]:
        return tuple(self.files[path] for path in paths)

    def sizes_of(self, paths: Sequence[str]) -> list[int | None]:
        return [len(self.files[path].content) for path in paths]


class SourceTree:
    """The files of a source.

    The paths are sorted once: what is below a folder is found without a look at every path. An update looks at the
    folder of each of thousands of chosen skills.
    """

    def __init__(
        self,
        paths: Sequence[str],
        irregular: Sequence[tuple[str, str]],
        contents: Contents,
        *,
        commit: str = "",
        date: datetime | None = None,
        issues: Sequence[Issue] = (),
        versions: Mapping[str, Sequence[str]] | None = None,
        signer: str = "",
    ) -> None:
        self.paths, self.irregular = tuple(paths), tuple(irregular)
        """``irregular`` are the code and the path of each entry that is not a regular file, such as a link."""
        self.commit, self.date = commit, date
        """The commit of a repository, or the digest in a registry, and when it was made; ``""`` and ``None`` for a
        source that has none."""
        self.signer = signer
        """The fingerprint of the key that signed the tag, or the site; ``""`` for a source without a signature."""
        self.issues = tuple(issues)
        """What the source offers and cannot give."""
        self.versions = versions or {}
        """The versions of each skill that a published site offers."""
        self.contents = contents
        self.surveys: dict[tuple[str, str], SourceSurvey] = {}
        """The surveys of parts of it, so that no SKILL.md is parsed twice; ``survey_source`` fills it."""
        self._sorted_paths = sorted(paths)
        self._sorted_irregular = sorted((path, code) for code, path in irregular)
        self._known = frozenset(paths)

    @classmethod
    def in_memory(
        cls,
        files: Sequence[NewFile],
        irregular: Sequence[tuple[str, str]] = (),
        issues: Sequence[Issue] = (),
        *,
        commit: str = "",
        signer: str = "",
    ) -> Self:
        """Return a source whose files are in memory already."""
        contents = FilesInMemory({file.path: file for file in files})
        paths = [file.path for file in files]
        return cls(paths, irregular, contents, commit=commit, issues=issues, signer=signer)

    @property
    def is_in_memory(self) -> bool:
        """Whether the files stay readable when the source is closed."""
        return isinstance(self.contents, FilesInMemory)

    def has_file(self, path: str) -> bool:
        """Return whether a file of that path is among ``paths``."""
        return path in self._known

    def paths_below(self, folder: str) -> Sequence[str]:
        """Those of ``paths`` that are below a folder; all of them below ``""``."""
        if not folder:
            return self.paths
        # "0" is the character after "/", so that the end is the first path after everything in the folder.
        begin, end = bisect_left(self._sorted_paths, f"{folder}/"), bisect_left(self._sorted_paths, f"{folder}0")
        return self._sorted_paths[begin:end]

    def irregular_below(self, folder: str) -> Sequence[tuple[str, str]]:
        """Those of ``irregular`` that are below a folder; all of them below ``""``."""
        if not folder:
            return self.irregular
        rows = self._sorted_irregular
        begin, end = bisect_left(rows, (f"{folder}/",)), bisect_left(rows, (f"{folder}0",))
        return [(code, path) for path, code in rows[begin:end]]

    def refuse_incomplete(self) -> None:
        """Raise ``UnsafeTreeError`` when the source could not be listed whole."""
        refuse_irregular(row for row in self.irregular if row[0] in _INCOMPLETE_CODES)

    def read_files(self, paths: Sequence[str], *, below: str = "") -> tuple[NewFile, ...]:
        """Return the files with these paths below a folder of the source."""
        if not below:
            return self.contents.read_files(paths)
        files = self.contents.read_files([f"{below}/{path}" for path in paths])
        return tuple(file._replace(path=path) for file, path in zip(files, paths, strict=True))


REFUSAL_REASONS = {
    "link-in-skill": "is a link",
    "submodule": "is a submodule",
    "special-file": "is not a regular file",
    "bad-file-name": "is not a UTF-8 name",
    "unsafe-name": "is not a plain name on every platform",
    "unreadable-directory": "cannot be read",
    "too-many-files": "is one of too many files",
    "too-deep": "is too deep",
}
"""Why an entry of a source is not installed, in words, by the code of the error."""


def check_paths(paths: Sequence[str], limits: Limits) -> None:
    """Raise ``UnsafeTreeError`` for paths that cannot be written together.

    Refused are too many files, paths that are unsafe or too deep, paths that are one file where case or the form of
    Unicode does not count, and a git repository.
    """
    if len(paths) > limits.max_install_files:
        message = f"there are {len(paths)} files; at most {limits.max_install_files} are installed at once"
        raise UnsafeTreeError(message, code="too-many-files")
    for path in find_unsafe_paths(paths):
        raise _refusal(path, "unsafe-name")
    for path in paths:
        if path.count("/") > limits.max_depth_per_skill + EXTRA_DEPTH:
            raise _refusal(path, "too-deep")
    collision = find_collision(paths)
    if collision is not None:
        # On such a system the second file would silently replace the first, and differ from what was checked.
        raise UnsafeTreeError(
            f"{collision[0]!a} and {collision[1]!a} are one file on some systems", code="case-collision"
        )
    # git would run the hooks of a repository inside a skill as soon as somebody works in that folder.
    repository = find_git_repository(paths)
    if repository is not None:
        raise UnsafeTreeError(f"the folder {repository!a} is a repository of git", code="git-in-skill")


def _refusal(path: str, code: str) -> UnsafeTreeError:
    return UnsafeTreeError(f"{path!a} {REFUSAL_REASONS.get(code, 'cannot be installed')}", code=code)


def refuse_irregular(irregular: Iterable[tuple[str, str]]) -> None:
    """Raise ``UnsafeTreeError`` for the first entry that cannot be installed, given as its code and its path."""
    for code, path in irregular:
        raise _refusal(path, code)

"""What a source holds: its files as it gave them, and a survey of the skills in the part that somebody wants."""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from prowess.errors import InstallError, Issue
from prowess.install.find_skills import find_skills
from prowess.install.tree_paths import refuse_irregular
from prowess.names import SKILL_FILE, group_by_folder, is_below, is_safe_path
from prowess.spec.quantities import format_count, join_first
from prowess.spelling import did_you_mean, sort_by_similarity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from prowess.files.write import NewFile
    from prowess.install.find_skills import TreeSkill
    from prowess.limits import Limits
    from prowess.spec.source_spec import SourceSpec

T = TypeVar("T")
_VERSION = re.compile(r"v?\d")
"""How a version begins; people write ``owner/repo@v1`` and mean a version, where ``@`` chooses a skill."""
_MAX_LISTED = 20
"""How many skills of a source a message names."""
_MAX_LEFT_OUT = 3
"""How many files outside of the skills' folders a message names."""
_INCOMPLETE_CODES = frozenset(("unreadable-directory", "too-many-files", "too-deep"))
"""The codes that say that a listing is not whole. Nothing of such a source is installed: a skill may lack files."""


class SourceFiles(Protocol):
    """The files that a source gave, which are read on demand."""

    paths: tuple[str, ...]
    irregular: tuple[tuple[str, str], ...]
    """The code and the path of each entry that is no regular file, such as a link."""
    commit: str
    """The commit of a repository; ``""`` for a source that has none."""
    date: datetime | None
    """When the commit was made."""
    issues: tuple[Issue, ...]
    """What the source offers and cannot give."""

    def prefetch(self, paths: Sequence[str]) -> None:
        """Fetch those of the files that are not here yet, by one request."""
        ...

    def read_files(self, paths: Sequence[str]) -> tuple[NewFile, ...]:
        """Some of the files, within the limits of an install. Files that are not here yet are fetched first."""
        ...

    def size_of(self, path: str) -> int | None:
        """How many bytes a file has; ``None`` when only fetching it would tell."""
        ...

    def has_file(self, path: str) -> bool:
        """True when a file of that path is among ``paths``."""
        ...

    def paths_below(self, folder: str) -> Sequence[str]:
        """Those of ``paths`` that are below a folder; all of them below ``""``."""
        ...

    def irregular_below(self, folder: str) -> Sequence[tuple[str, str]]:
        """Those of ``irregular`` that are below a folder; all of them below ``""``."""
        ...

    def refuse_incomplete(self) -> None:
        """Raise ``UnsafeTreeError`` when the source could not be listed whole."""
        ...


class FileListing:
    """The paths of a source, sorted once: what is below a folder is found without a look at every path.

    An update looks at the folder of each of thousands of chosen skills.
    """

    def __init__(self, paths: Sequence[str], irregular: Sequence[tuple[str, str]]) -> None:
        self.paths, self.irregular = tuple(paths), tuple(irregular)
        self._sorted_paths = sorted(paths)
        self._sorted_irregular = sorted((path, code) for code, path in irregular)
        self._incomplete = tuple(row for row in irregular if row[0] in _INCOMPLETE_CODES)

    def paths_below(self, folder: str) -> Sequence[str]:
        if not folder:
            return self.paths
        # "0" is the character after "/", so that the end is the first path after everything in the folder.
        begin, end = bisect_left(self._sorted_paths, f"{folder}/"), bisect_left(self._sorted_paths, f"{folder}0")
        return self._sorted_paths[begin:end]

    def irregular_below(self, folder: str) -> Sequence[tuple[str, str]]:
        if not folder:
            return self.irregular
        rows = self._sorted_irregular
        begin, end = bisect_left(rows, (f"{folder}/",)), bisect_left(rows, (f"{folder}0",))
        return [(code, path) for path, code in rows[begin:end]]

    def refuse_incomplete(self) -> None:
        refuse_irregular(self._incomplete)


class SourceSurvey(NamedTuple):
    """The part of a source that somebody wants: its files, how they are read, and the skills among them."""

    paths: list[str]
    irregular: list[tuple[str, str]]
    reader: SubpathReader
    skills: list[TreeSkill]
    files_by_folder: dict[str, list[str]]
    """The paths of the files in the folder of each skill."""
    irregular_by_folder: dict[str, list[tuple[str, str]]]
    """The code and the path of each irregular entry in the folder of each skill."""
    issues: tuple[Issue, ...]
    limits: Limits

    def choose_skills(self, names: Sequence[str]) -> list[TreeSkill]:
        """The skills of these names, or of folders of these names; raises ``InstallError`` for one that is missing."""
        by_name = {skill.name: skill for skill in self.skills}
        # Names win over folders: a folder must not pass for a skill that was shown by its name.
        for skill in self.skills:
            by_name.setdefault(posixpath.basename(skill.folder), skill)
        for name in names:
            if name not in by_name:
                raise _unknown_skill_error(name, self.skills)
        return [by_name[name] for name in names]

    def files_of(self, skill: TreeSkill) -> list[str]:
        """The paths of all files in the folder of a skill."""
        return self.files_by_folder.get(skill.folder, [])


def survey_source(source_files: SourceFiles, spec: SourceSpec, limits: Limits) -> SourceSurvey:
    """The survey of the part of a source that ``spec`` names.

    Raises ``InstallError`` when that part has no SKILL.md, and ``UnsafeTreeError`` when the source could not be listed
    whole.
    """
    # First of all: in a listing that is not whole, even the choice of skills could be wrong.
    source_files.refuse_incomplete()
    paths, irregular = _paths_below(source_files, spec.subpath)
    reader = SubpathReader(source_files, spec.subpath)
    skills, issues = find_skills(paths, reader.read_file, name=spec.name, limits=limits, prefetch=reader.prefetch)
    claimed = find_claimed_folders(paths)
    if not claimed:
        raise InstallError(f"{spec} does not contain a SKILL.md file", code="missing-skill-md")
    folders = [skill.folder for skill in skills]
    files = group_by_folder(((path, path) for path in paths), folders)
    irregular_by_folder = group_by_folder(((path, (code, path)) for code, path in irregular), folders)
    # Whoever chooses skills by name expects nothing else of the source; whoever takes all may miss a shared folder.
    outside = [path for path in paths if not is_below(path, claimed)] if skills and not spec.skills else []
    issues = [*source_files.issues, *issues, *_left_out_issues(outside)]
    return SourceSurvey(paths, irregular, reader, skills, files, irregular_by_folder, tuple(issues), limits)


def _left_out_issues(paths: Sequence[str]) -> Iterator[Issue]:
    """A note about the files of a library that are in no skill's folder, and so are not installed."""
    if paths:
        count = format_count(len(paths), "file")
        message = f"{count} outside of the skills' folders will not be installed: {join_first(paths, _MAX_LEFT_OUT)}"
        yield Issue("outside-skills", "", message, severity="info")


def find_claimed_folders(paths: Iterable[str]) -> set[str]:
    """The folders that hold a SKILL.md, in whatever case its name is written."""
    return {posixpath.dirname(path) for path in paths if posixpath.basename(path).lower() == SKILL_FILE.lower()}


class SubpathReader:
    """Reads the files of a source by paths that start at a folder of it."""

    def __init__(self, source_files: SourceFiles, subpath: str) -> None:
        self._source_files = source_files
        self._prefix = f"{subpath}/" if subpath else ""

    def read_file(self, path: str) -> bytes:
        """The content of one file."""
        return self.read_files([path])[0].content

    def prefetch(self, paths: Sequence[str]) -> None:
        """Fetch those of the files that are not here yet, by one request."""
        self._source_files.prefetch([self._prefix + path for path in paths])

    def size_of(self, path: str) -> int | None:
        """How many bytes a file has; ``None`` when only fetching it would tell."""
        return self._source_files.size_of(self._prefix + path)

    def read_files(self, paths: Sequence[str], strip: str = "") -> tuple[NewFile, ...]:
        """Some of the files, named by their paths without the prefix ``strip``."""
        files = self._source_files.read_files([self._prefix + path for path in paths])
        prefix = self._prefix + strip
        return tuple(file._replace(path=file.path.removeprefix(prefix)) for file in files)


def _paths_below(source_files: SourceFiles, subpath: str) -> tuple[list[str], list[tuple[str, str]]]:
    """The safe paths below a folder of a source, and the irregular entries there with their codes."""
    prefix = f"{subpath}/" if subpath else ""
    paths = [path.removeprefix(prefix) for path in source_files.paths_below(subpath)]
    if not paths and subpath:  # an empty source is refused later, for it has no SKILL.md
        raise InstallError(f"there is no folder {subpath!r} with files", code="unknown-subpath")
    irregular = [(code, path.removeprefix(prefix)) for code, path in source_files.irregular_below(subpath)]
    # An unsafe name is refused like a link: only when the folder of a wanted skill holds it.
    safe = [path for path in paths if is_safe_path(path)]
    if len(safe) < len(paths):
        irregular += [("unsafe-name", path) for path in paths if not is_safe_path(path)]
    return safe, irregular


def _unknown_skill_error(name: str, skills: Sequence[TreeSkill]) -> InstallError:
    # The most similar names come first, since the message names only some.
    names = sort_by_similarity(name, sorted(skill.name for skill in skills))
    listed = join_first(names, _MAX_LISTED) or "none"
    suggestion = did_you_mean(name, names)
    meant = f"; {suggestion}" if suggestion else f"; a version is written #{name}" if _VERSION.match(name) else ""
    return InstallError(f"there is no skill {name!r}; the source has: {listed}{meant}", code="unknown-skill")

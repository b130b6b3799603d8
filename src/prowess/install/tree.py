"""Trees that are about to be installed: cut out of what was fetched, and judged before anything is written."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from prowess.errors import InstallError, Issue, PathTraversalError, UnsafeTreeError, did_you_mean, sort_by_similarity
from prowess.files.tree import EXTRA_DEPTH, digest_tree, hash_bytes
from prowess.install.find_skills import find_skills
from prowess.names import SKILL_FILE, find_git_repository, folders_above, is_below, split_relative_path
from prowess.spec.quantities import join_first
from prowess.spec.skill_ref import link_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from prowess.files.tree import FileHash
    from prowess.files.write import NewFile
    from prowess.install.find_skills import TreeSkill
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntry
    from prowess.spec.source_spec import SourceSpec

_REFUSAL_REASONS = {
    "link-in-skill": "is a link",
    "submodule": "is a submodule",
    "special-file": "is no regular file",
    "bad-file-name": "is not a UTF-8 name",
    "unsafe-name": "is not a plain name on every platform",
    "unreadable-directory": "cannot be read",
    "too-many-files": "is one of too many files",
    "too-deep": "lies too deep",
}
T = TypeVar("T")
_VERSION = re.compile(r"v?\d")
"""How names begin that people take for a version, as in ``owner/repo@v1``."""
_MAX_LISTED = 20
"""How many skills of a source a message names."""
_INCOMPLETE_CODES = frozenset(("unreadable-directory", "too-many-files", "too-deep"))
"""What says that the listing is not whole: then nothing of it is installed."""


class SourceFiles(Protocol):
    """What a source gave: its files by path, read on demand, what else it holds, the commit, and its date."""

    paths: tuple[str, ...]
    irregular: tuple[tuple[str, str], ...]
    commit: str
    date: datetime | None
    issues: tuple[Issue, ...]
    """What the source offers and cannot give."""

    def prefetch(self, paths: Sequence[str]) -> None:
        """Fetch those of its files that are not here yet, by one request."""
        ...

    def read_files(self, paths: Sequence[str]) -> tuple[NewFile, ...]:
        """Some of its files, within the bounds of an install; what is missing is fetched first, as by ``prefetch``."""
        ...

    def size_of(self, path: str) -> int | None:
        """How many bytes a file has; ``None`` while only fetching it tells."""
        ...

    def has_file(self, path: str) -> bool:
        """True when a file of that path is among ``paths``."""
        ...


class InstallTree(NamedTuple):
    """What goes to one place: the files, the skills among them by name with their folders, and what was noticed."""

    name: str
    subpath: str
    select: str
    files: tuple[NewFile, ...]
    skills: dict[str, str]
    issues: tuple[Issue, ...] = ()
    load_error: Issue | None = None
    """Why no skill in it can be loaded, where none can."""

    @property
    def hashes(self) -> dict[str, FileHash]:
        """Every file as a lock file has it."""
        return hashes_of(self.files)

    @property
    def digest(self) -> str:
        return digest_tree(self.hashes)


def with_skill_files_only(tree: InstallTree) -> InstallTree:
    """The tree with the files of its skills alone, of those that a folder can be named after: what copies can hold."""
    by_link: dict[str, str] = {}
    for skill in tree.skills:
        by_link.setdefault(link_name(skill), skill)
    skills = {skill: tree.skills[skill] for link, skill in by_link.items() if link}
    if len(skills) == len(tree.skills):
        return tree  # nearly always: what lies in no skill's folder is in no tree
    prefixes = tuple(f"{folder}/" if folder else "" for folder in skills.values())
    return tree._replace(files=tuple(file for file in tree.files if file.path.startswith(prefixes)), skills=skills)


def hashes_of(files: Iterable[NewFile]) -> dict[str, FileHash]:
    """Files in memory as a lock file has them."""
    return {file.path: hash_bytes(file.content, executable=file.executable) for file in files}


def trees_for(bundle: SourceFiles, spec: SourceSpec, limits: Limits) -> list[InstallTree]:
    """The trees that ``spec`` asks for: one with every skill that is not internal, or one for each that it names.

    What lies in no skill's folder is in no tree.
    """
    survey = survey_source(bundle, spec, limits)
    if not spec.skills:
        return [_tree_of_all(spec, survey)]
    skills = survey.choose_skills(spec.skills)
    survey.reader.prefetch([path for skill in skills for path in survey.files_of(skill)])
    return [_tree_of_skill(spec, survey, skill) for skill in skills]


def survey_source(bundle: SourceFiles, spec: SourceSpec, limits: Limits) -> SourceSurvey:
    """What the part of a source that ``spec`` names holds; ``InstallError`` when that is no skill at all.

    Raises ``UnsafeTreeError`` when the source could not be listed whole.
    """
    _refuse_irregular(((code, path) for code, path in bundle.irregular if code in _INCOMPLETE_CODES), set())
    paths, odd = _paths_below(bundle, spec.subpath)
    reader = _SubpathReader(bundle, spec.subpath)
    skills, issues = find_skills(paths, reader.read_file, name=spec.name, limits=limits, bring=reader.prefetch)
    if not any(posixpath.basename(path).lower() == SKILL_FILE.lower() for path in paths):
        raise InstallError(f"{spec} does not contain a SKILL.md file", code="missing-skill-md")
    folders = [skill.folder for skill in skills]
    files = _group_by_folder(((path, path) for path in paths), folders)
    odd_in = _group_by_folder((((code, path), path) for code, path in odd), folders)
    return SourceSurvey(paths, odd, reader, skills, files, odd_in, (*bundle.issues, *issues), limits)


class SourceSurvey(NamedTuple):
    """The part of a source that is wanted: its files, what else it holds, how it is read, and the skills in it."""

    paths: list[str]
    irregular: list[tuple[str, str]]
    reader: _SubpathReader
    skills: list[TreeSkill]
    files_by_folder: dict[str, list[str]]
    """The paths in the folder of each skill."""
    irregular_by_folder: dict[str, list[tuple[str, str]]]
    """What else the folder of each skill holds."""
    issues: tuple[Issue, ...]
    limits: Limits

    def choose_skills(self, names: Sequence[str]) -> list[TreeSkill]:
        """The skills of these names, or else of these folders' names; ``InstallError`` for one that is not there."""
        by_name = {skill.name: skill for skill in self.skills}
        for skill in self.skills:  # after all names: a folder must not pass for a skill that was shown by its name
            by_name.setdefault(posixpath.basename(skill.folder), skill)
        for name in names:
            if name not in by_name:
                raise _unknown_skill_error(name, self.skills)
        return [by_name[name] for name in names]

    def refusals_of(self, skill: TreeSkill) -> list[Issue]:
        """What in a skill's folder keeps it from being installed, such as a link."""
        return [
            Issue(code, path, f"{_REFUSAL_REASONS.get(code, code)}: the skill cannot be installed", path)
            for code, path in self.irregular_by_folder[skill.folder]
        ]

    def files_of(self, skill: TreeSkill) -> list[str]:
        """The paths of everything in a skill's folder."""
        return self.files_by_folder.get(skill.folder, [])


def _group_by_folder(rows: Iterable[tuple[T, str]], folders: Iterable[str]) -> dict[str, list[T]]:
    """What lies in each of the folders, given with its path; it costs no more for many folders than for one."""
    groups: dict[str, list[T]] = {folder: [] for folder in folders}
    for row, path in rows:
        for folder in folders_above(path):
            if folder in groups:
                groups[folder].append(row)
    return groups


class _SubpathReader:
    """Files by their path below the part that is wanted."""

    def __init__(self, bundle: SourceFiles, subpath: str) -> None:
        self._bundle = bundle
        self._prefix = f"{subpath}/" if subpath else ""

    def read_file(self, path: str) -> bytes:
        return self.read_files([path])[0].content

    def prefetch(self, paths: Sequence[str]) -> None:
        self._bundle.prefetch([self._prefix + path for path in paths])

    def size_of(self, path: str) -> int | None:
        return self._bundle.size_of(self._prefix + path)

    def read_files(self, paths: Sequence[str], strip: str = "") -> tuple[NewFile, ...]:
        read = self._bundle.read_files([self._prefix + path for path in paths])
        prefix = self._prefix + strip
        return tuple(file._replace(path=file.path.removeprefix(prefix)) for file in read)


def _paths_below(bundle: SourceFiles, subpath: str) -> tuple[list[str], list[tuple[str, str]]]:
    prefix = f"{subpath}/" if subpath else ""
    paths = [path.removeprefix(prefix) for path in bundle.paths if path.startswith(prefix)]
    if not paths:
        raise InstallError(f"there is no folder {subpath!r} with files", code="unknown-subpath")
    odd = [
        (code, path.removeprefix(prefix))
        for code, path in bundle.irregular
        if path.startswith(prefix) or code in _INCOMPLETE_CODES
    ]
    safe = [path for path in paths if _is_safe_path(path)]
    return safe, [*odd, *(("unsafe-name", path) for path in paths if not _is_safe_path(path))]


def _is_safe_path(path: str) -> bool:
    try:
        parts = split_relative_path(path)
    except PathTraversalError:
        return False
    return "/".join(parts) == path


def _unknown_skill_error(name: str, skills: Sequence[TreeSkill]) -> InstallError:
    names = sort_by_similarity(name, sorted(skill.name for skill in skills))
    listed = join_first(names, _MAX_LISTED) or "none"
    suggestion = did_you_mean(name, names)
    meant = f"; {suggestion}" if suggestion else f"; a version is written #{name}" if _VERSION.match(name) else ""
    return InstallError(f"there is no skill {name!r}; the source has: {listed}{meant}", code="unknown-skill")


def _tree_of_all(spec: SourceSpec, survey: SourceSurvey) -> InstallTree:
    skills = {one.name: one.folder for one in survey.skills if one.is_default}
    broken = survey.issues[0] if survey.issues and not survey.skills else None
    # Where no skill can be loaded, everything that claims to be one: whoever copies it may mend it.
    folders = set(skills.values()) or _find_claimed_folders(survey.paths)
    _refuse_irregular(survey.irregular, folders)
    paths = [path for path in survey.paths if is_below(path, folders)]
    check_paths(paths, survey.limits)
    return InstallTree(spec.full_name, spec.subpath, "", survey.reader.read_files(paths), skills, survey.issues, broken)


def _find_claimed_folders(paths: Iterable[str]) -> set[str]:
    """The folders with a SKILL.md, however its name is written."""
    return {posixpath.dirname(path) for path in paths if posixpath.basename(path).lower() == SKILL_FILE.lower()}


def read_recorded_tree(bundle: SourceFiles, entry: LockEntry, limits: Limits) -> InstallTree:
    """The files that a lock entry names, as far as the source has them, with the skills that the entry records.

    Which files of a source are installed has not always been decided as it is now; what is recorded counts.
    """
    reader = _SubpathReader(bundle, entry.subpath)
    paths = [path for path in entry.files if bundle.has_file(f"{entry.subpath}/{path}" if entry.subpath else path)]
    check_paths(paths, limits)
    return InstallTree(entry.name, entry.subpath, entry.select, reader.read_files(paths), dict(entry.skills))


def refuse_unloadable(trees: Iterable[InstallTree], spec: SourceSpec) -> None:
    """Raise when a source has skills and none of them can be loaded: there would be nothing to use."""
    for issue in (tree.load_error for tree in trees if tree.load_error is not None):
        message = f"{spec} has no skill that can be loaded: {issue.path}: {issue.message}"
        raise InstallError(message, code=issue.code)


def _tree_of_skill(spec: SourceSpec, survey: SourceSurvey, skill: TreeSkill) -> InstallTree:
    prefix = f"{skill.folder}/" if skill.folder else ""
    inside = survey.files_of(skill)
    _refuse_irregular(survey.irregular_by_folder[skill.folder], {skill.folder})
    check_paths(inside, survey.limits)
    subpath = "/".join(part for part in (spec.subpath, skill.folder) if part)
    place = f"{spec.org}/{_place_name(skill)}"
    return InstallTree(place, subpath, skill.name, survey.reader.read_files(inside, prefix), {skill.name: ""})


def _place_name(skill: TreeSkill) -> str:
    name = link_name(skill.name)
    if not name:
        raise UnsafeTreeError(f"the skill's name {skill.name!a} cannot name a folder", code="bad-name")
    return name


def _refuse_irregular(odd: Iterable[tuple[str, str]], folders: set[str]) -> None:
    """Raise for what no skill may hold: in a skill's folder, or where the listing is not whole."""
    for code, path in odd:
        if is_below(path, folders) or code in _INCOMPLETE_CODES:
            raise UnsafeTreeError(f"{path!a} {_REFUSAL_REASONS.get(code, 'cannot be installed')}", code=code)


def check_paths(paths: Sequence[str], limits: Limits) -> None:
    """Raise ``UnsafeTreeError`` for paths that cannot be written together.

    Those are too many files, odd names, names that are one where case does not count, and a repository of git.
    """
    if len(paths) > limits.max_install_files:
        message = f"there are {len(paths)} files; at most {limits.max_install_files} are installed at once"
        raise UnsafeTreeError(message, code="too-many-files")
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    for path in paths:
        if not _is_safe_path(path):
            raise UnsafeTreeError(f"{path!a} {_REFUSAL_REASONS['unsafe-name']}", code="unsafe-name")
        if path.count("/") > limits.max_depth_per_skill + EXTRA_DEPTH:
            raise UnsafeTreeError(f"{path!a} {_REFUSAL_REASONS['too-deep']}", code="too-deep")
        other = files.get(_fold_name(path))
        if other is not None:
            raise _collision_error(other, path)
        files[_fold_name(path)] = path
        _check_folder_names(path, folders)
    for key, path in files.items():
        if key in folders:
            raise _collision_error(folders[key], path)
    repository = find_git_repository(paths)
    if repository is not None:
        raise UnsafeTreeError(f"the folder {repository!a} is a repository of git", code="git-in-skill")


def _check_folder_names(path: str, folders: dict[str, str]) -> None:
    parts = path.split("/")[:-1]
    for count in range(1, len(parts) + 1):
        folder = "/".join(parts[:count])
        other = folders.setdefault(_fold_name(folder), folder)
        if other != folder:
            raise _collision_error(other, folder)


def _fold_name(path: str) -> str:
    return (
        path.lower() if path.isascii() else unicodedata.normalize("NFC", unicodedata.normalize("NFKC", path).casefold())
    )


def _collision_error(one: str, other: str) -> UnsafeTreeError:
    return UnsafeTreeError(f"{one!a} and {other!a} are one file on some systems", code="case-collision")

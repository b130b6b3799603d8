"""Trees that are about to be installed: cut out of what was fetched, and judged before anything is written."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from prowess.errors import InstallError, Issue, PathTraversalError, UnsafeTreeError, did_you_mean, nearest_first
from prowess.files.tree import DEEPER, digest_of, hash_bytes
from prowess.install.find_skills import find_skills
from prowess.names import find_repository, folders_above, is_below, relative_parts
from prowess.skills.parse import FILENAME
from prowess.spec.plural import join_some
from prowess.spec.skill_ref import link_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from prowess.files.tree import FileHash
    from prowess.files.write import NewFile
    from prowess.install.find_skills import Found
    from prowess.limits import Limits
    from prowess.lockfile.read import LockedSkill
    from prowess.spec.source_spec import SourceSpec

_WHY = {
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
_LISTED = 20
"""How many skills of a source a message names."""
_FATAL = frozenset(("unreadable-directory", "too-many-files", "too-deep"))
"""What says that the listing is not whole: then nothing of it is installed."""


class Bundle(Protocol):
    """What a source gave: its files by path, read on demand, what else it holds, the commit, and its date."""

    paths: tuple[str, ...]
    odd: tuple[tuple[str, str], ...]
    commit: str
    date: datetime | None
    issues: tuple[Issue, ...]
    """What the source offers and cannot give."""

    def bring(self, paths: Sequence[str]) -> None:
        """Fetch those of its files that are not here yet, by one request."""
        ...

    def read(self, paths: Sequence[str]) -> tuple[NewFile, ...]:
        """Some of its files, within the bounds of an install; what is missing is fetched first, as by ``bring``."""
        ...

    def size(self, path: str) -> int | None:
        """How many bytes a file has; ``None`` while only fetching it tells."""
        ...

    def has(self, path: str) -> bool:
        """True when a file of that path is among ``paths``."""
        ...


class Tree(NamedTuple):
    """What goes to one place: the files, the skills among them by name with their folders, and what was noticed."""

    name: str
    subpath: str
    select: str
    files: tuple[NewFile, ...]
    skills: dict[str, str]
    issues: tuple[Issue, ...] = ()
    broken: Issue | None = None
    """Why no skill in it can be loaded, where none can."""

    @property
    def hashes(self) -> dict[str, FileHash]:
        """Every file as a lock file has it."""
        return hashes_of(self.files)

    @property
    def digest(self) -> str:
        return digest_of(self.hashes)


def keep_skills(tree: Tree) -> Tree:
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


def cut(bundle: Bundle, spec: SourceSpec, limits: Limits) -> list[Tree]:
    """The trees that ``spec`` asks for: one with every skill that is not internal, or one for each that it names.

    What lies in no skill's folder is in no tree.
    """
    survey = survey_source(bundle, spec, limits)
    if not spec.skills:
        return [_whole(spec, survey)]
    skills = survey.chosen(spec.skills)
    survey.reader.bring([path for skill in skills for path in survey.files_of(skill)])
    return [_one(spec, survey, skill) for skill in skills]


def survey_source(bundle: Bundle, spec: SourceSpec, limits: Limits) -> Survey:
    """What the part of a source that ``spec`` names holds; ``InstallError`` when that is no skill at all.

    Raises ``UnsafeTreeError`` when the source could not be listed whole.
    """
    _refuse_odd(((code, path) for code, path in bundle.odd if code in _FATAL), set())
    paths, odd = _below(bundle, spec.subpath)
    reader = _Reader(bundle, spec.subpath)
    skills, issues = find_skills(paths, reader.one, name=spec.name, limits=limits, bring=reader.bring)
    if not any(posixpath.basename(path).lower() == FILENAME.lower() for path in paths):
        raise InstallError(f"{spec} does not contain a SKILL.md file", code="missing-skill-md")
    folders = [skill.folder for skill in skills]
    files = _group_by_folder(((path, path) for path in paths), folders)
    odd_in = _group_by_folder((((code, path), path) for code, path in odd), folders)
    return Survey(paths, odd, reader, skills, files, odd_in, (*bundle.issues, *issues), limits)


class Survey(NamedTuple):
    """The part of a source that is wanted: its files, what else it holds, how it is read, and the skills in it."""

    paths: list[str]
    odd: list[tuple[str, str]]
    reader: _Reader
    skills: list[Found]
    files: dict[str, list[str]]
    """The paths in the folder of each skill."""
    odd_in: dict[str, list[tuple[str, str]]]
    """What else the folder of each skill holds."""
    issues: tuple[Issue, ...]
    limits: Limits

    def chosen(self, names: Sequence[str]) -> list[Found]:
        """The skills of these names, or else of these folders' names; ``InstallError`` for one that is not there."""
        by_name = {skill.name: skill for skill in self.skills}
        for skill in self.skills:  # after all names: a folder must not pass for a skill that was shown by its name
            by_name.setdefault(posixpath.basename(skill.folder), skill)
        for name in names:
            if name not in by_name:
                raise _unknown(name, self.skills)
        return [by_name[name] for name in names]

    def refusals_of(self, skill: Found) -> list[Issue]:
        """What in a skill's folder keeps it from being installed, such as a link."""
        return [
            Issue(code, path, f"{_WHY.get(code, code)}: the skill cannot be installed", path)
            for code, path in self.odd_in[skill.folder]
        ]

    def files_of(self, skill: Found) -> list[str]:
        """The paths of everything in a skill's folder."""
        return self.files.get(skill.folder, [])


def _group_by_folder(rows: Iterable[tuple[T, str]], folders: Iterable[str]) -> dict[str, list[T]]:
    """What lies in each of the folders, given with its path; it costs no more for many folders than for one."""
    groups: dict[str, list[T]] = {folder: [] for folder in folders}
    for row, path in rows:
        for folder in folders_above(path):
            if folder in groups:
                groups[folder].append(row)
    return groups


class _Reader:
    """Files by their path below the part that is wanted."""

    def __init__(self, bundle: Bundle, subpath: str) -> None:
        self._bundle = bundle
        self._prefix = f"{subpath}/" if subpath else ""

    def one(self, path: str) -> bytes:
        return self.several([path])[0].content

    def bring(self, paths: Sequence[str]) -> None:
        self._bundle.bring([self._prefix + path for path in paths])

    def size(self, path: str) -> int | None:
        return self._bundle.size(self._prefix + path)

    def several(self, paths: Sequence[str], strip: str = "") -> tuple[NewFile, ...]:
        read = self._bundle.read([self._prefix + path for path in paths])
        prefix = self._prefix + strip
        return tuple(file._replace(path=file.path.removeprefix(prefix)) for file in read)


def _below(bundle: Bundle, subpath: str) -> tuple[list[str], list[tuple[str, str]]]:
    prefix = f"{subpath}/" if subpath else ""
    paths = [path.removeprefix(prefix) for path in bundle.paths if path.startswith(prefix)]
    if not paths:
        raise InstallError(f"there is no folder {subpath!r} with files", code="unknown-subpath")
    odd = [(code, path.removeprefix(prefix)) for code, path in bundle.odd if path.startswith(prefix) or code in _FATAL]
    safe = [path for path in paths if _is_safe(path)]
    return safe, [*odd, *(("unsafe-name", path) for path in paths if not _is_safe(path))]


def _is_safe(path: str) -> bool:
    try:
        parts = relative_parts(path)
    except PathTraversalError:
        return False
    return "/".join(parts) == path


def _unknown(name: str, skills: Sequence[Found]) -> InstallError:
    names = nearest_first(name, sorted(skill.name for skill in skills))
    listed = join_some(names, _LISTED) or "none"
    suggestion = did_you_mean(name, names)
    meant = f"; {suggestion}" if suggestion else f"; a version is written #{name}" if _VERSION.match(name) else ""
    return InstallError(f"there is no skill {name!r}; the source has: {listed}{meant}", code="unknown-skill")


def _whole(spec: SourceSpec, survey: Survey) -> Tree:
    skills = {one.name: one.folder for one in survey.skills if one.shown}
    broken = survey.issues[0] if survey.issues and not survey.skills else None
    # Where no skill can be loaded, everything that claims to be one: whoever copies it may mend it.
    folders = set(skills.values()) or _find_claimed_folders(survey.paths)
    _refuse_odd(survey.odd, folders)
    paths = [path for path in survey.paths if is_below(path, folders)]
    check_paths(paths, survey.limits)
    return Tree(spec.full_name, spec.subpath, "", survey.reader.several(paths), skills, survey.issues, broken)


def _find_claimed_folders(paths: Iterable[str]) -> set[str]:
    """The folders with a SKILL.md, however its name is written."""
    return {posixpath.dirname(path) for path in paths if posixpath.basename(path).lower() == FILENAME.lower()}


def read_recorded_tree(bundle: Bundle, entry: LockedSkill, limits: Limits) -> Tree:
    """The files that a lock entry names, as far as the source has them, with the skills that the entry records.

    Which files of a source are installed has not always been decided as it is now; what is recorded counts.
    """
    reader = _Reader(bundle, entry.subpath)
    paths = [path for path in entry.files if bundle.has(f"{entry.subpath}/{path}" if entry.subpath else path)]
    check_paths(paths, limits)
    return Tree(entry.name, entry.subpath, entry.select, reader.several(paths), dict(entry.skills))


def refuse_broken(trees: Iterable[Tree], spec: SourceSpec) -> None:
    """Raise when a source has skills and none of them can be loaded: there would be nothing to use."""
    for issue in (tree.broken for tree in trees if tree.broken is not None):
        message = f"{spec} has no skill that can be loaded: {issue.path}: {issue.message}"
        raise InstallError(message, code=issue.code)


def _one(spec: SourceSpec, survey: Survey, skill: Found) -> Tree:
    prefix = f"{skill.folder}/" if skill.folder else ""
    inside = survey.files_of(skill)
    _refuse_odd(survey.odd_in[skill.folder], {skill.folder})
    check_paths(inside, survey.limits)
    subpath = "/".join(part for part in (spec.subpath, skill.folder) if part)
    place = f"{spec.org}/{_place_name(skill)}"
    return Tree(place, subpath, skill.name, survey.reader.several(inside, prefix), {skill.name: ""})


def _place_name(skill: Found) -> str:
    name = link_name(skill.name)
    if not name:
        raise UnsafeTreeError(f"the skill's name {skill.name!a} cannot name a folder", code="bad-name")
    return name


def _refuse_odd(odd: Iterable[tuple[str, str]], folders: set[str]) -> None:
    """Raise for what no skill may hold: in a skill's folder, or where the listing is not whole."""
    for code, path in odd:
        if is_below(path, folders) or code in _FATAL:
            raise UnsafeTreeError(f"{path!a} {_WHY.get(code, 'cannot be installed')}", code=code)


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
        if not _is_safe(path):
            raise UnsafeTreeError(f"{path!a} {_WHY['unsafe-name']}", code="unsafe-name")
        if path.count("/") > limits.max_depth_per_skill + DEEPER:
            raise UnsafeTreeError(f"{path!a} {_WHY['too-deep']}", code="too-deep")
        other = files.get(_folded(path))
        if other is not None:
            raise _collision(other, path)
        files[_folded(path)] = path
        _note_folders(path, folders)
    for key, path in files.items():
        if key in folders:
            raise _collision(folders[key], path)
    repository = find_repository(paths)
    if repository is not None:
        raise UnsafeTreeError(f"the folder {repository!a} is a repository of git", code="git-in-skill")


def _note_folders(path: str, folders: dict[str, str]) -> None:
    parts = path.split("/")[:-1]
    for count in range(1, len(parts) + 1):
        folder = "/".join(parts[:count])
        other = folders.setdefault(_folded(folder), folder)
        if other != folder:
            raise _collision(other, folder)


def _folded(path: str) -> str:
    return (
        path.lower() if path.isascii() else unicodedata.normalize("NFC", unicodedata.normalize("NFKC", path).casefold())
    )


def _collision(one: str, other: str) -> UnsafeTreeError:
    return UnsafeTreeError(f"{one!a} and {other!a} are one file on some systems", code="case-collision")

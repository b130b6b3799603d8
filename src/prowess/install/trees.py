"""Trees that are about to be installed: cut out of what was fetched, and judged before anything is written."""

from __future__ import annotations

import posixpath
import unicodedata
from typing import TYPE_CHECKING, NamedTuple, Protocol

from prowess.errors import InstallError, Issue, PathTraversalError, UnsafeTreeError, nearest_first
from prowess.files.tree import DEEPER, digest_of, hash_bytes
from prowess.install.contents import find_skills
from prowess.library.load import FILENAME
from prowess.names import find_repository, folders_above, relative_parts
from prowess.spec.refs import link_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from prowess.files.tree import FileHash
    from prowess.files.writing import NewFile
    from prowess.install.contents import Found
    from prowess.limits import Limits
    from prowess.spec.addresses import SourceSpec

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
_FATAL = frozenset(("unreadable-directory", "too-many-files", "too-deep"))
"""What says that the listing is not whole: then nothing of it is installed."""


class Bundle(Protocol):
    """What a source gave: its files by path, read on demand, what else it holds, and the commit."""

    paths: tuple[str, ...]
    odd: tuple[tuple[str, str], ...]
    commit: str
    issues: tuple[Issue, ...]
    """What the source offers and cannot give."""

    def read(self, paths: Sequence[str]) -> tuple[NewFile, ...]:
        """Some of its files, within the bounds of an install."""
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


def hashes_of(files: Iterable[NewFile]) -> dict[str, FileHash]:
    """Files in memory as a lock file has them."""
    return {file.path: hash_bytes(file.content, executable=file.executable) for file in files}


def cut(bundle: Bundle, spec: SourceSpec, limits: Limits) -> list[Tree]:
    """The trees that ``spec`` asks for: the whole, or one for each skill that it names."""
    _refuse_odd(((code, path) for code, path in bundle.odd if code in _FATAL), set())
    paths, odd = _below(bundle, spec.subpath)
    reader = _Reader(bundle, spec.subpath)
    found, issues = find_skills(paths, reader.one, name=spec.name, limits=limits)
    if not any(posixpath.basename(path).lower() == FILENAME.lower() for path in paths):
        raise InstallError(f"{spec} does not contain a SKILL.md file", code="missing-skill-md")
    held = _Held(paths, odd, reader, limits)
    if not spec.skills:
        return [_whole(spec, held, found, [*bundle.issues, *issues])]
    known = _by_name(found)
    chosen = [_named(name, known, found) for name in spec.skills]
    inner = _paths_by_folder(paths, {skill.folder for skill in chosen})
    return [_one(spec, held, skill, inner[skill.folder]) for skill in chosen]


class _Held(NamedTuple):
    """The part that is wanted: its files, what else it holds, and how it is read."""

    paths: list[str]
    odd: list[tuple[str, str]]
    reader: _Reader
    limits: Limits


class _Reader:
    """Files by their path below the part that is wanted."""

    def __init__(self, bundle: Bundle, subpath: str) -> None:
        self._bundle = bundle
        self._prefix = f"{subpath}/" if subpath else ""

    def one(self, path: str) -> bytes:
        return self.several([path])[0].content

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


def _by_name(found: Sequence[Found]) -> dict[str, Found]:
    """The skills by their names and by those of their folders; of several that fit, the first."""
    known: dict[str, Found] = {}
    for one in found:
        known.setdefault(one.name, one)
        known.setdefault(posixpath.basename(one.folder), one)
    return known


def _paths_by_folder(paths: Sequence[str], folders: set[str]) -> dict[str, list[str]]:
    """The files of each of some folders, in one go through all of them: thousands of skills may be chosen."""
    inner: dict[str, list[str]] = {folder: [] for folder in folders}
    for path in paths:
        for folder in folders_above(path):
            if folder in inner:
                inner[folder].append(path)
    return inner


def _named(name: str, known: dict[str, Found], found: Sequence[Found]) -> Found:
    if name in known:
        return known[name]
    names = nearest_first(name, sorted(one.name for one in found))
    listed = ", ".join(names[:20]) or "none"
    raise InstallError(f"there is no skill {name!r}; the source has: {listed}", code="unknown-skill")


def _whole(spec: SourceSpec, held: _Held, found: list[Found], issues: list[Issue]) -> Tree:
    own = FILENAME.lower()
    _refuse_odd(held.odd, {posixpath.dirname(path) for path in held.paths if posixpath.basename(path).lower() == own})
    check_paths(held.paths, held.limits)
    left = (
        Issue("left-out", path, f"{_WHY.get(code, code)}; not installed", path, 0, "warning") for code, path in held.odd
    )
    skills = {one.name: one.folder for one in found if one.shown}
    files, broken = held.reader.several(held.paths), issues[0] if issues and not found else None
    return Tree(spec.full_name, spec.subpath, "", files, skills, (*issues, *left), broken)


def refuse_broken(trees: Iterable[Tree], spec: SourceSpec) -> None:
    """Raise when a source has skills and none of them can be loaded: there would be nothing to use."""
    for issue in (tree.broken for tree in trees if tree.broken is not None):
        message = f"{spec} has no skill that can be loaded: {issue.path}: {issue.message}"
        raise InstallError(message, code=issue.code)


def _one(spec: SourceSpec, held: _Held, skill: Found, inside: list[str]) -> Tree:
    prefix = f"{skill.folder}/" if skill.folder else ""
    _refuse_odd(((code, path) for code, path in held.odd if path.startswith(prefix) or code in _FATAL), {skill.folder})
    check_paths(inside, held.limits)
    subpath = "/".join(part for part in (spec.subpath, skill.folder) if part)
    place = f"{spec.org}/{_place_name(skill)}"
    return Tree(place, subpath, skill.name, held.reader.several(inside, prefix), {skill.name: ""})


def _place_name(skill: Found) -> str:
    name = link_name(skill.name)
    if not name:
        raise UnsafeTreeError(f"the skill's name {skill.name!a} cannot name a folder", code="bad-name")
    return name


def _refuse_odd(odd: Iterable[tuple[str, str]], folders: set[str]) -> None:
    """Raise for what no skill may hold: in a skill's folder, or where the listing is not whole."""
    for code, path in odd:
        inside = any(not folder or path.startswith(f"{folder}/") for folder in folders)
        if inside or code in _FATAL:
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

"""The resources of a skill: its files listed within limits, decoded within bounds, hashed as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prowess.errors import (
    BinaryResourceError,
    Issue,
    ResourceNotFoundError,
    ResourceTooLargeError,
    SkillValidationError,
)
from prowess.files.directory import open_folder_beneath
from prowess.files.read import as_resource_error, too_large_error
from prowess.files.tree import digest_tree, hash_file, list_tree
from prowess.names import SKILL_FILE, is_git_name
from prowess.text.hidden_characters import to_one_line
from prowess.text.spelling import sort_by_similarity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.files.directory import Folder, FolderEntries
    from prowess.files.tree import FileHash, TreeListing
    from prowess.limits import Limits

_GROUPS = ("scripts", "references", "assets")
_SKILL_FILE_NAMES = frozenset((SKILL_FILE, "skill.md"))
_MAX_SUGGESTIONS = 3
_TRUNCATION_NOTE = "\n[… cut at {limit} of {size} bytes]"
_OMISSION_REASONS = {
    "link-in-skill": "is a link",
    "special-file": "is not a regular file",
    "bad-file-name": "is not a UTF-8 name",
    "unreadable-directory": "cannot be read",
}
_BOUND_MESSAGES = {
    "too-many-files": "the skill has more than {limits.max_files_per_skill} files; the rest is not listed",
    "too-deep": "folders more than {limits.max_depth_per_skill} deep are not listed",
}


@dataclass(frozen=True, slots=True)
class Resources:
    """The names of the supporting files of a skill, one level deep; ``paths`` has them relative to its folder."""

    scripts: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    assets: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    issues: tuple[Issue, ...] = field(default=(), compare=False)

    @property
    def paths(self) -> tuple[str, ...]:
        """The relative paths of the files: assets, scripts, references, then those beside SKILL.md."""
        groups = (("assets", self.assets), ("scripts", self.scripts), ("references", self.references))
        return tuple(f"{folder}/{name}" for folder, names in groups for name in names) + self.other

    def __bool__(self) -> bool:
        """Whether there is any supporting file."""
        return bool(self.scripts or self.references or self.assets or self.other)


class FileList(tuple[str, ...]):  # noqa: SLOT001 - a tuple with slots cannot carry its issues
    """Relative POSIX paths in byte order, with the ``issues`` of the listing, such as a limit that was hit."""

    issues: tuple[Issue, ...] = ()
    complete: bool = True


def with_suggestions(error: ResourceNotFoundError, path: str, paths: Iterable[str]) -> ResourceNotFoundError:
    """The error with a few files that may have been meant: first those with that file name, then similar paths."""
    names = sorted(paths)
    last = path.replace("\\", "/").rpartition("/")[2].casefold()
    same = [name for name in names if name.rpartition("/")[2].casefold() == last]
    meant = [*same, *(name for name in sort_by_similarity(path, names) if name not in same)][:_MAX_SUGGESTIONS]
    # On one line: a file name may hold a line break, and the message goes to a model.
    hint = f"; there is {', '.join(map(to_one_line, meant))}" if meant else ""
    return ResourceNotFoundError(error.message + hint, error.path, error.code)


def check_size(data: bytes, path: str, limit: int) -> bytes:
    """Return the bytes of a whole file; raises ``ResourceTooLargeError`` for more than ``limit``."""
    if len(data) > limit:
        raise too_large_error(path, len(data), limit)
    return data


def decode_within(data: bytes, path: str, limit: int, *, truncate: bool, size: int = 0) -> str:
    """The text of a file whose first bytes are ``data``; ``size``: how many bytes the file has, where that is more.

    More than ``limit`` bytes raise ``ResourceTooLargeError``. With ``truncate`` they are cut instead, at the last whole
    character, and a last line says so.
    """
    if len(data) <= limit:
        return decode_text(data, path)
    size = size or len(data)
    if not truncate:
        raise too_large_error(path, size, limit)
    return _decode_prefix(data[:limit], path) + _TRUNCATION_NOTE.format(limit=limit, size=size)


def decode_text(data: bytes, path: str) -> str:
    """Return the bytes of a file as text; raises ``BinaryResourceError`` where they are not UTF-8 or hold a NUL."""
    if b"\0" in data:
        raise BinaryResourceError(f"{path!r} is not text: NUL at byte {data.index(0)}", path)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BinaryResourceError(
            f"{path!r} is not UTF-8 text: byte 0x{data[error.start]:02X} at byte {error.start}", path
        ) from None


def _decode_prefix(data: bytes, path: str) -> str:
    """Return the first bytes of a file as text, up to the last whole character."""
    # The cut may be in the middle of a character. Bytes that are bad elsewhere are an error however much is taken away.
    for back in range(4):
        try:
            return decode_text(data[: len(data) - back], path)
        except BinaryResourceError:
            if back == 3:  # noqa: PLR2004 - a character has at most four bytes
                raise
    return ""


def list_resources(base: str, parts: tuple[str, ...], own: str, location: str, limits: Limits) -> Resources:
    """Return the names one level deep in the three known folders and beside SKILL.md.

    No hidden names, folders or links.
    """
    try:
        with open_folder_beneath(base, parts) as folder:
            top = folder.list_entries(limits.max_entries_per_skill)
            groups = {name: _list_group(folder, name, location, limits) for name in _GROUPS if name in top.folders}
    except OSError as error:
        raise SkillValidationError(f"cannot list the folder: {error.strerror}", location) from None
    other, issues = _list_visible(top, "", location, limits)
    issues += (issue for _, group_issues in groups.values() for issue in group_issues)
    other = tuple(name for name in other if name != own and name not in _SKILL_FILE_NAMES)
    return Resources(**{name: files for name, (files, _) in groups.items()}, other=other, issues=tuple(issues))


def find_readable(paths: Iterable[str], own: str) -> tuple[str, ...]:
    """Return the files of a skill that may be named to a model, in the order given.

    Its SKILL.md and hidden files are left out, and so is every file of a skill in one of its folders.
    """
    files = [
        path
        for path in paths
        if path != own and path not in _SKILL_FILE_NAMES and all(map(_is_visible, path.split("/")))
    ]
    # A skill in one of the folders is offered by itself, with its own files.
    inner = tuple(path.removesuffix(SKILL_FILE) for path in files if path.endswith(f"/{SKILL_FILE}"))
    return tuple(path for path in files if not path.startswith(inner))


def group_resources(paths: Iterable[str], own: str) -> Resources:
    """Return the resources among relative paths, as ``list_resources`` finds them in a folder."""
    groups: dict[str, list[str]] = {name: [] for name in ("", *_GROUPS)}
    for path in sorted(paths):
        folder, _, name = path.rpartition("/")
        if folder in groups and _is_visible(name):
            groups[folder].append(name)
    other = tuple(name for name in groups[""] if name != own and name not in _SKILL_FILE_NAMES)
    scripts, references, assets = (tuple(groups[name]) for name in _GROUPS)
    return Resources(scripts, references, assets, other)


def _list_group(folder: Folder, name: str, location: str, limits: Limits) -> tuple[tuple[str, ...], list[Issue]]:
    """Return the visible files of one of the three known folders, and a warning for each thing left out."""
    try:
        with folder.open_child(name, lists=True) as child:
            entries = child.list_entries(limits.max_entries_per_skill)
    except OSError as error:
        return (), [Issue("unreadable-directory", name, f"cannot be listed: {error.strerror}", location, 0, "warning")]
    return _list_visible(entries, f"{name}/", location, limits)


def _list_visible(
    entries: FolderEntries, prefix: str, location: str, limits: Limits
) -> tuple[tuple[str, ...], list[Issue]]:
    """Return the visible files of a folder, at most as many as a skill may have.

    And a warning for each thing left out.
    """
    odd = entries.links or entries.others or entries.bad_names or not entries.complete
    # The usual folder has nothing odd in it and needs no second look at its entries.
    if not odd and len(entries.files) <= limits.max_files_per_skill:
        return tuple(_drop_hidden(entries.files)), []
    kinds = (("link-in-skill", entries.links), ("special-file", entries.others), ("bad-file-name", entries.bad_names))
    issues = [
        _omission_issue(code, prefix + name, location)
        for code, names in kinds
        for name in names
        if not is_git_name(name)
    ]
    if len(entries.files) > limits.max_files_per_skill or not entries.complete:
        message = _BOUND_MESSAGES["too-many-files"].format(limits=limits)
        issues.append(Issue("too-many-files", prefix.rstrip("/"), message, location, 0, "warning"))
    return tuple(_drop_hidden(entries.files)[: limits.max_files_per_skill]), issues


def _drop_hidden(names: list[str]) -> list[str]:
    return [name for name in names if name[0] != "." and not is_git_name(name)]


def _is_visible(name: str) -> bool:
    return name[0] != "." and not is_git_name(name)


def _omission_issue(code: str, name: str, location: str) -> Issue:
    return Issue(code, name, f"{_OMISSION_REASONS[code]}; not listed", location, 0, "warning")


def list_files(base: str, parts: tuple[str, ...], location: str, limits: Limits) -> FileList:
    """Return every regular file of a skill's folder, hidden ones too; ``.git`` is not part of a skill."""
    tree = _list_tree(base, parts, location, limits)
    files = FileList(tree.files)
    files.issues = tuple(tree_issues(tree, location, limits))
    files.complete = not tree.bound and not tree.unreadable
    return files


def _list_tree(base: str, parts: tuple[str, ...], location: str, limits: Limits) -> TreeListing:
    try:
        return list_tree(base, parts, limits)
    except OSError as error:
        problem = as_resource_error(error, location)
        raise SkillValidationError(f"cannot list the folder: {problem.message}", location, problem.code) from None


def tree_issues(tree: TreeListing, location: str, limits: Limits) -> list[Issue]:
    """Return a warning for each thing that a listing left out."""
    issues = [_omission_issue(code, path, location) for code, path in tree.problems if code in _OMISSION_REASONS]
    if tree.bound:
        issues.append(Issue(tree.bound, "", _BOUND_MESSAGES[tree.bound].format(limits=limits), location, 0, "warning"))
    return issues


def git_issues(tree: TreeListing, location: str) -> list[Issue]:
    """Return a finding for each file or folder of git: information at the root of a skill, a warning below."""
    return [
        Issue(
            "git-in-skill",
            path,
            "is git's own and no part of the skill: not listed, read, hashed, packed or installed",
            location,
            0,
            "warning" if "/" in path else "info",
        )
        for path in tree.git_names
    ]


def digest_folder(base: str, parts: tuple[str, ...], location: str, limits: Limits) -> str:
    """Return the digest over every file of a skill's folder.

    Raises ``SkillValidationError`` where any would be left out.
    """
    tree = _list_tree(base, parts, location, limits)
    for issue in tree_issues(tree, location, limits):
        raise SkillValidationError(
            f"cannot be hashed: {issue.field} {issue.message}".replace("  ", " "), location, issue.code
        )
    hashes: dict[str, FileHash] = {}
    left = limits.max_digest_bytes  # for all files together, so that many files cannot take longer than one large one
    for path in tree.files:
        try:
            hashes[path] = hash_file(base, (*parts, *path.split("/")), left)
        except ResourceTooLargeError as error:
            raise SkillValidationError(
                f"cannot be hashed within {limits.max_digest_bytes} bytes: {error.message}", location, "too-many-bytes"
            ) from None
        left -= hashes[path].size
    return digest_tree(hashes)

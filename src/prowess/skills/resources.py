"""The files of one skill: listed within limits, read within its folder, hashed whole."""

from __future__ import annotations

from prowess.errors import (
    BinaryResourceError,
    Issue,
    ResourceError,
    ResourceNotFoundError,
    ResourceTooLargeError,
    SkillValidationError,
    sort_by_similarity,
)
from prowess.files.directory import list_plain_names, open_folder_beneath
from prowess.files.read import OpenFile, as_resource_error, too_large_error
from prowess.files.tree import digest_tree, hash_file, list_tree
from prowess.model import FileList, Resources
from prowess.names import is_git_name, split_resource_path
from prowess.records import NamedTuple
from prowess.spec.hidden_characters import to_one_line

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.files.directory import Folder, FolderEntries
    from prowess.files.tree import FileHash, TreeListing
    from prowess.limits import Limits

_GROUPS = ("scripts", "references", "assets")
_LISTING_ORDER = ("assets", "scripts", "references")
_GROUP_NAMES = frozenset(_GROUPS)
_SKILL_FILE_NAMES = frozenset(("SKILL.md", "skill.md"))
_MAX_SUGGESTIONS = 3
_TRUNCATION_NOTE = "\n[… cut at {limit} of {size} bytes]"
_OMISSION_REASONS = {
    "link-in-skill": "is a link",
    "special-file": "is no regular file",
    "bad-file-name": "is not a UTF-8 name",
    "unreadable-directory": "cannot be read",
}
_BOUND_MESSAGES = {
    "too-many-files": "the skill has more than {limits.max_files_per_skill} files; the rest is not listed",
    "too-deep": "folders more than {limits.max_depth_per_skill} deep are not listed",
}


def _no_files_error() -> ResourceError:
    return ResourceError("the skill is text only and has no files", code="no-files")


def with_suggestions(error: ResourceNotFoundError, path: str, paths: Iterable[str]) -> ResourceNotFoundError:
    """The error with the files that may have been meant: those of the same last name, then those spelled alike."""
    names = sorted(paths)
    last = path.replace("\\", "/").rpartition("/")[2].casefold()
    same = [name for name in names if name.rpartition("/")[2].casefold() == last]
    meant = [*same, *(name for name in sort_by_similarity(path, names) if name not in same)][:_MAX_SUGGESTIONS]
    there = f"; there is {', '.join(map(to_one_line, meant))}" if meant else ""
    return ResourceNotFoundError(error.message + there, error.path, error.code)


def read_bytes(base: str, parts: tuple[str, ...], path: str, most: int) -> bytes:
    """The bytes of a file below the skill's folder."""
    if not base:
        raise _no_files_error()
    with OpenFile(base, (*parts, *split_resource_path(path))) as file:
        return file.read_all(most)


def read_text(base: str, parts: tuple[str, ...], path: str, most: int, *, truncate: bool) -> str:
    """The text of a file below the skill's folder."""
    if not base:
        raise _no_files_error()
    with OpenFile(base, (*parts, *split_resource_path(path))) as file:
        size = file.info.st_size
        data = file.read(most + 1)
    if len(data) <= most:
        return decode_text(data, path)
    if not truncate:
        raise too_large_error(path, max(size, len(data)), most)
    return truncate_text(data, most, max(size, len(data)), path)


def truncate_text(data: bytes, most: int, size: int, path: str) -> str:
    """The first ``most`` bytes as text, to the last whole character, and a line that says so."""
    return _decode_prefix(data[:most], path) + _TRUNCATION_NOTE.format(limit=most, size=size)


def check_size(data: bytes, path: str, most: int) -> bytes:
    """Bytes that were read already, under the caller's bound."""
    if len(data) > most:
        raise too_large_error(path, len(data), most)
    return data


def decode_bounded(data: bytes, path: str, most: int, *, truncate: bool) -> str:
    """The text of bytes that were read already, under the caller's bound."""
    if len(data) <= most or not truncate:
        return decode_text(check_size(data, path, most), path)
    return _decode_prefix(data[:most], path) + _TRUNCATION_NOTE.format(limit=most, size=len(data))


def decode_text(data: bytes, path: str) -> str:
    if b"\0" in data:
        raise BinaryResourceError(f"{path!r} is not text: NUL at byte {data.index(0)}", path)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"{path!r} is not UTF-8 text: byte 0x{data[error.start]:02X} at byte {error.start}"
        raise BinaryResourceError(message, path) from None


def _decode_prefix(data: bytes, path: str) -> str:
    """Text up to the last whole character."""
    for back in range(4):
        try:
            return decode_text(data[: len(data) - back], path)
        except BinaryResourceError:
            if back == 3:  # noqa: PLR2004 - a character has at most four bytes
                raise
    return ""


def list_resources(base: str, parts: tuple[str, ...], own: str, location: str, limits: Limits) -> Resources:
    """Names one level deep in the three known folders and beside SKILL.md; no hidden names, folders or links."""
    if not base:
        return Resources()
    try:
        with open_folder_beneath(base, parts) as folder:
            top = folder.list_entries(limits.max_entries_per_skill)
            groups = {name: _list_group(folder, name, location, limits) for name in _GROUPS if name in top.folders}
    except OSError as error:
        raise SkillValidationError(f"cannot list the folder: {error.strerror}", location) from None
    other, issues = _list_visible(top, "", location, limits)
    issues += (issue for _, found in groups.values() for issue in found)
    other = tuple(name for name in other if name != own and name not in _SKILL_FILE_NAMES)
    names = {name: found for name, (found, _) in groups.items()}
    return Resources(**names, other=other, issues=tuple(issues))


class PlainPaths(NamedTuple):
    """The resources of a folder in which nothing is odd."""

    paths: tuple[str, ...]
    has_folders: bool
    """Whether there are folders, in which other files may be."""


def list_plain_paths(base: str, parts: tuple[str, ...], own: str, limits: Limits) -> PlainPaths | None:
    """The ``paths`` of what ``list_resources`` finds, with fewer steps; ``None`` where anything is odd.

    Fast path of the bench row "load_skill, first call"; tests/skills/test_fast_paths.py compares the two.
    """
    names = list_plain_names(base, parts, _GROUP_NAMES, min(limits.max_entries_per_skill, limits.max_files_per_skill))
    if names is None:
        return None
    found, folders = names
    paths = [
        f"{group}/{name}" for group in _LISTING_ORDER if group in found for name in found[group] if _is_visible(name)
    ]
    paths += [name for name in found[""] if _is_visible(name) and name != own and name not in _SKILL_FILE_NAMES]
    return PlainPaths(tuple(paths), any(map(_is_visible, folders)))


def find_readable(paths: Iterable[str], own: str) -> tuple[str, ...]:
    """Those of a skill's files that may be named to a model, in their order.

    Neither its SKILL.md, nor what is hidden, nor what belongs to a skill in one of its folders, which is listed itself.
    """
    files = [
        path
        for path in paths
        if path != own and path not in _SKILL_FILE_NAMES and all(map(_is_visible, path.split("/")))
    ]
    inner = tuple(path.removesuffix("SKILL.md") for path in files if path.endswith("/SKILL.md"))
    return tuple(path for path in files if not path.startswith(inner))


def group_resources(paths: Iterable[str], own: str) -> Resources:
    """The same of relative paths, wherever the files are."""
    groups: dict[str, list[str]] = {name: [] for name in ("", *_GROUPS)}
    for path in sorted(paths):
        folder, _, name = path.rpartition("/")
        if folder in groups and _is_visible(name):
            groups[folder].append(name)
    other = tuple(name for name in groups[""] if name != own and name not in _SKILL_FILE_NAMES)
    scripts, references, assets = (tuple(groups[name]) for name in _GROUPS)
    return Resources(scripts, references, assets, other)


def _list_group(folder: Folder, name: str, location: str, limits: Limits) -> tuple[tuple[str, ...], list[Issue]]:
    try:
        with folder.open_child(name, lists=True) as child:
            found = child.list_entries(limits.max_entries_per_skill)
    except OSError as error:
        message = f"cannot be listed: {error.strerror}"
        return (), [Issue("unreadable-directory", name, message, location, 0, "warning")]
    return _list_visible(found, f"{name}/", location, limits)


def _list_visible(
    found: FolderEntries, prefix: str, location: str, limits: Limits
) -> tuple[tuple[str, ...], list[Issue]]:
    """The names that are shown of a folder, and what is not."""
    odd = found.links or found.others or found.bad_names or not found.complete
    if not odd and len(found.files) <= limits.max_files_per_skill:
        return tuple(_drop_hidden(found.files)), []
    issues = _entry_issues(found, prefix, location)
    if len(found.files) > limits.max_files_per_skill or not found.complete:
        message = _BOUND_MESSAGES["too-many-files"].format(limits=limits)
        issues.append(Issue("too-many-files", prefix.rstrip("/"), message, location, 0, "warning"))
    return tuple(_drop_hidden(found.files)[: limits.max_files_per_skill]), issues


def _drop_hidden(names: list[str]) -> list[str]:
    return [name for name in names if _is_visible(name)]


def _is_visible(name: str) -> bool:
    return name[0] != "." and not is_git_name(name)


def _entry_issues(found: FolderEntries, prefix: str, location: str) -> list[Issue]:
    kinds = (("link-in-skill", found.links), ("special-file", found.others), ("bad-file-name", found.bad_names))
    return [
        _omission_issue(code, prefix + name, location)
        for code, names in kinds
        for name in names
        if not is_git_name(name)
    ]


def _omission_issue(code: str, name: str, location: str) -> Issue:
    return Issue(code, name, f"{_OMISSION_REASONS[code]}; not listed", location, 0, "warning")


def list_files(base: str, parts: tuple[str, ...], location: str, limits: Limits) -> FileList:
    """Every regular file of the skill, hidden ones too; ``.git`` is no part of it."""
    if not base:
        return FileList()
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
    """What a listing left out, as warnings."""
    found = [_omission_issue(code, path, location) for code, path in tree.problems if code in _OMISSION_REASONS]
    if tree.bound:
        found.append(Issue(tree.bound, "", _BOUND_MESSAGES[tree.bound].format(limits=limits), location, 0, "warning"))
    return found


def git_issues(tree: TreeListing, location: str) -> list[Issue]:
    """What git's own folders and files are to an author: information at the root of a skill, a warning below."""
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
    """The digest of a skill's folder, over every file of it; never a partial answer."""
    if not base:
        raise _no_files_error()
    tree = _list_tree(base, parts, location, limits)
    for issue in tree_issues(tree, location, limits):
        raise SkillValidationError(
            f"cannot be hashed: {issue.field} {issue.message}".replace("  ", " "), location, issue.code
        )
    hashes: dict[str, FileHash] = {}
    left = limits.max_digest_bytes
    for path in tree.files:
        try:
            hashes[path] = hash_file(base, (*parts, *path.split("/")), left)
        except ResourceTooLargeError as error:
            message = f"cannot be hashed within {limits.max_digest_bytes} bytes: {error.message}"
            raise SkillValidationError(message, location, "too-many-bytes") from None
        left -= hashes[path].size
    return digest_tree(hashes)

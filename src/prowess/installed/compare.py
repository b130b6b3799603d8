"""The one comparison of what is on the disk with what the lock file says, for every command that needs it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, NamedTuple

from prowess.errors import Issue, ResourceError
from prowess.files.directory import exists, stat_folder
from prowess.files.paths import is_known_link_to, is_link, is_real_folder
from prowess.files.read import OpenFile
from prowess.files.tree import as_recorded, hash_bytes, hash_tree
from prowess.installed.placed import PlacedTrees, find_edited_parts, find_part, name_copy
from prowess.installed.scopes import list_install_names
from prowess.progress_steps import report_steps
from prowess.text.quantities import join_first

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from prowess.errors import PolicyError
    from prowess.files.tree import FileHash
    from prowess.installed.placed import Parts
    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntries, LockEntry

LinkPath = Callable[[str], str]
"""Returns where on the disk a recorded link is; raises ``InstallError`` where that is not a place where agents look."""
InstallState = Literal["equal", "missing", "pristine", "edited", "copy", "unlinked"]
"""How an install compares with the lock file; ``get_install_state`` says what each word means."""
NOT_SYNCED = "not-synced"
"""The code of an install that Prowess put here, that nobody changed, and that the lock file has in another version."""
OTHER_LINE_ENDS = "changed-line-ends"
"""The code of a file that differs from the lock file in its line ends alone, as with git's ``core.autocrlf``."""
_CODE_MESSAGES = {
    NOT_SYNCED: "is another version than the lock file has",
    "changed-file": "is not what the lock file says",
    OTHER_LINE_ENDS: "has other line ends than the lock file says",
    "missing-file": "is missing",
    "extra-file": "is not in the lock file",
    "missing-skill": "is missing",
}


_FOLDER_STATES: dict[str, InstallState] = {"missing-skill": "missing", NOT_SYNCED: "pristine"}
"""The states of an install whose folder differs as a whole; in all other cases it was edited."""


class Difference(NamedTuple):
    """One thing on the disk that is not what an entry of the lock file says."""

    code: str
    """``missing-skill``, ``missing-file``, ``changed-file``, ``changed-line-ends``, ``extra-file``, ``broken-link`` or
    ``not-synced``."""
    path: str
    """The file, or a skill that is ``not-synced``, from the folder that was compared; ``""`` for that folder itself."""
    folder: str
    """The folder, or the link, that was compared."""
    link: str = ""
    """The link as the lock file records it, where a link or the copy in its place was compared; else ``""``."""

    @property
    def is_edit(self) -> bool:
        """True when somebody changed files, so that something could be lost: a missing folder holds nothing."""
        return self.code not in {"missing-skill", "broken-link", NOT_SYNCED, OTHER_LINE_ENDS}

    def __str__(self) -> str:
        """What is wrong, in a few words."""
        return f"{self.path or 'the folder'} {_CODE_MESSAGES.get(self.code, 'leads elsewhere')}"


def compare_folder(
    files: Mapping[str, FileHash], folder: str, limits: Limits, *, link: str = "", placed: Parts | None = None
) -> list[Difference]:
    """The differences between a folder and the files that the lock file lists for it, by path; none when it is equal.

    ``placed`` are the digests of what Prowess put there: a folder that still has them is one difference,
    ``not-synced``, and so is each skill in it that still has its own, where another one was edited.
    Raises ``OSError`` for a folder that exists and cannot be listed.
    """
    placed = placed or {}
    try:
        tree = hash_tree(folder, limits)
    except (OSError, ValueError):
        # Only now it is asked whether the folder exists: to ask first costs a system call for each folder that is.
        if stat_folder(folder) is not None:
            raise
        return [Difference("missing-skill", "", folder, link)]
    if tree.files == files and not tree.problems:  # the usual case needs no sets of thousands of paths
        return []
    tree = tree._replace(files=as_recorded(tree.files, files, folder))
    if tree.files == files and not tree.problems:
        return []
    edited = find_edited_parts(tree, placed) if placed else {""}
    if not edited:
        return [Difference(NOT_SYNCED, "", folder, link)]
    rows = [("missing-file", path) for path in files.keys() - tree.files.keys()]
    rows += [("extra-file", path) for path in tree.files.keys() - files.keys()]
    changed = [path for path in files.keys() & tree.files.keys() if files[path] != tree.files[path]]
    rows += [(_name_change(folder, path, files[path], tree.files[path], limits), path) for path in changed]
    # Links and special files are never installed, so each of them is one file too many.
    rows += [("extra-file", path) for _, path in tree.problems]
    parts = {path: find_part(path, placed) for _, path in rows}
    rows = [row for row in rows if parts[row[1]] in edited]
    rows += [(NOT_SYNCED, part) for part in {*parts.values()} - edited]
    return [Difference(code, path, folder, link) for code, path in sorted(rows, key=lambda row: (row[1], row[0]))]


def _name_change(folder: str, path: str, locked: FileHash, found: FileHash, limits: Limits) -> str:
    """Return the code of a file that is not what the lock file says."""
    # A file has at most twice its bytes with "\r\n", and at least half of them with "\n".
    if locked.executable == found.executable and locked.size <= 2 * found.size <= 4 * locked.size:
        with suppress(ResourceError), OpenFile(folder, tuple(path.split("/"))) as file:
            text = file.read_all(limits.max_install_bytes).replace(b"\r\n", b"\n")
            endings = (text, text.replace(b"\n", b"\r\n"))
            if any(hash_bytes(data, executable=locked.executable) == locked for data in endings):
                return OTHER_LINE_ENDS
    return "changed-file"


def list_differing(first: Mapping[str, FileHash], second: Mapping[str, FileHash]) -> list[str]:
    """Return the paths of the files that differ between two trees, sorted."""
    return sorted(path for path in first.keys() | second.keys() if first.get(path) != second.get(path))


def compare_install(
    entry: LockEntry, scope: InstallScope, link_path: LinkPath, limits: Limits, placed: PlacedTrees | None = None
) -> Iterator[Difference]:
    """The differences between an entry of the lock file and its install, its links and the copies in place of links.

    With ``placed``, an install or a copy that is as Prowess put it there differs as a whole, with ``not-synced``.
    """
    place = scope.install_folder(entry.name)
    if is_link(place):  # no install is a link: somebody put it there, wherever it leads
        yield Difference("missing-skill", "", place)
    elif not entry.is_copied or exists(place):  # copies have nothing in the base, so a folder there is suspect
        parts = placed.parts_of(entry.name) if placed is not None else None
        yield from compare_folder(entry.files, place, limits, placed=parts)
    for recorded in entry.links:
        path = link_path(recorded)
        parts = placed.parts_of(name_copy(recorded)) if placed is not None else {}
        yield from _compare_link(entry, recorded, path, limits, _LinkEnds(place, parts))


class _LinkEnds(NamedTuple):
    """What is allowed at the place of a link."""

    install: str
    """The install that the link leads to."""
    placed: Parts
    """The digest of the copy that Prowess put there instead of a link; none for no copy."""


def _compare_link(entry: LockEntry, recorded: str, path: str, limits: Limits, ends: _LinkEnds) -> Iterator[Difference]:
    folder = entry.folder_for_link(os.path.basename(path))
    linked = is_link(path)
    if linked and entry.is_copied:  # a clone of the project would not have what the link leads to
        yield Difference("broken-link", "", path, recorded)
    elif linked or not (recorded in entry.copies or ends.placed or is_exact_copy(entry, path, limits)):
        target = os.path.join(ends.install, *folder.split("/")) if folder else ends.install
        if not (linked and is_known_link_to(path, target)):
            yield Difference("broken-link", "", path, recorded)
    else:
        yield from compare_folder(entry.files_below(folder), path, limits, link=recorded, placed=ends.placed)


def is_exact_copy(entry: LockEntry, path: str, limits: Limits) -> bool:
    """Return whether ``path`` is a real folder with exactly the files that the lock file records for its name."""
    files = entry.files_below(entry.folder_for_link(os.path.basename(path)))
    return bool(files) and is_real_folder(path) and not compare_folder(files, path, limits)


def has_other_line_ends(entry: LockEntry, path: str, limits: Limits) -> bool:
    """Return whether ``path`` is a real folder whose files differ from the lock file, and only in their line ends."""
    files = entry.files_below(entry.folder_for_link(os.path.basename(path)))
    if not files or not is_real_folder(path):
        return False
    return {difference.code for difference in compare_folder(files, path, limits)} == {OTHER_LINE_ENDS}


def get_install_state(differences: Iterable[Difference]) -> InstallState:
    """Return the state of an install, given how it differs from the lock file.

    ``"equal"``: it does not differ. ``"missing"``: its folder is gone. ``"pristine"``: its folder is another version,
    as Prowess put it there. ``"edited"``: files of its folder differ. ``"copy"``: only files of a copy
    differ. ``"unlinked"``: only links differ, or copies are missing.
    """
    differences = [*differences]
    states = {_FOLDER_STATES.get(difference.code, "edited") for difference in differences if not difference.link}
    if states:  # several where one skill of an install was edited, and others are pristine
        return "edited" if "edited" in states else states.pop()
    if any(difference.is_edit or difference.code in {NOT_SYNCED, OTHER_LINE_ENDS} for difference in differences):
        return "copy"
    return "unlinked" if differences else "equal"


def describe_differences(differences: Sequence[Difference], limit: int = 5) -> str:
    """Return the first ``limit`` differences as a message shows them, and how many more there are."""
    shown = [
        f"{'/'.join(filter(None, (difference.link, difference.path))) or 'the folder'} "
        f"({difference.code.removesuffix('-file').removesuffix('-skill')})"
        for difference in differences
    ]
    return join_first(shown, limit)


def verify_scope(
    scope: InstallScope,
    locked: LockEntries,
    link_path: LinkPath,
    limits: Limits,
    *,
    refused: Mapping[str, PolicyError] | None = None,
) -> Iterator[Issue]:
    """Yield an issue for each difference between a scope's lock file and the disk, with the name of the file.

    ``refused`` are the entries that the policy refuses: each is one issue, whether or not it is on the disk.
    """
    placed = PlacedTrees(scope.base, limits)
    for name in report_steps(sorted(locked), str):
        refusal = (refused or {}).get(name)
        if refusal is not None:
            yield Issue(refusal.code, name, refusal.message, scope.install_folder(name))
            continue
        for difference in compare_install(locked[name], scope, link_path, limits, placed):
            yield _make_issue(locked[name], difference)
    yield from find_unrecorded_installs(scope, locked, placed)


def find_unrecorded_installs(scope: InstallScope, locked: LockEntries, placed: PlacedTrees) -> Iterator[Issue]:
    """Yield a warning for each install on the disk that no entry of the lock file records.

    Its code is ``not-synced`` for an install that is as Prowess put it there, else ``not-in-lock``.
    """
    for name in list_install_names(scope):
        if name not in locked:
            place = scope.install_folder(name)
            pristine = placed.is_pristine(name, place)
            message = f"{name} is not in the lock file{' any more' if pristine else ''}"
            yield Issue(NOT_SYNCED if pristine else "not-in-lock", name, message, place, 0, "warning")


def _make_issue(entry: LockEntry, difference: Difference) -> Issue:
    code, path, folder, link = difference
    if code == "broken-link":
        wrong = "is a link, not a copy of" if entry.is_copied else "does not lead to"
        return Issue(code, link, f"{link} {wrong} {entry.name}", folder)
    subject = path or entry.name
    fault = "is a link, not what was installed" if not path and is_link(folder) else _CODE_MESSAGES[code]
    return Issue(code, subject, f"{subject} {fault}", os.path.join(folder, *path.split("/")) if path else folder)

"""What the disk has against what the lock file says: the one comparison, for verify, sync, list and refusals."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

from prowess.errors import Issue
from prowess.files.directory import exists, stat_folder
from prowess.files.paths import is_known_link_to, is_link, is_real_folder
from prowess.files.tree import hash_tree
from prowess.lockfile.scopes import list_install_names
from prowess.progress_steps import report_steps
from prowess.spec.quantities import join_first

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from prowess.files.tree import FileHash
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntries, LockEntry
    from prowess.lockfile.scopes import InstallScope

LinkPath = Callable[[str], str]
"""Where a link that the lock file records is on the disk; ``InstallError`` when that is no place where agents look."""
InstallState = Literal["equal", "missing", "edited", "copy", "unlinked"]
_CODE_MESSAGES = {
    "changed-file": "is not what the lock file says",
    "missing-file": "is missing",
    "extra-file": "is not in the lock file",
    "missing-skill": "is missing",
}


class Difference(NamedTuple):
    """One thing on the disk that is not what an entry of the lock file says."""

    code: str
    """``missing-skill``, ``missing-file``, ``changed-file``, ``extra-file`` or ``broken-link``."""
    path: str
    """The file, from the folder that was compared; ``""`` for the folder or the link itself."""
    folder: str
    """The folder, or the link, that was compared."""
    link: str = ""
    """As the lock file has it, where a link was looked at, or the copy that stands for it."""

    @property
    def is_edit(self) -> bool:
        """Whether somebody changed files: what is missing as a whole holds nothing that could be lost."""
        return self.code not in {"missing-skill", "broken-link"}

    def __str__(self) -> str:
        """What is wrong, in a few words."""
        return f"{self.path or 'the folder'} {_CODE_MESSAGES.get(self.code, 'leads elsewhere')}"


def compare_folder(files: Mapping[str, FileHash], folder: str, limits: Limits, link: str = "") -> list[Difference]:
    """How a folder differs from the files that the lock file lists for it, by path; nothing when it is equal.

    Raises ``OSError`` for a folder that is there and cannot be listed.
    """
    try:
        tree = hash_tree(folder, limits)
    except (OSError, ValueError):  # asked first, a folder that is there would cost one call of the system more
        if stat_folder(folder) is not None:
            raise
        return [Difference("missing-skill", "", folder, link)]
    if tree.files == files and not tree.problems:  # the usual case, without sets of thousands of paths
        return []
    rows = [("missing-file", path) for path in files.keys() - tree.files.keys()]
    rows += [("extra-file", path) for path in tree.files.keys() - files.keys()]
    rows += [("changed-file", path) for path in files.keys() & tree.files.keys() if files[path] != tree.files[path]]
    rows += [("extra-file", path) for _, path in tree.problems]
    return [Difference(code, path, folder, link) for code, path in sorted(rows, key=lambda row: (row[1], row[0]))]


def compare_install(entry: LockEntry, scope: InstallScope, link_path: LinkPath, limits: Limits) -> Iterator[Difference]:
    """How an install, its links, and the copies that stand for links, differ from an entry of the lock file."""
    place = scope.install_folder(entry.name)
    if is_link(place):  # nothing that is installed is a link, whatever it leads to
        yield Difference("missing-skill", "", place)
    elif exists(place) or not entry.is_copied:  # of copies nothing is in the base, and what is there is not believed
        yield from compare_folder(entry.files, place, limits)
    for recorded in entry.links:
        yield from _compare_link(entry, recorded, place, link_path(recorded), limits)


def _compare_link(entry: LockEntry, recorded: str, place: str, path: str, limits: Limits) -> Iterator[Difference]:
    folder = entry.folder_for_link(os.path.basename(path))
    linked = is_link(path)
    if linked and entry.is_copied:  # wherever it leads, a clone has nothing there
        yield Difference("broken-link", "", path, recorded)
    elif linked or (recorded not in entry.copies and not is_exact_copy(entry, path, limits)):
        target = os.path.join(place, *folder.split("/")) if folder else place
        if not (linked and is_known_link_to(path, target)):
            yield Difference("broken-link", "", path, recorded)
    elif recorded in entry.copies:
        yield from compare_folder(entry.files_below(folder), path, limits, recorded)


def is_exact_copy(entry: LockEntry, path: str, limits: Limits) -> bool:
    """Whether a real folder holds exactly the files that the lock file records for the skill of that name."""
    files = entry.files_below(entry.folder_for_link(os.path.basename(path)))
    return bool(files) and is_real_folder(path) and not compare_folder(files, path, limits)


def get_install_state(differences: Iterable[Difference]) -> InstallState:
    """What an install is: ``"copy"`` or ``"unlinked"`` when only an edited copy, or links, differ."""
    state: InstallState = "equal"
    for difference in differences:
        if not difference.link:
            return "missing" if difference.code == "missing-skill" else "edited"
        state = "copy" if difference.is_edit or state == "copy" else "unlinked"
    return state


def describe_differences(differences: Sequence[Difference], most: int = 5) -> str:
    """Differences for a message, the first few of them."""
    said = [
        f"{'/'.join(filter(None, (one.link, one.path))) or 'the folder'} "
        f"({one.code.removesuffix('-file').removesuffix('-skill')})"
        for one in differences
    ]
    return join_first(said, most)


def verify_scope(scope: InstallScope, locked: LockEntries, link_path: LinkPath, limits: Limits) -> Iterator[Issue]:
    """Every difference between a scope's lock file and the disk, each changed, missing or extra file by name."""
    for name in report_steps(sorted(locked), str):
        for difference in compare_install(locked[name], scope, link_path, limits):
            yield _make_issue(locked[name], difference)
    yield from find_unrecorded_installs(scope, locked)


def find_unrecorded_installs(scope: InstallScope, locked: LockEntries) -> Iterator[Issue]:
    """An issue for each install that is there and in no entry of the lock file."""
    for name in list_install_names(scope):
        if name not in locked:
            yield Issue(
                "not-in-lock", name, f"{name} is not in the lock file", scope.install_folder(name), 0, "warning"
            )


def _make_issue(entry: LockEntry, difference: Difference) -> Issue:
    code, path, folder, link = difference
    if code == "broken-link":
        wrong = "is a link, not a copy of" if entry.is_copied else "does not lead to"
        return Issue(code, link, f"{link} {wrong} {entry.name}", folder)
    what = path or entry.name
    says = "is a link, not what was installed" if not path and is_link(folder) else _CODE_MESSAGES[code]
    return Issue(code, what, f"{what} {says}", os.path.join(folder, *path.split("/")) if path else folder)

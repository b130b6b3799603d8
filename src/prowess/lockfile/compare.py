"""What the disk has against what the lock file says: the one comparison, for verify, sync, list and refusals."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

from prowess.errors import Issue
from prowess.files.directory import exists, folder_info
from prowess.files.paths import is_link, is_real_folder, link_ends_at
from prowess.files.tree import hash_tree
from prowess.lockfile.scopes import installed_names
from prowess.progress_steps import stepped
from prowess.spec.plural import join_some

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from prowess.files.tree import FileHash
    from prowess.limits import Limits
    from prowess.lockfile.read import Locked, LockedSkill
    from prowess.lockfile.scopes import Scope

LinkPath = Callable[[str], str]
"""Where a link that the lock file records is on the disk; ``InstallError`` when that is no place where agents look."""
State = Literal["equal", "missing", "edited", "copy", "unlinked"]
_SAYS = {
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
        return f"{self.path or 'the folder'} {_SAYS.get(self.code, 'leads elsewhere')}"


def compare_folder(files: Mapping[str, FileHash], folder: str, limits: Limits, link: str = "") -> list[Difference]:
    """How a folder differs from the files that the lock file lists for it, by path; nothing when it is equal.

    Raises ``OSError`` for a folder that is there and cannot be listed.
    """
    try:
        tree = hash_tree(folder, limits)
    except (OSError, ValueError):  # asked first, a folder that is there would cost one call of the system more
        if folder_info(folder) is not None:
            raise
        return [Difference("missing-skill", "", folder, link)]
    if tree.files == files and not tree.odd:  # the usual case, without sets of thousands of paths
        return []
    rows = [("missing-file", path) for path in files.keys() - tree.files.keys()]
    rows += [("extra-file", path) for path in tree.files.keys() - files.keys()]
    rows += [("changed-file", path) for path in files.keys() & tree.files.keys() if files[path] != tree.files[path]]
    rows += [("extra-file", path) for _, path in tree.odd]
    return [Difference(code, path, folder, link) for code, path in sorted(rows, key=lambda row: (row[1], row[0]))]


def compare_install(entry: LockedSkill, scope: Scope, link_path: LinkPath, limits: Limits) -> Iterator[Difference]:
    """How an install, its links, and the copies that stand for links, differ from an entry of the lock file."""
    place = scope.place(entry.name)
    if is_link(place):  # nothing that is installed is a link, whatever it leads to
        yield Difference("missing-skill", "", place)
    elif exists(place) or not entry.is_copied:  # of copies nothing is in the base, and what is there is not believed
        yield from compare_folder(entry.files, place, limits)
    for recorded in entry.links:
        yield from _compare_link(entry, recorded, place, link_path(recorded), limits)


def _compare_link(entry: LockedSkill, recorded: str, place: str, path: str, limits: Limits) -> Iterator[Difference]:
    folder = entry.folder_of(os.path.basename(path))
    linked = is_link(path)
    if linked and entry.is_copied:  # wherever it leads, a clone has nothing there
        yield Difference("broken-link", "", path, recorded)
    elif linked or (recorded not in entry.copies and not is_copy(entry, path, limits)):
        target = os.path.join(place, *folder.split("/")) if folder else place
        if not (linked and link_ends_at(path, target)):
            yield Difference("broken-link", "", path, recorded)
    elif recorded in entry.copies:
        yield from compare_folder(entry.below(folder), path, limits, recorded)


def is_copy(entry: LockedSkill, path: str, limits: Limits) -> bool:
    """Whether a real folder holds exactly the files that the lock file records for the skill of that name."""
    files = entry.below(entry.folder_of(os.path.basename(path)))
    return bool(files) and is_real_folder(path) and not compare_folder(files, path, limits)


def state_of(differences: Iterable[Difference]) -> State:
    """What an install is: ``"copy"`` or ``"unlinked"`` when only an edited copy, or links, differ."""
    state: State = "equal"
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
    return join_some(said, most)


def verify_scope(scope: Scope, locked: Locked, link_path: LinkPath, limits: Limits) -> Iterator[Issue]:
    """Every difference between a scope's lock file and the disk, each changed, missing or extra file by name."""
    for name in stepped(sorted(locked), str):
        for difference in compare_install(locked[name], scope, link_path, limits):
            yield _issue(locked[name], difference)
    yield from find_unrecorded(scope, locked)


def find_unrecorded(scope: Scope, locked: Locked) -> Iterator[Issue]:
    """An issue for each install that is there and in no entry of the lock file."""
    for name in installed_names(scope):
        if name not in locked:
            yield Issue("not-in-lock", name, f"{name} is not in the lock file", scope.place(name), 0, "warning")


def _issue(entry: LockedSkill, difference: Difference) -> Issue:
    code, path, folder, link = difference
    if code == "broken-link":
        wrong = "is a link, not a copy of" if entry.is_copied else "does not lead to"
        return Issue(code, link, f"{link} {wrong} {entry.name}", folder)
    what = path or entry.name
    says = "is a link, not what was installed" if not path and is_link(folder) else _SAYS[code]
    return Issue(code, what, f"{what} {says}", os.path.join(folder, *path.split("/")) if path else folder)

"""Whether everything is still what the lock file says: each changed, missing or extra file by name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.errors import Issue
from prowess.files.paths import is_link
from prowess.install.entries import copied_part, differences, is_copy
from prowess.install.links import leads_to
from prowess.library.installs import installed_names
from prowess.steps import stepped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.install.links import Landings
    from prowess.library.installs import Scope
    from prowess.library.lock import Locked, LockedSkill
    from prowess.limits import Limits

_SAYS = {
    "changed-file": "is not what the lock file says",
    "missing-file": "is missing",
    "extra-file": "is not in the lock file",
    "missing-skill": "is missing",
}


def verify_scope(scope: Scope, locked: Locked, landings: Landings, limits: Limits) -> Iterator[Issue]:
    """Every difference between a scope's lock file and the disk."""
    for name in stepped(sorted(locked), str):
        yield from _place(locked[name], scope, limits)
        yield from _links(locked[name], scope, landings, limits)
    for name in installed_names(scope):
        if name not in locked:
            yield Issue("not-in-lock", name, f"{name} is not in the lock file", scope.place(name), 0, "warning")


def _place(entry: LockedSkill, scope: Scope, limits: Limits) -> Iterator[Issue]:
    place = scope.place(entry.name)
    if is_link(place):
        yield Issue("missing-skill", entry.name, f"{entry.name} is a link, not what was installed", place)
        return
    yield from _rows(entry, place, limits)


def _rows(entry: LockedSkill, folder: str, limits: Limits) -> Iterator[Issue]:
    for code, path in differences(entry, folder, limits):
        where = os.path.join(folder, *path.split("/")) if path else folder
        yield Issue(code, path or entry.name, f"{path or entry.name} {_SAYS[code]}", where)


def _links(entry: LockedSkill, scope: Scope, landings: Landings, limits: Limits) -> Iterator[Issue]:
    for recorded in entry.links:
        path = landings.path(recorded)
        folder = entry.folder_of(os.path.basename(path))
        if not is_link(path) and (recorded in entry.copies or is_copy(entry, path, limits)):
            yield from _rows(copied_part(entry, path), path, limits)
            continue
        target = os.path.join(scope.place(entry.name), *folder.split("/")) if folder else scope.place(entry.name)
        if not leads_to(path, target):
            yield Issue("broken-link", recorded, f"{recorded} does not lead to {entry.name}", path)

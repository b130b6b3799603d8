"""Sync and verification: the disk compared with the lock files, and made equal to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.install.agent_links import LinkFolders
from prowess.install.sync import SURPLUS_CODES
from prowess.lockfile.read import read_lock
from prowess.lockfile.scopes import select_scopes
from prowess.spec.quantities import format_count
from prowess.web.planning.file_states import list_scope_files, read_file_states
from prowess.web.planning.install import describe_installs
from prowess.web.planning.prepared import (
    Fields,
    PreparedChange,
    choose_scope,
    find_location,
    is_project,
    require_installer,
)

if TYPE_CHECKING:
    from prowess.web.library import Library


def prepare_sync(library: Library, fields: Fields) -> PreparedChange:
    """Return the change that makes the lock file say what the manifest declares, and the disk equal the lock file."""
    installer = require_installer(library)
    scope, project, removes = choose_scope(installer, fields), is_project(fields), fields.is_set("remove")
    files = list_scope_files(scope)

    def read_states() -> dict[str, str]:
        locked = read_lock(scope.lock_folder, limits=library.limits)
        folders = LinkFolders(scope)
        copies = (folders.path_of_link(copy) for entry in locked.values() for copy in entry.copies)
        places = (*(scope.install_folder(name) for name in locked), *copies)
        states = read_file_states((*files, *places), library.limits)
        changes = installer.difference(project=project, remove=removes)
        return {**states, "what differs from the lock file": "\n".join(changes)}

    def apply_sync() -> list[str]:
        before = read_lock(scope.lock_folder, limits=library.limits)
        installs = installer.sync(project=project, remove=removes)
        after = read_lock(scope.lock_folder, limits=library.limits)
        gone = [f"Removed {name}" for name in before if name not in after]
        return [*describe_installs("Put in place", installs), *gone] or ["Done"]

    states = read_states()
    noticed = installer.issues
    return PreparedChange(
        steps=[step for step in states["what differs from the lock file"].split("\n") if step],
        read_states=read_states,
        states=states,
        apply=apply_sync,
        # What nothing asks for is no issue where it is removed now.
        issues=lambda: tuple(
            issue
            for issue in dict.fromkeys((*noticed, *installer.issues))
            if not (removes and issue.code in SURPLUS_CODES)
        ),
        idle_text="Nothing to do: the disk is what the lock file says, and the lock file what the manifest declares.",
    )


def prepare_verification(library: Library, fields: Fields) -> PreparedChange:
    """Return what differs from the lock files as issues. There is nothing to confirm: nothing is changed."""
    installer = require_installer(library)
    location = find_location(installer, fields)
    issues = installer.verify(location=location)
    scopes = select_scopes((installer.project, installer.user), location)
    count = sum(
        len(entry.skills) for scope in scopes for entry in read_lock(scope.lock_folder, limits=library.limits).values()
    )
    skills = format_count(count, "skill")
    text = f"Of {skills}, these differ from the lock files:" if issues else f"{skills}, all as the lock files say."
    return PreparedChange(states={}, issues=lambda: issues, idle_text=text)

"""Sync and verification: the disk compared with the lock files, and made equal to them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from prowess.changes.change import idle_change
from prowess.changes.sync import SyncRun
from prowess.installed.scopes import select_scopes
from prowess.lockfile.read import read_lock
from prowess.text.quantities import format_count
from prowess.web.planning.fields import Fields, choose_scope, find_location, require_installer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.changes.change import Change
    from prowess.installed.scopes import InstalledSkill
    from prowess.web.library import Library

_IN_STEP = "Nothing to do: the disk is what the lock file says, and the lock file what the manifest declares."


def prepare_scope_sync(library: Library, fields: Fields) -> Change[list[InstalledSkill]]:
    """Return the change that makes the lock file say what the manifest declares, and the disk equal the lock file."""
    installer = require_installer(library)
    run = SyncRun(installer, [choose_scope(installer, fields)], library.limits)
    return replace(run.prepare(remove=fields.is_set("remove"), watch=True), idle_text=_IN_STEP)


def prepare_verification(library: Library, fields: Fields) -> Change[Sequence[str]]:
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
    return idle_change(issues=lambda: issues, idle_text=text)

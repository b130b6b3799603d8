"""The update of installs, with what is mine, what is locked and what the source has side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from prowess.changes.update import prepare_update
from prowess.errors import SkillError
from prowess.web.planning.fields import Fields, find_location, require_installer
from prowess.web.side_by_side import FileSides, make_sides

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.changes.change import Change
    from prowess.install.installer import Installer
    from prowess.install.update import Update
    from prowess.installed.scopes import ScopeName
    from prowess.web.library import Library


@dataclass(frozen=True, slots=True)
class UpdateDetails:
    """One update: what would come of it, and the files that differ, side by side."""

    update: Update
    files: Sequence[FileSides] = ()
    why_unknown: str = ""
    """Why the sides cannot be shown; ``""`` where they can."""

    @property
    def is_edited(self) -> bool:
        """Whether the install was changed by hand, and is kept for that."""
        return self.update.status == "edited"


def prepare_source_update(library: Library, fields: Fields) -> Change[list[Update]]:
    """Ask the sources of some installs, or of all, for something newer, and return the update to it."""
    installer = require_installer(library)
    location = find_location(installer, fields)
    names = fields.get_all("install") or tuple(install.full_name for install in installer.list(location=location))
    with installer.asking_once():
        change = prepare_update(
            installer,
            {location: [f"@{name}" for name in names]},
            force=fields.is_set("force"),
            allow_rollback=fields.is_set("rollback"),
            limits=library.limits,
        )
        shown = [update for update in change.details.updates if update.status != "current" or update.why]
        details = tuple(_compare(installer, update, location) for update in shown)

    def apply() -> list[Update]:
        done = change.apply()
        updated = {update.name for update in done if update.status in {"updated", "current"}}
        known = library.outdated
        if known is not None:  # what was updated is outdated no more, and nothing has to be asked again for that
            library.outdated = tuple(one for one in known if one.location != location or one.name not in updated)
        return done

    return replace(change, apply=apply, details=details)


def _compare(installer: Installer, update: Update, location: ScopeName) -> UpdateDetails:
    """Return an update with the sides of its install."""
    if update.status == "failed":
        return UpdateDetails(update, why_unknown=update.why)
    try:
        diff = installer.diff(f"@{update.name}", location=location)
    except SkillError as error:
        return UpdateDetails(update, why_unknown=error.message)
    return UpdateDetails(update, make_sides(diff), diff.why_unasked)

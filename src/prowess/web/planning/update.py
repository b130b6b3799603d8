"""The update of installs, with what is mine, what is locked and what the source has side by side."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prowess.errors import SkillError
from prowess.lockfile.scopes import find_install, select_scopes
from prowess.web.planning.file_states import list_scope_files, read_file_states
from prowess.web.planning.prepared import Fields, PreparedChange, find_location, require_installer
from prowess.web.side_by_side import FileSides, make_sides

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.errors import Issue
    from prowess.install.installer import Installer
    from prowess.install.update import Update
    from prowess.lockfile.scopes import ScopeName
    from prowess.web.library import Library

_SHORT_ID_LENGTH = 12


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


def prepare_update(library: Library, fields: Fields) -> PreparedChange:
    """Ask the sources of some installs, or of all, for something newer, and return the update to it."""
    installer = require_installer(library)
    location = find_location(installer, fields)
    names = fields.get_all("install") or tuple(install.full_name for install in installer.list(location=location))
    force = fields.is_set("force")
    refs = [f"@{name}" for name in names]
    rollback = fields.is_set("rollback")
    run = _UpdatePreparation(library, installer, refs, location=location, force=force, rollback=rollback)
    with installer.asking_once():
        states, planned = run.look()
        details = [run.compare(update) for update in planned if update.status != "current" or update.why]
    due = [update for update in planned if run.is_due(update)]
    # A later commit with identical files is recorded without a question: otherwise it would be outdated for ever.
    moved = [one for one in planned if one.status == "current" and one.after not in {"", one.before} and not one.why]
    return PreparedChange(
        steps=[_describe_update(update, force=force) for update in due]
        + [f"record that {update.name} is unchanged at {update.after[:_SHORT_ID_LENGTH]}" for update in moved],
        read_states=lambda: run.look()[0],
        states=states,
        # One state of each source for the comparison with the plan and for the update itself.
        open_block=installer.asking_once,
        apply=lambda: run.apply([*due, *moved]),
        details=tuple(details),
        issues=lambda: tuple(run.issues),
        idle_text=_describe_idle(planned),
    )


class _UpdatePreparation:
    """The updates of one plan, and every issue that they met, each once."""

    def __init__(
        self,
        library: Library,
        installer: Installer,
        refs: Sequence[str],
        *,
        location: ScopeName,
        force: bool,
        rollback: bool,
    ) -> None:
        self._library, self._installer, self._refs, self._location = library, installer, refs, location
        self._force, self._rollback = force, rollback
        self.issues: dict[Issue, None] = {}

    def look(self) -> tuple[dict[str, str], list[Update]]:
        """Return the state of every file and source that the update goes by, and what would be updated."""
        scopes = select_scopes((self._installer.project, self._installer.user), self._location)
        paths = [path for scope in scopes for path in list_scope_files(scope)]
        for ref in self._refs:
            try:
                paths.append(find_install(ref, scopes)[1])
            except SkillError:  # the update itself says what is wrong with it
                continue
        states = read_file_states(dict.fromkeys(paths), self._library.limits)
        planned = self._update(self._refs, dry_run=True)
        return {**states, **{f"the source of {update.name}": _describe_state(update) for update in planned}}, planned

    def _update(self, refs: Sequence[str], *, dry_run: bool) -> list[Update]:
        if not refs:
            return []
        updates = self._installer.update(
            refs, force=self._force, allow_rollback=self._rollback, dry_run=dry_run, location=self._location
        )
        self.issues |= dict.fromkeys(self._installer.issues)
        return [*updates]

    def is_due(self, update: Update) -> bool:
        """Return whether an update changes files."""
        return update.status == "available" or (self._force and update.status == "edited")

    def compare(self, update: Update) -> UpdateDetails:
        """Return an update with the sides of its install."""
        if update.status == "failed":
            return UpdateDetails(update, why_unknown=update.why)
        try:
            diff = self._installer.diff(f"@{update.name}", location=self._location)
        except SkillError as error:
            return UpdateDetails(update, why_unknown=error.message)
        return UpdateDetails(update, make_sides(diff), diff.why_unasked)

    def apply(self, updates: Sequence[Update]) -> list[str]:
        """Make the updates, and return what came of each."""
        done = self._update([f"@{update.name}" for update in updates], dry_run=False)
        updated = {update.name for update in done if update.status in {"updated", "current"}}
        known = self._library.outdated
        if known is not None:  # what was updated is outdated no more, and nothing has to be asked again for that
            self._library.outdated = tuple(
                one for one in known if one.location != self._location or one.name not in updated
            )
        return [_describe_result(update) for update in done]


def _describe_idle(planned: Sequence[Update]) -> str:
    """Return why there is nothing to update."""
    statuses = {update.status for update in planned}
    if not statuses:
        return "Nothing is installed."
    if statuses == {"current"}:
        return "Every source was asked, and there is nothing to update."
    # In full, and not only beside the plan: a result that is read later has nothing beside it.
    kept = (_describe_result(update) for update in planned if update.status != "current")
    return f"Nothing is updated. {'; '.join(kept)}"


def _describe_state(update: Update) -> str:
    digest = hashlib.sha256(update.diff.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{update.status} {update.after} {digest} {update.why}"


def _describe_versions(update: Update) -> str:
    before, after = update.before[:_SHORT_ID_LENGTH], update.after[:_SHORT_ID_LENGTH]
    return f" from {before} to {after}" if before and after and before != after else ""


def _describe_update(update: Update, *, force: bool) -> str:
    edits = ", over the changes that were made by hand: a backup of them is kept" if force else ""
    is_edited = update.status == "edited"
    return f"update {update.name}{_describe_versions(update)}{edits if is_edited else ''}"


def _describe_result(update: Update) -> str:
    why = f": {update.why}" if update.why else ""
    if update.status == "edited":
        return f"{update.name} is kept as it is, since it was changed by hand{why}"
    words = {"updated": "Updated", "current": "Recorded"}
    return f"{words.get(update.status, 'Could not update')} {update.name}{_describe_versions(update)}{why}"

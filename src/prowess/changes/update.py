"""The update of installs to what their sources have now."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from prowess.changes.change import Change, list_scope_files, read_file_states
from prowess.errors import SkillError
from prowess.install.abilities import summarize_additions
from prowess.installed.scopes import find_install, select_scopes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prowess.errors import Issue
    from prowess.install.installer import Installer
    from prowess.install.update import Update
    from prowess.installed.scopes import ScopeName
    from prowess.limits import Limits

SHORT_ID_LENGTH = 12
"""How many characters of a commit's id people are shown."""
_STUCK = frozenset(("failed", "edited"))


class PlannedUpdate(NamedTuple):
    """What would come of one update."""

    location: ScopeName
    ref: str
    update: Update


class UpdatePlan(NamedTuple):
    """What would come of all updates that were asked for."""

    planned: Sequence[PlannedUpdate]
    force: bool
    """Whether edits are overwritten."""
    went_back: bool
    """Whether a source offers less than what is installed, and is not followed."""

    @property
    def updates(self) -> list[Update]:
        """Every update, in the order of the installs."""
        return [one.update for one in self.planned]

    @property
    def due(self) -> list[PlannedUpdate]:
        """The updates that change files, about which a person is asked."""
        return [one for one in self.planned if self._is_due(one.update)]

    @property
    def moved(self) -> list[PlannedUpdate]:
        """The installs whose source has a later commit with identical files.

        It is recorded without a question: otherwise the installs would be outdated for ever.
        """
        return [one for one in self.planned if _is_moved(one.update)]

    @property
    def kept(self) -> list[Update]:
        """What stays as it is."""
        return [update for update in self.updates if not self._is_due(update) and not _is_moved(update)]

    @property
    def is_stuck(self) -> bool:
        """Whether a source went back, or an install cannot be updated."""
        return self.went_back or any(update.status in _STUCK for update in self.kept)

    def _is_due(self, update: Update) -> bool:
        return update.status == "available" or (self.force and update.status == "edited")


def _is_moved(update: Update) -> bool:
    return update.status == "current" and update.after not in {"", update.before} and not update.why


def prepare_update(
    installer: Installer,
    refs: Mapping[ScopeName, Sequence[str]],
    *,
    force: bool = False,
    allow_rollback: bool = False,
    accept_signer: str = "",
    limits: Limits | None = None,
) -> Change[list[Update]]:
    """Ask the sources of some installs for something newer, and return the update to it; its details are the plan.

    ``refs`` has the installs of each location. With ``limits``, the states of all files and sources are read too.
    """
    issues: dict[Issue, None] = {}  # each once, in the order of their discovery

    def update(refs: Mapping[ScopeName, Sequence[str]], *, dry_run: bool) -> list[PlannedUpdate]:
        done: list[PlannedUpdate] = []
        for location, some in refs.items():
            updates = installer.update(
                some,
                force=force,
                dry_run=dry_run,
                allow_rollback=allow_rollback,
                accept_signer=accept_signer,
                location=location,
            )
            issues.update(dict.fromkeys(installer.issues))
            done += (PlannedUpdate(location, ref, update) for ref, update in zip(some, updates, strict=True))
        return done

    def look() -> tuple[dict[str, str], list[PlannedUpdate]]:
        # The files before the sources, so that no change between the two goes unnoticed.
        states = _read_states(installer, refs, limits) if limits is not None else {}
        planned = update(refs, dry_run=True)
        sources = {f"the source of {one.update.name}": _describe_state(one.update) for one in planned}
        return {**states, **sources}, planned

    def apply() -> list[Update]:
        wanted: dict[ScopeName, list[str]] = {}
        for one in (*plan.due, *plan.moved):
            wanted.setdefault(one.location, []).append(one.ref)
        return [one.update for one in update(wanted, dry_run=False)]

    states, planned = look()
    plan = UpdatePlan(planned, force, any(issue.code == "rolled-back" for issue in issues))
    return Change(
        steps=[_describe_update(one.update, force=force) for one in plan.due]
        + [f"record that {one.update.name} is unchanged at {one.update.after[:SHORT_ID_LENGTH]}" for one in plan.moved],
        states=states,
        read_states=lambda: look()[0],
        # One state of each source for the comparison with the plan and for the update itself.
        open_block=installer.asking_once,
        apply=apply,
        describe=lambda updates: [*map(_describe_result, updates)],
        details=plan,
        issues=lambda: tuple(issues),
        idle_text=_describe_idle(plan.updates),
    )


def _read_states(installer: Installer, refs: Mapping[ScopeName, Sequence[str]], limits: Limits) -> dict[str, str]:
    paths: dict[str, None] = {}
    for location, some in refs.items():
        scopes = select_scopes((installer.project, installer.user), location)
        paths |= dict.fromkeys(path for scope in scopes for path in list_scope_files(scope))
        for ref in some:
            try:
                paths[find_install(ref, scopes)[1]] = None
            except SkillError:  # the update itself says what is wrong with it
                continue
    return read_file_states(paths, limits)


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
    before, after = update.before[:SHORT_ID_LENGTH], update.after[:SHORT_ID_LENGTH]
    return f" from {before} to {after}" if before and after and before != after else ""


def _describe_update(update: Update, *, force: bool) -> str:
    edits = ", over the changes that were made by hand: a backup of them is kept" if force else ""
    is_edited = update.status == "edited"
    added = summarize_additions(update.additions)
    adds = f", which adds {added}" if added else ""
    return f"update {update.name}{_describe_versions(update)}{adds}{edits if is_edited else ''}"


def _describe_result(update: Update) -> str:
    why = f": {update.why}" if update.why else ""
    if update.status == "edited":
        return f"{update.name} is kept as it is, since it was changed by hand{why}"
    words = {"updated": "Updated", "current": "Recorded"}
    return f"{words.get(update.status, 'Could not update')} {update.name}{_describe_versions(update)}{why}"

"""Whether installed skills are what their lock files say, and what updates bring, as commands show it."""

from __future__ import annotations

import os
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING

from prowess.cli.issues import find_remedy
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Style, diff_to_lines, line
from prowess.files.paths import shorten_path
from prowess.files.projects import config_home, project_folders
from prowess.limits import DEFAULT_LIMITS
from prowess.skills.catalog import Catalog
from prowess.text.quantities import format_count, join_first

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import prowess
    from prowess.errors import InstallError, Issue
    from prowess.installed import states
    from prowess.installed.scopes import Location
    from prowess.policy.rules import Policy


# Names that lockfile/ has as well: 'prowess list' without a lock file must not load that package to look for one.
LOCK_FILE = "prowess.lock"
_JOURNAL = ".prowess.journal"
_MAX_NAMED = 5
"""How many installs a warning names."""
POLICY_CODES = frozenset(("policy", "revoked", "not-reviewed"))
"""The codes of what the policy refuses."""
CHANGED = "changed since installed"
BEHIND = "not synced"


def describe_policy(policies: Iterable[Policy]) -> str:
    """Return how much of which files was used, for an answer that says that nothing was refused."""
    policies = [*policies]
    files = [shorten_path(path) for path in dict.fromkeys(path for one in policies for path in one.files)]
    if not files:
        return "There is no policy file: 'prowess policy show' says where they are looked for."
    rules = {rule for one in policies for rule in one.rules}
    revocations = {revocation for one in policies for revocation in one.revocations}
    counts = f"{format_count(len(rules), 'rule')} and {format_count(len(revocations), 'revocation')}"
    return f"Compared with {counts} of {join_first(files, _MAX_NAMED)}."


class LazyLockStates:
    """The lock files around the working folder and of the user, read once. Only what they name is hashed.

    It has the answers of ``prowess.installed.states.LockStates``, which is loaded only where there is a lock file.
    """

    def __init__(self) -> None:
        home = os.path.expanduser("~")
        user_folder = os.path.join(config_home(home, os.environ), "prowess")
        self._states: states.LockStates | None = None
        folders = (*project_folders(os.getcwd(), home), user_folder)
        # Fast path of 'prowess list': a few looks at the disk, and nothing is imported where nothing is installed.
        if any(os.path.lexists(os.path.join(folder, name)) for folder in folders for name in (LOCK_FILE, _JOURNAL)):
            from prowess.installed import scopes, states

            self._states = states.LockStates(scopes.standard_scopes(os.getcwd(), home, os.environ), DEFAULT_LIMITS)

    @property
    def lock_errors(self) -> list[InstallError]:
        """Why lock files could not be read."""
        return [] if self._states is None else self._states.lock_errors

    @property
    def interrupted_changes(self) -> list[Issue]:
        """Changes that somebody interrupted, and that the next change finishes or undoes."""
        return [] if self._states is None else self._states.interrupted_changes

    def find_state(self, skill: prowess.Skill) -> str:
        """Return how an installed skill compares with its lock file, in words; ``""`` if it is not installed."""
        return "" if self._states is None else self._states.find_state(skill)

    def describe_source(self, skill: prowess.Skill) -> str:
        """Return where a skill was installed from, at which version or commit; ``""`` if it is not installed."""
        return "" if self._states is None else self._states.describe_source(skill)

    def is_changed_at(self, location: str) -> bool:
        """Return True when the SKILL.md at ``location`` is in an install, or its copy, that differs from its lock."""
        return self._states is not None and self._states.is_changed_at(location)

    def find_behind(self, location: str) -> list[str]:
        """Return the installs of the ``"project"`` or the ``"user"`` that are another version than is locked."""
        return [] if self._states is None else self._states.find_behind(location)

    def find_missing(self, location: str) -> list[str]:
        """Return the skills that lock files of the ``"project"`` or the ``"user"`` record and that are not here."""
        return [] if self._states is None else self._states.find_missing(location)

    def find_refused(self, location: str) -> list[str]:
        """Return the skills that lock files of the ``"project"`` or the ``"user"`` record, and the policy refuses."""
        return [] if self._states is None else self._states.find_refused(location)


def warn_edited_skills(skills: Iterable[prowess.Skill], lock_states: LazyLockStates | None = None) -> None:
    """Warn of lock files with problems, and of each skill that is not what its lock file says.

    ``lock_states`` are the lock files, if the caller has read them already.
    """
    lock_states = lock_states or LazyLockStates()
    warn_lock_problems(lock_states)
    for skill in skills:
        warn_other_state(skill, lock_states.find_state(skill))


def warn_lock_problems(lock_states: LazyLockStates) -> None:
    """Warn of changes that were interrupted, and of lock files that cannot be read."""
    for issue in lock_states.interrupted_changes:
        printer.warn(f"[{issue.code}] {issue.path}: {issue.message}")
    for error in lock_states.lock_errors:
        printer.warn(f"[{error.code}] {error.message}; whether installed skills have changed is not known")
        if error.code == "lock-conflict":
            printer.note(f"  hint: {find_remedy(error.code)}")


def warn_other_state(skill: prowess.Skill, state: str) -> None:
    """Warn of a skill that is in another state than its lock file says. It is used; ``--verify`` refuses it."""
    user = " --user" if skill.scope is not None and skill.scope.value == "user" else ""
    if state == CHANGED:
        printer.warn(
            f"[changed-since-locked] {skill.name} is not what {LOCK_FILE} says ('prowess verify{user}' names the "
            f"files, 'prowess sync{user}' restores them, --verify refuses it)"
        )
    elif state == BEHIND:
        printer.warn(
            f"[not-synced] {skill.name} is another version than {LOCK_FILE} has ('prowess sync --locked{user}' brings "
            "that version, --verify refuses this one)"
        )


def warn_unrecorded_skills(catalog: prowess.Catalog) -> None:
    """Warn of the installed skills that are not in the catalogue because no lock file records them."""
    names = dict.fromkeys(issue.field for issue in catalog.scan_issues if issue.code == "not-in-lock")
    if names:
        verb = "is" if len(names) == 1 else "are"
        printer.warn(
            f"[not-in-lock] {join_first(list(names), _MAX_NAMED)} {verb} installed and not in {LOCK_FILE}, and not "
            "offered to models ('prowess sync' removes what nobody changed, 'prowess sync --remove' the rest; "
            "'prowess adopt ORG/NAME' keeps one)"
        )


def warn_withheld_skills(catalog: prowess.Catalog) -> None:
    """Warn of the skills that are not in the catalogue because the policy refuses them."""
    for issue in catalog.scan_issues:
        if issue.code in POLICY_CODES:
            printer.warn(f"[{issue.code}] {issue.message}; it is not offered to models")


def suggest_sync(name: str = "", *, location: Location = "all", lock_states: LazyLockStates | None = None) -> str:
    """Return the command that brings skills which a lock file records and which are not here, or ``""``.

    Where the policy refuses one, it says so. With ``name``, only that skill counts. ``location`` says whose lock files
    count.
    """
    lock_states = lock_states or LazyLockStates()
    # The project comes first: after a clone it is the project's skills that are missing.
    for owner, command in (("project", "prowess sync --locked"), ("user", "prowess sync --locked --user")):
        names = lock_states.find_missing(owner) if location in {owner, "all"} else []
        if names and (not name or name in names):
            what = "1 skill that is" if len(names) == 1 else f"{len(names)} skills that are"
            return f"{LOCK_FILE} records {what} not here: {command}"
    for owner, user in (("project", ""), ("user", " --user")):
        names = lock_states.find_refused(owner) if location in {owner, "all"} else []
        if names and (not name or name in names):
            what = f"{LOCK_FILE} records {join_first(names, _MAX_NAMED)}, which the policy refuses"
            return f"{what}: 'prowess policy check' says why, 'prowess update{user}' or 'prowess remove{user}' ends it"
    return ""


def suggest_sync_after_pull(location: Location) -> str:
    """Return the command that brings what a lock file has and the disk has not, skills or other versions, or ``""``."""
    lock_states = LazyLockStates()
    for owner, command in (("project", "prowess sync --locked"), ("user", "prowess sync --locked --user")):
        names = lock_states.find_behind(owner) if location in {owner, "all"} else []
        if names:
            return f"{LOCK_FILE} has another version of {join_first(names, _MAX_NAMED)} than is here: {command}"
    return suggest_sync(location=location, lock_states=lock_states)


def suggest_first_sync() -> str:
    """Return the command that installs what the manifest around the working folder declares, or ``""``.

    That is the case without a lock file, as in a clone in which nobody has installed anything yet.
    """
    from prowess.errors import InstallError
    from prowess.install.manifest import manifest_file_name, read_declarations
    from prowess.installed.scopes import standard_scopes

    folder = standard_scopes(os.getcwd(), os.path.expanduser("~"), os.environ)[0].lock_folder
    try:
        declared = read_declarations(folder, DEFAULT_LIMITS)
    except InstallError as error:
        return f"{error.message}: see 'prowess doctor'"
    is_locked = os.path.lexists(os.path.join(folder, LOCK_FILE))
    return (
        f"{manifest_file_name(folder)} declares skills that are not here: prowess sync"
        if declared and not is_locked
        else ""
    )


def without_edited_skills(catalog: prowess.Catalog) -> prowess.Catalog:
    """Return the catalogue without the installed skills that differ from their lock files."""
    from prowess.installed.scopes import standard_scopes
    from prowess.installed.verifier import LockVerifier

    scopes = standard_scopes(os.getcwd(), os.path.expanduser("~"), os.environ)
    unchanged, refused = LockVerifier(scopes, DEFAULT_LIMITS).verify_skills(list(catalog.skills))
    return Catalog(unchanged, issues=[*catalog.failures, *refused], places=catalog.places)


_STYLES: dict[str, Style] = {
    "updated": "good",
    "added": "good",
    "removed": "warn",
    "available": "good",
    "current": "dim",
    "edited": "warn",
    "failed": "bad",
}
_MAX_SHOWN = 20
"""How many additions of a kind are shown; ``--json`` has all of them."""


def update_to_dict(update: prowess.Update) -> dict[str, object]:
    """Return an update as data."""
    return {**asdict(update), "path": str(update.path) if update.path else None}


def update_to_line(update: prowess.Update, *, force: bool = False) -> Block:
    """Return the line about an update: its status, the install, the commits, and why it is so."""
    moved = f" {update.before[:12]} → {update.after[:12]}" if update.before != update.after and update.after else ""
    edited = (
        "changed by hand, which is overwritten: a backup is kept"
        if force
        else "changed by hand, and kept unless --force"
    )
    why = update.why or (edited if update.status == "edited" else "")
    return line((f"{update.status} ", _STYLES[update.status]), (update.name, "name"), moved, f": {why}" if why else "")


def change_to_blocks(update: prowess.Update, here: str) -> Iterator[Block]:
    """Return what an update adds, and then its diff; ``here`` is what its lines with a minus are."""
    for title, group in groupby(update.additions, lambda addition: addition.title):
        # Only the name of a skill says by itself which skill it is about.
        texts = [one.value if one.kind == "skill" else f"{one.value} ({one.skill})" for one in group]
        shown = join_first([" ".join(text.split()) for text in texts], _MAX_SHOWN)
        yield line((f"{title}{'s' if len(texts) > 1 else ''}: ", "warn"), shown, indent=2)
    if update.diff:
        yield line((f"lines with - are what is {here}; lines with + are what its source has", "dim"), indent=2)
    yield from diff_to_lines(update.diff, indent=2, cut=True)


def updates_to_blocks(updates: Sequence[prowess.Update], *, force: bool) -> Iterator[Block]:
    """Return what updates would change on this disk."""
    for update in updates:
        yield update_to_line(update, force=force)
        here = "here, with the changes made by hand" if update.status == "edited" else "here"
        yield from change_to_blocks(update, here)

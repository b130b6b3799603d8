"""The forms that ask for a change: each is read, and ``changes`` prepares what it asks for."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from prowess.addresses.skill_ref import SkillRef
from prowess.changes.adopt import prepare_adoption
from prowess.changes.change import Change, idle_change, read_file_states
from prowess.changes.install import prepare_install
from prowess.changes.links import prepare_links
from prowess.changes.merge import OWNERS, prepare_merge
from prowess.changes.sync import SyncRun
from prowess.changes.trust import SHORT_DIGEST, prepare_grant, read_digest
from prowess.changes.update import prepare_update
from prowess.errors import NotInstalledError, NotTrustedError, SkillError
from prowess.install.plan import InstallOptions
from prowess.install.typed_source import parse_typed_source
from prowess.installed.scopes import find_install, select_scopes
from prowess.lockfile.read import read_lock
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from prowess.conversation.acting.trust import Grant, Trust
    from prowess.install.compare_source import SkillDiff
    from prowess.install.installer import Installer
    from prowess.install.lock_sides import Owner
    from prowess.install.update import Update
    from prowess.installed.scopes import InstalledSkill, InstallScope, ScopeName
    from prowess.skills.inventory import Inventory
    from prowess.skills.skill import Skill
    from prowess.web.library import Library


class Fields:
    """The fields of a form; each may occur in it several times."""

    def __init__(self, values: Mapping[str, Sequence[str]]) -> None:
        self._values = {name: tuple(strings) for name, strings in values.items()}

    def get(self, name: str) -> str:
        """Return the first value of a field without spaces around it; ``""`` where the form has none."""
        return next(iter(self._values.get(name, ())), "").strip()

    def get_all(self, name: str) -> tuple[str, ...]:
        """Return every value of a field, each once, without empty ones."""
        return tuple(dict.fromkeys(filter(None, map(str.strip, self._values.get(name, ())))))

    def is_set(self, name: str) -> bool:
        """Return whether a box of the form is ticked."""
        return bool(self.get(name))

    def items(self) -> list[tuple[str, str]]:
        """Return every field with each of its values, for a form that asks for the change once more."""
        return [(name, text) for name, strings in self._values.items() for text in strings]


def require_installer(library: Library) -> Installer:
    """Return the installer of a library; raise ``SkillError`` for a library without installs."""
    if library.installer is None:
        raise SkillError("this library has no installs that could be changed", code="bad-argument")
    return library.installer


def require_trust(library: Library) -> Trust:
    """Return the grants of a library; raise ``SkillError`` for a library without them."""
    if library.trust is None:
        raise SkillError("this library has no grants", code="bad-argument")
    return library.trust


def is_project(fields: Fields) -> bool:
    """Return whether a form names the project, and not the user; raise ``SkillError`` where it names neither."""
    scope = fields.get("scope")
    if scope not in {"project", "user"}:
        raise SkillError(f"the scope must be 'project' or 'user', not {scope[:40]!r}", code="bad-argument")
    return scope == "project"


def find_location(installer: Installer, fields: Fields) -> ScopeName:
    """Return whose installs a form means: those that it names, or else those that the command line would mean."""
    if not fields.get("scope"):
        return installer.default_location
    return "project" if is_project(fields) else "user"


def choose_scope(installer: Installer, fields: Fields) -> InstallScope:
    """Return the scope that a form names."""
    return installer.project if is_project(fields) else installer.user


def prepare_source_install(library: Library, fields: Fields) -> Change[tuple[InstalledSkill, ...]]:
    """Fetch what a source has, and return its install; with several skills, after a choice of some."""
    installer = require_installer(library)
    source, agents = fields.get("source"), fields.get_all("agent")
    if not source:
        raise SkillError("name a source: owner/repo, an address, or a path of this machine", code="bad-reference")
    options = InstallOptions(agents, fields.is_set("replace"), fields.is_set("copy"), preset=not agents)
    change = prepare_install(
        installer,
        parse_typed_source(source),
        source,
        options,
        project=is_project(fields),
        limits=library.limits,
        watch=True,
    )
    choose = change.choose
    if choose is None:
        return change

    def choose_skills(chosen: Fields) -> Change[tuple[InstalledSkill, ...]]:
        names = chosen.get_all("skill")
        if not any(skill.name in names for skill in change.details.offer.skills):
            raise SkillError("no skill was chosen, so there is nothing to install", code="bad-argument")
        return choose(names)

    return replace(change, choose=choose_skills)


def prepare_skill_adoption(library: Library, fields: Fields) -> Change[tuple[InstalledSkill, ...]]:
    """Return the change that records a skill which is where agents look; raise ``NotInstalledError`` for no such."""
    installer, name = require_installer(library), fields.get("skill")
    scope = choose_scope(installer, fields)
    change = prepare_adoption(installer, scope, (name,), library.limits, watch=True) if name else None
    if change is None or not change.steps:
        message = f"no skill {name[:80]!r} is in .agents/skills or .claude/skills without being installed"
        raise NotInstalledError(message)
    return change


def prepare_link(library: Library, fields: Fields) -> Change[list[str]]:
    """Return the change that links installs for agents. Raises ``NotInstalledError`` for one that is not installed."""
    return _prepare_links(library, fields, adds=True)


def prepare_unlink(library: Library, fields: Fields) -> Change[list[str]]:
    """Return the change that removes the links of installs for agents."""
    return _prepare_links(library, fields, adds=False)


def _prepare_links(library: Library, fields: Fields, *, adds: bool) -> Change[list[str]]:
    installer = require_installer(library)
    agents, names = fields.get_all("agent"), fields.get_all("install")
    if not agents or not names:
        raise SkillError("name an install and an agent", code="bad-argument")
    # A form with installs of both scopes names none.
    scopes = (installer.project, installer.user)
    meant = select_scopes(scopes, find_location(installer, fields)) if fields.get("scope") else scopes
    refs: dict[InstallScope, list[str]] = {}
    for name in names:
        ref = f"@{name.removeprefix('@')}"
        refs.setdefault(find_install(SkillRef.parse(ref), meant)[0], []).append(ref)
    return prepare_links(installer, refs, agents, adds=adds, limits=library.limits)


@dataclass(frozen=True, slots=True)
class _EntryConflict:
    """An entry that both sides changed: its name, the version of each side, and the field of the form that decides."""

    name: str
    mine: str
    theirs: str
    field: str


def prepare_lock_merge(library: Library, fields: Fields) -> Change[Any]:
    """Return the merge of a scope's lock file; where both sides changed an entry, after a choice for each."""
    change = prepare_merge(choose_scope(require_installer(library), fields), library.limits)
    choose = change.choose
    if choose is None:
        return replace(change, details=None)
    conflicts = [
        _EntryConflict(name, mine, theirs, f"side-{number}")
        for number, (name, mine, theirs) in enumerate(change.details.conflicts)
    ]
    return replace(change, choose=lambda chosen: choose(_read_choices(chosen, conflicts)), details=tuple(conflicts))


def _read_choices(chosen: Fields, conflicts: Sequence[_EntryConflict]) -> dict[str, Owner]:
    undecided = [conflict.name for conflict in conflicts if chosen.get(conflict.field) not in OWNERS]
    if undecided:
        raise SkillError(f"choose a side for {', '.join(undecided)} as well", code="bad-argument")
    return {conflict.name: cast("Owner", chosen.get(conflict.field)) for conflict in conflicts}


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


@dataclass(frozen=True, slots=True)
class _SkillGrant:
    """What a person has to know before a grant, with the id of the skill's page."""

    id: str
    name: str
    digest: str
    contents: Inventory


def prepare_skill_grant(library: Library, fields: Fields) -> Change[list[Grant]]:
    """Return the change that trusts skills as they are now; raise ``NotTrustedError`` for one that is not local."""
    ids = fields.get_all("skill")
    if not ids:
        raise SkillError("name a skill", code="bad-argument")
    change = prepare_grant(require_trust(library), [_find_skill(library, skill_id) for skill_id in ids])
    details = (
        _SkillGrant(skill_id, one.skill.name, one.digest, one.contents)
        for skill_id, one in zip(ids, change.details, strict=True)
    )
    return replace(change, details=tuple(details))


def prepare_revocation(library: Library, fields: Fields) -> Change[list[str]]:
    """Return the change that revokes every grant of some skills, or the grants of some digests."""
    trust = require_trust(library)
    # Before the grants are read, so that no change between the two goes unnoticed.
    states = read_file_states([trust.path], library.limits)
    skills = [_find_skill(library, skill_id) for skill_id in fields.get_all("skill")]
    # A skill that is gone by now may still have a grant, so grants are also named by their digest.
    keys = {*fields.get_all("digest"), *(skill.location for skill in skills)}
    keys |= {read_digest(skill) for skill in skills}
    grants = [grant for grant in trust.grants() if keys & {grant.digest, grant.location}]

    def apply_revocation() -> list[str]:
        count = sum(trust.revoke(grant.digest) for grant in grants)
        return [f"Revoked {format_count(count, 'grant')}"]

    return Change(
        steps=[
            f"revoke the grant for {grant.name} ({grant.digest[:SHORT_DIGEST]}), made on {grant.granted}"
            for grant in grants
        ],
        read_states=lambda: read_file_states([trust.path], library.limits),
        states=states,
        apply=apply_revocation,
        describe=list,
        idle_text="Nothing to do: there is no such grant.",
    )


def _find_skill(library: Library, skill_id: str) -> Skill:
    state = library.state
    row = state.find_row(skill_id)
    skill = state.read_skill(row)
    if skill is None:
        raise SkillError(f"{row.name!r} does not load, so nothing of it can run", row.location, "bad-argument")
    if not skill.is_local:
        raise NotTrustedError(f"skill {skill.name!r} is not a folder on this machine", skill.location, "not-local")
    return skill


@dataclass(frozen=True, slots=True)
class _UpdateDetails:
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


def _compare(installer: Installer, update: Update, location: ScopeName) -> _UpdateDetails:
    """Return an update with the sides of its install."""
    if update.status == "failed":
        return _UpdateDetails(update, why_unknown=update.why)
    try:
        diff = installer.diff(f"@{update.name}", location=location)
    except SkillError as error:
        return _UpdateDetails(update, why_unknown=error.message)
    return _UpdateDetails(update, make_sides(diff), diff.why_unasked)


PREPARATIONS: Mapping[str, Callable[[Library, Fields], Change[Any]]] = {
    "install": prepare_source_install,
    "adopt": prepare_skill_adoption,
    "update": prepare_source_update,
    "sync": prepare_scope_sync,
    "verify": prepare_verification,
    "link": prepare_link,
    "unlink": prepare_unlink,
    "trust": prepare_skill_grant,
    "revoke": prepare_revocation,
    "lock": prepare_lock_merge,
}


_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_FILE = "/dev/null"
MAX_ROWS = 2_000
"""Rows of one install that a page shows."""


class _SideCell(NamedTuple):
    """A line of one side; ``change`` is ``""``, ``changed``, ``added`` or ``removed``, and ``text`` without its end."""

    text: str = ""
    change: str = ""


class _SideRow(NamedTuple):
    """A line of the three sides; ``number`` is that of the locked line, 0 for a line that the lock file has not."""

    number: int
    mine: _SideCell
    locked: str
    upstream: _SideCell

    @property
    def is_conflict(self) -> bool:
        """True when my files and upstream both changed the line, and the two results differ."""
        return bool(self.mine.change and self.upstream.change) and self.mine != self.upstream


@dataclass(frozen=True, slots=True)
class FileSides:
    """A file that differs: its path, the parts of it around each change, and what cannot be shown line by line."""

    path: str
    parts: Sequence[Sequence[_SideRow]] = ()
    notes: Sequence[str] = ()
    """Sentences about a side: it has no such file, another mode, or a content that is not text."""


def make_sides(diff: SkillDiff) -> list[FileSides]:
    """Return the files of an install that differ, by path, with at most ``MAX_ROWS`` rows in all."""
    mine, upstream = _parse_diff(diff.edits, diff.edited_files), _parse_diff(diff.updates, diff.updated_files)
    files: list[FileSides] = []
    left = MAX_ROWS
    for path in sorted(mine.keys() | upstream.keys()):
        here, there = mine.get(path, _FileDiff()), upstream.get(path, _FileDiff())
        parts = _join_sides(here, there)
        notes = [f"mine: {note}" for note in here.notes] + [f"upstream: {note}" for note in there.notes]
        count = sum(map(len, parts))
        if count > left:
            parts, notes = [], [*notes, f"{count:,} lines, too many for this page: see 'prowess diff {diff.name}'"]
        else:
            left -= count
        files.append(FileSides(path, parts, notes))
    return files


# -- reading a unified diff --------------------------------------------------------------------------------------------


class _Hunk(NamedTuple):
    """A part of a diff: the number of its first locked line, and its rows, each with its sign."""

    begin: int
    rows: list[str]


@dataclass(slots=True)
class _FileDiff:
    hunks: list[_Hunk] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _parse_diff(text: str, paths: Sequence[str]) -> dict[str, _FileDiff]:
    """Return the diff of each file; ``paths`` are the files in their order, and lines outside of hunks are notes."""
    files = {path: _FileDiff() for path in paths}
    if not paths:
        return files
    current = paths[0]
    lines = iter(text.split("\n"))
    for line in lines:
        match = _HUNK.match(line)
        if match is not None:
            files[current].hunks.append(_read_hunk(match, lines))
        elif line.startswith("--- "):
            old, new = line[4:], next(lines, "")[4:]
            current = (new if old == _NO_FILE else old)[2:]
            files.setdefault(current, _FileDiff())
            files[current].notes += ["the file is new"] if old == _NO_FILE else []
            files[current].notes += ["the file is gone"] if new == _NO_FILE else []
        elif line:
            # A note names its file somewhere in it, and of two names the longer one says more.
            current = max((path for path in paths if path in line), key=len, default=current)
            files[current].notes.append(line)
    return files


def _read_hunk(match: re.Match[str], lines: Iterator[str]) -> _Hunk:
    """Return a hunk; as many lines belong to it as its head says, whatever they look like."""
    begin, old = int(match[1]), int(match[2] or 1)
    new = int(match[4] or 1)
    rows: list[str] = []
    while (old > 0 or new > 0) and (line := next(lines, None)) is not None:
        if line[:1] == "\\":  # "no newline at the end" is not a line of the file
            continue
        rows.append(line)
        old -= line[:1] in {" ", "-"}
        new -= line[:1] in {" ", "+"}
    # Without locked lines, the head names the line before which nothing is.
    return _Hunk(begin if int(match[2] or 1) else begin + 1, rows)


# -- joining two sides -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Side:
    """One side of a part, by the numbers of locked lines: what became of each, and what was added behind it."""

    locked: dict[int, str] = field(default_factory=dict)
    cells: dict[int, _SideCell] = field(default_factory=dict)
    added: dict[int, list[str]] = field(default_factory=dict)


def _read_side(hunks: Sequence[_Hunk]) -> _Side:
    side = _Side()
    for hunk in hunks:
        number = hunk.begin
        removed: list[int] = []
        for row in hunk.rows:
            sign, text = row[:1], row[1:]
            if sign == "+":
                if removed:  # a line that stands for one that was removed is a change of it
                    side.cells[removed.pop(0)] = _SideCell(text, "changed")
                else:
                    side.added.setdefault(number - 1, []).append(text)
                continue
            side.locked[number] = text
            if sign == "-":
                side.cells[number] = _SideCell("", "removed")
                removed.append(number)
            else:
                removed = []
            number += 1
    return side


def _join_sides(mine: _FileDiff, upstream: _FileDiff) -> list[list[_SideRow]]:
    """Return the parts of a file where either side differs from the lock file."""
    here, there = _read_side(mine.hunks), _read_side(upstream.hunks)
    locked = here.locked | there.locked
    numbers = sorted(locked.keys() | here.added.keys() | there.added.keys())
    parts: list[list[_SideRow]] = []
    before = -1
    for number in numbers:
        # Lines that no hunk has are between two parts, and are equal on all sides.
        if not parts or number > before + 1:
            parts.append([])
        before = number
        if number in locked:
            text = locked[number]
            kept = _SideCell(text)
            parts[-1].append(_SideRow(number, here.cells.get(number, kept), text, there.cells.get(number, kept)))
        parts[-1] += _join_added_lines(here.added.get(number, []), there.added.get(number, []))
    return [part for part in parts if part]


def _join_added_lines(mine: Sequence[str], upstream: Sequence[str]) -> Iterator[_SideRow]:
    for index in range(max(len(mine), len(upstream))):
        left, right = (
            _SideCell(side[index], "added") if index < len(side) else _SideCell() for side in (mine, upstream)
        )
        yield _SideRow(0, left, "", right)

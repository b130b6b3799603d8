"""Adoption: skills that are where agents look are taken over as they are; nothing is fetched."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from prowess.addresses.skill_ref import check_part
from prowess.addresses.source_spec import SourceSpec, as_repository, with_parts
from prowess.discovery.agents import CLAUDE_SKILLS, SHARED_SKILLS
from prowess.errors import BadReferenceError, Issue, NotInstalledError, UnsafeTreeError
from prowess.files.directory import Folder, exists, stat_folder
from prowess.files.paths import is_link_to, is_real_folder, relative_path
from prowess.files.tree import find_guesses, read_tree
from prowess.files.write import NewFile
from prowess.install.agent_links import LinkFolders
from prowess.install.entry_source import source_for_lock
from prowess.install.find_skills import find_skills
from prowess.install.install_tree import InstallTree
from prowess.install.name_conflicts import refuse_taken
from prowess.install.plan import InstallOptions
from prowess.install.source_tree import check_paths
from prowess.install.stage import stage_install
from prowess.install.store import Disposal, open_store
from prowess.install.typed_source import parse_typed_source
from prowess.installed.other_tools import compute_npm_hash, entry_from_metadata, read_foreign_entries
from prowess.installed.scopes import list_install_names
from prowess.names import SKILL_FILE, is_safe_part, link_name
from prowess.progress_steps import report_steps
from prowess.text.spelling import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.install.find_skills import TreeSkill
    from prowess.install.store import Store
    from prowess.installed.other_tools import ForeignEntry
    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntries

_ADOPTED_FOLDERS: tuple[tuple[str, tuple[str, ...]], ...] = ((SHARED_SKILLS, ()), (CLAUDE_SKILLS, ("claude-code",)))
"""The folders that are searched for skills, each with the agents that look only there."""
_GIT_SOURCE_TYPES = frozenset(("github", "gitlab", "git"))
_UNHASHED_FOLDERS = frozenset(("__pycache__", "node_modules"))
"""The folders that the npm tool leaves out of its hash."""


class AdoptableSkill(NamedTuple):
    """What can be taken over: its tree, its source as far as it is known, the agents it is for, and its folder.

    It is a skill in a folder where agents look, or an install that no lock file records.
    """

    tree: InstallTree
    spec: SourceSpec
    agents: tuple[str, ...]
    folder: str
    issues: tuple[Issue, ...] = ()
    is_install: bool = False
    """True for an install, whose folder is in its place already."""

    @property
    def source(self) -> str:
        """The source that another tool recorded, for people."""
        return str(replace(self.spec, subpath=self.tree.subpath))

    @property
    def known_name(self) -> str:
        """The name by which a person asks for it: that of its folder, or ``org/name`` of an install."""
        return self.tree.name if self.is_install else os.path.basename(self.folder)


def adopt_skills(scope: InstallScope, names: tuple[str, ...], limits: Limits) -> tuple[list[str], list[Issue]]:
    """Take over the skills with these names, or all; returns the names of the installs, and what was noticed.

    Raises ``NotInstalledError`` for a name that no skill has.
    """
    issues: list[Issue] = []
    adopted: dict[str, str] = {}
    # No folder of ours is made for nothing. Where there is one, an interrupted change in it is ended.
    if not names and stat_folder(scope.base) is None and next(find_candidates(scope, limits), None) is None:
        return [], []
    with open_store(scope, limits) as store:
        skills = find_adoptable(scope, store.locked, limits, names)
        if names:
            # All names are checked before the first skill is moved. Without names, one skill is in memory at a time.
            skills = iter(_check_names(names, list(skills), store, limits))
        for skill in skills:
            if is_left_in_place(skill, scope, names):
                issues.append(_no_source_issue(skill, scope, "stays where it is, unless it is named"))
                continue
            issues += (*skill.issues, *_adopt_one(store, skill))
            adopted[skill.known_name] = skill.tree.name
            if is_project_own(skill, scope):
                place = scope.install_folder(skill.tree.name)
                issues.append(_no_source_issue(skill, scope, f"is in {place} alone from now on"))
        issues += store.issues
    return list(adopted.values()), issues


def _check_names(
    names: tuple[str, ...], skills: list[AdoptableSkill], store: Store, limits: Limits
) -> list[AdoptableSkill]:
    """Return the skills.

    Raises ``NotInstalledError`` with every name that is neither one of theirs nor installed already.
    """
    known = {os.path.basename(link) for entry in store.locked.values() for link in entry.links}
    known |= {skill.known_name for skill in skills}
    missing = [name for name in names if name not in known]
    if not missing:
        return skills
    available = [os.path.basename(skill.folder) for skill in find_candidates(store.scope, limits)]
    rows = []
    for name in missing:
        hint = did_you_mean(name, available)
        rows.append(f"there is no skill {name!a} to adopt" + (f"; {hint}" if hint else ""))
    raise NotInstalledError("; ".join(rows), store.scope.root)


def find_adoptable(
    scope: InstallScope, locked: LockEntries, limits: Limits, names: tuple[str, ...] = ()
) -> Iterator[AdoptableSkill]:
    """Yield the skills with these names, or all, that are where agents look and are not installed already.

    An install that no lock file records, of the name ``org/name``, is one too.
    """
    link_folders = LinkFolders(scope)
    # Found out at the beginning: what is taken over meanwhile is an install too.
    unrecorded = [name for name in list_install_names(scope) if name not in locked and (not names or name in names)]
    installed: set[str] | None = None
    for skill in find_candidates(scope, limits, names):
        if installed is None:  # found out once, and a bad lock file is only refused when there is something to adopt
            installed = {link_folders.path_of_link(link) for entry in locked.values() for link in entry.links}
        if skill.folder not in installed:
            yield skill
    for name in unrecorded:
        yield _read_unrecorded(scope, name, limits)


def is_project_own(skill: AdoptableSkill, scope: InstallScope) -> bool:
    """Whether a skill is the project's own: it has no known source, and the repository may hold the only copy."""
    return scope.location == "project" and skill.spec.kind == "folder"


def is_left_in_place(skill: AdoptableSkill, scope: InstallScope, names: tuple[str, ...]) -> bool:
    """Return whether a skill stays where it is: it is the project's own, and nobody named it."""
    # The install base is not under version control, so the project's repository would lose the skill.
    return not names and is_project_own(skill, scope)


def _no_source_issue(skill: AdoptableSkill, scope: InstallScope, what: str) -> Issue:
    path = relative_path(skill.folder, scope.root)
    return Issue("no-source", skill.tree.name, f"{path} has no recorded source: it {what}", skill.folder, 0, "warning")


def _adopt_one(store: Store, skill: AdoptableSkill) -> list[Issue]:
    """Move one skill into the install base, link it, and record it; returns what was noticed."""
    if not skill.is_install:
        source = source_for_lock(skill.spec, store.scope)
        refuse_taken(skill.tree.name, source, store.scope, store.locked, store.taken_names)
    options = InstallOptions(skill.agents, replace=True, replace_foreign=True)
    locked = dict(store.locked)
    issues = stage_install(store, locked, skill.tree, options)
    entry = locked[skill.tree.name]
    if not skill.is_install:
        _remove_misnamed_folder(store, skill, {store.link_folders.path_of_link(link) for link in entry.links})
    if entry.kind == "folder":  # the folder that was its source is a link to it now
        locked |= {entry.name: replace(entry, kind="adopted", source="")}
    store.commit(locked)
    return issues


def _remove_misnamed_folder(store: Store, skill: AdoptableSkill, links: set[str]) -> None:
    """Stage the removal of a folder that is not named like its skill, and of Claude Code's link to it.

    The new links of the skill take their place.
    """
    claude_link = os.path.join(store.scope.root, *CLAUDE_SKILLS.split("/"), os.path.basename(skill.folder))
    if skill.folder not in links:
        store.stage_unlink(skill.folder, Disposal("foreign"))
        if is_link_to(claude_link, skill.folder) and claude_link not in links:
            store.stage_unlink(claude_link)


def find_candidates(scope: InstallScope, limits: Limits, names: tuple[str, ...] = ()) -> Iterator[AdoptableSkill]:
    """Yield the skills with these names, or all, that are real folders in the shared folder or in Claude Code's."""
    state_folder = os.environ.get("XDG_STATE_HOME", "") if scope.location == "user" else ""
    recorded = read_foreign_entries(scope.root, state_folder=state_folder, limits=limits)
    folders: dict[str, tuple[str, tuple[str, ...]]] = {}
    for place, agents in _ADOPTED_FOLDERS:
        parent = os.path.join(scope.root, *place.split("/"))
        for name in _list_folders(parent):
            folder = os.path.join(parent, name)
            if (
                name not in folders
                and (not names or name in names)
                and is_real_folder(folder)
                and exists(os.path.join(folder, SKILL_FILE))
            ):
                linked = is_link_to(os.path.join(scope.root, *CLAUDE_SKILLS.split("/"), name), folder)
                # A link of Claude Code to the shared folder becomes a link to the install.
                folders[name] = folder, ("claude-code",) if linked else agents
    for name in report_steps([*folders], str):
        folder, agents = folders[name]
        yield _read_candidate(folder, recorded.get(name), agents, limits)


def _list_folders(parent: str) -> list[str]:
    if stat_folder(parent) is None:
        return []
    with Folder(parent) as opened:
        return [name for name in opened.list_entries().folders if is_safe_part(name)]


def _read_candidate(
    folder: str, recorded: ForeignEntry | None, agents: tuple[str, ...], limits: Limits
) -> AdoptableSkill:
    """Return the skill in a folder; raises ``UnsafeTreeError`` for one that cannot be loaded or installed."""
    name = os.path.basename(folder)
    files, skills = _read_skills(folder, name, limits)
    recorded = recorded or entry_from_metadata(name, skills[0].document.front.metadata)
    source = find_recorded_source(recorded)
    spec = source or SourceSpec("folder", folder, "local", link_name(name), local=True)
    subpath, spec = spec.subpath, replace(spec, subpath="")
    select = skills[0].name if source else ""
    tree = InstallTree(spec, "", spec.full_name, subpath, select, files, {skills[0].name: ""})
    issues = (*_find_changes(recorded, files, folder), *_guesses_of(files, folder))
    return AdoptableSkill(tree, spec, agents, folder, issues)


def _read_unrecorded(scope: InstallScope, name: str, limits: Limits) -> AdoptableSkill:
    """Return an install that no lock file records.

    Raises ``UnsafeTreeError`` for one that cannot be loaded or installed.
    """
    org, _, short_name = name.partition("/")
    folder = scope.install_folder(name)
    files, skills = _read_skills(folder, short_name, limits)
    spec = SourceSpec("folder", folder, org, short_name, local=True)
    tree = InstallTree(spec, "", name, "", "", files, {skill.name: skill.folder for skill in skills})
    return AdoptableSkill(tree, spec, (), folder, _guesses_of(files, folder), is_install=True)


def _guesses_of(files: tuple[NewFile, ...], folder: str) -> tuple[Issue, ...]:
    return find_guesses((file.path for file in files if file.executable), folder)


def _read_skills(folder: str, name: str, limits: Limits) -> tuple[tuple[NewFile, ...], list[TreeSkill]]:
    """Return the files of a folder, and its skills; raises ``UnsafeTreeError`` when nothing in it can be installed."""
    tree_read = read_tree(folder, limits)
    for code, path in tree_read.problems:
        raise UnsafeTreeError(f"{path!a} cannot be adopted", folder, code)
    files = tuple(NewFile(*file) for file in tree_read.files)
    check_paths([file.path for file in files], limits)
    by_path = {file.path: file.content for file in files}
    skills, issues, _ = find_skills(by_path, by_path.__getitem__, name=name, limits=limits)
    if not skills:
        why = issues[0].message if issues else f"there is no {SKILL_FILE}"
        raise UnsafeTreeError(f"nothing in it loads: {why}", folder, issues[0].code if issues else "missing-skill-md")
    return files, skills


def find_recorded_source(recorded: ForeignEntry | None) -> SourceSpec | None:
    """Return the repository that another tool recorded for a skill, with its version and its folder there.

    Else ``None``.
    """
    if recorded is None or recorded.source_type not in _GIT_SOURCE_TYPES:
        return None
    host = "gitlab:" if recorded.source_type == "gitlab" and ":" not in recorded.source else ""
    # What the other tool recorded may be no source that we know. It is checked like what a person types.
    with suppress(BadReferenceError):
        spec = parse_typed_source(recorded.source_url or host + recorded.source)
        if not spec.local:
            spec = with_parts(as_repository(spec), ref=recorded.ref, subpath=recorded.folder)
            return replace(spec, name=check_part(link_name(recorded.name)), skills=())
    return None


def _find_changes(recorded: ForeignEntry | None, files: tuple[NewFile, ...], folder: str) -> Iterator[Issue]:
    """A warning when a skill is not what the npm tool recorded."""
    if recorded is None or not recorded.computed_hash:
        return
    hashed = ((file.path, file.content) for file in files if _UNHASHED_FOLDERS.isdisjoint(file.path.split("/")))
    if compute_npm_hash(hashed) != recorded.computed_hash:
        message = "has changed since the npm tool recorded it in skills-lock.json"
        yield Issue("changed-since-locked", recorded.name, message, folder, 0, "warning")

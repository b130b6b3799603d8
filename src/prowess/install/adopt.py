"""Skills that already lie where agents look, taken over as they are: nothing is fetched."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from prowess.discovery.search_paths import CLAUDE_SKILLS, SHARED_SKILLS
from prowess.errors import BadReferenceError, Issue, NotInstalledError, UnsafeTreeError, did_you_mean
from prowess.files.directory import Folder, exists, stat_folder
from prowess.files.paths import is_link_to, is_real_folder
from prowess.files.tree import read_tree
from prowess.files.write import NewFile
from prowess.install.agent_links import LinkFolders
from prowess.install.entry_source import source_for_lock
from prowess.install.find_skills import find_skills
from prowess.install.plan import parse_typed_source
from prowess.install.stage import InstallOptions, InstallRequest, refuse_taken, stage_install
from prowess.install.store import open_store
from prowess.install.tree import InstallTree, check_paths
from prowess.lockfile.npm import compute_npm_hash, read_npm_lock
from prowess.names import SKILL_FILE
from prowess.progress_steps import report_steps
from prowess.spec.skill_ref import is_safe_part, link_name
from prowess.spec.source_spec import SourceSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.install.store import Store
    from prowess.limits import Limits
    from prowess.lockfile.npm import NpmLockEntry
    from prowess.lockfile.read import LockEntries
    from prowess.lockfile.scopes import InstallScope

_ADOPTED_FOLDERS: tuple[tuple[str, tuple[str, ...]], ...] = ((SHARED_SKILLS, ()), (CLAUDE_SKILLS, ("claude-code",)))
_GIT_SOURCE_TYPES = frozenset(("github", "gitlab", "git"))
_UNHASHED_FOLDERS = frozenset(("__pycache__", "node_modules"))


class AdoptableSkill(NamedTuple):
    """A skill that was found where agents look: its tree, its source as far as it is known, the agents it is for."""

    tree: InstallTree
    spec: SourceSpec
    agents: tuple[str, ...]
    folder: str
    issues: tuple[Issue, ...] = ()


def adopt_skills(scope: InstallScope, names: tuple[str, ...], limits: Limits) -> tuple[list[str], list[Issue]]:
    """Take over the skills that are there, or those named: where they are then, and what was noticed."""
    issues: list[Issue] = []
    done: dict[str, str] = {}
    with open_store(scope, limits) as store:
        chosen = find_adoptable(scope, store.locked, limits, names)
        if names:
            chosen = iter(_check_names(names, list(chosen), store, limits))
        for found in chosen:
            if is_left_in_place(found, scope, names):
                issues.append(_no_source_issue(found, scope, "stays where it is, unless it is named"))
                continue
            issues += (*found.issues, *_adopt_one(store, found))
            done[os.path.basename(found.folder)] = found.tree.name
            if is_project_own(found, scope):
                issues.append(
                    _no_source_issue(found, scope, f"is in {scope.install_folder(found.tree.name)} alone from now on")
                )
        issues += store.issues
    return list(done.values()), issues


def _check_names(
    names: tuple[str, ...], found: list[AdoptableSkill], store: Store, limits: Limits
) -> list[AdoptableSkill]:
    """The candidates, if every name is one of them or installed; else ``NotInstalledError`` names all the others."""
    known = {os.path.basename(link) for entry in store.locked.values() for link in entry.links}
    known |= {os.path.basename(one.folder) for one in found}
    missing = [name for name in names if name not in known]
    if not missing:
        return found
    available = [os.path.basename(one.folder) for one in find_candidates(store.scope, limits, ())]
    said = [f"there is no skill {name!a} to adopt" for name in missing]
    hints = [did_you_mean(name, available) for name in missing]
    rows = (f"{row}; {hint}" if hint else row for row, hint in zip(said, hints, strict=True))
    raise NotInstalledError("; ".join(rows), store.scope.root)


def find_adoptable(
    scope: InstallScope, locked: LockEntries, limits: Limits, names: tuple[str, ...] = ()
) -> Iterator[AdoptableSkill]:
    """The candidates that are not installed already: all of them, or those named."""
    landings = LinkFolders(scope)
    for found in find_candidates(scope, limits, names):
        if found.folder not in {landings.path_of_link(link) for entry in locked.values() for link in entry.links}:
            yield found


def is_project_own(found: AdoptableSkill, scope: InstallScope) -> bool:
    """Whether a skill is the project's own: no source is known, and its repository may hold the only copy."""
    return scope.location == "project" and found.spec.kind == "folder"


def is_left_in_place(found: AdoptableSkill, scope: InstallScope, names: tuple[str, ...]) -> bool:
    """Whether a skill stays where it is: the base is not under version control, so its repository would lose it."""
    return not names and is_project_own(found, scope)


def _no_source_issue(found: AdoptableSkill, scope: InstallScope, what: str) -> Issue:
    where = os.path.relpath(found.folder, scope.root)
    return Issue("no-source", found.tree.name, f"{where} has no recorded source: it {what}", found.folder, 0, "warning")


def _adopt_one(store: Store, found: AdoptableSkill) -> list[Issue]:
    source = source_for_lock(found.spec, store.scope)
    refuse_taken(found.tree.name, source, store.scope, store.locked)
    arrival = InstallRequest(found.spec, "", InstallOptions(found.agents, replace=True, replace_foreign=True))
    locked, issues = stage_install(store, dict(store.locked), found.tree, arrival)
    entry = locked[found.tree.name]
    _remove_misnamed_folder(store, found, {store.link_folders.path_of_link(link) for link in entry.links})
    if entry.kind == "folder":  # it is its own source no more
        locked |= {entry.name: replace(entry, kind="adopted", source="")}
    store.commit(locked)
    return issues


def _remove_misnamed_folder(store: Store, found: AdoptableSkill, links: set[str]) -> None:
    """Take away a folder that is not named like its skill, and Claude Code's link to it: the new links stand for it."""
    beside = os.path.join(store.scope.root, *CLAUDE_SKILLS.split("/"), os.path.basename(found.folder))
    if found.folder not in links:
        store.stage_unlink(found.folder, keep="foreign")
        if is_link_to(beside, found.folder) and beside not in links:
            store.stage_unlink(beside)


def find_candidates(scope: InstallScope, limits: Limits, names: tuple[str, ...] = ()) -> Iterator[AdoptableSkill]:
    """The skills in the shared folder and in Claude Code's that are real folders; all of them, or those named."""
    known = read_npm_lock(scope.root, limits=limits)
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    for place, agents in _ADOPTED_FOLDERS:
        parent = os.path.join(scope.root, *place.split("/"))
        for name in _list_folders(parent):
            folder = os.path.join(parent, name)
            if name not in found and (not names or name in names) and _is_skill(folder):
                linked = is_link_to(os.path.join(scope.root, *CLAUDE_SKILLS.split("/"), name), folder)
                found[name] = folder, ("claude-code",) if linked else agents
    for name in report_steps([*found], str):
        folder, agents = found[name]
        yield _read_candidate(folder, known.get(name), agents, limits)


def _list_folders(parent: str) -> list[str]:
    if stat_folder(parent) is None:
        return []
    with Folder(parent) as opened:
        return [name for name in opened.list_entries().folders if is_safe_part(name)]


def _is_skill(folder: str) -> bool:
    return is_real_folder(folder) and exists(os.path.join(folder, SKILL_FILE))


def _read_candidate(folder: str, known: NpmLockEntry | None, agents: tuple[str, ...], limits: Limits) -> AdoptableSkill:
    read = read_tree(folder, limits)
    for code, path in read.problems:
        raise UnsafeTreeError(f"{path!a} cannot be adopted", folder, code)
    files = tuple(NewFile(*file) for file in read.files)
    check_paths([file.path for file in files], limits)
    by_path = {file.path: file.content for file in files}
    name = os.path.basename(folder)
    found, issues = find_skills(by_path, by_path.__getitem__, name=name, limits=limits)
    if not found:
        raise UnsafeTreeError(f"its SKILL.md does not load: {issues[0].message}", folder, issues[0].code)
    spec = _source_of(name, known, folder)
    subpath = known.skill_path.removesuffix(SKILL_FILE).strip("/") if known and spec.kind == "git" else ""
    select = found[0].name if spec.kind == "git" else ""
    tree = InstallTree(spec.full_name, subpath, select, files, {found[0].name: ""})
    return AdoptableSkill(tree, spec, agents, folder, tuple(_find_changes(known, files, folder)))


def _source_of(name: str, known: NpmLockEntry | None, folder: str) -> SourceSpec:
    """Where it came from, as the npm tool recorded it; else the folder itself."""
    plain = link_name(name)
    if known is not None and known.source_type in _GIT_SOURCE_TYPES:
        try:
            spec = parse_typed_source(known.source_url or known.source)
            if spec.kind == "git" and not spec.local:
                return SourceSpec("git", spec.address, spec.org, plain, known.ref)
        except BadReferenceError:
            pass
    return SourceSpec("folder", folder, "local", plain, local=True)


def _find_changes(known: NpmLockEntry | None, files: tuple[NewFile, ...], folder: str) -> Iterator[Issue]:
    if known is None or not known.computed_hash:
        return
    kept = ((file.path, file.content) for file in files if _UNHASHED_FOLDERS.isdisjoint(file.path.split("/")))
    if compute_npm_hash(kept) != known.computed_hash:
        message = "has changed since the npm tool recorded it in skills-lock.json"
        yield Issue("changed-since-locked", known.name, message, folder, 0, "warning")

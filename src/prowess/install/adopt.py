"""Skills that already lie where agents look, taken over as they are: nothing is fetched."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from prowess.discovery.search_paths import COMPATIBLE, SHARED
from prowess.errors import BadReferenceError, Issue, NotInstalledError, UnsafeTreeError, did_you_mean
from prowess.files.directory import Folder, exists, folder_info
from prowess.files.paths import is_real_folder, leads_to
from prowess.files.tree import read_tree
from prowess.files.write import NewFile
from prowess.install.agent_links import Landings
from prowess.install.find_skills import find_skills
from prowess.install.install_tree import Arrival, Wishes, refuse_taken, stage
from prowess.install.lock_entries import recorded_source
from prowess.install.plan import source_from
from prowess.install.store import opened
from prowess.install.tree import Tree, check_paths
from prowess.lockfile.read import npm_hash, read_npm_lock
from prowess.progress_steps import stepped
from prowess.skills.parse import FILENAME
from prowess.spec.skill_ref import is_safe_part, link_name
from prowess.spec.source_spec import SourceSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.install.store import Store
    from prowess.limits import Limits
    from prowess.lockfile.read import Locked, NpmLocked
    from prowess.lockfile.scopes import Scope

_FOLDERS: tuple[tuple[str, tuple[str, ...]], ...] = ((SHARED, ()), (COMPATIBLE, ("claude-code",)))
_REMOTE = frozenset(("github", "gitlab", "git"))
_LEFT_OUT = frozenset(("__pycache__", "node_modules"))


class Candidate(NamedTuple):
    """A skill that was found where agents look: its tree, its source as far as it is known, the agents it is for."""

    tree: Tree
    spec: SourceSpec
    agents: tuple[str, ...]
    folder: str
    issues: tuple[Issue, ...] = ()


def adopt(scope: Scope, names: tuple[str, ...], limits: Limits) -> tuple[list[str], list[Issue]]:
    """Take over the skills that are there, or those named: where they are then, and what was noticed."""
    issues: list[Issue] = []
    done: dict[str, str] = {}
    with opened(scope, limits) as store:
        chosen = adoptable(scope, store.locked, limits, names)
        if names:
            chosen = iter(_check_names(names, list(chosen), store, limits))
        for found in chosen:
            if is_left(found, scope, names):
                issues.append(_sourceless(found, scope, "stays where it is, unless it is named"))
                continue
            issues += (*found.issues, *_taken_over(store, found))
            done[os.path.basename(found.folder)] = found.tree.name
            if is_own(found, scope):
                issues.append(_sourceless(found, scope, f"is in {scope.place(found.tree.name)} alone from now on"))
        issues += store.issues
    return list(done.values()), issues


def _check_names(names: tuple[str, ...], found: list[Candidate], store: Store, limits: Limits) -> list[Candidate]:
    """The candidates, if every name is one of them or installed; else ``NotInstalledError`` names all the others."""
    known = {os.path.basename(link) for entry in store.locked.values() for link in entry.links}
    known |= {os.path.basename(one.folder) for one in found}
    missing = [name for name in names if name not in known]
    if not missing:
        return found
    available = [os.path.basename(one.folder) for one in candidates(store.scope, limits, ())]
    said = [f"there is no skill {name!a} to adopt" for name in missing]
    hints = [did_you_mean(name, available) for name in missing]
    rows = (f"{row}; {hint}" if hint else row for row, hint in zip(said, hints, strict=True))
    raise NotInstalledError("; ".join(rows), store.scope.root)


def adoptable(scope: Scope, locked: Locked, limits: Limits, names: tuple[str, ...] = ()) -> Iterator[Candidate]:
    """The candidates that are not installed already: all of them, or those named."""
    landings = Landings(scope)
    for found in candidates(scope, limits, names):
        if found.folder not in {landings.path(link) for entry in locked.values() for link in entry.links}:
            yield found


def is_own(found: Candidate, scope: Scope) -> bool:
    """Whether a skill is the project's own: no source is known, and its repository may hold the only copy."""
    return scope.location == "project" and found.spec.kind == "folder"


def is_left(found: Candidate, scope: Scope, names: tuple[str, ...]) -> bool:
    """Whether a skill stays where it is: the base is not under version control, so its repository would lose it."""
    return not names and is_own(found, scope)


def _sourceless(found: Candidate, scope: Scope, what: str) -> Issue:
    where = os.path.relpath(found.folder, scope.root)
    return Issue("no-source", found.tree.name, f"{where} has no recorded source: it {what}", found.folder, 0, "warning")


def _taken_over(store: Store, found: Candidate) -> list[Issue]:
    source = recorded_source(found.spec, store.scope)
    refuse_taken(found.tree.name, source, store.scope, store.locked)
    arrival = Arrival(found.spec, "", Wishes(found.agents, replace=True, foreign=True))
    locked, issues = stage(store, dict(store.locked), found.tree, arrival)
    entry = locked[found.tree.name]
    _clear(store, found, {store.landings.path(link) for link in entry.links})
    if entry.kind == "folder":  # it is its own source no more
        locked |= {entry.name: replace(entry, kind="adopted", source="")}
    store.commit(locked)
    return issues


def _clear(store: Store, found: Candidate, links: set[str]) -> None:
    """Take away a folder that is not named like its skill, and Claude Code's link to it: the new links stand for it."""
    beside = os.path.join(store.scope.root, *COMPATIBLE.split("/"), os.path.basename(found.folder))
    if found.folder not in links:
        store.unlink(found.folder, keep="foreign")
        if leads_to(beside, found.folder) and beside not in links:
            store.unlink(beside)


def candidates(scope: Scope, limits: Limits, names: tuple[str, ...] = ()) -> Iterator[Candidate]:
    """The skills in the shared folder and in Claude Code's that are real folders; all of them, or those named."""
    known = read_npm_lock(scope.root, limits=limits)
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    for place, agents in _FOLDERS:
        parent = os.path.join(scope.root, *place.split("/"))
        for name in _folders(parent):
            folder = os.path.join(parent, name)
            if name not in found and (not names or name in names) and _is_skill(folder):
                linked = leads_to(os.path.join(scope.root, *COMPATIBLE.split("/"), name), folder)
                found[name] = folder, ("claude-code",) if linked else agents
    for name in stepped([*found], str):
        folder, agents = found[name]
        yield _candidate(folder, known.get(name), agents, limits)


def _folders(parent: str) -> list[str]:
    if folder_info(parent) is None:
        return []
    with Folder(parent) as opened:
        return [name for name in opened.entries().folders if is_safe_part(name)]


def _is_skill(folder: str) -> bool:
    return is_real_folder(folder) and exists(os.path.join(folder, FILENAME))


def _candidate(folder: str, known: NpmLocked | None, agents: tuple[str, ...], limits: Limits) -> Candidate:
    read = read_tree(folder, limits)
    for code, path in read.odd:
        raise UnsafeTreeError(f"{path!a} cannot be adopted", folder, code)
    files = tuple(NewFile(*file) for file in read.files)
    check_paths([file.path for file in files], limits)
    by_path = {file.path: file.content for file in files}
    name = os.path.basename(folder)
    found, issues = find_skills(by_path, by_path.__getitem__, name=name, limits=limits)
    if not found:
        raise UnsafeTreeError(f"its SKILL.md does not load: {issues[0].message}", folder, issues[0].code)
    spec = _spec(name, known, folder)
    subpath = known.skill_path.removesuffix(FILENAME).strip("/") if known and spec.kind == "git" else ""
    select = found[0].name if spec.kind == "git" else ""
    tree = Tree(spec.full_name, subpath, select, files, {found[0].name: ""})
    return Candidate(tree, spec, agents, folder, tuple(_changed(known, files, folder)))


def _spec(name: str, known: NpmLocked | None, folder: str) -> SourceSpec:
    """Where it came from, as the npm tool recorded it; else the folder itself."""
    plain = link_name(name)
    if known is not None and known.source_type in _REMOTE:
        try:
            spec = source_from(known.source_url or known.source)
            if spec.kind == "git" and not spec.local:
                return SourceSpec("git", spec.address, spec.org, plain, known.ref)
        except BadReferenceError:
            pass
    return SourceSpec("folder", folder, "local", plain, local=True)


def _changed(known: NpmLocked | None, files: tuple[NewFile, ...], folder: str) -> Iterator[Issue]:
    if known is None or not known.computed_hash:
        return
    kept = ((file.path, file.content) for file in files if _LEFT_OUT.isdisjoint(file.path.split("/")))
    if npm_hash(kept) != known.computed_hash:
        message = "has changed since the npm tool recorded it in skills-lock.json"
        yield Issue("changed-since-locked", known.name, message, folder, 0, "warning")

"""The adoption of skills that are where agents look already."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from prowess.changes.change import Change, list_scope_files, read_file_states
from prowess.changes.install import describe_installs
from prowess.files.paths import shorten_path
from prowess.install.adopt import find_adoptable, is_left_in_place, is_project_own
from prowess.lockfile.read import LOCK_FILE, read_lock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.errors import Issue
    from prowess.install.adopt import AdoptableSkill
    from prowess.install.installer import Installer
    from prowess.installed.scopes import InstalledSkill, InstallScope
    from prowess.limits import Limits


class _Adoption(NamedTuple):
    """What becomes of one skill; its files are not kept in memory."""

    folder: str
    steps: Sequence[str]
    issues: Sequence[Issue] = ()
    is_left: bool = False


def prepare_adoption(
    installer: Installer, scope: InstallScope, names: tuple[str, ...], limits: Limits, *, watch: bool = False
) -> Change[tuple[InstalledSkill, ...]]:
    """Return the change that records skills which are where agents look, with these names or all of them.

    Its details are the folders that are taken over. With ``watch``, the states of all folders are read too.
    """

    def look() -> list[_Adoption]:
        locked = read_lock(scope.lock_folder, limits=limits)
        return [_plan_adoption(skill, scope, names) for skill in find_adoptable(scope, locked, limits, names)]

    adoptions = look()
    paths = [*list_scope_files(scope), *(one.folder for one in adoptions)] if watch else []
    states = read_file_states(paths, limits)
    if watch:  # looked again after the states were read, so that nothing can change between the two unnoticed
        adoptions = [one for one in look() if one.folder in states]
    noticed = [issue for one in adoptions for issue in one.issues]
    return Change(
        steps=[step for one in adoptions for step in one.steps],
        states=states,
        read_states=lambda: read_file_states(paths, limits),
        apply=lambda: installer.adopt(*names, project=scope.location == "project"),
        describe=lambda installs: describe_installs("Took over", installs),
        details=[one.folder for one in adoptions if not one.is_left],
        issues=lambda: tuple(dict.fromkeys((*noticed, *installer.issues))),
        idle_text="Nothing to adopt.",
    )


def _plan_adoption(skill: AdoptableSkill, scope: InstallScope, names: tuple[str, ...]) -> _Adoption:
    folder, name = shorten_path(skill.folder), skill.tree.name
    if is_left_in_place(skill, scope, names):
        step = f"leave {folder}, which has no recorded source: a clone could not get it; name it to take it over"
        return _Adoption(skill.folder, [step], is_left=True)
    source = "" if skill.spec.local else f" from {skill.source}"
    steps = [f"take over {folder} as {name}{source}, and record it in {LOCK_FILE}"]
    if is_project_own(skill, scope):
        place = shorten_path(scope.install_folder(name))
        steps.append(f"{name} has no recorded source: 'git add --force {place}', or clones cannot get it")
    return _Adoption(skill.folder, steps, skill.issues)

"""The install of skills from a source that a person typed, and of skills that lie where agents look already."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from prowess.errors import Issue, NotInstalledError, SkillError
from prowess.files.paths import shorten_path
from prowess.install.adopt import find_adoptable, is_project_own
from prowess.install.git_ignores import apply_with_advice
from prowess.install.offer_text import describe_plan, summarize_offer
from prowess.install.typed_source import parse_typed_source
from prowess.lockfile.read import read_lock
from prowess.spec.skill_ref import link_name
from prowess.web.planning.file_states import list_scope_files, read_file_states
from prowess.web.planning.prepared import Fields, PreparedChange, choose_scope, is_project, require_installer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from prowess.install.adopt import AdoptableSkill
    from prowess.install.installer import Installer
    from prowess.install.offer import Offer
    from prowess.install.plan import Plan
    from prowess.limits import Limits
    from prowess.lockfile.scopes import InstalledSkill, InstallScope
    from prowess.web.library import Library


@dataclass(frozen=True, slots=True)
class OfferDetails:
    """What a source has, for a person who chooses: the offer, and the skills that are chosen at first."""

    offer: Offer
    chosen: tuple[str, ...]

    @property
    def summary(self) -> str:
        """The commit, its date, the number of skills and files, and the size."""
        return summarize_offer(self.offer)


def prepare_install(library: Library, fields: Fields) -> PreparedChange:
    """Fetch what a source has, and return its install; with several skills, after a choice of some.

    Raises what fetching raises, and ``AlreadyInstalledError`` or ``NameTakenError`` where a place is taken.
    """
    installer = require_installer(library)
    source, agents = fields.get("source"), fields.get_all("agent")
    if not source:
        raise SkillError("name a source: owner/repo, an address, or a path of this machine", code="bad-reference")
    make_plan: Callable[..., Plan] = partial(
        installer.plan,
        project=is_project(fields),
        agents=agents,
        preset=not agents,
        replace=fields.is_set("replace"),
        copy=fields.is_set("copy"),
    )
    # Planned twice: a place that is taken is an error before anything is fetched.
    plan = make_plan(source)
    spec = parse_typed_source(source)
    offer = installer.offers(spec)
    # A plugin that was chosen has become its skills, or its own source.
    declared = source if offer.spec == spec else offer.spec
    preparation = _InstallPreparation(library.limits, installer, partial(make_plan, declared), offer)
    default = tuple(skill.name for skill in offer.chosen(offer.spec.skills))
    if offer.spec.skills or len(offer.skills) == 1:
        return preparation.make_change(default, is_default=True)
    return PreparedChange(
        states={},
        choose=lambda chosen: preparation.choose_skills(chosen.get_all("skill"), default),
        details=OfferDetails(replace(offer, in_memory=None), default),
        issues=lambda: (*plan.issues, *offer.issues),
    )


@dataclass(frozen=True, slots=True)
class _InstallPreparation:
    limits: Limits
    installer: Installer
    make_plan: Callable[..., Plan]
    offer: Offer

    def choose_skills(self, names: Sequence[str], default: Sequence[str]) -> PreparedChange:
        """Return the install of the skills that a person chose; raise ``SkillError`` for none."""
        chosen = [skill.name for skill in self.offer.skills if skill.name in names]
        if not chosen:
            raise SkillError("no skill was chosen, so there is nothing to install", code="bad-argument")
        return self.make_change(chosen, is_default=chosen == list(default))

    def make_change(self, names: Sequence[str], *, is_default: bool) -> PreparedChange:
        # Whoever keeps the default choice has the whole source declared, not a list of names.
        plan = self.make_plan(select=None if is_default else names, offer=self.offer)
        scope = self.installer.project if plan.location == "project" else self.installer.user
        links = (os.path.join(folder, link_name(name)) for folder in plan.links for name in names)
        paths = [*list_scope_files(scope), *plan.places, *links]
        states = read_file_states(paths, self.limits)
        # Planned again after the states were read, so that nothing can change between the two unnoticed.
        plan = self.make_plan(select=None if is_default else names, offer=self.offer)
        advice: list[Issue] = []

        def apply_plan() -> list[str]:
            installs, issues = apply_with_advice(self.installer, plan, self.limits)
            advice.extend(issues)
            return describe_installs("Installed", installs)

        return PreparedChange(
            steps=describe_plan(plan, self.offer.with_skills(names)) if self.offer.skills else (),
            read_states=lambda: read_file_states(paths, self.limits),
            states=states,
            apply=apply_plan,
            # Without the files themselves: a plan is remembered for long after they are installed.
            details=OfferDetails(replace(self.offer.with_skills(names), in_memory=None), tuple(names)),
            issues=lambda: (*plan.issues, *self.offer.issues, *self.installer.issues, *advice),
        )


def describe_installs(verb: str, installs: Sequence[InstalledSkill]) -> list[str]:
    """Return a sentence for each install: what was done with it, and where it is."""
    return [f"{verb} {install.full_name}: {shorten_path(str(install.path))}" for install in installs]


def prepare_adoption(library: Library, fields: Fields) -> PreparedChange:
    """Return the change that records a skill which lies where agents look; raise ``NotInstalledError`` for no such."""
    installer = require_installer(library)
    scope, name, limits = choose_scope(installer, fields), fields.get("skill"), library.limits

    def find_skills() -> list[AdoptableSkill]:
        locked = read_lock(scope.lock_folder, limits=limits)
        return [*find_adoptable(scope, locked, limits, (name,))] if name else []

    paths = [*list_scope_files(scope), *(skill.folder for skill in find_skills())]
    states = read_file_states(paths, limits)
    # Found again after the states were read, so that nothing can change between the two unnoticed.
    skills = [skill for skill in find_skills() if skill.folder in states]
    if not skills:
        message = f"no skill {name[:80]!r} lies in .agents/skills or .claude/skills without being installed"
        raise NotInstalledError(message)
    noticed = [issue for skill in skills for issue in (*skill.issues, *_warn_of_loss(skill, scope))]
    return PreparedChange(
        states=states,
        read_states=lambda: read_file_states(paths, limits),
        steps=[line for skill in skills for line in _describe_adoption(skill, scope)],
        apply=lambda: describe_installs("Took over", installer.adopt(name, project=scope.location == "project")),
        issues=lambda: (*noticed, *installer.issues),
    )


def _warn_of_loss(skill: AdoptableSkill, scope: InstallScope) -> Iterator[Issue]:
    """Yield a warning for a skill whose only copy may be in the project's repository, before it leaves that."""
    if is_project_own(skill, scope):
        place = shorten_path(scope.install_folder(skill.tree.name))
        message = f"it has no recorded source: commit {place} with 'git add --force', or clones will lack it"
        yield Issue("no-source", skill.tree.name, message, skill.folder, 0, "warning")


def _describe_adoption(skill: AdoptableSkill, scope: InstallScope) -> Iterator[str]:
    folder, place = shorten_path(skill.folder), shorten_path(scope.install_folder(skill.tree.name))
    yield f"move the files of {folder} to {place}, and keep a backup of them"
    yield f"put a link to them at {folder}"
    source = "" if skill.spec.local else f" from {skill.source}"
    yield f"record {skill.tree.name}{source} in {shorten_path(list_scope_files(scope)[0])}"

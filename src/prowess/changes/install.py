"""The install of skills from a source."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from prowess.changes.change import Change, list_scope_files, read_file_states
from prowess.files.paths import shorten_path
from prowess.names import link_name
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.addresses.source_spec import SourceSpec
    from prowess.errors import Issue
    from prowess.install.installer import Installer
    from prowess.install.offer import Offer
    from prowess.install.plan import InstallOptions, Plan
    from prowess.installed.scopes import InstalledSkill
    from prowess.limits import Limits


@dataclass(frozen=True, slots=True)
class OfferDetails:
    """What a source has, for a person who chooses: the offer, and the skills that are chosen at first."""

    offer: Offer
    chosen: tuple[str, ...]

    @property
    def summary(self) -> str:
        """The commit, its date, the number of skills and files, and the size."""
        return summarize_offer(self.offer)


def prepare_install(
    installer: Installer,
    source: SourceSpec,
    declared: SourceSpec | str,
    options: InstallOptions,
    *,
    project: bool,
    limits: Limits,
    select: Sequence[str] = (),
    watch: bool = False,
) -> Change[tuple[InstalledSkill, ...]]:
    """Fetch what a source has, and return its install; where it has several skills, after a choice of some.

    ``declared`` is the source as a manifest will have it. With ``watch``, the states of all files that the install
    would touch are read too. Raises what ``Installer.offers`` raises, and
    ``AlreadyInstalledError`` or ``NameTakenError`` where a place is taken.
    """

    def make_plan(declared: SourceSpec | str, select: Sequence[str], offer: Offer | None = None) -> Plan:
        return installer.plan(
            declared,
            project,
            select=select,
            agents=options.agents,
            preset=options.preset,
            replace=options.replace,
            copy=options.copy,
            save=options.save,
            offer=offer,
        )

    # Planned twice: a place that is taken is an error before anything is fetched.
    first = make_plan(declared, select)
    early = (*installer.issues, *first.issues)
    offer = installer.offers(source)
    if offer.spec != source:  # a plugin was chosen: its skills, or its own source, are what is declared and installed
        declared, select = offer.spec, ()
    default = [skill.name for skill in offer.chosen(offer.spec.skills)]

    def choose(names: Sequence[str]) -> Change[tuple[InstalledSkill, ...]]:
        chosen = [skill.name for skill in offer.skills if skill.name in names]
        # Whoever keeps the default choice has the whole source declared, not a list of names.
        wanted = select if chosen == default else chosen
        plan = make_plan(declared, wanted, offer)
        paths = _list_paths(installer, plan, chosen) if watch else ()
        states = read_file_states(paths, limits)
        if watch:  # planned again after the states were read, so that nothing can change between the two unnoticed
            plan = make_plan(declared, wanted, offer)
        change = _make_install(installer, plan, offer.with_skills(chosen), early, limits)
        return replace(change, states=states, read_states=lambda: read_file_states(paths, limits))

    if len(offer.skills) < 2 or offer.spec.skills:  # noqa: PLR2004 - there is nothing to choose
        return choose(default)
    return Change(
        apply=tuple,
        choose=choose,
        details=OfferDetails(_without_files(offer), tuple(default)),
        issues=lambda: tuple(dict.fromkeys((*early, *offer.issues))),
        idle_text="Nothing was installed.",
    )


def _list_paths(installer: Installer, plan: Plan, names: Sequence[str]) -> list[str]:
    """Return the files and folders that an install goes by, or puts in place."""
    scope = installer.project if plan.location == "project" else installer.user
    links = (os.path.join(folder, link_name(name)) for folder in plan.links for name in names)
    return [*list_scope_files(scope), *plan.places, *links]


def _make_install(
    installer: Installer, plan: Plan, offer: Offer, early: Sequence[Issue], limits: Limits
) -> Change[tuple[InstalledSkill, ...]]:
    """Return the install that a plan describes; ``offer`` has only the skills that are installed."""
    advice: list[Issue] = []

    def apply_plan() -> tuple[InstalledSkill, ...]:
        from prowess.install.git_attributes import apply_with_advice  # 'install --list' does without git

        installs, issues = apply_with_advice(installer, plan, limits)
        advice.extend(issues)
        return installs

    return Change(
        # A source without a skill that loads has no plan. Applying it raises the error that says why.
        steps=_describe_plan(plan, offer) if offer.skills else (),
        apply=apply_plan,
        describe=lambda installs: describe_installs("Installed", installs),
        # Without the files themselves: a plan is remembered for long after they are installed.
        details=OfferDetails(_without_files(offer), tuple(skill.name for skill in offer.skills)),
        issues=lambda: tuple(dict.fromkeys((*early, *plan.issues, *offer.issues, *installer.issues, *advice))),
        idle_text="Nothing was installed.",
    )


def _without_files(offer: Offer) -> Offer:
    return replace(offer, in_memory=None)


def describe_installs(verb: str, installs: Sequence[InstalledSkill]) -> list[str]:
    """Return a sentence for each install: what was done with it, and where it is."""
    return [f"{verb} {install.full_name}: {shorten_path(str(install.path))}" for install in installs]


_SHORT_ID_LENGTH = 12


def summarize_offer(offer: Offer) -> str:
    """Return one line: the commit or the digest, its date, the number of skills and files, and the size."""
    kind = "commit" if offer.spec.kind == "git" else "digest"
    commit = f"{kind} {offer.commit[:_SHORT_ID_LENGTH]}" if offer.commit else ""
    date = f"{offer.date:%Y-%m-%d}" if offer.date else ""
    size = format_count(offer.bytes, "byte")
    # A large source is fetched in part: until something is installed, the size is that of SKILL.md files alone.
    size = size if offer.is_complete else f"{size} of SKILL.md files fetched so far"
    parts = (commit, date, format_count(len(offer.skills), "skill"), format_count(offer.files, "file"), size)
    return ", ".join(part for part in parts if part)


def _describe_plan(plan: Plan, offer: Offer) -> list[str]:
    """Return the steps of an install, each as a line: the commit, the skills and the agents by name."""
    fetch, *rest = str(plan).splitlines()
    names = ", ".join(skill.name for skill in offer.skills)
    agents = [f"show it to {', '.join(plan.seen_by)}"] if plan.seen_by else []
    return [fetch, f"take {summarize_offer(offer)}: {names}", *agents, *rest]

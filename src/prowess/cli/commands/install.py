"""``prowess install``: fetches skills, pins them in the lock file, and links them where agents look."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import click

from prowess.cli.change_flow import (
    DECLINED_STATUS,
    ChangeFlags,
    PlannedChange,
    carry_out,
    change_options,
    plan_to_blocks,
)
from prowess.cli.command_class import new_command
from prowess.cli.completions import complete_path
from prowess.cli.install_options import agents_option, install_to_dict, install_to_line, network_options
from prowess.cli.issues import issue_to_dict
from prowess.cli.offers import offer_to_blocks, offer_to_dict, pick_skills
from prowess.cli.options import group_options
from prowess.cli.render import printer
from prowess.cli.render.blocks import Line, line
from prowess.cli.shown_paths import with_dot_prefix
from prowess.errors import BadReferenceError, Issue
from prowess.files.paths import shorten_path
from prowess.install.copy_into import refuse_taken_places
from prowess.install.offer_text import describe_plan, summarize_offer
from prowess.install.typed_source import parse_typed_source, with_safe_name
from prowess.limits import DEFAULT_LIMITS
from prowess.spec.skill_ref import is_local_path, link_name
from prowess.spec.source_grammar import ARCHIVE_SUFFIXES, SOURCE_FORMS
from prowess.spec.source_spec import SourceSpec, parse_source, with_parts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import prowess
    from prowess.install.installer import Installer
    from prowess.install.plan import Plan
    from prowess.lockfile.scopes import InstalledSkill


class _SourceParts(NamedTuple):
    """What of a source is wanted, as far as options say so."""

    ref: str
    subpath: str
    skills: tuple[str, ...]


_source_options = group_options(
    "parts",
    _SourceParts,
    ref=click.option("--ref", default="", metavar="REF", help="This tag, branch or commit of the source."),
    subpath=click.option("--path", "subpath", default="", metavar="SUBFOLDER", help="Only this folder of the source."),
    skills=click.option("--skill", "skills", multiple=True, metavar="NAME", help="Only this skill of the source."),
)


class _InstallTarget(NamedTuple):
    """Where skills are installed, and how."""

    project: bool
    folder: str | None
    copy: bool
    replace: bool
    save: bool
    agents: tuple[str, ...]


_target_options = group_options(
    "target",
    _InstallTarget,
    project=click.option("-p", "--project", is_flag=True, help="Install for the project in this folder, not for you."),
    folder=click.option(
        "--into",
        "folder",
        type=click.Path(file_okay=False),
        help="Only copy the skills into this folder: no links, no lock file.",
    ),
    copy=click.option("--copy", is_flag=True, help="Put files where agents look, to be committed, instead of links."),
    replace=click.option("--replace", is_flag=True, help="Replace what is there."),
    save=click.option(
        "--no-save", "save", flag_value=False, default=True, help="Do not declare the skills in prowess.toml."
    ),
    agents=agents_option,
)


@new_command(
    "install",
    ("prowess install owner/repo", "every skill of a repository, for you"),
    ("prowess install owner/repo@pdf --project --agent claude-code", "one of them, for the project"),
    ("prowess install owner/repo#v2:tools@pdf,csv", "two skills of a folder of it, at a version"),
    ("prowess install ./skills/csv-report", "a folder of this machine"),
    ("prowess install owner/repo --list", "what it has, what that costs and could run"),
    ("prowess install owner/marketplace@plugin", "one plugin of a marketplace, also in another repository"),
    ("prowess install @acme/pdf@v1.2.0 --dry-run", "only the plan"),
    forms=SOURCE_FORMS,
)
@click.argument("source", shell_complete=complete_path)
@_source_options
@click.option("--list", "list_only", is_flag=True, help="Only fetch and show what the source has.")
@_target_options
@network_options
@change_options
def command(
    source: str,
    *,
    parts: _SourceParts,
    list_only: bool,
    target: _InstallTarget,
    installer: Installer,
    flags: ChangeFlags,
) -> int:
    """Install skills from SOURCE: fetch them, show them, ask, pin them in prowess.lock, link them where agents look.

    SOURCE[#REF][:SUBFOLDER][@SKILL,…] names the source, the version, the folder and the skills. --ref, --path and
    --skill are another way to write these parts, and must not contradict them. A plugin that the source names in its
    manifests is chosen like a skill. If it is in another repository, that repository is installed and recorded.

    Without --agent the skills are linked for the agents that the manifest names, or else for those with a folder in the
    project or in the home folder. '--agent universal' links them in .agents/skills alone.

    If there is a prowess.toml, the skills are declared in it, unless --no-save. --allow-http and --allow-private are
    for this command alone: a later sync or update needs them again. --list and --dry-run fetch into the cache, and fail
    if the source cannot be reached. Exit status 1: you said no.
    """
    _note_local_path(source)
    spec = with_parts(parse_typed_source(source), ref=parts.ref, subpath=parts.subpath, skills=parts.skills)
    # The source stays open until the install, so that what is offered is fetched once, and is what is installed.
    click.get_current_context().with_resource(installer.keeping_source())
    if list_only:
        return _show_offer(_fetch_offer(installer, spec), as_data=flags.as_data)
    if target.folder is not None:
        return _copy_into(installer, spec, target, flags)
    # A manifest declares a source as it was typed, unless options say more than that.
    declared = spec if parts.ref or parts.subpath else source
    return _install(installer, spec, target, flags, declared=declared, select=parts.skills)


def _install(
    installer: Installer,
    spec: SourceSpec,
    target: _InstallTarget,
    flags: ChangeFlags,
    *,
    declared: SourceSpec | str,
    select: tuple[str, ...],
) -> int:
    if not flags.dry_run:
        # Before the plan is made: a change that was interrupted may occupy the place of what is to be installed.
        installer.recover()
        printer.print_issues(installer.issues)
    make_plan = partial(
        installer.plan,
        project=target.project,
        agents=target.agents,
        preset=not target.agents,
        replace=target.replace,
        copy=target.copy,
        save=target.save,
    )
    choice = _choose_skills(installer, make_plan, spec, declared=declared, select=select, may_ask=flags.may_ask)
    return carry_out(_plan_change(installer, choice, may_ask=flags.may_ask), flags)


class _InstallChoice(NamedTuple):
    """The skills that are going to be installed."""

    plan: Plan
    offer: prowess.Offer
    """The source, reduced to the skills that are installed."""
    was_picked: bool
    """True when a person picked them from a list, and so has seen what each of them is."""
    issues: tuple[Issue, ...]
    """The issues that were met before anything was fetched."""


def _choose_skills(
    installer: Installer,
    make_plan: Callable[..., Plan],
    spec: SourceSpec,
    *,
    declared: SourceSpec | str,
    select: tuple[str, ...],
    may_ask: bool,
) -> _InstallChoice:
    """Fetch what the source has, and let a person at the terminal pick. Raise if a place is taken."""
    # Planned twice: a place that is taken is an error before anything is fetched.
    plan = make_plan(declared, select=select)
    issues = (*installer.issues, *plan.issues)
    offer = _fetch_offer(installer, spec)
    if offer.spec != spec:  # a plugin was chosen: its skills, or its own source, are what is declared and installed
        declared, select = offer.spec, ()
    default = [skill.name for skill in offer.chosen(offer.spec.skills)]
    may_pick = may_ask and not offer.spec.skills and len(offer.skills) > 1
    picked = pick_skills(offer, default) if may_pick else None
    # Whoever keeps the default choice has the whole source declared, not a list of names.
    if picked != []:
        plan = make_plan(declared, select=select if picked in (None, default) else picked, offer=offer)
    return _InstallChoice(plan, offer.with_skills(default if picked is None else picked), picked is not None, issues)


def _plan_change(
    installer: Installer, choice: _InstallChoice, *, may_ask: bool
) -> PlannedChange[tuple[InstalledSkill, ...]]:
    """Return the change that installs the chosen skills. With ``may_ask`` the plan describes each of them."""
    plan, offer, was_picked, early_issues = choice
    # A source without a skill that loads has no plan. Applying it raises the error that says why.
    steps = describe_plan(plan, offer) if offer.skills else []
    described = [*offer_to_blocks(offer), Line()] if steps and may_ask and not was_picked else []
    is_refused = was_picked and not steps
    advice: list[Issue] = []

    def collect_issues() -> tuple[Issue, ...]:
        # Each once: the plan, the offer and the installer may all report an issue.
        return tuple(dict.fromkeys((*early_issues, *offer.issues, *installer.issues, *advice)))

    return PlannedChange(
        plan=[*described, *plan_to_blocks(steps)],
        needs_consent=bool(steps),
        progress_text=f"fetching {offer.spec}",
        apply=lambda: () if is_refused else _apply_plan(installer, plan, advice),
        to_dict=lambda installs: {
            "plan": steps,
            "installed": [install_to_dict(install) for install in installs or ()],
            "issues": [issue_to_dict(issue) for issue in collect_issues()],
        },
        report=lambda installs: [install_to_line("Installed", install) for install in installs],
        declined_text="Nothing was installed.",
        idle_text="Nothing was installed.",
        issues=collect_issues,
        status=lambda installs: 0 if installs else DECLINED_STATUS,
        dry_status=0 if steps else DECLINED_STATUS,
    )


def _apply_plan(installer: Installer, plan: Plan, advice: list[Issue]) -> tuple[InstalledSkill, ...]:
    """Apply a plan and return the installs. Files that git should ignore, or must not ignore, go to ``advice``."""
    from prowess.install.git_ignores import apply_with_advice

    installs, issues = apply_with_advice(installer, plan, DEFAULT_LIMITS)
    advice += issues
    return installs


def _fetch_offer(installer: Installer, spec: SourceSpec) -> prowess.Offer:
    """Return what the source has. Raise if it cannot be reached, or does not have a skill that was named."""
    with printer.show_progress(f"fetching {spec}"):
        return installer.offers(spec)


def _show_offer(offer: prowess.Offer, *, as_data: bool) -> int:
    printer.print_answer(lambda: offer_to_dict(offer), lambda: offer_to_blocks(offer), as_data=as_data)
    printer.print_issues(offer.issues)
    return 0


def _note_local_path(source: str) -> None:
    """Print a note if ``source`` is read as a repository, but a file or folder of that name is here as well.

    Raises ``BadReferenceError`` for a name that can only be meant as a path, and says whether that path exists.
    """
    is_here = os.path.lexists(source)
    if is_local_path(source) or not (is_here or source.lower().endswith(ARCHIVE_SUFFIXES)):
        return
    try:
        spec = parse_source(source)
    except BadReferenceError as error:
        known = (
            f"something of that name is here: write {with_dot_prefix(source)}"
            if is_here
            else "there is no file of that name here"
        )
        raise BadReferenceError(f"{error.message}; {known}", error.path, error.code) from None
    if is_here and not spec.local:
        printer.note(
            f"{source} means {spec.address}; for the folder of that name here, write {with_dot_prefix(source)}"
        )


def _copy_into(installer: Installer, spec: SourceSpec, target: _InstallTarget, flags: ChangeFlags) -> int:
    folder = target.folder or ""
    if target.project or target.copy or target.replace or target.agents:
        raise click.UsageError(
            "--into only copies into that folder: leave --project, --copy, --replace and --agent out"
        )
    refuse_taken_places(with_safe_name(spec), os.path.abspath(folder))  # before anything is fetched
    offer = _fetch_offer(installer, spec)
    names = ", ".join(skill.name for skill in offer.chosen(spec.skills))
    take = [f"take {summarize_offer(offer)}: {names}"] if names else []
    steps = [f"fetch {offer.spec}", *take, f"copy it into {folder}: no links, no lock file"]
    return carry_out(
        PlannedChange(
            plan=plan_to_blocks(steps),
            needs_consent=True,
            progress_text=f"fetching {spec}",
            apply=lambda: _list_copies(installer.install_into(offer.spec, folder, offer=offer), offer),
            to_dict=lambda copies: {
                "plan": steps,
                "installed": [{"name": path.name, "location": "folder", "path": str(path)} for path in copies or ()],
                "issues": [issue_to_dict(issue) for issue in offer.issues],
            },
            report=lambda copies: [
                line("Copied ", (path.name, "name"), f": {shorten_path(str(path))}") for path in copies
            ],
            declined_text="Nothing was copied.",
            issues=lambda: offer.issues,
        ),
        flags,
    )


def _list_copies(first: Path, offer: prowess.Offer) -> list[Path]:
    """Return the folders that a copy made: one for each skill that was chosen, or one for the whole source."""
    return [first.with_name(link_name(skill.name)) for skill in offer.skills] if offer.spec.skills else [first]

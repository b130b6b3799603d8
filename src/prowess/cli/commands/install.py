"""``prowess install``: bring skills here, pin and link them."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import click

from prowess.cli.change_flow import DECLINED_STATUS, PlannedChange, carry_out, plan_to_blocks
from prowess.cli.command_class import new_command
from prowess.cli.install_options import (
    agents_option,
    dry_run_option,
    install_to_dict,
    install_to_line,
    issue_to_dict,
    network_options,
    yes_option,
)
from prowess.cli.offers import (
    describe_plan,
    offer_to_blocks,
    offer_to_dict,
    pick_skills,
    summarize_offer,
    with_skills,
)
from prowess.cli.options import complete_path, json_option, shorten_path, with_dot_prefix
from prowess.cli.render import printer
from prowess.cli.render.blocks import Line, line
from prowess.errors import BadReferenceError
from prowess.files.directory import exists
from prowess.install.copy_into import refuse_taken_places
from prowess.install.typed_source import parse_typed_source, with_safe_name
from prowess.limits import DEFAULT_LIMITS
from prowess.lockfile.read import LOCK_FILE
from prowess.spec.skill_ref import is_local_path, link_name
from prowess.spec.source_grammar import SOURCE_FORMS
from prowess.spec.source_spec import parse_source, with_parts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import prowess
    from prowess.errors import Issue
    from prowess.install.installer import Installer
    from prowess.install.plan import Plan
    from prowess.lockfile.scopes import InstalledSkill
    from prowess.spec.source_spec import SourceSpec


@new_command(
    "install",
    ("prowess install owner/repo", "every skill of a repository, for you"),
    ("prowess install owner/repo@pdf --project --agent claude-code", "one of them, for the project"),
    ("prowess install owner/repo#v2:tools@pdf,csv", "two skills of a folder of it, at a version"),
    ("prowess install ./skills/csv-report", "a folder of this machine"),
    ("prowess install owner/repo --list", "what it has, what that costs and could run"),
    ("prowess install @acme/pdf@v1.2.0 --dry-run", "only the plan"),
    forms=SOURCE_FORMS,
)
@click.argument("source", shell_complete=complete_path)
@click.option("--ref", default="", metavar="REF", help="This tag, branch or commit of the source.")
@click.option("--path", "subpath", default="", metavar="SUBFOLDER", help="Only this folder of the source.")
@click.option("--skill", "select", multiple=True, metavar="NAME", help="Only this skill of the source.")
@click.option("--list", "list_only", is_flag=True, help="Only show what the source has: fetched, and not installed.")
@click.option("-p", "--project", is_flag=True, help="For the project in this folder, not for you.")
@click.option(
    "--into", "folder", type=click.Path(file_okay=False), help="Only copy it into this folder: no links, no lock."
)
@click.option("--copy", is_flag=True, help="Put real files where agents look, to be committed, instead of links.")
@click.option("--replace", is_flag=True, help="Take the place of what is there.")
@click.option("--no-save", "save", flag_value=False, default=True, help="Do not declare it in prowess.toml.")
@agents_option
@network_options
@dry_run_option
@yes_option
@json_option
def command(
    source: str,
    *,
    ref: str,
    subpath: str,
    select: tuple[str, ...],
    list_only: bool,
    project: bool,
    folder: str | None,
    copy: bool,
    replace: bool,
    save: bool,
    agents: tuple[str, ...],
    installer: Installer,
    dry_run: bool,
    yes: bool,
    as_data: bool,
) -> int:
    """Install skills from SOURCE: fetch, show what there is, ask, pin in prowess.lock, link where agents look.

    SOURCE[#REF][:SUBFOLDER][@SKILL,…] says from where, at which version, which folder and which skills; --ref, --path
    and --skill say the same, and must not contradict it.

    Without --agent it is linked for the agents that the manifest names, else for those that have a folder in the
    project or in your home folder; '--agent universal' links it in .agents/skills alone. A prowess.toml names none that
    were only found.

    Where there is a prowess.toml, it declares what was installed from then on, unless --no-save.
    --allow-http and --allow-private count for this command alone: a later sync or update needs them again.
    --list and --dry-run fetch into the cache, so that they fail for what cannot be had. Exit status 1: you said no.
    """
    _note_local_path(source)
    spec = with_parts(parse_typed_source(source), ref=ref, subpath=subpath, skills=select)
    click.get_current_context().with_resource(installer.keeping_source())
    if list_only:
        return _show_offer(_fetch_offer(installer, spec), as_data=as_data)
    if folder is not None:
        if project or copy or replace or agents:
            raise click.UsageError(
                "--into only copies into that folder: leave --project, --copy, --replace and --agent out"
            )
        return _copy_into(installer, spec, folder, dry_run=dry_run, yes=yes, as_data=as_data)
    if not dry_run:
        installer.recover()  # before the plan is made: what was interrupted may have taken the place
        printer.print_issues(installer.issues)
    make_plan = partial(
        installer.plan,
        spec if ref or subpath else source,  # as it was written, so that a manifest declares it so
        project,
        agents=agents,
        preset=not agents,
        replace=replace,
        copy=copy,
        save=save,
    )
    asks = not (dry_run or yes)
    decision = _choose_skills(installer, make_plan, spec, select, asks=asks)
    return carry_out(_plan_change(installer, decision, asks=asks), yes=yes, as_data=as_data, dry_run=dry_run)


class _InstallChoice(NamedTuple):
    """What is going to be installed."""

    plan: Plan
    offer: prowess.Offer
    """The source, with only the skills that are taken."""
    was_picked: bool
    """Whether a person picked them, who has seen what each of them is."""
    issues: tuple[Issue, ...]
    """What was found worth saying before anything was fetched."""


def _choose_skills(
    installer: Installer,
    make_plan: Callable[..., Plan],
    spec: SourceSpec,
    select: tuple[str, ...],
    *,
    asks: bool,
) -> _InstallChoice:
    """Fetch what the source has, and have a person pick from it where one is there; raises for what is taken."""
    plan = make_plan(select=select)  # what is taken is refused before anything is fetched
    issues = (*installer.issues, *plan.issues)
    offer = _fetch_offer(installer, spec)
    usual = [skill.name for skill in offer.chosen(plan.spec.skills)]
    may_pick = asks and not plan.spec.skills and len(offer.skills) > 1
    picked = pick_skills(offer, usual) if may_pick else None
    if picked != []:
        plan = make_plan(select=select if picked in (None, usual) else picked, offer=offer)
    return _InstallChoice(plan, with_skills(offer, usual if picked is None else picked), picked is not None, issues)


def _plan_change(
    installer: Installer, decision: _InstallChoice, *, asks: bool
) -> PlannedChange[tuple[InstalledSkill, ...]]:
    """The change that a decision comes to. ``asks``: a person reads it who has to know what each skill is."""
    plan, offer, was_picked, noticed = decision
    # Of a source without a skill that loads nothing is planned: to install it says why.
    rows = describe_plan(plan, offer) if offer.skills else []
    seen = [*offer_to_blocks(offer), Line()] if rows and asks and not was_picked else []
    is_refused = was_picked and not rows
    advice: list[Issue] = []

    def collect_issues() -> tuple[Issue, ...]:
        return tuple(dict.fromkeys((*noticed, *offer.issues, *installer.issues, *advice)))

    return PlannedChange(
        plan=[*seen, *plan_to_blocks(rows)],
        needs_consent=bool(rows),
        progress_text=f"fetching {offer.spec}",
        apply=lambda: () if is_refused else _apply_plan(installer, plan, advice),
        to_dict=lambda done: {
            "plan": rows,
            "installed": [install_to_dict(one) for one in done or ()],
            "issues": [issue_to_dict(issue) for issue in collect_issues()],
        },
        report=lambda done: [install_to_line("Installed", one) for one in done],
        declined_text="Nothing was installed.",
        idle_text="Nothing was installed.",
        issues=collect_issues,
        status=lambda done: 0 if done else DECLINED_STATUS,
        dry_status=0 if rows else DECLINED_STATUS,
    )


def _apply_plan(installer: Installer, plan: Plan, advice: list[Issue]) -> tuple[InstalledSkill, ...]:
    """Do what a plan says; what git should ignore, or must not, goes to ``advice``."""
    from prowess.install.git_ignores import find_ignore_issues  # noqa: PLC0415 - only where something is installed

    first = not exists(os.path.join(installer.project.lock_folder, LOCK_FILE))
    done = installer.apply(plan)
    if plan.location == "project":
        advice += find_ignore_issues(installer.project, DEFAULT_LIMITS, first=first)
    return done


def _fetch_offer(installer: Installer, spec: SourceSpec) -> prowess.Offer:
    """What the source has; raises for what cannot be reached, and for a skill that it has not."""
    with printer.show_progress(f"fetching {spec}"):
        return installer.offers(spec)


def _show_offer(offer: prowess.Offer, *, as_data: bool) -> int:
    printer.print_answer(lambda: offer_to_dict(offer), lambda: offer_to_blocks(offer), as_data=as_data)
    printer.print_issues(offer.issues)
    return 0


def _note_local_path(source: str) -> None:
    """Say so when what is written as a name or a repository is the path of something here as well."""
    if is_local_path(source) or not os.path.lexists(source):
        return
    try:
        spec = parse_source(source)
    except BadReferenceError as error:
        message = f"{error.message}; something of that name is here: write {with_dot_prefix(source)}"
        raise BadReferenceError(message, error.path, error.code) from None
    if not spec.local:
        printer.note(f"{source} is taken for {spec.address}; what is here by that name is {with_dot_prefix(source)}")


def _copy_into(installer: Installer, spec: SourceSpec, folder: str, *, dry_run: bool, yes: bool, as_data: bool) -> int:
    refuse_taken_places(with_safe_name(spec), os.path.abspath(folder))  # before anything is fetched
    offer = _fetch_offer(installer, spec)
    named = ", ".join(skill.name for skill in offer.chosen(spec.skills))
    take = [f"take {summarize_offer(offer)}: {named}"] if named else []
    rows = [f"fetch {spec}", *take, f"copy it into {folder}: no links, no lock file"]
    return carry_out(
        PlannedChange(
            plan=plan_to_blocks(rows),
            needs_consent=True,
            progress_text=f"fetching {spec}",
            apply=lambda: _list_copies(installer.install_into(spec, folder, offer=offer), offer),
            to_dict=lambda places: {
                "plan": rows,
                "installed": [{"name": at.name, "location": "folder", "path": str(at)} for at in places or ()],
                "issues": [issue_to_dict(issue) for issue in offer.issues],
            },
            report=lambda places: [line("Copied ", (at.name, "name"), f": {shorten_path(str(at))}") for at in places],
            declined_text="Nothing was copied.",
            issues=lambda: offer.issues,
        ),
        yes=yes,
        as_data=as_data,
        dry_run=dry_run,
    )


def _list_copies(first: Path, offer: prowess.Offer) -> list[Path]:
    """The folders that a copy made: one for each skill that was chosen, else one for the source."""
    return [first.with_name(link_name(skill.name)) for skill in offer.skills] if offer.spec.skills else [first]

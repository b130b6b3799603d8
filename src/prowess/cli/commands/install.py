"""``prowess install``: fetches skills, pins them in the lock file, and links them where agents look."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import click

from prowess.addresses.skill_ref import is_local_path, link_name
from prowess.addresses.source_grammar import ARCHIVE_SUFFIXES, SOURCE_FORMS
from prowess.addresses.source_spec import SourceSpec, parse_source, with_parts
from prowess.changes.change import Change
from prowess.changes.install import prepare_install
from prowess.cli.change_flow import (
    DECLINED_STATUS,
    ChangeFlags,
    ChangeView,
    carry_out,
    change_options,
    plan_to_blocks,
)
from prowess.cli.command_class import new_command
from prowess.cli.install_options import agents_option, install_to_dict, install_to_line, network_options
from prowess.cli.issues import issue_to_dict
from prowess.cli.offers import offer_to_blocks, offer_to_dict, pick_skills
from prowess.cli.options import complete_path, group_options
from prowess.cli.render import printer
from prowess.cli.render.blocks import Line
from prowess.cli.shown_paths import with_dot_prefix
from prowess.errors import BadReferenceError
from prowess.files.paths import shorten_path
from prowess.install.copy_into import refuse_taken_places
from prowess.install.install_options import InstallOptions
from prowess.install.offer_text import summarize_offer
from prowess.install.typed_source import parse_typed_source, with_safe_name
from prowess.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from pathlib import Path

    import prowess
    from prowess.install.installer import Installer
    from prowess.installed.scopes import InstalledSkill


class _SourceParts(NamedTuple):
    """What of a source is wanted, as far as options say so."""

    ref: str
    subpath: str
    skills: tuple[str, ...]


def _make_options(*, copy: bool, replace: bool, save: bool, agents: tuple[str, ...]) -> InstallOptions:
    return InstallOptions(agents, replace, copy, save, preset=not agents)


_source_options = group_options(
    "parts",
    _SourceParts,
    ref=click.option("--ref", default="", metavar="REF", help="This tag, branch or commit of the source."),
    subpath=click.option("--path", "subpath", default="", metavar="SUBFOLDER", help="Only this folder of the source."),
    skills=click.option("--skill", "skills", multiple=True, metavar="NAME", help="Only this skill of the source."),
)


_install_options = group_options(
    "options",
    _make_options,
    copy=click.option("--copy", is_flag=True, help="Put files where agents look, to be committed, instead of links."),
    replace=click.option("--replace", is_flag=True, help="Replace an existing one."),
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
@click.option("-p", "--project", is_flag=True, help="Install for the project in this folder, not for you.")
@click.option(
    "--into",
    "folder",
    type=click.Path(file_okay=False),
    help="Only copy the skills into this folder: no links, no lock file.",
)
@_install_options
@network_options
@change_options
def command(
    source: str,
    *,
    parts: _SourceParts,
    list_only: bool,
    project: bool,
    folder: str | None,
    options: InstallOptions,
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
    if folder is not None:
        if project or options.copy or options.replace or options.agents:
            raise click.UsageError(
                "--into only copies into that folder: leave --project, --copy, --replace and --agent out"
            )
        return _copy_into(installer, spec, folder, flags)
    if not flags.dry_run:
        # Before the plan is made: a change that was interrupted may occupy the place of what is to be installed.
        installer.recover()
        printer.print_issues(installer.issues)
    change = prepare_install(
        installer,
        spec,
        # A manifest declares a source as it was typed, unless options say more than that.
        spec if parts.ref or parts.subpath else source,
        options,
        project=project,
        limits=DEFAULT_LIMITS,
        fetch=lambda spec: _fetch_offer(installer, spec),
        select=parts.skills,
    )
    was_picked = False
    if change.choose is not None:
        names = pick_skills(change.details.offer, change.details.chosen) if flags.may_ask else None
        was_picked = names is not None
        # Whoever picks nothing reads that nothing was installed.
        change = change.choose(change.details.chosen if names is None else names) if names != [] else change
    # Who picked from a list has seen what each skill is.
    describes = change.steps and flags.may_ask and not was_picked
    blocks = [*offer_to_blocks(change.details.offer), Line()] if describes else []
    view: ChangeView[tuple[InstalledSkill, ...]] = ChangeView(
        plan=[*blocks, *plan_to_blocks(change.steps)],
        progress_text=f"fetching {spec}",
        to_dict=lambda installs: {
            "plan": [*change.steps],
            "installed": [install_to_dict(install) for install in installs or ()],
            "issues": [issue_to_dict(issue) for issue in change.issues()],
        },
        report=lambda installs: [install_to_line("Installed", install) for install in installs],
        declined_text="Nothing was installed.",
        status=lambda installs: 0 if installs else DECLINED_STATUS,
        dry_status=0 if change.steps else DECLINED_STATUS,
    )
    return carry_out(change, view, flags)


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


def _copy_into(installer: Installer, spec: SourceSpec, folder: str, flags: ChangeFlags) -> int:
    refuse_taken_places(with_safe_name(spec), os.path.abspath(folder))  # before anything is fetched
    offer = _fetch_offer(installer, spec)
    names = ", ".join(skill.name for skill in offer.chosen(spec.skills))
    take = [f"take {summarize_offer(offer)}: {names}"] if names else []
    change = Change(
        steps=[f"fetch {offer.spec}", *take, f"copy it into {folder}: no links, no lock file"],
        apply=lambda: _list_copies(installer.install_into(offer.spec, folder, offer=offer), offer),
        describe=lambda copies: [f"Copied {path.name}: {shorten_path(str(path))}" for path in copies],
        issues=lambda: offer.issues,
    )
    view: ChangeView[list[Path]] = ChangeView(
        progress_text=f"fetching {spec}",
        to_dict=lambda copies: {
            "plan": [*change.steps],
            "installed": [{"name": path.name, "location": "folder", "path": str(path)} for path in copies or ()],
            "issues": [issue_to_dict(issue) for issue in offer.issues],
        },
        declined_text="Nothing was copied.",
    )
    return carry_out(change, view, flags)


def _list_copies(first: Path, offer: prowess.Offer) -> list[Path]:
    """Return the folders that a copy made: one for each skill that was chosen, or one for the whole source."""
    return [first.with_name(link_name(skill.name)) for skill in offer.skills] if offer.spec.skills else [first]

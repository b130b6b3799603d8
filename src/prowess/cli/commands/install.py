"""``prowess install``: shows what a source offers, and installs, pins and links the chosen skills."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import click

from prowess.addresses.skill_ref import is_local_path
from prowess.addresses.source_grammar import ARCHIVE_SUFFIXES, SOURCE_FORMS
from prowess.addresses.source_spec import SourceSpec, parse_source, with_parts
from prowess.changes.change import Change
from prowess.changes.install import prepare_install, summarize_offer
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
from prowess.cli.options import complete_path, group_options
from prowess.cli.picker import Choice, pick_names
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Line, Style, Title, line, spans_text
from prowess.cli.render.printer import with_dot_prefix
from prowess.cli.terminal import open_terminal
from prowess.errors import BadReferenceError
from prowess.files.paths import shorten_path
from prowess.install.copy_into import refuse_taken_places
from prowess.install.plan import InstallOptions
from prowess.install.typed_source import parse_typed_source, with_safe_name
from prowess.limits import DEFAULT_LIMITS
from prowess.names import link_name
from prowess.text.quantities import format_count, join_first

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
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
    with printer.show_progress(f"fetching {spec}"):
        change = prepare_install(
            installer,
            spec,
            # A manifest declares a source as it was typed, unless options say more than that.
            spec if parts.ref or parts.subpath else source,
            options,
            project=project,
            limits=DEFAULT_LIMITS,
            select=parts.skills,
        )
    was_picked = False
    if change.choose is not None:
        names = _pick_skills(change.details.offer, change.details.chosen) if flags.may_ask else None
        was_picked = names is not None
        # Whoever picks nothing reads that nothing was installed.
        change = change.choose(change.details.chosen if names is None else names) if names != [] else change
    # Who picked from a list has seen what each skill is.
    describes = change.steps and flags.may_ask and not was_picked
    blocks = [*_offer_to_blocks(change.details.offer), Line()] if describes else []
    if not describes and not was_picked:
        # Whoever is not shown the skills reads at least which of them a model will not choose.
        printer.print_issues(
            replace(issue, message=f"the description {issue.message}")
            for skill in change.details.offer.skills
            if skill.name in change.details.chosen
            for issue in skill.issues
            if issue.field == "description" and issue.severity != "info"
        )
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
    printer.print_answer(lambda: _offer_to_dict(offer), lambda: _offer_to_blocks(offer), as_data=as_data)
    printer.print_issues(offer.issues)
    return 0


def _note_local_path(source: str) -> None:
    """Print a note if ``source`` is read as a repository, but a file or folder with that name is here as well.

    Raises ``BadReferenceError`` for a name that can only be meant as a path, and says whether that path exists.
    """
    is_here = os.path.lexists(source)
    if is_local_path(source) or not (is_here or source.lower().endswith(ARCHIVE_SUFFIXES)):
        return
    try:
        spec = parse_source(source)
    except BadReferenceError as error:
        known = (
            f"something with that name is here: write {with_dot_prefix(source)}"
            if is_here
            else "there is no file with that name here"
        )
        raise BadReferenceError(f"{error.message}; {known}", error.path, error.code) from None
    if is_here and not spec.local:
        printer.note(
            f"{source} means {spec.address}; for the folder with that name here, write {with_dot_prefix(source)}"
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


_MAX_SHOWN = 5
_MAX_FINDINGS = 10
_COST_NOTE = "to list: a line with its path (prowess prompt --style xml); 'prowess prompt' has what your dialect costs"


def _offer_to_blocks(offer: prowess.Offer) -> Iterator[Block]:
    """Return an offer for people: the source, then each skill, those of a plugin together, then plugins elsewhere."""
    yield Title(str(offer.spec), summarize_offer(offer))
    grouped = {plugin.name for plugin in offer.plugins}
    for skill in offer.skills:
        if skill.plugin not in grouped:
            yield from _skill_to_blocks(skill)
    for plugin in offer.plugins:
        if not plugin.skills:
            continue
        yield Title(f"plugin {plugin.name}", f"prowess install {offer.spec}@{plugin.name}")
        yield line((" ".join(plugin.description.split()), "dim"), indent=2, cut=True)
        shown = [skill for skill in offer.skills if skill.plugin == plugin.name]
        for skill in shown:
            yield from _skill_to_blocks(skill)
        others = [name for name in plugin.skills if name not in {skill.name for skill in shown}]
        if others:
            note = f"its own {', '.join(others)}: unless you choose this plugin, others with these names count"
            yield line((note, "dim"), indent=2)
    if offer.skills:
        yield line((_COST_NOTE, "dim"))
    elsewhere = [plugin for plugin in offer.plugins if plugin.source or plugin.problem]
    if elsewhere:
        yield Title("plugins elsewhere", f"{len(elsewhere)}: 'prowess install {offer.spec}@PLUGIN --list' shows one")
        for plugin in elsewhere:
            style: Style = "dim" if plugin.source else "warn"
            yield line((plugin.name, "name"), (f"  {plugin.source or plugin.problem}", style), indent=2)
            yield line(" ".join(plugin.description.split()), indent=4, cut=True)


def _skill_to_blocks(skill: prowess.OfferedSkill) -> Iterator[Block]:
    """Return one offered skill for people: its description, its cost, what would run, and what is wrong with it."""
    internal = (("  only when it is named", "dim"),) if skill.is_internal else ()
    yield line((skill.name, "name"), (f"  {_describe_cost(skill)}", "dim"), *internal, indent=2)
    yield line(" ".join(skill.description.split()), indent=4, cut=True)
    for what, texts in (
        ("would run", skill.commands),
        ("could run", skill.scripts),
        ("asks for", skill.powers),
        ("allowed tools", skill.allowed_tools),
    ):
        if texts:
            yield line(
                (f"{what}: ", "warn"), join_first([" ".join(text.split()) for text in texts], _MAX_SHOWN), indent=4
            )
    findings = [issue for issue in skill.issues if issue.severity != "info"]
    for issue in findings[:_MAX_FINDINGS]:
        yield line((f"{issue.severity}: ", "warn"), f"[{issue.code}] {issue.field} {issue.message}", indent=4)
    if len(findings) > _MAX_FINDINGS:  # one skill full of findings must not push the others off the screen
        more = format_count(len(findings) - _MAX_FINDINGS, "more finding")
        yield line((f"and {more}; --list --json has all of them", "warn"), indent=4)


def _describe_cost(skill: prowess.OfferedSkill) -> str:
    return f"{skill.listing_tokens:,} tokens to list, {skill.body_tokens:,} in its instructions"


def _pick_skills(offer: prowess.Offer, preset: Sequence[str]) -> list[str] | None:
    """Return the names of the skills that a person chooses on the terminal, or ``None`` without a terminal."""
    with open_terminal() as terminal:
        if terminal is None:
            return None
        heading = f"{summarize_offer(offer)}: {offer.spec}"
        return pick_names([_to_choice(skill) for skill in offer.skills], preset, heading, terminal)


def _to_choice(skill: prowess.OfferedSkill) -> Choice:
    findings = [issue for issue in skill.issues if issue.severity != "info"]
    marks = (
        f"plugin {skill.plugin}" if skill.plugin else "",
        "runs code" if skill.acts else "",
        format_count(len(findings), "finding") if findings else "",
        "only when it is named" if skill.is_internal else "",
    )
    short = ", ".join((f"{skill.body_tokens:,} tokens", *filter(None, marks)))
    # The first two lines are the name and the description, which the list shows by itself.
    _, _, *details = _skill_to_blocks(skill)
    return Choice(
        skill.name, " ".join(skill.description.split()), short, (_describe_cost(skill), *map(_block_to_text, details))
    )


def _block_to_text(block: Block) -> str:
    return spans_text(block.spans) if isinstance(block, Line) else ""


def _offer_to_dict(offer: prowess.Offer) -> dict[str, object]:
    """Return an offer as data."""
    return {
        "source": str(offer.spec),
        "commit": offer.commit,
        "date": offer.date.isoformat() if offer.date else None,
        "bytes": offer.bytes,
        "complete": offer.is_complete,
        "skills": [
            {
                "name": skill.name,
                "description": skill.description,
                "folder": skill.folder,
                "listing_tokens": skill.listing_tokens,
                "body_tokens": skill.body_tokens,
                "files": list(skill.files),
                "bytes": skill.bytes,
                "complete": skill.is_complete,
                "commands": list(skill.commands),
                "scripts": list(skill.scripts),
                "powers": list(skill.powers),
                "allowed_tools": list(skill.allowed_tools),
                "internal": skill.is_internal,
                "plugin": skill.plugin,
                "issues": [issue_to_dict(issue) for issue in skill.issues],
            }
            for skill in offer.skills
        ],
        "plugins": [
            {
                "name": plugin.name,
                "description": plugin.description,
                "skills": list(plugin.skills),
                "source": str(plugin.source) if plugin.source else None,
                "problem": plugin.problem,
            }
            for plugin in offer.plugins
        ],
        "issues": [issue_to_dict(issue) for issue in offer.issues],
    }

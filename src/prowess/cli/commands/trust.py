"""``prowess trust``: the grants by which commands and scripts may run."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from prowess.cli.change_flow import PlannedChange, carry_out
from prowess.cli.command_class import CliCommand, CliGroup
from prowess.cli.lock_states import warn_edited_skills
from prowess.cli.options import (
    catalog_options,
    complete_skill,
    find_in_catalog,
    is_path,
    json_option,
    load_catalog,
    load_cli_settings,
    shorten_path,
)
from prowess.cli.render import printer
from prowess.cli.render.blocks import Line, Table, line
from prowess.errors import NotTrustedError, SkillError, did_you_mean
from prowess.names import SKILL_FILE
from prowess.runtime.acting.trust import Trust
from prowess.skills.inventory import inventory
from prowess.spec.quantities import format_count, join_first

if TYPE_CHECKING:
    from collections.abc import Iterator

    import prowess
    from prowess.cli.options import CatalogFlags
    from prowess.cli.render.blocks import Block, Span

_MAX_FILES = 20


@click.group(
    "trust",
    cls=CliGroup,
    examples=(
        ("prowess trust grant csv-report", "after a look at what would run"),
        ("prowess trust list", "every grant"),
        ("prowess trust revoke csv-report", "take it back"),
    ),
)
def command() -> None:
    """The grants by which commands and scripts of skills may run.

    A grant is for one state of a skill, by its digest: change one byte of it, and it is gone.
    """


@command.command("list", cls=CliCommand, examples=(("prowess trust list --json", "every grant, as data"),))
@json_option
def _list_grants(*, as_data: bool) -> None:
    """List every grant."""
    trust = Trust()
    grants = trust.grants()
    rows = [((g.name, "name"), g.digest[:12], g.granted, shorten_path(g.location)) for g in grants]
    printer.print_answer(
        lambda: {"path": trust.path, "grants": [asdict(grant) for grant in grants]},
        lambda: [Table(rows, head=("skill", "digest", "granted", "where"))] if rows else [line("Nothing is trusted.")],
        as_data=as_data,
    )


@command.command(
    "grant",
    cls=CliCommand,
    examples=(
        ("prowess trust grant csv-report", "shows what would run, and asks"),
        ("prowess trust grant ./skills/csv-report --yes", "a folder, without being asked"),
    ),
)
@click.argument("skills", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_skill)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@catalog_options
@json_option
def _grant_trust(
    skills: tuple[str, ...],
    *,
    yes: bool,
    where: CatalogFlags,
    as_data: bool,
) -> int:
    """Trust skills as they are now: show what of them would run, ask, and record the grant.

    NAME is the name of a skill, its folder, or its SKILL.md. Exit status 1: you said no.
    """
    settings = load_cli_settings(**where)
    found = _find_skills(settings, skills)
    seen = [skill.digest() for skill in found]
    trust = Trust()
    return carry_out(
        PlannedChange(
            plan=[block for skill, digest in zip(found, seen, strict=True) for block in _describe_skill(skill, digest)],
            needs_consent=True,
            progress_text="recording",
            apply=lambda: [
                _grant_if_unchanged(trust, skill, digest) for skill, digest in zip(found, seen, strict=True)
            ],
            to_dict=lambda grants: {"grants": [asdict(grant) for grant in grants or ()]},
            report=lambda grants: [
                line("Trusted ", (grant.name, "name"), f" as it is now ({grant.digest[:12]}).") for grant in grants
            ],
            declined_text="Nothing was trusted.",
            question="Trust this, as it is now?" if len(found) == 1 else f"Trust these {len(found)}?",
        ),
        yes=yes,
        as_data=as_data,
    )


def _complete_grant(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The names that grants are for; nothing where they cannot be read."""
    try:
        return sorted({grant.name for grant in Trust().grants() if grant.name.startswith(incomplete)})
    except SkillError:
        return []


@command.command(
    "revoke",
    cls=CliCommand,
    examples=(("prowess trust revoke csv-report", "by name"), ("prowess trust revoke --all", "everything")),
)
@click.argument("skills", nargs=-1, metavar="[NAME|DIGEST|PATH]...", shell_complete=_complete_grant)
@click.option("--all", "everything", is_flag=True, help="Take every grant back.")
@json_option
def _revoke_trust(skills: tuple[str, ...], *, everything: bool, as_data: bool) -> int:
    """Take grants back, by the name of the skill, its digest, or the path of its SKILL.md.

    Exit status 1: there was no such grant, for one of them at least.
    """
    trust = Trust()
    if not skills and not everything:
        raise click.UsageError("name a skill, or say --all")
    granted = [grant.name for grant in trust.grants()]
    wanted = (
        {grant.digest: grant.digest for grant in trust.grants()}
        if everything
        else {n: _to_grant_key(n) for n in skills}
    )
    counts = {name: trust.revoke(key) for name, key in wanted.items()}
    count = sum(counts.values())
    unknown = [] if everything else [name for name, number in counts.items() if not number]
    printer.print_answer(
        lambda: {"revoked": count},
        lambda: [line(f"Took {format_count(count, 'grant')} back.")],
        as_data=as_data,
    )
    for name in unknown:
        suggestion = did_you_mean(name, granted)
        printer.note(f"nothing by the name of {name} is trusted{f'; {suggestion}' if suggestion else ''}")
    return 1 if unknown else 0


def _to_grant_key(name: str) -> str:
    """What a grant is known by: its name or digest as written, or the SKILL.md at a path, also where that is gone."""
    if not is_path(name):
        return name
    from prowess.skills.catalog import Catalog  # noqa: PLC0415

    try:
        return find_in_catalog(Catalog(), name).location
    except SkillError:  # what is gone, or broken by now, was granted all the same
        path = os.path.abspath(name)
        return path if os.path.basename(path) == SKILL_FILE else os.path.join(path, SKILL_FILE)


def _find_skills(settings: prowess.Settings, names: tuple[str, ...]) -> list[prowess.Skill]:
    from prowess.skills.catalog import Catalog  # noqa: PLC0415

    catalog = Catalog() if all(map(is_path, names)) else load_catalog(settings)
    found = [find_in_catalog(catalog, name, verify=bool(settings["verify"])) for name in names]
    warn_edited_skills(found)
    for skill in found:
        if not skill.is_local:
            raise NotTrustedError(f"skill {skill.name!r} is not a folder on this machine", skill.location, "not-local")
    return found


def _grant_if_unchanged(trust: Trust, skill: prowess.Skill, seen: str) -> prowess.Grant:
    """The grant, for the very state that was shown."""
    grant = trust.grant(skill)
    if grant.digest != seen:
        trust.revoke(grant.digest)
        raise NotTrustedError(
            f"skill {skill.name!r} changed while you looked at it", skill.location, "changed-during-read"
        )
    return grant


def _describe_skill(skill: prowess.Skill, digest: str) -> Iterator[Block]:
    """What a person decides about."""
    held = inventory(skill)
    yield line((skill.name, "name"), f"  {shorten_path(skill.location)}")
    rows: list[tuple[Span, Span]] = [(("would run", "warn"), text) for text in held.commands]
    rows += [(("could run", "warn"), path) for path in held.scripts]
    yield Table(rows or [("nothing", "no commands, no scripts")], indent=2)
    names = [file.path for file in held.files]
    yield line(f"files: {join_first(names, _MAX_FILES)}", indent=2)
    yield line(f"digest: {digest}", indent=2)
    yield Line()

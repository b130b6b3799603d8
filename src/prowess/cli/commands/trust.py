"""``prowess trust``: lists, records and revokes the grants by which commands and scripts of skills may run."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from prowess.addresses.source_spec import SITE_PREFIX
from prowess.changes.trust import SHORT_DIGEST, prepare_grant
from prowess.cli.change_flow import ChangeFlags, ChangeView, carry_out, yes_option
from prowess.cli.command_class import CliCommand, CliGroup
from prowess.cli.lock_states import warn_edited_skills
from prowess.cli.options import CatalogFlags, catalog_options, complete_skill, json_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Cell, Line, Span, Table, line
from prowess.cli.skill_lookup import find_in_catalog, is_path, load_catalog, load_cli_settings
from prowess.conversation.acting.trust import Trust
from prowess.errors import SkillError
from prowess.files.paths import shorten_path
from prowess.names import SKILL_FILE
from prowess.policy.files import current_policy
from prowess.skills.catalog import Catalog
from prowess.skills.parse import read_metadata
from prowess.text.quantities import format_count, join_first
from prowess.text.spelling import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    import prowess
    from prowess.changes.trust import TrustDetails

_MAX_FILES = 20


@click.group(
    "trust",
    cls=CliGroup,
    usual="grant",
    examples=(
        ("prowess trust grant csv-report", "after a look at what would run"),
        ("prowess trust list", "every grant"),
        ("prowess trust revoke csv-report", "revoke it"),
    ),
)
def command() -> None:
    """Decide which skills may run their commands and scripts.

    A grant is for one state of a skill, which its digest names. After a change of one byte the grant no longer holds.
    """


@command.command("list", cls=CliCommand, examples=(("prowess trust list --json", "every grant, as data"),))
@json_option
def _list_grants(*, as_data: bool) -> None:
    """List every grant, and whether the skill is still as it was granted."""
    from prowess.sources.published.known_sites import KnownSites

    trust = Trust()
    grants = [(grant, _find_grant_state(grant)) for grant in trust.grants()]
    rows: list[tuple[Cell, ...]] = [
        (
            (grant.name, "name"),
            (_GRANT_STATES[state], "good" if state == "valid" else "warn"),
            grant.digest[:12],
            grant.granted,
            shorten_path(grant.location),
        )
        for grant, state in grants
    ]
    head = ("skill", "state", "digest", "granted", "where")
    signers = [(f"{SITE_PREFIX}{address}", site.signer) for address, site in KnownSites().list_signed()]
    signer_rows: list[tuple[Cell, ...]] = [((site, "name"), signer) for site, signer in signers]
    printer.print_answer(
        lambda: {
            "path": trust.path,
            "grants": [{**asdict(grant), "state": state} for grant, state in grants],
            "sites": [{"site": site, "signer": signer} for site, signer in signers],
        },
        lambda: [
            *([Table(rows, head=head)] if rows else [line("Nothing is trusted.")]),
            *([Line(), Table(signer_rows, head=("site", "key"))] if signer_rows else []),
        ],
        as_data=as_data,
    )


_GRANT_STATES = {
    "valid": "as granted",
    "changed": "changed since",
    "gone": "no longer there",
    "refused": "refused by the policy",
}


def _find_grant_state(grant: prowess.Grant) -> str:
    """Return ``valid`` if the skill at the place of a grant is as it was, else ``changed`` or ``gone``.

    ``refused``: a policy lets nothing of it run, whatever was granted.
    """
    if current_policy().find_run_refusal(grant.digest) is not None:
        return "refused"
    if not os.path.lexists(grant.location):
        return "gone"
    try:
        return "valid" if read_metadata(grant.location, mode="lenient").digest() == grant.digest else "changed"
    except SkillError:  # it cannot be hashed any more, and so it cannot run
        return "changed"


@command.command(
    "grant",
    cls=CliCommand,
    examples=(
        ("prowess trust grant csv-report", "shows what would run, and asks"),
        ("prowess trust grant ./skills/csv-report --yes", "a folder, without being asked"),
    ),
)
@click.argument("skills", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_skill)
@yes_option
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
    change = prepare_grant(Trust(), _find_skills(load_cli_settings(**where), skills))
    view: ChangeView[list[prowess.Grant]] = ChangeView(
        plan=[block for one in change.details for block in _describe_skill(one)],
        progress_text="recording",
        to_dict=lambda grants: {"grants": [asdict(grant) for grant in grants or ()]},
        report=lambda grants: [
            line("Trusted ", (grant.name, "name"), f" as it is now ({grant.digest[:SHORT_DIGEST]}).")
            for grant in grants
        ],
        declined_text="Nothing was trusted.",
        question="Trust this, as it is now?" if len(skills) == 1 else f"Trust these {len(skills)}?",
    )
    return carry_out(change, view, ChangeFlags(dry_run=False, yes=yes, as_data=as_data))


def _complete_grant(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of skills with grants that begin so; none if the grants cannot be read."""
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
@click.option("--all", "everything", is_flag=True, help="Revoke every grant.")
@json_option
def _revoke_trust(skills: tuple[str, ...], *, everything: bool, as_data: bool) -> int:
    """Revoke grants: name a skill, a digest, or the path of a SKILL.md.

    site:ADDRESS forgets the key of a published site, so that the next one is taken as it is.

    Exit status 1: for at least one NAME there was no grant.
    """
    from prowess.sources.published.known_sites import KnownSites

    trust = Trust()
    if not skills and not everything:
        raise click.UsageError("name a skill, or say --all")
    granted = [grant.name for grant in trust.grants()]
    wanted = (
        # By digest, since several grants may have one name.
        {grant.digest: grant.digest for grant in trust.grants()}
        if everything
        else {n: _to_grant_key(n) for n in skills}
    )
    sites = KnownSites()
    counts = {
        name: int(sites.forget(name.removeprefix(SITE_PREFIX))) if name.startswith(SITE_PREFIX) else trust.revoke(key)
        for name, key in wanted.items()
    }
    count = sum(counts.values())
    unknown = [] if everything else [name for name, number in counts.items() if not number]
    printer.print_answer(
        lambda: {"revoked": count},
        lambda: [line(f"Revoked {format_count(count, 'grant')}.")],
        as_data=as_data,
    )
    for name in unknown:
        suggestion = did_you_mean(name, granted)
        printer.note(f"there is no grant for {name}{f'; {suggestion}' if suggestion else ''}")
    return 1 if unknown else 0


def _to_grant_key(name: str) -> str:
    """Return what ``Trust.revoke`` takes: a name or digest as written, or the path of a SKILL.md that may be gone."""
    if not is_path(name):
        return name
    try:
        return find_in_catalog(Catalog(), name).location
    except SkillError:  # a skill that is gone or broken by now may still have a grant
        path = os.path.abspath(name)
        return path if os.path.basename(path) == SKILL_FILE else os.path.join(path, SKILL_FILE)


def _find_skills(settings: prowess.Settings, names: tuple[str, ...]) -> list[prowess.Skill]:
    catalog = Catalog() if all(map(is_path, names)) else load_catalog(settings)
    skills = [find_in_catalog(catalog, name, verify=bool(settings["verify"])) for name in names]
    warn_edited_skills(skills)
    return skills


def _describe_skill(one: TrustDetails) -> Iterator[Block]:
    """Return what a person has to know before a grant: what would run, the files, and the digest."""
    yield line((one.skill.name, "name"), f"  {shorten_path(one.skill.location)}")
    rows: list[tuple[Span, Span]] = [(("would run", "warn"), text) for text in one.contents.commands]
    rows += [(("could run", "warn"), path) for path in one.contents.scripts]
    yield Table(rows or [("nothing", "no commands, no scripts")], indent=2)
    names = [file.path for file in one.contents.files]
    yield line(f"files: {join_first(names, _MAX_FILES)}", indent=2)
    yield line(f"digest: {one.digest}", indent=2)
    yield Line()

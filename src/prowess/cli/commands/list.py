"""``prowess list``: the skills there are, by scope and place."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import click

from prowess.cli.command_class import new_command
from prowess.cli.completions import list_agent_ids
from prowess.cli.lock_states import CHANGED, LockStates, warn_edited_skill, warn_lock_problems
from prowess.cli.options import catalog_options, json_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import Line, Table, Title, line
from prowess.cli.shown_paths import shorten_path
from prowess.cli.skill_lookup import load_catalog, load_cli_settings, suggest_sync_for
from prowess.cli.trust_states import TrustStates
from prowess.spec.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    import prowess
    from prowess.cli.options import CatalogFlags
    from prowess.cli.render.blocks import Block, Span
    from prowess.model import Place, Shadowed


class _SkillRow(NamedTuple):
    skill: prowess.Skill
    marks: tuple[str, ...]
    source: str
    """From where it was installed."""


@new_command(
    "list",
    ("prowess list", "in the standard places"),
    ("prowess list skills/", "below a folder"),
    ("prowess list --agent codex --json", "also where Codex looks, as data"),
    ("prowess list --agents", "which agent has which skill"),
    choices=("Agents", list_agent_ids),
)
@click.argument("below", nargs=-1, type=click.Path(file_okay=False), metavar="[FOLDER]...")
@click.option("--agents", "matrix", is_flag=True, help="Which agent has which skill, for the agents that are found.")
@catalog_options
@json_option
def command(
    below: tuple[str, ...],
    *,
    matrix: bool,
    where: CatalogFlags,
    as_data: bool,
) -> None:
    """List the skills there are, by scope and place, in the order in which copies win.

    Marks: hidden (models do not see it), models only (people cannot call it), repaired (its head had to be mended),
    trusted (its commands and scripts may run), changed since trusted, verified (installed, and what the lock file
    says), changed since installed, from (where it was installed from, at which version), shadowed (another copy of the
    name wins).

    --agents shows instead how each agent has each skill: linked, copied (real files), missing, shadowed (it loads
    another of that name), edited (it is not what was installed); for the agents with a folder in the project or in the
    home folder, those that skills are installed for, and those of --agent.
    """
    if matrix:
        from prowess.cli.agent_matrix import show_matrix  # noqa: PLC0415 - only for those who ask

        if below or where["folders"]:
            raise click.UsageError("--agents is about the folders where agents look: name no other folder")
        show_matrix(where["agents"], project=where["project"] is not False, as_data=as_data)
        return
    settings = load_cli_settings(**{**where, "folders": (*below, *where["folders"])})
    catalog = load_catalog(settings)
    lock_states = LockStates()
    marked = _make_rows(catalog, lock_states)
    warn_lock_problems(lock_states)
    for row in marked:
        if CHANGED in row.marks:
            warn_edited_skill(row.skill)
    absent = suggest_sync_for(settings, lock_states)
    if absent and (marked or as_data):
        printer.warn(absent)
    printer.print_answer(
        lambda: _to_dict(catalog, marked), lambda: _to_blocks(catalog, marked, absent, lock_states), as_data=as_data
    )


def _make_rows(catalog: prowess.Catalog, lock_states: LockStates) -> list[_SkillRow]:
    trusted = TrustStates()
    return [
        _SkillRow(skill, tuple(_find_marks(skill, trusted, lock_states)), lock_states.describe_source(skill))
        for skill in catalog.skills
    ]


def _find_marks(skill: prowess.Skill, trusted: TrustStates, lock_states: LockStates) -> Iterator[str]:
    if not skill.model_invocable:
        yield "hidden"
    if not skill.user_invocable:
        yield "models only"
    if skill.repairs:
        yield "repaired"
    yield from filter(None, (trusted.find_state(skill), lock_states.find_state(skill)))


def _to_dict(catalog: prowess.Catalog, rows: list[_SkillRow]) -> dict[str, object]:
    return {
        "skills": [_skill_to_dict(row) for row in rows],
        "shadowed": [
            {"name": s.name, "location": s.location, "winner": s.winner, "reason": s.reason} for s in catalog.shadowed
        ],
        "failures": [
            {"code": i.code, "path": i.path, "line": i.line, "message": i.message, "hint": i.hint}
            for i in catalog.failures
        ],
        "places": [_place_to_dict(place) for place in catalog.places],
    }


def _skill_to_dict(row: _SkillRow) -> dict[str, object]:
    skill = row.skill
    return {
        "name": skill.name,
        "description": skill.description,
        "location": skill.location,
        "scope": skill.scope.value if skill.scope else None,
        "origin": skill.origin,
        "source": row.source,
        "marks": list(row.marks),
    }


def _place_to_dict(place: Place) -> dict[str, object]:
    return {
        "path": place.path,
        "scope": place.scope.value if place.scope else None,
        "state": place.state,
        "found": place.found,
    }


def _to_blocks(
    catalog: prowess.Catalog, rows: list[_SkillRow], absent: str, lock_states: LockStates
) -> Iterator[Block]:
    groups = _group_by_place(catalog, rows)
    for place, (own, lost) in groups.items():
        if own or lost:
            scope = f"{place.scope.value}: " if place.scope else ""
            yield Title(f"{scope}{shorten_path(place.path)}", format_count(len(own), "skill"))
            yield from _place_to_blocks(own)
            if lost:
                yield Table([_shadowed_to_row(one, lock_states) for one in lost], indent=2, cut=True)
    if not rows:
        yield from _explain_empty(catalog, absent)
    if catalog.failures:
        count = len({issue.path for issue in catalog.failures})
        yield Line()
        yield line((f"{format_count(count, 'file')} could not be loaded:", "warn"))
        yield Table([((shorten_path(i.path), "name"), (i.code, "warn"), i.message) for i in catalog.failures], indent=2)


def _group_by_place(
    catalog: prowess.Catalog, rows: list[_SkillRow]
) -> dict[Place, tuple[list[_SkillRow], list[Shadowed]]]:
    from prowess.model import Place  # noqa: PLC0415 - loaded already

    groups: dict[Place, tuple[list[_SkillRow], list[Shadowed]]] = {place: ([], []) for place in catalog.places}
    paths = sorted(((place.path.rstrip(os.sep) + os.sep, place) for place in groups), key=lambda pair: -len(pair[0]))

    def find_place(location: str) -> Place:
        return next((place for path, place in paths if location.startswith(path)), Place("elsewhere"))

    for row in rows:
        groups.setdefault(find_place(row.skill.location), ([], []))[0].append(row)
    for lost in catalog.shadowed:
        groups.setdefault(find_place(lost.location), ([], []))[1].append(lost)
    return groups


def _place_to_blocks(rows: list[_SkillRow]) -> Iterator[Block]:
    """The skills of one place, those of one source below a line that says what is true of all of them.

    So the line of a skill is its description's: a terminal cuts it at its end.
    """
    sources: dict[str, list[_SkillRow]] = {}
    for row in rows:
        sources.setdefault(row.source, []).append(row)
    for source in sorted(sources):
        shared: tuple[str, ...] = ()
        if source:
            alike = sources[source]
            shared = tuple(mark for mark in alike[0].marks if all(mark in row.marks for row in alike))
            yield line((", ".join((f"from {source}", *shared)), "dim"), indent=2)
        yield Table([_skill_to_row(row, shared) for row in sources[source]], indent=4 if source else 2, cut=True)


def _skill_to_row(row: _SkillRow, shared: tuple[str, ...]) -> tuple[Span, tuple[Span, ...]]:
    own = [mark for mark in row.marks if mark not in shared]
    marks: tuple[Span, ...] = ((f"[{', '.join(own)}] ", "warn"),) if own else ()
    return (row.skill.name, "name"), (*marks, " ".join(row.skill.description.split()))


def _shadowed_to_row(lost: Shadowed, lock_states: LockStates) -> tuple[Span, tuple[Span, ...]]:
    edited = f", {CHANGED}" if lock_states.is_changed_at(lost.location) else ""
    return (lost.name, "dim"), (
        (f"[shadowed{edited}] ", "warn"),
        (f"by {shorten_path(lost.winner)}: {lost.reason}", "dim"),
    )


def _explain_empty(catalog: prowess.Catalog, absent: str) -> Iterator[Block]:
    yield line("No skills found. Looked in:")
    yield Table([(shorten_path(place.path), (place.state, "dim")) for place in catalog.places], indent=2)
    yield line(absent or "Begin one with 'prowess new NAME', or name a folder: 'prowess list FOLDER'.")

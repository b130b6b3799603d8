"""``prowess list``: the skills there are, by scope and place."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import click

from prowess.cli.command import command as new_command
from prowess.cli.lock_check import CHANGED, Verified, tell_change, tell_troubles
from prowess.cli.options import (
    agent_ids,
    catalog_of,
    find_absent,
    home_relative,
    json_option,
    settings_of,
    where_options,
)
from prowess.cli.render import printer
from prowess.cli.render.blocks import Line, Table, Title, line
from prowess.cli.trust_state import Trusted
from prowess.spec.plural import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    import prowess
    from prowess.cli.options import Where
    from prowess.cli.render.blocks import Block, Span
    from prowess.model import Place, Shadowed


class _Row(NamedTuple):
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
    choices=("Agents", agent_ids),
)
@click.argument("below", nargs=-1, type=click.Path(file_okay=False), metavar="[FOLDER]...")
@click.option("--agents", "matrix", is_flag=True, help="Which agent has which skill, for the agents that are found.")
@where_options
@json_option
def command(
    below: tuple[str, ...],
    *,
    matrix: bool,
    where: Where,
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
    settings = settings_of(**{**where, "folders": (*below, *where["folders"])})
    catalog = catalog_of(settings)
    verified = Verified()
    marked = _marked(catalog, verified)
    tell_troubles(verified)
    for row in marked:
        if CHANGED in row.marks:
            tell_change(row.skill)
    absent = find_absent(settings, verified)
    if absent and (marked or as_data):
        printer.warn(absent)
    printer.answer(lambda: _data(catalog, marked), lambda: _blocks(catalog, marked, absent, verified), as_data=as_data)


def _marked(catalog: prowess.Catalog, verified: Verified) -> list[_Row]:
    trusted = Trusted()
    return [_Row(skill, tuple(_marks(skill, trusted, verified)), verified.source(skill)) for skill in catalog.skills]


def _marks(skill: prowess.Skill, trusted: Trusted, verified: Verified) -> Iterator[str]:
    if not skill.model_invocable:
        yield "hidden"
    if not skill.user_invocable:
        yield "models only"
    if skill.repairs:
        yield "repaired"
    yield from filter(None, (trusted.state(skill), verified.state(skill)))


def _data(catalog: prowess.Catalog, rows: list[_Row]) -> dict[str, object]:
    return {
        "skills": [_skill_data(row) for row in rows],
        "shadowed": [
            {"name": s.name, "location": s.location, "winner": s.winner, "reason": s.reason} for s in catalog.shadowed
        ],
        "failures": [
            {"code": i.code, "path": i.path, "line": i.line, "message": i.message, "hint": i.hint}
            for i in catalog.failures
        ],
        "places": [_place_data(place) for place in catalog.places],
    }


def _skill_data(row: _Row) -> dict[str, object]:
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


def _place_data(place: Place) -> dict[str, object]:
    return {
        "path": place.path,
        "scope": place.scope.value if place.scope else None,
        "state": place.state,
        "found": place.found,
    }


def _blocks(catalog: prowess.Catalog, rows: list[_Row], absent: str, verified: Verified) -> Iterator[Block]:
    groups = _groups(catalog, rows)
    for place, (own, lost) in groups.items():
        if own or lost:
            scope = f"{place.scope.value}: " if place.scope else ""
            yield Title(f"{scope}{home_relative(place.path)}", counted(len(own), "skill"))
            yield from _by_source(own)
            if lost:
                yield Table([_lost(one, verified) for one in lost], indent=2, cut=True)
    if not rows:
        yield from _nothing(catalog, absent)
    if catalog.failures:
        count = len({issue.path for issue in catalog.failures})
        yield Line()
        yield line((f"{counted(count, 'file')} could not be loaded:", "warn"))
        yield Table(
            [((home_relative(i.path), "name"), (i.code, "warn"), i.message) for i in catalog.failures], indent=2
        )


def _groups(catalog: prowess.Catalog, rows: list[_Row]) -> dict[Place, tuple[list[_Row], list[Shadowed]]]:
    from prowess.model import Place  # noqa: PLC0415 - loaded already

    groups: dict[Place, tuple[list[_Row], list[Shadowed]]] = {place: ([], []) for place in catalog.places}
    paths = sorted(((place.path.rstrip(os.sep) + os.sep, place) for place in groups), key=lambda pair: -len(pair[0]))

    def home_of(location: str) -> Place:
        return next((place for path, place in paths if location.startswith(path)), Place("elsewhere"))

    for row in rows:
        groups.setdefault(home_of(row.skill.location), ([], []))[0].append(row)
    for lost in catalog.shadowed:
        groups.setdefault(home_of(lost.location), ([], []))[1].append(lost)
    return groups


def _by_source(rows: list[_Row]) -> Iterator[Block]:
    """The skills of one place, those of one source below a line that says what is true of all of them.

    So the line of a skill is its description's: a terminal cuts it at its end.
    """
    sources: dict[str, list[_Row]] = {}
    for row in rows:
        sources.setdefault(row.source, []).append(row)
    for source in sorted(sources):
        shared: tuple[str, ...] = ()
        if source:
            alike = sources[source]
            shared = tuple(mark for mark in alike[0].marks if all(mark in row.marks for row in alike))
            yield line((", ".join((f"from {source}", *shared)), "dim"), indent=2)
        yield Table([_shown(row, shared) for row in sources[source]], indent=4 if source else 2, cut=True)


def _shown(row: _Row, shared: tuple[str, ...]) -> tuple[Span, tuple[Span, ...]]:
    own = [mark for mark in row.marks if mark not in shared]
    marks: tuple[Span, ...] = ((f"[{', '.join(own)}] ", "warn"),) if own else ()
    return (row.skill.name, "name"), (*marks, " ".join(row.skill.description.split()))


def _lost(lost: Shadowed, verified: Verified) -> tuple[Span, tuple[Span, ...]]:
    edited = f", {CHANGED}" if verified.is_changed_at(lost.location) else ""
    return (lost.name, "dim"), (
        (f"[shadowed{edited}] ", "warn"),
        (f"by {home_relative(lost.winner)}: {lost.reason}", "dim"),
    )


def _nothing(catalog: prowess.Catalog, absent: str) -> Iterator[Block]:
    yield line("No skills found. Looked in:")
    yield Table([(home_relative(place.path), (place.state, "dim")) for place in catalog.places], indent=2)
    yield line(absent or "Begin one with 'prowess new NAME', or name a folder: 'prowess list FOLDER'.")

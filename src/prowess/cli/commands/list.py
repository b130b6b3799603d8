"""``prowess list``: lists the skills that are here, by scope and place."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import click

from prowess.cli.command_class import new_command
from prowess.cli.issues import find_remedy, issue_to_dict
from prowess.cli.lock_states import (
    CHANGED,
    POLICY_CODES,
    LazyLockStates,
    suggest_first_sync,
    warn_lock_problems,
    warn_other_state,
)
from prowess.cli.options import (
    AskedLocation,
    CatalogFlags,
    catalog_options,
    json_option,
    list_agent_ids,
    location_options,
)
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Line, Span, Table, Title, line
from prowess.cli.skill_lookup import LazyTrustStates, load_catalog, load_settings_to_show, suggest_sync_for
from prowess.files.paths import shorten_path
from prowess.skills.explanation import Place, Shadowed
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    import prowess
    from prowess.installed.other_tools import ForeignEntry


class _SkillRow(NamedTuple):
    skill: prowess.Skill
    marks: tuple[str, ...]
    source: str
    """The source and version that it was installed from; ``""`` if nobody recorded them."""


class _ForeignSources:
    """The sources that other tools recorded for skills that Prowess did not install, read only where there are any."""

    def __init__(self) -> None:
        self._by_root: dict[str, dict[str, ForeignEntry]] = {}

    def describe(self, skill: prowess.Skill) -> str:
        """Return where another tool got a skill from, at which version; ``""`` if none recorded that."""
        folder = os.path.dirname(skill.location)
        root = os.path.dirname(os.path.dirname(os.path.dirname(folder)))  # of .agents/skills, and of any agent's folder
        if root not in self._by_root:
            self._by_root[root] = _read_foreign_entries(root)
        name = os.path.basename(folder)
        recorded = self._by_root[root].get(name) or _find_metadata_entry(name, skill)
        if recorded is None:
            return ""
        from prowess.install.adopt import find_recorded_source

        spec = find_recorded_source(recorded)
        return f"{spec.address}{f' at {spec.ref}' if spec.ref else ''} (another tool)" if spec else ""


def _find_metadata_entry(name: str, skill: prowess.Skill) -> ForeignEntry | None:
    head = skill.unparsed_head
    # Fast path: a head that names no repository is not parsed.
    if head is not None and b"github-repo" not in head:
        return None
    metadata = skill.peek().metadata
    if "github-repo" not in metadata:
        return None
    from prowess.installed.other_tools import entry_from_metadata

    return entry_from_metadata(name, metadata)


def _read_foreign_entries(root: str) -> dict[str, ForeignEntry]:
    state_folder = os.environ.get("XDG_STATE_HOME", "") if root == os.path.expanduser("~") else ""
    files = ["skills-lock.json", ".agents/.skill-lock.json"]
    paths = [os.path.join(root, file) for file in files]
    if state_folder:
        paths.append(os.path.join(state_folder, "skills", ".skill-lock.json"))
    # Fast path: where no other tool has a lock file, the package that reads them is not loaded.
    if not any(map(os.path.lexists, paths)):
        return {}
    from prowess.errors import InstallError
    from prowess.installed.other_tools import read_foreign_entries

    with suppress(InstallError):  # 'prowess adopt' says what is wrong with the file
        return read_foreign_entries(root, state_folder=state_folder)
    return {}


@new_command(
    "list",
    ("prowess list", "in the standard places"),
    ("prowess list skills/", "below a folder"),
    ("prowess list --agent codex --json", "also where Codex looks, as data"),
    ("prowess list --agents", "which agent has which skill"),
    ("prowess list --installed", "what is installed, from where"),
    choices=("Agents", list_agent_ids),
)
@click.argument("below", nargs=-1, type=click.Path(file_okay=False), metavar="[FOLDER]...")
@click.option(
    "--agents", "matrix", is_flag=True, help="Show which agent has which skill, for the agents that are found."
)
@click.option("--installed", is_flag=True, help="Show what is installed: the source, the version and the skills.")
@location_options
@catalog_options
@json_option
def command(
    below: tuple[str, ...],
    *,
    matrix: bool,
    installed: bool,
    asked: AskedLocation,
    where: CatalogFlags,
    as_data: bool,
) -> None:
    """List the skills that are here, by scope and place. If a name has several copies, the first place wins.

    Marks: hidden (models do not see it), models only (people cannot call it), repaired (its frontmatter had a mistake),
    trusted (its commands and scripts may run), changed since trusted, verified (installed, and equal to the lock file),
    changed since installed, not synced (another version than the lock file has), from (the source and version of an
    install, also of one that another tool recorded), shadowed (another copy of the name wins).

    --agents shows how each agent has each skill instead: linked, copied (files of its own), missing, shadowed (the
    agent loads another skill with that name), edited (it differs from what was installed). It shows the agents with a
    folder in the project or in the home folder, those that skills are installed for, and those of --agent.

    --installed shows the installs instead: inside a project its installs, and elsewhere your own. It marks those that
    differ from the lock file: missing, changed since installed, not synced. --user, --project and
    --all go with it.
    """
    if asked and not installed:
        raise click.UsageError("--user, --project and --all go with --installed")
    if installed:
        from prowess.cli.installed_list import show_installed

        if below or matrix or where["folders"] or where["agents"]:
            raise click.UsageError("--installed goes with --user, --project, --all and --json alone")
        show_installed(asked, as_data=as_data)
        return
    if matrix:
        from prowess.cli.installed_list import show_matrix

        if below or where["folders"]:
            raise click.UsageError("--agents is about the folders where agents look: name no other folder")
        show_matrix(where["agents"], project=where["project"] is not False, as_data=as_data)
        return
    settings = load_settings_to_show(**{**where, "folders": (*below, *where["folders"])})
    catalog = load_catalog(settings)
    lock_states = LazyLockStates()
    trusted = LazyTrustStates()
    others = _ForeignSources()
    rows = [
        _SkillRow(
            skill,
            (*(("off",) if settings.is_off(skill.name) else ()), *_find_marks(skill, trusted, lock_states)),
            lock_states.describe_source(skill) or others.describe(skill),
        )
        for skill in catalog.skills
    ]
    warn_lock_problems(lock_states)
    for row in rows:
        for mark in row.marks:
            warn_other_state(row.skill, mark)
    absent = suggest_sync_for(settings, lock_states)
    if not rows and not absent and settings["project"] and not settings.names("folders"):
        absent = suggest_first_sync()
    if absent and (rows or as_data):  # without any skill, the text for people says it already
        printer.warn(absent)
    printer.print_answer(
        lambda: _to_dict(catalog, rows), lambda: _to_blocks(catalog, rows, absent, lock_states), as_data=as_data
    )


def _find_marks(skill: prowess.Skill, trusted: LazyTrustStates, lock_states: LazyLockStates) -> Iterator[str]:
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
        "failures": [issue_to_dict(issue, ("code", "path", "line", "message", "hint")) for issue in catalog.failures],
        "places": [
            {
                "path": place.path,
                "scope": place.scope.value if place.scope else None,
                "state": place.state,
                "found": place.found,
            }
            for place in catalog.places
        ],
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


def _to_blocks(
    catalog: prowess.Catalog, rows: list[_SkillRow], absent: str, lock_states: LazyLockStates
) -> Iterator[Block]:
    for place, (own, shadowed) in _group_by_place(catalog, rows).items():
        if own or shadowed:
            scope = f"{place.scope.value}: " if place.scope else ""
            yield Title(f"{scope}{shorten_path(place.path)}", format_count(len(own), "skill"))
            yield from _place_to_blocks(own)
            if shadowed:
                yield Table([_shadowed_to_row(one, lock_states) for one in shadowed], indent=2, cut=True)
    refused = [issue for issue in catalog.failures if issue.code in POLICY_CODES]
    if not rows:
        yield line("None of the skills here is allowed. Looked in:" if refused else "No skills found. Looked in:")
        yield Table([(shorten_path(place.path), (place.state, "dim")) for place in catalog.places], indent=2)
        begin = "Begin one with 'prowess new NAME', or name a folder: 'prowess list FOLDER'."
        yield line(absent or ("" if refused else begin))
    failed = [issue for issue in catalog.failures if issue not in refused]
    if failed:
        count = len({issue.path for issue in failed})
        yield Line()
        yield line((f"{format_count(count, 'file')} could not be loaded:", "warn"))
        yield Table([((shorten_path(i.path), "name"), (i.code, "warn"), i.message) for i in failed], indent=2)
        yield line("'prowess check PATH' says what to do about each of them.")
    if refused:
        yield Line()
        yield line((f"The policy refuses {format_count(len(refused), 'skill')}:", "warn"))
        yield Table([((shorten_path(i.path), "name"), (i.code, "warn"), i.message) for i in refused], indent=2)
        for code in dict.fromkeys(issue.code for issue in refused):
            yield line(f"{code}: {find_remedy(code)}")


def _group_by_place(
    catalog: prowess.Catalog, rows: list[_SkillRow]
) -> dict[Place, tuple[list[_SkillRow], list[Shadowed]]]:
    groups: dict[Place, tuple[list[_SkillRow], list[Shadowed]]] = {place: ([], []) for place in catalog.places}
    # The longest path first: places may lie inside each other, and a skill belongs to the innermost.
    paths = sorted(((place.path.rstrip(os.sep) + os.sep, place) for place in groups), key=lambda pair: -len(pair[0]))

    def find_place(location: str) -> Place:
        return next((place for path, place in paths if location.startswith(path)), Place("elsewhere"))

    for row in rows:
        groups.setdefault(find_place(row.skill.location), ([], []))[0].append(row)
    for shadowed in catalog.shadowed:
        groups.setdefault(find_place(shadowed.location), ([], []))[1].append(shadowed)
    return groups


def _place_to_blocks(rows: list[_SkillRow]) -> Iterator[Block]:
    """Return the skills of one place. Those of one source are below a line with the marks that all of them have."""
    # Marks at every skill would leave no room for descriptions, which a terminal cuts at the end of the line.
    sources: dict[str, list[_SkillRow]] = {}
    for row in rows:
        sources.setdefault(row.source, []).append(row)
    for source in sorted(sources):
        shared: tuple[str, ...] = ()
        if source:
            siblings = sources[source]
            shared = tuple(mark for mark in siblings[0].marks if all(mark in row.marks for row in siblings))
            yield line((", ".join((f"from {source}", *shared)), "dim"), indent=2)
        yield Table([_skill_to_row(row, shared) for row in sources[source]], indent=4 if source else 2, cut=True)


def _skill_to_row(row: _SkillRow, shared: tuple[str, ...]) -> tuple[Span, tuple[Span, ...]]:
    own = [mark for mark in row.marks if mark not in shared]
    marks: tuple[Span, ...] = ((f"[{', '.join(own)}] ", "warn"),) if own else ()
    return (row.skill.name, "name"), (*marks, " ".join(row.skill.description.split()))


def _shadowed_to_row(shadowed: Shadowed, lock_states: LazyLockStates) -> tuple[Span, tuple[Span, ...]]:
    edited = f", {CHANGED}" if lock_states.is_changed_at(shadowed.location) else ""
    return (shadowed.name, "dim"), (
        (f"[shadowed{edited}] ", "warn"),
        (f"by {shorten_path(shadowed.winner)}: {shadowed.reason}", "dim"),
    )

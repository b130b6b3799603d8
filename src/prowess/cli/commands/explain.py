"""``prowess explain``: why a name is, or is not, what a model sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.cli.command_class import new_command
from prowess.cli.options import catalog_options, json_option, skill_argument
from prowess.cli.render import printer
from prowess.cli.render.blocks import Table, Title, line
from prowess.cli.shown_paths import shorten_path
from prowess.cli.skill_lookup import load_catalog, load_cli_settings, suggest_sync_for
from prowess.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.cli.options import CatalogFlags
    from prowess.cli.render.blocks import Block
    from prowess.model import Explanation


@new_command(
    "explain",
    ("prowess explain csv-report", "which copy wins, and why"),
    ("prowess explain no-such-skill", "where it was looked for"),
)
@skill_argument
@catalog_options
@json_option
def command(
    skill: str,
    *,
    where: CatalogFlags,
    as_data: bool,
) -> int:
    """Explain why a name is, or is not, what a model sees: the copy that wins, those that lose, every place looked at.

    Exit status 1: there is no such skill.
    """
    settings = load_cli_settings(**where)
    catalog = load_catalog(settings)
    found = catalog.explain(skill)
    printer.print_answer(lambda: _to_dict(found), lambda: _to_blocks(found), as_data=as_data)
    suggestion = "" if found.location else did_you_mean(skill, catalog.names)
    if suggestion:
        printer.note(suggestion)
    if not found.location and (absent := suggest_sync_for(settings)):
        printer.warn(absent)
    return 0 if found.location else 1


def _to_dict(found: Explanation) -> dict[str, object]:
    return {
        "name": found.name,
        "location": found.location,
        "visible": found.visible,
        "reasons": list(found.reasons),
        "shadowed": [
            {"name": s.name, "location": s.location, "winner": s.winner, "reason": s.reason} for s in found.shadowed
        ],
        "issues": [
            {
                "code": i.code,
                "severity": i.severity,
                "path": i.path,
                "line": i.line,
                "field": i.field,
                "message": i.message,
                "hint": i.hint,
            }
            for i in found.issues
        ],
        "places": [
            {"path": p.path, "scope": p.scope.value if p.scope else None, "state": p.state, "found": p.found}
            for p in found.places
        ],
    }


def _to_blocks(found: Explanation) -> Iterator[Block]:
    yield Title(found.name, shorten_path(found.location) if found.location else "not found")
    for reason in found.reasons:
        yield line((reason, "plain" if found.visible else "warn"), indent=2)
    if found.shadowed:
        yield Title("Copies that lost")
        yield Table([((shorten_path(s.location), "name"), s.reason) for s in found.shadowed], indent=2)
    if found.issues:
        yield Title("Findings")
        rows = [
            (
                (f"{shorten_path(i.path)}{f':{i.line}' if i.line else ''}", "name"),
                (i.code, "warn"),
                f"{i.field}: {i.message}".strip(": "),
            )
            for i in found.issues
        ]
        yield Table(rows, indent=2)
    yield Title("Places looked at", "the first that has a name wins")
    rows2 = [
        (shorten_path(p.path), p.scope.value if p.scope else "", p.state, f"{p.found} found") for p in found.places
    ]
    yield Table(rows2, indent=2)

"""``prowess explain``: explains why a model sees a skill of a name, or does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

from prowess.cli.command_class import new_command
from prowess.cli.issues import find_remedy, issue_to_dict
from prowess.cli.options import CatalogFlags, catalog_options, json_option, skill_argument
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Table, Title, line
from prowess.cli.render.printer import with_dot_prefix
from prowess.cli.skill_lookup import (
    is_skill_folder,
    load_catalog,
    load_settings_to_show,
    note_folders_here,
    suggest_sync_for,
)
from prowess.files.paths import shorten_path
from prowess.text.spelling import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    import prowess
    from prowess.settings import Settings
    from prowess.skills.explanation import Explanation


@new_command(
    "explain",
    ("prowess explain csv-report", "which copy wins, and why"),
    ("prowess explain no-such-skill", "where it was looked for"),
    ('prowess explain csv-report --query "profile this csv"', "whether it is listed for a request, and why"),
)
@skill_argument
@click.option("--query", default="", help="A request: say whether the skill is listed for it, and why.")
@catalog_options
@json_option
def command(
    skill: str,
    *,
    query: str,
    where: CatalogFlags,
    as_data: bool,
) -> int:
    """Explain why a model sees a skill of this name, or does not.

    The answer names the copy that wins, the copies that lose, and every place that was searched. With --query it also
    says whether the listing for that request has the skill, and why.

    Exit status 1: there is no such skill.
    """
    settings = load_settings_to_show(**where)
    catalog = load_catalog(settings)
    # Only these need a conversation.
    has_more = query or settings.is_off(skill)
    explanation = _explain_listing(settings, catalog, skill, query) if has_more else catalog.explain(skill)
    printer.print_answer(lambda: _to_dict(explanation), lambda: _to_blocks(explanation), as_data=as_data)
    suggestion = "" if explanation.location else did_you_mean(skill, catalog.names)
    if suggestion:
        printer.note(suggestion)
    elif not explanation.location and is_skill_folder(skill):
        folder = with_dot_prefix(skill)
        printer.note(f"{folder} is not where agents look: 'prowess install {folder}', or say --dir .")
    elif not catalog.names:
        printer.note(find_remedy("no-skills"))
    elif skill in catalog:
        note_folders_here([catalog[skill]])
    if not explanation.location and (absent := suggest_sync_for(settings)):
        printer.warn(absent)
    return 0 if explanation.location else 1


def _explain_listing(settings: Settings, catalog: prowess.Catalog, name: str, query: str) -> Explanation:
    """Return the explanation that a toolset gives of a skill after it made the prompt for a request."""
    # Only here: without a request nothing of a conversation has to be loaded.
    from prowess.cli.selection import make_selector
    from prowess.conversation.moment import Scope
    from prowess.conversation.session import Session
    from prowess.tools.toolset import Toolset

    dialect = cast("prowess.DialectName", settings.text("dialect"))  # the toolset refuses an unknown one
    session = Session(catalog, selector=make_selector(settings, dialect), filter=settings.text("filter"))
    session.set_scope(Scope.from_settings(settings))
    if not query:
        return session.explain(name)
    toolset = Toolset(session, dialect, budget=settings.number("budget"))
    with printer.show_progress("choosing"):  # the first search of a library indexes it
        toolset.prompt(query)
        return toolset.explain(name)


def _to_dict(explanation: Explanation) -> dict[str, object]:
    return {
        "name": explanation.name,
        "location": explanation.location,
        "visible": explanation.visible,
        "reasons": list(explanation.reasons),
        "shadowed": [
            {"name": s.name, "location": s.location, "winner": s.winner, "reason": s.reason}
            for s in explanation.shadowed
        ],
        "issues": [
            issue_to_dict(issue, ("code", "severity", "path", "line", "field", "message", "hint"))
            for issue in explanation.issues
        ],
        "places": [
            {"path": p.path, "scope": p.scope.value if p.scope else None, "state": p.state, "found": p.found}
            for p in explanation.places
        ],
    }


def _to_blocks(explanation: Explanation) -> Iterator[Block]:
    yield Title(explanation.name, shorten_path(explanation.location) if explanation.location else "not found")
    for reason in explanation.reasons:
        yield line((reason, "plain" if explanation.visible else "warn"), indent=2)
    if explanation.shadowed:
        yield Title("Copies that lost")
        yield Table([((shorten_path(s.location), "name"), s.reason) for s in explanation.shadowed], indent=2)
    if explanation.issues:
        yield Title("Findings")
        rows = [
            (
                (f"{shorten_path(i.path)}{f':{i.line}' if i.line else ''}", "name"),
                (i.code, "warn"),
                f"{i.field}: {i.message}".strip(": "),
            )
            for i in explanation.issues
        ]
        yield Table(rows, indent=2)
    yield Title("Places looked at", "the first that has a name wins")
    rows2 = [
        (shorten_path(p.path), p.scope.value if p.scope else "", p.state, f"{p.found} found")
        for p in explanation.places
    ]
    yield Table(rows2, indent=2)

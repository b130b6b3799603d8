"""``prowess show``: shows the fields and files of one skill, and what of it would run."""

from __future__ import annotations

import os
from shlex import quote
from typing import TYPE_CHECKING

from prowess.cli.command_class import new_command
from prowess.cli.issues import issue_to_dict
from prowess.cli.options import CatalogFlags, catalog_options, json_option, skill_argument
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Cell, Table, Title, line
from prowess.cli.render.printer import quote_path
from prowess.cli.skill_lookup import LazyTrustStates, find_skill_and_warn, load_settings_to_show
from prowess.errors import SkillError
from prowess.files.paths import shorten_path
from prowess.names import SKILL_FILE
from prowess.skills.inventory import Inventory, inventory
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    import prowess


_OWN_ROW_KEYS = frozenset(("version", "model", "context", "tags", "allowed_tools"))
"""Keys outside the specification that Prowess reads as fields, so they have a row of their own."""


@new_command(
    "show",
    ("prowess show csv-report", "a skill by name"),
    ("prowess show ./csv-report", "the skill in a folder"),
    ("prowess show csv-report --json", "as data"),
)
@skill_argument
@catalog_options
@json_option
def command(
    skill: str,
    *,
    where: CatalogFlags,
    as_data: bool,
) -> None:
    """Show one skill: its fields, its files with sizes and tokens, and what of it would run.

    NAME is the name of a skill, its folder, or its SKILL.md.
    """
    shown = find_skill_and_warn(load_settings_to_show(**where), skill)
    contents = inventory(shown)
    state = LazyTrustStates().find_state(shown) or "not trusted"
    printer.print_answer(
        lambda: _to_dict(shown, contents, state), lambda: _to_blocks(shown, contents, state), as_data=as_data
    )


def _to_dict(skill: prowess.Skill, contents: Inventory, state: str) -> dict[str, object]:
    front = skill.frontmatter
    return {
        "name": skill.name,
        "description": skill.description,
        "location": skill.location,
        "scope": skill.scope.value if skill.scope else None,
        "origin": skill.origin,
        "license": front.license,
        "compatibility": front.compatibility,
        "metadata": dict(front.metadata),
        "allowed_tools": list(front.allowed_tools),
        "tags": list(front.tags),
        "version_of_skill": front.version,
        "model": front.model,
        "context": front.context,
        "extra": dict(front.extra),
        "model_invocable": skill.model_invocable,
        "user_invocable": skill.user_invocable,
        "digest": _try_digest(skill),
        "instructions_tokens": contents.tokens,
        "files": [file._asdict() for file in contents.files],
        "commands": list(contents.commands),
        "scripts": list(contents.scripts),
        "trust": state,
        "requires": {key: list(names) for key, names in skill.requires._asdict().items()},
        "unset_variables": list(skill.requires.find_unset(os.environ)),
        "repairs": [issue_to_dict(issue, ("code", "line", "field", "message")) for issue in skill.repairs],
        "issues": [issue_to_dict(issue, ("code", "field", "message")) for issue in contents.issues],
    }


def _try_digest(skill: prowess.Skill) -> str | None:
    try:
        return skill.digest()
    except SkillError:  # a link that leads out, or a file that cannot be read: 'show' still shows the rest
        return None


def _to_blocks(skill: prowess.Skill, contents: Inventory, state: str) -> Iterator[Block]:
    yield Title(skill.name, shorten_path(skill.location))
    yield line(" ".join(skill.description.split()))
    yield Table([*_list_fields(skill), ("digest", _try_digest(skill) or "none: it cannot be hashed")], indent=2)
    yield Title("Files", f"{format_count(len(contents.files), 'file')}, {format_count(contents.size, 'byte')}")
    # A model receives SKILL.md without its frontmatter: the cost is that of the instructions.
    costs = {file.path: contents.tokens if file.path == SKILL_FILE else file.tokens for file in contents.files}
    rows = [(file.path, f"{file.size:,}", _format_tokens(costs[file.path])) for file in contents.files]
    yield Table(rows, head=("file", "bytes", "tokens"), indent=2, right=frozenset((1, 2)))
    yield from _needs_to_blocks(skill)
    yield from _actions_to_blocks(skill, contents, state)
    notes = [
        *((i.code, f"line {i.line}: {i.field}: {i.message}") for i in skill.repairs),
        *((i.code, f"{i.field} {i.message}") for i in contents.issues),
    ]
    if notes:
        yield Title("Worth knowing")
        yield Table([((code, "warn"), text) for code, text in notes], indent=2)


def _format_tokens(tokens: int | None) -> str:
    return "-" if tokens is None else f"{tokens:,}"


def _list_fields(skill: prowess.Skill) -> Iterator[tuple[Cell, Cell]]:
    front = skill.frontmatter
    shown = {
        "scope": skill.scope.value if skill.scope else "",
        "license": front.license,
        "compatibility": front.compatibility,
        "version": front.version,
        "model": front.model,
        "context": front.context,
        "tags": ", ".join(front.tags),
        "allowed tools": ", ".join(front.allowed_tools),
        **{f"metadata.{key}": value for key, value in front.metadata.items()},
        **{key: str(value) for key, value in front.extra.items() if key not in _OWN_ROW_KEYS},
        "models": "" if skill.model_invocable else "do not see it (disable-model-invocation)",
        "people": "" if skill.user_invocable else "cannot call it (user-invocable: false)",
    }
    for key, value in shown.items():
        if value:
            yield (key, "dim"), value


def _needs_to_blocks(skill: prowess.Skill) -> Iterator[Block]:
    needs = skill.requires
    rows: list[tuple[Cell, ...]] = [("tool", name, "") for name in needs.tools]
    rows += [("MCP server", name, "") for name in needs.servers]
    for kind, names in (("variable", needs.variables), ("variable, optional", needs.optional)):
        missing: Cell = ("not set here", "warn" if names is needs.variables else "dim")
        rows += [(kind, name, "set here" if os.environ.get(name) else missing) for name in names]
    if rows:
        yield Title("What it needs")
        yield Table(rows, indent=2)


def _actions_to_blocks(skill: prowess.Skill, contents: Inventory, state: str) -> Iterator[Block]:
    rows: list[tuple[Cell, Cell]] = [("command", text) for text in contents.commands]
    rows += [("script", path) for path in contents.scripts]
    rows += [("sub-agent", f"context: fork, model: {skill.model or 'that of the parent'}")] if skill.is_fork else []
    if not rows:
        return
    allowed = state == "trusted"
    yield Title("What would run")
    yield Table(rows, indent=2)
    if contents.acts:
        verdict = (
            "and may: this state of it is trusted"
            if allowed
            else f"and does not: {state} (prowess trust grant {_quote_skill(skill)})"
        )
        yield line((verdict, "good" if allowed else "warn"), indent=2)


def _quote_skill(skill: prowess.Skill) -> str:
    """Return how a command line names the skill: by its folder if it is in no standard place."""
    return quote(skill.name) if skill.scope is not None else quote_path(skill.folder)

"""``prowess show``: one skill, what it holds, and what of it would run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.cli.command_class import new_command
from prowess.cli.options import (
    catalog_options,
    find_skill_and_warn,
    json_option,
    load_cli_settings,
    quote_path,
    shorten_path,
    skill_argument,
)
from prowess.cli.render import printer
from prowess.cli.render.blocks import Table, Title, line
from prowess.cli.trust_states import TrustStates
from prowess.errors import SkillError
from prowess.names import SKILL_FILE
from prowess.skills.inventory import inventory
from prowess.spec.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    import prowess
    from prowess.cli.options import CatalogFlags
    from prowess.cli.render.blocks import Block, Cell
    from prowess.skills.inventory import Inventory


_OWN_ROW_KEYS = frozenset(("version", "model", "context", "tags", "allowed_tools"))
"""Keys outside the specification that are fields all the same, and have a row of their own."""


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
    found = find_skill_and_warn(load_cli_settings(**where), skill)
    held = inventory(found)
    state = TrustStates().find_state(found) or "not trusted"
    printer.print_answer(lambda: _to_dict(found, held, state), lambda: _to_blocks(found, held, state), as_data=as_data)


def _to_dict(skill: prowess.Skill, held: Inventory, state: str) -> dict[str, object]:
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
        "instructions_tokens": held.tokens,
        "files": [file._asdict() for file in held.files],
        "commands": list(held.commands),
        "scripts": list(held.scripts),
        "trust": state,
        "repairs": [{"code": i.code, "line": i.line, "field": i.field, "message": i.message} for i in skill.repairs],
        "issues": [{"code": i.code, "field": i.field, "message": i.message} for i in held.issues],
    }


def _try_digest(skill: prowess.Skill) -> str | None:
    try:
        return skill.digest()
    except SkillError:
        return None


def _to_blocks(skill: prowess.Skill, held: Inventory, state: str) -> Iterator[Block]:
    yield Title(skill.name, shorten_path(skill.location))
    yield line(" ".join(skill.description.split()))
    yield Table([*_list_fields(skill), ("digest", _try_digest(skill) or "none: it cannot be hashed")], indent=2)
    yield Title("Files", f"{format_count(len(held.files), 'file')}, {format_count(held.size, 'byte')}")
    # Of SKILL.md a model receives the instructions, without the head: that is what it costs.
    costs = {file.path: held.tokens if file.path == SKILL_FILE else file.tokens for file in held.files}
    rows = [(file.path, f"{file.size:,}", _format_tokens(costs[file.path])) for file in held.files]
    yield Table(rows, head=("file", "bytes", "tokens"), indent=2, right=frozenset((1, 2)))
    yield from _actions_to_blocks(skill, held, state)
    notes = [
        *((i.code, f"line {i.line}: {i.field}: {i.message}") for i in skill.repairs),
        *((i.code, f"{i.field} {i.message}") for i in held.issues),
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


def _actions_to_blocks(skill: prowess.Skill, held: Inventory, state: str) -> Iterator[Block]:
    rows: list[tuple[Cell, Cell]] = [("command", text) for text in held.commands]
    rows += [("script", path) for path in held.scripts]
    rows += [("sub-agent", f"context: fork, model: {skill.model or 'that of the parent'}")] if skill.is_fork else []
    if not rows:
        return
    allowed = state == "trusted"
    yield Title("What would run")
    yield Table(rows, indent=2)
    if held.acts:
        verdict = (
            "and may: this state of it is trusted"
            if allowed
            else f"and does not: {state} (prowess trust grant {_quote_skill(skill)})"
        )
        yield line((verdict, "good" if allowed else "warn"), indent=2)


def _quote_skill(skill: prowess.Skill) -> str:
    """How the command line names it, for a shell: a skill of no standard place by its folder."""
    from shlex import quote  # noqa: PLC0415 - only where a command is shown

    return quote(skill.name) if skill.scope is not None else quote_path(skill.folder)

"""``prowess try``: runs one skill in a fresh context, and shows what a model did with it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from prowess.cli.agent_options import AgentFlags, agent_options, load_model, raise_failure, run_agent
from prowess.cli.command_class import new_command
from prowess.cli.options import CatalogFlags, catalog_options, json_option, skill_argument
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Cell, Table, Title
from prowess.cli.skill_lookup import find_skill_and_warn, load_cli_settings
from prowess.skills.catalog import Catalog
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    import prowess
    from prowess.agent.task_result import TaskResult


@new_command(
    "try",
    (
        'prowess try csv-report "What is in orders.csv?" --model openai:gpt-5.2',
        "does it load the skill, and what then?",
    ),
    ('prowess try ./my-skill "Do what it is for" --trust granted', "runs only scripts that you have granted"),
    ('prowess try csv-report "What is in orders.csv?" --model scripted:turns.yaml', "plays a script, without a key"),
)
@skill_argument
@click.argument("request", metavar="REQUEST")
@agent_options
@catalog_options
@json_option
def command(
    skill: str,
    request: str,
    *,
    flags: AgentFlags,
    where: CatalogFlags,
    as_data: bool,
) -> int:
    """Give a model REQUEST and one skill, in a fresh context, and show what it did with the skill.

    The model sees no other skill. At the end you see whether it loaded the skill, which of its files it read, which
    scripts it ran, which tools it called, and the tokens. Options and questions are those of 'prowess run'. With --json
    each event is a line of JSON; the last one has the summary.

    Exit status 1: the model did not load the skill.
    """
    settings = load_cli_settings(**where, **flags.settings)
    model = load_model(settings)
    chosen = find_skill_and_warn(settings, skill)
    result = run_agent(request, Catalog([chosen]), model, settings=settings, flags=flags, as_data=as_data)
    if not as_data:
        printer.print_blocks(_describe_result(chosen, result))
    raise_failure(result, flags.transcript)
    return 0 if _has_loaded_skill(result) else 1


def _has_loaded_skill(result: TaskResult) -> bool:
    """Return whether the model loaded the skill, into the conversation or as a child agent."""
    return bool(result.skills_loaded or result.forks)


def _describe_result(skill: prowess.Skill, result: TaskResult) -> Iterator[Block]:
    """Yield the summary: what the model did with the skill, and what that cost."""
    yield Title(f"What the model did with {skill.name}")
    loaded: Cell = (
        ("yes, as a child agent" if result.forks else "yes", "good")
        if _has_loaded_skill(result)
        else ("no: neither its name nor its description led the model to it", "warn")
    )
    files = ", ".join(dict.fromkeys(path for _, path in result.files_read))
    scripts = ", ".join(f"{script} (exit status {status})" for _, script, status in result.scripts_run)
    counts = Counter(call.tool for call in result.calls)
    failures = Counter(call.tool for call in result.calls if call.is_error)
    calls = ", ".join(_describe_calls(tool, count, failures[tool]) for tool, count in counts.items())
    tokens = result.tokens
    cached = f" ({tokens.cached:,} of them cached)" if tokens.cached else ""
    cost = f"{tokens.sent:,} sent{cached}, {tokens.received:,} received, in {format_count(len(result.turns), 'turn')}"
    rows = [
        ("loaded", loaded),
        ("files read", files or "none"),
        ("scripts run", scripts or "none"),
        ("tools called", calls or "none"),
        ("tokens", cost),
    ]
    yield Table(rows, indent=2)


def _describe_calls(tool: str, count: int, failed: int) -> str:
    often = {1: "once", 2: "twice"}.get(count, f"{count} times")
    return f"{tool} {often}" + (f" ({failed} failed)" if failed else "")

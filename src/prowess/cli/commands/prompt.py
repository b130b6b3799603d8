"""``prowess prompt``: exactly what a model would receive, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

import click

from prowess.cli.command_class import new_command
from prowess.cli.lock_states import LockStates, warn_edited_skills
from prowess.cli.options import (
    catalog_options,
    complete_skill_or_path,
    json_option,
    load_cli_settings,
    load_named_catalog,
    suggest_sync_for,
)
from prowess.cli.render import printer
from prowess.cli.render.blocks import Table, line
from prowess.discovery.settings import DIALECT_NAMES
from prowess.spec.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import prowess
    from prowess.cli.options import CatalogFlags
    from prowess.cli.render.blocks import Block
    from prowess.discovery.settings import Settings
    from prowess.tools.shapes import JsonSchemaTool

STYLES = ("xml", "markdown", "text", "json")
_OTHER_SKILL_NAME = "x" * 64
"""The name of a skill that nobody has."""


@new_command(
    "prompt",
    ("prowess prompt", "the block for a system prompt"),
    ("prowess prompt csv-report ./skills", "only these: a name, a folder, a path"),
    ("prowess prompt --style text --budget 500", "a listing that costs at most 500 tokens"),
    ('prowess prompt --query "profile this csv" --tools', "with the tools, for one request"),
)
@click.argument("skills", nargs=-1, metavar="[NAME]...", shell_complete=complete_skill_or_path)
@click.option("--style", type=click.Choice(STYLES), help="A bare listing in this style instead of a dialect's block.")
@click.option("--dialect", type=click.Choice(DIALECT_NAMES), help="The names and shapes of the tools.")
@click.option("--budget", type=click.IntRange(0), metavar="TOKENS", help="What the listing may cost.")
@click.option("--query", default="", help="A request: the selector picks the skills that fit it.")
@click.option("--filter", "pattern", metavar="PATTERN", help="Only skills whose path fits.")
@click.option("--tools", "with_tools", is_flag=True, help="The tool definitions too, as JSON.")
@catalog_options
@json_option
def command(
    skills: tuple[str, ...],
    *,
    style: str | None,
    dialect: str | None,
    budget: int | None,
    query: str,
    pattern: str | None,
    with_tools: bool,
    where: CatalogFlags,
    as_data: bool,
) -> None:
    """Print exactly what a model would receive; what it costs, skill by skill, goes to the error stream.

    NAME is the name of a skill, its folder, its SKILL.md, or a folder of skills; without any it is about all.
    The tools are part of it: they are shown with --tools, and where a dialect says everything in them.
    """
    settings = load_cli_settings(
        style=style,
        dialect=dialect,
        budget=budget,
        filter=pattern,
        **where,
    )
    verified = LockStates()
    if not skills and (absent := suggest_sync_for(settings, verified)):
        printer.warn(absent)
    catalog = load_named_catalog(settings, skills)
    warn_edited_skills(catalog.skills, verified)
    shown = _Prompt(
        settings,
        catalog,
        query,
        bare=style is not None or (dialect is None and bool(settings["style"])),
    )
    printer.print_answer(shown.to_dict, list, as_data=as_data)
    if as_data:
        return
    if shown.text:
        printer.print_text(shown.text)
    if with_tools or (shown.list_tools() and not shown.text):
        printer.print_text(shown.tools_to_json())
    printer.print_blocks(shown.costs_to_blocks(), error=True)


class _Prompt:
    """The prompt of one request."""

    def __init__(self, settings: Settings, catalog: prowess.Catalog, query: str, *, bare: bool) -> None:
        from prowess.runtime.session import Session  # noqa: PLC0415 - what a conversation needs
        from prowess.select.selectors import LexicalSelector  # noqa: PLC0415
        from prowess.tools.dialects import DIALECTS as BY_NAME  # noqa: PLC0415
        from prowess.tools.toolset import Toolset  # noqa: PLC0415

        selector = LexicalSelector() if settings.text("selector") == "lexical" else None
        session = Session(catalog, selector=selector, filter=settings.text("filter"))
        self.budget = settings.number("budget")
        dialect = cast(
            "prowess.DialectName", settings.text("dialect")
        )  # whatever else it says is refused by the toolset
        able = BY_NAME.get(dialect, BY_NAME["prowess"])
        self.fork: Literal["host"] | None = "host" if able.has_fork_tool else None
        self.toolset = Toolset(session, dialect, fork=self.fork, budget=self.budget)
        self.style = settings.text("style") or "xml"
        self.skills = session.candidates(query)
        self.query = query
        self.listing_only = bare
        self.report = self._fit_listing()

    def _fit_listing(self) -> prowess.BudgetReport:
        from prowess.select.budget import fit_listing  # noqa: PLC0415
        from prowess.spec.render import render_entries  # noqa: PLC0415

        if not self.listing_only:
            self.text = self.toolset.prompt(self.query)
            return self.toolset.report()
        self.text, report = fit_listing(self.skills, self.budget, lambda entries: render_entries(entries, self.style))  # type: ignore[arg-type]
        return report

    def list_tools(self) -> list[JsonSchemaTool]:
        return [] if self.listing_only else [tool.to_json_schema() for tool in self.toolset.tools(self.query)]

    def tools_to_json(self) -> str:
        from prowess.escapes import dump_json  # noqa: PLC0415

        return dump_json(self.list_tools())

    def count_skill_tokens(self) -> dict[str, int]:
        """What each skill adds."""
        from prowess.select.budget import listing_costs  # noqa: PLC0415

        if self.listing_only:
            return listing_costs(self.skills, self.style)  # type: ignore[arg-type]  # one of the styles
        from prowess.skills.parse import parse_skill  # noqa: PLC0415

        # Beside another skill, so that what comes once with any listing is not counted as this skill's.
        other = parse_skill(f"---\nname: {_OTHER_SKILL_NAME}\ndescription: Another.\n---\nx\n").skill
        alone = self._count_listing_tokens(other)
        return {skill.name: self._count_listing_tokens(skill, other) - alone for skill in self.skills}

    def _count_listing_tokens(self, *skills: prowess.Skill) -> int:
        """The tokens of what lists some of the skills: the prompt, or the tools where a dialect lists them there."""
        from prowess.runtime.session import Session  # noqa: PLC0415
        from prowess.skills.catalog import Catalog  # noqa: PLC0415
        from prowess.spec.tokens import estimate_tokens  # noqa: PLC0415
        from prowess.tools.toolset import Toolset  # noqa: PLC0415

        # A session of these alone: a toolset looks at every skill of its session, which for each of them is quadratic.
        alone = Session(Catalog(skills))
        small = Toolset(alone, self.toolset.dialect, fork=self.fork)
        return estimate_tokens(small.prompt() if self.text else _dump_schemas(small.tools()))

    def count_tool_tokens(self) -> int:
        """What the tools cost, beside the prompt."""
        from prowess.spec.tokens import estimate_tokens  # noqa: PLC0415

        return estimate_tokens(_dump_schemas(self.toolset.tools(self.query))) if self.list_tools() else 0

    def to_dict(self) -> dict[str, object]:
        from prowess.spec.tokens import estimate_tokens  # noqa: PLC0415

        report = self.report
        return {
            "prompt": self.text,
            "tokens": estimate_tokens(self.text),
            "tool_tokens": self.count_tool_tokens(),
            "dialect": None if self.listing_only else self.toolset.dialect,
            "style": self.style if self.listing_only else None,
            "tools": self.list_tools(),
            "listed": list(report.shown),
            "shortened": list(report.shortened),
            "without_description": list(report.dropped),
            "omitted": list(report.omitted),
            "costs": [{"name": name, "tokens": tokens} for name, tokens in self.count_skill_tokens().items()],
        }

    def costs_to_blocks(self) -> Iterator[Block]:
        from prowess.select.budget import describe_cuts  # noqa: PLC0415
        from prowess.spec.tokens import estimate_tokens  # noqa: PLC0415

        more = f", and about {self.count_tool_tokens():,} for the tools" if self.count_tool_tokens() else ""
        kept = "" if self.budget is None else f"; the listing keeps to {self.budget:,}"
        cost = (
            f"{format_count(len(self.report.shown), 'skill')}, about {estimate_tokens(self.text):,} tokens{more}{kept}"
        )
        yield line((f"{cost}: {describe_cuts(self.report)}", "title"))
        if self.report.is_cut:
            yield line(("what each would cost uncut:", "dim"))
        rows = sorted(self.count_skill_tokens().items(), key=lambda pair: (-pair[1], pair[0]))
        yield Table([((name, "name"), f"{tokens:,}") for name, tokens in rows], indent=2, right=frozenset((1,)))


def _dump_schemas(tools: Iterable[prowess.ToolDefinition]) -> str:
    from prowess.escapes import dump_json  # noqa: PLC0415

    return dump_json([tool.to_json_schema() for tool in tools], None)

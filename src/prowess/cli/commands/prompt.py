"""``prowess prompt``: exactly what a model would receive, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

import click

from prowess.cli.command import command as new_command
from prowess.cli.lock_check import Verified, tell_changed
from prowess.cli.options import (
    complete_skill_or_path,
    find_absent,
    json_option,
    named_catalog,
    settings_of,
    where_options,
)
from prowess.cli.render import printer
from prowess.cli.render.blocks import Table, line
from prowess.spec.plural import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import prowess
    from prowess.cli.options import Where
    from prowess.cli.render.blocks import Block
    from prowess.discovery.settings import Settings
    from prowess.tools.shapes import JsonSchemaTool

STYLES = ("xml", "markdown", "text", "json")
_ANOTHER = "x" * 64
"""The name of a skill that nobody has."""
DIALECTS = ("prowess", "load_skill", "skill__activate", "read_skill", "skill_load", "use_skill")


@new_command(
    "prompt",
    ("prowess prompt", "the block for a system prompt"),
    ("prowess prompt csv-report ./skills", "only these: a name, a folder, a path"),
    ("prowess prompt --style text --budget 500", "a listing that costs at most 500 tokens"),
    ('prowess prompt --query "profile this csv" --tools', "with the tools, for one request"),
)
@click.argument("skills", nargs=-1, metavar="[NAME]...", shell_complete=complete_skill_or_path)
@click.option("--style", type=click.Choice(STYLES), help="A bare listing in this style instead of a dialect's block.")
@click.option("--dialect", type=click.Choice(DIALECTS), help="The names and shapes of the tools.")
@click.option("--budget", type=click.IntRange(0), metavar="TOKENS", help="What the listing may cost.")
@click.option("--query", default="", help="A request: the selector picks the skills that fit it.")
@click.option("--filter", "pattern", metavar="PATTERN", help="Only skills whose path fits.")
@click.option("--tools", "with_tools", is_flag=True, help="The tool definitions too, as JSON.")
@where_options
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
    where: Where,
    as_data: bool,
) -> None:
    """Print exactly what a model would receive; what it costs, skill by skill, goes to the error stream.

    NAME is the name of a skill, its folder, its SKILL.md, or a folder of skills; without any it is about all.
    The tools are part of it: they are shown with --tools, and where a dialect says everything in them.
    """
    settings = settings_of(
        style=style,
        dialect=dialect,
        budget=budget,
        filter=pattern,
        **where,
    )
    verified = Verified()
    if not skills and (absent := find_absent(settings, verified)):
        printer.warn(absent)
    catalog = named_catalog(settings, skills)
    tell_changed(catalog.skills, verified)
    shown = _Prompt(
        settings,
        catalog,
        query,
        bare=style is not None or (dialect is None and bool(settings["style"])),
    )
    printer.answer(shown.data, list, as_data=as_data)
    if as_data:
        return
    if shown.text:
        printer.exact_text(shown.text)
    if with_tools or (shown.tools() and not shown.text):
        printer.exact_text(shown.tools_text())
    printer.show(shown.costs(), error=True)


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
        self.fork: Literal["host"] | None = "host" if able.forks else None
        self.toolset = Toolset(session, dialect, fork=self.fork, budget=self.budget)
        self.style = settings.text("style") or "xml"
        self.skills = session.candidates(query)
        self.query = query
        self.bare = bare
        self.report = self._listing()

    def _listing(self) -> prowess.BudgetReport:
        from prowess.select.budget import fit  # noqa: PLC0415
        from prowess.spec.render import render_entries  # noqa: PLC0415

        if not self.bare:
            self.text = self.toolset.prompt(self.query)
            return self.toolset.report()
        self.text, report = fit(self.skills, self.budget, lambda entries: render_entries(entries, self.style))  # type: ignore[arg-type]
        return report

    def tools(self) -> list[JsonSchemaTool]:
        return [] if self.bare else [tool.to_json_schema() for tool in self.toolset.tools(self.query)]

    def tools_text(self) -> str:
        from prowess.escapes import dump_json  # noqa: PLC0415

        return dump_json(self.tools())

    def each(self) -> dict[str, int]:
        """What each skill adds."""
        from prowess.select.budget import listing_costs  # noqa: PLC0415

        if self.bare:
            return listing_costs(self.skills, self.style)  # type: ignore[arg-type]  # one of the styles
        from prowess.skills.parse import parse_skill  # noqa: PLC0415

        # Beside another skill, so that what comes once with any listing is not counted as this skill's.
        other = parse_skill(f"---\nname: {_ANOTHER}\ndescription: Another.\n---\nx\n").skill
        alone = self._received(other)
        return {skill.name: self._received(skill, other) - alone for skill in self.skills}

    def _received(self, *skills: prowess.Skill) -> int:
        """The tokens of what lists some of the skills: the prompt, or the tools where a dialect lists them there."""
        from prowess.runtime.session import Session  # noqa: PLC0415
        from prowess.skills.catalog import Catalog  # noqa: PLC0415
        from prowess.spec.tokens import estimate_tokens  # noqa: PLC0415
        from prowess.tools.toolset import Toolset  # noqa: PLC0415

        # A session of these alone: a toolset looks at every skill of its session, which for each of them is quadratic.
        alone = Session(Catalog(skills))
        small = Toolset(alone, self.toolset.dialect, fork=self.fork)
        return estimate_tokens(small.prompt() if self.text else _schemas(small.tools()))

    def tool_tokens(self) -> int:
        """What the tools cost, beside the prompt."""
        from prowess.spec.tokens import estimate_tokens  # noqa: PLC0415

        return estimate_tokens(_schemas(self.toolset.tools(self.query))) if self.tools() else 0

    def data(self) -> dict[str, object]:
        from prowess.spec.tokens import estimate_tokens  # noqa: PLC0415

        report = self.report
        return {
            "prompt": self.text,
            "tokens": estimate_tokens(self.text),
            "tool_tokens": self.tool_tokens(),
            "dialect": None if self.bare else self.toolset.dialect,
            "style": self.style if self.bare else None,
            "tools": self.tools(),
            "listed": list(report.shown),
            "shortened": list(report.shortened),
            "without_description": list(report.dropped),
            "omitted": list(report.omitted),
            "costs": [{"name": name, "tokens": tokens} for name, tokens in self.each().items()],
        }

    def costs(self) -> Iterator[Block]:
        from prowess.select.budget import describe_cuts  # noqa: PLC0415
        from prowess.spec.tokens import estimate_tokens  # noqa: PLC0415

        more = f", and about {self.tool_tokens():,} for the tools" if self.tool_tokens() else ""
        kept = "" if self.budget is None else f"; the listing keeps to {self.budget:,}"
        cost = f"{counted(len(self.report.shown), 'skill')}, about {estimate_tokens(self.text):,} tokens{more}{kept}"
        yield line((f"{cost}: {describe_cuts(self.report)}", "title"))
        if self.report.is_cut:
            yield line(("what each would cost uncut:", "dim"))
        rows = sorted(self.each().items(), key=lambda pair: (-pair[1], pair[0]))
        yield Table([((name, "name"), f"{tokens:,}") for name, tokens in rows], indent=2, right=frozenset((1,)))


def _schemas(tools: Iterable[prowess.ToolDefinition]) -> str:
    from prowess.escapes import dump_json  # noqa: PLC0415

    return dump_json([tool.to_json_schema() for tool in tools], None)

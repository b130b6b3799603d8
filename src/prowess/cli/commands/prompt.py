"""``prowess prompt``: prints exactly what a model would receive, and what it costs."""

from __future__ import annotations

from contextlib import nullcontext
from shlex import quote
from typing import TYPE_CHECKING, cast

import click

from prowess.cli.command_class import new_command
from prowess.cli.lock_states import LazyLockStates, warn_edited_skills
from prowess.cli.options import CatalogFlags, catalog_options, complete_skill_or_path, json_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Table, line
from prowess.cli.selection import SelectionFlags, selection_options
from prowess.cli.skill_lookup import drop_switched_off, load_cli_settings, load_named_catalog, suggest_sync_for
from prowess.errors import UnknownSkillError
from prowess.select.budget import describe_cuts
from prowess.text.escapes import dump_json
from prowess.text.quantities import format_count
from prowess.tools.dialects import DIALECTS
from prowess.tools.model_prompt import ModelPrompt

if TYPE_CHECKING:
    from collections.abc import Iterator

    import prowess
    from prowess.settings import Settings

_STYLES = ("xml", "markdown", "text", "json")
_FORK_TOOL = "run_skill"
_FORK_NOTE = (
    f"{_FORK_TOOL} and the mode forked are what a host gives that runs sub-agents: Toolset(session, fork=...); "
    "without fork= a model gets neither"
)


@new_command(
    "prompt",
    ("prowess prompt", "the block for a system prompt"),
    ("prowess prompt csv-report ./skills", "only these: a name, a folder"),
    ("prowess prompt --style text --budget 500", "a listing that costs at most 500 tokens"),
    ('prowess prompt --query "profile this csv" --tools', "with the tools, for one request"),
)
@click.argument("skills", nargs=-1, metavar="[NAME]...", shell_complete=complete_skill_or_path)
@click.option("--style", type=click.Choice(_STYLES), help="A bare listing in this style instead of a dialect's block.")
@click.option("--dialect", type=click.Choice(list(DIALECTS)), help="The names and shapes of the tools.")
@click.option("--budget", type=click.IntRange(0), metavar="TOKENS", help="How many tokens the prompt may cost.")
@click.option("--query", default="", help="A request: the selector picks the skills that fit it.")
@selection_options
@click.option("--filter", "pattern", metavar="PATTERN", help="Only skills whose path matches.")
@click.option("--tools", "with_tools", is_flag=True, help="Print the tool definitions too, as JSON.")
@catalog_options
@json_option
def command(
    skills: tuple[str, ...],
    *,
    style: str | None,
    dialect: str | None,
    budget: int | None,
    query: str,
    selection: SelectionFlags,
    pattern: str | None,
    with_tools: bool,
    where: CatalogFlags,
    as_data: bool,
) -> None:
    """Print exactly what a model would receive. What each skill costs goes to the error stream.

    NAME is the name of a skill, its folder, its SKILL.md, or a folder of skills. Without NAME all skills are in it. A
    model also receives the tools. They are printed with --tools, or if a dialect lists the skills in them alone.

    Skills that fork are shown as for a host that runs sub-agents: Toolset(session, fork=...). Without fork= a model
    gets neither the tool run_skill nor the mode of such a skill.

    The costs are those of this prompt. 'prowess check' and 'prowess install --list' count a listing with paths instead,
    that of --style xml.

    If the listing would be too long, --query makes the selector choose the skills that fit the request best. You see
    why each of them is listed, and what the whole listing would cost.
    """
    settings = load_cli_settings(style=style, dialect=dialect, budget=budget, filter=pattern, **selection, **where)
    lock_states = LazyLockStates()
    if not skills and (absent := suggest_sync_for(settings, lock_states)):
        printer.warn(absent)
    catalog = _load_catalog(settings, skills, query)
    catalog = catalog if skills else drop_switched_off(settings, catalog)  # whoever names a skill wants to see it
    warn_edited_skills(catalog.skills, lock_states)
    # A style of the settings gives way to a dialect that this command line names.
    is_bare = style is not None or (dialect is None and bool(settings["style"]))
    # The first search of a library indexes it.
    with printer.show_progress("choosing") if query else nullcontext():
        prompt = _Prompt(settings, catalog, query, is_bare=is_bare)
    if as_data:
        printer.print_answer(prompt.to_dict, list, as_data=True)
        return
    if prompt.text:
        printer.print_text(prompt.text)
    if with_tools or (prompt.tools and not prompt.text):
        printer.print_text(dump_json(prompt.tools))
    printer.print_blocks(prompt.costs_to_blocks(), error=True)


def _load_catalog(settings: Settings, names: tuple[str, ...], query: str) -> prowess.Catalog:
    """Return the skills to list. Raise ``UnknownSkillError``, with a word about quotes if there is a request too."""
    try:
        return load_named_catalog(settings, names)
    except UnknownSkillError as error:
        if not query or error.name not in names:
            raise
        # The words of a request without quotes become names: --query fill a form.
        request = " ".join((query, *names))
        why = f"if it belongs to the request, put the request in quotes: --query {quote(request)}"
        raise UnknownSkillError(error.name, error.available, why=why) from None


class _Prompt:
    """What a model would receive for one request, as this command answers it."""

    def __init__(self, settings: Settings, catalog: prowess.Catalog, query: str, *, is_bare: bool) -> None:
        style = cast("prowess.ListingStyle", settings.text("style") or "xml")
        self._style = style if is_bare else None
        """The style of a listing alone, without the words and tools of a dialect."""
        # The toolset refuses an unknown dialect.
        self._dialect = cast("prowess.DialectName", settings.text("dialect"))
        self._selector = settings.text("selector")
        self._budget = settings.number("budget")
        self._shown = ModelPrompt(
            catalog,
            query,
            dialect=self._dialect,
            selector=self._selector,
            budget=self._budget,
            window=settings.number("window"),
            pattern=settings.text("filter"),
            style=self._style,
        )
        self.text, self.tools = self._shown.text, self._shown.tools
        self._is_chosen = bool(query)
        # After a choice, nobody asks what each of thousands of others would cost.
        self._priced = tuple(catalog[name] for name in self._shown.report.shown) if query else self._shown.eligible

    def to_dict(self) -> dict[str, object]:
        """Return the answer as data."""
        report = self._shown.report
        return {
            "prompt": self.text,
            "tokens": self._shown.tokens,
            "tool_tokens": self._shown.tool_tokens,
            "whole_tokens": self._shown.count_whole_tokens(),
            "dialect": None if self._style else self._dialect,
            "style": self._style,
            "selector": self._selector,
            "tools": self.tools,
            "listed": list(report.shown),
            "shortened": list(report.shortened),
            "without_description": list(report.dropped),
            "omitted": list(report.omitted),
            "costs": [{"name": name, "tokens": tokens} for name, tokens in self._count_costs().items()],
            "reasons": [
                {"name": name, "reason": report.reasons[name]}
                for name in (*report.shown, *report.omitted)
                if name in report.reasons
            ],
        }

    def _count_costs(self) -> dict[str, int]:
        return self._shown.count_skill_tokens(self._priced)

    def costs_to_blocks(self) -> Iterator[Block]:
        """Return the costs for people: the total, then each skill, the most expensive first.

        For a request they come in the order of the listing instead, each with the reason for it.
        """
        yield from self._total_to_blocks()
        report, costs = self._shown.report, self._count_costs()
        if report.shortened or report.dropped or (report.omitted and not self._is_chosen):
            yield line(("what each would cost uncut:", "dim"))
        names = list(costs) if self._is_chosen else sorted(costs, key=lambda name: (-costs[name], name))
        reasons = report.reasons if self._is_chosen else dict.fromkeys(names, "")
        rows = [((name, "name"), f"{costs[name]:,}", (reasons[name], "dim")) for name in names]
        yield Table(rows, indent=2, right=frozenset((1,)))

    def _total_to_blocks(self) -> Iterator[Block]:
        """Return what the prompt costs as a whole, what was cut from it, and what it would cost uncut."""
        if not self._shown.eligible:
            yield line(("There are no skills to offer here: 'prowess list' says where they are looked for.", "warn"))
            return
        report, tool_tokens = self._shown.report, self._shown.tool_tokens
        tools = f", and about {tool_tokens:,} for the tools" if tool_tokens else ""
        what = "prompt" if self._style is None else "listing"
        limit = "" if self._budget is None else f"; the {what} keeps to {self._budget:,}"
        skills = format_count(len(report.shown), "skill")
        cost = f"{skills}, about {self._shown.tokens:,} tokens{tools}{limit}"
        yield line((f"{cost}: {describe_cuts(report)}", "title"))
        if any(tool["name"] == _FORK_TOOL for tool in self.tools):
            yield line((_FORK_NOTE, "dim"))
        if report.is_cut:
            everything = format_count(len(self._shown.eligible), "skill")
            whole = self._shown.count_whole_tokens()
            yield line((f"uncut, a listing of all {everything} is about {whole:,} tokens", "dim"))
            if not self._is_chosen and self._selector == "auto":
                yield line(("--query chooses the skills that fit a request, instead of cutting all of them", "dim"))

"""What a model receives for one request, what it costs, and why each skill is in it, for people who look at it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from prowess.conversation.session import Session
from prowess.select.auto import ListingTurn, make_named_selector
from prowess.select.budget import fit_listing, listing_costs
from prowess.skills.catalog import Catalog
from prowess.skills.parse import parse_skill
from prowess.skills.render import render_entries
from prowess.text.escapes import dump_json
from prowess.text.tokens import estimate_tokens
from prowess.tools.dialects import DIALECTS
from prowess.tools.prompt import ListingReasons
from prowess.tools.toolset import Toolset

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.literals import DialectName
    from prowess.select.budget import BudgetReport
    from prowess.skills.render import ListingStyle
    from prowess.skills.skill import Skill
    from prowess.tools.shapes import JsonSchemaTool

_OTHER_SKILL_NAME = "x" * 64
"""The name of a skill that nobody has, for a measurement."""


class ModelPrompt:
    """What a model receives for the request ``query``: ``text`` in the system prompt, and ``tools``.

    ``selector`` is one of ``SELECTOR_NAMES``, ``budget`` how many tokens the listing may cost, ``window`` the context
    window of the model, and ``pattern`` a filter of skills by path. With ``style`` it is a bare listing, without the
    words and tools of the dialect. Raises ``SourceError`` for a dialect that does not exist.
    """

    def __init__(
        self,
        catalog: Catalog,
        query: str = "",
        *,
        dialect: DialectName = "prowess",
        selector: str = "auto",
        budget: int | None = None,
        window: int | None = None,
        pattern: str = "",
        style: ListingStyle | None = None,
    ) -> None:
        # As a host would set it up, so that the text is exactly what its model receives.
        chooser = make_named_selector(selector, "prowess" if style else dialect, budget=budget, window=window)
        session = Session(catalog, selector=chooser, filter=pattern)
        has_fork = DIALECTS.get(dialect, DIALECTS["prowess"]).has_fork_tool
        self._fork: Literal["host"] | None = "host" if has_fork else None
        toolset = Toolset(session, dialect, fork=self._fork, budget=budget)
        self._dialect: DialectName = dialect
        self._style = style
        self._render_entries = partial(render_entries, style=style or "xml")
        moment = session.moment()
        self.eligible = moment.eligible()
        """The skills that models may see at all."""
        self.tools: list[JsonSchemaTool] = []
        if style:
            choice = session.choose(moment, query, moment.selector_where(by_default=True), self.eligible, ListingTurn())
            listed = self.eligible if choice.names is None else [self.eligible.by_name[name] for name in choice.names]
            self.text, report = fit_listing(listed, budget, self._render_entries)
            report = replace(report, reasons=ListingReasons(moment, choice, report))
        else:
            self.text = toolset.prompt(query)
            report = toolset.report()
            self.tools = [tool.to_json_schema() for tool in toolset.tools(query)]
        self.tokens = estimate_tokens(self.text)
        self.tool_tokens = estimate_tokens(dump_json(self.tools, None)) if self.tools else 0
        shown = frozenset(report.shown)
        # Whatever has left it out: the budget, or the selector.
        omitted = tuple(skill.name for skill in self.eligible if skill.name not in shown)
        self.report: BudgetReport = replace(report, omitted=omitted)
        """What is listed, what was cut and left out, and why."""

    def count_skill_tokens(self, skills: Iterable[Skill]) -> dict[str, int]:
        """Return how many tokens each of these skills adds to an uncut listing, by name."""
        if self._style:
            return listing_costs(skills, self._style)
        # Beside another skill, so that what comes once with any listing is not counted as this skill's.
        other = parse_skill(f"---\nname: {_OTHER_SKILL_NAME}\ndescription: Another.\n---\nx\n").skill
        alone = self._count_listing_tokens(other)
        return {skill.name: self._count_listing_tokens(skill, other) - alone for skill in skills}

    def count_whole_tokens(self) -> int:
        """Return the tokens of a listing of all skills, with nothing cut."""
        if self._style:
            return estimate_tokens(fit_listing(self.eligible, None, self._render_entries)[0])
        return self._count_listing_tokens(*self.eligible)

    def _count_listing_tokens(self, *skills: Skill) -> int:
        """Return the tokens of what lists some skills: the prompt, or the tools if a dialect lists them there."""
        # A session of these alone: a toolset looks at every skill of its session, so the whole one would be quadratic.
        toolset = Toolset(Session(Catalog(skills), selector=None), self._dialect, fork=self._fork)
        return estimate_tokens(
            toolset.prompt() if self.text else dump_json([tool.to_json_schema() for tool in toolset.tools()], None)
        )

"""Builds the prompt and the tool definitions of a toolset, within its budget."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from prowess.tools.definitions import copy_definition
from prowess.tools.listing_cache import PROMPT_CACHE, TOOL_CACHE, PromptListing
from prowess.tools.view import View

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from prowess.runtime.session import Session
    from prowess.skills.skill import Skill
    from prowess.tools.definitions import ToolDefinition
    from prowess.tools.dialect import Dialect
    from prowess.tools.options import ToolsetOptions

    ChosenNames = frozenset[str] | None

# One fitting for what stands around the listing. The others are needed since a cut listing adds a sentence, and since
# the tokens of two texts together are not the sum of their tokens.
_MAX_FITTINGS = 6


class ListingBuilder:
    """Builds what models are told in one dialect.

    ``chosen`` are the names that a selector picked, ``None`` without a selector. What was built is kept, and shared by
    all sessions over one catalogue that are in one state.
    """

    def __init__(self, session: Session, dialect: Dialect, options: ToolsetOptions) -> None:
        self._session = session
        self._dialect = dialect
        self._options = options

    def get_prompt(self, chosen: ChosenNames) -> PromptListing:
        """Return the prompt and the report of its listing."""
        return PROMPT_CACHE.get_or_make(self._session, self._cache_key(chosen), lambda: self._build_prompt(chosen))

    def get_tools(self, chosen: ChosenNames) -> tuple[ToolDefinition, ...]:
        """Return the definitions of the tools to offer."""
        tools = TOOL_CACHE.get_or_make(self._session, self._cache_key(chosen), lambda: self._build_tools(chosen))
        return tuple(map(copy_definition, tools))  # all sessions share the kept ones, and a host may change its own

    def open_view(self, choose: Callable[[], ChosenNames], budget: int | None) -> View:
        """Return what the model sees when a listing may cost ``budget`` tokens; ``choose`` is called only if needed."""

        def find_candidates() -> tuple[Skill, ...]:
            # By name, from the catalogue of now: a skill picked from an earlier catalogue must not be shown.
            chosen, eligible = choose(), self._session.eligible()
            return eligible if chosen is None else tuple(skill for skill in eligible if skill.name in chosen)

        options = self._options if budget == self._options.budget else self._options._replace(budget=budget)
        return View(self._session, options, find_candidates, lambda: self.get_prompt(choose()).report.is_cut)

    def _cache_key(self, chosen: ChosenNames) -> Hashable:
        """Return what a listing depends on besides the session."""
        options = self._options
        # Which runner there is changes no text, only whether there is one; and a runner may have no hash.
        able = (options.fork is not None, options.scripts is not None)
        # The working folder is replaced in the text when paths are hidden, so only then the text depends on it.
        hidden = self._session.base_dir if options.hide_paths else ""
        return self._dialect.name, options._replace(fork=None, scripts=None), able, chosen, hidden

    def _build_prompt(self, chosen: ChosenNames) -> PromptListing:
        """Return the prompt within the budget where possible: the listing gets what everything else leaves."""
        budget = left = self._options.budget
        prompt = self._render_prompt(chosen, left)
        for _ in range(_MAX_FITTINGS):
            excess = 0 if budget is None else prompt.count_tokens() - budget
            if not left or excess <= 0:
                break
            left = max(0, min(left, prompt.report.tokens) - excess)
            prompt = self._render_prompt(chosen, left)
        return prompt

    def _render_prompt(self, chosen: ChosenNames, left: int | None) -> PromptListing:
        """Return the prompt with a listing of at most ``left`` tokens."""
        view = self.open_view(lambda: chosen, left)
        preloads = (activation for activation in self._session.preloads() if view.may_use(activation.skill.name))
        blocks = (
            self._dialect.render_prompt(view),
            *(self._dialect.render_preload(view.mask_activation(activation)) for activation in preloads),
        )
        text = view.mask_text("\n\n".join(block for block in blocks if block))
        report = replace(view.report, budget=self._options.budget, text=view.mask_text(view.report.text))
        return PromptListing(text, report, left)

    def _build_tools(self, chosen: ChosenNames) -> tuple[ToolDefinition, ...]:
        # A listing in a tool's description is the one that the report is about: it gets what the prompt leaves.
        left = None if self._options.budget is None else self.get_prompt(chosen).budget
        view = self.open_view(lambda: chosen, left)
        return tuple(tool.describe(view) for tool in self._dialect.tools if tool.is_offered(view))

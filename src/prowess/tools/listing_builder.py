"""Builds the prompt and the tool definitions of a toolset, within its budget."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from prowess.select.ask_selector import find_auto_selector
from prowess.select.budget import fits_whole
from prowess.select.listing_turn import ListingChoice
from prowess.tools.definitions import copy_definition
from prowess.tools.listing_cache import PROMPT_CACHE, TOOL_CACHE, WHOLE_CACHE, PromptListing
from prowess.tools.view import View

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from prowess.conversation.session import Session
    from prowess.skills.skill import Skill
    from prowess.tools.definitions import ToolDefinition
    from prowess.tools.dialect import Dialect
    from prowess.tools.options import ToolsetOptions

# One fitting for what stands around the listing. The others are needed since a cut listing adds a sentence, and since
# the tokens of two texts together are not the sum of their tokens.
_MAX_FITTINGS = 6


class ListingBuilder:
    """Builds what models are told in one dialect.

    What was built is kept, and shared by all sessions over one catalogue that are in one state. The budget of the
    toolset holds for the whole prompt, and that of a selector for the listing alone.
    """

    def __init__(self, session: Session, dialect: Dialect, options: ToolsetOptions) -> None:
        self._session = session
        self._dialect = dialect
        self._options = options
        # Which runner there is changes no text, only whether there is one; and a runner may have no hash.
        able = (options.fork is not None, options.scripts is not None)
        self._fixed_key = (dialect.name, options._replace(fork=None, scripts=None), able)

    # -- what is listed ----------------------------------------------------------------------------------------------

    def choose(self, query: str) -> ListingChoice:
        """Return what is listed in the prompt for a query."""
        auto = find_auto_selector(self._session.moment().selector_where(by_default=self._dialect.selects_by_default))
        budget = self._options.budget if auto is None or self._options.budget is not None else auto.budget
        whole = None
        if auto is not None and budget is not None:
            whole = (len(self._open_whole_view().findable), self._find_whole(None, budget) is not None)
        return self._session.choose(
            query,
            partial(self._measure, budget),
            self._dialect.name,
            self._options.budget,
            self._options.allowed,
            by_default=self._dialect.selects_by_default,
            whole=whole,
        )

    def choose_for_tools(self, query: str) -> ListingChoice:
        """Return what the tools are about: what the query brings into the listing only if a tool's description has it.

        Otherwise the tools stay as they are, as far as the selector lets them.
        """
        if self._dialect.has_index_tool and self._options.index_in_description:
            return self.choose(query)
        return self._session.choose_reachable(
            query, self._options.budget, by_default=self._dialect.selects_by_default
        ) or self.choose(query)

    def _measure(self, budget: int | None, skills: Sequence[Skill]) -> int:
        """Return the tokens that count against the budget when these skills are listed."""
        choice = ListingChoice(tuple(skill.name for skill in skills), "chosen", budget)
        # What was shown last is there already. What is only counted is not kept.
        kept = PROMPT_CACHE.find(self._session, self._cache_key(choice))
        prompt = self._render_prompt(choice, None) if kept is None or kept[0].report.is_cut else kept[0]
        return self._count_tokens(prompt)

    def _count_tokens(self, prompt: PromptListing) -> int:
        return prompt.report.tokens if self._options.budget is None else prompt.count_tokens()

    # -- what is built -----------------------------------------------------------------------------------------------

    def get_prompt(self, choice: ListingChoice) -> PromptListing:
        """Return the prompt and the report of its listing."""
        return PROMPT_CACHE.get_or_make(self._session, self._cache_key(choice), lambda: self._build_prompt(choice))

    def get_tools(self, choice: ListingChoice) -> tuple[ToolDefinition, ...]:
        """Return the definitions of the tools to offer."""
        tools = TOOL_CACHE.get_or_make(self._session, self._cache_key(choice), lambda: self._build_tools(choice))
        return tuple(map(copy_definition, tools))  # all sessions share the kept ones, and a host may change its own

    def open_view(self, choose: Callable[[], ListingChoice], budget: int | None, *, is_too_large: bool = False) -> View:
        """Return what the model sees when a listing may cost ``budget`` tokens; ``choose`` is called only if needed.

        ``is_too_large``: the whole listing was counted before, and does not fit.
        """
        options = self._options if budget == self._options.budget else self._options._replace(budget=budget)
        return View(self._session, options, choose, self._is_prompt_cut, is_too_large=is_too_large)

    def _is_prompt_cut(self, choice: ListingChoice) -> bool:
        if choice.how == "all" and choice.budget is not None:
            return self._find_whole(choice.names, choice.budget) is None
        return self._options.budget is not None and self.get_prompt(choice).report.is_cut

    def _cache_key(self, choice: ListingChoice) -> Hashable:
        """Return what a listing depends on besides the session."""
        # The working folder is replaced in the text when paths are hidden, so only then the text depends on it.
        hidden = self._session.base_dir if self._options.hide_paths else ""
        return self._fixed_key, choice[:3], hidden

    def _find_whole(self, names: tuple[str, ...] | None, budget: int) -> PromptListing | None:
        """Return the prompt that lists these skills, or all, with nothing shortened; ``None`` if it does not fit."""
        choice = ListingChoice(names, budget=budget)
        return WHOLE_CACHE.get_or_make(
            self._session, self._cache_key(choice), lambda: self._build_whole(choice, budget)
        )

    def _build_whole(self, choice: ListingChoice, budget: int) -> PromptListing | None:
        names = choice.names
        if names is None:
            names = tuple(skill.name for skill in self._open_whole_view().findable)
        prompts: list[PromptListing] = []

        def count(number: int) -> int:
            part = choice if number == len(names) else choice._replace(names=names[:number])
            prompts.append(self._render_prompt(part, None))
            return self._count_tokens(prompts[-1])

        return prompts[-1] if fits_whole(len(names), count, budget) else None

    def _build_prompt(self, choice: ListingChoice) -> PromptListing:
        """Return the prompt within the budget where possible: the listing gets what everything else leaves."""
        is_too_large = False
        if choice.how == "all" and choice.budget is not None:
            whole = self._find_whole(choice.names, choice.budget)
            if whole is not None:
                return whole
            is_too_large = True
        if self._options.budget is None:
            # The budget of a selector shortens a listing of everything. What was chosen within it stays as it is.
            left = None if choice.how == "chosen" else choice.budget
            return self._render_prompt(choice, left, is_too_large=is_too_large)
        return self._fit_prompt(choice, self._options.budget)

    def _fit_prompt(self, choice: ListingChoice, budget: int) -> PromptListing:
        left = budget
        prompt = self._render_prompt(choice, left)
        for _ in range(_MAX_FITTINGS):
            excess = prompt.count_tokens() - budget
            if not left or excess <= 0:
                break
            left = max(0, min(left, prompt.report.tokens) - excess)
            prompt = self._render_prompt(choice, left)
        return prompt

    def _render_prompt(self, choice: ListingChoice, left: int | None, *, is_too_large: bool = False) -> PromptListing:
        """Return the prompt with a listing of at most ``left`` tokens; ``is_too_large``: the whole does not fit."""
        view = self.open_view(lambda: choice, left, is_too_large=is_too_large)
        preloads = (activation for activation in self._session.preloads() if view.may_use(activation.skill.name))
        blocks = (
            self._dialect.render_prompt(view),
            *(self._dialect.render_preload(view.mask_activation(activation)) for activation in preloads),
        )
        text = view.mask_text("\n\n".join(block for block in blocks if block))
        budget = self._options.budget if choice.budget is None else choice.budget
        report = replace(view.report, budget=budget, text=view.mask_text(view.report.text))
        return PromptListing(text, report, left)

    def _build_tools(self, choice: ListingChoice) -> tuple[ToolDefinition, ...]:
        # A listing in a tool's description is the one that the report is about: it gets what the prompt leaves.
        left = self.get_prompt(choice).budget if self._dialect.has_index_tool else None
        view = self.open_view(lambda: choice, left)
        return tuple(tool.describe(view) for tool in self._dialect.tools if tool.is_offered(view))

    def _open_whole_view(self) -> View:
        return self.open_view(ListingChoice, None)

"""What a model sees of a conversation at one moment: the prompt, the tools, and why each skill is listed or not."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

from prowess.arguments import check_text
from prowess.conversation.activation import make_activation
from prowess.conversation.moment import CatalogCache
from prowess.conversation.rendering import find_host_folders, mask_paths
from prowess.errors import UnknownSkillError
from prowess.select.auto import NO_ROOM, WHOLE, ListingChoice, ListingTurn, find_auto_selector
from prowess.select.budget import BudgetReport, fit_entries, make_report, part_sizes
from prowess.skills.render import make_entries, render_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from prowess.conversation.activation import Activation
    from prowess.conversation.moment import Moment
    from prowess.conversation.session import Session
    from prowess.select.selectors import Candidates
    from prowess.skills.render import ListingEntry
    from prowess.skills.skill import Skill
    from prowess.tools.definitions import ToolDefinition
    from prowess.tools.options import ToolsetOptions

# One fitting for what is around the listing. The others are needed since a cut listing adds a sentence, and since
# the tokens of two strings together are not the sum of their tokens.
_MAX_FITTINGS = 6
_NOT_BEST = "not among the best for the request"
_NO_REPORT = BudgetReport("", None, ())


class Prompt(NamedTuple):
    """A prompt, the report of its listing, and the part of the budget that was left for the listing."""

    text: str
    report: BudgetReport
    left: int | None = None

    def count_tokens(self) -> int:
        """Return the tokens of the prompt, plus those of a listing that is in a tool's description instead."""
        in_description = 0 if self.report.text in self.text else self.report.tokens
        return self.report.count(self.text) + in_description


@dataclass(slots=True)
class _Made:
    """What was made for one choice of skills."""

    prompt: Prompt | None = None
    tools: tuple[ToolDefinition, ...] | None = None
    whole: Prompt | None = None
    """The prompt without any shortening; ``None`` where that does not fit, or was not tried."""
    is_whole_tried: bool = False


PROMPTS: CatalogCache[_Made] = CatalogCache()
"""All sessions share it: 10,000 conversations over one catalogue make their prompt once."""


@dataclass(eq=False)  # without slots, because what was found out is kept
class View:
    """What a model sees of a session at one moment, in the dialect of ``options``; each call makes a view."""

    session: Session
    options: ToolsetOptions
    moment: Moment
    given_choice: ListingChoice | None = None
    """What is listed; without it, that is chosen when it is first needed."""
    left: int | None = None
    """The tokens that the listing may cost."""
    is_cut: bool = False
    """Whether the host lists the skills elsewhere, and has left some out."""
    report: BudgetReport = _NO_REPORT
    """What the listing costs, once there is one."""

    # -- the skills --------------------------------------------------------------------------------------------------

    @cached_property
    def choice(self) -> ListingChoice:
        """What is listed."""
        return self.choose("") if self.given_choice is None else self.given_choice

    @cached_property
    def skills(self) -> tuple[Skill, ...]:
        """The skills that may be shown, in the order of the listing; computed only when something is listed."""
        names = self.choice.names
        if names is None:
            return self.findable
        known = self.findable.by_name
        return tuple(known[name] for name in names if name in known)

    @cached_property
    def findable(self) -> Candidates:
        """The skills that the model may have at all, whatever a selector picks, sorted by name."""
        return self.moment.eligible()

    @cached_property
    def forks(self) -> frozenset[str]:
        """The names of the skills that run as a sub-agent; empty when the host cannot run sub-agents."""
        return frozenset(skill.name for skill in self.skills if skill.is_fork) if self.options.fork else frozenset()

    def require_skill(self, name: str) -> Skill:
        """Return a skill that the model may have; raises ``UnknownSkillError``, which lists those that it may have."""
        skill = self.moment.find(name)
        if skill is None or not self.moment.is_for_models(skill):
            raise self.make_unknown_error(name)
        return skill

    def make_unknown_error(self, name: str) -> UnknownSkillError:
        """Return the error for a name of no skill that the model may have."""
        return UnknownSkillError(name, (skill.name for skill in self.skills), self.moment.limits.max_listed_names)

    # -- what is listed ----------------------------------------------------------------------------------------------

    def choose(self, query: str) -> ListingChoice:
        """Return what is listed in the prompt for a query."""
        options = self.options
        selector = self.moment.selector_where(by_default=options.dialect.selects_by_default)
        auto = find_auto_selector(selector)
        whole = None
        budget = options.budget if auto is None or options.budget is not None else auto.budget
        if auto is not None and budget is not None:
            whole = (len(self.findable), self._find_whole(ListingChoice(budget=budget)) is not None)
        measure = partial(self._measure, budget)
        place = ListingTurn(measure, place=options.dialect.name, budget=options.budget, whole=whole)
        return self.session.choose(self.moment, query, selector, self.findable, place)

    def choose_for_tools(self, query: str) -> ListingChoice:
        """Return what the tools are about: what the query brings into the listing only if a tool's description has it.

        Otherwise the tools stay as they are, as far as the selector lets them.
        """
        options = self.options
        selector = self.moment.selector_where(by_default=options.dialect.selects_by_default)
        auto = find_auto_selector(selector)
        if auto is None or (options.dialect.has_index_tool and options.index_in_description):
            return self.choose(query)
        check_text(query, "query")
        choice = ListingChoice(budget=auto.budget if options.budget is None else options.budget)
        if selector is auto:
            return choice
        # What the filters of a chain leave, whatever is asked for and was shown.
        unshown = replace(self.moment, shown={}, active={})
        reachable = self.session.choose(unshown, "", selector, self.findable, ListingTurn()).names
        is_all = reachable is None or len(reachable) == len(self.findable)
        return choice if is_all else choice._replace(names=reachable)

    def _measure(self, budget: int | None, skills: Sequence[Skill]) -> int:
        """Return the tokens that count against the budget when these skills are listed."""
        choice = ListingChoice(tuple(skill.name for skill in skills), "chosen", budget)
        # What was shown last is there already. What is only counted is not kept.
        kept = PROMPTS.find(self.moment.catalog, self._make_key(choice))
        prompt = kept.prompt if kept is not None else None
        return self._count_tokens(self._render(choice, None) if prompt is None or prompt.report.is_cut else prompt)

    def _count_tokens(self, prompt: Prompt) -> int:
        return prompt.report.tokens if self.options.budget is None else prompt.count_tokens()

    # -- what is made ------------------------------------------------------------------------------------------------

    def get_prompt(self, choice: ListingChoice) -> Prompt:
        """Return the prompt and the report of its listing, kept from an earlier call if possible."""
        made = self._get_made(choice)
        if made.prompt is None:
            made.prompt = self._make_prompt(choice)
        return made.prompt

    def get_tools(self, choice: ListingChoice) -> tuple[ToolDefinition, ...]:
        """Return the definitions of the tools to offer, kept from an earlier call if possible."""
        made = self._get_made(choice)
        if made.tools is None:
            # A listing in a tool's description is the one that the report is about: it gets what the prompt leaves.
            left = self.get_prompt(choice).left if self.options.dialect.has_index_tool else None
            view = self._with(choice, left)
            made.tools = tuple(tool.define(view) for tool in self.options.dialect.tools if tool.is_offered(view))
        return tuple(map(deepcopy, made.tools))  # all sessions share them, and a host may change its own

    def _get_made(self, choice: ListingChoice) -> _Made:
        catalog, key = self.moment.catalog, self._make_key(choice)
        made = PROMPTS.find(catalog, key)
        if made is None:
            made = _Made()
            PROMPTS.store(catalog, key, made, self.moment.limits.max_listings)
        return made

    def _make_key(self, choice: ListingChoice) -> Hashable:
        """Return all that a prompt depends on besides the catalogue."""
        options = self.options
        # Which runner there is changes nothing in it, and it may have no hash; a dialect is as good as its name.
        able = (options.fork is not None, options.scripts is not None)
        kept = (options.allowed, options.budget, options.tokens, options.index_in_description, options.hide_paths)
        return options.dialect.name, able, kept, self.moment.listing_key, choice[:3]

    def _find_whole(self, choice: ListingChoice) -> Prompt | None:
        """Return the prompt that lists all skills of a choice with nothing shortened; ``None`` if it does not fit."""
        made = self._get_made(choice)
        if not made.is_whole_tried:
            assert choice.budget is not None
            names = tuple(self.findable.by_name) if choice.names is None else choice.names
            whole = None
            for size in part_sizes(len(names), choice.budget):
                whole = self._render(choice if size == len(names) else choice._replace(names=names[:size]), None)
                if self._count_tokens(whole) > choice.budget:
                    whole = None
                    break
            made.whole, made.is_whole_tried = whole, True
        return made.whole

    def _make_prompt(self, choice: ListingChoice) -> Prompt:
        """Return the prompt within the budget where possible: the listing gets what everything else leaves."""
        whole = self._find_whole(choice) if choice.how == "all" and choice.budget is not None else None
        if whole is not None:
            return whole
        budget = self.options.budget
        if budget is None:
            # The budget of a selector shortens a listing of everything. What was chosen within it stays as it is.
            return self._render(choice, None if choice.how == "chosen" else choice.budget)
        left = budget
        prompt = self._render(choice, left)
        for _ in range(_MAX_FITTINGS):
            excess = prompt.count_tokens() - budget
            if not left or excess <= 0:
                break
            left = max(0, min(left, prompt.report.tokens) - excess)
            prompt = self._render(choice, left)
        return prompt

    def _render(self, choice: ListingChoice, left: int | None) -> Prompt:
        """Return the prompt with a listing of at most ``left`` tokens."""
        view, dialect = self._with(choice, left), self.options.dialect
        blocks = [dialect.render_prompt(view)]
        preloaded = (entry for entry in self.moment.visible_active.values() if entry.preloaded)
        blocks += [dialect.render_preload(self.mask_activation(make_activation(entry))) for entry in preloaded]
        text = self.mask_text("\n\n".join(block for block in blocks if block))
        budget = self.options.budget if choice.budget is None else choice.budget
        return Prompt(text, replace(view.report, budget=budget, text=self.mask_text(view.report.text)), left)

    def _with(self, choice: ListingChoice, left: int | None) -> View:
        """Return the view of this moment with another choice, whose listing may cost ``left`` tokens."""
        view = View(self.session, self.options, self.moment, choice, left)
        vars(view)["findable"] = self.findable
        return view

    # -- for dialects ------------------------------------------------------------------------------------------------

    def fit_listing(
        self,
        render: Callable[[Sequence[ListingEntry]], str],
        skills: tuple[Skill, ...] | None = None,
        *,
        has_location: bool = False,
    ) -> str:
        """Return a listing within the budget; ``report`` says what was cut."""
        entries = make_entries(self.skills if skills is None else skills, has_location=has_location)
        count, shown = self.options.tokens, entries
        if self.left is not None:
            # Fast path of the bench row "prompt(), made for the first time": the whole was counted, and does not fit.
            made = PROMPTS.find(self.moment.catalog, self._make_key(self.choice))
            was_too_large = made is not None and made.is_whole_tried and self.options.budget is None and skills is None
            shown = fit_entries(entries, lambda some: count(render(some)), self.left, is_too_large=was_too_large)
        text = render(shown)
        self.report = make_report(entries, shown, text, self.left, count)
        return text

    @cached_property
    def is_listing_cut(self) -> bool:
        """Whether the listing leaves out something that the model may have."""
        if self.is_cut or len(self.skills) < len(self.findable):
            return True
        if self.choice.how == "all" and self.choice.budget is not None:
            return self._find_whole(self.choice) is None
        return self.options.budget is not None and self.get_prompt(self.choice).report.is_cut

    def render_index(self) -> str:
        """Return the skills as plain lines."""
        if not self.skills:
            return "No skills available."
        return self.fit_listing(lambda entries: f"Available skills:\n{render_lines(entries)}")

    # -- hidden paths ------------------------------------------------------------------------------------------------

    def mask_skill(self, skill: Skill) -> Skill:
        """Return a skill as the model may know it: when paths are hidden, its folder is ``.``."""
        return skill.with_shown_folder(".") if self.options.hide_paths and skill.folder else skill

    def mask_activation(self, activation: Activation) -> Activation:
        """Return an activation whose skill is as the model may know it."""
        skill = self.mask_skill(activation.skill)
        return activation if skill is activation.skill else replace(activation, skill=skill)

    @property
    def project_folder(self) -> str:
        """The working folder as the model may know it."""
        return "." if self.options.hide_paths else self.moment.base_dir

    def mask_text(self, text: str) -> str:
        """Return ``text`` without absolute paths of the host, when the options hide them."""
        return mask_paths(text, find_host_folders(self.moment)) if self.options.hide_paths else text


class ListingReasons(Mapping[str, str]):
    """The reasons by the names of all skills of the catalogue. What was shown is what the report says."""

    def __init__(self, moment: Moment, choice: ListingChoice, report: BudgetReport) -> None:
        self._moment, self._catalog = moment, moment.catalog
        self._choice, self._report = choice, report
        self._shown = frozenset(report.shown)
        self._words: dict[str, dict[str, str]] = {}

    def __getitem__(self, name: str) -> str:
        skill = self._catalog[name]  # UnknownSkillError is a KeyError
        if skill.name in self._shown:
            return self._explain_shown(skill.name)
        return self._moment.explain_hidden(skill) or self._explain_left_out(skill.name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._catalog.names)

    def __len__(self) -> int:
        return len(self._catalog)

    def __repr__(self) -> str:
        """Return how many skills there are, since there may be thousands of reasons."""
        return f"<the reasons for {len(self)} skills>"

    def __reduce__(self) -> tuple[type[dict[str, str]], tuple[dict[str, str]]]:
        """Return how another process gets the reasons: as a dictionary, without the catalogue."""
        return dict, (dict(self),)

    def _explain_shown(self, name: str) -> str:
        reason = self._choice.reasons.get(name)
        if reason is None or (reason == WHOLE and self._choice.how == "all"):
            why = self._explain_unchosen()
        else:
            details = (f"rank {reason.rank}" if reason.rank else "", self._find_words(reason.query).get(name, ""))
            inside = "; ".join(filter(None, details))
            why = f"{reason.text} ({inside})" if inside else reason.text
        if name in self._report.shortened:
            return f"{why}; the budget shortened its description"
        return f"{why}; the budget left out its description" if name in self._report.dropped else why

    def _find_words(self, query: str) -> dict[str, str]:
        """Return what of a request fits each skill that it brought into the listing, by name."""
        # Only now, by another search: nobody may ask, and remembering it costs more than the whole conversation.
        if query and query not in self._words:
            names = [name for name, reason in self._choice.reasons.items() if reason.query == query]
            hits = self._catalog.rank_skills(query, names, len(names))
            self._words[query] = {hit.name: hit.why for hit in hits}
        return self._words.get(query, {})

    def _explain_unchosen(self) -> str:
        """Return why a skill is shown for which no request was the reason."""
        if self._choice.how == "picked":
            return "picked by the selector"
        if self._report.omitted:
            return "no request has chosen skills, so as many are listed as fit the budget"
        return "everything is listed" if self._report.budget is None or self._report.is_cut else "everything fits"

    def _explain_left_out(self, name: str) -> str:
        if self._choice.how == "picked" and name not in (self._choice.names or ()):
            return "not picked by the selector"
        return _NOT_BEST if self._choice.how == "chosen" and name not in self._choice.no_room else NO_ROOM

"""What a model sees of a session at one moment: the skills to show, and the listing that fits."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, cached_property
from typing import TYPE_CHECKING

from prowess.conversation.path_mask import find_host_folders, mask_paths
from prowess.errors import SkillError, UnknownSkillError
from prowess.select.budget import BudgetReport, fit_listing
from prowess.spec.render import render_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from prowess.conversation.activation import Activation
    from prowess.conversation.session import Session
    from prowess.select.candidates import Candidates
    from prowess.select.listing_turn import ListingChoice
    from prowess.skills.skill import Skill
    from prowess.spec.render import ListingEntry
    from prowess.tools.options import ToolsetOptions


@cache
def _empty_report(budget: int | None) -> BudgetReport:
    return BudgetReport("", budget, ())


class View:
    """The skills of a session for one query; a new view is made for each call, so it never goes stale.

    ``choose`` returns what is listed, and is called only if needed. ``is_prompt_cut`` returns whether the listing of
    such a choice was shortened. ``is_too_large``: the whole listing was counted before, and does not fit.
    """

    def __init__(
        self,
        session: Session,
        options: ToolsetOptions,
        choose: Callable[[], ListingChoice],
        is_prompt_cut: Callable[[ListingChoice], bool],
        *,
        is_too_large: bool = False,
    ) -> None:
        self.session = session
        self.options = options
        self.report = _empty_report(options.budget)
        self._choose = choose
        self._is_prompt_cut = is_prompt_cut
        self._is_too_large = is_too_large

    @cached_property
    def _choice(self) -> ListingChoice:
        return self._choose()

    @cached_property
    def skills(self) -> tuple[Skill, ...]:
        """The skills that may be shown, in the order of the listing; computed only when something is listed."""
        names = self._choice.names
        if names is None:
            return self.findable
        # By name, from the catalogue of now: a skill picked from an earlier catalogue must not be shown.
        known = self.session.eligible().by_name
        return tuple(known[name] for name in names if name in known and self.may_use(name))

    @property
    def index_in_description(self) -> bool:
        """Whether the listing stands in a tool's description."""
        return self.options.index_in_description

    def fit_listing(
        self, render: Callable[[Sequence[ListingEntry]], str], skills: tuple[Skill, ...] | None = None
    ) -> str:
        """Return a listing within the budget; ``report`` says what was cut."""
        listing, self.report = fit_listing(
            self.skills if skills is None else skills,
            self.options.budget,
            render,
            self.options.tokens,
            is_too_large=self._is_too_large and skills is None,
        )
        return listing

    @cached_property
    def findable(self) -> Candidates:
        """The skills that the model may have at all, whatever a selector picks, sorted by name."""
        eligible, allowed = self.session.eligible(), self.options.allowed
        return eligible if allowed is None else eligible.keep_names(allowed)

    @cached_property
    def is_listing_cut(self) -> bool:
        """Whether the listing leaves out something that the model may have."""
        return len(self.skills) < len(self.findable) or self._is_prompt_cut(self._choice)

    @property
    def is_cut_by_selector(self) -> bool:
        """Whether an ``AutoSelector`` leaves out something that the model may have."""
        return self._choice.budget is not None and self.is_listing_cut

    @property
    def has_lasting_order(self) -> bool:
        """Whether the skills are in an order that must stay, since the conversation was shown them so."""
        return self._choice.budget is not None and self._choice.names is not None

    def count_missing_skills(self) -> int:
        """Return how many skills the budget has kept out of the listing."""
        chosen = self._choice.how == "chosen"
        return len(self.findable) - len(self.report.shown) if chosen else len(self.report.omitted)

    def render_index(self) -> str:
        """Return the skills as plain lines."""
        return (
            self.fit_listing(lambda entries: f"Available skills:\n{render_lines(entries)}")
            if self.skills
            else "No skills available."
        )

    def has_files(self) -> bool:
        """Return whether any of the skills has a file besides its SKILL.md."""
        return self._first_with_files is not None

    @cached_property
    def _first_with_files(self) -> Skill | None:
        return next((skill for skill in self.skills if may_have_files(skill)), None)

    @cached_property
    def forks(self) -> frozenset[str]:
        """The names of the skills that run as a sub-agent; empty when the host cannot run sub-agents."""
        return frozenset(skill.name for skill in self.skills if skill.is_fork) if self.options.fork else frozenset()

    def require_skill(self, name: str) -> Skill:
        """Return a skill that the model may have; raises ``UnknownSkillError``, which lists those that it may have."""
        match = self.session.available(name) if self.may_use(name) else None
        if match is None or not self.session.is_for_models(match):
            raise UnknownSkillError(name, (skill.name for skill in self.skills), self.session.limits.max_listed_names)
        return match

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
        return "." if self.options.hide_paths else self.session.base_dir

    def mask_text(self, text: str) -> str:
        """Return ``text`` without absolute paths of the host, when the options hide them."""
        return mask_paths(text, find_host_folders(self.session)) if self.options.hide_paths else text

    def may_use(self, name: str) -> bool:
        """Return whether the toolset's ``allowed`` lets the model have that skill."""
        allowed = self.options.allowed
        # Fast path: this is asked for every skill of a listing, and only a name with a colon can be another spelling.
        return allowed is None or name in allowed or (":" in name and self.session.resolve_name(name) in allowed)


def may_have_files(skill: Skill) -> bool:
    """Return whether a skill has a supporting file, or may have one; nothing is fetched to find out."""
    try:
        return skill.may_have_files()
    except SkillError:
        return False

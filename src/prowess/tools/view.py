"""What one model sees of a session at one moment: the skills to show, and how they fit."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from prowess.errors import SkillError, UnknownSkillError
from prowess.runtime.path_mask import find_host_folders, mask_paths
from prowess.select.budget import BudgetReport, fit_listing
from prowess.spec.render import render_lines
from prowess.spec.tokens import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from prowess.runtime.acting.scripts import Scripts
    from prowess.runtime.activation import Activation
    from prowess.runtime.fork import ForkRunner
    from prowess.runtime.session import Session
    from prowess.skills.skill import Skill
    from prowess.spec.render import ListingEntry


class ToolsetOptions(NamedTuple):
    """How a toolset was set up."""

    allowed: tuple[str, ...] | None = None
    budget: int | None = None
    max_bytes: int | None = None
    hint_resources: bool = True
    index_in_description: bool = True
    fork: ForkRunner | Literal["host"] | None = None
    scripts: Scripts | None = None
    load_tool: str = "load_skill"
    """The tool that loads a skill."""
    tokens: Callable[[str], int] = estimate_tokens
    """How the tokens of a text are counted."""
    hide_paths: bool = False


@cache
def _empty_report(budget: int | None) -> BudgetReport:
    return BudgetReport("", budget, ())


class View:
    """The skills of a session for one query; made anew for each question, so it never goes stale."""

    def __init__(
        self,
        session: Session,
        options: ToolsetOptions,
        candidates: Callable[[], tuple[Skill, ...]],
        is_prompt_cut: Callable[[], bool],
    ) -> None:
        self.session = session
        self.options = options
        self.report = _empty_report(options.budget)
        self._candidates = candidates
        self._is_prompt_cut = is_prompt_cut

    @cached_property
    def skills(self) -> tuple[Skill, ...]:
        """What may be shown, by name; found out only when something is listed."""
        allowed = self.options.allowed
        return tuple(skill for skill in self._candidates() if allowed is None or skill.name in allowed)

    @property
    def index_in_description(self) -> bool:
        return self.options.index_in_description

    def fit_listing(
        self, render: Callable[[Sequence[ListingEntry]], str], skills: tuple[Skill, ...] | None = None
    ) -> str:
        """A listing within the budget; what was cut is in ``report``."""
        listing, self.report = self._fit_skills(self.skills if skills is None else skills, render)
        return listing

    def _fit_skills(
        self, skills: tuple[Skill, ...], render: Callable[[Sequence[ListingEntry]], str]
    ) -> tuple[str, BudgetReport]:
        return fit_listing(skills, self.options.budget, render, self.options.tokens)

    @cached_property
    def findable(self) -> tuple[Skill, ...]:
        """What the model may have at all, whatever a selector picks."""
        return tuple(skill for skill in self.session.eligible() if self.may_use(skill.name))

    @cached_property
    def is_listing_cut(self) -> bool:
        """Whether a listing cannot show everything that the model may have."""
        if len(self.skills) < len(self.findable):
            return True
        return self.options.budget is not None and self._is_prompt_cut()

    def render_index(self) -> str:
        """The skills as plain lines."""
        return self.fit_listing(render_index_lines) if self.skills else "No skills available."

    def has_files(self) -> bool:
        """Whether any of the skills has a file besides its SKILL.md."""
        return self._first_with_files is not None

    @cached_property
    def _first_with_files(self) -> Skill | None:
        return next((skill for skill in self.skills if may_have_files(skill)), None)

    @cached_property
    def forks(self) -> frozenset[str]:
        """The skills that run as a sub-agent, where the host can do that."""
        return frozenset(skill.name for skill in self.skills if skill.is_fork) if self.options.fork else frozenset()

    def require_skill(self, name: str) -> Skill:
        """A skill that the model may have; the error lists those that it may."""
        found = self.session.available(name) if self.may_use(name) else None
        if found is None or not self.session.is_for_models(found):
            raise UnknownSkillError(name, (skill.name for skill in self.skills), self.session.limits.max_listed_names)
        return found

    def mask_skill(self, skill: Skill) -> Skill:
        """A skill as the model is to know it: where paths are hidden, its folder is ``.``, as its tools take paths."""
        return skill.with_shown_folder(".") if self.options.hide_paths and skill.folder else skill

    def mask_activation(self, activation: Activation) -> Activation:
        """An activation whose skill is as the model is to know it."""
        skill = self.mask_skill(activation.skill)
        return activation if skill is activation.skill else replace(activation, skill=skill)

    @property
    def project_folder(self) -> str:
        """The working folder as the model is to know it."""
        return "." if self.options.hide_paths else self.session.base_dir

    def mask_text(self, text: str) -> str:
        """``text`` without absolute paths of the host, where these are hidden."""
        return mask_paths(text, find_host_folders(self.session)) if self.options.hide_paths else text

    def may_use(self, name: str) -> bool:
        """Whether the toolset's own list lets the model have that skill."""
        allowed = self.options.allowed
        if allowed is None or name in allowed:
            return True
        # Asked for every skill of a listing: only a name with a colon can be that of a file alone.
        return ":" in name and self.session.resolve_name(name) in allowed


def render_index_lines(entries: Sequence[ListingEntry]) -> str:
    """``Available skills:`` and a line for each."""
    return f"Available skills:\n{render_lines(entries)}"


def may_have_files(skill: Skill) -> bool:
    """Whether a skill has a supporting file, or may have one; nothing is fetched to know."""
    try:
        return skill.may_have_files()
    except SkillError:
        return False

"""The skills worth showing to a model: what the filters let through, and of these what the selector picks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from prowess.arguments import check_text
from prowess.host_errors import log_host_error
from prowess.select.ask_selector import ask_selector, ask_selector_async, find_auto_selector
from prowess.select.auto_selector import AutoSelector
from prowess.select.listing_turn import LineRoom, ListingChoice, ListingTurn
from prowess.select.shown_list import ShownReason
from prowess.spec.render import make_entry, render_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.conversation.events import EventEmitter
    from prowess.conversation.session_state import SessionState
    from prowess.select.listing_turn import ListingRoom
    from prowess.select.selectors import Selector
    from prowess.skills.skill import Skill


@dataclass(frozen=True, slots=True)
class SkillListing:
    """Which skills one conversation shows for a query. It never changes: another selector makes another listing."""

    state: SessionState
    events: EventEmitter
    selector: Selector | None
    is_default: bool = False
    """Whether the selector is the default one, which counts only in places that select by default."""

    def select(self, query: str, under: str) -> tuple[Skill, ...]:
        """Return the skills below ``under`` that are worth showing for ``query``."""
        check_text(query, "query")
        turn, skills = self._open_turn(LineRoom()), self.state.eligible_skills(under)
        return ask_selector(self.selector, query, skills, self._report_selector_error, turn)

    async def select_async(self, query: str, under: str) -> tuple[Skill, ...]:
        """Return what ``select`` returns, and await a selector that is asynchronous."""
        check_text(query, "query")
        turn, skills = self._open_turn(LineRoom()), self.state.eligible_skills(under)
        return await ask_selector_async(self.selector, query, skills, self._report_selector_error, turn)

    def choose(self, query: str, room: ListingRoom, allowed: Iterable[str] | None) -> ListingChoice:
        """Return what to list in a place of its own, such as the prompt of a toolset; ``allowed=None``: any skill."""
        check_text(query, "query")
        if self.selector is None or not self._counts_in(room):
            return ListingChoice()
        # Fast path of the bench row "prompt() and tools() again": nothing was shown yet, and nothing is asked for.
        auto = self.selector if isinstance(self.selector, AutoSelector) and not query else None
        if auto is not None and not self.state.visible_entries() and self.state.read_latest_shown(room.place) is None:
            return ListingChoice(budget=auto.budget_in(room))
        turn, skills = self._open_turn(room), self.state.eligible_skills("")
        if allowed is not None and find_auto_selector(self.selector) is not None:
            skills = skills.keep_names(allowed)
        picked = ask_selector(self.selector, query, skills, self._report_selector_error, turn)
        choice = turn.choice or ListingChoice(how="picked")
        return choice if picked is skills else choice._replace(names=tuple(skill.name for skill in picked))

    def choose_reachable(self, query: str, room: ListingRoom, allowed: Iterable[str] | None) -> ListingChoice:
        """Return what every request could bring into a listing: it changes with the query only as ``choose`` does.

        An ``AutoSelector`` can bring in everything that the filters before it leave, whatever the query is.
        """
        auto = find_auto_selector(self.selector)
        if auto is None or not self._counts_in(room):
            return self.choose(query, room, allowed)
        check_text(query, "query")
        choice = ListingChoice(budget=auto.budget_in(room))
        if self.selector is auto:
            return choice
        skills = self.state.eligible_skills("")
        left = ask_selector(self.selector, "", skills, self._report_selector_error)
        return choice if len(left) == len(skills) else choice._replace(names=tuple(skill.name for skill in left))

    def _counts_in(self, room: ListingRoom) -> bool:
        return room.selects_by_default or not self.is_default

    def _open_turn(self, room: ListingRoom) -> ListingTurn:
        return ListingTurn(room, self.state, self._find_required_skills)

    def _find_required_skills(self) -> dict[str, ShownReason]:
        """Return the active and preloaded skills by name, each with its reason: every listing has them."""
        entries = sorted(self.state.visible_entries().items())
        return {name: ShownReason("preloaded" if entry.preloaded else "active") for name, entry in entries}

    def render_index(self, query: str, under: str) -> str:
        """Return the selected skills as lines of text for a prompt."""
        skills = self.select(query, under)
        self.events.emit("listed", "", names=tuple(skill.name for skill in skills), query=query)
        return f"Available skills:\n{render_lines(map(make_entry, skills))}" if skills else "No skills available."

    def _report_selector_error(self, error: Exception) -> None:
        # The selector is the host's code: its mistake must not end the conversation, so all skills are shown instead.
        log_host_error("selector", error)
        self.events.emit("selector-failed", "", error=f"{type(error).__name__}: {error}")

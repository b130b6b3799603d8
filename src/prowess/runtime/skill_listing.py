"""The skills worth showing to a model: what the filters let through, and of these what the selector picks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from prowess.arguments import check_text
from prowess.host_errors import log_host_error
from prowess.select.ask_selector import ask_selector, ask_selector_async
from prowess.spec.render import make_entry, render_lines

if TYPE_CHECKING:
    from prowess.runtime.events import EventEmitter
    from prowess.runtime.session_state import SessionState
    from prowess.select.selectors import Selector
    from prowess.skills.skill import Skill


@dataclass(frozen=True, slots=True)
class SkillListing:
    """Which skills one conversation shows for a query. It never changes: another selector makes another listing."""

    state: SessionState
    events: EventEmitter
    selector: Selector | None

    def select(self, query: str, under: str) -> tuple[Skill, ...]:
        """Return the skills below ``under`` that are worth showing for ``query``, by name."""
        check_text(query, "query")
        return ask_selector(self.selector, query, self.state.eligible_skills(under), self._report_selector_error)

    async def select_async(self, query: str, under: str) -> tuple[Skill, ...]:
        """Return what ``select`` returns, and await a selector that is asynchronous."""
        check_text(query, "query")
        skills = self.state.eligible_skills(under)
        return await ask_selector_async(self.selector, query, skills, self._report_selector_error)

    def render_index(self, query: str, under: str) -> str:
        """Return the selected skills as lines of text for a prompt."""
        skills = self.select(query, under)
        self.events.emit("listed", "", names=tuple(skill.name for skill in skills), query=query)
        return f"Available skills:\n{render_lines(map(make_entry, skills))}" if skills else "No skills available."

    def _report_selector_error(self, error: Exception) -> None:
        # The selector is the host's code: its mistake must not end the conversation, so all skills are shown instead.
        log_host_error("selector", error)
        self.events.emit("selector-failed", "", error=f"{type(error).__name__}: {error}")

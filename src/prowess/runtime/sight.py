"""What one conversation may see of a catalogue: the skills that filters let through, and those worth showing."""

from __future__ import annotations

import os
from threading import RLock
from typing import TYPE_CHECKING

from prowess.arguments import check_text
from prowess.errors import SkillFilteredError
from prowess.runtime.ambient import ambient_filters
from prowess.runtime.events import Teller, measured
from prowess.select.choose import achoose, choose
from prowess.spec.globs import passes
from prowess.spec.render import listed, render_lines

if TYPE_CHECKING:
    from prowess.library.catalog import Catalog
    from prowess.library.skill import Skill
    from prowess.runtime.events import OnEvent
    from prowess.select.selectors import Selector


class Sight:
    """A catalogue seen through filters and a selector."""

    def __init__(
        self,
        catalog: Catalog,
        pattern: str = "",
        *,
        base_dir: str | os.PathLike[str] | None = None,
        selector: Selector | None = None,
        on_event: OnEvent | None = None,
        session_id: str | None = None,
    ) -> None:
        self._lock = RLock()
        self._catalog = catalog
        self._filter = pattern
        self._base = os.path.abspath(os.fspath(base_dir) if base_dir is not None else os.getcwd())
        self._selector = selector
        self._events = Teller(on_event, os.urandom(8).hex() if session_id is None else session_id)

    @property
    def id(self) -> str:
        """What events call this conversation: the id that the host gave, or one that no other session has."""
        return self._events.session

    @property
    def catalog(self) -> Catalog:
        return self._catalog

    @property
    def filter(self) -> str:
        """The session's own filter."""
        return self._filter

    @property
    def base_dir(self) -> str:
        """The working folder: commands run there."""
        return self._base

    # -- filters -----------------------------------------------------------------------------------------------------

    def _filters(self, instead: str | None = None) -> tuple[str, ...]:
        return (self._filter if instead is None else instead, *ambient_filters())

    def _passes(self, skill: Skill, filters: tuple[str, ...]) -> bool:
        if not any(filters):
            return True
        path = self.filter_path(skill)
        return all(passes(pattern, path) for pattern in filters)

    def filter_path(self, skill: Skill) -> str:
        """The path that filters are matched against: relative to ``base_dir`` where it lies there, ``""`` inline."""
        if skill.is_inline:
            return ""
        path = skill.virtual_path
        if not os.path.isabs(path):
            return path.strip("/")
        inside = os.path.relpath(path, self._base).replace(os.sep, "/")
        return path if inside.startswith("..") else inside

    # -- listing -----------------------------------------------------------------------------------------------------

    def set_selector(self, selector: Selector | None) -> None:
        """Select with this from now on."""
        with self._lock:
            self._selector = selector

    def candidates(self, query: str = "", under: str = "") -> tuple[Skill, ...]:
        """The skills worth showing for ``query``, by name: what the filter lets through and the selector picks."""
        check_text(query, "query")
        return choose(self._selector, query, self.eligible(under), self._selector_failed)

    async def acandidates(self, query: str = "", under: str = "") -> tuple[Skill, ...]:
        """The same, awaiting an asynchronous selector."""
        check_text(query, "query")
        return await achoose(self._selector, query, self.eligible(under), self._selector_failed)

    def eligible(self, under: str = "") -> tuple[Skill, ...]:
        """Every skill that models may see and that the filter lets through, by name."""
        filters = self._filters()
        return tuple(s for s in self._catalog.under(under) if s.model_invocable and self._passes(s, filters))

    def _selector_failed(self, error: Exception) -> None:
        self._events.say("selector-failed", "", error=f"{type(error).__name__}: {error}")

    @measured()
    def index(self, query: str = "", under: str = "") -> str:
        """The candidates as lines of text for a prompt."""
        found = self.candidates(query, under)
        self._events.say("listed", "", names=tuple(skill.name for skill in found), query=query)
        if not found:
            return "No skills available."
        return f"Available skills:\n{render_lines(map(listed, found))}"

    def _names(self) -> list[str]:
        """The names of what the filter lets through, for whoever asked for another."""
        filters = self._filters()
        return [skill.name for skill in self._catalog if self._passes(skill, filters)]


def filtered_out(name: str, filters: tuple[str, ...]) -> SkillFilteredError:
    """The error for a skill that filters do not let through."""
    shown = ", ".join(repr(pattern) for pattern in filters if pattern) or "''"
    return SkillFilteredError(f"skill {name!r} is not available here (filter: {shown})")

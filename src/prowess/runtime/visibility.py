"""What one conversation may see of a catalogue: the skills that filters let through, and those worth showing."""

from __future__ import annotations

import os
from threading import RLock
from typing import TYPE_CHECKING

from prowess.arguments import as_existing_folder, check_text
from prowess.discovery.live import Live
from prowess.errors import SkillFilteredError
from prowess.host_errors import log_host_error
from prowess.runtime.events import EventEmitter, measure_call
from prowess.runtime.filter_context import ambient_filters
from prowess.select.ask_selector import ask_selector, ask_selector_async
from prowess.spec.globs import is_filter_match, is_none_filter
from prowess.spec.render import make_entry, render_lines

if TYPE_CHECKING:
    from prowess.runtime.events import OnEvent
    from prowess.select.selectors import Selector
    from prowess.skills.catalog import Catalog
    from prowess.skills.skill import Skill


class Visibility:
    """A catalogue seen through filters and a selector."""

    def __init__(
        self,
        catalog: Catalog | Live,
        pattern: str = "",
        *,
        base_dir: str | os.PathLike[str] | None = None,
        selector: Selector | None = None,
        on_event: OnEvent | None = None,
        session_id: str | None = None,
        explicit_only: frozenset[str] = frozenset(),
    ) -> None:
        self._lock = RLock()
        self._live = catalog if isinstance(catalog, Live) else None
        self._catalog = catalog.catalog if isinstance(catalog, Live) else catalog
        self._filter = pattern
        self._bounds: tuple[str, ...] = ()
        """Filters that hold besides the session's own and that no call replaces: a saved one, a parent's."""
        self._base_dir = os.getcwd() if base_dir is None else as_existing_folder(base_dir, "base_dir")
        self._selector = selector
        self._explicit_only = explicit_only
        self._revision = 0
        self._events = EventEmitter(on_event, os.urandom(8).hex() if session_id is None else session_id)

    @property
    def id(self) -> str:
        """What events call this conversation: the id that the host gave, or one that no other session has."""
        return self._events.session

    @property
    def catalog(self) -> Catalog:
        """The catalogue of now."""
        self._sync_live_catalog()
        return self._catalog

    def _sync_live_catalog(self) -> None:
        """Take over the catalogue of now where a live one was given; before anything that looks into the catalogue.

        A comparison while nothing changed. Not to be called under the lock: whoever listens is told of a change.
        """
        if self._live is not None and self._live.catalog is not self._catalog:
            self._adopt_live_catalog()

    def _adopt_live_catalog(self) -> None:
        """Use the catalogue of the live one from now on."""
        raise NotImplementedError

    @property
    def filter(self) -> str:
        """The session's own filter."""
        return self._filter

    @property
    def base_dir(self) -> str:
        """The working folder: commands run there."""
        return self._base_dir

    @property
    def revision(self) -> int:
        """Another number after every change of what the session shows or has active."""
        self._sync_live_catalog()
        return self._revision

    @property
    def has_selector(self) -> bool:
        """Whether a selector decides what is worth showing."""
        return self._selector is not None

    # -- filters -----------------------------------------------------------------------------------------------------

    def _current_filters(self) -> tuple[str, ...]:
        return (self._filter, *self._bounds, *ambient_filters())

    def _passes_filters(self, skill: Skill, filters: tuple[str, ...]) -> bool:
        if not any(filters):
            return True
        return all(self._matches_filter(skill, pattern) for pattern in filters)

    def _matches_filter(self, skill: Skill, pattern: str) -> bool:
        """Whether a filter lets a skill through; its own virtual path always does, whatever characters that has."""
        path = "" if skill.is_inline else skill.virtual_path
        if pattern == path:
            return not is_none_filter(pattern)
        # An absolute pattern says where it begins; another begins at base_dir, so that folders above do not count.
        return is_filter_match(pattern, path if os.path.isabs(pattern) else self.filter_path(skill))

    def filter_path(self, skill: Skill) -> str:
        """The path that a relative filter is matched against: from ``base_dir`` where it lies there, ``""`` inline."""
        if skill.is_inline:
            return ""
        path = skill.virtual_path
        if not os.path.isabs(path):
            return path.strip("/")
        inside = os.path.relpath(path, self._base_dir).replace(os.sep, "/")
        return path if inside.startswith("..") else inside

    # -- listing -----------------------------------------------------------------------------------------------------

    def set_selector(self, selector: Selector | None) -> None:
        """Select with this from now on."""
        with self._lock:
            self._selector = selector
            self._revision += 1

    def candidates(self, query: str = "", under: str = "") -> tuple[Skill, ...]:
        """The skills worth showing for ``query``, by name: what the filter lets through and the selector picks."""
        check_text(query, "query")
        return ask_selector(self._selector, query, self.eligible(under), self._report_selector_error)

    async def acandidates(self, query: str = "", under: str = "") -> tuple[Skill, ...]:
        """The same, awaiting an asynchronous selector."""
        check_text(query, "query")
        return await ask_selector_async(self._selector, query, self.eligible(under), self._report_selector_error)

    def eligible(self, under: str = "") -> tuple[Skill, ...]:
        """Every skill that models may see and that the filter lets through, by name."""
        self._sync_live_catalog()
        filters = self._current_filters()
        return tuple(
            s for s in self._catalog.under(under) if self.is_for_models(s) and self._passes_filters(s, filters)
        )

    def is_for_models(self, skill: Skill) -> bool:
        """True when models are shown a skill: its file does not say otherwise, and nor does the host."""
        return skill.model_invocable and skill.name not in self._explicit_only

    def _report_selector_error(self, error: Exception) -> None:
        log_host_error("selector", error)
        self._events.emit("selector-failed", "", error=f"{type(error).__name__}: {error}")

    @measure_call()
    def index(self, query: str = "", under: str = "") -> str:
        """The candidates as lines of text for a prompt."""
        found = self.candidates(query, under)
        self._events.emit("listed", "", names=tuple(skill.name for skill in found), query=query)
        if not found:
            return "No skills available."
        return f"Available skills:\n{render_lines(map(make_entry, found))}"

    def _visible_names(self) -> list[str]:
        """The names of what the filter lets through, for whoever asked for another."""
        filters = self._current_filters()
        return [skill.name for skill in self._catalog if self._passes_filters(skill, filters)]


def make_filter_error(name: str, filters: tuple[str, ...]) -> SkillFilteredError:
    """The error for a skill that filters do not let through."""
    shown = ", ".join(repr(pattern) for pattern in filters if pattern) or "''"
    return SkillFilteredError(f"skill {name!r} is not available here (filter: {shown})")

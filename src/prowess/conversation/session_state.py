"""The state of one conversation: its catalogue, the filters over it, and the skills that are active."""

from __future__ import annotations

from copy import copy
from threading import RLock
from typing import TYPE_CHECKING, NamedTuple

from prowess.arguments import check_name
from prowess.conversation.catalog_cache import CatalogCache
from prowess.conversation.session_json import SavedListing, SessionBounds
from prowess.conversation.visibility import make_filter_error
from prowess.discovery.live import Live
from prowess.records import replace
from prowess.select.candidates import Candidates

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from prowess.conversation.activation import ActiveSkill
    from prowess.conversation.active_skills import ActiveSkills
    from prowess.conversation.catalog_diff import Refreshed
    from prowess.conversation.events import EventEmitter
    from prowess.conversation.session_json import SavedSession
    from prowess.conversation.visibility import Visibility
    from prowess.limits import Limits
    from prowess.model import Explanation
    from prowess.select.shown_list import ShownList
    from prowess.skills.catalog import Catalog
    from prowess.skills.skill import Skill


_MAX_SHOWN_LISTS = 8
"""How many listings a conversation remembers: a host may ask for another budget with each request."""


class EligibleSkills(NamedTuple):
    """The skills of a catalogue that a conversation may show to models, in their order and by name."""

    skills: tuple[Skill, ...]
    by_name: dict[str, Skill]


_ELIGIBLE: CatalogCache[EligibleSkills] = CatalogCache()


class SessionState:
    """The catalogue of one conversation, what it may see of it, and which skills are active.

    ``lock`` guards all three together, since every decision about a skill depends on all three. Files are read and
    listeners are called outside of it: either may take long, or call the session again from another thread.
    """

    def __init__(
        self,
        catalog: Catalog | Live,
        visibility: Visibility,
        active: ActiveSkills,
        events: EventEmitter,
        limits: Limits,
    ) -> None:
        self.lock = RLock()
        self._live = catalog if isinstance(catalog, Live) else None
        self.catalog = catalog.catalog if isinstance(catalog, Live) else catalog
        """The catalogue in use; ``follow_live_catalog`` brings it up to date."""
        self.visibility = visibility
        self.active = active
        self.revision = 0
        """Another number after every change of what the session shows or has active."""
        self._events = events
        self._limits = limits
        # What each listing of the conversation has shown, by its place and budget; never changed in place.
        self._shown: dict[tuple[str, int], ShownList] = {}

    def open_child(self, tools: Iterable[str] | None) -> SessionState:
        """Return the state of a sub-agent: this catalogue, the preloaded skills, a ceiling that ``tools`` lowers.

        The filters of now, also the ambient ones, hold for as long as the child lives: whoever runs the sub-agent may
        do so outside of the block that they came from.
        """
        self.follow_live_catalog()
        with self.lock:  # so that the catalogue, the filters and the active skills are of one moment
            child = copy(self)
            child.lock = RLock()
            child.active = self.active.open_child(tools)
            child._shown = {}  # noqa: SLF001 - the conversation of a sub-agent begins anew
            filters = dict.fromkeys(pattern for pattern in self.visibility.current_filters() if pattern)
            child.visibility = self.visibility._replace(fixed_filters=tuple(filters))
        return child

    # -- the catalogue -----------------------------------------------------------------------------------------------

    def follow_live_catalog(self) -> None:
        """Take over the present catalogue of a live one; to be called before anything looks into the catalogue.

        It costs a comparison while nothing changed. It must not be called under the lock, since listeners are told.
        """
        live = self._live  # kept, since another thread may switch to a catalogue that is not live
        if live is None or live.catalog is self.catalog:
            return
        with self.lock:
            # Looked up again under the lock: two threads must not take over two catalogues in the wrong order.
            if self._live is None or live.catalog is self.catalog:
                return
            report = self._replace_catalog(live.catalog)
        self._emit_refresh(report)

    def switch_catalog(self, catalog: Catalog) -> Refreshed:
        """Use another catalogue from now on and follow no live one; return what that changed."""
        with self.lock:
            self._live = None
            report = self._replace_catalog(catalog)
        self._emit_refresh(report)
        return report

    def _replace_catalog(self, catalog: Catalog) -> Refreshed:
        report = self.active.switch_catalog(self.catalog, catalog)
        self.catalog = catalog
        self.revision += 1
        return report

    def _emit_refresh(self, report: Refreshed) -> None:
        self._events.emit("refreshed", "", added=report.added, removed=report.removed, changed=report.changed)

    # -- finding a skill ---------------------------------------------------------------------------------------------

    def resolve_name(self, name: str) -> str:
        """Return the name that the catalogue has for a skill that may be called by the name in its file.

        A name that no skill has is returned as it is. It must not be called under the lock, since it may take over a
        new catalogue. Raises ``SourceError`` for a name that is no text.
        """
        check_name(name, "pass skill.name")
        self.follow_live_catalog()
        with self.lock:
            skill = None if name in self.active.entries else self.catalog.get(name)
        return name if skill is None else skill.name

    def find_visible(self, name: str) -> Skill | None:
        """Return the skill of that name that the filters let through, ``None`` where there is none.

        It is the skill of the catalogue, or the one that was loaded where an active skill has left the catalogue.
        """
        name = self.resolve_name(name)
        filters = self.visibility.current_filters()
        with self.lock:
            # A skill that has left the catalogue stays usable while it is active.
            active = self.active.entries.get(name)
            skill = active.loaded.skill if active is not None and active.gone else self.catalog.get(name)
            return skill if skill is not None and self.visibility.passes_filters(skill, filters) else None

    def require_visible(self, name: str) -> Skill:
        """Return what ``find_visible`` finds; raise ``UnknownSkillError`` or ``SkillFilteredError`` for ``None``."""
        skill = self.find_visible(name)
        if skill is not None:
            return skill
        with self.lock:
            self.require_known(name)
        raise make_filter_error(name, self.visibility.current_filters())

    def require_known(self, name: str) -> Skill:
        """Return the skill of a resolved name, also one that filters hide; to be called under the lock.

        Raises ``UnknownSkillError``, which lists the visible names.
        """
        active = self.active.entries.get(name)
        if active is not None and active.gone:
            return active.loaded.skill
        skill = self.catalog.get(name)
        if skill is None:
            filters = self.visibility.current_filters()
            names = [skill.name for skill in self.catalog if self.visibility.passes_filters(skill, filters)]
            raise self.catalog.make_unknown_error(name, names, self._limits.max_listed_names)
        return skill

    def hide_from_models(self, names: Iterable[str]) -> None:
        """Keep the skills of these names from models, each by the name that the catalogue has for it."""
        skills = {name: self.catalog.get(name) for name in names}
        resolved = frozenset(name if skill is None else skill.name for name, skill in skills.items())
        self.visibility = self.visibility._replace(explicit_only=resolved)

    # -- what is visible ---------------------------------------------------------------------------------------------

    def eligible_skills(self, under: str) -> Candidates:
        """Return every skill below ``under`` that models may see and that the filters let through, by name."""
        self.follow_live_catalog()
        sees, filters, catalog = self.visibility, self.visibility.current_filters(), self.catalog
        if under:
            return Candidates(_find_eligible(catalog.under(under), sees, filters), catalog)
        # Looking at each of 10,000 skills takes longer than searching them, so that sessions share what was found.
        key = (sees.explicit_only, filters, sees.base_dir) if any(filters) else sees.explicit_only
        kept = _ELIGIBLE.find(catalog, key)
        if kept is None:
            skills = _find_eligible(catalog.skills, sees, filters)
            kept = (EligibleSkills(skills, {skill.name: skill for skill in skills}),)
            _ELIGIBLE.store(catalog, key, kept[0], self._limits.max_listings)
        return Candidates(kept[0].skills, catalog, kept[0].by_name)

    def explain_hidden(self, skill: Skill) -> str:
        """Return why ``eligible_skills`` leaves a skill out; ``""`` for one that it has."""
        sees = self.visibility
        if not skill.model_invocable:
            return "its file keeps it from models: disable-model-invocation is set"
        if skill.name in sees.explicit_only:
            return "the host keeps it for explicit calls: explicit_only names it"
        return "" if sees.passes_filters(skill, sees.current_filters()) else "a filter hides it"

    def explain(self, name: str) -> Explanation:
        """Return what ``Catalog.explain`` returns, and whether this conversation hides the skill or has it active."""
        name = self.resolve_name(name)
        catalog = self.catalog
        explanation, skill = catalog.explain(name), catalog.get(name)
        if skill is None:
            return explanation
        hidden = self.explain_hidden(skill)
        here = [f"not shown in this conversation: {hidden}"] if hidden and explanation.visible else []
        here += ["active in this conversation"] if skill.name in self.visible_entries() else []
        return replace(explanation, visible=not hidden, reasons=(*explanation.reasons, *here))

    def visible_entries(self) -> dict[str, ActiveSkill]:
        """Return the active skills that the filters let through, by name."""
        self.follow_live_catalog()
        filters = self.visibility.current_filters()
        with self.lock:
            return {
                name: entry
                for name, entry in self.active.entries.items()
                if self.visibility.passes_filters(entry.loaded.skill, filters)
            }

    def make_listing_key(self) -> Hashable:
        """Return what a listing depends on besides the catalogue, the selector and the grants.

        These are the filters, the active skills, and the instructions of the preloaded ones.
        """
        sees, visible = self.visibility, sorted(self.visible_entries().items())
        preloaded = tuple(
            (entry.loaded.skill.location, entry.loaded.instructions, entry.outputs, entry.written)
            for _, entry in visible
            if entry.preloaded
        )
        active = tuple(name for name, _ in visible)
        return sees.current_filters(), sees.base_dir, active, preloaded, sees.explicit_only

    def set_filter(self, pattern: str) -> list[str]:
        """Replace the session's own filter, and end the skills that it hides; return their names, sorted."""
        with self.lock:
            sees = self.visibility = self.visibility._replace(filter=pattern)
            # Ambient filters are left out: they hold for the caller's block only, and this ends skills for good.
            filters = (pattern, *sees.fixed_filters)
            ended = self.active.deactivate_where(lambda skill: not sees.passes_filters(skill, filters))
            self.revision += 1
        return ended

    # -- what was shown ----------------------------------------------------------------------------------------------

    def read_shown(self, place: str, budget: int) -> ShownList | None:
        """Return the list of a place and a budget; ``None`` where nothing was shown there."""
        return self._shown.get((place, budget))

    def read_latest_shown(self, place: str) -> ShownList | None:
        """Return the list of a place that changed last, whatever its budget; ``None`` where there is none."""
        if not self._shown:
            return None
        return next((shown for (other, _), shown in reversed(self._shown.items()) if other == place), None)

    def replace_shown(self, place: str, budget: int, old: ShownList | None, new: ShownList) -> bool:
        """Put ``new`` in the place of ``old``; return ``False``, and change nothing, when another stands there."""
        with self.lock:
            if self._shown.get((place, budget)) is not old:
                return False
            others = [item for item in self._shown.items() if item[0] != (place, budget)]
            self._shown = {**dict(others[1 - _MAX_SHOWN_LISTS :]), (place, budget): new}
            self.revision += 1
        return True

    def forget_shown(self) -> None:
        """Forget what was shown: the next request is the first one again."""
        with self.lock:
            self._shown = {}
            self.revision += 1

    # -- saving and restoring ----------------------------------------------------------------------------------------

    def collect_save(self) -> tuple[SessionBounds, dict[str, Skill], tuple[SavedListing, ...]]:
        """Return what a save holds of one moment: the bounds, the active skills by name, and what was shown."""
        self.follow_live_catalog()
        # Under the lock only references are taken; hashing the skills, which reads their files, comes after it.
        with self.lock:
            active = {name: entry.loaded.skill for name, entry in self.active.entries.items()}
            sees, explicit_only = self.visibility, tuple(sorted(self.visibility.explicit_only))
            ceiling, max_active = self.active.ceiling, self.active.max_active
            shown = tuple(SavedListing.of(*key, shown) for key, shown in self._shown.items())
        return SessionBounds(ceiling, max_active, sees.filter, sees.fixed_filters, explicit_only), active, shown

    def apply_save(self, saved: SavedSession) -> None:
        """Take the bounds of a save and what was shown, and end preloaded skills that were no longer active in it."""
        active, bounds = saved.active, saved.bounds
        self._shown = {(listing.place, listing.budget): listing.to_shown() for listing in saved.shown}
        self.visibility = self.visibility._replace(fixed_filters=bounds.filters)
        self.hide_from_models(bounds.explicit_only)  # unchecked: a skill that was saved may be gone since
        self.active.entries = {name: entry for name, entry in self.active.entries.items() if name in active}
        self.active.set_ceiling(bounds.ceiling)


def _find_eligible(skills: Iterable[Skill], sees: Visibility, filters: tuple[str, ...]) -> tuple[Skill, ...]:
    """Return the skills that models may see and that the filters let through, in their order."""
    # Fast path: most conversations have no filter, which is seen once and not for each of 10,000 skills.
    shown = [skill for skill in skills if sees.is_for_models(skill)]
    return tuple([skill for skill in shown if sees.passes_filters(skill, filters)] if any(filters) else shown)

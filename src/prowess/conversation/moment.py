"""A frozen view of one conversation: each call takes one, and everything below reads it; and what a reload changes."""

from __future__ import annotations

import os
from collections import OrderedDict
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar
from weakref import WeakKeyDictionary, ref

from prowess.arguments import check_name, check_text, check_texts
from prowess.conversation.tool_rules import ToolCeiling
from prowess.errors import SkillFilteredError
from prowess.files.paths import relative_path
from prowess.select.auto import AutoSelector, ShownReason
from prowess.select.selectors import Candidates
from prowess.text.globs import is_filter_match, is_none_filter

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from prowess.conversation.acting.scripts import Scripts
    from prowess.conversation.acting.trust import Trust, TrustPolicy
    from prowess.conversation.activation import ActiveSkill
    from prowess.limits import Limits
    from prowess.select.auto import ShownList
    from prowess.select.selectors import Selector
    from prowess.settings import Settings
    from prowess.skills.catalog import Catalog
    from prowess.skills.explanation import Explanation
    from prowess.skills.skill import Skill


T = TypeVar("T")

_DEFAULT_SELECTOR = AutoSelector()
"""What ``"auto"`` stands for; it has no state, so that all sessions share it."""
AMBIENT_FILTERS: ContextVar[tuple[str, ...]] = ContextVar("prowess_skill_filter", default=())
"""Every filter around the caller, outermost first; it holds for one thread or task."""


@contextmanager
def skill_filter(pattern: str) -> Iterator[None]:
    """Narrow every session used inside the block to the skills that pass ``pattern``; nested blocks narrow further.

    It holds for the thread or task that enters the block, and for no other. Raises ``SourceError``, before the block
    begins, for a pattern that is not a string.
    """
    check_text(pattern, "pattern")
    # An empty pattern lets everything through, so it need not be matched for each skill.
    token = AMBIENT_FILTERS.set((*AMBIENT_FILTERS.get(), pattern) if pattern else AMBIENT_FILTERS.get())
    try:
        yield
    finally:
        AMBIENT_FILTERS.reset(token)


def current_skill_filter() -> str:
    """Return the innermost ambient filter, ``""`` outside of any."""
    return (AMBIENT_FILTERS.get() or ("",))[-1]


class CatalogCache(Generic[T]):
    """Keeps values that were made from catalogues, by everything else that they depend on.

    All sessions over one catalogue share it. What was made from a catalogue goes with it, as the references are weak;
    so no value may refer to its catalogue.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_catalog: WeakKeyDictionary[Catalog, OrderedDict[Hashable, T]] = WeakKeyDictionary()

    def find(self, catalog: Catalog, key: Hashable) -> T | None:
        """Return the value for a catalogue and a key, or ``None``."""
        with self._lock:
            values = self._by_catalog.get(catalog)
            if values is None or key not in values:
                return None
            values.move_to_end(key)
            return values[key]

    def store(self, catalog: Catalog, key: Hashable, value: T, limit: int) -> None:
        """Keep a value. Each catalogue keeps the ``limit`` values that were used last."""
        with self._lock:
            values = self._by_catalog.setdefault(catalog, OrderedDict())
            values[key] = value
            while len(values) > limit:
                values.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a new catalogue changed, by name; ``vanished`` are the active skills that it no longer has."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()


# Every session of a server sees the same reload, so the last difference to each new catalogue is kept: it is computed
# once, not by each of 10,000 sessions.
_DIFFERENCES: CatalogCache[Refreshed] = CatalogCache()


def compare_catalogs(old: Catalog, new: Catalog, active: Mapping[str, ActiveSkill]) -> Refreshed:
    """Return what differs between two catalogues, and between the new one and the active skills."""
    # Weak, since the old catalogue may not live on because of this.
    between = _DIFFERENCES.find(new, key := ref(old))
    if between is None:
        before, after = set(old.names), set(new.names)
        changed = tuple(name for name in before & after if may_differ(old[name], new[name]))
        between = Refreshed(tuple(sorted(after - before)), tuple(sorted(before - after)), changed)
        _DIFFERENCES.store(new, key, between, limit=1)
    # An active skill may have been loaded from a catalogue before ``old``, or after its file was edited.
    edited = {
        name
        for name, entry in active.items()
        if name in new and not entry.gone and may_differ(entry.loaded.skill, new[name])
    }
    vanished = sorted(name for name in active if name not in new)
    return replace(between, changed=tuple(sorted(edited.union(between.changed))), vanished=tuple(vanished))


def may_differ(old: Skill, new: Skill) -> bool:
    """Return whether two skills with the same name may differ; files are compared by their state, and not read."""
    if old is new:
        return False
    # An inline skill has no file whose state could be compared, but its text is in memory.
    if old.is_inline and new.is_inline:
        return old.frontmatter != new.frontmatter or old.read_body() != new.read_body()
    return (old.location, old.state) != (new.location, new.state)


# Looking at each of 10,000 skills takes longer than searching them, so that sessions share what was found.
_ELIGIBLE: CatalogCache[tuple[tuple[Skill, ...], Mapping[str, Skill]]] = CatalogCache()


@dataclass(frozen=True)  # without slots, because what was found out is kept
class Moment:
    """What one conversation sees and has active. A session replaces the whole with every change.

    Whoever has a moment needs no lock, and sees neither a reload nor what another thread does.
    """

    catalog: Catalog
    limits: Limits
    base_dir: str
    """The working folder, from which relative filters are matched."""
    filter: str = ""
    """The session's own filter."""
    fixed_filters: tuple[str, ...] = ()
    """Filters that hold besides the session's own and that no call replaces: those of a save, or of a parent."""
    ambient_filters: tuple[str, ...] = ()
    """The filters that surround the caller."""
    allowed: frozenset[str] | None = None
    """The names of the only skills that the conversation has; ``None``: of all."""
    scope_filter: str = ""
    """The filter of the conversation's ``Scope``. A save does not have it: the host decides about it anew."""
    explicit_only: frozenset[str] = frozenset()
    """The names of the skills that the host keeps from models."""
    off: frozenset[str] = frozenset()
    """The names of the skills that the conversation's ``Scope`` switches off."""
    available_tools: frozenset[str] | None = None
    """The names of all tools of the agent besides skill tools, for skills that need some; ``None``: unknown."""
    ceiling: ToolCeiling = field(default_factory=ToolCeiling)
    """The most that the host allows, and whether skills may approve any of it."""
    max_active: int = 0
    """How many skills may be active besides the preloaded ones; 0 means no limit."""
    selector: Selector | Literal["auto"] | None = None
    """What chooses the skills that a model is shown; ``"auto"``: the default, where one counts."""
    active: Mapping[str, ActiveSkill] = field(default_factory=dict)
    """What is remembered of each active skill, by name, also of those that a filter hides."""
    shown: Mapping[tuple[str, int], ShownList] = field(default_factory=dict)
    """What each listing of the conversation has shown, by its place and budget."""
    grants: Hashable = None
    """The trust and its state; equal as long as no grant has changed."""

    # -- filters -----------------------------------------------------------------------------------------------------

    @cached_property
    def filters(self) -> tuple[str, ...]:
        """Every filter that holds for the caller."""
        return (self.filter, self.scope_filter, *self.fixed_filters, *self.ambient_filters)

    def passes(self, skill: Skill, filters: tuple[str, ...] | None = None) -> bool:
        """Return whether a skill is allowed, and all filters let it through, or all of those that are given."""
        if (self.allowed is not None or self.off) and not self.is_allowed(skill.name):
            return False
        filters = self.filters if filters is None else filters
        # Most conversations have no filter: the virtual path of each skill is then not computed.
        return not any(filters) or all(self._matches_filter(skill, pattern) for pattern in filters)

    def _matches_filter(self, skill: Skill, pattern: str) -> bool:
        path = "" if skill.is_inline else skill.virtual_path
        # A pattern that equals the path lets the skill through, even if the path has characters special to patterns.
        if pattern == path:
            return not is_none_filter(pattern)
        # An absolute pattern says where it begins. A relative one begins at base_dir, so folders above do not count.
        if os.path.isabs(pattern):
            return is_filter_match(pattern.replace(os.sep, "/"), path.replace(os.sep, "/"))
        if not os.path.isabs(path):
            return is_filter_match(pattern, path.strip("/"))
        inside = relative_path(path, self.base_dir)
        return is_filter_match(pattern, (path if inside.startswith("..") else inside).replace(os.sep, "/"))

    # -- one skill ---------------------------------------------------------------------------------------------------

    def resolve_name(self, name: str) -> str:
        """Return the name that the catalogue has for a skill that may be called by the name in its file.

        A name that no skill has is returned as it is. Raises ``SourceError`` for a name that is not a string.
        """
        check_name(name, "pass skill.name")
        # Only a name with a colon can be another spelling.
        skill = self.catalog.get(name) if ":" in name and name not in self.active else None
        return name if skill is None else skill.name

    def find(self, name: str) -> Skill | None:
        """Return the skill with that name that the filters let through, ``None`` where there is none.

        It is the skill of the catalogue, or the one that was loaded where an active skill has left the catalogue.
        """
        skill = self._find_known(self.resolve_name(name))
        return skill if skill is not None and self.passes(skill) else None

    def _find_known(self, name: str) -> Skill | None:
        # A skill that has left the catalogue stays usable while it is active.
        active = self.active.get(name)
        return active.loaded.skill if active is not None and active.gone else self.catalog.get(name)

    def require(self, name: str) -> Skill:
        """Return what ``find`` finds; raise ``UnknownSkillError`` or ``SkillFilteredError`` for ``None``."""
        skill = self.find(name)
        if skill is None:
            self.require_known(name)
            raise make_filter_error(name, self.filters)
        return skill

    def require_known(self, name: str) -> Skill:
        """Return the skill of a resolved name, also one that filters hide.

        Raises ``UnknownSkillError``, which lists the visible names.
        """
        skill = self._find_known(name)
        if skill is None or not self.is_allowed(name):  # whoever may not have it must not learn that it exists
            names = [skill.name for skill in self.catalog if self.passes(skill)]
            raise self.catalog.make_unknown_error(name, names, self.limits.max_listed_names)
        return skill

    def pin_state(self, skill: Skill) -> Skill:
        """Return a skill to read files from: the one that was loaded, if it is active and its files are elsewhere.

        Its source may have changed since, and files of another state must not be beside its instructions.
        """
        active = self.active.get(skill.name)
        return skill if active is None or active.loaded.skill.is_local else active.loaded.skill

    def is_allowed(self, name: str) -> bool:
        """Return whether ``allowed`` has a skill, whatever filters say of it."""
        if self.off and self.resolve_name(name) in self.off:
            return False
        return self.allowed is None or name in self.allowed or self.resolve_name(name) in self.allowed

    def is_for_models(self, skill: Skill) -> bool:
        """Return whether models are shown a skill: neither its file nor the host keeps it for explicit calls.

        A skill that needs a tool which the agent does not have is not for models either.
        """
        return not self.find_absent(skill) and skill.model_invocable and skill.name not in self.explicit_only

    def find_absent(self, skill: Skill) -> tuple[str, ...]:
        """Return what a skill needs and the agent does not have, in words; ``()`` where that is unknown."""
        return () if self.available_tools is None else skill.requires.find_absent(self.available_tools)

    def explain_hidden(self, skill: Skill) -> str:
        """Return why ``eligible`` leaves a skill out; ``""`` for one that it has."""
        if not skill.model_invocable:
            return "its file keeps it from models: disable-model-invocation is set"
        if skill.name in self.explicit_only:
            return "the host keeps it for explicit calls: explicit_only names it"
        if skill.name in self.off:
            return "switched off"
        if not self.is_allowed(skill.name):
            return "not among the allowed skills"
        if absent := self.find_absent(skill):
            return f"it needs {' and '.join(absent)}, which the agent does not have"
        return "" if self.passes(skill) else "a filter hides it"

    def explain(self, name: str) -> Explanation:
        """Return what ``Catalog.explain`` returns, and whether this conversation hides the skill or has it active."""
        name = self.resolve_name(name)
        explanation, skill = self.catalog.explain(name), self.catalog.get(name)
        if skill is None:
            return explanation
        hidden = self.explain_hidden(skill)
        here = [f"not shown in this conversation: {hidden}"] if hidden and explanation.visible else []
        here += ["active in this conversation"] if skill.name in self.visible_active else []
        return replace(explanation, visible=not hidden, reasons=(*explanation.reasons, *here))

    # -- many skills -------------------------------------------------------------------------------------------------

    @cached_property
    def visible_active(self) -> Mapping[str, ActiveSkill]:
        """The active skills that the filters let through, sorted by name."""
        return {name: entry for name, entry in sorted(self.active.items()) if self.passes(entry.loaded.skill)}

    @cached_property
    def required(self) -> Mapping[str, ShownReason]:
        """The skills that every listing has, by name, each with its reason: the active and preloaded ones."""
        entries = self.visible_active.items()
        return {name: ShownReason("preloaded" if entry.preloaded else "active") for name, entry in entries}

    def eligible(self, under: str = "") -> Candidates:
        """Return every skill below ``under`` that models may see and that the filters let through, by name."""
        if under:
            return Candidates(self._find_eligible(self.catalog.under(under)), self.catalog)
        key = (*self._bounds, (self.filters, self.base_dir) if any(self.filters) else ())
        kept = _ELIGIBLE.find(self.catalog, key)
        if kept is None:
            skills = self._find_eligible(self.catalog.skills)
            kept = (skills, {skill.name: skill for skill in skills})
            _ELIGIBLE.store(self.catalog, key, kept, self.limits.max_listings)
        return Candidates(kept[0], self.catalog, kept[1])

    def _find_eligible(self, skills: Iterable[Skill]) -> tuple[Skill, ...]:
        # As ``is_for_models`` says, without a call for each of 10,000 skills; and most conversations have no filter.
        shown = [skill for skill in skills if skill.model_invocable and skill.name not in self.explicit_only]
        if self.available_tools is not None:
            shown = [skill for skill in shown if not self.find_absent(skill)]
        is_bounded = self.allowed is not None or bool(self.off) or any(self.filters)
        return tuple([skill for skill in shown if self.passes(skill)] if is_bounded else shown)

    @property
    def _bounds(self) -> tuple[Hashable, ...]:
        """What decides which skills models see, besides filters."""
        return self.explicit_only, self.allowed, self.off, self.available_tools

    @cached_property
    def listing_key(self) -> Hashable:
        """What a listing depends on besides the catalogue and the selector: equal keys mean equal listings.

        These are the filters, the active skills, the instructions of the preloaded ones, and the grants.
        """
        preloaded = tuple(
            (entry.loaded.skill.location, entry.loaded.instructions, entry.outputs, entry.written)
            for entry in self.visible_active.values()
            if entry.preloaded
        )
        return self.filters, self.base_dir, *self._bounds, tuple(self.visible_active), preloaded, self.grants

    def selector_where(self, *, by_default: bool) -> Selector | None:
        """Return the selector that counts in a place, which selects by default or not."""
        default = _DEFAULT_SELECTOR if by_default else None
        return default if isinstance(self.selector, str) else self.selector

    def has_room(self) -> bool:
        """Return whether one more skill may be active."""
        return self.max_active <= 0 or sum(not each.preloaded for each in self.active.values()) < self.max_active

    # -- the next moment ---------------------------------------------------------------------------------------------

    def with_active(self, name: str, entry: ActiveSkill | None) -> Moment:
        """Return the moment when a skill is active as ``entry`` says, or is not (``None``)."""
        active = dict(self.active)  # copied in one step: a conversation may have a thousand active skills
        active.pop(name, None)
        if entry is not None:
            active[name] = entry  # the latest is the last
        return replace(self, active=active)

    def with_catalog(self, new: Catalog, report: Refreshed) -> Moment:
        """Return the moment with another catalogue, in which active skills are gone, stale, or as they were."""
        active = {}
        for name, entry in self.active.items():
            gone = name not in new
            # A skill that comes back after it was gone is loaded again, since nothing was compared meanwhile.
            stale = entry.stale or name in report.changed or entry.gone
            active[name] = entry._replace(gone=gone, stale=stale and not gone)
        return replace(self, catalog=new, active=active)

    def narrow(self, allowed: frozenset[str]) -> Moment:
        """Return the moment in which only skills of these names are allowed, of those that are."""
        return replace(self, allowed=allowed if self.allowed is None else allowed & self.allowed)

    def with_ceiling(self, ceiling: ToolCeiling) -> Moment:
        """Return the moment when each active skill has the tools that another ceiling leaves."""
        active = {name: entry.with_ceiling(ceiling) for name, entry in self.active.items()}
        return replace(self, ceiling=ceiling, active=active)

    def with_explicit_only(self, names: Iterable[str]) -> Moment:
        """Return the moment when these skills are kept from models, each by the name that the catalogue has."""
        return replace(self, explicit_only=frozenset(map(self.resolve_name, names)))


def make_filter_error(name: str, filters: tuple[str, ...]) -> SkillFilteredError:
    """Return the error for a skill that ``filters`` do not let through."""
    patterns = [pattern for pattern in filters if pattern]
    shown = ", ".join(map(repr, patterns)) or "''"
    return SkillFilteredError(f"skill {name!r} is not available here (filter: {shown})", filter=", ".join(patterns))


class ScopeContext(NamedTuple):
    """Whose conversation a scope is for."""

    key: str
    """The key of the conversation; ``""`` for one that has no key."""
    framework: Any = None
    """What the framework passes to its tools, such as Pydantic AI's ``RunContext``; ``None`` where nobody calls."""


@dataclass(frozen=True)
class Scope:
    """Which skills a conversation has, and what of them may run; ``None`` and ``""`` leave that to the host's default.

    ``allowed``: the names of the only skills that it has. ``off``: the names of skills that it does not have; a name
    that no skill has means nothing. ``filter``: a pattern over their paths. ``trust``: a
    ``Trust``, or the name of a policy. ``scripts``: how scripts run; ``False``: they do not.
    """

    allowed: Iterable[str] | None = None
    filter: str = ""
    trust: Trust | TrustPolicy | None = None
    scripts: Scripts | bool | None = None
    off: Iterable[str] = ()

    @classmethod
    def from_settings(cls, settings: Settings) -> Scope:
        """Return the scope that settings describe: the named set in use, without the skills that are switched off."""
        in_use = settings.text("set")
        return cls(settings.sets[in_use] if in_use else None, off=settings.names("off"))

    def __post_init__(self) -> None:
        """Check what the host has passed; raise ``SourceError`` for a name in place of a list of names."""
        if self.allowed is not None:
            object.__setattr__(self, "allowed", check_texts(self.allowed, "allowed"))
        check_text(self.filter, "filter")
        object.__setattr__(self, "off", check_texts(self.off, "off"))

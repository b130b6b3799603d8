"""One conversation's skills: which are active, which tools they bring, what the filter lets through.

Safe from several threads: state changes under one lock, files are read outside of it, and every call works with the
ambient filter that surrounded it when it began.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.errors import (
    Issue,
    MaxActiveError,
    SkillError,
    SkillFilteredError,
    SkillNotActiveError,
    UnknownSkillError,
)
from prowess.library.body import LoadedSkill
from prowess.limits import DEFAULT_LIMITS
from prowess.runtime.ambient import ambient_filters
from prowess.runtime.called import called, parse_call
from prowess.runtime.events import Event
from prowess.runtime.origins import tagged
from prowess.runtime.saved import as_json, digest_of, from_json
from prowess.select.choose import achoose, choose
from prowess.spec.commands import Expanded, may_have_commands
from prowess.spec.globs import passes
from prowess.spec.hidden import hidden_points
from prowess.spec.render import listed
from prowess.spec.tool_patterns import granted, judged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prowess.library.catalog import Catalog
    from prowess.library.skill import Skill
    from prowess.limits import Limits
    from prowess.runtime.events import Kind, OnEvent
    from prowess.runtime.expand import Expander
    from prowess.runtime.processes import Finished
    from prowess.runtime.trust import Trust
    from prowess.select.selectors import Selector
    from prowess.spec.commands import Span
    from prowess.spec.tool_patterns import Answer

_ALREADY = "it was active already"
_AS_IT_IS = Expanded("")
_TOLD: ContextVar[list[str] | None] = ContextVar("prowess_told", default=None)


@dataclass(frozen=True, slots=True)
class Activation:
    """A skill that is active now, its instructions, and the tools that it brings.

    ``note`` says what the caller should know: that it was active already, has vanished, or has changed since.
    """

    skill: Skill
    instructions: str
    added_tools: tuple[str, ...]
    note: str = ""
    outputs: tuple[Span, ...] = ()
    """Where the instructions hold what a command printed: data, never looked at again."""
    issues: tuple[Issue, ...] = ()
    """Commands that did not run, or failed."""


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a new catalogue changed, by name; ``vanished`` are the active skills that it no longer has."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()


class _Active(NamedTuple):
    loaded: LoadedSkill
    tools: tuple[str, ...]
    outputs: tuple[Span, ...] = ()
    issues: tuple[Issue, ...] = ()
    preloaded: bool = False
    stale: bool = False
    gone: bool = False
    unrun: bool = False
    """Its commands were left for whoever reads the text."""

    @property
    def is_ready(self) -> bool:
        """Whether activating again gives what is here."""
        return not self.stale and not self.unrun


class Session:
    """The active skills of one conversation over one catalogue.

    ``tools``: the most that the host allows (``None``: no ceiling, ``[]``: nothing). ``max_active``: 0 is no limit;
    preloaded skills do not count. ``filter``: a pattern over virtual paths, which are taken relative to ``base_dir``
    (the working folder). ``trust``: whose commands and scripts may run; without it, nothing does.
    ``on_event`` is called with every ``Event``, outside of any lock.
    """

    def __init__(  # noqa: PLR0917 - the public signature
        self,
        catalog: Catalog,
        tools: Iterable[str] | None = None,
        max_active: int = 0,
        selector: Selector | None = None,
        filter: str = "",  # noqa: A002 - the public signature
        base_dir: str | os.PathLike[str] | None = None,
        trust: Trust | None = None,
        *,
        limits: Limits | None = None,
        on_event: OnEvent | None = None,
    ) -> None:
        self._lock = RLock()
        self._catalog = catalog
        self._ceiling = None if tools is None else tuple(tools)
        self._max_active = max_active
        self._selector = selector
        self._filter = filter
        self._base = os.path.abspath(os.fspath(base_dir) if base_dir is not None else os.getcwd())
        self._trust = trust
        self._limits = limits
        self._on_event = on_event
        self._active: dict[str, _Active] = {}
        for skill in catalog:
            if skill.preload:
                self._preload(skill)

    def _preload(self, skill: Skill) -> None:
        """Active from the start, under the name that the catalogue has; one that cannot be loaded is left out."""
        try:
            loaded, found = self._prepared(skill)
        except SkillError as error:
            self._tell("refused", skill.name, code=error.code)
            return
        tools = granted(loaded.skill.allowed_tools, self._ceiling)
        self._active[skill.name] = _Active(loaded, tools, found.outputs, found.issues, preloaded=True)

    def __repr__(self) -> str:
        """How many skills, which are active."""
        return f"<Session of {len(self._catalog)} skills, active: {', '.join(self.active_skills) or 'none'}>"

    # -- what there is -----------------------------------------------------------------------------------------------

    @property
    def catalog(self) -> Catalog:
        return self._catalog

    @property
    def filter(self) -> str:
        """The session's own filter."""
        return self._filter

    @property
    def trust(self) -> Trust | None:
        """Whose commands and scripts may run; ``None``: nobody's."""
        return self._trust

    @property
    def base_dir(self) -> str:
        """The working folder: commands run there."""
        return self._base

    @property
    def limits(self) -> Limits:
        return self._limits or DEFAULT_LIMITS

    @property
    def max_resource_bytes(self) -> int:
        """The most that reading a file gives, unless a call says otherwise."""
        return (self._limits or DEFAULT_LIMITS).max_resource_bytes

    @property
    def active_skills(self) -> tuple[str, ...]:
        """The names of the active skills, sorted; what the filter hides is not among them."""
        return tuple(sorted(self._visible()))

    @property
    def active_tools(self) -> tuple[str, ...]:
        """The tools that the active skills bring, each once, sorted."""
        return tuple(sorted({tool for entry in self._visible().values() for tool in entry.tools}))

    def _visible(self) -> dict[str, _Active]:
        filters = self._filters()
        with self._lock:
            return {name: entry for name, entry in self._active.items() if self._passes(entry.loaded.skill, filters)}

    def allows(self, tool: str, command: str | None = None) -> Answer:
        """Whether the active skills pre-approve a call: ``allowed``, ``refused``, or ``not-mentioned`` by any.

        ``refused``: beyond the ceiling, or mentioned and not covered; a command with a shell operator, a substitution
        or a line break is never covered by a pattern.
        """
        if self._ceiling is not None and judged(tool, command, self._ceiling) != "allowed":
            return "refused"
        return judged(tool, command, self.active_tools)

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

    def is_available(self, name: str) -> bool:
        """Whether a skill of that name exists, or is active still, and the filter lets it through."""
        return self.available(name) is not None

    def available(self, name: str) -> Skill | None:
        """That skill, or ``None``."""
        filters = self._filters()
        with self._lock:
            active = self._active.get(name)
            found = active.loaded.skill if active is not None and active.gone else self._catalog.get(name)
            return found if found is not None and self._passes(found, filters) else None

    def set_filter(self, pattern: str) -> tuple[str, ...]:
        """Filter from now on; the names of the skills that this deactivated, sorted."""
        with self._lock:
            self._filter = pattern
            ended = sorted(n for n, entry in self._active.items() if not self._passes(entry.loaded.skill, (pattern,)))
            for name in ended:
                del self._active[name]
        for name in ended:
            self._tell("deactivated", name, reason="filter", filter=pattern)
        return tuple(ended)

    # -- activation --------------------------------------------------------------------------------------------------

    def activate(self, name: str, filter: str | None = None) -> Activation:  # noqa: A002 - the public signature
        """The instructions of a skill, and the tools that it brings. ``filter`` replaces the session's for this call.

        Activating again gives what was loaded the first time. Raises ``UnknownSkillError``, ``SkillFilteredError``,
        ``MaxActiveError``, or whatever reading the file raises.
        """
        ambient = ambient_filters()
        try:
            return self._activate(name, filter, ambient)
        except SkillError as error:
            self._tell("refused", name, code=error.code)
            raise

    def _admit(self, name: str, skill: Skill, instead: str | None, ambient: tuple[str, ...]) -> None:
        """Raise unless the filters of now let the skill through; under the lock."""
        filters = (self._filter if instead is None else instead, *ambient)
        if not self._passes(skill, filters):
            raise SkillFilteredError(f"skill {name!r} is not available here (filter: {_shown(filters)})")

    def _activate(
        self, name: str, instead: str | None, ambient: tuple[str, ...], said: str = "", *, run: bool = True
    ) -> Activation:
        with self._lock:
            catalog = self._catalog
            skill = self._known(name)
            self._admit(name, skill, instead, ambient)
            active = self._active.get(name)
            if active is not None and (active.is_ready or not (run or active.stale)):
                return _again(active)
            if active is None:
                self._room_for(name)
        loaded, found = self._prepared(skill, said) if run else (_loaded(skill), _AS_IT_IS)
        with self._lock:  # whatever happened while the file was read counts
            raced = self._active.get(name)
            if raced is not None and raced.is_ready:
                return _again(raced)
            now = self._catalog.get(name)
            self._admit(name, now or skill, instead, ambient)
            if raced is None:
                self._room_for(name)
            entry = _Active(
                loaded,
                granted(loaded.skill.allowed_tools, self._ceiling),
                found.outputs,
                found.issues,
                preloaded=raced is not None and raced.preloaded,
                stale=self._catalog is not catalog and now is not None and _changed(loaded.skill, now),
                gone=now is None,
                unrun=not run and may_have_commands(loaded.instructions),
            )
            self._active[name] = entry
        if self._on_event is not None:
            hidden = {"issues": ("hidden-text",)} if hidden_points(loaded.instructions) else {}
            self._tell("activated", name, location=skill.location, tools=entry.tools, **hidden)
        note = "it has changed since it was loaded before" if raced is not None and raced.stale else ""
        return Activation(loaded.skill, loaded.instructions, entry.tools, note, found.outputs, found.issues)

    def _prepared(self, skill: Skill, arguments: str = "") -> tuple[LoadedSkill, Expanded]:
        """A skill with its instructions, their commands run if it is trusted."""
        loaded = _loaded(skill)
        if not may_have_commands(loaded.instructions):
            return loaded, _AS_IT_IS
        found = self._expander(skill).expanded(
            skill, lambda one: one.load().instructions if one is not skill else loaded.instructions, arguments=arguments
        )
        return replace(loaded, instructions=found.text), found

    def _expander(self, skill: Skill) -> Expander:
        from prowess.runtime.expand import Expander  # noqa: PLC0415 - only for skills with commands

        def told(command: str, found: Finished | None) -> None:
            outcome = {"status": found.status, "limit": found.limit, "seconds": found.seconds} if found else {}
            self._tell("expanded", skill.name, command=command, **outcome)

        return Expander(self._trust, self._base, self.limits, told)

    def activate_text(self, name: str, *, whole: bool = False) -> str:
        """Activate a skill; its body as the file has it now (``whole``: the file), commands run if it is trusted."""
        try:
            skill = self._activate(name, None, ambient_filters(), run=False).skill
        except SkillError as error:
            self._tell("refused", name, code=error.code)
            raise
        return self._text(skill, whole=whole)

    def read_text(self, name: str, *, whole: bool = False) -> str:
        """The same of a skill that is not activated by it."""
        return self._text(self.skill(name), whole=whole)

    def _text(self, skill: Skill, *, whole: bool) -> str:
        text = skill.read_text() if whole else skill.read_body()
        if not may_have_commands(text):
            return tagged(skill, text)

        def read(one: Skill) -> str:
            return one.read_text() if whole else one.read_body()

        def head(one: Skill) -> str:
            return one.read_text().removesuffix(one.read_body())

        return tagged(skill, self._expander(skill).expanded(skill, read, begin=head if whole else None).text)

    def _known(self, name: str) -> Skill:
        active = self._active.get(name)
        if active is not None and active.gone:
            return active.loaded.skill
        skill = self._catalog.get(name)
        if skill is None:
            raise UnknownSkillError(name, self._offered())
        return skill

    def _offered(self) -> list[str]:
        filters = self._filters()
        return [skill.name for skill in self._catalog if self._passes(skill, filters)]

    def _room_for(self, name: str) -> None:
        if self._max_active <= 0 or len(self._active) < self._max_active:
            return
        counted = sum(not entry.preloaded for entry in self._active.values())
        if counted >= self._max_active:
            raise MaxActiveError(f"cannot activate {name!r}: {self._max_active} skills are active already")

    def deactivate(self, name: str) -> tuple[str, ...]:
        """End a skill; the tools that no other active skill needs, sorted."""
        with self._lock:
            entry = self._active.pop(name, None)
            if entry is None:
                raise SkillNotActiveError(f"skill {name!r} is not active")
            kept = {tool for other in self._active.values() for tool in other.tools}
        removed = tuple(tool for tool in entry.tools if tool not in kept)
        self._tell("deactivated", name, reason="asked", tools=removed)
        return removed

    def preloaded(self) -> tuple[LoadedSkill, ...]:
        """The preloaded skills that are active and visible, by name."""
        return tuple(LoadedSkill(one.skill, one.instructions) for one in self.preloads())

    def preloads(self) -> tuple[Activation, ...]:
        """The same with where their instructions hold what a command printed."""
        return tuple(_again(entry) for _, entry in sorted(self._visible().items()) if entry.preloaded)

    # -- listing -----------------------------------------------------------------------------------------------------

    def set_selector(self, selector: Selector | None) -> None:
        """Select with this from now on."""
        with self._lock:
            self._selector = selector

    def candidates(self, query: str = "", under: str = "") -> tuple[Skill, ...]:
        """The skills worth showing for ``query``, by name: what the filter lets through and the selector picks."""
        return choose(self._selector, query, self.eligible(under), self._selector_failed)

    async def acandidates(self, query: str = "", under: str = "") -> tuple[Skill, ...]:
        """The same, awaiting an asynchronous selector."""
        return await achoose(self._selector, query, self.eligible(under), self._selector_failed)

    def eligible(self, under: str = "") -> tuple[Skill, ...]:
        """Every skill that models may see and that the filter lets through, by name."""
        filters = self._filters()
        return tuple(s for s in self._catalog.under(under) if s.model_invocable and self._passes(s, filters))

    def _selector_failed(self, error: Exception) -> None:
        self._tell("selector-failed", "", error=f"{type(error).__name__}: {error}")

    def index(self, query: str = "", under: str = "") -> str:
        """The candidates as lines of text for a prompt."""
        found = self.candidates(query, under)
        self._tell("listed", "", names=tuple(skill.name for skill in found), query=query)
        if not found:
            return "No skills available."
        rows = (f"\n- {name}: {description}" for name, description, _ in map(listed, found))
        return "Available skills:" + "".join(rows)

    # -- reading -----------------------------------------------------------------------------------------------------

    def skill(self, name: str) -> Skill:
        """A skill that exists and that the filter lets through; the version that was loaded, while it is active."""
        found = self.available(name)
        if found is not None:
            return found
        with self._lock:
            self._known(name)
        raise SkillFilteredError(f"skill {name!r} is not available here (filter: {_shown(self._filters())})")

    def read_resource(self, name: str, path: str, max_bytes: int | None = None) -> str:
        """The text of a file of a skill that the filter lets through."""
        most = self._limits.max_resource_bytes if max_bytes is None and self._limits is not None else max_bytes
        try:
            skill = self.skill(name)
            text = tagged(skill, skill.read_resource(path, most))
        except SkillError as error:
            self._tell("refused", name, code=error.code, path=path)
            raise
        self._tell("read", name, path=path, characters=len(text))
        return text

    # -- another catalogue -------------------------------------------------------------------------------------------

    def refresh(self, catalog: Catalog) -> Refreshed:
        """Use another catalogue from now on; what was added, removed and changed.

        An active skill that is gone stays usable from what was loaded, and says so; a changed one keeps its text until
        it is activated again.
        """
        with self._lock:
            report = _difference(self._catalog, catalog, self._active)
            self._catalog = catalog
            for name, entry in self._active.items():
                gone = name not in catalog
                stale = entry.stale or name in report.changed or (entry.gone and not gone)
                self._active[name] = entry._replace(gone=gone, stale=stale and not gone)
        self._tell("refreshed", "", added=report.added, removed=report.removed, changed=report.changed)
        return report

    # -- saying what happens -----------------------------------------------------------------------------------------

    def tell(self, event: Event) -> None:
        """Pass an event on to whoever listens; a listener that fails does not disturb the conversation."""
        told = _TOLD.get()
        if told is not None:
            told.append(event.kind)
        if self._on_event is not None:
            with suppress(Exception):
                self._on_event(event)

    @property
    def has_listener(self) -> bool:
        """Whether anybody hears of events."""
        return self._on_event is not None

    @contextmanager
    def overheard(self) -> Iterator[list[str]]:
        """The kinds of events that are told inside the block, by this thread or task."""
        kinds: list[str] = []
        token = _TOLD.set(kinds)
        try:
            yield kinds
        finally:
            _TOLD.reset(token)

    def note_read(self, name: str, path: str, size: int) -> None:
        """Say that a file was read for the model."""
        self._tell("read", name, path=path, characters=size)

    def _tell(self, kind: Kind, skill: str, **detail: object) -> None:
        if self._on_event is None:
            told = _TOLD.get()
            if told is not None:
                told.append(kind)
            return
        self.tell(Event(kind, skill, detail))

    # -- a user's explicit call --------------------------------------------------------------------------------------

    def expand(self, message: str) -> str:
        """The text to send to the model for ``/name arguments`` (or ``$name arguments``); ``""`` for anything else.

        The instructions have their placeholders filled; where they have none for the arguments, these stand above as
        the user's request. Raises ``SkillFilteredError`` for a skill that is not for people to call.
        """
        call = parse_call(message)
        if call is None or (call[0] not in self._catalog and call[0] not in self._active):
            return ""
        name, arguments = call
        try:
            skill = self.skill(name)
            if not skill.user_invocable:
                raise SkillFilteredError(f"skill {name!r} is not for people to call", code="not-for-people")
        except SkillError as error:
            self._tell("refused", name, code=error.code)
            raise
        activation = self._called(name, arguments)
        return called(activation, arguments, self._base)

    def _called(self, name: str, arguments: str) -> Activation:
        """The skill active, and its commands run for these arguments."""
        try:
            activation = self._activate(name, None, ambient_filters(), arguments)
        except SkillError as error:
            self._tell("refused", name, code=error.code)
            raise
        if not activation.outputs or activation.note != _ALREADY:
            return activation
        loaded, found = self._prepared(activation.skill, arguments)  # active before: what was printed then is not now
        return replace(activation, instructions=loaded.instructions, outputs=found.outputs, issues=found.issues)

    # -- saved and restored ------------------------------------------------------------------------------------------

    def save(self) -> str:
        """The session as JSON: the active skills with the digests of their folders, and the filter."""
        with self._lock:
            active = {name: entry.loaded.skill for name, entry in self._active.items()}
            pattern = self._filter
        return as_json(pattern, active)

    @classmethod
    def restore(cls, catalog: Catalog, saved: str, **options: Any) -> tuple[Session, tuple[Issue, ...]]:  # noqa: ANN401
        """A session as it was saved, over a catalogue of now; and what has changed or is missing since.

        ``options`` are those of ``Session``.
        """
        data = from_json(saved)
        session = cls(catalog, **{"filter": data["filter"], **options})
        issues: list[Issue] = []
        for name in session._active.keys() - data["active"].keys():  # preloaded, and ended before it was saved
            del session._active[name]
        for name, digest in data["active"].items():
            try:
                skill = session.activate(name).skill
            except SkillError as error:
                issues.append(Issue("missing-since-saved", name, error.message, "", 0, "warning"))
                continue
            if digest_of(skill) != digest:
                message = "is not what it was when the session was saved"
                issues.append(Issue("changed-since-saved", name, message, skill.location, 0, "warning"))
        return session, tuple(issues)


def _loaded(skill: Skill) -> LoadedSkill:
    """A skill with its instructions, which say whose they are where they are another party's."""
    loaded = skill.load()
    return replace(loaded, instructions=tagged(skill, loaded.instructions)) if skill.told_by else loaded


def _shown(filters: tuple[str, ...]) -> str:
    return ", ".join(repr(pattern) for pattern in filters if pattern) or "''"


def _again(entry: _Active) -> Activation:
    note = "the skill no longer exists; this is what was loaded before" if entry.gone else _ALREADY
    loaded = entry.loaded
    return Activation(loaded.skill, loaded.instructions, entry.tools, note, entry.outputs, entry.issues)


def _difference(old: Catalog, new: Catalog, active: dict[str, _Active]) -> Refreshed:
    before, after = set(old.names), set(new.names)
    changed = {name for name in before & after if _changed(old[name], new[name])}
    changed |= {n for n in active.keys() & after if not active[n].gone and _changed(active[n].loaded.skill, new[n])}
    return Refreshed(
        tuple(sorted(after - before)),
        tuple(sorted(before - after)),
        tuple(sorted(changed)),
        tuple(sorted(active.keys() - after)),
    )


def _changed(one: Skill, other: Skill) -> bool:
    if one is other:
        return False
    if one.is_inline and other.is_inline:
        return one.frontmatter != other.frontmatter or one.read_body() != other.read_body()
    return (one.location, one.state) != (other.location, other.state)

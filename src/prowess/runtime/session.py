"""One conversation's skills: which are active, which tools they bring, what the filter lets through.

Safe from several threads: state changes under one lock, files are read outside of it, and every call works with the
ambient filter that surrounded it when it began.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from prowess.arguments import (
    check_callable,
    check_instance,
    check_method,
    check_number,
    check_text,
    check_texts,
    path_in_call,
)
from prowess.errors import MaxActiveError, SkillError, SkillFilteredError, SkillNotActiveError, UnknownSkillError
from prowess.library.body import LoadedSkill
from prowess.library.catalog import Catalog
from prowess.limits import DEFAULT_LIMITS, Limits
from prowess.runtime.activation import ALLOWED_OTHERWISE, ALREADY, CHANGED, Activation, Active, again, tools_of
from prowess.runtime.ambient import ambient_filters
from prowess.runtime.called import called, parse_call
from prowess.runtime.events import measured, overheard
from prowess.runtime.instructions import Instructions
from prowess.runtime.origins import tagged
from prowess.runtime.refreshed import Refreshed, carried_over, difference, has_changed
from prowess.runtime.saved import as_json, from_json, resumed
from prowess.runtime.sight import Sight, filtered_out
from prowess.spec.commands import may_have_commands
from prowess.spec.hidden import hidden_points
from prowess.spec.tool_patterns import granted, judged

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

    from prowess.errors import Issue
    from prowess.library.skill import Skill
    from prowess.runtime.events import Event, OnEvent
    from prowess.runtime.trust import Trust
    from prowess.select.selectors import Selector
    from prowess.spec.tool_patterns import Answer


class Session(Sight):
    """The active skills of one conversation over one catalogue.

    ``tools``: the most that the host allows (``None``: no ceiling, ``[]``: nothing). ``max_active``: 0 is no limit;
    preloaded skills do not count. ``filter``: a pattern over virtual paths, which are taken relative to ``base_dir``
    (the working folder). ``trust``: whose commands and scripts may run; without it, nothing does.
    ``on_event`` is called with every ``Event``, outside of any lock; ``id`` is what they call this conversation.
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
        id: str | None = None,  # noqa: A002 - the public signature
    ) -> None:
        _check_arguments(catalog, max_active, selector, filter, trust, limits=limits, on_event=on_event)
        if id is not None:
            check_text(id, "id")
        super().__init__(catalog, filter, base_dir=base_dir, selector=selector, on_event=on_event, session_id=id)
        self._ceiling = None if tools is None else check_texts(tools, "tools")
        self._max_active = max_active
        self._limits = limits
        self._instructions = Instructions(trust, self._base, self.limits, self._events)
        self._active: dict[str, Active] = {}
        for skill in catalog:
            if skill.preload:
                self._preload(skill)

    def _preload(self, skill: Skill) -> None:
        """Active from the start, under the name that the catalogue has; one that cannot be loaded is left out."""
        try:
            loaded, found, standing = self._instructions.prepared(skill)
        except SkillError as error:
            self._events.say("refused", skill.name, code=error.code)
            return
        tools = granted(loaded.skill.allowed_tools, self._ceiling)
        self._active[skill.name] = Active(loaded, tools, found.outputs, found.issues, preloaded=True, standing=standing)

    def __repr__(self) -> str:
        """How many skills, which are active."""
        return f"<Session of {len(self._catalog)} skills, active: {', '.join(self.active_skills) or 'none'}>"

    # -- what there is -----------------------------------------------------------------------------------------------

    @property
    def trust(self) -> Trust | None:
        """Whose commands and scripts may run; ``None``: nobody's."""
        return self._instructions.trust

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
        return tuple(sorted(tools_of(self._visible().values())))

    def _visible(self) -> dict[str, Active]:
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

    # -- what may be seen --------------------------------------------------------------------------------------------

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

    @measured()
    def set_filter(self, pattern: str) -> tuple[str, ...]:
        """Filter from now on; the names of the skills that this deactivated, sorted."""
        with self._lock:
            self._filter = pattern
            ended = sorted(n for n, entry in self._active.items() if not self._passes(entry.loaded.skill, (pattern,)))
            for name in ended:
                del self._active[name]
        for name in ended:
            self._events.say("deactivated", name, reason="filter", filter=pattern)
        return tuple(ended)

    # -- activation --------------------------------------------------------------------------------------------------

    @measured()
    def activate(self, name: str, filter: str | None = None) -> Activation:  # noqa: A002 - the public signature
        """The instructions of a skill, and the tools that it brings. ``filter`` replaces the session's for this call.

        Activating again gives what was loaded the first time, unless it was granted, or its grant revoked, since.
        Raises ``UnknownSkillError``, ``SkillFilteredError``, ``MaxActiveError``, or whatever reading the file raises.
        """
        ambient = ambient_filters()
        try:
            return self._activate(name, filter, ambient)
        except SkillError as error:
            self._events.say("refused", name, code=error.code)
            raise

    def _admit(self, name: str, skill: Skill, instead: str | None, ambient: tuple[str, ...]) -> None:
        """Raise unless the filters of now let the skill through; under the lock."""
        filters = (self._filter if instead is None else instead, *ambient)
        if not self._passes(skill, filters):
            raise filtered_out(name, filters)

    def _activate(
        self, name: str, instead: str | None, ambient: tuple[str, ...], said: str = "", *, run: bool = True
    ) -> Activation:
        with self._lock:
            catalog = self._catalog
            skill = self._known(name)
            self._admit(name, skill, instead, ambient)
            active = self._active.get(name)
            ready = active is not None and (active.is_ready or not (run or active.stale))
            if active is not None and ready and (active.standing is None or active.gone or not run):
                return again(active)
            if active is None:
                self._room_for(name)
        if active is not None and ready and self._stands(name, active):
            return again(active)
        loaded, found, standing = self._instructions.prepared(skill, said, run=run)
        with self._lock:  # whatever happened while the file was read counts
            raced = self._active.get(name)
            if raced is not None and raced is not active and raced.is_ready:
                return again(raced)
            now = self._catalog.get(name)
            self._admit(name, now or skill, instead, ambient)
            if raced is None:
                self._room_for(name)
            entry = Active(
                loaded,
                granted(loaded.skill.allowed_tools, self._ceiling),
                found.outputs,
                found.issues,
                preloaded=raced is not None and raced.preloaded,
                stale=self._catalog is not catalog and now is not None and has_changed(loaded.skill, now),
                gone=now is None,
                unrun=not run and may_have_commands(loaded.instructions),
                standing=standing,
            )
            self._active[name] = entry
        if self._events.on_event is not None:
            hidden = {"issues": ("hidden-text",)} if hidden_points(loaded.instructions) else {}
            self._events.say("activated", name, location=skill.location, tools=entry.tools, **hidden)
        note = ALLOWED_OTHERWISE if ready else CHANGED if raced is not None and raced.stale else ""
        return Activation(loaded.skill, loaded.instructions, entry.tools, note, found.outputs, found.issues)

    def _stands(self, name: str, active: Active) -> bool:
        """Whether the commands of an active skill may run, or not, as they could before."""
        assert active.standing is not None  # noqa: S101 - who asks has looked
        now = self._instructions.still(active.loaded.skill, active.standing)
        if now is not None and now != active.standing:
            with self._lock:
                if self._active.get(name) is active:
                    self._active[name] = active._replace(standing=now)
        return now is not None

    @measured()
    def activate_text(self, name: str, *, whole: bool = False) -> str:
        """Activate a skill; its body as the file has it now (``whole``: the file), commands run if it is trusted."""
        try:
            skill = self._activate(name, None, ambient_filters(), run=False).skill
        except SkillError as error:
            self._events.say("refused", name, code=error.code)
            raise
        return self._instructions.text(skill, whole=whole)

    def read_text(self, name: str, *, whole: bool = False) -> str:
        """The same of a skill that is not activated by it."""
        return self._instructions.text(self.skill(name), whole=whole)

    def _known(self, name: str) -> Skill:
        active = self._active.get(name)
        if active is not None and active.gone:
            return active.loaded.skill
        skill = self._catalog.get(name)
        if skill is None:
            raise UnknownSkillError(name, self._names())
        return skill

    def _room_for(self, name: str) -> None:
        if self._max_active <= 0 or len(self._active) < self._max_active:
            return
        counted = sum(not entry.preloaded for entry in self._active.values())
        if counted >= self._max_active:
            raise MaxActiveError(f"cannot activate {name!r}: {self._max_active} skills are active already")

    @measured()
    def deactivate(self, name: str) -> tuple[str, ...]:
        """End a skill; the tools that no other active skill needs, sorted."""
        with self._lock:
            entry = self._active.pop(name, None)
            if entry is None:
                raise SkillNotActiveError(f"skill {name!r} is not active")
            kept = tools_of(self._active.values())
        removed = tuple(tool for tool in entry.tools if tool not in kept)
        self._events.say("deactivated", name, reason="asked", tools=removed)
        return removed

    def preloaded(self) -> tuple[LoadedSkill, ...]:
        """The preloaded skills that are active and visible, by name."""
        return tuple(LoadedSkill(one.skill, one.instructions) for one in self.preloads())

    def preloads(self) -> tuple[Activation, ...]:
        """The same with where their instructions hold what a command printed."""
        return tuple(again(entry) for _, entry in sorted(self._visible().items()) if entry.preloaded)

    # -- reading -----------------------------------------------------------------------------------------------------

    def skill(self, name: str) -> Skill:
        """A skill that exists and that the filter lets through; the version that was loaded, while it is active."""
        found = self.available(name)
        if found is not None:
            return found
        with self._lock:
            self._known(name)
        raise filtered_out(name, self._filters())

    @measured()
    def read_resource(self, name: str, path: str, max_bytes: int | None = None) -> str:
        """The text of a file of a skill that the filter lets through."""
        most = self._limits.max_resource_bytes if max_bytes is None and self._limits is not None else max_bytes
        try:
            skill = self.skill(name)
            text = tagged(skill, skill.read_resource(path, most))
        except SkillError as error:
            self._events.say("refused", name, code=error.code, path=path)
            raise
        self._events.say("read", name, path=path, characters=len(text))
        return text

    # -- another catalogue -------------------------------------------------------------------------------------------

    @measured()
    def refresh(self, catalog: Catalog) -> Refreshed:
        """Use another catalogue from now on; what was added, removed and changed.

        An active skill that is gone stays usable from what was loaded, and says so; a changed one keeps its text until
        it is activated again.
        """
        with self._lock:
            report = difference(self._catalog, catalog, self._active)
            self._catalog = catalog
            self._active = carried_over(self._active, catalog, report)
        self._events.say("refreshed", "", added=report.added, removed=report.removed, changed=report.changed)
        return report

    # -- saying what happens -----------------------------------------------------------------------------------------

    def tell(self, event: Event) -> None:
        """Pass an event on to whoever listens; a listener that fails does not disturb the conversation."""
        self._events.tell(event)

    @property
    def has_listener(self) -> bool:
        """Whether anybody hears of events."""
        return self._events.on_event is not None

    def overheard(self) -> AbstractContextManager[list[str]]:
        """The kinds of events that are told inside the block, by this thread or task."""
        return overheard()

    def note_read(self, name: str, path: str, size: int) -> None:
        """Say that a file was read for the model."""
        self._events.say("read", name, path=path, characters=size)

    # -- a user's explicit call --------------------------------------------------------------------------------------

    @measured()
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
            self._events.say("refused", name, code=error.code)
            raise
        activation = self._called(name, arguments)
        return called(activation, arguments, self._base)

    def _called(self, name: str, arguments: str) -> Activation:
        """The skill active, and its commands run for these arguments."""
        try:
            activation = self._activate(name, None, ambient_filters(), arguments)
        except SkillError as error:
            self._events.say("refused", name, code=error.code)
            raise
        if not activation.outputs or activation.note != ALREADY:
            return activation
        # active before: what was printed then is not now
        loaded, found, _ = self._instructions.prepared(activation.skill, arguments)
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
        for name in session._active.keys() - data["active"].keys():  # preloaded, and ended before it was saved
            del session._active[name]
        return session, tuple(resumed(data["active"], session.activate))


def _check_arguments(
    catalog: Catalog,
    max_active: int,
    selector: Selector | None,
    pattern: str,
    trust: Trust | None,
    *,
    limits: Limits | None,
    on_event: OnEvent | None,
) -> None:
    """Raise ``SourceError`` for an argument of a session that is not what it should be."""
    check_instance(catalog, "catalog", Catalog, remedy=f"pass prowess.scan({path_in_call(catalog)})")
    check_number(max_active, "max_active")
    check_text(pattern, "filter")
    check_instance(limits, "limits", Limits, optional=True, remedy="pass prowess.Limits(…)")
    check_callable(on_event, "on_event")
    if selector is not None:
        check_method(selector, "selector", "select", "pass a prowess.Selector")
    if trust is not None:
        from prowess.runtime.trust import Trust  # noqa: PLC0415 - a session without trust does not load it

        check_instance(trust, "trust", Trust, optional=True, remedy="pass prowess.Trust()")

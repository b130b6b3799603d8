"""One conversation's skills: which are active, which tools they bring, what the filter lets through.

Safe from several threads: state changes under one lock, files are read outside of it, and every call works with the
ambient filter that surrounded it when it began.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Literal, NamedTuple

from prowess.arguments import (
    check_name,
    check_text,
    check_texts,
    check_variables,
)
from prowess.errors import (
    FetchError,
    MaxActiveError,
    NotTrustedError,
    SkillError,
    SkillFilteredError,
)
from prowess.limits import DEFAULT_LIMITS, Limits
from prowess.runtime.activation import (
    ALREADY_ACTIVE,
    CHANGE_UNKNOWN,
    CHANGED_SINCE_LOAD,
    GRANTS_CHANGED,
    Activation,
    ActivationState,
    ActiveSkill,
    collect_tools,
    make_activation,
    next_step,
)
from prowess.runtime.active_skills import ActiveSkills
from prowess.runtime.catalog_diff import Refreshed, may_differ
from prowess.runtime.consent import Consent
from prowess.runtime.events import measure_call, record_event_kinds
from prowess.runtime.filter_context import ambient_filters
from prowess.runtime.instruction_loader import InstructionLoader
from prowess.runtime.session_arguments import check_catalog, check_session_arguments, parse_ceiling
from prowess.runtime.session_json import (
    SessionBounds,
    merge_bounds,
    older_save_issue,
    reactivate_skills,
    session_as_json,
    session_from_json,
)
from prowess.runtime.source_labels import with_source_label
from prowess.runtime.user_call import parse_call, render_call
from prowess.runtime.visibility import Visibility, make_filter_error
from prowess.skills.instructions import LoadedSkill
from prowess.spec.commands import may_have_commands
from prowess.spec.hidden_characters import find_hidden_points
from prowess.spec.quantities import format_count
from prowess.spec.tool_rules import judge_call

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Hashable, Iterable, Mapping
    from contextlib import AbstractContextManager

    from prowess.discovery.live import Live
    from prowess.errors import Issue
    from prowess.runtime.acting.trust import Trust, TrustRequest
    from prowess.runtime.activation import ActivationStep
    from prowess.runtime.events import Event, OnEvent
    from prowess.runtime.instruction_loader import PreparedInstructions
    from prowess.select.selectors import Selector
    from prowess.skills.catalog import Catalog
    from prowess.skills.skill import Skill
    from prowess.spec.commands import ExpandedText
    from prowess.spec.tool_rules import ToolAnswer


class _ActivationRequest(NamedTuple):
    """What one call of ``activate`` asks for; the ambient filters are those that surrounded it when it began."""

    name: str
    ambient_filters: tuple[str, ...]
    filter_override: str | None = None
    """The filter that replaces the session's for this call."""
    arguments: str = ""
    run: bool = True


class Session(Visibility):
    """The active skills of one conversation over one catalogue, or over a live one, which it follows.

    ``tools``: the tools that skills may approve by their ``allowed-tools``, and the most that the host allows (``[]``:
    nothing, ``"any"``: no ceiling, ``None``: no skill approves anything, and nothing is refused). ``max_active``: 0 is
    no limit; preloaded skills do not count. ``filter``: a pattern over virtual paths, which are taken relative to
    ``base_dir`` (the working folder). ``trust``: whose commands and scripts may run; without it, nothing does.
    ``on_event`` is called with every ``Event``, outside of any lock; ``id`` is what they call this conversation.
    ``command_env``: variables of the host's environment that commands see besides the usual few, by name.
    ``explicit_only``: skills that are not shown to models, by name, whatever their files say
    (``UnknownSkillError`` for a name that no skill has).
    """

    _refused_before: tuple[str, ...] = ()
    """Ids of requests that were refused before the session was saved, which ``restore`` sets before ``__init__``."""

    def __init__(  # noqa: PLR0917 - the public signature
        self,
        catalog: Catalog | Live,
        tools: Iterable[str] | Literal["any"] | None = None,
        max_active: int = 0,
        selector: Selector | None = None,
        filter: str = "",  # noqa: A002 - the public signature
        base_dir: str | os.PathLike[str] | None = None,
        trust: Trust | None = None,
        *,
        limits: Limits | None = None,
        on_event: OnEvent | None = None,
        id: str | None = None,  # noqa: A002 - the public signature
        command_env: Iterable[str] = (),
        explicit_only: Iterable[str] = (),
    ) -> None:
        check_session_arguments(catalog, max_active, selector, filter, trust, limits=limits, on_event=on_event)
        if id is not None:
            check_text(id, "id")
        super().__init__(
            catalog,
            filter,
            base_dir=base_dir,
            selector=selector,
            on_event=on_event,
            session_id=id,
            explicit_only=frozenset(check_texts(explicit_only, "explicit_only")),
        )
        self._explicit_only = self._resolve_names(self._explicit_only)
        # A name that is mistyped would show a skill that was to be kept for explicit calls.
        self._catalog.check_names(self._explicit_only, "explicit_only")
        self._limits = limits
        self._consent = Consent(trust, self._events, refused=self._refused_before)
        variables = check_variables(command_env, "command_env")
        self._instructions = InstructionLoader(self._consent, self._base_dir, self.limits, self._events, variables)
        self._active = ActiveSkills(parse_ceiling(tools), max_active)
        for skill in self._catalog:
            if skill.preload:
                self._preload_skill(skill)

    def _preload_skill(self, skill: Skill) -> None:
        """Active from the start, under the name that the catalogue has; one that cannot be loaded is left out."""
        try:
            prepared, unrun = self._prepare_preload(skill)
        except SkillError as error:
            self._events.emit("refused", skill.name, code=error.code)
            return
        self._active.remember(skill.name, prepared, preloaded=True, unrun=unrun)

    def _prepare_preload(self, skill: Skill) -> tuple[PreparedInstructions, bool]:
        """Return a skill made ready, and whether its commands were left for later: no call is there to answer yet."""
        try:
            return self._instructions.prepare(skill), False
        except NotTrustedError as error:
            if error.request is None:
                raise
            return self._instructions.prepare(skill, run=False), True

    def __repr__(self) -> str:
        """How many skills, which are active."""
        return f"<Session of {len(self._catalog)} skills, active: {', '.join(self.active_skills) or 'none'}>"

    # -- what there is -----------------------------------------------------------------------------------------------

    @property
    def trust(self) -> Trust | None:
        """Whose commands and scripts may run; ``None``: nobody's."""
        return self._consent.trust

    @property
    def consent(self) -> Consent:
        """What may run in this conversation: what its trust grants, and what a person approved here."""
        return self._consent

    def approve(self, request: TrustRequest) -> None:
        """Allow what a pending call would run: exactly that, in this conversation, while the files stay as they are.

        The call is to be made again; it runs if what it would run then is what the request says, and the policy is
        ``defer`` or ``ask``. Raises ``NotTrustedError`` for a session without trust.
        """
        self._consent.approve(request)

    def refuse(self, request: TrustRequest) -> None:
        """Refuse what a pending call would run: nobody is asked again.

        Of a script the model is told that a person said no; commands stay as they are written.
        Raises ``NotTrustedError`` for a session without trust.
        """
        self._consent.refuse(request)

    @property
    def limits(self) -> Limits:
        return self._limits or DEFAULT_LIMITS

    @property
    def ceiling(self) -> tuple[str, ...] | None:
        """The most that the host allows; ``None``: there is no ceiling."""
        return self._active.ceiling.tools

    @property
    def grants_tools(self) -> bool:
        """True when the host said which tools skills may approve; else none of them approves any."""
        return self._active.ceiling.grants

    @property
    def max_resource_bytes(self) -> int:
        """The most that reading a file gives, unless a call says otherwise."""
        return (self._limits or DEFAULT_LIMITS).max_resource_bytes

    @property
    def active_skills(self) -> tuple[str, ...]:
        """The names of the active skills, sorted; what the filter hides is not among them."""
        return tuple(sorted(self._visible_entries()))

    @property
    def active_tools(self) -> tuple[str, ...]:
        """The tools that the active skills bring, each once, sorted."""
        return tuple(sorted(collect_tools(self._visible_entries().values())))

    def _visible_entries(self) -> dict[str, ActiveSkill]:
        self._sync_live_catalog()
        filters = self._current_filters()
        with self._lock:
            entries = self._active.entries.items()
            return {name: entry for name, entry in entries if self._passes_filters(entry.loaded.skill, filters)}

    def allows(self, tool: str, command: str | None = None) -> ToolAnswer:
        """Whether the active skills pre-approve a call: ``allowed``, ``refused``, or ``not-mentioned`` by any.

        ``refused``: beyond the ceiling, or mentioned and not covered; a command with a shell operator, a substitution
        or a line break is never covered by a pattern. Where the host gave no ``tools``, no skill mentions any.
        """
        check_text(tool, "tool")
        if command is not None:
            check_text(command, "command")
        if self._active.is_beyond_ceiling(tool, command):
            return "refused"
        return judge_call(tool, command, self.active_tools)

    # -- what may be seen --------------------------------------------------------------------------------------------

    def is_available(self, name: str) -> bool:
        """Whether a skill of that name exists, or is active still, and the filter lets it through."""
        return self.available(name) is not None

    def available(self, name: str) -> Skill | None:
        """That skill, or ``None``."""
        name = self.resolve_name(name)
        filters = self._current_filters()
        with self._lock:
            active = self._active.entries.get(name)
            found = active.loaded.skill if active is not None and active.gone else self._catalog.get(name)
            return found if found is not None and self._passes_filters(found, filters) else None

    @measure_call()
    def set_filter(self, pattern: str) -> tuple[str, ...]:
        """Filter from now on; the names of the skills that this deactivated, sorted."""
        check_text(pattern, "pattern")
        with self._lock:
            self._filter = pattern
            filters = (pattern, *self._bounds)
            ended = self._active.deactivate_where(lambda skill: not self._passes_filters(skill, filters))
            self._revision += 1
        for name in ended:
            self._events.emit("deactivated", name, reason="filter", filter=pattern)
        return tuple(ended)

    # -- activation --------------------------------------------------------------------------------------------------

    @measure_call()
    def activate(
        self,
        name: str,
        filter: str | None = None,  # noqa: A002 - the public signature
        *,
        run: bool = True,
    ) -> Activation:
        """The instructions of a skill, and the tools that it brings. ``filter`` replaces the session's for this call.

        Activating again gives what was loaded the first time, unless it was granted, or its grant revoked, since. The
        server of a skill that a server gives is asked whether it has changed, and what it gives now is activated then.
        ``run=False``: no command in the instructions runs, and they are what the file has. Raises
        ``UnknownSkillError``, ``SkillFilteredError``, ``MaxActiveError``, or whatever reading the file raises.
        """
        if filter is not None:
            check_text(filter, "filter")
        name = self.resolve_name(name)
        wish = _ActivationRequest(name, ambient_filters(), filter, run=run)
        try:
            activation = self._activate(wish)
        except SkillError as error:
            self._emit_refusal(name, error)
            raise
        # It may be active with its commands run, by the host or as a preloaded skill.
        return activation if run else replace(activation, instructions=activation.written, outputs=(), issues=())

    def _decide_step(
        self, wish: _ActivationRequest, skill: Skill, *, is_read: bool = False, before: ActiveSkill | None = None
    ) -> ActivationStep:
        """What the activation of ``skill`` does next; under the lock. Raises when it may not go on."""
        filters = self._request_filters(wish)
        state = ActivationState(
            passes_filter=self._passes_filters(skill, filters),
            has_room=self._active.has_room(),
            run=wish.run,
            active=self._active.entries.get(wish.name),
            is_read=is_read,
            before=before,
        )
        step = next_step(state)
        if step == "refuse-filtered":
            raise make_filter_error(wish.name, filters)
        if step == "refuse-full":
            most = format_count(self._active.max_active, "active skill")
            raise MaxActiveError(f"cannot activate {wish.name!r}: the session allows {most} at once")
        return step

    def _request_filters(self, wish: _ActivationRequest) -> tuple[str, ...]:
        return (
            self._filter if wish.filter_override is None else wish.filter_override,
            *self._bounds,
            *wish.ambient_filters,
        )

    def _activate(self, wish: _ActivationRequest, before: Callable[[Skill], None] | None = None) -> Activation:
        """Make a skill active. ``before`` gets what was read; what it raises leaves the skill inactive."""
        self._sync_live_catalog()
        with self._lock:
            catalog = self._catalog
            skill = self._require_known(wish.name)
            step = self._decide_step(wish, skill)
            active = self._active.entries.get(wish.name)
        changes = ""
        if active is not None and (
            step == "keep" or (step == "check-grant" and self._is_decision_current(wish.name, active))
        ):
            try:
                changes = "" if active.gone else active.loaded.skill.find_changes()
            except FetchError:
                return make_activation(active, CHANGE_UNKNOWN)
            if not changes:
                return make_activation(active)
        prepared = self._instructions.prepare(skill, wish.arguments, run=wish.run)
        if before is not None:
            before(prepared.loaded.skill)
        with self._lock:  # whatever happened while the file was read counts
            now = self._catalog.get(wish.name)
            second = self._decide_step(wish, now or skill, is_read=True, before=active)
            raced = self._active.entries.get(wish.name)
            if raced is not None and second == "keep":
                return make_activation(raced)
            changed = self._catalog is not catalog and now is not None and may_differ(prepared.loaded.skill, now)
            preloaded = raced is not None and raced.preloaded
            unrun = not wish.run and may_have_commands(prepared.loaded.instructions)
            states = {"preloaded": preloaded, "stale": changed, "gone": now is None, "unrun": unrun}
            entry = self._active.remember(wish.name, prepared, **states)
            self._revision += 1
        self._emit_activation(wish.name, skill, entry)
        if changes:
            return make_activation(entry, f"{CHANGED_SINCE_LOAD} ({changes})")
        note = (
            GRANTS_CHANGED if step == "check-grant" else CHANGED_SINCE_LOAD if raced is not None and raced.stale else ""
        )
        return make_activation(entry, note)

    def _emit_activation(self, name: str, skill: Skill, entry: ActiveSkill) -> None:
        if self._events.on_event is not None:  # looking for hidden text costs as much as reading it
            hidden = {"issues": ("hidden-text",)} if find_hidden_points(entry.loaded.instructions) else {}
            self._events.emit("activated", name, location=skill.location, tools=entry.tools, **hidden)

    def _is_decision_current(self, name: str, active: ActiveSkill) -> bool:
        """Whether the commands of an active skill may run, or not, as they could before."""
        assert active.command_decision is not None  # noqa: S101 - who asks has looked
        now = self._instructions.recheck_decision(active.loaded.skill, active.command_decision)
        if now is not None and now != active.command_decision:
            with self._lock:
                self._active.update_decision(name, active, now)
        return now is not None

    @measure_call()
    def activate_text(self, name: str, *, whole: bool = False, run: bool = True) -> str:
        """Activate a skill; its body as the file has it now (``whole``: the file), commands run if it is trusted.

        ``run=False``: no command runs.
        """
        name = self.resolve_name(name)
        texts: list[str] = []

        def make_text(skill: Skill) -> None:
            texts.append(self._instructions.read_text(skill, whole=whole, run=run))

        try:
            skill = self._activate(_ActivationRequest(name, ambient_filters(), run=False), make_text).skill
            if not texts:  # it was active already
                make_text(skill)
        except SkillError as error:
            self._emit_refusal(name, error)
            raise
        return texts[0]

    def _emit_refusal(self, name: str, error: SkillError) -> None:
        """Tell of a refusal; what waits for a person's approval is none, and was told already."""
        if error.code != "needs-approval":
            self._events.emit("refused", name, code=error.code)

    def read_text(self, name: str, *, whole: bool = False) -> str:
        """The same of a skill that is not activated by it."""
        return self._instructions.read_text(self.skill(name), whole=whole)

    def read_expanded(self, name: str) -> ExpandedText:
        """The whole file of a skill that is not activated by it, and where in it stands what a command printed.

        Always that of the catalogue, also of an active skill: a sub-agent begins with what there is now.
        """
        return self._instructions.expand_text(self._require_visible(name), whole=True)

    def resolve_name(self, name: str) -> str:
        """The name that a skill goes by: ``name``, unless that only stands in the file of a skill of the catalogue.

        Not to be called under the lock, since it may take over a new catalogue. Raises ``SourceError`` for what is no
        text.
        """
        check_name(name, "pass skill.name")
        self._sync_live_catalog()
        with self._lock:
            skill = None if name in self._active.entries else self._catalog.get(name)
        return name if skill is None else skill.name

    def _resolve_names(self, names: Iterable[str]) -> frozenset[str]:
        """These names, each as its skill goes by it; one that no skill of the catalogue has stays as it is."""
        skills = {name: self._catalog.get(name) for name in names}
        return frozenset(name if skill is None else skill.name for name, skill in skills.items())

    def _require_known(self, name: str) -> Skill:
        active = self._active.entries.get(name)
        if active is not None and active.gone:
            return active.loaded.skill
        skill = self._catalog.get(name)
        if skill is None:
            raise self._catalog.make_unknown_error(name, self._visible_names(), self.limits.max_listed_names)
        return skill

    @measure_call()
    def deactivate(self, name: str) -> tuple[str, ...]:
        """End a skill; the tools that no other active skill needs, sorted."""
        name = self.resolve_name(name)
        with self._lock:
            removed = self._active.deactivate(name)
            self._revision += 1
        self._events.emit("deactivated", name, reason="asked", tools=removed)
        return removed

    def preloaded(self) -> tuple[LoadedSkill, ...]:
        """The preloaded skills that are active and visible, by name."""
        return tuple(LoadedSkill(one.skill, one.instructions) for one in self.preloads())

    def preloads(self) -> tuple[Activation, ...]:
        """The same with where their instructions hold what a command printed."""
        return tuple(make_activation(entry) for _, entry in sorted(self._visible_entries().items()) if entry.preloaded)

    def listing_key(self) -> Hashable:
        """What a listing for a model depends on besides its catalogue and selector: equal keys, equal listings."""
        visible = sorted(self._visible_entries().items())
        preloaded = tuple(
            (entry.loaded.skill.location, entry.loaded.instructions, entry.outputs, entry.written)
            for _, entry in visible
            if entry.preloaded
        )
        grants = None if self.trust is None else (self.trust, self.trust.mark())
        active = tuple(name for name, _ in visible)
        return self._current_filters(), self._base_dir, active, preloaded, grants, self._explicit_only

    # -- reading -----------------------------------------------------------------------------------------------------

    def skill(self, name: str) -> Skill:
        """A skill that exists and that the filter lets through, to read from.

        While it is active, one that is not in a folder here is the one that was loaded, whatever its source has
        announced since: files of another state must not stand beside its instructions. Raises ``UnknownSkillError`` or
        ``SkillFilteredError``.
        """
        skill = self._require_visible(name)
        with self._lock:
            active = self._active.entries.get(skill.name)
        return skill if active is None or active.loaded.skill.is_local else active.loaded.skill

    def _require_visible(self, name: str) -> Skill:
        """The skill of the catalogue, whose head decides who may call it; raises where none can be seen."""
        skill = self.available(name)
        if skill is not None:
            return skill
        with self._lock:
            self._require_known(name)
        raise make_filter_error(name, self._current_filters())

    @measure_call()
    def read_resource(self, name: str, path: str, max_bytes: int | None = None) -> str:
        """The text of a file of a skill that the filter lets through."""
        usual = ... if self._limits is None else self._limits.max_resource_bytes
        most = usual if max_bytes is None else max_bytes
        try:
            skill = self.skill(name)
            text = with_source_label(skill, skill.read_resource(path, most))
        except SkillError as error:
            self._events.emit("refused", name, code=error.code, path=path)
            raise
        self._events.emit("read", name, path=path, characters=len(text))
        return text

    # -- a sub-agent's -----------------------------------------------------------------------------------------------

    def open_child(self, tools: Iterable[str] | None = None) -> Session:
        """A session for a sub-agent: the same catalogue, trust and bounds, but active skills of its own.

        It begins with the preloaded skills that are active here. ``tools`` lowers its ceiling. The filters of now, also
        the ambient ones, hold for as long as it lives: whoever runs the sub-agent may do so in another place.
        """
        self._sync_live_catalog()
        child = Session.__new__(type(self))  # not by __init__, which would run the commands of preloaded skills again
        with self._lock:
            filters = tuple(dict.fromkeys(pattern for pattern in self._current_filters() if pattern))
            vars(child).update(vars(self), _lock=RLock(), _active=self._active.open_child(tools), _bounds=filters)
            consent = self._consent.open_child()
            vars(child).update(_consent=consent, _instructions=replace(self._instructions, consent=consent))
        return child

    # -- another catalogue -------------------------------------------------------------------------------------------

    @measure_call()
    def refresh(self, catalog: Catalog) -> Refreshed:
        """Use another catalogue from now on; what was added, removed and changed. A live one is followed no longer.

        An active skill that is gone stays usable from what was loaded, and says so; a changed one keeps its text until
        it is activated again. Raises ``SourceError`` for what is no catalogue.
        """
        check_catalog(catalog)
        with self._lock:
            self._live = None
            report = self._replace_catalog(catalog)
        self._emit_refresh(report)
        return report

    def _adopt_live_catalog(self) -> None:
        with self._lock:
            # Looked up under the lock: two threads must not take over two catalogues in the wrong order.
            if self._live is None or self._live.catalog is self._catalog:
                return
            report = self._replace_catalog(self._live.catalog)
        self._emit_refresh(report)

    def _replace_catalog(self, catalog: Catalog) -> Refreshed:
        report = self._active.switch_catalog(self._catalog, catalog)
        self._catalog = catalog
        self._revision += 1
        return report

    def _emit_refresh(self, report: Refreshed) -> None:
        self._events.emit("refreshed", "", added=report.added, removed=report.removed, changed=report.changed)

    # -- saying what happens -----------------------------------------------------------------------------------------

    def tell(self, event: Event) -> None:
        """Pass an event on to whoever listens; a listener that fails does not disturb the conversation."""
        self._events.send(event)

    def report_host_error(self, where: str, error: Exception, skill: str = "") -> None:
        """Log an exception of the host's own code with its traceback, and tell of it as an event."""
        self._events.report_host_error(where, error, skill)

    @property
    def has_listener(self) -> bool:
        """Whether anybody hears of events."""
        return self._events.on_event is not None

    def overheard(self) -> AbstractContextManager[list[str]]:
        """The kinds of events that are told inside the block, by this thread or task."""
        return record_event_kinds()

    def note_read(self, name: str, path: str, size: int) -> None:
        """Say that a file was read for the model."""
        self._events.emit("read", name, path=path, characters=size)

    # -- a user's explicit call --------------------------------------------------------------------------------------

    @measure_call()
    def expand(self, message: str, *, inline_forks: bool = False) -> str:
        """The text to send to the model for ``/name arguments`` (or ``$name arguments``); ``""`` for anything else.

        The instructions have their placeholders filled; where they have none for the arguments, these stand above as
        the user's request. A skill that runs as a sub-agent is no text for this conversation and gives ``""``: the host
        prepares it by ``Toolset.prepare_fork(name, arguments, by_person=True)``. ``inline_forks=True`` gives its text
        all the same, for hosts that run no sub-agents. Raises ``SkillFilteredError`` for a skill that is not for people
        to call.
        """
        check_text(message, "message")
        self._sync_live_catalog()
        call = parse_call(message)
        if call is None or (call[0] not in self._catalog and call[0] not in self._active.entries):
            return ""
        name, arguments = self.resolve_name(call[0]), call[1]
        try:
            skill = self._require_visible(name)
            if not skill.user_invocable:
                raise SkillFilteredError(f"skill {name!r} is not for people to call", code="not-for-people")
        except SkillError as error:
            self._events.emit("refused", name, code=error.code)
            raise
        if skill.is_fork and not inline_forks:
            return ""
        activation = self._activate_for_call(name, arguments)
        return render_call(activation, arguments, self._base_dir)

    def _activate_for_call(self, name: str, arguments: str) -> Activation:
        """The skill active, and its commands run for these arguments."""
        try:
            activation = self._activate(_ActivationRequest(name, ambient_filters(), arguments=arguments))
        except SkillError as error:
            self._emit_refusal(name, error)
            raise
        if not activation.outputs or activation.note != ALREADY_ACTIVE:
            return activation
        # active before: what was printed then is not now
        prepared = self._instructions.prepare(activation.skill, arguments)
        instructions, found = prepared.loaded.instructions, prepared.expanded
        return replace(activation, instructions=instructions, outputs=found.outputs, issues=found.issues)

    # -- saved and restored ------------------------------------------------------------------------------------------

    def save(self) -> str:
        """The session as JSON: its bounds, the active skills with the digests of their folders, what was refused."""
        self._sync_live_catalog()
        with self._lock:
            active = {name: entry.loaded.skill for name, entry in self._active.entries.items()}
            kept = tuple(sorted(self._explicit_only))
            bounds = SessionBounds(self._active.ceiling, self._active.max_active, self._filter, self._bounds, kept)
        return session_as_json(bounds, active, self._consent.refused_ids)

    @classmethod
    def restore(
        cls,
        catalog: Catalog | Live,
        saved: str,
        *,
        tools: Iterable[str] | Literal["any"] | None = None,
        max_active: int | None = None,
        filter: str | None = None,  # noqa: A002 - the public signature
        limits: Limits | None = None,
        trust: Trust | None = None,
        selector: Selector | None = None,
        base_dir: str | os.PathLike[str] | None = None,
        on_event: OnEvent | None = None,
        id: str | None = None,  # noqa: A002 - the public signature
        command_env: Iterable[str] = (),
        explicit_only: Iterable[str] | None = None,
        widen: bool = False,
    ) -> tuple[Session, tuple[Issue, ...]]:
        """A session as it was saved, over a catalogue of now; and what has changed or is missing since.

        It may do what both the save and the arguments allow: the tools of both ceilings, the smaller ``max_active``,
        the skills that pass both filters; what either keeps for explicit calls is kept. ``tools`` means what it means
        in ``Session``: without it no skill approves anything, whatever was saved. ``widen=True``: ``tools``, and
        ``max_active``, ``filter`` and ``explicit_only`` where they are given, replace what was saved. A save of an
        older version, which has no ceiling, allows no tools, and an issue says so. What a person refused stays refused,
        also with ``widen``; approvals are not saved, nor is ``id``, which the host knows the conversation by. Restoring
        runs no command and asks nobody: the skills are active, and the commands of one run when it is activated again
        and may run them. Raises ``SourceError`` for text that is no saved session.
        """
        check_text(saved, "saved")
        known = session_from_json(saved)
        given = None if explicit_only is None else check_texts(explicit_only, "explicit_only")
        bounds = merge_bounds(known, parse_ceiling(tools), max_active, filter, given, widen=widen)
        session = cls.__new__(cls)
        vars(session).update(_refused_before=known.refused)  # before __init__: preloaded skills ask for consent there
        cls.__init__(
            session,
            catalog,
            None,
            bounds.max_active,
            selector,
            bounds.filter,
            base_dir,
            trust,
            limits=limits,
            on_event=on_event,
            id=id,
            command_env=command_env,
            explicit_only=given or (),
        )
        session._apply_saved_bounds(known.active, bounds)  # noqa: SLF001 - its own class
        issues = (older_save_issue(),) if known.is_older and not widen else ()
        # No command runs: what it printed is in the host's transcript, and approvals, which are not saved, would be
        # missing. Whoever activates the skill again gets what is granted, or asks, then.
        return session, (*issues, *reactivate_skills(known.active, partial(session.activate, run=False)))

    def _apply_saved_bounds(self, active: Mapping[str, str], bounds: SessionBounds) -> None:
        """Hold to the bounds of a save, and end what is preloaded and was ended before it was saved."""
        self._bounds = bounds.filters
        self._explicit_only = self._resolve_names(bounds.explicit_only)  # unchecked: what was saved may be gone since
        self._active.deactivate_others(active)
        self._active.set_ceiling(bounds.ceiling)

"""One conversation over a catalogue of skills.

A session has one ``Moment``: the catalogue, the filters and the active skills as they are now. Every call takes it once
and works with it; whatever changes something replaces it under the lock. Files are read and listeners are called
outside of the lock, since either may take long, or call the session again from another thread.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import partial
from inspect import iscoroutinefunction
from threading import RLock
from typing import TYPE_CHECKING, Literal

from prowess.arguments import (
    check_callable,
    check_instance,
    check_method,
    check_number,
    check_text,
    check_texts,
    check_variables,
    raise_bad_argument,
)
from prowess.conversation.activation import (
    ALREADY_ACTIVE,
    CHANGE_UNKNOWN,
    CHANGED_SINCE_LOAD,
    GRANTS_CHANGED,
    Activation,
    ActivationRequest,
    InstructionLoader,
    decide_step,
    make_activation,
)
from prowess.conversation.consent import Consent
from prowess.conversation.events import EventEmitter, measure_call
from prowess.conversation.moment import AMBIENT_FILTERS, Moment, Scope, compare_catalogs, may_differ
from prowess.conversation.rendering import parse_call, render_call
from prowess.conversation.session_json import (
    SavedSession,
    SessionBounds,
    merge_bounds,
    reactivate_skills,
    session_as_json,
    session_from_json,
)
from prowess.conversation.tool_rules import REFUSED, ToolCeiling, grant_tools, intersect_ceilings, judge_call
from prowess.discovery.live import Live
from prowess.errors import (
    FetchError,
    NotTrustedError,
    PolicyError,
    SkillError,
    SkillFilteredError,
    SkillNotActiveError,
    SourceError,
    log_host_error,
)
from prowess.files.paths import as_existing_folder, show_path_argument
from prowess.format.commands import may_have_commands
from prowess.limits import DEFAULT_LIMITS, Limits
from prowess.select.auto import ListingChoice, ListingTurn
from prowess.select.selectors import ask_selector
from prowess.skills.catalog import Catalog
from prowess.skills.render import make_entries, render_lines
from prowess.text.hidden_characters import find_hidden_points

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prowess.conversation.acting.trust import Trust
    from prowess.conversation.acting.trust_request import TrustRequest
    from prowess.conversation.activation import ActiveSkill
    from prowess.conversation.events import OnEvent
    from prowess.conversation.moment import Refreshed
    from prowess.conversation.tool_rules import ToolAnswer
    from prowess.errors import Issue
    from prowess.select.selectors import Candidates, Selector
    from prowess.skills.explanation import Explanation
    from prowess.skills.skill import Skill


_MAX_READ_FILES = 100
"""Files that a conversation remembers to have read; a recap names them."""
_MAX_SHOWN_LISTS = 8
"""How many listings a conversation remembers: a host may ask for another budget with each request."""


class Session:
    """The active skills of one conversation over a catalogue; it follows the changes of a live catalogue.

    ``tools``: the tools that skills may approve by their ``allowed-tools``, and the most that the host allows (``[]``:
    nothing, ``"any"``: no ceiling, ``None``: no skill approves anything, and nothing is refused). ``max_active``: how
    many skills may be active at once, besides the preloaded ones; 0 means no limit. ``selector``: what chooses the
    skills that a model sees; ``"auto"`` is an ``AutoSelector()`` in the dialect ``prowess``, and shows everything in
    others, as ``None`` does in all. ``filter``: a pattern over virtual paths, which are taken relative to ``base_dir``
    (the working folder). ``trust``: which commands and scripts may run; without it, nothing runs. ``on_event`` is
    called with every ``Event``, outside of any lock. ``id``: the name of this conversation in events. ``command_env``:
    the names of variables of the host's environment that commands see besides the usual few. ``explicit_only``: the
    names of skills that models are not shown, even if their files allow it; ``UnknownSkillError`` is raised for a name
    that no skill has. ``available_tools``: the names of all tools of the agent besides skill tools; models are then not
    shown a skill that needs another tool or MCP server (``requires``). ``None``: unknown, and nothing is left out.
    """

    id: str
    """The name of this conversation in events: the id that the host gave, or one that no other session has."""
    limits: Limits
    """The limits of this session: those that the host gave, or the default ones."""
    events: EventEmitter
    """What passes the events of this conversation on to the host's listener."""
    consent: Consent
    """What may run in this conversation: what its trust grants, and what a person approved here."""
    instructions: InstructionLoader
    """What makes the instructions of skills ready for a model."""
    _restored: SavedSession | None = None
    """What ``restore`` makes a session from: it sets this before ``__init__``, which has only public parameters."""

    def __init__(  # noqa: PLR0917 - the public signature
        self,
        catalog: Catalog | Live,
        tools: Iterable[str] | Literal["any"] | None = None,
        max_active: int = 0,
        selector: Selector | Literal["auto"] | None = "auto",
        filter: str = "",
        base_dir: str | os.PathLike[str] | None = None,
        trust: Trust | None = None,
        *,
        limits: Limits | None = None,
        on_event: OnEvent | None = None,
        id: str | None = None,
        command_env: Iterable[str] = (),
        explicit_only: Iterable[str] = (),
        available_tools: Iterable[str] | None = None,
    ) -> None:
        check_catalog(catalog)
        check_number(max_active, "max_active")
        check_text(filter, "filter")
        if id is not None:
            check_text(id, "id")
        check_instance(limits, "limits", Limits, optional=True, remedy="pass prowess.Limits(…)")
        check_callable(on_event, "on_event")
        if iscoroutinefunction(on_event):
            raise SourceError("on_event must be a plain function, not a coroutine function: nobody would await it")
        _check_selector(selector)
        if trust is not None:
            from prowess.conversation.acting.trust import Trust

            # Somebody who passes the name of a policy means a Trust with that policy.
            policy = f"policy={trust!r}" if str(trust) in {"defer", "granted", "never"} else ""
            check_instance(trust, "trust", Trust, optional=True, remedy=f"pass prowess.Trust({policy})")
        hidden = check_texts(explicit_only, "explicit_only")
        folder = os.getcwd() if base_dir is None else as_existing_folder(base_dir, "base_dir")
        restored = self._restored
        self.id = os.urandom(8).hex() if id is None else id
        self.limits = limits or DEFAULT_LIMITS
        self._usual_bytes = ... if limits is None else limits.max_resource_bytes
        self.events = EventEmitter(on_event, self.id)
        self._lock = RLock()
        self._live = catalog if isinstance(catalog, Live) else None
        self._now = Moment(
            catalog.catalog if isinstance(catalog, Live) else catalog,
            self.limits,
            folder,
            filter,
            ceiling=ToolCeiling.of(tools),
            max_active=max_active,
            selector=selector,
            available_tools=_check_tool_names(available_tools),
        )
        if hidden:
            self._now = self._now.with_explicit_only(hidden)
            # A name that is mistyped would show a skill that was to be kept for explicit calls.
            self._now.catalog.check_names(self._now.explicit_only, "explicit_only")
        # What a person refused is known before skills are preloaded: preloading may ask for consent.
        self.consent = Consent(trust, self.events, refused=restored.refused if restored else ())
        variables = check_variables(command_env, "command_env")
        self.instructions = InstructionLoader(self.consent, folder, self.limits, self.events, variables)
        preloaded = {skill.name: self._preload(skill) for skill in self._now.catalog if skill.preload}
        if preloaded:
            self._now = replace(self._now, active={name: entry for name, entry in preloaded.items() if entry})
        if restored is not None:
            kept = {name: entry for name, entry in self._now.active.items() if name in restored.active}
            now = replace(self._now, active=kept, shown=restored.shown, fixed_filters=restored.bounds.filters)
            # The names are not checked: a skill that was saved may be gone since.
            now = now.with_explicit_only(restored.bounds.explicit_only)
            self._now = now.with_ceiling(restored.bounds.ceiling)
            self.read_files = restored.read[-_MAX_READ_FILES:]

    def _preload(self, skill: Skill) -> ActiveSkill | None:
        """Return what is remembered of a preloaded skill; one that cannot be loaded is reported and left out."""
        try:
            try:
                prepared, unrun = self.instructions.prepare(skill), False
            except NotTrustedError as error:
                # There is not yet a call whose answer could carry the request to a person.
                if error.request is None:
                    raise
                prepared, unrun = self.instructions.prepare(skill, run=False), True
        except SkillError as error:
            self.events.emit("refused", skill.name, code=error.code)
            return None
        return prepared.with_ceiling(self._now.ceiling)._replace(preloaded=True, commands_unrun=unrun)

    read_files: tuple[tuple[str, str], ...] = ()
    """The files that were read in this conversation, each as the name of its skill and its path, the latest last."""

    def __repr__(self) -> str:
        """Return how many skills there are, and which are active."""
        return f"<Session of {len(self._now.catalog)} skills, active: {', '.join(self.active_skills) or 'none'}>"

    # -- the present moment ------------------------------------------------------------------------------------------

    def moment(self) -> Moment:
        """Return what the conversation sees and has active now, with the ambient filters of the caller."""
        self._follow_live_catalog()
        self._end_revoked()
        now, ambient, trust = self._now, AMBIENT_FILTERS.get(), self.consent.trust
        if not ambient and trust is None:
            return now
        return replace(now, ambient_filters=ambient, grants=None if trust is None else (trust, trust.mark()))

    def _follow_live_catalog(self) -> None:
        """Take over the present catalogue of a live one; it costs a comparison while nothing changed.

        It must not be called under the lock, since listeners are called.
        """
        live = self._live  # kept, since another thread may switch to a catalogue that is not live
        if live is None or live.catalog is self._now.catalog:
            return
        with self._lock:
            # Looked up again under the lock: two threads must not take over two catalogues in the wrong order.
            if self._live is None or live.catalog is self._now.catalog:
                return
            report = self._replace_catalog(live.catalog)
        self._emit_refresh(report)

    def _end_revoked(self) -> None:
        """End the preloaded skills that are revoked by now: their instructions are in every prompt."""
        for name, entry in self._now.active.items():
            try:
                if entry.preloaded:
                    entry.loaded.skill.refuse_revoked()
            except SkillError as error:  # a folder that cannot be hashed may be gone: the instructions were read before
                if error.code == "revoked":
                    with self._lock:
                        self._now = self._now.with_active(name, None)
                    self.events.emit("refused", name, code=error.code)
                elif isinstance(error, PolicyError):
                    raise

    def _replace_catalog(self, catalog: Catalog) -> Refreshed:
        """Use another catalogue. An active skill that is gone stays usable, and one that changed is marked stale."""
        report = compare_catalogs(self._now.catalog, catalog, self._now.active)
        self._now = self._now.with_catalog(catalog, report)
        return report

    def _emit_refresh(self, report: Refreshed) -> None:
        self.events.emit("refreshed", "", added=report.added, removed=report.removed, changed=report.changed)

    # -- settings ----------------------------------------------------------------------------------------------------

    @property
    def catalog(self) -> Catalog:
        """The catalogue in use; that of a live one as it is now."""
        self._follow_live_catalog()
        return self._now.catalog

    @property
    def filter(self) -> str:
        """The session's own filter."""
        return self._now.filter

    @property
    def base_dir(self) -> str:
        """The working folder, where commands run."""
        return self._now.base_dir

    # -- trust and tools ---------------------------------------------------------------------------------------------

    @property
    def trust(self) -> Trust | None:
        """Which commands and scripts may run; ``None``: none."""
        return self.consent.trust

    def approve(self, request: TrustRequest) -> None:
        """Allow what a pending call would run: exactly that, once, while the files stay as they are.

        The host makes the call again. It runs if it would still run what the request says, and if the policy is
        ``defer`` or ``ask``. A further call needs an approval of its own. Raises ``NotTrustedError`` for a session
        without trust, and (code ``refused-by-person``) for what a person refused in this conversation.
        """
        self.consent.approve(request)

    def refuse(self, request: TrustRequest) -> None:
        """Refuse what a pending call would run: nobody is asked again, and no approval or grant lifts it.

        For a script, the model reads that the user said no; commands stay in the text as they are written.
        Raises ``NotTrustedError`` for a session without trust.
        """
        self.consent.refuse(request)

    @property
    def grants_tools(self) -> bool:
        """True when the host said which tools skills may approve; otherwise no skill approves any."""
        return self._now.ceiling.grants

    @property
    def active_skills(self) -> tuple[str, ...]:
        """The names of the active skills that the filter lets through, sorted."""
        return tuple(self.moment().visible_active)

    @property
    def active_tools(self) -> tuple[str, ...]:
        """The tools that the active skills bring, each once, sorted."""
        return tuple(sorted({tool for entry in self.moment().visible_active.values() for tool in entry.tools}))

    @property
    def listed_tools(self) -> tuple[str, ...]:
        """The tools that the ``allowed-tools`` of the active skills name within the ceiling, each once, sorted.

        This says nothing about approval: they bound what a skill was written to do, also where no skill approves any.
        """
        now = self.moment()
        skills = [entry.loaded.skill for entry in now.visible_active.values()]
        return grant_tools((tool for skill in skills for tool in skill.allowed_tools), now.ceiling.tools)

    def allows(self, tool: str, command: str | None = None) -> ToolAnswer:
        """Return whether the active skills approve a call: ``allowed``, ``refused``, or ``not-mentioned`` by any.

        Only ``allowed`` is true. A call is refused beyond the ceiling, and where a skill mentions the tool but does not
        cover the command. No pattern covers a command with a shell operator, a substitution or a line break. Where the
        host gave no ``tools``, no skill mentions any.
        """
        check_text(tool, "tool")
        if command is not None:
            check_text(command, "command")
        ceiling = self._now.ceiling.tools
        if ceiling is not None and not judge_call(tool, command, ceiling, has_families=True):
            return REFUSED
        return judge_call(tool, command, self.active_tools)

    # -- what may be seen --------------------------------------------------------------------------------------------

    def resolve_name(self, name: str) -> str:
        """Return the name that the catalogue has for a skill that may be called by the name in its file.

        A name that no skill has is returned as it is. Raises ``SourceError`` for a name that is not a string.
        """
        return self.moment().resolve_name(name)

    @measure_call()
    def set_filter(self, pattern: str) -> tuple[str, ...]:
        """Filter by another pattern from now on; return the names of the skills that this deactivated, sorted."""
        check_text(pattern, "pattern")
        with self._lock:
            # Ambient filters do not count: they hold for the caller's block only, and this ends skills for good.
            now = replace(self._now, filter=pattern)
            ended = sorted(name for name, entry in now.active.items() if not now.passes(entry.loaded.skill))
            kept = {name: entry for name, entry in now.active.items() if name not in ended}
            self._now = replace(now, active=kept)
        for name in ended:
            self.events.emit("deactivated", name, reason="filter", filter=pattern)
        return tuple(ended)

    def set_scope(self, scope: Scope) -> tuple[str, ...]:
        """Let the conversation have what ``scope`` lets it have, from now on; return the allowed names of no skill.

        The session's other filters hold too. An active skill that is out of scope is hidden, and it is active again
        under a scope that has it. A scope is not saved: set it again in a restored session. Without ``trust`` the
        session keeps the trust that it has. ``scripts`` is for the toolset.
        """
        check_instance(scope, "scope", Scope, remedy="pass prowess.Scope(…)")
        if isinstance(scope.trust, str):
            raise_bad_argument(
                "scope.trust", "must be a prowess.Trust", scope.trust, f"pass Trust(policy={scope.trust!r})"
            )
        moment = self.moment()
        allowed = None if scope.allowed is None else {name: moment.resolve_name(name) for name in scope.allowed}
        with self._lock:
            names = None if allowed is None else frozenset(allowed.values())
            off = frozenset(moment.resolve_name(name) for name in scope.off)
            self._now = replace(self._now, allowed=names, scope_filter=scope.filter, off=off)
            if scope.trust is not None:
                self.consent.trust = scope.trust
        known = (moment.catalog, moment.active)
        return tuple(name for name, resolved in (allowed or {}).items() if not any(resolved in each for each in known))

    def set_available_tools(self, names: Iterable[str] | None) -> None:
        """Take these for all tools of the agent, besides skill tools, from now on; ``None``: they are unknown."""
        available = _check_tool_names(names)
        if available != self._now.available_tools:
            with self._lock:
                self._now = replace(self._now, available_tools=available)

    def explain(self, name: str) -> Explanation:
        """Return what ``Catalog.explain`` returns, and whether this conversation hides the skill or has it active."""
        return self.moment().explain(name)

    # -- listing -----------------------------------------------------------------------------------------------------

    def set_selector(self, selector: Selector | Literal["auto"] | None) -> None:
        """Select with another selector from now on; ``None``: every eligible skill is shown.

        The next request counts as the first one of the conversation.
        """
        _check_selector(selector)
        with self._lock:
            self._now = replace(self._now, selector=selector, shown={})

    def candidates(self, query: str = "", under: str = "") -> tuple[Skill, ...]:
        """Return the skills worth showing for ``query``: those eligible ones that the selector picks.

        They come by name, or in the order of a selector that has one, such as ``AutoSelector``.
        """
        now = self.moment()
        selector = now.selector_where(by_default=True)
        return self._take_turn(now, query, selector, now.eligible(under), ListingTurn())[0]

    def choose(
        self, moment: Moment, query: str, selector: Selector | None, skills: Candidates, place: ListingTurn
    ) -> ListingChoice:
        """Return which of the eligible skills are listed in a place, and remember it; the turn has not begun."""
        picked, turn = self._take_turn(moment, query, selector, skills, place)
        if selector is None:
            return ListingChoice()
        choice = turn.choice or ListingChoice(how="picked")
        return choice if picked is skills else choice._replace(names=tuple(skill.name for skill in picked))

    def _take_turn(
        self, moment: Moment, query: str, selector: Selector | None, skills: Candidates, place: ListingTurn
    ) -> tuple[tuple[Skill, ...], ListingTurn]:
        """Return what a selector picks, and the turn that it took; what the turn has shown is remembered."""
        check_text(query, "query")
        shown = moment.shown
        while True:
            turn = replace(place, shown=shown, required=moment.required, failures=[])
            picked = ask_selector(selector, query, skills, turn)
            if self._end_turn(turn):
                return picked, turn
            shown = self._now.shown

    def _end_turn(self, turn: ListingTurn) -> bool:
        """Remember what a turn has shown; return ``False`` when another request of the conversation was faster."""
        for error in turn.failures:
            # The selector is the host's code: its mistake must not end the conversation, so more skills are shown.
            log_host_error("selector", error)
            self.events.emit("selector-failed", "", error=f"{type(error).__name__}: {error}")
        if turn.change is None:
            return True
        key, old, new = turn.change
        with self._lock:
            shown = self._now.shown
            if shown.get(key) is not old:
                return False
            others = [item for item in shown.items() if item[0] != key]
            self._now = replace(self._now, shown={**dict(others[1 - _MAX_SHOWN_LISTS :]), key: new})
        return True

    @measure_call()
    def index(self, query: str = "", under: str = "") -> str:
        """Return the candidates as lines of text for a prompt."""
        skills = self.candidates(query, under)
        self.events.emit("listed", "", names=tuple(skill.name for skill in skills), query=query)
        listing = render_lines(make_entries(skills, has_location=False))
        return f"Available skills:\n{listing}" if skills else "No skills available."

    # -- activation --------------------------------------------------------------------------------------------------

    @measure_call()
    def activate(self, name: str, filter: str | None = None, *, run: bool = True) -> Activation:
        """Make a skill active; return its instructions, and the tools that it brings.

        ``filter`` replaces the session's filter for this call. Activating a skill again gives what was loaded the first
        time, unless it was granted, or its grant was revoked, since then. A skill from a server is compared with what
        the server has now, and loaded again if it changed. ``run=False``: no command in the instructions runs, and they
        are as the file has them. Raises ``UnknownSkillError``, ``SkillFilteredError``, ``MaxActiveError``, or an error
        of reading the file.
        """
        if filter is not None:
            check_text(filter, "filter")
        moment = self.moment()
        name = moment.resolve_name(name)
        with self._report_refusals(name):
            activation = self._activate(ActivationRequest(name, moment, filter, run=run))
        # The skill may have been active with its commands run, by the host or as a preloaded skill.
        return activation if run else replace(activation, instructions=activation.written, outputs=(), issues=())

    def _reactivate(self, name: str) -> Activation:
        moment = self.moment()
        with self._report_refusals(name):
            request = ActivationRequest(moment.resolve_name(name), moment, run=False, was_saved=True)
            return self._activate(request)

    @measure_call()
    def activate_text(self, name: str, *, whole: bool = False, run: bool = True) -> str:
        """Make a skill active; return its body as the file has it now (``whole``: the whole file).

        Commands in the text run if the skill is trusted; ``run=False``: none runs. When the text cannot be read, the
        skill stays inactive.
        """
        moment = self.moment()
        name = moment.resolve_name(name)
        rendered: list[str] = []

        def read_text(skill: Skill) -> None:
            rendered.append(self.instructions.expand_text(skill, whole=whole, run=run).text)

        with self._report_refusals(name):
            skill = self._activate(ActivationRequest(name, moment, run=False), before_remembering=read_text).skill
            if not rendered:  # it was active already
                read_text(skill)
        return rendered[0]

    @contextmanager
    def _report_refusals(self, name: str, **detail: str) -> Iterator[None]:
        """Emit an event for an error that is raised in the block."""
        try:
            yield
        except SkillError as error:
            # A call that waits for a person's approval is not refused, and its own event was sent already.
            if error.code != "needs-approval":
                self.events.emit("refused", name, code=error.code, **detail)
            raise

    def _activate(
        self, request: ActivationRequest, before_remembering: Callable[[Skill], None] | None = None
    ) -> Activation:
        """Make a skill active. What ``before_remembering`` raises leaves the skill inactive."""
        name, moment = request.name, request.moment
        skill, active = moment.require_known(name), moment.active.get(name)
        step = decide_step(moment, request, skill)
        note = GRANTS_CHANGED if step == "check-grant" else ""
        if active is not None and (
            step == "keep" or (step == "check-grant" and self._is_decision_current(name, active))
        ):
            skill.refuse_revoked()  # it may be revoked since it was loaded
            try:
                changes = "" if active.gone else active.loaded.skill.own_files.find_changes()
            except FetchError:
                return make_activation(active, CHANGE_UNKNOWN)
            if not changes:
                return make_activation(active)
            note = f"{CHANGED_SINCE_LOAD} ({changes})"
        prepared = self.instructions.prepare(skill, request.arguments, run=request.run)
        if before_remembering is not None:
            before_remembering(prepared.loaded.skill)
        # The file was read outside of the lock, so another thread may have changed anything meanwhile.
        with self._lock:
            now = self._now
            listed = now.catalog.get(name)
            step = decide_step(now, request, listed or skill, is_read=True)
            active = now.active.get(name)
            if active is not None and step == "keep":
                return make_activation(active)
            has_new_catalog = now.catalog is not moment.catalog
            entry = prepared.with_ceiling(now.ceiling)._replace(
                preloaded=active is not None and active.preloaded,
                stale=has_new_catalog and listed is not None and may_differ(prepared.loaded.skill, listed),
                gone=listed is None,
                commands_unrun=not request.run and may_have_commands(prepared.loaded.instructions),
            )
            self._now = now.with_active(name, entry)
        # Only where somebody listens: looking for hidden text costs as much as reading the file.
        if self.events.on_event is not None and not request.was_saved:
            hidden = {"issues": ("hidden-text",)} if find_hidden_points(entry.loaded.instructions) else {}
            self.events.emit("activated", name, location=skill.location, tools=entry.tools, **hidden)
        return make_activation(entry, note or (CHANGED_SINCE_LOAD if active is not None and active.stale else ""))

    def _is_decision_current(self, name: str, active: ActiveSkill) -> bool:
        """Return whether what was decided about the commands of an active skill would be decided again now."""
        assert active.command_decision is not None
        decision = self.instructions.recheck_decision(active.loaded.skill, active.command_decision)
        if decision is not None and decision != active.command_decision:
            with self._lock:
                # The decision was made outside of the lock: another thread may have activated or ended the skill.
                if self._now.active.get(name) is active:
                    self._now = self._now.with_active(name, active._replace(command_decision=decision))
        return decision is not None

    @measure_call()
    def deactivate(self, name: str) -> tuple[str, ...]:
        """Deactivate a skill; return the tools that no other active skill brings, sorted.

        Raises ``SkillNotActiveError`` for a skill that is not active.
        """
        name = self.resolve_name(name)
        with self._lock:
            entry = self._now.active.get(name)
            if entry is None:
                raise SkillNotActiveError(f"skill {name!r} is not active")
            self._now = self._now.with_active(name, None)
            kept = {tool for other in self._now.active.values() for tool in other.tools}
        removed = tuple(tool for tool in entry.tools if tool not in kept)
        self.events.emit("deactivated", name, reason="asked", tools=removed)
        return removed

    @measure_call()
    def expand(self, message: str, *, inline_forks: bool = False) -> str:
        """Return the text to send to the model for ``/name arguments`` or ``$name arguments``; ``""`` for other text.

        The placeholders in the instructions are filled. Arguments that no placeholder takes are above them as the
        user's request. A skill that runs as a sub-agent adds nothing to this conversation and gives ``""``: the host
        prepares it by ``Toolset.prepare_fork(name, arguments, by_person=True)``. ``inline_forks=True`` gives its text
        all the same, for hosts that run no sub-agents. Raises ``SkillFilteredError`` for a skill that is not for people
        to call.
        """
        check_text(message, "message")
        moment, call = self.moment(), parse_call(message)
        # Text such as "/tmp is full" is not a call: without a skill with that name it is an ordinary message.
        if call is None or (call[0] not in moment.catalog and call[0] not in moment.active):
            return ""
        name, arguments = moment.resolve_name(call[0]), call[1]
        with self._report_refusals(name):
            skill = moment.require(name)
            if not skill.user_invocable:
                raise SkillFilteredError(f"skill {name!r} is not for people to call", code="not-for-people")
            if skill.is_fork and not inline_forks:
                return ""
            activation = self._activate(ActivationRequest(name, moment, arguments=arguments))
        if activation.outputs and activation.note == ALREADY_ACTIVE:
            # What the commands printed when it was activated was for other arguments, and at another time.
            activation = make_activation(self.instructions.prepare(activation.skill, arguments))
        return render_call(activation, arguments, moment.base_dir)

    # -- reading -----------------------------------------------------------------------------------------------------

    def skill(self, name: str) -> Skill:
        """Return a skill that exists and that the filter lets through, to read from.

        For an active skill that is not in a folder on this machine, it is the one that was loaded. Raises
        ``UnknownSkillError`` or ``SkillFilteredError``.
        """
        moment = self.moment()
        return moment.pin_state(moment.require(name))

    @measure_call()
    def read_resource(self, name: str, path: str, max_bytes: int | None = None) -> str:
        """Return the text of a file of a skill that the filter lets through."""
        with self._report_refusals(name, path=path):
            skill = self.skill(name)
            text = skill.label_text(skill.read_resource(path, self._usual_bytes if max_bytes is None else max_bytes))
        self.note_read(name, path, len(text))
        return text

    def note_read(self, name: str, path: str, characters: int) -> None:
        """Remember that a file of a skill was read, for a recap, and report it."""
        with self._lock:
            kept = [entry for entry in self.read_files if entry != (name, path)]
            self.read_files = (*kept[1 - _MAX_READ_FILES :], (name, path))
        self.events.emit("read", name, path=path, characters=characters)

    def read_text(self, name: str, *, whole: bool = False) -> str:
        """Return the body of a skill (``whole``: the whole file) without making the skill active.

        Commands in the text run if the skill is trusted.
        """
        return self.instructions.expand_text(self.skill(name), whole=whole).text

    # -- sub-agents and other catalogues -----------------------------------------------------------------------------

    def open_child(self, tools: Iterable[str] | None = None) -> Session:
        """Return a session for a sub-agent: with this catalogue, trust and bounds, but active skills of its own.

        It begins with the preloaded skills that are active here. ``tools`` lowers its ceiling. The current filters,
        also the ambient ones, hold for as long as it lives: whoever runs the sub-agent may do so in another place.
        """
        now = self.moment()
        filters = tuple(dict.fromkeys(pattern for pattern in now.filters if pattern))
        active = {name: entry for name, entry in now.active.items() if entry.preloaded}
        begun = replace(now, active=active, shown={}, fixed_filters=filters, ambient_filters=(), grants=None)
        ceiling = now.ceiling._replace(tools=intersect_ceilings(now.ceiling.tools, tools))
        consent = Consent(self.consent.trust, self.events, parent=self.consent)
        # A copy, not a call of __init__, which would run the commands of preloaded skills again.
        child = copy(self)
        vars(child).update(
            _lock=RLock(),
            _now=begun.with_ceiling(ceiling),
            consent=consent,
            instructions=replace(self.instructions, consent=consent),
        )
        return child

    @measure_call()
    def refresh(self, catalog: Catalog) -> Refreshed:
        """Use another catalogue from now on; return what was added, removed and changed. No live one is followed.

        An active skill that is gone stays usable from what was loaded, and says so; a changed one keeps its text until
        it is activated again. Raises ``SourceError`` for anything that is not a catalogue.
        """
        check_catalog(catalog)
        with self._lock:
            self._live = None
            report = self._replace_catalog(catalog)
        self._emit_refresh(report)
        return report

    # -- saving and restoring ----------------------------------------------------------------------------------------

    def save(self) -> str:
        """Return the session as JSON: its bounds, the active skills with their digests, what a person refused.

        It also has the names of the skills that were chosen for the conversation, each with the reason, so that a
        restored session goes on with its listing. The requests are not in it.
        """
        now = self.moment()
        hidden = tuple(sorted(now.explicit_only))
        bounds = SessionBounds(now.ceiling, now.max_active, now.filter, now.fixed_filters, hidden)
        return session_as_json(bounds, now.active, self.consent.refused_ids, now.shown, self.read_files)

    @classmethod
    def restore(
        cls,
        catalog: Catalog | Live,
        saved: str,
        *,
        tools: Iterable[str] | Literal["any"] | None = None,
        max_active: int | None = None,
        filter: str | None = None,
        limits: Limits | None = None,
        trust: Trust | None = None,
        selector: Selector | Literal["auto"] | None = "auto",
        base_dir: str | os.PathLike[str] | None = None,
        on_event: OnEvent | None = None,
        id: str | None = None,
        command_env: Iterable[str] = (),
        explicit_only: Iterable[str] | None = None,
        available_tools: Iterable[str] | None = None,
        widen: bool = False,
    ) -> tuple[Session, tuple[Issue, ...]]:
        """Return the session that was saved, over a present catalogue, and what has changed or is missing since.

        It may do what both the save and the arguments allow: the tools of both ceilings, the smaller ``max_active``,
        the skills that pass both filters and that neither keeps for explicit calls. ``widen=True``: ``tools``, and the
        other three where they are given, replace what was saved. Without ``tools`` no skill approves anything. A save
        of an older version, which has no ceiling, allows no tools, and an issue says so. Refusals stay, also with
        ``widen``; approvals and ``id`` are not saved. Restoring a skill runs no command and asks nobody: its commands
        run when it is activated again, if they may. Raises ``SourceError`` for a string that is not a saved session.
        """
        save = session_from_json(saved)
        hidden = None if explicit_only is None else check_texts(explicit_only, "explicit_only")
        bounds = merge_bounds(save, ToolCeiling.of(tools), max_active, filter, hidden, widen=widen)
        session = cls.__new__(cls)
        # Before __init__, since what a person refused must be known when skills are preloaded there.
        vars(session).update(_restored=save._replace(bounds=bounds))
        start = partial(cls.__init__, session, catalog, None, bounds.max_active, selector, bounds.filter, base_dir)
        start = partial(start, limits=limits, on_event=on_event, id=id, available_tools=available_tools)
        start(trust, command_env=command_env, explicit_only=hidden or ())
        return session, tuple(reactivate_skills(save, partial(cls._reactivate, session), widen=widen))


def check_catalog(catalog: Catalog | Live) -> None:
    """Raise ``SourceError`` unless the value is a catalogue or a live one."""
    given: object = catalog
    if isinstance(given, Catalog | Live):
        return
    instead = f"prowess.scan({show_path_argument(given)})"
    if isinstance(getattr(given, "catalog", None), Catalog):  # somebody passed a session or a toolset
        instead = f"{type(given).__name__.lower()}.catalog"
    raise_bad_argument("catalog", "must be a prowess.Catalog", given, f"pass {instead}")


def _check_tool_names(names: Iterable[str] | None) -> frozenset[str] | None:
    return None if names is None else frozenset(check_texts(names, "available_tools"))


def _check_selector(selector: Selector | Literal["auto"] | None) -> None:
    if selector is not None and not (isinstance(selector, str) and selector == "auto"):
        check_method(selector, "selector", "select", 'pass a prowess.Selector, "auto", or None to show everything')

"""One conversation over a catalogue of skills: the public face of its parts.

``SessionState`` has the catalogue, the filters and the active skills, ``SkillActivator`` makes skills active,
``SkillListing`` picks those that a model is shown, ``Consent`` knows what may run, ``InstructionLoader`` makes text
ready for a model and ``EventEmitter`` tells the host. A session may be used from several threads: its state changes
under one lock, files are read outside of it, and every call works with the ambient filters that surrounded it when it
began.
"""

from __future__ import annotations

import os
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from prowess.arguments import check_text, check_texts, check_variables
from prowess.conversation.activation import Activation, collect_tools, make_activation
from prowess.conversation.activator import ActivationRequest, SkillActivator
from prowess.conversation.active_skills import ActiveSkills
from prowess.conversation.ambient_filter import ambient_filters
from prowess.conversation.consent import Consent
from prowess.conversation.events import EventEmitter, measure_call, record_event_kinds
from prowess.conversation.instruction_loader import InstructionLoader
from prowess.conversation.session_arguments import (
    check_catalog,
    check_selector,
    check_session_arguments,
    parse_ceiling,
)
from prowess.conversation.session_json import (
    SavedSession,
    merge_bounds,
    older_save_issue,
    reactivate_skills,
    session_as_json,
    session_from_json,
)
from prowess.conversation.session_state import SessionState
from prowess.conversation.skill_listing import SkillListing
from prowess.conversation.source_labels import with_source_label
from prowess.conversation.user_call import expand_call
from prowess.conversation.visibility import Visibility
from prowess.errors import SkillError
from prowess.files.path_arguments import as_existing_folder
from prowess.limits import DEFAULT_LIMITS, Limits
from prowess.select.auto_selector import AutoSelector
from prowess.skills.instructions import LoadedSkill
from prowess.spec.tool_rules import REFUSED, grant_tools, judge_call

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable
    from contextlib import AbstractContextManager

    from prowess.conversation.acting.trust import Trust
    from prowess.conversation.acting.trust_request import TrustRequest
    from prowess.conversation.catalog_diff import Refreshed
    from prowess.conversation.events import Event, OnEvent
    from prowess.discovery.live import Live
    from prowess.errors import Issue
    from prowess.model import Explanation
    from prowess.select.candidates import Candidates
    from prowess.select.listing_turn import ListingChoice, ListingRoom
    from prowess.select.selectors import Selector
    from prowess.skills.catalog import Catalog
    from prowess.skills.skill import Skill
    from prowess.spec.commands import ExpandedText
    from prowess.spec.tool_rules import ToolAnswer


_DEFAULT_SELECTOR = AutoSelector()
"""What ``"auto"`` stands for; it has no state, so that all sessions share it."""


class Session:
    """The active skills of one conversation over a catalogue; it follows the changes of a live catalogue.

    ``tools``: the tools that skills may approve by their ``allowed-tools``, and the most that the host allows (``[]``:
    nothing, ``"any"``: no ceiling, ``None``: no skill approves anything, and nothing is refused). ``max_active``: how
    many skills may be active at once, besides the preloaded ones; 0 is no limit. ``selector``: what chooses the skills
    that a model is shown; ``"auto"`` is an ``AutoSelector()`` in the dialect ``prowess``, and shows everything in
    others, as ``None`` does in all. ``filter``: a pattern over virtual paths, which are taken relative to ``base_dir``
    (the working folder). ``trust``: which commands and scripts may run; without it, nothing runs. ``on_event`` is
    called with every ``Event``, outside of any lock. ``id``: the name of this conversation in events. ``command_env``:
    the names of variables of the host's environment that commands see besides the usual few. ``explicit_only``: the
    names of skills that models are not shown, even if their files allow it; ``UnknownSkillError`` is raised for a name
    that no skill has.
    """

    _restored: SavedSession | None = None
    """What ``restore`` makes a session from: it sets this before ``__init__``, which has only public parameters."""

    def __init__(  # noqa: PLR0917 - the public signature
        self,
        catalog: Catalog | Live,
        tools: Iterable[str] | Literal["any"] | None = None,
        max_active: int = 0,
        selector: Selector | Literal["auto"] | None = "auto",
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
        check_session_arguments(catalog, max_active, selector, filter, trust, id=id, limits=limits, on_event=on_event)
        hidden = check_texts(explicit_only, "explicit_only")
        folder = os.getcwd() if base_dir is None else as_existing_folder(base_dir, "base_dir")
        restored = self._restored
        self._limits = limits
        self._events = EventEmitter(on_event, os.urandom(8).hex() if id is None else id)
        active = ActiveSkills(parse_ceiling(tools), max_active)
        self._state = SessionState(catalog, Visibility(folder, filter), active, self._events, self.limits)
        self._state.hide_from_models(hidden)
        # A name that is mistyped would show a skill that was to be kept for explicit calls.
        self._state.catalog.check_names(self._state.visibility.explicit_only, "explicit_only")
        self._listing = _make_listing(self._state, self._events, selector)
        # What a person refused is known before skills are preloaded: preloading may ask for consent.
        self._consent = Consent(trust, self._events, refused=restored.refused if restored else ())
        variables = check_variables(command_env, "command_env")
        self._instructions = InstructionLoader(self._consent, folder, self.limits, self._events, variables)
        self._activator = SkillActivator(self._state, self._instructions, self._events)
        self._activator.preload_skills()
        if restored is not None:
            self._state.apply_save(restored)

    def __repr__(self) -> str:
        """Return how many skills there are, and which are active."""
        return f"<Session of {len(self._state.catalog)} skills, active: {', '.join(self.active_skills) or 'none'}>"

    # -- settings ----------------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The name of this conversation in events: the id that the host gave, or one that no other session has."""
        return self._events.session

    @property
    def catalog(self) -> Catalog:
        """The catalogue in use; that of a live one as it is now."""
        self._state.follow_live_catalog()
        return self._state.catalog

    @property
    def filter(self) -> str:
        """The session's own filter."""
        return self._state.visibility.filter

    @property
    def base_dir(self) -> str:
        """The working folder, in which commands run."""
        return self._state.visibility.base_dir

    @property
    def revision(self) -> int:
        """A number that grows with every change of what the session shows or has active."""
        self._state.follow_live_catalog()
        return self._state.revision

    @property
    def limits(self) -> Limits:
        """The limits of this session: those that the host gave, or the default ones."""
        return self._limits or DEFAULT_LIMITS

    @property
    def max_resource_bytes(self) -> int:
        """How many bytes of a file one read gives at most, unless the call says otherwise."""
        return self.limits.max_resource_bytes

    # -- trust and tools ---------------------------------------------------------------------------------------------

    @property
    def trust(self) -> Trust | None:
        """Which commands and scripts may run; ``None``: none."""
        return self._consent.trust

    @property
    def consent(self) -> Consent:
        """What may run in this conversation: what its trust grants, and what a person approved here."""
        return self._consent

    def approve(self, request: TrustRequest) -> None:
        """Allow what a pending call would run: exactly that, once, while the files stay as they are.

        The host makes the call again. It runs if it would still run what the request says, and if the policy is
        ``defer`` or ``ask``. A further call needs an approval of its own. Raises ``NotTrustedError`` for a session
        without trust, and (code ``refused-by-person``) for what a person refused in this conversation.
        """
        self._consent.approve(request)

    def refuse(self, request: TrustRequest) -> None:
        """Refuse what a pending call would run: nobody is asked again, and no approval or grant lifts it.

        For a script, the model is told that a person said no; commands stay in the text as they are written.
        Raises ``NotTrustedError`` for a session without trust.
        """
        self._consent.refuse(request)

    @property
    def ceiling(self) -> tuple[str, ...] | None:
        """The most that the host allows; ``None``: there is no ceiling."""
        return self._state.active.ceiling.tools

    @property
    def grants_tools(self) -> bool:
        """True when the host said which tools skills may approve; otherwise no skill approves any."""
        return self._state.active.ceiling.grants

    @property
    def active_skills(self) -> tuple[str, ...]:
        """The names of the active skills that the filter lets through, sorted."""
        return tuple(sorted(self._state.visible_entries()))

    @property
    def active_tools(self) -> tuple[str, ...]:
        """The tools that the active skills bring, each once, sorted."""
        return tuple(sorted(collect_tools(self._state.visible_entries().values())))

    @property
    def listed_tools(self) -> tuple[str, ...]:
        """The tools that the ``allowed-tools`` of the active skills name within the ceiling, each once, sorted.

        This says nothing about approval: they bound what a skill was written to do, also where no skill approves any.
        """
        skills = [entry.loaded.skill for entry in self._state.visible_entries().values()]
        return grant_tools((tool for skill in skills for tool in skill.allowed_tools), self.ceiling)

    def allows(self, tool: str, command: str | None = None) -> ToolAnswer:
        """Return whether the active skills approve a call: ``allowed``, ``refused``, or ``not-mentioned`` by any.

        Only ``allowed`` is true. A call is refused beyond the ceiling, and where a skill mentions the tool but does not
        cover the command. No pattern covers a command with a shell operator, a substitution or a line break. Where the
        host gave no ``tools``, no skill mentions any.
        """
        check_text(tool, "tool")
        if command is not None:
            check_text(command, "command")
        ceiling = self._state.active.ceiling.tools
        if ceiling is not None and not judge_call(tool, command, ceiling, has_families=True):
            return REFUSED
        return judge_call(tool, command, self.active_tools)

    # -- what may be seen --------------------------------------------------------------------------------------------

    def is_available(self, name: str) -> bool:
        """Return whether a skill of that name exists, or is still active, and the filter lets it through."""
        return self.available(name) is not None

    def available(self, name: str) -> Skill | None:
        """Return the skill of that name if ``is_available`` is true for it, ``None`` otherwise."""
        return self._state.find_visible(name)

    def resolve_name(self, name: str) -> str:
        """Return the name that the catalogue has for a skill that may be called by the name in its file.

        A name that no skill has is returned as it is. Raises ``SourceError`` for a name that is no text.
        """
        return self._state.resolve_name(name)

    @measure_call
    def set_filter(self, pattern: str) -> tuple[str, ...]:
        """Filter by another pattern from now on; return the names of the skills that this deactivated, sorted."""
        check_text(pattern, "pattern")
        ended = self._state.set_filter(pattern)
        for name in ended:
            self._events.emit("deactivated", name, reason="filter", filter=pattern)
        return tuple(ended)

    def filter_path(self, skill: Skill) -> str:
        """Return the path that relative filters are matched against.

        It is relative to ``base_dir`` for a skill inside that folder, and ``""`` for an inline skill.
        """
        return self._state.visibility.filter_path(skill)

    def is_for_models(self, skill: Skill) -> bool:
        """Return whether models are shown a skill: neither its file nor the host keeps it for explicit calls."""
        return self._state.visibility.is_for_models(skill)

    def explain_hidden(self, skill: Skill) -> str:
        """Return why models are not shown a skill in this conversation; ``""`` when they may be."""
        return self._state.explain_hidden(skill)

    def explain(self, name: str) -> Explanation:
        """Return what ``Catalog.explain`` returns, and whether this conversation hides the skill or has it active."""
        return self._state.explain(name)

    # -- listing -----------------------------------------------------------------------------------------------------

    @property
    def has_selector(self) -> bool:
        """Whether a selector decides which skills are worth showing."""
        return self._listing.selector is not None

    def set_selector(self, selector: Selector | Literal["auto"] | None) -> None:
        """Select with another selector from now on; ``None``: every eligible skill is shown.

        The next request counts as the first one of the conversation.
        """
        check_selector(selector)
        with self._state.lock:
            self._listing = _make_listing(self._state, self._events, selector)
            self._state.forget_shown()

    def candidates(self, query: str = "", under: str = "") -> tuple[Skill, ...]:
        """Return the skills worth showing for ``query``: those eligible ones that the selector picks.

        They come by name, or in the order of a selector that has one, such as ``AutoSelector``.
        """
        return self._listing.select(query, under)

    async def acandidates(self, query: str = "", under: str = "") -> tuple[Skill, ...]:
        """Return what ``candidates`` returns, and await a selector that is asynchronous."""
        return await self._listing.select_async(query, under)

    def eligible(self, under: str = "") -> Candidates:
        """Return every skill that models may see and that the filter lets through, by name."""
        return self._state.eligible_skills(under)

    def choose(self, query: str, room: ListingRoom, allowed: Iterable[str] | None = None) -> ListingChoice:
        """Return which of the allowed skills are listed for ``query`` in a place such as the prompt of a toolset."""
        return self._listing.choose(query, room, allowed)

    def choose_reachable(self, query: str, room: ListingRoom, allowed: Iterable[str] | None = None) -> ListingChoice:
        """Return what any request could bring into a listing, so that tools need not change with each of them."""
        return self._listing.choose_reachable(query, room, allowed)

    @measure_call
    def index(self, query: str = "", under: str = "") -> str:
        """Return the candidates as lines of text for a prompt."""
        return self._listing.render_index(query, under)

    def listing_key(self) -> Hashable:
        """Return what a listing for a model depends on besides its catalogue and selector.

        Equal keys mean equal listings.
        """
        grants = None if self.trust is None else (self.trust, self.trust.mark())
        return self._state.make_listing_key(), grants

    # -- activation --------------------------------------------------------------------------------------------------

    @measure_call
    def activate(
        self,
        name: str,
        filter: str | None = None,  # noqa: A002 - the public signature
        *,
        run: bool = True,
    ) -> Activation:
        """Make a skill active; return its instructions, and the tools that it brings.

        ``filter`` replaces the session's filter for this call. Activating a skill again gives what was loaded the first
        time, unless it was granted, or its grant was revoked, since then. A skill from a server is compared with what
        the server has now, and loaded again if it changed. ``run=False``: no command in the instructions runs, and they
        are as the file has them. Raises ``UnknownSkillError``, ``SkillFilteredError``, ``MaxActiveError``, or an error
        of reading the file.
        """
        if filter is not None:
            check_text(filter, "filter")
        name = self.resolve_name(name)
        activation = self._activator.activate(ActivationRequest(name, ambient_filters(), filter, run=run))
        # The skill may have been active with its commands run, by the host or as a preloaded skill.
        return activation if run else replace(activation, instructions=activation.written, outputs=(), issues=())

    @measure_call
    def activate_text(self, name: str, *, whole: bool = False, run: bool = True) -> str:
        """Make a skill active; return its body as the file has it now (``whole``: the whole file).

        Commands in the text run if the skill is trusted; ``run=False``: none runs.
        """
        request = ActivationRequest(self.resolve_name(name), ambient_filters(), run=False)
        return self._activator.activate_text(request, whole=whole, run=run)

    @measure_call
    def deactivate(self, name: str) -> tuple[str, ...]:
        """Deactivate a skill; return the tools that no other active skill brings, sorted.

        Raises ``SkillNotActiveError`` for a skill that is not active.
        """
        name = self.resolve_name(name)
        with self._state.lock:
            removed = self._state.active.deactivate(name)
            self._state.revision += 1
        self._events.emit("deactivated", name, reason="asked", tools=removed)
        return removed

    def preloaded(self) -> tuple[LoadedSkill, ...]:
        """Return the preloaded skills that are active and visible, by name."""
        return tuple(LoadedSkill(activation.skill, activation.instructions) for activation in self.preloads())

    def preloads(self) -> tuple[Activation, ...]:
        """Return the activations of the preloaded skills that are active and visible, by name."""
        entries = sorted(self._state.visible_entries().items())
        return tuple(make_activation(entry) for _, entry in entries if entry.preloaded)

    @measure_call
    def expand(self, message: str, *, inline_forks: bool = False) -> str:
        """Return the text to send to the model for ``/name arguments`` or ``$name arguments``; ``""`` for other text.

        The placeholders in the instructions are filled. Arguments that no placeholder takes stand above them as the
        user's request. A skill that runs as a sub-agent is no text for this conversation and gives ``""``: the host
        prepares it by ``Toolset.prepare_fork(name, arguments, by_person=True)``. ``inline_forks=True`` gives its text
        all the same, for hosts that run no sub-agents. Raises ``SkillFilteredError`` for a skill that is not for people
        to call.
        """
        check_text(message, "message")
        return expand_call(message, self._activator, inline_forks=inline_forks)

    # -- reading -----------------------------------------------------------------------------------------------------

    def skill(self, name: str) -> Skill:
        """Return a skill that exists and that the filter lets through, to read from.

        For an active skill that is not in a folder on this machine, it is the one that was loaded, even if its source
        has changed since: files of another state must not stand beside its instructions. Raises ``UnknownSkillError``
        or ``SkillFilteredError``.
        """
        skill = self._state.require_visible(name)
        with self._state.lock:
            active = self._state.active.entries.get(skill.name)
        return skill if active is None or active.loaded.skill.is_local else active.loaded.skill

    @measure_call
    def read_resource(self, name: str, path: str, max_bytes: int | None = None) -> str:
        """Return the text of a file of a skill that the filter lets through."""
        usual = ... if self._limits is None else self._limits.max_resource_bytes
        try:
            skill = self.skill(name)
            text = with_source_label(skill, skill.read_resource(path, usual if max_bytes is None else max_bytes))
        except SkillError as error:
            self._events.emit("refused", name, code=error.code, path=path)
            raise
        self.note_read(name, path, len(text))
        return text

    def read_text(self, name: str, *, whole: bool = False) -> str:
        """Return the body of a skill (``whole``: the whole file) without making the skill active.

        Commands in the text run if the skill is trusted.
        """
        return self._instructions.read_text(self.skill(name), whole=whole)

    def read_expanded(self, name: str) -> ExpandedText:
        """Return the whole file of a skill, and where in it stands what a command printed; it does not become active.

        It is always the file of the catalogue's skill, also of an active one: a sub-agent begins with the present text.
        """
        return self._instructions.expand_text(self._state.require_visible(name), whole=True)

    # -- sub-agents and other catalogues -----------------------------------------------------------------------------

    def open_child(self, tools: Iterable[str] | None = None) -> Session:
        """Return a session for a sub-agent: with this catalogue, trust and bounds, but active skills of its own.

        It begins with the preloaded skills that are active here. ``tools`` lowers its ceiling. The filters of now, also
        the ambient ones, hold for as long as it lives: whoever runs the sub-agent may do so in another place.
        """
        # A copy, not a call of __init__, which would run the commands of preloaded skills again.
        child = copy(self)
        state, consent = self._state.open_child(tools), self._consent.open_child()
        instructions = replace(self._instructions, consent=consent)
        vars(child).update(
            _state=state,
            _consent=consent,
            _instructions=instructions,
            _listing=replace(self._listing, state=state),
            _activator=SkillActivator(state, instructions, self._events),
        )
        return child

    @measure_call
    def refresh(self, catalog: Catalog) -> Refreshed:
        """Use another catalogue from now on; return what was added, removed and changed. No live one is followed.

        An active skill that is gone stays usable from what was loaded, and says so; a changed one keeps its text until
        it is activated again. Raises ``SourceError`` for anything that is no catalogue.
        """
        check_catalog(catalog)
        return self._state.switch_catalog(catalog)

    # -- events ------------------------------------------------------------------------------------------------------

    @property
    def has_listener(self) -> bool:
        """Whether the host listens to events."""
        return self._events.on_event is not None

    def tell(self, event: Event) -> None:
        """Pass an event on to the host's listener; a listener that fails does not disturb the conversation."""
        self._events.send(event)

    def note_read(self, name: str, path: str, size: int) -> None:
        """Emit the event that a file was read for the model."""
        self._events.emit("read", name, path=path, characters=size)

    def report_host_error(self, where: str, error: Exception, skill: str = "") -> None:
        """Log an exception of the host's own code with its traceback, and emit an event about it."""
        self._events.report_host_error(where, error, skill)

    def overheard(self) -> AbstractContextManager[list[str]]:
        """Return a context that collects the kinds of the events that this thread or task emits inside the block."""
        return record_event_kinds()

    # -- saving and restoring ----------------------------------------------------------------------------------------

    def save(self) -> str:
        """Return the session as JSON: its bounds, the active skills with their digests, what a person refused.

        It also has the names of the skills that were chosen for the conversation, each with the reason, so that a
        restored session goes on with its listing. The requests are not in it.
        """
        bounds, active, shown = self._state.collect_save()
        return session_as_json(bounds, active, self._consent.refused_ids, shown)

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
        selector: Selector | Literal["auto"] | None = "auto",
        base_dir: str | os.PathLike[str] | None = None,
        on_event: OnEvent | None = None,
        id: str | None = None,  # noqa: A002 - the public signature
        command_env: Iterable[str] = (),
        explicit_only: Iterable[str] | None = None,
        widen: bool = False,
    ) -> tuple[Session, tuple[Issue, ...]]:
        """Return the session that was saved, over a present catalogue, and what has changed or is missing since.

        It may do what both the save and the arguments allow: the tools of both ceilings, the smaller ``max_active``,
        the skills that pass both filters and that neither keeps for explicit calls. ``widen=True``: ``tools``, and the
        other three where they are given, replace what was saved. Without ``tools`` no skill approves anything. A save
        of an older version, which has no ceiling, allows no tools, and an issue says so. Refusals stay, also with
        ``widen``; approvals and ``id`` are not saved. Restoring a skill runs no command and asks nobody: its commands
        run when it is activated again, if they may. Raises ``SourceError`` for text that is no saved session.
        """
        save = session_from_json(saved)
        hidden = None if explicit_only is None else check_texts(explicit_only, "explicit_only")
        bounds = merge_bounds(save, parse_ceiling(tools), max_active, filter, hidden, widen=widen)
        session = cls.__new__(cls)
        # Before __init__, since what a person refused must be known when skills are preloaded there.
        vars(session).update(_restored=save._replace(bounds=bounds))
        start = partial(cls.__init__, session, catalog, None, bounds.max_active, selector, bounds.filter, base_dir)
        start(trust, limits=limits, on_event=on_event, id=id, command_env=command_env, explicit_only=hidden or ())
        issues = (older_save_issue(),) if save.is_older and not widen else ()
        return session, (*issues, *reactivate_skills(save.active, partial(session.activate, run=False)))


def _make_listing(
    state: SessionState, events: EventEmitter, selector: Selector | Literal["auto"] | None
) -> SkillListing:
    if isinstance(selector, str):
        return SkillListing(state, events, _DEFAULT_SELECTOR, is_default=True)
    return SkillListing(state, events, selector)

"""How a skill of one conversation becomes active: decided under the lock, read outside of it, decided again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from prowess.conversation.activation import (
    ALREADY_ACTIVE,
    CHANGE_UNKNOWN,
    CHANGED_SINCE_LOAD,
    GRANTS_CHANGED,
    Activation,
    ActivationState,
    ActiveSkill,
    make_activation,
    next_step,
)
from prowess.conversation.catalog_diff import may_differ
from prowess.conversation.visibility import make_filter_error
from prowess.errors import FetchError, MaxActiveError, NotTrustedError, SkillError
from prowess.spec.commands import may_have_commands
from prowess.spec.hidden_characters import find_hidden_points
from prowess.spec.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Callable

    from prowess.conversation.activation import ActivationStep
    from prowess.conversation.events import EventEmitter
    from prowess.conversation.instruction_loader import InstructionLoader, PreparedInstructions
    from prowess.conversation.session_state import SessionState
    from prowess.skills.catalog import Catalog
    from prowess.skills.skill import Skill


class ActivationRequest(NamedTuple):
    """What one call that activates a skill asks for."""

    name: str
    """The name that the catalogue has for the skill."""
    ambient_filters: tuple[str, ...]
    """The ambient filters that surrounded the call when it began."""
    filter_override: str | None = None
    """The filter that replaces the session's for this call."""
    arguments: str = ""
    run: bool = True
    """Whether the commands in the instructions run."""


class _Reading(NamedTuple):
    """What was so when an activation began to read its file."""

    catalog: Catalog
    skill: Skill
    active: ActiveSkill | None
    """What the session remembered of the skill."""
    note: str
    """Why a skill that was active is read again; ``""`` where the session does not know yet."""


@dataclass(frozen=True, slots=True)
class SkillActivator:
    """Makes skills of one conversation active."""

    state: SessionState
    instructions: InstructionLoader
    events: EventEmitter

    # -- at the beginning of a conversation --------------------------------------------------------------------------

    def preload_skills(self) -> None:
        """Make every preloaded skill of the catalogue active; one that cannot be loaded is told of and left out."""
        for skill in self.state.catalog:
            if skill.preload:
                try:
                    prepared, unrun = self._prepare_preload(skill)
                except SkillError as error:
                    self.events.emit("refused", skill.name, code=error.code)
                else:
                    self.state.active.remember(skill.name, prepared, preloaded=True, unrun=unrun)

    def _prepare_preload(self, skill: Skill) -> tuple[PreparedInstructions, bool]:
        """Return the instructions of a skill, and whether its commands are left for a later activation."""
        try:
            return self.instructions.prepare(skill), False
        except NotTrustedError as error:
            # No call is there yet whose answer could carry the request to a person.
            if error.request is None:
                raise
            return self.instructions.prepare(skill, run=False), True

    # -- one activation ----------------------------------------------------------------------------------------------

    def activate(self, request: ActivationRequest) -> Activation:
        """Make a skill active and return its activation; a refusal is told as an event and raised."""
        try:
            return self._activate(request)
        except SkillError as error:
            self._emit_refusal(request.name, error)
            raise

    def activate_for_call(self, request: ActivationRequest) -> Activation:
        """Make a skill active, and run its commands for the arguments of this call even if it was active before."""
        activation = self.activate(request)
        if not activation.outputs or activation.note != ALREADY_ACTIVE:
            return activation
        # What the commands printed when it was activated was for other arguments, and at another time.
        prepared = self.instructions.prepare(activation.skill, request.arguments)
        instructions, expanded = prepared.loaded.instructions, prepared.expanded
        return replace(activation, instructions=instructions, outputs=expanded.outputs, issues=expanded.issues)

    def activate_text(self, request: ActivationRequest, *, whole: bool, run: bool) -> str:
        """Make a skill active and return its body as the file has it now (``whole``: the whole file).

        ``run``: commands in the text run if the skill is trusted.
        """
        texts: list[str] = []

        def read_text(skill: Skill) -> None:
            texts.append(self.instructions.read_text(skill, whole=whole, run=run))

        try:
            skill = self._activate(request, before_remembering=read_text).skill
            if not texts:  # it was active already
                read_text(skill)
        except SkillError as error:
            self._emit_refusal(request.name, error)
            raise
        return texts[0]

    def _activate(
        self, request: ActivationRequest, before_remembering: Callable[[Skill], None] | None = None
    ) -> Activation:
        """Make a skill active. What ``before_remembering`` raises leaves the skill inactive."""
        state = self.state
        state.follow_live_catalog()
        with state.lock:
            catalog = state.catalog
            skill = state.require_known(request.name)
            step = self._decide_step(request, skill)
            active = state.active.entries.get(request.name)
        note = GRANTS_CHANGED if step == "check-grant" else ""
        if active is not None and (
            step == "keep" or (step == "check-grant" and self._is_decision_current(request.name, active))
        ):
            try:
                changes = "" if active.gone else active.loaded.skill.find_changes()
            except FetchError:
                return make_activation(active, CHANGE_UNKNOWN)
            if not changes:
                return make_activation(active)
            note = f"{CHANGED_SINCE_LOAD} ({changes})"
        prepared = self.instructions.prepare(skill, request.arguments, run=request.run)
        if before_remembering is not None:
            before_remembering(prepared.loaded.skill)
        return self._remember_skill(request, prepared, _Reading(catalog, skill, active, note))

    def _remember_skill(
        self, request: ActivationRequest, prepared: PreparedInstructions, reading: _Reading
    ) -> Activation:
        """Make what was read active, unless another thread was first or the skill may not be active any more."""
        state = self.state
        # The file was read outside of the lock, so another thread may have changed anything meanwhile.
        with state.lock:
            listed = state.catalog.get(request.name)
            step = self._decide_step(request, listed or reading.skill, is_read=True, before=reading.active)
            active = state.active.entries.get(request.name)
            if active is not None and step == "keep":
                return make_activation(active)
            has_new_catalog = state.catalog is not reading.catalog
            entry = state.active.remember(
                request.name,
                prepared,
                preloaded=active is not None and active.preloaded,
                stale=has_new_catalog and listed is not None and may_differ(prepared.loaded.skill, listed),
                gone=listed is None,
                unrun=not request.run and may_have_commands(prepared.loaded.instructions),
            )
            state.revision += 1
        # Only where somebody listens: looking for hidden text costs as much as reading the file.
        if self.events.on_event is not None:
            hidden = {"issues": ("hidden-text",)} if find_hidden_points(entry.loaded.instructions) else {}
            self.events.emit("activated", request.name, location=reading.skill.location, tools=entry.tools, **hidden)
        was_stale = active is not None and active.stale
        return make_activation(entry, reading.note or (CHANGED_SINCE_LOAD if was_stale else ""))

    def _decide_step(
        self, request: ActivationRequest, skill: Skill, *, is_read: bool = False, before: ActiveSkill | None = None
    ) -> ActivationStep:
        """Return what the activation of ``skill`` does next; to be called under the lock.

        Raises ``SkillFilteredError`` or ``MaxActiveError`` when it may not go on.
        """
        sees, active = self.state.visibility, self.state.active
        own_filter = sees.filter if request.filter_override is None else request.filter_override
        filters = (own_filter, *sees.fixed_filters, *request.ambient_filters)
        step = next_step(
            ActivationState(
                passes_filter=sees.passes_filters(skill, filters),
                has_room=active.has_room(),
                run=request.run,
                active=active.entries.get(request.name),
                is_read=is_read,
                before=before,
            )
        )
        if step == "refuse-filtered":
            raise make_filter_error(request.name, filters)
        if step == "refuse-full":
            limit = format_count(active.max_active, "active skill")
            said = f"cannot activate {request.name!r}: the session allows {limit} at once"
            raise MaxActiveError(said, limit=active.max_active)
        return step

    def _is_decision_current(self, name: str, active: ActiveSkill) -> bool:
        """Return whether what was decided about the commands of an active skill would be decided again now."""
        assert active.command_decision is not None  # noqa: S101 - the step "check-grant" is only taken with one
        decision = self.instructions.recheck_decision(active.loaded.skill, active.command_decision)
        if decision is not None and decision != active.command_decision:
            with self.state.lock:
                # The decision was made outside of the lock: another thread may have activated or ended the skill.
                if self.state.active.entries.get(name) is active:
                    self.state.active.entries[name] = active._replace(command_decision=decision)
        return decision is not None

    # -- events ------------------------------------------------------------------------------------------------------

    def _emit_refusal(self, name: str, error: SkillError) -> None:
        # A call that waits for a person's approval is not refused, and its own event was told already.
        if error.code != "needs-approval":
            self.events.emit("refused", name, code=error.code)

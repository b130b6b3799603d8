"""An active skill: what an activation gives, what a session remembers of it, and the decision that leads to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.errors import Issue
    from prowess.skills.instructions import LoadedSkill
    from prowess.skills.skill import Skill
    from prowess.spec.commands import Permission
    from prowess.spec.spans import Span

ALREADY_ACTIVE = "it was active already"
CHANGE_UNKNOWN = f"{ALREADY_ACTIVE}; whether it has changed since could not be asked"
CHANGED_SINCE_LOAD = "it has changed since it was loaded before"
GRANTS_CHANGED = "what it may run has changed since it was loaded before"
_NO_LONGER_EXISTS = "the skill no longer exists; this is what was loaded before"


@dataclass(frozen=True, slots=True)
class Activation:
    """A skill that is active now, its instructions, and the tools that it brings.

    ``note`` says what the caller should know: that the skill was active before, no longer exists, or has changed.
    """

    skill: Skill
    instructions: str
    added_tools: tuple[str, ...]
    note: str = ""
    outputs: tuple[Span, ...] = ()
    """Where the instructions hold what a command printed: data, in which no placeholder or command is looked for."""
    issues: tuple[Issue, ...] = ()
    """Commands that did not run, or failed."""
    written: str = ""
    """The instructions as the file has them, with no command run."""


class CommandDecision(NamedTuple):
    """Why the commands of a skill ran, or that they did not, and under which grants that was decided."""

    permission: Permission
    digest: str
    """The digest of the files that the commands ran from."""
    grants_mark: object
    """What ``Consent.mark`` returned before the decision: while it is equal, no grant has changed."""


class ActiveSkill(NamedTuple):
    """What a session remembers of an active skill."""

    loaded: LoadedSkill
    tools: tuple[str, ...]
    outputs: tuple[Span, ...] = ()
    issues: tuple[Issue, ...] = ()
    preloaded: bool = False
    stale: bool = False
    """Whether the catalogue has another state of the skill, which the next activation loads."""
    gone: bool = False
    """Whether the catalogue no longer has the skill."""
    commands_unrun: bool = False
    """Whether the instructions have commands that an activation left unrun."""
    command_decision: CommandDecision | None = None
    """What was decided about its commands; ``None`` for instructions without commands."""
    written: str | None = None
    """The instructions before their commands ran; ``None`` where none ran, so that no text is kept twice."""

    @property
    def is_ready(self) -> bool:
        """Whether another activation that runs commands gives what was loaded."""
        return not self.stale and not self.commands_unrun


ActivationStep = Literal["refuse-filtered", "refuse-full", "keep", "check-grant", "read", "remember"]
"""What an activation does next."""


class ActivationState(NamedTuple):
    """What an activation decides from: when it begins, and again when the file has been read."""

    passes_filter: bool
    has_room: bool
    """Whether one more skill may be active."""
    run: bool
    """Whether the commands in the instructions are to run."""
    active: ActiveSkill | None
    """What the session remembers of the skill now; ``None`` while it is not active."""
    is_read: bool = False
    """Whether the file has been read."""
    before: ActiveSkill | None = None
    """What the session remembered when the file began to be read."""


def next_step(state: ActivationState) -> ActivationStep:
    """Return what an activation does next. It decides from ``state`` alone, which is collected under a lock.

    ``keep``: answer with what is active. ``check-grant``: answer with what is active if the grants for its commands
    are unchanged, otherwise read the file. ``read``: read the file, then decide again. ``remember``: make what was read
    active. ``refuse-filtered`` and ``refuse-full``: raise an error.
    """
    # The filter comes first, so that a refusal tells nothing about a skill that the conversation may not see.
    if not state.passes_filter:
        return "refuse-filtered"
    active = state.active
    if active is None and not state.has_room:
        return "refuse-full"
    if state.is_read:
        # Another thread may have activated the skill meanwhile: both get the text of the first.
        return "keep" if active is not None and active is not state.before and active.is_ready else "remember"
    # Commands that were left unrun matter only to a call that runs commands.
    if active is None or (not active.is_ready and (state.run or active.stale)):
        return "read"
    # Grants are on the disk, so they are looked up outside of the lock, and only for a skill whose commands may run.
    return "keep" if active.command_decision is None or active.gone or not state.run else "check-grant"


def make_activation(entry: ActiveSkill, note: str | None = None) -> Activation:
    """Return the activation of an active skill; without ``note``, it notes that the skill was active, or is gone."""
    loaded = entry.loaded
    if note is None:
        note = _NO_LONGER_EXISTS if entry.gone else ALREADY_ACTIVE
    written = loaded.instructions if entry.written is None else entry.written
    return Activation(loaded.skill, loaded.instructions, entry.tools, note, entry.outputs, entry.issues, written)


def collect_tools(entries: Iterable[ActiveSkill]) -> set[str]:
    """Return the tools that active skills bring."""
    return {tool for entry in entries for tool in entry.tools}

"""A skill that is active: what activating it gives, and what a session remembers of it."""

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
    written: str = ""
    """The instructions as the file has them, with no command run."""


class CommandDecision(NamedTuple):
    """By what the commands of a skill ran, or that they did not; and the grants as they were then."""

    permission: Permission
    digest: str
    grants_mark: object
    """A mark of them."""


class ActiveSkill(NamedTuple):
    """What a session remembers of an active skill."""

    loaded: LoadedSkill
    tools: tuple[str, ...]
    outputs: tuple[Span, ...] = ()
    issues: tuple[Issue, ...] = ()
    preloaded: bool = False
    stale: bool = False
    gone: bool = False
    commands_unrun: bool = False
    """Its commands were left for whoever reads the text."""
    command_decision: CommandDecision | None = None
    """``None`` without commands."""
    written: str | None = None
    """The instructions before their commands ran; ``None`` where none ran, so that no text is kept twice."""

    @property
    def is_ready(self) -> bool:
        """Whether activating again gives what is here."""
        return not self.stale and not self.commands_unrun

    def can_reuse(self, *, run: bool) -> bool:
        """Whether its text need not be read again; commands that were not run matter only to who wants them run."""
        return self.is_ready or not (run or self.stale)


ActivationStep = Literal["refuse-filtered", "refuse-full", "keep", "check-grant", "read", "remember"]
"""What an activation does next."""


class ActivationState(NamedTuple):
    """What an activation knows when it decides what to do next: at its beginning, and when the file has been read."""

    passes_filter: bool
    has_room: bool
    """Whether one more skill may be active."""
    run: bool
    """Whether the commands of the instructions are to run."""
    active: ActiveSkill | None
    """What the session remembers of the skill now; ``None`` while it is not active."""
    is_read: bool = False
    before: ActiveSkill | None = None
    """What the session remembered when the file began to be read."""


def next_step(state: ActivationState) -> ActivationStep:
    """What an activation does next; it decides from ``state`` alone, which the session collects under its lock.

    ``keep``: answer with what is active. ``check-grant``: do so if the grants for its commands stand as they did, and
    read the file if they do not. ``read``: read the file, then decide again. ``remember``: what was read is active now.
    """
    if not state.passes_filter:
        return "refuse-filtered"
    active = state.active
    if active is None and not state.has_room:
        return "refuse-full"
    if state.is_read:
        # Another thread may have activated it meanwhile: both get the text of whoever was first.
        return "keep" if active is not None and active is not state.before and active.is_ready else "remember"
    if active is None or not active.can_reuse(run=state.run):
        return "read"
    # Grants are looked up on the disk, so they are asked about outside of the lock, and only where it matters.
    return "keep" if active.command_decision is None or active.gone or not state.run else "check-grant"


def make_activation(entry: ActiveSkill, note: str | None = None) -> Activation:
    """What activating an active skill gives: what was loaded, and ``note`` (``None``: that it was active already)."""
    loaded = entry.loaded
    if note is None:
        note = _NO_LONGER_EXISTS if entry.gone else ALREADY_ACTIVE
    written = loaded.instructions if entry.written is None else entry.written
    return Activation(loaded.skill, loaded.instructions, entry.tools, note, entry.outputs, entry.issues, written)


def collect_tools(entries: Iterable[ActiveSkill]) -> set[str]:
    """The tools that active skills bring."""
    return {tool for entry in entries for tool in entry.tools}

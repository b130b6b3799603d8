"""How a skill becomes active: the decision, which is pure, and the loader that makes its text ready for a model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from prowess.conversation.moment import make_filter_error
from prowess.conversation.tool_rules import grant_tools
from prowess.errors import MaxActiveError, NoFrontmatterError
from prowess.format.commands import ExpandedText, may_have_commands
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Callable

    from prowess.conversation.acting.supervised import ProcessResult
    from prowess.conversation.consent import Consent
    from prowess.conversation.events import EventEmitter
    from prowess.conversation.moment import Moment
    from prowess.conversation.tool_rules import ToolCeiling
    from prowess.errors import Issue
    from prowess.format.commands import Permission
    from prowess.limits import Limits
    from prowess.skills.skill import LoadedSkill, Skill
    from prowess.text.spans import Span

    Read = Callable[[Skill], str]

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
    """Where the instructions hold what a command printed: data, without a search for placeholders or commands."""
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
    tools: tuple[str, ...] = ()
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
    """The instructions before their commands ran; ``None`` where none ran, so that nothing is kept twice."""

    @property
    def is_ready(self) -> bool:
        """Whether another activation that runs commands gives what was loaded."""
        return not self.stale and not self.commands_unrun

    def with_ceiling(self, ceiling: ToolCeiling) -> ActiveSkill:
        """Return the active skill with the tools that a ceiling leaves it."""
        # Where no skill approves tools, no head is parsed for them.
        wanted = self.loaded.skill.allowed_tools if ceiling.grants else ()
        return self._replace(tools=grant_tools(wanted, ceiling.tools))


class ActivationRequest(NamedTuple):
    """What one call that activates a skill asks for."""

    name: str
    """The name that the catalogue has for the skill."""
    moment: Moment
    """The moment at which the call began."""
    filter_override: str | None = None
    """The filter that replaces the session's for this call."""
    arguments: str = ""
    run: bool = True
    """Whether the commands in the instructions run."""
    was_saved: bool = False
    """Whether the skill was active in a save, so that it is not news."""


ActivationStep = Literal["keep", "check-grant", "read", "remember"]
"""What an activation does next."""


def decide_step(now: Moment, request: ActivationRequest, skill: Skill, *, is_read: bool = False) -> ActivationStep:
    """Return what the activation of ``skill`` does next, when it begins and again when the file has been read.

    ``keep``: answer with what is active. ``check-grant``: answer with what is active if the grants for its commands
    are unchanged, otherwise read the file. ``read``: read the file, then decide again. ``remember``: make what was read
    active. It decides from ``now`` and ``request`` alone. Raises ``SkillFilteredError`` or ``MaxActiveError`` when the
    activation may not go on.
    """
    # The filter comes first, so that a refusal reveals nothing about a skill that the conversation may not see.
    own_filter = now.filter if request.filter_override is None else request.filter_override
    filters = (own_filter, now.scope_filter, *now.fixed_filters, *request.moment.ambient_filters)
    if not now.passes(skill, filters):
        raise make_filter_error(request.name, filters)
    active = now.active.get(request.name)
    if active is None and not now.has_room():
        limit = format_count(now.max_active, "active skill")
        said = f"cannot activate {request.name!r}: the session allows {limit} at once"
        raise MaxActiveError(said, limit=now.max_active)
    if is_read:
        # Another thread may have activated the skill meanwhile: both get the text of the first.
        is_new = active is not request.moment.active.get(request.name)
        return "keep" if active is not None and is_new and active.is_ready else "remember"
    # Commands that were left unrun matter only to a call that runs commands.
    if active is None or (not active.is_ready and (request.run or active.stale)):
        return "read"
    # Grants are on the disk, so they are looked up outside of the lock, and only for a skill whose commands may run.
    return "keep" if active.command_decision is None or active.gone or not request.run else "check-grant"


def make_activation(entry: ActiveSkill, note: str | None = None) -> Activation:
    """Return the activation of an active skill; without ``note``, it notes that the skill was active, or is gone."""
    loaded = entry.loaded
    if note is None:
        note = _NO_LONGER_EXISTS if entry.gone else ALREADY_ACTIVE
    written = loaded.instructions if entry.written is None else entry.written
    return Activation(loaded.skill, loaded.instructions, entry.tools, note, entry.outputs, entry.issues, written)


def read_activation(skill: Skill) -> Activation:
    """Return the activation of a skill outside of any conversation: no command runs, and it approves no tools."""
    instructions = skill.label_text(skill.load().instructions)
    # A model has a preloaded skill already, whoever asks for it.
    return Activation(skill, instructions, (), ALREADY_ACTIVE if skill.preload else "", written=instructions)


# -- the loader --------------------------------------------------------------------------------------------------------


def _read_body(skill: Skill) -> str:
    """Return the body of a skill, the whole file where it has no frontmatter and needs none."""
    try:
        return skill.read_body()
    except NoFrontmatterError:
        if skill.needs_frontmatter:
            raise
        return skill.read_text()


@dataclass(frozen=True, slots=True)
class InstructionLoader:
    """Makes the instructions of skills ready for a model."""

    consent: Consent
    folder: str
    """Where commands run."""
    limits: Limits
    events: EventEmitter
    variables: tuple[str, ...] = ()
    """The variables of the host's environment that commands see besides the allow-list, by name."""

    def prepare(self, skill: Skill, arguments: str = "", *, run: bool = True) -> ActiveSkill:
        """Return a skill with its instructions, their commands run if it is trusted; ``run=False``: none runs.

        Raises ``SkillError`` where the skill cannot be read, or a person is to be asked first.
        """
        loaded = skill.load()
        if skill.source_label:
            loaded = replace(loaded, instructions=skill.label_text(loaded.instructions))
        if not run or not may_have_commands(loaded.instructions):
            return ActiveSkill(loaded)
        grants = self.consent.mark()  # before the commands run: a grant that changes meanwhile is noticed later
        # The copy that commands run from is read again: only its text has the digest that was granted.
        expanded = self._run_commands(
            skill, lambda source: loaded.instructions if source is skill else source.load().instructions, arguments
        )
        has_trust = self.consent.trust is not None
        decision = CommandDecision(expanded.permission, expanded.digest, grants) if has_trust else None
        written = None if expanded.text == loaded.instructions else loaded.instructions
        return ActiveSkill(
            replace(loaded, instructions=expanded.text),
            outputs=expanded.outputs,
            issues=expanded.issues,
            command_decision=decision,
            written=written,
        )

    def recheck_decision(self, skill: Skill, decision: CommandDecision) -> CommandDecision | None:
        """Return the decision about the commands of a skill if it still holds; ``None``: it is to be made again.

        It no longer holds when commands that ran are not granted any more, or when commands that did not run are
        granted or approved now.
        """
        trust, grants = self.consent.trust, self.consent.mark()
        # The marks are compared first: that opens no file, while each of the questions below reads some.
        if trust is None or grants == decision.grants_mark:
            return decision
        was_revoked = decision.permission == "granted" and not trust.has(decision.digest)
        was_refused = decision.permission == "refused"
        is_allowed_now = was_refused and (trust.is_trusted(skill) or self.consent.has_approval_for(skill))
        return None if was_revoked or is_allowed_now else decision._replace(grants_mark=grants)

    def expand_text(self, skill: Skill, *, whole: bool, run: bool = True) -> ExpandedText:
        """Return the body of a skill as the file has it now (``whole``: the whole file), and where commands printed.

        Commands in the text run if the skill is trusted; ``run=False``: none runs.
        """

        # Both take a skill, since the commands run from a private copy of it, which is read in its turn.
        def read_skill_text(source: Skill) -> str:
            return source.read_text() if whole else _read_body(source)

        def read_head(source: Skill) -> str:
            return source.read_text().removesuffix(_read_body(source))

        text = read_skill_text(skill)
        if not run or not may_have_commands(text):
            return ExpandedText(skill.label_text(text))
        expanded = self._run_commands(skill, read_skill_text, begin=read_head if whole else None)
        text = skill.label_text(expanded.text)
        label_length = len(text) - len(expanded.text)
        outputs = tuple((begin + label_length, end + label_length) for begin, end in expanded.outputs)
        return replace(expanded, text=text, outputs=outputs)

    def _run_commands(self, skill: Skill, read: Read, arguments: str = "", begin: Read | None = None) -> ExpandedText:
        """Return what ``read`` gives, with its commands run if they may; each of them is reported as an event."""
        from prowess.conversation.acting.expand_commands import CommandExpander

        def report_command(command: str, result: ProcessResult | None) -> None:
            outcome = {"status": result.status, "limit": result.limit, "seconds": result.seconds} if result else {}
            self.events.emit("expanded", skill.name, command=command, **outcome)

        expander = CommandExpander(self.consent, self.folder, self.limits, report_command, self.variables)
        expanded = expander.expand(skill, read, arguments=arguments, begin=begin)
        # No model can allow the commands that did not run, so the text does not mention them.
        for issue in expanded.issues if expanded.permission == "refused" else ():
            self.events.emit("not-expanded", skill.name, code=issue.code, why=issue.message)
        return expanded

"""The text of a skill made ready for a model: labelled with its source, its commands run if it is trusted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from prowess.conversation.activation import CommandDecision
from prowess.conversation.source_labels import with_source_label
from prowess.errors import NoFrontmatterError
from prowess.spec.commands import ExpandedText, may_have_commands

if TYPE_CHECKING:
    from prowess.conversation.acting.expand_commands import CommandExpander
    from prowess.conversation.acting.supervised import ProcessResult
    from prowess.conversation.consent import Consent
    from prowess.conversation.events import EventEmitter
    from prowess.limits import Limits
    from prowess.skills.instructions import LoadedSkill
    from prowess.skills.skill import Skill

_NOT_EXPANDED = ExpandedText("")


def _read_body(skill: Skill) -> str:
    """Return the body of a skill, the whole file where it has no frontmatter and needs none."""
    try:
        return skill.read_body()
    except NoFrontmatterError:
        if skill.needs_frontmatter:
            raise
        return skill.read_text()


class PreparedInstructions(NamedTuple):
    """A skill with its instructions, what its commands printed, and why they ran or did not."""

    loaded: LoadedSkill
    expanded: ExpandedText
    command_decision: CommandDecision | None = None
    written: str | None = None
    """The instructions before their commands ran; ``None`` where none ran."""


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

    def prepare(self, skill: Skill, arguments: str = "", *, run: bool = True) -> PreparedInstructions:
        """Return a skill with its instructions, their commands run if it is trusted; ``run=False``: none runs.

        Raises ``SkillError`` where the skill cannot be read, or a person is to be asked first.
        """
        loaded = skill.load()
        if skill.source_label:
            loaded = replace(loaded, instructions=with_source_label(skill, loaded.instructions))
        if not run or not may_have_commands(loaded.instructions):
            return PreparedInstructions(loaded, _NOT_EXPANDED)
        grants = self.consent.mark()  # before the commands run: a grant that changes meanwhile is noticed later
        expanded = self._make_expander(skill).expand(
            skill,
            # The copy that commands run from is read again: only its text has the digest that was granted.
            lambda source: loaded.instructions if source is skill else source.load().instructions,
            arguments=arguments,
        )
        self._report_skipped_commands(skill, expanded)
        has_trust = self.consent.trust is not None
        decision = CommandDecision(expanded.permission, expanded.digest, grants) if has_trust else None
        written = None if expanded.text == loaded.instructions else loaded.instructions
        return PreparedInstructions(replace(loaded, instructions=expanded.text), expanded, decision, written)

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

    def read_text(self, skill: Skill, *, whole: bool, run: bool = True) -> str:
        """Return the body of a skill as the file has it now (``whole``: the whole file).

        Commands in the text run if the skill is trusted; ``run=False``: none runs.
        """
        if run:
            return self.expand_text(skill, whole=whole).text
        return with_source_label(skill, skill.read_text() if whole else _read_body(skill))

    def expand_text(self, skill: Skill, *, whole: bool) -> ExpandedText:
        """Return the text that ``read_text`` returns, and where in it stands what a command printed."""
        text = skill.read_text() if whole else _read_body(skill)
        if not may_have_commands(text):
            return ExpandedText(with_source_label(skill, text))

        # Both take a skill, since the commands run from a private copy of it, which is read in its turn.
        def read_skill_text(source: Skill) -> str:
            return source.read_text() if whole else _read_body(source)

        def read_head(source: Skill) -> str:
            return source.read_text().removesuffix(_read_body(source))

        expanded = self._make_expander(skill).expand(skill, read_skill_text, begin=read_head if whole else None)
        self._report_skipped_commands(skill, expanded)
        text = with_source_label(skill, expanded.text)
        label_length = len(text) - len(expanded.text)
        outputs = tuple((begin + label_length, end + label_length) for begin, end in expanded.outputs)
        return replace(expanded, text=text, outputs=outputs)

    def _report_skipped_commands(self, skill: Skill, expanded: ExpandedText) -> None:
        """Emit an event for commands that did not run: no model can allow them, so the text does not mention it."""
        if expanded.permission == "refused":
            for issue in expanded.issues:
                self.events.emit("not-expanded", skill.name, code=issue.code, why=issue.message)

    def _make_expander(self, skill: Skill) -> CommandExpander:
        from prowess.conversation.acting.expand_commands import CommandExpander

        def report_command(command: str, result: ProcessResult | None) -> None:
            outcome = {"status": result.status, "limit": result.limit, "seconds": result.seconds} if result else {}
            self.events.emit("expanded", skill.name, command=command, **outcome)

        return CommandExpander(self.consent, self.folder, self.limits, report_command, self.variables)

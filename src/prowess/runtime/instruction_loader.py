"""Instructions made ready for a model: they say whose they are, and their commands run if the skill is trusted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from prowess.runtime.activation import CommandDecision
from prowess.runtime.source_labels import with_source_label
from prowess.spec.commands import ExpandedText, may_have_commands

if TYPE_CHECKING:
    from prowess.limits import Limits
    from prowess.runtime.acting.expand_commands import CommandExpander
    from prowess.runtime.acting.supervised import ProcessResult
    from prowess.runtime.consent import Consent
    from prowess.runtime.events import EventEmitter
    from prowess.skills.instructions import LoadedSkill
    from prowess.skills.skill import Skill

_NOT_EXPANDED = ExpandedText("")


class PreparedInstructions(NamedTuple):
    """A skill with its instructions, what became of their commands, and by what."""

    loaded: LoadedSkill
    expanded: ExpandedText
    command_decision: CommandDecision | None = None
    written: str | None = None
    """The instructions before their commands ran; ``None`` where none ran."""


@dataclass(frozen=True, slots=True)
class InstructionLoader:
    """How a session makes instructions ready."""

    consent: Consent
    folder: str
    """Where commands run."""
    limits: Limits
    events: EventEmitter
    variables: tuple[str, ...] = ()
    """The variables of the host's environment that commands see besides the allow-list, by name."""

    def prepare(self, skill: Skill, arguments: str = "", *, run: bool = True) -> PreparedInstructions:
        """A skill with its instructions, their commands run if it is trusted; ``run=False``: left as they are."""
        loaded = skill.load()
        if skill.source_label:
            loaded = replace(loaded, instructions=with_source_label(skill, loaded.instructions))
        if not run or not may_have_commands(loaded.instructions):
            return PreparedInstructions(loaded, _NOT_EXPANDED)
        grants = self.consent.mark()
        found = self._make_expander(skill).expand(
            skill, lambda one: one.load().instructions if one is not skill else loaded.instructions, arguments=arguments
        )
        self._report_skipped_commands(skill, found)
        standing = CommandDecision(found.permission, found.digest, grants) if self.consent.trust is not None else None
        written = None if found.text == loaded.instructions else loaded.instructions
        return PreparedInstructions(replace(loaded, instructions=found.text), found, standing, written)

    def recheck_decision(self, skill: Skill, standing: CommandDecision) -> CommandDecision | None:
        """The standing of a skill as it is now; ``None`` if its commands are to be looked at anew.

        They are when what ran is not granted any more, and when what did not run is granted or approved now.
        """
        trust, grants = self.consent.trust, self.consent.mark()
        if trust is None or grants == standing.grants_mark:
            return standing
        revoked = standing.permission == "granted" and not trust.has(standing.digest)
        granted = standing.permission == "refused" and (trust.is_trusted(skill) or self.consent.has_approval_for(skill))
        return None if revoked or granted else standing._replace(grants_mark=grants)

    def read_text(self, skill: Skill, *, whole: bool, run: bool = True) -> str:
        """Return its body as the file has it now (``whole``: the file), commands run if it is trusted.

        ``run=False``: no command runs.
        """
        if run:
            return self.expand_text(skill, whole=whole).text
        return with_source_label(skill, skill.read_text() if whole else skill.read_body())

    def expand_text(self, skill: Skill, *, whole: bool) -> ExpandedText:
        """What ``read_text`` gives, and where in it stands what a command printed."""
        text = skill.read_text() if whole else skill.read_body()
        if not may_have_commands(text):
            return ExpandedText(with_source_label(skill, text))

        def read_skill_text(one: Skill) -> str:
            return one.read_text() if whole else one.read_body()

        def read_head(one: Skill) -> str:
            return one.read_text().removesuffix(one.read_body())

        expanded = self._make_expander(skill).expand(skill, read_skill_text, begin=read_head if whole else None)
        self._report_skipped_commands(skill, expanded)
        told = with_source_label(skill, expanded.text)
        before = len(told) - len(expanded.text)
        outputs = tuple((begin + before, end + before) for begin, end in expanded.outputs)
        return replace(expanded, text=told, outputs=outputs)

    def _report_skipped_commands(self, skill: Skill, expanded: ExpandedText) -> None:
        """Tell the host of commands that did not run: the text itself does not, since it is for a model."""
        if expanded.permission == "refused":
            for issue in expanded.issues:
                self.events.emit("not-expanded", skill.name, code=issue.code, why=issue.message)

    def _make_expander(self, skill: Skill) -> CommandExpander:
        from prowess.runtime.acting.expand_commands import CommandExpander  # noqa: PLC0415 - only for skills with commands

        def report_command(command: str, found: ProcessResult | None) -> None:
            outcome = {"status": found.status, "limit": found.limit, "seconds": found.seconds} if found else {}
            self.events.emit("expanded", skill.name, command=command, **outcome)

        return CommandExpander(self.consent, self.folder, self.limits, report_command, self.variables)

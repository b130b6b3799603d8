"""Instructions made ready for a model: they say whose they are, and their commands run if the skill is trusted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from prowess.runtime.activation import Standing
from prowess.runtime.source_labels import tagged
from prowess.spec.commands import Expanded, may_have_commands

if TYPE_CHECKING:
    from prowess.limits import Limits
    from prowess.runtime.acting.expand_commands import Expander
    from prowess.runtime.acting.supervised import Finished
    from prowess.runtime.consent import Consent
    from prowess.runtime.events import Teller
    from prowess.skills.instructions import LoadedSkill
    from prowess.skills.skill import Skill

_AS_IT_IS = Expanded("")


class Prepared(NamedTuple):
    """A skill with its instructions, what became of their commands, and by what."""

    loaded: LoadedSkill
    found: Expanded
    standing: Standing | None = None
    written: str | None = None
    """The instructions before their commands ran; ``None`` where none ran."""


@dataclass(frozen=True, slots=True)
class Instructions:
    """How a session makes instructions ready."""

    consent: Consent
    folder: str
    """Where commands run."""
    limits: Limits
    events: Teller
    variables: tuple[str, ...] = ()
    """The variables of the host's environment that commands see besides the allow-list, by name."""

    def prepared(self, skill: Skill, arguments: str = "", *, run: bool = True) -> Prepared:
        """A skill with its instructions, their commands run if it is trusted; ``run=False``: left as they are."""
        loaded = skill.load()
        if skill.told_by:
            loaded = replace(loaded, instructions=tagged(skill, loaded.instructions))
        if not run or not may_have_commands(loaded.instructions):
            return Prepared(loaded, _AS_IT_IS)
        grants = self.consent.mark()
        found = self._expander(skill).expanded(
            skill, lambda one: one.load().instructions if one is not skill else loaded.instructions, arguments=arguments
        )
        self._tell_left_alone(skill, found)
        standing = Standing(found.leave, found.digest, grants) if self.consent.trust is not None else None
        written = None if found.text == loaded.instructions else loaded.instructions
        return Prepared(replace(loaded, instructions=found.text), found, standing, written)

    def still(self, skill: Skill, standing: Standing) -> Standing | None:
        """The standing of a skill as it is now; ``None`` if its commands are to be looked at anew.

        They are when what ran is not granted any more, and when what did not run is granted or approved now.
        """
        trust, grants = self.consent.trust, self.consent.mark()
        if trust is None or grants == standing.grants:
            return standing
        revoked = standing.leave == "granted" and not trust.has(standing.digest)
        granted = standing.leave == "refused" and (trust.is_trusted(skill) or self.consent.has_approved_of(skill))
        return None if revoked or granted else standing._replace(grants=grants)

    def text(self, skill: Skill, *, whole: bool, run: bool = True) -> str:
        """Return its body as the file has it now (``whole``: the file), commands run if it is trusted.

        ``run=False``: no command runs.
        """
        if run:
            return self.expanded_text(skill, whole=whole).text
        return tagged(skill, skill.read_text() if whole else skill.read_body())

    def expanded_text(self, skill: Skill, *, whole: bool) -> Expanded:
        """What ``text`` gives, and where in it stands what a command printed."""
        text = skill.read_text() if whole else skill.read_body()
        if not may_have_commands(text):
            return Expanded(tagged(skill, text))

        def read(one: Skill) -> str:
            return one.read_text() if whole else one.read_body()

        def head(one: Skill) -> str:
            return one.read_text().removesuffix(one.read_body())

        expanded = self._expander(skill).expanded(skill, read, begin=head if whole else None)
        self._tell_left_alone(skill, expanded)
        told = tagged(skill, expanded.text)
        before = len(told) - len(expanded.text)
        outputs = tuple((begin + before, end + before) for begin, end in expanded.outputs)
        return replace(expanded, text=told, outputs=outputs)

    def _tell_left_alone(self, skill: Skill, expanded: Expanded) -> None:
        """Tell the host of commands that did not run: the text itself does not, since it is for a model."""
        if expanded.leave == "refused":
            for issue in expanded.issues:
                self.events.say("not-expanded", skill.name, code=issue.code, why=issue.message)

    def _expander(self, skill: Skill) -> Expander:
        from prowess.runtime.acting.expand_commands import Expander  # noqa: PLC0415 - only for skills with commands

        def told(command: str, found: Finished | None) -> None:
            outcome = {"status": found.status, "limit": found.limit, "seconds": found.seconds} if found else {}
            self.events.say("expanded", skill.name, command=command, **outcome)

        return Expander(self.consent, self.folder, self.limits, told, self.variables)

"""Grants for skills as they are now, after a look at what would run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from prowess.changes.change import Change
from prowess.conversation.acting.snapshot import describe_state
from prowess.conversation.acting.trust_request import TrustRequest
from prowess.errors import NotTrustedError, SkillError
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.conversation.acting.trust import Grant, Trust
    from prowess.skills.inventory import Inventory
    from prowess.skills.skill import Skill

SHORT_DIGEST = 12
"""How many characters of a digest people are shown."""


@dataclass(frozen=True, slots=True)
class TrustDetails:
    """What a person has to know before a grant: what would run, the files, and the digest."""

    skill: Skill
    digest: str
    contents: Inventory


def prepare_grant(trust: Trust, skills: Sequence[Skill]) -> Change[list[Grant]]:
    """Return the change that trusts skills as they are now; raise ``NotTrustedError`` for one that is not local."""
    for skill in skills:
        # A skill that is not a folder here may change between the look at it and the run.
        if not skill.is_local:
            raise NotTrustedError(f"skill {skill.name!r} is not a folder on this machine", skill.location, "not-local")
    details = [TrustDetails(skill, *describe_state(skill)) for skill in skills]
    return Change(
        steps=[
            f"let {one.skill.name} run {_describe_contents(one.contents)}{_describe_variables(one.skill)}, as long as "
            f"no byte of it changes ({one.digest[:SHORT_DIGEST]})"
            for one in details
        ],
        states={one.skill.location: one.digest for one in details},
        read_states=lambda: {skill.location: read_digest(skill) for skill in skills},
        # The request has the digest that a person saw: a skill that changed since is refused by the grants themselves.
        apply=lambda: [
            trust.grant(TrustRequest(one.skill, one.digest, variables=one.skill.requires.all_variables))
            for one in details
        ],
        describe=lambda grants: [f"Trusted {one.name} as it is now ({one.digest[:SHORT_DIGEST]})" for one in grants],
        details=details,
    )


def read_digest(skill: Skill) -> str:
    """Return the digest of a skill, or why it has none."""
    try:
        return skill.digest()
    except SkillError as error:
        return error.message


def _describe_variables(skill: Skill) -> str:
    names = skill.requires.all_variables
    return f" and see the variables {', '.join(names)}" if names else ""


def _describe_contents(contents: Inventory) -> str:
    parts = [
        format_count(len(contents.commands), "command") if contents.commands else "",
        format_count(len(contents.scripts), "script") if contents.scripts else "",
    ]
    return " and ".join(filter(None, parts)) or "what it has to run, which is nothing now"

"""Trust: a grant for skills as they are now, after a look at what would run, and its revocation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from prowess.conversation.acting.snapshot import describe_state
from prowess.conversation.acting.trust_request import TrustRequest
from prowess.errors import NotTrustedError, SkillError
from prowess.spec.quantities import format_count
from prowess.web.planning.file_states import read_file_states
from prowess.web.planning.prepared import Fields, PreparedChange, require_trust

if TYPE_CHECKING:
    from prowess.skills.inventory import Inventory
    from prowess.skills.skill import Skill
    from prowess.web.library import Library

_SHORT_DIGEST = 12


@dataclass(frozen=True, slots=True)
class TrustDetails:
    """What a person has to know before a grant: what would run, the files, and the digest."""

    id: str
    name: str
    location: str
    digest: str
    contents: Inventory


def prepare_grant(library: Library, fields: Fields) -> PreparedChange:
    """Return the change that trusts skills as they are now; raise ``NotTrustedError`` for one that is not local."""
    trust = require_trust(library)
    skills = {skill_id: _find_skill(library, skill_id) for skill_id in fields.get_all("skill")}
    if not skills:
        raise SkillError("name a skill", code="bad-argument")
    details = [
        TrustDetails(skill_id, skill.name, skill.location, *describe_state(skill)) for skill_id, skill in skills.items()
    ]
    digests = {one.id: one.digest for one in details}

    def apply_grants() -> list[str]:
        # The request has the digest that a person saw: a skill that changed since is refused by the grants themselves.
        grants = [trust.grant(TrustRequest(skill, digests[skill_id])) for skill_id, skill in skills.items()]
        return [f"Trusted {grant.name} as it is now ({grant.digest[:_SHORT_DIGEST]})" for grant in grants]

    return PreparedChange(
        steps=[
            f"let {one.name} run {_describe_contents(one.contents)}, as long as no byte of it changes "
            f"({one.digest[:_SHORT_DIGEST]})"
            for one in details
        ],
        read_states=lambda: {skill.location: _read_digest(skill) for skill in skills.values()},
        states={skill.location: digests[skill_id] for skill_id, skill in skills.items()},
        apply=apply_grants,
        details=tuple(details),
    )


def prepare_revocation(library: Library, fields: Fields) -> PreparedChange:
    """Return the change that revokes every grant of some skills, or the grants of some digests."""
    trust = require_trust(library)
    # Before the grants are read, so that no change between the two goes unnoticed.
    states = read_file_states([trust.path], library.limits)
    skills = [_find_skill(library, skill_id) for skill_id in fields.get_all("skill")]
    # A skill that is gone by now may still have a grant, so grants are also named by their digest.
    keys = {*fields.get_all("digest"), *(skill.location for skill in skills)}
    keys |= {_read_digest(skill) for skill in skills}
    grants = [grant for grant in trust.grants() if keys & {grant.digest, grant.location}]

    def apply_revocation() -> list[str]:
        count = sum(trust.revoke(grant.digest) for grant in grants)
        return [f"Revoked {format_count(count, 'grant')}"]

    return PreparedChange(
        steps=[
            f"revoke the grant for {grant.name} ({grant.digest[:_SHORT_DIGEST]}), made on {grant.granted}"
            for grant in grants
        ],
        read_states=lambda: read_file_states([trust.path], library.limits),
        states=states,
        apply=apply_revocation,
        idle_text="Nothing to do: there is no such grant.",
    )


def _find_skill(library: Library, skill_id: str) -> Skill:
    state = library.state
    row = state.find_row(skill_id)
    skill = state.read_skill(row)
    if skill is None:
        raise SkillError(f"{row.name!r} does not load, so nothing of it can run", row.location, "bad-argument")
    if not skill.is_local:
        raise NotTrustedError(f"skill {skill.name!r} is not a folder on this machine", skill.location, "not-local")
    return skill


def _read_digest(skill: Skill) -> str:
    try:
        return skill.digest()
    except SkillError as error:
        return error.message


def _describe_contents(contents: Inventory) -> str:
    parts = [
        format_count(len(contents.commands), "command") if contents.commands else "",
        format_count(len(contents.scripts), "script") if contents.scripts else "",
    ]
    return " and ".join(filter(None, parts)) or "what it has to run, which is nothing now"

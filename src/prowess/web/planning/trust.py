"""Trust: a grant for skills as they are now, after a look at what would run, and its revocation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from prowess.changes.change import Change
from prowess.changes.states import read_file_states
from prowess.changes.trust import SHORT_DIGEST, prepare_grant, read_digest
from prowess.errors import NotTrustedError, SkillError
from prowess.text.quantities import format_count
from prowess.web.planning.fields import Fields, require_trust

if TYPE_CHECKING:
    from prowess.conversation.acting.trust import Grant
    from prowess.skills.inventory import Inventory
    from prowess.skills.skill import Skill
    from prowess.web.library import Library


@dataclass(frozen=True, slots=True)
class SkillGrant:
    """What a person has to know before a grant, with the id of the skill's page."""

    id: str
    name: str
    digest: str
    contents: Inventory


def prepare_skill_grant(library: Library, fields: Fields) -> Change[list[Grant]]:
    """Return the change that trusts skills as they are now; raise ``NotTrustedError`` for one that is not local."""
    ids = fields.get_all("skill")
    if not ids:
        raise SkillError("name a skill", code="bad-argument")
    change = prepare_grant(require_trust(library), [_find_skill(library, skill_id) for skill_id in ids])
    details = (
        SkillGrant(skill_id, one.skill.name, one.digest, one.contents)
        for skill_id, one in zip(ids, change.details, strict=True)
    )
    return replace(change, details=tuple(details))


def prepare_revocation(library: Library, fields: Fields) -> Change[list[str]]:
    """Return the change that revokes every grant of some skills, or the grants of some digests."""
    trust = require_trust(library)
    # Before the grants are read, so that no change between the two goes unnoticed.
    states = read_file_states([trust.path], library.limits)
    skills = [_find_skill(library, skill_id) for skill_id in fields.get_all("skill")]
    # A skill that is gone by now may still have a grant, so grants are also named by their digest.
    keys = {*fields.get_all("digest"), *(skill.location for skill in skills)}
    keys |= {read_digest(skill) for skill in skills}
    grants = [grant for grant in trust.grants() if keys & {grant.digest, grant.location}]

    def apply_revocation() -> list[str]:
        count = sum(trust.revoke(grant.digest) for grant in grants)
        return [f"Revoked {format_count(count, 'grant')}"]

    return Change(
        steps=[
            f"revoke the grant for {grant.name} ({grant.digest[:SHORT_DIGEST]}), made on {grant.granted}"
            for grant in grants
        ],
        read_states=lambda: read_file_states([trust.path], library.limits),
        states=states,
        apply=apply_revocation,
        describe=list,
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

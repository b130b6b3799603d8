"""Which skills the policy refuses: those that are revoked, and those that nobody reviewed where that is required."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import Issue, PolicyError, SkillError
from prowess.installed.verifier import LockVerifier
from prowess.policy.rules import to_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits
    from prowess.policy.rules import Policy
    from prowess.skills.skill import Skill


class SkillOrigin(NamedTuple):
    """A skill as a lock file records it: its digest, its source as the rules see it, its version and its install."""

    digest: str
    source: str
    ref: str
    install: str
    inside: str
    """Its folder below the install."""


def drop_refused(
    skills: Sequence[Skill], scopes: tuple[InstallScope, ...], policy: Policy, limits: Limits
) -> tuple[list[Skill], list[Issue]]:
    """The skills without those that the policy refuses by what the lock files say, and an issue for each of these.

    Nothing is hashed: a skill that no lock file records is refused when it is loaded.
    """
    kept: list[Skill] = []
    issues: list[Issue] = []
    verifier = LockVerifier(scopes, limits)
    for skill in skills:
        origin = find_origin(skill, verifier)
        try:
            if origin is not None:
                policy.check_skill(skill.name, origin.digest, origin.source, origin.ref)
        except PolicyError as error:
            issues.append(Issue(error.code, "", error.message, skill.location))
        else:
            kept.append(skill)
    return kept, issues


def find_origin(skill: Skill, verifier: LockVerifier) -> SkillOrigin | None:
    """Return the digest and the source of a skill as the lock files have them.

    ``None`` for one that none of them records.
    """
    found = verifier.find_record(skill.real_folder) if skill.is_local else None
    if found is None:
        return None
    scope, entry, inner = found
    digest = entry.folder_digest(inner) if inner else entry.digest
    return SkillOrigin(digest, to_address(entry.source, scope.lock_folder), entry.ref, entry.name, inner)


def find_revoked(skills: Iterable[Skill], policy: Policy) -> dict[str, Issue]:
    """Return an issue for each skill, by name, whose files are at this moment those of a revoked digest.

    Every skill on this disk is hashed, where there is any such digest.
    """
    found: dict[str, Issue] = {}
    for skill in skills if policy.revoked_digests else ():
        with suppress(SkillError):  # what cannot be hashed cannot be loaded either
            revocation = policy.find_revocation(skill.digest()) if skill.is_local else None
            if revocation is not None:
                found[skill.name] = Issue("revoked", "", f"is revoked by {revocation.file}", skill.location)
    return found

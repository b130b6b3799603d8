"""What the policy says of installed skills and of lock files: what is refused, and the list of everything installed."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from prowess.addresses.skill_ref import is_commit
from prowess.addresses.source_spec import VERSIONED_KINDS
from prowess.errors import Issue, PolicyError, SkillError
from prowess.installed.scopes import is_on_disk
from prowess.installed.verifier import LockVerifier
from prowess.lockfile.read import LOCK_FILE
from prowess.policy.files import current_policy
from prowess.policy.rules import to_address
from prowess.text.quantities import join_first
from prowess.text.versions import has_numbers, is_range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntry
    from prowess.policy.rules import Policy
    from prowess.skills.skill import Skill

_MAX_NAMED = 5
"""How many skills a message names."""


class SkillOrigin(NamedTuple):
    """A skill as a lock file records it: its digest, its source as the rules see it, its version, and its install."""

    digest: str
    source: str
    ref: str
    commit: str
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
    return SkillOrigin(digest, to_address(entry.source, scope.lock_folder), entry.ref, entry.commit, entry.name, inner)


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


# -- lock files --------------------------------------------------------------------------------------------------------


class InventoryRow(NamedTuple):
    """One installed skill of one project, or of the user."""

    skill: str
    digest: str
    install: str
    source: str
    version: str
    commit: str
    project: str
    """The folder of the lock file."""


def check_lock_entries(scope: InstallScope, locked: Mapping[str, LockEntry], policy: Policy) -> Iterator[Issue]:
    """An issue for each rule that an entry of a lock file breaks. Nothing is fetched: the age of a commit is not known.

    What looks like a version counts as a tag.
    """
    path = os.path.join(scope.lock_folder, LOCK_FILE)
    for entry in locked.values():
        for error in _find_errors(_list_checks(scope, entry, policy)):
            yield Issue(error.code, entry.name, error.message, path)


def refuse_entry(scope: InstallScope, entry: LockEntry) -> None:
    """Raise ``PolicyError`` for an entry that breaks a rule: nothing of it is fetched or put back."""
    for refusal in find_refusals(scope, {entry.name: entry}).values():
        if len(entry.skills) > 1:
            refusal.about("", f"; so none of the {len(entry.skills)} skills of {entry.name} can be installed")
        raise refusal


def find_refusals(scope: InstallScope, locked: Mapping[str, LockEntry]) -> dict[str, PolicyError]:
    """Return why entries of a lock file are refused, by their names; those that break no rule are left out.

    Raises ``PolicyError`` for policy files that cannot be used.
    """
    policy = current_policy(scope.root)
    found: dict[str, PolicyError] = {}
    for entry in locked.values() if policy.rules or policy.revocations else ():
        source, *skills = _list_checks(scope, entry, policy)
        errors = _find_errors([source])
        others: list[str] = []
        for skill, check in zip(entry.skills, skills, strict=True) if not errors else ():
            refused = _find_errors([check])
            others += [skill] if errors and refused else []
            errors += refused
        if errors:
            found[entry.name] = errors[0].about(
                "", f"; refused too: {join_first(others, _MAX_NAMED)}" if others else ""
            )
    return found


def _find_errors(checks: Iterable[Callable[[], None]]) -> list[PolicyError]:
    """Return what the checks refuse, an error each."""
    errors: list[PolicyError] = []
    for check in checks:
        try:
            check()
        except PolicyError as error:
            errors.append(error)
    return errors


def is_refused(scope: InstallScope, entry: LockEntry) -> bool:
    """Return whether the policy refuses an entry."""
    return bool(find_refusals(scope, {entry.name: entry}))


def _list_checks(scope: InstallScope, entry: LockEntry, policy: Policy) -> list[Callable[[], None]]:
    skills = [partial(_check_skill, scope, entry, skill, policy) for skill in entry.skills]
    return [partial(_check_source, scope, entry, policy), *skills]


def _check_source(scope: InstallScope, entry: LockEntry, policy: Policy) -> None:
    if entry.kind == "adopted":
        return
    address = to_address(entry.source, scope.lock_folder)
    policy.check_source(address)
    policy.check_pinned_signer(entry.signer, address)
    if entry.kind in VERSIONED_KINDS:
        is_version = is_commit(entry.ref) or is_range(entry.ref) or has_numbers(entry.ref)
        policy.check_ref(entry.ref, address, lambda: is_version)


def _check_skill(scope: InstallScope, entry: LockEntry, skill: str, policy: Policy) -> None:
    source = to_address(entry.source, scope.lock_folder)
    policy.check_skill(skill, entry.skill_digest(skill), source, entry.ref)


def list_inventory(scope: InstallScope, locked: Mapping[str, LockEntry]) -> Iterator[InventoryRow]:
    """Yield a row for each skill that a lock file records and that is on this disk."""
    for entry in locked.values():
        if is_on_disk(entry, scope):
            for skill in entry.skills:
                digest = entry.skill_digest(skill)
                yield InventoryRow(skill, digest, entry.name, entry.source, entry.ref, entry.commit, scope.lock_folder)

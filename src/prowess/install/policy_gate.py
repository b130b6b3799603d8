"""What the policy says of lock files: the gate for CI, and the list of everything that is installed."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from prowess.addresses.skill_ref import is_commit
from prowess.addresses.source_spec import VERSIONED_KINDS
from prowess.errors import Issue, PolicyError
from prowess.installed.scopes import is_on_disk
from prowess.lockfile.read import LOCK_FILE
from prowess.policy.files import current_policy
from prowess.policy.rules import to_address
from prowess.text.versions import has_numbers, is_range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from prowess.installed.scopes import InstallScope
    from prowess.lockfile.read import LockEntry
    from prowess.policy.rules import Policy


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
        for check in _list_checks(scope, entry, policy):
            try:
                check()
            except PolicyError as error:
                yield Issue(error.code, entry.name, error.message, path)


def refuse_entry(scope: InstallScope, entry: LockEntry) -> None:
    """Raise ``PolicyError`` for an entry that breaks a rule: nothing of it is fetched or put back."""
    policy = current_policy(scope.root)
    for check in _list_checks(scope, entry, policy) if policy.rules or policy.revocations else ():
        check()


def _list_checks(scope: InstallScope, entry: LockEntry, policy: Policy) -> list[Callable[[], None]]:
    skills = [partial(_check_skill, scope, entry, skill, policy) for skill in entry.skills]
    return [partial(_check_source, scope, entry, policy), *skills]


def _check_source(scope: InstallScope, entry: LockEntry, policy: Policy) -> None:
    if entry.kind == "adopted":
        return
    address = to_address(entry.source, scope.lock_folder)
    policy.check_source(address)
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

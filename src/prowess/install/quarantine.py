"""Revoked skills on this disk: where they are, and how they are taken out of every agent's sight."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from prowess.discovery.agents import AGENTS, standard_places
from prowess.discovery.scan import find_skills
from prowess.discovery.walk import ScanRules
from prowess.errors import SkillError
from prowess.fetch.cache import Cache
from prowess.files.paths import is_inside
from prowess.files.syscalls import wrap_os_errors
from prowess.format.head import LoadPolicy
from prowess.install.backups import REVOKED, back_up
from prowess.install.journal import new_token
from prowess.install.store import Disposal, open_store
from prowess.installed.policy_check import find_origin
from prowess.installed.verifier import LockVerifier
from prowess.lockfile.read import read_lock
from prowess.policy.files import current_policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prowess.install.context import InstallContext
    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits
    from prowess.policy.rules import Policy, Revocation
    from prowess.skills.skill import Skill


class RevokedSkill(NamedTuple):
    """A skill on this disk that is revoked."""

    name: str
    digest: str
    folder: str
    """Its folder, with links followed."""
    install: str
    """``org/name`` of the install that it is in; ``""`` where somebody put it there by hand."""
    inside: str
    """Its folder below the install."""
    is_in_base: bool
    """Whether it is in an install base, and not a copy, or somebody's own folder, where an agent looks."""
    revocation: Revocation


def find_revoked_skills(
    cwd: str, home: str, env: Mapping[str, str], context: InstallContext, policy: Policy
) -> list[RevokedSkill]:
    """Return every revoked skill in the folders of the project, of the user, and of every agent that Prowess knows.

    Every skill there is hashed.
    """
    verifier = LockVerifier(context.scopes, context.limits)
    rules = ScanRules(LoadPolicy(limits=context.limits))
    places = standard_places(cwd, home, agents=AGENTS, env=env)
    bases = tuple(scope.base for scope in context.scopes)
    found = {
        skill.real_folder: skill for skill in find_skills(places, rules, allowed=(context.project.root, *bases)).skills
    }
    # What a clone revokes counts in the clone alone: its files must not move what is the user's own.
    own, project = current_policy(home), os.path.realpath(context.project.root)
    has_project = context.project.root != context.user.root
    revoked = []
    for skill in found.values():
        in_project = has_project and is_inside(skill.real_folder, project)
        one = _examine(skill, context.scopes, verifier, policy if in_project else own)
        if one is not None:
            revoked.append(one)
    return revoked


def _examine(
    skill: Skill, scopes: Sequence[InstallScope], verifier: LockVerifier, policy: Policy
) -> RevokedSkill | None:
    origin = find_origin(skill, verifier)
    digest, source, ref = (origin.digest, origin.source, origin.ref) if origin is not None else ("", "", "")
    with suppress(SkillError):  # a folder that cannot be hashed may still be revoked by its source
        digest = skill.digest()
    revocation = policy.find_revocation(digest, source, ref)
    if revocation is None:
        return None
    install, inside = (origin.install, origin.inside) if origin is not None else ("", "")
    in_base = any(is_inside(skill.real_folder, os.path.realpath(scope.base)) for scope in scopes)
    return RevokedSkill(skill.name, digest, skill.real_folder, install, inside, in_base and bool(install), revocation)


def quarantine_skills(context: InstallContext, found: Sequence[RevokedSkill]) -> None:
    """Move revoked skills to the backups, remove the links to them, and what the cache has of their commits.

    The lock file stays: it is the project's, and 'prowess policy check' names it until somebody changes it. Commands
    name each backup in ``context.issues``.
    """
    context.begin_change(*context.scopes)
    for scope in context.scopes:
        inside = [one for one in found if one.is_in_base and is_inside(one.folder, os.path.realpath(scope.base))]
        # The home folder is around most projects: what is in the project is the project's.
        others = [one for one in found if not one.is_in_base and _find_owner(one, context.scopes) is scope]
        if inside or others:
            with wrap_os_errors(), open_store(scope, context.limits, keep_lock=True) as store:
                for one in inside:
                    store.stage_removal(one.install, Disposal(REVOKED), inside=one.inside)
                for one in (*inside, *others):
                    for path in store.link_folders.find_links_into(one.folder):
                        store.stage_unlink(path)
                left = {one.install: store.placed.parts_of(one.install) for one in inside}
                store.commit(store.locked)
                # What is left of an install is not somebody's edit.
                gone = {(one.install, one.inside) for one in inside}
                store.placed.save(
                    {
                        name: {part: digest for part, digest in parts.items() if (name, part) not in gone}
                        for name, parts in left.items()
                        if len(parts) > 1
                    }
                )
                context.issues += store.issues
                for one in others:
                    name = os.path.relpath(one.folder, scope.root).replace(os.sep, "/")
                    context.issues += (back_up(one.folder, scope, name, REVOKED, new_token()),)
        _forget_commits(scope, inside, context.limits)


def _find_owner(one: RevokedSkill, scopes: Sequence[InstallScope]) -> InstallScope | None:
    """Return the scope whose root a folder is in, the project's first; ``None`` for one that is elsewhere."""
    return next((scope for scope in scopes if is_inside(one.folder, os.path.realpath(scope.root))), None)


def _forget_commits(scope: InstallScope, found: Sequence[RevokedSkill], limits: Limits) -> None:
    """Delete from the cache the commits that revoked skills were installed from."""
    locked = read_lock(scope.lock_folder, limits=limits)
    cache = Cache()
    for entry in (locked[one.install] for one in found if one.install in locked):
        cache.delete_commit(entry.source, entry.commit)

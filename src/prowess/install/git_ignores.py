"""Warnings about ``.gitignore``: what git should ignore of a project's installs, and what it must not ignore."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.errors import GitError, Issue
from prowess.fetch.git.process import GitProgram, make_environment
from prowess.files.directory import exists
from prowess.files.projects import NATIVE_PROJECT
from prowess.files.temp import temporary_folder
from prowess.lockfile.read import LOCK_FILE, read_lock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.install.installer import Installer
    from prowess.install.plan import Plan
    from prowess.installed.scopes import InstalledSkill, InstallScope
    from prowess.limits import Limits

_SAMPLE_INSTALL = f"{NATIVE_PROJECT}/org/name/SKILL.md"
"""A path that stands for everything in the install base: any pattern that covers it is good."""


def apply_with_advice(
    installer: Installer, plan: Plan, limits: Limits
) -> tuple[tuple[InstalledSkill, ...], tuple[Issue, ...]]:
    """Apply a plan; returns the installs, and a warning for each file that git should ignore, or must not ignore."""
    is_first = not exists(os.path.join(installer.project.lock_folder, LOCK_FILE))
    installs = installer.apply(plan)
    if plan.location != "project":
        return installs, ()
    return installs, find_ignore_issues(installer.project, limits, first=is_first)


def find_ignore_issues(scope: InstallScope, limits: Limits, *, first: bool) -> tuple[Issue, ...]:
    """A warning for each path that git ignores and must not; nothing outside of a git work tree.

    With ``first``, this is the first install of the project, and an install base that git does not ignore is a warning
    too.
    """
    if scope.location != "project" or not scope.base.endswith(NATIVE_PROJECT.replace("/", os.sep)):
        return ()
    entries = read_lock(scope.lock_folder, limits=limits).values()
    copies = sorted({copy for entry in entries if entry.is_copied for copy in entry.copies})
    ignored = _find_ignored_paths(scope.root, [_SAMPLE_INSTALL, LOCK_FILE, *copies], limits)
    if ignored is None:
        return ()
    issues = [_ignored_issue(path, scope.root) for path in (LOCK_FILE, *copies) if path in ignored]
    if first and _SAMPLE_INSTALL not in ignored:
        what = f"{LOCK_FILE}, .gitattributes and the copies" if copies else f"{LOCK_FILE} and the links"
        message = f"put .prowess/ into .gitignore, and commit {what} in the folders of agents"
        ignore_file = os.path.join(scope.root, ".gitignore")
        issues.append(Issue("not-ignored", ".prowess/", message, ignore_file, 0, "warning"))
    return tuple(issues)


def _ignored_issue(path: str, root: str) -> Issue:
    why = "clones get other skills without it" if path == LOCK_FILE else "a copy is there to be committed"
    return Issue("ignored-by-git", path, f"git ignores {path}: {why}", os.path.join(root, ".gitignore"), 0, "warning")


def _find_ignored_paths(root: str, paths: Sequence[str], limits: Limits) -> set[str] | None:
    """Those of the paths that git ignores; ``None`` without a work tree or git."""
    git = GitProgram(limits)
    env = make_environment((), [("core.quotePath", "false")])
    # The program bounds what git writes into its working folder: that is an empty one, and not the project.
    with temporary_folder() as empty:
        try:
            # --no-index: the patterns alone count, also for a file that somebody committed in spite of them.
            printed = git(["-C", root, "check-ignore", "--no-index", "--", *paths], empty, env)
        except GitError:  # git also fails when it ignores none of the paths
            return set() if _is_work_tree(git, root, empty, env) else None
    return set(printed.decode("utf-8", "surrogateescape").splitlines())


def _is_work_tree(git: GitProgram, root: str, empty: str, env: dict[str, str]) -> bool:
    try:
        return git(["-C", root, "rev-parse", "--is-inside-work-tree"], empty, env).strip() == b"true"
    except GitError:
        return False

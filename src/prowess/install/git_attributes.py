"""The lines of ``.gitattributes`` that keep git from changing the line ends of copies that are committed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.errors import GitError, InstallError, Issue
from prowess.fetch.git.process import GitProgram, make_environment
from prowess.files import syscalls
from prowess.files.delete import temporary_folder
from prowess.files.directory import exists
from prowess.files.projects import NATIVE_PROJECT, git_root
from prowess.files.write import make_folders, write_atomic
from prowess.lockfile.read import LOCK_FILE, read_lock, read_text
from prowess.lockfile.write import with_line_ends
from prowess.text.quantities import format_count, join_first

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from prowess.install.installer import Installer
    from prowess.install.plan import Plan
    from prowess.installed.scopes import InstalledSkill, InstallScope
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntries


ATTRIBUTES_FILE = ".gitattributes"


def update_attributes(
    scope: InstallScope, before: LockEntries, after: LockEntries, limits: Limits
) -> tuple[Issue, ...]:
    """Have ``.gitattributes`` name the copies of ``after``, and no more those that only ``before`` had.

    A file that held nothing else is deleted. Returns an issue where lines were added, or could not be; none outside of
    git.
    """
    wanted, dropped = _lines_for(after), set(_lines_for(before))
    if not (wanted or dropped) or scope.location != "project":
        return ()
    if git_root(scope.root, os.path.expanduser("~")) is None:
        return ()
    path = os.path.join(scope.root, ATTRIBUTES_FILE)
    try:
        text = read_text(scope.root, ATTRIBUTES_FILE, limits) or ""
        lines = text.splitlines()
        kept = [line for line in lines if line in wanted or line not in dropped]
        missing = [line for line in wanted if line not in kept]
        if lines and not (kept or missing):
            syscalls.delete_file(path)
        elif missing or kept != lines:
            changed = with_line_ends("".join(f"{line}\n" for line in kept + missing), text)
            write_atomic(path, changed.encode(), mode=0o644)
    except (InstallError, OSError) as error:
        why = error.message if isinstance(error, InstallError) else error.strerror or str(error)
        message = f"{ATTRIBUTES_FILE} cannot be changed ({why}); for the copies it needs these lines: {wanted!r}"
        return (Issue("git-attributes", ATTRIBUTES_FILE, message, path, 0, "warning"),)
    if not missing:
        return ()
    message = f"changed {ATTRIBUTES_FILE}, so that git leaves the line ends of copies as they are"
    return (Issue("git-attributes", ATTRIBUTES_FILE, message, path, 0, "info"),)


def _lines_for(entries: LockEntries) -> list[str]:
    return sorted(f"/{copy}/** -text" for entry in entries.values() if entry.is_copied for copy in entry.copies)


_LINK_MODE = "120000"
_SKIPPED = "S"
"""How ``git ls-files -t`` marks an entry that git overlooks."""
_BATCH = 100
"""How many paths go into one command line, which Windows bounds to 32,000 characters."""
_SHOWN = 5


def overlook_copies(root: str, hidden: Collection[str], shown: Collection[str], limits: Limits) -> tuple[Issue, ...]:
    """Have git overlook what is at the paths of ``hidden``, and look at those of ``shown`` again.

    Only the paths that git has as links count; all are relative to ``root`` and have ``/``. Returns an issue that names
    what is overlooked, or that says why git could not be made to; none where git has none of them as a link.
    """
    if git_root(root, os.path.expanduser("~")) is None:
        return ()
    work_tree, links = _WorkTree(root, limits), dict[str, str]()
    try:
        links = work_tree.list_links({os.path.dirname(path) for path in (*hidden, *shown)})
        work_tree.mark("--skip-worktree", [path for path in hidden if links.get(path, _SKIPPED) != _SKIPPED])
        work_tree.mark("--no-skip-worktree", [path for path in shown if links.get(path) == _SKIPPED])
        # 'git status' shows nothing below an entry that is skipped, but 'git add --all' would add it.
        work_tree.exclude([path for path in hidden if path in links], [path for path in shown if path in links])
    except (InstallError, OSError) as error:
        why = error.message if isinstance(error, InstallError) else error.strerror or str(error)
        return _describe_links(root, [path for path in hidden if path in links], why)
    return _describe_links(root, [path for path in hidden if path in links])


class _WorkTree:
    """The git work tree around a folder, with paths that are relative to that folder."""

    def __init__(self, root: str, limits: Limits) -> None:
        self._root, self._git, self._limits = root, GitProgram(limits), limits
        self._env = make_environment((), [("core.quotePath", "false")]) | {"GIT_LITERAL_PATHSPECS": "1"}

    def _run(self, *words: str) -> str:
        with temporary_folder() as empty:  # the program bounds what git writes into its working folder
            return self._git(["-C", self._root, *words], empty, self._env).decode("utf-8", "surrogateescape")

    def list_links(self, folders: Collection[str]) -> dict[str, str]:
        """Return the paths of the links in the index that are below some folders, each with its mark."""
        rows = (row.partition("\t") for row in self._run("ls-files", "-stz", "--", *sorted(folders)).split("\0"))
        fields = ((head.split(" "), path) for head, _, path in rows if path)
        return {path: mark for (mark, mode, *_), path in fields if mode == _LINK_MODE}

    def mark(self, option: str, paths: list[str]) -> None:
        """Set or clear the mark of entries of the index."""
        for start in range(0, len(paths), _BATCH):
            self._run("update-index", option, "--", *paths[start : start + _BATCH])

    def exclude(self, added: list[str], removed: list[str]) -> None:
        """Add folders to those that this repository ignores on this disk alone, and take others out."""
        answer = self._run("rev-parse", "--show-prefix", "--git-path", "info/exclude").split("\n")
        prefix, (folder, name) = answer[0], os.path.split(os.path.join(self._root, answer[1]))
        patterns = {f"/{prefix}{path}/" for path in added}
        dropped = {f"/{prefix}{path}/" for path in removed}
        before = read_text(folder, name, self._limits) or ""
        kept = [line for line in before.splitlines() if line not in dropped]
        after = "".join(f"{line}\n" for line in (*kept, *sorted(patterns.difference(kept))))
        if after != before:
            make_folders(folder)
            write_atomic(os.path.join(folder, name), after.encode(), mode=0o644)


def _describe_links(root: str, paths: list[str], error: str = "") -> tuple[Issue, ...]:
    if not paths:
        return ()
    what = f"{format_count(len(paths), 'committed link')} cannot be made here, so copies are in place"
    listed = join_first(sorted(paths), _SHOWN)
    if not error:
        message = f"{what}, which git overlooks: {listed}"
        return (Issue("tracked-link", paths[0], message, root, 0, "info"),)
    message = f"{what}, and git shows them as changes: {listed}; it could not be made to overlook them: {error}"
    return (Issue("tracked-link", paths[0], message, root, 0, "warning"),)


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
    return installs, _find_ignore_issues(installer.project, limits, first=is_first)


def _find_ignore_issues(scope: InstallScope, limits: Limits, *, first: bool) -> tuple[Issue, ...]:
    """Return a warning for each path that git ignores and must not; nothing outside of a git work tree.

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

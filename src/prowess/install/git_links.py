"""Copies in place of links that are committed: git is made to overlook them, so that the work tree stays clean."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.errors import InstallError, Issue
from prowess.fetch.git.process import GitProgram, make_environment
from prowess.files.projects import git_root
from prowess.files.temp import temporary_folder
from prowess.files.write import make_folders, write_atomic
from prowess.lockfile.read import read_text
from prowess.text.quantities import format_count, join_first

if TYPE_CHECKING:
    from collections.abc import Collection

    from prowess.limits import Limits

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
        """The paths of the links in the index that are below some folders, each with its mark."""
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

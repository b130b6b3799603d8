"""Which links a scan may follow: a link must lead into a scanned root, the project, or a folder of an installer.

A link that leads anywhere else could make a scan read files that nobody offered as skills.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.files.paths import is_inside

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.files.paths import PathResolver


class LinkPolicy:
    """The folders to which the links of one scan may lead.

    ``allowed`` are the folders beside the scanned ``roots``. ``None`` stands for those of the installers and the git
    repository around each link. With ``follow_all`` every link may be followed.
    """

    def __init__(
        self, roots: Iterable[str], allowed: tuple[str, ...] | None, resolver: PathResolver, *, follow_all: bool
    ) -> None:
        self._roots = tuple(roots)
        self._allowed = allowed
        self._resolver = resolver
        self._follow_all = follow_all
        self._bases: tuple[str, ...] | None = None

    def find_base(self, target: str, folder: str) -> str | None:
        """Return the folder that permits a link in ``folder`` to lead to ``target``; ``None`` when none does."""
        if self._follow_all:
            return os.path.dirname(target)
        return next((base for base in self._list_bases(folder) if is_inside(target, base)), None)

    def _list_bases(self, folder: str) -> tuple[str, ...]:
        from prowess.discovery import search_paths
        from prowess.files import projects

        home = os.path.expanduser("~")
        if self._bases is None:  # resolved when the first link is met: most scans meet none
            allowed = self._allowed if self._allowed is not None else search_paths.install_bases(home, os.environ)
            self._bases = tuple(os.path.realpath(base) for base in (*self._roots, *allowed))
        if self._allowed is not None:
            return self._bases
        root = projects.git_root(self._resolver.resolve(folder).end, home)
        return (*self._bases, root) if root else self._bases

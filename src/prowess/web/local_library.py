"""The library of folders on this machine, with the installs, the lock files and the grants of its user."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from prowess.discovery.live import live
from prowess.discovery.scan import discover, scan
from prowess.install.installer import Installer
from prowess.lockfile.scopes import standard_scopes
from prowess.runtime.acting.trust import Trust
from prowess.web.library import Library

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@contextmanager
def open_library(
    roots: Sequence[str] = (),
    *,
    agents: Sequence[str] = (),
    project: bool = True,
    budget: int | None = None,
    watch: bool = True,
) -> Iterator[Library]:
    """Yield the library of the skills below ``roots``, or, without any, in the standard places.

    With ``watch`` it follows changes of the files. ``agents`` and ``project`` are those of ``prowess.discover``. Raises
    ``SourceError`` for a root that does not exist.
    """
    options: dict[str, Any] = {"missing": "error"} if roots else {"agents": agents, "project": project}
    home = os.path.expanduser("~")
    make_library = partial(
        Library,
        installer=Installer(),
        scopes=standard_scopes(os.getcwd(), home, os.environ, project=project),
        trust=Trust(),
        budget=budget,
    )
    if not watch:
        yield make_library(scan(*roots, **options) if roots else discover(**options))
        return
    with live(*roots, **options) as following:
        yield make_library(following)

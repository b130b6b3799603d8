"""The library of folders on this machine, with the installs, the lock files and the grants of its user."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from prowess.conversation.acting.trust import Trust
from prowess.discovery.agents import find_agents
from prowess.discovery.live import live
from prowess.discovery.scan import discover, scan
from prowess.files.projects import user_state_file
from prowess.installed.scopes import project_scope, standard_scopes
from prowess.web.library import Library
from prowess.web.plans import ResultFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.install.installer import Installer
    from prowess.limits import Limits

_RESULTS_FILE = "console-results.json"


@contextmanager
def open_library(
    roots: Sequence[str] = (),
    *,
    agents: Sequence[str] = (),
    project: bool = True,
    budget: int | None = None,
    watch: bool = True,
    eval_results: str = "",
) -> Iterator[Library]:
    """Yield the library of the skills below ``roots``, or, without any, in the standard places.

    With ``watch`` it follows changes of the files, from the first page on. ``agents`` and ``project`` are those of
    ``prowess.discover``. ``eval_results`` is a file of results of evaluations. Raises ``SourceError`` for a root that
    does not exist.
    """
    options: dict[str, Any] = {"missing": "error"} if roots else {"agents": agents, "project": project}
    home = os.path.expanduser("~")
    make_library = partial(
        Library,
        installer=_make_installer,
        find_agents=lambda: find_agents(project_scope(None).root, home, os.environ),
        scopes=standard_scopes(os.getcwd(), home, os.environ, project=project),
        trust=Trust(),
        budget=budget,
        eval_results=eval_results,
    )
    catalog = scan(*roots, **options) if roots else discover(**options)
    with ExitStack() as opened:
        yield make_library(catalog, follow=(lambda: opened.enter_context(live(*roots, **options))) if watch else None)


def open_results(limits: Limits) -> ResultFile:
    """Return the file with the results of changes in the project around the working folder."""
    return ResultFile(user_state_file(_RESULTS_FILE), project_scope(None).lock_folder, limits)


def _make_installer() -> Installer:
    # It takes a tenth of the time up to the first page to load, and that page does without it.
    from prowess.install.installer import Installer

    return Installer()

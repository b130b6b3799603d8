"""The library of the console: the current catalogue, and whose installs, lock files and grants the pages show."""

from __future__ import annotations

import logging
import os
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any

from prowess.conversation.acting.trust import Trust
from prowess.discovery.agents import find_agents
from prowess.discovery.live import live
from prowess.discovery.scan import discover, scan
from prowess.errors import SkillError
from prowess.files.identity import identity_at
from prowess.files.projects import user_state_file
from prowess.installed.scopes import project_scope, standard_scopes
from prowess.limits import DEFAULT_LIMITS
from prowess.lockfile.read import LOCK_FILE
from prowess.skills.catalog import Catalog
from prowess.web.eval_runs import EvalRuns
from prowess.web.library_state import LibraryState, StateMarks
from prowess.web.plans import ResultFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from prowess.discovery.live import Live
    from prowess.install.installer import Installer
    from prowess.install.outdated import Outdated
    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits


class Library:
    """The skills that the console shows. A page asks it, and so knows no folder.

    ``catalog`` is a catalogue, or a live one that follows the disk. ``installer``, ``scopes`` and ``trust`` are those
    of the catalogue's owner; without them the pages show nothing about installs and grants. ``installer`` may be a
    function that makes one, which is called when a page first needs it. ``find_agents`` returns the ids of the agents
    that are used on this machine; without it the installer is asked. ``follow`` returns a live catalogue of the same
    skills, which takes the place of ``catalog`` once ``follow_changes`` is called. ``eval_results`` is a file of
    ``prowess eval --results``, whose runs the pages of skills show.
    """

    def __init__(
        self,
        catalog: Catalog | Live,
        *,
        follow: Callable[[], Live] | None = None,
        installer: Installer | Callable[[], Installer] | None = None,
        scopes: tuple[InstallScope, ...] = (),
        trust: Trust | None = None,
        budget: int | None = None,
        limits: Limits = DEFAULT_LIMITS,
        find_agents: Callable[[], tuple[str, ...]] | None = None,
        eval_results: str = "",
    ) -> None:
        self._source = catalog
        self._follow = follow
        self._follow_lock = Lock()
        self._has_failed_to_follow = False
        self._installer = installer
        self._find_agents = find_agents
        self.scopes = scopes
        self.trust = trust
        self.budget = budget
        self.limits = limits
        self.eval_runs = EvalRuns(eval_results, limits)
        self.outdated: tuple[Outdated, ...] | None = None
        """What the sources of installs had at the last check; ``None`` before the first one."""
        self._lock = RLock()
        self._state: LibraryState | None = None

    @property
    def installer(self) -> Installer | None:
        """The installer; ``None`` for a library that is not about installs."""
        with self._lock:
            if callable(self._installer):
                self._installer = self._installer()
            return self._installer

    def find_agents(self) -> tuple[str, ...]:
        """Return the ids of the agents that are used on this machine; none for a library without an installer."""
        if self._find_agents is not None:
            return self._find_agents()
        return self.installer.present_agents() if self.installer is not None else ()

    @property
    def is_live(self) -> bool:
        """Whether the library follows changes of its files, or will once ``follow_changes`` is called."""
        return self._follow is not None or not isinstance(self._source, Catalog)

    def follow_changes(self) -> None:
        """Begin to follow changes of the files, where that is wanted and not done yet.

        To watch the folders of a large library takes longer than to read it, so the first page does not wait for it.
        What changed since that page is found as well: the live catalogue reads the files again.
        """
        # Whoever comes while another thread begins already goes on with the current catalogue.
        if self._follow is None or not self._follow_lock.acquire(blocking=False):
            return
        try:
            if self._follow is not None:  # the other thread may have ended since the look above
                self._source, self._follow = self._follow(), None
        except (SkillError, OSError) as error:  # the last good catalogue stays in use, and the next look tries again
            if not self._has_failed_to_follow:  # an open page looks twice a second
                logging.getLogger("prowess").warning("changes of the skills are not followed yet: %s", error)
            self._has_failed_to_follow = True
        finally:
            self._follow_lock.release()

    @property
    def catalog(self) -> Catalog:
        """The current catalogue."""
        return self._source if isinstance(self._source, Catalog) else self._source.catalog

    @property
    def state(self) -> LibraryState:
        """What is known about the current skills, kept until the catalogue, a lock file, a grant or a check changes."""
        with self._lock:
            catalog, marks = self.catalog, self._read_marks()
            state = self._state
            if state is None or state.catalog is not catalog or state.marks != marks:
                state = self._state = LibraryState(self, catalog, marks)
            return state

    def _read_marks(self) -> StateMarks:
        locks = (identity_at(os.path.join(scope.lock_folder, LOCK_FILE)) for scope in self.scopes)
        records = (*locks, self.trust.mark() if self.trust is not None else None)
        return StateMarks(records, self.outdated, is_followed=not isinstance(self._source, Catalog))

    def check_for_updates(self) -> tuple[Outdated, ...]:
        """Ask the sources of all installs for something newer, keep the answer for the pages, and return it."""
        found = self.installer.outdated() if self.installer is not None else ()
        self.outdated = found
        return found


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

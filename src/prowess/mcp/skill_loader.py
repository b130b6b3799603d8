"""Loads the skills that a server offers from folders, and says which folders to watch for changes."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from prowess.discovery.scan import find_skills, find_standard_skills, resolve_standard_places
from prowess.discovery.scan_options import ScanRules
from prowess.discovery.watch import linked_folders
from prowess.format.head import LoadPolicy
from prowess.mcp.served_skills import build_from_scan
from prowess.model import Place

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.limits import Limits
    from prowess.mcp.served_skills import ServedSkills


class SkillLoader:
    """Loads the served skills from named folders, or from the standard places when none are named."""

    def __init__(self, roots: tuple[str, ...], limits: Limits) -> None:
        self._roots = roots
        self._limits = limits
        self._rules = ScanRules(LoadPolicy(limits=limits), nested=True)

    def load(self) -> ServedSkills:
        """Scan the places, and return the skills to serve."""
        if self._roots:
            found = find_skills(self._places(), self._rules)
        else:
            found = find_standard_skills(resolve_standard_places(), self._rules)
        return build_from_scan(found, self._limits)

    def watched_folders(self, served: ServedSkills | None) -> Iterable[str]:
        """Return what to watch for changes: the places, their lock files, and where links of ``served`` lead."""
        linked = linked_folders(served.loaded) if served is not None else ()
        lock_files = resolve_standard_places().lock_files if not self._roots else ()
        return (*(place.path for place in self._places()), *lock_files, *linked)

    def is_small(self) -> bool:
        """Return whether the places hold so few files and folders that loading them takes only a moment.

        Entries are counted and no clock is read, so whether a client waits for its listing does not depend on chance.
        """
        left = self._limits.max_awaited_entries
        waiting = [place.path for place in self._places()]
        while waiting:
            # By paths and not by handles, in half of the time: the number decides nothing but who waits.
            with suppress(OSError), os.scandir(waiting.pop()) as entries:  # what is missing costs nothing to load
                for entry in entries:
                    left -= 1
                    if left < 0:
                        return False
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        return True

    def _places(self) -> tuple[Place, ...]:
        return tuple(Place(root) for root in self._roots) if self._roots else resolve_standard_places().places

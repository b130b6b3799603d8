"""The links between pages: addresses of the running console, or relative paths of an exported site."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlencode

if TYPE_CHECKING:
    from collections.abc import Mapping


class NavigationEntry(NamedTuple):
    """A page in the navigation: its name, its address in the running console, and its title."""

    name: str
    path: str
    title: str


NAVIGATION = (
    NavigationEntry("library", "/", "Library"),
    NavigationEntry("sees", "/sees", "What the model sees"),
    NavigationEntry("agents", "/agents", "Agents"),
    NavigationEntry("changes", "/changes", "Changes"),
)
"""The pages that every page links to. The page of a skill is reached from the library."""
EXPORTED_PAGES = frozenset(("library", "sees", "agents"))
"""The pages of the navigation that an exported site has."""
_PATHS = {entry.name: entry.path for entry in NAVIGATION}


class ServedLinks:
    """The addresses of the running console."""

    is_static = False
    navigation: tuple[NavigationEntry, ...] = NAVIGATION

    def page(self, name: str, query: Mapping[str, str] | None = None) -> str:
        """Return the address of a page of the navigation, with a query."""
        return _PATHS[name] + _write_query(query)

    def skill(self, skill_id: str, query: Mapping[str, str] | None = None) -> str:
        """Return the address of the page of a skill."""
        return f"/skills/{quote(skill_id, safe='~')}{_write_query(query)}"

    def file(self, skill_id: str, path: str) -> str:
        """Return the address of the page that shows a file of a skill."""
        return f"{self.skill(skill_id)}/files{_write_query({'path': path})}"

    def image(self, skill_id: str, path: str) -> str:
        """Return the address of the bytes of an image of a skill."""
        return f"{self.skill(skill_id)}/image{_write_query({'path': path})}"

    def run(self, run_id: str) -> str:
        """Return the address of the page of a run of an evaluation."""
        return f"/runs/{quote(run_id, safe='')}"

    def plan(self, plan_id: str = "", step: str = "") -> str:
        """Return the address of a plan, or the one that a form for it, or for its next ``step``, is sent to."""
        return "/".join(("/plans", *(quote(part, safe="") for part in (plan_id, step) if part)))

    def static(self, name: str) -> str:
        """Return the address of a style sheet or a script of the console."""
        return f"/static/{name}"


class ExportedLinks(ServedLinks):
    """The relative paths of an exported site, which also work from ``file:``; seen from one of its folders."""

    is_static = True
    navigation = tuple(entry for entry in NAVIGATION if entry.name in EXPORTED_PAGES)

    def __init__(self, depth: int = 0) -> None:
        """``depth``: how many folders the page is below the first one."""
        self._up = "../" * depth

    def page(self, name: str, query: Mapping[str, str] | None = None) -> str:
        """Return the path of a page of the navigation; of the library, that of a filter and a page of it."""
        given = query or {}
        parts = (name, given.get("show", ""), given.get("page", ""))
        file = "-".join(filter(None, parts))
        return f"{self._up}{'index' if file == 'library' else file}.html"

    def skill(self, skill_id: str, query: Mapping[str, str] | None = None) -> str:  # noqa: ARG002 - no queries in files
        """Return the path of the page of a skill."""
        return f"{self._up}skills/{skill_id}.html"

    def file(self, skill_id: str, path: str) -> str:
        """Return the path of the page that shows a file of a skill."""
        return f"{self._up}skills/{skill_id}.files/{_hash_path(path)}.html"

    def image(self, skill_id: str, path: str) -> str:
        """Return the path of a copy of an image of a skill."""
        return f"{self._up}skills/{skill_id}.files/{_hash_path(path)}.image"

    def static(self, name: str) -> str:
        """Return the path of a style sheet of the console."""
        return f"{self._up}static/{name}"


def _hash_path(path: str) -> str:
    """Return a name for a file of a skill that is safe everywhere, whatever the file is called."""
    return hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _write_query(query: Mapping[str, str] | None) -> str:
    given = {key: value for key, value in (query or {}).items() if value}
    # Halves of characters, which a damaged file name may hold, are written as the bytes that they stand for.
    return f"?{urlencode(given, errors='surrogateescape')}" if given else ""

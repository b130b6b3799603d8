"""The links between pages: addresses of the running console, or relative paths of an exported site."""

from __future__ import annotations

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
_PATHS = {entry.name: entry.path for entry in NAVIGATION}


class ServedLinks:
    """The addresses of the running console."""

    is_static = False
    navigation = NAVIGATION

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

    def static(self, name: str) -> str:
        """Return the address of a style sheet or a script of the console."""
        return f"/static/{name}"


def _write_query(query: Mapping[str, str] | None) -> str:
    given = {key: value for key, value in (query or {}).items() if value}
    # Halves of characters, which a damaged file name may hold, are written as the bytes that they stand for.
    return f"?{urlencode(given, errors='surrogateescape')}" if given else ""

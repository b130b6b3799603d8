"""The MCP methods that list something: who offers each, and what makes a page of the list.

This module does without the MCP SDK, so that the lists can be answered before the SDK is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from prowess.mcp.answers import Answer
from prowess.mcp.pagination import make_page

if TYPE_CHECKING:
    from collections.abc import Callable

    from prowess.mcp.snapshot import ServerSnapshot

EXTENSION_SETTINGS = {"directoryRead": True}
"""What the server says about the extension in its capabilities."""
EXTENSION_METHODS = frozenset(("skills/list", "skills/get", "resources/directory/read"))
"""The methods that MCP itself does not have."""


class ListMethod(NamedTuple):
    """A method that lists something: the part of a server that offers it, and what makes the page after a cursor."""

    part: str
    list_page: Callable[[ServerSnapshot, str | None], Answer]


LIST_METHODS: dict[str, ListMethod] = {
    "skills/list": ListMethod("extension", lambda snapshot, cursor: snapshot.handlers.list_skills(cursor)),
    "resources/list": ListMethod("extension", lambda snapshot, cursor: snapshot.handlers.list_resources(cursor)),
    "resources/templates/list": ListMethod("extension", lambda snapshot, _: snapshot.handlers.list_templates()),
    "tools/list": ListMethod(
        "tools", lambda snapshot, _: Answer(make_page("tools", [*snapshot.tools.definitions], None))
    ),
    "prompts/list": ListMethod("prompts", lambda snapshot, cursor: snapshot.prompts.list_prompts(cursor)),
}
"""Every method that lists something, by its name."""

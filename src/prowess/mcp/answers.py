"""The answer to a request, with what the server has to know about it before it sends it."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from prowess.errors import SourceError
from prowess.files.identity import identity_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from prowess.format.frontmatter.json_types import Json
    from prowess.mcp.handlers import ServerSnapshot
    from prowess.skills.skill import Skill

    Result = dict[str, Any]
    AnswerState = Literal["current", "skill-changed", "skills-gone"]


class Answer(NamedTuple):
    """The result of a request, and whether the disk has moved on since the snapshot that it was made from."""

    result: Result
    state: AnswerState = "current"
    """``skill-changed``: the SKILL.md of the skill is not the one that was loaded. ``skills-gone``: skills of the
    snapshot are no longer on the disk, and the result leaves them out."""


class LargeFile(NamedTuple):
    """A file so large that the server reads only a few of its size at once; ``read`` makes the answer."""

    read: Callable[[], Answer]


def answer_about_skill(skill: Skill | None, result: Result) -> Answer:
    """Return the result as an answer, marked ``skill-changed`` when the skill's SKILL.md has changed since the load.

    Instructions are read when a client asks for them, but the name and the fields are as old as the snapshot: an
    answer that mixes both may contradict itself.
    """
    return Answer(result, "skill-changed" if skill is not None and has_changed(skill) else "current")


def has_changed(skill: Skill) -> bool:
    """Return whether the SKILL.md of a skill on this machine is not the one that was loaded, or is gone."""
    known = skill.identity if skill.is_local else None
    return known is not None and identity_at(skill.location) != known


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


NO_CACHE: dict[str, Json] = {"ttlMs": 0, "cacheScope": "private"}
"""The cache rule of every answer: it may be stale at once, since files change without notice."""


def _encode_cursor(item: str) -> str:
    """Return the cursor of the page after ``item``."""
    return base64.urlsafe_b64encode(item.encode()).decode("ascii")


def decode_cursor(cursor: str | None) -> str:
    """Return the item that a page begins after, ``""`` for the first page.

    Raises ``SourceError`` for a cursor that this server did not make.
    """
    if cursor is None:
        return ""
    try:
        return base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True).decode()
    except (ValueError, binascii.Error):
        raise SourceError("this server did not make the cursor: ask for the first page, without one") from None


def make_page(key: str, items: list[Json], last: str | None) -> dict[str, Json]:
    """Return a page of a listing; ``last`` is the last item of the page when more follow, else ``None``."""
    more: dict[str, Json] = {} if last is None else {"nextCursor": _encode_cursor(last)}
    return {"resultType": "complete", key: items, **more, **NO_CACHE}

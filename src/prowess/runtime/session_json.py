"""A session as text: saved as JSON, and made again over a catalogue of later."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from prowess.errors import Issue, SkillError, SourceError
from prowess.spec.tool_rules import ToolCeiling, is_tool_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from prowess.runtime.activation import Activation
    from prowess.skills.skill import Skill


_SAVE_VERSION = 2
_VERSION_WITHOUT_CEILING = 1
"""The version whose saves do not say what a conversation was allowed."""


class SessionBounds(NamedTuple):
    """The most that a session may do and see."""

    ceiling: ToolCeiling = ToolCeiling()
    max_active: int = 0
    filter: str = ""
    filters: tuple[str, ...] = ()
    """Filters that hold besides, which the session cannot change."""
    explicit_only: tuple[str, ...] = ()
    """The skills that are not shown to models, by name."""


class SavedSession(NamedTuple):
    """What ``Session.save`` wrote."""

    bounds: SessionBounds
    active: dict[str, str]
    """The digests of the active skills by their names."""
    refused: tuple[str, ...] = ()
    """The ids of the requests that a person refused."""
    is_older: bool = False
    """Whether the save does not know the ceiling."""


def session_as_json(bounds: SessionBounds, active: Mapping[str, Skill], refused: Iterable[str] = ()) -> str:
    """The bounds of a session, its active skills with the digests of their folders, and what a person refused."""
    skills = {name: digest_skill(skill) for name, skill in sorted(active.items())}
    known = {
        "filter": bounds.filter,
        "bounds": bounds.filters,
        "tools": bounds.ceiling.tools,
        "grants_tools": bounds.ceiling.grants,
        "max_active": bounds.max_active,
        "explicit_only": bounds.explicit_only,
    }
    return json.dumps({"version": _SAVE_VERSION, **known, "active": skills, "refused": list(refused)})


def merge_bounds(
    saved: SavedSession,
    given: ToolCeiling,
    max_active: int | None,
    pattern: str | None,
    explicit_only: Iterable[str] | None = None,
    *,
    widen: bool,
) -> SessionBounds:
    """The bounds of a restored session: the saved and the given ones together.

    ``widen``: the given ceiling instead, and the other ones where they are given.
    """
    known = saved.bounds
    if widen:
        counted = known.max_active if max_active is None else max_active
        filters = (known.filter, known.filters) if pattern is None else (pattern, ())
        return SessionBounds(
            given, counted, *filters, known.explicit_only if explicit_only is None else tuple(explicit_only)
        )
    counts = [count for count in (known.max_active, max_active or 0) if count > 0]
    # A save approves nothing by itself: it lies wherever the host keeps it, and somebody may have edited it.
    ceiling = known.ceiling.intersect(given)
    kept = tuple(dict.fromkeys((*known.explicit_only, *(explicit_only or ()))))
    if not pattern or pattern == known.filter:
        return SessionBounds(ceiling, min(counts, default=0), known.filter, known.filters, kept)
    besides = (*known.filters, *((known.filter,) if known.filter else ()))
    return SessionBounds(ceiling, min(counts, default=0), pattern, tuple(dict.fromkeys(besides)), kept)


def digest_skill(skill: Skill) -> str:
    """The digest of its folder; of its text where there is none, or where the folder cannot be hashed."""
    if skill.source_label:  # hashing would fetch every file, and its source says what its state is
        return f"state:{skill.state}"
    if not skill.is_inline:
        with suppress(SkillError):
            return skill.digest()
    try:
        return "text:" + hashlib.sha256(skill.read_body().encode()).hexdigest()
    except SkillError:
        return ""


def session_from_json(text: str) -> SavedSession:
    """What ``session_as_json`` wrote, or its older version; raises ``SourceError`` for anything else."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise SourceError("a saved session is JSON text, as Session.save() gives it") from None
    active = data.get("active") if isinstance(data, dict) else None
    if not isinstance(active, dict) or not isinstance(data.get("filter"), str):
        raise _unknown_save_error()
    if data.get("version") == _VERSION_WITHOUT_CEILING:
        # Nobody knows what that conversation was allowed, so it is allowed nothing until the host says otherwise.
        return SavedSession(SessionBounds(ToolCeiling(()), 0, data["filter"]), active, is_older=True)
    bounds = _parse_bounds(data) if data.get("version") == _SAVE_VERSION else None
    refused = data.get("refused", [])  # saves of this version that are older have none
    if bounds is None or not _is_text_list(refused):
        raise _unknown_save_error()
    return SavedSession(bounds, active, tuple(refused))


def _unknown_save_error() -> SourceError:
    return SourceError("this is no saved session of a version that is known: pass what Session.save() gave")


def _parse_bounds(data: Mapping[str, Any]) -> SessionBounds | None:
    """The bounds in a save; ``None`` where one is missing or is no bound: a ceiling is never guessed."""
    tools, filters, most = data.get("tools", ...), data.get("bounds"), data.get("max_active")
    explicit_only = data.get("explicit_only", [])  # saves of before have none
    if not _is_text_list(filters) or not _is_text_list(explicit_only) or not (tools is None or _is_text_list(tools)):
        return None
    # Saves of before do not say whether skills approve tools: those with a list of tools did, and of the others nobody
    # knows whether the host thought of it.
    grants = data.get("grants_tools", tools is not None)
    if not isinstance(grants, bool):
        return None
    if not isinstance(most, int) or isinstance(most, bool) or most < 0:
        return None
    # A sub-agent's ceiling is what a skill wrote: what is no tool there allows nothing, and is not the host's mistake.
    allowed = None if tools is None else tuple(filter(is_tool_pattern, tools))
    ceiling = ToolCeiling(allowed, grants)
    return SessionBounds(ceiling, most, data["filter"], tuple(filters), tuple(explicit_only))


def _is_text_list(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def older_save_issue() -> Issue:
    """The issue that says why a session of an older save has no tools."""
    message = "the save is of an older version, which did not record the allowed tools: none are allowed"
    return Issue("saved-without-ceiling", "tools", message, "", 0, "warning")


def reactivate_skills(active: Mapping[str, str], activate: Callable[[str], Activation]) -> Iterator[Issue]:
    """Activate what was active when it was saved; what has changed or is missing since."""
    for name, digest in active.items():
        try:
            skill = activate(name).skill
        except SkillError as error:
            yield Issue("missing-since-saved", name, error.message, "", 0, "warning")
            continue
        if digest_skill(skill) != digest:
            message = "is not what it was when the session was saved"
            yield Issue("changed-since-saved", name, message, skill.location, 0, "warning")

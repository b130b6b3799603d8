"""Saved sessions: their JSON, and the bounds under which a saved session is restored."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from prowess.arguments import check_text
from prowess.conversation.tool_rules import ToolCeiling, intersect_ceilings, is_tool_pattern
from prowess.errors import Issue, SkillError, SourceError
from prowess.select.auto import ShownList, ShownReason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from prowess.conversation.activation import Activation, ActiveSkill
    from prowess.skills.skill import Skill

    ShownLists = Mapping[tuple[str, int], ShownList]

_SAVE_VERSION = 2
_VERSION_WITHOUT_CEILING = 1
"""The version of saves without the ceiling of the conversation."""


_PAIR = 2


class SessionBounds(NamedTuple):
    """The most that a session may do and see."""

    ceiling: ToolCeiling = ToolCeiling()
    max_active: int = 0
    filter: str = ""
    filters: tuple[str, ...] = ()
    """Filters that hold besides ``filter``, and that the session cannot change."""
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
    """Whether the save is of the version without a ceiling."""
    shown: ShownLists = MappingProxyType({})
    """What the model has been shown: it is shown again, in the same order."""
    read: tuple[tuple[str, str], ...] = ()
    """The files that were read, each as the name of its skill and its path, for a recap."""


def session_as_json(
    bounds: SessionBounds,
    active: Mapping[str, ActiveSkill],
    refused: Iterable[str],
    shown: ShownLists,
    read: Iterable[tuple[str, str]] = (),
) -> str:
    """Return a save: bounds, active skills with their digests, what a person refused, what was shown and read."""
    skills = {name: digest_skill(entry.loaded.skill) for name, entry in sorted(active.items())}
    bounds_json = {
        "filter": bounds.filter,
        "bounds": bounds.filters,
        "tools": bounds.ceiling.tools,
        "grants_tools": bounds.ceiling.grants,
        "max_active": bounds.max_active,
        "explicit_only": bounds.explicit_only,
    }
    lists = []
    for (place, budget), one in shown.items():
        # The requests are not saved, since they are what a person wrote.
        reasons = [(one.reasons[name].text, one.reasons[name].rank) for name in one.names]
        lists.append({"place": place, "budget": budget, "names": one.names, "reasons": reasons})
    rest = {"active": skills, "refused": list(refused), "shown": lists, "read": list(read)}
    return json.dumps({"version": _SAVE_VERSION, **bounds_json, **rest})


def merge_bounds(
    saved: SavedSession,
    given: ToolCeiling,
    max_active: int | None,
    pattern: str | None,
    explicit_only: Iterable[str] | None = None,
    *,
    widen: bool,
) -> SessionBounds:
    """Return the bounds of a restored session, within both the saved and the given ones.

    ``widen``: the given ceiling replaces the saved one, and so do the other bounds that are given.
    """
    before = saved.bounds
    if widen:
        count = before.max_active if max_active is None else max_active
        filters = (before.filter, before.filters) if pattern is None else (pattern, ())
        names = before.explicit_only if explicit_only is None else tuple(explicit_only)
        return SessionBounds(given, count, *filters, names)
    # 0 means no limit, so it must not win as the smallest number.
    counts = [count for count in (before.max_active, max_active or 0) if count > 0]
    # A save approves nothing by itself: somebody may have edited it in the place where the host keeps it.
    tools = intersect_ceilings(before.ceiling.tools, given.tools)
    ceiling = ToolCeiling(tools, before.ceiling.grants and given.grants)
    names = tuple(dict.fromkeys((*before.explicit_only, *(explicit_only or ()))))
    if not pattern or pattern == before.filter:
        return SessionBounds(ceiling, min(counts, default=0), before.filter, before.filters, names)
    # The session can replace its own filter, so the saved one goes among those that it cannot change.
    fixed = dict.fromkeys((*before.filters, *((before.filter,) if before.filter else ())))
    return SessionBounds(ceiling, min(counts, default=0), pattern, tuple(fixed), names)


def digest_skill(skill: Skill) -> str:
    """Return the digest of a skill's folder, or of its text without a folder that can be hashed."""
    if skill.source_label:  # hashing would fetch every file of a remote skill, and its source knows its state
        return f"state:{skill.state}"
    if not skill.is_inline:
        with suppress(SkillError):
            return skill.digest()
    try:
        return "text:" + hashlib.sha256(skill.read_body().encode()).hexdigest()
    except SkillError:
        return ""


def session_from_json(text: str) -> SavedSession:
    """Return what ``session_as_json`` or its older version wrote; raise ``SourceError`` for anything else."""
    check_text(text, "saved")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise SourceError("a saved session is JSON text: pass what Session.save() returned") from None
    active = data.get("active") if isinstance(data, dict) else None
    if not isinstance(active, dict) or not isinstance(data.get("filter"), str):
        raise _unknown_save_error()
    if data.get("version") == _VERSION_WITHOUT_CEILING:
        # What that conversation was allowed is unknown, so it is allowed nothing until the host says otherwise.
        return SavedSession(SessionBounds(ToolCeiling(()), 0, data["filter"]), active, is_older=True)
    bounds = _parse_bounds(data) if data.get("version") == _SAVE_VERSION else None
    refused = data.get("refused", [])  # the first saves of this version have none
    shown = _parse_shown(data.get("shown", []))  # nor this
    read = data.get("read", [])  # nor this
    is_whole = isinstance(read, list) and all(_is_text_list(pair) and len(pair) == _PAIR for pair in read)
    if bounds is None or not _is_text_list(refused) or shown is None or not is_whole:
        raise _unknown_save_error()
    return SavedSession(bounds, active, tuple(refused), shown=shown, read=tuple((name, path) for name, path in read))


def _unknown_save_error() -> SourceError:
    return SourceError("this is not a saved session of a known version: pass what Session.save() returned")


def _parse_bounds(data: Mapping[str, Any]) -> SessionBounds | None:
    """Return the bounds in a save; ``None`` where one is missing or malformed, since a ceiling is never guessed."""
    tools, filters, max_active = data.get("tools", ...), data.get("bounds"), data.get("max_active")
    explicit_only = data.get("explicit_only", [])  # the first saves of this version have none
    if not _is_text_list(filters) or not _is_text_list(explicit_only) or not (tools is None or _is_text_list(tools)):
        return None
    # The first saves of this version do not say whether skills approve tools. In those with a list of tools they did;
    # for the others it is unknown, so they do not.
    grants = data.get("grants_tools", tools is not None)
    if not isinstance(grants, bool) or not _is_number(max_active) or max_active < 0:
        return None
    # The ceiling of a sub-agent is what a skill wrote: a wrong pattern allows nothing, and is not the host's error.
    allowed = None if tools is None else tuple(filter(is_tool_pattern, tools))
    return SessionBounds(ToolCeiling(allowed, grants), max_active, data["filter"], tuple(filters), tuple(explicit_only))


def _parse_shown(data: object) -> ShownLists | None:
    """Return what a conversation has been shown, without the requests; ``None`` where that is malformed."""
    lists: dict[tuple[str, int], ShownList] = {}
    for entry in data if isinstance(data, list) else [None]:
        match entry:
            case {"place": str(place), "budget": budget, "names": list(names), "reasons": list(reasons)}:
                is_whole = _is_number(budget) and _is_text_list(names) and len(reasons) == len(names)
                if not is_whole or not all(map(_is_reason, reasons)):
                    return None
                # Each name once: somebody may have edited the save.
                kept = {name: ShownReason(*reason) for name, reason in zip(names, reasons, strict=True)}
                lists[place, budget] = ShownList(tuple(kept), kept)
            case _:
                return None
    return lists


def _is_reason(value: object) -> bool:
    match value:
        case [str(), rank]:
            return _is_number(rank)
    return False


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text_list(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def reactivate_skills(
    save: SavedSession, activate: Callable[[str], Activation], *, widen: bool = False
) -> Iterator[Issue]:
    """Activate what was active when the session was saved, and yield an issue for each skill that changed or is gone.

    ``activate`` is to run no command: what it printed is in the host's transcript, and approvals are not saved. The
    next activation of the skill runs what is granted then, or asks. ``widen``: the host said which tools are allowed.
    """
    if save.is_older and not widen:
        message = "the save is of an older version, which did not record the allowed tools: none are allowed"
        yield Issue("saved-without-ceiling", "tools", message, "", 0, "warning")
    for name, digest in save.active.items():
        try:
            skill = activate(name).skill
        except SkillError as error:
            yield Issue("missing-since-saved", name, error.message, "", 0, "warning")
            continue
        if digest_skill(skill) != digest:
            message = "is not what it was when the session was saved"
            yield Issue("changed-since-saved", name, message, skill.location, 0, "warning")

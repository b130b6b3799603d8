"""A session as text: saved as JSON, and made again over a catalogue of later."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from prowess.errors import Issue, SkillError, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from prowess.library.skill import Skill
    from prowess.runtime.activation import Activation


def as_json(pattern: str, active: Mapping[str, Skill]) -> str:
    """The filter, and the active skills with the digests of their folders."""
    skills = {name: digest_of(skill) for name, skill in sorted(active.items())}
    return json.dumps({"version": 1, "filter": pattern, "active": skills})


def digest_of(skill: Skill) -> str:
    """The digest of its folder; of its text where there is none, or where the folder cannot be hashed."""
    if skill.told_by:  # hashing would fetch every file, and its source says what its state is
        return f"state:{skill.state}"
    if not skill.is_inline:
        with suppress(SkillError):
            return skill.digest()
    try:
        return "text:" + hashlib.sha256(skill.read_body().encode()).hexdigest()
    except SkillError:
        return ""


def from_json(text: str) -> dict[str, Any]:
    """The same as data; ``SourceError`` for anything else."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise SourceError("a saved session is JSON text, as Session.save() gives it") from None
    active = data.get("active") if isinstance(data, dict) else None
    if not isinstance(active, dict) or data.get("version") != 1 or not isinstance(data.get("filter"), str):
        raise SourceError("this is no saved session of a version that is known: pass what Session.save() gave")
    return {"filter": data["filter"], "active": active}


def resumed(active: Mapping[str, str], activate: Callable[[str], Activation]) -> Iterator[Issue]:
    """Activate what was active when it was saved; what has changed or is missing since."""
    for name, digest in active.items():
        try:
            skill = activate(name).skill
        except SkillError as error:
            yield Issue("missing-since-saved", name, error.message, "", 0, "warning")
            continue
        if digest_of(skill) != digest:
            message = "is not what it was when the session was saved"
            yield Issue("changed-since-saved", name, message, skill.location, 0, "warning")

"""Parameters that tools of several dialects have, as JSON Schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prowess.tools.availability import is_searchable
from prowess.tools.definitions import schema, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.tools.view import View

ENUM_MOST = 50


def name_parameter(view: View, description: str = "", *, search: bool = False) -> dict[str, Any]:
    """The parameter that names a skill; its values are listed while they are few and no search could find more."""
    names = [skill.name for skill in view.skills]
    return text(description, **list_values(view, names, search=search))


def list_values(view: View, names: Sequence[str], *, search: bool = False) -> dict[str, Any]:
    """The names as the only values of a parameter while they are few; ``search``: and no search could find more."""
    return {"enum": list(names)} if 0 < len(names) <= ENUM_MOST and not (search and is_searchable(view)) else {}


def fork_parameters(name: dict[str, Any]) -> dict[str, Any]:
    """What running a skill as a sub-agent takes: ``name`` as it is given, and the task."""
    task = text("A clear description of the task the skill should achieve")
    return schema({"name": name, "task": task}, ("name", "task"), closed=True)

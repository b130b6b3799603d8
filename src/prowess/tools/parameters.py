"""Parameters that tools of several dialects have, as JSON Schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prowess.tools.availability import is_searchable
from prowess.tools.definitions import object_schema, string_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.tools.view import View

MAX_ENUM_VALUES = 50


def name_parameter(view: View, description: str = "", *, search: bool = False) -> dict[str, Any]:
    """The parameter that names a skill; its values are listed while they are few and no search could find more."""
    names = [skill.name for skill in view.skills]
    return string_schema(description, **make_enum(view, names, search=search))


def make_enum(view: View, names: Sequence[str], *, search: bool = False) -> dict[str, Any]:
    """The names as the only values of a parameter while they are few; ``search``: and no search could find more."""
    return {"enum": list(names)} if 0 < len(names) <= MAX_ENUM_VALUES and not (search and is_searchable(view)) else {}


def fork_parameters(name: dict[str, Any]) -> dict[str, Any]:
    """What running a skill as a sub-agent takes: ``name`` as it is given, and the task."""
    task = string_schema("A clear description of the task the skill should achieve")
    return object_schema({"name": name, "task": task}, ("name", "task"), closed=True)

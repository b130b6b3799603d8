"""Parameters that the tools of several dialects share, as JSON Schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prowess.tools.availability import is_searchable
from prowess.tools.definitions import object_schema, string_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.tools.view import View

MAX_ENUM_VALUES = 50
"""Above this many names a parameter takes any text: an enum of all names would cost as much as the listing."""


def name_parameter(view: View, description: str = "", *, search: bool = False) -> dict[str, Any]:
    """Return the parameter that names a skill, with the names as an enum while they are few.

    ``search``: no enum when a search could find further names.
    """
    return string_schema(description, **make_enum(view, [skill.name for skill in view.skills], search=search))


def make_enum(view: View, names: Sequence[str], *, search: bool = False) -> dict[str, Any]:
    """Return the names as an ``enum`` keyword while they are few; ``search``: not when a search could find more.

    There is none when an ``AutoSelector`` leaves out names: later requests bring others into the listing.
    """
    if not 0 < len(names) <= MAX_ENUM_VALUES or (search and is_searchable(view)) or view.is_cut_by_selector:
        return {}
    return {"enum": list(names)}


def fork_parameters(name: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a tool that runs a skill as a sub-agent: ``name`` as given, and the task."""
    task = string_schema("A clear description of the task the skill should achieve")
    return object_schema({"name": name, "task": task}, ("name", "task"), closed=True)

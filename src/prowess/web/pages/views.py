"""The function that makes the view of each page but the first, by the name of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.web.pages.agents import make_agents_view
from prowess.web.pages.changes import make_changes_view
from prowess.web.pages.plan import make_plan_view
from prowess.web.pages.sees import make_sees_view
from prowess.web.pages.skill import make_skill_view

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

VIEWS: Mapping[str, Callable[..., object]] = {
    "agents": make_agents_view,
    "changes": make_changes_view,
    "plan": make_plan_view,
    "sees": make_sees_view,
    "skill": make_skill_view,
}

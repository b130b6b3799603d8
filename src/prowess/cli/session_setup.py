"""A conversation's session and toolset, as the command line sets them up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.cli.lock_check import tell_changed
from prowess.cli.options import catalog_of, is_path, skill_of

if TYPE_CHECKING:
    import prowess
    from prowess.discovery.settings import Settings


def session_for(settings: Settings, name: str = "", *, run: bool = True) -> tuple[prowess.Session, str]:
    """A session, and the name of the skill that the command line means; what was granted runs, unless not ``run``."""
    from prowess.runtime.acting.trust import Trust  # noqa: PLC0415
    from prowess.runtime.session import Session  # noqa: PLC0415
    from prowess.skills.catalog import Catalog  # noqa: PLC0415

    catalog = Catalog() if is_path(name) else catalog_of(settings)
    if name and name not in catalog:  # a path, or nothing
        skill = skill_of(catalog, name, verify=bool(settings["verify"]))
        catalog, name = Catalog([skill]), skill.name
    tell_changed([catalog[name]] if name else catalog.skills)
    trust = Trust() if run else None
    # No ceiling: what is shown here is what a skill asks for, and nothing is approved by showing it.
    return Session(catalog, "any", trust=trust, filter=settings.text("filter")), name

"""A conversation's session and toolset, as the command line sets them up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.cli.lock_states import warn_edited_skills
from prowess.cli.skill_lookup import find_in_catalog, is_path, load_catalog

if TYPE_CHECKING:
    import prowess
    from prowess.discovery.settings import Settings


def open_session(settings: Settings, name: str = "", *, run: bool = True) -> tuple[prowess.Session, str]:
    """A session, and the name of the skill that the command line means; what was granted runs, unless not ``run``."""
    from prowess.runtime.acting.trust import Trust  # noqa: PLC0415
    from prowess.runtime.session import Session  # noqa: PLC0415
    from prowess.skills.catalog import Catalog  # noqa: PLC0415

    catalog = Catalog() if is_path(name) else load_catalog(settings)
    if name and name not in catalog:  # a path, or nothing
        skill = find_in_catalog(catalog, name, verify=bool(settings["verify"]))
        catalog, name = Catalog([skill]), skill.name
    warn_edited_skills([catalog[name]] if name else catalog.skills)
    trust = Trust() if run else None
    # No ceiling: what is shown here is what a skill asks for, and nothing is approved by showing it.
    return Session(catalog, "any", trust=trust, filter=settings.text("filter")), name

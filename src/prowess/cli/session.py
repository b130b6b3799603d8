"""The session of a conversation, for commands that do what a model would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.cli.lock_states import warn_edited_skills
from prowess.cli.selection import make_selector
from prowess.cli.skill_lookup import find_in_catalog, is_path, load_catalog
from prowess.conversation.acting.trust import Trust
from prowess.conversation.session import Session
from prowess.skills.catalog import Catalog

if TYPE_CHECKING:
    import prowess
    from prowess.settings import Settings


def open_session(settings: Settings, name: str = "", *, run: bool = True) -> tuple[prowess.Session, str]:
    """Return a session, and the name of the skill that the command line means.

    Commands of trusted skills run in the session, unless ``run`` is false.
    """
    catalog = Catalog() if is_path(name) else load_catalog(settings)
    if name:
        skill = find_in_catalog(catalog, name, verify=bool(settings["verify"]))
        if skill is not catalog.get(skill.name):  # a folder that was named
            catalog = Catalog([skill])
        name = skill.name
    warn_edited_skills([catalog[name]] if name else catalog.skills)
    selector = make_selector(settings, settings.text("dialect"))
    # Any tool is allowed: what is shown is what a skill asks for, and showing it approves nothing.
    session = Session(catalog, "any", selector=selector, trust=Trust() if run else None, filter=settings.text("filter"))
    return session, name

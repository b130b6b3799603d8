"""When a tool is offered: each of these says whether it could do something for the skills at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.errors import SkillError
from prowess.tools.acting_tools import has_scripts

if TYPE_CHECKING:
    from prowess.tools.view import View

SEARCH_THRESHOLD = 30


def has_skills(view: View) -> bool:
    """True when there is a skill to load."""
    return bool(view.skills)


def has_files(view: View) -> bool:
    """True when one of the skills has a file besides its SKILL.md, or may have one."""
    return view.has_files()


def has_forks(view: View) -> bool:
    """True when one of the skills runs as a sub-agent, and the host can do that."""
    return bool(view.forks)


def may_run_scripts(view: View) -> bool:
    """True when a script of one of the skills could run: it is granted, or somebody can be asked."""
    trust = view.session.trust
    if view.options.scripts is None or trust is None or trust.policy == "never":
        return False
    if trust.policy != "granted":
        return any(has_scripts(skill) for skill in view.skills)
    try:
        grants = trust.grants()
    except SkillError:  # damaged: nothing counts as granted
        return False
    # Only those that a grant is about are hashed: a state that was granted has the name that it had then.
    names = {grant.name for grant in grants}
    return any(skill.name in names and has_scripts(skill) and trust.is_trusted(skill) for skill in view.skills)


def is_searchable(view: View) -> bool:
    """True when there are more skills than a listing shows well; else there is nothing to search for."""
    return bool(view.findable) and (len(view.findable) > SEARCH_THRESHOLD or view.is_listing_cut)

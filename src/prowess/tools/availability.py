"""When a tool is offered: each function returns whether one kind of tool can do something with the skills."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.errors import SkillError
from prowess.tools.acting_tools import has_scripts
from prowess.tools.refusals import is_reachable

if TYPE_CHECKING:
    from prowess.tools.view import View

SEARCH_THRESHOLD = 30
"""The number of skills above which the tool that searches is offered."""


def has_skills(view: View) -> bool:
    """Return whether there is a skill to load."""
    return bool(view.skills)


def can_load_skills(view: View) -> bool:
    """Return whether there is a skill to load, listed or kept for explicit calls, for a tool that loads either."""
    return has_skills(view) or any(
        not view.session.is_for_models(skill) and is_reachable(view, skill.name) for skill in view.session.catalog
    )


def has_files(view: View) -> bool:
    """Return whether any of the skills has a file besides its SKILL.md, or may have one."""
    return view.has_files()


def has_forks(view: View) -> bool:
    """Return whether any of the skills runs as a sub-agent, and the host can run sub-agents."""
    return bool(view.forks)


def may_run_scripts(view: View) -> bool:
    """Return whether a script of any of the skills could run: it is granted, or somebody can be asked."""
    trust = view.session.trust
    if view.options.scripts is None or trust is None or trust.policy == "never":
        return False
    if trust.policy != "granted":
        return any(has_scripts(skill) for skill in view.skills)
    try:
        grants = trust.grants()
    except SkillError:  # the file of grants is damaged, and then nothing counts as granted
        return False
    # Whether a skill is trusted takes hashing its files. A grant names its skill, so only those need to be hashed.
    names = {grant.name for grant in grants}
    return any(skill.name in names and has_scripts(skill) and trust.is_trusted(skill) for skill in view.skills)


def is_searchable(view: View) -> bool:
    """Return whether there are more skills than a listing shows well; otherwise a search would find nothing new."""
    return bool(view.findable) and (len(view.findable) > SEARCH_THRESHOLD or view.is_listing_cut)

"""The install of skills from a source that a person typed, and of skills that are where agents look already."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from prowess.changes.adopt import prepare_adoption
from prowess.changes.install import prepare_install
from prowess.errors import NotInstalledError, SkillError
from prowess.install.install_options import InstallOptions
from prowess.install.typed_source import parse_typed_source
from prowess.web.planning.fields import Fields, choose_scope, is_project, require_installer

if TYPE_CHECKING:
    from prowess.changes.change import Change
    from prowess.installed.scopes import InstalledSkill
    from prowess.web.library import Library


def prepare_source_install(library: Library, fields: Fields) -> Change[tuple[InstalledSkill, ...]]:
    """Fetch what a source has, and return its install; with several skills, after a choice of some."""
    installer = require_installer(library)
    source, agents = fields.get("source"), fields.get_all("agent")
    if not source:
        raise SkillError("name a source: owner/repo, an address, or a path of this machine", code="bad-reference")
    options = InstallOptions(agents, fields.is_set("replace"), fields.is_set("copy"), preset=not agents)
    change = prepare_install(
        installer,
        parse_typed_source(source),
        source,
        options,
        project=is_project(fields),
        limits=library.limits,
        fetch=installer.offers,
        watch=True,
    )
    choose = change.choose
    if choose is None:
        return change

    def choose_skills(chosen: Fields) -> Change[tuple[InstalledSkill, ...]]:
        names = chosen.get_all("skill")
        if not any(skill.name in names for skill in change.details.offer.skills):
            raise SkillError("no skill was chosen, so there is nothing to install", code="bad-argument")
        return choose(names)

    return replace(change, choose=choose_skills)


def prepare_skill_adoption(library: Library, fields: Fields) -> Change[tuple[InstalledSkill, ...]]:
    """Return the change that records a skill which is where agents look; raise ``NotInstalledError`` for no such."""
    installer, name = require_installer(library), fields.get("skill")
    scope = choose_scope(installer, fields)
    change = prepare_adoption(installer, scope, (name,), library.limits, watch=True) if name else None
    if change is None or not change.steps:
        message = f"no skill {name[:80]!r} is in .agents/skills or .claude/skills without being installed"
        raise NotInstalledError(message)
    return change

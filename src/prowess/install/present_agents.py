"""The agents on this machine, and those that skills are linked for when nobody names any."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.discovery.agents import find_agents
from prowess.install.agent_links import LinkFolders
from prowess.install.manifest import load_manifest

if TYPE_CHECKING:
    from prowess.install.context import InstallContext


def find_present_agents(context: InstallContext, *, project: bool) -> tuple[str, ...]:
    """The ids of the agents that have their own folder in the home folder, or, with ``project``, in the project."""
    home = context.user.root
    # The environment describes the real home folder; with another base it would lead out of that base.
    env = os.environ if home == os.path.expanduser("~") else {}
    return find_agents(context.project.root if project else "", home, env)


def choose_preset_agents(context: InstallContext, *, project: bool) -> tuple[str, ...]:
    """The ids of the agents that skills are worth linking for when nobody names any.

    These are the agents that the project's manifest names for all skills, or else the agents on this machine. Of agents
    that look in one folder the first is named. Agents that look in the shared folder need no link, and are left out.
    """
    scope = context.scope_for(project=project)
    manifest = load_manifest(scope.lock_folder, context.limits) if project else None
    # What the project asks for wins over what happens to be on this machine.
    named = manifest.defaults.agents if manifest is not None else ()
    link_folders = LinkFolders(scope)
    agents_by_folder = {link_folders.shared: ""}
    for agent in named or find_present_agents(context, project=project):
        for folder in link_folders.folders_of_agent(agent)[:1]:
            agents_by_folder.setdefault(folder, agent)
    return tuple(agent for agent in agents_by_folder.values() if agent)

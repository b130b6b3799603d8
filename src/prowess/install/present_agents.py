"""The agents on this machine, and those that skills are linked for when nobody names any."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.discovery.agents import find_agents
from prowess.install.agent_links import LinkFolders

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.install.context import InstallContext
    from prowess.install.manifest import ProjectManifest
    from prowess.installed.scopes import InstallScope


def find_present_agents(context: InstallContext, *, project: bool) -> tuple[str, ...]:
    """The ids of the agents that have their own folder in the home folder, or, with ``project``, in the project."""
    home = context.user.root
    # The environment describes the real home folder; with another base it would lead out of that base.
    env = os.environ if home == os.path.expanduser("~") else {}
    return find_agents(context.project.root if project else "", home, env)


def choose_preset_agents(
    scope: InstallScope, manifest: ProjectManifest | None, present: Sequence[str]
) -> tuple[str, ...]:
    """The ids of the agents that skills are worth linking for when nobody names any.

    These are the agents that a project's manifest names for all skills, or else those that are ``present`` on this
    machine. Of agents that look in one folder the first is named. Agents that look in the shared folder need no link,
    and are left out.
    """
    # What the project asks for wins over what happens to be on this machine.
    named = manifest.defaults.agents if manifest is not None and scope.location == "project" else ()
    link_folders = LinkFolders(scope)
    agents_by_folder = {link_folders.shared: ""}
    for agent in named or present:
        for folder in link_folders.folders_of_agent(agent)[:1]:
            agents_by_folder.setdefault(folder, agent)
    return tuple(agent for agent in agents_by_folder.values() if agent)

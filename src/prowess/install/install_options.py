"""The options of an install, from the command line to the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class InstallOptions(NamedTuple):
    """How a source is installed: what the caller asked for, and what the manifest and the lock file add to that."""

    agents: tuple[str, ...] = ()
    """The agents, by id, in whose folders the skills are linked or copied."""
    replace: bool = False
    """True when every install that is in the way gives way."""
    copy: bool = False
    """True when real files go where agents look, and nothing goes into the install base."""
    save: bool = True
    """True when a manifest, if there is one, declares the source from then on."""
    preset: bool = False
    """True when the skills are also linked for the agents that an install without named agents chooses."""
    declared: str = ""
    """What the manifest declares the install as (``Declaration.text``); ``""`` when it does not declare it."""
    declared_agents: tuple[str, ...] = ()
    """Those of the agents that the manifest declares the install for; a person asked for the others."""
    replaceable: frozenset[str] = frozenset()
    """The installs that give way although ``replace`` is false."""
    replace_foreign: bool = False
    """True when the caller also gives up what Prowess did not put where agents look; it goes to the backups.

    A lock file never sets this: it may have come with a clone, so it cannot speak for the user.
    """
    extra_agents: Mapping[str, tuple[str, ...]] = {}
    """Further agents of single installs, by the install's name: a person linked the install for them."""

    def agents_of(self, name: str) -> tuple[str, ...]:
        """The agents that the install of that name is linked for."""
        # An agent that is named twice gets one link.
        return tuple(dict.fromkeys((*self.agents, *self.extra_agents.get(name, ()))))

    def may_replace(self, name: str) -> bool:
        """Whether the install of that name gives way."""
        return self.replace or name in self.replaceable

"""The active skills of one conversation: how many there may be, which tools a ceiling leaves them, how they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.errors import SkillNotActiveError
from prowess.runtime.activation import ActiveSkill, collect_tools
from prowess.runtime.catalog_diff import Refreshed, compare_catalogs, update_entries
from prowess.spec.tool_rules import intersect_ceilings, judge_call

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from prowess.runtime.activation import CommandDecision
    from prowess.runtime.instruction_loader import PreparedInstructions
    from prowess.skills.catalog import Catalog
    from prowess.skills.skill import Skill
    from prowess.spec.tool_rules import ToolCeiling


class ActiveSkills:
    """What a session remembers of each skill that is active, by name.

    It has no lock of its own: the session calls it under the one that guards its catalogue and filters too, since what
    is decided about a skill depends on all three.
    """

    def __init__(self, ceiling: ToolCeiling, most: int) -> None:
        self.ceiling = ceiling
        """The most that the host allows, and whether skills may approve any of it."""
        self.max_active = most
        """How many may be active besides the preloaded ones; 0 is no limit."""
        self.entries: dict[str, ActiveSkill] = {}

    def has_room(self) -> bool:
        """Whether one more skill may be active."""
        if self.max_active <= 0 or len(self.entries) < self.max_active:
            return True
        return sum(not entry.preloaded for entry in self.entries.values()) < self.max_active

    def is_beyond_ceiling(self, tool: str, command: str | None) -> bool:
        """Whether the host allows a call at all; without a ceiling it allows every call."""
        tools = self.ceiling.tools
        return tools is not None and judge_call(tool, command, tools, has_families=True) != "allowed"

    def remember(
        self,
        name: str,
        prepared: PreparedInstructions,
        *,
        preloaded: bool = False,
        stale: bool = False,
        gone: bool = False,
        unrun: bool = False,
    ) -> ActiveSkill:
        """Make a skill that was made ready active, with the tools that the ceiling leaves it; what is remembered."""
        loaded, expanded, standing, written = prepared
        tools = self.ceiling.grant(loaded.skill.allowed_tools)
        outputs, issues = expanded.outputs, expanded.issues
        entry = ActiveSkill(loaded, tools, outputs, issues, preloaded, stale, gone, unrun, standing, written)
        self.entries[name] = entry
        return entry

    def update_decision(self, name: str, entry: ActiveSkill, standing: CommandDecision) -> None:
        """Note by what the commands of a skill ran, unless it was activated anew or ended since ``entry`` was got."""
        if self.entries.get(name) is entry:
            self.entries[name] = entry._replace(command_decision=standing)

    def deactivate(self, name: str) -> tuple[str, ...]:
        """End a skill; the tools that no other needs, sorted. Raises ``SkillNotActiveError`` where it is not active."""
        entry = self.entries.pop(name, None)
        if entry is None:
            raise SkillNotActiveError(f"skill {name!r} is not active")
        kept = collect_tools(self.entries.values())
        return tuple(tool for tool in entry.tools if tool not in kept)

    def deactivate_where(self, ends: Callable[[Skill], bool]) -> list[str]:
        """End the skills for which ``ends`` is true; their names, sorted."""
        ended = sorted(name for name, entry in self.entries.items() if ends(entry.loaded.skill))
        for name in ended:
            del self.entries[name]
        return ended

    def deactivate_others(self, names: Container[str]) -> None:
        """End every skill that is not among ``names``."""
        self.entries = {name: entry for name, entry in self.entries.items() if name in names}

    def open_child(self, tools: Iterable[str] | None) -> ActiveSkills:
        """The active skills of a sub-agent: those that are preloaded here, under a ceiling that ``tools`` lowers."""
        child = ActiveSkills(self.ceiling, self.max_active)
        child.entries = {name: entry for name, entry in self.entries.items() if entry.preloaded}
        child.set_ceiling(self.ceiling._replace(tools=intersect_ceilings(self.ceiling.tools, tools)))
        return child

    def set_ceiling(self, ceiling: ToolCeiling) -> None:
        """Take another ceiling, which decides anew which tools each active skill has."""
        self.ceiling = ceiling
        self.entries = {
            name: entry._replace(tools=ceiling.grant(entry.loaded.skill.allowed_tools))
            for name, entry in self.entries.items()
        }

    def switch_catalog(self, old: Catalog, new: Catalog) -> Refreshed:
        """Go on under a new catalogue; what it changed. What it no longer has stays usable, what changed is stale."""
        report = compare_catalogs(old, new, self.entries)
        self.entries = update_entries(self.entries, new, report)
        return report

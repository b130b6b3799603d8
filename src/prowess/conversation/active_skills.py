"""The active skills of one conversation: how many there may be, which tools they bring, how they are deactivated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.conversation.activation import ActiveSkill, collect_tools
from prowess.conversation.catalog_diff import Refreshed, compare_catalogs, update_entries
from prowess.errors import SkillNotActiveError
from prowess.spec.tool_rules import intersect_ceilings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prowess.conversation.instruction_loader import PreparedInstructions
    from prowess.skills.catalog import Catalog
    from prowess.skills.skill import Skill
    from prowess.spec.tool_rules import ToolCeiling


class ActiveSkills:
    """What a session remembers of each skill that is active, by name.

    It has no lock of its own: ``SessionState`` guards it together with the catalogue and the filters.
    """

    def __init__(self, ceiling: ToolCeiling, max_active: int) -> None:
        self.ceiling = ceiling
        """The most that the host allows, and whether skills may approve any of it."""
        self.max_active = max_active
        """How many may be active besides the preloaded ones; 0 is no limit."""
        # Never changed in place by a new ceiling or catalogue, but replaced: other threads may be iterating over it.
        self.entries: dict[str, ActiveSkill] = {}

    def has_room(self) -> bool:
        """Return whether one more skill may be active."""
        # The number of all entries settles most calls; the preloaded ones are only counted where it does not.
        if self.max_active <= 0 or len(self.entries) < self.max_active:
            return True
        return sum(not entry.preloaded for entry in self.entries.values()) < self.max_active

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
        """Make a skill active with the tools that the ceiling leaves it; return what is remembered of it."""
        loaded, expanded, decision, written = prepared
        tools = self.ceiling.grant(loaded.skill.allowed_tools)
        outputs, issues = expanded.outputs, expanded.issues
        entry = ActiveSkill(loaded, tools, outputs, issues, preloaded, stale, gone, unrun, decision, written)
        self.entries[name] = entry
        return entry

    def deactivate(self, name: str) -> tuple[str, ...]:
        """Deactivate a skill; return the tools that no other active skill brings, sorted.

        Raises ``SkillNotActiveError`` for a skill that is not active.
        """
        entry = self.entries.pop(name, None)
        if entry is None:
            raise SkillNotActiveError(f"skill {name!r} is not active")
        kept = collect_tools(self.entries.values())
        return tuple(tool for tool in entry.tools if tool not in kept)

    def deactivate_where(self, predicate: Callable[[Skill], bool]) -> list[str]:
        """Deactivate the skills for which ``predicate`` is true; return their names, sorted."""
        ended = sorted(name for name, entry in self.entries.items() if predicate(entry.loaded.skill))
        for name in ended:
            del self.entries[name]
        return ended

    def open_child(self, tools: Iterable[str] | None) -> ActiveSkills:
        """Return the active skills of a sub-agent: those preloaded here, under a ceiling that ``tools`` lowers."""
        child = ActiveSkills(self.ceiling, self.max_active)
        child.entries = {name: entry for name, entry in self.entries.items() if entry.preloaded}
        child.set_ceiling(self.ceiling._replace(tools=intersect_ceilings(self.ceiling.tools, tools)))
        return child

    def set_ceiling(self, ceiling: ToolCeiling) -> None:
        """Take another ceiling, and give each active skill the tools that it leaves."""
        self.ceiling = ceiling
        self.entries = {
            name: entry._replace(tools=ceiling.grant(entry.loaded.skill.allowed_tools))
            for name, entry in self.entries.items()
        }

    def switch_catalog(self, old: Catalog, new: Catalog) -> Refreshed:
        """Compare the active skills with a new catalogue; return what that changed.

        A skill that the catalogue no longer has stays usable, and one that changed is marked stale.
        """
        report = compare_catalogs(old, new, self.entries)
        self.entries = update_entries(self.entries, new, report)
        return report

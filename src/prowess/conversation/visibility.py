"""The rules by which one conversation sees skills: its filters, and the skills that are kept from models."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from prowess.conversation.ambient_filter import ambient_filters
from prowess.errors import SkillFilteredError
from prowess.spec.globs import is_filter_match, is_none_filter

if TYPE_CHECKING:
    from prowess.skills.skill import Skill


class Visibility(NamedTuple):
    """Which skills one conversation sees. It never changes: a session that gets another filter replaces the whole."""

    base_dir: str
    """The working folder, from which relative filters are matched."""
    filter: str = ""
    """The session's own filter."""
    fixed_filters: tuple[str, ...] = ()
    """Filters that hold besides the session's own and that no call replaces: those of a save, or of a parent."""
    explicit_only: frozenset[str] = frozenset()
    """The names of the skills that the host keeps from models."""

    def current_filters(self) -> tuple[str, ...]:
        """Return every filter that holds for the caller now, the ambient ones included."""
        return (self.filter, *self.fixed_filters, *ambient_filters())

    def passes_filters(self, skill: Skill, filters: tuple[str, ...]) -> bool:
        """Return whether every one of ``filters`` lets a skill through."""
        # Most conversations have no filter: the virtual path of each skill is then not computed.
        return not any(filters) or all(self._matches_filter(skill, pattern) for pattern in filters)

    def _matches_filter(self, skill: Skill, pattern: str) -> bool:
        path = "" if skill.is_inline else skill.virtual_path
        # A pattern that equals the path lets the skill through, even if the path has characters special to patterns.
        if pattern == path:
            return not is_none_filter(pattern)
        # An absolute pattern says where it begins. A relative one begins at base_dir, so folders above do not count.
        return is_filter_match(pattern, path if os.path.isabs(pattern) else self.filter_path(skill))

    def filter_path(self, skill: Skill) -> str:
        """Return the path that relative filters are matched against.

        It is relative to ``base_dir`` for a skill inside that folder, and ``""`` for an inline skill.
        """
        if skill.is_inline:
            return ""
        path = skill.virtual_path
        if not os.path.isabs(path):
            return path.strip("/")
        inside = os.path.relpath(path, self.base_dir).replace(os.sep, "/")
        return path if inside.startswith("..") else inside

    def is_for_models(self, skill: Skill) -> bool:
        """Return whether models are shown a skill: neither its file nor the host keeps it for explicit calls."""
        return skill.model_invocable and skill.name not in self.explicit_only


def make_filter_error(name: str, filters: tuple[str, ...]) -> SkillFilteredError:
    """Return the error for a skill that ``filters`` do not let through."""
    patterns = [pattern for pattern in filters if pattern]
    shown = ", ".join(map(repr, patterns)) or "''"
    return SkillFilteredError(f"skill {name!r} is not available here (filter: {shown})", filter=", ".join(patterns))

"""What a place that skills come from must offer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from prowess.skills.catalog import Catalog


class SkillSource(Protocol):
    """A place that skills come from: anything with a ``load`` that gives a ``Catalog``."""

    def load(self) -> Catalog:
        """The skills that are there now."""
        ...

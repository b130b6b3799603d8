"""What the index asks of a library: which skills it has, in which state each of them is, and the texts of a skill."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.limits import Limits
    from prowess.search.terms import SkillText


class LibrarySkill(NamedTuple):
    """A skill as a library knows it without reading anything."""

    key: bytes
    """The file or entry that it comes from."""
    state: str
    """A text that differs when the file or entry may have changed."""
    name: str


class SearchLibrary(Protocol):
    """The skills of one catalogue, by name. ``prowess.skills.search_library.CatalogLibrary`` implements it."""

    limits: Limits
    """The bounds of the search."""

    @property
    def version(self) -> int:
        """A number that differs when the lists of skills, or their states, may differ."""
        ...

    @property
    def places(self) -> str:
        """A text that is equal for all catalogues that share an index; ``""`` when nothing may be kept in a file."""
        ...

    def make_fingerprint(self) -> bytes:
        """Bytes that differ when a skill that may be kept in a file was added, removed or changed."""
        ...

    def list_kept(self) -> Iterable[LibrarySkill]:
        """Return the skills that may be kept in a file."""
        ...

    def list_unkept(self) -> Iterable[LibrarySkill]:
        """Return the skills that are indexed in memory only."""
        ...

    def get_key(self, name: str) -> bytes | None:
        """Return the key of the skill with that name; ``None`` when there is none."""
        ...

    def is_current(self, name: str, state: str) -> bool:
        """Return whether the file or entry of a skill still has this state."""
        ...

    def has_other_state(self, key: bytes, state: str) -> bool:
        """Return whether the file of a key, which need not be one of this library, is not in this state now."""
        ...

    def is_gone(self, key: bytes) -> bool:
        """Return whether the file of a key, which need not be one of this library, does not exist any more."""
        ...

    def read_text(self, name: str) -> SkillText | None:
        """Return the texts of a skill as its file or entry has them now; ``None`` when it is no skill any more."""
        ...


def is_known_state(known: str, wanted: str) -> bool:
    """Return whether a row of the state ``known`` need not be read again for a skill of the state ``wanted``."""
    # Of a remote skill the body may be known in one process and not in another: then its state goes on behind a "+".
    return known == wanted or known.startswith(f"{wanted}+")

"""The texts of a skill that are searched, and the text of a skill that an encoder turns into a vector."""

from __future__ import annotations

from prowess.records import NamedTuple

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    class Searchable(Protocol):
        """What can be searched: a skill, or the entry of a skill in an index."""

        @property
        def name(self) -> str: ...
        @property
        def description(self) -> str: ...
        @property
        def tags(self) -> tuple[str, ...]: ...
        @property
        def metadata(self) -> Mapping[str, str]: ...


class SkillText(NamedTuple):
    """The texts of one skill, and the state of the file or entry that they were read from."""

    name: str
    description: str
    labels: str = ""
    """Tags, triggers and keywords, with blanks between."""
    body: str = ""
    """The beginning of the instructions, ``Limits.max_indexed_chars`` at most."""
    state: str = ""
    """A text that differs when the file or entry may have changed."""
    settled: bool = True
    """False when the state may stay as it is although the file changes once more."""

    def to_encode(self) -> str:
        """The text from which the vector of the skill is made."""
        return f"{self.name.replace('-', ' ')}\n{self.description}\n{self.body}"

    def hash(self) -> bytes:
        """The hash under which the vector of the skill is kept."""
        from hashlib import blake2b  # noqa: PLC0415 - a search of an index that is up to date hashes no text

        return blake2b(self.to_encode().encode("utf-8", "surrogatepass"), digest_size=16).digest()


def tags_of(skill: Searchable) -> tuple[str, ...]:
    """The tags of the fields ``tags`` and ``metadata.tags``, each once."""
    written = skill.metadata.get("tags", "").strip("[]")
    more = (tag.strip().strip("\"'") for tag in written.split(","))
    return tuple(dict.fromkeys((*skill.tags, *(tag for tag in more if tag))))

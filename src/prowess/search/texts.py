"""The texts of a skill that are searched, and the text of a skill that an encoder turns into a vector."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from prowess.limits import MAX_NAME_LENGTH
from prowess.search.terms import drop_exclusions, make_index_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.limits import Limits

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

    @property
    def searched_name(self) -> str:
        """As much of the name as the specification allows. A lenient scan takes longer names."""
        return self.name[:MAX_NAME_LENGTH]

    def make_index_head(self) -> str:
        """Return the description and the labels as the index takes them."""
        return make_index_text(f"{drop_exclusions(self.description)}\n{self.labels}")

    def to_encode(self) -> str:
        """The text from which the vector of the skill is made."""
        return f"{self.searched_name.replace('-', ' ')}\n{self.description}\n{self.body}"

    def cut(self, limits: Limits) -> SkillText:
        """Return the texts, of each as much as a search looks at. So no skill is found by every word that there is."""
        most = limits.max_indexed_description_chars
        return self._replace(
            description=self.description[:most], labels=self.labels[:most], body=self.body[: limits.max_indexed_chars]
        )

    def hash(self) -> bytes:
        """The hash under which the vector of the skill is kept."""
        from hashlib import blake2b

        return blake2b(self.to_encode().encode("utf-8", "surrogatepass"), digest_size=16).digest()


def tags_of(skill: Searchable, limits: Limits) -> tuple[str, ...]:
    """The first tags of the fields ``tags`` and ``metadata.tags``, each once: at most ``Limits.max_indexed_tags``."""
    return list_tags(skill)[: limits.max_indexed_tags]


def list_tags(skill: Searchable) -> tuple[str, ...]:
    """Every tag of the fields ``tags`` and ``metadata.tags``, each once."""
    written = skill.metadata.get("tags", "").strip("[]")
    more = (tag.strip().strip("\"'") for tag in written.split(","))
    return tuple(dict.fromkeys((*skill.tags, *(tag for tag in more if tag))))

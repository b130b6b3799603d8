"""The skills of a catalogue as the index of a search asks for them: their keys, their states, and their texts.

A skill in a folder is named by its SKILL.md, and its state is the identity of that file. A skill of a site or of an MCP
server is named by its source and its address. Of such a skill only what the source has listed is indexed, until its
instructions are fetched for use. Those of an MCP server stay in memory then, as its files do.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import TYPE_CHECKING, Self

from prowess.errors import ResourceError, ResourceNotFoundError, SkillLoadError
from prowess.files import identity
from prowess.files.read import OpenFile, identity_of
from prowess.limits import DEFAULT_LIMITS
from prowess.search import library, terms
from prowess.skills.skill import Skill
from prowess.skills.skill_files import SkillFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from prowess.files.read import Identity
    from prowess.format.frontmatter.fields import Frontmatter
    from prowess.format.frontmatter.yaml_events import Value
    from prowess.limits import Limits
    from prowess.literals import SearchMode
    from prowess.search.library import LibrarySkill
    from prowess.search.terms import SkillText
    from prowess.skills.explanation import Place


_LABEL_FIELDS = ("triggers", "keywords", "when_to_use", "when-to-use")
_LABEL_MARKS = (b"tags", b"triggers", b"keywords", b"when")
"""A head that the fast matcher has read, and that holds none of these, has no labels."""
_MAX_BYTES_PER_CHAR = 4


class CatalogLibrary:
    """The skills of one catalogue: a ``prowess.search.library.SearchLibrary``, which says what its methods return."""

    def __init__(self, skills: Mapping[str, Skill], places: Iterable[Place]) -> None:
        self._skills = skills
        self._places = tuple(places)
        self.limits = next(iter(skills.values())).limits if skills else DEFAULT_LIMITS
        # Most catalogues have nothing but files: to count is ten times as fast as to look at each skill once more.
        identities = [skill._identity for skill in skills.values()]
        others = [skill for skill in skills.values() if skill._identity is None] if identities.count(None) else []
        self._remote = [skill for skill in others if not skill.is_local and not skill.is_inline]
        self._unkept = [skill for skill in others if skill.is_local or skill.is_inline]
        # The hash of numbers is the same in every process. That of None is not.
        self._identities_hash = hash(tuple([one for one in identities if one is not None] if others else identities))

    @property
    def version(self) -> int:
        return SkillFiles.fetch_count if self._remote else 0

    # -- all skills --------------------------------------------------------------------------------------------------

    def _iter_kept(self) -> Iterator[Skill]:
        yield from (skill for skill in self._skills.values() if skill._identity is not None)
        yield from self._remote

    @property
    def places(self) -> str:
        if len(self._unkept) == len(self._skills):
            return ""
        # The folders that were scanned, where they are known: a skill behind a link has a base of its own, so with each
        # that is installed the library would become another one.
        places = {place.path for place in self._places} or {
            skill.base or skill.source_label or skill.origin for skill in self._iter_kept()
        }
        return "\n".join((*map(str, _list_bounds(self.limits)), *sorted(places)))

    def make_fingerprint(self) -> bytes:
        # Fast path of the first search of a process: no key and no state of a file becomes a string. Keys are left out,
        # since a file that has moved is noticed when its old row would be a hit (``has_other_state``).
        remote = [text for skill in self._remote for text in (skill.location, _make_state(skill), skill.name)]
        return "\0".join([str(self._identities_hash), *remote]).encode("utf-8", "surrogatepass")

    def list_kept(self) -> Iterator[LibrarySkill]:
        return map(_make_row, self._iter_kept())

    def list_unkept(self) -> Iterator[LibrarySkill]:
        yield from map(_make_row, self._unkept)
        # The instructions of skills of MCP servers: the file has what the servers have listed.
        yield from (
            _make_row(skill)
            for skill in self._remote
            if skill.own_files.server is not None and skill.own_files.fetched_body
        )

    # -- one skill ---------------------------------------------------------------------------------------------------

    def get_key(self, name: str) -> bytes | None:
        skill = self._skills.get(name)
        return None if skill is None else _make_key(skill)

    def is_current(self, name: str, state: str) -> bool:
        skill = self._skills[name]
        if skill.is_local:
            return _show_identity(_stat_identity(_real_path(skill))) == state
        return library.is_known_state(state, _base_state(skill))

    def has_other_state(self, key: bytes, state: str) -> bool:
        path = os.fsdecode(key)
        return os.path.isabs(path) and _show_identity(_stat_identity(path)) != state

    def is_gone(self, key: bytes) -> bool:
        path = os.fsdecode(key)
        if os.path.isabs(path):
            return not os.path.lexists(path)
        # What a server or site has listed is complete: a row of it that this catalogue lacks is of an older listing.
        return any(place.found and path.startswith(_remote_prefix(place.path)) for place in self._places)

    def read_text(self, name: str) -> SkillText | None:
        skill = self._skills[name]
        if skill.is_local:
            return _read_file(skill)
        body = skill.read_body() if skill.is_inline else skill.own_files.fetched_body
        return _make_text(skill, skill.limits, body, _make_state(skill))


def _list_bounds(limits: Limits) -> tuple[int, ...]:
    """Return the bounds that cut the strings in an index: libraries with others have another index."""
    return (limits.max_indexed_chars, limits.max_indexed_description_chars, limits.max_indexed_tags)


# -- keys and states ---------------------------------------------------------------------------------------------------


def _make_row(skill: Skill) -> LibrarySkill:
    return library.LibrarySkill(_make_key(skill), _make_state(skill), skill.name)


def _make_key(skill: Skill) -> bytes:
    return os.fsencode(_real_path(skill)) if skill.is_local else skill.location.encode("utf-8", "surrogatepass")


def _remote_prefix(place: str) -> str:
    """Return how the keys of all skills of a server or site begin: with its separator, since names may begin alike."""
    return f"{place}:" if place.startswith("mcp:") else f"{place}/"


def _real_path(skill: Skill) -> str:
    return f"{skill.real_folder}{os.sep}{skill.file_name}"


def _make_state(skill: Skill) -> str:
    if skill.is_local:
        return _show_identity(skill.identity)
    body = "" if skill.is_inline or skill.own_files.server is not None else skill.own_files.fetched_body
    return f"{_base_state(skill)}+{blake2b(body.encode(), digest_size=8).hexdigest()}" if body else _base_state(skill)


def _base_state(skill: Skill) -> str:
    """Return the state of a skill without a folder, as its source announces it."""
    return str(skill.state)


def _show_identity(known: Identity | None) -> str:
    return "" if known is None else ":".join(map(str, known))


def _stat_identity(path: str) -> Identity | None:
    try:
        return identity_of(os.lstat(path))
    except OSError:
        return None


# -- texts -------------------------------------------------------------------------------------------------------------


def _read_file(skill: Skill) -> SkillText | None:
    """Return the texts in the file of a skill as it is now; ``None`` when it is gone, or is not a SKILL.md any more."""
    try:
        with OpenFile(skill.base, (*skill.parts, skill.file_name)) as file:
            head, offset = _read_head(skill, file)
            body = file.read(_MAX_BYTES_PER_CHAR * skill.limits.max_indexed_chars, offset).decode("utf-8", "replace")
            text = _make_text(head, skill.limits, body, _show_identity(file.identity))
            return text._replace(settled=identity.is_settled(file.info))
    except (ResourceNotFoundError, SkillLoadError):
        return None
    except ResourceError:  # it cannot be read now, or changed meanwhile: what the scan saw must do for a while
        return _make_text(skill, skill.limits, "", _show_identity(skill.identity))._replace(settled=False)


def _read_head(skill: Skill, file: OpenFile) -> tuple[Skill | Frontmatter, int]:
    """Return the fields of an open file, and the byte at which its body begins.

    Nothing is parsed where nothing changed.
    """
    if file.identity == skill.identity:
        return skill, skill.body_offset
    document = skill.parse_file(file.read(skill.limits.max_frontmatter_bytes + 1))
    return document.front, document.body_offset


def make_head_text(skill: Skill) -> SkillText:
    """Return the strings in the head of a skill: its name, its description, its tags and triggers."""
    return _make_text(skill, skill.limits, "", "")


def count_label_chars(front: Frontmatter, limits: Limits) -> int:
    """Return how many characters the tags and triggers of a skill have, of tags as many as count."""
    return len(" ".join([*terms.tags_of(front, limits), *_list_triggers(front)]))


def _make_text(head: Skill | Frontmatter, limits: Limits, body: str, state: str) -> SkillText:
    return terms.SkillText(head.name, head.description.strip(), _make_labels(head, limits), body, state).cut(limits)


def _make_labels(head: Skill | Frontmatter, limits: Limits) -> str:
    """Return the tags and triggers of a skill, as one string."""
    if isinstance(head, Skill):
        raw = head.unparsed_head
        # Fast path: most heads have no labels, and parsing them would take a third of the time of indexing.
        if raw is not None and not any(mark in raw for mark in _LABEL_MARKS):
            return ""
        head = head.peek()
    return " ".join([*terms.tags_of(head, limits), *_list_triggers(head)])


def _list_triggers(front: Frontmatter) -> list[str]:
    return [_flatten(front.extra[key]) for key in _LABEL_FIELDS if key in front.extra]


def _flatten(value: Value) -> str:
    if isinstance(value, str):
        return value
    return " ".join(map(_flatten, value.values() if isinstance(value, dict) else value))


class SearchHit(tuple["Skill", float]):  # noqa: SLOT001 - it has a reason, and tuples cannot have slots
    """A skill that fits a request, and how well: a higher score is better. It unpacks as these two."""

    _why: str | Callable[[], str]

    def __new__(cls, skill: Skill, score: float, why: str | Callable[[], str] = "") -> Self:
        """``why``: the reason, or a function that finds it out when somebody asks."""
        hit = super().__new__(cls, (skill, score))
        hit._why = why
        return hit

    def __repr__(self) -> str:
        """The skill and the score."""
        return f"SearchHit({self.skill!r}, {self.score!r})"

    def __reduce__(self) -> tuple[type[SearchHit], tuple[Skill, float, str]]:
        """What a pickle holds: the reason too, as text."""
        return SearchHit, (self.skill, self.score, self.why)

    @property
    def skill(self) -> Skill:
        """The skill."""
        return self[0]

    @property
    def score(self) -> float:
        """How well the skill fits."""
        return self[1]

    @property
    def name(self) -> str:
        """The name of the skill."""
        return self.skill.name

    @property
    def description(self) -> str:
        """The description of the skill."""
        return self.skill.description

    @property
    def why(self) -> str:
        """The reason: ``words: form, pdf`` with the words of the request that the skill has, ``meaning``, or both."""
        if not isinstance(self._why, str):
            self._why = self._why()
        return self._why


class SearchHits(tuple[SearchHit, ...]):  # noqa: SLOT001 - it has a mode, and tuples cannot have slots
    """The hits of a search, the best first, as a tuple."""

    mode: SearchMode
    """What the search went by: ``"words"``, or ``"words+meaning"`` where the catalogue is prepared for that."""

    def __new__(cls, hits: Iterable[SearchHit] = (), mode: SearchMode = "words") -> Self:
        made = super().__new__(cls, hits)
        made.mode = mode
        return made

    def __reduce__(self) -> tuple[type[SearchHits], tuple[tuple[SearchHit, ...], SearchMode]]:
        """What a pickle holds."""
        return SearchHits, (tuple(self), self.mode)

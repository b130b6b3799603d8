"""Search over names, descriptions and tags by words: SQLite's full-text index, in memory."""

from __future__ import annotations

import re
from threading import Lock
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prowess.skills.skill import Skill

_WORD = re.compile(r"\w+")
# Scripts without blanks between words: each character becomes a word of its own, since SQLite splits at blanks.
_UNSPACED = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af])")
_MAX_WORDS = 64  # a whole document as a query would make a statement of thousands of terms
_WEIGHTS = (6.0, 1.0, 3.0)  # name, description, tags
# Words that nearly every description has: they would decide the order, and say nothing about what is wanted.
_STOP_WORDS = frozenset(
    (
        *(
            "a",
            "an",
            "and",
            "are",
            "as",
            "at",
            "be",
            "by",
            "can",
            "do",
            "for",
            "from",
            "have",
            "help",
            "how",
            "i",
            "in",
        ),
        *("is", "it", "me", "my", "of", "on", "or", "please", "so", "that", "the", "this", "to", "use", "want", "we"),
        *("what", "when", "where", "which", "with", "you", "your"),
    ),
)


class SearchHit(NamedTuple):
    """A skill that matches a query, and how well: a higher score is better."""

    skill: Skill
    score: float

    @property
    def name(self) -> str:
        """The name of the skill."""
        return self.skill.name

    @property
    def description(self) -> str:
        """The description of the skill."""
        return self.skill.description


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


S = TypeVar("S", bound=Searchable)


class SearchIndex(Generic[S]):
    """An index over some skills; safe to share between threads."""

    def __init__(self, skills: Sequence[S]) -> None:
        import sqlite3  # noqa: PLC0415 - only when something is searched
        from weakref import finalize  # noqa: PLC0415 - only when something is searched

        self._skills = skills
        self._lock = Lock()
        # The lock, and not SQLite, keeps threads apart: SQLite would refuse any thread but this one.
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        # Python 3.13 and later warn of a connection that is collected while it is open.
        finalize(self, self._db.close)
        self._db.execute(
            "CREATE VIRTUAL TABLE skills USING fts5(name, description, tags, tokenize='porter unicode61')",
        )
        self._db.executemany(
            "INSERT INTO skills(rowid, name, description, tags) VALUES (?, ?, ?, ?)",
            [
                (
                    row,
                    _add_spaces(skill.name),
                    _add_spaces(skill.description),
                    _add_spaces(" ".join(tags_of(skill))),
                )
                for row, skill in enumerate(self._skills)
            ],
        )

    def rank(self, query: str, limit: int) -> list[tuple[S, float]]:
        """At most ``limit`` skills that match, best first, each with its score; none for a query without words."""
        words = list(dict.fromkeys(word.lower() for word in _WORD.findall(_add_spaces(query))))
        terms = [word for word in words if word not in _STOP_WORDS] or words
        if not terms or limit <= 0:
            return []
        # In quotes a word is never an operator of the query language, such as NOT or NEAR.
        match = " OR ".join(f'"{word}"' for word in terms[:_MAX_WORDS])
        order = f"bm25(skills, {', '.join(map(str, _WEIGHTS))})"
        sql = f"SELECT rowid, {order} AS rank FROM skills WHERE skills MATCH ? ORDER BY rank, name LIMIT ?"  # noqa: S608
        with self._lock:
            rows = self._db.execute(sql, (match, limit)).fetchall()
        return [(self._skills[row], -rank) for row, rank in rows]  # bm25 is lower for a better match


def tags_of(skill: Searchable) -> tuple[str, ...]:
    """The tags of the fields ``tags`` and ``metadata.tags``, each once."""
    written = skill.metadata.get("tags", "").strip("[]")
    more = (tag.strip().strip("\"'") for tag in written.split(","))
    return tuple(dict.fromkeys((*skill.tags, *(tag for tag in more if tag))))


def _add_spaces(text: str) -> str:
    """A text in which SQLite finds the words: blanks for underscores, and around characters that are words."""
    return text.replace("_", " ") if text.isascii() else _UNSPACED.sub(r" \1 ", text.replace("_", " "))

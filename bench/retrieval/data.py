"""The labelled requests and the skills of the optional data folder beside the checkout, and libraries made of them.

They are other people's text: they are written below a temporary folder, searched, and never copied into the project.
"""

from __future__ import annotations

import json
import lzma
import random
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from bench import measure
from training.folds import deal_folds, find_groups

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import prowess

FOLDER = measure.CHECKOUT.parent / "shared" / "retrieval"
SEED = 7
MAX_NAME = 64
# A scan takes no name with these characters; a hyphen separates the same words.
_NOT_IN_NAMES = re.compile(r"[/@:\\]")


class PoolSkill(NamedTuple):
    """One skill of the data folder."""

    id: str
    name: str
    description: str
    body: str


class Request(NamedTuple):
    """A labelled request; skills are given by their place in the pool."""

    text: str
    relevant: tuple[int, ...]
    also_relevant: tuple[int, ...]
    kind: str
    script: str
    group: str
    """Requests that share a right skill, directly or over others, are in one group."""
    fold: int

    @property
    def right(self) -> frozenset[int]:
        """The skills that count as a hit."""
        return frozenset((*self.relevant, *self.also_relevant))


# -- read --------------------------------------------------------------------------------------------------------------


def read_skills() -> list[PoolSkill]:
    """Return the skills of the pool in the order of their file."""
    return [PoolSkill(row["id"], row["name"], row["description"], row["body"]) for row in _read_rows("skills.jsonl.xz")]


def read_requests(skills: Sequence[PoolSkill]) -> list[Request]:
    """Return the requests with an answer, in the order of their file, each in its fold."""
    places = {skill.id: place for place, skill in enumerate(skills)}
    records = [record for record in _read_rows("queries.jsonl") if record["relevant"]]
    return [
        Request(
            record["query"],
            tuple(places[id_] for id_ in record["relevant"]),
            tuple(places[id_] for id_ in record["also_relevant"]),
            record["kind"],
            record["lang"],
            group,
            fold,
        )
        for record, group, fold in zip(records, find_groups(records), deal_folds(records), strict=True)
    ]


def _read_rows(name: str) -> list[dict[str, Any]]:
    data = (FOLDER / name).read_bytes()
    return [json.loads(line) for line in (lzma.decompress(data) if name.endswith(".xz") else data).splitlines()]


# -- written -----------------------------------------------------------------------------------------------------------


def make_names(skills: Iterable[PoolSkill]) -> list[str]:
    """Return a name for each skill that no other has and that consists of the same words.

    A catalogue has each name once, and one skill of ten in the pool has the name of an earlier one. Such a name gets
    hyphens at its end: they make another name, and no word, so neither the words nor the encoder notice them.
    """
    taken: set[str] = set()
    names = []
    for skill in skills:
        name = _NOT_IN_NAMES.sub("-", skill.name)[:MAX_NAME]
        while name in taken:
            name += "-"
        taken.add(name)
        names.append(name)
    return names


def write_library(root: Path, skills: Sequence[PoolSkill]) -> None:
    """Write each skill as a folder below ``root`` that is named by its place."""
    for place, (skill, name) in enumerate(zip(skills, make_names(skills), strict=True)):
        folder = root / f"{place:06}"
        folder.mkdir(parents=True)
        # A JSON text is a quoted YAML text too.
        head = f"name: {_quote(name)}\ndescription: {_quote(skill.description)}\n"
        (folder / "SKILL.md").write_bytes(f"---\n{head}---\n{skill.body}".encode())


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def place_of(skill: prowess.Skill) -> int:
    """Return the place of a skill of such a library."""
    return int(skill.location.rsplit("/", 2)[1])


def recombine_skills(skills: Sequence[PoolSkill], size: int, seed: int = SEED) -> list[PoolSkill]:
    """Return ``size`` skills with the name of one, the description of another and the body of a third."""
    rng = random.Random(f"{seed} {size}")
    draws: list[list[PoolSkill]] = []
    for _ in range(3):
        drawn: list[PoolSkill] = []
        while len(drawn) < size:
            drawn += rng.sample(skills, min(len(skills), size - len(drawn)))
        draws.append(drawn)
    return [
        PoolSkill("", f"{named.name[: MAX_NAME - 7]}-{place}", described.description, instructed.body)
        for place, (named, described, instructed) in enumerate(zip(*draws, strict=True))
    ]

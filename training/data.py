"""What the encoder is trained on: skills in token ids, and pairs of a request and the skill that answers it."""

from __future__ import annotations

import json
import lzma
import random
import re
import zlib
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from prowess_retriever.wordpiece import Tokenizer

REQUEST_TOKENS = 96
"""Where a request is cut, in training and when it is searched for. Marks of start and end count."""
TRAINED_TOKENS = 224
"""Where a skill is cut in training."""
SEARCHED_TOKENS = 256
"""Where a skill is cut when it is searched for."""
MOST_LINES = 40
"""Lines of a body that are used."""
WIDTH_STEP = 32
"""Batches have few widths, so that few shapes are compiled."""
REQUEST_PARTS = 3
"""Requests of a batch are padded in parts of like length: most are short, and one width would be padding mostly."""

# The wide marks are those of Chinese and Japanese.
_SENTENCE_END = re.compile(r"(?<=[.!?;:\u3002\uff01\uff1f\uff1b])\s+|\n+")
_SHORT_SENTENCE = 20

Pieces = list[list[int]]
Batch = tuple[list["NDArray[np.int32]"], "NDArray[np.int32]", "NDArray[np.int64]"]


@dataclass(frozen=True)
class SkillText:
    """A skill in token ids: its name, the sentences of its description, the lines of its body."""

    key: int
    """Equal for skills of one name: forks of a skill must not count as wrong answers to each other's requests."""
    name: list[int]
    description: Pieces
    body: Pieces


@dataclass(frozen=True)
class Request:
    """A labelled request in token ids, and the places of the skills that answer it."""

    tokens: list[int]
    right: tuple[int, ...]


@dataclass(frozen=True)
class Pair:
    """A request and the skill that answers it, as rows of token ids with marks, and the skill's key."""

    request: list[int]
    skill: list[int]
    key: int


@dataclass(frozen=True)
class Mixture:
    """What a batch holds: pairs out of skills' own text, labelled requests, and how these are varied."""

    own: int = 608
    asked: int = 160
    dropped: float = 0.0
    """The share of a labelled request's tokens that is left out, so that it is never quite the same."""


# -- read --------------------------------------------------------------------------------------------------------------


def read_records(path: Path) -> list[dict[str, Any]]:
    """Return the JSON lines of a file, which may be compressed by xz."""
    data = path.read_bytes()
    return [json.loads(line) for line in (lzma.decompress(data) if path.suffix == ".xz" else data).splitlines()]


def describe_skill(record: dict[str, Any]) -> str:
    """Return the text of a skill that is encoded when it is searched for, as Prowess makes it."""
    return f"{record['name'].replace('-', ' ')}\n{record['description']}\n{record['body']}"


def read_skills(records: Sequence[dict[str, Any]], tokenizer: Tokenizer) -> list[SkillText]:
    """Return the skills of ``records`` in token ids."""
    return [_read_skill(record, tokenizer) for record in records]


def _read_skill(record: dict[str, Any], tokenizer: Tokenizer) -> SkillText:
    def split(text: str) -> list[int]:
        return tokenizer.encode(text, TRAINED_TOKENS)[1:-1]

    sentences = split_sentences(record["description"])
    return SkillText(
        zlib.crc32(record["name"].lower().encode()),
        split(record["name"].replace("-", " ")),
        [split(sentence) for sentence in sentences],
        [split(line) for line in split_lines(record["body"])],
    )


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a description; a short one stays with the one before it: alone it says little."""
    sentences: list[str] = []
    for sentence in _SENTENCE_END.split(text.strip()):
        if sentences and len(sentence) < _SHORT_SENTENCE:
            sentences[-1] += f" {sentence}"
        elif sentence:
            sentences.append(sentence)
    return sentences


def split_lines(body: str) -> list[str]:
    """Return the first lines of a body that say something; marks of code blocks do not."""
    lines = (line.strip() for line in body.splitlines() if not line.startswith("```"))
    return [line for line in lines if len(line) > 2][:MOST_LINES]


def read_requests(records: Sequence[dict[str, Any]], places: dict[str, int], tokenizer: Tokenizer) -> list[Request]:
    """Return the labelled requests; ``places`` has the place of each skill by its id."""
    return [
        Request(
            tokenizer.encode(record["query"], REQUEST_TOKENS),
            tuple(places[skill] for skill in (*record["relevant"], *record["also_relevant"])),
        )
        for record in records
    ]


def weigh_requests(groups: Sequence[str], balance: float) -> list[float]:
    """Return how often each request is drawn, where ``groups`` names the group of each.

    Requests that share a right skill are a group. With a ``balance`` of 0 all requests are drawn equally often, so the
    skills of large groups decide what is learnt. With 1 all groups are drawn equally often.
    """
    sizes = Counter(groups)
    return [sizes[group] ** -balance for group in groups]


# -- pairs -------------------------------------------------------------------------------------------------------------


class PairMaker:
    """Draws pairs. Two makers with the same seed draw the same pairs."""

    def __init__(self, tokenizer: Tokenizer, mixture: Mixture, seed: int) -> None:
        self._start, self._end = tokenizer.start, tokenizer.end
        self._mixture = mixture
        self._chance = random.Random(seed)

    def make_batches(
        self,
        pool: Sequence[SkillText],
        requests: Sequence[Request],
        weights: Sequence[float],
        labelled: Sequence[SkillText],
    ) -> Iterator[Batch]:
        """Batches without end: parts of the requests, the skills in the same order, and the skills' keys.

        ``weights`` says for each request how often it is drawn beside the others.
        """
        mixture, chance = self._mixture, self._chance
        sums = list(accumulate(weights))
        while True:
            drawn = chance.choices(requests, cum_weights=sums, k=mixture.asked) if mixture.asked else []
            pairs = [self._ask(request, labelled) for request in drawn]
            while len(pairs) < mixture.asked + mixture.own:
                pair = self._cut(chance.choice(pool))
                if pair is not None:
                    pairs.append(pair)
            pairs.sort(key=lambda pair: len(pair.request))
            size = -(-len(pairs) // REQUEST_PARTS)
            rows = [pair.request for pair in pairs]
            parts = [pad_rows(rows[start : start + size]) for start in range(0, len(rows), size)]
            yield (
                parts,
                pad_rows([pair.skill for pair in pairs]),
                np.array([pair.key for pair in pairs], dtype=np.int64),
            )

    def _ask(self, request: Request, labelled: Sequence[SkillText]) -> Pair:
        """A labelled request with one of its skills."""
        skill = labelled[self._chance.choice(request.right)]
        start, *tokens, end = request.tokens
        kept = [token for token in tokens if self._chance.random() >= self._mixture.dropped]
        return Pair([start, *kept, end], self._join([skill.name, *skill.description, *skill.body]), skill.key)

    def _cut(self, skill: SkillText) -> Pair | None:
        """A pair out of a skill's own text: one part plays the request, and the rest of the skill plays the answer."""
        chance = self._chance
        kind = chance.random()
        if kind < 0.35 and len(skill.description) > 1:
            number = chance.randrange(len(skill.description))
            rest = [*_without(skill.description, number), *skill.body]
            return self._pair([skill.description[number]], skill, rest)
        if kind < 0.65 and skill.description and skill.body:
            return self._pair(skill.description, skill, skill.body)
        if len(skill.body) > 4:
            number = chance.randrange(len(skill.body) - 1)
            rest = [*skill.description, *_without(skill.body, number, 2)]
            return self._pair(skill.body[number : number + 2], skill, rest)
        return None

    def _pair(self, asked: Pieces, skill: SkillText, rest: Pieces) -> Pair:
        return Pair(self._join(asked, REQUEST_TOKENS), self._join([skill.name, *rest]), skill.key)

    def _join(self, pieces: Pieces, length: int = TRAINED_TOKENS) -> list[int]:
        """One row of token ids with the marks of its start and end, cut at ``length``."""
        row = [self._start]
        for piece in pieces:
            row += piece
            if len(row) >= length:
                break
        return [*row[: length - 1], self._end]


def _without(pieces: Pieces, number: int, count: int = 1) -> Pieces:
    return [*pieces[:number], *pieces[number + count :]]


def pad_rows(rows: Sequence[list[int]]) -> NDArray[np.int32]:
    """Return one matrix of the rows, with zeros at their ends."""
    width = -(-max(map(len, rows)) // WIDTH_STEP) * WIDTH_STEP
    matrix = np.zeros((len(rows), width), dtype=np.int32)
    for number, row in enumerate(rows):
        matrix[number, : len(row)] = row
    return matrix

"""Keyword stuffing: a skill that lists the words of everybody's requests is not found by everybody's requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import prowess
from prowess.install.index_search import ListedSkill
from prowess.limits import DEFAULT_LIMITS
from prowess.search.ranking import rank_listing
from prowess.search.terms import USUAL_HEAD_WORDS, USUAL_TEXT_WORDS, WEIGHTS

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Write = Callable[..., Path]

REQUESTS = 100
MOST_FOUND = 10
STUFFED = "stuffed"
SKILLS = 250


def make_words() -> list[str]:
    """Words that no stemmer makes equal, the most usual ones first."""
    starts = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "t", "v", "z", "st", "tr")
    ends = ("ba", "do", "ko", "mu", "ra", "ta")
    return [f"{start}{vowel}{middle}{end}" for middle in ends for vowel in "aiou" for end in ends for start in starts]


def draw_sentence(words: list[str], rng: random.Random, count: int) -> str:
    """Words as people use them: a few often, most of them seldom."""
    # The place of a word of which the logarithm is even: as Zipf's law has it, with a share for the seldom ones.
    return " ".join(words[int(30 * (len(words) / 30 + 1) ** rng.random() - 30)] for _ in range(count))


def draw_library(words: list[str], rng: random.Random) -> tuple[list[tuple[str, str, str]], list[str]]:
    """Names, descriptions and bodies of skills, and requests that are about any of them."""
    skills = [
        (f"skill-{number}", draw_sentence(words, rng, 20), draw_sentence(words, rng, 500)) for number in range(SKILLS)
    ]
    return skills, [draw_sentence(words, rng, 8) for _ in range(REQUESTS)]


def stuff(words: list[str]) -> dict[str, tuple[str, tuple[str, ...], str, dict[str, str]]]:
    """Description, tags, body and further fields of a skill for each way to stuff it with words."""
    tags = tuple([*words, *(f"{word}{number}" for number in range(9) for word in words)][:3_900])
    text = " ".join(words)
    return {
        "tags": ("Helps.", tags, "Do it.", {}),
        "long tags": ("Helps.", (text, text[5_000:]), "Do it.", {}),
        "description": (text, (), "Do it.", {}),
        "keywords": ("Helps.", (), "Do it.", {"keywords": text}),
        "everything": (text, tags, text, {"when_to_use": text}),
    }


WAYS = ("tags", "long tags", "description", "keywords", "everything")


def test_a_skill_of_the_commonest_words_is_among_the_first_five_for_few_requests(rng: random.Random) -> None:
    weights = {word: weight for weight, starts in WEIGHTS.items() for word in starts.split()}
    common, rare = list(weights), make_words()

    def draw(usual: int, count: int) -> list[str]:
        return [*rng.choices(common, list(weights.values()), k=usual), *rng.sample(rare, count - usual)]

    made = []
    for number in range(SKILLS):  # each is about something: it has few of the usual words, and repeats its words
        topic = draw(100, 250)
        description, body = " ".join(rng.sample(topic, 20)), " ".join(rng.choices(topic, k=600))
        made.append(prowess.Skill(prowess.Frontmatter(name=f"skill-{number}", description=description), body=body))
    requests = [" ".join(draw(5, 8)) for _ in range(REQUESTS)]
    front = prowess.Frontmatter(name=STUFFED, description=" ".join(common[:99]))
    assert len({*common[:99], STUFFED}) <= USUAL_HEAD_WORDS
    assert len(front.description) <= DEFAULT_LIMITS.max_indexed_description_chars
    body = " ".join(common[99 : USUAL_TEXT_WORDS - 1])
    catalog = prowess.Catalog([*made, prowess.Skill(front, body=body)])
    found = [[hit.name for hit in catalog.search(request, 5)] for request in requests]
    assert sum(STUFFED in names for names in found) <= MOST_FOUND


@pytest.mark.parametrize("way", WAYS)
def test_a_stuffed_skill_is_among_the_first_five_for_few_requests(way: str, rng: random.Random) -> None:
    words = make_words()
    skills, requests = draw_library(words, rng)
    description, tags, body, extra = stuff(words)[way]
    front = prowess.Frontmatter(name=STUFFED, description=description, tags=tags, extra=dict(extra))
    made = [prowess.Skill(prowess.Frontmatter(name=name, description=text), body=rest) for name, text, rest in skills]
    made.append(prowess.Skill(front, body=body))
    catalog = prowess.Catalog(made)
    selector = prowess.LexicalSelector(5)
    by_search = [[hit.name for hit in catalog.search(request, 5)] for request in requests]
    by_selector = [selector.select(request, made) for request in requests]
    for found in (by_search, by_selector):
        assert sum(STUFFED in names for names in found) <= MOST_FOUND
        assert all(len(names) == 5 for names in found)


@pytest.mark.parametrize("way", ["tags", "long tags", "description"])
def test_a_stuffed_entry_of_a_site_is_among_the_first_five_for_few_requests(way: str, rng: random.Random) -> None:
    words = make_words()
    skills, requests = draw_library(words, rng)
    description, tags, _, _ = stuff(words)[way]
    entries = [*(ListedSkill(name, text) for name, text, _ in skills), ListedSkill(STUFFED, description, tags)]
    found = [rank_listing(entries, request, DEFAULT_LIMITS)[:5] for request in requests]
    assert sum(len(skills) in {place for place, _ in best} for best in found) <= MOST_FOUND
    assert all(len(best) == 5 for best in found)


def test_only_the_beginning_of_a_description_is_indexed(write: Write, tmp_path: Path) -> None:
    write("long", "early " + "x " * 500 + "middle " + "x " * 20 + "late")
    folder = tmp_path / "skills"
    assert [hit.name for hit in prowess.scan(folder).search("middle")] == ["long"]
    assert not prowess.scan(folder).search("late")
    narrow = prowess.scan(folder, limits=prowess.Limits(max_indexed_description_chars=100))
    assert [hit.name for hit in narrow.search("early")] == ["long"]
    assert not narrow.search("middle")


def test_the_first_tags_are_searched_and_selected(write: Write, tmp_path: Path) -> None:
    write("one", head=f"tags: [{', '.join(f't{number}' for number in range(17))}]\n")
    write("two", head="metadata:\n  tags: t15, t16\n")
    folder = tmp_path / "skills"
    catalog = prowess.scan(folder)
    wide = prowess.scan(folder, limits=prowess.Limits(max_indexed_tags=17))
    for tag, found, found_wide in (("t15", 2, 2), ("t16", 1, 2)):
        assert len(catalog.search(tag)) == len(prowess.TagSelector([tag]).select("", catalog.skills)) == found
        assert len(wide.search(tag)) == len(prowess.TagSelector([tag]).select("", wide.skills)) == found_wide


def test_an_encoder_gets_the_same_bounded_text() -> None:
    front = prowess.Frontmatter(name="n" * 100, description="a " * 2_000)
    encoded: list[str] = []

    class Watching:
        name = "watching"

        def encode_skills(self, texts: Sequence[str]) -> NDArray[np.float32]:
            encoded.extend(texts)
            return np.ones((len(texts), 1), np.float32)

        encode_requests = encode_skills

    prowess.Catalog([prowess.Skill(front, body="b " * 5_000)]).prepare_search(semantic=Watching())
    assert [[len(part) for part in text.split("\n", 2)] for text in encoded] == [[64, 1_024, 6_000]]

"""What a listing costs with and without a selection, and how often the right skill is among those shown."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

import prowess
from bench.retrieval.data import SEED, place_of
from bench.retrieval.plot import Curve
from bench.retrieval.scores import Score, average_values
from prowess.select.selectors import Candidates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from bench import table
    from bench.retrieval.data import PoolSkill, Request
    from bench.retrieval.meaning import Semantic

DRAWS = {10: 30, 100: 6, 1_000: 2, 10_000: 1}
"""How many libraries are drawn of each size."""
MAX_ASKED = 300
"""Requests that are asked of one library, at most."""
HEAD: table.Row = ("skills", "requests", "listing", "tokens", "skills shown", "right skill shown")
EVERYTHING, CUT = "everything", "cut to the budget"
WORDS, MEANING = "selected by words", "selected by words and meaning"
BUDGET = 4_000
RANKED = 500
"""More skills than a budget can show."""


class Drawn(NamedTuple):
    """A library drawn from the pool: its skills by their places there, and the requests that they can answer."""

    places: list[int]
    requests: list[Request]


def draw_libraries(skills: Sequence[PoolSkill], requests: Sequence[Request], size: int) -> Iterator[Drawn]:
    """Yield libraries of ``size`` skills, each with some right skills and the requests for them.

    At most half of a library are right skills. All skills of a request are in the library, or the request is not asked.
    A library that is larger than the pool has some of the skills that no request asks for twice.
    """
    rng = random.Random(f"{SEED} {size}")
    groups: dict[str, list[Request]] = {}
    for request in requests:
        groups.setdefault(request.group, []).append(request)
    for _ in range(DRAWS[size]):
        right: set[int] = set()
        asked: list[Request] = []
        for group in rng.sample(list(groups.values()), len(groups)):
            wanted = frozenset[int]().union(*(request.right for request in group))
            if len(right) + len(wanted) <= size // 2:
                right |= wanted
                asked += group
        others = [place for place in range(len(skills)) if place not in right]
        rng.shuffle(others)
        step = -(-len(asked) // MAX_ASKED)
        yield Drawn([*right, *(others * 2)[: size - len(right)]], asked[::step])


class Shown(NamedTuple):
    """What one way to list skills shows in libraries of one size."""

    size: int
    requests: int
    way: str
    tokens: float
    skills: float
    right: Score

    def cells(self) -> table.Row:
        """Return the row of the table."""
        shown = f"{self.skills:,.0f}"
        return (f"{self.size:,}", f"{self.requests:,}", self.way, f"{self.tokens:,.0f}", shown, str(self.right))


Listed = tuple[float, float, float]
"""What a listing for one request costs in tokens, how many skills it has, and the share of right ones in it."""
Ways = dict[str, "Callable[[Request], prowess.Toolset]"]
"""For each way to list skills, what makes the toolset of a new conversation that begins with a request."""


def list_ways(catalog: prowess.Catalog, semantic: Semantic | None) -> Ways:
    """Return the ways to list a library: everything, everything cut to the budget, and selected for the request."""
    ways: Ways = {
        EVERYTHING: lambda _: prowess.Toolset(prowess.Session(catalog, selector=None)),
        CUT: lambda _: prowess.Toolset(prowess.Session(catalog, selector=None), budget=BUDGET),
        WORDS: lambda _: _begin_conversation(catalog, semantic=False),
    }
    if semantic is not None:
        ways[MEANING] = lambda request: _begin_conversation(catalog, semantic=semantic(request))
    return ways


def _begin_conversation(catalog: prowess.Catalog, *, semantic: bool | prowess.Encoder) -> prowess.Toolset:
    """Return the toolset of a new conversation whose listing is selected as by default."""
    selector = prowess.AutoSelector(base=RankingSelector(semantic))
    return prowess.Toolset(prowess.Session(catalog, selector=selector))


class RankingSelector:
    """Ranks the candidates as the default does, with an encoder of one's own or without any."""

    def __init__(self, semantic: bool | prowess.Encoder) -> None:  # noqa: FBT001 - what ``semantic=`` takes
        """Remember what the catalogue is searched with."""
        self._semantic = semantic

    def select(self, query: str, candidates: Sequence[prowess.Skill]) -> list[str]:
        """Return the names of the candidates, the best first."""
        assert isinstance(candidates, Candidates)
        names = candidates.by_name
        return [hit.name for hit in candidates.catalog.rank_skills(query, names, RANKED, semantic=self._semantic)]


def measure_ways(ways: Ways, drawn: Drawn) -> dict[str, list[Listed]]:
    """Return for each way and request the tokens of the listing, the number of skills, and the share of right ones.

    When a request has several relevant skills, the share is the part of them that is shown.
    """
    library_places = dict(enumerate(drawn.places))
    measured: dict[str, list[Listed]] = {way: [] for way in ways}
    for request in drawn.requests:
        for way, begin in ways.items():
            toolset = begin(request)
            toolset.prompt(request.text)
            report = toolset.report()
            catalog = toolset.session.catalog
            shown = {library_places[place_of(catalog[name])] for name in report.shown}
            wanted = len(request.relevant)
            share = min(len(shown & request.right), wanted) / wanted
            measured[way].append((report.tokens, len(report.shown), share))
    return measured


def summarize_ways(size: int, requests: Sequence[Request], measured: Mapping[str, Sequence[Listed]]) -> list[Shown]:
    """Return what each way shows, as means over the requests."""
    shown = []
    for way, values in measured.items():
        tokens, skills, right = average_values(requests, values)
        shown.append(Shown(size, len(requests), way, tokens.mean, skills.mean, right))
    return shown


def make_curves(shown: Sequence[Shown]) -> list[Curve]:
    """Return the curve of each way for the plot."""
    ways = dict.fromkeys(row.way for row in shown)
    return [_make_curve(way, [row for row in shown if row.way == way]) for way in ways]


def _make_curve(way: str, rows: Sequence[Shown]) -> Curve:
    return Curve(
        way,
        tuple(row.size for row in rows),
        tuple(row.tokens for row in rows),
        tuple(row.right.mean for row in rows),
    )

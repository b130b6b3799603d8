"""How well rankings answer requests: the measures, their means and their standard errors."""

from __future__ import annotations

from collections import defaultdict
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bench.retrieval.data import Request

DEPTH = 20
"""How many skills a ranking has at most; a right skill behind them counts as not found."""
MEASURES = ("hit@1", "recall@5", "recall@20", "MRR")

Values = tuple[float, float, float, float]
"""What one ranking achieves, in the order of ``MEASURES``."""


class Score(NamedTuple):
    """The mean of a measure over requests, and its standard error."""

    mean: float
    error: float

    def __str__(self) -> str:
        """Return the score for a table: ``.566 ± .012``."""
        return f"{_format_share(self.mean)} ± {_format_share(self.error)}"


def _format_share(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def judge_ranking(request: Request, ranking: Sequence[int]) -> Values:
    """Return what ``ranking``, skills from the best on, achieves for the request.

    A near copy of a right skill counts as a hit. When a request has several relevant skills, recall is the share of
    them that is found, and no more than all of them.
    """
    places = [place for place, skill in enumerate(ranking[:DEPTH]) if skill in request.right]
    first = places[0] if places else DEPTH
    reciprocal = 1 / (first + 1) if places else 0.0
    return float(first == 0), _recall(request, places, 5), _recall(request, places, 20), reciprocal


def _recall(request: Request, places: Sequence[int], most: int) -> float:
    wanted = len(request.relevant)
    return min(sum(place < most for place in places), wanted) / wanted


def average_values(requests: Sequence[Request], values: Iterable[Sequence[float]]) -> list[Score]:
    """Return the score of each measure over the requests.

    Requests for one skill are not independent of each other, so the standard error is the one for groups: it adds up
    the deviations of a group before it squares them.
    """
    columns = list(zip(*values, strict=True))
    return [_average_column([request.group for request in requests], column) for column in columns]


def _average_column(groups: Sequence[str], column: Sequence[float]) -> Score:
    mean = sum(column) / len(column)
    deviations: dict[str, float] = defaultdict(float)
    for group, value in zip(groups, column, strict=True):
        deviations[group] += value - mean
    return Score(mean, sqrt(sum(deviation**2 for deviation in deviations.values())) / len(column))

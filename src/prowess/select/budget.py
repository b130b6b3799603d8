"""Listings that fit a budget of tokens, with a report of what was cut.

Descriptions are shortened evenly first. When that is not enough they are dropped, and then entries are left out from
the end, because a name without a description still lets a model ask for the skill.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from prowess.arguments import check_count, raise_bad_argument, show_path_argument
from prowess.spec.quantities import format_count
from prowess.spec.render import ListingEntry, make_entry, render_entries, render_xml
from prowess.spec.tokens import COUNTER_NAME, estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from prowess.spec.render import Listable, ListingStyle

    Render = Callable[[Sequence[ListingEntry]], str]
    Count = Callable[[str], int]

# The cost of an entry is measured by adding it to a listing with this one: the frame of a listing is not counted.
_SAMPLE_ENTRY: ListingEntry = ("a", "b", "c")
_MIN_DESCRIPTION = 24  # A description that is cut to fewer characters says nothing.


@dataclass(frozen=True)  # Without slots, because ``tokens`` is kept once it was counted.
class BudgetReport:
    """What a listing costs, and what was cut to make it fit; names are in the order of the listing."""

    text: str = field(repr=False)
    budget: int | None
    shown: tuple[str, ...]
    shortened: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    """Listed without a description."""
    omitted: tuple[str, ...] = ()
    """Not listed at all."""
    counter: str = COUNTER_NAME
    count: Callable[[str], int] = field(default=estimate_tokens, repr=False, compare=False)
    """The function that counts tokens."""

    @cached_property
    def tokens(self) -> int:
        """The number of tokens of the listing."""
        return self.count(self.text)

    @property
    def is_cut(self) -> bool:
        """Whether anything was cut."""
        return bool(self.shortened or self.dropped or self.omitted)

    def __str__(self) -> str:
        """Return the report as one line for people."""
        budget = f" of {self.budget}" if self.budget is not None else ""
        cuts = describe_cuts(self)
        return f"{format_count(len(self.shown), 'skill')}, {self.tokens}{budget} tokens ({self.counter}): {cuts}"


def describe_cuts(report: BudgetReport) -> str:
    """Return what was cut to fit, for people: ``"1 shortened, 2 left out"``, or ``"nothing cut"``."""
    cuts = ((report.shortened, "shortened"), (report.dropped, "without description"), (report.omitted, "left out"))
    return ", ".join(f"{len(names)} {what}" for names, what in cuts if names) or "nothing cut"


def render_catalog(skills: Iterable[Listable], style: ListingStyle = "xml", budget: int | None = None) -> str:
    """Return the listing of skills for a system prompt, in the order given; ``""`` when there is nothing to list.

    ``style`` is ``xml``, ``markdown``, ``text`` or ``json``. A description is cut at 1,024 characters; line breaks and
    controls become blanks; hidden code points are left out. No text of a skill can end its entry or begin another. With
    a ``budget`` of tokens, descriptions are shortened evenly until the listing fits, then dropped, and then entries are
    left out from the end.
    """
    check_count(budget, "budget", optional=True)
    given: object = skills
    if isinstance(given, str):
        raise_bad_argument(
            "skills", "is a list of prowess.Skill", given, f"pass prowess.scan({show_path_argument(given)})"
        )
    if budget is None and style == "xml":  # fast path of the bench row "render_catalog": no report is needed
        return render_xml(skills)
    return fit_listing(skills, budget, lambda entries: render_entries(entries, style))[0]


def listing_costs(skills: Iterable[Listable], style: ListingStyle = "xml") -> dict[str, int]:
    """Return about how many tokens each skill adds to a listing, by name."""
    alone = estimate_tokens(render_entries([_SAMPLE_ENTRY], style))
    entries = (make_entry(skill) for skill in skills)
    return {entry[0]: estimate_tokens(render_entries([_SAMPLE_ENTRY, entry], style)) - alone for entry in entries}


def fit_listing(
    skills: Iterable[Listable], budget: int | None, render: Render, count: Count = estimate_tokens
) -> tuple[str, BudgetReport]:
    """Return the rendered listing and its report; ``count`` returns the number of tokens of a text."""
    entries = [make_entry(skill) for skill in skills]
    text = render(entries)
    counter = COUNTER_NAME if count is estimate_tokens else getattr(count, "__name__", type(count).__name__)
    if budget is None or count(text) <= budget:
        return text, BudgetReport(text, budget, tuple(name for name, _, _ in entries), counter=counter, count=count)
    shown = _shorten_entries(entries, lambda some: count(render(some)) <= budget)
    text, report = _make_report(entries, shown, budget, render)
    return text, replace(report, counter=counter, count=count)


def _shorten_entries(
    entries: Sequence[ListingEntry], fits: Callable[[Sequence[ListingEntry]], bool]
) -> list[ListingEntry]:
    """Return entries that fit: with shorter descriptions, or without any, or fewer of them."""
    bare = [(name, "", location) for name, _, location in entries]
    length = _find_max_length(entries, fits) if fits(bare) else 0
    return (
        [_shorten_entry(entry, length) for entry in entries]
        if length >= _MIN_DESCRIPTION
        else bare[: _bisect(len(bare), lambda number: fits(bare[:number]))]
    )


def _find_max_length(entries: Sequence[ListingEntry], fits: Callable[[Sequence[ListingEntry]], bool]) -> int:
    """Return the largest length that every description may have."""
    longest = max((len(description) for _, description, _ in entries), default=0)
    return _bisect(longest, lambda length: fits([_shorten_entry(entry, length) for entry in entries]))


def _bisect(limit: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number from 0 to ``limit`` that fits, where every smaller one fits too."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _shorten_entry(entry: ListingEntry, length: int) -> ListingEntry:
    name, description, location = entry
    return entry if len(description) <= length else (name, description[: max(0, length - 1)].rstrip() + "…", location)


def _make_report(
    entries: Sequence[ListingEntry], shown: Sequence[ListingEntry], budget: int, render: Render
) -> tuple[str, BudgetReport]:
    text = render(shown)
    changed = [new[0] for old, new in zip(entries, shown, strict=False) if old != new]
    without_description = {name for name, description, _ in shown if not description}
    report = BudgetReport(
        text,
        budget,
        tuple(name for name, _, _ in shown),
        tuple(name for name in changed if name not in without_description),
        tuple(name for name in changed if name in without_description),
        tuple(name for name, _, _ in entries[len(shown) :]),
    )
    return text, report

"""Listings that fit a budget of tokens, with a report of what was cut.

Descriptions are shortened evenly first. When that is not enough they are dropped, and then entries are left out from
the end, because a name without a description still lets a model ask for the skill.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from prowess.arguments import check_count, raise_bad_argument
from prowess.files.paths import show_path_argument
from prowess.skills.render import ListingEntry, make_entries, render_entries, render_xml
from prowess.text.quantities import format_count
from prowess.text.tokens import COUNTER_NAME, estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from prowess.skills.render import Listable, ListingStyle

    Render = Callable[[Sequence[ListingEntry]], str]
    Count = Callable[[str], int]

# The cost of an entry is measured by adding it to a listing with this one: the frame of a listing is not counted.
_SAMPLE_ENTRY: ListingEntry = ("a", "b", "c")
_MIN_DESCRIPTION = 24  # A description that is cut to fewer characters says nothing.
SMALL_ENTRY = 20
"""The tokens of a small entry: a budget holds at most as many entries as it has room for of these."""
_MIN_FIRST_SIZE = 16


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
    reasons: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """Why each skill of the session is listed or not, by name; only in the report of a toolset."""

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
    return ", ".join(f"{len(names):,} {what}" for names, what in cuts if names) or "nothing cut"


def render_catalog(skills: Iterable[Listable], style: ListingStyle = "xml", budget: int | None = None) -> str:
    """Return the listing of skills for a system prompt, in the order given; ``""`` when there is nothing to list.

    ``style`` is ``xml``, ``markdown``, ``text`` or ``json``. A description is cut at 1,024 characters; line breaks and
    controls become spaces; hidden code points are left out. No text of a skill can end its entry or begin another. With
    a ``budget`` of tokens, descriptions are shortened evenly until the listing fits, then dropped, and then entries are
    left out from the end.
    """
    check_count(budget, "budget", optional=True)
    given: object = skills
    if isinstance(given, str):
        raise_bad_argument(
            "skills", "must be a list of prowess.Skill", given, f"pass prowess.scan({show_path_argument(given)})"
        )
    if budget is None and style == "xml":  # fast path of the bench row "render_catalog": no report is needed
        return render_xml(skills)
    return fit_listing(skills, budget, lambda entries: render_entries(entries, style))[0]


def listing_costs(skills: Iterable[Listable], style: ListingStyle = "xml") -> dict[str, int]:
    """Return about how many tokens each skill adds to a listing, by name."""
    # Beside another one: the lines around the entries are counted once.
    alone = estimate_tokens(render_entries([_SAMPLE_ENTRY], style))
    entries = make_entries(skills)
    return {entry[0]: estimate_tokens(render_entries([_SAMPLE_ENTRY, entry], style)) - alone for entry in entries}


def fit_listing(
    skills: Iterable[Listable], budget: int | None, render: Render, count: Count = estimate_tokens
) -> tuple[str, BudgetReport]:
    """Return the rendered listing and its report; ``count`` returns the number of tokens of a string."""
    entries = make_entries(skills)
    shown = entries if budget is None else fit_entries(entries, lambda some: count(render(some)), budget)
    text = render(shown)
    return text, make_report(entries, shown, text, budget, count)


def fit_entries(
    entries: list[ListingEntry],
    measure: Callable[[Sequence[ListingEntry]], int],
    budget: int,
    *,
    is_too_large: bool = False,
) -> list[ListingEntry]:
    """Return entries that fit: themselves, or with shorter descriptions, or without any, or fewer of them.

    ``measure`` returns the tokens of a listing. ``is_too_large``: the whole was counted before, and does not fit.
    """
    if not is_too_large and all(measure(entries[:size]) <= budget for size in part_sizes(len(entries), budget)):
        return entries
    bare = [(name, "", location) for name, _, location in entries]
    number = find_largest(len(bare), lambda number: measure(bare[:number]), budget)
    if number < len(bare):
        return bare[:number]
    longest = max((len(description) for _, description, _ in entries), default=0)
    length = find_largest(longest, lambda length: measure([_shorten_entry(entry, length) for entry in entries]), budget)
    return [_shorten_entry(entry, length) for entry in entries] if length >= _MIN_DESCRIPTION else bare


def part_sizes(number: int, budget: int) -> Iterator[int]:
    """Yield ever larger numbers up to ``number``: while so many of the first entries fit, the next number is tried.

    So it costs little more than the budget to see that thousands of entries do not fit.
    """
    # Half as many as of small entries: where most have a description, that is enough to see that they do not fit.
    size = min(number, max(_MIN_FIRST_SIZE, _first_size(budget) // 2))
    while size < number:
        yield size
        size = min(number, 2 * size)
    yield number


def find_largest(limit: int, cost: Callable[[int], int], budget: int) -> int:
    """Return the largest number from 0 to ``limit`` whose cost is within the budget; a larger number costs more."""
    fitting, fitting_cost = 0, 0
    too_large, excess_cost = limit + 1, 0
    steps = 0
    while too_large - fitting > 1:
        steps += 1
        if not excess_cost:  # nothing that is too large was counted yet
            # Costs grow nearly evenly: one entry more than the first ones let expect is usually too many.
            expected = fitting * budget // fitting_cost + 1 if fitting_cost else 0
            middle = min(limit, max(fitting + 1, expected, _first_size(budget)))
        elif steps % 3:
            # Costs grow nearly evenly, so that interpolation takes about four steps where halving takes ten.
            share = (budget - fitting_cost) / (excess_cost - fitting_cost)
            middle = min(too_large - 1, fitting + max(1, int(share * (too_large - fitting))))
        else:
            middle = (fitting + too_large) // 2
        middle_cost = cost(middle)
        if middle_cost <= budget:
            fitting, fitting_cost = middle, middle_cost
        else:
            too_large, excess_cost = middle, middle_cost
    return fitting


def _first_size(budget: int) -> int:
    """Return how many entries are counted first: somewhat more than usually fit into the budget."""
    return max(_MIN_FIRST_SIZE, budget // SMALL_ENTRY)


def _shorten_entry(entry: ListingEntry, length: int) -> ListingEntry:
    name, description, location = entry
    return entry if len(description) <= length else (name, description[: max(0, length - 1)].rstrip() + "…", location)


def make_report(
    entries: list[ListingEntry], shown: list[ListingEntry], text: str, budget: int | None, count: Count
) -> BudgetReport:
    """Return the report of a listing of ``shown``, which was made of all ``entries``."""
    counter = COUNTER_NAME if count is estimate_tokens else getattr(count, "__name__", type(count).__name__)
    names = tuple([name for name, _, _ in shown])
    if shown is entries:
        return BudgetReport(text, budget, names, counter=counter, count=count)
    changed = [new[0] for old, new in zip(entries, shown, strict=False) if old != new]
    bare = {name for name, description, _ in shown if not description}
    return BudgetReport(
        text,
        budget,
        names,
        tuple(name for name in changed if name not in bare),
        tuple(name for name in changed if name in bare),
        tuple(name for name, _, _ in entries[len(shown) :]),
        counter,
        count,
    )

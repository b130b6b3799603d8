"""A listing that fits: names stay, descriptions shorten evenly, then go, then entries; and a report of what was cut."""

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

_SAMPLE_ENTRY: ListingEntry = ("a", "b", "c")  # a listing that an entry is added to
_MIN_DESCRIPTION = 24  # a description cut below this says nothing


@dataclass(frozen=True)  # no slots: what was counted once is kept
class BudgetReport:
    """What a listing costs and what was cut to make it fit; names in order."""

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
    """How tokens were counted."""

    @cached_property
    def tokens(self) -> int:
        """What the listing costs."""
        return self.count(self.text)

    @property
    def is_cut(self) -> bool:
        """Whether anything was cut."""
        return bool(self.shortened or self.dropped or self.omitted)

    def __str__(self) -> str:
        """One line for people."""
        of = f" of {self.budget}" if self.budget is not None else ""
        said = describe_cuts(self)
        return f"{format_count(len(self.shown), 'skill')}, {self.tokens}{of} tokens ({self.counter}): {said}"


def describe_cuts(report: BudgetReport) -> str:
    """What was cut to fit, for people: ``"1 shortened, 2 left out"``, or ``"nothing cut"``."""
    cuts = ((report.shortened, "shortened"), (report.dropped, "without description"), (report.omitted, "left out"))
    return ", ".join(f"{len(names)} {what}" for names, what in cuts if names) or "nothing cut"


def render_catalog(skills: Iterable[Listable], style: ListingStyle = "xml", budget: int | None = None) -> str:
    """The listing for a system prompt, in the order given; ``""`` when there is nothing to list.

    ``xml``, ``markdown``, ``text`` or ``json``. A description is cut at 1,024 characters; line breaks and controls
    become blanks; hidden code points are left out. No text of a skill can end its entry or begin another. ``budget``
    (tokens): descriptions are shortened evenly until it fits, then dropped, then entries left out from the end.
    """
    check_count(budget, "budget", optional=True)
    given: object = skills
    if isinstance(given, str):
        raise_bad_argument(
            "skills", "is a list of prowess.Skill", given, f"pass prowess.scan({show_path_argument(given)})"
        )
    if budget is None and style == "xml":
        return render_xml(skills)
    return fit_listing(skills, budget, lambda entries: render_entries(entries, style))[0]


def listing_costs(skills: Iterable[Listable], style: ListingStyle = "xml") -> dict[str, int]:
    """About how many tokens each skill adds to a listing, by name."""
    alone = estimate_tokens(render_entries([_SAMPLE_ENTRY], style))
    entries = (make_entry(skill) for skill in skills)
    return {entry[0]: estimate_tokens(render_entries([_SAMPLE_ENTRY, entry], style)) - alone for entry in entries}


def fit_listing(
    skills: Iterable[Listable], budget: int | None, render: Render, count: Count = estimate_tokens
) -> tuple[str, BudgetReport]:
    """The rendered listing and its report; ``count``: how many tokens a text costs."""
    entries = [make_entry(skill) for skill in skills]
    text = render(entries)
    counter = COUNTER_NAME if count is estimate_tokens else getattr(count, "__name__", type(count).__name__)
    if budget is None or count(text) <= budget:
        names = tuple(name for name, _, _ in entries)
        return text, BudgetReport(text, budget, names, counter=counter, count=count)
    shown = _shorten_entries(entries, lambda some: count(render(some)) <= budget)
    text, report = _make_report(entries, shown, budget, render)
    return text, replace(report, counter=counter, count=count)


def _shorten_entries(
    entries: Sequence[ListingEntry], fits: Callable[[Sequence[ListingEntry]], bool]
) -> list[ListingEntry]:
    """Entries that fit: descriptions shortened evenly, or dropped, or entries left out from the end."""
    bare = [(name, "", location) for name, _, location in entries]
    length = _find_max_length(entries, fits) if fits(bare) else 0
    if length >= _MIN_DESCRIPTION:
        return [_shorten_entry(entry, length) for entry in entries]
    return bare[: _bisect(len(bare), lambda number: fits(bare[:number]))]


def _find_max_length(entries: Sequence[ListingEntry], fits: Callable[[Sequence[ListingEntry]], bool]) -> int:
    """The largest length that every description may have."""
    longest = max((len(description) for _, description, _ in entries), default=0)
    return _bisect(longest, lambda length: fits([_shorten_entry(entry, length) for entry in entries]))


def _bisect(most: int, fits: Callable[[int], bool]) -> int:
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _shorten_entry(entry: ListingEntry, length: int) -> ListingEntry:
    name, description, location = entry
    if len(description) <= length:
        return entry
    return name, description[: max(0, length - 1)].rstrip() + "…", location


def _make_report(
    entries: Sequence[ListingEntry], shown: Sequence[ListingEntry], budget: int, render: Render
) -> tuple[str, BudgetReport]:
    text = render(shown)
    changed = [new[0] for old, new in zip(entries, shown, strict=False) if old != new]
    bare = {name for name, description, _ in shown if not description}
    report = BudgetReport(
        text,
        budget,
        tuple(name for name, _, _ in shown),
        tuple(name for name in changed if name not in bare),
        tuple(name for name in changed if name in bare),
        tuple(name for name, _, _ in entries[len(shown) :]),
    )
    return text, report

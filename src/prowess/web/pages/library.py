"""The page "Library": all skills, searched, filtered and in pages, and what their listing costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from prowess.discovery.agents import AGENTS
from prowess.text.hidden_characters import to_one_line
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from prowess.web.library import Library
    from prowess.web.library_state import LibraryState
    from prowess.web.skill_rows import SkillRow

PAGE_SIZE = 100
"""Rows of one page: what a browser shows at once, and a person still scrolls through."""
SEARCH_PAGE_SIZE = 30
"""Hits of one page. A page is made for each letter that somebody types, and the reasons of hits take time."""
_MAX_PAGE = 1_000_000
_MAX_QUERY = 1_000
_MAX_BAR_PARTS = 6
_HAVING = frozenset(("linked", "copied", "edited"))
"""The states of a skill that an agent gets."""


class Filter(NamedTuple):
    """A filter of the library: its name in addresses, its title, what it shows, and whether counting it is cheap."""

    name: str
    title: str
    help: str
    is_cheap: bool = True


FILTERS = (
    Filter("", "All", "Every skill that loads, each name once."),
    Filter("broken", "Broken", "Files that were found and do not load."),
    Filter("repaired", "Repaired", "Skills whose frontmatter had a mistake that was repaired while it was read."),
    Filter("shadowed", "Shadowed", "Copies that lost to another skill of their name."),
    Filter(
        "untrusted",
        "Untrusted",
        "Skills with commands or scripts that may not run: nobody trusted them.",
        is_cheap=False,
    ),
    Filter(
        "changed", "Changed since locked", "Installed skills whose files differ from the lock file.", is_cheap=False
    ),
    Filter("outdated", "Outdated", "Installed skills whose source had something newer at the last check."),
    Filter(
        "lookalikes",
        "Near-duplicates",
        "Skills whose name or description is easily taken for another's.",
        is_cheap=False,
    ),
    Filter("costly", "Costly", "Skills whose entry in the listing has twice the tokens of the median, or more."),
)


@dataclass(frozen=True, slots=True)
class LibraryQuery:
    """What a person asks the library for."""

    text: str = ""
    show: str = ""
    scope: str = ""
    source: str = ""
    agent: str = ""
    sort: str = ""
    page: int = 1
    with_counts: bool = False
    """Whether the counts of all filters are found out, also of those that take long."""

    @classmethod
    def parse(cls, parameters: Mapping[str, str]) -> LibraryQuery:
        """Return the query in the parameters of an address. An invalid value counts as absent."""
        show = parameters.get("show", "")
        return cls(
            text=parameters.get("q", "")[:_MAX_QUERY].strip(),
            show=show if show in {entry.name for entry in FILTERS} else "",
            scope=parameters.get("scope", ""),
            source=parameters.get("source", ""),
            agent=parameters.get("agent", ""),
            sort="cost" if parameters.get("sort") == "cost" else "",
            page=read_number(parameters.get("page", "")) or 1,
            with_counts=parameters.get("counts") == "1",
        )

    def to_parameters(self) -> dict[str, str]:
        """Return the parameters of the address that asks for this; those with a default value are empty."""
        return {
            "q": self.text,
            "show": self.show,
            "scope": self.scope,
            "source": self.source,
            "agent": self.agent,
            "sort": self.sort,
            "page": "" if self.page == 1 else str(self.page),
        }

    def change(self, **changes: str | int) -> dict[str, str]:
        """Return the parameters of this query with other values, on its first page unless a page is given."""
        return replace(self, **{"page": 1, **changes}).to_parameters()  # type: ignore[arg-type]  # the fields' own types


@dataclass(frozen=True, slots=True)
class ShownRow:
    """One line of the table."""

    id: str
    name: str
    description: str
    location: str
    kind: str
    scope: str = ""
    source: str = ""
    marks: tuple[str, ...] = ()
    tokens: int | None = None
    """The tokens of its entry in the listing; ``None`` for what models do not see."""
    why: str = ""
    """Why it fits the search, why it lost, why it does not load, or what it is easily taken for."""


@dataclass(frozen=True, slots=True)
class FilterLink:
    """A filter, and how many rows it has; ``None`` where that is not found out yet."""

    filter: Filter
    count: int | None
    is_chosen: bool


class CostPart(NamedTuple):
    """A part of the cost bar: its label, its tokens, and where it begins and how wide it is, in thousandths."""

    label: str
    tokens: int
    begin: int
    width: int


@dataclass(frozen=True, slots=True)
class LibraryView:
    """What the page shows."""

    query: LibraryQuery
    rows: Sequence[ShownRow]
    total: int
    """How many rows fit, on all pages together; of a search by fit, on the pages up to this one and the next."""
    first: int
    """The number of the first row of the page, from 1."""
    pages: int
    skills: int
    filters: Sequence[FilterLink]
    scopes: Sequence[str]
    sources: Sequence[str]
    agents: Sequence[tuple[str, str]]
    cost: int
    cost_parts: Sequence[CostPart]
    budget: int | None
    highest_cost: int
    mode: str = ""
    """What a search went by: ``words``, or ``words+meaning``; ``""`` where nothing was searched for."""
    problems: Sequence[str] = ()
    notes: Sequence[str] = ()
    """What a person should know about the rows, each in a sentence."""
    is_outdated_known: bool = True

    @property
    def filter(self) -> Filter:
        """The filter that is chosen."""
        return next(link.filter for link in self.filters if link.is_chosen)

    @property
    def has_all_counts(self) -> bool:
        """Whether the count of every filter is known."""
        return all(link.count is not None for link in self.filters)


def read_number(text: str, highest: int = _MAX_PAGE) -> int | None:
    """Return the number that a parameter of an address has; ``None`` where it has none, or one above ``highest``."""
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(highest))
    return int(text) if is_number and int(text) <= highest else None


def make_library_view(library: Library, parameters: Mapping[str, str]) -> LibraryView:
    """Return what the page shows for the parameters of its address."""
    state = library.state
    query = LibraryQuery.parse(parameters)
    if query.with_counts:  # a browser asks for the counts behind the first page, so the first search need not wait
        _ = state.is_indexed
    chosen, reasons, mode = _find_rows(state, query)
    size = SEARCH_PAGE_SIZE if mode else PAGE_SIZE
    pages = max(1, -(-len(chosen) // size))
    query = replace(query, page=min(query.page, pages))
    begin = (query.page - 1) * size
    return LibraryView(
        query=query,
        rows=[_show_row(state, row, reasons.get(row.id, "")) for row in chosen[begin : begin + size]],
        total=len(chosen),
        first=begin + 1,
        pages=pages,
        skills=len(state.catalog),
        filters=[_make_filter_link(state, entry, query, len(chosen)) for entry in FILTERS],
        scopes=sorted({place.scope.value for place in state.catalog.places if place.scope is not None}),
        sources=state.sources,
        agents=[(agent, AGENTS[agent].title) for agent in state.agents],
        cost=state.total_cost,
        cost_parts=_make_cost_parts(state),
        budget=library.budget,
        highest_cost=max(state.costs.values(), default=1),
        mode=mode,
        problems=_list_problems(state),
        notes=list(_list_notes(library, state, query)),
        is_outdated_known=library.outdated is not None,
    )


# -- which rows --------------------------------------------------------------------------------------------------------


def _find_rows(state: LibraryState, query: LibraryQuery) -> tuple[Sequence[SkillRow], dict[str, str], str]:
    """Return the rows that a query asks for, in order; why each fits, by id; and what the search went by."""
    rows: Sequence[SkillRow]
    if query.show in {"broken", "shadowed"}:
        rows = state.broken if query.show == "broken" else state.shadowed
        wanted = query.text.casefold()
        return [row for row in rows if wanted in f"{row.name}\n{row.location}".casefold()], {}, ""
    names = _filter_names(state, query)
    if query.text:
        return _search_rows(state, query, names)
    rows = state.rows if names is None else [row for row in state.rows if row.name in names]
    if query.sort == "cost":
        rows = _order_by_cost(state, rows)
    reasons = {}
    if query.show == "lookalikes":
        reasons = {row.id: "; ".join(state.lookalikes[row.location]) for row in rows}
    return rows, reasons, ""


def _search_rows(
    state: LibraryState, query: LibraryQuery, names: frozenset[str] | None
) -> tuple[Sequence[SkillRow], dict[str, str], str]:
    """Return the rows that fit the text of a query, as ``_find_rows`` does; reasons are those of the page alone."""
    begin, end = (query.page - 1) * SEARCH_PAGE_SIZE, query.page * SEARCH_PAGE_SIZE
    # One more than the page shows, so that it knows of the next one. To rank all that fit takes longer, and only an
    # order that is not that of the ranking needs it.
    limit = len(state.catalog) if query.sort == "cost" else end + 1
    hits = state.catalog.rank_skills(query.text, names, limit)
    found = [state.rows_by_name[hit.name] for hit in hits]
    reasons = dict[str, str]()
    if len(found) < limit:  # a word that is not typed to its end is not a word of any skill yet
        for row, why in _find_parts(state, names, query.text, frozenset(hit.name for hit in hits)):
            found.append(row)
            reasons[row.id] = why
    if query.sort == "cost":
        found = _order_by_cost(state, found)
    shown = {row.name for row in found[begin:end]}
    # The reason of a hit takes time, so only those of this page are asked for theirs.
    reasons |= {state.rows_by_name[hit.name].id: hit.why for hit in hits if hit.name in shown}
    return found, reasons, hits.mode


def _order_by_cost(state: LibraryState, rows: Sequence[SkillRow]) -> list[SkillRow]:
    return sorted(rows, key=lambda row: (-state.costs.get(row.name, 0), row.name))


def _find_parts(
    state: LibraryState, names: frozenset[str] | None, text: str, known: frozenset[str]
) -> list[tuple[SkillRow, str]]:
    """Return the skills with this text in their name or description, except ``known``, and which of the two has it."""
    wanted = text.casefold()
    in_name: list[tuple[SkillRow, str]] = []
    in_description: list[tuple[SkillRow, str]] = []
    for skill in state.catalog.skills:
        if skill.name in known or (names is not None and skill.name not in names):
            continue
        if wanted in skill.name.casefold():
            in_name.append((state.rows_by_name[skill.name], f"its name has “{text}”"))
        elif wanted in skill.description.casefold():
            in_description.append((state.rows_by_name[skill.name], f"its description has “{text}”"))
    return in_name + in_description


def _filter_names(state: LibraryState, query: LibraryQuery) -> frozenset[str] | None:
    """Return the names that pass every filter of a query; ``None`` where nothing is filtered."""
    kept: list[Iterable[str]] = []
    if query.show:
        kept.append(_STATES[query.show](state))
    if query.scope:
        kept.append(s.name for s in state.catalog.skills if (s.scope.value if s.scope else "") == query.scope)
    if query.source:
        kept.append(s.name for s in state.catalog.skills if state.find_source(s) == query.source)
    if query.agent:
        coverage = state.coverage
        rows = coverage.skills if coverage is not None else ()
        kept.append(row.name for row in rows if row.states.get(query.agent) in _HAVING)
    return frozenset.intersection(*map(frozenset, kept)) if kept else None


def _lookalike_names(state: LibraryState) -> frozenset[str]:
    return frozenset(skill.name for skill in state.catalog.skills if skill.location in state.lookalikes)


_STATES: dict[str, Callable[[LibraryState], frozenset[str]]] = {
    "repaired": lambda state: state.repaired,
    "untrusted": lambda state: state.untrusted,
    "changed": lambda state: state.changed,
    "outdated": lambda state: state.outdated,
    "lookalikes": _lookalike_names,
    "costly": lambda state: state.costly,
}


# -- what is shown -----------------------------------------------------------------------------------------------------


def _show_row(state: LibraryState, row: SkillRow, why: str) -> ShownRow:
    shown = ShownRow(row.id, row.name, "", row.location, row.kind, why=why or row.why)
    skill = state.catalog.get(row.name) if row.kind == "skill" else None
    if skill is None:
        place = state.find_place(row.location)
        return replace(shown, scope=place.scope.value if place.scope else "", source=place.path)
    return replace(
        shown,
        description=to_one_line(skill.description),
        scope=skill.scope.value if skill.scope else "",
        source=state.find_source(skill),
        marks=state.find_marks(skill),
        tokens=state.costs.get(skill.name),
    )


def _make_filter_link(state: LibraryState, entry: Filter, query: LibraryQuery, chosen: int) -> FilterLink:
    is_chosen = entry.name == query.show
    if entry.name in {"broken", "shadowed"}:
        return FilterLink(entry, len(state.broken if entry.name == "broken" else state.shadowed), is_chosen)
    if not entry.name:
        return FilterLink(entry, len(state.catalog), is_chosen)
    is_plain = is_chosen and not any((query.text, query.scope, query.source, query.agent))
    if is_plain:
        return FilterLink(entry, chosen, is_chosen)
    is_counted = entry.is_cheap or query.with_counts or state.knows(entry.name)
    return FilterLink(entry, len(_STATES[entry.name](state)) if is_counted else None, is_chosen)


def _make_cost_parts(state: LibraryState) -> list[CostPart]:
    """Return the parts of the cost bar, the largest place first; small places are one part at the end."""
    parts = sorted(state.cost_by_place.items(), key=lambda part: -part[1])
    if len(parts) > _MAX_BAR_PARTS:
        rest = sum(tokens for _, tokens in parts[_MAX_BAR_PARTS - 1 :])
        parts = [*parts[: _MAX_BAR_PARTS - 1], ("other places", rest)]
    total = max(1, sum(tokens for _, tokens in parts))
    shown: list[CostPart] = []
    begin = 0
    for label, tokens in parts:
        end = begin + tokens
        left = begin * 1000 // total
        shown.append(CostPart(label, tokens, left, end * 1000 // total - left))
        begin = end
    return shown


def _list_notes(library: Library, state: LibraryState, query: LibraryQuery) -> Iterator[str]:
    most = library.limits.max_compared_skills
    if query.show == "lookalikes" and len(state.catalog) > most:
        yield f"Only the first {most:,} of {len(state.catalog):,} skills are compared with each other."
    if query.show == "costly" and state.costly_from:
        yield f"Here that is {format_count(state.costly_from, 'token')} or more."
    if query.agent and state.coverage is None:
        yield "Which agent has which skill is not known here."


def _list_problems(state: LibraryState) -> list[str]:
    """Return what is wrong with lock files, each in a sentence."""
    errors = [f"{error.code}: {error.message}" for error in state.locks.lock_errors]
    return errors + [f"{issue.path}: {issue.message}" for issue in state.locks.interrupted_changes]

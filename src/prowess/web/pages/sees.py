"""The page "What the model sees": the prompt and the tools for a request, their cost, and what was cut and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, cast

from prowess.conversation.rendering import preview
from prowess.conversation.session import Session
from prowess.errors import SkillError
from prowess.format.commands import find_commands
from prowess.select.auto import SELECTOR_NAMES
from prowess.select.budget import describe_cuts
from prowess.text.escapes import dump_json
from prowess.text.tokens import estimate_tokens
from prowess.tools.dialects import DIALECTS
from prowess.tools.model_prompt import ModelPrompt
from prowess.web.pages.library import PAGE_SIZE, read_number
from prowess.web.skill_rows import make_skill_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from prowess.literals import DialectName
    from prowess.select.budget import BudgetReport
    from prowess.skills.catalog import Catalog
    from prowess.skills.skill import Skill
    from prowess.text.spans import Span
    from prowess.web.library import Library

_MAX_TEXT = 1_000
_MAX_BUDGET = 10_000_000
_PEOPLE_ONLY = "Models do not see this skill in a listing. A person's call sends them this text."
SELECTOR_TITLES = {
    "auto": "auto: everything while it fits, else the best for the request",
    "lexical": "lexical: the skills that share words with the request",
    "all": "all: every skill",
}


@dataclass(frozen=True, slots=True)
class SeesQuery:
    """What a person asks the page for."""

    text: str = ""
    """The request that a model would get."""
    dialect: str = "prowess"
    selector: str = "auto"
    budget: int | None = None
    skill: str = ""
    """The name of the skill that is activated, or ``""``."""
    arguments: str = ""
    """What a person writes behind the name of that skill; without it the model loads the skill."""
    page: int = 1
    usual_budget: int | None = None
    """The budget of the library, which counts where an address has none."""
    is_whole: bool = False
    """Whether everything is shown in full, however long."""

    @classmethod
    def parse(cls, parameters: Mapping[str, str], budget: int | None = None) -> SeesQuery:
        """Return the query in the parameters of an address, with the library's ``budget`` where they have none.

        An invalid value counts as absent.
        """
        dialect, selector = parameters.get("dialect", ""), parameters.get("selector", "")
        return cls(
            text=parameters.get("q", "")[:_MAX_TEXT].strip(),
            dialect=dialect if dialect in DIALECTS else "prowess",
            selector=selector if selector in SELECTOR_NAMES else "auto",
            # A field that is not a number means no budget, and an address without the field means the library's.
            budget=read_number(parameters["budget"], _MAX_BUDGET) if "budget" in parameters else budget,
            skill=parameters.get("skill", "")[:_MAX_TEXT].strip(),
            arguments=parameters.get("arguments", "")[:_MAX_TEXT].strip(),
            page=read_number(parameters.get("page", "")) or 1,
            usual_budget=budget,
            is_whole=parameters.get("whole") == "1",
        )

    def to_parameters(self) -> dict[str, str]:
        """Return the parameters of the address that asks for this."""
        return {
            "q": self.text,
            "dialect": "" if self.dialect == "prowess" else self.dialect,
            "selector": "" if self.selector == "auto" else self.selector,
            "budget": ""
            if self.budget == self.usual_budget
            else str(self.budget if self.budget is not None else "none"),
            "skill": self.skill,
            "arguments": self.arguments,
            "page": "" if self.page == 1 else str(self.page),
            "whole": "1" if self.is_whole else "",
        }

    def change(self, **changes: str | int | bool) -> dict[str, str]:
        """Return the parameters of this query with other values."""
        return replace(self, **changes).to_parameters()  # type: ignore[arg-type]  # the fields' own types


class SeenRow(NamedTuple):
    """A skill: its id and name, the tokens that it adds to a listing, what became of it, and why."""

    id: str
    name: str
    tokens: int
    fate: str
    why: str


class SeenSide(NamedTuple):
    """One side of the comparison: how many skills are listed, what that costs, and some of them."""

    skills: int
    tokens: int
    rows: Sequence[SeenRow]


class TextPiece(NamedTuple):
    """A piece of an activation text; ``kind`` is ``filled`` or ``command``, or ``""`` for the author's own text."""

    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class ActivationView:
    """What a model receives when it loads a skill, or why it receives nothing."""

    name: str
    pieces: Sequence[TextPiece] = ()
    tokens: int = 0
    notes: Sequence[str] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class SeesView:
    """What the page shows."""

    query: SeesQuery
    dialects: Sequence[str]
    selectors: Sequence[tuple[str, str]]
    before: SeenSide
    """A listing of all skills, with nothing cut; its rows are one page of them."""
    after: SeenSide
    """What the model receives for the request."""
    cuts: str
    """What was cut, in a few words."""
    highest: int
    """The most tokens that a row has: the length of the longest bar."""
    prompt: str
    is_prompt_cut: bool
    tools: str
    """The JSON of the tools."""
    is_tools_cut: bool
    tool_tokens: int
    pages: int
    activation: ActivationView | None = None

    @property
    def first(self) -> int:
        """The number of the first row of the page, from 1."""
        return (self.query.page - 1) * PAGE_SIZE + 1


def make_sees_view(library: Library, parameters: Mapping[str, str]) -> SeesView:
    """Return what the page shows for the parameters of its address. Nothing of a skill runs."""
    query = SeesQuery.parse(parameters, library.budget)
    state = library.state
    catalog = state.catalog
    dialect = cast("DialectName", query.dialect)  # one of DIALECTS
    shown = ModelPrompt(catalog, query.text, dialect=dialect, selector=query.selector, budget=query.budget)
    pages = max(1, -(-len(shown.eligible) // PAGE_SIZE))
    query = replace(query, page=min(query.page, pages))
    begin = (query.page - 1) * PAGE_SIZE
    before = _make_rows(shown, shown.eligible[begin : begin + PAGE_SIZE])
    after = _make_rows(shown, [catalog[name] for name in shown.report.shown[:PAGE_SIZE]])
    # It takes most of the time for a large library, and is the same for every request.
    whole = state.remember(f"tokens of all skills in {dialect}", shown.count_whole_tokens)
    tools = dump_json(shown.tools) if shown.tools else ""
    limit = max(len(shown.text), len(tools)) if query.is_whole else library.limits.max_page_chars
    return SeesView(
        query=query,
        dialects=tuple(DIALECTS),
        selectors=tuple((name, SELECTOR_TITLES[name]) for name in SELECTOR_NAMES),
        before=SeenSide(len(shown.eligible), whole, before),
        after=SeenSide(len(shown.report.shown), _count_listing(shown), after),
        cuts=describe_cuts(shown.report),
        highest=max((row.tokens for row in (*before, *after)), default=1),
        prompt=shown.text[:limit],
        is_prompt_cut=len(shown.text) > limit,
        tools=tools[:limit],
        is_tools_cut=len(tools) > limit,
        tool_tokens=shown.tool_tokens,
        pages=pages,
        activation=_make_activation(catalog, query) if query.skill else None,
    )


def _count_listing(shown: ModelPrompt) -> int:
    """Return the tokens of what lists the skills: the prompt, or the tools where a dialect lists them there alone."""
    return shown.tokens if shown.text else shown.tool_tokens


# -- the listing -------------------------------------------------------------------------------------------------------


def _make_rows(shown: ModelPrompt, skills: Sequence[Skill]) -> list[SeenRow]:
    costs = shown.count_skill_tokens(skills)
    reasons = shown.report.reasons
    fates = _find_fates(shown.report)
    return [
        SeenRow(
            make_skill_id(skill.name),
            skill.name,
            costs[skill.name],
            fates.get(skill.name, "left out"),
            reasons.get(skill.name, ""),
        )
        for skill in skills
    ]


def _find_fates(report: BudgetReport) -> dict[str, str]:
    fates = dict.fromkeys(report.shown, "listed")
    fates |= dict.fromkeys(report.shortened, "shortened")
    return fates | dict.fromkeys(report.dropped, "without description")


# -- an activation -----------------------------------------------------------------------------------------------------


def _make_activation(catalog: Catalog, query: SeesQuery) -> ActivationView:
    """Return what a model receives when it loads a skill. Its commands stay as they are written."""
    skill = catalog.get(query.skill)
    if skill is None:
        return ActivationView(query.skill, error="There is no skill of this name.")
    # To read a skill of a server is to load it from there, which only a conversation may do.
    if not (skill.is_local or skill.is_inline):
        return ActivationView(skill.name, error="Its text is with its server. This page loads nothing from there.")
    try:
        # Without trust nothing runs: to look at a page must not start a program.
        session = Session(catalog, "any", selector=None, trust=None)
        shown = preview(session, skill.name, query.arguments or None)
    except SkillError as error:
        return ActivationView(skill.name, error=f"{error.code}: {error.message}")
    hidden = [] if skill.model_invocable or query.arguments else [_PEOPLE_ONLY]
    notes = tuple(dict.fromkeys((*hidden, *(issue.message for issue in shown.issues))))
    return ActivationView(skill.name, _split_text(shown.content, shown.marks), estimate_tokens(shown.content), notes)


def _split_text(text: str, marks: Iterable[Span]) -> list[TextPiece]:
    """Return a string in pieces: what was filled in, the commands that would run, and the rest."""
    spans = [(begin, end, "filled") for begin, end in marks]
    # What was filled in is never searched for commands, so a command that overlaps it is none.
    filled = [(begin, end) for begin, end, _ in spans]
    spans += [
        (command.begin, command.end, "command")
        for command in find_commands(text)
        if not any(begin < command.end and command.begin < end for begin, end in filled)
    ]
    pieces: list[TextPiece] = []
    position = 0
    for begin, end, kind in sorted(spans):
        pieces += [TextPiece(text[position:begin]), TextPiece(text[begin:end], kind)]
        position = end
    return [piece for piece in (*pieces, TextPiece(text[position:])) if piece.text]

"""The listing of skills that models are shown, with the sentences around it, within a budget.

The listing is in two places, with one set of entries: in the server's instructions, and in the description of the
tool that loads a skill. Some clients show their model no instructions of a server, and those that show them never ask
for them again. The description of a tool reaches every model, and is refreshed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from prowess.select.budget import fit_listing
from prowess.skills.render import make_entries, render_lines
from prowess.text.markup import CONTENT_TAG, neutralize_tags
from prowess.text.quantities import format_count
from prowess.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.mcp.options import ServeOptions
    from prowess.skills.render import ListingEntry
    from prowess.skills.skill import Skill

_ELEMENT = "available_skills"
_SKILLS_INTRO = "Skills are instructions for particular tasks."
_LOAD_INTRO = "Load a skill: instructions for a particular task."
_NEW_SKILLS_INTRO = "This is not part of the answer above. New skills have come since the skills were listed."
_SERVER_INTRO = "This server has skills: instructions for particular tasks."
_LISTED_IN_TOOL = "The description of load_skill lists them: when a task fits one of them, load it before you begin."
_SEARCH_GUIDE = (
    "Before you begin a task, call search_skills with a few words about it, and load_skill with the name of a skill "
    "that fits."
)
_SHORTENED_NOTE = "Descriptions that end in \u2026 are shortened: search_skills shows them whole."
_LOAD_GUIDE = "call load_skill with that name before you begin, and follow what it says"


class ListingTexts(NamedTuple):
    """What a model reads about the skills in each place; ``""`` for a place that says nothing."""

    instructions: str
    description: str
    """The description of the tool that loads a skill; ``""`` keeps the tool's own."""
    needs_search: bool
    """Whether a model needs the tool that searches: the listing names it, or some skills are not listed."""


def write_search_guide(options: ServeOptions) -> str:
    """Return the instructions for a server whose listing is elsewhere or is not loaded yet."""
    guide = _LISTED_IN_TOOL if options.lists_in("tools") else _SEARCH_GUIDE
    return f"{_SERVER_INTRO} {guide}" if options.tools else ""


def write_listing(skills: Sequence[Skill], options: ServeOptions) -> ListingTexts:
    """Return the listings of these skills for the places that the options name; all are empty without a skill."""
    if not skills:
        return ListingTexts("", "", needs_search=False)
    in_tool = options.lists_in("tools")
    if not options.lists_in("instructions") and not in_tool:
        return ListingTexts(write_search_guide(options), "", needs_search=True)
    writer = _ListingWriter(skills, options)
    # Both places hold one listing, so it has to fit behind the longer of the two beginnings.
    listing, is_cut = writer.fit_listing(_LOAD_INTRO if in_tool else _SKILLS_INTRO)
    instructions = f"{_SKILLS_INTRO}{listing}" if options.lists_in("instructions") else write_search_guide(options)
    # A handshake that was answered before the load named the search tool, unless the listing is in a tool.
    return ListingTexts(instructions, f"{_LOAD_INTRO}{listing}" if in_tool else "", needs_search=is_cut or not in_tool)


def write_new_skills(skills: Sequence[Skill], options: ServeOptions) -> str:
    """Return the text about skills that a model has not been shown, within the budget of a listing."""
    return f"{_NEW_SKILLS_INTRO}{_ListingWriter(skills, options).fit_listing(_NEW_SKILLS_INTRO)[0]}"


class _ListingWriter:
    """Writes listings with as many entries of these skills as the budget allows."""

    def __init__(self, skills: Sequence[Skill], options: ServeOptions) -> None:
        self._skills = skills
        self._options = options
        self._whole = make_entries(skills)

    def fit_listing(self, begin: str) -> tuple[str, bool]:
        """Return the text behind ``begin``, so that both are within the budget, and whether anything was cut."""
        budget = sys.maxsize if self._options.budget is None else self._options.budget
        text, report = fit_listing(
            self._skills, budget, lambda entries: begin + self._write_entries(entries), self._count_cost
        )
        return text.removeprefix(begin), report.is_cut

    def _count_cost(self, text: str) -> int:
        """Return the tokens of a string; more than any budget has when it has too many characters."""
        limit = self._options.max_chars
        # Clients in JavaScript cut by UTF-16 units, of which a character outside the basic plane has two.
        if limit is not None and len(text.encode("utf-16-le", "surrogatepass")) // 2 >= limit:
            return sys.maxsize + 1
        return 0 if self._options.budget is None else estimate_tokens(text)

    def _write_entries(self, entries: Sequence[ListingEntry]) -> str:
        """Return the text with these entries: how to use them, one line for each, and what is left out."""
        if not self._options.tools:
            return self._join_blocks(" This server has these:", entries, self._write_omission(entries, "."))
        if not entries:
            return f" There are {format_count(len(self._whole), 'skill')}, not listed here. {_SEARCH_GUIDE}"
        if any(description for _, description, _ in entries):
            end = "" if list(entries) == self._whole else _SHORTENED_NOTE
            return self._join_blocks(f" When a task fits a description below, {_LOAD_GUIDE}.", entries, end)
        guide = f" When a task fits one of the names below, {_LOAD_GUIDE}; search_skills says what each is for."
        return self._join_blocks(guide, entries, self._write_omission(entries, ": find them with search_skills."))

    def _write_omission(self, entries: Sequence[ListingEntry], end: str) -> str:
        count = len(self._whole) - len(entries)
        return f"{count} more {'is' if count == 1 else 'are'} not listed{end}" if count else ""

    def _join_blocks(self, guide: str, entries: Sequence[ListingEntry], end: str) -> str:
        rows = neutralize_tags(render_lines(entries), _ELEMENT, CONTENT_TAG)
        blocks = (guide, f"<{_ELEMENT}>\n{rows}\n</{_ELEMENT}>", end)
        return "\n\n".join(block for block in blocks if block)

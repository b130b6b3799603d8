"""The selectors that people choose by name: in settings, on a command line, on a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from prowess.select.auto_selector import AutoSelector
from prowess.select.selectors import LexicalSelector

if TYPE_CHECKING:
    from prowess.select.selectors import Selector

SELECTOR_NAMES = ("auto", "lexical", "all")


def make_named_selector(
    name: str, dialect: str = "prowess", *, budget: int | None = None, window: int | None = None
) -> Selector | Literal["auto"] | None:
    """Return the selector of a session by its name; ``None``, for the name ``all``, shows everything.

    ``budget`` is how many tokens the listing may cost, ``window`` the context window of the model.
    """
    if name == "all":
        return None
    if name == "lexical":
        return LexicalSelector()
    # The dialects of other systems show everything, as these systems do: only the default does not count there.
    if dialect != "prowess" or (budget is None and window is None):
        return "auto"
    return AutoSelector(budget) if budget is not None else AutoSelector(window=window)

"""The selector that the settings name, and the options of a command line that override these settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

import click

from prowess.cli.options import group_options
from prowess.select.auto import SELECTOR_NAMES, make_named_selector

if TYPE_CHECKING:
    import prowess
    from prowess.settings import Settings


class SelectionFlags(TypedDict):
    """How the command line has skills chosen. Each key is the name of the setting that the flag overrides."""

    selector: str | None
    window: int | None


selection_options = group_options(
    "selection",
    SelectionFlags,
    selector=click.option(
        "--selector", type=click.Choice(SELECTOR_NAMES), help="What chooses the skills that fit a query."
    ),
    window=click.option(
        "--window",
        type=click.IntRange(0),
        metavar="TOKENS",
        help="The context window of the model; with 'auto' the listing takes 2 % of it.",
    ),
)
"""``--selector`` and ``--window``; the command gets them as ``selection``."""


def make_selector(settings: Settings, dialect: str = "prowess") -> prowess.Selector | Literal["auto"] | None:
    """Return the selector of a session as the settings have it; ``None`` shows everything."""
    budget, window = settings.number("budget"), settings.number("window")
    return make_named_selector(settings.text("selector"), dialect, budget=budget, window=window)

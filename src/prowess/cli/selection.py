"""The session and the selector of a command, made from the settings and the options that override them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

import click

from prowess.cli.lock_states import warn_edited_skills
from prowess.cli.options import group_options
from prowess.cli.skill_lookup import find_in_catalog, is_path, load_catalog
from prowess.conversation.acting.trust import Trust
from prowess.conversation.session import Session
from prowess.select.auto import SELECTOR_NAMES, make_named_selector
from prowess.skills.catalog import Catalog

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


def open_session(settings: Settings, name: str = "", *, run: bool = True) -> tuple[prowess.Session, str]:
    """Return a session, and the name of the skill that the command line means.

    Commands of trusted skills run in the session, unless ``run`` is false.
    """
    catalog = Catalog() if is_path(name) else load_catalog(settings)
    if name:
        skill = find_in_catalog(catalog, name, verify=bool(settings["verify"]))
        if skill is not catalog.get(skill.name):  # a folder that was named
            catalog = Catalog([skill])
        name = skill.name
    warn_edited_skills([catalog[name]] if name else catalog.skills)
    selector = make_selector(settings, settings.text("dialect"))
    # Any tool is allowed: what is shown is what a skill asks for, and showing it approves nothing.
    session = Session(catalog, "any", selector=selector, trust=Trust() if run else None, filter=settings.text("filter"))
    return session, name

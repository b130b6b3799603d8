"""Pages as HTML: the templates, which escape everything that skills say, the pieces that they share, the error page."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from prowess.files.paths import shorten_path
from prowess.hints import HINTS
from prowess.text.escapes import escape_text
from prowess.text.hidden_characters import escape_invisible
from prowess.text.quantities import format_count, format_size

if TYPE_CHECKING:
    from prowess.web.links import ServedLinks
    from prowess.web.pages.skill import SkillView


_FOLDER = os.path.dirname(__file__)
STATIC_FOLDER = os.path.join(_FOLDER, "static")


def _show_value(value: object) -> object:
    """Return what a template prints for a value: text with every invisible character written out.

    A character that turns the direction of the text around would otherwise show a file name as another one.
    """
    return escape_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value


_REPLACE_TITLE = "Replace an existing one"
_ROLLBACK_TITLE = "Follow sources that went back to an older state"
_REMOVE_TITLE = "Remove what nothing asks for any more"
REMEDIES: dict[str, str] = {
    "address-refused": "say 'prowess install --allow-private' if that machine is meant",
    "already-installed": f"ask for an update of it, or tick “{_REPLACE_TITLE}” when you install it",
    "declared-no-more": f"declare it again in prowess.toml, or tick “{_REMOVE_TITLE}” in a sync",
    "local-edits": "keep your changes elsewhere, or plan to overwrite them in an update, which keeps a backup",
    "name-taken": f"remove the other one, or tick “{_REPLACE_TITLE}” when you install this one",
    "not-in-lock": f"take it over on the page of agents, or tick “{_REMOVE_TITLE}” in a sync, which keeps a backup",
    "plain-http": "use https, or say 'prowess install --allow-http' if the network is trusted",
    "rolled-back": f"ask whoever publishes it; if going back is meant, tick “{_ROLLBACK_TITLE}” in an update",
}


class _HintedProblem(Protocol):
    """An error, an issue, a finding or the page of an error: it has a code, and the hint of the library."""

    @property
    def code(self) -> str:
        """The code of the problem."""

    @property
    def hint(self) -> str:
        """What the library says to do about it."""


def _find_remedy(problem: _HintedProblem) -> str:
    """Return what to do about a problem, in the words of the console; ``""`` if nothing is known."""
    return REMEDIES.get(problem.code) or problem.hint


def _make_environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(os.path.join(_FOLDER, "templates")),
        autoescape=True,
        finalize=_show_value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        count=format_count,
        size=format_size,
        short=shorten_path,
        number=_show_number,
        with_counts=_with_counts,
        clock=_show_time,
        remedy=_find_remedy,
        field=_make_field,
    )
    environment.globals.update(
        render_body=_render_body,
        replace_title=_REPLACE_TITLE,
        rollback_title=_ROLLBACK_TITLE,
        remove_title=_REMOVE_TITLE,
    )
    return environment


def _render_body(view: SkillView, links: ServedLinks) -> Markup:
    """Return the instructions of a skill as HTML, with links to the pages of its files."""
    from prowess.web.markdown import render_markdown

    files = frozenset(view.paths)
    return render_markdown(view.body, files, partial(links.file, view.id), partial(links.image, view.id))


def _show_unseen(text: str) -> str:
    """Return text that a person decides on: every character that nobody sees is written out, also those of emoji."""
    return "\n".join(map(escape_invisible, text.split("\n")))


def _make_field(value: str) -> Markup:
    """Return the value of a field of a form, which comes back: characters of ordinary writing stay in it."""
    return escape(escape_text(value))


def _show_number(number: int) -> str:
    return f"{number:,}"


def _show_time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def _with_counts(query: dict[str, str]) -> dict[str, str]:
    return {**query, "counts": "1"}


def _show_value_unseen(value: object) -> object:
    return _show_unseen(value) if isinstance(value, str) and not isinstance(value, Markup) else value


_ENVIRONMENT = _make_environment()
_PLAN_ENVIRONMENT = _ENVIRONMENT.overlay(finalize=_show_value_unseen)
"""For the pages on which a person decides."""


def render_page(
    name: str, view: object, links: ServedLinks, *, actions: frozenset[str] = frozenset(), form_token: str = ""
) -> str:
    """Return the HTML of a page: the template ``name``, which shows ``view``.

    ``actions`` are the changes that the page may offer, and ``form_token`` is what each of their forms carries.
    """
    values: dict[str, Any] = {"page": name, "view": view, "link": links, "actions": actions, "form_token": form_token}
    environment = _PLAN_ENVIRONMENT if name == "plan" else _ENVIRONMENT
    return environment.get_template(f"{name}.html").render(values)


@dataclass(frozen=True, slots=True)
class ErrorView:
    """What went wrong: the HTTP status, the message, and the code of an error of Prowess."""

    status: int
    message: str
    code: str = ""

    @property
    def hint(self) -> str:
        """What to do about it; ``""`` where nobody knows."""
        return HINTS.get(self.code, "")

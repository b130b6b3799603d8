"""``prowess config``: every setting, its value, and where that came from."""

from __future__ import annotations

import click

from prowess.cli.command import command as new_command
from prowess.cli.options import home_relative, json_option, settings_of
from prowess.cli.render import printer
from prowess.cli.render.blocks import Table, line
from prowess.discovery.settings import SETTINGS, Setting
from prowess.errors import SourceError, nearest_first


def _complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    return [known.name for known in SETTINGS if known.name.startswith(incomplete)]


@new_command(
    "config",
    ("prowess config", "everything"),
    ("prowess config budget", "one value"),
    ("PROWESS_BUDGET=2000 prowess config", "what a variable changes"),
)
@click.argument("name", required=False, shell_complete=_complete)
@json_option
def command(name: str | None, *, as_data: bool) -> None:
    """Show every setting, its value, and where that came from: default, file, variable or flag.

    Settings stand under [settings] in the project's prowess.toml and in prowess/config.toml of your configuration; a
    variable is PROWESS_ and the name in capitals. Later wins: default, your file, the project's, variable, flag.
    """
    settings = settings_of()
    known = [found.name for found in settings]
    if name is not None and name not in known:
        raise SourceError(
            f"no setting {name!r}; nearest: {', '.join(nearest_first(name, known)[:3])}", code="unknown-setting"
        )
    chosen = [found for found in settings if name in (None, found.name)]
    printer.answer(
        lambda: {"settings": [_data(found) for found in chosen]},
        lambda: [line(_shown(chosen[0]))] if name else [_table(chosen)],
        as_data=as_data,
    )


def _data(found: Setting) -> dict[str, object]:
    value = list(found.value) if isinstance(found.value, tuple) else found.value
    return {"name": found.name, "value": value, "origin": found.origin}


def _shown(found: Setting) -> str:
    if isinstance(found.value, tuple):
        return ", ".join(found.value)
    return (
        "" if found.value is None else str(found.value).lower() if isinstance(found.value, bool) else str(found.value)
    )


def _table(chosen: list[Setting]) -> Table:
    about = {known.name: known.about for known in SETTINGS}
    rows = [((s.name, "name"), _shown(s) or "-", (home_relative(s.origin), "dim"), about[s.name]) for s in chosen]
    return Table(rows, head=("setting", "value", "from", "what it is"))

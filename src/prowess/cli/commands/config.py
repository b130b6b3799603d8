"""``prowess config``: shows every setting, its value, and where the value came from."""

from __future__ import annotations

import click

from prowess.cli.command_class import new_command
from prowess.cli.options import json_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import Table, line
from prowess.cli.skill_lookup import load_cli_settings
from prowess.errors import SourceError
from prowess.files.paths import shorten_path
from prowess.settings import SETTINGS, Setting
from prowess.text.redaction import hide_secrets, scrub_text
from prowess.text.spelling import sort_by_similarity


@new_command(
    "config",
    ("prowess config", "everything"),
    ("prowess config budget", "one value"),
    ("PROWESS_BUDGET=2000 prowess config", "what a variable changes"),
)
@click.argument(
    "name",
    required=False,
    shell_complete=lambda _ctx, _param, begin: [known.name for known in SETTINGS if known.name.startswith(begin)],
)
@json_option
def command(name: str | None, *, as_data: bool) -> None:
    """Show every setting, its value, and where the value came from: default, file, variable or flag.

    Settings are under [settings] in the project's prowess.toml, and in prowess/config.toml of your configuration
    folder. A variable is PROWESS_ and the name in capitals. Later ones win: default, your file, the project's file,
    variable, flag.
    """
    settings = load_cli_settings()
    known = [setting.name for setting in settings]
    if name is not None and name not in known:
        raise SourceError(
            f"no setting {name!r}; nearest: {', '.join(sort_by_similarity(name, known)[:3])}", code="unknown-setting"
        )
    chosen = [_without_secrets(setting) for setting in settings if name in (None, setting.name)]
    printer.print_answer(
        lambda: {"settings": [_to_dict(setting) for setting in chosen]},
        lambda: [line(_format_value(chosen[0]))] if name else [_to_table(chosen)],
        as_data=as_data,
    )


def _without_secrets(setting: Setting) -> Setting:
    """Return a setting without the passwords and queries of the addresses in it."""
    value = setting.value
    if isinstance(value, str):
        value = scrub_text(hide_secrets(value))
    elif isinstance(value, tuple):
        value = tuple(scrub_text(hide_secrets(each)) for each in value)
    return Setting(setting.name, value, setting.origin)


def _to_dict(setting: Setting) -> dict[str, object]:
    value = list(setting.value) if isinstance(setting.value, tuple) else setting.value
    return {"name": setting.name, "value": value, "origin": setting.origin}


def _format_value(setting: Setting) -> str:
    if isinstance(setting.value, tuple):
        return ", ".join(setting.value)
    return (
        ""
        if setting.value is None
        else str(setting.value).lower()
        if isinstance(setting.value, bool)
        else str(setting.value)
    )


def _to_table(chosen: list[Setting]) -> Table:
    about = {known.name: known.about for known in SETTINGS}
    rows = [((s.name, "name"), _format_value(s) or "-", (shorten_path(s.origin), "dim"), about[s.name]) for s in chosen]
    return Table(rows, head=("setting", "value", "from", "what it is"))

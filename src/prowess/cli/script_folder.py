"""Where a script works: the option that says so, and a word for those who expected it to work here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from prowess.cli.render import printer

if TYPE_CHECKING:
    from collections.abc import Iterable

folder_option = click.option(
    "--folder",
    type=click.Path(file_okay=False, exists=True),
    help="Where scripts work and may write; otherwise a new folder that is deleted afterwards.",
)


def note_empty_folder(arguments: Iterable[object], folder: str | None) -> None:
    """Say that a script has not seen this folder, where it was given the name of something that lies here."""
    here = [word for word in arguments if isinstance(word, str) and word and os.path.lexists(word)]
    if here and folder is None:
        printer.note(
            f"note: it worked in a new, empty folder, where {here[0]!r} is not; --folder . lets it work and write here"
        )

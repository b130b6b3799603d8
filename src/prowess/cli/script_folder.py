"""The working folder of scripts: its option, and a note for people who expected it to be this folder."""

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
    help="The folder that scripts work in and may write to; by default a new one, deleted afterwards.",
)


def note_empty_folder(arguments: Iterable[object], folder: str | None) -> None:
    """Print a note if a script got the name of a file here as an argument, but worked in another folder."""
    # Arguments of a model's call may be of any type.
    files = [word for word in arguments if isinstance(word, str) and word and os.path.lexists(word)]
    if files and folder is None:
        printer.note(
            f"note: the script ran in a new, empty folder without {files[0]!r}; --folder . lets it read and write here"
        )

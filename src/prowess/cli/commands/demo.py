"""``prowess demo``: shows all of it in under a minute, without API keys."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from prowess.cli.command_class import new_command
from prowess.cli.demo.steps import DemoStep, run_steps, step_to_blocks
from prowess.cli.options import json_option
from prowess.cli.render import printer
from prowess.cli.render.plain_text import render_text
from prowess.cli.render.rich_text import make_console, print_on_terminal
from prowess.files.delete import temporary_folder
from prowess.files.write import write_atomic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.cli.render.blocks import Block


@new_command(
    "demo",
    ("prowess demo", "watch it"),
    ("prowess demo --record demo.svg", "also as a picture of the screen"),
)
@click.option("--record", type=click.Path(dir_okay=False), help="Write a picture of the screen (SVG) as well.")
@json_option
def command(*, record: str | None, as_data: bool) -> None:
    """Show the main job from end to end: a scripted model holds a conversation with real skills.

    You see what the model sees, each call and its result, a refused file, a script and a command before and after
    trust, a fork, a pinned install, a change of it that is detected, a skill that a site publishes, the cost of it all
    in tokens, what is left of a listing of 500 skills for one request, and the agent of 'prowess run' at a task.
    Everything happens in a temporary folder. Nothing of yours is read or changed.
    """
    steps: list[DemoStep] = []
    with temporary_folder("prowess-demo-") as folder:
        for number, step in enumerate(run_steps(Path(folder)), 1):
            steps.append(step)
            if not as_data:  # at once: a person watches, and some steps take seconds
                printer.print_blocks(step_to_blocks(step, number))
    if as_data:
        printer.print_answer(
            lambda: {"steps": [{"title": step.title, "text": render_text(step.blocks)} for step in steps]},
            list,
            as_data=True,
        )
    if record is not None:
        _write_svg((block for number, step in enumerate(steps, 1) for block in step_to_blocks(step, number)), record)
        printer.note(f"recorded in {record}", quiet=as_data)


_WIDTH = 80
_FONT_FACES = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
"""The fonts that rich names. A viewer would fetch them from another site, so they are taken out."""


def _write_svg(blocks: Iterable[Block], path: str) -> None:
    """Write a picture of what a terminal would show. Equal blocks give equal files."""
    screen = make_console(io.StringIO(), record=True, width=_WIDTH, force_terminal=True, color_system="truecolor")
    print_on_terminal(blocks, screen)
    # A fixed id: rich would make up one from the content, and every change would touch every line.
    svg = _FONT_FACES.sub("", screen.export_svg(title="prowess demo", unique_id="prowess"))
    write_atomic(path, svg.encode("utf-8"), mode=0o644)

"""``prowess doctor``: what works here and what does not."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from prowess.cli.command_class import new_command
from prowess.cli.options import json_option
from prowess.cli.remedies import REMEDIES
from prowess.cli.render import printer
from prowess.cli.render.blocks import Line, Table, line
from prowess.health import Diagnosis, doctor
from prowess.spec.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.cli.render.blocks import Block, Style

_STYLES: dict[str, Style] = {"ok": "good", "note": "dim", "problem": "bad"}


@new_command("doctor", ("prowess doctor", "what works here and what does not"))
@json_option
def command(*, as_data: bool) -> int:
    """Look at programs, extras, settings, folders, agents, links, lock files, skills and grants.

    Each problem comes with its remedy; an extra that is not installed is none. Nothing is changed.
    Exit status 1: there is a problem.
    """
    with printer.show_progress("looking around"):
        found = doctor()
    data = [asdict(one) | {"remedy": _find_remedy(one)} for one in found]
    printer.print_answer(lambda: {"diagnoses": data}, lambda: _to_blocks(found), as_data=as_data)
    return 1 if any(one.state == "problem" for one in found) else 0


def _to_blocks(found: tuple[Diagnosis, ...]) -> Iterator[Block]:
    """What works and what is worth a note, then each problem once, those of one remedy together."""
    well = [one for one in found if one.state != "problem"]
    yield Table([((one.state, _STYLES[one.state]), (one.topic, "name"), one.message) for one in well])
    problems: dict[str, list[Diagnosis]] = {}
    for one in found:
        if one.state == "problem":
            problems.setdefault(_find_remedy(one), []).append(one)
    yield Line()
    if not problems:
        yield line(("No problems.", "good"))
        return
    yield line((f"{format_count(len(found) - len(well), 'problem')}:", "bad"))
    for remedy, alike in problems.items():
        for one in alike:
            yield line((f"{one.topic}: ", "name"), one.message, indent=2)
        yield line(("remedy: ", "dim"), remedy, indent=4)


def _find_remedy(one: Diagnosis) -> str:
    return REMEDIES.get(one.code, one.remedy)

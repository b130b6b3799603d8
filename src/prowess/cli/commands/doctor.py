"""``prowess doctor``: reports what works here and what does not."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from prowess.cli.command_class import new_command
from prowess.cli.health import Diagnosis, doctor
from prowess.cli.issues import REMEDIES
from prowess.cli.options import json_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Line, Style, Table, line
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator


_STYLES: dict[str, Style] = {"ok": "good", "note": "dim", "problem": "bad"}


@new_command("doctor", ("prowess doctor", "what works here and what does not"))
@json_option
def command(*, as_data: bool) -> int:
    """Examine programs, extras, settings, folders, agents, links, lock files, skills and grants.

    Each problem comes with its remedy. A missing extra is not a problem. Nothing is changed.
    Exit status 1: there is a problem.
    """
    with printer.show_progress("looking around"):
        diagnoses = doctor()
    data = [asdict(diagnosis) | {"remedy": _find_remedy(diagnosis)} for diagnosis in diagnoses]
    printer.print_answer(lambda: {"diagnoses": data}, lambda: _to_blocks(diagnoses), as_data=as_data)
    return 1 if any(diagnosis.state == "problem" for diagnosis in diagnoses) else 0


def _to_blocks(diagnoses: tuple[Diagnosis, ...]) -> Iterator[Block]:
    """Return what works, then the problems, grouped by remedy."""
    healthy = [diagnosis for diagnosis in diagnoses if diagnosis.state != "problem"]
    yield Table(
        [
            ((diagnosis.state, _STYLES[diagnosis.state]), (diagnosis.topic, "name"), diagnosis.message)
            for diagnosis in healthy
        ]
    )
    problems: dict[str, list[Diagnosis]] = {}
    for diagnosis in diagnoses:
        if diagnosis.state == "problem":
            problems.setdefault(_find_remedy(diagnosis), []).append(diagnosis)
    yield Line()
    if not problems:
        yield line(("No problems.", "good"))
        return
    yield line((f"{format_count(len(diagnoses) - len(healthy), 'problem')}:", "bad"))
    for remedy, same_remedy in problems.items():
        for diagnosis in same_remedy:
            yield line((f"{diagnosis.topic}: ", "name"), diagnosis.message, indent=2)
        yield line(("remedy: ", "dim"), remedy, indent=4)


def _find_remedy(diagnosis: Diagnosis) -> str:
    # The remedies of the library name Python keywords; the command line has words of its own.
    return REMEDIES.get(diagnosis.code, diagnosis.remedy)

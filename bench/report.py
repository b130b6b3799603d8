"""The lines of a report: what was measured, what it cost, and whether it kept the bound that the project set."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from bench import table

TIMES = "\N{MULTIPLICATION SIGN}"


class Row(NamedTuple):
    """One line of the report; a ``figure`` is judged where there is a ``bound``."""

    what: str
    skills: str
    cost: str
    figure: float | None = None
    unit: str = f"{TIMES} floor"
    bound: float | None = None
    aim: float | None = None

    def cells(self) -> table.Row:
        return (self.what, self.skills, self.cost, self._shown(), self._demanded(), self._verdict())

    def _shown(self) -> str:
        return "" if self.figure is None else f"{self.figure:,.2f} {self.unit}"

    def _demanded(self) -> str:
        if self.bound is None:
            return ""
        return f"≤ {self.bound:g}" + (f", aim {self.aim:g}" if self.aim is not None else "")

    def _verdict(self) -> str:
        if self.bound is None or self.figure is None:
            return ""
        return "PASS" if self.figure <= self.bound else "OVER"


HEAD: table.Row = ("measured", "skills", "CPU time", "compared", "demanded", "")

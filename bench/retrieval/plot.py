"""The plot of a selection, as SVG: what a listing costs, and how often it shows the right skill."""

from __future__ import annotations

from html import escape
from math import log10
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

WIDTH, HEIGHT = 880, 400
PANEL_WIDTH, PANEL_HEIGHT = 330, 250
PANEL_TOP, PANEL_LEFTS = 96, (90, 516)
# The picture brings its own ground, so that it is readable on any page; the second half is for dark screens.
_STYLE = """
  .ground { fill: #ffffff; stroke: #d0d4da }
  text { fill: #24292f; font: 13px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif }
  .title { font-weight: 600; font-size: 14px }
  .quiet { fill: #57606a }
  .grid { stroke: #e4e7eb; stroke-width: 1 }
  .line { fill: none; stroke-width: 2.5; stroke-linejoin: round }
  .a { stroke: #6e7781; fill: #6e7781 } .b { stroke: #b35900; fill: #b35900 }
  .c { stroke: #0b62c4; fill: #0b62c4 } .d { stroke: #1a7f37; fill: #1a7f37 }
  .line { fill: none }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117; stroke: #30363d }
    text { fill: #e6edf3 }
    .quiet { fill: #9da7b1 }
    .grid { stroke: #262c34 }
    .a { stroke: #9da7b1; fill: #9da7b1 } .b { stroke: #f0954a; fill: #f0954a }
    .c { stroke: #6cb0ff; fill: #6cb0ff } .d { stroke: #56d364; fill: #56d364 }
    .line { fill: none }
  }
"""
_DASHES = ("2 4", "8 4", "", "")
_MARKS: tuple[Callable[[float, float], str], ...] = (
    lambda x, y: f"M{x - 4:.1f} {y - 4:.1f}h8v8h-8z",  # a square
    lambda x, y: f"M{x:.1f} {y - 5:.1f}l5 9h-10z",  # a triangle
    lambda x, y: f"M{x - 4.5:.1f} {y:.1f}a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",  # a disc
    lambda x, y: f"M{x:.1f} {y - 5.5:.1f}l5.5 5.5l-5.5 5.5l-5.5 -5.5z",  # a diamond
)
"""Each curve has a mark and a dash of its own too, so that it can be told without colours."""


class Curve(NamedTuple):
    """One way to list skills: for each size of the library the tokens, and the share of requests that it serves."""

    name: str
    sizes: tuple[int, ...]
    tokens: tuple[float, ...]
    shares: tuple[float, ...]


def draw_selection(curves: Sequence[Curve]) -> str:
    """Return the SVG: the tokens of a listing at the left, the share of requests whose skill it shows at the right."""
    sizes = curves[0].sizes
    tops = [10 ** (int(log10(max(curve.tokens))) + 1) for curve in curves]
    powers = range(2, round(log10(max(tops))) + 1)
    token_ticks = {10.0**power: f"{10**power:,}" for power in powers}
    share_ticks = {share / 100: f"{share} %" for share in range(0, 101, 20)}
    first, last = min(token_ticks), max(token_ticks)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="title">',
        f'<title id="title">{escape(_describe(curves))}</title>',
        f"<style>{_STYLE}</style>",
        f'<rect class="ground" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8"/>',
        *_draw_legend(curves),
        *_draw_axes(0, "Tokens of the listing", sizes, token_ticks, lambda value: _part(value, first, last)),
        *_draw_axes(1, "Requests whose skill is shown", sizes, share_ticks, lambda value: value),
    ]
    for number, curve in enumerate(curves):
        xs = [_x(0, sizes, size) for size in curve.sizes]
        parts += _draw_curve(number, xs, [_y(_part(max(tokens, first), first, last)) for tokens in curve.tokens])
        xs = [_x(1, sizes, size) for size in curve.sizes]
        parts += _draw_curve(number, xs, [_y(share) for share in curve.shares])
    return "\n".join([*parts, "</svg>"]) + "\n"


def _describe(curves: Sequence[Curve]) -> str:
    """Return the sentence that a screen reader reads in place of the picture."""
    ends = (f"{curve.name}: {curve.tokens[-1]:,.0f} tokens, {curve.shares[-1]:.0%}" for curve in curves)
    return f"With {curves[0].sizes[-1]:,} skills, tokens and share of requests whose skill is shown: {'; '.join(ends)}."


def _part(value: float, first: float, last: float) -> float:
    """Return where a value lies between two others on a logarithmic scale, from 0 to 1."""
    return log10(value / first) / log10(last / first)


def _x(panel: int, sizes: Sequence[int], size: float) -> float:
    return PANEL_LEFTS[panel] + PANEL_WIDTH * (0.04 + 0.92 * _part(size, sizes[0], sizes[-1]))


def _y(share: float) -> float:
    return PANEL_TOP + PANEL_HEIGHT * (1 - share)


def _draw_legend(curves: Sequence[Curve]) -> Iterator[str]:
    left: float = PANEL_LEFTS[0]
    for number, curve in enumerate(curves):
        yield from _draw_curve(number, [left, left + 34], [28, 28], marks=[(left + 17, 28)])
        yield f'<text x="{left + 42}" y="32">{escape(curve.name)}</text>'
        left += 68 + 6.7 * len(curve.name)  # about the width of a character


def _draw_axes(
    panel: int, title: str, sizes: Sequence[int], ticks: dict[float, str], place: Callable[[float], float]
) -> Iterator[str]:
    left = PANEL_LEFTS[panel]
    bottom = PANEL_TOP + PANEL_HEIGHT
    yield f'<text class="title" x="{left}" y="{PANEL_TOP - 20}">{title}</text>'
    for value, label in ticks.items():
        y = _y(place(value))
        yield f'<path class="grid" d="M{left} {y:.1f}h{PANEL_WIDTH}"/>'
        yield f'<text class="quiet" x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
    for size in sizes:
        x = _x(panel, sizes, size)
        yield f'<text class="quiet" x="{x:.1f}" y="{bottom + 20}" text-anchor="middle">{size:,}</text>'
    middle = left + PANEL_WIDTH / 2
    yield f'<text class="quiet" x="{middle:.1f}" y="{bottom + 42}" text-anchor="middle">skills in the library</text>'


def _draw_curve(
    number: int, xs: Sequence[float], ys: Sequence[float], marks: Sequence[tuple[float, float]] | None = None
) -> Iterator[str]:
    kind = "abcd"[number]
    points = list(zip(xs, ys, strict=True))
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    dash = f' stroke-dasharray="{_DASHES[number]}"' if _DASHES[number] else ""
    yield f'<path class="{kind} line" d="{path}"{dash}/>'
    yield f'<path class="{kind}" d="{"".join(_MARKS[number](x, y) for x, y in marks or points)}"/>'

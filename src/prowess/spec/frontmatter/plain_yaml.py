"""The plain subset of YAML, read without a YAML parser: what nearly every real head is written in.

``key: value`` lines, quoted values, wrapped and block text, lists and mappings by indentation. Whatever is not surely
in the subset is left to PyYAML (``None``), so the two paths can only agree; the tests compare them on real heads and
on generated text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prowess.limits import Limits
    from prowess.model import Value

MAX_CHARS = 4096  # so short a text stays within every bound on events and lengths
MAX_DEPTH = 8  # real heads stay below it; deeper ones are PyYAML's, and judged by Limits


def suffices(limits: Limits) -> bool:
    """Whether whatever is plain keeps these limits, so that they need not be looked at."""
    return (
        limits.max_frontmatter_bytes >= 4 * MAX_CHARS
        and limits.max_yaml_depth >= MAX_DEPTH
        and limits.max_yaml_events >= MAX_CHARS - 96
        and limits.max_scalar_chars >= MAX_CHARS
    )


def parse_plain(text: str) -> tuple[dict[str, Value], dict[str, int]] | None:
    """What ``parse_yaml`` gives, or ``None`` where the text is not surely in the plain subset."""
    if len(text) > MAX_CHARS:
        return None
    from prowess.spec.frontmatter.plain_patterns import read_plain  # noqa: PLC0415 - its patterns take a while to compile

    return read_plain(text, MAX_DEPTH)

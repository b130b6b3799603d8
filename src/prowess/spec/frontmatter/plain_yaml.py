"""The plain subset of YAML, read without a YAML parser: what nearly every real head is written in.

``key: value`` lines, quoted values, wrapped and block text, lists and mappings by indentation. Whatever is not surely
in the subset is left to PyYAML (``None``), so the two paths can only agree; the tests compare them on real heads and
on generated text.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from prowess.limits import Limits
    from prowess.model import Value

MAX_PLAIN_CHARS = 4096  # so short a text stays within every bound on events and lengths
MAX_PLAIN_DEPTH = 8  # real heads stay below it; deeper ones are PyYAML's, and judged by Limits


def can_skip_limit_checks(limits: Limits) -> bool:
    """Whether whatever is plain keeps these limits, so that they need not be looked at."""
    return (
        limits.max_frontmatter_bytes >= 4 * MAX_PLAIN_CHARS
        and limits.max_yaml_depth >= MAX_PLAIN_DEPTH
        and limits.max_yaml_events >= MAX_PLAIN_CHARS - 96
        and limits.max_scalar_chars >= MAX_PLAIN_CHARS
    )


def parse_plain_yaml(text: str) -> tuple[dict[str, Value], dict[str, int]] | None:
    """What ``parse_yaml`` gives, or ``None`` where the text is not surely in the plain subset."""
    if len(text) > MAX_PLAIN_CHARS:
        return None
    from prowess.spec.frontmatter.plain_reader import read_plain_yaml  # noqa: PLC0415 - its patterns take a while to compile

    return read_plain_yaml(text, MAX_PLAIN_DEPTH)

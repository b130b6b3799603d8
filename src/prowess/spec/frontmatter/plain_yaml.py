"""The plain subset of YAML, in which nearly every real head is written, read without a YAML parser.

The subset has ``key: value`` lines, quoted values, wrapped and block text, and lists and mappings by indentation. A
text that is not surely in it is left to PyYAML. The two must agree on every text that the subset has:
tests/spec/frontmatter/test_fast_paths.py compares them on real heads and on generated text.
"""

from __future__ import annotations

from prowess.on_demand import OnDemand

TYPE_CHECKING = False

if TYPE_CHECKING:
    from prowess.limits import Limits
    from prowess.model import Value
    from prowess.spec.frontmatter import plain_reader
else:  # Its patterns take 4 ms to compile (bench row "import and first scan").
    plain_reader = OnDemand("prowess.spec.frontmatter.plain_reader")

MAX_PLAIN_CHARS = 4096  # A text as short as this stays within every bound on events and lengths.
MAX_PLAIN_DEPTH = 8  # Real heads stay below it. Deeper ones are left to PyYAML, where ``Limits`` bound them.


class BrokenLineError(Exception):
    """The text is plain up to a line that YAML cannot read, so that parsing it as YAML would fail too."""


def can_skip_limit_checks(limits: Limits) -> bool:
    """Whether the limits are at least as large as anything that the plain reader accepts.

    A plain head then needs no check of its sizes.
    """
    return (
        limits.max_frontmatter_bytes >= 4 * MAX_PLAIN_CHARS
        and limits.max_yaml_depth >= MAX_PLAIN_DEPTH
        and limits.max_yaml_events >= MAX_PLAIN_CHARS - 96
        and limits.max_scalar_chars >= MAX_PLAIN_CHARS
    )


def parse_plain_yaml(text: str) -> tuple[dict[str, Value], dict[str, int]] | None:
    """Return what ``parse_yaml`` returns; ``None`` when the text is not surely in the plain subset."""
    try:
        return read_plain_yaml(text)
    except BrokenLineError:
        return None


def read_plain_yaml(text: str) -> tuple[dict[str, Value], dict[str, int]] | None:
    """Return what ``parse_plain_yaml`` returns; raise ``BrokenLineError`` where YAML would surely fail."""
    if len(text) > MAX_PLAIN_CHARS:
        return None
    return plain_reader.read_plain_text(text, MAX_PLAIN_DEPTH)

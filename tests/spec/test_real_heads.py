"""How real heads fare: nearly all that open frontmatter can be used."""

from bench.corpus import USABLE_BOUND, count_usable, head_of, outcome_of

SAMPLED_BOUND = 0.99
"""What no sample falls below by chance: the share of a sample of 3,000 strays by a tenth of a percent."""


def test_nearly_all_real_heads_with_frontmatter_are_usable(real_rows: list[bytes], full: bool) -> None:
    usable, opening = count_usable([outcome_of(head_of(row)) for row in real_rows])
    assert opening > len(real_rows) * 0.9
    assert usable / opening >= (USABLE_BOUND if full else SAMPLED_BOUND)

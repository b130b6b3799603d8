"""The estimate of tokens: of the right size, and never surprising."""

import json
import lzma
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import prowess
from prowess.text.tokens import COUNTER_NAME, estimate_tokens


def test_an_empty_text_costs_no_tokens() -> None:
    assert estimate_tokens("") == 0


@given(st.text(min_size=1))
def test_anything_costs_something_and_no_more_than_its_bytes(text: str) -> None:
    assert 1 <= estimate_tokens(text) <= 2 * len(text.encode("utf-8", "surrogatepass")) + 1


@given(st.text(), st.text())
def test_joining_two_texts_costs_about_what_both_cost(one: str, other: str) -> None:
    together = estimate_tokens(one + other)
    assert together <= estimate_tokens(one) + estimate_tokens(other) + 2
    assert together >= max(estimate_tokens(one), estimate_tokens(other)) - 2


@given(st.text(min_size=1), st.integers(2, 50))
def test_a_repeated_line_costs_its_price_each_time(line: str, times: int) -> None:
    once, all_of_them = estimate_tokens(line + "\n"), estimate_tokens((line + "\n") * times)
    assert (once - 2) * times - 2 <= all_of_them <= (once + 1) * times + 2


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("Fills in forms and merges documents.", 5, 10),
        ("the quick brown fox jumps over the lazy dog", 8, 12),
        ("internationalization", 1, 4),
        ("1234567890", 3, 7),
        ("日本語の文書を翻訳する", 6, 14),
        ("a" * 1000, 20, 500),
        ("\n" * 100, 1, 60),
    ],
)
def test_the_estimate_has_the_size_that_vocabularies_give(text: str, least: int, most: int) -> None:
    assert least <= estimate_tokens(text) <= most


def count_by_patterns(text: str) -> int:
    """The estimate as its formula reads: one pattern for each kind of token."""
    signs = re.findall(r"[!-/:-@\[-`{-~]+", text)
    total = 1.057 * len(re.findall("[A-Za-z]+", text))
    total += 0.045 * sum(len(word) - 7 for word in re.findall("[A-Za-z]{8,}", text))
    total += 1.518 * len(re.findall("[0-9]{1,3}", text))
    total += 0.748 * len(signs) + 0.168 * sum(map(len, signs))
    total += 0.529 * len(re.findall("\n+|  +", text))
    if not text.isascii():
        total += 0.8 * len(re.findall("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]", text))
        total += 0.382 * len(re.findall("[\u0080-\u303f\u3100-\u33ff\ua000-\uabff\ud800-\U0010ffff]", text))
    return max(1, round(total)) if text else 0


PIECES = st.sampled_from(
    ["a", "Internationalised", "<b>", "&&", "1", "12345", " ", "  ", "\n", "\n\n", "é", "文書", "한", "🎉"]
)


@given(st.text() | st.lists(PIECES).map("".join))
def test_the_fast_estimate_is_the_one_that_patterns_give(text: str) -> None:
    assert estimate_tokens(text) == count_by_patterns(text)


def test_the_counter_is_named_an_estimate() -> None:
    assert COUNTER_NAME == "estimate"
    assert prowess.estimate_tokens is estimate_tokens


def test_real_skills_cost_between_two_and_eight_characters_a_token(shared: Path) -> None:
    with lzma.open(shared / "retrieval" / "skills.jsonl.xz", "rt", encoding="utf-8") as lines:
        skills = [json.loads(line) for _, line in zip(range(1_000), lines, strict=False)]
    latin = [skill["description"] for skill in skills if skill["description"].isascii()]
    assert len(latin) > 500
    each = [estimate_tokens(text) for text in latin]
    assert all(cost > 0 for cost in each)
    assert 3 < sum(map(len, latin)) / sum(each) < 8
    assert abs(estimate_tokens("\n".join(latin)) / sum(each) - 1) < 0.1

"""Names that are easily mistaken for one another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prowess.spec.lookalikes import is_lookalike, lookup_forms, name_skeleton


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("pdf", "pdff"),
        ("pdf", "pd"),
        ("pdf", "pdt"),
        ("pdf-", "pdf"),
        ("pdf", "PDF"),
        ("arnazon", "amazon"),
        ("g00gle", "google"),
    ],
)
def test_names_within_one_edit_or_with_one_skeleton_are_lookalikes(one: str, other: str) -> None:
    assert is_lookalike(one, other)
    assert is_lookalike(other, one)


@pytest.mark.parametrize(
    ("one", "other"), [("pdf", "pdf"), ("pdf", "docx"), ("pdf", "pdf-forms"), ("a", "xyz"), ("ab", "ba")]
)
def test_equal_and_distant_names_are_no_lookalikes(one: str, other: str) -> None:
    assert not is_lookalike(one, other)


def test_letters_of_other_alphabets_that_look_alike_give_one_skeleton() -> None:
    assert name_skeleton("p\u0430yp\u0430l") == name_skeleton("paypal")
    assert name_skeleton("\uff50\uff44\uff46") == "pdf"


NAMES = st.text("ab0o-", max_size=5)


@given(NAMES, NAMES)
def test_lookalikes_share_a_form_by_which_an_index_finds_them(one: str, other: str) -> None:
    if is_lookalike(one, other):
        assert not set(lookup_forms(one)).isdisjoint(lookup_forms(other))

"""Names that are easily mistaken for one another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prowess.text.spelling import lookup_forms, name_skeleton


def share_a_form(one: str, other: str) -> bool:
    return not set(lookup_forms(one)).isdisjoint(lookup_forms(other))


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
        ("p\u0430ypal", "paypal"),
        ("make-report", "make-reprot"),
        ("ab", "ba"),
        ("pdf-tools", "pdftool"),
        ("pdf-tools", "pdf--tool"),
    ],
)
def test_names_within_one_edit_or_with_one_skeleton_share_a_form(one: str, other: str) -> None:
    assert share_a_form(one, other)


@pytest.mark.parametrize(
    ("one", "other"), [("pdf", "docx"), ("pdf", "pdf-forms"), ("a", "xyz"), ("make-report", "mkae-reprot")]
)
def test_distant_names_share_no_form(one: str, other: str) -> None:
    assert not share_a_form(one, other)


def test_letters_of_other_alphabets_that_look_alike_give_one_skeleton() -> None:
    assert name_skeleton("p\u0430yp\u0430l") == name_skeleton("paypal")
    assert name_skeleton("\uff50\uff44\uff46") == "pdf"


@given(st.text("ab0o-", max_size=5), st.data())
def test_a_name_shares_a_form_with_each_name_that_has_two_neighbours_swapped_or_a_character_and_hyphens_more(
    name: str, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(name)))
    assert share_a_form(name, name[:at] + name[at : at + 2][::-1] + name[at + 2 :])
    assert share_a_form(name, f"{name[:at]}-x{name[at:]}-")

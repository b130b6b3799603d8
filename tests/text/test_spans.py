"""Several parts of a text are replaced at once, and each value is found where its span says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from prowess.text.spans import replace_spans


def test_a_text_without_edits_stays_as_it_is() -> None:
    assert replace_spans("text", ()) == ("text", ())


@given(st.lists(st.tuples(st.text(max_size=4), st.text(max_size=4), st.text(max_size=4)), max_size=6), st.text())
def test_each_value_stands_where_its_span_says(pieces: list[tuple[str, str, str]], tail: str) -> None:
    text, edits = "", []
    for before, replaced, value in pieces:
        begin = len(text) + len(before)
        text += before + replaced
        edits.append((begin, len(text), value))
    result, spans = replace_spans(text + tail, edits)
    assert [result[begin:end] for begin, end in spans] == [value for _, _, value in pieces]
    assert result == "".join(before + value for before, _, value in pieces) + tail

"""Which part of the instructions describes a skill whose author wrote no description."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prowess.format.first_paragraph import find_first_paragraph


@pytest.mark.parametrize(
    ("body", "paragraph"),
    [
        ("Fill forms.", "Fill forms."),
        ("Fill\r\n  forms.\r\n\r\nMore.", "Fill forms."),
        ("# Title\nFill forms.\n## More\n", "Fill forms."),
        ("Title\n=====\n\nFill forms.\n", "Fill forms."),
        ("Title\n---\nFill forms.\n", "Fill forms."),
        ("---\n\n***\n\nFill forms.\n", "Fill forms."),
        ("<!-- a\nnote -->\nFill forms.\n", "Fill forms."),
        ("```python\nprint()\n```\nFill forms.\n", "Fill forms."),
        ("~~~\n```\n~~~\n> Fill forms.\n> More.\n", "Fill forms."),
        ("- Fill forms.\n- Merge files.\n", "Fill forms."),
        ("1. Fill forms\n   in PDF files.\n2. Merge.\n", "Fill forms in PDF files."),
        ("| a | b |\n|---|---|\n\nFill forms.\n", "Fill forms."),
        ("<div>\n\n![logo](a.png)\n\nFill forms.\n", "Fill forms."),
        ("…\n\nFill forms.\n", "Fill forms."),
        ("**Fill** `forms`.\n", "**Fill** `forms`."),
        ("处理 PDF 文件。\n", "处理 PDF 文件。"),
        ("Fill\u200b forms\x1b[2J.\n", "Fill forms [2J."),
        ("#Fill forms.", "#Fill forms."),
        ("# Title\n\n## More\n", ""),
        ("```\nnever closed\n\nFill forms.\n", ""),
    ],
)
def test_the_first_paragraph_is_the_first_text_that_is_not_a_heading(body: str, paragraph: str) -> None:
    assert find_first_paragraph(body.encode(), whole=True) == paragraph


@pytest.mark.parametrize(
    ("body", "paragraph"),
    [
        ("Füllt Formulare für é".encode()[:-1], "Füllt Formulare für …"),
        (b"Fill forms in PD", "Fill forms in …"),
        (b"Fill forms.\n\nMerge fi", "Fill forms."),
        (b"# Title\n\nFi", ""),
        ("处理文件".encode()[:-1], "处理文…"),
        (b"Fill \xff forms.", ""),
    ],
)
def test_a_paragraph_that_is_read_in_part_is_cut_at_a_word(body: bytes, paragraph: str) -> None:
    assert find_first_paragraph(body, whole=False) == paragraph


@given(st.binary(max_size=400) | st.text(max_size=400).map(lambda text: text.encode("utf-8", "ignore")))
def test_a_first_paragraph_is_always_a_line_that_a_listing_can_show(body: bytes) -> None:
    paragraph = find_first_paragraph(body, whole=len(body) % 2 == 0)
    assert len(paragraph) <= 1024
    assert paragraph == paragraph.strip()
    assert "\n" not in paragraph
    assert "\x1b" not in paragraph


@pytest.mark.parametrize("piece", ["- ", "> ", "#", "_ ", "[", "<!--", "```", "1. ", "a ", "![a](", "=\n", "|"])
def test_no_body_is_slow_to_look_at(piece: str) -> None:
    body = (piece * 65_536).encode()[:65_536]
    begin = time.process_time()
    find_first_paragraph(body, whole=True)
    assert time.process_time() - begin < 1

"""Files that instructions name: which texts name one, which only look like it, and on which line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prowess.skills.parse import FileReference, find_file_references

ONE_MIB = 1 << 20
PIECES = st.sampled_from(
    (
        "`",
        "``",
        "```",
        "~~~",
        "\n",
        " ",
        "[a](",
        "](",
        ")",
        "<",
        ">",
        "[a]: ",
        "<!--",
        "-->",
        "scripts/a.py",
        "b.md",
        "..",
    )
)


def named(text: str) -> list[str]:
    return [mention.path for mention in find_file_references(text)]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("See [forms](references/forms.md).", "references/forms.md"),
        ("See [forms](./references/forms.md#fields).", "references/forms.md"),
        ("See [forms](<references/all forms.md>).", "references/all forms.md"),
        ("See [forms](references/all%20forms.md).", "references/all forms.md"),
        ('See [forms](forms.md "How to fill them").', "forms.md"),
        ("![A chart](assets/chart.png)", "assets/chart.png"),
        ("[forms]: references/forms.md", "references/forms.md"),
        ("[`forms.md`](references/forms.md)", "references/forms.md"),
        ("Run `scripts/fill.py`.", "scripts/fill.py"),
        ("Run `./scripts/fill.py --all form.pdf`.", "scripts/fill.py"),
        ("Run ``scripts/fill.py``.", "scripts/fill.py"),
        ("- item\n  > Read `references/deep/er.md`", "references/deep/er.md"),
        ("[Überblick](references/überblick.md)", "references/überblick.md"),
    ],
)
def test_a_file_is_named_by_a_link_or_in_a_code_span(text: str, path: str) -> None:
    assert named(text) == [path]


@pytest.mark.parametrize(
    "text",
    [
        "[site](https://example.com/forms.md)",
        "[mail](mailto:me@example.md)",
        "[section](#forms.md)",
        "[absolute](/etc/forms.md)",
        "[home](~/forms.md)",
        "[outside](../other/forms.md)",
        "[inside and out](references/../../forms.md)",
        "[any](references/*.md)",
        "[one of them](references/<name>.md)",
        "[one of them](references/{name}.md)",
        "[one of them](references/$NAME.md)",
        "[and so on](references/....md)",
        "[a folder](references/)",
        "[a word](forms)",
        "[^1]: forms.md says so",
        "`[forms](references/forms.md)` is how a link is written",
        "`references/`, `references/*.md`, `references/<name>.md`, `references/{name}.md`",
        "`forms.md` and `src/scripts/fill.py` may be the project's",
        "`https://example.com/scripts/fill.py`",
        "`Rscript scripts/fill.R` is somebody else's",
        "references/forms.md in plain text",
        "```\n[forms](references/forms.md)\n`scripts/fill.py`\n```",
        "- ```bash\n  python `scripts/fill.py`\n  ```",
        "~~~~\n~~~\n[forms](references/forms.md)\n~~~~",
        "<!-- [forms](references/forms.md) -->",
        "<!--\n[forms](references/forms.md)\n`scripts/fill.py`\n-->",
    ],
)
def test_text_that_can_mean_no_file_of_the_skill_is_left_alone(text: str) -> None:
    assert named(text) == []


def test_after_a_block_or_a_comment_the_text_goes_on() -> None:
    text = "```python\nx\n```\n[a](a.md)\n<!-- x --> [b](b.md) <!-- y\nz --> [c](c.md)"
    assert list(find_file_references(text, 10)) == [
        FileReference("a.md", "a.md", 13),
        FileReference("b.md", "b.md", 14),
        FileReference("c.md", "c.md", 15),
    ]


def test_a_reference_keeps_the_text_that_names_the_file() -> None:
    (found,) = find_file_references("[a](./a%20b.md#top)")
    assert (found.path, found.written) == ("a b.md", "./a%20b.md#top")


@given(st.lists(PIECES, max_size=40).map("".join))
def test_a_reference_stands_in_the_line_that_it_gives(text: str) -> None:
    rows = text.split("\n")
    for mention in find_file_references(text):
        assert mention.written in rows[mention.line - 1].replace("<!--", "").replace("-->", "")
        assert ".." not in mention.path.split("/")


@pytest.mark.parametrize(
    "piece",
    ["`", "` `` ", "](", "](<", "[a](a ", "<!--", "<!-- -->", "[", "~~~\n", "> ", "- ", "[a](a.md)", "[a]: ", '](a "'],
)
def test_a_mebibyte_of_anything_is_searched_in_one_pass(piece: str) -> None:
    """A search that looked again at what it saw would not end within the time that a test may take."""
    assert len(named(piece * (ONE_MIB // len(piece)))) <= ONE_MIB

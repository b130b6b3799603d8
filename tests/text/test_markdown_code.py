"""Code in Markdown: where shell code stands between single quotes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prowess.text.markdown_code import find_single_quotes


def quoted(text: str) -> list[str]:
    return [text[begin:end] for begin, end in find_single_quotes(text)]


def fenced(code: str, language: str = "bash") -> str:
    return f"Text.\n```{language}\n{code}\n```\nIt's over, isn't it.\n"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("awk '{print $1}' data", ["{print $1}"]),
        ("awk -F',' '{print $1}' data", [",", "{print $1}"]),
        ("sed -e's/a/b/' data", ["s/a/b/"]),
        ("awk '\n  { print $1 }\n' data", ["\n  { print $1 }\n"]),
        ('echo "don\'t $1"', []),
        ('x="$(cut -f1 | awk \'{print $4}\')"; y="it\'s $1"', ["{print $4}"]),
        ("x=$(awk '{print $3}' <<< \"$y\")", ["{print $3}"]),
        ("# don't fill $1 here\necho 'a'", ["a"]),
        ("echo don't '$1'", ["$1"]),
        (r"echo \'$1\'", []),
        ("echo 'open $1", []),
        ("echo $#; echo 'a'", ["a"]),
        ("", []),
    ],
)
def test_what_a_shell_reads_between_single_quotes_is_found(code: str, expected: list[str]) -> None:
    assert quoted(fenced(code)) == expected


@pytest.mark.parametrize("language", ["", "sh", "Bash", "console", "zsh title=x", "!", "{.bash}"])
def test_a_block_of_a_shell_or_of_no_language_is_shell_code(language: str) -> None:
    assert quoted(fenced("awk '{print $1}'", language)) == ["{print $1}"]


@pytest.mark.parametrize("language", ["python", "sql", "json"])
def test_a_block_of_another_language_is_not_shell_code(language: str) -> None:
    assert quoted(fenced("x = '$1'", language)) == []


def test_a_code_span_is_shell_code_and_prose_is_not() -> None:
    assert quoted("It's `awk '{print $1}'` for the user's '$0', isn't it?") == ["{print $1}"]


def test_a_block_that_nothing_closes_ends_with_the_text() -> None:
    assert quoted("```\nawk '{print $1}'\n") == ["{print $1}"]


@given(st.text("`'\"\\$()# \nab", max_size=60))
def test_quoted_spans_are_in_order_and_do_not_overlap(text: str) -> None:
    at = 0
    for begin, end in find_single_quotes(text):
        assert at < begin <= end < len(text)
        assert text[begin - 1] == text[end] == "'"
        at = end

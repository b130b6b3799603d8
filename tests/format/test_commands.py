"""Commands in instructions: which there are, what takes their place, and what is left alone."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prowess.format.commands import EmbeddedCommand, find_commands, insert_outputs, may_have_commands

ONE_MIB = 1 << 20

# Pieces that mean something to the search, and a few that do not.
PIECES = st.sampled_from(
    (
        "!",
        "`",
        "``",
        "```",
        "````",
        "~~~",
        "!`",
        "```!",
        "~~~!",
        "\n",
        "\r\n",
        " ",
        "\\",
        "ls",
        "é",
        "$0",
        "\0",
        "\u2028",
    )
)
TEXTS = st.lists(PIECES, max_size=40).map("".join)


def said(text: str) -> list[str]:
    return [command.text for command in find_commands(text)]


# -- in the text ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("!`ls`", ["ls"]),
        ("Now !`ls -l` and !`date`.", ["ls -l", "date"]),
        ("!`ls`!`date`", ["ls", "date"]),
        ("word!`ls`word", ["ls"]),
        ("!`  ls\t`", ["ls"]),
        ("!`echo a\necho b`", ["echo a\necho b"]),
        ("!!`ls`", ["ls"]),
        ("# Title\n\n- !`ls`\n> !`date`\n", ["ls", "date"]),
        ("`` !`ls` ``", ["ls"]),
        ("```sh\n!`ls`\n```", ["ls"]),
        ("!`échö`", ["échö"]),
    ],
)
def test_an_exclamation_mark_makes_a_code_span_a_command(text: str, commands: list[str]) -> None:
    assert said(text) == commands


@pytest.mark.parametrize(
    "text",
    [
        "",
        "!",
        "`ls`",
        "! `ls`",
        "!``",
        "!``ls``",
        "!`",
        "!`ls",
        "ls`!",
        "!` `",
        "!`\n`",
        "`ls`!",
        "!'ls'",
        "```\nls\n```",
    ],
)
def test_anything_else_is_not_a_command(text: str) -> None:
    assert find_commands(text) == ()


def test_a_backslash_keeps_it_as_text() -> None:
    assert said(r"\!`ls` and !`date`") == ["date"]


# -- blocks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fence", ["```", "````", "~~~", "~~~~~"])
def test_a_fence_with_an_exclamation_mark_opens_a_block_of_commands(fence: str) -> None:
    text = f"Before\n{fence}!\ncd /tmp\nls `pwd`\n{fence}\nAfter"
    assert said(text) == ["cd /tmp\nls `pwd`"]
    command = find_commands(text)[0]
    assert (text[: command.begin], text[command.end :]) == ("Before\n", "\nAfter")


def test_a_block_ends_at_its_own_fence() -> None:
    assert said("````!\necho '\n```\n'\n````\n") == ["echo '\n```\n'"]
    assert said("~~~!\necho '\n```\n'\n~~~") == ["echo '\n```\n'"]
    assert said("```!\nls\n```\n\n```!\ndate\n```") == ["ls", "date"]


def test_a_command_inside_a_block_belongs_to_it() -> None:
    assert said("```!\necho '!`date`'\n```") == ["echo '!`date`'"]


def test_blanks_after_the_fences_and_line_ends_of_windows_are_fine() -> None:
    assert said("```! \t\nls\n```  \nAfter") == ["ls"]
    assert said("```!\r\nls\r\n```\r\nAfter") == ["ls"]


@pytest.mark.parametrize(
    "text",
    [
        "```!\nls\n",  # never closed
        "```!\nls",
        "```!\n```",  # nothing in it
        "```!\n  \n```",
        " x ```!\nls\n```",  # not at the beginning of a line
        "```sh !\nls\n```",
        "```! sh\nls\n```",
        "``!\nls\n``",
        "```\n!ls\n```",
    ],
)
def test_a_fence_without_its_mark_or_its_end_is_not_a_command(text: str) -> None:
    assert find_commands(text) == ()


# -- where they stand -----------------------------------------------------------------------------------------------


def test_a_search_begins_at_the_offset_that_is_given() -> None:
    text = "!`head`\n!`body`"
    assert [command.text for command in find_commands(text, 7)] == ["body"]
    assert find_commands(text, len(text)) == ()


def test_a_search_that_begins_within_a_line_sees_what_stands_before() -> None:
    assert find_commands("x```!\nls\n```", 1) == ()
    assert find_commands("\\!`ls`", 1) == ()


@given(TEXTS, st.integers(0, 20))
def test_commands_are_in_order_do_not_overlap_and_stand_where_they_say(text: str, begin: int) -> None:
    at = begin
    for command in find_commands(text, begin):
        assert at <= command.begin < command.end <= len(text)
        assert command.text
        assert command.text == command.text.strip()
        assert command.text in text[command.begin : command.end].replace("\r\n", "\n")
        assert text[command.begin] in "!`~"
        at = command.end


@given(TEXTS)
def test_a_text_that_the_fast_path_skips_has_no_command(text: str) -> None:
    assert may_have_commands(text) or "!`" not in text
    if not may_have_commands(text):
        assert find_commands(text) == ()


# -- outputs --------------------------------------------------------------------------------------------------------


def test_each_output_takes_the_place_of_its_command() -> None:
    text = "a !`one` b !`two` c"
    made, spans = insert_outputs(text, find_commands(text), ["1", ""])
    assert made == "a 1 b  c"
    assert [made[begin:end] for begin, end in spans] == ["1", ""]


def test_as_many_outputs_as_commands_are_needed() -> None:
    text = "!`one` !`two`"
    with pytest.raises(ValueError, match="argument"):
        insert_outputs(text, find_commands(text), ["1"])


@given(st.lists(st.tuples(st.text(), st.text(), st.text()), max_size=8), st.text())
def test_each_output_stands_where_its_span_says(parts: list[tuple[str, str, str]], tail: str) -> None:
    """Whatever stands before, in, and after the commands, and whatever they print."""
    text = wanted = ""
    commands: list[EmbeddedCommand] = []
    places: list[tuple[int, int]] = []
    for before, command, output in parts:
        text += before
        commands.append(EmbeddedCommand(len(text), len(text) + len(command), command))
        text += command
        places.append((len(wanted + before), len(wanted + before + output)))
        wanted += before + output
    made, spans = insert_outputs(text + tail, commands, [output for _, _, output in parts])
    assert made == wanted + tail
    assert list(spans) == places
    assert [made[begin:end] for begin, end in spans] == [output for _, _, output in parts]


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=5))
def test_the_output_of_a_command_is_not_searched_for_commands(text: str, printed: list[str]) -> None:
    commands = find_commands(text)
    outputs = [printed[number % len(printed)] for number in range(len(commands))]
    made, spans = insert_outputs(text, commands, outputs)
    rest = [text[one.end : other.begin] for one, other in pairwise(commands)]
    assert [made[begin:end] for begin, end in spans] == outputs
    assert [made[one[1] : other[0]] for one, other in pairwise(spans)] == rest


# -- hostile text ---------------------------------------------------------------------------------------------------

SHAPES = {
    "openers of spans": "text = '!`' * (size // 2)",
    "one span without an end": "text = '!`' + 'a' * size",
    "many spans without an end": "text = '!`a\\n' * (size // 4)",
    "openers of blocks": "text = '```!\\n' * (size // 5)",
    "openers of two kinds": "text = '~~~!\\nx\\n```!\\nx\\n' * (size // 14)",
    "one block without an end": "text = '```!\\n' + 'x\\n' * (size // 2)",
    "blanks after an opener": "text = ('```!' + ' ' * 1000 + 'x\\n') * (size // 1006)",
    "blanks after a closer": "text = '```!\\nx\\n```' + ' ' * size + 'x'",
    "backticks": "text = '`' * size + '!'",
    "ever shorter fences": (
        "text = ''.join('`' * ticks + '!\\n' for ticks in range(800, 2, -1))\n"
        "text += 'x\\n' * ((size - len(text)) // 2)"
    ),
}
SEARCH = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, (4, 4))
from prowess.format.commands import find_commands
size = {size}
{make}
print(len(text) > size // 2, len(find_commands(text)))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit of processor time")
@pytest.mark.parametrize("shape", SHAPES)
def test_the_work_grows_with_the_text_and_not_with_its_square(shape: str) -> None:
    """The largest body there is; what takes some hundredths of a second may take four seconds of the processor."""
    code = SEARCH.format(size=ONE_MIB, make=SHAPES[shape])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False, timeout=60)
    assert (done.returncode, done.stdout.split()[:1], done.stderr) == (0, ["True"], "")

"""Every command as a real process: in a pipe, without colours, on a narrow terminal, and when nobody reads on."""

from __future__ import annotations

import os
import re
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

import pytest

from tests.cli.samples import SAMPLES, read_answers, words_of
from tests.cli.shapes import problems
from tests.cli_processes import fork_command

if TYPE_CHECKING:
    from tests.cli.conftest import Process, Terminal

pytestmark = pytest.mark.sampled(0.12)  # each is several processes

COLOUR = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:[34][0-8]|9[0-7]|10[0-7])(?:;[0-9;]*)?m")
CODES = re.compile(r"\x1b\[(?:\?25[lh]|[0-9;]*[mAK])")
EXACT = {"read", "prompt", "preview", "call", "call (no tool)", "completion", "backups"}
"""What they print is somebody else's text, or commands to paste, and is not wrapped."""
BROKEN_PIPE = 141


def test_in_a_pipe_it_is_plain_text(name: str, process: Process) -> None:
    ran = process(*words_of(name))
    assert ran.status in SAMPLES[name].statuses, ran.err
    assert ran.out.strip()
    assert "\x1b" not in ran.out + ran.err


def test_as_data_it_has_the_documented_shape_and_nothing_stands_around_it(name: str, process: Process) -> None:
    ran = process(*words_of(name, "--json"))
    assert ran.status in SAMPLES[name].statuses, ran.err
    for answer in read_answers(name, ran.out):
        assert problems(answer, SAMPLES[name].shape or name) == []
    assert "\x1b" not in ran.out + ran.err


def test_without_colours_there_are_none(name: str, terminal: Terminal) -> None:
    """On neither stream, in no bar."""
    ran = terminal(*words_of(name), env={"NO_COLOR": "1"}, both=True)
    assert ran.status in SAMPLES[name].statuses, ran.out
    assert not COLOUR.search(ran.out)


def test_sixty_columns_are_enough(name: str, terminal: Terminal) -> None:
    """On both streams, bars included."""
    ran = terminal(*words_of(name), columns=60, both=True)
    assert ran.status in SAMPLES[name].statuses, ran.out
    if name not in EXACT:
        assert max(map(len, re.split(r"[\r\n]+", CODES.sub("", ran.out)))) <= 60


@pytest.mark.usefixtures("project")
def test_when_nobody_reads_on_it_ends_quietly(name: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        with TemporaryFile() as nothing, TemporaryFile() as stderr:
            status = fork_command(words_of(name), stdin=nothing, stdout=writer, stderr=stderr).wait()
            stderr.seek(0)
            said = stderr.read().decode()
    finally:
        os.close(writer)
    assert status == BROKEN_PIPE
    assert "Traceback" not in said
    assert "BrokenPipe" not in said

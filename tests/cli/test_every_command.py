"""Every command: as text, as data of the documented shape, in a pipe, without colours, on narrow terminals."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

import prowess
from prowess.cli.entry_point import COMMANDS
from prowess.cli.main import root
from scripts.manual import render_json_manual, render_manual, with_agent_tables, with_setting_table
from tests.cli.samples import SAMPLES, read_answers, words_of
from tests.cli.shapes import SCHEMA, problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Command, Process, Terminal

ROOT = Path(__file__).resolve().parents[2]
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
SOME = ("list", "check", "explain", "trust list")


def every_command() -> Iterator[tuple[str, click.Command]]:
    """The name and the command of everything that can be called."""
    context = click.Context(root, info_name="prowess")
    for entry in COMMANDS:
        found = root.get_command(context, entry.name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from ((f"{entry.name} {name}", inner) for name, inner in found.commands.items())
        else:
            yield entry.name, found


def test_every_command_has_a_sample_and_a_shape() -> None:
    names = {name for name, _ in every_command()}
    assert names == {name for name in SAMPLES if " (" not in name}
    assert {sample.shape or name for name, sample in SAMPLES.items()} == set(SCHEMA["properties"]) - {"error"}


def test_as_text_it_answers_on_the_output_stream_alone(name: str, command: Command) -> None:
    ran = command(*words_of(name))
    assert ran.status in SAMPLES[name].statuses, ran.err
    assert ran.out.strip()
    assert ran.out.endswith("\n")
    assert not CONTROLS.search(ran.out + ran.err)
    assert "error[" not in ran.err


def test_as_data_it_has_the_documented_shape(name: str, command: Command) -> None:
    ran = command(*words_of(name, "--json"))
    assert ran.status in SAMPLES[name].statuses, ran.err
    for data in read_answers(name, ran.out):
        assert problems(data, SAMPLES[name].shape or name) == []
        assert data["version"] == 1


@pytest.mark.sampled(0.25, always=SOME)
def test_on_a_terminal_it_says_the_same_in_colour(name: str, terminal: Terminal) -> None:
    ran = terminal(*words_of(name), columns=100)
    assert ran.status in SAMPLES[name].statuses, ran.err
    assert not CONTROLS.search(COLOURS.sub("", ran.out))


def test_without_colours_a_terminal_gets_none(terminal: Terminal) -> None:
    plain = terminal("list", env={"NO_COLOR": "1"})
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", plain.out)
    assert re.search(r"\x1b\[[0-9;]*3[0-9]m", terminal("list").out)


def test_a_terminal_with_an_old_encoding_gets_escapes(terminal: Terminal) -> None:
    ran = terminal("list", columns=60, env={"PYTHONIOENCODING": "latin-1"}, program=("-m", "prowess"))
    assert ran.status == 0, ran.err
    assert "csv-report" in ran.out
    assert "\\u2026" in ran.out, "the sign of what was cut is not a character of latin-1"


@pytest.mark.parametrize(
    "words", [("list",), ("check", ".agents/skills"), ("show", "csv-report"), ("explain", "x")], ids=str
)
def test_at_sixty_columns_no_line_is_longer(words: tuple[str, ...], terminal: Terminal) -> None:
    shown = COLOURS.sub("", terminal(*words, columns=60).out)
    assert max(map(len, shown.splitlines())) <= 60
    assert "csv-report" in shown or "deep-review" in shown


def test_in_a_pipe_nothing_is_wrapped_or_cut(process: Process, project: Path) -> None:
    long = "Profiles " + "very " * 100 + "long tables."
    (project / ".agents/skills/long").mkdir()
    (project / ".agents/skills/long/SKILL.md").write_text(
        f"---\nname: long\ndescription: {long}\n---\nx\n", encoding="utf-8"
    )
    for env in ({}, {"COLUMNS": "40"}, {"FORCE_COLOR": "1"}):
        ran = process("list", env=env)
        assert long in ran.out
        assert "\x1b" not in ran.out


def test_the_pages_say_what_the_commands_say() -> None:
    """``make manual`` writes them again."""
    assert (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8") == render_manual()
    assert (ROOT / "docs" / "reference" / "cli-json.md").read_text(encoding="utf-8") == render_json_manual(SCHEMA)
    agents = (ROOT / "docs" / "reference" / "agents.md").read_text(encoding="utf-8")
    assert agents == with_agent_tables(agents)
    assert all(f"| `{agent.id}` | {agent.title} | `{agent.project}` |" in agents for agent in prowess.AGENTS.values())
    settings = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    assert settings == with_setting_table(settings)
    assert all(f"| `{setting.name}` |" in settings for setting in prowess.load_settings())


def test_every_command_and_option_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    for name, found in every_command():
        section = page.partition(f"### prowess {name}\n")[2].partition("\n### ")[0]
        assert section, name
        for parameter in found.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, (name, parameter.name)
                assert all(word in section for word in (*parameter.opts, *parameter.secondary_opts)), (name, parameter)


def test_every_command_has_data_examples_and_a_summary() -> None:
    for name, found in every_command():
        assert "--json" in [word for parameter in found.params for word in parameter.opts], name
        assert getattr(found, "examples", ()), name
        assert all(words.startswith(("prowess ", "echo ", "eval ", "PROWESS_")) for words, _ in found.examples), name  # type: ignore[attr-defined]
        assert found.help, name


def test_every_example_in_the_help_names_options_that_exist() -> None:
    options = {name: {word for p in found.params for word in p.opts} for name, found in every_command()}
    for found in dict(every_command()).values():
        for words, _ in found.examples:  # type: ignore[attr-defined]
            line = words.split("prowess ", 1)[-1]
            name = next(known for known in sorted(options, key=len, reverse=True) if line.startswith(known))
            used = re.findall(r"(?<=\s)--?[a-z][\w-]*", line.partition(" -- ")[0])
            assert set(used) <= options[name], words


def test_the_schema_is_json_schema_with_nothing_unused() -> None:
    text = json.dumps(SCHEMA)
    assert all(f'"#/$defs/{name}"' in text for name in SCHEMA["$defs"])


def test_the_check_of_shapes_sees_what_is_wrong() -> None:
    """Else the tests above would see nothing."""
    good = {"version": 1, "revoked": 1}
    assert problems(good, "trust revoke") == []
    assert problems({**good, "more": 1}, "trust revoke")
    assert problems({"version": 1}, "trust revoke")
    assert problems({"version": 2, "revoked": 1}, "trust revoke")
    assert problems({"version": 1, "revoked": "1"}, "trust revoke")
    assert problems({"version": 1, "revoked": True}, "trust revoke")

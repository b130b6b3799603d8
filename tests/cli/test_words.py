"""What a screen says: one number for one thing, what is left out, room for what people look for."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.cli.entry_point import COMMANDS, render_overview
from tests.cli.samples import another, installed, linked

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command, Terminal

COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def pair(project: Path) -> Path:
    """Two skills of one source, installed for the project; the source."""
    for name in ("minutes", "agenda"):
        prowess.create_skill(name, "pair/skills", description=f"Writes the {name} of a meeting. Use after a meeting.")
    prowess.Installer().install_local("pair", project=True)
    return project / "pair"


def test_the_overview_fits_eighty_columns_and_breaks_no_word() -> None:
    rows = render_overview().splitlines()
    assert [row for row in rows if len(row) > 80] == []
    assert all(any(row.endswith(entry.summary) for row in rows) for entry in COMMANDS)


@pytest.mark.parametrize("name", [entry.name for entry in COMMANDS])
def test_help_of_eighty_columns_breaks_no_option_and_no_path(command: Command, name: str) -> None:
    rows = command(name, "--help").out.splitlines()
    assert [row for row in rows if row.endswith("-")] == []


def test_on_a_terminal_of_eighty_columns_a_description_has_the_room(pair: Path, terminal: Terminal) -> None:
    shown = [COLOURS.sub("", row) for row in terminal("list").out.splitlines()]
    row = next(row for row in shown if row.strip().startswith("minutes"))
    assert "Writes the minutes of a meeting. Use after a meeting." in row
    assert "  from ./pair, verified" in [row.rstrip() for row in shown]
    assert pair.exists()


def test_a_mark_that_only_one_skill_of_a_source_has_stands_at_that_skill(pair: Path, command: Command) -> None:
    file = pair.parent / ".prowess/skills/local/pair/skills/agenda/SKILL.md"
    file.write_text(file.read_text(encoding="utf-8") + "mine\n", encoding="utf-8")
    rows = [row.split() for row in command("list").out.splitlines() if "meeting" in row]
    assert [row[:2] for row in rows] == [["agenda", "[changed"], ["minutes", "[verified]"]]
    assert "  from ./pair\n" in command("list").out


def test_a_prompt_has_one_cost(command: Command) -> None:
    for words in ((), ("--style", "text"), ("--budget", "300"), ("--dialect", "load_skill")):
        said = command("prompt", *words).err.splitlines()[0]
        data = command("prompt", *words, "--json").data
        numbers = re.findall(r"[\d,]+(?= tokens)", said)
        assert numbers == [f"{data['tokens']:,}"], said


def test_instructions_have_one_cost(command: Command) -> None:
    data = command("show", "csv-report", "--json").data
    shown = command("show", "csv-report").out
    (row,) = [row.split() for row in shown.splitlines() if row.split()[:1] == ["SKILL.md"]]
    assert row[-1] == f"{data['instructions_tokens']:,}"
    assert shown.count("tokens") == 1


def test_skills_are_counted_alike_by_those_who_look_after_them(pair: Path, command: Command) -> None:
    assert command("verify").out == "2 skills installed, all as the lock files say.\n"
    assert "(2 skills)" in command("list").out
    assert f"{pair.parent}/prowess.lock: 2 skills recorded" in command("doctor").out


def test_a_search_says_how_many_it_leaves_out(pair: Path, command: Command) -> None:
    assert "and 1 more: --limit 2 shows them" in command("search", "meeting", "--limit", "1").out
    assert "more" not in command("search", "meeting").out
    assert len(command("search", "meeting", "--limit", "1", "--json").data["hits"]) == 1
    assert pair.exists()


def test_messages_that_name_some_installs_say_how_many_others_there_are(project: Path, command: Command) -> None:
    for number in range(7):
        prowess.create_skill(f"skill-{number}", "many", description="Does one thing. Use it then.")
        prowess.Installer().install_local(f"many/skill-{number}", project=True)
    assert "local/skill-4 and 2 more\n" in command("remove", "nothing", "--yes").err
    for number in range(20):
        prowess.create_skill(f"more-{number}", "many", description="Does one thing. Use it then.")
    ran = command("install", "./many", "--skill", "nothing", "--project", "--yes")
    assert " and 7 more\n" in ran.err
    assert project.exists()


def test_the_doctor_names_a_problem_once_with_a_remedy_that_can_be_typed(project: Path, command: Command) -> None:
    installed()
    file = project / ".prowess/skills/local/notes/SKILL.md"
    file.write_text("broken", encoding="utf-8")
    (project / ".prowess/skills/local/notes/more.txt").write_text("x", encoding="utf-8")
    ran = command("doctor")
    assert ran.status == 1
    assert ran.out.count("SKILL.md is not what the lock file says") == 1
    assert ran.out.count("no-frontmatter") == 0
    assert ran.out.count("remedy: run 'prowess sync': ") == 1
    problems = [one for one in command("doctor", "--json").data["diagnoses"] if one["state"] == "problem"]
    assert [(one["topic"], one["code"]) for one in problems if one["topic"] != "sandbox"] == [("lock", "changed-file")]


@pytest.mark.parametrize("damage", ["changed", "missing", "extra", "gone", "unlinked"])
def test_remedies_of_the_doctor_are_words_of_the_command_line(project: Path, command: Command, damage: str) -> None:
    installed()
    place = project / ".prowess/skills/local/notes"
    if damage == "gone":
        shutil.rmtree(place)
    elif damage == "unlinked":
        (project / ".agents/skills/notes").unlink()
    elif damage == "missing":
        (place / "SKILL.md").unlink()
    else:
        (place / {"changed": "SKILL.md", "extra": "more.txt"}[damage]).write_text("x", encoding="utf-8")
    problems = [one for one in command("doctor", "--json").data["diagnoses"] if one["topic"] == "lock"][1:]
    assert [one["remedy"].partition(":")[0] for one in problems] == [
        "run 'prowess sync --locked'" if damage == "gone" else "run 'prowess sync'"
    ]


def test_a_word_after_two_dashes_asks_for_no_data(command: Command) -> None:
    assert command("show", "--", "--json").err.startswith("error[")
    assert json.loads(command("show", "nothing", "--json").err)["error"]


@pytest.fixture
def cloned(project: Path) -> Path:
    """A project as a clone has it before 'prowess sync': one skill is recorded, and is not here."""
    shutil.rmtree(project / ".agents", ignore_errors=True)
    installed()
    shutil.rmtree(project / ".prowess")
    return project


RECORDED = "prowess.lock records 1 skill that is not here: prowess sync --locked"


def test_before_a_sync_commands_about_all_skills_say_which_command_brings_them(cloned: Path, command: Command) -> None:
    for words in ("list", "prompt", "search notes", "eval", "explain notes", "update", "serve --check"):
        ran = command(*words.split())
        assert RECORDED in ran.out + ran.err, words
    assert RECORDED not in command("prompt", str(cloned / "elsewhere")).err


def test_remedies_for_what_differs_can_be_typed(cloned: Path, command: Command) -> None:
    assert "run 'prowess sync --locked' to restore it" in command("verify").out
    ran = command("diff", "notes")
    assert "error[missing-skill]" in ran.err
    assert "hint: run 'prowess sync --locked' to restore it" in ran.err
    assert "its folder is missing: 'prowess sync --locked' brings it" in command("update", "notes").out
    assert "hint: 'prowess list' shows what is installed" in command("remove", "nothing", "--yes").err
    assert cloned.exists()


def test_evals_that_no_skill_of_the_project_has_are_told_without_blaming_one_folder(command: Command) -> None:
    installed()
    ran = command("eval")
    assert (ran.status, "none of the skills here has evals" in ran.err) == (3, True)


def test_a_skill_costs_the_same_alone_and_among_others(pair: Path, command: Command) -> None:
    among = {row["name"]: row["tokens"] for row in command("prompt", "minutes", "agenda", "--json").data["costs"]}
    (alone,) = command("prompt", "minutes", "--json").data["costs"]
    assert alone["tokens"] == among["minutes"]
    assert pair.exists()


def test_a_folder_of_links_counts_the_skills_that_an_agent_finds_there(project: Path) -> None:
    shutil.rmtree(project / ".agents", ignore_errors=True)
    linked()
    catalog = prowess.discover(project, project.parent)
    counts = {place.path.removeprefix(f"{project}/"): place.found for place in catalog.places}
    assert [counts[name] for name in (".prowess/skills", ".agents/skills", ".claude/skills")] == [1, 1, 1]
    assert len(catalog) == 1


def test_a_plan_says_once_that_it_replaces_what_came_from_the_same_source(pair: Path) -> None:
    for name in ("minutes", "agenda"):
        prowess.Installer().install(f"./pair@{name}", project=True, replace=True)
    plan = str(prowess.Installer().plan("./pair@minutes,agenda", project=True, replace=True))
    assert plan.count("replace what is there, which came from the same source") == 1
    assert pair.exists()


def test_an_option_without_its_value_leads_to_the_help_of_its_command(command: Command) -> None:
    assert "hint: see prowess serve --help" in command("serve", "--config").err


@pytest.mark.parametrize("folder", [".", "skills"])
def test_skills_in_this_folder_that_no_agent_finds_are_told_with_how_to_name_them(
    project: Path, command: Command, folder: str
) -> None:
    shutil.rmtree(project / ".agents")
    prowess.create_skill("notes", folder, description="Writes notes. Use when asked.")
    for words in ("check", "eval"):
        assert "there is no skill where agents look; for those below this folder, name it: .\n" in command(words).err
    assert command("check", ".").status == 0


def test_a_plan_of_removing_copies_calls_them_copies(project: Path, command: Command) -> None:
    another()
    prowess.Installer().install("./elsewhere/notes", project=True, copy=True)
    assert "remove its further copies and its entry in prowess.lock" in command("remove", "notes", "--yes").plan
    assert project.exists()


def test_what_check_says_a_listing_costs_is_what_the_prompt_that_it_names_costs(command: Command) -> None:
    said = re.search(r"listing costs about ([\d,]+) tokens \((.+)\)", command("check", ".agents/skills").out)
    assert said is not None
    prompt = command(*said[2].split()[1:], ".agents/skills", "--json").data
    assert f"{prompt['tokens']:,}" == said[1]

"""Commands that change something: the plan and the report on the output stream, the question on the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

import prowess
from tests.cli.persons import Person
from tests.cli.samples import another, edited, installed, linked
from tests.cli.shapes import problems

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Command


def declared() -> None:
    """A skill that the manifest declares, and that is not here."""
    another()
    Path("prowess.toml").write_text('skills = ["./elsewhere/notes"]\n', encoding="utf-8")


class Asking(NamedTuple):
    """A command line that asks: what is there before, words of its plan, of its report, and of its answer to a no."""

    words: str
    before: Callable[[], None]
    plan: str
    report: str
    declined: str
    done: str
    """The field of the data that holds what was done."""


ASKING = {
    "install": Asking(
        "install ./elsewhere/notes --project", another, "- fetch ", "Installed local/", "installed", "installed"
    ),
    "install --into": Asking(
        "install ./elsewhere/notes --into vendor", another, "- copy it ", "Copied notes", "copied", "installed"
    ),
    "remove": Asking("remove notes", installed, "- remove ", "Removed @local/notes", "removed", "removed"),
    "sync": Asking("sync", declared, "- install ", "Installed local/notes", "synced", "installed"),
    "update": Asking("update", edited, "+One more line.", "updated local/notes", "updated", "updates"),
    "link": Asking(
        "link notes --agent claude-code", installed, "- make the link ", "Linked .claude", "linked", "linked"
    ),
    "unlink": Asking(
        "unlink notes --agent claude-code", linked, "- remove the link ", "Unlinked .", "unlinked", "unlinked"
    ),
    "adopt": Asking("adopt csv-report", lambda: None, "- take over ", "Adopted ", "adopted", "adopted"),
    "trust grant": Asking(
        "trust grant folder-report", lambda: None, "could run", "Trusted folder-", "trusted", "grants"
    ),
}


@pytest.fixture(params=ASKING)
def asking(request: pytest.FixtureRequest, project: Path) -> Asking:  # noqa: ARG001 - a fixture for its effect
    """Each command that asks, with everything that it needs."""
    chosen = ASKING[str(request.param)]
    chosen.before()
    return chosen


def contents() -> dict[str, bytes]:
    """Every file of the project and of the home folder."""
    return {str(path): path.read_bytes() for path in Path("..").rglob("*") if path.is_file()}


def test_the_plan_and_the_report_are_on_the_output_stream(asking: Asking, command: Command) -> None:
    ran = command(*asking.words.split(), "--yes")
    assert ran.status == 0
    assert all(row.startswith(("warning: ", "[backed-up] ")) for row in ran.err.splitlines()), ran.err
    assert ran.out.index(asking.plan) < ran.out.index(asking.report)


def test_a_person_is_asked_on_the_terminal_while_the_output_goes_into_a_file(asking: Asking) -> None:
    with Person(*asking.words.split(), at=("stdin", "stderr")) as person:
        shown = person.read_until("[y/N]")
        assert asking.plan in shown, "who is asked sees about what"
        person.type("y\n")
        assert person.wait() == 0
        written = person.text("stdout")
    assert written.index(asking.plan) < written.index(asking.report)
    assert "[y/N]" not in written


def test_no_is_answered_with_what_was_not_done_and_nothing_is(asking: Asking) -> None:
    before = contents()
    with Person(*asking.words.split(), at=("stdin", "stderr")) as person:
        person.read_until("[y/N]")
        person.type("n\n")
        assert person.wait() == 1
        assert person.text("stdout").endswith(f"Nothing was {asking.declined}.\n")
    assert contents() == before


def test_with_json_a_person_sees_the_plan_and_the_output_stream_holds_only_data(asking: Asking) -> None:
    with Person(*asking.words.split(), "--json", at=("stdin", "stderr")) as person:
        assert asking.plan in person.read_until("[y/N]")
        person.type("n\n")
        assert person.wait() == 1
        data = json.loads(person.text("stdout"))
    name = next(name for name in ("trust grant", asking.words.split()[0]) if asking.words.startswith(name))
    assert problems(data, name) == []
    assert not data[asking.done] or name == "update"
    assert all(update["status"] == "available" for update in data.get("updates", ()))


def test_who_is_not_there_is_not_asked(asking: Asking, command: Command) -> None:
    before = contents()
    ran = command(*asking.words.split(), stdin="y\n")
    assert (ran.status, "use --yes" in ran.err) == (2, True)
    assert asking.plan in ran.out
    assert asking.report not in ran.out
    ran = command(*asking.words.split(), "--json", stdin="y\n")
    assert (ran.status, ran.out, json.loads(ran.err)["error"]["code"]) == (2, "", "usage")
    assert contents() == before


@pytest.mark.parametrize("at", [("stdin",), ("stderr",), ("stdout",)])
def test_one_stream_that_is_a_terminal_is_enough_to_be_asked(project: Path, at: tuple[str, ...]) -> None:
    """The input may be a list of names, the output a file, the error stream a log: the person is still there."""
    with Person("trust", "grant", "folder-report", at=at) as person:  # type: ignore[arg-type]  # its own words
        person.read_until("[y/N]")
        person.type("maybe\n")
        person.read_until("[y/N]")
        person.type("yes\n")
        assert person.wait() == 0
    assert [grant.name for grant in prowess.Trust().grants()] == ["folder-report"]
    assert project.exists()


def test_a_refused_grant_of_a_changed_skill_leaves_the_grants_as_they_are(project: Path, command: Command) -> None:
    folder = next(path for path in project.parent.rglob("folder-report") if (path / "scripts").is_dir())
    script = next((folder / "scripts").iterdir())
    shown = script.read_bytes()
    assert command("trust", "grant", "folder-report", "--yes").status == 0
    before = prowess.Trust().grants()
    script.write_bytes(shown + b"# another state\n")
    with Person("trust", "grant", "folder-report") as person:
        person.read_until("[y/N]")
        script.write_bytes(shown)  # granted before, and not what the question shows
        person.type("y\n")
        assert person.wait() != 0
    assert prowess.Trust().grants() == before


def test_the_end_of_the_input_at_a_question_is_an_interruption_and_changes_nothing(project: Path) -> None:
    with Person("trust", "grant", "folder-report") as person:
        person.read_until("[y/N]")
        person.type("\x04")
        assert person.wait() == 130
    assert prowess.Trust().grants() == ()
    assert project.exists()


@pytest.mark.parametrize("words", [("trust", "grant", "./sly"), ("install", "./sly", "--project")], ids=" ".join)
def test_question_has_no_character_that_a_person_does_not_see(project: Path, words: tuple[str, ...]) -> None:
    # Unlike joiners and the selectors of emoji, which ordinary text has, none of these is escaped in other output.
    hidden = "\u00ad\u034f\u115f\u3164\ufe0f\ufeff\U000e0101\U000e0041"
    (project / "sly/scripts").mkdir(parents=True)
    text = f"---\nname: sly\ndescription: Is sly.\n---\nRun !`echo {hidden}`.\n"
    (project / "sly/SKILL.md").write_text(text, encoding="utf-8")
    (project / f"sly/scripts/a{hidden[0]}.py").touch()
    with Person(*words, columns=200) as person:
        person.read_until("[y/N]")
        person.type("n\n")
        assert person.wait() == 1
        assert [char for char in hidden if char in person.screen] == []
        assert "echo \\xad\\u034f\\u115f\\u3164\\ufe0f\\ufeff\\U000e0101\\U000e0041" in person.screen
        assert "scripts/a\\xad.py" in person.screen


def test_a_source_without_a_skill_that_loads_is_planned_for_nobody(project: Path, command: Command) -> None:
    (project / "broken/one").mkdir(parents=True)
    (project / "broken/one/SKILL.md").write_text("---\nname: one\n---\n", encoding="utf-8")
    looked = command("install", "./broken", "--project", "--dry-run")
    assert (looked.status, looked.out) == (1, "Nothing was installed.\n")
    assert "[missing-description]" in looked.err
    ran = command("install", "./broken", "--project")
    assert (ran.status, ran.out, "error[missing-description]" in ran.err) == (3, "", True)

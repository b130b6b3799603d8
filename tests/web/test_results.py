"""Results of changes: a console that is started again shows what the one before it did."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.changes.change import idle_change
from prowess.errors import Issue, NotTrustedError, SkillError
from prowess.files.projects import user_state_file
from prowess.limits import Limits
from prowess.web.forms import Fields
from prowess.web.plans import ChangePlan, PlanBook, ResultFile
from tests.web.console import write_skill

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.install.conftest import World
    from tests.web.console import Console

    Open = Callable[..., Console]


def make_plan(number: int = 0, result: str = "Done") -> ChangePlan:
    return ChangePlan(
        f"plan-{number}",
        "sync",
        Fields({"scope": ["project"], "agent": ["codex", "gemini"]}),
        1_000.0 + number,
        "failed",
        idle_change(steps=("one", "two")),
        result=(result,),
        issues=(Issue("name-taken", "", "taken", "/x", 3, "warning"),),
        error=SkillError("it failed", "/y", "bad-argument"),
        changed=("/z",),
    )


def test_a_result_is_read_by_the_console_that_is_started_next(world: World, console: Open) -> None:
    opened = console()
    plan = opened.plan(kind="install", source=str(world.folder("pdf")), scope="project").confirm()
    again = console().browser
    assert again.get("/changes").page.find("a", href=plan.address)
    page = again.get(plan.address).page
    text = page.text_of("main")[0]
    assert page.text_of("small") == ["done"]
    assert plan.result[0] in text
    assert plan.steps[-1] in text
    assert "was kept when the console ended" in text
    # It is over: another confirmation changes nothing, and the same can be planned anew.
    assert not page.find("form", action=f"{plan.address}/confirm")


def test_a_refusal_is_kept_with_the_files_and_the_form_to_plan_it_again(world: World, console: Open) -> None:
    path = write_skill(world.agents, "one", "Run !`date`.\n")
    plan = console().plan(kind="trust", skill="one")
    path.write_text(path.read_text(encoding="utf-8") + "More.\n", encoding="utf-8")
    assert plan.confirm().state == "refused"
    opened = console()
    kept = type(plan)(opened, plan.address)
    assert "one/SKILL.md" in kept.text
    assert kept.again().confirm().state == "done"
    assert opened.trust.grants()


def test_a_plan_that_nobody_confirmed_and_one_that_was_given_up_are_not_kept(world: World, console: Open) -> None:
    opened, source = console(), str(world.folder("pdf"))
    for _ in range(2):
        plan = opened.plan(kind="install", source=source, scope="project")
    plan.take_step("discard")
    assert "None yet" in console().browser.get("/changes").text
    gone = console().browser.get(plan.address)
    assert gone.status == 404
    assert "ended before anybody confirmed it" in gone.text


def test_two_consoles_of_one_project_see_the_results_of_each_other(console: Open) -> None:
    first, second = console(), console()
    plan = first.plan(kind="verify")
    assert second.browser.get(plan.address).status == 200
    second.plan(kind="verify")
    assert len(first.browser.get("/changes").page.find("span", class_="mark-done")) == 2


def test_everything_that_a_page_shows_of_a_result_is_kept(tmp_path: Path) -> None:
    plan = make_plan()
    ResultFile(str(tmp_path / "results.json"), "/a", Limits()).add(plan)
    (kept,) = ResultFile(str(tmp_path / "results.json"), "/a", Limits()).read()
    for name in ("id", "kind", "made", "state", "result", "issues", "changed", "title"):
        assert getattr(kept, name) == getattr(plan, name)
    assert kept.fields.items() == plan.fields.items()
    assert kept.change is not None
    assert kept.change.steps == ("one", "two")
    assert kept.error is not None
    assert (kept.error.message, kept.error.path, kept.error.code) == ("it failed", "/y", "bad-argument")


def test_only_the_owner_can_read_the_file_and_each_project_sees_its_own_results(tmp_path: Path) -> None:
    path = tmp_path / "state" / "results.json"
    mine, other = (ResultFile(str(path), project, Limits()) for project in ("/a", "/b"))
    mine.add(make_plan(1))
    other.add(make_plan(2))
    assert [plan.id for plan in mine.read()] == ["plan-1"]
    assert [plan.id for plan in other.read()] == ["plan-2"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_the_file_keeps_its_limits_and_forgets_the_oldest(tmp_path: Path) -> None:
    path = str(tmp_path / "results.json")
    few = ResultFile(path, "/a", Limits(max_console_plans=3))
    for number in range(5):
        few.add(make_plan(number))
    assert [plan.id for plan in few.read()] == ["plan-2", "plan-3", "plan-4"]
    small = ResultFile(path, "/a", Limits(max_console_result_bytes=3_000))
    small.add(make_plan(5, "x" * 2_000))
    assert [plan.id for plan in small.read()] == ["plan-4", "plan-5"]
    with pytest.raises(NotTrustedError, match="too long"):
        small.add(make_plan(6, "x" * 3_000))
    assert len(small.read()) == 2


def test_a_file_that_is_damaged_is_named_left_alone_and_stops_no_change(world: World, console: Open) -> None:
    opened = console()
    opened.results.parent.mkdir(mode=0o700)
    opened.results.write_text("{", encoding="utf-8")
    plan = opened.plan(kind="install", source=str(world.folder("pdf")), scope="project")
    assert plan.confirm().state == "done"
    problem = opened.browser.get("/changes").page.text_of("p", class_="problem")[0]
    assert "results.json" in problem
    assert "damaged" in problem
    assert opened.results.read_text(encoding="utf-8") == "{"


def test_a_file_that_others_may_write_to_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    file = ResultFile(str(path), "/a", Limits())
    file.add(make_plan())
    path.chmod(0o666)
    with pytest.raises(NotTrustedError, match="others may write"):
        ResultFile(str(path), "/a", Limits()).read()


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "of a later version"},
        {"state": "running"},
        {"made": 1e300},
        {"made": "yesterday"},
        {"steps": [1]},
        {"issues": [{"code": "x"}]},
        {"fields": [["scope"]]},
        {"error": {}},
        {"made": None},
        {"made": True},
        {"error": {"message": "m", "path": [], "code": "bad-argument"}},
        {"error": {"message": "m", "path": "", "code": None}},
        {"issues": [{"code": "x", "field": "", "message": "m", "line": None}]},
        {"issues": [{"code": "x", "field": "", "message": "m", "severity": ["error"]}]},
        {"issues": [{"code": {}, "field": "", "message": "m"}]},
    ],
)
def test_a_record_that_makes_no_sense_hides_no_other(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "results.json"
    file = ResultFile(str(path), "/a", Limits())
    for number in range(2):
        file.add(make_plan(number))
    content = json.loads(path.read_text(encoding="utf-8"))
    content["plans"][0].update(change)
    path.write_text(json.dumps(content), encoding="utf-8")
    assert [plan.id for plan in ResultFile(str(path), "/a", Limits()).read()] == ["plan-1"]


def test_no_value_in_the_file_of_results_stops_the_console(world: World, console: Open) -> None:
    done = console()
    sound = done.plan(kind="install", source=str(world.folder("pdf")), scope="project").confirm()
    (record,) = json.loads(done.results.read_text(encoding="utf-8"))["plans"]
    error = {"code": "bad-argument", "message": "m", "path": ""}
    issue = {"code": "x", "field": "", "message": "m", "path": "", "line": 1, "severity": "error"}
    record |= {"error": error, "issues": [issue]}
    values: list[object] = [None, True, -1, 1e300, "", "x", [], [None], [[]], {}, {"a": None}, [{"a": 1}], [["a", "b"]]]
    changes: list[dict[str, object]] = [{key: value} for key in record for value in values]
    changes += [{"issues": [{**issue, key: value}]} for key in issue for value in values]
    changes += [{"error": {**error, key: value}} for key in error for value in values]
    plans = [{**record, "id": f"plan-{number}", **change} for number, change in enumerate(changes)]
    for first in range(0, len(plans), 50):
        batch = plans[first : first + 50]
        done.results.write_text(json.dumps({"plans": [record, *batch]}), encoding="utf-8")
        browser = console().browser
        changed = browser.get("/changes")
        assert changed.status == 200, batch
        assert changed.page.find("a", href=sound.address)
        for number in range(first, first + len(batch)):
            assert browser.get(f"/plans/plan-{number}").status in {200, 404}, plans[number]


def test_results_lie_in_the_state_folder_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert user_state_file("x.json") == str(tmp_path / ".local/state/prowess/x.json")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert user_state_file("x.json") == str(tmp_path / "state/prowess/x.json")


def test_a_library_without_results_keeps_none(tmp_path: Path) -> None:
    from prowess.web.library import Library

    book = PlanBook(Library(prowess.scan(tmp_path)))
    book.wait(book.make_plan("verify", Fields({})).id, 10)
    assert len(book.list_plans()) == 1
    assert not [*tmp_path.iterdir()]

"""Long work tells its steps to whoever asked, and to nobody else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.progress_steps import report_amount, report_steps

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Told = list[tuple[str, int, int]]


def write_skills(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).mkdir(parents=True)
        text = f"---\nname: {name}\ndescription: Does {name}.\n---\nDo it.\n"
        (folder / name / "SKILL.md").write_text(text, encoding="utf-8")


def test_each_step_is_reported_when_it_begins_and_the_end_once() -> None:
    told: Told = []
    with prowess.progress(lambda *step: told.append(step)):
        assert [item for item in report_steps("abc", str.upper)] == ["a", "b", "c"]  # noqa: C416 - a loop, as in use
    assert told == [("A", 0, 3), ("B", 1, 3), ("C", 2, 3), ("", 3, 3)]


def test_outside_of_a_block_nothing_is_reported() -> None:
    told: Told = []
    with prowess.progress(lambda *step: told.append(step)):
        pass
    assert list(report_steps("abc", str)) == ["a", "b", "c"]
    assert told == []


def test_a_loop_inside_a_step_is_silent_unless_the_outer_loop_has_one_step() -> None:
    told: Told = []
    with prowess.progress(lambda *step: told.append(step)):
        for _ in report_steps("ab", str):
            list(report_steps("xyz", str))
        for _ in report_steps("c", str):
            list(report_steps("uv", str))
    assert [what for what, _, _ in told] == ["a", "b", "", "u", "v", ""]


def test_an_amount_is_reported_with_the_step_that_it_belongs_to() -> None:
    told: Told = []
    with prowess.progress(lambda *step: told.append(step)):
        report_amount("1 kB")
        for _ in report_steps("ab", str):
            report_amount("2 kB")
        report_amount("3 kB")
    report_amount("4 kB")
    amounts = [step for step in told if "kB" in step[0]]
    assert amounts == [("1 kB", 0, 0), ("a, 2 kB", 0, 2), ("b, 2 kB", 1, 2), ("3 kB", 0, 0)]


def test_after_a_loop_that_was_left_early_the_next_one_reports() -> None:
    told: Told = []

    def fail() -> None:
        for item in report_steps("ab", str):
            raise RuntimeError(item)

    with prowess.progress(lambda *step: told.append(step)):
        with pytest.raises(RuntimeError):
            fail()
        list(report_steps("cd", str))
    assert [what for what, _, _ in told] == ["a", "c", "d", ""]


def test_an_exception_of_the_callback_stops_the_work(tmp_path: Path) -> None:
    write_skills(tmp_path, "one", "two")

    def stop(what: str, _done: int, _total: int) -> None:
        raise KeyboardInterrupt(what)

    with pytest.raises(KeyboardInterrupt, match="one"), prowess.progress(stop):
        prowess.check(tmp_path)


def test_checks_and_evals_report_their_steps(tmp_path: Path) -> None:
    write_skills(tmp_path, "one", "two")
    told: Told = []
    with prowess.progress(lambda *step: told.append(step)):
        prowess.check(tmp_path)
        cases = [prowess.EvalCase(query, "one") for query in ("first", "second", "third")]
        prowess.evaluate(cases, prowess.scan(tmp_path))
    assert told[:3] == [("one", 0, 2), ("two", 1, 2), ("", 2, 2)]
    assert told[-4:] == [("first", 0, 3), ("second", 1, 3), ("third", 2, 3), ("", 3, 3)]


def test_an_installer_reports_the_steps_of_all_that_it_does_to_several(tmp_path: Path) -> None:
    write_skills(tmp_path / "source", "one", "two", "three")
    installer = prowess.Installer(tmp_path / "user", tmp_path / "project" / ".prowess" / "skills")

    def told_by(work: Callable[[], object]) -> Told:
        told: Told = []
        with prowess.progress(lambda *step: told.append(step)):
            work()
        return told

    told = told_by(lambda: installer.install_local(tmp_path / "source", project=True))
    assert [step for step in told if step[0] == ""] == [("", 3, 3)] * 2, "written, and then on the disk"
    for name in ("one", "two"):
        installer.install_local(tmp_path / "source", project=True, select=name, replace=True)
    names = [what for what, _, _ in told_by(installer.verify)]
    assert names == ["local/one", "local/source", "local/two", ""]
    for work in (installer.outdated, installer.update, installer.sync):
        assert told_by(work)[-1] == ("", 3, 3)
    assert told_by(lambda: installer.link("@local/one", ["claude-code", "windsurf"]))[-1] == ("", 2, 2)

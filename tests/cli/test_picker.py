"""Choosing skills of a source on a real pseudo-terminal: keys, sizes, odd text, and a terminal that is given back."""

from __future__ import annotations

import os
import pty
import re
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.cli.picker import Choice, PickerState, cut_line, pick_names, render_frame, wrap_line
from prowess.cli.render.plain_text import cell_width
from prowess.cli.terminal import Terminal
from tests.cli.persons import Person
from tests.repositories import Repository, skill_text

if TYPE_CHECKING:
    from collections.abc import Callable

STYLES = re.compile(r"\x1b\[[0-9;]*m")
EVIL = "\x1b[2J\x1b]0;owned\x07 \u202e"
UP, DOWN, RIGHT, LEFT, ESC, ENTER = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D", "\x1b", "\r"
LEFT_SCREEN = "\x1b[?1049l"


def frame_of(screen: str) -> list[str]:
    """The lines of the last whole picture."""
    whole = [part for part in screen.split("\x1b[H")[1:] if "\x1b[J" in part]
    return STYLES.sub("", whole[-1].partition("\x1b[J")[0]).replace("\x1b[K", "").splitlines() if whole else []


class Picker(Person):
    """A person in front of the picker."""

    def press(self, keys: str, until: Callable[[list[str]], bool]) -> list[str]:
        """Press keys, and look until the picture is as expected."""
        begin = len(self.screen)
        self.type(keys)
        while not until(frame_of(self.screen[begin:])):
            assert self.read_some(), f"the picture stays {frame_of(self.screen)}"
        return frame_of(self.screen)

    def first_frame(self) -> list[str]:
        """The first picture."""
        while not frame_of(self.screen):
            assert self.read_some(), self.screen
        return frame_of(self.screen)


def chosen_are(count: str) -> Callable[[list[str]], bool]:
    return lambda frame: any(row.startswith(f"{count} chosen") for row in frame)


def current_is(name: str) -> Callable[[list[str]], bool]:
    return lambda frame: any(row.startswith(("> [x] ", "> [ ] ")) and row[6:].startswith(name) for row in frame)


@pytest.fixture
def source(tmp_path: Path, project: Path) -> Repository:  # noqa: ARG001 - a fixture for its effect
    """A repository with three skills, one of which could run code and has a finding."""
    made = Repository(tmp_path / "repositories" / "trio")
    for name in ("alpha", "beta"):
        made.write(f"skills/{name}/SKILL.md", skill_text(name, description=f"Does {name} things. Use it for {name}."))
    made.write("skills/beta/scripts/run.py", "print()\n")
    made.write("skills/gamma/SKILL.md", skill_text("gamma", description="TODO"))
    made.commit(tag="v1")
    return made


def installed_names() -> list[str]:
    return [one.full_name for one in prowess.Installer().list()]


def test_what_is_chosen_with_space_is_installed_and_nothing_else(source: Repository) -> None:
    with Picker("install", source.address, "--project") as person:
        frame = person.first_frame()
        assert source.git("rev-parse", "HEAD").strip()[:12] in frame[0]
        assert frame[1].startswith("3 of 3 chosen")
        assert any("Does alpha things" in row for row in frame)
        person.press(" ", chosen_are("2 of 3"))
        frame = person.press(DOWN, current_is("beta"))
        assert any("runs code" in row for row in frame)
        assert any("could run: scripts/run.py" in row for row in frame)
        frame = person.press(DOWN, current_is("gamma"))
        assert any("[vague-description]" in row for row in frame)
        person.press(" ", chosen_are("1 of 3"))
        person.type(ENTER)
        shown = person.read_until("[y/N]")
        assert "1 skill" in shown
        person.type("y\n")
        assert person.wait() == 0
    assert installed_names() == ["local/beta"]
    assert Path(".agents/skills/beta").is_symlink()
    assert not Path(".agents/skills/alpha").exists()


def test_all_of_them_are_one_install_as_without_a_terminal(source: Repository) -> None:
    with Picker("install", source.address, "--project") as person:
        person.first_frame()
        person.press(LEFT, chosen_are("0 of 3"))
        person.press(RIGHT, chosen_are("3 of 3"))
        person.type(ENTER)
        shown = person.read_until("[y/N]")
        assert "alpha, beta, gamma" in " ".join(shown.split())
        person.type("y\n")
        assert person.wait() == 0
    assert installed_names() == ["local/trio"]


def test_none_of_them_is_a_no(source: Repository) -> None:
    with Picker("install", source.address, "--project", "--json", at=("stdin", "stderr")) as person:
        person.first_frame()
        person.press(LEFT, chosen_are("0 of 3"))
        person.type(ENTER)
        assert person.wait() == 1
        assert '"installed": []' in person.text("stdout")
    assert installed_names() == []


def test_typing_filters_and_what_is_chosen_stays(source: Repository) -> None:
    with Picker("install", source.address, "--project", at=("stdin", "stderr")) as person:
        person.first_frame()
        person.press(LEFT, chosen_are("0 of 3"))
        frame = person.press("bet", current_is("beta"))
        assert not any("alpha" in row for row in frame[2:])
        assert "(2 do not fit)" in frame[1]
        person.press(RIGHT, chosen_are("1 of 3"))
        frame = person.press("x", lambda frame: any("nothing fits" in row for row in frame))
        person.press(ESC, lambda frame: any("[ ] alpha" in row for row in frame))
        person.type(ENTER)
        person.read_until("[y/N]")
        person.type("n\n")
        assert person.wait() == 1
        assert person.text("stdout").endswith("Nothing was installed.\n")
    assert installed_names() == []


@pytest.mark.parametrize(("end", "status"), [("ctrl-c", 130), ("terminated", 143)])
def test_the_terminal_is_given_back_however_it_ends(source: Repository, end: str, status: int) -> None:
    with Picker("install", source.address, "--project") as person:
        before = person.settings()
        person.first_frame()
        assert person.settings() != before, "keys come one by one, and are not shown"
        if end == "ctrl-c":
            person.type("\x03")
        else:
            os.kill(person.pid, signal.SIGTERM)
        assert person.wait() == status
        assert person.settings() == before
        assert person.screen.count("\x1b[?1049h") == person.screen.count(LEFT_SCREEN) == 1
        assert person.screen.count("\x1b[?25l") <= person.screen.count("\x1b[?25h")
        assert person.screen.count("\x1b[?7l") == person.screen.count("\x1b[?7h") == 1
    assert installed_names() == []


def test_a_signal_that_does_not_interrupt_the_wait_for_keys_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that comes just before the wait begins does not; here another thread gets it during the wait."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    master, slave = pty.openpty()
    ended = threading.Event()
    noticed: list[bool] = []

    def send_signal() -> None:
        shown = b""
        while b"\x1b[J" not in shown:
            shown += os.read(master, 65536)
        waits_at = Path(f"/proc/self/task/{threading.main_thread().native_id}/wchan")
        while waits_at.exists() and not re.search("poll|select|^0", waits_at.read_text(encoding="ascii")):
            pass
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        noticed.append(ended.wait(10))
        os.write(master, ENTER.encode())

    with os.fdopen(slave, "r") as keys, os.fdopen(os.dup(slave), "w") as screen:
        thread = threading.Thread(target=send_signal)
        thread.start()
        with pytest.raises(SystemExit):
            pick_names([Choice("alpha", "It.")], (), "Skills", Terminal(keys, screen))
        ended.set()
        thread.join()
    os.close(master)
    assert noticed == [True]


def test_another_size_of_the_screen_is_drawn_at_once(source: Repository) -> None:
    with Picker("install", source.address, "--project") as person:
        assert len(person.first_frame()) <= 24
        person.resize(10, 30)
        frame = person.press("", lambda frame: bool(frame) and max(map(len, frame)) <= 30)
        assert len(frame) <= 10
        person.resize(3, 12)
        frame = person.press("", lambda frame: bool(frame) and max(map(len, frame)) <= 12)
        assert (len(frame), current_is("alpha"[:5])(frame)) == (3, True)
        person.type("\x03")
        assert person.wait() == 130


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"NO_COLOR": "1"}, {"TERM": ""}], ids=str)
def test_a_terminal_that_cannot_be_drawn_on_is_asked_for_numbers(source: Repository, env: dict[str, str]) -> None:
    with Picker("install", source.address, "--project", env=env) as person:
        shown = person.read_until("[all]:")
        assert re.search(r"2  beta .*runs code", shown)
        person.type("1, 9\n")
        assert "There is no 9." in person.read_until("[all]:")
        person.type("2-3 alpha none 1,gamma\n")
        person.read_until("[y/N]")
        person.type("y\n")
        assert person.wait() == 0
        assert LEFT_SCREEN not in person.screen
    assert installed_names() == ["local/alpha", "local/gamma"]


def test_one_skill_is_shown_with_what_it_costs_and_could_run_and_nobody_picks(source: Repository) -> None:
    with Picker("install", f"{source.address}", "--skill", "beta", "--project") as person:
        shown = STYLES.sub("", person.read_until("[y/N]"))
        assert "could run: scripts/run.py" in shown
        assert "tokens to list" in shown
        person.type("y\n")
        assert person.wait() == 0
    assert installed_names() == ["local/beta"]


def test_what_was_shown_is_what_is_installed_though_the_branch_has_moved(source: Repository) -> None:
    before = source.git("rev-parse", "HEAD").strip()
    with Picker("install", source.address, "--project") as person:
        person.first_frame()
        source.skill("skills/alpha", body="Something else.\n")
        source.commit()
        person.type(ENTER)
        person.read_until("[y/N]")
        person.type("y\n")
        assert person.wait() == 0
    assert before in Path("prowess.lock").read_text(encoding="utf-8")
    assert "Something else." not in Path(".agents/skills/alpha/SKILL.md").read_text(encoding="utf-8")


def test_escape_codes_of_a_description_are_shown_and_not_obeyed(project: Path) -> None:
    for name in ("one", "two"):
        folder = Path("evil/skills", name)
        folder.mkdir(parents=True)
        shown = "Clears \\e[2J the \\e]0;owned\\a screen \u00ad hidden \u200d \ufe0f"
        text = f'---\nname: {{}}\ndescription: "{shown}"\n---\nx\n'
        (folder / "SKILL.md").write_text(text.format(name), encoding="utf-8")
    with Picker("install", "./evil", "--project") as person:
        frame = person.first_frame()
        assert any("\\xad hidden \\u200d \\ufe0f" in row for row in frame)
        assert any("Clears \\x1b[2J the" in row for row in frame)
        assert "\x1b[2J" not in person.screen
        assert "\x07" not in person.screen
        person.type("\x03")
        assert person.wait() == 130
    assert project.exists()


def test_elsewhere_the_plan_names_each_skill_the_commit_and_the_agents(source: Repository) -> None:
    from tests.cli.conftest import Command

    ran = Command()("install", source.address, "--project", "--agent", "claude-code", "--yes")
    assert ran.status == 0, ran.err
    assert "alpha, beta, gamma" in ran.plan
    assert source.git("rev-parse", "HEAD").strip()[:12] in ran.plan
    assert "claude-code" in ran.plan


# -- without a terminal ------------------------------------------------------------------------------------------------

MANY = [
    Choice(f"skill-{number:04}", f"日本語の説明 {number} {EVIL}" * 9, "12 tokens", ("x" * 200,))
    for number in range(500)
]


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (20, 8), (9, 5), (2, 1), (200, 60), (33, 10)])
def test_no_picture_is_larger_than_its_screen_and_the_current_choice_is_on_it(columns: int, rows: int) -> None:
    picking = PickerState(MANY, set())
    for key in ("", "down", "page down", "last", "up", "page up", "first"):
        picking.press_key(key)
        lines = [STYLES.sub("", row) for row in render_frame(picking, f"heading {EVIL} " * 20, columns, rows)]
        assert len(lines) <= rows
        assert max(map(cell_width, lines)) <= columns
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202e]", "".join(lines))
        assert sum(row.startswith(">") for row in lines) == 1


def test_odd_keys_do_nothing_and_moves_end_at_the_ends() -> None:
    picking = PickerState([Choice("a", "x"), Choice("b", "y")], {"a"})
    for key in ("up", "\x00", "\x1b[99~", "page up", "first"):
        picking.press_key(key)
    assert (picking.position, picking.chosen, picking.query) == (0, {"a"}, "")
    picking.press_key("last")
    picking.press_key("down")
    assert picking.position == 1
    for key in ("y", "backspace", "backspace", "q"):
        picking.press_key(key)
    assert (picking.query, picking.current) == ("q", None)
    picking.press_key("toggle")
    picking.press_key("up")
    assert picking.chosen == {"a"}
    assert render_frame(picking, "", 40, 12)


def test_lines_are_cut_and_wrapped_by_what_they_take_on_the_screen() -> None:
    assert cut_line("日本語", 5) == "日本…"
    assert cut_line("日本語", 6) == "日本語"
    assert wrap_line("日本 語 の 説明", 5) == ["日本", "語 の", "説明"]
    assert all(cell_width(row) <= 7 for row in wrap_line(f"long-word-that-fits-nowhere {EVIL}", 7))

"""Nothing is quadratic: what each further skill costs does not depend on how many there are.

Calls of functions are counted, and no time is taken: the counts are the same on every machine, however busy it is.
Three projects of equally spaced sizes are compared. Where a function is called so often for each skill, its second step
is as large as its first; where it is called for each pair of skills, it is larger by a part of the size squared.
"""

from __future__ import annotations

import cProfile
import shutil
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import pytest

import prowess
from prowess.authoring.findings import find_secret_issues
from prowess.cli.commands import list as list_command
from prowess.cli.commands import prompt as prompt_command
from prowess.install.manifest_text import change_entries
from tests.repositories import skill_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import click

    from tests.install.conftest import World

SIZES = (5, 15, 25)
PAIRS_OF_A_STEP = (SIZES[1] - SIZES[0]) ** 2
"""What a function that is called for every pair of skills has more in the second step than in the first."""


def count_calls(work: Callable[[], object]) -> Counter[str]:
    """How often each function is called, and each generator resumed; those of C too."""
    profile = cProfile.Profile()
    profile.runcall(work)
    counts: Counter[str] = Counter()
    for row in profile.getstats():
        code = row.code if isinstance(row.code, str) else f"{row.code.co_filename}: {row.code.co_qualname}"
        counts[code] += row.callcount
    return counts


def find_quadratic(small: Counter[str], middle: Counter[str], large: Counter[str]) -> dict[str, tuple[int, int, int]]:
    """The functions whose calls grow with the pairs of skills, with their counts; one for every fourth pair counts."""
    return {
        name: (small[name], middle[name], large[name])
        for name in large
        if large[name] - 2 * middle[name] + small[name] >= PAIRS_OF_A_STEP / 4
    }


def name_of(number: int) -> str:
    return f"{'abcdefghij'[number % 10] * 3}-skill-{number:03}"


def run(command: click.Command) -> None:
    command.main([], standalone_mode=False)


class Setting(NamedTuple):
    """A project with so many skills of one source, and what installs them again."""

    project: Path
    source: Path
    chosen: list[str] | None

    def restore(self) -> object:
        """Bring back everything that the lock file records, as in a clone."""
        shutil.rmtree(self.project / ".prowess")
        shutil.rmtree(self.project / ".agents")
        return prowess.Installer().sync(locked=True)

    def install(self, *, replace: bool = False) -> object:
        return prowess.Installer().install(str(self.source), project=True, select=self.chosen, replace=replace)


TASKS: dict[str, Callable[[Setting], object]] = {
    "install over them": lambda setting: setting.install(replace=True),
    "outdated": lambda _: prowess.Installer().outdated(),
    "update, nothing new": lambda _: prowess.Installer().update(),
    "verify": lambda _: prowess.Installer().verify(),
    "sync, locked": lambda _: prowess.Installer().sync(locked=True),
    "sync, locked, in a fresh clone": lambda setting: setting.restore(),
    "discover, verified": lambda _: prowess.discover(verify="lock"),
    "list": lambda _: run(list_command.command),
    "prompt": lambda _: run(prompt_command.command),
    "remove": lambda _: prowess.Installer().remove([f"@{one.full_name}" for one in prowess.Installer().list()]),
}


PARSE_ONCE = ("verify", "discover, verified", "list", "prompt")


def count_calls_of(name: str, counts: Counter[str]) -> int:
    """How often a function with that name was called: what costs most where there are thousands of skills."""
    return sum(count for code, count in counts.items() if code.endswith(f": {name}"))


@pytest.mark.parametrize("shape", ["an install for each skill", "one install of all skills"])
def test_what_a_further_skill_costs_does_not_depend_on_how_many_there_are(
    world: World, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    # Policy files are looked at again while a folder has just changed: how often depends on the clock.
    with prowess.use_policy(prowess.Policy()):
        _check_costs(world, monkeypatch, shape)


def _check_costs(world: World, monkeypatch: pytest.MonkeyPatch, shape: str) -> None:
    counts: dict[str, list[Counter[str]]] = {name: [] for name in ("install", *TASKS)}
    for size in (2, *SIZES):
        names = [name_of(number) for number in range(size)]
        setting = Setting(
            world.base / f"project-{size}", world.base / f"source-{size}", names if "each" in shape else None
        )
        (setting.project / ".git").mkdir(parents=True)
        for name in names:
            (setting.source / name).mkdir(parents=True)
            (setting.source / name / "SKILL.md").write_text(skill_text(name), encoding="utf-8")
        monkeypatch.chdir(setting.project)
        counts["install"].append(count_calls(setting.install))
        for name, task in TASKS.items():
            counts[name].append(count_calls(lambda: task(setting)))  # noqa: B023
    parsed = {name: count_calls_of("parse_lock_file", counts[name][-1]) for name in PARSE_ONCE}
    assert parsed == dict.fromkeys(PARSE_ONCE, 1)
    hashed = {name: count_calls_of("hash_tree", counts[name][-1]) for name in ("verify", "sync, locked")}
    assert hashed["verify"] == hashed["sync, locked"], "each install is compared once"
    # What is imported and compiled for the first time, with the first and smallest project, is not compared.
    assert {name: find_quadratic(*found[1:]) for name, found in counts.items()} == {name: {} for name in counts}


def test_names_are_compared_without_going_through_all_pairs() -> None:
    from prowess.install.apply_plan import find_lookalike_issues

    counts = []
    for size in SIZES:
        arriving, known = ([f"{name_of(number)}-{word}" for number in range(size)] for word in ("one", "another"))
        counts.append(count_calls(lambda: list(find_lookalike_issues(arriving, "acme", known))))  # noqa: B023
    assert find_quadratic(*counts) == {}


def test_what_is_refused_in_skills_of_a_source_is_told_without_going_through_all_pairs(world: World) -> None:
    source = world.base / "source"
    counts = []
    for size in (2, *SIZES):
        for number in range(size):
            folder = source / "skills" / name_of(number)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "SKILL.md").write_text(skill_text(folder.name), encoding="utf-8")
            if not (folder / "odd").is_symlink():
                (folder / "odd").symlink_to(world.base)
        counts.append(count_calls(lambda: prowess.Installer().offers(str(source))))
    assert find_quadratic(*counts[1:]) == {}  # the first one imports and compiles


def test_a_manifest_is_gone_through_once_however_many_entries_are_taken_out() -> None:
    counts = []
    for size in SIZES:
        text = "skills = [\n" + "".join(f'  "acme/{name_of(number)}",\n' for number in range(size)) + "]\n"
        every = dict.fromkeys(range(size))
        assert change_entries(text, (), every, []) == "skills = [\n]\n"
        counts.append(count_calls(lambda: change_entries(text, (), every, [])))  # noqa: B023
    assert find_quadratic(*counts) == {}


class Counted(str):
    """A text that adds up how many characters were looked through for line ends."""

    __slots__ = ("seen",)
    seen: int

    def count(self, what: str, begin: int = 0, end: int | None = None) -> int:  # type: ignore[override]
        end = len(self) if end is None else end
        self.seen = getattr(self, "seen", 0) + end - begin
        return super().count(what, begin, end)


def test_a_text_full_of_secrets_is_gone_through_once() -> None:
    text = Counted("".join(f"AKIA{number:016}\n".replace("00000", "0A0B0") for number in range(1_000)))
    issues = [*find_secret_issues(text, "SKILL.md")]
    assert [issue.line for issue in issues] == [*range(1, 1_001)]
    assert text.seen <= len(text)

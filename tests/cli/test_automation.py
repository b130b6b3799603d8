"""``check`` where nobody looks: the CI example and the pre-commit hooks, carried out as those who run them would."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from filelock import FileLock

from bench.environments import NotInstalledError, cache_folder, python_with
from tests.cli.samples import installed
from tests.sandbox_support import NOT_TESTED

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "ci.md").read_text(encoding="utf-8")
EXAMPLES = [yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)]
HOOKS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
SETTING_UP = "pip install /path/to/prowess"


def environment() -> dict[str, str]:
    """With this checkout's console script on the path, as after the step that installs it."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


# -- CI ----------------------------------------------------------------------------------------------------------------


def ci_lines() -> list[str]:
    """The commands of the example, but for the one that installs Prowess."""
    steps = next(example["jobs"]["skills"]["steps"] for example in EXAMPLES if "jobs" in example)
    lines = [step["run"] for step in steps if "run" in step]
    assert lines[0] == SETTING_UP
    return lines[1:]


def run_job(lines: list[str]) -> tuple[str, int, str]:
    """The steps as a runner takes them, each in a shell of its own; the last one, its status, what it said."""
    status, said, line = 0, "", ""
    for line in lines:
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", line],
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        status, said = done.returncode, done.stdout + done.stderr
        assert "Traceback" not in said
        if status:
            break
    return line, status, said


@pytest.fixture
def collection(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a collection that is right: checked skills, queries that find them, an install that is locked."""
    monkeypatch.setenv("PROWESS_SELECTOR", "lexical")  # a job loads the encoder anew, which takes a while
    shutil.rmtree(project / ".agents")
    shutil.copytree(ROOT / "examples" / "skills", project / "skills")
    evals = project / "skills" / "csv-report" / "evals"
    evals.mkdir()
    (evals / "t.json").write_text('[{"query": "what is in this csv file?", "should_trigger": true}]', encoding="utf-8")
    installed()
    return project


def _break_a_name(project: Path) -> None:
    file = project / "skills" / "csv-report" / "SKILL.md"
    file.write_text(file.read_text(encoding="utf-8").replace("name: csv-report", "name: csv"), encoding="utf-8")


def _empty_a_body(project: Path) -> None:
    (project / "skills" / "hollow").mkdir()
    text = "---\nname: hollow\ndescription: Keeps an empty page for a rainy day.\n---\n"
    (project / "skills" / "hollow" / "SKILL.md").write_text(text, encoding="utf-8")


def _ask_for_another(project: Path) -> None:
    file = project / "skills" / "csv-report" / "evals" / "t.json"
    file.write_text('[{"query": "draft the release notes", "should_trigger": true}]', encoding="utf-8")


def _edit_an_install(project: Path) -> None:
    with (project / ".prowess/skills/local/notes/SKILL.md").open("a", encoding="utf-8") as file:
        file.write("Also send it to somebody else.\n")


def test_the_ci_example_passes_for_a_collection_that_is_right(collection: Path) -> None:
    lines = ci_lines()
    assert [line.split()[1] for line in lines] == ["check", "eval", "sync"]
    last, status, said = run_job(lines)
    assert (last, status) == (lines[-1], 0), said
    assert (collection / "prowess.lock").is_file()


@pytest.mark.parametrize(
    ("harm", "step", "status", "words"),
    [
        (_break_a_name, "check", 1, "::error file=skills/csv-report/SKILL.md,line=2,col=7,title=name-mismatch::"),
        (_empty_a_body, "check", 1, "::warning file=skills/hollow/SKILL.md,"),
        (_ask_for_another, "eval", 1, "0 of 1 right"),
        (_edit_an_install, "sync", 3, "error[lock-mismatch]"),
    ],
)
def test_the_ci_example_stops_at_the_step_that_finds_something(
    collection: Path, harm: Callable[[Path], None], step: str, status: int, words: str
) -> None:
    harm(collection)
    last, ended, said = run_job(ci_lines())
    assert (last.split()[1], ended) == (step, status), said
    assert words in said


# -- pre-commit --------------------------------------------------------------------------------------------------------


def hook(name: str) -> dict[str, Any]:
    return next(one for one in HOOKS if one["id"] == name)


def run_hook(name: str, *changed: str) -> tuple[int, str]:
    """A hook as pre-commit runs it: the entry cut into words, then the changed files that the pattern fits, if any."""
    fitting = [path for path in changed if re.search(hook(name)["files"], path)]
    if not fitting:
        return 0, ""
    done = subprocess.run(
        [*shlex.split(hook(name)["entry"]), *fitting],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout + done.stderr


def test_the_hook_of_the_manual_is_defined() -> None:
    wanted = next(example["repos"] for example in EXAMPLES if "repos" in example)
    assert {one["id"] for entry in wanted for one in entry["hooks"]} <= {one["id"] for one in HOOKS}
    assert all({"id", "name", "description", "entry", "language", "files"} == set(one) for one in HOOKS)


def test_a_hook_looks_at_the_skills_that_changed_and_at_nothing_else(collection: Path) -> None:
    good, bad = "skills/release-notes/SKILL.md", "skills/csv-report/SKILL.md"
    assert run_hook("prowess-check", good, bad, "README.md")[0] == 0
    _break_a_name(collection)
    status, said = run_hook("prowess-check", good, bad)
    assert status == 1
    assert "skills/csv-report/SKILL.md:2:7: error[name-mismatch]" in said
    assert run_hook("prowess-check", good)[0] == 0
    assert run_hook("prowess-check", "README.md", "skills/csv-report/scripts/profile.py", "notSKILL.md") == (0, "")


def test_the_mending_hook_changes_the_file_so_that_the_next_run_passes(collection: Path) -> None:
    _break_a_name(collection)
    bad = "skills/csv-report/SKILL.md"
    before = Path(bad).read_bytes()
    assert run_hook("prowess-check-fix", bad)[0] == 0
    assert Path(bad).read_bytes() != before, "pre-commit stops the commit when a hook changes a file"
    after = Path(bad).read_bytes()
    assert run_hook("prowess-check-fix", bad)[0] == 0
    assert Path(bad).read_bytes() == after
    assert run_hook("prowess-check", bad)[0] == 0


@pytest.fixture(scope="session")
def pre_commit() -> list[str]:
    """The real program, from the package index."""
    try:
        cache_folder().mkdir(parents=True, exist_ok=True)
        with FileLock(cache_folder() / "pre-commit.lock"):
            return [python_with("pre-commit"), "-m", "pre_commit"]
    except NotInstalledError as error:
        pytest.skip(f"{NOT_TESTED}the hooks run by pre-commit: it cannot be installed here ({error})")


@pytest.mark.foreign
def test_pre_commit_itself_runs_the_hooks(collection: Path, pre_commit: list[str], tmp_path: Path) -> None:
    """It builds the checkout into an environment of its own, as it would the published package."""
    subprocess.run(["git", "init", "--quiet", "."], check=True, cwd=collection)
    subprocess.run(["git", "add", "--all"], check=True, cwd=collection)

    def tried(name: str, *files: str) -> tuple[int, str]:
        done = subprocess.run(
            [*pre_commit, "try-repo", str(ROOT), name, "--files", *files],
            env={**environment(), "PRE_COMMIT_HOME": str(tmp_path / "pre-commit")},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        return done.returncode, done.stdout + done.stderr

    bad = "skills/csv-report/SKILL.md"
    status, said = tried("prowess-check", bad, "skills/release-notes/SKILL.md")
    if "CalledProcessError" in said:
        pytest.skip(f"{NOT_TESTED}the hooks run by pre-commit: the package index cannot be reached")
    assert (status, "Passed" in said) == (0, True), said
    assert "no files to check" in tried("prowess-check", "skills/csv-report/references/columns.md")[1]
    _break_a_name(collection)
    subprocess.run(["git", "add", "--all"], check=True, cwd=collection)
    status, said = tried("prowess-check", bad)
    assert status == 1
    assert "error[name-mismatch]" in said
    status, said = tried("prowess-check-fix", bad)
    assert (status, "files were modified by this hook" in said) == (1, True), said
    subprocess.run(["git", "add", "--all"], check=True, cwd=collection)
    assert tried("prowess-check", bad)[0] == 0

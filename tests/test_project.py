"""The project's own files: nothing of one machine in them, every exception explained, one way to run the checks."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HOSTS = re.compile(r"https?://[\w.:-]*(?:pypi|pythonhosted|devpi|artifactory|nexus|jfrog|index)[\w.:-]*", re.IGNORECASE)
INDEX = re.compile(r"(?:--(?:extra-)?index-url|--find-links|--trusted-host|\bindex-url\s*=)")
# A folder of one person, or of one checkout.
MACHINE = re.compile(r"(?<![\w.~/}*-])/(?:home|Users|root|work|private/var)/[\w.-]+")
INVENTED = {"/home/me", "/home/user", "/home/x", "/Users/me"}


@pytest.fixture(scope="session")
def tracked() -> list[Path]:
    """The text files that the project keeps."""
    try:
        done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    files = [ROOT / name for name in done.stdout.split("\0") if name]
    return [path for path in files if path.is_file() and not path.is_symlink() and is_text(path)]


def is_text(path: Path) -> bool:
    """True unless the beginning of the file has a zero byte, as the weights of the encoder have."""
    with path.open("rb") as file:
        return b"\0" not in file.read(8192)


def lines_with(pattern: re.Pattern[str], files: list[Path]) -> list[str]:
    found = []
    for path in files:
        text = path.read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            found += [
                f"{path.relative_to(ROOT)}:{number}: {m[0]}" for m in pattern.finditer(line) if m[0] not in INVENTED
            ]
    return found


def test_no_file_names_a_package_registry(tracked: list[Path]) -> None:
    others = [path for path in tracked if path != Path(__file__).resolve()]
    assert lines_with(HOSTS, others) == []
    assert lines_with(INDEX, others) == []


def test_no_file_names_a_folder_of_one_machine(tracked: list[Path]) -> None:
    others = [path for path in tracked if path != Path(__file__).resolve()]
    assert lines_with(MACHINE, others) == []
    assert lines_with(re.compile(re.escape(str(ROOT)) + r"(?![\w-])"), others) == []


def test_the_search_finds_what_it_looks_for() -> None:
    sample = ROOT / "pyproject.toml"
    assert lines_with(re.compile(r"hatchling"), [sample])
    assert HOSTS.search("https://" + "py" + "pi.org/simple")
    assert INDEX.search("--index" + "-url x")
    assert MACHINE.search("in /" + "home/someone/x")
    assert not MACHINE.search("~/work/x https://x/home/y ../home/z {tmp}/home/x")


def test_every_ignored_rule_is_explained() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    ruff = tomllib.loads(text)["tool"]["ruff"]["lint"]
    assert ruff["select"] == ["ALL"]
    ignored = [*ruff["ignore"], *(code for codes in ruff["per-file-ignores"].values() for code in codes)]
    for code in ignored:
        rows = [row for row in text.splitlines() if f'"{code}"' in row]
        assert rows, code
        assert all(re.search(r"# \S.{10,}$", row) for row in rows), code


def test_every_exception_in_the_code_names_its_rule(tracked: list[Path]) -> None:
    bare = re.compile(r"#\s*(?:noqa|type:\s*ignore)(?![\[:]\s*\w)")
    own = Path(__file__).resolve()
    assert lines_with(bare, [path for path in tracked if path.suffix == ".py" and path != own]) == []


def test_the_checks_run_by_one_command() -> None:
    run = ROOT / ".ci" / "run"
    assert os.access(run, os.X_OK)
    rows = run.read_text(encoding="utf-8").splitlines()
    assert rows[0].startswith("#!")
    assert rows[1:] == ["set -euo pipefail", 'cd "$(dirname "${BASH_SOURCE[0]}")/.."', "make test"]


def test_make_alone_prints_its_verbs() -> None:
    try:
        done = subprocess.run(["make"], cwd=ROOT, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no make here")
    verbs = (
        "demo test test-full test-foreign test-clients test-adapters test-web test-types lint manual pictures package "
        "bench bench-peers bench-retrieval corpus soak fuzz clean"
    )
    for verb in verbs.split():
        assert re.search(rf"^make {verb} +\S", done.stdout, re.MULTILINE), verb


def test_the_readme_names_both_commands_and_what_they_need() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for words in ("`make demo`", "`make test`", "Python 3.11 or later, git and make"):
        assert words in text, words
    screen = "\n".join(text.splitlines()[:28])
    for words in (
        "for the price of a few",
        "selection.svg",
        "import prowess",
        "pip install '.[mcp,web]'",
        "prowess demo",
    ):
        assert words in screen, words
    assert len(text.split()) <= 1_250


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_every_file_that_a_page_at_the_root_links_to_is_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text)
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_lint_and_tests_are_one_command() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^test:.*\blint\b", makefile, re.MULTILINE)
    for tool in ("ruff check", "ruff format --check", "mypy src tests", "lint-imports"):
        assert tool in makefile


@pytest.mark.parametrize("name", ["dev.txt", "package.txt", "browser.txt"])
def test_requirements_are_pinned_with_hashes(name: str) -> None:
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    joined = text.replace("\\\n", " ")
    rows = [row for row in joined.splitlines() if row.strip() and not row.lstrip().startswith("#")]
    assert rows
    for row in rows:
        assert re.match(r"[\w.\[\]-]+==\S+", row), row
        assert "--hash=sha256:" in row, row

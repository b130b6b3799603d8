"""Every statement that the documentation of a system makes holds here, or its difference is documented."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.behaviour.documented import Case, World
from tests.behaviour.documented_systems import SYSTEMS, System

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "how-to" / "coming-from.md"
ALL = [(system, case) for system in SYSTEMS for case in (*system.cases, *system.newer)]
NUMBER = re.compile(r"S\d-\d+")


SENTENCE = re.compile(r".+?(?:(?<=[\w\])>][.;])\)?(?= )|$)")

HEADING = re.compile(r"[A-Z]\w+|(?:added in v[\d.]+ )?(?:func|type) [^{]+")
"""What is before a mark of a paragraph: a word, or what a paragraph is about."""


def normalize(text: str) -> str:
    """Return the words of a string; a comment in code may go over several lines, and marks of code do not count."""
    return " ".join(word for word in text.replace("`", "").split() if word != "//")


def find_unquoted(text: str, quotes: list[str]) -> list[str]:
    """Return the sentences of a document of which no quote has a word, without headings."""
    taken = [match.span() for quote in quotes for match in re.finditer(re.escape(normalize(quote)), text)]
    return [
        match[0].strip()
        for part in re.finditer(r"[^¶]+", text)
        for match in SENTENCE.finditer(text, *part.span())
        if match[0].strip()
        and not (match.end() == part.end() < len(text) and HEADING.fullmatch(match[0].strip()))
        and not any(start < match.end() and match.start() < end for start, end in taken)
    ]


@pytest.mark.parametrize(("system", "case"), ALL, ids=[f"{s.number}: {c.quote[:60]}" for s, c in ALL])
def test_a_documented_statement_holds_here(
    system: System, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the case differs, its check shows what Prowess does instead."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    assert case.check(World(tmp_path)), f"{system.title}: {case.quote}"


@pytest.mark.parametrize("system", SYSTEMS, ids=[system.title for system in SYSTEMS])
def test_every_difference_of_a_case_is_documented(system: System) -> None:
    """On the page for users of that system, or as an entry of the manifest."""
    page = GUIDE.read_text(encoding="utf-8")
    introduction, section = (
        page.partition("\n## ")[0],
        page.partition(f"\n## {system.heading}\n")[2].partition("\n## ")[0],
    )
    said = normalize(introduction + section)
    manifest = tomllib.loads((ROOT / "tests/behaviour/manifest.toml").read_text(encoding="utf-8"))
    for case in (*system.cases, *system.newer):
        if NUMBER.fullmatch(case.differs):
            assert manifest[case.differs].get("difference"), case.quote
        else:
            assert normalize(case.differs) in said, case.quote


@pytest.fixture(scope="module")
def shared(pytestconfig: pytest.Config) -> Path:
    """The folder with the documentation of the five systems."""
    found = pytestconfig.rootpath.parent / "shared"
    if len([*found.glob("seeds/*.txt")]) != len(SYSTEMS) or not (found / "reference/seed-behaviours.md").is_file():
        pytest.skip("NOT TESTED: whether every case is documented; the documents are not beside the checkout")
    return found


def read_documentation(shared: Path, system: System) -> str:
    document = sorted(shared.glob("seeds/*.txt"))[SYSTEMS.index(system)]
    return normalize(document.read_text(encoding="utf-8"))


@pytest.mark.parametrize("system", SYSTEMS, ids=[system.title for system in SYSTEMS])
def test_every_case_is_taken_from_the_documentation(system: System, shared: Path) -> None:
    """Its words are those of the document, or it is a behaviour that other pages of the system document."""
    text = read_documentation(shared, system)
    lines = (shared / "reference/seed-behaviours.md").read_text(encoding="utf-8").splitlines()
    for case in system.cases:
        if NUMBER.fullmatch(case.quote):
            (line,) = (line for line in lines if line.startswith(f"- {case.quote} "))
            assert "[doc]" in line, line
        else:
            assert normalize(case.quote) in text, case.quote
    quotes = [case.quote for case in (*system.cases, *system.newer)]
    assert len(quotes) == len(set(quotes))
    assert {case.quote.partition("-")[0] for case in system.newer} <= {system.number}


@pytest.mark.parametrize("system", SYSTEMS, ids=[system.title for system in SYSTEMS])
def test_every_sentence_of_the_documentation_has_a_case(system: System, shared: Path) -> None:
    """The sentences without one are listed too."""
    text = read_documentation(shared, system)
    assert [words for words in system.rest if normalize(words) not in text] == []
    assert find_unquoted(text, [*(case.quote for case in system.cases), *system.rest]) == []

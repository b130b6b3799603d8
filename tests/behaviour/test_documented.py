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


def normalize(text: str) -> str:
    """Return the words of a text; in code of a document, a comment may go over several lines."""
    return " ".join(word for word in text.split() if word != "//")


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


@pytest.mark.parametrize("system", SYSTEMS, ids=[system.title for system in SYSTEMS])
def test_every_case_is_taken_from_the_documentation(system: System, pytestconfig: pytest.Config) -> None:
    """Its words are those of the document, or it is a behaviour that other pages of the system document."""
    shared = pytestconfig.rootpath.parent / "shared"
    documents, facts = sorted((shared / "seeds").glob("*.txt")), shared / "reference" / "seed-behaviours.md"
    if len(documents) != len(SYSTEMS) or not facts.is_file():
        pytest.skip("NOT TESTED: whether every case is documented; the documents are not beside the checkout")
    text = normalize(documents[SYSTEMS.index(system)].read_text(encoding="utf-8"))
    lines = facts.read_text(encoding="utf-8").splitlines()
    for case in system.cases:
        if NUMBER.fullmatch(case.quote):
            (line,) = (line for line in lines if line.startswith(f"- {case.quote} "))
            assert "[doc]" in line, line
        else:
            assert normalize(case.quote) in text, case.quote
    quotes = [case.quote for case in (*system.cases, *system.newer)]
    assert len(quotes) == len(set(quotes))
    assert {case.quote.partition("-")[0] for case in system.newer} <= {system.number}

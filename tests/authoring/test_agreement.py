"""Beside ``skills-ref validate``: the same verdict on real skills, but for classes that a page names with a reason."""

from __future__ import annotations

import importlib
import re
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import prowess

PAGE = Path(__file__).resolve().parents[2] / "docs" / "authoring.md"
THEIRS = {
    "other fields": re.compile(r"Unexpected fields in frontmatter"),
    "flow collections": re.compile(r"Invalid YAML in frontmatter(?s:.)*(?:flow|JSONesque|ugly)"),
    "the file's spelling": re.compile(r"Missing required file: SKILL.md"),
}
OURS = {"metadata-not-text": "metadata values", "unterminated-frontmatter": "dashes inside a line"}


@pytest.fixture(scope="module")
def reference() -> Any:  # noqa: ANN401 - a module without types
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("skills_ref.validator")


def verdict(reference: Any, folder: Path) -> list[str]:  # noqa: ANN401
    """What it says about a skill; what it cannot read at all, it refuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return list(reference.validate(folder))
        except Exception as error:  # noqa: BLE001 - somebody else's code over arbitrary files
            return [f"{type(error).__name__}: {error}"]


def difference(ours: list[prowess.Finding], theirs: list[str]) -> str:
    """The class of a difference, ``""`` for none."""
    if bool(ours) == bool(theirs):
        return ""
    if ours:
        return OURS.get(ours[0].code, f"not named: {ours[0].code}")
    left = [next((name for name, said in THEIRS.items() if said.search(message)), message) for message in theirs]
    return left[0]


def test_verdicts_differ_only_in_classes_that_the_pages_name(
    some_of_corpus: list[Path],
    reference: Any,  # noqa: ANN401
    full: bool,
) -> None:
    found: Counter[str] = Counter()
    for folder in some_of_corpus:
        theirs = verdict(reference, folder)
        ours = [finding for finding in prowess.check(folder).findings if finding.severity == "error"]
        found[difference(ours, theirs)] += 1
    page = PAGE.read_text(encoding="utf-8")
    named = {name: int(count) for name, count in re.findall(r"^\| ([\w' ]+) \| (\d+) \|", page, re.MULTILINE)}
    different = {name: count for name, count in found.items() if name}
    if full:
        assert different == named
    assert different.keys() <= named.keys()
    assert found[""] > len(some_of_corpus) / 2

"""The README of prowess-retriever shows what happens."""

from __future__ import annotations

import doctest
from pathlib import Path

from tests.retriever.model_copies import need_model

README = Path(__file__).resolve().parents[2] / "packages" / "prowess-retriever" / "README.md"


def test_the_example_of_the_readme_gives_what_it_says() -> None:
    need_model()
    outcome = doctest.testfile(str(README), module_relative=False, encoding="utf-8")
    assert outcome.attempted == 5
    assert outcome.failed == 0

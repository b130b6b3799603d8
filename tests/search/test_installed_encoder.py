"""Search by meaning with the encoder that the extra ``semantic`` installs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import prowess
from tests.retriever.model_copies import need_model

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def catalog(write: Callable[..., Path], tmp_path: Path) -> prowess.Catalog:
    need_model()
    write("pdf-forms", "Fills in PDF forms and merges documents.", "Open the form, and fill in each field.\n")
    write("git-history", "Explains who changed a line, and when.", "Run git blame.\n")
    write("invoices", "Checks that bills were paid.", "Compare each bill with the bank statement.\n")
    return prowess.scan(tmp_path / "skills")


def test_a_request_without_a_word_in_common_finds_the_skill_that_it_means(catalog: prowess.Catalog) -> None:
    query = "has our customer transferred the money that they owe us"
    assert [hit.name for hit in catalog.search(query)] == []
    assert catalog.prepare_search() == "words+meaning"
    hits = catalog.search(query)
    assert (hits.mode, hits[0].name, hits[0].why) == ("words+meaning", "invoices", "meaning")
    assert catalog.search(query, semantic=True)[0].name == "invoices"
    assert catalog.search(query, semantic=False) == ()


def test_meaning_that_is_demanded_and_not_prepared_is_an_error(catalog: prowess.Catalog) -> None:
    with pytest.raises(prowess.SourceError, match="not prepared"):
        catalog.search("money", semantic=True)

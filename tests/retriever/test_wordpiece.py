"""The tokenizer of prowess-retriever gives the ids that the package ``tokenizers`` gives.

``token_ids.json`` has texts of our own with the ids that ``tokenizers`` 0.23.3 gave for them, without truncation and
padding, from the ``tokenizer.json`` of all-MiniLM-L6-v2.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict

import pytest

from prowess_retriever import model_files, wordpiece
from prowess_retriever.wordpiece import Tokenizer
from tests.retriever.model_copies import need_model

NO_LIMIT = 10_000


class Recorded(TypedDict):
    text: str
    ids: list[int]


RECORDED: list[Recorded] = json.loads(Path(__file__).with_name("token_ids.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    need_model()
    return Tokenizer((model_files.FOLDER / model_files.VOCABULARY).read_text(encoding="utf-8").splitlines())


def test_a_text_has_the_ids_that_were_recorded(tokenizer: Tokenizer) -> None:
    for recorded in RECORDED:
        assert tokenizer.encode(recorded["text"], NO_LIMIT) == recorded["ids"], ascii(recorded["text"])[:40]


@pytest.mark.parametrize("length", [2, 3, 8, 64])
def test_a_text_is_cut_before_the_mark_of_its_end(tokenizer: Tokenizer, length: int) -> None:
    text = "first line of words\nsecond line with unbelievableness\n" * 9
    whole = tokenizer.encode(text, NO_LIMIT)
    assert tokenizer.encode(text, length) == [*whole[: length - 1], tokenizer.end]


def test_a_lone_surrogate_is_left_out(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("a\ud800b", NO_LIMIT) == tokenizer.encode("ab", NO_LIMIT)


def test_words_that_were_split_are_forgotten_when_there_are_too_many(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wordpiece, "_MOST_WORDS_KEPT", 3)
    words = [f"unknownword{number}" for number in range(20)]
    before = [tokenizer.encode(word, NO_LIMIT) for word in words]
    assert [tokenizer.encode(word, NO_LIMIT) for word in words] == before
    assert len(tokenizer._splits) <= 3  # noqa: SLF001 - the memory is what is bounded

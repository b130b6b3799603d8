"""Search by meaning: prepared for every skill or not used at all, kept by text, and mixed with words."""

from __future__ import annotations

import logging
import math
import shutil
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

import prowess
from prowess.search.library_index import LibraryIndex
from prowess.search.vectors import VectorTable, pack_vectors

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Write = Callable[..., Path]

MEANINGS = [
    {"cat", "cats", "kitten", "feline", "tuna"},
    {"dog", "dogs", "puppy", "canine", "leash"},
    {"map", "maps", "atlas", "chart", "compass"},
]


class TopicEncoder:
    """An encoder that knows three topics by their words; a text about none of them is near nothing."""

    def __init__(self, name: str = "topics") -> None:
        self.name = name
        self.encoded: list[str] = []
        self.requests: list[str] = []

    def encode_skills(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.encoded += texts
        return self._encode(texts)

    def encode_requests(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.requests += texts
        return self._encode(texts)

    def _encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        words = [set(text.lower().replace(".", " ").split()) for text in texts]
        rows = [[float(len(own & topic)) for topic in MEANINGS] + [0.01] for own in words]
        return np.array([[number / math.hypot(*row) for number in row] for row in rows], np.float32)


@pytest.fixture
def library(write: Write, tmp_path: Path) -> Path:
    write("cats", "Feeds cats.", "Open a tin of tuna.\n")
    write("dogs", "Walks dogs.", "Take a leash.\n")
    write("maps", "Draws maps.", "Take a compass.\n")
    return tmp_path / "skills"


@pytest.fixture
def encoder() -> TopicEncoder:
    return TopicEncoder()


def find(catalog: prowess.Catalog, query: str, encoder: TopicEncoder) -> list[str]:
    hits = catalog.search(query, semantic=encoder)
    assert hits.mode == "words+meaning"
    return [hit.name for hit in hits]


def test_a_prepared_catalogue_is_searched_by_words_and_meaning(library: Path, encoder: TopicEncoder) -> None:
    catalog = prowess.scan(library)
    assert catalog.prepare_search(semantic=encoder) == "words+meaning"
    assert find(catalog, "kitten", encoder) == ["cats"]
    assert find(catalog, "a puppy with an atlas", encoder) == ["dogs", "maps"]
    assert find(catalog, "nothing of the kind", encoder) == []
    assert catalog.search("kitten", semantic=False) == ()


def test_the_reason_says_words_or_meaning_or_both(library: Path, encoder: TopicEncoder) -> None:
    catalog = prowess.scan(library)
    catalog.prepare_search(semantic=encoder)
    reasons = {hit.name: hit.why for hit in catalog.search("take a kitten to the dogs", semantic=encoder)}
    assert reasons == {"cats": "meaning", "dogs": "words: take, dogs; meaning", "maps": "words: take"}


def test_a_copy_of_a_better_skill_ranks_behind_a_skill_of_another_kind(
    write: Write, tmp_path: Path, encoder: TopicEncoder
) -> None:
    for name in ("cats-1", "cats-2"):
        write(name, "Feeds a cat and a kitten.")
    write("strolls", "Walks a puppy.")
    catalog = prowess.scan(tmp_path / "skills")
    catalog.prepare_search(semantic=encoder)
    request = "feline tuna or canine"  # twice about cats and once about dogs, in words that no skill has
    hits = catalog.search(request, semantic=encoder)
    assert [hit.name for hit in hits] == ["cats-1", "cats-2", "strolls"]
    assert hits[1].score == pytest.approx(0.8 * hits[0].score, rel=1e-3)

    both = "feline tuna or canine leash"
    assert find(catalog, both, encoder) == ["cats-1", "strolls", "cats-2"]
    assert [hit.name for hit in catalog.search(both, limit=2, semantic=encoder)] == ["cats-1", "strolls"]


def test_a_copy_of_a_skill_that_may_not_be_returned_loses_nothing(
    write: Write, tmp_path: Path, encoder: TopicEncoder
) -> None:
    for name in ("cats-1", "cats-2"):
        write(name, "Feeds a cat.")
    catalog = prowess.scan(tmp_path / "skills")
    catalog.prepare_search(semantic=encoder)
    first = catalog.search("kitten", semantic=encoder)[0]
    (second,) = catalog.rank_skills("kitten", {"cats-2"}, 10, semantic=encoder)
    assert first.name == "cats-1"
    assert second.score == pytest.approx(first.score)


def test_what_is_not_prepared_is_an_error_with_its_remedy(library: Path, encoder: TopicEncoder) -> None:
    catalog = prowess.scan(library)
    with pytest.raises(prowess.SourceError) as caught:
        catalog.search("kitten", semantic=encoder)
    assert caught.value.code == "search-not-prepared"
    assert repr(encoder.name) in caught.value.message
    assert "the same semantic to catalog.prepare_search()" in caught.value.hint


def test_a_preparation_without_meaning_indexes_the_words(library: Path, cache: Path) -> None:
    catalog = prowess.scan(library)
    assert catalog.prepare_search(semantic=False) == "words"
    assert list((cache / "search").glob("*.db")) != []
    assert [hit.name for hit in catalog.search("tuna", semantic=False)] == ["cats"]


@pytest.mark.parametrize("semantic", ["yes", None, 1.5, object(), "auto "])
def test_anything_but_a_known_word_or_an_encoder_is_refused(library: Path, semantic: object) -> None:
    catalog = prowess.scan(library)
    for call in (catalog.prepare_search, lambda **options: catalog.search("x", **options)):
        with pytest.raises(prowess.SourceError, match=r"semantic must be 'auto', True, False or a prowess\.Encoder"):
            call(semantic=semantic)  # type: ignore[arg-type]


def test_an_encoder_that_returns_something_else_is_refused(library: Path, encoder: TopicEncoder) -> None:
    encoder.encode_skills = lambda texts: np.zeros((len(texts) + 1, 4), np.float32)  # type: ignore[method-assign]
    with pytest.raises(prowess.SourceError, match="returned an array of shape") as caught:
        prowess.scan(library).prepare_search(semantic=encoder)
    assert caught.value.code == "encoder-failed"


# -- never by half of the vectors --------------------------------------------------------------------------------------


def test_vectors_are_kept_and_made_only_for_what_changed(library: Path, write: Write, encoder: TopicEncoder) -> None:
    prowess.scan(library).prepare_search(semantic=encoder)
    assert len(encoder.encoded) == 3
    assert prowess.scan(library).prepare_search(semantic=encoder) == "words+meaning"
    assert len(encoder.encoded) == 3
    write("dogs", "Walks dogs.", "Take a chart.\n")
    write("birds", "Feeds birds.")
    prowess.scan(library).prepare_search(semantic=encoder)
    assert sorted(text.split("\n")[0] for text in encoder.encoded[3:]) == ["birds", "dogs"]


def test_the_text_that_is_encoded_has_name_description_and_body(write: Write, tmp_path: Path) -> None:
    encoder = TopicEncoder()
    write("fill-pdf-forms", "Fills forms.", "Open it.\n")
    prowess.scan(tmp_path / "skills").prepare_search(semantic=encoder)
    assert encoder.encoded == ["fill pdf forms\nFills forms.\nOpen it.\n"]


def test_after_a_change_words_must_do_until_the_next_preparation(
    library: Path, write: Write, encoder: TopicEncoder
) -> None:
    prowess.scan(library).prepare_search(semantic=encoder)
    write("birds", "Feeds birds.")
    catalog = prowess.scan(library)
    with pytest.raises(prowess.SourceError, match="not prepared"):
        catalog.search("kitten", semantic=encoder)
    catalog.prepare_search(semantic=encoder)
    assert find(catalog, "kitten", encoder) == ["cats"]


def test_a_skill_that_changed_after_the_scan_is_not_ranked_among_the_vectors_of_others(
    library: Path, write: Write, settle: Callable[[], None], encoder: TopicEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prowess_retriever", FakeModule(lambda: encoder))
    settle()
    catalog = prowess.scan(library)
    assert catalog.prepare_search() == "words+meaning"
    write("cats", "Feeds cats.", "Open a tin of tuna, and brush the kitten.\n")
    hits = catalog.search("kitten dogs")
    assert (hits.mode, {hit.why for hit in hits}) == ("words", {"words: kitten", "words: dogs"})
    with pytest.raises(prowess.SourceError, match="prepare_search"):
        catalog.search("kitten dogs", semantic=True)


def test_a_row_that_another_catalogue_writes_during_a_search_is_not_ranked_among_the_vectors_of_others(
    library: Path, write: Write, encoder: TopicEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = prowess.scan(library)
    catalog.prepare_search(semantic=encoder)
    has_all_vectors = LibraryIndex.has_all_vectors

    def change_after_check(index: LibraryIndex, name: str) -> bool:
        answer = has_all_vectors(index, name)
        monkeypatch.undo()
        write("cats", "Feeds cats.", "Open a tin of tuna, and brush the kitten.\n")
        prowess.scan(library).search("cats", semantic=False)
        return answer

    def encode_requests(texts: Sequence[str]) -> NDArray[np.float32]:
        monkeypatch.setattr(LibraryIndex, "has_all_vectors", change_after_check)
        return TopicEncoder.encode_requests(encoder, texts)

    encoder.encode_requests = encode_requests  # type: ignore[method-assign]
    with pytest.raises(prowess.SourceError, match="prepare_search"):
        catalog.search("kitten dogs", semantic=encoder)


def test_a_change_that_only_a_hit_shows_ends_the_search_by_meaning(
    library: Path, write: Write, encoder: TopicEncoder
) -> None:
    catalog = prowess.scan(library)
    catalog.prepare_search(semantic=encoder)
    assert find(catalog, "puppy", encoder) == ["dogs"]
    write("dogs", "Walks dogs.", "Take a kitten.\n")
    with pytest.raises(prowess.SourceError, match="not prepared"):
        catalog.search("puppy", semantic=encoder)
    assert [hit.name for hit in catalog.search("kitten", semantic=False)] == ["dogs"]


def test_a_skill_that_goes_leaves_the_others_prepared(library: Path, encoder: TopicEncoder) -> None:
    prowess.scan(library).prepare_search(semantic=encoder)
    (library / "dogs" / "SKILL.md").unlink()
    catalog = prowess.scan(library)
    assert find(catalog, "kitten and puppy", encoder) == ["cats"]


def test_a_part_of_a_prepared_catalogue_is_prepared(library: Path, encoder: TopicEncoder) -> None:
    catalog = prowess.scan(library)
    catalog.prepare_search(semantic=encoder)
    assert [hit.name for hit in catalog.rank_skills("kitten and puppy", {"dogs"}, 5, semantic=encoder)] == ["dogs"]


def test_vectors_of_another_encoder_are_not_used(library: Path, encoder: TopicEncoder) -> None:
    catalog = prowess.scan(library)
    catalog.prepare_search(semantic=encoder)
    other = TopicEncoder("others")
    with pytest.raises(prowess.SourceError, match="not prepared"):
        catalog.search("kitten", semantic=other)
    catalog.prepare_search(semantic=other)
    assert find(catalog, "kitten", other) == find(catalog, "kitten", encoder) == ["cats"]


def test_an_interrupted_preparation_goes_on_where_it_ended(write: Write, tmp_path: Path) -> None:
    for number in range(200):
        write(f"skill-{number}", body=f"Number {number}.\n")
    catalog = prowess.scan(tmp_path / "skills")
    encoder = TopicEncoder()

    def interrupt(_what: str, done: int, _total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), prowess.progress(interrupt):
        catalog.prepare_search(semantic=encoder)
    made = len(encoder.encoded)
    assert 0 < made < 200
    with pytest.raises(prowess.SourceError, match="not prepared"):
        catalog.search("skill", semantic=encoder)
    assert catalog.prepare_search(semantic=encoder) == "words+meaning"
    assert len(encoder.encoded) == 200


def test_progress_is_told(write: Write, tmp_path: Path, encoder: TopicEncoder) -> None:
    for number in range(150):
        write(f"skill-{number:03}")
    told: list[tuple[str, int, int]] = []
    with prowess.progress(lambda *step: told.append(step)):
        prowess.scan(tmp_path / "skills").prepare_search(semantic=encoder)
    assert told == [
        ("encoding skill-000", 0, 3),
        ("encoding skill-064", 1, 3),
        ("encoding skill-128", 2, 3),
        ("", 3, 3),
    ]


def test_a_file_that_changes_while_others_are_encoded_is_encoded_as_it_is_then(
    library: Path, write: Write, encoder: TopicEncoder
) -> None:
    catalog = prowess.scan(library)
    catalog.prepare_search(semantic=False)
    write("maps", "Draws maps.", "Take a kitten.\n")
    assert catalog.prepare_search(semantic=encoder) == "words+meaning"
    assert "maps\nDraws maps.\nTake a kitten.\n" in encoder.encoded
    assert set(find(catalog, "feline", encoder)) == {"cats", "maps"}


# -- where the vectors are ---------------------------------------------------------------------------------------------


def test_texts_of_a_program_have_vectors_too(library: Path, encoder: TopicEncoder) -> None:
    inline = prowess.Source.inline("inline", "Plays with a puppy.", "Throw a stick.")
    sources: list[prowess.SkillSource] = [prowess.Source.directory(library), inline]
    prowess.Catalog.from_sources(sources).prepare_search(semantic=encoder)
    again = prowess.Catalog.from_sources(sources)
    assert set(find(again, "canine", encoder)) == {"dogs", "inline"}
    assert len(encoder.encoded) == 4
    other = prowess.Catalog.from_sources([sources[0], prowess.Source.inline("inline", "Plays.", "Throw a stick.")])
    with pytest.raises(prowess.SourceError, match="not prepared"):
        other.search("canine", semantic=encoder)


def test_without_a_file_the_vectors_are_in_memory_and_the_log_says_so(
    library: Path, cache: Path, encoder: TopicEncoder, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prowess.search.preparation._warned_errors", set())
    assert prowess.scan(library).prepare_search(semantic=encoder) == "words+meaning"
    assert caplog.messages == []
    shutil.rmtree(cache)
    cache.write_text("", encoding="utf-8")
    catalog = prowess.scan(library)
    assert catalog.prepare_search(semantic=encoder) == "words+meaning"
    assert find(catalog, "kitten", encoder) == ["cats"]
    (message,) = caplog.messages
    assert "is lost when this process ends; PROWESS_CACHE_DIR can name another folder" in message


def test_texts_of_a_program_alone_need_no_file(encoder: TopicEncoder, caplog: pytest.LogCaptureFixture) -> None:
    prowess.Catalog.from_sources([prowess.Source.inline("a", "B.", "C.")]).prepare_search(semantic=encoder)
    assert caplog.messages == []


def test_a_table_without_vectors_has_nothing_near(encoder: TopicEncoder) -> None:
    assert VectorTable([]).find_nearest(encoder.encode_requests(["kitten"])[0], 10, [(0, 1)]) == {}


def test_copies_are_equally_near_wherever_they_lie_in_a_large_table(rng: random.Random) -> None:
    vectors = np.random.default_rng(rng.getrandbits(32)).standard_normal((1_003, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    copies = (0, 255, 256, 1_001, 1_002)
    vectors[copies, :] = vectors[0]
    table = VectorTable([((0, row), vector) for row, vector in enumerate(pack_vectors(vectors))])
    cosines = table.find_nearest(vectors[7], len(vectors), [])
    assert len({cosines[0, row] for row in copies}) == 1
    expected = vectors @ vectors[7]
    assert all(abs(cosine - expected[row]) < 0.01 for (_, row), cosine in cosines.items())
    assert table.find_nearest(vectors[7], 1, []) == {(0, 7): cosines[0, 7]}


def test_an_empty_catalogue_is_searched_by_words(encoder: TopicEncoder) -> None:
    catalog = prowess.Catalog()
    assert catalog.prepare_search(semantic=encoder) == "words"
    assert (catalog.search("x"), catalog.search("x").mode) == ((), "words")


# -- the encoder that is installed -------------------------------------------------------------------------------------


def test_without_the_extra_words_must_do(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prowess_retriever", None)
    catalog = prowess.scan(library)
    assert catalog.prepare_search() == "words"
    assert catalog.search("tuna").mode == "words"
    for call in (catalog.prepare_search, lambda **options: catalog.search("tuna", **options)):
        with pytest.raises(prowess.SourceError, match="extra 'semantic'") as caught:
            call(semantic=True)
        assert caught.value.code == "missing-extra"


class FakeModule:
    """What ``import prowess_retriever`` gives where the package is replaced by another."""

    def __init__(self, load_encoder: Callable[[], object]) -> None:
        self.load_encoder = load_encoder


def test_the_installed_encoder_is_loaded_only_for_a_catalogue_that_is_prepared(
    library: Path, encoder: TopicEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[int] = []

    def load() -> TopicEncoder:
        loads.append(1)
        return encoder

    monkeypatch.setitem(sys.modules, "prowess_retriever", FakeModule(load))
    catalog = prowess.scan(library)
    assert (catalog.search("kitten"), catalog.search("tuna").mode, loads) == ((), "words", [])
    assert catalog.prepare_search() == "words+meaning"
    hits = prowess.scan(library).search("kitten")
    assert ([hit.name for hit in hits], hits.mode) == (["cats"], "words+meaning")
    encoder.name = "newer"  # another version was installed: its vectors are not there yet
    assert prowess.scan(library).search("kitten").mode == "words"


def test_an_encoder_that_cannot_be_loaded_is_told_once_and_words_must_do(
    library: Path, encoder: TopicEncoder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> object:
        raise RuntimeError("the weights are damaged")

    monkeypatch.setitem(sys.modules, "prowess_retriever", FakeModule(lambda: encoder))
    prowess.scan(library).prepare_search()
    monkeypatch.setitem(sys.modules, "prowess_retriever", FakeModule(fail))
    with caplog.at_level(logging.WARNING, "prowess"):
        for _ in range(3):
            hits = prowess.scan(library).search("tuna")
            assert ([hit.name for hit in hits], hits.mode) == (["cats"], "words")
    assert len(caplog.records) == 1
    assert "the weights are damaged" in caplog.text
    with pytest.raises(prowess.SourceError, match="the weights are damaged") as caught:
        prowess.scan(library).search("tuna", semantic=True)
    assert caught.value.code == "encoder-failed"


def test_an_encoder_that_fails_on_a_request_is_told_once_and_words_must_do(
    library: Path, encoder: TopicEncoder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def encode_requests(texts: Sequence[str]) -> NDArray[np.float32]:
        raise RuntimeError(f"no memory for {len(texts)} request")

    monkeypatch.setitem(sys.modules, "prowess_retriever", FakeModule(lambda: encoder))
    catalog = prowess.scan(library)
    catalog.prepare_search()
    encoder.encode_requests = encode_requests  # type: ignore[method-assign]
    with caplog.at_level(logging.WARNING, logger="prowess"):
        hits = [catalog.search("tuna") for _ in range(2)]
    assert [(one.mode, one[0].name) for one in hits] == [("words", "cats")] * 2
    assert caplog.text.count("the encoder 'topics' failed: RuntimeError: no memory for 1 request") == 1
    with pytest.raises(RuntimeError, match="no memory"):
        catalog.search("tuna", semantic=True)


def test_models_selectors_and_evals_search_by_what_is_prepared(
    library: Path, encoder: TopicEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prowess_retriever", FakeModule(lambda: encoder))
    catalog = prowess.scan(library)
    session = prowess.Session(catalog, selector=prowess.AutoSelector(budget=10))
    case = prowess.EvalCase("kitten", "cats")
    assert prowess.Toolset(session).call("search_skills", {"query": "kitten"}).data["names"] == []
    assert prowess.evaluate([case], catalog).results[0].outcome == "miss"
    catalog.prepare_search()
    assert prowess.Toolset(session).call("search_skills", {"query": "kitten"}).data["names"] == ["cats"]
    assert [skill.name for skill in session.candidates("kitten")] == ["cats"]
    assert prowess.evaluate([case], catalog).results[0].outcome == "hit"


def test_the_lexical_selector_goes_by_words_where_meaning_is_prepared(
    library: Path, encoder: TopicEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prowess_retriever", FakeModule(lambda: encoder))
    catalog = prowess.scan(library)
    catalog.prepare_search()
    lexical, rank = prowess.LexicalSelector(), prowess.Candidates(catalog.skills, catalog).rank
    assert lexical.select("puppy tuna", catalog.skills) == ["cats"]
    assert [hit.name for hit in rank("puppy tuna", 3)] == ["cats", "dogs"]
    (result,) = prowess.evaluate([prowess.EvalCase("cats and a leash", "maps")], catalog, selector=lexical).results
    assert sorted(rival.why for rival in result.ahead) == ["words: cats", "words: leash"], "nothing else was a reason"

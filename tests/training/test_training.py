"""The parts of the training that need no torch: folds, pairs, weights in parts, the encoder in numpy."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from prowess_retriever.wordpiece import Tokenizer
from training import data, weights
from training.float_encoder import FloatEncoder, compute_erf
from training.folds import FOLDS, deal_folds

if TYPE_CHECKING:
    from pathlib import Path

WORDS = [
    "fill",
    "in",
    "the",
    "pdf",
    "form",
    "read",
    "fields",
    "write",
    "values",
    "weather",
    "tells",
    "place",
    "rain",
    "sun",
    "report",
    "chart",
]
RECORD = {
    "name": "pdf-forms",
    "description": 'Fill in the pdf form. Use for "write the values" and the like. Read fields of a form.',
    "body": "# Read\n\nread the fields\nchart of values\n```\nfill in\n```\ntells the place\nrain\nsun\n",
}


def ask(number: int, *relevant: str, also: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"id": number, "relevant": list(relevant), "also_relevant": list(also)}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])


def test_requests_that_share_a_right_skill_are_in_one_fold() -> None:
    records = [
        ask(1, "a"),
        ask(2, "b"),
        ask(3, "c", also=("b",)),
        ask(4, "a", "c"),
        *(ask(n, str(n)) for n in range(5, 25)),
    ]
    folds = deal_folds(records)
    assert len(set(folds[:4])) == 1
    assert sorted(folds.count(fold) for fold in range(FOLDS)) == [4, 5, 5, 5, 5]


def test_a_pair_never_shows_the_request_within_its_skill(tokenizer: Tokenizer) -> None:
    (skill,) = data.read_skills([RECORD], tokenizer)
    maker = data.PairMaker(tokenizer, data.Mixture(own=40, asked=0), seed=1)
    requests, skills, keys = next(maker.make_batches([skill], [], [], []))
    assert sum(len(part) for part in requests) == len(skills) == len(keys) == 40
    asked = {tuple(row[row != 0][1:-1]) for part in requests for row in part}
    assert any(tuple(sentence) in asked for sentence in skill.description)
    rows = iter(skills)
    for part in requests:
        for row, answer in zip(part, islice(rows, len(part)), strict=True):
            words = row[row != 0][1:-1].tolist()
            shown = answer[answer != 0].tolist()
            assert not any(shown[at : at + len(words)] == words for at in range(len(shown)))


def test_makers_with_one_seed_draw_the_same_pairs(tokenizer: Tokenizer) -> None:
    pool = data.read_skills([RECORD], tokenizer)
    asked = data.read_requests([{"query": "fill the form", **ask(1, "x")}], {"x": 0}, tokenizer)
    mixture = data.Mixture(own=6, asked=3, dropped=0.3)
    makers = [data.PairMaker(tokenizer, mixture, seed) for seed in (1, 1, 2)]
    drawn = [next(maker.make_batches(pool, asked, [1.0], pool))[1] for maker in makers]
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])


def test_balance_draws_every_group_of_requests_equally_often(tokenizer: Tokenizer) -> None:
    pool = data.read_skills([RECORD], tokenizer)
    queries = ["fill", "read", "write", "sun"]
    asked = data.read_requests([{"query": query, **ask(1, "x")} for query in queries], {"x": 0}, tokenizer)
    counts = {}
    for balance in (0.0, 1.0):
        weights = data.weigh_requests(["large", "large", "large", "small"], balance)
        maker = data.PairMaker(tokenizer, data.Mixture(own=0, asked=3_000), seed=1)
        requests, _, _ = next(maker.make_batches(pool, asked, weights, pool))
        counts[balance] = sum(int((part[:, 1] == asked[-1].tokens[1]).sum()) for part in requests)
    assert 650 < counts[0.0] < 850
    assert 1_400 < counts[1.0] < 1_600


def test_weights_that_are_saved_in_parts_are_read_over_the_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "PART_BYTES", 4_000)
    chance = np.random.default_rng(1)
    tuned = {
        name: chance.normal(size=(rows, 10)).astype(np.float32) for name, rows in (("a", 90), ("b", 1_000), ("c", 2))
    }
    weights.save_weights(tmp_path, "x", tuned)
    np.savez(tmp_path / "base.npz", a=np.zeros((90, 10)), other=np.ones(3))
    parts = sorted(tmp_path.glob("weights-x-*.npz"))
    assert len(parts) > 3
    found = weights.read_weights([tmp_path / "base.npz", *reversed(parts)])
    assert found.keys() == {"a", "b", "c", "other"}
    assert all(np.allclose(found[name], values, atol=2e-3) for name, values in tuned.items())


def test_the_error_function_is_exact_enough() -> None:
    values = np.array([-3, -1, -0.1, 0, 0.5, 2], dtype=np.float32)
    expected = [-0.9999779, -0.8427008, -0.1124629, 0, 0.5204999, 0.9953223]
    assert np.allclose(compute_erf(values), expected, atol=1e-6)


def test_the_encoder_in_numpy_gives_vectors_of_length_one_that_depend_on_the_order() -> None:
    chance = np.random.default_rng(1)
    sizes = {"query_key_value": (36, 12), "attention_output": (12, 12), "intermediate": (48, 12), "output": (12, 48)}
    shapes: dict[str, tuple[int, ...]] = {"words.weight": (9, 12), "positions.weight": (8, 12), "kind": (12,)}
    for layer in range(weights.LAYERS):
        for name, shape in sizes.items():
            shapes |= {f"layers.{layer}.{name}.weight": shape, f"layers.{layer}.{name}.bias": shape[:1]}
        norms = [f"layers.{layer}.attention_norm", f"layers.{layer}.output_norm", "norm"]
        shapes |= {f"{norm}.{side}": (12,) for norm in norms for side in ("weight", "bias")}
    encoder = FloatEncoder({name: chance.normal(size=shape).astype(np.float32) for name, shape in shapes.items()})
    first, second = encoder.encode([1, 2, 3]), encoder.encode([3, 2, 1])
    assert np.linalg.norm(first) == pytest.approx(1, abs=1e-5)
    assert not np.allclose(first, second)

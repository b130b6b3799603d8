"""Tune the encoder on a GPU: ``python -m training.train DATA OUT VOCABULARY BASE…``; README.md says what it does.

For each fold it prints how requests that the model never saw are answered, by the encoder alone, and writes the vectors
that ``make bench-retrieval`` takes. ``--folds all`` tunes on every request and saves the weights for ``export.py``.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from prowess_retriever.wordpiece import Tokenizer
from training import data
from training.encoder import PADDING, VOCABULARY, Encoder, copy_weights, load_weights
from training.folds import FOLDS, deal_folds, find_groups
from training.weights import read_weights, save_weights

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from training.weights import Weights

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
WARM_UP = 50
MAKERS = 10
"""Processes that make batches: one alone is slower than the GPU."""
ENCODED_AT_ONCE = 512


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the result, beside the data."""

    steps: int = 700
    rate: float = 1e-4
    scale: float = 30.0
    dropout: float = 0.1
    own: int = 608
    asked: int = 160
    dropped: float = 0.0
    balance: float = 0.5
    """How seldom requests for one and the same skill are drawn: see ``data.weigh_requests``."""
    words: float = 0.43
    """How much a match of words adds to the closeness in half of the loss: the encoder then learns what words miss."""
    frozen: int = 1
    """1: the embeddings of words and positions stay as they are published."""
    seed: int = 1

    @property
    def mixture(self) -> data.Mixture:
        """What a batch holds."""
        return data.Mixture(self.own, self.asked, self.dropped)


RUNS = (Recipe(), Recipe(balance=1.0, dropped=0.1, seed=2))
"""The runs whose mean is measured and saved. The second one alone was as good within the noise: README.md."""


@dataclass(frozen=True)
class Examples:
    """The data of a run, read once."""

    tokenizer: Tokenizer
    pool: list[data.SkillText]
    labelled: list[data.SkillText]
    rows: list[list[int]]
    """The labelled skills as they are encoded when they are searched for."""
    requests: list[data.Request]
    wanted: list[int]
    """How many skills each request should find."""
    groups: list[str]
    """The group of each request: requests that share a right skill are in one."""
    folds: list[int]


def read_examples(folder: Path, vocabulary: Path) -> Examples:
    """Return what ``folder`` holds: ``train.jsonl.xz``, ``skills.jsonl.xz`` and ``queries.jsonl``."""
    tokenizer = Tokenizer(vocabulary.read_text(encoding="utf-8").splitlines())
    skills = data.read_records(folder / "skills.jsonl.xz")
    records = [record for record in data.read_records(folder / "queries.jsonl") if record["relevant"]]
    places = {record["id"]: place for place, record in enumerate(skills)}
    return Examples(
        tokenizer,
        data.read_skills(data.read_records(folder / "train.jsonl.xz"), tokenizer),
        data.read_skills(skills, tokenizer),
        [tokenizer.encode(data.describe_skill(record), data.SEARCHED_TOKENS) for record in skills],
        data.read_requests(records, places, tokenizer),
        [len(record["relevant"]) for record in records],
        find_groups(records),
        deal_folds(records),
    )


# -- training ----------------------------------------------------------------------------------------------------------


def train(base: Weights, examples: Examples, seen: Sequence[int], recipe: Recipe) -> Encoder:
    """Return an encoder that was tuned from ``base`` on the pool and on the requests with the numbers ``seen``."""
    torch.manual_seed(recipe.seed)
    encoder = Encoder(recipe.dropout)
    load_weights(encoder, base)
    encoder.to(DEVICE).train()
    for embedding in (encoder.words, encoder.positions):
        embedding.weight.requires_grad_(not recipe.frozen)
    trained = [parameter for parameter in encoder.parameters() if parameter.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=recipe.rate, weight_decay=0.01, fused=DEVICE == "cuda")
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _rate_at(step, recipe.steps))
    forward = torch.compile(encoder, dynamic=True) if DEVICE == "cuda" else encoder
    rarity = measure_rarity(examples.pool) if recipe.words else None
    began = time.monotonic()
    with make_batches(examples, seen, recipe) as batches:
        for step in range(1, recipe.steps + 1):
            loss = measure_loss(forward, next(batches), recipe, rarity)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
            optimiser.step()
            schedule.step()
            if step % 100 == 0:
                print(f"  step {step}: loss {loss.item():.3f}, {time.monotonic() - began:.0f} s", flush=True)
    return encoder.eval()


def train_mean(base: Weights, examples: Examples, seen: Sequence[int], runs: Sequence[Recipe]) -> Weights:
    """Return the mean of the weights of several runs on the requests with the numbers ``seen``."""
    tuned = [copy_weights(train(base, examples, seen, recipe)) for recipe in runs]
    return {name: np.mean([run[name] for run in tuned], axis=0, dtype=np.float32) for name in tuned[0]}


def _rate_at(step: int, steps: int) -> float:
    """A share of the rate that rises for the first steps and then falls to nothing."""
    return min((step + 1) / WARM_UP, (steps - step) / max(steps - WARM_UP, 1))


def measure_loss(forward: Any, batch: data.Batch, recipe: Recipe, rarity: Tensor | None) -> Tensor:
    """Return how badly the requests of a batch find their skills in the batch, and the skills their requests."""
    parts, skills, keys = batch
    asked = [torch.from_numpy(part).to(DEVICE).long() for part in parts]
    answers = torch.from_numpy(skills).to(DEVICE).long()
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        closeness = torch.cat([forward(part) for part in asked]) @ forward(answers).T
    names = torch.from_numpy(keys).to(DEVICE)
    twins = (names[:, None] == names[None, :]).fill_diagonal_(fill_value=False)
    loss = _contrast(recipe.scale * closeness, twins)
    if rarity is None:
        return loss
    by_words = weigh_words(asked, answers, rarity)
    return (loss + _contrast(recipe.scale * (closeness + recipe.words * by_words), twins)) / 2


def _contrast(scores: Tensor, twins: Tensor) -> Tensor:
    scores = scores.masked_fill(twins, -1e4)
    wanted = torch.arange(len(scores), device=scores.device)
    return (functional.cross_entropy(scores, wanted) + functional.cross_entropy(scores.T, wanted)) / 2


@contextmanager
def make_batches(examples: Examples, seen: Sequence[int], recipe: Recipe) -> Iterator[Iterator[data.Batch]]:
    """Batches without end, made by processes of their own, which end with the block.

    The order in which the processes deliver is not fixed, so two runs with one seed differ slightly.
    """
    queue: Any = multiprocessing.Queue(2 * MAKERS)
    makers = [
        multiprocessing.Process(
            target=_fill_queue, args=(queue, examples, seen, recipe, recipe.seed * 100 + number), daemon=True
        )
        for number in range(MAKERS)
    ]
    for maker in makers:
        maker.start()
    try:
        yield iter(queue.get, None)
    finally:
        for maker in makers:
            maker.kill()
            maker.join()


def _fill_queue(queue: Any, examples: Examples, seen: Sequence[int], recipe: Recipe, seed: int) -> None:
    maker = data.PairMaker(examples.tokenizer, recipe.mixture, seed)
    requests = [examples.requests[number] for number in seen]
    weights = data.weigh_requests([examples.groups[number] for number in seen], recipe.balance)
    for batch in maker.make_batches(examples.pool, requests, weights, examples.labelled):
        queue.put(batch)


# -- words in the loss -------------------------------------------------------------------------------------------------


def measure_rarity(pool: Sequence[data.SkillText]) -> Tensor:
    """Return for each token the logarithm of how rare it is among the skills of the pool; nothing for the marks."""
    counts = np.zeros(VOCABULARY)
    for skill in pool:
        counts[list({token for piece in (skill.name, *skill.description, *skill.body) for token in piece})] += 1
    rarity = np.log((len(pool) - counts + 0.5) / (counts + 0.5)).clip(0)
    rarity[counts == 0] = 0
    return torch.tensor(rarity, dtype=torch.float, device=DEVICE)


@torch.no_grad()
def weigh_words(asked: Sequence[Tensor], skills: Tensor, rarity: Tensor) -> Tensor:
    """Return BM25 over tokens for each request and skill of a batch, as a share of the request's best."""
    counts = torch.zeros(len(skills), VOCABULARY, device=skills.device)
    counts.scatter_add_(1, skills, torch.ones_like(skills, dtype=torch.float))
    lengths = (skills != PADDING).sum(1, keepdim=True).float()
    weights = counts * 2.2 / (counts + 1.2 * (0.5 + 0.5 * lengths / lengths.mean())) * rarity
    present = torch.cat(
        [torch.zeros(len(part), VOCABULARY, device=part.device).scatter_(1, part, 1.0) for part in asked]
    )
    common = (present.bfloat16() @ weights.bfloat16().T).float()
    return common / common.amax(1, keepdim=True).clamp(min=1e-6)


# -- measuring ---------------------------------------------------------------------------------------------------------


@torch.inference_mode()
def encode_rows(encoder: Encoder, rows: Sequence[list[int]]) -> NDArray[np.float32]:
    """Return the vectors of rows of token ids."""
    order = sorted(range(len(rows)), key=lambda number: len(rows[number]))
    vectors = np.zeros((len(rows), encoder.words.embedding_dim), dtype=np.float32)
    for start in range(0, len(order), ENCODED_AT_ONCE):
        chosen = order[start : start + ENCODED_AT_ONCE]
        tokens = torch.from_numpy(data.pad_rows([rows[number] for number in chosen])).to(DEVICE).long()
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            vectors[chosen] = encoder(tokens).float().cpu().numpy()
    return vectors


def measure_ranking(closeness: NDArray[np.float32], examples: Examples, held: Sequence[int]) -> dict[str, float]:
    """Return hit@1, recall@5 and recall@20 of the requests ``held``, whose closeness to each skill is a row each."""
    values = []
    for scores, number in zip(closeness, held, strict=True):
        request, wanted = examples.requests[number], examples.wanted[number]
        ranks = sorted(int((scores > scores[place]).sum()) for place in request.right)
        recalls = [min(sum(rank < most for rank in ranks), wanted) / wanted for most in (5, 20)]
        values.append((float(ranks[0] == 0), *recalls))
    return dict(zip(("hit@1", "recall@5", "recall@20"), np.mean(values, axis=0).tolist(), strict=True))


def run_fold(base: Weights, examples: Examples, runs: Sequence[Recipe], fold: int, save_as: Path) -> dict[str, float]:
    """Tune on the other folds, save the vectors of the skills and of this fold's requests, and return its figures."""
    held = [number for number, other in enumerate(examples.folds) if other == fold]
    seen = [number for number, other in enumerate(examples.folds) if other != fold]
    encoder = Encoder(dropout=0.0)
    load_weights(encoder, {**base, **train_mean(base, examples, seen, runs)})
    encoder.to(DEVICE).eval()
    skills = encode_rows(encoder, examples.rows)
    asked = encode_rows(encoder, [examples.requests[number].tokens for number in held])
    # In 8 bits, as the index keeps the vectors of skills; who reads them brings the rows to length one again.
    rounded = np.rint(skills * (127 / np.abs(skills).max(axis=1, keepdims=True))).astype(np.int8)
    np.savez(save_as, skills=rounded, asked=asked.astype(np.float16), held=np.array(held))
    return measure_ranking(asked @ skills.T, examples, held)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m training.train", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, help="the folder with train.jsonl.xz, skills.jsonl.xz and queries.jsonl")
    parser.add_argument("out", type=Path, help="the folder for vectors, weights and figures")
    parser.add_argument("vocabulary", type=Path, help="the vocab.txt of the base model")
    parser.add_argument("base", type=Path, nargs="+", help="the files of the base weights")
    parser.add_argument("--run", default="tuned", help="a word for the names of the files (%(default)s)")
    parser.add_argument(
        "--folds", default="0,1,2,3,4,all", help="the folds to measure; all: save weights (%(default)s)"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=NUMBER", help="change the recipe of every run"
    )
    options = parser.parse_args(arguments)
    runs = [_change_recipe(recipe, options.set) for recipe in RUNS]
    base, examples = read_weights(options.base), read_examples(options.data, options.vocabulary)
    print(f"{len(examples.pool)} skills to train on, {len(examples.requests)} requests; {runs}", flush=True)
    figures = []
    for fold in options.folds.split(","):
        began = time.monotonic()
        if fold == "all":
            save_weights(options.out, options.run, train_mean(base, examples, range(len(examples.requests)), runs))
            continue
        save_as = options.out / f"vectors-{options.run}-{int(fold) % FOLDS}.npz"
        found = run_fold(base, examples, runs, int(fold) % FOLDS, save_as)
        figures.append({"fold": int(fold), "seconds": round(time.monotonic() - began), **found})
        print(json.dumps(figures[-1]), flush=True)
    report = {"run": options.run, "runs": [asdict(recipe) for recipe in runs], "folds": figures}
    (options.out / f"figures-{options.run}.json").write_text(f"{json.dumps(report, indent=1)}\n", encoding="utf-8")
    return 0


def _change_recipe(recipe: Recipe, changes: Sequence[str]) -> Recipe:
    kinds = {field.name: type(getattr(recipe, field.name)) for field in fields(recipe)}
    for change in changes:
        name, _, number = change.partition("=")
        if name not in kinds:
            raise SystemExit(f"--set {change}: the recipe has {', '.join(kinds)}")
        recipe = replace(recipe, **{name: kinds[name](float(number))})
    return recipe


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Real heads for the tests of the parsers, where the optional data folder is there."""

from __future__ import annotations

import json
import lzma
import random
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

SAMPLE = 6_000


@pytest.fixture(scope="session")
def real_heads(shared: Path, seed: int, full: bool) -> list[bytes]:
    """The first bytes of real files: a sample drawn with the seed, or all of them."""
    with lzma.open(shared / "corpus" / "heads.jsonl.xz") as file:
        rows = file.read().splitlines()
    chosen = rows if full else random.Random(seed).sample(rows, SAMPLE)
    return [json.loads(row)["head"].encode("latin-1") for row in chosen]

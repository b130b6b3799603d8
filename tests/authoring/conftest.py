"""What the tests of authoring share: real skills, where the optional data folder is there."""

from __future__ import annotations

import json
import tarfile
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import random
    from pathlib import Path


SAMPLE = 60


@pytest.fixture(scope="session")
def corpus(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The folders of all real skills, unpacked."""
    folder = tmp_path_factory.mktemp("corpus")
    with tarfile.open(shared / "corpus" / "skills.tar.xz") as archive:
        # Python 3.11.3 and earlier has no filters, and does the same without one.
        archive.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)
        archive.extractall(folder)  # noqa: S202 - real skills hold links that lead nowhere
    rows = (folder / "skills" / "MANIFEST.jsonl").read_text(encoding="utf-8").splitlines()
    return [folder / "skills" / json.loads(row)["dir"] for row in rows]


@pytest.fixture
def some_of_corpus(corpus: list[Path], rng: random.Random, full: bool) -> list[Path]:
    """A sample of these folders, or all of them."""
    return corpus if full else rng.sample(corpus, SAMPLE)

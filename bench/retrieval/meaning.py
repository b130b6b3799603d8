"""Where the meaning of texts comes from: the models of five folds, or the encoder that is installed, or nowhere.

A run of the training script leaves one file for each fold, ``vectors-RUN-K.npz``. The model of a fold was tuned without
the requests of that fold, and the file holds its vectors of every skill of the pool and of those requests. So a request
is scored by a model that never saw it. The installed encoder was tuned on all of them.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bench.retrieval.data import place_of
from prowess.search.terms import SkillText
from training.folds import FOLDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Literal

    import prowess
    from bench.retrieval.data import Request

    Semantic = Callable[[Request], Literal[True] | prowess.Encoder]
    """What ``semantic=`` is for a request."""

BY_FOLDS = "Meaning: five models, each asked only for requests that it never saw."
BY_INSTALLED = (
    "Meaning: the encoder as it ships, which was tuned on these very requests, so its rows are too good. "
    "The figures for requests that a model never saw are in training/README.md."
)
NOWHERE = "Not measured by meaning: "


def find_fold_files(folder: Path) -> list[Path]:
    """Return the files of the one run in ``folder`` that has all folds, in the order of the folds.

    Raises ``SystemExit`` with the reason when there is no such run, or more than one.
    """
    runs: dict[str, dict[int, Path]] = defaultdict(dict)
    for path in folder.glob("vectors-*-[0-9].npz"):
        run, _, fold = path.stem.rpartition("-")
        runs[run][int(fold)] = path
    complete = {run: files for run, files in runs.items() if set(files) >= set(range(FOLDS))}
    if len(complete) != 1:
        runs_there = ", ".join(sorted(complete)) or "none"
        raise SystemExit(
            f"--folds takes a folder with the files vectors-RUN-0.npz to vectors-RUN-{FOLDS - 1}.npz of one run. "
            f"{folder} has these complete runs: {runs_there}"
        )
    (files,) = complete.values()
    return [files[fold] for fold in range(FOLDS)]


class FoldEncoder:
    """An encoder for the skills of the pool and the requests of one fold. It knows no other text."""

    def __init__(self, path: Path, fold: int, skills: Mapping[str, int], requests: Sequence[Request]) -> None:
        """Read the vectors of ``fold``; ``skills`` has the place in the pool of each text that will be encoded."""
        import numpy as np

        self._float = np.float32
        with np.load(path) as file:
            self._skill_rows, self._request_rows = file["skills"], file["asked"]
            held = file["held"].tolist()
        expected = [place for place, request in enumerate(requests) if request.fold == fold]
        if held != expected:
            raise SystemExit(f"{path} was made for other folds: its requests are not those of fold {fold}")
        self._skills = skills
        self._requests = {requests[place].text: row for row, place in enumerate(held)}
        self.name = f"fold-{fold}-{hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"

    def encode_requests(self, texts: Sequence[str]) -> Any:
        """Return the vectors of requests of this fold."""
        return self._normalize_rows(self._request_rows[[self._requests[text] for text in texts]])

    def encode_skills(self, texts: Sequence[str]) -> Any:
        """Return the vectors of skills of the pool."""
        return self._normalize_rows(self._skill_rows[[self._skills[text] for text in texts]])

    def _normalize_rows(self, rows: Any) -> Any:
        """Return rows of length one: the files hold half precision."""
        exact = rows.astype(self._float)
        return exact / (exact**2).sum(axis=1, keepdims=True) ** 0.5


class MeaningSource:
    """The encoders of a run, and the sentence that says what their figures are worth."""

    def __init__(self, requests: Sequence[Request], folder: Path | None) -> None:
        """Use the fold models whose vectors are in ``folder``; without a folder, the encoder that is installed."""
        self._requests = requests
        self._files = find_fold_files(folder) if folder else []

    @cached_property
    def _installed(self) -> str:
        try:
            import prowess_retriever

            prowess_retriever.load_encoder()
        except ImportError:
            return f"{NOWHERE}the extra 'semantic' is not installed."
        except prowess_retriever.WeightsError as error:
            return f"{NOWHERE}{error}"
        return BY_INSTALLED

    @property
    def is_installed(self) -> bool:
        """True when the encoder that ships can be used."""
        return self._installed == BY_INSTALLED

    @property
    def note(self) -> str:
        """The sentence for the tables."""
        return BY_FOLDS if self._files else self._installed

    def prepare(self, catalog: prowess.Catalog, pool_places: Sequence[int] | None = None) -> Semantic | None:
        """Compute the vectors of a library, and return what to search it with; ``None`` when there is no encoder.

        ``pool_places`` has the place in the pool for each place in the library, where the two differ.
        """
        if self._files:
            places = range(len(catalog)) if pool_places is None else pool_places
            texts = {_make_encoded_text(skill): places[place_of(skill)] for skill in catalog}
            encoders = [FoldEncoder(path, fold, texts, self._requests) for fold, path in enumerate(self._files)]
            for encoder in encoders:
                catalog.prepare_search(semantic=encoder)
            return lambda request: encoders[request.fold]
        if not self.is_installed:
            return None
        catalog.prepare_search(semantic=True)
        return lambda _: True


def _make_encoded_text(skill: prowess.Skill) -> str:
    """Return the text that an encoder gets for a skill, as the index makes it of a file without tags."""
    body = skill.read_body(errors="replace")
    return SkillText(skill.name, skill.description.strip(), body=body).cut(skill.limits).to_encode()

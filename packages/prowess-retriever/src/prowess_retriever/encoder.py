"""The encoder: texts to vectors of length one."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from prowess_retriever.model_files import FOLDER, LAYERS, Model, WeightsError, read_model
from prowess_retriever.wordpiece import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from onnxruntime import InferenceSession


class SkillEncoder:
    """Encodes requests and skills into vectors of length one whose dot product says how well they match.

    ``name`` identifies the weights: vectors of encoders with different names must not be compared. An encoder may be
    shared by threads, and used in a process that was forked after it was loaded. ``load_encoder`` makes it.
    """

    def __init__(self, model: Model, session: InferenceSession) -> None:
        self.name = model.name
        self._model = model
        self._session = session
        self._tokenizer = Tokenizer(model.vocabulary)

    def encode_requests(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a row for each request, on the core of the caller, so that a server's other cores stay free."""
        return self._stack([self._encode(text, self._model.request_tokens) for text in texts])

    def encode_skills(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a row for each text of a skill, on every core that the process may use.

        A text is cut at the length of the model, so nothing is gained by sending more than its first few thousand
        characters. To show progress or to stop in between, send some hundred texts at a time.
        """
        workers = min(_count_cores(), len(texts))
        if workers <= 1:
            return self._stack([self._encode(text, self._model.skill_tokens) for text in texts])
        with ThreadPoolExecutor(workers, "prowess-retriever") as pool:
            return self._stack(list(pool.map(lambda text: self._encode(text, self._model.skill_tokens), texts)))

    def _encode(self, text: str, length: int) -> NDArray[np.float32]:
        """One text at a time: activations are rounded by what is in a batch, and a vector must not depend on that."""
        model = self._model
        ids = self._tokenizer.encode(text, length)
        states = model.words[ids] * model.word_scales[ids, None] + model.positions[: len(ids)]
        vector: NDArray[np.float32] = self._session.run(None, {"states": states})[0]
        return vector / np.linalg.norm(vector)

    def _stack(self, vectors: list[NDArray[np.float32]]) -> NDArray[np.float32]:
        return np.stack(vectors) if vectors else np.zeros((0, self._model.positions.shape[1]), dtype=np.float32)


def load_encoder(folder: str | os.PathLike[str] | None = None) -> SkillEncoder:
    """Return the encoder of this package, or of the model in ``folder``; each model is loaded once in a process.

    Raises ``WeightsError`` when a file of the model is absent or damaged.
    """
    place = FOLDER if folder is None else Path(folder).absolute()
    with _loading:
        encoder = _loaded.get(place)
        if encoder is None:
            encoder = _loaded[place] = _make_encoder(place)
        return encoder


_loaded: dict[Path, SkillEncoder] = {}
_loading = threading.Lock()


def _make_encoder(folder: Path) -> SkillEncoder:
    from onnxruntime import InferenceSession, SessionOptions  # noqa: PLC0415 - 68 MB: only when a model is used

    model = read_model(folder)
    options = SessionOptions()
    # One thread a call: texts are encoded beside each other, and no pool of threads is there that a fork would lose.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only; each also is an exception
    try:
        session = InferenceSession(model.layers, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise WeightsError(
            f"{folder / LAYERS}: onnxruntime does not load the model ({error}): install its newest version"
        ) from error
    return SkillEncoder(model, session)


def _count_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

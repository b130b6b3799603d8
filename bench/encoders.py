"""numpy beside onnxruntime as the engine of prowess-retriever: ``python -m bench.encoders`` measures both in one run.

Both encode the same texts by the same steps. numpy has the weights in 32 bits, made from 8 bits when they are loaded;
onnxruntime multiplies in 8 bits. The speed of numpy does not depend on the values of the weights, so it gets random
ones. numpy would be chosen, because it is the smaller package, if it reached 0.7 of onnxruntime's speed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from bench import measure, table
from bench.environments import NotInstalledError, python_with

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

README = measure.CHECKOUT / "packages" / "prowess-retriever" / "README.md"
NUMPY, ONNXRUNTIME = "numpy", "onnxruntime"
ENOUGH = 0.7
QUERY_TOKENS, SKILL_TOKENS = 20, 256
HIDDEN, INTERMEDIATE = 384, 1_536
REPEATS = {QUERY_TOKENS: 40, SKILL_TOKENS: 12}
HEAD: table.Row = ("CPU", NUMPY, ONNXRUNTIME, "speed of numpy")


class Task(NamedTuple):
    """Something to measure: what it is called, what runs, and in how many threads."""

    what: str
    name: str
    threads: int = 1


TASKS = (
    Task("import", "import"),
    Task("load the weights", "load"),
    Task(f"a query of {QUERY_TOKENS} tokens, one thread", "query"),
    Task(f"a query of {QUERY_TOKENS} tokens, two threads", "query", 2),
    Task(f"a skill of {SKILL_TOKENS} tokens, one thread", "skills"),
    Task(f"a skill of {SKILL_TOKENS} tokens, two at a time", "skills", 2),
)
DECISIVE = frozenset(("query", "skills"))


class TextEncoder(Protocol):
    """What both engines offer here."""

    def encode(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a text of at most 256 tokens."""
        ...


# -- measured in a process of its own ----------------------------------------------------------------------------------


def run_task(engine: str, task: str, threads: int, weights: Path) -> float:
    """Return the seconds of CPU that a task takes, in all threads together."""
    if task == "import":
        return _time_call(lambda: __import__(engine))
    made: list[TextEncoder] = []
    __import__(engine)
    loading = _time_call(lambda: made.append(_make_encoder(engine, threads if task == "query" else 1, weights)))
    if task == "load":
        return loading
    tokens = QUERY_TOKENS if task == "query" else SKILL_TOKENS
    text = " ".join(["report"] * (tokens - 2))  # the marks of start and end are tokens too
    encode = made[0].encode
    encode(text)
    texts = [text] * REPEATS[tokens]
    # A query is alone, so its threads are inside the engine. Skills are many, so each thread has its own.
    with ThreadPoolExecutor(1 if task == "query" else threads) as pool:
        # Together, because the system counts the time of other threads in steps of some milliseconds.
        return _time_call(lambda: list(pool.map(encode, texts))) / len(texts)


def _time_call(call: Callable[[], object]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def _make_encoder(engine: str, threads: int, weights: Path) -> TextEncoder:
    return _OnnxEncoder(threads) if engine == ONNXRUNTIME else _NumpyEncoder(weights)


class _OnnxEncoder:
    """The package's own encoder, with as many threads a call as are asked for."""

    def __init__(self, threads: int) -> None:
        from onnxruntime import InferenceSession, SessionOptions

        from prowess_retriever.encoder import SkillEncoder
        from prowess_retriever.model_files import FOLDER, read_model

        model = read_model(FOLDER)
        options = SessionOptions()
        options.intra_op_num_threads = threads
        session = InferenceSession(model.layers, options, providers=["CPUExecutionProvider"])
        self._encoder = SkillEncoder(model, session)

    def encode(self, text: str) -> NDArray[np.float32]:
        return self._encoder.encode_skills([text])[0]


class _NumpyEncoder:
    def __init__(self, weights: Path) -> None:
        import numpy as np

        from prowess_retriever.model_files import FOLDER, VOCABULARY
        from prowess_retriever.wordpiece import Tokenizer
        from training.float_encoder import FloatEncoder

        self._tokenizer = Tokenizer((FOLDER / VOCABULARY).read_text(encoding="utf-8").splitlines())
        with np.load(weights) as arrays:
            rounded = {name: arrays[name] for name in arrays.files}
        # 0.002 is about the scale of a row: values must stay in the range of ordinary numbers.
        floats = {name: values.astype(np.float32) * np.float32(0.002) for name, values in rounded.items()}
        self._encoder = FloatEncoder(floats)

    def encode(self, text: str) -> NDArray[np.float32]:
        return self._encoder.encode(self._tokenizer.encode(text, SKILL_TOKENS))


def write_random_weights(path: Path) -> None:
    """Write weights of the encoder's shapes in 8 bits."""
    import numpy as np

    shapes = {"words.weight": (30_522, HIDDEN), "positions.weight": (SKILL_TOKENS, HIDDEN), "kind": (HIDDEN,)}
    sizes = {
        "query_key_value": (3 * HIDDEN, HIDDEN),
        "attention_output": (HIDDEN, HIDDEN),
        "intermediate": (INTERMEDIATE, HIDDEN),
        "output": (HIDDEN, INTERMEDIATE),
    }
    norms = ["norm"]
    for layer in range(6):
        norms += [f"layers.{layer}.attention_norm", f"layers.{layer}.output_norm"]
        for name, shape in sizes.items():
            shapes |= {f"layers.{layer}.{name}.weight": shape, f"layers.{layer}.{name}.bias": shape[:1]}
    shapes |= {f"{norm}.{side}": (HIDDEN,) for norm in norms for side in ("weight", "bias")}
    chance = np.random.default_rng(1)
    arrays = {name: chance.integers(-127, 128, shape).astype(np.int8) for name, shape in shapes.items()}
    np.savez(path, allow_pickle=False, **arrays)


# -- the report --------------------------------------------------------------------------------------------------------


def measure_install(engine: str) -> float:
    """Return the bytes that pip installs for an engine, with what it depends on."""
    folder = Path(python_with(engine)).parents[1]
    (packages,) = folder.glob("lib/python*/site-packages")
    own = {"pip", "setuptools", "pkg_resources", "_distutils_hack"}
    tops = (top for top in packages.iterdir() if top.name.partition("-")[0] not in own)
    files = (path for top in tops for path in ([top] if top.is_file() else top.rglob("*")) if path.is_file())
    return sum(path.stat().st_size for path in files)


def measure_engines(rounds: int) -> list[table.Row]:
    """Return the rows of the table."""
    rows: list[table.Row] = []
    try:
        installs = [f"{measure_install(engine) / 1e6:,.0f} MB" for engine in (NUMPY, ONNXRUNTIME)]
    except NotInstalledError as error:
        installs = [f"not installed: {error}"] * 2
    rows.append(("installed, with dependencies", *installs, ""))
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder, "weights.npz")
        write_random_weights(weights)
        for task in TASKS:
            commands = {
                engine: (sys.executable, "-m", "bench.encoders", engine, task.name, str(task.threads), str(weights))
                for engine in (NUMPY, ONNXRUNTIME)
            }
            os.environ["OPENBLAS_NUM_THREADS"] = str(task.threads if task.name == "query" else 1)
            best = measure.take_turns(commands, rounds=rounds)
            times = [best[engine].value for engine in (NUMPY, ONNXRUNTIME)]
            speed = f"{times[1] / times[0]:.2f} of onnxruntime" if task.name in DECISIVE else ""
            rows.append((task.what, *(f"{seconds * 1e3:,.1f} ms" for seconds in times), speed))
    return rows


def main(arguments: list[str]) -> int:
    if arguments[:1] in ([NUMPY], [ONNXRUNTIME]):
        engine, task, threads, weights = arguments
        print(json.dumps({"value": run_task(engine, task, int(threads), Path(weights))}))
        return 0
    parser = argparse.ArgumentParser(prog="python -m bench.encoders", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="fresh processes for each figure (%(default)s)")
    parser.add_argument("--write", action="store_true", help="put the table into the README of prowess-retriever")
    options = parser.parse_args(arguments)
    report = table.render(HEAD, measure_engines(options.rounds), numbers=frozenset((1, 2, 3)))
    note = (
        f"{table.machine()}; CPU of all threads together, best of {options.rounds} fresh processes each, in turns. "
        f"numpy would be chosen at {ENOUGH} or more.\n"
    )
    print(f"{report}\n{note}", end="", flush=True)
    if options.write:
        table.write_between("encoders", f"{report}\n{note}", README)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

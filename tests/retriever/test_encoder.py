"""What an encoder of prowess-retriever promises: vectors of length one that depend on nothing but the text."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from prowess_retriever import SkillEncoder, load_encoder
from tests.retriever.model_copies import need_model

SKILLS = [
    "pdf forms\nFill in, sign and flatten PDF forms.\nRead the fields first.",
    "weather\nTells the weather of a place for the next days.",
    "git history\nWrites messages for commits and tidies branches.",
]
ODD = {
    "empty": "",
    "blanks": " \n\t ",
    "null": "\0",
    "lone surrogate": "\ud800",
    "accents alone": "\u0301\u0307",
    "right to left": "\u05e9\u05dc\u05d5\u05dd",
    "emoji": "\U0001f469\u200d\U0001f4bb",
    "special tokens": "[PAD] [CLS] [SEP]",
    "one long word": "x" * 50_000,
    "many lines": "word\n" * 50_000,
}


@pytest.fixture(scope="module")
def encoder() -> SkillEncoder:
    need_model()
    return load_encoder()


def test_a_vector_has_length_one_and_384_numbers_of_32_bits(encoder: SkillEncoder) -> None:
    for vectors in (encoder.encode_skills(SKILLS), encoder.encode_requests(SKILLS)):
        assert vectors.shape == (3, 384)
        assert vectors.dtype == np.float32
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_no_texts_make_no_rows(encoder: SkillEncoder) -> None:
    assert encoder.encode_skills([]).shape == encoder.encode_requests([]).shape == (0, 384)


@pytest.mark.parametrize(
    ("request_text", "skill"),
    [("complete this application document", 0), ("will it rain tomorrow?", 1), ("clean up my commits", 2)],
)
def test_a_request_is_nearest_to_the_skill_that_means_the_same(
    encoder: SkillEncoder, request_text: str, skill: int
) -> None:
    scores = encoder.encode_skills(SKILLS) @ encoder.encode_requests([request_text])[0]
    assert int(scores.argmax()) == skill


def test_a_vector_does_not_depend_on_the_texts_beside_it(encoder: SkillEncoder) -> None:
    together = encoder.encode_skills([*SKILLS, "long text " * 500, ""])
    for text, vector in zip(SKILLS, together, strict=False):
        assert np.array_equal(encoder.encode_skills([text])[0], vector)


def test_threads_that_share_an_encoder_get_the_vectors_of_their_own_texts(encoder: SkillEncoder) -> None:
    texts = [f"{text} {number}" for number in range(4) for text in SKILLS]
    alone = [encoder.encode_requests([text])[0] for text in texts]
    with ThreadPoolExecutor(4) as pool:
        shared = list(pool.map(lambda text: encoder.encode_requests([text])[0], texts))
    assert np.array_equal(np.stack(alone), np.stack(shared))


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_an_odd_text_has_a_vector_too(encoder: SkillEncoder, text: str) -> None:
    for vectors in (encoder.encode_skills([text]), encoder.encode_requests([text])):
        assert np.isfinite(vectors).all()
        assert np.linalg.norm(vectors) == pytest.approx(1, abs=1e-6)


def test_what_follows_the_last_token_that_counts_changes_nothing(encoder: SkillEncoder) -> None:
    text = "word " * 254
    assert np.array_equal(encoder.encode_skills([text]), encoder.encode_skills([f"{text}and more"]))
    assert not np.array_equal(encoder.encode_skills([text]), encoder.encode_skills([f"and {text}"]))
    assert np.array_equal(encoder.encode_requests([text[: 94 * 5]]), encoder.encode_requests([text]))


@pytest.mark.parametrize("method", ["encode_skills", "encode_requests"])
def test_a_single_text_in_place_of_a_list_is_refused(encoder: SkillEncoder, method: str) -> None:
    with pytest.raises(TypeError, match="put it into a list"):
        getattr(encoder, method)("pdf forms")


IN_A_PROCESS = """
import os, sys
opened = set()
def watch(event, values):
    if event.startswith(("socket.", "subprocess.", "os.exec", "os.posix_spawn", "os.system")):
        opened.add(event)
    if event == "open" and isinstance(values[1], str) and set(values[1]) & set("wax+"):
        opened.add(f"{event} {values[0]}")
import prowess_retriever
print("onnxruntime" in sys.modules)
sys.addaudithook(watch)
encoder = prowess_retriever.load_encoder()
vectors = encoder.encode_skills(["pdf", "weather"])
print(*opened)
child = os.fork()
if child == 0:
    same = (encoder.encode_skills(["pdf", "weather"]) == vectors).all() and prowess_retriever.load_encoder() is encoder
    os._exit(0 if same else 1)
print(os.waitpid(child, 0)[1])
"""


def test_a_process_loads_the_engine_late_reads_only_and_gives_the_encoder_to_its_children() -> None:
    need_model()
    done = subprocess.run([sys.executable, "-c", IN_A_PROCESS], capture_output=True, text=True, check=True)
    late, opened, child = done.stdout.split("\n")[:3]
    assert late == "False"
    assert opened == ""
    assert child == "0"
    assert done.stderr == ""

"""Loading the model of prowess-retriever: once in a process, and never from files that are not what they should be."""

from __future__ import annotations

import hashlib
import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from prowess_retriever import WeightsError, load_encoder, model_files
from tests.retriever.model_copies import copy_model, need_model

if TYPE_CHECKING:
    from pathlib import Path

FILES = [model_files.MANIFEST, model_files.LAYERS, model_files.EMBEDDINGS, model_files.VOCABULARY]


def change_manifest(folder: Path, **values: object) -> None:
    path = folder / model_files.MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **values}), encoding="utf-8")


def test_a_model_is_loaded_once_also_when_threads_ask_at_one_time(tmp_path: Path) -> None:
    folder = copy_model(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(lambda _: load_encoder(folder), range(4))
    assert all(other is first for other in others)
    assert load_encoder(str(folder)) is first


def test_the_name_of_an_encoder_tells_its_weights_apart(tmp_path: Path) -> None:
    need_model()
    ours = load_encoder().name
    assert re.fullmatch(r"prowess-retriever-[0-9a-f]{12}", ours)
    folder = copy_model(tmp_path)
    assert load_encoder(folder).name == ours
    other = copy_model(tmp_path / "other")
    change_manifest(other, skill_tokens=128)
    assert load_encoder(other).name != ours


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_absent_is_named_with_the_remedy(tmp_path: Path, name: str) -> None:
    folder = copy_model(tmp_path)
    (folder / name).unlink()
    with pytest.raises(WeightsError, match=r"cannot be read .*: install prowess-retriever again") as raised:
        load_encoder(folder)
    assert str(folder / name) in str(raised.value)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["cut", "empty", "changed"])
def test_a_file_that_is_damaged_is_named_with_the_remedy(tmp_path: Path, name: str, damage: str) -> None:
    folder = copy_model(tmp_path)
    path = folder / name
    data = path.read_bytes()
    middle = len(data) // 2
    changed = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
    path.write_bytes({"cut": data[:middle], "empty": b"", "changed": changed}[damage])
    with pytest.raises(WeightsError, match=r"the file is damaged.*: install prowess-retriever again"):
        load_encoder(folder)


@pytest.mark.parametrize("text", ["[]", "null", "{}", '"model"', '{"format": 1}'])
def test_a_manifest_that_describes_no_model_is_damaged(tmp_path: Path, text: str) -> None:
    (tmp_path / model_files.MANIFEST).write_text(text, encoding="utf-8")
    with pytest.raises(WeightsError, match=r"model\.json: the file is damaged"):
        load_encoder(tmp_path)


def test_a_model_of_a_later_format_is_refused(tmp_path: Path) -> None:
    folder = copy_model(tmp_path)
    change_manifest(folder, format=2)
    with pytest.raises(
        WeightsError, match="has the format 2, and this version of prowess-retriever reads the format 1"
    ):
        load_encoder(folder)


def test_a_graph_that_the_engine_refuses_is_an_error_with_two_remedies(tmp_path: Path) -> None:
    folder = copy_model(tmp_path)
    (folder / model_files.LAYERS).write_bytes(b"no graph")
    digests = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES[1:]}
    change_manifest(folder, sha256=digests)
    with pytest.raises(WeightsError, match=r"layers\.onnx: .* update the package onnxruntime, or install"):
        load_encoder(folder)

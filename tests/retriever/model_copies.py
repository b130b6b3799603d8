"""The model of prowess-retriever for the tests: whether it is here, and copies that can be damaged."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from prowess_retriever import model_files

if TYPE_CHECKING:
    from pathlib import Path


def need_model() -> None:
    """Skip the test where the files of the model are not in this checkout."""
    if not (model_files.FOLDER / model_files.MANIFEST).exists():
        pytest.skip("NOT TESTED: the encoder; the files of its model are not in this checkout")


def copy_model(folder: Path) -> Path:
    """Return a copy of the model in ``folder``, whose files can be changed."""
    need_model()
    copy = folder / "model"
    shutil.copytree(model_files.FOLDER, copy)
    return copy

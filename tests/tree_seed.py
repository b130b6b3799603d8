"""The number with which samples are drawn, made from the programs of a checkout."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_FOLDERS = ("src", "tests")


def compute_tree_seed(root: Path) -> int:
    """Return a number that depends on the Python files in ``src`` and ``tests`` alone: on their paths and bytes.

    Two checkouts of one tree draw the same samples, so what passes in one passes in the other, before and after the
    commit. Another tree draws others, so that over time everything is drawn.
    """
    digest = hashlib.sha256()
    for path in sorted(path for folder in _FOLDERS for path in (root / folder).rglob("*.py")):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(data)}\0".encode())
        digest.update(data)
    return int.from_bytes(digest.digest()[:4])

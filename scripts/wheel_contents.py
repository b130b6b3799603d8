"""What ``make package`` checks in the wheels beyond their form: ``python -m scripts.wheel_contents DIST``.

The wheel of prowess-retriever must hold its model and its licences, and be at most 25 MB.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

MOST_BYTES = 25_000_000
NEEDED = (
    *(f"prowess_retriever/model/{name}" for name in ("model.json", "layers.onnx", "embeddings.npz", "vocabulary.txt")),
    *(f"/licenses/{name}" for name in ("LICENSE", "LICENSE-APACHE", "NOTICE")),
)


def check_wheel(path: Path) -> list[str]:
    """Return what is wrong with the wheel of prowess-retriever, in sentences."""
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
    problems = [f"{path.name} lacks {needed}" for needed in NEEDED if not any(name.endswith(needed) for name in names)]
    size = path.stat().st_size
    if size > MOST_BYTES:
        problems.append(f"{path.name} has {size:,} bytes, and at most {MOST_BYTES:,} are allowed")
    return problems


def main(folder: str) -> int:
    wheels = list(Path(folder).glob("prowess_retriever-*.whl"))
    problems = [problem for wheel in wheels for problem in check_wheel(wheel)]
    if len(wheels) != 1:
        problems.append(f"{folder} has {len(wheels)} wheels of prowess-retriever, and one is expected")
    for problem in problems:
        print(problem, file=sys.stderr)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

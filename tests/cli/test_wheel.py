"""The built package: the console script, the demonstration's skills, nothing that belongs to the checkout."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_wheel_holds_the_command_and_the_skills_of_the_demonstration(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        scripts = next(name for name in names if name.endswith("entry_points.txt"))
        assert b"prowess = prowess.cli.entry_point:run" in archive.read(scripts)
        archive.extractall(tmp_path / "site")
    assert "prowess/cli/demo/skills/csv-report/SKILL.md" in names
    assert "prowess/cli/demo/acting/folder-report/scripts/sizes.py" in names
    assert not [name for name in names if name.startswith(("tests/", "docs/", "bench/"))]
    shown = (
        "import sys; sys.path.insert(0, sys.argv[1]); from prowess.cli.demo.steps import find_examples; "
        "print(find_examples())"
    )
    done = subprocess.run(
        [sys.executable, "-c", shown, str(tmp_path / "site")], check=True, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout.strip() == str(tmp_path / "site" / "prowess" / "cli" / "demo")

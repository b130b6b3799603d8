"""The README, followed by a new user: from nothing to a checked, installed, activated skill."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Command

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shell_lines() -> list[list[str]]:
    """The words after ``prowess`` of every line of shell in the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = [line for block in BLOCK.findall(text) for line in block.splitlines() if line.startswith("prowess ")]
    return [shlex.split(line, comments=True)[1:] for line in lines]


def test_every_line_of_shell_in_the_readme_works_in_order(command: Command, project: Path) -> None:
    shutil.copytree(ROOT / "examples" / "skills", project / "skills")
    lines = shell_lines()
    assert {"new", "check", "preview", "install", "list"} <= {words[0] for words in lines}
    for words in lines:
        ran = command(*words)
        assert ran.status == 0, (words, ran.err)
        assert ran.out.strip()
    assert "weekly-report" in command("list").out
    assert command("verify").status == 0


def test_the_screen_of_the_readme_is_what_the_demonstration_prints(command: Command) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (screen,) = re.findall(r"From `prowess demo`:\n\n```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    printed = command("demo").out
    for part in screen.strip().split("\n\n"):
        assert part in printed


def test_the_picture_of_the_readme_is_there() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text):
        assert (ROOT / target).is_file()

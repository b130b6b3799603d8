"""The commands of the page about publishing work in the order in which a reader types them."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.page_snippets import list_blocks

if TYPE_CHECKING:
    from tests.install.conftest import World

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="not tested: ssh-keygen is not installed")
def test_the_commands_of_the_page_work(world: World) -> None:
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    blocks = list_blocks(ROOT / "docs/how-to/publishing.md", "console")
    typed = [line.removeprefix("$ ") for _, text in blocks for line in text.splitlines() if line.startswith("$ ")]
    assert len(typed) > 10
    for words in typed:
        done = subprocess.run(
            shlex.split(words), cwd=world.project, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"

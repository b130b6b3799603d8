"""Which sandbox is chosen: one that was tried on this machine, and none where there is none to try."""

from __future__ import annotations

import subprocess
import sys

import pytest

CHOOSE = """
import sys
sys.platform = sys.argv[1]  # as Python says it on that system
from prowess.errors import SandboxError
from prowess.conversation.acting import sandbox
print(*(kind.name for kind in sandbox.available() if kind.usable))
for kind in ("auto", "bwrap", "landlock", "none"):
    try:
        print(kind, sandbox.choose_sandbox(kind).name)
    except SandboxError as error:
        print(kind, error.code)
"""


@pytest.mark.parametrize("system", ["darwin", "win32", "freebsd14"])
def test_no_sandbox_that_was_never_run_is_chosen_by_itself(system: str) -> None:
    ran = subprocess.run([sys.executable, "-c", CHOOSE, system], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == [
        "none",
        "auto no-sandbox",
        "bwrap no-sandbox",
        "landlock no-sandbox",
        "none none",
    ]

"""The tests of scripts, limits and runaways again, on a host that refuses namespaces: Landlock confines them there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.conversation.conftest import require_sandbox

HERE = Path(__file__).parent
TESTS = HERE.parents[1]
RUN_TESTS = "import pytest, sys; sys.exit(pytest.main(sys.argv[1:]))"
FILES = (
    "test_scripts.py",
    "test_runaway.py",
    "test_supervised.py",
    "test_landlock.py",
    "test_seccomp.py",
    "test_protection.py",
)


@pytest.mark.full
@pytest.mark.parametrize("ordinary", [False, True], ids=["as this user", "as an ordinary user"])
def test_where_namespaces_are_refused_scripts_limits_and_runaways_are_as_elsewhere(ordinary: bool) -> None:
    require_sandbox("landlock")
    with tempfile.TemporaryDirectory() as base:  # pytest's own folders are closed to other users
        for path in (Path(base), *(Path(base, name) for name in ("python", "home", "temporary"))):
            path.mkdir(exist_ok=True)
            path.chmod(0o777)
        options = json.dumps({"ordinary": f"{base}/python" if ordinary else "", "refuse": ["mount", "unshare"]})
        # A Python that is mounted elsewhere has no packages of its own.
        words = ["-q", "-p", "no:cacheprovider", "-k", "not python_is_the_one", *(str(HERE / name) for name in FILES)]
        done = subprocess.run(
            [sys.executable, TESTS / "restricted_host.py", options, RUN_TESTS, *words],
            env={**os.environ, "HOME": f"{base}/home", "TMPDIR": f"{base}/temporary"},
            cwd=TESTS.parent,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        subprocess.run(["rm", "-rf", f"{base}/temporary"], check=False)  # what the tests left belongs to another user
    if done.stderr.startswith("unavailable"):
        pytest.skip(f"NOT TESTED: scripts of an ordinary user; {done.stderr}")
    assert done.returncode == 0, done.stdout[-20_000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > 200

"""A virtual environment for each library of the comparison, outside the checkout, kept for the next run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.measure import clean_environment

INSTALL_SECONDS = 1_200
_REASONS = {
    "No matching distribution": "not-found",
    "ResolutionImpossible": "conflict",
    "Failed to build": "build",
    "metadata-generation-failed": "build",
    "Requires-Python": "python",
    "timed out": "network",
    "connection": "network",
}


class NotInstalledError(Exception):
    """A library that could not be installed; the message is the reason in a word."""


def cache_folder() -> Path:
    """Where the environments are kept."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    folder = Path(home, "prowess-bench")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.gettempdir(), "prowess-bench")
        folder.mkdir(exist_ok=True)
    return folder


def python_with(package: str, *packages: str, anew: bool = False) -> str:
    """The Python of an environment that has ``package``, or ``packages`` under that name; installs them where needed.

    Raises ``NotInstalledError`` where that is not possible.
    """
    folder = cache_folder() / f"{package}-{sys.version_info.major}.{sys.version_info.minor}"
    python = str(folder / ("Scripts" if os.name == "nt" else "bin") / "python")
    if anew:
        shutil.rmtree(folder, ignore_errors=True)
    ready = folder / "ready"
    if not ready.exists():
        _run(sys.executable, "-m", "venv", str(folder))
        _run(
            python,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "install",
            "--quiet",
            "--prefer-binary",
            *(packages or (package,)),
        )
        ready.touch()
    return python


def version_of(python: str, package: str) -> str:
    """The version that is installed."""
    code = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
    return _run(python, "-c", code, package).strip()


def _run(*command: str) -> str:
    try:
        done = subprocess.run(
            command, env=clean_environment(), capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise NotInstalledError("timeout") from None
    if done.returncode:
        raise NotInstalledError(next((why for sign, why in _REASONS.items() if sign in done.stderr), "failed"))
    return done.stdout

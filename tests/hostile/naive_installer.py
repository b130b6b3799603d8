"""Naive code for installing: the obvious way to do it, without any protection. Prowess uses nothing of this module."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def git(*args: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, timeout: float = 60) -> str:
    """Run git with any arguments in the environment of the test, and return what it prints."""
    done = subprocess.run(
        ["git", *args],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    if done.returncode:
        raise RuntimeError(f"git {' '.join(args)} failed: {done.stderr}")
    return done.stdout


def clone(url: str, dest: Path, *options: str, env: Mapping[str, str] | None = None, timeout: float = 60) -> Path:
    """Clone a repository and check it out, with hooks, filters and links."""
    git("clone", "--quiet", *options, url, str(dest), env=env, timeout=timeout)
    return dest


def fetch(dest: Path, url: str, ref: str) -> str:
    """Fetch a version into a repository, and return what git prints."""
    dest.mkdir(exist_ok=True)
    git("init", "--quiet", cwd=dest)
    return git("fetch", url, ref, cwd=dest)


def install(source: Path, base: Path, name: str) -> Path:
    """Copy a skill to where its name leads. What was there is deleted first."""
    dest = Path(os.path.join(base, name))  # noqa: PTH118 - the twin joins what it is given
    if dest.exists():
        shutil.rmtree(dest)
    shutil.copytree(source, dest)
    return dest


def install_in_steps(source: Path, dest: Path) -> Iterator[str]:
    """Copy a skill one file at a time, and yield after each step. What was there is deleted first."""
    if dest.exists():
        shutil.rmtree(dest)
        yield "deleted"
    dest.mkdir(parents=True)
    for path in sorted(source.rglob("*")):
        where = dest / path.relative_to(source)
        if path.is_dir():
            where.mkdir()
        else:
            where.write_bytes(path.read_bytes())
        yield str(path)


def remove(base: Path, name: str) -> None:
    """Delete the folder that the name leads to."""
    shutil.rmtree(os.path.join(base, name))  # noqa: PTH118


def with_token(url: str, token: str) -> str:
    """Return the address with the token in it, whichever host it names."""
    return url.replace("://", f"://x:{token}@")

"""The naive twins of installing: the obvious code, as one finds it everywhere. Nothing here is used by the engine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def git(*args: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, timeout: float = 60) -> str:
    """Git with whatever it is given, in the environment that there is."""
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
    """Cloned, with everything that checking out does."""
    git("clone", "--quiet", *options, url, str(dest), env=env, timeout=timeout)
    return dest


def fetch(dest: Path, url: str, ref: str) -> str:
    """A version fetched into a repository."""
    dest.mkdir(exist_ok=True)
    git("init", "--quiet", cwd=dest)
    return git("fetch", url, ref, cwd=dest)


def install(source: Path, base: Path, name: str) -> Path:
    """Copied to where its name says; what was there is deleted first."""
    dest = Path(os.path.join(base, name))  # noqa: PTH118 - the twin joins what it is given
    if dest.exists():
        shutil.rmtree(dest)
    shutil.copytree(source, dest)
    return dest


def install_in_steps(source: Path, dest: Path) -> Iterator[str]:
    """The same, one file at a time."""
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
    """Deleted, wherever the name leads."""
    shutil.rmtree(os.path.join(base, name))  # noqa: PTH118


def with_token(url: str, token: str) -> str:
    """The address with the token of the environment, whoever's host it is."""
    return url.replace("://", f"://x:{token}@")

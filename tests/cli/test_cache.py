"""How much the cache keeps is for the user to say."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

import prowess

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.cli.conftest import Command


def fill(project: Path, monkeypatch: pytest.MonkeyPatch, days: int) -> None:
    """Have a cache with one archive that was last used so many days ago."""
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(project.parent / "copies"))
    from prowess.fetch.cache import Cache

    cache = Cache()
    cache.write_archive("https://example.com/a.zip", b"zip", prowess.Limits())
    used = time.time() - days * 86_400
    for file in cache.list_files():
        os.utime(cache.path_of(file), (used, used))


def count_due(command: Command) -> int:
    return len(json.loads(command("cache", "--prune", "--dry-run", "--json").out)["due"])


def test_the_days_come_from_a_variable_or_the_users_file(
    project: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(project, monkeypatch, days=20)
    assert count_due(command) == 0
    monkeypatch.setenv("PROWESS_CACHE_DAYS", "19")
    assert count_due(command) == 1
    monkeypatch.delenv("PROWESS_CACHE_DAYS")
    config = project.parent / ".config" / "prowess" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("[settings]\ncache_days = 19\n", encoding="utf-8")
    assert count_due(command) == 1


def test_a_project_cannot_have_the_users_cache_deleted(
    project: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(project, monkeypatch, days=20)
    (project / "prowess.toml").write_text("[settings]\ncache_days = 1\n", encoding="utf-8")
    assert count_due(command) == 0

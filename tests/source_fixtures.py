"""Fixtures for tests of sources and fetching: a function that writes a skill, a cache, a web site and git servers."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import prowess
from tests.git_servers import daemon, http
from tests.web_sites import Site

Load = Callable[..., prowess.Catalog]


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes a SKILL.md into a folder below ``tmp_path`` and returns its path."""

    def write(folder: str, *, body: str = "Do it.\n") -> Path:
        path = tmp_path / folder / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\nname: {path.parent.name}\ndescription: Does it.\n---\n{body}", encoding="utf-8")
        return path

    return write


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """The folder of the cache, which does not exist yet."""
    return tmp_path / "cache"


@pytest.fixture
def load(site: Site, cache: Path) -> Load:
    """A function that loads the skills of the site over plain http on loopback, which is allowed here explicitly."""

    def load_site(base: str = "", **options: Any) -> prowess.Catalog:
        usual: dict[str, Any] = {"allow_http": True, "allow_private": True, "cache_dir": cache}
        return prowess.Source.url(base or site.url, **(usual | options)).load()

    return load_site


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The addresses, by scheme, of servers for the repositories in the folder of the test."""
    with daemon(tmp_path) as git, http(tmp_path) as web:
        yield {"git": git, "http": web.address}

"""Fixtures for sources and fetching: a skill written in one line, a site on loopback, and git's own servers."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import prowess
from tests.git_servers import daemon, http
from tests.serving import Site

Load = Callable[..., prowess.Catalog]


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    """Write a SKILL.md below ``tmp_path`` and get its path; the name is the folder's."""

    def write(folder: str, *, body: str = "Do it.\n") -> Path:
        path = tmp_path / folder / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\nname: {path.parent.name}\ndescription: Does it.\n---\n{body}", encoding="utf-8")
        return path

    return write


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A folder for copies, which is made when it is needed."""
    return tmp_path / "cache"


@pytest.fixture
def load(site: Site, cache: Path) -> Load:
    """What the site publishes, asked over plain http on loopback, which these tests allow by name."""

    def loaded(base: str = "", **options: Any) -> prowess.Catalog:  # noqa: ANN401 - those of Source.url
        usual: dict[str, Any] = {"allow_http": True, "allow_private": True, "cache_dir": cache}
        return prowess.Source.url(base or site.url, **(usual | options)).load()

    return loaded


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The addresses, by scheme, under which the repositories in the test's folder can be had."""
    with daemon(tmp_path) as git, http(tmp_path) as web:
        yield {"git": git, "http": web.address}

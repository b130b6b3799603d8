"""What the tests of sources share: a skill written in a line, and a site on loopback."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import prowess
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
def plain_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxies and no authorities but the system's, whatever the machine has set."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name in {"SSL_CERT_FILE", "SSL_CERT_DIR", "PROWESS_CACHE_DIR"}:
            monkeypatch.delenv(name)


@pytest.fixture
def site(plain_network: None) -> Iterator[Site]:  # noqa: ARG001 - a fixture for its effect
    """A site that publishes nothing yet."""
    with Site() as running:
        yield running


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

"""What the tests of sources share: a way to write a skill in a line, and git's own servers."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.git_servers import daemon, http


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
def servers(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The addresses, by scheme, under which the repositories in the test's folder can be had."""
    with daemon(tmp_path) as git, http(tmp_path) as web:
        yield {"git": git, "http": web.address}

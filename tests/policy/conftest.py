"""What the tests of the policy share: a world with policy files of the user and of the project."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.install import conftest as install_fixtures

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.install.conftest import World

    Write = Callable[..., str]


world, installer, site = install_fixtures.world, install_fixtures.installer, install_fixtures.site


@pytest.fixture
def write(world: World) -> Write:
    """Write a policy file of the user, or of the project; return its path."""

    def write_file(text: str, name: str = "policy.toml", *, project: bool = False) -> str:
        folder = world.project if project else world.home / ".config" / "prowess"
        folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        path = folder / (f"prowess-{name}" if project else name)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o644)
        return str(path)

    return write_file

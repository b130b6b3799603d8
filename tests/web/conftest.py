"""Fixtures for the pages of the console: a library of folders, and a browser that is signed in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.web.app import ALL_ACTIONS, create_app
from prowess.web.library import Library
from tests.install.conftest import world  # noqa: F401 - a fixture
from tests.skill_fixtures import put  # noqa: F401 - a fixture
from tests.web.browser import TOKEN, Browser
from tests.web.console import Console

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.install.conftest import World


@pytest.fixture
def library(tmp_path: Path) -> Callable[[], Library]:
    """A function that returns the library of the skills below ``tmp_path/skills``, with grants of its own."""

    def make() -> Library:
        return Library(prowess.scan(tmp_path / "skills"), trust=prowess.Trust(tmp_path / "trust.json"))

    return make


@pytest.fixture
def browse(library: Callable[[], Library]) -> Callable[[], Browser]:
    """A function that returns a browser of that library."""

    def start() -> Browser:
        return Browser(create_app(library(), token=TOKEN))

    return start


@pytest.fixture
def console(world: World) -> Callable[..., Console]:  # noqa: F811 - the fixture
    """A function that returns the console of the skills in the standard places, with an installer."""

    def start(actions: frozenset[str] = ALL_ACTIONS) -> Console:
        return Console(world, actions)

    return start

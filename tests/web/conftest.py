"""Fixtures for the pages of the console: a library of folders, and a browser that is signed in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.web.app import create_app
from prowess.web.library import Library
from tests.skill_fixtures import put  # noqa: F401 - a fixture
from tests.web.browser import TOKEN, Browser

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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

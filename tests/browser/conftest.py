"""Fixtures for the console in a real browser: Chromium, axe-core, consoles that run, and people in front of them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from scripts.browser_programs import NotInstalledError, install_chromium, read_axe
from tests.browser.visitor import ServedConsole, Visitor
from tests.install.conftest import World
from tests.sandbox_support import NOT_TESTED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, driven by Playwright."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=20_000)
    try:
        chromium = install_chromium()
    except NotInstalledError as error:
        pytest.skip(f"{NOT_TESTED}the console in a browser: no Chromium can be had here: {error}")
    with sync_playwright() as playwright:
        started = chromium.launch(playwright)
        yield started
        started.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The program of axe-core."""
    try:
        return read_axe()
    except NotInstalledError as error:
        pytest.skip(f"{NOT_TESTED}the console with axe-core: {error}")


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A home folder and a project with the folders of two agents, for this test alone."""
    made = World(tmp_path)
    for name in (".claude", ".codex"):
        (made.home / name).mkdir()
    return made


@pytest.fixture
def serve(world: World) -> Iterator[Callable[..., ServedConsole]]:
    """A function that starts the console of that world with further words of the command line."""
    with ExitStack() as stack:
        yield lambda *words: stack.enter_context(ServedConsole(world, *words))


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visitor]]:
    """A function that returns a visitor of consoles; whatever must not happen on a page fails the test at its end."""
    visitors: list[Visitor] = []

    def start(*consoles: ServedConsole, **options: object) -> Visitor:
        visitors.append(Visitor(browser, *consoles, **options))
        return visitors[-1]

    yield start
    for visitor in visitors:
        visitor.close()
    assert [problem for visitor in visitors for problem in visitor.problems] == []

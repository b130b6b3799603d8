"""Every page of the console in a real browser: everybody can use it, it is valid, and it fits a narrow screen."""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from scripts.browser_programs import NotInstalledError, validate_pages
from tests.browser.showcase import PAGE_NAMES, Showcase, open_showcase
from tests.browser.visitor import Visitor, find_faults
from tests.sandbox_support import NOT_TESTED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    Visit = Callable[..., Visitor]

pytestmark = pytest.mark.web
NARROW = {"width": 400, "height": 800}


@pytest.fixture(scope="module")
def showcase(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showcase]:
    """Consoles with something of everything."""
    with ExitStack() as stack:
        yield open_showcase(tmp_path_factory.mktemp("showcase"), stack, browser)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault_on_any_page(showcase: Showcase, visit: Visit, axe: str, scheme: str) -> None:
    tab = visit(*showcase.consoles, color_scheme=scheme).tab
    faults = {}
    for name in PAGE_NAMES:
        tab.goto(showcase.addresses[name])
        tab.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
        faults[name] = find_faults(tab, axe)
    assert {name: found for name, found in faults.items() if found} == {}


def test_html_of_every_page_is_valid(showcase: Showcase, visit: Visit, tmp_path: Path) -> None:
    tab = visit(*showcase.consoles).tab
    for number, name in enumerate(PAGE_NAMES):
        answer = tab.goto(showcase.addresses[name])
        (tmp_path / f"{number:02}-{re.sub('[^a-z]+', '-', name)}.html").write_bytes(answer.body())
    (tmp_path / "mistake.html").write_text("<!doctype html><p><title>x</title>", encoding="utf-8")
    try:
        faults = validate_pages(tmp_path)
    except NotInstalledError as error:
        pytest.skip(f"{NOT_TESTED}the HTML of the console with the validator of the W3C: {error}")
    assert [fault for fault in faults if fault.startswith("mistake.html")], "the validator finds nothing"
    assert [fault for fault in faults if not fault.startswith("mistake.html")] == []


def test_no_page_scrolls_sideways_at_400_pixels(showcase: Showcase, visit: Visit) -> None:
    tab = visit(*showcase.consoles, viewport=NARROW).tab
    widths = {}
    for name in PAGE_NAMES:
        tab.goto(showcase.addresses[name])
        tab.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
        widths[name] = tab.evaluate("document.documentElement.scrollWidth")
    assert {name: width for name, width in widths.items() if width > NARROW["width"]} == {}


def test_dark_pages_are_dark_and_light_ones_light(showcase: Showcase, visit: Visit) -> None:
    for scheme, is_dark in (("light", False), ("dark", True)):
        tab = visit(*showcase.consoles, color_scheme=scheme).tab
        for name in ("library", "skill", "sees", "agents", "changes"):
            tab.goto(showcase.addresses[name])
            for element in ("html", "header", "main input, main pre"):
                colour = tab.locator(element).first.evaluate("e => getComputedStyle(e).backgroundColor")
                brightness = sum(int(part) for part in colour[4:-1].split(",")) / 3
                assert (brightness < 80) is is_dark, f"{element} on {name} has {colour} in {scheme}"


def test_everything_on_every_page_can_be_reached_by_keyboard_and_seen(showcase: Showcase, visit: Visit) -> None:
    tab = visit(*showcase.consoles).tab
    for name in PAGE_NAMES:
        tab.goto(showcase.addresses[name])
        wanted = tab.evaluate(
            "[...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, summary')]"
            ".filter(e => e.checkVisibility()).map((e, n) => e.dataset.number = n).length"
        )
        seen = set()
        for _ in range(3 * wanted + 20):
            tab.keyboard.press("Tab")
            number, tag, outline = tab.evaluate(
                "(e => [e.dataset.number ?? (e.name && e.type == 'radio' ? 'radio' : null), e.tagName,"
                " getComputedStyle(e).outlineStyle])(document.activeElement)"
            )
            if tag == "BODY":
                break
            assert outline not in {"", "none"}, f"the focus on {tag} of {name} cannot be seen"
            seen.add(number)
        # Of the radio buttons with the same name, Tab reaches one, and the arrows the others.
        skipped = tab.evaluate(
            "seen => [...document.querySelectorAll('[data-number]')].filter(e => !seen.includes(e.dataset.number)"
            " && e.type != 'radio').map(e => e.outerHTML)",
            sorted(filter(None, seen)),
        )
        assert skipped == [], name


def test_pages_are_read_without_javascript(showcase: Showcase, visit: Visit) -> None:
    tab = visit(*showcase.consoles, java_script_enabled=False).tab
    for name in PAGE_NAMES:
        tab.goto(showcase.addresses[name])
        assert tab.locator("h1").is_visible(), name
    tab.goto("/")
    tab.locator("input[name=q]").fill("profile a csv")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**q=profile**")
    assert tab.locator("#results tbody a").first.inner_text() == "csv-report"
    tab.goto("/")
    tab.get_by_role("link", name="Broken").click()
    assert tab.locator("#results .mark-broken").count() > 3

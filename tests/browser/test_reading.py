"""Looking at skills in a real browser: search as you type, pages that follow the files, copies, and the static site."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.browser.showcase import EXAMPLES
from tests.browser.test_changes import expect
from tests.browser.visitor import ServedConsole, Visitor, find_faults, run_prowess
from tests.web.console import write_skill

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from tests.install.conftest import World

    Serve = Callable[..., ServedConsole]
    Visit = Callable[..., Visitor]

pytestmark = pytest.mark.web


@pytest.fixture
def examples(world: World) -> World:
    """A world that has the examples as skills of its project."""
    for folder in ("skills", "acting"):
        shutil.copytree(EXAMPLES / folder, world.agents, dirs_exist_ok=True)
    return world


def watch_loads(tab: Page) -> list[str]:
    """Return a list that grows with every page that a tab loads from now on."""
    loads: list[str] = []
    tab.on("domcontentloaded", lambda shown: loads.append(shown.url))
    return loads


@pytest.mark.usefixtures("examples")
def test_search_shows_hits_and_their_reasons_while_somebody_types(serve: Serve, visit: Visit) -> None:
    tab = visit(serve()).tab
    loads = watch_loads(tab)
    field = tab.get_by_role("searchbox", name="Search")
    field.press_sequentially("profile a csv file")
    first = tab.locator("#results tbody tr").first
    expect(first.locator("th")).to_have_text("csv-report")
    expect(first.locator(".why")).to_contain_text("csv")
    expect(field).to_be_focused()
    assert "q=profile%20a%20csv%20file" in tab.url
    tab.get_by_label("Order").select_option("cost")
    tab.wait_for_url("**sort=cost**")
    assert loads == []
    tab.reload()
    expect(field).to_have_value("profile a csv file")


@pytest.mark.usefixtures("examples")
def test_request_changes_what_the_model_sees_while_somebody_types(serve: Serve, visit: Visit) -> None:
    tab = visit(serve()).tab
    tab.goto("/sees?skill=csv-report&budget=400")
    loads = watch_loads(tab)
    tab.get_by_role("textbox", name="Request").press_sequentially("write release notes")
    tab.wait_for_url("**q=write%20release%20notes**")
    expect(tab.locator("#seen section").nth(1).locator("tbody tr").first).to_contain_text("release-notes")
    assert loads == []


@pytest.mark.usefixtures("examples")
def test_copy_buttons_copy_what_is_shown(serve: Serve, visit: Visit) -> None:
    visitor = visit(serve(), permissions=["clipboard-read", "clipboard-write"])
    tab = visitor.tab
    tab.goto("/sees?skill=csv-report")
    for name, shown in (
        ("Copy the system prompt", "prompt-text"),
        ("Copy the tools", "tools-text"),
        ("Copy the activation", "activation-text"),
    ):
        tab.get_by_role("button", name=name).click()
        expect(tab.get_by_role("button", name="Copied")).to_have_count(1)
        assert tab.evaluate("navigator.clipboard.readText()") == tab.locator(f"#{shown}").evaluate("e => e.textContent")
        expect(tab.get_by_role("button", name="Copied")).to_have_count(0)


def test_skill_that_changes_while_it_is_shown_is_shown_as_it_is_now(world: World, serve: Serve, visit: Visit) -> None:
    write_skill(world.agents, "one", "The old text.\n")
    tab = visit(serve()).tab
    tab.goto("/skills/one")
    loads = watch_loads(tab)
    expect(tab.locator(".body")).to_have_text("The old text.")
    write_skill(world.agents, "one", "The new text.\n")
    expect(tab.locator(".body")).to_have_text("The new text.")
    shutil.rmtree(world.agents / "one")
    expect(tab.get_by_role("alert")).to_have_text("This is no longer there. The page shows it as it last was.")
    write_skill(world.agents, "one", "It is back.\n")
    expect(tab.locator(".body")).to_have_text("It is back.")
    expect(tab.get_by_role("alert")).to_have_count(0)
    assert loads == []


def test_library_and_feed_follow_the_files(world: World, serve: Serve, visit: Visit) -> None:
    write_skill(world.agents, "one")
    console = serve()
    library, changes = visit(console).tab, visit(console).tab
    changes.goto("/changes")
    expect(library.locator("#results tbody tr")).to_have_count(1)
    write_skill(world.agents, "two")
    expect(library.locator("#results tbody tr")).to_have_count(2)
    expect(library.get_by_role("heading", level=1)).to_have_text("Library 2 skills")
    expect(library.get_by_role("link", name="All 2")).to_be_visible()
    expect(changes.locator("#feed")).to_contain_text("two")


def test_a_change_elsewhere_leaves_a_reader_where_they_are(world: World, serve: Serve, visit: Visit) -> None:
    write_skill(world.agents, "one", "The old text.\n")
    write_skill(world.agents, "two")
    tab = visit(serve()).tab
    tab.goto("/skills/one")
    unfolded = tab.locator("details#raw[open]")
    tab.locator("summary").click()
    expect(unfolded).to_have_count(1)
    tab.locator("summary").evaluate("e => { e.isOld = true; e.focus(); }")
    tab.evaluate("window.loaded = new Promise(end => document.addEventListener('htmx:afterRequest', end)); null")
    (world.agents / "two" / "notes.txt").write_text("A note.\n", encoding="utf-8")
    assert tab.evaluate("window.loaded.then(() => document.activeElement.isOld)")
    write_skill(world.agents, "one", "The new text.\n")
    expect(tab.locator(".body")).to_have_text("The new text.")
    expect(tab.locator("summary")).to_be_focused()
    expect(unfolded).to_have_count(1)


def test_every_page_about_files_follows_them(world: World, serve: Serve, visit: Visit) -> None:
    write_skill(world.agents, "one", "The old text.\n")
    console = serve()
    sees, file = visit(console).tab, visit(console).tab
    sees.goto("/sees?skill=one")
    file.goto("/skills/one/files?path=SKILL.md")
    expect(sees.locator("#activation-text")).to_contain_text("The old text.")
    expect(file.locator("pre")).to_contain_text("The old text.")
    write_skill(world.agents, "one", "The new text.\n")
    expect(sees.locator("#activation-text")).to_contain_text("The new text.")
    expect(sees.get_by_role("button", name="Copy the activation")).to_be_visible()
    expect(file.locator("pre")).to_contain_text("The new text.")


def test_read_only_console_has_nothing_to_press(world: World, serve: Serve, visit: Visit) -> None:
    write_skill(world.agents, "one", "Run !`date` first.\n")
    tab = visit(serve("--read-only")).tab
    for path in ("/", "/skills/one", "/agents", "/changes"):
        tab.goto(path)
        expect(tab.locator("header .mode")).to_have_text("read-only")
        assert tab.locator("form[method=post]").count() == 0


def test_static_site_works_from_the_disk(examples: World, visit: Visit, axe: str) -> None:
    run_prowess(examples, "ui", "--export", "public")
    tab = visit().tab
    tab.goto((examples.project / "public" / "index.html").as_uri())
    assert tab.locator("header").evaluate("e => getComputedStyle(e).display") == "flex"
    tab.get_by_role("link", name="csv-report").click()
    tab.get_by_role("link", name="scripts/profile.py").first.click()
    expect(tab.get_by_role("heading", level=1)).to_contain_text("scripts/profile.py")
    for page in ("What the model sees", "Agents", "Library"):
        tab.get_by_role("link", name=page, exact=True).first.click()
        expect(tab.get_by_role("heading", level=1)).to_contain_text(page)
        assert find_faults(tab, axe) == []
    assert tab.url.startswith("file:")

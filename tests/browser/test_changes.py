"""Every change that the console makes, in a real browser: the plan, the confirmation, the result."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.files.lock import lock_folder
from tests.browser.visitor import (
    ServedConsole,
    Visitor,
    ask_for_install,
    ask_for_sync,
    ask_for_update,
    confirm,
    find_faults,
    run_prowess,
)
from tests.web.console import write_skill

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Locator, LocatorAssertions, Page

    from tests.install.conftest import World
    from tests.repositories import Repository

    Serve = Callable[..., ServedConsole]
    Visit = Callable[..., Visitor]

pytestmark = pytest.mark.web


def expect(element: Locator) -> LocatorAssertions:
    """Return the assertions of Playwright about an element, which wait until they hold."""
    from playwright.sync_api import expect

    return expect(element)


def expect_state(tab: Page, state: str) -> None:
    """Wait until the page of a plan shows a state."""
    expect(tab.locator("h1 .mark")).to_have_text(state)


def install(world: World, repository: Repository) -> None:
    """Install a repository for the project with the command line."""
    run_prowess(world, "install", repository.address, "--project", "--yes")


@pytest.fixture
def outdated(world: World) -> Repository:
    """The source of an install, which has a newer commit."""
    repository = world.repository("pdf")
    repository.skill("", body="One.\nTwo.\nThree.\n")
    repository.commit()
    install(world, repository)
    repository.skill("", body="One.\nNewer.\nThree.\n")
    repository.commit()
    return repository


def test_picker_installs_what_is_ticked_and_the_result_can_be_read_later(
    world: World, serve: Serve, visit: Visit
) -> None:
    repository = world.repository("tools", "one", "two", "three")
    tab = visit(serve()).tab
    ask_for_install(tab, repository.address)
    expect_state(tab, "choosing")
    tab.get_by_role("button", name="Tick none of these").click()
    assert tab.locator("#offered input:checked").count() == 0
    tab.get_by_label("Names and descriptions with").press_sequentially("tw")
    expect(tab.locator("#offered li:visible")).to_have_count(1)
    tab.keyboard.press("Enter")
    tab.get_by_role("button", name="Tick all of these").click()
    tab.get_by_role("button", name="Plan the install of these").click()
    expect_state(tab, "ready")
    assert not world.lock.exists()
    confirm(tab)
    expect_state(tab, "done")
    assert sorted(path.name for path in world.agents.iterdir()) == ["two"]
    address = tab.url
    tab.goto("/changes")
    tab.locator("#plans").get_by_role("link", name="Install skills").click()
    assert tab.url == address
    expect(tab.locator(".result li").first).to_contain_text("Installed")


def test_update_shows_three_sides_and_is_made_once_confirmed(
    world: World, outdated: Repository, serve: Serve, visit: Visit
) -> None:
    assert outdated.path.is_dir()
    tab = visit(serve()).tab
    ask_for_update(tab)
    expect_state(tab, "ready")
    row = tab.locator("table.three tr", has_text="Newer.")
    assert row.locator("td").all_inner_texts() == ["Two.", "Two.", "Newer."]
    confirm(tab)
    expect_state(tab, "done")
    assert "Newer." in (world.agents / "pdf" / "SKILL.md").read_text(encoding="utf-8")


def test_edited_install_is_overwritten_only_by_the_button_that_says_so(
    world: World, outdated: Repository, serve: Serve, visit: Visit
) -> None:
    assert outdated.path.is_dir()
    path = world.agents / "pdf" / "SKILL.md"
    path.write_text(path.read_text(encoding="utf-8").replace("Two.", "Mine."), encoding="utf-8")
    tab = visit(serve()).tab
    ask_for_update(tab)
    expect_state(tab, "done")
    assert tab.locator("tr.conflict td").all_inner_texts() == ["Mine.", "Two.", "Newer."]
    tab.get_by_role("button", name="Plan to overwrite it").click()
    expect_state(tab, "ready")
    confirm(tab)
    expect_state(tab, "done")
    assert "Newer." in path.read_text(encoding="utf-8")


def test_sources_are_asked_on_the_page_and_what_is_outdated_is_listed(
    world: World, outdated: Repository, serve: Serve, visit: Visit
) -> None:
    assert outdated.path.is_dir()
    assert world.lock.exists()
    tab = visit(serve()).tab
    tab.goto("/?show=outdated")
    tab.get_by_role("button", name="Ask the sources").click()
    expect(tab.locator("#results tbody tr")).to_have_count(1)


def test_verification_names_what_differs(world: World, serve: Serve, visit: Visit) -> None:
    install(world, world.repository("pdf"))
    (world.agents / "pdf" / "SKILL.md").write_text("edited", encoding="utf-8")
    tab = visit(serve()).tab
    tab.goto("/changes")
    tab.get_by_role("button", name="Verify now").click()
    expect_state(tab, "done")
    expect(tab.locator(".findings")).to_contain_text("SKILL.md")


def test_sync_puts_back_what_is_missing(world: World, serve: Serve, visit: Visit) -> None:
    install(world, world.repository("pdf"))
    (world.agents / "pdf").unlink()
    tab = visit(serve()).tab
    ask_for_sync(tab)
    expect_state(tab, "ready")
    confirm(tab)
    expect_state(tab, "done")
    assert (world.agents / "pdf").is_symlink()


def test_cell_of_the_matrix_links_and_unlinks(world: World, serve: Serve, visit: Visit) -> None:
    install(world, world.repository("pdf"))
    link = world.project / ".claude" / "skills" / "pdf"
    tab = visit(serve()).tab
    for button, is_link in (("Unlink", False), ("Link", True)):
        tab.goto("/agents")
        tab.get_by_role("button", name=re.compile(f"^{button} pdf for Claude")).click()
        expect_state(tab, "ready")
        assert link.is_symlink() is not is_link
        confirm(tab)
        expect_state(tab, "done")
        assert link.is_symlink() is is_link


def test_cell_of_the_matrix_takes_a_skill_over(world: World, serve: Serve, visit: Visit) -> None:
    write_skill(world.agents, "own")
    tab = visit(serve()).tab
    tab.goto("/agents")
    tab.get_by_role("button", name="Take over own for Codex").click()
    expect_state(tab, "ready")
    assert not world.lock.exists()
    confirm(tab)
    expect_state(tab, "done")
    assert (world.agents / "own").is_symlink()
    tab.goto("/agents")
    expect(tab.get_by_role("row", name=re.compile("^own "))).to_contain_text("local/own")


def test_trust_is_granted_for_what_is_shown_and_revoked(world: World, serve: Serve, visit: Visit) -> None:
    write_skill(world.agents, "one", "Run !`date` first.\n")
    tab = visit(serve()).tab
    tab.goto("/skills/one")
    tab.get_by_role("button", name="Trust it as it is now").click()
    expect_state(tab, "ready")
    assert tab.locator("pre.runs").all_inner_texts() == ["date"]
    confirm(tab)
    expect_state(tab, "done")
    tab.goto("/skills/one")
    expect(tab.locator(".narrow .mark").first).to_have_text("trusted")
    tab.goto("/changes")
    tab.get_by_role("button", name="Revoke the grant for one").click()
    expect_state(tab, "ready")
    confirm(tab)
    expect_state(tab, "done")
    tab.goto("/skills/one")
    expect(tab.locator(".narrow .mark").first).to_have_text("not trusted")


def test_lock_file_in_conflict_is_merged_entry_by_entry(world: World, serve: Serve, visit: Visit, axe: str) -> None:
    for name in ("pdf", "csv"):
        install(world, world.repository(name))
    base = world.lock.read_text(encoding="utf-8")
    mine, theirs = (re.sub('commit = "[0-9a-f]{40}"', f'commit = "{digit * 40}"', base) for digit in "12")
    world.lock.write_text(prowess.merge_locks(base, mine, theirs).text, encoding="utf-8")
    tab = visit(serve()).tab
    tab.goto("/changes")
    assert find_faults(tab, axe) == []
    tab.get_by_role("button", name="Merge it entry by entry").click()
    expect_state(tab, "choosing")
    assert find_faults(tab, axe) == []
    for number, side in enumerate(("mine", "theirs")):
        tab.locator("fieldset").nth(number).get_by_label(side).check()
    tab.get_by_role("button", name="Plan the merge").click()
    expect_state(tab, "ready")
    confirm(tab)
    expect_state(tab, "done")
    assert re.findall('commit = "(.)', world.lock.read_text(encoding="utf-8")) == ["1", "2"]


def test_progress_is_shown_and_the_result_appears_by_itself(world: World, serve: Serve, visit: Visit, axe: str) -> None:
    tab = visit(serve()).tab
    ask_for_install(tab, world.repository("pdf").address)
    expect_state(tab, "ready")
    world.skills.mkdir(parents=True)
    with lock_folder(os.fspath(world.skills), seconds=20):
        confirm(tab)
        expect_state(tab, "running")
        expect(tab.get_by_role("progressbar", name="Progress")).to_be_visible()
        assert find_faults(tab, axe) == []
    expect_state(tab, "done")
    expect(tab.locator(".result li").first).to_contain_text("Installed")


# -- two tabs ----------------------------------------------------------------------------------------------------------


def test_plan_is_refused_after_another_tab_changed_the_files(world: World, serve: Serve, visit: Visit) -> None:
    visitor = visit(serve())
    first, second = visitor.tab, visitor.open_tab("/changes")
    ask_for_install(first, world.repository("pdf").address)
    expect_state(first, "ready")
    ask_for_install(second, world.repository("csv").address)
    confirm(second)
    expect_state(second, "done")
    confirm(first)
    expect_state(first, "refused")
    expect(first.locator("#plan")).to_contain_text("prowess.lock")
    assert not (world.agents / "pdf").exists()
    first.get_by_role("button", name="Plan it again").click()
    expect_state(first, "ready")
    confirm(first)
    expect_state(first, "done")


def test_plan_that_both_tabs_confirm_is_carried_out_once(world: World, serve: Serve, visit: Visit) -> None:
    visitor = visit(serve())
    ask_for_install(visitor.tab, world.repository("pdf").address)
    expect_state(visitor.tab, "ready")
    second = visitor.open_tab(visitor.tab.url)
    for tab in (visitor.tab, second):
        confirm(tab)
        expect_state(tab, "done")
    assert visitor.tab.locator(".result").inner_text() == second.locator(".result").inner_text()


def test_page_of_all_plans_follows_what_another_tab_does(world: World, serve: Serve, visit: Visit) -> None:
    visitor = visit(serve())
    # A tab that nobody sees does not listen, so each tab is in a window of its own.
    other = visit(*visitor.consoles)
    visitor.tab.goto("/changes")
    ask_for_install(other.tab, world.repository("pdf").address)
    expect(visitor.tab.locator("#plans .mark")).to_have_text("ready")
    confirm(other.tab)
    expect(visitor.tab.locator("#plans .mark")).to_have_text("done")


# -- without a mouse, without scripts ----------------------------------------------------------------------------------


def press_until_focused(tab: Page, name: str) -> None:
    """Press Tab until the element with this text or label has the focus, which must be visible wherever it is."""
    for _ in range(100):
        tab.keyboard.press("Tab")
        text, outline = tab.evaluate(
            "(e => [(e.labels && e.labels.length ? e.labels[0].innerText : e.innerText) || '',"
            " getComputedStyle(e).outlineStyle])(document.activeElement)"
        )
        assert outline not in {"", "none"}, f"the focus on {text!r} is not visible"
        if text.strip().startswith(name):
            return
    raise AssertionError(f"Tab never reaches {name!r}")


def test_install_takes_the_keyboard_only(world: World, serve: Serve, visit: Visit) -> None:
    repository = world.repository("tools", "one", "two")
    tab = visit(serve()).tab
    press_until_focused(tab, "Skip to the content")
    press_until_focused(tab, "Changes")
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("heading", name="Changes", level=1)).to_be_visible()
    press_until_focused(tab, "Source")
    tab.keyboard.type(repository.address)
    press_until_focused(tab, "Look at the source")
    tab.keyboard.press("Enter")
    expect_state(tab, "choosing")
    press_until_focused(tab, "two")
    tab.keyboard.press("Space")
    press_until_focused(tab, "Plan the install")
    tab.keyboard.press("Enter")
    expect_state(tab, "ready")
    press_until_focused(tab, "Do this")
    tab.keyboard.press("Enter")
    expect_state(tab, "done")
    assert sorted(path.name for path in world.agents.iterdir()) == ["one"]


def test_install_works_without_javascript(world: World, serve: Serve, visit: Visit) -> None:
    tab = visit(serve(), java_script_enabled=False).tab
    ask_for_install(tab, world.repository("tools", "one", "two").address)
    expect_state(tab, "choosing")
    tab.get_by_label("two").uncheck()
    tab.get_by_role("button", name="Plan the install of these").click()
    expect_state(tab, "ready")
    world.skills.mkdir(parents=True)
    with lock_folder(os.fspath(world.skills), seconds=20):
        confirm(tab)
        expect_state(tab, "running")
        # Playwright finds no element in a noscript by its text.
        expect(tab.locator("noscript p")).to_have_text("This page loads again by itself every two seconds.")
    expect_state(tab, "done")
    assert sorted(path.name for path in world.agents.iterdir()) == ["one"]

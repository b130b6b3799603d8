"""The page "Agents", without a browser: the state of every skill and agent, and the action of each cell."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from prowess.web.app import ALL_ACTIONS
from prowess.web.pages.agents import STATES, AgentCell, make_agents_view
from prowess.web.pages.library import PAGE_SIZE
from tests.web.console import Console, write_skill

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from prowess.web.library import Library
    from tests.install.conftest import World

    Open = Callable[..., Console]


@pytest.fixture
def two_agents(world: World) -> None:
    """The folders of two agents, of which one looks in the shared folder."""
    for name in (".claude", ".codex"):
        (world.home / name).mkdir()


def cells(console: Console, skill: str, **parameters: str) -> dict[str, AgentCell]:
    """The cells of a skill, by agent."""
    view = make_agents_view(console.library, parameters)
    return {cell.agent: cell for row in view.rows if row.name == skill for cell in row.cells}


def press(console: Console, skill: str, agent: str) -> str:
    """Press the button of a cell, confirm its plan, and return the state of the plan then."""
    fields = cells(console, skill)[agent].action.fields
    page = console.browser.get("/agents").page
    assert page.find("button", name="change", value=fields)
    plan = console.plan("/agents", change=fields)
    return plan.confirm().state if plan.state == "ready" else plan.state


@pytest.mark.usefixtures("two_agents")
def test_a_missing_skill_is_linked_and_a_linked_one_unlinked_from_its_cell(world: World, console: Open) -> None:
    opened = console()
    opened.installer.install(world.repository("pdf").address, project=True)
    cell = cells(opened, "pdf")["claude-code"]
    assert (cell.state, cell.action.title) == ("missing", "Link")
    assert press(opened, "pdf", "claude-code") == "done"
    assert (world.project / ".claude/skills/pdf").is_symlink()
    cell = cells(opened, "pdf")["claude-code"]
    assert (cell.state, cell.action.title) == ("linked", "Unlink")
    assert press(opened, "pdf", "claude-code") == "done"
    assert cells(opened, "pdf")["claude-code"].state == "missing"


@pytest.mark.usefixtures("two_agents")
def test_the_link_that_all_agents_share_is_not_for_one_of_them_to_remove(world: World, console: Open) -> None:
    opened = console()
    opened.installer.install(world.repository("pdf").address, project=True)
    cell = cells(opened, "pdf")["codex"]
    assert (cell.state, cell.action.title, cell.action.fields) == ("linked", "Open", "")
    install = opened.installer.list()[0].full_name
    plan = opened.plan("/agents", kind="unlink", install=install, agent="codex")
    assert plan.steps == []
    assert "shared folder" in plan.text


@pytest.mark.usefixtures("two_agents")
def test_an_edited_skill_is_compared_with_its_source_from_its_cell(world: World, console: Open) -> None:
    opened = console()
    opened.installer.install(world.repository("pdf").address, project=True)
    path = world.agents / "pdf" / "SKILL.md"
    path.write_text(path.read_text(encoding="utf-8") + "Mine.\n", encoding="utf-8")
    cell = cells(opened, "pdf")["codex"]
    assert (cell.state, cell.action.title) == ("edited", "Compare")
    plan = opened.plan("/agents", change=cell.action.fields)
    assert "Mine." in plan.page.text_of("td")


@pytest.mark.usefixtures("two_agents")
def test_a_skill_that_nobody_installed_is_taken_over_from_its_cell(world: World, console: Open) -> None:
    write_skill(world.agents, "own")
    opened = console()
    cell = cells(opened, "own")["codex"]
    assert (cell.state, cell.action.title) == ("copied", "Take over")
    assert "git add --force" in opened.plan("/agents", change=cell.action.fields).text
    assert press(opened, "own", "codex") == "done"
    assert cells(opened, "own")["codex"].state == "linked"
    assert "own" in world.lock.read_text(encoding="utf-8")


@pytest.mark.usefixtures("two_agents")
def test_a_file_that_does_not_load_says_so_and_leads_to_its_page(world: World, console: Open) -> None:
    write_skill(world.agents, "torn").write_text("No frontmatter.\n", encoding="utf-8")
    opened = console()
    (row,) = make_agents_view(opened.library, {}).rows
    assert row.why == "it does not load, in no lock file"
    assert {cell.action.title for cell in row.cells} == {"Open"}
    assert "does not load" in opened.browser.get(f"/skills/{row.id}").text


@pytest.mark.usefixtures("two_agents")
def test_a_skill_whose_folder_has_another_name_leads_to_its_page_and_can_be_taken_over(
    world: World, console: Open
) -> None:
    path = write_skill(world.agents, "own")
    path.parent.rename(path.parent.with_name("folder"))
    opened = console()
    (row,) = make_agents_view(opened.library, {}).rows
    assert (row.id, row.name) == ("own", "folder")
    assert press(opened, "folder", "codex") == "done"


@pytest.mark.usefixtures("two_agents")
def test_a_skill_that_changed_since_the_plan_is_not_taken_over(world: World, console: Open) -> None:
    path = write_skill(world.agents, "own")
    opened = console()
    plan = opened.plan("/agents", change=cells(opened, "own")["codex"].action.fields)
    path.write_text(path.read_text(encoding="utf-8") + "More.\n", encoding="utf-8")
    assert plan.confirm().state == "refused"
    assert not world.lock.exists()


@pytest.mark.usefixtures("two_agents")
def test_a_shadowed_skill_leads_to_the_page_of_both(world: World, console: Open) -> None:
    opened = console()
    opened.installer.install(world.repository("pdf").address)
    write_skill(world.agents, "pdf", "Another one.\n")
    opened = console()
    view = make_agents_view(opened.library, {"state": "shadowed"})
    assert [(row.name, row.scope) for row in view.rows] == [("pdf", "user")]
    page = opened.browser.get("/agents?state=shadowed").page
    assert any(link.text.startswith("Look at both") for link in page.find("a", href="/skills/pdf"))


@pytest.mark.usefixtures("two_agents")
def test_a_link_that_somebody_deletes_is_missing_on_the_page_soon(world: World, console: Open) -> None:
    opened = console()
    opened.installer.install(world.repository("pdf").address, project=True)
    assert cells(opened, "pdf")["codex"].state == "linked"
    (world.agents / "pdf").unlink()
    # No file of the library changed, so the page looks again after a while. It must not take for ever.
    deadline = time.monotonic() + 60
    while cells(opened, "pdf")["codex"].state != "missing":
        assert time.monotonic() < deadline
    assert cells(opened, "pdf")["codex"].action.title == "Put back"
    assert press(opened, "pdf", "codex") == "done"
    assert (world.agents / "pdf").is_symlink()


@pytest.mark.usefixtures("two_agents")
def test_everything_that_an_agent_misses_is_linked_with_one_plan(world: World, console: Open) -> None:
    opened = console()
    for name in ("pdf", "csv"):
        opened.installer.install(world.repository(name).address, project=True)
    fields = {agent: fields for agent, _, fields in make_agents_view(opened.library, {}).agents}
    assert fields["codex"] == ""
    plan = opened.plan("/agents", change=fields["claude-code"])
    assert plan.confirm().state == "done"
    assert sorted(path.name for path in (world.project / ".claude/skills").iterdir()) == ["csv", "pdf"]


@pytest.mark.usefixtures("two_agents")
def test_a_place_that_was_taken_since_the_plan_is_left_alone(world: World, console: Open) -> None:
    opened = console()
    opened.installer.install(world.repository("pdf").address, project=True)
    plan = opened.plan("/agents", change=cells(opened, "pdf")["claude-code"].action.fields)
    write_skill(world.project / ".claude/skills", "pdf", "Mine.\n")
    assert plan.confirm().state == "refused"
    assert "Mine." in (world.project / ".claude/skills/pdf/SKILL.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("two_agents")
def test_a_link_that_became_something_else_since_the_plan_is_not_removed(world: World, console: Open) -> None:
    opened = console()
    opened.installer.install(world.repository("pdf").address, project=True, agents=["claude-code"])
    plan = opened.plan("/agents", change=cells(opened, "pdf")["claude-code"].action.fields)
    assert plan.steps[0].startswith("remove the link ")
    (world.project / ".claude/skills/pdf").unlink()
    write_skill(world.project / ".claude/skills", "pdf", "Mine.\n")
    refused = plan.confirm()
    assert refused.state == "refused"
    assert ".claude/skills/pdf" in refused.text
    assert "Mine." in (world.project / ".claude/skills/pdf/SKILL.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("two_agents")
def test_names_and_states_filter_the_rows_and_pages_have_a_hundred(world: World, console: Open) -> None:
    for number in range(PAGE_SIZE + 5):
        write_skill(world.agents, f"s{number:03}")
    opened = console()
    view = make_agents_view(opened.library, {})
    assert (len(view.rows), view.pages, view.total) == (PAGE_SIZE, 2, PAGE_SIZE + 5)
    assert make_agents_view(opened.library, {"page": "2"}).rows[0].name == "s100"
    assert [row.name for row in make_agents_view(opened.library, {"q": "S10"}).rows] == [f"s10{n}" for n in range(5)]
    assert make_agents_view(opened.library, {"state": "edited"}).total == 0
    counts = {name: count for name, _, count in view.counts}
    assert counts == {"copied": PAGE_SIZE + 5, "missing": PAGE_SIZE + 5}
    assert set(counts) <= set(STATES)


@pytest.mark.usefixtures("two_agents")
def test_a_console_without_the_action_shows_the_state_and_no_button(world: World, console: Open) -> None:
    opened = console(actions=ALL_ACTIONS - {"link"})
    opened.installer.install(world.repository("pdf").address, project=True)
    page = opened.browser.get("/agents").page
    assert "missing" in page.text_of("table")[0]
    assert not page.find("button", name="change")


def test_a_machine_without_agents_and_a_library_without_installs_say_so(
    put: Callable[..., Path], library: Callable[[], Library], console: Open
) -> None:
    assert "No agent has a folder" in console().browser.get("/agents").text
    put("skills/one")
    assert make_agents_view(library(), {}).problems


@pytest.mark.usefixtures("two_agents")
def test_a_lock_file_in_conflict_leads_to_the_page_that_merges_it(world: World, console: Open) -> None:
    world.lock.write_text("<<<<<<< ours\nversion = 1\n=======\nversion = 1\n>>>>>>> theirs\n", encoding="utf-8")
    page = console().browser.get("/agents").page
    assert "conflict" in page.text_of("p", class_="problem")[0]
    assert page.find("a", href="/changes")

"""Consoles that have something of everything to show, and the addresses of all their pages."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import prowess
from tests.browser.visitor import (
    ServedConsole,
    Visitor,
    ask_for_install,
    ask_for_sync,
    ask_for_update,
    confirm,
    run_prowess,
)
from tests.install.conftest import World

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack

    from playwright.sync_api import Browser

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# One pixel.
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63606060000000040001f61738550000"
    "000049454e44ae426082"
)
QUERIES = '[{"query": "profile this csv file"}, {"query": "translate the strings", "should_trigger": false}]'
READING_PAGES = {
    "library": "/",
    "search": "/?q=profile+a+csv+file",
    "search without a hit": "/?q=zzzz&show=broken",
    "filter": "/?show=broken&counts=1",
    "outdated": "/?show=outdated",
    "skill": "/skills/csv-report",
    "skill that acts": "/skills/folder-report",
    "installed skill": "/skills/pdf",
    "edited skill": "/skills/table",
    "file": "/skills/csv-report/files?path=scripts/profile.py",
    "image": "/skills/csv-report/files?path=assets/dot.png",
    "sees": "/sees",
    "sees a request": "/sees?q=profile+a+csv+file&budget=300&dialect=prowess&skill=csv-report&arguments=a+b",
    "agents": "/agents",
    "agents with a state": "/agents?state=missing",
    "changes": "/changes",
    "no such page": "/nothing",
}
"""The pages that only show something, by name."""
LINKED_PAGES = {"broken skill": "/?show=broken", "shadowed copy": "/?show=shadowed"}
"""The pages that the first row of another page leads to."""


class Showcase(NamedTuple):
    """Consoles, and a visitor that has seen all their pages once."""

    consoles: tuple[ServedConsole, ServedConsole]
    addresses: dict[str, str]
    """The address of every page, by name."""


def open_showcase(base: Path, stack: ExitStack, browser: Browser) -> Showcase:
    """Start the consoles and make a plan of each kind and state, until the stack ends."""
    world, quarrel = _fill_world(base / "all"), _fill_quarrel(base / "quarrel")
    consoles = tuple(stack.enter_context(ServedConsole(one)) for one in (world, quarrel))
    visitor = Visitor(browser, *consoles)
    stack.callback(visitor.close)
    first, second = (console.address for console in consoles)
    addresses = {name: first + path for name, path in READING_PAGES.items()}
    for name, path in LINKED_PAGES.items():
        visitor.tab.goto(first + path)
        visitor.tab.locator("#results tbody a").first.click()
        addresses[name] = visitor.tab.url
    for name, make in PLANS.items():
        make(visitor, world)
        visitor.tab.locator("h1 .mark:not(.mark-preparing):not(.mark-running)").wait_for()
        addresses[name] = visitor.tab.url
    addresses["changes with plans"] = f"{first}/changes"
    addresses["lock file in conflict"] = f"{second}/changes"
    visitor.tab.goto(f"{second}/changes")
    visitor.tab.get_by_role("button", name="Merge it entry by entry").click()
    addresses["plan: merge, choosing"] = visitor.tab.url
    addresses["agents of a lock file in conflict"] = f"{second}/agents"
    assert visitor.problems == []
    return Showcase((consoles[0], consoles[1]), addresses)


# -- what there is to see ----------------------------------------------------------------------------------------------


def _fill_world(base: Path) -> World:
    """Return a world with the examples, two outdated installs, of which one was edited, and a shadowed copy."""
    world = World(base)
    for name in (".claude", ".codex", ".gemini"):
        (world.home / name).mkdir()
    for folder in ("skills", "acting", "broken"):
        shutil.copytree(EXAMPLES / folder, world.agents, dirs_exist_ok=True)
    report = world.agents / "csv-report"
    (report / "assets" / "dot.png").write_bytes(PNG)
    (report / "evals").mkdir()
    (report / "evals" / "triggers.json").write_text(QUERIES, encoding="utf-8")
    shutil.copytree(EXAMPLES / "skills" / "deep-review", world.home / ".agents" / "skills" / "deep-review")
    for name in ("pdf", "table"):
        repository = world.repository(name)
        run_prowess(world, "install", repository.address, "--project", "--yes")
        repository.skill("", body="Do it.\nThen do it again.\n")
        repository.commit()
    path = world.agents / "table" / "SKILL.md"
    path.write_text(path.read_text(encoding="utf-8").replace("Do it.", "Do it with care."), encoding="utf-8")
    return world


def _fill_quarrel(base: Path) -> World:
    """Return a world whose lock file is in conflict about two installs."""
    world = World(base)
    (world.home / ".claude").mkdir()
    for name in ("pdf", "csv"):
        run_prowess(world, "install", world.repository(name).address, "--project", "--yes")
    text = world.lock.read_text(encoding="utf-8")
    mine, theirs = (re.sub('commit = "[0-9a-f]{40}"', f'commit = "{digit * 40}"', text) for digit in "12")
    world.lock.write_text(prowess.merge_locks(text, mine, theirs).text, encoding="utf-8")
    return world


# -- a plan of each kind and state -------------------------------------------------------------------------------------


def _offer(visitor: Visitor, world: World) -> None:
    repository = world.repository("tools", "one", "two")
    repository.write("two/scripts/run.sh", "echo\n", executable=True)
    repository.skill("one", body="Run !`date` first.\n")
    repository.commit()
    ask_for_install(visitor.tab, repository.address)


def _plan_install(visitor: Visitor, world: World) -> None:
    ask_for_install(visitor.tab, world.repository("notes").address)


def _refuse_install(visitor: Visitor, world: World) -> None:
    _plan_install_of(visitor, world, "late")
    lock = world.lock.read_text(encoding="utf-8")
    world.lock.write_text(lock + "\n", encoding="utf-8")
    confirm(visitor.tab)


def _make_install(visitor: Visitor, world: World) -> None:
    _plan_install_of(visitor, world, "letters")
    confirm(visitor.tab)


def _discard_install(visitor: Visitor, world: World) -> None:
    _plan_install_of(visitor, world, "unwanted")
    visitor.tab.get_by_role("button", name="Give it up").click()


def _plan_install_of(visitor: Visitor, world: World, name: str) -> None:
    ask_for_install(visitor.tab, world.repository(name).address)
    visitor.tab.locator("h1 .mark-ready").wait_for()


def _fail_install(visitor: Visitor, _world: World) -> None:
    ask_for_install(visitor.tab, "./nowhere")


def _plan_update(visitor: Visitor, _world: World) -> None:
    ask_for_update(visitor.tab)


def _verify(visitor: Visitor, _world: World) -> None:
    visitor.tab.goto("/changes")
    visitor.tab.get_by_role("button", name="Verify now").click()


def _plan_sync(visitor: Visitor, _world: World) -> None:
    ask_for_sync(visitor.tab)


def _plan_trust(visitor: Visitor, _world: World) -> None:
    visitor.tab.goto("/skills/folder-report")
    visitor.tab.get_by_role("button", name="Trust it as it is now").click()


def _plan_unlink(visitor: Visitor, _world: World) -> None:
    visitor.tab.goto("/agents")
    visitor.tab.get_by_role("button", name=re.compile("^Unlink pdf for Claude")).click()


PLANS: dict[str, Callable[[Visitor, World], None]] = {
    "plan: install, choosing": _offer,
    "plan: install, refused": _refuse_install,
    "plan: install, done": _make_install,
    "plan: install, discarded": _discard_install,
    "plan: install, failed": _fail_install,
    "plan: install, ready": _plan_install,
    "plan: update, ready": _plan_update,
    "plan: verify, done": _verify,
    "plan: sync, ready": _plan_sync,
    "plan: trust, ready": _plan_trust,
    "plan: unlink, ready": _plan_unlink,
}
PAGE_NAMES = (
    *READING_PAGES,
    *LINKED_PAGES,
    *PLANS,
    "changes with plans",
    "lock file in conflict",
    "plan: merge, choosing",
    "agents of a lock file in conflict",
)
"""The names of all pages of a showcase."""

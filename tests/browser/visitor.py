"""A console that runs in a process of its own, and a person's browser in front of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from types import TracebackType

    from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Route

    from tests.install.conftest import World

_EXPECTED_CONSOLE_ERRORS = (
    # Chromium and htmx write these about each page that the console refuses or does not have.
    "Failed to load resource: the server responded with a status of 4",
    "Response Status Error Code 4",
    # Chromium writes this about a host name other than loopback, without TLS.
    "The Cross-Origin-Opener-Policy header has been ignored",
)


def environment_of(world: World) -> dict[str, str]:
    """Return the environment variables for a process that lives in a world: its home folder, and no proxies."""
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "CLAUDE_CONFIG_DIR"):
        kept.pop(name, None)
    return {**kept, "HOME": str(world.home)}


def run_prowess(world: World, *words: str) -> None:
    """Run a command in the project of a world; it must succeed."""
    command = [sys.executable, "-m", "prowess", *words]
    done = subprocess.run(
        command, cwd=world.project, env=environment_of(world), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


class ServedConsole:
    """``prowess ui`` of the skills in the standard places of a world, until the block ends."""

    def __init__(self, world: World, *words: str) -> None:
        self.world = world
        self._process = subprocess.Popen(
            [sys.executable, "-m", "prowess", "ui", *words],
            cwd=world.project,
            env=environment_of(world),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        match = re.search(r"http://\S+", line)
        assert match, f"prowess ui printed no address: {line!r}"
        self.first_address = match[0]
        """The address with the token."""
        self.address = self.first_address.partition("/?")[0]
        """The address without a path."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.communicate(timeout=30)


class Visitor:
    """A person's browser that is signed in to consoles. It notes whatever must not happen on any page."""

    def __init__(self, browser: Browser, *consoles: ServedConsole, **options: object) -> None:
        self.problems: list[str] = []
        """Requests to other hosts, errors of scripts, refusals of the content security policy, and dialogs."""
        self.consoles = consoles
        self._hosts = {urlsplit(console.address).netloc for console in consoles}
        self.context = browser.new_context(base_url=consoles[0].address if consoles else None, **options)
        self.context.route(self._is_foreign, self._refuse)
        self.context.on("console", self._note_console)
        self.context.on("weberror", lambda error: self.problems.append(f"an error of a script: {error.error}"))
        self.context.on("dialog", self._note_dialog)
        self.tab = self.context.new_page()
        for console in reversed(consoles):
            self.tab.goto(console.first_address)

    def open_tab(self, address: str) -> Page:
        """Return a further tab that shows an address."""
        tab = self.context.new_page()
        tab.goto(address)
        return tab

    def trust_host(self, address: str) -> None:
        """Let requests to a further address pass: those of a page that a test visits on purpose."""
        self._hosts.add(urlsplit(address).netloc)

    def close(self) -> None:
        """Close all tabs."""
        self.context.close()

    def _is_foreign(self, address: str) -> bool:
        parts = urlsplit(address)
        return parts.scheme not in {"data", "blob", "file"} and parts.netloc not in self._hosts

    def _refuse(self, route: Route) -> None:
        self.problems.append(f"a request to another host: {route.request.url}")
        route.abort()

    def _note_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and not message.text.startswith(_EXPECTED_CONSOLE_ERRORS):
            self.problems.append(f"in the console of the browser: {message.text}")

    def _note_dialog(self, dialog: Dialog) -> None:
        self.problems.append(f"a dialog: {dialog.message}")
        dialog.dismiss()


# -- what people do ----------------------------------------------------------------------------------------------------


def ask_for_install(tab: Page, source: str) -> None:
    """Ask on the page "Changes" for an install into the project."""
    tab.goto("/changes")
    form = tab.get_by_role("region", name="Install", exact=True)
    form.get_by_label("Source").fill(source)
    form.get_by_label("the project").check()
    form.get_by_role("button", name="Look at the source").click()


def ask_for_update(tab: Page, install: str = "") -> None:
    """Ask on the page "Changes" for an update of one install, or of all."""
    tab.goto("/changes")
    form = tab.get_by_role("region", name="Update", exact=True)
    form.get_by_role("combobox").fill(install)
    form.get_by_role("button", name="Compare with the sources").click()


def ask_for_sync(tab: Page) -> None:
    """Ask on the page "Changes" for a sync of the project."""
    tab.goto("/changes")
    tab.get_by_role("button", name="Compare with the lock file").click()


def confirm(tab: Page) -> None:
    """Confirm the plan that a tab shows."""
    tab.get_by_role("button", name="Do this").click()


def find_faults(tab: Page, axe: str) -> list[str]:
    """Return what axe-core calls serious or critical on the page that a tab shows."""
    tab.evaluate(axe)
    # Without preload: it would fetch the style sheets itself, which the content security policy refuses.
    found = tab.evaluate("axe.run(document, {resultTypes: ['violations'], preload: false})")["violations"]
    return [
        f"{one['id']} ({one['impact']}): {node['html'][:200]} {node['failureSummary']}"
        for one in found
        if one["impact"] in {"serious", "critical"}
        for node in one["nodes"]
    ]

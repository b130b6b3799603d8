"""Attacks on the console in a real browser: hostile skills, hostile pages in other tabs, and names that lead here."""

from __future__ import annotations

import shutil
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from tests.browser.test_changes import expect, expect_state
from tests.browser.visitor import ServedConsole, Visitor, ask_for_install
from tests.web.console import write_skill
from tests.web.hostile_skills import write_hostile_skills

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.install.conftest import World

    Serve = Callable[..., ServedConsole]
    Visit = Callable[..., Visitor]

pytestmark = pytest.mark.web


def test_hostile_skill_is_inert_on_every_page(world: World, serve: Serve, visit: Visit) -> None:
    write_hostile_skills(world.agents)
    source = world.folder("evil")
    (source / "SKILL.md").write_bytes((world.agents / "evil" / "SKILL.md").read_bytes())
    (source / "<img src=x onerror=alert(1)>.md").write_text("x", encoding="utf-8")
    tab = visit(serve()).tab  # whose fixture fails for dialogs, requests to elsewhere and refusals of the policy
    waiting, seen = ["/", "/sees?skill=evil", "/agents", "/changes"], set[str]()
    while waiting:
        address = waiting.pop()
        seen.add(address)
        tab.goto(address)
        tab.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
        links = tab.locator("main a[href^='/']").evaluate_all("all => all.map(one => one.getAttribute('href'))")
        waiting += [link for link in dict.fromkeys(links) if link not in seen and link not in waiting]
        assert len(seen) < 200
    assert any("/files?" in address for address in seen)
    shutil.rmtree(world.agents)
    ask_for_install(tab, str(source))
    expect_state(tab, "ready")
    ask_for_install(tab, "./<img src=x onerror=alert(1)>")
    expect_state(tab, "failed")


def test_image_of_a_skill_that_is_a_page_or_svg_is_only_text(world: World, serve: Serve, visit: Visit) -> None:
    write_hostile_skills(world.agents)
    tab = visit(serve()).tab
    for name in ("picture.svg", "page.html"):
        tab.goto(f"/skills/evil/files?path={name}")
        assert tab.locator("main img, main svg, main script").count() == 0
        assert "alert(1)" in tab.locator("main pre").inner_text()
        answer = tab.goto(f"/skills/evil/image?path={name}")
        assert answer.status >= 400, answer.headers


# -- pages of others ---------------------------------------------------------------------------------------------------


class _OtherSite:
    """A site on another port of this machine, with one page that can be set."""

    def __init__(self) -> None:
        self.page = ""
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = site.page.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def other_site() -> Iterator[_OtherSite]:
    """A site on another port, which a browser takes for the same site as the console."""
    site = _OtherSite()
    thread = Thread(target=site.server.serve_forever)
    thread.start()
    yield site
    site.server.shutdown()
    thread.join()
    site.server.server_close()


def test_page_on_another_port_changes_and_learns_nothing(
    world: World, serve: Serve, visit: Visit, other_site: _OtherSite
) -> None:
    write_skill(world.agents, "one", "Run !`date` first.\n")
    console = serve()
    visitor = visit(console)
    visitor.trust_host(other_site.address)
    other_site.page = f"""<!doctype html><title>x</title>
<form method="post" action="{console.address}/plans"><input name="kind" value="trust"><input name="skill" value="one">
<button>Win a prize</button></form>"""
    tab = visitor.open_tab(other_site.address)
    tab.get_by_role("button").click()
    expect(tab.locator("body")).to_have_text("only the console's own pages may ask this")
    tab.goto(other_site.address)
    for mode in ("cors", "no-cors"):
        body = tab.evaluate(
            "([address, mode]) => fetch(address, {credentials: 'include', mode}).then(a => a.text(), () => 'refused')",
            [console.address, mode],
        )
        assert body in {"refused", ""}
    tab.evaluate(
        "address => new Promise(done => { const frame = document.createElement('iframe'); frame.src = address;"
        " frame.onload = done; document.body.append(frame); })",
        console.address,
    )
    assert tab.frames[-1].url.startswith("chrome-error:")
    visitor.tab.goto("/changes")
    expect(visitor.tab.locator("#plans")).to_contain_text("None yet")
    # In the tab of the attacker the browser says what it refused.
    assert all(problem.startswith("in the console of the browser: ") for problem in visitor.problems)
    visitor.problems.clear()


def test_host_name_of_an_attacker_that_leads_here_shows_nothing(serve: Serve, visit: Visit) -> None:
    console = serve()
    visitor = visit(console)
    address = console.address.replace("127.0.0.1", "evil.example")
    visitor.trust_host(address)
    token = console.first_address.partition("?")[2]
    for path in ("/", f"/?{token}", "/static/console.css"):
        answer = visitor.tab.goto(f"{address}{path}")
        assert answer.status == 421
        assert "set-cookie" not in answer.headers


def test_token_is_in_no_address_after_the_first(serve: Serve, visit: Visit) -> None:
    visitor = visit(serve())
    assert "token" not in visitor.tab.url
    visitor.tab.reload()
    assert visitor.tab.evaluate("document.cookie") == ""
    stranger = visit(*visitor.consoles)
    stranger.context.clear_cookies()
    answer = stranger.tab.goto("/")
    assert answer.status == 403

"""Who may look at the console and who may change something: each attack is a test, beside what must work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.errors import SourceError
from prowess.limits import Limits
from prowess.web.app import create_app
from prowess.web.library import Library
from tests.web.browser import HOST, ORIGIN, TOKEN, Browser

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.web.browser import Answer

FORM = {"content-type": "application/x-www-form-urlencoded", "origin": ORIGIN, "sec-fetch-site": "same-origin"}


@pytest.fixture
def browser() -> Browser:
    return Browser(create_app(Library(prowess.Catalog()), token=TOKEN))


@pytest.fixture
def stranger() -> Browser:
    """A browser that has not opened the first address."""
    return Browser(create_app(Library(prowess.Catalog()), token=TOKEN), signed_in=False)


def form_token(browser: Browser) -> str:
    return browser.get("/?show=outdated").page.find("input", name="form-token")[0].attributes["value"]


# -- the first address -------------------------------------------------------------------------------------------------


def test_the_first_address_gives_a_cookie_and_leads_to_an_address_without_the_token(stranger: Browser) -> None:
    answer = stranger.get(f"/?show=broken&token={TOKEN}&q=a+b")
    assert answer.status == 303
    assert answer.headers["location"] == "/?show=broken&q=a+b"
    assert answer.headers["set-cookie"].startswith("prowess-ui-8849=")
    assert answer.headers["set-cookie"].endswith("; HttpOnly; SameSite=Strict; Path=/")
    assert TOKEN not in answer.headers["set-cookie"]
    assert stranger.get("/").status == 200


@pytest.mark.parametrize("address", ["/", "/skills/x", "/static/console.css", "/nothing"])
def test_nothing_is_shown_without_the_cookie(stranger: Browser, address: str) -> None:
    answer = stranger.get(address)
    assert answer.status == 403
    assert answer.text.startswith("open the address that 'prowess ui' printed")


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], f"{TOKEN}x", "\u00e9"])
def test_a_wrong_token_is_refused(stranger: Browser, token: str) -> None:
    answer = stranger.get(f"/?token={token}")
    assert answer.status == 403
    assert "set-cookie" not in answer.headers


def test_tokens_cannot_be_guessed_one_after_the_other() -> None:
    library = Library(prowess.Catalog(), limits=Limits(max_http_wrong_tokens=3))
    stranger = Browser(create_app(library, token=TOKEN), signed_in=False)
    assert [stranger.get("/?token=wrong").status for _ in range(4)] == [403, 403, 403, 429]
    assert stranger.get(f"/?token={TOKEN}").status == 429


def test_the_redirect_never_leads_to_another_host(stranger: Browser) -> None:
    for path in ("//evil.example/", "/\\evil.example/", "///evil.example"):
        answer = stranger.send_path(path, f"token={TOKEN}")
        assert answer.headers["location"].startswith("/e"), answer


@pytest.mark.parametrize(
    "change", [lambda value: value + "0", lambda value: "x" + value, lambda _: "x.y", lambda _: ""]
)
def test_a_forged_cookie_is_refused(browser: Browser, change: Callable[[str], str]) -> None:
    browser.cookies = {name: change(value) for name, value in browser.cookies.items()}
    assert browser.get("/").status == 403


def test_the_cookie_of_another_run_is_refused(browser: Browser, stranger: Browser) -> None:
    stranger.cookies = browser.cookies
    assert stranger.get("/").status == 403


# -- a rebinding host --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["evil.example:8849", "127.0.0.1:9999", "127.0.0.1", "localhost.evil.example:8849", "", "a@b"]
)
def test_a_host_that_is_not_the_consoles_own_is_refused(browser: Browser, host: str) -> None:
    for answer in (browser.get("/", {"host": host}), browser.get(f"/?token={TOKEN}", {"host": host})):
        assert answer.status == 421
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "host",
    [
        "0.0.0.0:8849",  # which leads to this machine, too
        "127.1:8849",
        "0x7f000001:8849",
        "2130706433:8849",
        "[::ffff:127.0.0.1]:8849",
        "[::]:8849",
        "127.0.0.1.:8849",
        "127.0.0.1:8849@evil.example",
        "127.0.0.1:8849.evil.example",
        "127.0.0.1:8849/evil",
        "127.0.0.1 :8849",
        "127.0.0.1:+8849",
    ],
)
def test_another_spelling_of_this_machine_is_not_the_consoles_own_name(browser: Browser, host: str) -> None:
    assert browser.get("/", {"host": host}).status == 421


def test_a_request_with_two_hosts_is_refused(browser: Browser) -> None:
    twice = [("host", HOST), ("host", "evil.example:8849")]
    for pairs in (twice, twice[::-1]):
        assert browser.send_pairs(f"/?token={TOKEN}", pairs).status == 421


@pytest.mark.parametrize("host", [HOST, "localhost:8849", "[::1]:8849"])
def test_the_names_of_loopback_are_the_consoles_own(browser: Browser, host: str) -> None:
    assert browser.get("/", {"host": host}).status == 200


def test_a_further_host_can_be_named() -> None:
    app = create_app(Library(prowess.Catalog()), token=TOKEN, hosts=["skills.example"])
    assert Browser(app).get("/", {"host": "skills.example"}).status == 200


# -- a hostile page in another tab, another local port -----------------------------------------------------------------

ELSEWHERE = [
    "https://evil.example",
    "http://127.0.0.1:3000",
    "http://localhost:8849",
    "https://127.0.0.1:9",
    "null",
    "x",
]


@pytest.mark.parametrize("origin", ELSEWHERE)
def test_a_form_of_another_page_changes_nothing_even_with_cookie_and_form_token(browser: Browser, origin: str) -> None:
    answer = browser.post("/outdated", {"form-token": form_token(browser)}, {"origin": origin})
    assert answer.status == 403


@pytest.mark.parametrize(
    "origin",
    [
        "http://127.0.0.1:8849.evil.example",
        "http://127.0.0.1:8849@evil.example",
        "http://evil.example/http://127.0.0.1:8849",
        "http://user@127.0.0.1:8849",
        "chrome-extension://127.0.0.1:8849",
        "file://127.0.0.1:8849",
        f"{ORIGIN} http://evil.example",
        "http://[",
    ],
)
def test_an_origin_that_only_resembles_the_consoles_changes_nothing(browser: Browser, origin: str) -> None:
    answer = browser.post("/outdated", {"form-token": form_token(browser)}, {"origin": origin})
    assert answer.status == 403


def test_a_cookie_that_another_port_put_beside_the_consoles_own_is_ignored(browser: Browser) -> None:
    own = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    for cookie in (f"prowess-ui-8849=forged.0; {own}", f"{own}; prowess-ui-8849=forged.0", f"prowess-ui-8849; {own}"):
        assert browser.get("/", {"cookie": cookie}).status == 200
    assert browser.get("/", {"cookie": own.replace("8849", "3000")}).status == 403


def test_a_form_token_is_not_taken_from_the_address_or_from_the_value_of_a_button(browser: Browser) -> None:
    token = form_token(browser)
    assert browser.post(f"/outdated?form-token={token}").status == 403
    assert browser.post("/outdated", {"change": f"form-token={token}"}).status == 403


def test_a_form_without_an_origin_changes_nothing(browser: Browser) -> None:
    token = form_token(browser)
    assert browser.post("/outdated", {"form-token": token}, {"origin": ""}).status == 403


@pytest.mark.parametrize("site", ["same-site", "cross-site"])
def test_a_form_that_a_browser_calls_foreign_changes_nothing(browser: Browser, site: str) -> None:
    answer = browser.post("/outdated", {"form-token": form_token(browser)}, {"sec-fetch-site": site})
    assert answer.status == 403


@pytest.mark.parametrize("site", ["same-site", "cross-site"])
@pytest.mark.parametrize(
    ("mode", "kind"), [("no-cors", "script"), ("no-cors", "image"), ("cors", "empty"), ("navigate", "iframe")]
)
def test_another_page_loads_nothing_into_itself(browser: Browser, site: str, mode: str, kind: str) -> None:
    headers = {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": kind}
    assert browser.get("/", headers).status == 403


def test_a_page_of_another_origin_gets_no_data_even_from_an_old_browser(browser: Browser) -> None:
    headers = {"origin": "http://127.0.0.1:3000", "sec-fetch-site": "", "sec-fetch-mode": "", "sec-fetch-dest": ""}
    answer = browser.get("/", headers)
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers


def test_a_link_on_another_page_may_lead_here(browser: Browser) -> None:
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert browser.get("/", headers).status == 200


# -- forms -------------------------------------------------------------------------------------------------------------


def test_a_form_of_the_console_works(browser: Browser) -> None:
    answer = browser.submit("/?show=outdated", "/outdated")
    assert (answer.status, answer.headers["location"]) == (303, "/?show=outdated")


@pytest.mark.parametrize("given", [{}, {"form-token": ""}, {"form-token": "0" * 64}, {"form-token": "é"}])
def test_a_form_without_its_token_changes_nothing(browser: Browser, given: dict[str, str]) -> None:
    answer = browser.post("/outdated", given)
    assert answer.status == 403
    assert "load the page again" in answer.text


def test_a_form_token_belongs_to_one_cookie() -> None:
    app = create_app(Library(prowess.Catalog()), token=TOKEN)
    first, second = Browser(app), Browser(app)
    assert first.post("/outdated", {"form-token": form_token(second)}).status == 403
    assert first.post("/outdated", {"form-token": form_token(first)}).status == 303


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "text/plain", "application/json", ""])
def test_uploads_and_other_bodies_are_refused(browser: Browser, kind: str) -> None:
    assert browser.post("/outdated", {"form-token": form_token(browser)}, {"content-type": kind}).status == 415


def test_a_form_that_is_too_large_is_refused() -> None:
    library = Library(prowess.Catalog(), limits=Limits(max_http_body_bytes=1_000))
    browser = Browser(create_app(library, token=TOKEN))
    answer = browser.post("/outdated", {"form-token": form_token(browser), "more": "x" * 1_000})
    assert answer.status == 413


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(browser: Browser, method: str) -> None:
    assert browser.send(method, "/outdated", FORM).status == 405


def test_a_change_is_never_made_by_following_a_link(browser: Browser) -> None:
    assert browser.get("/outdated").status in {404, 405}


def test_a_console_that_only_shows_refuses_every_form_and_offers_none() -> None:
    app = create_app(Library(prowess.Catalog()), token=TOKEN, actions=frozenset())
    browser = Browser(app)
    page = browser.get("/?show=outdated")
    assert not page.page.find("form", method="post")
    assert page.page.text_of("span", class_="mode") == ["read-only"]
    answer = browser.post("/outdated")
    assert answer.status == 405
    assert "--read-only" in answer.text


# -- every answer ------------------------------------------------------------------------------------------------------


def answers(browser: Browser, stranger: Browser) -> list[Answer]:
    return [
        browser.get("/"),
        browser.get("/static/console.css"),
        browser.get("/nothing"),
        browser.get("/skills/nothing"),
        browser.post("/outdated"),
        stranger.get("/"),
        stranger.get(f"/?token={TOKEN}"),
        stranger.get("/", {"host": "evil.example"}),
    ]


def test_every_answer_has_the_headers_of_security(browser: Browser, stranger: Browser) -> None:
    for answer in answers(browser, stranger):
        policy = answer.headers["content-security-policy"].split("; ")
        assert policy[0] == "default-src 'none'"
        assert {"frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} <= set(policy)
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_no_page_has_anything_that_the_policy_would_refuse(browser: Browser) -> None:
    for element in browser.get("/").page.elements:
        assert "style" not in element.attributes
        assert element.tag != "style"
        assert not any(name.startswith("on") for name in element.attributes)
        source = element.attributes.get("src", element.attributes.get("href", "/"))
        assert source.startswith(("/", "#"))


@pytest.mark.parametrize("address", ["/nothing", "/skills/nothing", "/skills/nothing/files?path=x", "/skills/%2e%2e"])
def test_an_address_without_a_page_is_not_found(browser: Browser, address: str) -> None:
    answer = browser.get(address)
    assert answer.status == 404
    assert "This cannot be shown" in answer.page.text_of("h1")


@pytest.mark.parametrize("token", ["short", "ä" * 20])
def test_a_token_that_is_easily_guessed_is_refused_at_the_start(token: str) -> None:
    with pytest.raises(SourceError, match="at least 16"):
        create_app(Library(prowess.Catalog()), token=token)

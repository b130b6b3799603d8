"""A browser without a screen: it sends requests to the console as an ASGI application, and keeps its cookies."""

from __future__ import annotations

import asyncio
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.serving.access import App

TOKEN = "a-token-for-tests-1234"  # noqa: S105 - no secret
ADDRESS = ("127.0.0.1", 8849)
HOST = "127.0.0.1:8849"
ORIGIN = f"http://{HOST}"


class Answer(NamedTuple):
    """What the console answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def page(self) -> Page:
        return Page(self.text)


class Page(HTMLParser):
    """The elements of a page, in order, with the text in each."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, [])
        self.elements.append(element)
        if tag not in {"meta", "link", "input", "img", "br", "hr"}:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop().tag != tag:
            pass

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.parts.append(data)

    def find(self, tag: str, **attributes: str) -> list[Element]:
        """Return the elements of a tag whose attributes have these values; ``class_`` names one of the classes."""
        wanted_class = attributes.pop("class_", "")
        return [
            element
            for element in self.elements
            if element.tag == tag
            and all(element.attributes.get(name.replace("_", "-")) == value for name, value in attributes.items())
            and (not wanted_class or wanted_class in element.attributes.get("class", "").split())
        ]

    def text_of(self, tag: str, **attributes: str) -> list[str]:
        """Return the text of each element that ``find`` returns."""
        return [element.text for element in self.find(tag, **attributes)]


class Element(NamedTuple):
    """An element: its tag, its attributes and the pieces of its text."""

    tag: str
    attributes: dict[str, str]
    parts: list[str]

    @property
    def text(self) -> str:
        return " ".join("".join(self.parts).split())


class Browser:
    """Sends requests to an application; ``headers`` of a request replace those that a browser would send."""

    def __init__(self, app: App, *, signed_in: bool = True) -> None:
        self._app = app
        self.cookies: dict[str, str] = {}
        if signed_in:
            assert self.get(f"/?token={TOKEN}").status == 303

    def get(self, address: str, headers: dict[str, str] | None = None) -> Answer:
        navigation = {"sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
        return self.send("GET", address, {**navigation, **(headers or {})})

    def post(self, address: str, fields: dict[str, str] | None = None, headers: dict[str, str] | None = None) -> Answer:
        """Send a form as a page of the console would, except for the form token, which is one of the fields."""
        own = {
            "origin": ORIGIN,
            "sec-fetch-site": "same-origin",
            "content-type": "application/x-www-form-urlencoded",
        }
        return self.send("POST", address, {**own, **(headers or {})}, urlencode(fields or {}).encode())

    def submit(self, page: str, action: str, fields: dict[str, str] | None = None) -> Answer:
        """Send the form of a page whose ``action`` this is, with its hidden fields, as a person would."""
        shown = self.get(page).page
        assert shown.find("form", action=action), f"{page} has no form for {action}"
        token = shown.find("input", name="form-token")[0].attributes["value"]
        return self.post(action, {"form-token": token, **(fields or {})})

    def send(self, method: str, address: str, headers: dict[str, str], body: bytes = b"") -> Answer:
        parts = urlsplit(address)
        given = {"host": HOST, **headers}
        if self.cookies and "cookie" not in given:
            given["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        pairs = [(name.encode(), value.encode("latin-1")) for name, value in given.items() if value]
        answer = asyncio.run(self._call(method, parts.path, parts.query, pairs, body))
        for cookie in [value for name, value in answer.headers.items() if name == "set-cookie"]:
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
        return answer

    def send_path(self, path: str, query: str) -> Answer:
        """Send a plain GET for a path that no address of a browser could have."""
        return asyncio.run(self._call("GET", path, query, [(b"host", HOST.encode())], b""))

    def send_pairs(self, address: str, headers: Iterable[tuple[str, str]]) -> Answer:
        """Send a plain GET with these headers alone, of which one may come twice."""
        parts = urlsplit(address)
        pairs = [(name.encode(), value.encode()) for name, value in headers]
        return asyncio.run(self._call("GET", parts.path, parts.query, pairs, b""))

    async def _call(
        self, method: str, path: str, query: str, headers: Iterable[tuple[bytes, bytes]], body: bytes
    ) -> Answer:
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": list(headers),
            "client": ("127.0.0.1", 50000),
            "server": ADDRESS,
        }
        sent: list[Any] = []
        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Any:
            if waiting:
                return waiting.pop()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await self._app(scope, receive, send)
        start = sent[0]
        answered = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}
        return Answer(start["status"], answered, b"".join(message.get("body", b"") for message in sent[1:]))

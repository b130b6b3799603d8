"""What the console costs: ``python -m bench.console WHAT ROOT`` prints one JSON object.

``list`` and ``first_page`` are the CPU time of a whole process: the command ``prowess list --json``, and ``prowess ui``
from its start to the end of its first page. ``search`` and ``loads`` ask the application inside this process.
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import signal
import subprocess
import sys
import time
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, urlsplit

from bench.memory import resident_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prowess.serving.access import App, Message

TYPED = ("fill in a pdf form", "deploy the release to kubernetes", "quarterly report")
"""Requests that somebody types, letter by letter."""
LOADS = 2_000
_WARM_LOADS = 1_000
"""As many as fill the caches whose size is bounded, such as the pages of the index that SQLite keeps."""
_ADDRESS = ("127.0.0.1", 8849)
_TOKEN = "a-token-of-the-bench"  # noqa: S105 - no secret


def main(what: str, root: str) -> None:
    print(json.dumps(_TASKS[what](root)))


# -- whole processes ---------------------------------------------------------------------------------------------------


def list_skills(root: str) -> dict[str, float]:
    subprocess.run([sys.executable, "-m", "prowess", "list", root, "--json"], check=True, stdout=subprocess.DEVNULL)
    return {"value": _used_seconds()}


def load_first_page(root: str) -> dict[str, float]:
    """Start the console as a person does, with its watcher, and load its first page as a browser does."""
    words = [sys.executable, "-m", "prowess", "ui", root]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = urlsplit(process.stdout.readline().removeprefix("Open ").strip())
            connection = HTTPConnection(address.netloc, timeout=60)
            connection.request("GET", f"/?{address.query}")
            answer = connection.getresponse()
            answer.read()
            cookie = answer.headers["set-cookie"].partition(";")[0]
            connection.request("GET", answer.headers["location"], headers={"cookie": cookie})
            page = connection.getresponse()
            assert page.status == 200
            assert b"</html>" in page.read()
            connection.close()
        finally:
            process.send_signal(signal.SIGINT)
    return {"value": _used_seconds()}


def _used_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# -- inside this process -----------------------------------------------------------------------------------------------


def search(root: str) -> dict[str, float]:
    """The CPU time of the slowest page of a search, of all that are made while somebody types."""
    load = _open_console(root)
    load("/?counts=1")  # as a browser asks behind the first page, by which every skill is indexed
    slowest = 0.0
    for address in _type_requests():
        best = float("inf")
        for _ in range(3):
            begin = time.process_time()
            load(address)
            best = min(best, time.process_time() - begin)
        slowest = max(slowest, best)
    return {"value": slowest}


def _type_requests() -> Iterator[str]:
    for text in TYPED:
        yield from (f"/?q={quote_plus(text[:end])}" for end in range(1, len(text) + 1))


def load_pages(root: str) -> dict[str, float]:
    """The bytes by which the process grows over many loads of every page, after as many that warm it up."""
    load = _open_console(root)
    _load_many(load, range(_WARM_LOADS))
    gc.collect()
    before = resident_bytes()
    _load_many(load, range(_WARM_LOADS, _WARM_LOADS + LOADS))
    gc.collect()
    return {"value": float(max(0, resident_bytes() - before)), "count": LOADS}


def _load_many(load: Callable[[str], None], numbers: range) -> None:
    for number in numbers:
        page = number % 7
        if page == 0:
            load(f"/?page={number % 5 + 1}")
        elif page == 1:
            load(f"/?q=report+{number}")  # another request each time: nothing may be remembered for ever
        elif page == 2:
            load("/?show=broken")
        else:
            load(("/", "/agents", "/changes", "/sees?q=pdf&budget=2000")[page - 3])


def _open_console(root: str) -> Callable[[str], None]:
    """Return a function that loads a page of the console of ``root`` and raises an error where that fails."""
    import prowess
    from prowess.web.app import create_app
    from prowess.web.library import Library

    app = create_app(Library(prowess.scan(root), installer=prowess.Installer()), token=_TOKEN)
    loop = asyncio.new_event_loop()
    cookie = dict(loop.run_until_complete(_ask(app, f"/?token={_TOKEN}", b""))[1])[b"set-cookie"].partition(b";")[0]

    def load(address: str) -> None:
        status, _ = loop.run_until_complete(_ask(app, address, cookie))
        assert status == 200, address

    return load


async def _ask(app: App, address: str, cookie: bytes) -> tuple[int, list[tuple[bytes, bytes]]]:
    parts = urlsplit(address)
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": parts.path,
        "raw_path": parts.path.encode(),
        "query_string": parts.query.encode(),
        "root_path": "",
        "headers": [(b"host", b"%s:%d" % (_ADDRESS[0].encode(), _ADDRESS[1])), (b"cookie", cookie)],
        "client": ("127.0.0.1", 50_000),
        "server": _ADDRESS,
    }
    started: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            started.append(message)

    await app(scope, receive, send)
    return started[0]["status"], started[0]["headers"]


_TASKS: dict[str, Callable[[str], dict[str, float]]] = {
    "list": list_skills,
    "first_page": load_first_page,
    "search": search,
    "loads": load_pages,
}

if __name__ == "__main__":
    main(*sys.argv[1:])

"""``prowess ui``: the console as a person starts it, and the pages as files."""

from __future__ import annotations

import http.client
import os
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.cli.samples import SKILLS
from tests.cli_processes import fork_command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Command

SECONDS = 60


@pytest.fixture
def left_open() -> Iterator[ExitStack]:
    """What is closed only after the console has ended."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def address(project: Path, left_open: ExitStack) -> Iterator[str]:  # noqa: ARG001 - fixtures for their effect
    """The address that a console prints. It must end well when it is interrupted."""
    reading, writing = os.pipe()
    with Path(os.devnull).open("rb") as nothing, Path("errors.txt").open("wb") as errors:
        console = fork_command(["ui", str(SKILLS), "--no-watch"], stdin=nothing, stdout=writing, stderr=errors)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as output:
        first = output.readline()
        assert first.startswith("Open http://127.0.0.1:"), Path("errors.txt").read_text(encoding="utf-8")
        yield first.split()[1]
        assert console.end(signal.SIGINT) == 0
    assert Path("errors.txt").read_text(encoding="utf-8") == ""


def ask(address: str, path: str, headers: dict[str, str] | None = None) -> tuple[http.client.HTTPResponse, str]:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=SECONDS)
    connection.request("GET", path, headers=headers or {})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer, text


def test_the_printed_address_leads_to_the_library(address: str) -> None:
    parts = urlsplit(address)
    refused, _ = ask(address, "/")
    first, _ = ask(address, f"{parts.path}?{parts.query}")
    cookie = str(first.getheader("set-cookie")).partition(";")[0]
    page, text = ask(address, str(first.getheader("location")), {"Cookie": cookie})
    assert (refused.status, first.status, page.status) == (403, 303, 200)
    assert "csv-report" in text
    assert page.getheader("server") is None
    assert len(parts.query) > 40


def test_a_console_ends_without_an_error_while_a_browser_listens_to_its_events(
    address: str, left_open: ExitStack
) -> None:
    parts = urlsplit(address)
    first, _ = ask(address, f"{parts.path}?{parts.query}")
    cookie = str(first.getheader("set-cookie")).partition(";")[0]
    connection = http.client.HTTPConnection(parts.netloc, timeout=SECONDS)
    left_open.callback(connection.close)
    connection.request("GET", "/changes/events", headers={"Cookie": cookie})
    answer = left_open.enter_context(connection.getresponse())
    assert answer.getheader("content-type") == "text/event-stream; charset=utf-8"
    assert answer.readline() == b"retry: 2000\n"
    # The connection is still open when the fixture interrupts the console, which must end with nothing to say.


def test_pages_are_written_as_files_into_the_folder_that_is_named(command: Command) -> None:
    done = command("ui", str(SKILLS), "--export", "public/site")
    assert done.status == 0
    assert done.out.endswith("pages: open public/site/index.html\n")
    assert "csv-report" in Path("public/site/index.html").read_text(encoding="utf-8")
    again = command("ui", str(SKILLS), "--export", "public/site", "--json")
    assert again.data["folder"] == str(Path("public/site").absolute())
    assert again.data["pages"] > 10


def test_a_folder_with_other_files_is_not_replaced(command: Command) -> None:
    done = command("ui", str(SKILLS), "--export", ".")
    assert done.status == 3
    assert "error[already-there]" in done.err


@pytest.mark.parametrize("bind", ["0.0.0.0:0", "192.0.2.1:8080", "[::]:0"])
def test_an_address_that_others_can_reach_needs_a_token(command: Command, bind: str) -> None:
    done = command("ui", str(SKILLS), "--no-watch", "--bind", bind)
    assert done.status == 3
    assert "[token-needed]" in done.err
    assert "--token-file" in done.err


def test_a_short_token_is_refused(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROWESS_UI_TOKEN", "secret")
    done = command("ui", str(SKILLS), "--no-watch", "--bind", "0.0.0.0:0")
    assert "[bad-token]" in done.err
    assert "secret" not in done.err


def test_a_folder_that_does_not_exist_is_an_error(command: Command) -> None:
    for words in (["--export", "site"], ["--no-watch"], []):
        done = command("ui", "no-such-folder", *words)
        assert done.status == 3
        assert "no-such-folder" in done.err

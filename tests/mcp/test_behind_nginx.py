"""The deployment of docs/how-to/mcp.md, by its very text: a server on loopback behind nginx, with TLS and a token."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
from contextlib import closing, contextmanager
from http.client import HTTPSConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import prowess
from tests.hostile.http_servers import SECONDS, request, served
from tests.mcp_peers import put, skill_md
from tests.sandbox_support import NOT_TESTED
from tests.web_sites import certificate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from http.client import HTTPResponse

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "mcp.md"
NAME = "skills.example.org"
TOKEN = "a-long-random-token-0123456789"  # noqa: S105 - of the tests
LIST = request("skills/list")
WORKING_FILES = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


class Deployment(NamedTuple):
    """What clients reach: nginx, at a port of loopback, and the folder whose skills are behind it."""

    library: Path
    port: int
    trust: ssl.SSLContext

    @contextmanager
    def asked(self, body: bytes, method: str = "POST", token: str = TOKEN, **headers: str) -> Iterator[HTTPResponse]:
        """The answer to a request under the name that clients use, not yet read."""
        own = {
            "Host": f"{NAME}:{self.port}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": "2026-07-28",
            **({"Authorization": f"Bearer {token}"} if token else {}),
        }
        with closing(HTTPSConnection("127.0.0.1", self.port, context=self.trust, timeout=SECONDS)) as link:
            link.request(method, "/mcp", body, {**own, **headers})
            with link.getresponse() as answer:
                yield answer

    def called(self, method: str, **params: Any) -> AbstractContextManager[HTTPResponse]:
        """The answer to a request of the protocol, not yet read."""
        named = {"Mcp-Name": params["name"]} if "name" in params else {}
        return self.asked(request(method, **params), **{"Mcp-Method": method, **named})

    def read_answer(self, method: str, **params: Any) -> str:
        """The whole answer to a request of the protocol."""
        with self.called(method, **params) as answer:
            return answer.read().decode()

    def read_status(self, body: bytes = LIST, method: str = "POST", token: str = TOKEN) -> int:
        """The status that a request for the list of skills is answered with, however it is sent."""
        with self.asked(body, method, token, **{"Mcp-Method": "skills/list"}) as answer:
            return answer.status


def find_nginx() -> str:
    """The program, also where it is not on the search path of everybody; skips the test where there is none."""
    program = shutil.which("nginx", path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin")))
    if program is None:
        pytest.skip(f"{NOT_TESTED}the deployment behind nginx: there is no nginx here")
    return program


def documented_site(folder: Path, port: int, behind: int) -> str:
    """The ``server`` block of the page, with the ports and the certificate of this test and nothing else changed."""
    (text,) = re.findall(r"```nginx\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    changes = (
        ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
        ("/etc/ssl/skills.example.org/fullchain.pem", str(folder / "cert.pem")),
        ("/etc/ssl/skills.example.org/privkey.pem", str(folder / "key.pem")),
        ("http://127.0.0.1:8848", f"http://127.0.0.1:{behind}"),
    )
    for before, after in changes:
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return str(text)


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A server and nginx before it; both end with the tests."""
    program = find_nginx()
    folder = tmp_path_factory.mktemp("nginx")
    library = folder / "library"
    put(library, "notes/SKILL.md", skill_md("notes"))
    cert, _ = certificate(folder, NAME, "127.0.0.1")
    with (
        served(library, token=TOKEN, hosts=[NAME], watch_seconds=0.05) as server,
        socket.create_server(("127.0.0.1", 0)) as listening,
    ):
        port = listening.getsockname()[1]
        temporary = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in WORKING_FILES)
        site = documented_site(folder, port, server.port)
        settings = put(
            folder,
            "nginx.conf",
            f"daemon off; worker_processes 1; pid {folder}/pid; error_log stderr;\n"
            f"{'user root;' if os.geteuid() == 0 else ''}\n"  # another could not look into the folder of a test
            f"events {{}}\nhttp {{\naccess_log off;\n{temporary}{site}}}\n",
        )
        # nginx takes over a socket that listens already, so nobody waits until it does.
        nginx = subprocess.Popen(
            [program, "-e", "stderr", "-p", folder, "-c", settings],
            env={**os.environ, "NGINX": f"{listening.fileno()};"},
            pass_fds=(listening.fileno(),),
            stderr=subprocess.DEVNULL,
        )
        try:
            yield Deployment(library, port, ssl.create_default_context(cafile=cert))
        finally:
            nginx.terminate()
            nginx.wait()


def test_clients_with_the_token_are_served_and_not_told_where_files_lie(deployment: Deployment) -> None:
    listed = json.loads(deployment.read_answer("skills/list"))
    assert [entry["uri"] for entry in listed["result"]["skills"]] == ["skill://notes/SKILL.md"]
    loaded = deployment.read_answer("tools/call", name="load_skill", arguments={"name": "notes"})
    assert "Do it." in loaded
    assert str(deployment.library) not in loaded


def test_clients_without_the_token_and_methods_that_are_none_of_the_protocol_are_refused(
    deployment: Deployment,
) -> None:
    assert deployment.read_status(token="") == 401
    assert deployment.read_status(token="not-the-token-0123456789") == 401  # noqa: S106 - of the tests
    assert deployment.read_status(method="PUT") == 403


def test_a_client_that_listens_hears_of_a_change_at_once(deployment: Deployment) -> None:
    """Whatever nginx held back until it had more would never come."""
    with deployment.called("subscriptions/listen", notifications={"toolsListChanged": True}) as stream:
        assert stream.status == 200
        lines = iter(stream.readline, b"")
        assert any(b"acknowledged" in line for line in lines)
        put(deployment.library, "fresh/SKILL.md", skill_md("fresh"))
        assert any(b"notifications/tools/list_changed" in line for line in lines)


def test_nginx_takes_as_large_a_request_as_the_server(deployment: Deployment) -> None:
    most = prowess.Limits().max_http_body_bytes
    assert [deployment.read_status(LIST.ljust(size)) for size in (most, most + 1)] == [200, 413]

"""Installing from a private repository: the user's git says who they are; nobody else learns it."""

from __future__ import annotations

import base64
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.fetch.git.process import GitProgram
from prowess.install.fetch_source import token_variable
from tests.fetch.packing import FILES, zipped
from tests.git_servers import demand_password, http
from tests.repositories import Repository
from tests.web_sites import Reply, Site, certificate, skill_md

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tests.git_servers import Handler, HttpServer
    from tests.install.conftest import World
    from tests.web_sites import Asked

USER = "me"
PASSWORD = f"hunter2-{os.getpid()}-TOPSECRET"  # other workers run tests of this file at the same time
BASIC = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
HELPER = """\
#!/bin/sh
asked=$(grep -v '^password=')
printf '%s\\n%s\\n\\n' "$1" "$asked" >> '{record}'
case "$1 $asked" in
"get "*host={host}*) printf 'username={user}\\npassword={password}\\n' ;;
esac
"""


class Private:
    """A private repository, the certificate of its server, and a user whose git has a password for one host."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.root = world.base / "served"
        repo = Repository(self.root / "acme" / "pdf.git")
        repo.skill("", "pdf")
        self.commit = repo.commit()
        self.authority, self.tls = self._certificate()
        self.outside = world.base / "of-the-user"
        self.outside.mkdir()
        self.helper, self.record = self.outside / "helper", self.outside / "asked"
        config = f"[http]\n\tsslCAInfo = {self.authority}\n[credential]\n\thelper = {self.helper}\n"
        (world.home / ".gitconfig").write_text(config, encoding="utf-8")

    def _certificate(self) -> tuple[Path, ssl.SSLContext]:
        folder = self.world.base / "authority"
        folder.mkdir()
        return certificate(folder, "127.0.0.1", "localhost")

    def knows(self, server: HttpServer) -> str:
        """Let the helper have the password for this server; the address of the repository there."""
        host = f"127.0.0.1:{server.port}"
        text = HELPER.format(record=self.record, host=host, user=USER, password=PASSWORD)
        self.helper.write_text(text, encoding="utf-8")
        self.helper.chmod(0o755)
        return f"{server.address}/acme/pdf.git"

    @property
    def asked(self) -> list[dict[str, str]]:
        """What the helper was asked, in order."""
        blocks = self.record.read_text(encoding="utf-8").strip().split("\n\n")
        rows = [block.split("\n") for block in blocks]
        return [{"what": what, **dict(row.split("=", 1) for row in more if "=" in row)} for what, *more in rows]

    def left_behind(self) -> list[Path]:
        """The files that hold the password, but for the user's own helper."""
        files = (path for path in self.world.base.rglob("*") if path.is_file() and path != self.helper)
        return [path for path in files if holds(path.read_bytes())]


def holds(data: bytes | str) -> bool:
    """Whether the password is in there, plain or as it is sent."""
    data = data.encode() if isinstance(data, str) else data
    return PASSWORD.encode() in data or BASIC.encode() in data


@pytest.fixture
def private(world: World, monkeypatch: pytest.MonkeyPatch) -> Private:
    """A private repository, with temporary files below the test's own folder, and no proxy."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    temporary = world.base / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return Private(world)


def processes() -> list[bytes]:
    """The arguments and environments of what runs now, where the system shows them."""
    found = []
    for path in Path("/proc").iterdir() if Path("/proc/self").exists() else ():
        for name in ("cmdline", "environ"):
            with suppress(OSError):  # no process, one that has ended, or somebody else's
                found.append((path / name).read_bytes())
    return found


def test_a_private_repository_is_installed_with_what_the_users_helper_says(private: Private) -> None:
    calls: list[str] = []
    running: list[bytes] = []

    def watching(args: Sequence[str], cwd: str, env: Mapping[str, str]) -> bytes:
        calls.append(f"{list(args)} {dict(env)}")
        return GitProgram()(args, cwd, env)

    def protected(handler: Handler) -> bool:
        if demand_password(handler):
            return True
        running.extend(processes())
        return False

    with http(private.root, protected, tls=private.tls) as server:
        address = private.knows(server)
        path = prowess.Installer(git=watching).install(address, project=True)
        sent = [headers.get("Authorization") for _, headers in server.seen]
    assert (path / "SKILL.md").is_file()
    assert sent[0] is None
    assert f"Basic {BASIC}" in sent
    assert {(one["protocol"], one["host"]) for one in private.asked} == {("https", f"127.0.0.1:{server.port}")}
    assert private.asked[0]["what"] == "get"
    assert calls
    assert not any(map(holds, calls))
    assert any(b"http" in one and address.encode() in one for one in running) or not Path("/proc/self").exists()
    assert not any(map(holds, running))
    locked = private.world.lock.read_text(encoding="utf-8")
    assert (address in locked, private.commit in locked) == (True, True)
    assert private.left_behind() == []
    assert list((private.world.base / "temporary").iterdir()) == []


def test_a_password_that_the_server_refuses_is_in_no_error(private: Private) -> None:
    def refuse(handler: Handler) -> bool:
        if not demand_password(handler):
            given = handler.headers["Authorization"]
            handler.send_response(403, f"not {given}")
            handler.send_header("Content-Length", "0")
            handler.end_headers()
        return True

    with http(private.root, refuse, tls=private.tls) as server, pytest.raises(prowess.GitError) as caught:
        prowess.Installer().install(private.knows(server), project=True)
    assert f"Basic {BASIC}" in [headers.get("Authorization") for _, headers in server.seen]
    assert not holds(f"{caught.value} {caught.value!r} {caught.value.__cause__} {caught.value.__context__}")
    assert private.left_behind() == []
    assert not private.world.lock.exists()


@pytest.mark.parametrize("asks_first", [True, False])
@pytest.mark.parametrize("other_asks", [True, False])
def test_a_redirect_to_another_host_does_not_take_the_password_there(
    private: Private, *, asks_first: bool, other_asks: bool
) -> None:
    with http(private.root, demand_password if other_asks else None, tls=private.tls) as other:

        def lead_away(handler: Handler) -> bool:
            if asks_first and demand_password(handler):
                return True
            handler.send_response(302)
            handler.send_header("Location", f"https://localhost:{other.port}{handler.path}")
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return True

        with http(private.root, lead_away, tls=private.tls) as server:
            said = _outcome(private.knows(server))
    sent = [headers.get("Authorization") for _, headers in server.seen]
    assert (f"Basic {BASIC}" in sent) is asks_first
    assert other.seen
    assert not any("Authorization" in headers or holds(str(headers)) for _, headers in other.seen)
    assert not holds(said)
    assert private.left_behind() == []


def _outcome(address: str) -> str:
    """Where the skill was installed, or what was said instead: versions of git differ in how far they follow."""
    try:
        return str(prowess.Installer().install(address, project=True))
    except prowess.GitError as error:
        return f"{error} {error!r}"


def test_a_certificate_that_no_authority_of_the_user_signed_gets_no_password(private: Private) -> None:
    (private.world.home / ".gitconfig").write_text(f"[credential]\n\thelper = {private.helper}\n", encoding="utf-8")
    with http(private.root, demand_password, tls=private.tls) as server, pytest.raises(prowess.GitError):
        prowess.Installer().install(private.knows(server), project=True)
    assert server.seen == []
    assert not private.record.exists()


# -- archives and sites ------------------------------------------------------------------------------------------------

TOKEN = "tok-TOPSECRET"  # noqa: S105 - it is looked for afterwards


def wants_token(reply: Reply) -> Callable[[Asked], Reply]:
    """An answer for those who bring the token."""
    return lambda asked: reply if asked.headers.get("authorization") == f"Bearer {TOKEN}" else Reply(status=401)


@pytest.fixture
def site(private: Private, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site behind TLS with an archive and an index, which answers those who bring the token."""
    monkeypatch.setenv("SSL_CERT_FILE", str(private.authority))
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(private.world.base / "copies"))
    with Site(tls=private.tls) as running:
        running.put("/pdf.zip", zipped(FILES))
        running.index(running.entry("greet", skill_md("greet")))
        for path, reply in running.replies.items():
            assert isinstance(reply, Reply)
            running.replies[path] = wants_token(reply)
        yield running


def variable(site: Site) -> str:
    return f"PROWESS_TOKEN_127_0_0_1___{site.port}"


@pytest.mark.parametrize("path", ["/pdf.zip", ""])
def test_an_archive_or_a_site_gets_the_token_of_its_host(
    private: Private, site: Site, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    installer = prowess.Installer(allow_private=True)
    with pytest.raises(prowess.FetchError) as caught:
        installer.install(f"{site.url}{path}", project=True)
    assert (caught.value.code, variable(site) in caught.value.message) == ("login-needed", True)
    monkeypatch.setenv(variable(site), TOKEN)
    assert installer.install(f"{site.url}{path}", project=True).is_dir()
    assert [update.status for update in installer.update()] == ["current"]
    files = [file for file in private.world.base.rglob("*") if file.is_file()]
    assert [file for file in files if TOKEN.encode() in file.read_bytes()] == []


def test_the_token_of_a_host_goes_to_no_other_and_never_without_encryption(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable(site), TOKEN)
    with Site() as other:
        other.put("/pdf.zip", zipped(FILES))
        monkeypatch.setenv(variable(other), TOKEN)
        monkeypatch.setenv("PROWESS_TOKEN_127_0_0_1", TOKEN)
        installer = prowess.Installer(schemes=("https", "http"), allow_private=True)
        installer.install(f"{other.url}/pdf.zip", project=True)
        site.put("/away.zip", b"", 302, Location=f"{other.url}/pdf.zip")
        with pytest.raises(prowess.FetchError):
            installer.install(f"{site.url}/away.zip", project=True)
    assert other.asked
    assert not any("authorization" in asked.headers for asked in other.asked)


def test_a_token_that_cannot_be_sent_is_refused_without_being_shown(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable(site), f"{TOKEN}\nX-Other: {TOKEN}")
    for path in ("/pdf.zip", ""):
        with pytest.raises(prowess.SourceError) as caught:
            prowess.Installer(allow_private=True).install(f"{site.url}{path}", project=True)
        assert "'Authorization'" in str(caught.value)
        assert TOKEN not in f"{caught.value} {caught.value!r} {caught.value.__cause__} {caught.value.__context__}"
    assert site.asked == []


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://skills.example.com/x.zip", "PROWESS_TOKEN_SKILLS_EXAMPLE_COM"),
        ("https://Skills-Example.com/x.zip", "PROWESS_TOKEN_SKILLS__EXAMPLE_COM"),
        ("https://skills.example.com:8443/x", "PROWESS_TOKEN_SKILLS_EXAMPLE_COM___8443"),
        *(("http://skills.example.com/x", ""), ("https://[::1]/x", ""), ("https://h:x/", ""), ("https://]", "")),
    ],
)
def test_each_host_has_a_variable_of_its_own(address: str, name: str) -> None:
    assert token_variable(address) == name

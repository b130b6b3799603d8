"""An address with a secret is refused by every command, and the secret is written nowhere, nor shown.

Each test plants one word, the secret, and then looks for it in both streams and in every file and file name below the
home folder.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.lockfile.read import parse_lock
from tests.fetch.packing import FILES, zipped
from tests.git_servers import http
from tests.repositories import Repository
from tests.web_sites import Site, skill_md

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.conftest import Command, Ran
    from tests.git_servers import Handler

SECRET = "CANARY7f3a"  # noqa: S105 - it is looked for afterwards
ALLOWED = ("--allow-http", "--allow-private")
QUERY = f"?token={SECRET}"
ADDRESSES = (
    f"https://{SECRET}@host.example/acme/pdf.git",
    f"https://me:{SECRET}@host.example/acme/pdf.git",
    f"https://me:{SECRET}@host.example/acme/pdf.zip",
    f"HTTPS://me:{SECRET}@host.example/acme",
    f"https://me:a/{SECRET}@host.example/acme/pdf.git",
    f"https://me:a#{SECRET}@host.example/acme/pdf.git",
    f"https://me:a?{SECRET}@host.example/acme/pdf.git",
    f"https://me:{SECRET}%40host.example/acme/pdf.git",
    f"https://me:{SECRET}",
    f"https:me:{SECRET}@host.example/acme",
    f"http:/me:{SECRET}@host.example/acme",
    f"ssh://git:{SECRET}@host.example/acme/pdf.git",
    f"git:{SECRET}@host.example:acme/pdf.git",
    f"git:a@{SECRET}@host.example:acme/pdf.git",
    f"git:a?{SECRET}@host.example:acme/pdf.git",
    f"me:{SECRET}@host.example/acme/pdf",
    f"https://host.example/pdf.zip{QUERY}",
    f"https://host.example/pdf.zip?{SECRET}",
    f"https://host.example/acme/pdf.git{QUERY}",
    f"https://host.example/acme/pdf.git{QUERY}#v1",
    f"https://host.example/team{QUERY}",
    f"https://github.com/acme/pdf{QUERY}",
    f"https://github.com/acme/pdf/tree/main/a{QUERY}",
    f"https://gitlab.com/acme/pdf/-/tree/main{QUERY}",
    f"https://dev.azure.com/o/p/_git/r?path=/a&token={SECRET}",
    f"https://host.example/pdf.zip#{QUERY}",
    f"https://host.example/pdf.zip#access_token={SECRET}",
    f"https://host.example/acme/pdf.git#v1{QUERY}",
    f"https://host.example/acme/pdf.git#token={SECRET}",
    f"ssh://git@host.example/acme/pdf.git{QUERY}",
    f"git@host.example:acme/pdf.git{QUERY}",
    f"file:///nowhere/pdf.git{QUERY}",
    f"file://me:{SECRET}@localhost/pdf.git",
    f"acme/pdf{QUERY}",
    f"github:acme/pdf{QUERY}",
    f"@acme/pdf{QUERY}",
    f"@acme/pdf@v1{QUERY}",
    f"https://me:{SECRET}@host.example/\N{LATIN SMALL LETTER A WITH DIAERESIS}.git",
    f"ext::https://me:{SECRET}@host.example/x",
)


def places_of_secret(folder: Path, *ours: Path) -> list[str]:
    """The files below a folder that hold the secret, in their bytes or in their names, but for those that we wrote."""
    found = []
    for path in folder.rglob("*"):
        content = path.read_bytes() if path.is_file() and path not in ours else b""
        if SECRET in path.name or SECRET.encode() in content:
            found.append(str(path))
    return found


def assert_hidden(ran: Ran) -> None:
    assert SECRET not in ran.out
    assert SECRET not in ran.err
    assert "Traceback" not in ran.err


@pytest.fixture
def home(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder, with the caches in it, and no proxy."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(project.parent / ".cache"))
    return project.parent


@pytest.fixture
def site(home: Path) -> Iterator[Site]:  # noqa: ARG001 - it must be there first
    """A site on loopback."""
    with Site() as running:
        yield running


# -- what is typed -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_typed_address_with_a_secret_is_refused_and_the_secret_never_shown(
    command: Command, home: Path, address: str
) -> None:
    install = ("install", address, "--project", "--yes", *ALLOWED)
    for words in (
        *(install, (*install, "--json"), (*install, "--dry-run"), (*install, "--into", "vendor")),
        ("install", address, "--into", "vendor", "--dry-run", "--json"),
        *(("update", address, "--yes"), ("remove", address, "--yes"), ("link", address, "--agent", "cursor")),
    ):
        ran = command(*words)
        assert ran.status != 0, words
        assert_hidden(ran)
    assert places_of_secret(home) == []


@pytest.mark.parametrize("address", [f"https://host.example/x{QUERY}", f"me:{SECRET}@host.example:acme/pdf.git"])
def test_an_address_where_none_belongs_comes_back_without_its_secret(command: Command, address: str) -> None:
    for words in ((address,), ("install", "./a", address), ("verify", address, "--json")):
        ran = command(*words)
        assert ran.status != 0, words
        assert_hidden(ran)


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_function_takes_an_address_with_a_secret_nor_repeats_it(home: Path, address: str) -> None:
    installer = prowess.Installer(schemes=("https", "http", "ssh", "git"), allow_private=True)

    def made() -> object:
        return installer.install(prowess.SourceSpec("archive", address, "acme", "pdf"))

    for call in (
        lambda: prowess.parse_source(address),
        *(lambda: installer.plan(address), lambda: installer.install(address, project=True)),
        lambda: installer.install_into(address, home / "vendor"),
        made,
    ):
        with pytest.raises(prowess.InstallError) as caught:
            call()
        error = caught.value
        seen = f"{error} {error!r} {error.path} {error.__cause__} {error.args} {error.message}"
        assert SECRET not in seen
    assert places_of_secret(home) == []


def test_a_refusal_says_what_to_do_instead(command: Command, home: Path) -> None:  # noqa: ARG001 - its effect
    ran = command("install", f"https://host.example/pdf.zip{QUERY}", "--yes")
    assert (ran.status, "error[secret-in-address]" in ran.err) == (3, True)
    assert "'https://host.example/pdf.zip'" in ran.err
    assert "credential helper" in ran.err


@pytest.mark.parametrize("user", ["git@host.example:acme/pdf.git", "ssh://git@host.example/acme/pdf.git"])
def test_the_user_name_of_ssh_stays(home: Path, user: str) -> None:  # noqa: ARG001 - its effect
    assert f"fetch {user}" in str(prowess.Installer().plan(user, project=True))


# -- what files say ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["text", "table", "pyproject", "wrong"])
@pytest.mark.parametrize("address", ADDRESSES[::3])
def test_a_manifest_with_a_secret_is_refused_and_the_secret_never_shown(
    command: Command, home: Path, project: Path, address: str, form: str
) -> None:
    manifest = project / ("pyproject.toml" if form == "pyproject" else "prowess.toml")
    entry = {"table": f'{{ source = {json.dumps(address)}, ref = "v1" }}', "wrong": f'{{ url = "{address}" }}'}
    text = f"skills = [{entry.get(form, json.dumps(address))}]\n"
    manifest.write_text(f"[tool.prowess]\n{text}" if form == "pyproject" else text, encoding="utf-8")
    for words in (("sync",), ("sync", "--dry-run"), ("sync", "--locked"), ("sync", "--json")):
        ran = command(*words, *(() if "--dry-run" in words else ("--yes",)))
        assert ran.status != 0
        assert_hidden(ran)
    for words in (("list",), ("doctor",), ("outdated",)):
        assert_hidden(command(*words))
    assert places_of_secret(home, manifest) == []


@pytest.mark.parametrize(
    ("kind", "secret"),
    [
        ("git", f"https://me:{SECRET}@127.0.0.1:1/acme/pdf.git"),
        ("git", f"me:{SECRET}@127.0.0.1:acme/pdf.git"),
        ("archive", f"https://127.0.0.1:1/pdf.zip{QUERY}"),
        ("index", f"https://127.0.0.1:1/team{QUERY}"),
    ],
)
def test_a_secret_in_a_lock_file_is_not_shown_and_is_gone_when_the_file_is_written_again(
    command: Command, home: Path, project: Path, kind: str, secret: str
) -> None:
    source = project.parent / "sources" / "pdf"
    source.mkdir(parents=True)
    (source / "SKILL.md").write_bytes(skill_md("pdf"))
    prowess.Installer().install_local(source, project=True)
    lock = project / "prowess.lock"
    text = lock.read_text(encoding="utf-8").replace('kind = "folder"', f'kind = "{kind}"')
    rows = [f'source = "{secret}"' if row.startswith("source = ") else row for row in text.splitlines()]
    rows.insert(rows.index("[[skill]]") + 1, f'declared = "{secret}"')
    lock.write_text("\n".join(rows) + "\n", encoding="utf-8")
    for words in (
        *(("list",), ("list", "--json"), ("explain", "pdf"), ("show", "pdf"), ("show", "pdf", "--json")),
        *(("verify",), ("verify", "--json"), ("outdated", *ALLOWED), ("outdated", "--json"), ("doctor",)),
        *(("update", "--dry-run", *ALLOWED), ("update", "--yes", "--json"), ("sync", "--dry-run"), ("prompt",)),
        *(("install", "./x/pdf", "--project", "--dry-run"), ("install", f"{source}", "-p", "--replace", "--dry-run")),
    ):
        assert_hidden(command(*words))
    (project / ".prowess/skills/local/pdf/SKILL.md").unlink()
    assert_hidden(command("sync", "--yes", *ALLOWED))
    assert places_of_secret(home, lock) == []
    assert command("link", "local/pdf", "--agent", "claude-code", "--yes").status == 0
    assert places_of_secret(home) == []
    assert parse_lock(lock.read_text(encoding="utf-8"))["local/pdf"].source


# -- what servers say --------------------------------------------------------------------------------------------------


def test_the_target_of_a_redirect_is_shown_without_its_secret(command: Command, site: Site, home: Path) -> None:
    for target in (f"/x.zip{QUERY}", f"http://other.example/x.zip{QUERY}", f"http://me:{SECRET}@127.0.0.1/x.zip"):
        site.put("/pdf.zip", b"", 302, Location=target)
        site.put("/team/.well-known/agent-skills/index.json", b"", 302, Location=target)
        for address in (f"{site.url}/pdf.zip", f"{site.url}/team"):
            ran = command("install", address, "--project", "--yes", "--json", *ALLOWED)
            assert ran.status == 3
            assert_hidden(ran)
    assert places_of_secret(home) == []


def test_what_a_redirect_with_a_signature_leads_to_is_installed_and_the_signature_kept_nowhere(
    command: Command, site: Site, home: Path
) -> None:
    site.put("/pdf.zip", b"", 302, Location=f"/signed.zip{QUERY}")
    site.put(f"/signed.zip{QUERY}", zipped(FILES))
    site.index(site.entry("greet", skill_md("greet")))
    index = "/.well-known/agent-skills/index.json"
    site.replies[f"{index}{QUERY}"] = site.replies[index]
    site.put(index, b"", 302, Location=f"{index}{QUERY}")
    for address in (f"{site.url}/pdf.zip", site.url):
        ran = command("install", address, "--project", "--yes", *ALLOWED)
        assert ran.status == 0, ran.err
        assert_hidden(ran)
    for words in (("list",), ("update", "--yes", *ALLOWED), ("outdated", *ALLOWED), ("sync", *ALLOWED), ("verify",)):
        assert_hidden(command(*words))
    assert places_of_secret(home) == []


def test_git_is_not_quoted_with_the_secret_of_a_redirect(command: Command, home: Path) -> None:
    root = home / "served"
    repo = Repository(root / "pdf.git")
    repo.skill("", "pdf")
    repo.commit()
    targets = (f"http://127.0.0.1:1/x.git{QUERY}", f"http://me:{SECRET}@127.0.0.1:1/x.git/info/refs")

    def lead_away(handler: Handler) -> bool:
        handler.send_response(302)
        handler.send_header("Location", targets[len(handler.server.seen) % 2])
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return True

    with http(root, lead_away) as server:
        for _ in range(2):
            ran = command("install", f"{server.address}/pdf.git", "--project", "--yes", *ALLOWED)
            assert ran.status == 3
            assert "error[git-failed]" in ran.err
            assert_hidden(ran)
    assert places_of_secret(home) == []

"""Git as the user set it up: certificates, headers, logins, mirrors and ssh, from real servers on loopback.

The second half are attacks: what a repository's own configuration, a redirect, or a mirror may not do.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.fetch.git.process import GitProgram
from prowess.fetch.git.temporary_repository import UserSettings, read_user_settings
from tests.git_servers import http
from tests.repositories import Repository
from tests.web_sites import certificate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.git_servers import Handler, HttpServer
    from tests.install.conftest import World

ROOT = Path(__file__).resolve().parents[2]
SECRET = "hunter2-TOPSECRET"  # noqa: S105 - it is looked for afterwards
PAGE = (ROOT / "docs" / "how-to" / "private-sources.md").read_text(encoding="utf-8")
HEADER = f"Authorization: Basic {SECRET}"


class Company:
    """A repository behind TLS with the company's own authority, and a user who has configured nothing yet."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = world
        self._patch = monkeypatch
        self.root = world.base / "served"
        repo = Repository(self.root / "acme" / "pdf.git")
        repo.skill("", "pdf")
        self.commit = repo.commit(tag="v1")
        folder = world.base / "authority"
        folder.mkdir()
        self.authority, self.tls = certificate(folder, "127.0.0.1", "localhost")
        self.outside = world.base / "of-the-user"
        self.outside.mkdir()

    def configure(self, *pairs: tuple[str, str]) -> None:
        """Set the variables ``GIT_CONFIG_COUNT``, ``GIT_CONFIG_KEY_0`` and so on."""
        self._patch.setenv("GIT_CONFIG_COUNT", str(len(pairs)))
        for number, (key, value) in enumerate(pairs):
            self._patch.setenv(f"GIT_CONFIG_KEY_{number}", key)
            self._patch.setenv(f"GIT_CONFIG_VALUE_{number}", value)

    def trust_authority(self) -> None:
        """Let the user's git trust the company's authority."""
        self._patch.setenv("GIT_SSL_CAINFO", str(self.authority))

    def program(self, name: str, script: str) -> Path:
        """Write a program of the user's."""
        path = self.outside / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    def files_with_secret(self) -> list[Path]:
        """Return the files that hold the secret, apart from the user's own."""
        files = (
            path for path in self.world.base.rglob("*") if path.is_file() and self.outside not in path.resolve().parents
        )
        return [path for path in files if SECRET.encode() in path.read_bytes()]


@pytest.fixture
def company(world: World, monkeypatch: pytest.MonkeyPatch) -> Company:
    """The company, a user without settings, and temporary files and copies below the test's own folder."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.startswith("GIT_"):
            monkeypatch.delenv(name)
    for variable, folder in (("TMPDIR", "temporary"), ("PROWESS_CACHE_DIR", "copies")):
        (world.base / folder).mkdir()
        monkeypatch.setenv(variable, str(world.base / folder))
    monkeypatch.setattr(tempfile, "tempdir", str(world.base / "temporary"))
    return Company(world, monkeypatch)


def install(address: str, **options: object) -> Path:
    return prowess.Installer(**options).install(address, project=True)  # type: ignore[arg-type]


def refuse(handler: Handler, status: int = 403) -> bool:
    """Answer a request with an error."""
    handler.send_response(status)
    if status == 401:
        handler.send_header("WWW-Authenticate", 'Basic realm="x"')
    handler.send_header("Content-Length", "0")
    handler.end_headers()
    return True


def demand(name: str, value: str, status: int = 403) -> Callable[[Handler], bool]:
    """Return a door that is open for requests with a header alone."""
    return lambda handler: handler.headers.get(name) != value and refuse(handler, status)


def redirect_to(other: HttpServer) -> Callable[[Handler], bool]:
    """Return an answer that redirects each request to another server, which has another name."""

    def answer(handler: Handler) -> bool:
        handler.send_response(302)
        handler.send_header("Location", f"https://localhost:{other.port}{handler.path}")
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return True

    return answer


# -- what is obeyed ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["absolute", "relative"])
def test_the_authority_of_git_ssl_cainfo_is_trusted(
    company: Company, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    with http(company.root, tls=company.tls) as server:
        with pytest.raises(prowess.GitError, match="certificate"):
            install(f"{server.address}/acme/pdf.git")
        given = company.authority if path == "absolute" else os.path.relpath(company.authority)
        monkeypatch.setenv("GIT_SSL_CAINFO", str(given))
        assert (install(f"{server.address}/acme/pdf.git") / "SKILL.md").is_file()


@pytest.mark.parametrize("where", ["count", "home", "global", "system"])
def test_headers_come_from_each_configuration_of_the_user(
    company: Company, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    company.trust_authority()
    with http(company.root, demand("Authorization", f"Basic {SECRET}"), tls=company.tls) as server:
        text = f'[http "{server.address}/"]\n\textraHeader = {HEADER}\n'
        file = company.outside / "gitconfig"
        file.write_text(text, encoding="utf-8")
        if where == "count":
            company.configure((f"http.{server.address}/.extraHeader", HEADER))
        elif where == "home":
            (company.world.home / ".gitconfig").symlink_to(file)
        else:
            monkeypatch.setenv(f"GIT_CONFIG_{where.upper()}", str(file))
        assert install(f"{server.address}/acme/pdf.git").is_dir()
    assert company.files_with_secret() == []


def test_several_headers_are_sent_and_none_to_other_servers(company: Company) -> None:
    company.trust_authority()
    with http(company.root, tls=company.tls) as server, http(company.root, tls=company.tls) as other:
        key = f"http.{server.address}/.extraHeader"
        company.configure((key, HEADER), (key, f"X-Team: {SECRET}"))
        install(f"{server.address}/acme/pdf.git")
        assert {(headers.get("Authorization"), headers.get("X-Team")) for _, headers in server.seen} == {
            (f"Basic {SECRET}", SECRET)
        }
        prowess.Installer().offers(f"{other.address}/acme/pdf.git")
    assert other.seen
    assert SECRET not in str(other.seen)


def test_a_client_certificate_of_the_configuration_is_shown(company: Company) -> None:
    folder = company.world.base / "client"
    folder.mkdir()
    client, _ = certificate(folder, "localhost")
    company.tls.verify_mode = ssl.CERT_REQUIRED
    company.tls.load_verify_locations(client)
    company.trust_authority()
    with http(company.root, tls=company.tls) as server:
        with pytest.raises(prowess.GitError):
            install(f"{server.address}/acme/pdf.git")
        company.configure(("http.sslCert", str(client)), ("http.sslKey", str(folder / "key.pem")))
        assert install(f"{server.address}/acme/pdf.git").is_dir()


def test_cookies_of_the_configuration_are_sent(company: Company) -> None:
    company.trust_authority()
    cookies = company.outside / "cookies"
    cookies.write_text(f"127.0.0.1\tFALSE\t/\tTRUE\t0\tsession\t{SECRET}\n", encoding="ascii")
    with http(company.root, demand("Cookie", f"session={SECRET}"), tls=company.tls) as server:
        company.configure(("http.cookieFile", str(cookies)))
        assert install(f"{server.address}/acme/pdf.git").is_dir()


def test_the_program_of_git_askpass_is_asked_for_a_login(company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    company.trust_authority()
    with http(company.root, demand("Authorization", "Basic bWU6bWU=", 401), tls=company.tls) as server:
        with pytest.raises(prowess.GitError):
            install(f"{server.address}/acme/pdf.git")
        monkeypatch.setenv("GIT_ASKPASS", os.path.relpath(company.program("ask", "echo me")))
        assert install(f"{server.address}/acme/pdf.git").is_dir()


def test_a_mirror_answers_and_the_lock_file_keeps_what_was_typed(company: Company) -> None:
    company.trust_authority()
    with http(company.root, tls=company.tls) as mirror:
        company.configure((f"url.{mirror.address}/.insteadOf", "https://git.example.invalid/"))
        install("https://git.example.invalid/acme/pdf.git")
    assert mirror.seen
    locked = company.world.lock.read_text(encoding="utf-8")
    assert "https://git.example.invalid/acme/pdf.git" in locked
    assert company.commit in locked
    assert mirror.address not in locked


def test_the_address_after_instead_of_is_the_one_of_git_itself(company: Company) -> None:
    pairs = [
        ("url.https://mirror.example/.insteadOf", "https://example.com/"),
        ("url.https://Mirror.example/Team.x/.insteadOf", "https://example.com/acme/"),
        ("url.https://second.example/.insteadOf", "https://example.com/acme/"),
        ("url.https://short.example/.insteadOf", "git@example.com:"),
        ("url.ssh://git@short.example/.pushInsteadOf", "https://example.com/acme/p"),
    ]
    company.configure(*pairs)
    settings = read_user_settings(GitProgram(), str(company.outside))
    for address in ("https://example.com/x.git", "https://example.com/acme/pdf", "git@example.com:a/b", "https://h/x"):
        command = ["git", "ls-remote", "--get-url", address]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=company.outside)
        assert settings.rewrite_address(address, ("https", "ssh")) == done.stdout.strip()


SSH = """\
printf '%s\\n' "$*" >> '{record}'
for last; do :; done
cd '{root}' && eval "$(echo "$last" | sed "s:'/:'./:")"
"""


@pytest.mark.parametrize("how", ["variable", "setting", "both"])
def test_ssh_runs_the_wrapper_that_the_user_named(company: Company, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    record = company.outside / "arguments"
    wrapper = company.program("wrapper", SSH.format(record=record, root=company.root))
    if how == "variable":
        monkeypatch.setenv("GIT_SSH_COMMAND", f"{wrapper} -i 'my key'")
    else:
        company.configure(("core.sshCommand", f"{wrapper} -i 'my key'" if how == "setting" else "false"))
    if how == "both":  # as for git, the variable wins
        monkeypatch.setenv("GIT_SSH_COMMAND", f"{wrapper} -i 'my key'")
    for address in ("ssh://git@git.example.invalid/acme/pdf.git", "git@git.example.invalid:acme/pdf.git"):
        assert [skill.name for skill in prowess.Installer().offers(address).skills] == ["pdf"]
    install("git@git.example.invalid:acme/pdf.git")
    rows = record.read_text(encoding="utf-8").splitlines()
    assert all(row.startswith("-i my key ") and "git@git.example.invalid" in row for row in rows)
    assert company.commit in company.world.lock.read_text(encoding="utf-8")


def test_ci_restores_from_the_mirror_and_then_from_the_cache_alone(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    company.trust_authority()
    with http(company.root, demand("Authorization", f"Basic {SECRET}"), tls=company.tls) as mirror:
        company.configure(
            (f"url.{mirror.address}/.insteadOf", "https://git.example.invalid/"),
            (f"http.{mirror.address}/.extraHeader", HEADER),
        )
        install("https://git.example.invalid/acme/pdf.git#v1")
        for name in ("checkout", "checkout-2"):
            _check_out(company, name, monkeypatch)
            if name == "checkout-2":
                mirror.before = refuse  # from here on, the cache alone answers
            assert [one.full_name for one in prowess.Installer().sync(locked=True)] == ["acme/pdf"]
            assert prowess.Installer().verify() == ()
    _check_out(company, "checkout-3", monkeypatch)  # the server is down
    assert [one.full_name for one in prowess.Installer().sync(locked=True)] == ["acme/pdf"]
    assert company.files_with_secret() == []


def test_a_bot_locks_in_clean_checkouts_and_ci_restores_that_from_its_cache(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    company.trust_authority()
    with http(company.root, demand("Authorization", f"Basic {SECRET}"), tls=company.tls) as mirror:
        company.configure(
            (f"url.{mirror.address}/.insteadOf", "https://git.example.invalid/"),
            (f"http.{mirror.address}/.extraHeader", HEADER),
        )
        manifest = company.world.project / "prowess.toml"
        manifest.write_text('skills = ["https://git.example.invalid/acme/pdf.git#main"]\n', encoding="utf-8")
        assert [one.status for one in prowess.Installer().lock()] == ["added"]
        repo = Repository.__new__(Repository)
        repo.path = company.root / "acme" / "pdf.git"
        repo.skill("", "pdf", body="Two !`date`.\n")
        new = repo.commit()
        _check_out(company, "bot", monkeypatch)
        shutil.rmtree(company.world.base / "copies")  # a job without the cache of another one
        (company.world.base / "copies").mkdir()
        (outdated,) = prowess.Installer().outdated(updates=True)
        (locked,) = prowess.Installer().lock(update=True)
        additions = (prowess.UpdateAddition("pdf", "command", "date"),)
        assert outdated.update is not None
        assert outdated.update.additions == locked.additions == additions
        assert locked.after == new
        assert not list(Path.cwd().rglob("SKILL.md"))
        company.world.lock.write_bytes(Path("prowess.lock").read_bytes())
    _check_out(company, "job", monkeypatch)  # the server is down, and the cache is restored
    assert [one.full_name for one in prowess.Installer().sync(locked=True)] == ["acme/pdf"]
    assert prowess.Installer().verify() == ()
    assert company.files_with_secret() == []


def _check_out(company: Company, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a clean checkout of the project, which has nothing but the lock file and the manifest, and work there."""
    checkout = company.world.home / name
    (checkout / ".git").mkdir(parents=True)
    (checkout / "prowess.lock").write_bytes(company.world.lock.read_bytes())
    manifest = company.world.project / "prowess.toml"
    if manifest.exists():
        (checkout / "prowess.toml").write_bytes(manifest.read_bytes())
    monkeypatch.chdir(checkout)


def _run_like_ci(script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the lines of a page in a shell, with the command ``prowess`` of this environment."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-e"],
        input=script,
        env={**os.environ, "PATH": path, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_lines_for_github_actions_pass_the_header_of_the_checkout(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    company.trust_authority()
    with http(company.root, tls=company.tls) as server:
        install(f"{server.address}/acme/pdf.git")
        server.before = demand("Authorization", f"Basic {SECRET}")
        _check_out(company, "checkout", monkeypatch)
        monkeypatch.setenv("PROWESS_CACHE_DIR", str(company.world.base / "empty"))
        config = f'[core]\n\trepositoryformatversion = 0\n[http "{server.address}/"]\n\textraheader = {HEADER}\n'
        (Path.cwd() / ".git" / "config").write_text(config, encoding="utf-8")
        (Path.cwd() / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
        for folder in ("objects", "refs"):
            (Path.cwd() / ".git" / folder).mkdir()
        (step,) = re.findall(r"- run: \|\n((?:      .*\n)+)", PAGE)
        script = textwrap.dedent(step).replace("https://github.com", server.address)
        assert "403" in _run_like_ci("prowess sync --locked").stderr  # without the lines
        done = _run_like_ci(script)
    assert (done.returncode, SECRET in done.stdout + done.stderr) == (0, False), done.stderr
    assert prowess.Installer().verify() == ()


def test_the_lines_for_gitlab_ci_log_in_with_the_token_of_the_job(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = base64.b64encode(f"gitlab-ci-token:{SECRET}{'x' * 80}".encode()).decode()
    with http(company.root, tls=company.tls) as server:
        with monkeypatch.context() as once:
            once.setenv("GIT_SSL_CAINFO", str(company.authority))
            install(f"{server.address}/acme/pdf.git")
        server.before = demand("Authorization", f"Basic {login}")
        _check_out(company, "checkout", monkeypatch)
        monkeypatch.setenv("PROWESS_CACHE_DIR", str(company.world.base / "empty"))
        script = PAGE.partition("  script:\n")[2].partition("```")[0].replace("    - ", "")
        done = _run_like_ci(
            script,
            CI_SERVER_URL=server.address,
            CI_SERVER_TLS_CA_FILE=str(company.authority),
            CI_JOB_TOKEN=f"{SECRET}{'x' * 80}",
        )
    assert (done.returncode, SECRET in done.stdout + done.stderr) == (0, False), done.stderr
    assert prowess.Installer().verify() == ()


def test_a_broken_configuration_is_reported_and_not_dropped(company: Company) -> None:
    (company.world.home / ".gitconfig").write_text("[http\n", encoding="utf-8")
    with pytest.raises(prowess.GitError, match="bad config line 1"):
        install("https://127.0.0.1:9/acme/pdf.git")


# -- what is not obeyed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "variables",
    [
        {"GIT_SSL_NO_VERIFY": "1"},
        {"GIT_CONFIG_PARAMETERS": "'http.sslVerify=false'"},
        {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.sslVerify", "GIT_CONFIG_VALUE_0": "false"},
    ],
    ids=lambda variables: next(iter(variables)),
)
def test_no_setting_switches_the_check_of_certificates_off(
    company: Company, monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with http(company.root, tls=company.tls) as server:
        address = f"{server.address}/acme/pdf.git"
        naive = subprocess.run(["git", "ls-remote", address], capture_output=True, check=False)
        assert naive.returncode == 0  # plain git does not check any more
        server.forget()
        with pytest.raises(prowess.GitError, match="certificate"):
            install(address)
    assert server.seen == []


def _hostile_settings(company: Company, server: HttpServer) -> dict[str, str]:
    """Return what the author of a repository would write into its configuration."""
    run = company.program("run", f"touch '{company.world.base}/pwned'; exit 1")
    return {
        "http.extraHeader": HEADER,
        "http.sslCAInfo": str(company.authority),
        "core.sshCommand": str(run),
        "credential.helper": str(run),
        f"url.{server.address}/.insteadOf": "https://git.example.invalid/",
    }


@pytest.mark.parametrize("how", ["working folder", "GIT_DIR", "GIT_COMMON_DIR", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS"])
def test_a_repositorys_own_configuration_is_never_read(
    company: Company, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    evil = Repository(company.world.base / "evil")
    evil.commit()
    with http(company.root, tls=company.tls) as server:
        for key, value in _hostile_settings(company, server).items():
            evil.git("config", key, value)
        monkeypatch.chdir(evil.path)
        monkeypatch.setenv("TMPDIR", str(evil.path))
        monkeypatch.setattr(tempfile, "tempdir", str(evil.path))  # even our own folders are in the repository
        if how == "GIT_CONFIG":
            monkeypatch.setenv(how, str(evil.path / ".git" / "config"))
        elif how == "GIT_CONFIG_PARAMETERS":
            monkeypatch.setenv(how, f"'http.sslCAInfo={company.authority}'")
        elif how != "working folder":
            monkeypatch.setenv(how, str(evil.path / ".git"))
        if how in {"working folder", "GIT_DIR"}:  # plain git obeys it
            subprocess.run(["git", "ls-remote", f"{server.address}/acme/pdf.git"], capture_output=True, check=True)
            assert SECRET in str(server.seen)
            server.forget()
        for address in (server.address, "https://git.example.invalid"):
            with pytest.raises(prowess.GitError):
                install(f"{address}/acme/pdf.git")
        with pytest.raises(prowess.GitError):
            install("ssh://git@127.0.0.1:9/acme/pdf.git")
    assert server.seen == []
    assert not (company.world.base / "pwned").exists()


@pytest.mark.parametrize(
    ("base", "codes"),
    [
        ("file:///etc/", {"bad-scheme"}),
        ("/srv/mirror/", {"bad-scheme"}),
        ("http://127.0.0.1:9/", {"bad-scheme"}),
        ("ext::sh -c touch% pwned ", {"bad-reference", "bad-scheme"}),
        ("ssh://-oProxyCommand=touch%20pwned/", {"bad-reference"}),
        ("git@-oProxyCommand=touch:", {"bad-reference"}),
        ("--upload-pack=touch pwned;", {"bad-reference"}),
        (f"https://oauth2:{SECRET}@127.0.0.1:9/", {"secret-in-address"}),
        (f"https://127.0.0.1:9/?token={SECRET}&", {"secret-in-address"}),
    ],
)
def test_the_address_after_instead_of_is_checked_like_a_typed_one(company: Company, base: str, codes: set[str]) -> None:
    company.configure((f"url.{base}.insteadOf", "https://git.example.invalid/"))
    with pytest.raises(prowess.BadReferenceError) as caught:
        install("https://git.example.invalid/acme/pdf.git")
    assert caught.value.code in codes
    assert "insteadOf" in caught.value.message
    assert SECRET not in f"{caught.value} {caught.value!r} {caught.value.__cause__} {caught.value.__context__}"
    assert list(company.world.base.rglob("pwned*")) == []
    assert not company.world.lock.exists()


@pytest.mark.parametrize("scoped", [True, False])
def test_a_header_of_the_configuration_follows_no_redirect(company: Company, *, scoped: bool) -> None:
    company.trust_authority()
    with (
        http(company.root, tls=company.tls) as other,
        http(company.root, redirect_to(other), tls=company.tls) as server,
    ):
        key = f"http.{server.address}/.extraHeader" if scoped else "http.extraHeader"
        company.configure((key, HEADER), (key, f"Private-Token: {SECRET}"))
        address = f"{server.address}/acme/pdf.git"
        subprocess.run(["git", "ls-remote", address], capture_output=True, check=True)
        assert SECRET in str(other.seen)  # plain git sends it there
        other.forget()
        with pytest.raises(prowess.GitError) as caught:
            install(address)
    assert caught.value.code == "git-redirected"
    assert other.seen == []


def test_without_a_header_a_redirect_is_followed(company: Company) -> None:
    company.trust_authority()
    with (
        http(company.root, tls=company.tls) as other,
        http(company.root, redirect_to(other), tls=company.tls) as server,
    ):
        company.configure(("http.https://elsewhere.example/.extraHeader", HEADER))
        assert install(f"{server.address}/acme/pdf.git").is_dir()
    assert SECRET not in str(other.seen)


def test_without_encryption_no_login_is_sent(company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = company.program("ask", f"touch '{company.world.base}/pwned'; echo {SECRET}")
    monkeypatch.setenv("GIT_ASKPASS", str(ask))
    cookies = company.outside / "cookies"
    cookies.write_text(f"127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\t{SECRET}\n", encoding="ascii")
    company.configure(
        ("http.extraHeader", HEADER), ("http.cookieFile", str(cookies)), ("credential.helper", f"!{ask} #")
    )
    with (
        http(company.root, demand("Authorization", "anything", 401)) as server,
        pytest.raises(prowess.GitError),
    ):
        install(f"{server.address}/acme/pdf.git", schemes=("http",))
    assert server.seen
    assert SECRET not in str(server.seen)
    assert not (company.world.base / "pwned").exists()


def test_only_settings_that_reach_servers_are_passed_and_ours_come_last(company: Company) -> None:
    passed = {
        "credential.helper": "store",
        "credential.https://h.example.username": "me",
        "http.proxy": "http://proxy:3128",
        "http.https://h.example/.sslcert": "/c.pem",
    }
    others = {
        "core.hookspath": "/evil",
        "core.fsmonitor": "touch pwned",
        "core.gitproxy": "evil",
        "protocol.allow": "always",
        "protocol.ext.allow": "always",
        "http.sslverify": "false",
        "http.followredirects": "true",
        "http.savecookies": "true",
        "filter.lfs.smudge": "evil",
        "include.path": "/evil",
        "remote.origin.url": "https://evil/",
    }
    company.configure(*{**others, **passed}.items())
    seen: list[dict[str, str]] = []

    def watching(args: object, cwd: str, env: Mapping[str, str]) -> bytes:
        count = int(env.get("GIT_CONFIG_COUNT", "0"))
        if "ls-remote" in args or "fetch" in args:  # type: ignore[operator]
            seen.append({env[f"GIT_CONFIG_KEY_{n}"]: env[f"GIT_CONFIG_VALUE_{n}"] for n in range(count)})
            assert list(seen[-1])[-1] == "protocol.ssh.allow"
            raise prowess.GitError("enough", code="git-timeout")
        return GitProgram()(args, cwd, env)  # type: ignore[arg-type]

    with pytest.raises(prowess.GitError, match="enough"):
        install("https://127.0.0.1:9/acme/pdf.git", git=watching)
    assert passed.items() <= seen[0].items()
    assert not {**others}.items() & seen[0].items()
    assert seen[0]["protocol.allow"] == "never"


def test_an_address_that_no_mirror_replaces_stays() -> None:
    assert UserSettings().rewrite_address("https://h.example/x", ()) == "https://h.example/x"

"""A policy that is fetched from a server: what counts, and what happens without it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.policy.files import FETCHED_FILE, fetched_folder
from tests.cli.conftest import Command
from tests.install.test_credentials import Private, private
from tests.web_sites import Reply, Site

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.policy.conftest import Write

__all__ = ["private"]
DIGEST = "ab" * 32


@pytest.fixture
def site(private: Private, monkeypatch: pytest.MonkeyPatch, write: Write) -> Iterator[Site]:
    """A server behind TLS, which the policy of the user names."""
    monkeypatch.setenv("SSL_CERT_FILE", str(private.authority))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    with Site(tls=private.tls) as running:
        rules = f'policy-url = "{running.url}/prowess/"\n[sources]\n'
        write(f'{rules}private-hosts = ["{running.host}:{running.port}"]\n')
        yield running


def fetch() -> int:
    return Command()("policy", "fetch").status


def test_what_is_fetched_counts_beside_the_files_of_the_machine(site: Site) -> None:
    with pytest.raises(prowess.PolicyError) as caught:
        prowess.current_policy()
    assert caught.value.code == "policy-not-fetched"
    site.replies["/prowess/policy.toml"] = Reply(b'[run]\nscripts = "never"\n')
    site.replies["/prowess/approved.toml"] = Reply(f'[[skill]]\ndigest = "{DIGEST}"\n'.encode())
    assert fetch() == 0
    policy = prowess.current_policy()
    assert policy.word("run.scripts") == "never"
    assert policy.find_approval(DIGEST) is not None
    site.replies["/prowess/revoked.toml"] = Reply(f'[[skill]]\ndigest = "{DIGEST}"\n'.encode())
    del site.replies["/prowess/approved.toml"]
    assert fetch() == 0
    assert prowess.current_policy().find_revocation(DIGEST) is not None
    assert prowess.current_policy().find_approval(DIGEST) is None


def test_malformed_files_are_not_put_in_force(site: Site) -> None:
    site.replies["/prowess/policy.toml"] = Reply(b'[run]\nscripts = "never"\n')
    assert fetch() == 0
    for text in (b"[run", b'[run]\nscript = "ask"\n', b'policy-url = "https://elsewhere.example/"\n'):
        site.replies["/prowess/policy.toml"] = Reply(text)
        assert fetch() == 3
        assert prowess.current_policy().word("run.scripts") == "never"
    site.replies["/prowess/policy.toml"] = Reply(status=500)
    assert fetch() == 3
    assert prowess.current_policy().word("run.scripts") == "never"


def test_what_was_fetched_long_ago_stops_everything(site: Site) -> None:
    assert fetch() == 0
    prowess.current_policy()
    old = time.time() - prowess.Limits().max_policy_age_seconds - 1
    os.utime(Path(fetched_folder(f"{site.url}/prowess/")) / FETCHED_FILE, (old, old))
    Path(fetched_folder(f"{site.url}/prowess/")).touch()
    with pytest.raises(prowess.PolicyError) as caught:
        prowess.current_policy()
    assert caught.value.code == "policy-not-fetched"
    assert fetch() == 0
    prowess.current_policy()


@pytest.mark.parametrize("url", ["http://x.example/", "https://x.example/p", "https://u@x.example/", "https://x/?a=/"])
def test_an_address_that_is_not_safe_fails_closed(write: Write, url: str) -> None:
    write(f'policy-url = "{url}"\n')
    with pytest.raises(prowess.PolicyError) as caught:
        prowess.current_policy()
    assert caught.value.code == "bad-policy"


def test_a_project_names_no_server(write: Write) -> None:
    write('policy-url = "https://policy.example/"\n', project=True)
    with pytest.raises(prowess.PolicyError, match="counts only in files of the machine"):
        prowess.current_policy()

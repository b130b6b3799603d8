"""Rules that could open a door, which a clone cannot have: mirrors and private hosts."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.lockfile.read import read_lock
from tests.web_sites import NEW, SCHEMA, Reply, Site, skill_md

if TYPE_CHECKING:
    from tests.install.conftest import World
    from tests.policy.conftest import Write

ADDRESS = "https://git.acme.example/team/pdf"


def test_a_source_is_fetched_from_its_mirror_and_recorded_under_its_own_address(
    world: World, installer: prowess.Installer, write: Write
) -> None:
    pdf = world.repository("team/pdf.git")
    mirror = f"file://{world.base}/repositories/"
    rule = f'[sources]\nmirror = [{{ from = "https://git.acme.example/", to = "{mirror}" }}]\n'
    write(rule)
    installer.install(ADDRESS + ".git", project=True)
    entry = read_lock(str(world.project))["team/pdf"]
    assert (entry.source, entry.commit) == (f"{ADDRESS}.git", pdf.git("rev-parse", "HEAD").strip())
    assert len(prowess.Source.git(ADDRESS + ".git").load()) == 1
    pdf.skill("", body="New.\n")
    pdf.commit()
    assert installer.update(location="project")[0].status == "updated"
    write(f'{rule}allow = ["{mirror}**"]\n')
    installer.sync(locked=True)  # the list names what is really asked
    write(f'{rule}allow = ["{ADDRESS}"]\n')
    with pytest.raises(prowess.PolicyError, match="does not list it"):
        installer.install(ADDRESS + ".git", project=True, replace=True)


def test_a_revocation_counts_for_the_address_and_for_its_mirror(write: Write) -> None:
    write('[sources]\nmirror = [{ from = "https://git.acme.example/", to = "https://mirror.example/x/" }]\n')
    for revoked in (ADDRESS, "https://mirror.example/x/team/pdf"):
        write(f'[[skill]]\nsource = "{revoked}"\n', "revoked.toml")
        with pytest.raises(prowess.PolicyError) as caught:
            prowess.current_policy().check_source(ADDRESS)
        assert caught.value.code == "revoked"


def test_a_private_host_may_be_asked_where_a_trusted_policy_names_it(world: World, write: Write) -> None:
    body = skill_md("pdf")
    digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
    entry = {"name": "pdf", "type": "skill-md", "description": "Does it.", "url": "pdf/SKILL.md", "digest": digest}
    with Site() as site:
        site.replies[f"{NEW}/index.json"] = Reply(json.dumps({"$schema": SCHEMA, "skills": [entry]}).encode())
        source = prowess.Source.url(site.url, allow_http=True, cache_dir=world.base / "cache")
        assert [issue.code for issue in source.load().issues] == ["address-refused"]
        write(f'[sources]\nprivate-hosts = ["{site.host}:{site.port + 1}"]\n')
        assert not source.load()
        write(f'[sources]\nprivate-hosts = ["{site.host}:{site.port}"]\n')
        assert source.load().names == ("pdf",)


@pytest.mark.parametrize(
    "rule",
    [
        '[sources]\nmirror = [{ from = "https://a.example/", to = "https://b.example/" }]\n',
        '[sources]\nprivate-hosts = ["10.0.0.1"]\n',
    ],
)
def test_a_project_cannot_open_a_door(write: Write, rule: str) -> None:
    path = write(rule, project=True)
    with pytest.raises(prowess.PolicyError, match="could open a door") as caught:
        prowess.current_policy()
    assert (caught.value.code, caught.value.path) == ("bad-policy", path)


@pytest.mark.parametrize(
    "rule",
    [
        'mirror = [{ from = "https://a.example", to = "https://b.example/" }]',
        'mirror = [{ from = "https://a.example/", to = "https://b.example" }]',
        'mirror = [{ from = "https://a.example/" }]',
        'mirror = [{ from = "https://*/", to = "https://b.example/" }]',
        'mirror = { from = "https://a.example/", to = "https://b.example/" }',
        'mirror = ["https://a.example/"]',
        'private-hosts = ["https://a.example"]',
        'private-hosts = ["*"]',
        'private-hosts = "a.example"',
    ],
)
def test_a_malformed_mirror_or_host_fails_closed(write: Write, rule: str) -> None:
    write(f"[sources]\n{rule}\n")
    with pytest.raises(prowess.PolicyError) as caught:
        prowess.current_policy()
    assert caught.value.code == "bad-policy"

"""SSH signatures of tags: verified, pinned in the lock file, and required where the policy names signers."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.lockfile.read import read_lock
from prowess.policy.files import SIGNERS_FILE
from tests.cli.conftest import Command
from tests.web_sites import NEW, SCHEMA, Reply, Site, sha256, skill_md

if TYPE_CHECKING:
    from pathlib import Path

    from tests.install.conftest import World
    from tests.policy.conftest import Write
    from tests.repositories import Repository

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="NOT TESTED: there is no ssh-keygen")

MIA, MALLORY = "mia@acme.example", "mallory@evil.example"


class Keys:
    """SSH keys of people."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in (MIA, MALLORY):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
            subprocess.run(words, check=True, capture_output=True)

    def line(self, name: str) -> str:
        """The line of an allowed_signers file."""
        return f"{name} {(self.folder / f'{name}.pub').read_text(encoding='utf-8').rpartition(' ')[0]}\n"

    def fingerprint(self, name: str) -> str:
        words = ["ssh-keygen", "-l", "-f", str(self.folder / f"{name}.pub")]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()[1]

    def tag(self, repository: Repository, tag: str, name: str, *more: str) -> None:
        """Make a signed tag at the newest commit."""
        settings = ("-c", "gpg.format=ssh", "-c", f"user.signingkey={self.folder / name}")
        repository.git(*settings, "tag", *more, "-s", "-m", tag, tag)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def signed(world: World, keys: Keys) -> Repository:
    """A repository whose v1 has a plain tag, and v2 one that Mia signed."""
    made = world.repository("pdf")
    made.skill("", body="Second.\n")
    made.commit()
    keys.tag(made, "v2", MIA)
    return made


def name_signers(write: Write, keys: Keys, *names: str) -> str:
    write("".join(map(keys.line, names)), SIGNERS_FILE)
    return write(f'[versions]\nsigners = ["{MIA}"]\n')


def new_version(repository: Repository, body: str) -> None:
    repository.skill("", body=body)
    repository.commit()


def test_the_signer_is_pinned_and_another_one_is_refused_by_name(
    world: World, installer: prowess.Installer, signed: Repository, keys: Keys
) -> None:
    installer.install(f"{signed.address}#v2", project=True)
    assert read_lock(str(world.project))["local/pdf"].signer == keys.fingerprint(MIA)
    new_version(signed, "Third.\n")
    keys.tag(signed, "v3", MALLORY)
    for dry_run in (True, False):
        with pytest.raises(prowess.InstallError, match=re.escape(keys.fingerprint(MALLORY))) as caught:
            installer.update("@local/pdf@v3", location="project", dry_run=dry_run)
        assert caught.value.code == "other-signer"
    new_version(signed, "Fourth.\n")
    signed.git("tag", "v4")
    with pytest.raises(prowess.InstallError, match="not signed"):
        installer.update("@local/pdf@v4", location="project")
    with pytest.raises(prowess.InstallError, match="not signed"):
        installer.install(f"{signed.address}#v4", project=True, replace=True)
    new_version(signed, "Fifth.\n")
    keys.tag(signed, "v5", MIA)
    assert installer.update("@local/pdf@v5", location="project")[0].status == "updated"
    accepted = keys.fingerprint(MALLORY)
    ran = Command()("update", "pdf@v3", "--allow-rollback", "--accept-signer", accepted, "--yes")
    assert ran.status == 0, ran.err
    assert read_lock(str(world.project))["local/pdf"].signer == accepted
    shutil.rmtree(world.skills)
    installer.sync(locked=True)
    assert read_lock(str(world.project))["local/pdf"].signer == accepted


def test_an_unsigned_install_pins_the_first_signer_that_it_meets(
    world: World, installer: prowess.Installer, signed: Repository, keys: Keys
) -> None:
    installer.install(f"{signed.address}#v1", project=True)
    assert read_lock(str(world.project))["local/pdf"].signer == ""
    installer.update("@local/pdf@v2", location="project")
    assert read_lock(str(world.project))["local/pdf"].signer == keys.fingerprint(MIA)


def test_only_what_a_named_signer_signed_is_installed(
    world: World, installer: prowess.Installer, signed: Repository, keys: Keys, write: Write
) -> None:
    path = name_signers(write, keys, MIA)
    new_version(signed, "Third.\n")
    keys.tag(signed, "v3", MALLORY)
    for ref in ("", "#v1", "#v3", "#main"):
        with pytest.raises(prowess.PolicyError, match=r"is not signed by mia@acme\.example") as caught:
            installer.install(f"{signed.address}{ref}", project=True)
        assert caught.value.path == path
    with pytest.raises(prowess.PolicyError):
        installer.install_local(world.folder("notes"), project=True)
    installer.install(f"{signed.address}#v2", project=True)
    shutil.rmtree(world.skills)
    installer.sync(locked=True)  # a commit counts by the tags that lead to it
    assert Command()("policy", "check").status == 0
    with pytest.raises(prowess.PolicyError):
        prowess.Source.git(signed.address, "v1", missing="error").load()
    assert len(prowess.Source.git(signed.address, "v2").load()) == 1


def test_an_old_signed_tag_does_not_pass_for_another_version(
    installer: prowess.Installer, signed: Repository, keys: Keys, write: Write
) -> None:
    """Whoever can write to the repository gives the signed tag object another name, or another commit."""
    name_signers(write, keys, MIA)
    signed.git("update-ref", "refs/tags/v9", "refs/tags/v2")
    with pytest.raises(prowess.PolicyError):
        installer.install(f"{signed.address}#v9", project=True)
    data = signed.git("cat-file", "tag", "v2")
    new_version(signed, "Malicious.\n")
    head = signed.git("rev-parse", "HEAD").strip()
    forged = "\n".join([f"object {head}", *data.splitlines()[1:]]) + "\n"
    oid = signed.git("hash-object", "-t", "tag", "-w", "--stdin", "--literally", stdin=forged).strip()
    signed.git("update-ref", "refs/tags/v2", oid)
    with pytest.raises((prowess.PolicyError, prowess.FetchError)):
        installer.install(f"{signed.address}#v2", project=True)


def test_a_signature_of_other_bytes_is_refused_without_any_policy(
    installer: prowess.Installer, signed: Repository
) -> None:
    data = signed.git("cat-file", "tag", "v2").replace("\n\nv2\n", "\n\nvX\n")
    oid = signed.git("hash-object", "-t", "tag", "-w", "--stdin", "--literally", stdin=data).strip()
    signed.git("update-ref", "refs/tags/v2", oid)
    with pytest.raises(prowess.FetchError) as caught:
        installer.install(f"{signed.address}#v2", project=True)
    assert caught.value.code == "bad-signature"


def test_a_key_that_is_not_valid_any_more_does_not_count(
    installer: prowess.Installer, signed: Repository, keys: Keys, write: Write
) -> None:
    who, _, key = keys.line(MIA).partition(" ")
    write(f'{who} valid-before="20200101" {key}', SIGNERS_FILE)
    write(f'[versions]\nsigners = ["{MIA}"]\n')
    with pytest.raises(prowess.PolicyError):
        installer.install(f"{signed.address}#v2", project=True)


def test_a_lock_file_that_pins_no_named_signer_fails_the_check(
    world: World, installer: prowess.Installer, signed: Repository, keys: Keys, write: Write
) -> None:
    installer.install(f"{signed.address}#v2", project=True)
    name_signers(write, keys, MIA, MALLORY)
    assert Command()("policy", "check").status == 0
    lock = world.lock.read_text(encoding="utf-8")
    for other in (lock.replace(keys.fingerprint(MIA), keys.fingerprint(MALLORY)), lock.replace("signer =", "other =")):
        world.lock.write_text(other, encoding="utf-8")
        ran = Command()("policy", "check")
        assert ran.status == 1
        assert "signers" in ran.out


def publish(skill: Path, site: Path, version: str, *more: str) -> None:
    words = ("--version", version, "--to", str(site), "--yes")
    assert Command()("publish", str(skill), *words, *more).status == 0


def test_a_site_is_used_only_if_a_named_signer_signed_it(
    world: World, installer: prowess.Installer, keys: Keys, write: Write
) -> None:
    skill = world.folder("notes")
    sites = {name: world.base / f"site-{index}" for index, name in enumerate((MIA, MALLORY, ""))}
    for name, site in sites.items():
        publish(skill, site, "1.0.0", *(("--sign", str(keys.folder / name)) if name else ()))
    path = name_signers(write, keys, MIA, MALLORY)
    for name in (MALLORY, ""):
        with pytest.raises(prowess.PolicyError, match="is not signed by") as caught:
            installer.install(f"site:{sites[name]}", project=True, select="notes")
        assert caught.value.path == path
        with pytest.raises(prowess.PolicyError):
            prowess.Source.site(str(sites[name]), missing="error").load()
    installer.install(f"site:{sites[MIA]}", project=True, select="notes")
    assert {one.signer for one in read_lock(str(world.project)).values()} == {keys.fingerprint(MIA)}
    assert prowess.Source.site(str(sites[MIA])).load().names == ("notes",)
    assert Command()("policy", "check").status == 0


def test_an_index_that_cannot_be_signed_is_refused_where_signers_are_named(
    world: World, keys: Keys, write: Write
) -> None:
    name_signers(write, keys, MIA)
    body = skill_md("pdf")
    entry = {"name": "pdf", "type": "skill-md", "description": "Does it.", "url": "pdf.md", "digest": sha256(body)}
    with Site() as site:
        site.replies[f"{NEW}/index.json"] = Reply(json.dumps({"$schema": SCHEMA, "skills": [entry]}).encode())
        options = {"allow_http": True, "allow_private": True, "cache_dir": world.base / "cache"}
        with pytest.raises(prowess.PolicyError, match="is not signed by"):
            prowess.Source.url(site.url, **options).load()  # type: ignore[arg-type]


def test_signers_without_their_keys_or_from_a_project_fail_closed(write: Write) -> None:
    rule = f'[versions]\nsigners = ["{MIA}"]\n'
    write(rule)
    with pytest.raises(prowess.PolicyError, match=SIGNERS_FILE):
        prowess.current_policy()
    write('[versions]\nsigners = ["*"]\n')
    with pytest.raises(prowess.PolicyError, match="a list of names"):
        prowess.current_policy()
    write("")
    write(rule, project=True)
    with pytest.raises(prowess.PolicyError, match="could open a door"):
        prowess.current_policy()

"""Sites that whoever can write to them changes: readers refuse them, and write nothing outside the cache."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

import prowess
from prowess.fetch.cache import sha256_hex
from prowess.sources.published.documents import write_json
from tests.sandbox_support import NOT_TESTED

if TYPE_CHECKING:
    from pathlib import Path

    from tests.install.conftest import World
    from tests.publishing.conftest import MakeSkill

needs_keys = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason=f"{NOT_TESTED}ssh-keygen is not installed")


@pytest.fixture
def site(tmp_path: Path, make_skill: MakeSkill) -> Path:
    """A site with one version, which a reader has seen."""
    prowess.publish([make_skill()], tmp_path / "site", aliases=["production"])
    read(tmp_path / "site")
    return tmp_path / "site"


@pytest.fixture
def keys(tmp_path: Path) -> list[str]:
    """The files of two SSH keys."""
    paths = [str(tmp_path / name) for name in ("ours", "theirs")]
    for path in paths:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    return paths


def read(site: Path, tail: str = "") -> prowess.Catalog:
    """Load the skills of a site, with their files."""
    catalog = prowess.Source.site(f"site:{site}{tail}", missing="error").load()
    for skill in catalog:
        catalog.load(skill.name)
    return catalog


def refusal(site: Path, tail: str = "") -> str:
    """Return the code with which a site is refused."""
    with pytest.raises(prowess.SkillError) as caught:
        read(site, tail)
    return caught.value.code


def edit_root(site: Path, **changes: Any) -> None:
    path = site / "site.json"
    root = json.loads(path.read_text(encoding="utf-8"))
    path.write_bytes(write_json(root | changes))


def edit_list(site: Path, **changes: Any) -> None:
    """Change the entry of the list, with a root that names the changed list."""
    root = json.loads((site / "site.json").read_text(encoding="utf-8"))
    path = site / f"blobs/sha256/{root['files']['index.json']}.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["skills"][0] |= changes
    data = write_json(content)
    (site / f"blobs/sha256/{sha256_hex(data)}.json").write_bytes(data)
    edit_root(site, files=root["files"] | {"index.json": sha256_hex(data)})


@needs_keys
def test_an_earlier_root_is_a_rollback(tmp_path: Path, make_skill: MakeSkill, keys: list[str]) -> None:
    site = tmp_path / "signed"
    prowess.publish([make_skill()], site, aliases=["production"], sign=keys[0])
    read(site)
    before = (site / "site.json").read_bytes()
    prowess.publish([make_skill(version="1.0.1", body="Repaired.")], site, sign=keys[0])
    read(site)
    (site / "site.json").write_bytes(before)
    assert refusal(site) == "rolled-back"
    assert refusal(site, "#production") == "rolled-back"
    with pytest.raises(prowess.FetchError):  # nor does anybody publish on top of it
        prowess.publish([make_skill(version="1.0.2")], site, sign=keys[0])
    assert prowess.Source.site(f"site:{site}", allow_rollback=True, missing="error").load()


def test_a_folder_without_a_signature_may_go_back(site: Path, make_skill: MakeSkill) -> None:
    """It may be in a repository, whose branches are switched."""
    before = (site / "site.json").read_bytes()
    prowess.publish([make_skill(version="1.0.1")], site)
    read(site)
    (site / "site.json").write_bytes(before)
    assert read(site)


def test_a_root_that_has_expired_is_frozen(site: Path, make_skill: MakeSkill) -> None:
    edit_root(site, expires=time.time() - 1)
    assert refusal(site) == "site-expired"
    with pytest.raises(prowess.FetchError):
        prowess.publish([make_skill()], site)


def test_a_publisher_renews_a_root_before_it_expires(site: Path, make_skill: MakeSkill) -> None:
    prowess.publish([make_skill(folder="a")], site, expires_days=1)
    first = json.loads((site / "site.json").read_text(encoding="utf-8"))
    prowess.publish([make_skill(folder="b")], site, expires_days=9)
    second = json.loads((site / "site.json").read_text(encoding="utf-8"))
    assert second["serial"] == first["serial"] + 1
    assert second["expires"] > first["expires"] + 7 * 86_400
    read(site)


def test_other_bytes_under_a_digest_are_refused(site: Path) -> None:
    for archive in (site / "blobs/sha256").glob("*.tar.gz"):
        archive.write_bytes(archive.read_bytes() + b"\0")
    assert refusal(site) == "digest-mismatch"
    for document in (site / "blobs/sha256").glob("*.json"):
        document.write_bytes(document.read_bytes() + b" ")
    assert refusal(site) == "digest-mismatch"


@needs_keys
def test_the_key_of_the_first_read_stays(
    tmp_path: Path, make_skill: MakeSkill, keys: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    site, (ours, theirs) = tmp_path / "signed", keys
    prowess.publish([make_skill()], site, sign=ours)
    read(site)
    edit_root(site, serial=7)
    assert refusal(site) == "bad-signature"  # there is none of this root
    edit_root(site, signer="", serial=7)
    assert refusal(site) == "signer-changed"
    shutil.rmtree(site)
    with monkeypatch.context() as elsewhere:  # somebody who never read the site
        elsewhere.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
        prowess.publish([make_skill()], site, sign=theirs)
    assert refusal(site) == "signer-changed"


@needs_keys
def test_a_site_is_not_published_with_another_key_by_mistake(
    tmp_path: Path, make_skill: MakeSkill, keys: list[str]
) -> None:
    site, (ours, theirs) = tmp_path / "signed", keys
    prowess.publish([make_skill()], site, sign=ours)
    for key in ("", theirs):
        with pytest.raises(prowess.SourceError) as caught:
            prowess.publish([make_skill(version="2.0")], site, sign=key)
        assert caught.value.code == "signer-needed"
    with pytest.raises(prowess.FetchError) as missing:
        prowess.publish([make_skill(version="2.0")], site, sign=tmp_path / "no-such-key")
    assert missing.value.code == "not-signed"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"size": -1}, "bad-index"),
        ({"size": "x"}, "bad-index"),
        ({"digest": "sha256:" + "0" * 63}, "bad-index"),
        ({"name": "../evil"}, "bad-index"),
        ({"files": {"../../evil": [1, False, "0" * 64]}}, "digest-mismatch"),
        ({"files": {}}, "digest-mismatch"),
        ({"tree": "sha256:" + "0" * 64}, "digest-mismatch"),
        ({"files": []}, "bad-index"),
        ({"version": None}, "bad-index"),
    ],
)
def test_a_list_that_lies_is_refused(site: Path, world: World, changes: dict[str, Any], code: str) -> None:
    edit_list(site, **changes)
    assert refusal(site) == code
    before = sorted(world.base.rglob("evil"))
    with pytest.raises(prowess.SkillError):
        prowess.Installer().install(f"site:{site}", project=True)
    assert sorted(world.base.rglob("evil")) == before == []


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"serial": 1e9}', b"\xff", b"[" * 100_000, b'{"format": "other"}']
)
def test_a_root_that_is_none_is_refused(site: Path, content: bytes) -> None:
    (site / "site.json").write_bytes(content)
    assert refusal(site) in {"bad-index", "unknown-schema"}


def test_documents_and_archives_are_bounded(site: Path) -> None:
    limits = prowess.Limits(max_index_bytes=50)
    with pytest.raises(prowess.FetchError):
        prowess.Source.site(f"site:{site}", missing="error", limits=limits).load()
    small = prowess.Source.site(f"site:{site}", missing="error", limits=prowess.Limits(max_download_bytes=10)).load()
    with pytest.raises(prowess.FetchError):
        small.load("pdf")


def test_a_policy_counts_for_sites(site: Path, world: World) -> None:
    folder = world.home / ".config/prowess"
    folder.mkdir(parents=True, mode=0o755)
    policy = folder / "policy.toml"
    policy.write_text('[sources]\nallow = ["s3://acme-skills/**"]\n', encoding="utf-8")
    policy.chmod(0o644)
    assert refusal(site) == "policy"
    with pytest.raises(prowess.PolicyError):
        prowess.Installer().install(f"site:{site}", project=True)
    policy.write_text('[versions]\nrefs = "tags"\n', encoding="utf-8")
    with pytest.raises(prowess.PolicyError):
        prowess.Installer().install(f"site:{site}#production", project=True)
    prowess.Installer().install(f"site:{site}#1.0.0", project=True)


def test_a_revoked_digest_counts_for_skills_that_are_not_installed(site: Path, world: World) -> None:
    """Also for one that a running program has: at its next use."""
    catalog = read(site)
    folder = world.home / ".config/prowess"
    folder.mkdir(parents=True, mode=0o755)
    revoked = folder / "revoked.toml"
    revoked.write_text(f'[[skill]]\ndigest = "{catalog["pdf"].digest()}"\nreason = "it sends mail"\n', encoding="utf-8")
    revoked.chmod(0o644)
    with pytest.raises(prowess.PolicyError, match="it sends mail") as caught:
        catalog.load("pdf")
    assert caught.value.code == "revoked"
    now = prowess.Source.site(f"site:{site}", missing="error").load()
    assert (now.names, [issue.code for issue in now.issues]) == ((), ["revoked"])

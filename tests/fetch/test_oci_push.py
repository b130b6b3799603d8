"""Skills pushed to OCI registries: real ones, beside oras, and some that break off or lie."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

import prowess
from prowess.fetch.cache import Cache
from prowess.fetch.oci.pull import Repository
from prowess.fetch.oci.push import SKILL_DIGEST, PushedSkill, make_artifact
from prowess.fetch.oci.registry import Registry
from prowess.files.write import NewFile
from tests.fetch.oci_peers import HERE, SKILL, sha256
from tests.registries import needs_oras, needs_registry, push_skill, run_oras, running_registry, write_docker_config
from tests.web_sites import Asked, Reply, Site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("plain_network")
FILES = [
    NewFile("SKILL.md", SKILL),
    NewFile("scripts/run.sh", b"#!/bin/sh\necho hi\n", executable=True),
    NewFile("references/deep/ü.md", b"x" * 3000),
]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A real registry without a login."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    with running_registry(tmp_path / "registry") as address:
        yield address


def push(address: str, files: list[NewFile] = FILES, version: str = "1.0.0", **options: Any) -> PushedSkill:
    return push_skill(address, files, name="pdf", version=version, **options)


def repository(address: str, cache: Path) -> Repository:
    return Repository(Registry(address, HERE, prowess.Limits()), Cache(cache))


def refuse(code: str, address: str, **options: Any) -> str:
    with pytest.raises(prowess.FetchError) as caught:
        push(address, **options)
    assert caught.value.code == code, caught.value
    return str(caught.value)


# -- real registries ---------------------------------------------------------------------------------------------------


@needs_registry
def test_a_version_is_pushed_once_and_aliases_move(host: str, cache: Path) -> None:
    address = f"oci://{host}/team/pdf"
    first = push(address, aliases=["latest", "production", "latest"])
    assert (first.existed, first.moved) == (False, ("latest", "production"))
    again = push(address, aliases=["latest"])
    assert (again.existed, again.sent_bytes, again.moved, again.digest) == (True, 0, (), first.digest)
    message = refuse("version-exists", address, files=FILES[:1], aliases=["latest"])
    assert first.digest in message
    second = push(address, FILES[:2], "1.1.0", aliases=["latest"])
    found = repository(address, cache)
    refs = {ref: found.resolve_ref(ref) for ref in ("1.0.0", "1.1.0", "latest", "production", "^1")}
    newer = {"1.1.0", "latest", "^1"}
    assert refs == {ref: (second if ref in newer else first).digest for ref in refs}
    assert {file.path: file for file in found.pull("1.0.0").files} == {
        f"pdf/{file.path}": file._replace(path=f"pdf/{file.path}") for file in FILES
    }


@needs_registry
def test_blobs_that_are_there_are_not_sent_again(host: str) -> None:
    address = f"oci://{host}/team/pdf"
    assert push(address).sent_bytes > 0
    assert push(address, version="1.0.1").sent_bytes == 0  # other annotations, the same content


@needs_registry
def test_of_two_pushes_of_one_version_at_once_both_are_the_same_or_one_fails(host: str, cache: Path) -> None:
    address = f"oci://{host}/team/pdf"
    results: list[PushedSkill | prowess.FetchError] = []

    def run(number: int) -> None:
        try:
            results.append(push(address, [*FILES, NewFile("n", str(number).encode())]))
        except prowess.FetchError as error:
            results.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    there = repository(address, cache).pull("1.0.0").digest
    codes = [result.code for result in results if isinstance(result, prowess.FetchError)]
    assert set(codes) <= {"version-exists"}
    assert there in {result.digest for result in results if isinstance(result, PushedSkill)} | {
        str(result).partition("sha256:")[2][:64] for result in results if isinstance(result, prowess.FetchError)
    }


@needs_registry
def test_a_registry_with_logins_takes_what_its_users_push(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "nobody"))
    with running_registry(tmp_path / "registry", login=True) as host:
        address = f"oci://{host}/team/pdf"
        assert "nobody" in refuse("registry-login", address)
        monkeypatch.setenv("DOCKER_CONFIG", str(write_docker_config(tmp_path / "docker", host)))
        digest = push(address).digest
        assert repository(address, cache).pull("1.0.0").digest == digest
        monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "nobody"))
        with pytest.raises(prowess.FetchError, match="wants a login to read team/pdf"):
            repository(address, cache).resolve_ref("1.0.0")


@needs_registry
@needs_oras
def test_oras_pulls_what_was_pushed_byte_for_byte(host: str, tmp_path: Path) -> None:
    push(f"oci://{host}/team/pdf")
    run_oras(f"client.pull(target='{host}/team/pdf:1.0.0', outdir={str(tmp_path / 'out')!r})")
    pulled = {path.relative_to(tmp_path / "out"): path for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert {path.as_posix(): file.read_bytes() for path, file in pulled.items()} == {
        f"pdf/{file.path}": file.content for file in FILES
    }
    executable = {path.as_posix() for path, file in pulled.items() if file.stat().st_mode & 0o100}
    assert executable == {"pdf/scripts/run.sh"}


@needs_registry
@needs_oras
def test_what_oras_pushed_is_pulled(host: str, cache: Path, tmp_path: Path) -> None:
    folder = tmp_path / "work" / "pdf"
    for file in FILES:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.content)
        path.chmod(0o755 if file.executable else 0o644)
    run_oras(
        f"client.push(target='{host}/team/folder:1', files=['pdf'])",
        f"client.push(target='{host}/team/files:1', files=['pdf/SKILL.md', 'pdf/scripts/run.sh'])",
        folder=tmp_path / "work",
    )
    in_folder = repository(f"oci://{host}/team/folder", cache).pull("1").files
    assert {file.path: (file.content, file.executable) for file in in_folder} == {
        f"pdf/{file.path}": (file.content, file.executable) for file in FILES
    }
    single = repository(f"oci://{host}/team/files", cache).pull("1").files
    assert [(file.path, file.executable) for file in single] == [("SKILL.md", False), ("run.sh", True)]


# -- the artifact ------------------------------------------------------------------------------------------------------


def test_equal_skills_give_equal_artifacts_in_any_order() -> None:
    one = make_artifact(FILES, name="pdf", version="1", description="Does it.")
    assert one == make_artifact(FILES[::-1], name="pdf", version="1", description="Does it.")
    assert one.digest != make_artifact(FILES[:1], name="pdf", version="1").digest
    manifest = json.loads(one.manifest)
    assert manifest["artifactType"] == "application/vnd.agentskills.skill.v1"
    assert manifest["config"]["digest"] == sha256(b"{}")
    assert manifest["annotations"]["org.opencontainers.image.version"] == "1"
    assert len(manifest["annotations"][SKILL_DIGEST]) == len(one.digest)
    assert manifest["layers"][0]["annotations"]["io.deis.oras.content.unpack"] == "true"


# -- registries that break off, or lie ---------------------------------------------------------------------------------


class FakeTarget:
    """The repository ``team/pdf`` of a registry that keeps nothing and answers as a test says."""

    def __init__(self, site: Site) -> None:
        self.site, self.address = site, f"oci://127.0.0.1:{site.port}/team/pdf"
        self.artifact = make_artifact(FILES, name="pdf", version="1.0.0")
        self.blob = next(data for data in self.artifact.blobs.values() if data != b"{}")
        self.there = b""
        site.replies["/v2/team/pdf/manifests/1.0.0"] = lambda _: Reply(self.there, 200 if self.there else 404)
        site.replies["PUT /v2/team/pdf/manifests/1.0.0"] = self.put_manifest
        site.put(f"/v2/team/pdf/blobs/{sha256(b'{}')}", b"")
        site.put("POST /v2/team/pdf/blobs/uploads/", b"", 202, Location="/upload/1?state=a")
        self.put_path = f"PUT /upload/1?state=a&digest={sha256(self.blob)}"
        site.put(self.put_path, b"", 201)

    def put_manifest(self, asked: Asked) -> Reply:
        self.there = asked.body
        return Reply(b"", 201)

    def sent(self, path: str) -> list[Asked]:
        return [asked for asked in self.site.asked if f"{asked.method} {asked.path}" == path]


@pytest.fixture
def target(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTarget:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    return FakeTarget(site)


def test_an_upload_goes_on_where_the_connection_broke(target: FakeTarget) -> None:
    push(target.address)
    assert target.sent(target.put_path)[0].body == target.blob
    target.there = b""
    target.site.put(target.put_path, b"", 503)
    target.site.put("GET /upload/1?state=a", b"", 204, Location="/upload/1?state=b", Range="0-99")
    target.site.put(f"PUT /upload/1?state=b&digest={sha256(target.blob)}", b"", 201)
    push(target.address)
    rest = target.sent(f"PUT /upload/1?state=b&digest={sha256(target.blob)}")[0]
    assert (rest.body, rest.headers["content-range"]) == (target.blob[100:], f"100-{len(target.blob) - 1}")


def test_an_upload_begins_again_where_the_registry_does_not_know_how_far_it_is(target: FakeTarget) -> None:
    target.site.put(target.put_path, b"", 503)
    for status, headers in [(404, {}), (204, {}), (204, {"Range": "0-0"}), (204, {"Range": "0-99999999999"})]:
        target.site.put("GET /upload/1?state=a", b"", status, **headers)
        before = len(target.sent("POST /v2/team/pdf/blobs/uploads/"))
        refuse("server-busy", target.address, max_upload_attempts=2)
        assert len(target.sent("POST /v2/team/pdf/blobs/uploads/")) == before + 2
    assert target.there == b""


def test_nothing_is_sent_to_another_host(target: FakeTarget) -> None:
    with Site() as other:
        for reply in ({"Location": f"{other.url}/upload"}, {"Location": "file:///x"}, {}):
            target.site.put("POST /v2/team/pdf/blobs/uploads/", b"", 202, **reply)
            code = {0: "bad-upload"}.get(len(reply), "other-origin" if other.url in str(reply) else "bad-address")
            refuse(code, target.address)
        target.site.put("POST /v2/team/pdf/blobs/uploads/", b"", 202, Location="/upload/1?state=a")
        target.site.put(target.put_path, b"", 307, Location=f"{other.url}/upload")
        refuse("redirect-refused", target.address)
        assert other.asked == []


def test_a_version_that_another_push_took_meanwhile_is_reported(target: FakeTarget) -> None:
    def lose(_: Asked) -> Reply:
        target.there = b"{}"
        return Reply(b"", 201)

    target.site.replies["PUT /v2/team/pdf/manifests/1.0.0"] = lose
    refuse("version-exists", target.address, aliases=["latest"])
    assert target.sent("PUT /v2/team/pdf/manifests/latest") == []


@pytest.mark.parametrize("version", ["1.0.0+build", "-1", ".x", "a/b", "", "x" * 129, "1 0"])
def test_a_version_that_cannot_be_a_tag_is_refused_before_anything_is_asked(target: FakeTarget, version: str) -> None:
    refuse("bad-tag", target.address, version=version)
    refuse("bad-tag", target.address, aliases=[version])
    assert target.site.asked == []

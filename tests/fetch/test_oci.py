"""Artifacts and images of OCI registries: what becomes a skill, what is refused, and where logins go."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

import prowess
from prowess.fetch.archive.members import load_zstd
from prowess.fetch.oci.registry import Registry
from prowess.fetch.url_policy import UrlPolicy
from tests.fetch.oci_peers import HERE, INDEX, MANIFEST, SKILL, TAR, TAR_GZIP, FakeRepository, sha256, tar_of
from tests.sandbox_support import NOT_TESTED
from tests.web_sites import Asked, RawSite, Reply, Site, certificate

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("plain_network")
QUICK = prowess.Limits(fetch_idle_seconds=0.3, fetch_total_seconds=1.0)
USER, PASSWORD = "ann", "correct horse"
SKILL_TAR = gzip.compress(tar_of({"pdf/SKILL.md": SKILL}))


@pytest.fixture
def repository(site: Site, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeRepository:
    """A repository without anything in it, asked by somebody without logins."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    return FakeRepository(site, cache)


def refuse(repository: FakeRepository, code: str, ref: str = "1", **options: Any) -> str:
    """Pull what must be refused; returns the message."""
    with pytest.raises(prowess.SkillError) as caught:
        repository.pull(ref, **options)
    assert caught.value.code == code, caught.value
    return str(caught.value)


def paths(pulled: Any) -> list[str]:
    return [file.path for file in pulled.files]


# -- layers ------------------------------------------------------------------------------------------------------------


def test_tar_layers_are_unpacked_together(repository: FakeRepository) -> None:
    script = gzip.compress(tar_of({"pdf/run.sh": b"#!/bin/sh\n"}))
    plain = repository.layer(tar_of({"docx/SKILL.md": SKILL}), TAR)
    digest = repository.manifest(repository.skill_layer(), repository.layer(script), plain)
    pulled = repository.pull()
    assert paths(pulled) == ["docx/SKILL.md", "pdf/SKILL.md", "pdf/run.sh"]
    assert f"sha256:{pulled.digest}" == digest


@pytest.mark.parametrize(
    "media_type",
    [
        "application/vnd.docker.image.rootfs.diff.tar.gzip",
        "application/vnd.agentskills.skill.content.v1.tar+gzip",
        "application/vnd.cncf.flux.content.v1.tar+gzip",
    ],
)
def test_every_media_type_of_a_tar_is_unpacked_with_or_without_a_title(
    repository: FakeRepository, media_type: str
) -> None:
    repository.manifest(repository.layer(SKILL_TAR, media_type, title="skill.tar.gz"))
    assert paths(repository.pull()) == ["pdf/SKILL.md"]


def test_a_layer_with_a_title_is_a_file_and_a_script_can_be_executed(repository: FakeRepository) -> None:
    run = repository.layer(b"#!/bin/sh\n", TAR, title="scripts/run.sh")
    note = repository.layer(b"note", "text/markdown", title="note.md")
    repository.manifest(repository.layer(SKILL, TAR, title="SKILL.md"), run, note)
    pulled = repository.pull()
    assert [(file.path, file.executable) for file in pulled.files] == [
        ("SKILL.md", False),
        ("note.md", False),
        ("scripts/run.sh", True),
    ]


def test_a_plain_tar_that_is_to_be_unpacked_is_unpacked(repository: FakeRepository) -> None:
    repository.manifest(repository.layer(tar_of({"pdf/SKILL.md": SKILL}), TAR, title="pdf", unpack="true"))
    assert paths(repository.pull()) == ["pdf/SKILL.md"]


def test_the_only_file_is_unpacked_when_it_is_an_archive(repository: FakeRepository) -> None:
    repository.manifest(repository.layer(SKILL_TAR, TAR, title="pdf.tar.gz"))
    assert paths(repository.pull()) == ["SKILL.md"]  # as every archive, without the folder around everything


ZSTD = "application/vnd.oci.image.layer.v1.tar+zstd"


def test_zstd_is_unpacked_within_the_limits_or_the_error_names_the_package(repository: FakeRepository) -> None:
    try:
        zstd = load_zstd()
    except prowess.MissingPackageError:
        repository.manifest(repository.layer(bytes.fromhex("28b52ffd") + b"\0" * 10, ZSTD))
        assert "pip install backports.zstd" in refuse(repository, "missing-package")
        pytest.skip(f"{NOT_TESTED}zstd: backports.zstd is not installed; make test-registries installs it")
    packed = zstd.compress(tar_of({"pdf/SKILL.md": SKILL, "pdf/big": bytes(range(256)) * 4000}))
    repository.manifest(repository.layer(packed, ZSTD))
    assert paths(repository.pull()) == ["pdf/SKILL.md", "pdf/big"]
    refuse(repository, "archive-too-large", limits=prowess.Limits(max_unpacked_bytes=500_000))
    for damaged in (packed[:-5], packed + b"x", packed + packed, packed[:50] + b"x" + packed[51:]):
        repository.manifest(repository.layer(damaged, ZSTD))
        refuse(repository, "bad-archive")
    repository.manifest(repository.layer(zstd.compress(bytes(1 << 26)), ZSTD))
    refuse(repository, "archive-too-large")


REFUSED_LAYERS: dict[str, tuple[bytes, str, dict[str, str], str]] = {
    "no title": (b"x", "application/octet-stream", {}, "bad-layer"),
    "elsewhere": (SKILL_TAR, "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip", {}, "bad-layer"),
    "Docker's elsewhere": (SKILL_TAR, "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", {}, "bad-layer"),
    "a path out of the skill": (SKILL, TAR, {"title": "../SKILL.md"}, "bad-archive"),
    "a path from the root": (SKILL, TAR, {"title": "/etc/SKILL.md"}, "bad-archive"),
    "a deletion": (gzip.compress(tar_of({"pdf/.wh.SKILL.md": b""})), TAR_GZIP, {}, "bad-archive"),
    "a deletion by its title": (b"", TAR, {"title": ".wh..wh..opq"}, "bad-archive"),
    "no tar": (b"PK\3\4", TAR_GZIP, {}, "bad-archive"),
    "a repository of git": (gzip.compress(tar_of({"pdf/.git/config": b""})), TAR_GZIP, {}, "git-in-skill"),
    "a bomb": (gzip.compress(tar_of({"pdf/x": b"\0" * (2 << 20)})), TAR_GZIP, {}, "archive-too-large"),
}


@pytest.mark.parametrize("kind", REFUSED_LAYERS)
def test_a_layer_that_is_neither_a_safe_tar_nor_a_file_is_refused(repository: FakeRepository, kind: str) -> None:
    data, media_type, notes, code = REFUSED_LAYERS[kind]
    repository.manifest(repository.layer(data, media_type, **notes))
    message = refuse(repository, code)
    assert repository.address in message
    if code == "bad-layer":
        assert repository.asked_blobs == []


def test_a_path_in_two_layers_is_refused(repository: FakeRepository) -> None:
    upper = repository.layer(gzip.compress(tar_of({"pdf/skill.md": b""})))
    repository.manifest(repository.skill_layer(), upper)
    assert "one name on some systems" in refuse(repository, "bad-archive")


def test_the_limit_of_unpacked_bytes_counts_all_layers(repository: FakeRepository) -> None:
    layers = [repository.layer(str(number).encode() * 400, TAR, title=f"{number}.txt") for number in range(3)]
    repository.manifest(*layers)
    limits = prowess.Limits(max_unpacked_bytes=1000)
    assert "max_unpacked_bytes" in refuse(repository, "archive-too-large", limits=limits)


# -- manifests ---------------------------------------------------------------------------------------------------------


def row(**fields: Any) -> dict[str, Any]:
    return {"mediaType": TAR_GZIP, "digest": sha256(SKILL_TAR), "size": len(SKILL_TAR), **fields}


def whole(**fields: Any) -> dict[str, Any]:
    config = {"mediaType": "application/vnd.oci.empty.v1+json", "digest": sha256(b"{}"), "size": 2}
    return {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [row()], **fields}


REFUSED_MANIFESTS: dict[str, bytes] = {
    "not JSON": b"<html>",
    "deeply nested": b"[" * 100_000,
    "a list": b"[]",
    "Docker's first version": json.dumps(whole(schemaVersion=1)).encode(),
    "another media type": json.dumps(whole(mediaType="application/json")).encode(),
    "a media type that is not a string": json.dumps(whole(mediaType=["x"])).encode(),
    "another media type than announced": json.dumps(whole(mediaType=INDEX, manifests=[])).encode(),
    "layers and manifests": json.dumps(whole(manifests=[])).encode(),
    "a key twice": json.dumps(whole())[:-1].encode() + b', "layers": []}',
    "no config": json.dumps(whole(config=None)).encode(),
    "layers that are not list": json.dumps(whole(layers={})).encode(),
    "a layer that is not an object": json.dumps(whole(layers=["x"])).encode(),
    "another hash": json.dumps(whole(layers=[row(digest="sha512:" + "0" * 128)])).encode(),
    "a digest with a path": json.dumps(whole(layers=[row(digest="sha256:../../../x")])).encode(),
    "a negative size": json.dumps(whole(layers=[row(size=-1)])).encode(),
    "a size that is true": json.dumps(whole(layers=[row(size=True)])).encode(),
    "nothing in it": json.dumps(whole(layers=[])).encode(),
}


@pytest.mark.parametrize("kind", REFUSED_MANIFESTS)
def test_a_malformed_manifest_is_refused(repository: FakeRepository, kind: str) -> None:
    repository.raw(REFUSED_MANIFESTS[kind])
    refuse(repository, "bad-artifact")
    assert repository.asked_blobs == []


def test_a_manifest_without_its_media_type_is_read_again_from_the_cache(repository: FakeRepository) -> None:
    digest = repository.manifest(repository.skill_layer(), mediaType=None)
    before = repository.pull()
    repository.site.stop()
    assert repository.pull(digest) == before


def test_what_a_digest_names_is_pulled_without_the_registry_once_it_was_pulled(repository: FakeRepository) -> None:
    digest = repository.manifest(repository.skill_layer())
    before = repository.pull("1")
    repository.site.stop()
    assert repository.pull(digest) == before
    refuse(repository, "fetch-failed", "1")
    # A cache must not answer for a machine that may not be asked.
    refuse(repository, "address-refused", digest, allowed=UrlPolicy())


def test_an_index_with_one_usable_manifest_or_the_same_layers_everywhere_is_read(repository: FakeRepository) -> None:
    first = repository.manifest(repository.skill_layer(), tag="a")
    second = repository.manifest(repository.skill_layer(), tag="b", annotations={"platform": "arm64"})
    other = repository.manifest(repository.layer(SKILL, TAR, title="SKILL.md"), tag="c")
    note = {"vnd.docker.reference.type": "attestation-manifest"}

    def index(*rows: tuple[str, dict[str, Any]]) -> None:
        manifests = [{"mediaType": MANIFEST, "digest": digest, "size": 1, **more} for digest, more in rows]
        repository.document({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}, "1", INDEX)

    index((first, {}), (other, {"annotations": note}), (other, {"platform": {"os": "unknown"}}))
    assert paths(repository.pull()) == ["pdf/SKILL.md"]
    index((first, {}), (second, {}))
    assert paths(repository.pull()) == ["pdf/SKILL.md"]
    index((first, {}), (other, {}))
    assert first in refuse(repository, "several-manifests")
    index()
    refuse(repository, "bad-artifact")


def test_limits_are_checked_before_a_layer_is_fetched(repository: FakeRepository) -> None:
    repository.manifest(*[row(size=1 << 40)])
    assert "max_install_bytes" in refuse(repository, "download-too-large")
    repository.manifest(*[row()] * 4)
    assert "max_layers" in refuse(repository, "too-many-layers", limits=prowess.Limits(max_layers=3))
    repository.raw(b" " * 2000)
    assert "max_manifest_bytes" in refuse(
        repository, "download-too-large", limits=prowess.Limits(max_manifest_bytes=999)
    )
    assert repository.asked_blobs == []


# -- versions ----------------------------------------------------------------------------------------------------------


def test_a_version_is_a_tag_a_range_a_digest_or_latest(repository: FakeRepository) -> None:
    old = repository.manifest(repository.skill_layer(), tag="1.2.0")
    new = repository.manifest(repository.skill_layer(more=b""), tag="1.10.0")
    repository.manifest(repository.skill_layer(most=b""), tag="latest")
    first, second = "/v2/team/pdf/tags/list?n=1000", "/v2/team/pdf/tags/list?n=1000&last=1.2.0"
    repository.site.put(first, b'{"tags": ["1.10.0", "1.2.0"]}', Link=f'<{second}>; rel="next"')
    repository.site.put(second, b'{"tags": ["latest"]}')
    found = repository.open()
    assert list(found.list_tags()) == ["1.10.0", "1.2.0", "latest"]
    assert [f"sha256:{found.resolve_ref(ref)}" for ref in ("1.2.0", "^1", "~1.2")] == [old, new, old]
    assert found.pull().digest == found.resolve_ref("latest")
    assert found.resolve_ref(old.removeprefix("sha256:")) == old.removeprefix("sha256:")
    for ref in ("3", "^3"):
        assert "1.10.0, 1.2.0" in refuse(repository, "unknown-tag", ref)
    refuse(repository, "unknown-version", "0" * 64)
    refuse(repository, "bad-tag", "../../x")


def test_a_list_of_tags_that_never_ends_is_left(repository: FakeRepository) -> None:
    start = "/v2/team/pdf/tags/list?n=1000"
    for path in (start, f"{start}&last=a"):
        repository.site.put(path, b'{"tags": ["a"]}', Link=f'<{start}&last=a>; rel="next"')
    assert list(repository.open().list_tags()) == ["a"]


# -- hostile registries ------------------------------------------------------------------------------------------------


def test_a_swapped_blob_is_refused_and_not_kept(repository: FakeRepository, cache: Path) -> None:
    layer = repository.skill_layer()
    repository.manifest(layer)
    swapped = gzip.compress(tar_of({"pdf/SKILL.md": SKILL + b"evil"}))
    for body in (swapped, SKILL_TAR[:-1], SKILL_TAR + b"x", b""):
        repository.site.put(f"/v2/team/pdf/blobs/{layer['digest']}", body)
        assert layer["digest"] in refuse(repository, "digest-mismatch")
    kept = [file.read_bytes() for file in cache.rglob("*") if file.is_file()]
    assert swapped not in kept
    repository.site.put(f"/v2/team/pdf/blobs/{layer['digest']}", b"", 404)
    refuse(repository, "missing-layer")


def test_a_manifest_that_is_not_what_was_asked_for_is_refused(repository: FakeRepository) -> None:
    layer = repository.skill_layer()
    digest = repository.manifest(layer)
    other = json.dumps(whole(annotations={"x": "y"})).encode()
    repository.site.put(f"/v2/team/pdf/manifests/{digest}", other, Content_Type=MANIFEST)
    refuse(repository, "digest-mismatch", digest)
    repository.site.put("/v2/team/pdf/manifests/1", other, Content_Type=MANIFEST, Docker_Content_Digest=digest)
    refuse(repository, "digest-mismatch")


def test_a_tag_that_moves_between_the_manifest_and_its_blobs_changes_nothing(repository: FakeRepository) -> None:
    layer = repository.skill_layer()
    digest = repository.manifest(layer)
    blob = f"/v2/team/pdf/blobs/{layer['digest']}"
    served = repository.site.replies[blob]

    def move(_: Asked) -> Reply:
        repository.manifest(repository.layer(b"other", TAR, title="SKILL.md"))
        assert isinstance(served, Reply)
        return served

    repository.site.replies[blob] = move
    pulled = repository.pull()
    assert (f"sha256:{pulled.digest}", paths(pulled)) == (digest, ["pdf/SKILL.md"])


def answer_with(blob: Callable[[socket.socket], None], layer: dict[str, Any]) -> RawSite:
    """A registry whose one blob is what a function sends."""
    manifest = json.dumps(whole(layers=[layer])).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {MANIFEST}\r\nContent-Length: {len(manifest)}\r\n\r\n".encode()

    def answer(connection: socket.socket, request: bytes) -> None:
        if b"/manifests/" in request:
            connection.sendall(head + manifest)
        elif b"/blobs/" in request:
            blob(connection)

    return RawSite(answer)


def send_endlessly(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        connection.sendall(b"400\r\n" + b"x" * 1024 + b"\r\n")


def test_an_endless_blob_ends_at_the_size_in_the_manifest(repository: FakeRepository) -> None:
    with answer_with(send_endlessly, row(size=5000)) as raw:
        repository.address = f"{raw.url.replace('http', 'oci')}/team/pdf"
        assert "more than the 5000 bytes" in refuse(repository, "digest-mismatch")


def test_a_registry_that_is_too_slow_is_left(repository: FakeRepository) -> None:
    def stall(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n")
        raw.over.wait(20)

    with answer_with(stall, row(size=5000)) as raw:
        repository.address = f"{raw.url.replace('http', 'oci')}/team/pdf"
        refuse(repository, "fetch-timeout", limits=QUICK)


def test_a_blob_on_another_host_is_fetched_without_the_login(
    repository: FakeRepository, site: Site, tmp_path: Path
) -> None:
    write_login(tmp_path, site)
    repository.manifest(row())
    with Site() as store:
        target = store.put("/bucket/blob?signature=x", SKILL_TAR)
        site.put(f"/v2/team/pdf/blobs/{sha256(SKILL_TAR)}", b"", 307, Location=target)
        demand_basic(repository)
        assert paths(repository.pull()) == ["pdf/SKILL.md"]
        assert "authorization" in site.asked[-1].headers
        assert "authorization" not in store.asked[0].headers


@pytest.mark.parametrize("target", ["http://10.0.0.1/x", "http://169.254.169.254/x", "http://127.0.0.1:9/x"])
def test_a_blob_on_a_private_host_is_refused(
    repository: FakeRepository, site: Site, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    # A registry that is public: the proxy answers for it.
    monkeypatch.setenv("http_proxy", site.url)
    layer = repository.skill_layer()
    repository.manifest(layer)
    for path in list(site.replies):
        site.replies[f"http://registry.invalid{path}"] = site.replies[path]
    blob = f"http://registry.invalid/v2/team/pdf/blobs/{layer['digest']}"
    site.put(blob, b"", 307, Location=target)
    repository.address = "oci://registry.invalid/team/pdf"
    refuse(repository, "address-refused", allowed=UrlPolicy(http=True))
    assert site.paths[-1] == blob


# -- logins ------------------------------------------------------------------------------------------------------------


def write_login(tmp_path: Path, site: Site, **entry: object) -> None:
    folder = tmp_path / "docker"
    folder.mkdir(exist_ok=True)
    auth = entry or {"username": USER, "password": PASSWORD}
    (folder / "config.json").write_text(json.dumps({"auths": {f"127.0.0.1:{site.port}": auth}}))


def guard(repository: FakeRepository, challenge: str, expected: str) -> None:
    """Refuse every request for the repository without the expected authorization."""
    for path, reply in list(repository.site.replies.items()):
        if isinstance(reply, Reply) and path.startswith("/v2/"):

            def answer(asked: Asked, reply: Reply = reply) -> Reply:
                if asked.headers.get("authorization") == expected:
                    return reply
                return Reply(b"", 401, {"WWW-Authenticate": challenge})

            repository.site.replies[path] = answer


def demand_basic(repository: FakeRepository) -> None:
    guard(repository, 'Basic realm="x"', "Basic YW5uOmNvcnJlY3QgaG9yc2U=")


def demand_token(repository: FakeRepository, realm: str) -> None:
    guard(repository, f'Bearer realm="{realm}",service="reg",scope="repository:team/pdf:pull"', "Bearer T0ken")


def test_a_login_with_a_password_is_sent_when_the_registry_asks(
    repository: FakeRepository, site: Site, tmp_path: Path
) -> None:
    repository.manifest(repository.skill_layer())
    demand_basic(repository)
    assert "docker/config.json" in refuse(repository, "registry-login")
    write_login(tmp_path, site, auth="YW5uOndyb25n")
    message = refuse(repository, "registry-login")
    assert "wrong" not in message
    assert "YW5" not in message
    write_login(tmp_path, site)
    site.asked.clear()
    assert paths(repository.pull()) == ["pdf/SKILL.md"]
    assert ["authorization" in asked.headers for asked in site.asked] == [False, True, True]


def test_a_token_is_bought_from_the_token_server(repository: FakeRepository, site: Site, tmp_path: Path) -> None:
    repository.manifest(repository.skill_layer())
    query = "scope=repository%3Ateam%2Fpdf%3Apull&service=reg"
    with Site() as tokens:
        demand_token(repository, f"{tokens.url}/token")
        tokens.put(f"/token?{query}", b'{"token": "T0ken"}')
        assert paths(repository.pull()) == ["pdf/SKILL.md"]  # for a visitor too
        assert "authorization" not in tokens.asked[-1].headers
        write_login(tmp_path, site)
        repository.pull("1")
        assert tokens.asked[-1].headers["authorization"].startswith("Basic ")
        write_login(tmp_path, site, identitytoken="1dentity")
        tokens.put("POST /token", b'{"access_token": "T0ken"}')
        repository.pull("1")
        assert b"refresh_token=1dentity" in tokens.asked[-1].body
        assert not [asked for asked in site.asked if "Basic" in asked.headers.get("authorization", "")]
        for body in (b"{}", b"x", b'{"token": "a\\r\\nb"}', b'{"token": 5}'):
            tokens.put("POST /token", body)
            refuse(repository, "registry-login")
        tokens.put("POST /token", b"", 400)
        assert "1dentity" not in refuse(repository, "registry-login")


def test_a_token_server_elsewhere_gets_no_login(repository: FakeRepository, site: Site, tmp_path: Path) -> None:
    write_login(tmp_path, site)
    repository.manifest(repository.skill_layer())
    for realm, code in [
        ("http://tokens.invalid/token", "plain-http"),
        ("file:///etc/passwd", "bad-address"),
        ("https://user:word@tokens.invalid/", "bad-address"),
        ("", "bad-address"),
    ]:
        demand_token(repository, realm)
        message = refuse(repository, code)
        assert PASSWORD not in message
        repository.manifest(repository.skill_layer())
    with Site() as tokens, Site() as thief:
        demand_token(repository, f"{tokens.url}/token")
        query = "scope=repository%3Ateam%2Fpdf%3Apull&service=reg"
        tokens.put(f"/token?{query}", b"", 302, Location=f"{thief.url}/")
        refuse(repository, "redirect-refused")
        assert thief.asked == []


def test_no_login_goes_over_plain_http_to_another_machine(
    repository: FakeRepository, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", site.url)
    folder = tmp_path / "docker"
    folder.mkdir()
    auths = {"registry.invalid": {"username": USER, "password": PASSWORD}}
    (folder / "config.json").write_text(json.dumps({"auths": auths}))
    site.put("http://registry.invalid/v2/team/pdf/manifests/1", b"", 401, WWW_Authenticate="Basic")
    repository.address = "oci://registry.invalid/team/pdf"
    assert "plain http" in refuse(repository, "registry-login", allowed=UrlPolicy(http=True))
    assert not [asked for asked in site.asked if "authorization" in asked.headers]


def test_a_registry_with_tls_gets_the_login_by_https(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, context = certificate(tmp_path, "127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    with Site(tls=context) as secure:
        repository = FakeRepository(secure, cache)
        write_login(tmp_path, secure)
        repository.manifest(repository.skill_layer())
        demand_basic(repository)
        assert paths(repository.pull(allowed=UrlPolicy(private=True))) == ["pdf/SKILL.md"]
        monkeypatch.delenv("SSL_CERT_FILE")
        refuse(repository, "fetch-failed", allowed=UrlPolicy(private=True))


def test_a_registry_without_tls_is_asked_only_where_that_is_allowed(repository: FakeRepository, site: Site) -> None:
    repository.manifest(repository.skill_layer())
    refuse(repository, "fetch-failed", allowed=UrlPolicy(private=True), limits=QUICK)
    assert site.asked == []
    refuse(repository, "address-refused", allowed=UrlPolicy(http=True))
    assert paths(repository.pull()) == ["pdf/SKILL.md"]


def test_logins_are_found_as_docker_writes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from prowess.fetch.oci.docker_config import DOCKER_HUB_KEY, find_login

    folder, programs = tmp_path / "docker", tmp_path / "programs"
    folder.mkdir()
    programs.mkdir()
    monkeypatch.setenv("DOCKER_CONFIG", str(folder))
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")

    def write(**config: object) -> None:
        (folder / "config.json").write_text(json.dumps(config))

    def helper(name: str, script: str) -> None:
        program = programs / f"docker-credential-{name}"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def find(key: str = "reg.example:5000") -> tuple[str, str] | None:
        found = find_login(key, prowess.Limits(max_helper_seconds=5))
        assert "secret" not in repr(found)
        return None if found is None else (found.user, found.secret)

    write(auths={"https://reg.example:5000/v1/": {"auth": "YW5uOnNlOmNyZXQ="}})
    assert find() == ("ann", "se:cret")
    assert find("reg.example") is None
    write(auths={DOCKER_HUB_KEY: {"auth": "YW5uOnNlOmNyZXQ="}})
    assert find(DOCKER_HUB_KEY) == ("ann", "se:cret")
    helper("one", 'read -r key; echo "{\\"Username\\": \\"$key\\", \\"Secret\\": \\"secret1\\"}"')
    helper("two", 'echo \'{"Username": "<token>", "Secret": "secret2"}\'')
    helper("none", "echo credentials not found in native keychain; exit 1")
    helper("bad", "echo secret3; exit 3")
    helper("odd", "echo '[\"secret4\"]'")
    write(credsStore="one", credHelpers={"reg.example:5000": "two"})
    assert find() == ("", "secret2")
    assert find("other.example") == ("other.example", "secret1")
    write(credsStore="none", auths={"reg.example:5000": {"auth": "YW5uOnNlOmNyZXQ="}})
    assert find() == ("ann", "se:cret")
    for name in ("bad", "odd", "absent", "../../bin/sh", 5):
        write(credsStore=name)
        with pytest.raises(prowess.FetchError) as caught:
            find()
        assert caught.value.code == "credential-helper"
        assert "secret" not in str(caught.value)
    for text in ("[]", "{", '{"auths": {"reg.example:5000": {"auth": "*"}}}'):
        (folder / "config.json").write_text(text)
        with pytest.raises(prowess.FetchError) as caught:
            find()
        assert caught.value.code == "bad-docker-config"
    # Secrets are mounted as links, and may be absent.
    (folder / "config.json").rename(folder / "mounted")
    (folder / "config.json").symlink_to("mounted")
    write(auths={"reg.example:5000": {"auth": "YW5uOnNlOmNyZXQ="}})
    assert find() == ("ann", "se:cret")
    (folder / "config.json").unlink()
    assert find() is None


@pytest.mark.parametrize(
    "address", ["oci://h", "oci://h/UPPER", "oci://u@h/x", "https://h/x", "oci://h/../x", "oci://h/x?y"]
)
def test_a_malformed_address_is_refused(address: str) -> None:
    with pytest.raises(prowess.FetchError) as caught:
        Registry(address, HERE, prowess.Limits())
    assert caught.value.code == "bad-address"

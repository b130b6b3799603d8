"""The cache: how long copies are fresh, that they are checked, and when they replace a server that is away."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.fetch.cache import Cache, CacheRecord, sha256_hex
from prowess.files.projects import default_cache_dir
from tests.fetch.packing import FILES, zipped
from tests.web_sites import NEW, OLD, Asked, Reply, Site, skill_md

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sources.conftest import Load

PDF = skill_md("pdf", body="First.\n")
LATER = skill_md("pdf", body="Second.\n")
FILE = f"{OLD}/pdf/SKILL.md"


def codes(catalog: prowess.Catalog) -> list[str]:
    return [issue.code for issue in catalog.issues]


def blob(cache: Path, content: bytes) -> Path:
    digest = sha256_hex(content)
    return cache / "sha256" / digest[:2] / digest[2:]


def publish(site: Site, content: bytes, **headers: str) -> None:
    site.old_index(site.old_entry("pdf", {"SKILL.md": content}))
    site.put(FILE, content, **headers)


# -- where and how -----------------------------------------------------------------------------------------------------


def test_copies_lie_under_their_hash_for_their_owner_alone(site: Site, load: Load, cache: Path) -> None:
    site.index(site.entry("pdf", PDF))
    load().load("pdf")
    assert blob(cache, PDF).read_bytes() == PDF
    found = [cache, *cache.rglob("*")]
    modes = {path.is_dir(): stat.S_IMODE(path.stat().st_mode) for path in found}
    assert modes == {True: 0o700, False: 0o600}
    names = [path.name for path in found if path.is_file()]
    assert len(names) == 4  # the bytes, the index, its record, and the mark of the last pruning
    assert not [name for name in names if "pdf" in name or name.startswith(".")]


def test_the_folder_is_the_users_unless_the_environment_names_one(tmp_path: Path) -> None:
    assert default_cache_dir({"PROWESS_CACHE_DIR": str(tmp_path / "x")}) == str(tmp_path / "x")
    assert default_cache_dir({}).replace(os.sep, "/").endswith("prowess/skills")


def test_the_environment_names_the_folder(
    site: Site, load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(tmp_path / "named"))
    site.index(site.entry("pdf", PDF))
    load(cache_dir=None).load("pdf")
    assert blob(tmp_path / "named", PDF).is_file()


@pytest.mark.parametrize("kind", ["writable by all", "writable by a group", "a file", "below a file"])
def test_without_a_usable_folder_everything_is_fetched_each_time(
    site: Site, load: Load, cache: Path, kind: str
) -> None:
    if kind.startswith("writable"):
        cache.mkdir()
        cache.chmod(0o777 if kind == "writable by all" else 0o770)
    else:
        cache.write_text("x", encoding="utf-8")
        cache = cache / "x" if kind == "below a file" else cache
    site.index(site.entry("pdf", PDF))
    catalog = load(cache_dir=cache)
    assert codes(catalog) == ["cache-unusable"]
    for _ in range(2):
        assert catalog.load("pdf").instructions == "First."
    assert site.paths.count(f"{NEW}/pdf/SKILL.md") == 2
    assert not [path for path in cache.rglob("*") if path.is_file()]


# -- checked -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["skill-md", "archive"])
def test_a_copy_that_is_not_what_it_was_is_fetched_again(site: Site, load: Load, cache: Path, kind: str) -> None:
    content = PDF if kind == "skill-md" else zipped(FILES | {"SKILL.md": PDF})
    site.index(site.entry("pdf", content, kind))
    catalog = load()
    catalog.load("pdf")
    blob(cache, content).write_bytes(content.replace(b"First", b"Evil!"))
    assert catalog.load("pdf").instructions == "First."
    assert blob(cache, content).read_bytes() == content
    blob(cache, content).write_bytes(b"")
    site.stop()
    with pytest.raises(prowess.FetchError) as caught:
        catalog.load("pdf")
    assert caught.value.code == "fetch-failed"


def test_a_listed_file_is_checked_against_the_hash_of_what_came_first(site: Site, load: Load, cache: Path) -> None:
    publish(site, PDF)
    catalog = load()
    catalog.load("pdf")
    blob(cache, PDF).write_bytes(b"---\nname: pdf\ndescription: d\n---\nEvil.\n")
    assert catalog.load("pdf").instructions == "First."
    blob(cache, PDF).unlink()
    site.stop()
    with pytest.raises(prowess.FetchError):
        catalog.load("pdf")


@pytest.mark.parametrize(
    "content",
    [b"", b"null", b"[]", b"{}", b"[" * 5000, b"\xff", b'{"url": 1}', b"{" + b'"a":{' * 2000],
)
def test_a_damaged_record_is_ignored(tmp_path: Path, content: bytes) -> None:
    cache = Cache(tmp_path)
    kept = CacheRecord("https://h/x", "https://h/x", sha256_hex(PDF), 3, 1.0, 2.0)
    cache.write_record(kept)
    assert cache.read_record("https://h/x") == kept
    (path,) = (tmp_path / "urls").iterdir()
    path.write_bytes(content)
    assert cache.read_record("https://h/x") is None


@pytest.mark.parametrize(
    "change",
    [{"url": "https://h/other"}, {"digest": "../../../etc/passwd"}, {"digest": "A" * 64}, {"size": "3"},
     {"stored_at": None}, {"fresh_until": True}, {"etag": "a\r\nX: y"}, {"more": 1}],
)  # fmt: skip
def test_a_record_with_a_wrong_field_is_ignored(tmp_path: Path, change: dict[str, object]) -> None:
    cache = Cache(tmp_path)
    cache.write_record(CacheRecord("https://h/x", "https://h/x", sha256_hex(PDF), 3, 1.0, 2.0))
    (path,) = (tmp_path / "urls").iterdir()
    path.write_text(json.dumps(json.loads(path.read_bytes()) | change), encoding="utf-8")
    assert cache.read_record("https://h/x") is None


def test_a_clock_that_was_turned_back_makes_nothing_fresh() -> None:
    limits = prowess.Limits()
    kept = CacheRecord("u", "u", sha256_hex(PDF), 3, 1000.0, 1100.0)
    fresh = [kept.is_fresh(now, limits) for now in (999.9, 1000.0, 1099.9, 1100.0, 1e9)]
    assert fresh == [False, True, True, False, False]
    assert not CacheRecord("u", "u", sha256_hex(PDF), 3, 0.0, 1e12).is_fresh(limits.max_cache_seconds, limits)


# -- how long ----------------------------------------------------------------------------------------------------------

FRESH = [
    "",
    "max-age=60",
    "public, max-age=60",
    "Max-Age=60",
    'max-age="60"',
    "max-age=x",
    "max-age=-1",
    "max-age=99999999999999",
]
STALE = ["max-age=0", "no-cache", "max-age=60, no-cache", "no-cache=x, max-age=60", "no-store", "max-age=60, no-store"]


@pytest.mark.parametrize("header", FRESH)
def test_a_fresh_file_is_not_asked_for_again(site: Site, load: Load, header: str) -> None:
    publish(site, PDF, Cache_Control=header)
    for _ in range(2):
        load().load("pdf")
    assert site.paths.count(FILE) == 1


@pytest.mark.parametrize("header", STALE)
def test_a_file_that_is_not_fresh_is_asked_for_again(site: Site, load: Load, header: str) -> None:
    publish(site, PDF, Cache_Control=header)
    load().load("pdf")
    site.put(FILE, LATER)
    assert load().load("pdf").instructions == "Second."


def test_a_file_is_fresh_for_the_default_time_when_the_server_sets_none(site: Site, load: Load) -> None:
    publish(site, PDF)
    load(limits=prowess.Limits(default_cache_seconds=0)).load("pdf")
    load(limits=prowess.Limits(default_cache_seconds=0)).load("pdf")
    assert site.paths.count(FILE) == 2


def test_the_server_sets_how_long_a_file_is_fresh_up_to_a_limit(site: Site, load: Load) -> None:
    publish(site, PDF, Cache_Control="max-age=600")
    for _ in range(2):
        load(limits=prowess.Limits(max_cache_seconds=0)).load("pdf")
    assert site.paths.count(FILE) == 2


@pytest.mark.parametrize("secret", ["no-store", "private, no-store"])
def test_an_answer_with_no_store_is_not_kept(site: Site, load: Load, cache: Path, secret: str) -> None:
    site.index(site.entry("pdf", PDF), Cache_Control=secret)
    site.put(f"{NEW}/pdf/SKILL.md", PDF, Cache_Control=secret)
    load().load("pdf")
    del site.replies[f"{NEW}/index.json"]
    site.old_index(site.old_entry("pdf", {"SKILL.md": LATER}), Cache_Control=secret)
    site.put(FILE, LATER, Cache_Control=secret)
    assert load().load("pdf").instructions == "Second."
    assert [path for path in cache.rglob("*") if path.is_file()] == []


def test_an_index_is_asked_for_each_time_unless_the_server_says_how_long_it_counts(site: Site, load: Load) -> None:
    site.index(site.entry("pdf", PDF))
    load()
    load()
    assert len(site.paths) == 2
    site.index(site.entry("pdf", PDF), Cache_Control="max-age=60")
    load()
    load()
    assert len(site.paths) == 3


@pytest.mark.parametrize(("given", "asked"), [("ETag", "if-none-match"), ("Last-Modified", "if-modified-since")])
def test_an_index_that_has_not_changed_is_not_sent_again(site: Site, load: Load, given: str, asked: str) -> None:
    site.index(site.entry("pdf", PDF))
    whole = site.replies[f"{NEW}/index.json"]
    assert isinstance(whole, Reply)

    def answer(request: Asked) -> Reply:
        if request.headers.get(asked) == '"one"':
            return Reply(status=304, headers={"Cache-Control": "max-age=60"})
        return Reply(whole.body, headers={given: '"one"'})

    site.replies[f"{NEW}/index.json"] = answer
    for _ in range(3):
        assert load().names == ("pdf",)
    assert [asked in request.headers for request in site.asked] == [False, True]


def test_pinned_bytes_count_as_long_as_the_index_names_them(site: Site, load: Load) -> None:
    site.index(site.entry("pdf", PDF))
    site.put(f"{NEW}/pdf/SKILL.md", PDF, Cache_Control="max-age=0")
    for _ in range(3):
        load().load("pdf")
    assert site.paths.count(f"{NEW}/pdf/SKILL.md") == 1
    site.index(site.entry("pdf", LATER))
    assert load().load("pdf").instructions == "Second."


# -- standing in -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["stopped", "busy"])
@pytest.mark.parametrize("kind", ["new", "old"])
def test_while_the_server_is_away_its_last_index_counts_with_an_issue(
    site: Site, load: Load, kind: str, how: str
) -> None:
    if kind == "new":
        site.index(site.entry("pdf", PDF))
    else:
        publish(site, PDF)
    load().load("pdf")
    if how == "stopped":
        site.stop()
    else:
        for path in site.replies:
            site.put(path, b"busy", 503)
        site.put(f"{NEW}/index.json", b"busy", 503)
    catalog = load()
    assert catalog.names == ("pdf",)
    assert codes(catalog) == ["stale-index"]
    assert catalog.issues[0].severity == "warning"
    assert catalog.load("pdf").instructions == "First."


def test_while_the_server_is_away_an_old_file_counts_with_an_issue(site: Site, load: Load) -> None:
    publish(site, PDF, Cache_Control="max-age=0")
    skill = load()["pdf"]
    assert skill.load().skill.issues == ()
    site.stop()
    loaded = skill.load()
    assert loaded.instructions == "First."
    assert [(issue.code, issue.field) for issue in loaded.skill.issues] == [("stale-file", "SKILL.md")]


def test_no_old_copy_is_used_when_the_server_refuses_the_request(site: Site, load: Load) -> None:
    site.index(site.entry("pdf", PDF))
    load()
    site.put(f"{NEW}/index.json", b"no", 403)
    assert codes(load()) == ["http-status"]
    site.put(f"{NEW}/index.json", b"{", 200)
    assert codes(load()) == ["bad-index"]


def test_an_index_that_is_gone_is_forgotten(site: Site, load: Load) -> None:
    site.index(site.entry("pdf", PDF))
    load()
    del site.replies[f"{NEW}/index.json"]
    assert codes(load()) == ["no-index"]
    site.stop()
    assert codes(load()) == ["fetch-failed"]


def test_a_partial_answer_replaces_no_copy(site: Site, load: Load) -> None:
    publish(site, PDF, Cache_Control="max-age=0")
    catalog = load()
    catalog.load("pdf")
    site.put(FILE, LATER, Content_Length=str(len(LATER) + 10))
    assert catalog.load("pdf").instructions == "First."
    site.put(FILE, b"x" * 2000)
    limits = prowess.Limits(max_download_bytes=1000)
    with pytest.raises(prowess.FetchError) as caught:
        load(limits=limits).load("pdf")
    assert caught.value.code == "download-too-large"


def test_two_sites_share_the_bytes_and_not_the_records(site: Site, load: Load) -> None:
    publish(site, PDF)
    load().load("pdf")
    with Site() as other:
        publish(other, LATER)
        assert load(other.url).load("pdf").instructions == "Second."
    assert load().load("pdf").instructions == "First."

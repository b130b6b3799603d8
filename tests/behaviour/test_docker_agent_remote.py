"""How docker-agent (S2) loads skills from a web site: the older index, prefetching, paths, limits and the cache."""

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import prowess
from tests.web_sites import NEW, OLD, RawSite, Site, skill_md

Load = Callable[..., prowess.Catalog]
PDF = skill_md("pdf", body="First.\n")
FILE = f"{OLD}/pdf/SKILL.md"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    with Site() as running:
        yield running


@pytest.fixture
def load(site: Site, tmp_path: Path) -> Load:
    def loaded(base: str = "", **options: Any) -> prowess.Catalog:
        usual: dict[str, Any] = {"allow_http": True, "allow_private": True, "cache_dir": tmp_path / "cache"}
        return prowess.Source.url(base or site.url, **(usual | options)).load()

    return loaded


def codes(catalog: prowess.Catalog) -> list[str]:
    return [issue.code for issue in catalog.issues]


def test_slashes_after_the_address_do_not_matter(site: Site, load: Load) -> None:
    """S2-16: the index lies at the same place below the address with and without them."""
    site.old_index(site.old_entry("pdf", {"SKILL.md": PDF}))
    for end in ("", "/", "///"):
        assert load(site.url + end).names == ("pdf",)
    assert set(site.paths) == {f"{NEW}/index.json", f"{OLD}/index.json"}


def test_the_newer_index_is_asked_for_first(site: Site, load: Load) -> None:
    """S2-16: a site may have both, and the one with digests is read."""
    site.index(site.entry("new", skill_md("new")))
    site.old_index(site.old_entry("pdf", {"SKILL.md": PDF}))
    assert load().names == ("new",)


def test_an_entry_without_name_or_description_is_left_out_with_an_issue(site: Site, load: Load) -> None:
    """S2-16: the others stay."""
    entry = site.old_entry("pdf", {"SKILL.md": PDF})
    site.old_index(entry | {"name": ""}, entry | {"description": ""}, {"files": ["SKILL.md"]}, entry)
    catalog = load()
    assert catalog.names == ("pdf",)
    assert codes(catalog) == ["bad-entry"] * 3


def test_an_entry_without_a_file_of_instructions_is_left_out_with_an_issue(site: Site, load: Load) -> None:
    """S2-16: that system lists it, and each call for it fails."""
    entry = site.old_entry("pdf", {"SKILL.md": PDF})
    unlisted = {"name": "csv", "description": "Reads tables."}
    site.old_index(unlisted, unlisted | {"files": None}, unlisted | {"files": ["references/a.md"]}, entry)
    catalog = load()
    assert catalog.names == ("pdf",)
    assert sorted(codes(catalog)) == ["bad-entry", "bad-entry", "missing-skill-md"]


@pytest.mark.parametrize(
    ("body", "status", "code"), [(b"{", 200, "bad-index"), (b"", 500, "server-busy"), (b"", 404, "no-index")]
)
def test_whatever_fails_gives_no_skills_and_an_issue(
    site: Site, load: Load, body: bytes, status: int, code: str
) -> None:
    """S2-16: what is not JSON, a failing server, no index: nothing is raised; the catalogue says why it is empty."""
    site.put(f"{OLD}/index.json", body, status)
    catalog = load()
    assert len(catalog) == 0
    assert codes(catalog) == [code]


def test_files_are_fetched_when_they_are_needed(site: Site, load: Load) -> None:
    """S2-17: loading the source asks for the index alone."""
    site.old_index(site.old_entry("pdf", {"SKILL.md": PDF}))
    catalog = load()
    assert FILE not in site.paths
    catalog.load("pdf")
    assert site.paths.count(FILE) == 1


def test_files_may_be_fetched_in_advance(site: Site, load: Load) -> None:
    """S2-17: with prefetch=True; one that fails is an issue, and its skill is still listed."""
    site.old_index(site.old_entry("pdf", {"SKILL.md": PDF, "a.md": b"a"}), site.old_entry("gone", {"SKILL.md": PDF}))
    del site.replies[f"{OLD}/gone/SKILL.md"]
    catalog = load(prefetch=True)
    assert catalog.names == ("gone", "pdf")
    assert codes(catalog) == ["http-status"]
    asked = len(site.paths)
    assert catalog.read_resource("pdf", "a.md") == "a"
    assert catalog.load("pdf").instructions == "First."
    assert len(site.paths) == asked


@pytest.mark.parametrize("header", ["no-cache", "no-store", "max-age=60"])
def test_a_file_that_is_fetched_in_advance_is_asked_for_once(site: Site, load: Load, header: str) -> None:
    """S2-17: the source reads the fields of the SKILL.md from what it fetched."""
    site.old_index(site.old_entry("pdf", {"SKILL.md": skill_md("pdf", fields="license: MIT\n"), "a.md": b"a"}))
    site.put(FILE, skill_md("pdf", fields="license: MIT\n"), Cache_Control=header)
    catalog = load(prefetch=True)
    assert (catalog["pdf"].license, site.paths.count(FILE)) == ("MIT", 1)


@pytest.mark.parametrize("prefetch", [True, False])
def test_a_file_of_an_index_needs_no_frontmatter(site: Site, load: Load, *, prefetch: bool) -> None:
    """S2-17: the index gives the fields, so the whole file is instructions, with an issue."""
    text = b"# Forms\n\nFill forms.\n"
    site.old_index(site.old_entry("pdf", {"SKILL.md": text}))
    catalog = load(prefetch=prefetch)
    session = prowess.Session(catalog)
    toolset = prowess.Toolset(session, "read_skill", fork="host")
    assert toolset.call("read_skill", {"name": "pdf"}).content == text.decode()
    assert session.read_text("pdf", whole=True) == session.read_text("pdf") == text.decode()
    assert "not configured for forked execution" in toolset.prepare_fork("pdf", "x").content
    loaded = catalog.load("pdf")
    assert (loaded.instructions, loaded.skill.description) == (text.decode().strip(), catalog["pdf"].description)
    assert [(issue.code, issue.severity) for issue in loaded.skill.issues] == [("no-frontmatter", "warning")]


@pytest.mark.parametrize("path", ["", "/a.md", "../a.md", "a/../b.md", "a\\b.md", "a?b", "a#b", "a\x01b"])
def test_a_path_that_is_not_valid_refuses_the_skill(site: Site, load: Load, path: str) -> None:
    """S2-18: the file is not asked for, and the skill is not listed with a file that it does not have."""
    site.old_index(site.old_entry("pdf", {"SKILL.md": PDF}) | {"files": ["SKILL.md", path]})
    catalog = load(prefetch=True)
    assert len(catalog) == 0
    assert codes(catalog)[0] in {"path-escape", "bad-path"}
    assert FILE not in site.paths


@pytest.mark.parametrize(("path", "asked"), [("a..b.md", "a..b.md"), ("[a].md", "%5Ba%5D.md"), ("é.md", "%C3%A9.md")])
def test_a_path_that_is_harmless_is_encoded(site: Site, load: Load, path: str, asked: str) -> None:
    """S2-18: two dots within a name, brackets and letters of any script name files."""
    site.old_index(site.old_entry("pdf", {"SKILL.md": PDF}) | {"files": ["SKILL.md", path]})
    site.put(f"{OLD}/pdf/{asked}", b"there")
    assert load().read_resource("pdf", path) == "there"


@pytest.mark.parametrize("name", ["../x", "a/b", "a\\b", "x" * 257, ".."])
def test_a_remote_name_is_checked_like_a_local_one(site: Site, load: Load, name: str) -> None:
    """S2-18: what could not name a folder names no remote skill."""
    site.old_index(site.old_entry("pdf", {"SKILL.md": PDF}) | {"name": name})
    assert (load().names, codes(load())) == ((), ["bad-name"])


def test_too_much_is_an_error_and_never_cut(site: Site, load: Load) -> None:
    """S2-19: an index and a file over their limits."""
    site.old_index(site.old_entry("pdf", {"SKILL.md": PDF}))
    assert codes(load(limits=prowess.Limits(max_index_bytes=20))) == ["download-too-large"]
    with pytest.raises(prowess.FetchError) as caught:
        load(limits=prowess.Limits(max_download_bytes=20)).load("pdf")
    assert caught.value.code == "download-too-large"


def test_a_machine_that_is_not_public_is_refused(site: Site, load: Load) -> None:
    """S2-19: loopback, unless it is allowed by name."""
    assert codes(load(allow_private=False)) == ["address-refused"]
    assert site.paths == []


def silence(connection: socket.socket, _: bytes) -> None:
    """Until the client hangs up."""
    connection.recv(1)


def test_the_time_to_wait_is_a_limit(load: Load) -> None:
    """S2-19: half a minute of silence by default, or what the caller says."""
    assert prowess.Limits().fetch_idle_seconds == 30
    with RawSite(silence) as silent:
        assert codes(load(silent.url, limits=prowess.Limits(fetch_idle_seconds=0.2))) == ["fetch-timeout"]


def test_an_index_is_asked_for_again_and_a_fresh_file_is_not(site: Site, load: Load, tmp_path: Path) -> None:
    """S2-20: copies lie under the hash of their bytes, not under names that a site chose."""
    site.old_index(site.old_entry("pdf", {"SKILL.md": PDF}))
    for _ in range(2):
        load().load("pdf")
    assert site.paths.count(f"{OLD}/index.json") == 2
    assert site.paths.count(FILE) == 1
    kept = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert PDF in [path.read_bytes() for path in kept]
    assert not [path for path in kept if "pdf" in path.name or "SKILL" in path.name]


@pytest.mark.parametrize(
    ("header", "asked"),
    [("max-age=60", 1), ("max-age=0", 2), ("no-cache", 2), ("max-age=60, no-cache", 2), ("no-store", 2),
     ("", 1), ("public", 1), ("max-age=x", 1), ("max-age=-5", 1)],
)  # fmt: skip
def test_a_file_is_fresh_as_long_as_the_server_says_or_for_an_hour(
    site: Site, load: Load, header: str, asked: int
) -> None:
    """S2-21: max-age counts, no-cache and no-store win over it, and what says nothing is an hour."""
    site.old_index(site.old_entry("pdf", {"SKILL.md": PDF}))
    site.put(FILE, PDF, Cache_Control=header)
    for _ in range(2):
        load().load("pdf")
    assert site.paths.count(FILE) == asked
    assert prowess.Limits().default_cache_seconds == 3600


def test_what_must_not_be_stored_is_not(site: Site, load: Load, tmp_path: Path) -> None:
    """S2-21: no-store leaves no copy."""
    site.old_index(site.old_entry("pdf", {"SKILL.md": PDF}))
    site.put(FILE, PDF, Cache_Control="no-store")
    load().load("pdf")
    assert PDF not in [path.read_bytes() for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_an_expired_copy_stands_in_for_a_server_that_is_away(site: Site, load: Load) -> None:
    """S2-22: with an issue that says so."""
    site.old_index(site.old_entry("pdf", {"SKILL.md": PDF}))
    site.put(FILE, PDF, Cache_Control="max-age=0")
    load().load("pdf")
    site.stop()
    catalog = load()
    assert codes(catalog) == ["stale-index"]
    loaded = catalog.load("pdf")
    assert loaded.instructions == "First."
    assert [issue.code for issue in loaded.skill.issues] == ["stale-file"]


def test_a_remote_skill_can_fork_and_wish_for_a_model(site: Site, load: Load) -> None:
    """S2-22: its frontmatter is parsed when it is fetched, and counts from then on."""
    fields = "context: fork\nmodel: large\nallowed-tools: Read\n"
    site.old_index(site.old_entry("pdf", {"SKILL.md": skill_md("pdf", fields=fields)}))
    loaded = load().load("pdf").skill
    assert (loaded.is_fork, loaded.model, loaded.allowed_tools) == (True, "large", ("Read",))
    assert load()["pdf"].is_fork, "the copy that is here tells at once"


def test_commands_in_remote_instructions_never_run(site: Site, load: Load, tmp_path: Path) -> None:
    """S2-22: they are text, whatever the frontmatter asks for."""
    target = tmp_path / "pwned"
    site.old_index(site.old_entry("pdf", {"SKILL.md": skill_md("pdf", body=f"!`touch {target}`\n")}))
    session = prowess.Session(load())
    assert session.activate("pdf").instructions == f"!`touch {target}`"
    assert f"!`touch {target}`" in session.expand("/pdf go")
    assert not target.exists()

"""Skills of sites and MCP servers: only what was listed is searched, until their instructions are fetched for use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.skills.explanation import Place
from prowess.skills.search_library import CatalogLibrary
from tests import mcp_peers
from tests.source_fixtures import load
from tests.web_sites import skill_md

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.mcp_peers import Plan
    from tests.web_sites import Site

    Load = Callable[..., prowess.Catalog]

__all__ = ["load"]


def find(catalog: prowess.Catalog, query: str) -> list[str]:
    return [hit.name for hit in catalog.search(query, semantic=False)]


def read_index(cache: Path) -> bytes:
    return b"".join(path.read_bytes() for path in (cache / "search").glob("*.db"))


# -- sites -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def published(site: Site, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A site with two skills, whose instructions have words that the index of the site has not."""
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(cache))  # which the fixture of the site has unset
    site.index(
        site.entry("pdf", skill_md("pdf", "Fills forms.", "Take a xylophone.\n"), description="Fills forms."),
        site.entry("csv", skill_md("csv", "Reads tables.", "Take a marimba.\n"), description="Reads tables."),
    )
    return site


def test_of_a_site_only_what_its_index_says_is_searched(published: Site, load: Load) -> None:
    catalog = load()
    asked = len(published.asked)
    assert find(catalog, "forms") == ["pdf"]
    assert find(catalog, "xylophone") == []
    assert len(published.asked) == asked


def test_instructions_of_a_site_are_searched_once_they_were_fetched(published: Site, load: Load) -> None:
    catalog = load()
    assert find(catalog, "xylophone") == []
    catalog.load("pdf")
    asked = len(published.asked)
    assert find(catalog, "xylophone") == ["pdf"]
    assert find(catalog, "marimba") == []
    assert find(load(), "xylophone marimba") == ["pdf"]
    assert [request for request in published.asked[asked:] if "SKILL.md" in request.path] == []


def test_a_skill_that_a_site_no_longer_publishes_is_not_found(published: Site, load: Load) -> None:
    assert find(load(), "forms tables") == ["csv", "pdf"]
    published.index(published.entry("csv", skill_md("csv", "Reads lists."), description="Reads lists."))
    again = load(allow_rollback=True, cache_dir=None)
    assert find(again, "forms tables lists") == ["csv"]
    assert find(again, "tables") == []


@pytest.mark.parametrize(
    ("place", "key", "is_gone"),
    [
        ("https://skills.example", b"https://skills.example/pdf/SKILL.md", True),
        ("https://skills.example", b"https://skills.example.org/pdf/SKILL.md", False),
        ("https://skills.example", b"https://skills.example:8080/pdf/SKILL.md", False),
        ("mcp:docs", b"mcp:docs:skill://pdf/SKILL.md", True),
        ("mcp:docs", b"mcp:docs-old:skill://pdf/SKILL.md", False),
    ],
)
def test_a_listing_says_nothing_about_a_place_whose_name_only_begins_alike(
    place: str, key: bytes, *, is_gone: bool
) -> None:
    assert CatalogLibrary({}, [Place(place, found=1)]).is_gone(key) is is_gone


# -- MCP servers -------------------------------------------------------------------------------------------------------


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """A server with two skills, whose instructions have words that its listing has not."""
    plan = mcp_peers.Plan(tmp_path)
    for name, description, word in (("pdf", "Fills forms.", "xylophone"), ("csv", "Reads tables.", "marimba")):
        body = mcp_peers.skill_md(name, description, f"Take a {word}.\n")
        plan.add(name, {"SKILL.md": body}, description=description)
    return plan


def test_of_an_mcp_server_only_what_it_listed_is_searched_until_a_skill_is_loaded(plan: Plan, cache: Path) -> None:
    with prowess.Source.mcp("docs", command=plan.command()) as source:
        catalog = source.load()
        assert find(catalog, "forms") == ["docs:pdf"]
        assert find(catalog, "xylophone") == []
        assert [uri for method, uri in plan.asked() if method == "resources/read"] == []
        catalog.load("docs:pdf")
        reads = len(plan.asked())
        assert find(catalog, "xylophone marimba") == ["docs:pdf"]
        assert sorted(find(catalog, "fills forms reads tables")) == ["docs:csv", "docs:pdf"]
        assert len(plan.asked()) == reads
        # What was listed may be kept; files of a server stay in memory.
        assert b"forms" in read_index(cache)
        assert b"xylophone" not in read_index(cache)
        assert find(source.load(), "forms tables") == ["docs:csv", "docs:pdf"]


def test_skills_of_servers_and_folders_are_searched_together(
    plan: Plan, write: Callable[..., Path], tmp_path: Path
) -> None:
    write("maps", "Draws maps.", "Take a compass.\n")
    with prowess.Source.mcp("docs", command=plan.command()) as source:
        catalog = prowess.Catalog.from_sources([prowess.Source.directory(tmp_path / "skills"), source])
        assert find(catalog, "compass") == ["maps"]
        assert sorted(find(catalog, "maps tables")) == ["docs:csv", "maps"]

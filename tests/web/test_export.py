"""The console as a static site."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

import prowess
from prowess.errors import SourceError
from prowess.web.export import MARKER_FILE, export_site
from prowess.web.library import Library
from tests.web.browser import Page

if TYPE_CHECKING:
    from collections.abc import Callable

    Put = Callable[..., Path]

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


@pytest.fixture
def site(put: Put, tmp_path: Path) -> Path:
    """An exported site of three skills, one of which has files, and one of which does not load."""
    folder = put("skills/pdf", body="See [more](references/more.md) and ![a picture](a.png).\n")
    (folder / "references").mkdir()
    (folder / "references" / "more.md").write_text("More.\n", encoding="utf-8")
    (folder / "a.png").write_bytes(PNG)
    put("skills/csv")
    put("skills/bad", "name: [\n")
    assert export_site(Library(prowess.scan(tmp_path / "skills")), tmp_path / "public" / "site") > 10
    return tmp_path / "public" / "site"


def test_every_link_of_every_page_leads_to_a_file_of_the_site(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    followed = 0
    for page in pages:
        for element in Page(page.read_text(encoding="utf-8")).elements:
            target = element.attributes.get("href", element.attributes.get("src", "#"))
            if not target.startswith("#"):
                followed += 1
                assert (page.parent / unquote(target)).resolve().is_file(), (page, target)
                assert site in (page.parent / target).resolve().parents
    assert followed > 50


def test_every_page_can_be_reached_from_the_first_one(site: Path) -> None:
    seen, waiting = set[Path](), [site / "index.html"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".html":
            continue
        seen.add(page)
        links = Page(page.read_text(encoding="utf-8")).find("a")
        waiting += [
            (page.parent / e.attributes["href"].partition("#")[0]).resolve()
            for e in links
            if not e.attributes["href"].startswith("#")
        ]
    assert seen == {path.resolve() for path in site.rglob("*.html")}


def test_the_site_has_no_scripts_no_forms_and_a_policy(site: Path) -> None:
    for path in site.rglob("*.html"):
        page = Page(path.read_text(encoding="utf-8"))
        assert not page.find("script")
        assert not page.find("form")
        (policy,) = page.find("meta", http_equiv="Content-Security-Policy")
        assert policy.attributes["content"].startswith("default-src 'none'")


def test_pages_of_files_and_images_are_there(site: Path) -> None:
    texts = [path.read_text(encoding="utf-8") for path in (site / "skills" / "pdf.files").glob("*.html")]
    assert any("More." in text for text in texts)
    assert [path.read_bytes() for path in (site / "skills" / "pdf.files").glob("*.image")] == [PNG]


def test_an_earlier_export_is_replaced_as_a_whole(site: Path, tmp_path: Path) -> None:
    (site / "skills" / "gone.html").write_text("x", encoding="utf-8")
    export_site(Library(prowess.scan(tmp_path / "skills")), site)
    assert not (site / "skills" / "gone.html").exists()
    assert (site / "index.html").exists()
    assert [path.name for path in site.parent.iterdir()] == ["site"]


def test_a_folder_with_anything_else_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x", encoding="utf-8")
    (tmp_path / "file").write_text("x", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    for target in ("mine", "file", "link"):
        with pytest.raises(SourceError) as error:
            export_site(Library(prowess.Catalog()), tmp_path / target)
        assert error.value.code == "already-there"
    assert (tmp_path / "mine" / "thesis.txt").read_text(encoding="utf-8") == "x"


def test_an_empty_folder_is_used_and_everybody_may_read_the_site(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    export_site(Library(prowess.Catalog()), tmp_path / "site")
    assert (tmp_path / "site" / MARKER_FILE).exists()
    assert (tmp_path / "site").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "site" / "index.html").stat().st_mode & 0o777 == 0o644

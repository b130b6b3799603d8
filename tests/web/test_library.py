"""The page "Library", without a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.web.library import Library
from prowess.web.pages.library import FILTERS, PAGE_SIZE, SEARCH_PAGE_SIZE, LibraryQuery, make_library_view
from prowess.web.skill_rows import make_skill_id

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.web.browser import Browser

    Put = Callable[..., Path]


def names(view_or_page: object) -> list[str]:
    return [row.name for row in view_or_page.rows]  # type: ignore[attr-defined]  # a view


def test_the_page_names_every_skill_with_its_description_and_its_cost(put: Put, browse: Callable[[], Browser]) -> None:
    put("skills/pdf", "name: pdf\ndescription: Reads forms.\n")
    put("skills/csv", "name: csv\ndescription: Sums columns.\n")
    page = browse().get("/").page
    rows = page.text_of("tr")[1:]
    assert [row.split()[0] for row in rows] == ["csv", "pdf"]
    assert "Reads forms." in rows[1]
    assert "2 skills" in page.text_of("h1")[0]
    assert "tokens" in page.text_of("h2", id="cost-title")[0]


def test_the_total_of_the_page_is_the_sum_of_its_rows(put: Put, library: Callable[[], Library]) -> None:
    for name in ("a", "b", "c"):
        put(f"skills/{name}")
    view = make_library_view(library(), {})
    assert view.cost == sum(row.tokens or 0 for row in view.rows)
    assert sum(part.tokens for part in view.cost_parts) == view.cost
    assert view.cost_parts[-1].begin + view.cost_parts[-1].width == 1000


def test_a_search_shows_the_best_first_with_the_reason_of_each_hit(put: Put, browse: Callable[[], Browser]) -> None:
    put("skills/pdf-forms", "name: pdf-forms\ndescription: Fills in forms of PDF files.\n")
    put("skills/csv", "name: csv\ndescription: Sums columns.\n")
    page = browse().get("/?q=fill+in+a+pdf+form").page
    rows = page.text_of("tr")[1:]
    assert len(rows) == 1
    assert "pdf-forms" in rows[0]
    assert page.text_of("span", class_="why")[0].startswith("words:")


def test_a_word_that_is_not_typed_to_its_end_finds_names_and_descriptions(
    put: Put, library: Callable[[], Library]
) -> None:
    put("skills/taxes", "name: taxes\ndescription: Adds up invoices.\n")
    put("skills/invoicing", "name: invoicing\ndescription: Writes bills.\n")
    put("skills/weather", "name: weather\ndescription: Tells the temperature.\n")
    view = make_library_view(library(), {"q": "invo"})
    assert [(row.name, row.why) for row in view.rows] == [
        ("invoicing", "its name has “invo”"),
        ("taxes", "its description has “invo”"),
    ]


def test_a_search_has_pages_too(put: Put, library: Callable[[], Library]) -> None:
    for number in range(SEARCH_PAGE_SIZE + 5):
        put(f"skills/form-{number:02}", f"name: form-{number:02}\ndescription: Reads forms.\n")
    first, second = (make_library_view(library(), {"q": "forms", "page": page}) for page in ("1", "2"))
    assert (len(first.rows), first.pages) == (SEARCH_PAGE_SIZE, 2)
    assert (len(second.rows), second.pages) == (5, 2)
    assert not set(names(first)) & set(names(second))
    assert all(row.why for row in (*first.rows, *second.rows))


def test_a_search_can_be_ordered_by_cost_over_all_its_pages(put: Put, library: Callable[[], Library]) -> None:
    for number in range(SEARCH_PAGE_SIZE + 5):
        put(f"skills/form-{number:02}", f"name: form-{number:02}\ndescription: Reads forms{' well' * number}.\n")
    put("skills/formulas", f"name: formulas\ndescription: Solves{' long' * 90} equations.\n")
    put("skills/weather", f"name: weather\ndescription: Tells{' rain' * 99}.\n")
    opened = library()
    pages = [make_library_view(opened, {"q": "form", "sort": "cost", "page": page}) for page in ("1", "2")]
    rows = [row for page in pages for row in page.rows]
    assert pages[0].total == len(rows) == SEARCH_PAGE_SIZE + 6
    assert rows[0].name == "formulas"  # a word that is not typed to its end is ordered with the others
    costs = [row.tokens or 0 for row in rows]
    assert costs == sorted(costs, reverse=True)
    assert all(row.why for row in rows)
    assert names(make_library_view(opened, {"q": "form"})) != names(pages[0])


def test_a_search_keeps_the_filters(put: Put, library: Callable[[], Library]) -> None:
    put("skills/pdf", "name: pdf\ndescription: Reads forms.\n", body="Run !`date` first.\n")
    put("skills/forms", "name: forms\ndescription: Reads forms too.\n")
    assert names(make_library_view(library(), {"q": "forms"})) == ["forms", "pdf"]
    assert names(make_library_view(library(), {"q": "forms", "show": "untrusted"})) == ["pdf"]


def test_each_filter_shows_what_it_says(put: Put, tmp_path: Path, library: Callable[[], Library]) -> None:
    put("skills/plain", "name: plain\ndescription: Counts the words of long German letters.\n")
    put("skills/broken", "name: [\n", body="# Broken\n")
    put("skills/repaired", "name: repaired\ndescription: Use this: when asked.\n")
    put("skills/acting/one", "name: one\ndescription: Prints today's date.\n", body="It is !`date`.\n")
    put("skills/long", f"name: long\ndescription: {'Word ' * 120}\n")
    put("skills/twin", "name: twin\ndescription: Counts all the words of long German letters.\n")
    put("skills/z/plain", "name: plain\ndescription: Another one.\n")
    views = {entry.name: make_library_view(library(), {"show": entry.name}) for entry in FILTERS}
    assert names(views["broken"]) == ["broken"]
    assert names(views["repaired"]) == ["repaired"]
    assert names(views["shadowed"]) == ["plain"]
    assert names(views["untrusted"]) == ["one"]
    assert names(views["lookalikes"]) == ["plain", "twin"]
    assert "'twin'" in views["lookalikes"].rows[0].why
    assert "'plain'" in views["lookalikes"].rows[1].why
    assert names(views["costly"]) == ["long"]
    assert names(views["changed"]) == names(views["outdated"]) == []
    prowess.Trust(tmp_path / "trust.json").grant(prowess.scan(tmp_path / "skills")["one"])
    assert names(make_library_view(library(), {"show": "untrusted"})) == []


def test_a_library_that_is_too_large_to_compare_says_so(put: Put, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        put(f"skills/{name}")
    library = Library(prowess.scan(tmp_path / "skills"), limits=prowess.Limits(max_compared_skills=2))
    view = make_library_view(library, {"show": "lookalikes"})
    assert view.notes == ["Only the first 2 of 3 skills are compared with each other."]


def test_the_counts_of_filters_that_take_long_are_found_out_only_when_asked(
    put: Put, library: Callable[[], Library]
) -> None:
    put("skills/one", body="It is !`date`.\n")
    opened = library()
    first, second, third = (make_library_view(opened, query) for query in ({}, {"counts": "1"}, {"q": "one"}))
    assert not first.has_all_counts
    assert second.has_all_counts
    assert third.has_all_counts  # they are known by then
    assert {link.filter.name: link.count for link in second.filters}["untrusted"] == 1


def test_pages_have_a_hundred_rows_and_lead_to_the_next(put: Put, browse: Callable[[], Browser]) -> None:
    for number in range(PAGE_SIZE + 1):
        put(f"skills/skill-{number:03}")
    browser = browse()
    page = browser.get("/").page
    assert len(page.find("tr")) == PAGE_SIZE + 1
    following = page.find("a", rel="next")[0].attributes["href"]
    last = browser.get(following).page
    assert last.text_of("tr")[1].split()[0] == "skill-100"
    assert not last.find("a", rel="next")


@pytest.mark.parametrize(
    "parameters",
    [{"page": "0"}, {"page": "-1"}, {"page": "9" * 30}, {"page": "²"}, {"show": "nothing"}, {"sort": "x"}],
)
def test_an_address_that_makes_no_sense_shows_the_first_page(
    put: Put, library: Callable[[], Library], parameters: dict[str, str]
) -> None:
    put("skills/one")
    assert names(make_library_view(library(), parameters)) == ["one"]


def test_a_query_becomes_an_address_and_again_a_query() -> None:
    query = LibraryQuery("pdf & forms", "broken", "user", "/a b", "codex", "cost", 3)
    assert LibraryQuery.parse(query.to_parameters()) == query


def test_a_change_of_the_files_changes_the_page(put: Put, tmp_path: Path) -> None:
    put("skills/one")
    with prowess.live(tmp_path / "skills", every=0.01, notice="stat") as live:
        library = Library(live)
        assert names(make_library_view(library, {})) == ["one"]
        seen = live.catalog
        put("skills/two")
        while "two" not in live.wait_for_change(seen, 10):
            seen = live.catalog
        assert names(make_library_view(library, {})) == ["one", "two"]


def test_every_id_is_safe_in_addresses_and_file_names() -> None:
    assert make_skill_id("pdf-forms") == "pdf-forms"
    ids = [make_skill_id(name) for name in ("Ä", "PDF", "a.b", "..", "a/b", "pdf~1")] + [make_skill_id("pdf", "/x")]
    assert len(set(ids)) == len(ids)
    assert all(part.isascii() and part.replace("~", "").replace("-", "").isalnum() for part in ids)

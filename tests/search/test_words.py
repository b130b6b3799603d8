"""Lexical search over a catalogue: what is found, in which order, and that a query is only words."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import prowess
from prowess.search.terms import drop_exclusions

Hits = Callable[..., list[str]]

DESCRIPTIONS = {
    "pdf-forms": "Fills in forms and merges PDF documents.",
    "spreadsheets": "Analyses tables, formulas and charts.",
    "git-history": "Searches commits and explains who changed a line.",
    "translate": "日本語の文書を英語に翻訳する。",
    "resume_writer": "Writes a résumé for an application.",
    "invoices": "Checks money owed.",
}
TAGS = {"invoices": ("finance", "accounting"), "spreadsheets": ("office",)}


def made(
    name: str, description: str, tags: tuple[str, ...] = (), metadata: dict[str, str] | None = None
) -> prowess.Skill:
    front = prowess.Frontmatter(name=name, description=description, tags=tags, metadata=metadata or {})
    return prowess.Skill(front, body="Do it.")


CATALOG = prowess.Catalog(made(name, text, TAGS.get(name, ())) for name, text in DESCRIPTIONS.items())


@pytest.fixture
def hits() -> Hits:
    """The names found in the sample above, best first."""

    def find(query: str, limit: int = 10) -> list[str]:
        return [hit.name for hit in CATALOG.search(query, limit)]

    return find


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("merge documents", "pdf-forms"),
        ("forms", "pdf-forms"),
        ("pdf", "pdf-forms"),
        ("PDF", "pdf-forms"),
        ("history", "git-history"),
        ("chart", "spreadsheets"),
        ("please help me to analyse a table", "spreadsheets"),
        ("resume", "resume_writer"),
        ("writer", "resume_writer"),
        ("finance", "invoices"),
        ("accounting", "invoices"),
    ],
)
def test_the_words_of_name_description_and_tags_are_found(query: str, best: str, hits: Hits) -> None:
    assert hits(query)[0] == best


@pytest.mark.parametrize("query", ["fill form", "filling forms", "filled a form", "merging document"])
def test_another_ending_of_a_word_is_the_same_word(query: str, hits: Hits) -> None:
    assert hits(query) == ["pdf-forms"]


@pytest.mark.parametrize("query", ["翻訳", "日本語", "英語に", "文書"])
def test_words_of_a_script_without_blanks_are_found(query: str, hits: Hits) -> None:
    assert hits(query) == ["translate"]


@pytest.mark.parametrize(
    ("description", "query"),
    [
        ("Calls readTableRows of the API.", "table"),
        ("Calls readTableRows of the API.", "rows"),
        ("Reads tables.", "readTable"),
        ("Sets max_table_size.", "table"),
        ("Is about table-reading.", "reading"),
        ("Uses HTML5Parser.", "parser"),
    ],
)
def test_compounds_are_found_by_their_parts(description: str, query: str) -> None:
    catalog = prowess.Catalog([made("a", description), made("b", "Something else.")])
    assert [hit.name for hit in catalog.search(query)] == ["a"]


@pytest.mark.parametrize(("query", "found"), [("文書", ["translate"]), ("書文", []), ("語文", []), ("訳", [])])
def test_in_a_script_without_blanks_the_order_of_characters_counts(query: str, found: list[str], hits: Hits) -> None:
    assert hits(query) == found


@pytest.mark.parametrize(
    "text",
    [
        "한국어 문서를 번역한다",
        "カタカナの文書",
        "把文件翻译成英语",
        "Переводит документы",
        "ترجمة الوثائق",
        "अनुवाद करता है",
    ],
)
def test_a_skill_in_any_script_is_found_by_its_own_words(text: str) -> None:
    catalog = prowess.Catalog([made("a", text), made("b", "Something else.")])
    for word in text.split():
        assert [hit.name for hit in catalog.search(word)] == ["a"], word


def test_accents_and_case_do_not_matter(hits: Hits) -> None:
    assert hits("RÉSUMÉ") == hits("resume") == ["resume_writer"]


def test_a_name_counts_more_than_a_description() -> None:
    catalog = prowess.Catalog([made("charts", "Draws."), made("draw", "Makes charts.")])
    assert [hit.name for hit in catalog.search("charts")] == ["charts", "draw"]


@pytest.mark.parametrize(
    "clause",
    [
        "Do not use for invoices.",
        "Don't trigger on invoices!",
        "Don\u2019t use it for invoices; ask first.",
        "NEVER use for invoices",
    ],
)
def test_a_skill_is_not_found_by_what_it_is_not_for(clause: str) -> None:
    catalog = prowess.Catalog([made("a", f"Fills forms. {clause}"), made("b", "Pays invoices.")])
    assert [hit.name for hit in catalog.search("invoices")] == ["b"]
    assert [hit.name for hit in catalog.search("forms")] == ["a"]


def test_clauses_about_exclusions_are_found_whatever_whitespace_is_around_them() -> None:
    text = (
        "Fills forms. \n Do not use for invoices \t\n \n  never use for letters\n\nReads books (do not load for maps)."
    )
    assert drop_exclusions(text).split() == ["Fills", "forms.", "Reads", "books", "(."]


def test_a_description_of_line_breaks_stops_no_search() -> None:
    for hostile in ("\n" * 32_000, " \n" * 16_000, "do not use\n" * 3_000, "x\n" + " " * 32_000):
        began = time.process_time()
        catalog = prowess.Catalog([made("a", f"Fills forms.{hostile}x"), made("b", "Pays invoices.")])
        assert [hit.name for hit in catalog.search("invoices")] == ["b"]
        assert time.process_time() - began < 5


def test_tags_of_the_metadata_are_found_too() -> None:
    catalog = prowess.Catalog([made("a", "One."), made("b", "Two.", metadata={"tags": "ledger, tax"})])
    assert [hit.name for hit in catalog.search("ledger")] == ["b"]


def test_words_that_say_nothing_count_only_when_there_are_no_others() -> None:
    catalog = prowess.Catalog([made("a", "How to use the thing."), made("b", "Charts.")])
    assert [hit.name for hit in catalog.search("how to use charts")] == ["b"]
    assert [hit.name for hit in catalog.search("how to")] == ["a"]


@pytest.mark.parametrize("query", ["", "   ", "?!", '"', "'", "zzzqqq", "()", "*"])
def test_a_query_without_known_words_finds_nothing(query: str, hits: Hits) -> None:
    assert hits(query) == []


@pytest.mark.parametrize(
    "query",
    [
        'forms"',
        '"forms',
        "forms OR",
        "forms AND NOT NEAR",
        "name:forms",
        "forms*",
        "-forms",
        "^forms",
        "(forms",
        "forms; DROP TABLE skills",
        "{name description} : forms",
        "NEAR(forms, 3)",
        "forms\x00",
        "+ forms +",
    ],
)
def test_quotes_and_operators_in_a_query_are_data(query: str, hits: Hits) -> None:
    assert hits(query)[0] == "pdf-forms"


def test_the_word_not_excludes_nothing(hits: Hits) -> None:
    assert "pdf-forms" in hits("charts NOT forms")


@given(st.text(), st.integers(-3, 12))
def test_any_query_is_answered_with_skills_of_the_catalogue_best_first(query: str, limit: int) -> None:
    found = CATALOG.search(query, limit)
    assert len(found) <= max(limit, 0)
    assert {hit.skill for hit in found} <= set(CATALOG)
    assert len({hit.name for hit in found}) == len(found)
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)


@given(st.lists(st.text('ab"*^:(){}-+ ANDORNTE\x00', max_size=12), max_size=6).map(" ".join))
def test_any_query_in_the_language_of_the_index_is_answered(query: str) -> None:
    assert {hit.skill for hit in CATALOG.search(query)} <= set(CATALOG)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_any_description_and_tag_can_be_indexed(description: str, tag: str) -> None:
    catalog = prowess.Catalog([made("x", description, (tag,))])
    assert [hit.name for hit in catalog.search("x")] == ["x"]


def test_a_long_query_is_answered(hits: Hits) -> None:
    assert hits("forms " + " ".join(f"word{n}" for n in range(10_000))) == ["pdf-forms"]


def test_of_a_long_request_the_words_count_that_the_fewest_skills_have() -> None:
    common = [f"common{number}" for number in range(80)]
    every = " ".join(common)
    catalog = prowess.Catalog([made("rare", f"Has {every} and a needle."), *(made(f"s{n}", every) for n in range(5))])
    assert [hit.name for hit in catalog.search(f"{every} needle", 1)] == ["rare"]
    assert catalog.search(f"{every} needle", 1)[0].score > catalog.search(every, 1)[0].score


def test_the_limits_say_how_many_words_of_a_request_count(put: Callable[..., Path], tmp_path: Path) -> None:
    put("skills/a", "name: a\ndescription: Apples and pears.\n")
    put("skills/b", "name: b\ndescription: Apples.\n")
    narrow = prowess.scan(tmp_path / "skills", limits=prowess.Limits(max_request_terms=1))
    assert [hit.name for hit in narrow.search("apples pears")] == ["a"]
    assert [hit.name for hit in prowess.scan(tmp_path / "skills").search("apples pears")] == ["a", "b"]


def test_skills_with_nothing_but_common_words_are_found_when_there_are_no_others() -> None:
    catalog = prowess.Catalog(made(f"s{n}", "Makes charts.") for n in range(3_500))
    assert len(catalog.search("charts makes", 20)) == 20


def test_a_rare_word_wins_in_a_large_catalogue_and_common_words_add_to_its_score() -> None:
    skills = [made(f"s{n:04}", ("Charts.", "Tables.", "Soups.")[n % 3]) for n in range(4_600)]
    catalog = prowess.Catalog([*skills, made("x", "Cleans a xylophone."), made("y", "Charts a xylophone.")])
    assert [hit.name for hit in catalog.search("charts tables xylophone", 2)] == ["y", "x"]
    every_match = catalog.search("charts tables xylophone", len(catalog))
    assert len(every_match) == sum("Soups" not in skill.description for skill in catalog)


def test_the_reason_names_the_words_of_the_request() -> None:
    catalog = prowess.Catalog([made("a", "Fills PDF forms."), made("b", "Merges forms.")])
    hits = catalog.search("please fill a form and merge the PDF")
    assert {hit.name: hit.why for hit in hits} == {"a": "words: fill, form, pdf", "b": "words: form, merge"}


def test_a_hit_unpacks_as_two_and_a_made_one_has_no_reason() -> None:
    skill, score = CATALOG.search("merge documents")[0]
    hit = prowess.SearchHit(skill, score)
    assert (hit.name, hit.why, len(hit), hit.score) == ("pdf-forms", "", 2, score)


def test_a_limit_keeps_the_best() -> None:
    catalog = prowess.Catalog(made(f"s{n:02}", "Makes charts." + " And more." * n) for n in range(20))
    every = [hit.name for hit in catalog.search("charts", 20)]
    assert len(every) == 20
    assert [hit.name for hit in catalog.search("charts", 3)] == every[:3]
    assert len(catalog.search("charts")) == 10


def test_equal_hits_come_in_order_of_name() -> None:
    catalog = prowess.Catalog(made(name, "Makes charts.") for name in ("c", "a", "b"))
    assert [hit.name for hit in catalog.search("charts")] == ["a", "b", "c"]


def test_a_hit_has_the_skill_and_how_well_it_fits() -> None:
    hit = CATALOG.search("merge documents")[0]
    assert hit.skill is CATALOG["pdf-forms"]
    assert hit.description == DESCRIPTIONS["pdf-forms"]
    assert hit.score > 0


def test_an_empty_catalogue_finds_nothing() -> None:
    assert prowess.Catalog().search("anything") == ()


def test_several_threads_may_search_a_catalogue_whose_index_is_not_yet_built() -> None:
    catalog = prowess.Catalog(made(f"s{n:03}", f"Makes charts of kind{n}.") for n in range(200))
    queries = [f"kind{n}" for n in range(0, 200, 7)]
    start = threading.Barrier(8, timeout=60)
    found: list[list[str]] = []

    def search() -> None:
        start.wait()
        found.append([hit.name for query in queries for hit in catalog.search(query, 1)])

    threads = [threading.Thread(target=search, daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [[f"s{n:03}" for n in range(0, 200, 7)]] * 8

"""Listings that fit a budget: names stay, descriptions shorten evenly, then go, then entries; nothing goes unsaid."""

import json
import random
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import prowess
from prowess.select.budget import BudgetReport, describe_cuts, fit_listing
from prowess.skills.render import ListingEntry, ListingStyle, render_entries

Made = Callable[..., prowess.Skill]

STYLES: tuple[ListingStyle, ...] = get_args(ListingStyle)
WORDS = (
    "a",
    "use",
    "when",
    "PDF",
    "internationalised",
    "e.g.",
    "42",
    "1,000",
    "café",
    "文書",
    "<b>",
    "&",
    "`x`",
    "[y](z)",
    "—",
)


def some_catalog(count: int, longest: int, seed: int) -> prowess.Catalog:
    """``count`` skills whose descriptions have at most ``longest`` words; the seed says which."""
    rng = random.Random(seed)
    names = {f"{rng.choice('abcxyz')}{'-' * (n % 2)}{'skill' * rng.randint(0, 3)}{n}" for n in range(count)}
    texts = {name: " ".join(rng.choices(WORDS, k=rng.randint(1, longest))) for name in sorted(names)}
    fronts = (prowess.Frontmatter(name=name, description=text) for name, text in texts.items())
    return prowess.Catalog(prowess.Skill(front, body="b") for front in fronts)


CATALOGS = st.builds(some_catalog, st.integers(1, 12), st.integers(1, 60), st.integers(0, 2**32))


def fitted(
    skills: prowess.Catalog | Sequence[prowess.Skill], budget: int | None, style: ListingStyle = "json"
) -> BudgetReport:
    return fit_listing(skills, budget, partial(render_entries, style=style))[1]


def entries(report: BudgetReport) -> list[ListingEntry]:
    rows = json.loads(report.text) if report.text else []
    return [(row["name"], row["description"], row["location"]) for row in rows]


def cost_of_names(skills: prowess.Catalog, style: ListingStyle, count: int) -> int:
    bare = [(skill.name, "", skill.location) for skill in skills][:count]
    return prowess.estimate_tokens(render_entries(bare, style))


# -- properties -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", STYLES)
@given(skills=CATALOGS, budget=st.integers(0, 600))
def test_whatever_is_listed_fits(style: ListingStyle, skills: prowess.Catalog, budget: int) -> None:
    text = prowess.render_catalog(skills, style, budget)
    assert text == fitted(skills, budget, style).text
    assert not text or prowess.estimate_tokens(text) <= budget


@pytest.mark.parametrize("style", STYLES)
@given(skills=CATALOGS, budget=st.integers(0, 600), more=st.integers(0, 60))
def test_a_larger_budget_never_shows_fewer_names(
    style: ListingStyle, skills: prowess.Catalog, budget: int, more: int
) -> None:
    small, large = fitted(skills, budget, style), fitted(skills, budget + more, style)
    assert set(small.shown) <= set(large.shown)
    assert set(large.omitted) <= set(small.omitted)
    assert not (small.omitted == () and small.dropped == () and large.dropped)


@pytest.mark.parametrize("style", STYLES)
@given(skills=CATALOGS, data=st.data())
def test_every_budget_that_pays_for_a_name_shows_one(
    style: ListingStyle, skills: prowess.Catalog, data: st.DataObject
) -> None:
    count = data.draw(st.integers(1, len(skills)))
    least = cost_of_names(skills, style, count)
    shown = fitted(skills, least + data.draw(st.integers(0, 40)), style).shown
    assert len(shown) >= count
    assert list(shown) == [skill.name for skill in skills][: len(shown)]


@given(skills=CATALOGS, budget=st.integers(0, 600))
def test_no_name_is_left_out_while_a_description_is_shown(skills: prowess.Catalog, budget: int) -> None:
    report = fitted(skills, budget)
    if report.omitted:
        assert all(description == "" for _, description, _ in entries(report))


@given(skills=CATALOGS, budget=st.integers(0, 600))
def test_descriptions_are_shortened_to_one_length_and_never_changed_otherwise(
    skills: prowess.Catalog, budget: int
) -> None:
    report = fitted(skills, budget)
    cut = {name: text for name, text, _ in entries(report) if name in report.shortened}
    whole = {name: text for name, text, _ in entries(report) if name in report.shown and name not in cut}
    for name, text in cut.items():
        assert text.endswith("…")
        assert skills[name].description.startswith(text[:-1])
    if not cut:
        return
    cap = max(len(text) for text in cut.values())
    for name, text in whole.items():
        assert text == skills[name].description
        # A cut that fell after a blank lost that blank, so a whole one may be longer by one.
        assert len(text) <= cap + 1
    for name, text in cut.items():
        lost = skills[name].description[len(text) - 1 : cap - 1]
        assert not lost.strip(), "one was cut shorter than another"


@given(skills=CATALOGS, budget=st.none() | st.integers(0, 600))
def test_the_report_names_everything_that_was_cut(skills: prowess.Catalog, budget: int | None) -> None:
    report = fitted(skills, budget)
    listed = {name: text for name, text, _ in entries(report)}
    every = [skill.name for skill in skills]
    assert list(report.shown) == list(listed) == [name for name in every if name in listed]
    assert list(report.omitted) == [name for name in every if name not in listed]
    assert list(report.dropped) == [name for name in listed if not listed[name]]
    changed = [name for name in listed if listed[name] and listed[name] != skills[name].description]
    assert list(report.shortened) == changed
    assert report.is_cut is bool(changed or report.dropped or report.omitted)
    assert report.tokens == prowess.estimate_tokens(report.text)
    assert (report.budget, report.counter) == (budget, "estimate")


@given(skills=CATALOGS)
def test_a_budget_that_pays_for_everything_cuts_nothing(skills: prowess.Catalog) -> None:
    whole = fitted(skills, None)
    assert fitted(skills, whole.tokens).text == whole.text
    assert not fitted(skills, whole.tokens).is_cut


# -- steps ----------------------------------------------------------------------------------------------------------


def test_as_the_budget_shrinks_descriptions_shorten_then_go_then_entries(made: Made) -> None:
    skills = [made(f"skill-{n}", f"Number {n} " + "does many useful things " * 8) for n in range(6)]
    kinds: list[str] = []
    whole = fitted(skills, None).tokens
    for budget in range(whole, -1, -1):
        report = fitted(skills, budget)
        kind = (
            "omitted" if report.omitted else "dropped" if report.dropped else "short" if report.shortened else "whole"
        )
        if kinds[-1:] != [kind]:
            kinds.append(kind)
    assert kinds == ["whole", "short", "dropped", "omitted"]
    assert report.shown == ()


def test_short_descriptions_stay_whole_while_long_ones_shrink(made: Made) -> None:
    skills = [made("long", "word " * 100), made("longer", "word " * 200), made("short", "Writes short words.")]
    report = fitted(skills, fitted(skills, None).tokens // 2)
    assert report.shortened == ("long", "longer")
    texts = {name: text for name, text, _ in entries(report)}
    assert texts["short"] == "Writes short words."
    assert texts["long"] == texts["longer"]


def test_entries_are_left_out_from_the_end(made: Made) -> None:
    skills = [made(f"skill-{letter}") for letter in "abcdef"]
    budget = prowess.estimate_tokens(prowess.render_catalog(skills[:3], "text"))
    report = fitted(skills, budget // 2, "text")
    assert 0 < len(report.shown) < 6
    assert (*report.shown, *report.omitted) == tuple(skill.name for skill in skills)


@pytest.mark.parametrize("style", STYLES)
def test_names_stay_whole_however_small_the_budget(style: ListingStyle, made: Made) -> None:
    skills = [made(f"a-rather-long-name-{n}", "word " * 50) for n in range(4)]
    for budget in range(0, 200, 7):
        text = prowess.render_catalog(skills, style, budget)
        assert set(re.findall(r"a-rather[^\"<:* ]*", text)) <= {skill.name for skill in skills}


def test_a_skill_that_had_no_description_is_not_reported_as_having_lost_one(made: Made) -> None:
    skills = [made("empty", ""), made("full", "word " * 100)]
    report = fitted(skills, cost_of_names(prowess.Catalog(skills), "json", 2) + 1)
    assert (report.shown, report.dropped) == (("empty", "full"), ("full",))


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("budget", [None, 0, 1, 1000])
def test_nothing_to_list_is_an_empty_text(style: ListingStyle, budget: int | None) -> None:
    assert prowess.render_catalog([], style, budget) == ""


@pytest.mark.parametrize("style", STYLES)
def test_a_budget_too_small_for_one_name_lists_nothing(style: ListingStyle, made: Made) -> None:
    assert prowess.render_catalog([made("pdf")], style, 0) == ""


def test_a_report_is_one_line_for_people(made: Made) -> None:
    skills = [made(f"skill-{n}", "word " * 100) for n in range(5)]
    assert re.fullmatch(r"5 skills, \d+ tokens \(estimate\): nothing cut", str(fitted(skills, None)))
    assert re.fullmatch(r"5 skills, \d+ of 300 tokens \(estimate\): 5 shortened", str(fitted(skills, 300)))
    two = cost_of_names(prowess.Catalog(skills), "json", 2)
    said = rf"2 skills, {two} of {two} tokens \(estimate\): 2 without description, 3 left out"
    assert re.fullmatch(said, str(fitted(skills, two)))


def test_an_order_that_is_not_by_name_is_kept(made: Made) -> None:
    skills = [made(name, "word " * 40) for name in ("c", "a", "b")]
    for budget in (None, 150, 40):
        shown = fitted(skills, budget).shown
        assert shown == ("c", "a", "b")[: len(shown)]


def test_an_unknown_style_is_refused(made: Made) -> None:
    with pytest.raises(prowess.SourceError, match="style"):
        prowess.render_catalog([made("a")], "yaml")  # type: ignore[arg-type]


def test_a_cut_description_is_still_escaped(made: Made) -> None:
    skills = [made("evil", "</description></skill>" * 40), made("good", "word " * 40)]
    whole = prowess.estimate_tokens(prowess.render_catalog(skills))
    for budget in range(20, whole, 9):
        text = prowess.render_catalog(skills, "xml", budget)
        assert text.count("</skill>") == text.count("<skill>") == text.count("<name>")
        assert not re.search(r"&(?!(amp|lt|gt);)", text)


def test_what_was_cut_is_counted_with_commas() -> None:
    report = BudgetReport("", 10, ("one",), shortened=("one",), omitted=("more",) * 1_935)
    assert describe_cuts(report) == "1 shortened, 1,935 left out"

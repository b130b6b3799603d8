"""The page "What the model sees", without a browser."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

import pytest

import prowess
from prowess.tools.dialects import DIALECTS
from prowess.web.pages.library import PAGE_SIZE
from prowess.web.pages.sees import SeesQuery, make_sees_view

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from prowess.web.library import Library
    from tests.web.browser import Browser

    Put = Callable[..., Path]


@pytest.fixture
def three(put: Put) -> None:
    put("skills/pdf", "name: pdf\ndescription: Fills in forms of PDF files.\n")
    put("skills/csv", "name: csv\ndescription: Sums the columns of tables.\n")
    put("skills/letters", "name: letters\ndescription: Writes polite letters to offices.\n")


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("dialect", list(DIALECTS))
def test_the_page_shows_exactly_what_a_model_would_receive(
    dialect: prowess.DialectName, tmp_path: Path, library: Callable[[], Library]
) -> None:
    view = make_sees_view(library(), {"dialect": dialect})
    fork: Literal["host"] | None = "host" if DIALECTS[dialect].has_fork_tool else None
    toolset = prowess.Toolset(prowess.Session(prowess.scan(tmp_path / "skills")), dialect, fork=fork)
    assert view.prompt == toolset.prompt()
    shown = json.loads(view.tools) if view.tools else []
    assert shown == [tool.to_json_schema() for tool in toolset.tools()]


@pytest.mark.usefixtures("three")
def test_a_request_that_does_not_fit_the_budget_lists_the_best_and_says_why_each_other_is_left_out(
    library: Callable[[], Library],
) -> None:
    view = make_sees_view(library(), {"q": "fill in a pdf form", "budget": "110"})
    fates = {row.name: row.fate for row in view.before.rows}
    assert fates == {"csv": "left out", "letters": "left out", "pdf": "listed"}
    assert [row.name for row in view.after.rows] == ["pdf"]
    assert "words: " in view.after.rows[0].why
    assert all(row.why for row in view.before.rows)
    assert view.after.tokens < view.before.tokens
    assert view.cuts == "2 left out"


@pytest.mark.usefixtures("three")
def test_the_bars_are_as_long_as_the_tokens_that_each_skill_adds(library: Callable[[], Library]) -> None:
    view = make_sees_view(library(), {})
    total = sum(row.tokens for row in view.before.rows)
    assert view.highest == max(row.tokens for row in view.before.rows)
    assert total < view.before.tokens  # the sentences around the listing are nobody's
    assert {row.fate for row in view.before.rows} == {"listed"}


@pytest.mark.usefixtures("three")
def test_the_page_has_both_sides_the_texts_and_a_copy_button_for_each(browse: Callable[[], Browser]) -> None:
    page = browse().get("/sees?q=fill+in+a+pdf+form&budget=110&skill=pdf").page
    assert "sees 1 of 3 skills" in page.text_of("p", role="status")[0]
    tables = page.find("table")
    assert len(tables) == 2
    copied = {button.attributes["data-copy"] for button in page.find("button", type="button")}
    assert copied == {"prompt-text", "tools-text", "activation-text"}
    assert copied <= {element.attributes["id"] for element in page.find("pre")}


def test_an_activation_marks_what_was_filled_in_and_runs_no_command(
    put: Put, tmp_path: Path, library: Callable[[], Library]
) -> None:
    witness = tmp_path / "ran"
    put("skills/one", body=f"Work on $ARGUMENTS after !`touch {witness}`.\n")
    prowess.Trust(tmp_path / "trust.json").grant(prowess.scan(tmp_path / "skills")["one"])
    activation = make_sees_view(library(), {"skill": "one", "arguments": "the letter"}).activation
    assert activation is not None
    assert ("the letter", "filled") in activation.pieces
    assert (f"!`touch {witness}`", "command") in activation.pieces
    assert not witness.exists()


def test_a_skill_that_models_do_not_see_says_so_beside_its_text(put: Put, library: Callable[[], Library]) -> None:
    put("skills/one", "name: one\ndescription: Does one.\ndisable-model-invocation: true\n")
    loaded, called = (
        make_sees_view(library(), {"skill": "one", "arguments": arguments}).activation for arguments in ("", "now")
    )
    assert loaded is not None
    assert loaded.notes[0].startswith("Models do not see this skill in a listing")
    assert called is not None
    assert called.notes == ()


def test_a_skill_that_people_may_not_call_says_so_instead_of_a_text(put: Put, library: Callable[[], Library]) -> None:
    put("skills/one", "name: one\ndescription: Does one.\nuser-invocable: false\n")
    activation = make_sees_view(library(), {"skill": "one", "arguments": "now"}).activation
    assert activation is not None
    assert "one" in activation.error
    assert activation.pieces == ()


def test_a_name_that_no_skill_has_is_not_an_activation(put: Put, library: Callable[[], Library]) -> None:
    put("skills/one")
    activation = make_sees_view(library(), {"skill": "two"}).activation
    assert activation is not None
    assert activation.error == "There is no skill of this name."


def test_a_long_text_is_cut_until_somebody_asks_for_all_of_it(put: Put, library: Callable[[], Library]) -> None:
    for number in range(PAGE_SIZE + 150):
        put(f"skills/s{number:03}", f"name: s{number:03}\ndescription: {'word ' * 200}\n")
    cut = make_sees_view(library(), {"selector": "all"})
    assert cut.is_prompt_cut
    assert len(cut.prompt) == prowess.Limits().max_page_chars
    whole = make_sees_view(library(), {"selector": "all", "whole": "1"})
    assert not whole.is_prompt_cut
    assert whole.prompt.startswith(cut.prompt)
    assert cut.pages == 3
    assert len(cut.before.rows) == len(cut.after.rows) == PAGE_SIZE
    assert make_sees_view(library(), {"page": "3"}).before.rows[-1].name == "s249"


@pytest.mark.parametrize(
    "parameters",
    [{"dialect": "x"}, {"selector": "x"}, {"budget": "-1"}, {"budget": "9" * 20}, {"page": "0"}, {"page": "²"}],
)
def test_an_address_that_makes_no_sense_shows_the_usual_page(
    put: Put, library: Callable[[], Library], parameters: dict[str, str]
) -> None:
    put("skills/one")
    assert make_sees_view(library(), parameters) == make_sees_view(library(), {})


@pytest.mark.parametrize("budget", [None, 500])
def test_a_query_becomes_an_address_and_again_a_query(budget: int | None) -> None:
    for chosen in (None, 300, 500):
        query = SeesQuery("a & b", "use_skill", "lexical", chosen, "pdf", "x y", 2, budget, is_whole=True)
        parameters = {key: value for key, value in query.to_parameters().items() if value}
        assert SeesQuery.parse(parameters, budget) == query


def test_hostile_text_is_inert(put: Put, browse: Callable[[], Browser]) -> None:
    put(
        "skills/one",
        'name: one\ndescription: "</pre><script>alert(1)</script>"\n',
        body="</pre><script>alert(2)</script> <img src=x onerror=alert(3)>\n",
    )
    page = browse().get("/sees?skill=one&q=%3Cscript%3E").page
    assert not [script for script in page.find("script") if "src" not in script.attributes]
    assert not page.find("img")

"""The benchmark of search: its measures, its folds, its libraries and its plot."""

from __future__ import annotations

import json
import re
from math import sqrt
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import prowess
from bench import table
from bench.retrieval import bare, data, quality, selection
from bench.retrieval.data import PoolSkill, Request
from bench.retrieval.meaning import FoldEncoder, MeaningSource, find_fold_files
from bench.retrieval.plot import Curve, draw_selection
from bench.retrieval.scores import Score, average_values, judge_ranking
from training.folds import FOLDS

if TYPE_CHECKING:
    from pathlib import Path

needs_data = pytest.mark.skipif(
    not data.FOLDER.is_dir(), reason="NOT TESTED: the labelled requests; there is no ../shared/retrieval"
)


def make_request(
    *relevant: int, also: tuple[int, ...] = (), group: object = 0, kind: str = "task", script: str = "latin"
) -> Request:
    return Request("fill in a form", relevant, also, kind, script, str(group), 0)


def make_pool(*names: str) -> list[PoolSkill]:
    return [
        PoolSkill(f"id-{place}", name, f'Does "{name}": well.\nAnd again.', f"# {name}\n\nBody {place}.\n")
        for place, name in enumerate(names)
    ]


# -- measures ----------------------------------------------------------------------------------------------------------


def test_the_first_right_skill_decides_over_hit_and_reciprocal_rank() -> None:
    assert judge_ranking(make_request(7), [7, 1, 2]) == (1, 1, 1, 1)
    assert judge_ranking(make_request(7), [1, 2, 7]) == (0, 1, 1, 1 / 3)
    assert judge_ranking(make_request(7), [1, 2, 3, 4, 5, 7]) == (0, 0, 1, 1 / 6)


def test_a_skill_that_is_not_among_the_best_twenty_is_not_found() -> None:
    assert judge_ranking(make_request(7), [*range(100, 120), 7]) == (0, 0, 0, 0)
    assert judge_ranking(make_request(7), []) == (0, 0, 0, 0)


def test_a_near_copy_counts_as_the_skill_but_no_more_than_all_are_found() -> None:
    assert judge_ranking(make_request(7, also=(8,)), [8, 7]) == (1, 1, 1, 1)


def test_of_several_relevant_skills_the_share_that_is_found_is_the_recall() -> None:
    assert judge_ranking(make_request(1, 2, 3, 4), [1, 9, 2, 9, 9, 3])[1:3] == (2 / 4, 3 / 4)


def test_the_standard_error_treats_requests_for_one_skill_as_one_observation() -> None:
    values = [(1.0,), (1.0,), (0.0,), (0.0,)]
    apart = [make_request(1, group=group) for group in range(4)]
    together = [make_request(1, group=group // 2) for group in range(4)]
    assert average_values(apart, values) == [Score(0.5, sqrt(4 * 0.25) / 4)]
    assert average_values(together, values) == [Score(0.5, sqrt(2 * 1.0) / 4)]


def test_a_table_has_a_row_for_all_requests_and_for_each_kind_and_script_and_judges_the_first() -> None:
    requests = [make_request(1, kind="task"), make_request(1, kind="trigger", script="cjk")]
    rows = list(quality.table_rows(quality.WORDS, requests, [(1, 1, 1, 1), (0, 0, 1, 0.1)]))
    assert [row[1:4] for row in rows] == [
        ("all", "2", ".500 ± .000"),
        ("kind task", "1", "1.000 ± .000"),
        ("kind trigger", "1", ".000 ± .000"),
        ("script cjk", "1", ".000 ± .000"),
        ("script latin", "1", "1.000 ± .000"),
    ]
    assert [row[-2:] for row in rows] == [("≥ .48 / .66 / .77", "UNDER"), *[("", "")] * 4]


# -- requests and libraries --------------------------------------------------------------------------------------------


@needs_data
def test_no_two_folds_share_a_right_skill_and_all_folds_are_of_one_size() -> None:
    rows = map(json.loads, (data.FOLDER / "queries.jsonl").read_text(encoding="utf-8").splitlines())
    ids = dict.fromkeys(id_ for row in rows for id_ in (*row["relevant"], *row["also_relevant"]))
    requests = data.read_requests([PoolSkill(id_, "", "", "") for id_ in ids])
    folds = [[request for request in requests if request.fold == fold] for fold in range(FOLDS)]
    right = [frozenset[int]().union(*(request.right for request in fold)) for fold in folds]
    assert sum(map(len, right)) == len(frozenset[int]().union(*right)) > 500
    assert len({len(fold) for fold in folds}) == 1


def test_a_library_holds_every_skill_of_the_pool_even_if_names_repeat_or_cannot_be_names(tmp_path: Path) -> None:
    pool = make_pool("pdf", "pdf", "pdf", "Excel Automation", "owner/skills@pdf", "dev:fix", "x" * 70, "x" * 71)
    data.write_library(tmp_path, pool)
    catalog = prowess.scan(tmp_path)
    found = {data.place_of(skill): (skill.description, skill.read_body()) for skill in catalog}
    assert found == {place: (skill.description, skill.body) for place, skill in enumerate(pool)}
    assert not catalog.failures


def test_a_name_that_is_made_unique_has_the_same_words() -> None:
    pool = make_pool("pdf-forms", "pdf-forms", "pdf-forms", "dev:fix")
    names = data.make_names(pool)
    assert len(set(names)) == 4
    assert [re.findall(r"\w+", name) for name in names] == [re.findall(r"\w+", skill.name) for skill in pool]


def test_recombined_skills_have_unique_names_and_take_each_part_from_another_skill() -> None:
    pool = make_pool(*(f"skill-{number}" for number in range(50)))
    made = data.recombine_skills(pool, 120)
    assert len(made) == 120
    assert len(set(data.make_names(made))) == 120
    descriptions = {skill.description: place for place, skill in enumerate(pool)}
    bodies = {skill.body: place for place, skill in enumerate(pool)}
    assert sum(descriptions[skill.description] != bodies[skill.body] for skill in made) > 100
    assert data.recombine_skills(pool, 120) == made


@pytest.mark.parametrize("size", [10, 10_000])
def test_a_drawn_library_has_every_right_skill_of_its_requests(size: int) -> None:
    pool = make_pool(*(f"skill-{number}" for number in range(9_000)))
    requests = [make_request(number, also=(number + 100,), group=number) for number in range(50)]
    for drawn in selection.draw_libraries(pool, requests, size):
        assert len(drawn.places) == size
        assert drawn.requests
        assert all(request.right <= set(drawn.places) for request in drawn.requests)


def test_the_plain_index_ranks_the_row_with_the_words_first() -> None:
    import sqlite3

    db = sqlite3.connect(":memory:")
    bare.make_table(db, [("csv", "Tables.", "columns"), ("pdf", "Forms.", "fill in"), ("x", "y", "z")], with_body=True)
    assert bare.rank_request(db, "Fill in FORMS, and one table!", 20) == [1, 0]
    assert bare.rank_request(db, "?!", 20) == []
    db.close()


# -- meaning and selection ---------------------------------------------------------------------------------------------


def write_folds(folder: Path, pool: list[PoolSkill], requests: list[Request], run: str = "tried") -> None:
    """Write vectors by which each request is nearest to its first relevant skill, and to no other."""
    skills = np.eye(len(pool), dtype=np.float16)
    for fold in range(FOLDS):
        held = [place for place, request in enumerate(requests) if request.fold == fold]
        asked = skills[[requests[place].relevant[0] for place in held]]
        np.savez(folder / f"vectors-{run}-{fold}.npz", skills=skills, asked=asked, held=np.array(held))


def make_fold_requests(number: int) -> list[Request]:
    return [make_request(place)._replace(text=f"wish {place}", fold=place % FOLDS) for place in range(number)]


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "library"


def test_each_request_is_searched_for_with_the_model_that_never_saw_it(tmp_path: Path, library: Path) -> None:
    pool, requests = make_pool(*(f"skill-{place}" for place in range(10))), make_fold_requests(10)
    write_folds(tmp_path, pool, requests)
    data.write_library(library, pool)
    catalog = prowess.scan(library)
    semantic = MeaningSource(requests, tmp_path).prepare(catalog)
    assert semantic is not None
    rank = quality.rank_by_meaning(catalog, semantic)
    assert [rank(request)[0] for request in requests] == list(range(10))
    with pytest.raises(KeyError):
        quality.rank_by_meaning(catalog, lambda request: semantic(requests[request.fold - 1]))(requests[0])


def test_a_request_that_a_selection_serves_has_its_skill_among_those_shown(tmp_path: Path, library: Path) -> None:
    pool, requests = make_pool(*(f"skill-{place}" for place in range(150))), make_fold_requests(10)
    write_folds(tmp_path, pool, requests)
    drawn = selection.Drawn(list(range(149, -1, -1)), requests)
    data.write_library(library, [pool[place] for place in drawn.places])
    catalog = prowess.scan(library)
    ways = selection.list_ways(catalog, MeaningSource(requests, tmp_path).prepare(catalog, drawn.places))
    shown = selection.summarize_ways(150, requests, selection.measure_ways(ways, drawn))
    assert [row.way for row in shown] == [selection.EVERYTHING, selection.CUT, selection.WORDS, selection.MEANING]
    everything, cut, _, meaning = shown
    assert (everything.skills, everything.right.mean, meaning.right.mean) == (150, 1, 1)
    assert meaning.skills < 150
    assert max(cut.tokens, meaning.tokens) <= selection.BUDGET < everything.tokens


@pytest.mark.parametrize("runs", [(), ("a", "b")])
def test_a_folder_must_hold_the_vectors_of_one_training_run(tmp_path: Path, runs: tuple[str, ...]) -> None:
    for run in runs:
        write_folds(tmp_path, make_pool("a"), [], run)
    with pytest.raises(SystemExit, match=", ".join(f"vectors-{run}" for run in runs) or "none"):
        find_fold_files(tmp_path)


def test_vectors_of_other_folds_are_refused(tmp_path: Path) -> None:
    pool, requests = make_pool("a", "b", "c"), make_fold_requests(3)
    write_folds(tmp_path, pool, requests)
    with pytest.raises(SystemExit, match="made for other folds"):
        FoldEncoder(tmp_path / "vectors-tried-0.npz", 0, {}, requests[1:])


# -- what is written ---------------------------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"


def test_the_plot_names_each_curve_and_each_size_and_has_colours_for_dark_screens() -> None:
    sizes = (10, 100, 1_000, 10_000)
    curves = [
        Curve("everything", sizes, (500, 5_000, 50_000, 500_000), (1, 1, 1, 1)),
        Curve("words & <meaning>", sizes, (500, 3_000, 3_000, 3_000), (1, 1, 0.95, 0.9)),
    ]
    root = ET.fromstring(draw_selection(curves))  # noqa: S314 - our own text
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"everything", "words & <meaning>", "10", "10,000", "1,000,000", "100 %"} <= set(texts)
    title = root.findtext(f"{SVG}title") or ""
    assert "words & <meaning>: 3,000 tokens, 90%" in title
    assert "prefers-color-scheme: dark" in (root.findtext(f"{SVG}style") or "")


def test_a_higher_share_is_drawn_higher_and_a_larger_library_further_right() -> None:
    sizes = (10, 10_000)
    root = ET.fromstring(draw_selection([Curve("a", sizes, (100, 10_000), (1.0, 0.5))]))  # noqa: S314 - our own text
    *_, tokens, shares = [path.get("d", "") for path in root.iter(f"{SVG}path") if path.get("class") == "a line"]
    for path, first_is_higher in ((tokens, False), (shares, True)):
        (x1, y1), (x2, y2) = (map(float, point.split()) for point in path[1:].split("L"))
        assert x1 < x2
        assert (y1 < y2) is first_is_higher


def test_a_table_goes_between_the_marks_of_a_page_and_a_page_without_them_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- a: begin -->\nold\n<!-- a: end -->\nafter\n", encoding="utf-8")
    table.write_between("a", "new\n", page)
    table.write_between("a", "newer\n", page)
    assert page.read_text(encoding="utf-8") == "before\n<!-- a: begin -->\n\nnewer\n\n<!-- a: end -->\nafter\n"
    with pytest.raises(SystemExit, match=r"page\.md has no place for the table"):
        table.write_between("b", "new\n", page)

"""A catalogue: by name, in order, merged by rule, and honest about what was wrong."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from prowess import (
    Catalog,
    DuplicateSkillError,
    Frontmatter,
    Issue,
    Skill,
    SkillScope,
    SourceError,
    UnknownSkillError,
    discover,
    scan,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Put = Callable[..., Path]


def inline(name: str, description: str = "d", body: str = "text") -> Skill:
    return Skill(Frontmatter(name, description), body=body)


def at(path: str, name: str, scope: SkillScope | None = None) -> Skill:
    return Skill(Frontmatter(name, "d"), f"{path}/SKILL.md", scope)


# -- looking up --------------------------------------------------------------------------------------------------------


def test_skills_are_found_by_name_and_listed_in_its_order() -> None:
    a, b, c = inline("a"), inline("b"), inline("c")
    catalog = Catalog([c, a, b])
    assert len(catalog) == 3
    assert catalog.names == ("a", "b", "c")
    assert catalog.skills == tuple(catalog) == (a, b, c)
    assert catalog["b"] is catalog.get("b") is b
    assert "b" in catalog
    assert "x" not in catalog
    assert 3 not in catalog
    assert catalog.get("x") is None
    assert repr(catalog) == "<Catalog of 3 skills>"


def test_a_catalogue_has_the_names_values_and_items_of_a_mapping() -> None:
    """A program that had a dict of skills goes on with it, but for iterating over names."""
    catalog = Catalog([inline("b"), inline("a")])
    assert (catalog.keys(), catalog.values()) == (("a", "b"), catalog.skills)
    assert [(name, skill.name) for name, skill in catalog.items()] == [("a", "a"), ("b", "b")]
    assert dict(catalog) == dict(catalog.items()) == {"a": catalog["a"], "b": catalog["b"]}


@pytest.mark.needs_posix
def test_a_missing_root_is_named_in_the_repr_and_in_errors(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    catalog = scan(gone)
    assert [(issue.code, issue.severity, issue.path) for issue in catalog.issues] == [
        ("missing-root", "info", str(gone))
    ]
    assert [place.state for place in catalog.places] == ["missing"]
    assert repr(catalog) == f"<Catalog of 0 skills; {gone} does not exist>"
    with pytest.raises(UnknownSkillError, match=f"^unknown skill 'pdf'; {gone} does not exist; no skills are av"):
        catalog["pdf"]
    assert "does not exist" not in repr(discover(cwd=tmp_path, home=tmp_path / "home"))


def test_an_empty_catalogue_is_a_catalogue() -> None:
    catalog = Catalog()
    assert (len(catalog), catalog.names, catalog.issues, catalog.shadowed, list(catalog)) == (0, (), (), (), [])
    with pytest.raises(UnknownSkillError, match="no skills are available"):
        catalog["x"]


def test_an_unknown_name_lists_the_nearest_first_and_not_all() -> None:
    catalog = Catalog([inline(f"skill-{n:03}") for n in range(100)] + [inline("pdf-forms")])
    with pytest.raises(UnknownSkillError) as caught:
        catalog["pdf-form"]
    assert isinstance(caught.value, KeyError)
    assert caught.value.available[0] == "pdf-forms"
    assert "available: pdf-forms, skill-000" in str(caught.value)
    assert "and 81 more" in str(caught.value)
    for call in (catalog.load, catalog.load_body):
        with pytest.raises(UnknownSkillError):
            call("pdf-form")


def test_a_catalogue_cannot_be_changed() -> None:
    catalog = Catalog([inline("a")])
    with pytest.raises(TypeError):
        catalog["b"] = inline("b")  # type: ignore[index]  # the point of the test
    with pytest.raises(TypeError):
        del catalog["a"]  # type: ignore[attr-defined]  # the point of the test
    with pytest.raises(AttributeError):
        catalog.skills = ()  # type: ignore[misc]  # the point of the test
    assert isinstance(catalog.skills, tuple)
    assert isinstance(catalog.issues, tuple)


# -- duplicates --------------------------------------------------------------------------------------------------------


@pytest.mark.needs_posix
@pytest.mark.parametrize(("policy", "winner"), [("first", "/one"), ("last", "/three")])
def test_the_first_or_the_last_copy_wins(policy: str, winner: str) -> None:
    copies = [at("/one", "a"), at("/two", "a"), at("/three", "a"), at("/b", "b")]
    catalog = Catalog(copies, on_duplicate=policy)  # type: ignore[arg-type]  # mypy widens the parameter
    assert catalog.names == ("a", "b")
    assert catalog["a"].location == f"{winner}/SKILL.md"
    lost = {s.location for s in catalog.shadowed}
    assert lost == {f"{p}/SKILL.md" for p in ("/one", "/two", "/three") if p != winner}
    assert {i.path for i in catalog.issues} == lost
    for issue in catalog.issues:
        assert (issue.code, issue.severity) == ("duplicate-name", "warning")
        assert f"{winner}/SKILL.md" in issue.message


@pytest.mark.parametrize("policy", ["first", "last"])
def test_each_lost_copy_names_the_skill_that_won_in_the_end(policy: str) -> None:
    copies = [at("/one", "a"), at("/two", "a"), at("/three", "a")]
    catalog = Catalog(copies, on_duplicate=policy)  # type: ignore[arg-type]  # mypy widens the parameter
    assert {s.winner for s in catalog.shadowed} == {catalog["a"].location}


@pytest.mark.needs_posix
def test_a_duplicate_may_be_an_error_that_names_both() -> None:
    with pytest.raises(DuplicateSkillError) as caught:
        Catalog([at("/one", "a"), at("/two", "a")], on_duplicate="error")
    assert "/one/SKILL.md" in str(caught.value)
    assert "/two/SKILL.md" in str(caught.value)
    assert len(Catalog([at("/one", "a"), at("/two", "b")], on_duplicate="error")) == 2


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(SourceError, match="'first', 'last' or 'error'"):
        Catalog([], on_duplicate="newest")  # type: ignore[arg-type]  # the point of the test


def test_the_same_file_twice_is_one_skill(put: Put, tmp_path: Path) -> None:
    put("kit")
    catalog = scan(tmp_path, tmp_path, on_duplicate="error")
    assert catalog.names == ("kit",)
    assert (catalog.shadowed, catalog.issues) == ((), ())


@pytest.mark.needs_posix
def test_a_skill_of_the_user_that_a_project_shadows_has_a_code_of_its_own() -> None:
    catalog = Catalog(
        [at("/p", "a", SkillScope.PROJECT), at("/u", "a", SkillScope.USER), at("/v", "a", SkillScope.USER)]
    )
    assert catalog["a"].scope is SkillScope.PROJECT
    assert [i.code for i in catalog.issues] == ["shadowed-by-project"] * 2
    assert {i.path for i in catalog.issues} == {"/u/SKILL.md", "/v/SKILL.md"}


# -- merging -----------------------------------------------------------------------------------------------------------


@pytest.mark.needs_posix
def test_a_merge_holds_both_and_the_left_one_wins() -> None:
    left = Catalog([at("/l", "a"), at("/l2", "b")])
    right = Catalog([at("/r", "b"), at("/r2", "c")])
    merged = left | right
    assert merged.names == ("a", "b", "c")
    assert merged["b"].location == "/l2/SKILL.md"
    assert [s.location for s in merged.shadowed] == ["/r/SKILL.md"]
    assert (left.names, right.names) == (("a", "b"), ("b", "c"))


def test_a_merge_keeps_every_issue_and_loser_of_both(put: Put, tmp_path: Path) -> None:
    put("l/x/a")
    put("l/y/a")
    put("l/bad", "name: bad\n")
    put("r/z/b")
    put("r/w/b")
    put("r/worse", "name: [\n")
    left, right = scan(tmp_path / "l"), scan(tmp_path / "r")
    merged = left | right
    assert set(merged.issues) == set(left.issues) | set(right.issues)
    assert set(merged.shadowed) == set(left.shadowed) | set(right.shadowed)
    assert {p.path for p in merged.explain("a").places} == {str(tmp_path / "l"), str(tmp_path / "r")}


def test_merging_is_only_for_catalogues() -> None:
    with pytest.raises(TypeError):
        Catalog() | [inline("a")]  # type: ignore[operator]  # the point of the test
    assert (Catalog([inline("a")]) | Catalog()).names == ("a",)


# -- under -------------------------------------------------------------------------------------------------------------


def test_whole_segments_of_the_virtual_path_are_compared(put: Put, tmp_path: Path) -> None:
    for path in ("billing/a", "billing/deep/b", "billing-x/c", "d"):
        put(path)
    catalog = scan(tmp_path)
    names = {
        folder: tuple(s.name for s in catalog.under(folder))
        for folder in ("", *map(str, (tmp_path, tmp_path / "billing")))
    }
    assert names[""] == names[str(tmp_path)] == ("a", "b", "c", "d")
    assert names[str(tmp_path / "billing")] == ("a", "b")
    assert [s.name for s in catalog.under(f"{tmp_path}/billing/")] == ["a", "b"]
    assert [s.name for s in catalog.under(f"{tmp_path}/d")] == ["d"]
    assert catalog.under(f"{tmp_path}/nothing") == ()


def test_a_mounted_skill_is_found_under_its_virtual_path(put: Put, tmp_path: Path) -> None:
    put("a")
    mounted = scan(tmp_path)["a"].with_source(virtual_path="skills/billing/a")
    catalog = Catalog([mounted, inline("b")])
    assert catalog.under("skills/billing") == (mounted,)
    assert catalog.under("skills") == (mounted,)
    assert catalog.under("skills/bill") == ()
    assert catalog.under(str(tmp_path)) == ()


# -- reading -----------------------------------------------------------------------------------------------------------


def test_a_catalogue_reads_the_body_and_the_files_of_a_skill_by_its_name(put: Put, tmp_path: Path) -> None:
    folder = put("kit", body="\n Do it. \n")
    (folder / "x.md").write_text("x", encoding="utf-8")
    catalog = scan(tmp_path)
    assert catalog.load("kit").instructions == "Do it."
    assert catalog.load("kit").skill.name == "kit"
    assert catalog.load_body("kit") == "\n Do it. \n"
    assert catalog.read_resource("kit", "x.md") == "x"


def test_preloaded_skills_come_with_instructions_and_broken_ones_are_left_out(put: Put, tmp_path: Path) -> None:
    put("b")
    gone = put("a")
    put("c")
    skills = scan(tmp_path)
    catalog = Catalog(skills[name].with_source(preload=name != "c") for name in "abc")
    (gone / "SKILL.md").unlink()
    assert [(loaded.skill.name, loaded.instructions) for loaded in catalog.preloaded()] == [("b", "Do it.")]


# -- issues ------------------------------------------------------------------------------------------------------------


def test_issues_are_in_order_of_file_line_and_code(put: Put, tmp_path: Path) -> None:
    put("c", "name: C C\ndescription: x: y\nlicense: ''\n")
    put("a", "name: a\n", body="")
    put("b", "name: other\ndescription: d\n", body="")
    issues = scan(tmp_path).issues
    keys = [(i.path, i.line, i.code) for i in issues]
    assert keys == sorted(keys)
    assert {i.code for i in issues} == {
        *("bad-name", "name-mismatch", "repaired-colon", "blank-field", "missing-description", "empty-body"),
    }
    assert all(i.path.startswith(str(tmp_path)) and i.hint for i in issues)


@pytest.mark.parametrize(
    ("rows", "body", "code"),
    [
        ("name: kit\ndescription: " + "d" * 1100 + "\n", "x", "description-too-long"),
        ("name: kit\ndescription: a\u200bb\n", "x", "hidden-text"),
        ("name: other\ndescription: b\n", "x", "name-mismatch"),
        ("name: kit\ndescription: b\nmetadata:\n  - x\n", "x", "wrong-type"),
        ("name: kit\ndescription: b\ncompatibility: '" + "c" * 501 + "'\n", "x", "compatibility-too-long"),
        ("name: kit\ndescription: b\nhooks: x\n", "x", "inert-field"),
        ("name: kit\ndescription: b\n", " \n", "empty-body"),
        ("name: kit\ndescription: b\n", "\u3000\n", "empty-body"),
        ("name: kit\ndescription: b\n", "\n" * 5000, "empty-body"),
    ],
)
def test_what_discovery_put_off_is_found_when_issues_are_asked_for(
    put: Put, tmp_path: Path, rows: str, body: str, code: str
) -> None:
    put("kit", rows, body)
    catalog = scan(tmp_path)
    assert len(catalog) == 1
    assert [i.code for i in catalog.issues] == [code]
    assert catalog.issues is catalog.issues


@pytest.mark.parametrize("body", ["x", "\n" * 5000 + "x", "\u3000x"])
def test_a_body_that_says_something_is_not_an_issue(put: Put, tmp_path: Path, body: str) -> None:
    put("kit", body=body)
    assert scan(tmp_path).issues == ()


def test_unknown_keys_are_not_issue_of_a_catalogue(put: Put, tmp_path: Path) -> None:
    put("kit", "name: kit\ndescription: d\nfrobnicate: x\n")
    assert scan(tmp_path).issues == ()


@pytest.mark.parametrize("other", ["skill.md", "Skill.md", "SKILL.MD"])
def test_two_spellings_of_the_file_are_an_issue_and_the_right_one_is_used(put: Put, tmp_path: Path, other: str) -> None:
    folder = put("kit")
    (folder / other).write_text("---\nname: evil\ndescription: d\n---\nx", encoding="utf-8")
    if len(list(folder.iterdir())) == 1:
        pytest.skip("the file system ignores case")
    catalog = scan(tmp_path)
    assert catalog.names == ("kit",)
    assert [(i.code, i.severity) for i in catalog.issues] == [("filename-collision", "warning")]
    assert other in catalog.issues[0].message


@pytest.mark.parametrize(("one", "two"), [("Kit", "kit"), ("caf\u00e9", "cafe\u0301")])
def test_folders_that_are_one_on_other_systems_are_an_issue(put: Put, tmp_path: Path, one: str, two: str) -> None:
    put(one, "name: a\ndescription: d\n")
    put(two, "name: b\ndescription: d\n")
    if len(list(tmp_path.iterdir())) == 1:
        pytest.skip("the file system takes them for one")
    catalog = scan(tmp_path)
    assert catalog.names == ("a", "b")
    assert "folder-collision" in {i.code for i in catalog.issues}


def test_issues_given_by_the_caller_are_kept() -> None:
    mine = Issue("unreadable", "", "m", "/p", 1)
    assert Catalog([inline("a")], issues=[mine]).issues == (mine,)


def test_many_threads_get_equal_issues_names_and_fields(put: Put, tmp_path: Path) -> None:
    for number in range(60):
        put(f"s{number}", f"name: s{number}\ndescription: {'d' * (900 + 5 * number)}\n", body="" if number % 3 else "x")
    alone = scan(tmp_path)
    expected = (alone.issues, alone.names, [s.frontmatter for s in alone])
    catalog = scan(tmp_path)
    start = threading.Barrier(8)

    def ask(number: int) -> tuple[object, ...]:
        start.wait()
        if number % 2:
            issues, names = catalog.issues, catalog.names
        else:
            names, issues = catalog.names, catalog.issues
        return issues, names, [s.frontmatter for s in catalog]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(8)))
    assert all(answer == expected for answer in answers)


# -- explain -----------------------------------------------------------------------------------------------------------


def test_a_skill_is_explained_with_its_losers_issues_and_places(put: Put, tmp_path: Path) -> None:
    put("one/kit", "name: kit\ndescription: x: y\ndisable-model-invocation: true\n")
    put("two/kit")
    os.makedirs(tmp_path / "three")  # noqa: PTH103 - as short as it gets
    found = scan(*(tmp_path / n for n in ("one", "two", "three", "none"))).explain("kit")
    assert found.location == str(tmp_path / "one" / "kit" / "SKILL.md")
    assert not found.visible
    assert [s.location for s in found.shadowed] == [str(tmp_path / "two" / "kit" / "SKILL.md")]
    assert {i.code for i in found.issues} == {"repaired-colon", "duplicate-name"}
    assert [(p.path, p.state, p.found) for p in found.places] == [
        (str(tmp_path / "one"), "scanned", 1),
        (str(tmp_path / "two"), "scanned", 1),
        (str(tmp_path / "three"), "scanned", 0),
        (str(tmp_path / "none"), "missing", 0),
    ]
    text = str(found)
    assert all(
        part in text for part in ("disable-model-invocation", str(tmp_path / "two"), "repaired-colon", "missing")
    )


def test_a_name_that_did_not_load_is_explained_by_its_issues(put: Put, tmp_path: Path) -> None:
    put("bad", "name: bad\n", body="# Bad\n")
    put("good")
    found = scan(tmp_path).explain("bad")
    assert (found.location, found.visible) == (None, False)
    assert [i.code for i in found.issues] == ["missing-description"]
    assert "good" in found.reasons[0]
    assert "not found" in str(found)


def test_a_plain_skill_is_visible(put: Put, tmp_path: Path) -> None:
    put("good")
    found = scan(tmp_path).explain("good")
    assert found.visible
    assert (found.issues, found.shadowed) == ((), ())


def test_a_skill_is_looked_up_by_its_written_name_with_a_colon_too(put: Put, tmp_path: Path) -> None:
    put("base", "name: maestro:base\ndescription: d\n")
    catalog = scan(tmp_path)
    skill = catalog["maestro:base"]
    assert (skill, catalog.get("maestro:base"), "maestro:base" in catalog) == (catalog["maestro-base"], skill, True)
    assert (skill.name, skill.written_name, catalog.names) == ("maestro-base", "maestro:base", ("maestro-base",))
    assert [issue.code for issue in skill.repairs] == ["repaired-name-colon"]
    assert catalog.explain("maestro:base").location == skill.location
    assert (skill.load().skill.written_name, skill.load().skill.name) == ("maestro:base", "maestro-base")
    for name in ("other:base", "maestro-base:", 3):
        assert (name in catalog, catalog.get(name)) == (False, None)  # type: ignore[arg-type]  # on purpose

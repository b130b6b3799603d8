"""The plain data that passes between the layers."""

from __future__ import annotations

import dataclasses
import json

import pytest

from prowess import Explanation, FileList, Issue, Place, Resources, Shadowed, SkillScope


def test_scopes_equal_their_values_and_serialize_as_json() -> None:
    """A host compares a scope with a string, and writes it into JSON, without knowing the class."""
    assert [scope == "user" for scope in SkillScope] == [False, True]
    assert (f"{SkillScope.USER}", json.dumps({"scope": SkillScope.USER})) == ("user", '{"scope": "user"}')


def test_scopes_have_the_values_that_files_and_people_use() -> None:
    assert {scope.name: scope.value for scope in SkillScope} == {"PROJECT": "project", "USER": "user"}
    assert SkillScope("user") is SkillScope.USER


def test_resources_say_whether_there_are_any_and_where() -> None:
    some = Resources(scripts=("s",), references=("r",), assets=("a", "b"), other=("o",))
    assert some
    assert some.paths == ("assets/a", "assets/b", "scripts/s", "references/r", "o")
    assert not Resources()
    assert Resources().paths == ()
    assert Resources(other=("o",))


def test_issues_met_while_listing_do_not_make_resources_differ() -> None:
    assert Resources(other=("o",), issues=(Issue("a", "b", "c"),)) == Resources(other=("o",))


def test_a_file_list_is_a_tuple_that_knows_whether_it_is_complete() -> None:
    files = FileList(["a", "b"])
    assert (files.issues, files.complete) == ((), True)
    assert files == ("a", "b")


def test_an_explanation_reads_as_text() -> None:
    found = Explanation(
        "kit",
        "/a/SKILL.md",
        visible=True,
        reasons=("because",),
        shadowed=(Shadowed("kit", "/b/SKILL.md", "/a/SKILL.md", "first wins"),),
        issues=(Issue("bad-name", "name", "m"),),
        places=(Place("/a", SkillScope.USER, "scanned", 1),),
    )
    assert str(found).splitlines() == [
        "kit: /a/SKILL.md",
        "  because",
        "  shadowed: /b/SKILL.md (first wins)",
        "  error bad-name: name: m",
        "  looked in /a: scanned, 1 found",
    ]
    assert str(Explanation("x", None, visible=False, reasons=())) == "x: not found"


@pytest.mark.parametrize(
    "value", [Resources(), Place("/"), Shadowed("a", "b", "c", "d"), Explanation("a", None, visible=False, reasons=())]
)
def test_values_cannot_be_changed(value: object) -> None:
    field = dataclasses.fields(value)[0].name  # type: ignore[arg-type]  # all of them are data classes
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, field, "x")

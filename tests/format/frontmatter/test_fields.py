"""YAML values as fields: typed, kept whole, nothing judged."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess import Frontmatter
from prowess.format.frontmatter.fields import build_frontmatter

if TYPE_CHECKING:
    from prowess.format.frontmatter.yaml_events import Value


def test_every_field_of_the_yaml_is_an_attribute() -> None:
    front = build_frontmatter(
        {
            "name": "a",
            "description": "b",
            "license": "MIT",
            "compatibility": "any",
            "metadata": {"author": "x", "version": "1.10"},
            "allowed-tools": "Bash(git:*) Read",
            "tags": ["x", "y"],
            "version": "2.0",
            "model": "m",
            "context": "fork",
            "other": {"deep": ["list", {"k": "v"}]},
        }
    )
    assert front == Frontmatter(
        name="a",
        description="b",
        license="MIT",
        compatibility="any",
        metadata={"author": "x", "version": "1.10"},
        allowed_tools=("Bash(git:*)", "Read"),
        allowed_tools_raw="Bash(git:*) Read",
        tags=("x", "y"),
        version="2.0",
        model="m",
        context="fork",
        extra={
            "tags": ["x", "y"],
            "version": "2.0",
            "model": "m",
            "context": "fork",
            "other": {"deep": ["list", {"k": "v"}]},
        },
    )
    assert front.findings == ()


def test_a_program_may_name_tools_and_tags_as_a_file_does() -> None:
    """One string is never taken apart into its characters."""
    for tools in ("Bash(git add:*) Read, Grep", ["Bash(git add:*)", "Read, Grep"], ("Bash(git add:*)", "Read", "Grep")):
        assert Frontmatter("a", "b", allowed_tools=tools).allowed_tools == ("Bash(git add:*)", "Read", "Grep")  # type: ignore[arg-type]
    for tags in ("git, pdf", ["git", " pdf "], ("git", "pdf")):
        assert Frontmatter("a", "b", tags=tags).tags == ("git", "pdf")  # type: ignore[arg-type]
    assert Frontmatter("a", "b", allowed_tools="Read").allowed_tools_raw == "Read"  # type: ignore[arg-type]


def test_a_skill_made_with_one_string_of_tools_grants_those_tools() -> None:
    front = Frontmatter("a", "b", allowed_tools="Read Grep", tags="git", metadata=None)  # type: ignore[arg-type]
    session = prowess.Session(prowess.Catalog([prowess.Skill(front, body="Do it.")]), tools="any")
    assert session.activate("a").added_tools == ("Grep", "Read")
    assert session.catalog["a"].to_dict()["allowed_tools"] == ["Read", "Grep"]
    assert [skill.tags for skill in session.catalog] == [("git",)]


def test_nothing_stands_for_absent_tools_tags_and_metadata() -> None:
    front = Frontmatter("a", "b", allowed_tools=None, tags=None, metadata=None, extra=None)  # type: ignore[arg-type]
    assert front == Frontmatter("a", "b")
    front.validate()


def test_a_program_that_changes_its_metadata_changes_no_skill() -> None:
    metadata = {"author": "x"}
    front = Frontmatter("a", "b", metadata=metadata)
    metadata["author"] = "y"
    assert front.metadata == {"author": "x"}


def test_absent_fields_are_none_and_required_ones_empty() -> None:
    front = build_frontmatter({})
    assert (front.name, front.description) == ("", "")
    assert (front.license, front.compatibility, front.version, front.model, front.context) == (None,) * 5
    assert (front.metadata, front.allowed_tools, front.allowed_tools_raw, front.tags, front.extra) == (
        {},
        (),
        None,
        (),
        {},
    )


@pytest.mark.parametrize(
    ("value", "tools", "raw"),
    [
        ("", (), None),
        ("Read, Edit", ("Read", "Edit"), "Read, Edit"),
        (["Read", "Bash(git add:*)"], ("Read", "Bash(git add:*)"), "Read Bash(git add:*)"),
        ([], (), None),
        (["Read", "", ["x"]], ("Read",), "Read"),
    ],
)
def test_tools_are_text_or_a_list_and_the_raw_text_is_kept(
    value: Value, tools: tuple[str, ...], raw: str | None
) -> None:
    front = build_frontmatter({"allowed-tools": value})
    assert (front.allowed_tools, front.allowed_tools_raw) == (tools, raw)


def test_the_underscore_spelling_of_allowed_tools_counts_and_the_hyphen_wins() -> None:
    assert build_frontmatter({"allowed_tools": "Read"}).allowed_tools == ("Read",)
    assert build_frontmatter({"allowed_tools": "Read", "allowed-tools": "Edit"}).allowed_tools == ("Edit",)


@pytest.mark.parametrize(
    ("value", "tags"),
    [
        ("", ()),
        ("a, b,,c ", ("a", "b", "c")),
        (["a ", "b"], ("a", "b")),
        ([], ()),
        ({"a": "b"}, ()),
        (["a", ["b"]], ()),
    ],
)
def test_tags_are_a_list_or_text_with_commas(value: Value, tags: tuple[str, ...]) -> None:
    assert build_frontmatter({"tags": value}).tags == tags


@pytest.mark.parametrize("value", [["a", "b"], {"x": "1"}, [], {}, {"é": ["漢"]}])
def test_metadata_that_is_not_text_is_kept_as_json_with_a_finding(value: Value) -> None:
    front = build_frontmatter({"metadata": {"k": value, "t": "x"}}, {"metadata": 2, "metadata.k": 3})
    assert json.loads(front.metadata["k"]) == value
    assert front.metadata["t"] == "x"
    assert [(f.code, f.field, f.line) for f in front.findings] == [("metadata-not-text", "metadata.k", 3)]
    assert "\\u" not in front.metadata["k"]


@pytest.mark.parametrize("value", ["text", ["a"]])
def test_metadata_that_is_not_a_mapping_stands_in_extra(value: Value) -> None:
    front = build_frontmatter({"metadata": value})
    assert front.metadata == {}
    assert front.extra == {"metadata": value}
    assert [f.code for f in front.findings] == ["wrong-type"]


def test_empty_metadata_is_not_a_finding() -> None:
    assert build_frontmatter({"metadata": ""}).findings == ()


def test_a_field_of_the_wrong_shape_is_a_finding_and_not_a_value() -> None:
    front = build_frontmatter({"name": ["a"], "license": {"a": "b"}})
    assert (front.name, front.license) == ("", None)
    assert [(f.code, f.field) for f in front.findings] == [("wrong-type", "name"), ("wrong-type", "license")]


def test_a_frontmatter_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        build_frontmatter({"name": "a"}).name = "b"  # type: ignore[misc]  # the point of the test


def test_renaming_gives_a_copy() -> None:
    front = build_frontmatter({"name": "a", "license": "MIT"})
    assert (front.renamed("b").name, front.renamed("b").license, front.name) == ("b", "MIT", "a")

"""Which skills a tree holds: where they are looked for, which win, which count only by name."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prowess import Limits
from prowess.install.apply_plan import find_lookalike_issues
from prowess.install.find_skills import find_skills
from prowess.install.source_tree import check_paths
from prowess.text.spelling import lookup_forms
from tests.repositories import skill_text


def found(files: dict[str, str], *, every: bool = False) -> dict[str, str]:
    """The skills by name with their folders; ``every``: also those that count only by name."""
    data = {path: text.encode() for path, text in files.items()}
    skills, *_ = find_skills(data, data.__getitem__, name="top", limits=Limits())
    return {one.name: one.folder for one in skills if every or one.is_default}


def skills(*folders: str) -> dict[str, str]:
    return {
        f"{folder}/SKILL.md" if folder else "SKILL.md": skill_text(folder.rpartition("/")[2] or "top")
        for folder in folders
    }


def test_a_skill_on_top_is_alone() -> None:
    assert found(skills("", "skills/a")) == {"top": ""}


@pytest.mark.parametrize(
    "folder",
    [
        "a",
        "x/a",
        "x/y/a",
        "skills/a",
        "skills/x/y/a",
        "skills/.curated/a",
        ".claude/skills/a",
        ".agents/skills/x/a",
        "agent/skills/a",
    ],
)
def test_skills_are_found_where_people_put_them(folder: str) -> None:
    assert found(skills(folder)) == {"a": folder}


def test_deeper_skills_are_found_only_when_there_are_no_others() -> None:
    assert found(skills("x/y/z/a")) == {"a": "x/y/z/a"}
    assert found(skills("x/y/z/a", "skills/b")) == {"b": "skills/b"}
    assert found(skills("1/2/3/4/5/a")) == {}


def test_a_skill_in_a_skill_belongs_to_it() -> None:
    assert found(skills("skills/a", "skills/a/examples/b")) == {"a": "skills/a"}


@pytest.mark.parametrize("folder", ["node_modules/x/a", "dist/a", "skills/build/a", "__pycache__/a"])
def test_folders_that_hold_no_sources_are_passed_over(folder: str) -> None:
    assert found(skills(folder)) == {}


def test_the_first_of_a_name_wins() -> None:
    files = skills("skills/a") | {"tools/SKILL.md": skill_text("a")}
    assert found(files) == {"a": "skills/a"}


@pytest.mark.parametrize(
    ("manifest", "folder"),
    [
        ({"plugins": [{"name": "p", "source": "./plugins/deep/er/p"}]}, "plugins/deep/er/p/skills/a"),
        ({"plugins": [{"name": "p", "source": "./", "skills": ["./1/2/3/4/a"]}]}, "1/2/3/4/a"),
        ({"plugins": [{"name": "p", "source": "./", "skills": "./1/2/3/4"}]}, "1/2/3/4/a"),
        ({"metadata": {"pluginRoot": "./plugins/deep/er"}, "plugins": [{"source": "p"}]}, "plugins/deep/er/p/skills/a"),
    ],
)
def test_plugin_manifests_name_further_places(manifest: dict[str, object], folder: str) -> None:
    files = skills(folder, "skills/b")
    assert found(files) == {"b": "skills/b"}
    files[".claude-plugin/marketplace.json"] = json.dumps(manifest)
    assert found(files) == {"a": folder, "b": "skills/b"}


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{", "[" * 100_000, '{"plugins": 1}', '{"plugins": [1, {"source": {"source": "github"}}]}'),
        *(
            '{"plugins": [{"source": "./../../x", "skills": ["../x", 1]}]}',
            '{"metadata": 1, "plugins": [{"source": "/etc"}]}',
        ),
    ],
)
def test_a_plugin_manifest_that_makes_no_sense_changes_nothing(text: str) -> None:
    assert found(skills("skills/a") | {".claude-plugin/marketplace.json": text}) == {"a": "skills/a"}


def test_internal_skills_and_those_of_others_count_only_by_name() -> None:
    files = skills("skills/a", "skills/b")
    files["skills/c/SKILL.md"] = skill_text("c", fields="metadata:\n  internal: true\n")
    files["skills-lock.json"] = json.dumps({"version": 1, "skills": {"b": {"source": "x/y"}}})
    assert found(files) == {"a": "skills/a"}
    assert set(found(files, every=True)) == {"a", "b", "c"}


@pytest.mark.parametrize(("value", "names"), [("1", {"a", "c"}), ("true", {"a", "c"}), ("0", {"a"}), ("", {"a"})])
def test_internal_skills_count_where_the_environment_says_so(
    monkeypatch: pytest.MonkeyPatch, value: str, names: set[str]
) -> None:
    monkeypatch.setenv("INSTALL_INTERNAL_SKILLS", value)
    files = skills("skills/a")
    files["skills/c/SKILL.md"] = skill_text("c", fields="metadata:\n  internal: true\n")
    assert set(found(files)) == names


def test_a_skill_that_does_not_load_is_an_issue_and_hides_no_other() -> None:
    data = {path: text.encode() for path, text in skills("skills/a").items()} | {"skills/b/SKILL.md": b"no frontmatter"}
    good, issues, _ = find_skills(data, data.__getitem__, name="top", limits=Limits())
    assert [one.name for one in good] == ["a"]
    assert [(issue.code, issue.path) for issue in issues] == [("no-frontmatter", "skills/b/SKILL.md")]


# -- names -------------------------------------------------------------------------------------------------------------


NAMES = st.lists(st.text("ab0o-", min_size=1, max_size=5), max_size=6)


@given(NAMES, NAMES)
def test_no_pair_that_resembles_is_missed(names: list[str], known: list[str]) -> None:
    pairs = {
        (one, other)
        for one in names
        for other in known
        if one != other
        and re.sub("[0-9]+", "0", one) != re.sub("[0-9]+", "0", other)
        and not set(lookup_forms(one)).isdisjoint(lookup_forms(other))
    }
    message = "".join(issue.message for issue in find_lookalike_issues(names, "acme", known))
    assert bool(pairs) == bool(message)
    if len({one for one, _ in pairs}) <= 5:
        assert all(repr(one) in message and repr(other) in message for one, other in pairs)


@pytest.mark.parametrize(
    ("name", "known", "warns"),
    [
        ("step-2", "step-1", False),
        ("step-11", "step-1", False),
        ("acme/part2", "other/part1", False),
        ("step1", "step", True),
        ("too1", "tool", True),
        ("step2", "step-1", True),
        ("acme2/pdf", "acme1/pdf", True),
    ],
)
def test_names_of_a_series_are_not_taken_for_one_another(name: str, known: str, *, warns: bool) -> None:
    assert bool([*find_lookalike_issues([name], "x", [known])]) is warns


def test_a_vendors_word_is_its_own() -> None:
    assert [issue.code for issue in find_lookalike_issues(["anthropic-pdf"], "someone", ())] == ["near-name"]
    assert list(find_lookalike_issues(["anthropic-pdf"], "anthropics", ())) == []


# -- paths -------------------------------------------------------------------------------------------------------------


def test_ordinary_paths_are_fine() -> None:
    check_paths(["SKILL.md", "a/b.md", "a/c.md", ".hidden/x", "caf\u00e9.md"], Limits())

"""Fast paths of a skill: each gives what the slow path gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.format.frontmatter.quick.common_heads import MAX_HEAD_BYTES, match_head
from prowess.format.rules import field_issues
from prowess.skills import catalog_issues
from prowess.skills.skill import make_skill_from_match
from prowess.skills.skill_files import SkillLocation

if TYPE_CHECKING:
    from pathlib import Path

_CONTEXTS = (
    "context: fork",
    'context: "fork"',
    "context:  fork",
    "context: >-\n  fork",
    "context: main",
    "context:\n  - fork",
    "contexts: fork",
    "license: context: fork",
    "license: its context is a fork",
    "metadata:\n  context: fork",
)


@pytest.mark.parametrize("written", _CONTEXTS)
def test_a_skill_is_a_fork_or_not_whether_or_not_the_whole_head_was_parsed(tmp_path: Path, written: str) -> None:
    for place, rows in enumerate((("name: kit", written), (written, "name: kit"))):
        file = tmp_path / str(place) / "kit" / "SKILL.md"
        file.parent.mkdir(parents=True)
        file.write_text("\n".join(["---", *rows, "description: Does it.", "---", "Body."]))
        skill = prowess.scan(tmp_path / str(place))["kit"]
        assert skill.is_fork == (skill.frontmatter.context == "fork"), file.read_text()


def test_paths_stop_at_the_limit(tmp_path: Path) -> None:
    folder = tmp_path / "kit"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: kit\ndescription: d\n---\nBody.\n")
    for number in range(6):
        (folder / "scripts" / f"{number}.py").write_text("x")
    skill = prowess.scan(tmp_path, limits=prowess.Limits(max_files_per_skill=4))["kit"]
    assert len(skill.own_files.resource_paths()) == 4


@pytest.mark.needs_posix
@pytest.mark.parametrize("head", ["name: kit\ndescription: d\n", "name: kit\ndescription: a: b\n"])
def test_a_head_that_changed_within_the_tick_of_the_clock_is_parsed_again(tmp_path: Path, head: str) -> None:
    """Size and times of the file are as before, so only its bytes show the change."""
    file = tmp_path / "kit" / "SKILL.md"
    file.parent.mkdir()
    file.write_text(f"---\n{head}license: A\n---\nBody.\n")
    skill = prowess.scan(tmp_path)["kit"]
    known = skill.identity
    file.write_text(f"---\n{head}license: B\n---\nBody.\n")
    fresh = prowess.scan(tmp_path)["kit"]
    skill._identity = fresh.identity  # noqa: SLF001 - as if the clock had not moved
    assert known is not None
    assert skill.load().skill.license == "B"
    assert fresh.load().skill.license == "B"


VALUES = (
    *(
        "MIT",
        "Apache-2.0",
        "no",
        "true",
        "null",
        "~",
        "12",
        "1.5",
        "2024-01-01",
        "no     ",
        "no # really",
        "Does it.",
        "y",
    ),
    *("'quoted text'", '"quoted text"', "a#b and c", "Does it # all", "Does: it", "[one, two]", "x" * 401, "x" * 501),
    *("Words " * 170, "Words " * 171 + "end", "Wörter genügen", "zero\u200bwidth", "tab\there", "|\n  Block text.\n"),
    *(">\n  Folded text.\n", "Does it\n  on two lines", "", "infinity", "!tag text", "&anchor text", "Yes, indeed"),
    *("[Read, Bash(git:*)]", "[Read]", "[a: b]", "[a, '']", '["", a]', "[]", "[[a], b]", "[a,]", "{a: b}"),
    *("\n  - Read\n  - Bash(git add:*)", "\n- Read", "\n  - a: b", "\n  - a:", "\n  - ''", "\n  -", "\n  - - a"),
    *("\n  a: b", "\n  a: [b, c]", "\n  a:\n    b: c"),
    *(f'"blanks{" " * 1_100}"', f"'blanks{' ' * 300}'", f"|\n  {'word ' * 203}\n", f"|\n  {'word ' * 206}\n"),
    *(">-\n  Folded\n  text\n", "\u2014 dash", "dash \u2014 too", "it\ufe0f\ufe0f"),
)
KEYS = (
    *("name", "description", "license", "compatibility", "metadata", "extra", "model", "tags", "allowed-tools"),
    *("version", "author", "category", "context", "arguments", "user-invocable", "hooks", "paths"),
)


@pytest.mark.parametrize("key", KEYS)
def test_a_head_without_fault_is_one_in_which_the_rules_find_nothing(tmp_path: Path, key: str) -> None:
    faultless = 0
    for number, value in enumerate(VALUES):
        folder = tmp_path / f"kit-{number}"
        rows = {"name": folder.name, "description": "Does what is asked.", "license": "Apache-2.0", key: value}
        folder.mkdir()
        head = "".join(f"{field}: {text}\n" for field, text in rows.items())
        (folder / "SKILL.md").write_text(f"---\n{head}---\nBody.\n", encoding="utf-8")
    for skill in prowess.scan(tmp_path):
        if skill.is_faultless(skill.folder_name):
            faultless += 1
            assert skill.issues == ()
            rules = field_issues(skill.frontmatter, mode="lenient", folder=skill.folder_name, path=skill.location)
            assert rules == [], skill.read_text()
    assert faultless or key not in {"description", "license", "compatibility", "tags", "allowed-tools", "version"}


def test_a_real_head_without_fault_is_one_in_which_the_rules_find_nothing(real_heads: list[bytes]) -> None:
    faultless = 0
    for head in real_heads:
        match = match_head(head[:MAX_HEAD_BYTES])
        if match is None:
            continue
        skill = make_skill_from_match(SkillLocation("/root", "SKILL.md"), match[0], match, (0, 0, 0, 0, 0))
        if skill.is_faultless(match[0]):
            faultless += 1
            assert field_issues(skill.peek(), mode="lenient", folder=match[0]) == [], head
    assert faultless > len(real_heads) / 4


TREES = {
    "alone": ((), True),
    "usual": (("scripts/a.py", "references/deep/r.md", "assets/x.txt"), True),
    "hidden": ((".x/y", ".hidden"), True),
    "twin": (("skill.md",), False),
    "twin of another kind": (("skill.md/x",), True),
    "below": (("scripts/SKILL.md",), False),
    "far below": (("a/b/c/Skill.MD",), False),
    "git": ((".git/config", "GIT~1/skill.md"), False),
    "too deep": (("a/b/c/d/e/f/g/h/SKILL.md",), False),
    "many": (tuple(f"scripts/{number}.py" for number in range(12)), False),
    "many and one below": ((*(f"a/{number}.py" for number in range(12)), "b/SKILL.md"), False),
}


@pytest.mark.needs_posix
@pytest.mark.parametrize("kind", TREES)
@pytest.mark.parametrize("below", ["", "one/two"])
def test_a_folder_that_a_quick_look_calls_plain_has_no_issues(tmp_path: Path, kind: str, below: str) -> None:
    paths, is_plain = TREES[kind]
    folder = tmp_path / below / "kit"
    for path in ("SKILL.md", *paths):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("---\nname: kit\ndescription: d\n---\nBody.\n")
    limits = prowess.Limits(max_files_per_skill=10, max_depth_per_skill=6)
    skill = prowess.scan(tmp_path, limits=limits)["kit"]
    # A skill that does not lie in a root itself is always looked at closely.
    assert catalog_issues.has_plain_folder(skill) is (is_plain and not below)
    assert not is_plain or catalog_issues.find_folder_issues(skill) == []


@pytest.mark.needs_links
def test_a_quick_look_leaves_a_folder_that_cannot_be_listed_to_a_closer_one(tmp_path: Path) -> None:
    folder = tmp_path / "kit"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: kit\ndescription: d\n---\nBody.\n")
    skill = prowess.scan(tmp_path)["kit"]
    assert catalog_issues.has_plain_folder(skill)
    folder.rename(tmp_path / "moved")
    folder.symlink_to("moved")
    assert not catalog_issues.has_plain_folder(skill)
    assert catalog_issues.find_folder_issues(skill) == []


def test_the_fields_that_a_look_for_issues_parses_are_not_kept(tmp_path: Path) -> None:
    file = tmp_path / "kit" / "SKILL.md"
    file.parent.mkdir()
    file.write_text("---\nname: kit\ndescription: d\nhooks: none\n---\nBody.\n")
    catalog = prowess.scan(tmp_path)
    assert [issue.code for issue in catalog.issues] == ["inert-field"]
    assert catalog["kit"].unparsed_head is not None


def test_a_repaired_skill_is_refused_where_nothing_may_be_repaired(tmp_path: Path) -> None:
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "SKILL.md").write_text("---\nname: kit\ndescription: Does: it\n---\nBody.\n")
    assert prowess.scan(tmp_path).names == ("kit",)
    assert [issue.code for issue in prowess.scan(tmp_path).issues] == ["repaired-colon"]
    assert not prowess.scan(tmp_path, repair=False)
    assert not prowess.scan(tmp_path, invalid="skip")
    with pytest.raises(prowess.SkillLoadError):
        prowess.scan(tmp_path, mode="strict")


def test_a_repaired_skill_keeps_its_issues_when_its_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "kit" / "SKILL.md"
    file.parent.mkdir()
    file.write_text("---\nname: kit\ndescription: Does: it\n---\nBody.\n")
    skill = prowess.scan(tmp_path)["kit"]
    file.write_text("---\nname: kit\ndescription: Does: much more\n---\nAnother body.\n")
    loaded = skill.load().skill
    assert loaded.description == "Does: much more"
    assert [issue.code for issue in loaded.repairs] == ["repaired-colon"]

"""Which folders a scan looks at, what it makes of them, and where it stops."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Literal

import pytest

import prowess
from prowess import Catalog, Issue, Limits, SkillLoadError, Source, SourceError, scan
from prowess.names import is_git_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Put = Callable[..., Path]


def codes(catalog: object) -> list[str]:
    return [issue.code for issue in catalog.issues]  # type: ignore[attr-defined]  # any catalogue


def notes(catalog: Catalog) -> list[tuple[str, str]]:
    """The codes and paths of a catalogue's issues, which are all mere information."""
    assert {issue.severity for issue in catalog.issues} <= {"info"}
    return [(issue.code, issue.path) for issue in catalog.issues]


# -- roots -------------------------------------------------------------------------------------------------------------


def test_an_empty_root_is_not_a_root(put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put("kit")
    monkeypatch.chdir(tmp_path)
    for catalog in (scan(""), scan("", "")):
        assert (len(catalog), catalog.issues, catalog.explain("x").places) == (0, (), ())


def test_roots_may_be_text_or_paths_and_are_scanned_in_order(put: Put, tmp_path: Path) -> None:
    put("one/kit", "name: kit\ndescription: First.\n")
    put("two/kit", "name: kit\ndescription: Second.\n")
    assert scan(tmp_path / "one", str(tmp_path / "two"))["kit"].description == "First."
    assert scan(tmp_path / "two", str(tmp_path / "one"))["kit"].description == "Second."
    assert scan(tmp_path / "one", tmp_path / "two", on_duplicate="last")["kit"].description == "Second."


def test_a_missing_root_is_information_or_an_error(put: Put, tmp_path: Path) -> None:
    put("here/kit")
    catalog = scan(tmp_path / "none", tmp_path / "here")
    assert (catalog.names, notes(catalog)) == (("kit",), [("missing-root", str(tmp_path / "none"))])
    assert str(catalog.issues[0]) == f"{tmp_path / 'none'}: info missing-root: the folder does not exist"
    with pytest.raises(SourceError) as caught:
        scan(tmp_path / "here", tmp_path / "none", missing="error")
    assert (caught.value.code, caught.value.path) == ("missing-root", str(tmp_path / "none"))


def test_a_root_without_a_skill_is_information_unless_something_else_was_reported(put: Put, tmp_path: Path) -> None:
    empty, odd = tmp_path / "empty", tmp_path / "odd"
    empty.mkdir()
    (odd / "bad").mkdir(parents=True)
    (odd / "bad/SKILL.md").write_text("no frontmatter", encoding="utf-8")
    catalog = scan(empty, tmp_path / "none", odd, put("here/kit").parent)
    assert [(issue.code, issue.path) for issue in catalog.issues][:2] == [
        ("no-skills", str(empty)),
        ("missing-root", str(tmp_path / "none")),
    ]
    assert "no-skills" not in {issue.code for issue in catalog.issues[1:]}
    assert repr(catalog) == f"<Catalog of 1 skills; {tmp_path / 'none'} does not exist>"
    assert (
        repr(scan(empty)) == f"<Catalog of 0 skills; {empty}: info no-skills: no skill is in this folder or below it>"
    )
    assert prowess.discover(cwd=empty, home=empty).issues == ()


def test_a_file_as_root_is_an_issue_or_an_error(put: Put, tmp_path: Path) -> None:
    file = put("here/kit") / "notes.md"
    file.write_text("Notes.\n", encoding="utf-8")
    catalog = scan(file, tmp_path / "here")
    assert catalog.names == ("kit",)
    assert [(i.code, i.path) for i in catalog.issues] == [("not-a-directory", str(file))]
    assert str(catalog.issues[0]) == f"{file}: error not-a-directory: this is not a folder"
    with pytest.raises(SourceError) as caught:
        scan(file, missing="error")
    assert caught.value.code == "not-a-directory"


def test_a_root_that_is_a_skill_is_found(put: Put) -> None:
    folder = put("kit")
    assert scan(folder).names == ("kit",)


@pytest.mark.needs_links
def test_a_root_may_be_a_link(put: Put, tmp_path: Path) -> None:
    put("real/kit")
    (tmp_path / "root").symlink_to("real")
    catalog = scan(tmp_path / "root")
    assert catalog.names == ("kit",)
    assert catalog["kit"].path == tmp_path / "root" / "kit" / "SKILL.md"
    assert catalog["kit"].read_body() == "Do it.\n"


def test_skip_prefixes_do_not_apply_to_roots(put: Put, tmp_path: Path) -> None:
    put(".hidden/kit")
    assert scan(tmp_path / ".hidden").names == ("kit",)


# -- depth -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [0, 1, 2, 6])
def test_folders_are_looked_at_down_to_the_depth_asked_for(put: Put, tmp_path: Path, depth: int) -> None:
    path = "root"
    for level in range(1, 9):
        put(f"{path}/at-{level}")
        path += f"/f{level}"
    catalog = scan(tmp_path / "root", max_depth=depth)
    assert catalog.names == tuple(f"at-{level}" for level in range(1, depth + 1))
    end = "/".join(["root", *(f"f{level}" for level in range(1, depth + 1))])
    assert notes(catalog) == [("too-deep", str(tmp_path / end))]


def test_six_levels_are_the_default_and_none_means_all(put: Put, tmp_path: Path) -> None:
    put("1/2/3/4/5/six")
    put("1/2/3/4/5/x/seven")
    put("/".join(map(str, range(1, 41))) + "/forty")
    assert scan(tmp_path).names == ("six",)
    assert scan(tmp_path, max_depth=None).names == ("forty", "seven", "six")


def test_even_without_a_depth_the_limit_holds_and_is_reported(put: Put, tmp_path: Path) -> None:
    put("1/2/3/deep")
    put("flat")
    catalog = scan(tmp_path, max_depth=None, limits=Limits(max_scan_depth=3))
    assert catalog.names == ("flat",)
    assert [(issue.code, issue.severity) for issue in catalog.issues] == [("too-deep", "error")]
    assert notes(scan(tmp_path, max_depth=3)) == [("too-deep", str(tmp_path / "1/2/3"))]


def test_the_depth_that_ends_a_scan_is_told_once_for_each_root(put: Put, tmp_path: Path) -> None:
    for folder in ("one/a/x", "one/b/x", "one/c/x", "two/a/x", "three"):
        put(folder)
    catalog = scan(tmp_path / "one", tmp_path / "two", tmp_path / "three", max_depth=1)
    assert notes(catalog) == [("too-deep", str(tmp_path / "one/a")), ("too-deep", str(tmp_path / "two/a"))]
    assert [issue.message.endswith("nor are those of 2 other folders") for issue in catalog.issues] == [True, False]
    assert "too-deep" not in codes(scan(tmp_path, max_depth=3))


# -- folders that are not entered --------------------------------------------------------------------------------------


def test_a_folder_that_is_skipped_by_its_name_is_information(put: Put, tmp_path: Path) -> None:
    for folder in ("kit", "_draft", "group/.hidden/x", "node_modules/y"):
        put(folder)
    (tmp_path / ".git").mkdir()
    skipped = ["_draft", "group/.hidden", "node_modules"]
    assert notes(scan(tmp_path)) == [("skipped-directory", str(tmp_path / folder)) for folder in skipped]
    everything = scan(tmp_path, skip_prefixes=())
    assert (everything.names, codes(everything)) == (("_draft", "kit", "x", "y"), ["bad-name"])


def test_of_very_many_skipped_folders_the_rest_is_counted(tmp_path: Path) -> None:
    for root, count in (("many", 7), ("few", 3)):
        for number in range(count):
            (tmp_path / root / f"_{number}").mkdir(parents=True)
    catalog = scan(tmp_path / "many", tmp_path / "few", limits=Limits(max_noted_folders=3))
    assert [issue.path for issue in catalog.issues] == [
        *(str(tmp_path / "few" / f"_{number}") for number in range(3)),
        str(tmp_path / "many"),
        *(str(tmp_path / "many" / f"_{number}") for number in range(3)),
    ]
    assert catalog.issues[3].message == "4 more folders below it are skipped by their names"


@pytest.mark.needs_case
@pytest.mark.parametrize("file", ["SKILL.md", "skill.md"])
def test_a_skill_inside_another_is_information(put: Put, tmp_path: Path, file: str) -> None:
    put("outer")
    inner = put("outer/examples/inner") / "SKILL.md"
    inner = inner.rename(inner.with_name(file))
    assert notes(scan(tmp_path)) == [("nested-skill", str(inner))]
    assert "'outer'" in scan(tmp_path).issues[0].message
    assert scan(tmp_path).explain("inner").issues == scan(tmp_path).issues
    assert "nested-skill" not in codes(scan(tmp_path, nested=True))


def test_a_skill_inside_another_that_a_second_root_finds_is_not_information(put: Put, tmp_path: Path) -> None:
    put("outer/inner")
    put("outer")
    assert scan(tmp_path, tmp_path / "outer/inner").issues == ()


def test_a_bad_file_below_a_skill_is_told_by_those_who_look_there(put: Put, tmp_path: Path) -> None:
    put("outer")
    put("outer/bad", "- no mapping\n")
    assert codes(scan(tmp_path, nested=True)) == ["yaml-not-a-mapping"]


# -- files that are invalid --------------------------------------------------------------------------------------------


def test_a_scan_may_leave_out_what_the_specification_refuses_and_go_on(put: Put, tmp_path: Path) -> None:
    put("good")
    put("other-folder", "name: good-too\ndescription: d\n")
    put("capital", "name: Capital\ndescription: d\n")
    put("long", f"name: long\ndescription: {'d' * 1025}\nlicense: ''\n")
    put("mended", "name: mended\ndescription: a: b\n")
    put("none", "name: none\n")
    catalog = scan(tmp_path, invalid="skip")
    assert catalog.names == ("good", "good-too")
    refused = ["bad-name", "description-too-long", "blank-field", "yaml-syntax", "missing-description"]
    assert sorted(issue.code for issue in catalog.failures) == sorted(refused)
    assert scan(tmp_path).names == ("Capital", "good", "good-too", "long", "mended", "none")


@pytest.mark.parametrize("filler", [1, 3950, 4020, 5000, 8110])
def test_every_reader_finds_the_same_description_in_the_body(filler: int, put: Put, tmp_path: Path) -> None:
    """Discovery reads the head alone, and the others the whole file: the paragraph may end behind what it read."""
    body = "\n# Forms\n\nFill forms in PDF files, one by one, and keep the fonts that they have.\n" + "x" * 9000
    path = put("forms", f"name: forms\nlicense: {'m' * filler}\n", body=body) / "SKILL.md"
    catalog = scan(tmp_path)
    assert catalog["forms"].description.startswith("Fill forms")
    described = {
        catalog["forms"].description,
        catalog["forms"].load().skill.description,
        prowess.parse_skill_file(path, mode="lenient").skill.description,
        prowess.read_metadata(path, mode="lenient").description,
        prowess.parse_skill(path.read_bytes(), path, mode="lenient").skill.description,
    }
    assert len(described) == 1
    assert [issue.code for issue in catalog["forms"].repairs] == ["description-from-body"]
    assert codes(scan(tmp_path, invalid="skip")) == ["missing-description"]
    with pytest.raises(SkillLoadError):
        scan(tmp_path, mode="strict")


def test_an_edited_first_paragraph_is_the_description_of_the_next_load(put: Put, tmp_path: Path) -> None:
    put("forms", "name: forms\n", body="Fill forms.\n")
    skill = scan(tmp_path)["forms"]
    put("forms", "name: forms\n", body="Merge files.\n")
    assert (skill.description, skill.load().skill.description) == ("Fill forms.", "Merge files.")
    assert scan(tmp_path)["forms"].description == "Merge files."


def test_names_of_65_characters_in_folders_of_that_name_load(put: Put, tmp_path: Path) -> None:
    put("n" * 65, f"name: {'n' * 65}\ndescription: d\n")
    catalog = scan(tmp_path)
    assert (catalog.names, codes(catalog)) == (("n" * 65,), ["bad-name"])
    assert catalog.issues[0].severity == "warning"
    with pytest.raises(SkillLoadError):
        scan(tmp_path, mode="strict")
    assert scan(tmp_path, invalid="skip").names == ()


@pytest.mark.needs_fifo
def test_a_strict_scan_that_skips_compares_the_folder_and_does_not_raise(put: Put, tmp_path: Path) -> None:
    put("good")
    other = put("other-folder", "name: good-too\ndescription: d\n") / "SKILL.md"
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "SKILL.md")
    catalog = scan(tmp_path, invalid="skip", mode="strict")
    assert catalog.names == ("good",)
    assert [(issue.code, issue.path, issue.severity) for issue in catalog.issues] == [
        ("name-mismatch", str(other), "error"),
        ("not-a-regular-file", str(tmp_path / "pipe/SKILL.md"), "error"),
    ]


def test_what_lies_below_a_skipped_file_is_still_found(put: Put, tmp_path: Path) -> None:
    put("Outer", "name: Outer\ndescription: d\n")
    put("Outer/inner")
    assert scan(tmp_path, invalid="skip").names == ("inner",)


@pytest.mark.parametrize(
    "options", [{"invalid": "drop"}, {"on_issue": "print"}, {"on_issue_from": "fatal"}, {"max_depth": "6"}]
)
def test_a_keyword_that_makes_no_sense_is_refused(options: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=next(iter(options))):
        scan(tmp_path, **options)  # type: ignore[arg-type]  # on purpose


def test_issues_may_be_heard_of_one_by_one(put: Put, tmp_path: Path) -> None:
    put("bad", "name: bad\n")
    put("odd", "name: Odd\ndescription: d\n")
    put("_draft")
    heard: list[Issue] = []
    catalog = scan(tmp_path, tmp_path / "none", on_issue=heard.append)
    assert (tuple(heard), len(heard)) == (catalog.issues, 5)


@pytest.mark.parametrize(
    ("least", "heard"),
    [
        ("info", ["description-from-body", "skipped-directory", "bad-name"]),
        ("warning", ["description-from-body", "bad-name"]),
        ("error", []),
    ],
)
def test_a_listener_may_hear_only_of_what_is_severe(
    put: Put, tmp_path: Path, least: Literal["info", "warning", "error"], heard: list[str]
) -> None:
    put("bad", "name: bad\n")
    put("odd", "name: Odd\ndescription: d\n")
    put("_draft")
    seen: list[Issue] = []
    calls: list[Callable[[], Catalog]] = [
        lambda: scan(tmp_path, on_issue=seen.append, on_issue_from=least),
        Source.directory(tmp_path, on_issue=seen.append, on_issue_from=least).load,
    ]
    for call in calls:
        seen.clear()
        assert len(call().issues) == 4
        assert {issue.code for issue in seen} == {*heard} | ({"name-mismatch"} if "bad-name" in heard else set())


def test_what_a_listener_raises_is_the_callers_to_see(put: Put, tmp_path: Path) -> None:
    put("bad", "name: bad\n")

    def refuse(issue: Issue) -> None:
        raise LookupError(issue.code)

    with pytest.raises(LookupError, match="description-from-body"):
        scan(tmp_path, on_issue=refuse)


@pytest.mark.needs_posix
def test_a_very_deep_tree_costs_no_recursion(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    try:
        assert len(scan(tmp_path, max_depth=None)) == 0
    finally:
        subprocess.run(["rm", "-rf", tmp_path / "d"], check=True)


# -- descent -----------------------------------------------------------------------------------------------------------


def test_what_lies_below_a_skill_belongs_to_it(put: Put, tmp_path: Path) -> None:
    put("outer")
    put("outer/references/inner")
    put("outer/other")
    assert scan(tmp_path).names == ("outer",)
    assert scan(tmp_path, nested=True).names == ("inner", "other", "outer")


def test_a_root_that_is_a_skill_may_hold_others(put: Put) -> None:
    root = put("root")
    put("root/inner")
    assert scan(root).names == ("root",)
    assert scan(root, nested=True).names == ("inner", "root")


def test_a_folder_whose_file_is_broken_is_searched_on(put: Put, tmp_path: Path) -> None:
    put("broken", "- broken\n")
    put("broken/inner")
    catalog = scan(tmp_path)
    assert catalog.names == ("inner",)
    assert codes(catalog) == ["yaml-not-a-mapping"]


@pytest.mark.parametrize("folder", [".git", ".hidden", "_private", "node_modules", "node_modules2"])
def test_hidden_and_foreign_folders_are_passed_over(put: Put, tmp_path: Path, folder: str) -> None:
    put(f"{folder}/kit")
    put("deeper/x/seen")
    put(f"deeper/{folder}/other")
    assert scan(tmp_path).names == ("seen",)
    others: tuple[str, ...] = () if folder == ".git" else ("kit", "other")  # what is git's own is searched by nobody
    assert scan(tmp_path, skip_prefixes=()).names == (*others, "seen")
    assert scan(tmp_path, skip_prefixes=["deep"]).names == others[:1]


NAMES = (
    *("git~1", "GIT~1. ", ".git", ".git\u200c", "\u200d.GIT", "Git", "gamma"),
    *("alpha", "_x", ".x", "\u00e9t\u00e9", "-", "node"),
)


@pytest.mark.needs_case
@pytest.mark.parametrize("prefixes", [(), ("",), ("a",), ("g", "_"), (".", "_", "node_modules"), ("a", ""), ("GIT",)])
def test_a_folder_is_entered_unless_it_is_gits_or_begins_with_a_prefix(
    put: Put, tmp_path: Path, prefixes: tuple[str, ...]
) -> None:
    for number, name in enumerate(NAMES):
        put(name, f"name: kit-{number}\ndescription: d\n")
    entered = {skill.folder_name for skill in scan(tmp_path, skip_prefixes=prefixes)}
    assert entered == {name for name in NAMES if not name.startswith(prefixes) and not is_git_name(name)}


@pytest.mark.needs_case
def test_order_on_disk_does_not_matter(put: Put, tmp_path: Path) -> None:
    for folder in ("z", "a", "m", "Z", "b/z", "b/a"):
        put(f"one/{folder}", f"name: kit\ndescription: {folder}\n")
    for folder in ("b/a", "Z", "b/z", "m", "a", "z"):
        put(f"two/{folder}", f"name: kit\ndescription: {folder}\n")
    one, two = scan(tmp_path / "one"), scan(tmp_path / "two")
    assert one["kit"].description == two["kit"].description == "Z"
    assert [os.path.relpath(s.location, tmp_path / "one") for s in one.shadowed] == [
        os.path.relpath(s.location, tmp_path / "two") for s in two.shadowed
    ]


# -- files -------------------------------------------------------------------------------------------------------------


def test_another_file_name_may_be_asked_for(put: Put, tmp_path: Path) -> None:
    put("kit", file="AGENT.md")
    put("other")
    catalog = scan(tmp_path, filename="AGENT.md")
    assert catalog.names == ("kit",)
    assert catalog["kit"].path == tmp_path / "kit" / "AGENT.md"
    assert catalog["kit"].read_body() == "Do it.\n"


@pytest.mark.parametrize("file", ["skill.md", "Skill.md", "SKILL.MD"])
def test_an_odd_case_of_the_file_name_loads_with_a_warning(put: Put, tmp_path: Path, file: str) -> None:
    put("a/kit", file=file)
    catalog = scan(tmp_path)
    assert catalog.names == ("kit",)
    assert [(i.code, i.severity) for i in catalog.issues] == [("filename-case", "warning")]
    assert catalog["kit"].path == tmp_path / "a" / "kit" / file
    assert catalog["kit"].read_body() == "Do it.\n"
    assert catalog["kit"].resources().other == ()


def test_an_odd_case_in_the_root_and_at_the_last_level_loads(put: Put, tmp_path: Path) -> None:
    root = put("kit", file="skill.md")
    assert scan(root).names == ("kit",)
    assert scan(tmp_path, max_depth=1).names == ("kit",)


def test_what_lies_below_a_skill_of_odd_case_belongs_to_it_too(put: Put, tmp_path: Path) -> None:
    put("kit", file="skill.md")
    put("kit/examples/inner")
    assert scan(tmp_path).names == ("kit",)
    assert scan(tmp_path, nested=True).names == ("inner", "kit")


def test_strict_mode_knows_only_the_exact_file_name(put: Put, tmp_path: Path) -> None:
    put("kit", file="skill.md")
    assert scan(tmp_path, mode="strict").names == ()


def test_a_head_longer_than_one_step_is_read_on(put: Put, tmp_path: Path) -> None:
    put("kit", "name: kit\nx: " + "y" * 20_000 + "\ndescription: At the end.\n", body="body\n")
    put("blank", "\n" * 5000 + "name: blank\ndescription: d\n")
    catalog = scan(tmp_path)
    assert catalog["kit"].description == "At the end."
    assert catalog["kit"].read_body() == "body\n"
    assert catalog.names == ("blank", "kit")


@pytest.mark.parametrize("before", [4089, 4090, 4091, 4092, 4093, 4094, 4095, 4096, 4097])
def test_dashes_at_the_end_of_the_first_step_are_seen(tmp_path: Path, before: int) -> None:
    (tmp_path / "kit").mkdir()
    head = b"\n" * before + b"---\nname: kit\ndescription: d\n---\n"
    (tmp_path / "kit" / "SKILL.md").write_bytes(head + b"body\n")
    rows = b"---\nname: two\ndescription: d\nx: "
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "SKILL.md").write_bytes(rows + b"y" * (before - len(rows)) + b"\n---\nbody\n")
    catalog = scan(tmp_path)
    assert catalog.names == ("kit", "two")
    assert catalog.issues == ()
    assert [skill.read_body() for skill in catalog] == ["body\n", "body\n"]


def test_lenient_mode_without_repair_leaves_broken_files_out(put: Put, tmp_path: Path) -> None:
    put("kit", "name: kit\ndescription: a: b\n")
    put("unnamed", "description: d\n")
    assert scan(tmp_path).names == ("kit", "unnamed")
    catalog = scan(tmp_path, repair=False)
    assert catalog.names == ()
    assert codes(catalog) == ["yaml-syntax", "missing-name"]


# -- strict ------------------------------------------------------------------------------------------------------------


def test_strict_mode_raises_every_issue_of_the_first_bad_file(put: Put, tmp_path: Path) -> None:
    put("a")
    put("b", "name: B B\nlicense: ''\nmetadata:\n  k: [v]\n")
    put("c", "name: c\n")
    with pytest.raises(SkillLoadError) as caught:
        scan(tmp_path, mode="strict")
    assert caught.value.path == str(tmp_path / "b" / "SKILL.md")
    assert {i.code for i in caught.value.issues} == {
        *("bad-name", "name-mismatch", "missing-description", "blank-field", "metadata-not-text"),
    }
    assert all(i.path == caught.value.path and i.line for i in caught.value.issues)


def test_strict_mode_scans_what_is_good(put: Put, tmp_path: Path) -> None:
    put("a")
    put("b/c")
    catalog = scan(tmp_path, mode="strict")
    assert (catalog.names, catalog.issues) == (("a", "c"), ())


def test_strict_mode_does_not_repair(put: Put, tmp_path: Path) -> None:
    put("kit", "name: kit\ndescription: a: b\n")
    with pytest.raises(SkillLoadError):
        scan(tmp_path, mode="strict")


# -- bounds ------------------------------------------------------------------------------------------------------------


def test_a_scan_stops_at_the_limit_of_folders_with_an_issue(put: Put, tmp_path: Path) -> None:
    for number in range(10):
        put(f"s{number}")
    assert len(scan(tmp_path, limits=Limits(max_dirs_per_root=10))) == 10
    assert scan(tmp_path, limits=Limits(max_dirs_per_root=10)).issues == ()
    catalog = scan(tmp_path, limits=Limits(max_dirs_per_root=4))
    assert len(catalog) == 4
    assert [(i.code, i.path) for i in catalog.issues] == [("too-many-directories", str(tmp_path))]


def test_folders_on_every_level_count_and_each_root_has_its_own_limit(put: Put, tmp_path: Path) -> None:
    for root in ("one", "two"):
        for number in range(4):
            put(f"{root}/group{number}/{root}-{number}")
    limits = Limits(max_dirs_per_root=8)
    catalog = scan(tmp_path / "one", tmp_path / "two", limits=limits)
    assert (len(catalog), catalog.issues) == (8, ())
    catalog = scan(tmp_path / "one", tmp_path / "two", limits=Limits(max_dirs_per_root=5))
    assert codes(catalog) == ["too-many-directories", "too-many-directories"]
    assert 4 <= len(catalog) < 8


def test_files_do_not_use_up_the_limit_of_folders(put: Put, tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"file{number}").write_bytes(b"")
    for number in range(3):
        put(f"s{number}")
    catalog = scan(tmp_path, limits=Limits(max_dirs_per_root=3))
    assert (len(catalog), catalog.issues) == (3, ())


def test_a_limit_may_be_larger_than_every_number_of_the_machine(put: Put, tmp_path: Path) -> None:
    put("one")
    limits = Limits(max_entries_per_folder=10**20, max_entries_per_skill=10**20)
    catalog = scan(tmp_path, limits=limits)
    assert catalog.names == ("one",)
    assert catalog["one"].resources().scripts == ()


def test_a_folder_with_too_many_entries_is_reported(put: Put, tmp_path: Path) -> None:
    for number in range(10):
        put(f"s{number}")
    assert scan(tmp_path, limits=Limits(max_entries_per_folder=10)).issues == ()
    catalog = scan(tmp_path, limits=Limits(max_entries_per_folder=6))
    assert len(catalog) == 6
    assert codes(catalog) == ["too-many-directories"]


def test_a_scan_stops_at_the_deadline_with_an_issue(put: Put, tmp_path: Path) -> None:
    put("one/kit")
    put("two/other")
    catalog = scan(tmp_path / "one", tmp_path / "two", limits=Limits(max_scan_seconds=0))
    assert len(catalog) == 0
    assert codes(catalog) == ["deadline", "deadline"]
    assert all("0 seconds" in i.message for i in catalog.issues)


def test_changed_limits_change_nothing_else(put: Put, tmp_path: Path) -> None:
    put("kit", "name: kit\ndescription: d\nmetadata:\n  a: b\n")
    put("bad", "name: [\n")
    usual, changed = scan(tmp_path), scan(tmp_path, limits=Limits(max_body_bytes=5))
    assert usual.names == changed.names
    assert usual.issues == changed.issues
    assert usual["kit"].frontmatter == changed["kit"].frontmatter


# -- what cannot be read -----------------------------------------------------------------------------------------------

WITHOUT_POWERS = """
import os, sys, prowess
prowess.scan(os.devnull).issues, prowess.format.rules, prowess.format.frontmatter.parse  # loaded while it may be read
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
catalog = prowess.scan(*sys.argv[1:])
for skill in catalog: print(skill.name)
for issue in catalog.issues: print(issue.code, issue.path)
"""


def scanned_by_nobody(tmp_path: Path, *roots: Path) -> list[str]:
    """What a process without special powers finds."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o005 != 0o005:
            folder.chmod(folder.stat().st_mode | 0o055)
        if folder.name.startswith("pytest-of-"):
            break
    command = [sys.executable, "-c", WITHOUT_POWERS, *map(str, roots)]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd="/").stdout.splitlines()


@pytest.mark.needs_modes
def test_what_may_not_be_read_is_an_issue_and_the_rest_is_listed(put: Put, tmp_path: Path) -> None:
    put("one/good")
    (put("one/shut") / "SKILL.md").chmod(0)
    put("one/closed/inner")
    put("two/good-too")
    put("three/never")
    (tmp_path / "one" / "closed").chmod(0)
    (tmp_path / "three").chmod(0)
    try:
        found = scanned_by_nobody(tmp_path, tmp_path / "three", tmp_path / "one", tmp_path / "two")
    finally:
        (tmp_path / "one" / "closed").chmod(0o755)
        (tmp_path / "three").chmod(0o755)
    assert found[:2] == ["good", "good-too"]
    assert f"unreadable {tmp_path / 'one' / 'shut' / 'SKILL.md'}" in found
    assert any(row.startswith(("unreadable", "unreadable-directory")) and "closed" in row for row in found)
    assert any(row.startswith("unreadable-directory") and row.endswith("three") for row in found)


@pytest.mark.needs_case
def test_a_name_that_is_not_utf8_is_an_issue_and_hides_nothing(put: Put, tmp_path: Path) -> None:
    put("good")
    try:
        os.mkdir(os.fsencode(tmp_path) + b"/b\xffd")  # noqa: PTH102 - a name in bytes
    except OSError:
        pytest.skip("the file system takes only UTF-8 names")
    catalog = scan(tmp_path)
    assert catalog.names == ("good",)
    assert codes(catalog) == ["bad-file-name"]
    assert str(catalog.issues[0]).isprintable()

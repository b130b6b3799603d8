"""How @drover/skills (S3) scans folders and keeps its registry."""

from collections.abc import Callable
from pathlib import Path

import pytest

import prowess

Put = Callable[..., Path]


def test_roots_are_scanned_in_order_and_absent_ones_skipped(put: Put, tmp_path: Path) -> None:
    """S3-15: a missing root is information; one that is not a folder is skipped and recorded."""
    put("b/pdf", description="Of b.")
    put("a/pdf", description="Of a.")
    (tmp_path / "file").touch()
    catalog = prowess.scan(tmp_path / "missing", tmp_path / "file", tmp_path / "b", tmp_path / "a")
    assert catalog["pdf"].description == "Of b."
    assert [issue.code for issue in catalog.issues if issue.path == str(tmp_path / "file")] == ["not-a-directory"]
    assert [issue.severity for issue in catalog.issues if issue.path == str(tmp_path / "missing")] == ["info"]


@pytest.mark.parametrize(("max_depth", "names"), [(0, ()), (1, ("s1",)), (3, ("s1", "s2", "s3"))])
def test_depth_counts_folders_below_the_root(max_depth: int, names: tuple[str, ...], put: Put, tmp_path: Path) -> None:
    """S3-16: max_depth=3 finds root/a/b/c/SKILL.md and nothing deeper."""
    for folder in ("s1", "a/s2", "a/b/s3", "a/b/c/s4"):
        put(folder)
    assert prowess.scan(tmp_path, max_depth=max_depth).names == names


def test_the_default_depth_is_six(put: Put, tmp_path: Path) -> None:
    """S3-16: real collections group their skills deeper than three folders."""
    put("1/2/3/4/5/six")
    put("1/2/3/4/5/6/seven")
    assert prowess.scan(tmp_path).names == ("six",)


def test_the_root_itself_may_be_a_skill(put: Put, tmp_path: Path) -> None:
    """S3-16: it is looked at first, and with max_depth=0 alone."""
    put("pdf")
    assert prowess.scan(tmp_path / "pdf", max_depth=0).names == ("pdf",)


@pytest.mark.parametrize("file", ["SKILL.md", "skill.md"])
def test_the_search_ends_at_a_skill(file: str, put: Put, tmp_path: Path) -> None:
    """S3-17: what lies below belongs to it, in a child folder as in the root."""
    put("outer", file=file)
    put("outer/examples/inner")
    assert prowess.scan(tmp_path).names == ("outer",)
    assert prowess.scan(tmp_path / "outer").names == ("outer",)


def test_a_bad_file_does_not_hide_what_lies_below(put: Put, tmp_path: Path) -> None:
    """S3-17: only a skill that loaded ends the search."""
    put("outer", text="no frontmatter\n")
    put("outer/inner")
    assert prowess.scan(tmp_path).names == ("inner",)
    assert prowess.scan(tmp_path / "outer").names == ("inner",)


def test_folders_are_skipped_by_how_their_name_begins(put: Put, tmp_path: Path) -> None:
    """S3-18: dots, underscores and node_modules unless told otherwise; the root is exempt."""
    for folder in (".a", "_b", "node_modules/c", "node_modules2/d", "e", "e_/f.g"):
        put(f"_root/{folder}")
    assert prowess.scan(tmp_path / "_root").names == ("e", "f.g")


def test_other_beginnings_may_be_skipped(put: Put, tmp_path: Path) -> None:
    """S3-18: skip_prefixes replaces the list."""
    for folder in ("_b", "e", "xf"):
        put(folder)
    assert prowess.scan(tmp_path, skip_prefixes=("x",)).names == ("_b", "e")


def test_the_file_may_have_another_name(put: Put, tmp_path: Path) -> None:
    """S3-19: filename= replaces SKILL.md."""
    path = put("pdf", file="GUIDE.md")
    put("other")
    catalog = prowess.scan(tmp_path, filename="GUIDE.md")
    assert (catalog.names, catalog["pdf"].path) == (("pdf",), path)


def test_a_linked_file_is_refused_and_a_linked_root_is_not(put: Put, tmp_path: Path) -> None:
    """S3-19: a link in place of the SKILL.md is an issue; a root is the caller's word."""
    put("real/pdf")
    (tmp_path / "real/odd").mkdir()
    (tmp_path / "real/odd/SKILL.md").symlink_to("../pdf/SKILL.md")
    (tmp_path / "root").symlink_to("real")
    catalog = prowess.scan(tmp_path / "root")
    assert catalog.names == ("pdf",)
    assert [(issue.code, issue.path) for issue in catalog.issues] == [
        ("link-refused", str(tmp_path / "root/odd/SKILL.md"))
    ]


def test_a_linked_folder_that_leads_out_is_not_followed(put: Put, tmp_path: Path) -> None:
    """S3-19: its skills are not found."""
    put("elsewhere/pdf")
    (tmp_path / "root").mkdir()
    (tmp_path / "root/link").symlink_to(tmp_path / "elsewhere")
    assert len(prowess.scan(tmp_path / "root")) == 0


def test_a_skill_file_that_is_not_a_file_is_an_issue(put: Put, tmp_path: Path) -> None:
    """S3-19: what cannot be read is recorded, and its folder searched like any other."""
    (tmp_path / "odd/SKILL.md").mkdir(parents=True)
    put("odd/pdf")
    catalog = prowess.scan(tmp_path)
    assert (catalog.names, [issue.code for issue in catalog.issues]) == (("pdf",), ["not-a-regular-file"])


def test_the_first_of_a_name_wins_and_the_order_is_by_name(put: Put, tmp_path: Path) -> None:
    """S3-20: folders in order of their names decide; the copy that lost is listed."""
    put("a", name="zebra", description="First.")
    put("b", name="zebra", description="Second.")
    put("c", name="ant")
    catalog = prowess.scan(tmp_path)
    assert catalog.names == ("ant", "zebra")
    assert catalog["zebra"].description == "First."
    assert [lost.location for lost in catalog.shadowed] == [str(tmp_path / "b/SKILL.md")]


def test_a_strict_scan_raises_for_a_bad_file(put: Put, tmp_path: Path) -> None:
    """S3-21: with every issue of that file."""
    put("good")
    bad = put("bad", text="---\nname: Bad\n---\n")
    with pytest.raises(prowess.SkillLoadError) as caught:
        prowess.scan(tmp_path, mode="strict")
    assert caught.value.path == str(bad)
    assert [issue.code for issue in caught.value.issues] == ["bad-name", "name-mismatch", "missing-description"]


def test_a_lenient_scan_records_failures_and_warnings(put: Put, tmp_path: Path) -> None:
    """S3-21: each with its file; an error for what was left out, a warning for what loaded."""
    bad = put("bad", text="---\nname: bad\n---\n")
    odd = put("odd", name="Odd")
    catalog = prowess.scan(tmp_path)
    assert catalog.names == ("Odd",)
    assert [(issue.path, issue.code, issue.severity) for issue in catalog.issues] == [
        (str(bad), "missing-description", "error"),
        (str(odd), "bad-name", "warning"),
        (str(odd), "name-mismatch", "warning"),
    ]


def test_a_function_may_hear_of_each_issue(put: Put, tmp_path: Path) -> None:
    """S3-21: on_issue is called with every issue, which names its file."""
    bad = put("bad", text="---\nname: bad\n---\n")
    odd = put("odd", name="Odd")
    heard: list[tuple[str, str]] = []
    prowess.scan(tmp_path, on_issue=lambda issue: heard.append((issue.path, issue.field)))
    assert heard == [(str(bad), "description"), (str(odd), "name"), (str(odd), "name")]
    codes: list[str] = []
    prowess.scan(tmp_path, tmp_path / "gone", on_issue=lambda issue: codes.append(issue.code))
    assert "missing-root" in codes
    codes.clear()
    prowess.scan(tmp_path, tmp_path / "gone", on_issue=lambda issue: codes.append(issue.code), on_issue_from="warning")
    assert codes == ["missing-description", "bad-name", "name-mismatch"]


def test_a_catalogue_is_made_of_skills_in_a_program() -> None:
    """S3-22: the first of a name wins; look-up, membership and a list by name."""
    skills = [
        prowess.Skill(prowess.Frontmatter(name=name, description=description))
        for name, description in (("b", "first"), ("a", "only"), ("b", "second"))
    ]
    catalog = prowess.Catalog(skills)
    assert (catalog.get("b"), catalog.get("c")) == (skills[0], None)
    assert ("a" in catalog, "c" in catalog) == (True, False)
    assert list(catalog) == [skills[1], skills[0]]

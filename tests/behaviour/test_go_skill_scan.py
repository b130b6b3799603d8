"""How the Go package ``skill`` (S0) scans a folder."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import prowess

Put = Callable[..., Path]

REFUSING = """
import os, sys
import prowess

prowess.scan  # its modules are loaded before the call is replaced: they ask the system what it can do
opened = os.open

def refusing(path, *args, **kwargs):
    if os.path.basename(os.fspath(path)) == "locked":
        raise PermissionError(13, "Permission denied", path)
    return opened(path, *args, **kwargs)

os.open = refusing
catalog = prowess.scan(*sys.argv[1:])
print(*catalog.names)
print(*{issue.path for issue in catalog.issues if issue.code == "unreadable-directory"}, sep="\\n")
"""
"""Scans in a process in which no folder named ``locked`` can be opened: permissions would not stop every user."""


def scan_refusing(*roots: Path) -> tuple[list[str], list[str]]:
    """The names found, and the folders that could not be read."""
    command = [sys.executable, "-c", REFUSING, *map(str, roots)]
    done = subprocess.run(command, capture_output=True, check=True, encoding="utf-8")
    names, *folders = done.stdout.splitlines()
    return names.split(), folders


def found(catalog: prowess.Catalog) -> list[tuple[str, str]]:
    return [(issue.code, issue.path) for issue in catalog.issues]


def test_no_root_a_missing_root_and_an_empty_root_give_an_empty_catalogue(tmp_path: Path) -> None:
    """S0-24: a missing and an empty folder are information."""
    assert (len(prowess.scan("")), prowess.scan("").issues) == (0, ())
    for root, code in ((tmp_path, "no-skills"), (tmp_path / "missing", "missing-root")):
        catalog = prowess.scan(root)
        assert (len(catalog), [(issue.code, issue.severity) for issue in catalog.issues]) == (0, [(code, "info")])


def test_the_empty_root_is_not_the_working_folder(put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S0-24: an empty name scans nothing, wherever the program stands."""
    put("pdf")
    monkeypatch.chdir(tmp_path)
    assert len(prowess.scan("")) == 0


def test_a_root_that_is_a_file_is_an_issue_or_an_error(tmp_path: Path) -> None:
    """S0-25: recorded by default, raised with missing="error"."""
    file = tmp_path / "file"
    file.touch()
    catalog = prowess.scan(file)
    assert (len(catalog), found(catalog)) == (0, [("not-a-directory", str(file))])
    with pytest.raises(prowess.SourceError) as caught:
        prowess.scan(file, missing="error")
    assert (caught.value.code, caught.value.path) == ("not-a-directory", str(file))


def test_a_root_that_cannot_be_read_is_an_issue(put: Put, tmp_path: Path) -> None:
    """S0-25: the other roots are scanned."""
    put("locked/a")
    put("open/b")
    assert scan_refusing(tmp_path / "locked", tmp_path / "open") == (["b"], [str(tmp_path / "locked")])


def test_every_folder_can_be_searched(put: Put, tmp_path: Path) -> None:
    """S0-26: max_depth=None, nested=True and no skip_prefixes find what lies deep, hidden or inside another skill."""
    deep = "/".join(f"d{n}" for n in range(12))
    for folder in ("top", "top/inner", ".hidden/dot", "node_modules/dep", f"{deep}/low"):
        put(folder)
    everything = prowess.scan(tmp_path, max_depth=None, nested=True, skip_prefixes=())
    assert everything.names == ("dep", "dot", "inner", "low", "top")
    assert prowess.scan(tmp_path).names == ("top",)


@pytest.mark.parametrize("file", ["skill.md", "Skill.MD", "SKILL.MD"])
def test_the_file_name_is_found_in_any_case(file: str, put: Put, tmp_path: Path) -> None:
    """S0-27, S2-6, S3-19: it loads everywhere alike, with a warning; strict scanning wants the exact name."""
    path = put("pdf", file=file)
    catalog = prowess.scan(tmp_path)
    assert (catalog.names, found(catalog)) == (("pdf",), [("filename-case", str(path))])
    assert catalog.load_body("pdf") == "Do it.\n"
    assert len(prowess.scan(tmp_path, mode="strict")) == 0


def test_the_exact_file_name_wins_over_another_case(put: Put, tmp_path: Path) -> None:
    """S0-27: of two files that differ in case only SKILL.md is the skill, and the other is an issue."""
    put("pdf", description="Exact.")
    put("pdf", description="Other.", file="skill.md")
    catalog = prowess.scan(tmp_path)
    assert [skill.description for skill in catalog] == ["Exact."]
    assert [issue.code for issue in catalog.issues] == ["filename-collision"]


def test_a_bad_file_is_skipped_and_named(put: Put, tmp_path: Path) -> None:
    """S0-28: the issue carries the path and what is wrong, and the other skills load."""
    bad = put("bad", text="no frontmatter\n")
    put("good")
    catalog = prowess.scan(tmp_path)
    assert (catalog.names, found(catalog)) == (("good",), [("no-frontmatter", str(bad))])


def test_a_file_that_the_specification_refuses_may_be_skipped_too(put: Put, tmp_path: Path) -> None:
    """S0-28: invalid="skip" validates every file, leaves out what is invalid, with all that is wrong, and goes on."""
    bad = put("bad", name="Not Valid", description="d" * 1025)
    put("other-folder", name="good")
    catalog = prowess.scan(tmp_path, invalid="skip")
    assert (catalog.names, found(catalog)) == (
        ("good",),
        [("bad-name", str(bad)), ("description-too-long", str(bad))],
    )
    assert prowess.scan(tmp_path).names == ("Not Valid", "good")


def test_a_folder_that_cannot_be_read_is_skipped_and_named(put: Put, tmp_path: Path) -> None:
    """S0-28: the scan goes on beside it."""
    for folder in ("a", "locked/b", "z"):
        put(folder)
    assert scan_refusing(tmp_path) == (["a", "z"], [str(tmp_path / "locked")])


def test_a_linked_folder_that_leads_out_is_refused_and_named(put: Put, tmp_path: Path) -> None:
    """S0-29: what lies outside every scanned folder is not entered through a link."""
    put("elsewhere/pdf")
    put("root/good")
    link = tmp_path / "root/pdf"
    link.symlink_to(tmp_path / "elsewhere/pdf")
    catalog = prowess.scan(tmp_path / "root")
    assert (catalog.names, found(catalog)) == (("good",), [("link-refused", str(link))])
    assert prowess.scan(tmp_path / "root", follow_links=True).names == ("good", "pdf")


def test_a_linked_folder_that_leads_into_a_scanned_root_adds_each_skill_once(put: Put, tmp_path: Path) -> None:
    """S0-29, S2-5, S3-19: such a link is followed, and a file that was found already is not found twice."""
    put("root/.store/pdf")
    put("root/csv")
    for link, target in (("pdf", ".store/pdf"), ("pdf-again", ".store/pdf"), ("csv-again", "csv")):
        (tmp_path / "root" / link).symlink_to(target)
    catalog = prowess.scan(tmp_path / "root")
    assert (catalog.names, catalog.shadowed, found(catalog)) == (
        ("csv", "pdf"),
        (),
        [("skipped-directory", str(tmp_path / "root/.store"))],
    )


def test_a_linked_skill_file_is_refused_and_named(put: Put, tmp_path: Path) -> None:
    """S0-29: a SKILL.md that is a link could be any file of the machine."""
    target = put("elsewhere/pdf")
    link = tmp_path / "root/pdf/SKILL.md"
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
    catalog = prowess.scan(tmp_path / "root")
    assert (len(catalog), found(catalog)) == (0, [("link-refused", str(link))])


def test_a_linked_root_is_entered(put: Put, tmp_path: Path) -> None:
    """S0-29: the caller named it, so it is scanned like any other."""
    put("real/pdf")
    (tmp_path / "root").symlink_to(tmp_path / "real")
    catalog = prowess.scan(tmp_path / "root")
    assert (catalog.names, catalog.issues) == (("pdf",), ())


def test_of_two_folders_with_one_name_the_last_in_order_wins_and_the_other_is_reported(
    put: Put, tmp_path: Path
) -> None:
    """S0-30: with on_duplicate="last"; the copy that lost stands in shadowed and in the issues."""
    first = put("a", name="dup", description="Of a.")
    last = put("b", name="dup", description="Of b.")
    catalog = prowess.scan(tmp_path, on_duplicate="last")
    assert [skill.description for skill in catalog] == ["Of b."]
    assert [(lost.location, lost.winner) for lost in catalog.shadowed] == [(str(first), str(last))]
    assert ("duplicate-name", str(first)) in found(catalog)

"""The supporting files of a skill: which are named, and what reading one gives."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from prowess import (
    BinaryResourceError,
    Catalog,
    Frontmatter,
    PathTraversalError,
    ResourceError,
    ResourceNotFoundError,
    Resources,
    ResourceTooLargeError,
    Session,
    Skill,
    SkillValidationError,
    Toolset,
    scan,
)
from prowess.files.contained_open import IGNORES_CASE
from prowess.limits import Limits
from prowess.skills.resources import list_files, list_resources

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def skill(put: Callable[..., Path], tmp_path: Path) -> Skill:
    folder = put("s/kit")
    for path in (
        *(
            "scripts/b.py",
            "scripts/a.sh",
            "references/R.md",
            "references/deep/x.md",
            "assets/logo.txt",
            "assets/.hidden",
        ),
        *("README.md", "LICENSE", ".env", "other/x.md", *(() if IGNORES_CASE else ("skill.md",))),
    ):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(f"text of {path}\n", encoding="utf-8")
    return scan(tmp_path / "s")["kit"]


def folder_of(skill: Skill) -> Path:
    assert skill.dir is not None
    return skill.dir


# -- listing -----------------------------------------------------------------------------------------------------------


def test_an_error_of_reading_names_the_file_as_the_caller_did(skill: Skill) -> None:
    for path in ("nope.md", "./references//nope.md", "references"):
        with pytest.raises(ResourceError) as caught:
            skill.read_resource(path)
        assert (repr(path) in caught.value.message, caught.value.path) == (True, path)
        with pytest.raises(ResourceError) as caught:
            skill.read_bytes(path)
        assert repr(path) in caught.value.message


def test_resources_are_names_one_level_deep_without_hidden_ones_and_folders(skill: Skill) -> None:
    found = skill.resources()
    assert found.scripts == ("a.sh", "b.py")
    assert found.references == ("R.md",)
    assert found.assets == ("logo.txt",)
    assert found.other == ("LICENSE", "README.md")
    assert found.issues == ()


def test_paths_are_relative_with_assets_first(skill: Skill) -> None:
    assert skill.resources().paths == (
        *("assets/logo.txt", "scripts/a.sh", "scripts/b.py", "references/R.md"),
        *("LICENSE", "README.md"),
    )


def test_every_path_listed_can_be_read(skill: Skill) -> None:
    for path in (*skill.resources().paths, *skill.files()):
        assert skill.read_bytes(path)


def test_listings_are_live(skill: Skill) -> None:
    (folder_of(skill) / "scripts" / "c.py").write_text("", encoding="utf-8")
    (folder_of(skill) / "assets" / "logo.txt").unlink()
    assert skill.resources().scripts == ("a.sh", "b.py", "c.py")
    assert skill.resources().assets == ()


@pytest.mark.needs_case
def test_files_are_all_regular_files_in_byte_order(skill: Skill) -> None:
    assert skill.files() == (
        *(".env", "LICENSE", "README.md", "SKILL.md", "assets/.hidden", "assets/logo.txt", "other/x.md"),
        *("references/R.md", "references/deep/x.md", "scripts/a.sh", "scripts/b.py", "skill.md"),
    )
    assert skill.files().complete
    assert skill.files().issues == ()


@pytest.mark.needs_links
@pytest.mark.needs_fifo
def test_links_and_special_files_are_not_listed_but_reported(skill: Skill) -> None:
    folder = folder_of(skill)
    (folder / "references" / "link.md").symlink_to("R.md")
    (folder / "top.md").symlink_to("/etc/hostname")
    os.mkfifo(folder / "scripts" / "pipe")
    (folder / "more").symlink_to("references")
    named = {("link-in-skill", "references/link.md"), ("link-in-skill", "top.md"), ("special-file", "scripts/pipe")}
    named.add(("link-in-skill", "more"))
    assert {(i.code, i.field) for i in skill.resources().issues} == named
    assert {(i.code, i.field) for i in skill.files().issues} == named
    assert not {"references/link.md", "top.md", "scripts/pipe", "more/R.md"} & {
        *skill.files(),
        *skill.resources().paths,
    }


@pytest.mark.needs_links
def test_a_group_that_is_a_link_is_not_entered(put: Callable[..., Path], tmp_path: Path) -> None:
    folder = put("s/kit")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret.md").write_text("", encoding="utf-8")
    (folder / "references").symlink_to(tmp_path / "elsewhere")
    found = scan(tmp_path / "s")["kit"].resources()
    assert not found
    assert [(i.code, i.field) for i in found.issues] == [("link-in-skill", "references")]


def test_a_skill_without_supporting_files_has_none(put: Callable[..., Path], tmp_path: Path) -> None:
    put("s/bare")
    bare = scan(tmp_path / "s")["bare"]
    assert bare.resources() == Resources()
    assert not bare.resources()
    assert bare.files() == ("SKILL.md",)


def test_listings_stop_at_their_limits_and_say_so(skill: Skill) -> None:
    base = str(folder_of(skill))
    files = list_files(base, (), skill.location, Limits(max_files_per_skill=3))
    assert len(files) == 3
    assert not files.complete
    assert [issue.code for issue in files.issues] == ["too-many-files"]
    assert not list_files(base, (), skill.location, Limits(max_depth_per_skill=1)).complete
    found = list_resources(base, (), "SKILL.md", skill.location, Limits(max_files_per_skill=1))
    assert len(found.scripts) == 1
    assert "too-many-files" in [issue.code for issue in found.issues]


def test_a_folder_that_is_gone_cannot_be_listed(skill: Skill) -> None:
    folder_of(skill).rename(folder_of(skill).with_name("moved"))
    for call in (skill.resources, skill.files):
        with pytest.raises(SkillValidationError) as caught:
            call()
        assert caught.value.path == skill.location


@pytest.mark.needs_links
def test_a_folder_swapped_for_a_link_is_not_listed(skill: Skill, tmp_path: Path) -> None:
    folder = folder_of(skill)
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    for call in (skill.resources, skill.files):
        with pytest.raises(SkillValidationError):
            call()


# -- reading -----------------------------------------------------------------------------------------------------------


def test_a_file_is_read_as_text_or_as_bytes(skill: Skill) -> None:
    assert skill.read_resource("references/R.md") == "text of references/R.md\n"
    assert skill.read_bytes("references/R.md") == b"text of references/R.md\n"
    assert skill.read_resource("./references//deep/./x.md") == "text of references/deep/x.md\n"


def test_line_ends_stay_as_they_are(skill: Skill) -> None:
    (folder_of(skill) / "crlf.md").write_bytes(b"\xef\xbb\xbfa\r\nb\r")
    assert skill.read_resource("crlf.md") == "\ufeffa\r\nb\r"


@pytest.mark.parametrize(
    "path",
    [
        *("", ".", "..", "../x", "references/../../x", "./../x", "a/..//../x", "references/../README.md"),
        *("/etc/passwd", "//x", "~/x", "~root/x", "file:///x", "C:\\x", "C:x", "\\\\srv\\s\\x", "..\\..\\x"),
        *("references\\R.md", "README.md:stream", "README.md.", "README.md ", "references./R.md", "NUL", "con.md"),
        *("a\0b", "references/R.md\0.txt", "a\nb", "x" * 5000),
    ],
)
def test_paths_that_could_leave_the_folder_are_refused_on_every_system(skill: Skill, path: str) -> None:
    for read in (skill.read_resource, skill.read_bytes):
        with pytest.raises(PathTraversalError) as caught:
            read(path)
        assert caught.value.code == "path-escape"
        assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("path", ["references", "references/", "./references/deep", "README.md/", "README.md/."])
def test_a_folder_is_not_a_file(skill: Skill, path: str) -> None:
    with pytest.raises(ResourceError) as caught:
        skill.read_resource(path)
    assert caught.value.code == "not-a-regular-file"


@pytest.mark.parametrize("path", ["none.md", "references/none.md", "none/x", "README.md/x"])
def test_a_missing_file_is_both_ours_and_the_systems_error(skill: Skill, path: str) -> None:
    with pytest.raises(ResourceNotFoundError) as caught:
        skill.read_resource(path)
    assert isinstance(caught.value, FileNotFoundError)
    assert path in str(caught.value)


@pytest.mark.needs_links
def test_a_link_is_never_read(skill: Skill, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret", encoding="utf-8")
    (folder_of(skill) / "leak.md").symlink_to(tmp_path / "secret.md")
    (folder_of(skill) / "inside.md").symlink_to("README.md")
    (folder_of(skill) / "out").symlink_to(tmp_path)
    for path in ("leak.md", "inside.md", "out/secret.md"):
        with pytest.raises(PathTraversalError):
            skill.read_resource(path)


def test_a_file_at_the_limit_is_read_and_one_beyond_it_is_an_error(skill: Skill) -> None:
    (folder_of(skill) / "big.md").write_bytes(b"x" * 65_536)
    assert len(skill.read_resource("big.md")) == 65_536
    (folder_of(skill) / "big.md").write_bytes(b"x" * 65_537)
    with pytest.raises(ResourceTooLargeError, match="65537 bytes; at most 65536"):
        skill.read_resource("big.md")
    assert len(skill.read_bytes("big.md")) == 65_537
    assert len(skill.read_resource("big.md", max_bytes=65_537)) == 65_537
    with pytest.raises(ResourceTooLargeError):
        skill.read_bytes("big.md", max_bytes=10)


def test_the_bound_on_a_file_can_be_lifted_and_the_tools_keep_theirs(skill: Skill) -> None:
    (folder_of(skill) / "big.md").write_bytes(b"x" * 11_000_000)
    catalog = Catalog([skill])
    assert len(skill.read_resource("big.md", max_bytes=None)) == 11_000_000
    assert len(catalog.read_resource(skill.name, "big.md", max_bytes=None)) == 11_000_000
    assert len(skill.read_bytes("big.md", max_bytes=None)) == 11_000_000
    with pytest.raises(ResourceTooLargeError, match="at most 10485760"):
        skill.read_bytes("big.md")
    asked = {"skill_name": skill.name, "path": "big.md"}
    one, other = Toolset(Session(catalog), "skill__activate"), Toolset(Session(catalog), "read_skill")
    for answer in (one.call("skill__read_resource", asked), other.call("read_skill_file", asked)):
        assert (answer.is_error, "at most 65536" in answer.content) == (True, True)


@pytest.mark.parametrize("limit", range(1, 12))
def test_a_cut_falls_between_characters_and_is_announced(skill: Skill, limit: int) -> None:
    text = "aé漢😀b"
    (folder_of(skill) / "t.md").write_text(text, encoding="utf-8")
    found = skill.read_resource("t.md", max_bytes=limit, truncate=True)
    if limit >= len(text.encode()):
        assert found == text
        return
    kept, _, notice = found.rpartition("\n")
    assert text.startswith(kept)
    assert limit - 3 <= len(kept.encode()) <= limit
    assert f"{limit} of {len(text.encode())} bytes" in notice


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (b"ok \xff", "0xFF at byte 3"),
        (b"\xc0\xaf", "0xC0 at byte 0"),
        ("é".encode() + b"\xed\xa0\x80", "0xED at byte 2"),
    ],
)
def test_bytes_that_are_not_utf8_are_not_text(skill: Skill, data: bytes, where: str) -> None:
    (folder_of(skill) / "t.md").write_bytes(data)
    with pytest.raises(BinaryResourceError, match=where):
        skill.read_resource("t.md")
    assert skill.read_bytes("t.md") == data


def test_a_zero_byte_makes_it_binary(skill: Skill) -> None:
    (folder_of(skill) / "t.md").write_bytes(b"a\0b")
    with pytest.raises(BinaryResourceError, match="byte 1"):
        skill.read_resource("t.md")


def test_a_binary_file_stays_binary_when_it_is_cut(skill: Skill) -> None:
    (folder_of(skill) / "t.bin").write_bytes(b"ab\0\xff" * 100)
    with pytest.raises(BinaryResourceError):
        skill.read_resource("t.bin", max_bytes=50, truncate=True)


def test_a_skill_that_is_text_only_has_no_files() -> None:
    inline = Skill(Frontmatter("a", "b"), body="text")
    assert inline.files() == ()
    assert not inline.resources()
    for read in (inline.read_resource, inline.read_bytes):
        with pytest.raises(ResourceError) as caught:
            read("x.md")
        assert caught.value.code == "no-files"

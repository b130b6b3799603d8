"""A skill knows its fields without its file, and reads its file as it is now."""

from __future__ import annotations

import copy
import os
import pickle
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest

from prowess import (
    EmptySkillBodyError,
    Frontmatter,
    Skill,
    SkillLoadError,
    SkillScope,
    SkillValidationError,
    SourceError,
    parse_skill_file,
    read_metadata,
    scan,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Put = Callable[..., Path]

FULL = (
    "name: kit\ndescription: 'Does it: well.'\nlicense: MIT\ncompatibility: any\nmetadata:\n  author: x\n  v: 1.10\n"
    "allowed-tools: Bash(git:*) Read\ntags: [a, b]\nversion: 2.0\nmodel: m\ncontext: fork\nuser-invocable: false\n"
)


def found(tmp_path: Path, name: str = "kit") -> Skill:
    return scan(tmp_path)[name]


# -- fields ------------------------------------------------------------------------------------------------------------


def test_every_field_is_there_although_discovery_read_only_two(put: Put, tmp_path: Path) -> None:
    put("kit", FULL)
    skill = found(tmp_path)
    assert (skill.name, skill.description) == ("kit", "Does it: well.")
    assert (skill.license, skill.compatibility, skill.version, skill.model, skill.context) == (
        "MIT",
        "any",
        "2.0",
        "m",
        "fork",
    )
    assert skill.metadata == {"author": "x", "v": "1.10"}
    assert (skill.allowed_tools, skill.allowed_tools_raw) == (("Bash(git:*)", "Read"), "Bash(git:*) Read")
    assert skill.tags == ("a", "b")
    extra = {"tags": ["a", "b"], "version": "2.0", "model": "m", "context": "fork", "user-invocable": "false"}
    assert skill.extra == extra
    assert (skill.is_fork, skill.user_invocable, skill.model_invocable) == (True, False, True)


@pytest.mark.parametrize(
    "rows",
    [FULL, "name: kit\ndescription: >\n  a\n  b\n", "description: a\nname: kit\n", "name: kit\ndescription: '  x  '\n"],
)
def test_discovery_reading_the_head_and_parsing_the_file_agree(put: Put, tmp_path: Path, rows: str) -> None:
    folder = put("kit", rows)
    skills = [found(tmp_path), read_metadata(folder), parse_skill_file(folder).skill, found(tmp_path).load().skill]
    assert len({(s.name, s.description, s.body_offset, s.location) for s in skills}) == 1
    assert all(skill.frontmatter == skills[0].frontmatter for skill in skills)
    assert all(skill.frontmatter.lines == skills[0].frontmatter.lines for skill in skills)


def test_the_fields_are_those_that_discovery_saw_even_when_the_file_is_gone(put: Put, tmp_path: Path) -> None:
    folder = put("kit", FULL)
    skill = found(tmp_path)
    (folder / "SKILL.md").unlink()
    assert skill.license == "MIT"
    assert skill.metadata["author"] == "x"


@pytest.mark.parametrize("attribute", ["name", "description", "frontmatter", "path", "license", "new"])
def test_a_skill_is_read_only(put: Put, tmp_path: Path, attribute: str) -> None:
    put("kit")
    with pytest.raises(AttributeError):
        setattr(found(tmp_path), attribute, "x")


# -- its location ------------------------------------------------------------------------------------------------------


@pytest.mark.needs_posix
def test_a_skill_knows_its_folder_its_file_and_its_location(put: Put, tmp_path: Path) -> None:
    folder = put("a/b/kit")
    skill = scan(tmp_path / "a")["kit"]
    assert (skill.dir, skill.path) == (folder, folder / "SKILL.md")
    assert skill.location == str(folder / "SKILL.md")
    assert (skill.folder_name, skill.virtual_path) == ("kit", str(folder).replace(os.sep, "/"))
    assert (skill.scope, skill.origin, skill.preload, skill.is_inline) == (None, "directory", False, False)
    assert str(folder) in repr(skill)


def test_a_root_that_is_itself_a_skill_is_found(put: Put, tmp_path: Path) -> None:
    folder = put("kit")
    skill = scan(folder)["kit"]
    assert (skill.dir, skill.folder_name) == (tmp_path / "kit", "kit")
    assert skill.read_body() == "Do it.\n"


def test_paths_are_absolute_whatever_the_caller_gave(put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put("kit")
    monkeypatch.chdir(tmp_path)
    assert scan(".")["kit"].path == tmp_path / "kit" / "SKILL.md"
    assert Skill(Frontmatter("kit", "d"), "kit/SKILL.md").path == tmp_path / "kit" / "SKILL.md"
    assert read_metadata("kit/SKILL.md").path == tmp_path / "kit" / "SKILL.md"


def test_a_skill_made_by_a_program(put: Put) -> None:
    folder = put("kit", body="\nText.\n")
    skill = Skill(Frontmatter("other", " d "), folder / "SKILL.md", SkillScope.USER)
    assert (skill.name, skill.description, skill.scope) == ("other", "d", SkillScope.USER)
    assert skill.read_body() == "\nText.\n"
    assert skill.files() == ("SKILL.md",)
    with pytest.raises(SourceError, match="scope"):
        Skill(Frontmatter("other", "d"), folder / "SKILL.md", "mine")  # type: ignore[arg-type]


def test_a_skill_of_text_has_no_folder_and_no_path() -> None:
    skill = Skill(Frontmatter("greet", "Greets."), body=" Say hello.\r\n")
    assert (skill.path, skill.dir, skill.location, skill.is_inline, skill.origin) == (
        None,
        None,
        "inline:greet",
        True,
        "inline",
    )
    assert skill.read_body() == " Say hello.\r\n"
    assert skill.load().instructions == "Say hello."
    assert skill.to_dict()["path"] == ""


def test_with_source_changes_only_what_a_source_decides(put: Put, tmp_path: Path) -> None:
    put("kit", FULL)
    skill = found(tmp_path)
    copy = skill.with_source(virtual_path="skills/kit", preload=True, scope=SkillScope.PROJECT, origin="other")
    assert (copy.virtual_path, copy.preload, copy.scope, copy.origin) == (
        "skills/kit",
        True,
        SkillScope.PROJECT,
        "other",
    )
    assert (copy.path, copy.frontmatter, copy.read_body()) == (skill.path, skill.frontmatter, skill.read_body())
    assert (skill.preload, skill.scope) == (False, None)


# -- the body ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body", ["", "\n", "text", "\n\n text \n\n", "a\r\nb\r\n", "---\nx\n---\n", "漢字\n", "\ufeffx"]
)
@pytest.mark.parametrize("begin", [b"", b"\xef\xbb\xbf", b"\n"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_the_body_is_byte_exact(put: Put, tmp_path: Path, body: str, begin: bytes, end: bytes) -> None:
    folder = put("kit")
    head = begin + end.join([b"---", b"name: kit", b"description: d", b"---", b""])
    (folder / "SKILL.md").write_bytes(head + body.encode())
    skill = found(tmp_path)
    assert skill.read_body().encode() == body.encode()
    assert skill.body_offset == len(head)
    assert skill.load().instructions == body.replace("\r\n", "\n").strip()


def test_a_stripped_body_must_not_be_blank(put: Put, tmp_path: Path) -> None:
    put("kit", body="\n text \n")
    put("void", body=" \n\t\n")
    assert found(tmp_path).read_body(strip=True) == "text"
    with pytest.raises(EmptySkillBodyError) as caught:
        found(tmp_path, "void").read_body(strip=True)
    assert caught.value.path == str(tmp_path / "void" / "SKILL.md")
    assert found(tmp_path, "void").read_body() == " \n\t\n"


def edit(path: Path, text: str, *, keep_times: bool = False) -> None:
    info = path.stat()
    path.write_bytes(text.encode())
    if keep_times:
        os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def replace(path: Path, text: str) -> None:
    path.with_name("new").write_bytes(text.encode())
    path.with_name("new").replace(path)


@pytest.mark.parametrize(
    "rows", ["description: x\nname: kit\nlicense: a much longer head than before\n", "name: kit\ndescription: x\n"]
)
@pytest.mark.parametrize("change", [edit, replace])
def test_the_body_is_right_after_the_frontmatter_was_edited(
    put: Put, tmp_path: Path, rows: str, change: Callable[[Path, str], None]
) -> None:
    folder = put("kit", FULL)
    skill = found(tmp_path)
    change(folder / "SKILL.md", f"---\n{rows}---\nNew body.\n")
    assert skill.read_body() == "New body.\n"
    assert skill.load().instructions == "New body."
    assert skill.load().skill.description == "x"
    assert skill.description == "Does it: well."


def test_an_edit_of_the_same_size_and_time_is_noticed(put: Put, tmp_path: Path) -> None:
    folder = put("kit", "name: kit\ndescription: long\n", body="x")
    skill = found(tmp_path)
    edit(folder / "SKILL.md", "---\nname: kit\ndescription: l\n---\nabcx", keep_times=True)
    assert skill.read_body() == "abcx"


def test_loading_takes_the_name_that_the_file_has_now(put: Put, tmp_path: Path) -> None:
    folder = put("kit")
    skill = found(tmp_path)
    edit(folder / "SKILL.md", "---\nname: other\ndescription: d\n---\nbody\n")
    assert skill.load().skill.name == "other"
    assert skill.name == "kit"


def test_a_head_that_went_bad_is_an_error(put: Put, tmp_path: Path) -> None:
    folder = put("kit")
    skill = found(tmp_path)
    edit(folder / "SKILL.md", "no frontmatter any more\n")
    for call in (skill.read_body, skill.load):
        with pytest.raises(SkillLoadError) as caught:
            call()
        assert caught.value.path == skill.location


def test_a_file_that_is_gone_is_an_error(put: Put, tmp_path: Path) -> None:
    folder = put("kit")
    skill = found(tmp_path)
    (folder / "SKILL.md").unlink()
    for call in (skill.read_body, skill.load):
        with pytest.raises(SkillValidationError) as caught:
            call()
        assert (caught.value.path, caught.value.code) == (skill.location, "missing-skill-md")


@pytest.mark.needs_links
@pytest.mark.parametrize("swapped", ["file", "folder"])
def test_a_path_swapped_for_a_link_is_refused(put: Put, tmp_path: Path, swapped: str) -> None:
    folder = put("s/kit")
    secret = put("secret", "name: kit\ndescription: d\n", "SECRET")
    skill = found(tmp_path / "s")
    if swapped == "file":
        (folder / "SKILL.md").unlink()
        (folder / "SKILL.md").symlink_to(secret / "SKILL.md")
    else:
        folder.rename(tmp_path / "moved")
        folder.symlink_to(secret)
    for call in (skill.read_body, skill.load):
        with pytest.raises(SkillValidationError) as caught:
            call()
        assert "SECRET" not in str(caught.value)


def test_a_body_past_the_limit_is_listed_and_refused_when_loaded(put: Put, tmp_path: Path) -> None:
    put("fits", body="x" * (1 << 20))
    put("huge", body="x" * ((1 << 20) + 1))
    catalog = scan(tmp_path)
    assert catalog.names == ("fits", "huge")
    assert len(catalog["fits"].read_body()) == 1 << 20
    for call in (catalog["huge"].read_body, catalog["huge"].load):
        with pytest.raises(SkillValidationError) as caught:
            call()
        assert caught.value.code == "body-too-large"


def test_a_body_that_is_not_utf8_is_refused_with_its_byte(put: Put, tmp_path: Path) -> None:
    folder = put("kit")
    path = folder / "SKILL.md"
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + b"\xff\xfe")
    with pytest.raises(SkillValidationError, match=f"0xFF at byte {size}") as caught:
        found(tmp_path).read_body()
    assert caught.value.code == "body-not-text"


def test_a_body_that_is_not_utf8_can_be_had_with_replacements_or_as_bytes(put: Put, tmp_path: Path) -> None:
    path = put("kit", body="caf") / "SKILL.md"
    path.write_bytes(path.read_bytes() + b"\xe9\n")
    catalog = scan(tmp_path)
    for read in (catalog["kit"].read_body, partial(catalog.load_body, "kit")):
        assert read(errors="replace") == "caf\ufffd\n"
        assert read(errors="bytes") == b"caf\xe9\n"
    assert catalog["kit"].read_body(errors="bytes", strip=True) == b"caf\xe9"
    with pytest.raises(SourceError, match="errors must be"):
        catalog["kit"].read_body(errors="ignore")  # type: ignore[call-overload]  # on purpose


def test_the_bytes_of_a_skill_that_is_text_in_a_program(put: Put, tmp_path: Path) -> None:
    skill = Skill(Frontmatter(name="a", description="d"), body=" é\n")
    assert (skill.read_body(errors="bytes"), skill.read_body(errors="replace")) == (" é\n".encode(), " é\n")
    put("kit", body=" \n")
    with pytest.raises(EmptySkillBodyError):
        found(tmp_path).read_body(strip=True, errors="bytes")


def test_the_bound_on_a_body_can_be_lowered_raised_and_lifted(put: Put, tmp_path: Path) -> None:
    put("kit", body="x" * 3_000_000)
    catalog = scan(tmp_path)
    for read in (catalog["kit"].read_body, partial(catalog.load_body, "kit")):
        assert len(read(max_bytes=3_000_000)) == len(read(max_bytes=None)) == 3_000_000
        with pytest.raises(SkillValidationError, match="more than 2999999 bytes"):
            read(max_bytes=2_999_999)
        with pytest.raises(SkillValidationError, match="more than 1048576 bytes"):
            read()


@pytest.mark.parametrize(
    "head", ["name: kit\n", "description: d\n", "", "name: [kit]\ndescription: {a: 1}\n", "a: b: c\n\td", "a: &x\n"]
)
def test_a_body_is_read_whatever_became_of_the_fields(put: Put, tmp_path: Path, head: str) -> None:
    path = put("kit") / "SKILL.md"
    catalog = scan(tmp_path)
    edit(path, f"---\n{head}\n---\nNew.\n")
    assert (catalog.load_body("kit"), catalog["kit"].read_body(strip=True)) == ("New.\n", "New.")


def test_a_repaired_head_keeps_its_own_body(put: Put, tmp_path: Path) -> None:
    folder = put("kit")
    (folder / "SKILL.md").write_bytes(b"---\nname: kit\ndescription: a: b\n---# Title\nbody")
    skill = found(tmp_path)
    assert (skill.description, skill.read_body()) == ("a: b", "# Title\nbody")
    edit(folder / "SKILL.md", "---\nname: kit\ndescription: longer: b\n---# Title\nother")
    assert skill.read_body() == "# Title\nother"


# -- how it is shown ---------------------------------------------------------------------------------------------------


def test_to_dict_has_the_fields_that_are_set(put: Put, tmp_path: Path) -> None:
    put("kit", FULL)
    put("bare")
    assert found(tmp_path).to_dict() == {
        "name": "kit",
        "description": "Does it: well.",
        "license": "MIT",
        "compatibility": "any",
        "metadata": {"author": "x", "v": "1.10"},
        "allowed_tools": ["Bash(git:*)", "Read"],
        "path": (tmp_path / "kit").as_posix(),
        "location": str(tmp_path / "kit" / "SKILL.md"),
    }
    assert set(found(tmp_path, "bare").to_dict()) == {"name", "description", "path", "location"}


# -- as an object ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", [FULL, "name: kit\ndescription: d\n", "name: kit\ndescription: a: b\n"])
def test_a_pickled_skill_comes_back_whole(put: Put, tmp_path: Path, head: str) -> None:
    put("kit", head, "Body.\n")
    skill = found(tmp_path)
    copies = (pickle.loads(pickle.dumps(skill)), copy.copy(skill), copy.deepcopy(skill))  # noqa: S301 - our own bytes
    for again in copies:
        assert type(again) is Skill
        assert (repr(again), again.to_dict(), again.issues) == (repr(skill), skill.to_dict(), skill.issues)
        assert (again.identity, again.body_offset, again.read_body()) == (skill.identity, skill.body_offset, "Body.\n")
        assert again.load().instructions == "Body."


def test_a_copy_in_another_virtual_folder_equals_the_skill_in_all_else(put: Put, tmp_path: Path) -> None:
    put("kit", "name: kit\ndescription: a: b\nlicense: MIT\n")
    skill = found(tmp_path)
    moved = skill.with_source(virtual_path="skills/kit")
    assert moved.virtual_path == "skills/kit" != skill.virtual_path
    assert {**moved.to_dict(), "path": ""} == {**skill.to_dict(), "path": ""}
    assert (moved.identity, moved.body_offset, moved.issues) == (skill.identity, skill.body_offset, skill.issues)
    assert moved.read_body() == skill.read_body()


def test_a_skill_has_slots_and_no_dictionary(put: Put, tmp_path: Path) -> None:
    """Thousands are made at once; a class among its bases without slots would give each a dictionary."""
    put("kit")
    skill = found(tmp_path)
    assert not hasattr(skill, "__dict__")
    assert sys.getsizeof(skill) <= sys.getsizeof(object()) + (9 + 2) * 8  # and what the collector keeps before it

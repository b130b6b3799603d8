"""The digest of a skill: two golden vectors, what counts, and what makes it impossible."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import pytest

from prowess import Frontmatter, Limits, Skill, SkillError, scan
from prowess.skills.resources import digest_folder

if TYPE_CHECKING:
    from pathlib import Path

SMALL = {"SKILL.md": (b"---\nname: small\ndescription: A small one.\n---\nDo it.\n", 0o644)}
LARGE = {
    "SKILL.md": (b"---\nname: large\ndescription: A large one.\n---\nDo it.\n", 0o644),
    "scripts/run.sh": (b"#!/bin/sh\necho hi\n", 0o755),
    "scripts/run-2.sh": (b"", 0o700),
    "scripts.md": (b"beside the folder\n", 0o600),
    "references/caf\u00e9.md": ("café\n".encode(), 0o644),
    "references/Z.md": (b"\x00\xff binary\r\n", 0o644),
    ".hidden/.env": (b"hidden too\n", 0o644),
    "assets/deep/er/x.bin": (bytes(range(256)) * 300, 0o655),
}
LEFT_OUT = {".git/config": (b"not hashed", 0o644), "assets/.git/HEAD": (b"not hashed", 0o644)}
GOLDEN = {
    "small": "c5343b5b816955d807972c544e2e619df9fce5e56bbd5ab80b79a6bf0fa4ddee",
    "large": "1ab8f8723b40f7e981c1c0786a8fc6d6d530b8de3dcdf8d6d5fc572689641391",
}


def write(folder: Path, files: dict[str, tuple[bytes, int]]) -> Skill:
    for path, (data, mode) in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
        (folder / path).chmod(mode)
    return Skill(Frontmatter(folder.name, "d"), folder / "SKILL.md")


def expected(files: dict[str, tuple[bytes, int]]) -> str:
    """The definition, written down a second time."""
    rows = b""
    for path in sorted(files, key=str.encode):
        data, mode = files[path]
        bit = b"x" if mode & 0o100 else b"-"
        rows += (
            b"\0".join((path.encode(), bit, str(len(data)).encode(), hashlib.sha256(data).hexdigest().encode())) + b"\n"
        )
    return hashlib.sha256(rows).hexdigest()


@pytest.mark.needs_modes
@pytest.mark.parametrize(("name", "files"), [("small", SMALL), ("large", LARGE)])
def test_the_digest_of_a_known_folder_never_changes(
    tmp_path: Path, name: str, files: dict[str, tuple[bytes, int]]
) -> None:
    assert write(tmp_path / name, files).digest() == expected(files) == GOLDEN[name]


@pytest.mark.needs_modes
def test_git_folders_do_not_count(tmp_path: Path) -> None:
    assert write(tmp_path / "large", LARGE | LEFT_OUT).digest() == GOLDEN["large"]


@pytest.mark.needs_modes
def test_neither_place_nor_order_nor_time_counts(tmp_path: Path) -> None:
    reordered = dict(reversed(LARGE.items()))
    skill = write(tmp_path / "some" / "where" / "else", reordered)
    for path in (tmp_path / "some" / "where" / "else").rglob("*"):
        os.utime(path, (1, 1))
    (tmp_path / "some" / "where" / "else" / "empty").mkdir()
    assert skill.digest() == GOLDEN["large"]


def test_a_scanned_skill_has_the_same_digest(tmp_path: Path) -> None:
    write(tmp_path / "in" / "small", SMALL)
    assert scan(tmp_path)["small"].digest() == GOLDEN["small"]


@pytest.mark.needs_modes
@pytest.mark.parametrize(
    "change",
    [
        {"SKILL.md": (SMALL["SKILL.md"][0], 0o744)},
        {"SKILL.md": (SMALL["SKILL.md"][0] + b"\n", 0o644)},
        {".hidden": (b"", 0o644)},
        {"x": (b"", 0o644)},
        {".gitignore": (b"", 0o644)},
    ],
    ids=["executable", "content", "hidden", "empty", "gitignore"],
)
def test_every_file_and_its_executable_bit_counts(tmp_path: Path, change: dict[str, tuple[bytes, int]]) -> None:
    changed = SMALL | change
    assert write(tmp_path / "small", changed).digest() == expected(changed) != GOLDEN["small"]


@pytest.mark.parametrize("mode", [0o600, 0o655, 0o677, 0o444])
def test_only_the_owners_executable_bit_counts(tmp_path: Path, mode: int) -> None:
    skill = write(tmp_path / "small", SMALL)
    (tmp_path / "small" / "SKILL.md").chmod(mode)
    assert skill.digest() == GOLDEN["small"]


def refusal(skill: Skill) -> SkillError:
    with pytest.raises(SkillError) as caught:
        skill.digest()
    assert str(skill.dir) in str(caught.value)
    return caught.value


@pytest.mark.needs_links
@pytest.mark.parametrize("where", ["link", "references/link", ".hidden/link"])
@pytest.mark.parametrize("target", ["SKILL.md", "/", "nowhere"])
def test_a_link_anywhere_makes_it_an_error(tmp_path: Path, where: str, target: str) -> None:
    skill = write(tmp_path / "large", LARGE)
    (tmp_path / "large" / where).symlink_to(target)
    assert refusal(skill).code == "link-in-skill"


@pytest.mark.needs_fifo
def test_a_special_file_makes_it_an_error(tmp_path: Path) -> None:
    skill = write(tmp_path / "large", LARGE)
    os.mkfifo(tmp_path / "large" / "pipe")
    assert refusal(skill).code == "special-file"


def limited(skill: Skill, limits: Limits) -> str:
    assert skill.dir is not None
    return digest_folder(str(skill.dir), (), skill.location, limits)


@pytest.mark.needs_modes
def test_limits_make_it_an_error_and_never_a_partial_digest(tmp_path: Path) -> None:
    skill = write(tmp_path / "large", LARGE)
    size = sum(len(data) for data, _ in LARGE.values())
    fine = Limits(max_files_per_skill=8, max_digest_bytes=size, max_depth_per_skill=4)
    assert limited(skill, fine) == GOLDEN["large"]
    for limits, code in (
        (Limits(max_files_per_skill=7), "too-many-files"),
        (Limits(max_entries_per_skill=7), "too-many-files"),
        (Limits(max_depth_per_skill=2), "too-deep"),
    ):
        with pytest.raises(SkillError) as caught:
            limited(skill, limits)
        assert caught.value.code == code
    with pytest.raises(SkillError):
        limited(skill, Limits(max_digest_bytes=size - 1))


def test_too_many_bytes_name_the_limit_to_raise(tmp_path: Path) -> None:
    with pytest.raises(SkillError) as caught:
        limited(write(tmp_path / "large", LARGE), Limits(max_digest_bytes=100))
    assert caught.value.code == "too-many-bytes"
    assert "max_digest_bytes" in str(caught.value)


def test_a_skill_that_is_gone_is_an_error(tmp_path: Path) -> None:
    skill = write(tmp_path / "small", SMALL)
    (tmp_path / "small").rename(tmp_path / "moved")
    assert refusal(skill).code == "not-found"


def test_a_skill_without_files_has_no_digest() -> None:
    with pytest.raises(SkillError) as caught:
        Skill(Frontmatter("a", "b"), body="text").digest()
    assert caught.value.code == "no-files"

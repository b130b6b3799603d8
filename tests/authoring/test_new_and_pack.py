"""New skills and archives: there whole or not at all, and the same bytes every time."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

import prowess
from prowess.files import syscalls

SKILL = Path(__file__).resolve().parents[2] / "examples" / "skills" / "csv-report"


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    shutil.copytree(SKILL, tmp_path / "csv-report")
    return tmp_path / "csv-report"


def test_a_new_skill_is_ready_to_be_filled_in(tmp_path: Path) -> None:
    made = prowess.create_skill("weekly-report", tmp_path / "a" / "b", parts=["scripts", "evals", "scripts"])
    assert sorted(path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file()) == [
        *("SKILL.md", "evals/triggers.json", "scripts/count.py")
    ]
    assert os.access(made / "scripts" / "count.py", os.X_OK)
    assert made.stat().st_mode & 0o777 == 0o755
    assert prowess.validate(made) == ()


@pytest.mark.parametrize("moment", range(1, 12))
def test_a_full_disk_leaves_a_whole_skill_or_none(tmp_path: Path, moment: int) -> None:
    count = 0

    def die(_name: str, when: str, _path: str) -> None:
        nonlocal count
        count += when == "before"
        if count == moment:
            raise OSError(28, "No space left on device")

    before = syscalls.set_watcher(die)
    try:
        with suppress(prowess.SourceError, OSError):
            prowess.create_skill("one", tmp_path, parts=["scripts", "references"])
    finally:
        syscalls.set_watcher(before)
    if (tmp_path / "one").exists():
        assert prowess.validate(tmp_path / "one") == ()


@pytest.mark.parametrize("form", ["skill", "zip", "tar.gz"])
def test_the_same_content_gives_the_same_bytes(skill: Path, tmp_path: Path, form: str) -> None:
    first = prowess.pack(skill, form=form)  # type: ignore[arg-type]
    other = tmp_path / "elsewhere" / "csv-report"
    other.mkdir(parents=True)
    for path in sorted(skill.rglob("*"), reverse=True):
        if path.is_file():
            target = other / path.relative_to(skill)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            target.chmod(0o700 if os.access(path, os.X_OK) else 0o600)
            os.utime(target, (1, 1))
    again = prowess.pack(other, form=form)  # type: ignore[arg-type]
    assert again.data == first.data
    assert again.digest == first.digest


def test_a_skill_file_has_one_folder_and_the_others_have_skill_md_on_top(skill: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(prowess.pack(skill).data)) as archive:
        names = archive.namelist()
        assert all(name.startswith("csv-report/") for name in names)
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    with zipfile.ZipFile(io.BytesIO(prowess.pack(skill, form="zip").data)) as archive:
        assert [f"csv-report/{name}" for name in archive.namelist()] == names
    with tarfile.open(fileobj=io.BytesIO(prowess.pack(skill, form="tar.gz").data)) as tar:
        assert tar.getnames() == [name.removeprefix("csv-report/") for name in names]
        assert {member.mtime for member in tar.getmembers()} == {0}
        assert tar.getmember("scripts/profile.py").mode == 0o755


def test_leavings_and_evals_are_left_out(skill: Path) -> None:
    for name in ("evals/triggers.json", "scripts/__pycache__/x.pyc", ".DS_Store", "scripts/old.py~", ".git/config"):
        (skill / name).parent.mkdir(parents=True, exist_ok=True)
        (skill / name).write_text("x", encoding="utf-8")
    packed = prowess.pack(skill)
    assert packed.data == prowess.pack(SKILL).data
    assert set(packed.left_out) == {"evals/triggers.json", "scripts/__pycache__/x.pyc", ".DS_Store", "scripts/old.py~"}
    assert not set(packed.files) & set(packed.left_out)


def test_a_skill_with_a_link_is_not_packed(skill: Path) -> None:
    (skill / "references" / "link.md").symlink_to("/etc/passwd")
    with pytest.raises(prowess.SkillValidationError, match="link"):
        prowess.pack(skill)


@pytest.mark.parametrize("form", ["skill", "zip", "tar.gz"])
def test_what_is_packed_unpacks_to_the_same_digest(skill: Path, tmp_path: Path, form: str) -> None:
    packed = prowess.pack(skill, form=form)  # type: ignore[arg-type]
    prowess.write_packed(packed, tmp_path / "out" / "x.bin")
    made = prowess.unpack_into(tmp_path / "out" / "x.bin", tmp_path / "new")
    assert made == tmp_path / "new" / "csv-report"
    assert prowess.read_metadata(made).digest() == prowess.read_metadata(skill).digest()
    with pytest.raises(prowess.SourceError) as caught:
        prowess.unpack_into(tmp_path / "out" / "x.bin", tmp_path / "new")
    assert caught.value.code == "would-replace"


def test_a_skill_that_is_there_gives_way_whole_when_that_was_asked_for(skill: Path, tmp_path: Path) -> None:
    prowess.write_packed(prowess.pack(skill), tmp_path / "x.skill")
    made = prowess.unpack_into(tmp_path / "x.skill", tmp_path / "new")
    (made / "left-over.md").write_text("old", encoding="utf-8")
    assert prowess.unpack_into(tmp_path / "x.skill", tmp_path / "new", replace=True) == made
    assert prowess.read_metadata(made).digest() == prowess.read_metadata(skill).digest()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["csv-report"]


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_what_is_not_a_skill_never_gives_way(skill: Path, tmp_path: Path, kind: str) -> None:
    prowess.write_packed(prowess.pack(skill), tmp_path / "x.skill")
    place = tmp_path / "new" / "csv-report"
    place.parent.mkdir()
    if kind == "link":
        place.symlink_to(skill)
    elif kind == "file":
        place.write_text("mine", encoding="utf-8")
    else:
        place.mkdir()
        (place / "mine.md").write_text("mine", encoding="utf-8")
    with pytest.raises(prowess.SourceError) as caught:
        prowess.unpack_into(tmp_path / "x.skill", place.parent, replace=True)
    assert caught.value.code == "already-there"
    assert [path.name for path in place.parent.iterdir()] == ["csv-report"]
    assert kind != "folder" or (place / "mine.md").is_file()


def test_an_archive_cannot_choose_where_it_goes(tmp_path: Path) -> None:
    """The name comes from the head, which must be a name; paths that lead out refuse the archive."""
    for name, path in (("../victim", "SKILL.md"), ("ok", "../SKILL.md"), ("ok", "/SKILL.md")):
        with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
            archive.writestr(path, f"---\nname: {name}\ndescription: x\n---\ny\n")
        with pytest.raises(prowess.SkillError):
            prowess.unpack_into(tmp_path / "x.zip", tmp_path / "out")
        assert sorted(tmp_path.iterdir()) == [tmp_path / "x.zip"]


@pytest.mark.skipif(os.name == "nt", reason="no such names there")
@pytest.mark.parametrize("name", ["bell\x07.md", "a:b.md", "nul.txt", "dot."])
def test_a_name_that_would_not_unpack_is_not_packed(skill: Path, name: str) -> None:
    (skill / name).write_text("x", encoding="utf-8")
    with pytest.raises(prowess.SkillValidationError) as caught:
        prowess.pack(skill)
    assert caught.value.code == "bad-file-name"


def test_an_unknown_format_is_an_error(skill: Path) -> None:
    with pytest.raises(prowess.SourceError, match="one of skill, zip"):
        prowess.pack(skill, form="rar")  # type: ignore[arg-type]

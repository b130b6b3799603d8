"""The supporting files of a skill in @drover/skills (S3)."""

from collections.abc import Callable
from pathlib import Path

import pytest

import prowess

Put = Callable[..., Path]


@pytest.fixture
def pdf(put: Put, tmp_path: Path) -> prowess.Skill:
    """A skill with files of every kind."""
    folder = put("skills/pdf").parent
    for name in ("scripts/b.py", "scripts/a.py", "scripts/sub/c.py", "scripts/.hidden", "references/r.md", "README.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{name}\n", encoding="utf-8")
    (folder / "extra").mkdir()
    (folder / ".env").touch()
    return prowess.scan(tmp_path / "skills")["pdf"]


def test_supporting_files_are_listed_by_kind_one_level_deep(pdf: prowess.Skill) -> None:
    """S3-23: sorted names, without the SKILL.md, hidden files and folders; a missing folder is an empty list."""
    resources = pdf.resources()
    assert resources.scripts == ("a.py", "b.py")
    assert resources.references == ("r.md",)
    assert resources.assets == ()
    assert resources.other == ("README.md",)


def test_files_in_deeper_folders_are_listed_on_demand(pdf: prowess.Skill) -> None:
    """S3-23: files() has every file, whatever its depth."""
    assert "scripts/sub/c.py" in pdf.files()


def test_nothing_of_a_skill_is_kept_but_its_head(pdf: prowess.Skill) -> None:
    """S3-23: body and files are those of the moment in which they are asked for."""
    assert pdf.path is not None
    assert pdf.dir is not None
    with pdf.path.open("a", encoding="utf-8") as file:
        file.write("More.\n")
    (pdf.dir / "scripts/z.py").touch()
    assert pdf.read_body() == "Do it.\nMore.\n"
    assert pdf.resources().scripts == ("a.py", "b.py", "z.py")


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "scripts/../../x", "scripts/../README.md"])
def test_absolute_paths_and_two_dots_are_refused(path: str, pdf: prowess.Skill) -> None:
    """S3-24: also where the dots would lead back inside."""
    with pytest.raises(prowess.PathTraversalError):
        pdf.read_resource(path)


def test_a_file_is_read_as_utf_8_text(pdf: prowess.Skill) -> None:
    """S3-24: what is not text is an error that says so, and a name may begin with two dots."""
    assert pdf.dir is not None
    (pdf.dir / "..x").write_text("Grüße\n", encoding="utf-8")
    (pdf.dir / "latin").write_bytes("Grüße\n".encode("latin-1"))
    assert pdf.read_resource("..x") == "Grüße\n"
    with pytest.raises(prowess.BinaryResourceError):
        pdf.read_resource("latin")


def test_a_linked_file_is_not_read(pdf: prowess.Skill, tmp_path: Path) -> None:
    """S3-24: wherever it leads."""
    assert pdf.dir is not None
    (tmp_path / "secret").write_text("secret\n", encoding="utf-8")
    (pdf.dir / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(prowess.PathTraversalError):
        pdf.read_resource("link")


def test_a_skill_made_with_a_relative_path_reads_its_files(
    pdf: prowess.Skill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3-24: the path is made absolute when the skill is made, so a later change of folder does not matter."""
    monkeypatch.chdir(tmp_path)
    skill = prowess.Skill(pdf.frontmatter, Path("skills/pdf/SKILL.md"))
    monkeypatch.chdir(tmp_path.parent)
    assert skill.read_resource("README.md") == "README.md\n"

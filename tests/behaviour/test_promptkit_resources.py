"""How PromptKit (S1) reads the files of a skill."""

from collections.abc import Callable
from pathlib import Path

import pytest

import prowess

Put = Callable[..., Path]


@pytest.fixture
def pdf(put: Put, tmp_path: Path) -> prowess.Skill:
    """A skill with a file in a folder, beside a sibling skill with a secret."""
    folder = put("pdf").parent
    (folder / "refs/deep").mkdir(parents=True)
    (folder / "refs/d").write_bytes(b"text\n")
    (put("other").parent / "secret").write_bytes(b"secret\n")
    (tmp_path / "x").write_bytes(b"outside\n")
    return prowess.scan(tmp_path)["pdf"]


def test_a_file_is_read_as_bytes_or_as_text(pdf: prowess.Skill) -> None:
    """S1-25: bytes from the skill, text from the skill or from the catalogue by name."""
    assert pdf.read_bytes("refs/d") == b"text\n"
    assert pdf.read_resource("refs/d") == "text\n"
    assert prowess.Catalog([pdf]).read_resource("pdf", "refs/d") == "text\n"


def test_files_of_an_unknown_skill_are_an_error(pdf: prowess.Skill) -> None:
    """S1-25: the same error as for any unknown name."""
    with pytest.raises(prowess.UnknownSkillError):
        prowess.Catalog([pdf]).read_resource("nope", "refs/d")


def test_a_skill_without_a_folder_has_no_files() -> None:
    """S1-25: asking a skill that is text only for a file is an error of its own."""
    skill = prowess.Skill(prowess.Frontmatter(name="greet", description="Greets."), body="Say hello.")
    with pytest.raises(prowess.ResourceError) as caught:
        skill.read_bytes("refs/d")
    assert caught.value.code == "no-files"


def test_a_path_that_leaves_the_folder_is_its_own_error(pdf: prowess.Skill) -> None:
    """S1-26: it is told from a missing file, and names no file outside."""
    with pytest.raises(prowess.PathTraversalError) as caught:
        pdf.read_bytes("../x")
    assert caught.value.code == "path-escape"


def test_a_skill_below_a_linked_root_is_read_like_any_other(put: Put, tmp_path: Path) -> None:
    """S1-26: links in the path that the caller gave are the caller's."""
    (put("real/pdf").parent / "d").write_bytes(b"text\n")
    (tmp_path / "root").symlink_to(tmp_path / "real")
    assert prowess.scan(tmp_path / "root")["pdf"].read_bytes("d") == b"text\n"


@pytest.mark.parametrize("path", ["../x", "refs/../../x", "./../x", "refs/./../../x", "..", "refs/deep/../d"])
def test_two_dots_are_refused_wherever_they_stand(path: str, pdf: prowess.Skill) -> None:
    """S1-27: also where they would stay inside."""
    with pytest.raises(prowess.PathTraversalError):
        pdf.read_bytes(path)


@pytest.mark.parametrize("path", ["refs/d", "refs//d", "./refs/d", "refs/./d"])
def test_single_dots_and_repeated_slashes_are_dropped(path: str, pdf: prowess.Skill) -> None:
    """S1-27: spellings that cannot leave the folder are the same file."""
    assert pdf.read_bytes(path) == b"text\n"


@pytest.mark.parametrize("path", ["/etc/passwd", "/refs/d", "//refs/d", "C:/refs/d", "\\refs\\d"])
def test_an_absolute_path_is_refused(path: str, pdf: prowess.Skill) -> None:
    """S1-28: neither the system's file nor one of the skill's with the same path below it."""
    with pytest.raises(prowess.PathTraversalError):
        pdf.read_bytes(path)


@pytest.mark.parametrize("target", ["../../x", "../../other/secret", "d"])
def test_a_linked_file_is_refused_wherever_it_leads(target: str, pdf: prowess.Skill) -> None:
    """S1-29: out of the root, into a sibling skill, and inside the same folder."""
    assert pdf.dir is not None
    (pdf.dir / "refs/link").symlink_to(target)
    with pytest.raises(prowess.PathTraversalError):
        pdf.read_bytes("refs/link")


def test_a_file_behind_a_linked_folder_is_refused(pdf: prowess.Skill) -> None:
    """S1-29: a link in the middle of a path is a link."""
    assert pdf.dir is not None
    (pdf.dir / "more").symlink_to("../other")
    with pytest.raises(prowess.PathTraversalError):
        pdf.read_bytes("more/secret")


def test_a_missing_file_is_a_file_not_found(pdf: prowess.Skill) -> None:
    """S1-30: callers may catch the built-in error."""
    with pytest.raises(FileNotFoundError) as caught:
        pdf.read_bytes("refs/none")
    assert isinstance(caught.value, prowess.ResourceNotFoundError)


def test_a_folder_is_not_a_file(pdf: prowess.Skill) -> None:
    """S1-30: reading one is an error, and not the same as a missing file."""
    with pytest.raises(prowess.ResourceError) as caught:
        pdf.read_bytes("refs")
    assert caught.value.code == "not-a-regular-file"


@pytest.mark.parametrize("path", ["", ".", "./"])
def test_a_path_that_names_nothing_is_an_error(path: str, pdf: prowess.Skill) -> None:
    """S1-30: the skill's own folder cannot be read as a file, and is refused before anything is read."""
    with pytest.raises(prowess.PathTraversalError):
        pdf.read_bytes(path)


def test_a_read_is_bounded(pdf: prowess.Skill) -> None:
    """S1-30: a file of more than max_bytes is an error, one of exactly as many is not."""
    assert pdf.read_bytes("refs/d", max_bytes=5) == b"text\n"
    with pytest.raises(prowess.ResourceTooLargeError):
        pdf.read_bytes("refs/d", max_bytes=4)


def test_the_bound_of_a_read_can_be_lifted(pdf: prowess.Skill) -> None:
    """S1-30: max_bytes=None reads a file of any size."""
    assert pdf.dir is not None
    (pdf.dir / "large").write_bytes(b"x" * 11_000_000)
    assert len(pdf.read_bytes("large", max_bytes=None)) == len(pdf.read_resource("large", max_bytes=None)) == 11_000_000

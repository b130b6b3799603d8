"""How the Go package ``skill`` (S0) keeps its catalogue: names, order, and bodies that are read on demand."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import prowess

Put = Callable[..., Path]


def made(name: str, description: str) -> prowess.Skill:
    return prowess.Skill(prowess.Frontmatter(name=name, description=description))


def test_the_last_of_a_name_wins_and_order_is_by_name() -> None:
    """S0-18: with on_duplicate="last"; without it the first wins."""
    skills = [made("b", "first"), made("c", "only"), made("a", "only"), made("b", "second")]
    catalog = prowess.Catalog(skills, on_duplicate="last")
    assert [(skill.name, skill.description) for skill in catalog] == [("a", "only"), ("b", "second"), ("c", "only")]
    assert prowess.Catalog(skills)["b"].description == "first"


def test_a_catalogue_is_counted_listed_and_looked_up() -> None:
    """S0-19: len, skills, names and get; what they give cannot change the catalogue."""
    catalog = prowess.Catalog([made("b", "two"), made("a", "one")])
    assert (len(catalog), catalog.names, catalog.skills) == (2, ("a", "b"), (catalog["a"], catalog["b"]))
    assert catalog.get("a") is catalog["a"]
    assert catalog.get("c") is None


def test_an_empty_catalogue_answers_every_question() -> None:
    """S0-19: no skills is an ordinary state, not a special value that callers must guard against."""
    catalog = prowess.Catalog()
    assert (len(catalog), catalog.skills, catalog.names, catalog.get("a"), list(catalog)) == (0, (), (), None, [])


def test_a_body_is_read_anew_at_every_call(put: Put, tmp_path: Path) -> None:
    """S0-20: no copy is kept, so a changed file gives its changed body."""
    path = put("pdf", body="Old.\n")
    catalog = prowess.scan(tmp_path)
    assert catalog.load_body("pdf") == "Old.\n"
    path.write_text(path.read_text(encoding="utf-8").replace("Old.", "Newer."), encoding="utf-8")
    assert catalog.load_body("pdf") == "Newer.\n"


@pytest.mark.parametrize("body", ["\n\nText.\n\n\n", "\r\nText.\r\n", "  indented\n", "no line end", ""])
def test_a_body_is_exact_to_the_byte(body: str, put: Put, tmp_path: Path) -> None:
    """S0-20, S0-21: blank lines and line ends are kept; a body that begins at the end of the file is empty."""
    put("pdf", body=body)
    assert prowess.scan(tmp_path).load_body("pdf") == body


def test_an_unknown_name_is_an_error_that_names_the_known_ones(put: Put, tmp_path: Path) -> None:
    """S0-21: asking for the body of a skill that is not there is a KeyError with the names that are."""
    put("pdf")
    with pytest.raises(prowess.UnknownSkillError, match="pdf") as caught:
        prowess.scan(tmp_path).load_body("fdp")
    assert isinstance(caught.value, KeyError)


def test_a_file_that_has_gone_is_an_error_that_names_it(put: Put, tmp_path: Path) -> None:
    """S0-21: a body that cannot be read is a validation error with the path."""
    path = put("pdf")
    catalog = prowess.scan(tmp_path)
    path.unlink()
    with pytest.raises(prowess.SkillValidationError) as caught:
        catalog.load_body("pdf")
    assert caught.value.path == str(path)


def test_a_file_cut_off_before_its_body_is_an_error(put: Put, tmp_path: Path) -> None:
    """S0-21: a file that now ends before the place where its body began is not read past its end."""
    path = put("pdf")
    catalog = prowess.scan(tmp_path)
    os.truncate(path, 10)
    with pytest.raises(prowess.SkillValidationError):
        catalog.load_body("pdf")


def test_an_edited_frontmatter_does_not_shift_the_body(put: Put, tmp_path: Path) -> None:
    """S0-22: when the file changed since it was found, its head is read again and the body is the body."""
    put("pdf", description="Short.", body="Body.\n")
    catalog = prowess.scan(tmp_path)
    put("pdf", description="Much longer than it was before.", body="Body.\n")
    assert catalog.load_body("pdf") == "Body.\n"


def test_a_body_of_any_bytes_and_any_size_can_be_read(put: Put, tmp_path: Path) -> None:
    """S0-20: errors="bytes" and max_bytes=None lift what guards a prompt by default."""
    path = put("pdf")
    path.write_bytes(path.read_bytes() + b"\xff" * 2_000_000)
    catalog = prowess.scan(tmp_path)
    assert catalog.load_body("pdf", errors="bytes", max_bytes=None) == b"Do it.\n" + b"\xff" * 2_000_000
    with pytest.raises(prowess.SkillValidationError):
        catalog.load_body("pdf")


def test_a_body_is_read_after_the_description_was_lost(put: Put, tmp_path: Path) -> None:
    """S0-22: only the dashes say where the body begins."""
    path = put("pdf")
    catalog = prowess.scan(tmp_path)
    path.write_text("---\nname: pdf\n---\nBody.\n", encoding="utf-8")
    assert catalog.load_body("pdf") == "Body.\n"


def test_a_skill_knows_its_file_its_fields_and_where_its_body_begins(
    put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S0-23: the path is that of the SKILL.md itself, and absolute even when the root was not."""
    path = put("skills/pdf", description="Fills forms.", body="Body.\n")
    monkeypatch.chdir(tmp_path)
    skill = prowess.scan("skills")["pdf"]
    assert skill.path == path
    assert (skill.name, skill.description) == (skill.frontmatter.name, skill.frontmatter.description)
    assert (skill.name, skill.description) == ("pdf", "Fills forms.")
    assert path.read_bytes()[skill.body_offset :] == b"Body.\n"

"""A catalogue from several sources: order, preloading, errors, virtual folders."""

from collections.abc import Callable
from pathlib import Path

import pytest

import prowess

Put = Callable[..., Path]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Write a SKILL.md below ``tmp_path``; the name is the folder's unless another is given."""

    def write(folder: str, *, name: str | None = None, description: str = "Does it.", body: str = "Do it.\n") -> Path:
        path = tmp_path / folder / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        head = f"---\nname: {path.parent.name if name is None else name}\ndescription: {description}\n---\n"
        path.write_text(head + body, encoding="utf-8")
        return path

    return write


def inline(name: str, text: str = "Do it.", *, preload: bool = False) -> prowess.SkillSource:
    return prowess.Source.inline(name, "Does it.", text, preload)


# -- order and duplicates -------------------------------------------------------------------------------------------


def test_no_sources_make_an_empty_catalogue() -> None:
    assert prowess.Catalog.from_sources([]).names == ()


def test_every_source_adds_its_skills(put: Put, tmp_path: Path) -> None:
    put("one/a")
    put("two/b")
    catalog = prowess.Catalog.from_sources(
        [inline("c"), prowess.Source.directory(tmp_path / "two"), prowess.Source.directory(tmp_path / "one")]
    )
    assert catalog.names == ("a", "b", "c")


def test_the_first_source_wins_and_the_loser_is_named(put: Put, tmp_path: Path) -> None:
    winner, loser = put("one/pdf", body="first"), put("two/pdf", body="second")
    sources = [prowess.Source.directory(tmp_path / folder) for folder in ("one", "two")]
    catalog = prowess.Catalog.from_sources(sources)
    assert catalog.load("pdf").instructions == "first"
    assert [(lost.name, lost.location, lost.winner) for lost in catalog.shadowed] == [("pdf", str(loser), str(winner))]
    assert [issue.code for issue in catalog.issues] == ["duplicate-name"]
    assert prowess.Catalog.from_sources(sources[::-1]).load("pdf").instructions == "second"


def test_an_inline_skill_wins_or_loses_by_its_place_only(put: Put, tmp_path: Path) -> None:
    put("one/pdf", body="from a file")
    sources = [prowess.Source.directory(tmp_path / "one"), inline("pdf", "from text")]
    assert prowess.Catalog.from_sources(sources).load("pdf").instructions == "from a file"
    assert prowess.Catalog.from_sources(sources[::-1]).load("pdf").instructions == "from text"


def test_the_last_source_wins_where_the_caller_asks_for_that(put: Put, tmp_path: Path) -> None:
    put("one/pdf", body="first")
    put("two/pdf", body="second")
    sources = [prowess.Source.directory(tmp_path / folder) for folder in ("one", "two")]
    assert prowess.Catalog.from_sources(sources, on_duplicate="last").load("pdf").instructions == "second"


def test_a_repeated_name_is_an_error_where_the_caller_asks_for_that(put: Put, tmp_path: Path) -> None:
    put("one/pdf")
    put("two/pdf")
    sources = [prowess.Source.directory(tmp_path / folder) for folder in ("one", "two")]
    with pytest.raises(prowess.DuplicateSkillError) as caught:
        prowess.Catalog.from_sources(sources, on_duplicate="error")
    assert str(tmp_path / "one" / "pdf") in str(caught.value)
    assert str(tmp_path / "two" / "pdf") in str(caught.value)


def test_the_same_file_from_two_sources_is_not_a_duplicate(put: Put, tmp_path: Path) -> None:
    put("skills/billing/pay")
    catalog = prowess.Catalog.from_sources(
        [prowess.Source.directory(tmp_path / "skills"), prowess.Source.directory(tmp_path / "skills" / "billing")]
    )
    assert catalog.names == ("pay",)
    assert (catalog.shadowed, catalog.issues) == ((), ())


def test_the_same_file_mounted_twice_is_known_by_the_mount_of_the_winner(put: Put, tmp_path: Path) -> None:
    put("skills/pay")
    sources = [
        prowess.Source.directory(tmp_path / "skills", mount_as="one"),
        prowess.Source.directory(tmp_path / "skills", mount_as="two"),
    ]
    assert prowess.Catalog.from_sources(sources)["pay"].virtual_path == "one/pay"
    assert prowess.Catalog.from_sources(sources, on_duplicate="last")["pay"].virtual_path == "two/pay"


def test_the_issues_and_places_of_every_source_are_kept(put: Put, tmp_path: Path) -> None:
    put("one/good")
    bad = tmp_path / "two" / "bad" / "SKILL.md"
    bad.parent.mkdir(parents=True)
    bad.write_bytes(b"no frontmatter\n")
    catalog = prowess.Catalog.from_sources([prowess.Source.directory(tmp_path / folder) for folder in ("one", "two")])
    assert catalog.names == ("good",)
    assert [(issue.code, issue.path) for issue in catalog.issues] == [("no-frontmatter", str(bad))]
    looked = [place.path for place in catalog.explain("good").places]
    assert looked == [str(tmp_path / "one"), str(tmp_path / "two")]


def test_lost_copies_inside_one_source_are_named_too(put: Put, tmp_path: Path) -> None:
    put("one/a/pdf")
    put("one/b/pdf")
    catalog = prowess.Catalog.from_sources([prowess.Source.directory(tmp_path / "one"), inline("other")])
    assert [lost.location for lost in catalog.shadowed] == [str(tmp_path / "one" / "b" / "pdf" / "SKILL.md")]


# -- preloading -----------------------------------------------------------------------------------------------------


def test_one_preloading_copy_preloads_the_winner_whichever_it_is(put: Put, tmp_path: Path) -> None:
    put("broad/pdf", body="first")
    put("broad/other")
    put("narrow/pdf", body="second")
    broad = prowess.Source.directory(tmp_path / "broad")
    narrow = prowess.Source.directory(tmp_path / "narrow", preload=True)
    catalog = prowess.Catalog.from_sources([broad, narrow])
    assert [(loaded.skill.name, loaded.instructions) for loaded in catalog.preloaded()] == [("pdf", "first")]
    catalog = prowess.Catalog.from_sources([narrow, broad])
    assert [(loaded.skill.name, loaded.instructions) for loaded in catalog.preloaded()] == [("pdf", "second")]


def test_a_narrow_entry_preloads_some_of_a_broad_one(put: Put, tmp_path: Path) -> None:
    put("skills/pdf")
    put("skills/billing/pay")
    catalog = prowess.Catalog.from_sources(
        [
            prowess.Source.directory(tmp_path / "skills", mount_as="shown"),
            prowess.Source.directory(tmp_path / "skills" / "billing", preload=True),
        ]
    )
    assert [(skill.name, skill.preload) for skill in catalog] == [("pay", True), ("pdf", False)]
    assert catalog["pay"].virtual_path == "shown/billing/pay"


def test_an_inline_copy_may_preload_too(put: Put, tmp_path: Path) -> None:
    put("one/pdf", body="from a file")
    catalog = prowess.Catalog.from_sources([prowess.Source.directory(tmp_path / "one"), inline("pdf", preload=True)])
    assert [loaded.instructions for loaded in catalog.preloaded()] == ["from a file"]


def test_a_preloaded_skill_that_cannot_be_read_is_left_out(put: Put, tmp_path: Path) -> None:
    put("one/gone").unlink()
    gone, stays = put("one/gone"), put("one/stays")
    catalog = prowess.Catalog.from_sources([prowess.Source.directory(tmp_path / "one", preload=True)])
    gone.unlink()
    assert stays.exists()
    assert [loaded.skill.name for loaded in catalog.preloaded()] == ["stays"]


# -- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mount", ["skills/*", "a?", "[x]", "..", "../x", "a/../b", "a\\..\\b"])
def test_a_mount_that_is_not_a_literal_folder_is_an_error_with_the_index(mount: str, tmp_path: Path) -> None:
    sources = [inline("a"), prowess.Source.directory(tmp_path, mount_as=mount)]
    with pytest.raises(prowess.SourceError, match=r"^sources\[1\]: ") as caught:
        prowess.Catalog.from_sources(sources)
    assert repr(mount) in caught.value.message


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (prowess.Source.inline("", "Does it.", "Do it."), "bad-name"),
        (prowess.Source.inline("a", " ", "Do it."), "missing-description"),
        (prowess.Source.inline("a", "Does it.", " \n"), "empty-body"),
    ],
)
def test_a_bad_inline_skill_is_an_error_with_the_index(source: prowess.SkillSource, code: str) -> None:
    with pytest.raises(prowess.SourceError, match=r"^sources\[2\]: ") as caught:
        prowess.Catalog.from_sources([inline("x"), inline("y"), source])
    assert caught.value.code == code


def test_a_missing_folder_is_an_error_with_the_index_where_that_was_asked_for(tmp_path: Path) -> None:
    there, gone = tmp_path, tmp_path / "gone"
    assert prowess.Catalog.from_sources([prowess.Source.directory(gone)]).names == ()
    with pytest.raises(prowess.SourceError, match=r"sources\[1\]: ") as caught:
        prowess.Catalog.from_sources(
            [prowess.Source.directory(there, missing="error"), prowess.Source.directory(gone, missing="error")]
        )
    assert (caught.value.code, str(gone) in str(caught.value)) == ("missing-root", True)


def test_an_error_that_names_a_source_is_a_value_error_too(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"sources\[0\]"):
        prowess.Catalog.from_sources([prowess.Source.directory(tmp_path, mount_as="*")])


# -- anyone's source ------------------------------------------------------------------------------------------------


class Shelf:
    """A source that someone else wrote: it has ``load`` and nothing of ours."""

    def __init__(self, *names: str, error: Exception | None = None) -> None:
        self.names = names
        self.error = error
        self.asked = 0

    def load(self) -> prowess.Catalog:
        self.asked += 1
        if self.error:
            raise self.error
        fronts = (prowess.Frontmatter(name=name, description="From a shelf.") for name in self.names)
        return prowess.Catalog(prowess.Skill(front, body="From a shelf.") for front in fronts)


def test_a_class_of_someone_else_works_like_ours(put: Put, tmp_path: Path) -> None:
    put("one/a", body="from a file")
    shelf = Shelf("a", "b")
    catalog = prowess.Catalog.from_sources([prowess.Source.directory(tmp_path / "one"), shelf])
    assert catalog.names == ("a", "b")
    assert [catalog.load(name).instructions for name in catalog.names] == ["from a file", "From a shelf."]
    assert [lost.location for lost in catalog.shadowed] == ["inline:a"]
    assert shelf.asked == 1


def test_an_error_of_someone_elses_source_gets_the_index_when_it_is_about_the_source() -> None:
    with pytest.raises(prowess.SourceError, match=r"sources\[1\]: shelf is empty") as caught:
        prowess.Catalog.from_sources([Shelf("a"), Shelf(error=prowess.SourceError("shelf is empty", code="empty"))])
    assert caught.value.code == "empty"


def test_any_other_error_of_someone_elses_source_is_passed_on() -> None:
    with pytest.raises(ZeroDivisionError):
        prowess.Catalog.from_sources([Shelf(error=ZeroDivisionError())])


# -- map_skills -----------------------------------------------------------------------------------------------------


def test_map_skills_keeps_names_issues_and_lost_copies(put: Put, tmp_path: Path) -> None:
    put("a/pdf")
    put("b/pdf")
    put("c/Odd_Name")
    before = prowess.scan(tmp_path)
    after = before.map_skills(lambda skill: skill.with_source(preload=True, virtual_path=f"v/{skill.name}"))
    assert after.names == before.names
    assert (after.issues, after.shadowed) == (before.issues, before.shadowed)
    assert after.explain("pdf").places == before.explain("pdf").places
    assert [skill.virtual_path for skill in after] == [f"v/{name}" for name in before.names]
    assert [skill.preload for skill in before] == [False, False]
    assert [skill.preload for skill in after] == [True, True]


# -- below a virtual folder -----------------------------------------------------------------------------------------


def test_under_compares_whole_segments_of_the_virtual_path(put: Put, tmp_path: Path) -> None:
    for folder in ("billing/pay", "billing/deep/refund", "billing-x/other", "top"):
        put(f"real/{folder}")
    source = prowess.Source.directory(tmp_path / "real", mount_as="skills")
    catalog = prowess.Catalog.from_sources([source, inline("text")])
    under = {
        folder: [skill.name for skill in catalog.under(folder)] for folder in ("skills/billing", "skills", "", "bill")
    }
    assert under["skills/billing"] == ["pay", "refund"]
    assert under["skills"] == ["other", "pay", "refund", "top"]
    assert under[""] == ["other", "pay", "refund", "text", "top"]
    assert under["bill"] == []
    assert [skill.name for skill in catalog.under("skills/billing/pay")] == ["pay"]
    assert [skill.name for skill in catalog.under("skills/billing/")] == ["pay", "refund"]
    assert catalog.under(str(tmp_path / "real")) == ()


def test_without_a_mount_under_takes_the_real_folder(put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put("real/billing/pay")
    put("real/top")
    catalog = prowess.Catalog.from_sources([prowess.Source.directory(tmp_path / "real"), inline("text")])
    assert [skill.name for skill in catalog.under(str(tmp_path / "real" / "billing"))] == ["pay"]
    monkeypatch.chdir(tmp_path)
    assert [skill.name for skill in catalog.under("real/billing")] == ["pay"]
    assert [skill.name for skill in catalog.under("real")] == ["pay", "top"]

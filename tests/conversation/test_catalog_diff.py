"""A session gets another catalogue in the middle of a conversation."""

from collections.abc import Callable
from pathlib import Path
from shutil import rmtree

import pytest

import prowess
from prowess import Session
from tests.skill_fixtures import preloaded

Put = Callable[..., Path]
Scanned = Callable[..., prowess.Catalog]


def test_a_refresh_says_what_was_added_removed_and_changed(put: Put, scanned: Scanned) -> None:
    for name in ("stays", "goes", "edited"):
        put(name)
    session = Session(scanned())
    rmtree(put("goes").parent)
    put("comes")
    put("edited", body="Something else.")
    report = session.refresh(scanned())
    assert (report.added, report.removed, report.changed, report.vanished) == (("comes",), ("goes",), ("edited",), ())
    assert [skill.name for skill in session.candidates()] == ["comes", "edited", "stays"]
    assert session.activate("comes").instructions == "Do it."
    with pytest.raises(prowess.UnknownSkillError):
        session.activate("goes")


def test_a_refresh_that_changes_nothing_says_so(put: Put, scanned: Scanned) -> None:
    put("a")
    put("b")
    session = Session(scanned("a"))
    session.activate("b")
    assert session.refresh(scanned("a")) == prowess.Refreshed()
    assert session.activate("b").note == "it was active already"


def test_the_new_catalogue_is_the_sessions(put: Put, scanned: Scanned) -> None:
    put("a")
    session, other = Session(scanned()), scanned()
    session.refresh(other)
    assert session.catalog is other


# -- vanished -------------------------------------------------------------------------------------------------------


def test_an_active_skill_that_vanished_stays_usable_and_says_so(put: Put, scanned: Scanned) -> None:
    rmtree_later = put("a", tools="Read", body="Text of a.").parent
    put("b")
    session = Session(scanned(), tools="any")
    session.activate("a")
    rmtree(rmtree_later)
    report = session.refresh(scanned())
    assert (report.removed, report.vanished) == (("a",), ("a",))
    assert session.active_skills == ("a",)
    assert session.active_tools == ("Read",)
    again = session.activate("a")
    assert (again.instructions, again.added_tools) == ("Text of a.", ("Read",))
    assert "no longer exists" in again.note
    assert [skill.name for skill in session.candidates()] == ["b"]


def test_a_vanished_skill_can_be_ended_and_is_then_unknown(put: Put, scanned: Scanned) -> None:
    put("a", tools="Read")
    session = Session(scanned(), tools="any")
    session.activate("a")
    session.refresh(prowess.Catalog())
    assert session.deactivate("a") == ("Read",)
    with pytest.raises(prowess.UnknownSkillError):
        session.activate("a")


def test_a_vanished_skill_still_counts_against_the_limit_and_obeys_filters(put: Put, scanned: Scanned) -> None:
    put("x/a")
    put("y/b")
    catalog = scanned()
    session = Session(catalog, max_active=1)
    session.activate("a")
    session.refresh(prowess.Catalog([catalog["b"]]))
    with pytest.raises(prowess.MaxActiveError):
        session.activate("b")
    with prowess.skill_filter("skills/y/*"):
        assert session.active_skills == ()
        with pytest.raises(prowess.SkillFilteredError):
            session.activate("a")
    assert session.set_filter("skills/y/*") == ("a",)
    assert session.activate("b").skill.name == "b"


def test_a_user_may_still_call_a_vanished_active_skill(put: Put, scanned: Scanned) -> None:
    put("a", body="Do $ARGUMENTS.")
    session = Session(scanned())
    session.activate("a")
    session.refresh(prowess.Catalog())
    assert "Do this." in session.expand("/a this")


def test_files_of_a_vanished_skill_are_read_while_they_exist(put: Put, scanned: Scanned) -> None:
    folder = put("a").parent
    (folder / "a.md").write_text("still here", encoding="utf-8")
    session = Session(scanned())
    session.activate("a")
    session.refresh(prowess.Catalog())
    assert session.read_resource("a", "a.md") == "still here"
    rmtree(folder)
    with pytest.raises(prowess.ResourceError):
        session.read_resource("a", "a.md")


def test_a_skill_that_comes_back_is_read_anew(put: Put, scanned: Scanned) -> None:
    folder = put("a", body="first").parent
    session = Session(scanned())
    session.activate("a")
    rmtree(folder)
    session.refresh(scanned())
    put("a", body="second, which is longer")
    report = session.refresh(scanned())
    assert (report.added, report.vanished) == (("a",), ())
    assert session.activate("a").instructions == "second, which is longer"
    assert session.activate("a").note == "it was active already"


def test_an_inactive_skill_that_is_gone_has_not_vanished(put: Put, scanned: Scanned) -> None:
    put("a")
    session = Session(scanned())
    report = session.refresh(prowess.Catalog())
    assert (report.removed, report.vanished) == (("a",), ())


def test_a_preloaded_skill_that_vanished_stays_too(put: Put, scanned: Scanned) -> None:
    put("a", body="Text of a.")
    session = Session(scanned("a"))
    assert session.refresh(prowess.Catalog()).vanished == ("a",)
    assert list(preloaded(session).values()) == ["Text of a."]


# -- changed --------------------------------------------------------------------------------------------------------


def test_a_changed_skill_keeps_its_text_and_tools_until_it_is_activated_again(put: Put, scanned: Scanned) -> None:
    put("a", tools="Read", body="first")
    session = Session(scanned(), max_active=1, tools="any")
    session.activate("a")
    put("a", tools="Edit", body="second")
    assert session.refresh(scanned()).changed == ("a",)
    assert session.active_tools == ("Read",)
    fresh = session.activate("a")
    assert (fresh.instructions, fresh.added_tools) == ("second", ("Edit",))
    assert session.active_tools == ("Edit",)
    assert session.activate("a").note == "it was active already"


def test_activating_a_changed_skill_says_that_it_has_changed(put: Put, scanned: Scanned) -> None:
    put("a", body="first")
    session = Session(scanned())
    session.activate("a")
    put("a", body="second")
    session.refresh(scanned())
    assert "changed" in session.activate("a").note


def test_a_changed_skill_that_cannot_be_read_keeps_its_text(put: Put, scanned: Scanned) -> None:
    path = put("a", tools="Read", body="first")
    session = Session(scanned(), tools="any")
    session.activate("a")
    put("a", tools="Edit", body="second")
    session.refresh(scanned())
    path.unlink()
    with pytest.raises(prowess.SkillValidationError):
        session.activate("a")
    assert (session.active_skills, session.active_tools) == (("a",), ("Read",))


def test_a_skill_that_moved_to_another_folder_has_changed(put: Put, scanned: Scanned) -> None:
    path = put("x/a", body="same")
    session = Session(scanned())
    session.activate("a")
    rmtree(path.parent)
    put("y/a", body="same")
    report = session.refresh(scanned())
    assert (report.added, report.removed, report.changed) == ((), (), ("a",))
    assert session.activate("a").skill.virtual_path == "skills/y/a"


def test_a_preloaded_skill_that_changed_stays_preloaded(put: Put, scanned: Scanned) -> None:
    put("a", body="first")
    put("b")
    session = Session(scanned("a"), max_active=1)
    session.activate("b")
    put("a", body="second")
    session.refresh(scanned("a"))
    assert list(preloaded(session).values()) == ["first"]
    session.activate("a")
    assert list(preloaded(session).values()) == ["second"]


def test_inline_skills_change_with_their_text() -> None:
    def catalog(text: str, description: str = "Greets.") -> prowess.Catalog:
        return prowess.Catalog.from_sources([prowess.Source.inline("greet", description, text)])

    session = Session(catalog("first"))
    session.activate("greet")
    assert session.refresh(catalog("first")).changed == ()
    assert session.refresh(catalog("second")).changed == ("greet",)
    assert session.activate("greet").instructions == "second"
    assert session.refresh(catalog("second", "Greets well.")).changed == ("greet",)


def test_an_edit_before_activation_is_not_a_reason_to_reload_after_it(put: Put, scanned: Scanned) -> None:
    """The catalogue is older than the text that was activated; the new one is as old."""
    put("a", body="first")
    session = Session(scanned())
    put("a", body="second")
    assert session.activate("a").instructions == "second"
    session.refresh(scanned())
    assert session.activate("a").instructions == "second"


# -- while something is being activated -----------------------------------------------------------------------------


class Interrupted(prowess.Skill):
    """A skill during whose loading something else happens to the session, as another thread could make it."""

    __slots__ = ("meanwhile",)

    meanwhile: Callable[[], object]

    def load(self) -> prowess.LoadedSkill:
        loaded = super().load()
        self.meanwhile()
        return loaded


def interrupted(path: Path) -> Interrupted:
    found = prowess.read_metadata(path)
    skill = Interrupted(found.frontmatter, path)
    skill.meanwhile = lambda: None
    return skill


def test_a_skill_that_goes_while_it_is_activated_has_vanished(put: Put) -> None:
    skill = interrupted(put("a", body="Text of a."))
    session = Session(prowess.Catalog([skill]))
    skill.meanwhile = lambda: session.refresh(prowess.Catalog())
    try:
        session.activate("a")
    except prowess.UnknownSkillError:
        assert session.active_skills == ()
    else:
        assert session.active_skills == ("a",)
        again = session.activate("a")
        assert again.instructions == "Text of a."
        assert "no longer exists" in again.note


def test_a_skill_that_changes_while_it_is_activated_is_read_anew_the_next_time(put: Put, tmp_path: Path) -> None:
    skill = interrupted(put("a", body="first"))
    session = Session(prowess.Catalog([skill]))

    def change() -> None:
        skill.meanwhile = lambda: None
        put("a", body="second")
        session.refresh(prowess.scan(tmp_path / "skills"))

    skill.meanwhile = change
    session.activate("a")
    assert session.activate("a").instructions == "second"


def test_a_filter_set_while_a_skill_is_activated_holds_for_it(put: Put) -> None:
    """Either the activation came first and the filter ended it, or the filter came first and refused it."""
    skill = interrupted(put("a"))
    session = Session(prowess.Catalog([skill]))
    ended: list[tuple[str, ...]] = []
    skill.meanwhile = lambda: ended.append(session.set_filter("none"))
    try:
        session.activate("a")
    except prowess.SkillFilteredError:
        assert ended == [()]
    else:
        assert ended == [("a",)]
    session.set_filter("")
    assert session.active_skills == ()


def test_the_limit_holds_when_another_is_activated_meanwhile(put: Put) -> None:
    skill = interrupted(put("a"))
    other = prowess.read_metadata(put("b"))
    session = Session(prowess.Catalog([skill, other]), max_active=1)
    skill.meanwhile = lambda: session.activate("b")
    with pytest.raises(prowess.MaxActiveError):
        session.activate("a")
    assert session.active_skills == ("b",)


def test_two_activations_at_once_give_the_same_text(put: Put) -> None:
    skill = interrupted(put("a", body="first"))
    session = Session(prowess.Catalog([skill]), max_active=1)
    inner: list[prowess.Activation] = []

    def again() -> None:
        skill.meanwhile = lambda: None
        put("a", body="second")
        inner.append(session.activate("a"))

    skill.meanwhile = again
    outer = session.activate("a")
    assert outer.instructions == inner[0].instructions == session.activate("a").instructions

"""One conversation from its first activation to its save, through the public API: begin here.

The other modules of this folder go into one part each: activation, ceilings, filters, catalogues that change, events,
saved sessions, calls by people, and many threads at once.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import prowess
from prowess import Session

Put = Callable[..., Path]
Scanned = Callable[..., prowess.Catalog]

PUBLIC_NAMES = """
    activate activate_text active_skills active_tools allows approve base_dir candidates catalog choose deactivate
    expand explain filter grants_tools index listed_tools moment note_read open_child read_files
    read_resource read_text refresh refuse resolve_name restore save set_available_tools set_filter set_scope
    set_selector skill trust
"""
PARTS = "consent events id instructions limits"


@pytest.fixture
def catalog(put: Put, scanned: Scanned) -> prowess.Catalog:
    put("pdf", tools="Read Bash(pdftk:*)", body="Fill the form in references/FORMS.md.", description="Fills forms.")
    put("pdf/references", body="How forms work.", name="forms")
    put("docs/release", tools="Read", body="Write notes on $0.", extra="arguments: [version]")
    put("fork", extra="context: fork")
    return scanned()


def test_a_session_has_these_public_names_and_parts(catalog: prowess.Catalog) -> None:
    """Whoever adds one says here that nobody can do without it: what is only passed on is asked of a part."""
    assert sorted(name for name in vars(Session) if not name.startswith("_")) == PUBLIC_NAMES.split()
    assert sorted(name for name in vars(Session(catalog)) if not name.startswith("_")) == PARTS.split()


def test_a_restored_session_reports_no_second_activation(catalog: prowess.Catalog) -> None:
    events: list[prowess.Event] = []
    session = Session(catalog, on_event=events.append)
    session.activate("pdf")
    again, _ = Session.restore(catalog, session.save(), on_event=events.append)
    again.activate("release")
    assert [(event.kind, event.skill) for event in events] == [("activated", "pdf"), ("activated", "release")]


def test_a_restored_session_knows_which_files_were_read(catalog: prowess.Catalog) -> None:
    session = Session(catalog)
    session.activate("pdf")
    session.read_resource("pdf", "references/SKILL.md")
    again, _ = Session.restore(catalog, session.save())
    assert again.read_files == (("pdf", "references/SKILL.md"),)
    assert "Files of pdf that were read: references/SKILL.md" in prowess.Toolset(again).recap()
    for wrong in ("pdf", [["pdf"]], [[1, 2]], {"pdf": "x"}):
        edited = json.dumps({**json.loads(session.save()), "read": wrong})
        with pytest.raises(prowess.SourceError, match="not a saved session"):
            Session.restore(catalog, edited)


def test_a_conversation_begins_with_nothing_active_and_everything_in_its_index(catalog: prowess.Catalog) -> None:
    session = Session(catalog)
    assert (session.active_skills, session.active_tools) == ((), ())
    assert session.index().splitlines()[0] == "Available skills:"
    assert [skill.name for skill in session.candidates()] == ["fork", "pdf", "release"]
    assert repr(session) == "<Session of 3 skills, active: none>"


def test_activating_brings_instructions_and_tools_within_the_ceiling(catalog: prowess.Catalog) -> None:
    session = Session(catalog, tools=["Read", "Bash(pdftk:*)"])
    activation = session.activate("pdf")
    assert activation.instructions == "Fill the form in references/FORMS.md."
    assert activation.added_tools == session.active_tools == ("Bash(pdftk:*)", "Read")
    assert (session.allows("Bash", "pdftk a.pdf"), session.allows("Bash", "rm -rf /")) == ("allowed", "refused")
    assert session.allows("Write") == "refused"


def test_without_tools_skills_approve_nothing_and_nothing_is_refused(catalog: prowess.Catalog) -> None:
    session = Session(catalog)
    session.activate("pdf")
    assert (session.active_tools, session.listed_tools) == ((), ("Bash(pdftk:*)", "Read"))
    assert (session.allows("Read"), session.allows("Write")) == ("not-mentioned", "not-mentioned")


def test_deactivating_gives_back_the_tools_that_no_other_skill_needs(catalog: prowess.Catalog) -> None:
    session = Session(catalog, tools="any")
    session.activate("pdf")
    session.activate("release")
    assert session.deactivate("pdf") == ("Bash(pdftk:*)",)
    assert session.active_skills == ("release",)
    with pytest.raises(prowess.SkillNotActiveError):
        session.deactivate("pdf")


def test_a_filter_hides_skills_from_everything(catalog: prowess.Catalog) -> None:
    session = Session(catalog, tools="any")
    session.activate("pdf")
    assert session.set_filter("skills/docs/**") == ("pdf",)
    assert (session.active_skills, session.active_tools) == ((), ())
    assert [skill.name for skill in session.candidates()] == ["release"]
    with pytest.raises(prowess.SkillFilteredError, match="not available here"):
        session.activate("pdf")
    with pytest.raises(prowess.SkillFilteredError):
        session.read_resource("pdf", "SKILL.md")


def test_no_more_skills_are_active_than_the_host_allows(catalog: prowess.Catalog) -> None:
    session = Session(catalog, max_active=1)
    session.activate("pdf")
    with pytest.raises(prowess.MaxActiveError):
        session.activate("release")
    assert session.activate("pdf").note == "it was active already"


def test_files_are_read_without_activating_the_skill(catalog: prowess.Catalog) -> None:
    session = Session(catalog)
    assert "How forms work." in session.read_resource("pdf", "references/SKILL.md")
    assert session.read_text("pdf") == "Fill the form in references/FORMS.md.\n"
    assert session.active_skills == ()
    with pytest.raises(prowess.PathTraversalError):
        session.read_resource("pdf", "../docs/release/SKILL.md")


def test_a_persons_call_becomes_text_for_the_model(catalog: prowess.Catalog) -> None:
    session = Session(catalog)
    assert "Write notes on v2." in session.expand("/release v2")
    assert session.active_skills == ("release",)
    assert session.expand("/dev is full") == session.expand("hello") == ""
    assert session.expand("/fork now") == "", "it runs as a sub-agent: Toolset.prepare_fork prepares it"


def test_a_changed_file_is_read_again_and_a_lost_one_stays_usable(
    catalog: prowess.Catalog, put: Put, scanned: Scanned
) -> None:
    session = Session(catalog)
    session.activate("pdf")
    session.activate("release")
    put("pdf", body="Fill it anew, please.")
    (put("docs/release")).unlink()
    report = session.refresh(scanned())
    assert (report.changed, report.removed, report.vanished) == (("pdf",), ("release",), ("release",))
    assert session.activate("pdf").instructions == "Fill it anew, please."
    assert session.activate("release").note.startswith("the skill no longer exists")


def test_every_call_sees_one_moment_of_the_conversation(catalog: prowess.Catalog) -> None:
    """A moment never changes: what happens later is in the next one."""
    session = Session(catalog)
    before = session.moment()
    session.activate("pdf")
    session.set_filter("skills/docs/**")
    assert (tuple(before.visible_active), before.filter) == ((), "")
    assert [skill.name for skill in before.eligible()] == ["fork", "pdf", "release"]
    assert [skill.name for skill in session.moment().eligible()] == ["release"]
    with prowess.skill_filter("none"):
        assert not session.moment().eligible()
    assert session.moment() is session.moment(), "nothing is built while nothing changes"


def test_a_selector_that_fails_shows_everything_and_is_reported(catalog: prowess.Catalog) -> None:
    class Fails:
        def select(self, query: str, candidates: object) -> list[str]:  # noqa: ARG002 - the protocol
            raise RuntimeError(query)

    events: list[prowess.Event] = []
    session = Session(catalog, selector=Fails(), on_event=events.append)
    assert len(session.candidates("forms")) == 3
    assert [event.kind for event in events] == ["selector-failed"]


def test_events_say_what_happened_and_how_long_it_took(catalog: prowess.Catalog) -> None:
    events: list[prowess.Event] = []
    session = Session(catalog, on_event=events.append, id="mine")
    session.activate("pdf")
    session.deactivate("pdf")
    with pytest.raises(prowess.UnknownSkillError):
        session.activate("pdg")
    assert [(event.kind, event.skill, event.decision) for event in events] == [
        ("activated", "pdf", "allowed"),
        ("deactivated", "pdf", ""),
        ("refused", "pdg", "refused"),
    ]
    assert {event.session for event in events} == {session.id} == {"mine"}
    assert all(event.seconds is not None and event.seconds >= 0 for event in events)


def test_a_conversation_goes_on_in_another_process(catalog: prowess.Catalog, tmp_path: Path) -> None:
    session = Session(catalog, tools=["Read"], filter="skills/**")
    session.activate("pdf")
    (tmp_path / "saved.json").write_text(session.save(), encoding="utf-8")
    code = (
        "import prowess, pathlib\n"
        "catalog = prowess.Catalog.from_sources([prowess.Source.directory('skills', mount_as='skills')])\n"
        "saved = pathlib.Path('saved.json').read_text(encoding='utf-8')\n"
        "session, issues = prowess.Session.restore(catalog, saved, tools='any')\n"
        "print(session.active_skills, session.active_tools, session.filter, issues)\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True, env={**os.environ})
    assert done.stdout.strip() == "('pdf',) ('Read',) skills/** ()"


def test_a_childs_session_is_its_own_below_the_bounds_of_its_parent(catalog: prowess.Catalog) -> None:
    session = Session(catalog, tools="any", filter="skills/**")
    session.activate("release")
    child = session.open_child(["Read"])
    assert child.active_skills == ()
    child.activate("pdf")
    assert (child.active_tools, session.active_skills) == (("Read",), ("release",))

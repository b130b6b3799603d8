"""What a host hears of a conversation: one stream of events, in order."""

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

import prowess

Put = Callable[..., Path]
Talk = Callable[..., prowess.Session]
Load = Callable[[prowess.Toolset, str], prowess.ToolResult]
Read = Callable[[prowess.Toolset, str, str], prowess.ToolResult]
Events = list[prowess.Event]


def told(events: Events) -> list[tuple[str, str]]:
    return [(event.kind, event.skill) for event in events]


def test_a_conversation_is_told_in_order(put: Put, talk: Talk, events: Events) -> None:
    put("pdf", files={"notes.md": "Note.\n", "logo.png": b"\0"})
    toolset = prowess.Toolset(talk())
    toolset.prompt()
    toolset.call("load_skill", {"name": "pdf"})
    toolset.call("read_skill_file", {"name": "pdf", "path": "notes.md"})
    toolset.call("read_skill_file", {"name": "pdf", "path": "logo.png"})
    toolset.call("unload_skill", {"name": "pdf"})
    assert told(events) == [
        ("listed", ""),
        ("activated", "pdf"),
        ("read", "pdf"),
        ("read", "pdf"),
        ("deactivated", "pdf"),
    ]
    assert [event.detail["path"] for event in events if event.kind == "read"] == ["notes.md", "logo.png"]


def test_loading_and_reading_are_told_in_every_dialect(
    *, reading: prowess.DialectName, put: Put, talk: Talk, load: Load, read: Read, events: Events
) -> None:
    put("pdf", files={"notes.md": "Note.\n"})
    toolset = prowess.Toolset(talk(), reading)
    load(toolset, "pdf")
    read(toolset, "pdf", "notes.md")
    assert told(events) == [("activated", "pdf"), ("read", "pdf")]


def test_loading_again_is_not_a_second_activation(
    dialect: prowess.DialectName, put: Put, talk: Talk, load: Load, events: Events
) -> None:
    put("pdf")
    toolset = prowess.Toolset(talk(), dialect)
    load(toolset, "pdf")
    load(toolset, "pdf")
    assert told(events).count(("activated", "pdf")) == 1


def test_a_listing_is_told_with_its_names_and_its_cost(
    dialect: prowess.DialectName, put: Put, talk: Talk, events: Events
) -> None:
    put("pdf")
    put("csv")
    toolset = prowess.Toolset(talk(), dialect, index_in_description=False)
    toolset.prompt()
    (event,) = events
    assert (event.kind, event.detail["names"]) == ("listed", ("csv", "pdf"))
    assert event.detail["tokens"] == toolset.report().tokens > 0


def test_an_index_in_a_description_is_a_listing_too(put: Put, talk: Talk, events: Events) -> None:
    """A host offers tools and prompt once a turn, and hears which skills the model was told of."""
    put("pdf")
    toolset = prowess.Toolset(talk(), "skill__activate")
    toolset.prompt()
    toolset.tools()
    assert ("pdf",) in [event.detail["names"] for event in events if event.kind == "listed"]


def test_what_was_cut_is_told_after_the_listing(
    dialect: prowess.DialectName, put: Put, talk: Talk, events: Events
) -> None:
    for number in range(9):
        put(f"skill-{number}", description="Reads what it is given and says in a few words what it found there.")
    prowess.Toolset(talk(), dialect, budget=40, index_in_description=False).prompt()
    assert told(events) == [("listed", ""), ("cut", "")]
    cut = events[1].detail
    names = [name for key in ("shortened", "dropped", "omitted") for name in cut[key]]  # type: ignore[attr-defined]
    assert sorted(names) == [f"skill-{number}" for number in range(9)]


def test_a_skill_that_is_refused_is_told_once_by_its_name(
    dialect: prowess.DialectName, put: Put, talk: Talk, load: Load, events: Events
) -> None:
    put("pdf")
    load(prowess.Toolset(talk(), dialect), "nope")
    assert told(events) == [("refused", "nope")]


def test_a_skill_that_is_filtered_is_told_once_by_its_name(
    dialect: prowess.DialectName, put: Put, talk: Talk, load: Load, events: Events
) -> None:
    put("pdf")
    put("csv")
    load(prowess.Toolset(talk(filter="skills/csv"), dialect), "pdf")
    assert told(events) == [("refused", "pdf")]


def test_a_skill_that_is_not_allowed_is_told_once_by_its_name(
    dialect: prowess.DialectName, put: Put, talk: Talk, load: Load, events: Events
) -> None:
    put("pdf")
    put("csv")
    load(prowess.Toolset(talk(), dialect, allowed=["csv"]), "pdf")
    assert told(events) == [("refused", "pdf")]


def test_a_skill_that_cannot_be_read_is_told_once(
    dialect: prowess.DialectName, put: Put, talk: Talk, load: Load, events: Events
) -> None:
    folder = put("pdf")
    toolset = prowess.Toolset(talk(), dialect)
    (folder / "SKILL.md").unlink()
    load(toolset, "pdf")
    assert told(events) == [("refused", "pdf")]


@pytest.mark.parametrize(
    ("path", "code"), [("../x", "path-escape"), ("none.md", "not-found"), ("sub", "not-a-regular-file")]
)
def test_a_file_that_is_refused_is_told_once(
    *, path: str, code: str, reading: prowess.DialectName, put: Put, talk: Talk, read: Read, events: Events
) -> None:
    put("pdf", files={"sub/a.md": "a"})
    read(prowess.Toolset(talk(), reading), "pdf", path)
    assert told(events) == [("refused", "pdf")]
    assert events[0].detail["code"] == code


def test_arguments_that_are_refused_are_told(
    dialect: prowess.DialectName, put: Put, talk: Talk, events: Events
) -> None:
    put("pdf")
    toolset = prowess.Toolset(talk(), dialect)
    tool = toolset.tools()[0].name
    toolset.call(tool, "{")
    assert told(events) == [("refused", "")]
    assert (events[0].detail["tool"], events[0].detail["code"]) == (tool, "bad-arguments")


def test_a_filter_that_ends_skills_tells_each(put: Put, talk: Talk, events: Events) -> None:
    put("pdf")
    put("csv")
    session = talk()
    session.activate("pdf")
    session.activate("csv")
    events.clear()
    session.set_filter("none")
    assert told(events) == [("deactivated", "csv"), ("deactivated", "pdf")]


def test_another_catalogue_is_told_with_what_it_changed(put: Put, talk: Talk, tmp_path: Path, events: Events) -> None:
    put("pdf")
    session = talk()
    put("csv")
    session.refresh(prowess.scan(tmp_path / "skills"))
    (event,) = events
    assert (event.kind, event.detail["added"], event.detail["removed"]) == ("refreshed", ("csv",), ())


def test_a_selector_that_fails_is_told(put: Put, talk: Talk, events: Events) -> None:
    class Fails:
        def select(self, query: str, candidates: object) -> list[str]:
            raise RuntimeError(f"{query}: {candidates is not None}")

    put("pdf")
    prowess.Toolset(talk(selector=Fails())).prompt("down")
    assert [event.kind for event in events] == ["selector-failed", "listed"]
    assert "down" in str(events[0].detail["error"])


def test_an_event_has_the_names_of_the_conventions(put: Put, talk: Talk, events: Events) -> None:
    """For telemetry: the skill, where it is from, which file."""
    folder = put("pdf", files={"notes.md": "Note.\n"})
    toolset = prowess.Toolset(talk())
    toolset.call("load_skill", {"name": "pdf"})
    toolset.call("read_skill_file", {"name": "pdf", "path": "notes.md"})
    activated, read = (event.attributes() for event in events)
    assert activated == {"gen_ai.skill.name": "pdf", "gen_ai.skill.source.uri": str(folder / "SKILL.md")}
    assert read == {"gen_ai.skill.name": "pdf", "gen_ai.skill.resource.name": "notes.md"}


def test_events_hold_plain_data(put: Put, talk: Talk, events: Events) -> None:
    """So that they can be written anywhere."""
    put("pdf", fields="allowed-tools: Read\n", files={"notes.md": "Note.\n"})
    toolset = prowess.Toolset(talk(), budget=1)
    toolset.prompt()
    toolset.call("load_skill", {"name": "pdf"})
    toolset.call("read_skill_file", {"name": "pdf", "path": "notes.md"})
    toolset.call("load_skill", {"name": "nope"})
    toolset.call("unload_skill", {"name": "pdf"})
    assert len(events) >= 6
    for event in events:
        json.dumps({"kind": event.kind, "skill": event.skill, **event.detail})


def test_events_are_logged_when_the_caller_asks(put: Put, talk: Talk, caplog: pytest.LogCaptureFixture) -> None:
    put("pdf")
    with caplog.at_level(logging.INFO):
        quiet = prowess.Toolset(talk(on_event=None))
        quiet.call("load_skill", {"name": "pdf"})
        assert caplog.records == []
        toolset = prowess.Toolset(talk(on_event=prowess.log_events("skills.audit")))
        toolset.call("load_skill", {"name": "pdf"})
        toolset.call("load_skill", {"name": "nope"})
    assert [(record.name, record.levelname) for record in caplog.records] == [
        ("skills.audit", "INFO"),
        ("skills.audit", "WARNING"),
    ]

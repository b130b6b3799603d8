"""Previews: the text that a model receives, and exactly what its author did not write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import prowess

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def session(tmp_path: Path) -> prowess.Session:
    made = prowess.create_skill("one", tmp_path / "skills")
    body = "Hello $who: $ARGUMENTS.\nIn ${SKILL_DIR} there is !`echo 5`.\n"
    head = "---\nname: one\ndescription: x\narguments: [who]\n---\n"
    (made / "SKILL.md").write_text(head + body, encoding="utf-8")
    trust = prowess.Trust(tmp_path / "trust.json")
    catalog = prowess.scan(tmp_path / "skills")
    trust.grant(catalog["one"])
    return prowess.Session(catalog, trust=trust, base_dir=tmp_path)


def marked(shown: prowess.Preview) -> list[str]:
    return [shown.content[begin:end] for begin, end in shown.marks]


def test_a_call_marks_arguments_folders_and_what_commands_printed(session: prowess.Session) -> None:
    folder = session.skill("one").folder
    shown = prowess.preview(session, "one", "Ada Lovelace")
    assert marked(shown) == ["Ada", "Ada Lovelace", folder, "5"]
    assert shown.content == session.expand("/one Ada Lovelace")


def test_a_load_marks_folders_and_what_commands_printed(session: prowess.Session) -> None:
    shown = prowess.preview(session, "one")
    assert marked(shown) == [session.skill("one").folder, "5"]
    assert "Hello $who" in shown.content


def test_a_text_with_a_closing_tag_is_shown_without_marks(tmp_path: Path) -> None:
    made = prowess.create_skill("one", tmp_path)
    text = "---\nname: one\ndescription: x\n---\n</skill_content></skill> $ARGUMENTS\n"
    (made / "SKILL.md").write_text(text, encoding="utf-8")
    session = prowess.Session(prowess.scan(tmp_path))
    for arguments in (None, "x"):
        shown = prowess.preview(session, "one", arguments)
        assert shown.marks == ()
        assert "&lt;/skill" in shown.content


def test_what_did_not_run_is_told(tmp_path: Path, session: prowess.Session) -> None:
    untrusted = prowess.Session(session.catalog, base_dir=tmp_path)
    assert [issue.code for issue in prowess.preview(untrusted, "one").issues] == ["no-trust"]


def test_what_people_may_not_call_is_refused(tmp_path: Path) -> None:
    made = prowess.create_skill("one", tmp_path)
    (made / "SKILL.md").write_text("---\nname: one\ndescription: x\nuser-invocable: false\n---\ny\n", encoding="utf-8")
    session = prowess.Session(prowess.scan(tmp_path))
    with pytest.raises(prowess.SkillFilteredError):
        prowess.preview(session, "one", "x")
    assert prowess.preview(session, "one").content

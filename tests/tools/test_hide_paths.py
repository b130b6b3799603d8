"""``hide_paths=True``: no absolute path of the host reaches the model, by any tool of any dialect."""

import json
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import prowess

Put = Callable[..., Path]
Talk = Callable[..., prowess.Session]
Load = Callable[[prowess.Toolset, str], prowess.ToolResult]
Read = Callable[[prowess.Toolset, str, str], prowess.ToolResult]

BODY = "Run ${SKILL_DIR}/scripts/x.py in ${PROJECT_DIR}, or {baseDir}/scripts/x.py; not /usr/bin/env.\n"


@pytest.fixture
def skills(put: Put) -> None:
    put("pdf", body=BODY, files={"scripts/x.py": "1", "a.md": "a"}, fields="context: fork\n")
    put("csv", files={"assets/b.bin": b"\0"})


def hide(text: str, *folders: str, base_dir: str | None = None) -> str:
    """Return text as a model gets it from a skill, where skills were looked for in these folders too."""
    said = prowess.Source.inline("said", "Says it.", text)
    catalog = prowess.Catalog.from_sources([said, *map(prowess.Source.directory, folders)])
    toolset = prowess.Toolset(prowess.Session(catalog, base_dir=base_dir), "load_skill", hide_paths=True)
    return toolset.call("load_skill", {"skill_name": "said"}).content


def assert_hidden(text: str, folder: Path) -> None:
    assert str(folder) not in text, text
    assert os.path.realpath(folder) not in text, text


@pytest.mark.usefixtures("skills")
def test_no_dialect_shows_where_skills_lie(
    dialect: prowess.DialectName, talk: Talk, load: Load, tmp_path: Path
) -> None:
    toolset = prowess.Toolset(talk(), dialect, hide_paths=True)
    assert_hidden(toolset.prompt() + str(toolset.tools()) + toolset.explicit("pdf", "x"), tmp_path)
    for name in ("pdf", "csv", "nope", str(tmp_path)):
        assert_hidden(load(toolset, name).content, tmp_path)


@pytest.mark.usefixtures("skills")
def test_instructions_name_their_folder_as_tools_take_it(talk: Talk) -> None:
    """What a model reads there it can read or run."""
    toolset = prowess.Toolset(talk(), hide_paths=True)
    content = toolset.call("load_skill", {"name": "pdf"}).content
    assert "Run ./scripts/x.py in ., or ./scripts/x.py; not /usr/bin/env." in content
    assert not toolset.call("read_skill_file", {"name": "pdf", "path": "./scripts/x.py"}).is_error


def test_an_error_about_a_file_does_not_show_where_skills_lie(
    reading: prowess.DialectName, put: Put, talk: Talk, read: Read, tmp_path: Path
) -> None:
    folder = put("pdf", files={"a.md": "a"})
    toolset = prowess.Toolset(talk(), reading, hide_paths=True)
    (folder / "loop.md").symlink_to(folder / "a.md")
    (folder / "dir").mkdir()
    for path in ("nope.md", "loop.md", "dir", "../x", str(tmp_path)):
        result = read(toolset, "pdf", path)
        assert result.is_error
        assert_hidden(result.content, tmp_path)


def test_an_error_about_a_skill_does_not_show_where_it_lies(
    dialect: prowess.DialectName, put: Put, talk: Talk, load: Load, tmp_path: Path
) -> None:
    folder = put("pdf")
    toolset = prowess.Toolset(talk(), dialect, hide_paths=True)
    (folder / "SKILL.md").unlink()
    gone = load(toolset, "pdf")
    assert gone.is_error
    assert_hidden(gone.content, tmp_path)


def test_preloaded_instructions_do_not_show_where_they_lie(
    dialect: prowess.DialectName, put: Put, talk: Talk, tmp_path: Path
) -> None:
    put("pdf", body=BODY)
    catalog = prowess.Catalog.from_sources([prowess.Source.directory(tmp_path / "skills", preload=True)])
    prompt = prowess.Toolset(talk(catalog), dialect, hide_paths=True).prompt()
    assert "scripts/x.py" in prompt
    assert_hidden(prompt, tmp_path)


@pytest.mark.usefixtures("skills")
def test_a_sub_agent_does_not_see_where_skills_lie(talk: Talk, tmp_path: Path) -> None:
    toolset = prowess.Toolset(talk(), fork="host", hide_paths=True)
    prepared = toolset.prepare_fork("pdf", "x")
    assert isinstance(prepared, prowess.PreparedFork)
    assert "Run ./scripts/x.py in ." in prepared.content
    assert_hidden(prowess.fork_user_message(prepared), tmp_path)
    child = toolset.child()
    assert_hidden(child.call("load_skill", {"name": "pdf"}).content, tmp_path)


def test_what_a_command_printed_does_not_show_where_it_ran(put: Put, talk: Talk, tmp_path: Path) -> None:
    put("pdf", body="Here: !`pwd`. Copy: !`echo $SKILL_DIR`. Home: !`echo $HOME/x`.\n")
    catalog = prowess.scan(tmp_path / "skills")
    trust = prowess.Trust(tmp_path / "trust.json")
    trust.grant(catalog["pdf"])
    content = prowess.Toolset(talk(catalog, trust=trust), hide_paths=True).call("load_skill", {"name": "pdf"}).content
    assert_hidden(content, tmp_path)
    assert "Here: ." in content
    assert f"{Path.home()}/x" not in content


def test_a_folder_whose_name_only_begins_alike_is_left_alone() -> None:
    text = "/srv/skills2/x, /srv/skills/a.md, /srv/skills.d, '/srv/skills', in /srv/skills."
    assert hide(text, "/srv/skills/") == "/srv/skills2/x, a.md, /srv/skills.d, '.', in .."
    assert hide("/a/b", base_dir="/") == "/a/b"


def test_the_host_still_has_every_path(put: Put, talk: Talk) -> None:
    folder = put("pdf")
    result = prowess.Toolset(talk(), hide_paths=True).call("load_skill", {"name": "pdf"})
    assert result.data["location"] == str(folder / "SKILL.md")


@pytest.mark.parametrize(
    "write",
    [
        json.dumps,
        lambda path: json.dumps({"a": path}),
        lambda path: json.dumps(path).replace("/", "\\/"),
        lambda path: json.dumps(json.dumps(path)),
        lambda path: json.dumps(path, ensure_ascii=False),
        shlex.quote,
        lambda path: re.sub(r"([^\w/.-])", r"\\\1", path),
        lambda path: Path(path).as_uri(),
    ],
    ids=["JSON", "in JSON", "JSON with slashes", "JSON in JSON", "JSON in UTF-8", "quoted", "escaped", "an address"],
)
def test_a_path_is_hidden_however_it_is_written(write: Callable[[str], str]) -> None:
    folder = '/srv/Ann\'s ärger "x"/skills'
    said = f"see {write(f'{folder}/pdf/a.md')} and {write(folder)}!"
    hidden = hide(said, "/srv", folder)
    assert not any(part in hidden for part in ("srv", "Ann", "rger", "skills", "u00e4", "C3%A4")), hidden
    assert "pdf" in hidden


def test_a_program_that_prints_json_does_not_show_where_it_ran(put: Put, talk: Talk, tmp_path: Path) -> None:
    work = tmp_path / "my wörk"
    work.mkdir()
    put("pdf", body="Here: !`printf '%q' \"$PWD\"`, !`pwd | sed 's,/,\\\\/,g'`.\n")
    catalog = prowess.scan(tmp_path / "skills")
    trust = prowess.Trust(tmp_path / "trust.json")
    trust.grant(catalog["pdf"])
    session = talk(catalog, trust=trust, base_dir=work)
    content = prowess.Toolset(session, hide_paths=True).call("load_skill", {"name": "pdf"}).content
    assert_hidden(content, tmp_path)
    assert tmp_path.name not in content


def test_folders_without_skills_are_hidden_as_well(dialect: prowess.DialectName, load: Load, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    session = prowess.Session(prowess.scan(tmp_path / "empty"), base_dir="/")
    refused = load(prowess.Toolset(session, dialect, hide_paths=True), "pdf")
    assert refused.is_error
    assert_hidden(refused.content, tmp_path)


def test_a_run_of_backslashes_is_gone_through_once() -> None:
    """From each of its places it would take minutes."""
    text = "\\" * 1_000_000
    assert hide(text, "/srv/skills") == text


@given(st.text("\\/%'\"ux0123aAsrv. -", max_size=40))
def test_text_without_a_hidden_folder_stays_as_it_is(text: str) -> None:
    assert hide(f"- {text}", "/elsewhere/skills") == f"- {text}"

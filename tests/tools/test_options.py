"""The options of a toolset: which skills, how many bytes, hints at files, where the index stands."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import prowess

Put = Callable[..., Path]
Talk = Callable[..., prowess.Session]
Load = Callable[[prowess.Toolset, str], prowess.ToolResult]
Read = Callable[[prowess.Toolset, str, str], prowess.ToolResult]


def listing(toolset: prowess.Toolset) -> str:
    """Everything that a model is told before it calls anything."""
    return toolset.prompt() + str([tool.to_json_schema() for tool in toolset.tools()])


def test_only_allowed_skills_are_listed_and_loaded(
    dialect: prowess.DialectName, put: Put, talk: Talk, load: Load
) -> None:
    put("pdf", body="Fill it.\n")
    put("csv", body="Profile it.\n")
    session = talk()
    toolset = prowess.Toolset(session, dialect, allowed=["pdf"])
    assert "pdf" in listing(toolset)
    assert "csv" not in listing(toolset)
    assert "Fill it." in load(toolset, "pdf").content
    refused = load(toolset, "csv")
    assert refused.is_error
    assert "Profile it." not in refused.content
    assert session.active_skills == ("pdf",)


def test_files_of_other_skills_are_not_read(reading: prowess.DialectName, put: Put, talk: Talk, read: Read) -> None:
    put("pdf", files={"a.md": "Open.\n"})
    put("csv", files={"a.md": "Closed.\n"})
    toolset = prowess.Toolset(talk(), reading, allowed=["pdf"])
    assert "Open." in read(toolset, "pdf", "a.md").content
    refused = read(toolset, "csv", "a.md")
    assert refused.is_error
    assert "Closed." not in refused.content


def test_instructions_of_other_skills_are_not_in_the_prompt(
    dialect: prowess.DialectName, put: Put, talk: Talk, tmp_path: Path
) -> None:
    """Preloaded ones are skills too: the list is of those that the model may have."""
    put("pdf", body="Fill it.\n")
    put("csv", body="Profile it.\n")
    catalog = prowess.Catalog.from_sources([prowess.Source.directory(tmp_path / "skills", preload=True)])
    prompt = prowess.Toolset(talk(catalog), dialect, allowed=["pdf"]).prompt()
    assert "Fill it." in prompt
    assert "Profile it." not in prompt


def test_a_list_given_once_serves_every_call(put: Put, talk: Talk) -> None:
    put("pdf")
    toolset = prowess.Toolset(talk(), allowed=(name for name in ["pdf"]))
    assert len(toolset.tools()) == len(toolset.tools()) > 0
    assert not toolset.call("load_skill", {"name": "pdf"}).is_error


def test_no_more_bytes_are_read_than_allowed(reading: prowess.DialectName, put: Put, talk: Talk, read: Read) -> None:
    """One more than the bound is refused, or comes in parts where there are ranges."""
    put("pdf", files={"five.md": "a\nb\u00fc", "six.md": "a\nb\u00fcc"})
    toolset = prowess.Toolset(talk(), reading, max_bytes=5)
    assert "b\u00fc" in read(toolset, "pdf", "five.md").content
    result = read(toolset, "pdf", "six.md")
    assert "b\u00fcc" not in result.content
    assert result.is_error or "go on" in result.content


def test_nothing_is_read_when_no_bytes_are_allowed(
    reading: prowess.DialectName, put: Put, talk: Talk, read: Read
) -> None:
    """Nought is a bound, not the lack of one."""
    put("pdf", files={"a.md": "Open.\n"})
    result = read(prowess.Toolset(talk(), reading, max_bytes=0), "pdf", "a.md")
    assert result.is_error
    assert "Open." not in result.content


def test_a_refused_size_states_what_is_allowed_and_what_there_is(put: Put, talk: Talk, read: Read) -> None:
    put("pdf", files={"a.md": "x" * 1234})
    for dialect in ("skill__activate", "read_skill"):
        result = read(prowess.Toolset(talk(), dialect, max_bytes=99), "pdf", "a.md")
        assert result.is_error
        assert "1234" in result.content.replace(",", "")
        assert "99" in result.content


@pytest.mark.parametrize("dialect", ["skill_load", "prowess"])
def test_files_are_hinted_at_unless_that_is_switched_off(
    dialect: prowess.DialectName, put: Put, talk: Talk, load: Load
) -> None:
    put("pdf", body="Fill it.\n", files={"references/guide.md": "Guide.\n"})
    hinted = load(prowess.Toolset(talk(), dialect), "pdf").content
    plain = load(prowess.Toolset(talk(), dialect, hint_resources=False), "pdf").content
    assert "Fill it." in plain
    assert "guide.md" in hinted or "1 reference" in hinted
    assert "guide.md" not in plain
    assert "reference(s)" not in plain


def test_the_index_stands_in_one_place(put: Put, talk: Talk) -> None:
    """In the description of the tool, or in the prompt."""
    put("pdf")
    inside = prowess.Toolset(talk(), "skill__activate")
    beside = prowess.Toolset(talk(), "skill__activate", index_in_description=False)
    assert "- pdf: Does one thing." in inside.tools()[0].description
    assert inside.prompt() == ""
    assert "pdf" not in beside.tools()[0].description
    assert beside.prompt() == "Available skills:\n- pdf: Does one thing."


def test_a_toolset_sees_what_the_session_sees_now(
    dialect: prowess.DialectName, put: Put, talk: Talk, tmp_path: Path
) -> None:
    """A filter, another catalogue: no listing is kept."""
    put("pdf")
    session = talk()
    toolset = prowess.Toolset(session, dialect)
    assert "csv" not in listing(toolset)
    put("csv")
    session.refresh(prowess.scan(tmp_path / "skills"))
    assert "csv" in listing(toolset)
    session.set_filter("**/csv")
    assert "pdf" not in listing(toolset)


# -- what a loaded skill looks like in our own dialect -----------------------------------------------------------------


def test_a_loaded_skill_says_where_it_lies_and_what_it_has(put: Put, talk: Talk) -> None:
    folder = put(
        "pdf", body="\nFill it.\r\nWell.\n\n", files={"references/guide.md": "", "scripts/fill.py": "", "x.md": ""}
    )
    result = prowess.Toolset(talk()).call("load_skill", {"name": "pdf"})
    first, *rest = result.content.splitlines()
    assert (first, rest[-1]) == ('<skill_content name="pdf">', "</skill_content>")
    assert rest[:2] == ["Fill it.", "Well."]
    assert f"Skill directory: {folder}" in rest
    assert any("relative" in line for line in rest)
    assert [line.strip() for line in rest if "<file>" in line] == [
        "<file>scripts/fill.py</file>",
        "<file>references/guide.md</file>",
        "<file>x.md</file>",
    ]
    assert (result.data["skill"], result.data["location"]) == ("pdf", str(folder / "SKILL.md"))


def test_the_list_of_files_is_capped(put: Put, talk: Talk) -> None:
    put("pdf", files={f"references/{number:03}.md": "" for number in range(300)})
    content = prowess.Toolset(talk()).call("load_skill", {"name": "pdf"}).content
    files = content.count("<file>")
    assert 0 < files < 300
    assert f"{300 - files} more" in content


def test_an_inline_skill_has_neither_folder_nor_files(talk: Talk) -> None:
    catalog = prowess.Catalog.from_sources([prowess.Source.inline("greet", "Greets.", "Say hello.")])
    content = prowess.Toolset(talk(catalog)).call("load_skill", {"name": "greet"}).content
    assert content == '<skill_content name="greet">\nSay hello.\n</skill_content>'


def test_the_folder_of_a_skill_is_put_into_its_instructions(put: Put, talk: Talk) -> None:
    """Under the names that clients have for it."""
    spellings = ("${SKILL_DIR}", "${CLAUDE_SKILL_DIR}", "{baseDir}")
    folder = put("pdf", body="".join(f"Run {spelling}/fill.py.\n" for spelling in spellings))
    content = prowess.Toolset(talk()).call("load_skill", {"name": "pdf"}).content
    assert content.count(f"Run {folder}/fill.py.") == 3


def test_loading_counts_as_activation(dialect: prowess.DialectName, put: Put, talk: Talk, load: Load) -> None:
    """With the tools that the skill brings, under the ceiling."""
    put("pdf", fields="allowed-tools: Read Write\n")
    session = talk(tools=["Read"])
    load(prowess.Toolset(session, dialect), "pdf")
    assert (session.active_skills, session.active_tools) == (("pdf",), ("Read",))


@pytest.mark.parametrize(("dialect", "tool"), [("prowess", "unload_skill"), ("skill__activate", "skill__deactivate")])
def test_a_skill_that_the_model_may_not_have_is_not_its_to_put_aside(
    put: Put, talk: Talk, dialect: prowess.DialectName, tool: str
) -> None:
    put("mine")
    put("theirs")
    session = talk()
    session.activate("theirs")
    assert prowess.Toolset(session, dialect, allowed=["mine"]).call(tool, {"name": "theirs"}).is_error
    assert session.active_skills == ("theirs",)


def test_a_hidden_skill_called_by_a_person_brings_its_instructions_along(put: Put, talk: Talk) -> None:
    put("quiet", fields="disable-model-invocation: true\n", body="Say nothing.\n")
    message = prowess.Toolset(talk()).explicit("quiet", "now")
    assert "Say nothing." in message
    assert "User's request: now" in message


# -- names that are not there ------------------------------------------------------------------------------------------


def test_a_list_that_names_no_skill_is_refused_when_the_toolset_is_made(
    dialect: prowess.DialectName, put: Put, talk: Talk
) -> None:
    put("pdf")
    with pytest.raises(prowess.UnknownSkillError, match="'pfd'; 'allowed' names it; available: pdf"):
        prowess.Toolset(talk(), dialect, allowed=["pdf", "pfd"])


def test_a_list_that_names_no_skill_may_be_ignored(
    dialect: prowess.DialectName, put: Put, talk: Talk, tmp_path: Path
) -> None:
    """The block has the skills that exist; a name counts as soon as a skill has it."""
    put("pdf")
    session = talk()
    toolset = prowess.Toolset(session, dialect, ["pfd"], missing="ignore")
    assert (toolset.missing, [issue.code for issue in toolset.issues]) == (("pfd",), ["unknown-skill"])
    assert (prowess.Toolset(talk(), dialect, [], missing="ignore").prompt(), "pdf" in listing(toolset)) == (
        toolset.prompt(),
        False,
    )
    assert (toolset.child().missing, toolset.child().allowed) == ((), ())
    put("pfd")
    session.refresh(prowess.scan(tmp_path / "skills"))
    assert "pfd" in listing(toolset)
    with pytest.raises(prowess.SourceError, match="missing must be"):
        prowess.Toolset(session, dialect, missing="drop")  # type: ignore[arg-type]  # on purpose


def test_a_name_that_is_gone_after_a_refresh_is_an_issue(
    dialect: prowess.DialectName, put: Put, talk: Talk, tmp_path: Path
) -> None:
    put("pdf")
    csv = put("csv")
    session = talk()
    toolset = prowess.Toolset(session, dialect, allowed=["pdf", "csv"])
    assert not toolset.issues
    shutil.rmtree(csv)
    session.refresh(prowess.scan(tmp_path / "skills"))
    assert [(issue.code, issue.field, issue.severity) for issue in toolset.issues] == [
        ("unknown-skill", "allowed", "warning")
    ]
    assert "csv" in toolset.issues[0].message
    assert "pdf" in listing(toolset)
    assert "csv" not in listing(toolset)
    assert not toolset.child().issues


def test_a_name_whose_source_failed_is_an_issue(put: Put, talk: Talk, tmp_path: Path) -> None:
    """Whoever runs a host is not kept from starting it by a site that is away."""
    put("pdf")
    (tmp_path / "file").touch()
    for source in (prowess.Source.url("https://127.0.0.1:1/"), prowess.Source.directory(tmp_path / "file")):
        catalog = prowess.Catalog.from_sources([prowess.Source.directory(tmp_path / "skills"), source])
        toolset = prowess.Toolset(talk(catalog), allowed=["pdf", "remote"])
        assert ["remote" in issue.message for issue in toolset.issues] == [True]


def test_a_name_whose_file_does_not_load_is_an_issue(put: Put, talk: Talk) -> None:
    put("pdf")
    broken = put("csv")
    (broken / "SKILL.md").write_text("---\nname: [\n---\n", encoding="utf-8")
    assert [issue.code for issue in prowess.Toolset(talk(), allowed=["pdf", "csv"]).issues] == ["unknown-skill"]
    with pytest.raises(prowess.UnknownSkillError):
        prowess.Toolset(talk(), allowed=["pdf", "cvs"])


@pytest.mark.parametrize(
    ("of_session", "of_scripts", "kept"),
    [
        ({"max_script_output_bytes": 10}, {}, 10),
        ({"max_script_output_bytes": 10}, {"max_script_output_bytes": 20}, 10),
        ({"max_script_output_bytes": 20}, {"max_script_output_bytes": 10}, 10),
        ({"max_body_bytes": 5_000}, {"max_script_output_bytes": 100_000}, 90_000),
    ],
    ids=["the session's", "the smaller one", "the scripts'", "a bound that the session leaves as it is"],
)
def test_the_limits_of_a_session_bound_the_scripts_that_its_tools_run(  # noqa: PLR0917 - fixtures
    put: Put, talk: Talk, tmp_path: Path, of_session: dict[str, int], of_scripts: dict[str, int], kept: int
) -> None:
    put("act", files={"scripts/a.py": "print('x' * 90_000, end='')\n"})
    trust = prowess.Trust(tmp_path / "trust.json")
    session = talk(trust=trust, limits=prowess.Limits(**of_session))
    trust.grant(session.skill("act"))
    scripts = prowess.Scripts(sandbox="none", limits=prowess.Limits(**of_scripts))
    result = prowess.Toolset(session, scripts=scripts).call(
        "run_skill_script", {"name": "act", "script": "scripts/a.py"}
    )
    assert len(result.data["stdout"]) == kept


# -- skills for explicit calls --------------------------------------------------------------------------------------


def test_our_own_tools_do_not_load_what_is_kept_for_explicit_calls(put: Put, talk: Talk) -> None:
    put("pdf", files={"references/a.md": "a"})
    put("deploy", fields="context: fork\n", body="Deploy it.\n", files={"references/a.md": "a"})
    session = talk(explicit_only=["deploy"])
    toolset = prowess.Toolset(session, fork="host")
    assert [skill.name for skill in session.moment().eligible()] == ["pdf"]
    calls = (
        ("load_skill", {"name": "deploy"}),
        ("read_skill_file", {"name": "deploy", "path": "references/a.md"}),
        ("run_skill", {"name": "deploy", "task": "now"}),
    )
    assert [toolset.call(tool, arguments).is_error for tool, arguments in calls] == [True] * 3
    assert "Deploy it." in toolset.explicit("deploy", "now")
    assert isinstance(toolset.prepare_fork("deploy", "now", by_person=True), prowess.PreparedFork)
    assert "deploy" not in toolset.child().prompt()


def test_sessions_over_one_catalogue_do_not_share_what_they_keep_for_explicit_calls(put: Put, talk: Talk) -> None:
    put("pdf")
    put("deploy")
    catalog = talk().catalog
    prompts = [prowess.Toolset(talk(catalog, explicit_only=names)).prompt() for names in ((), ("deploy",), ("pdf",))]
    assert [("deploy" in prompt, "pdf" in prompt) for prompt in prompts] == [(True, True), (False, True), (True, False)]


def test_a_name_to_be_kept_for_explicit_calls_that_no_skill_has_is_refused(put: Put, talk: Talk) -> None:
    put("deploy")
    with pytest.raises(prowess.UnknownSkillError, match="'explicit_only' names it"):
        talk(explicit_only=["deplyo"])
    with pytest.raises(prowess.SourceError, match="explicit_only"):
        talk(explicit_only="deploy")


def test_a_name_to_be_kept_for_explicit_calls_may_be_the_one_with_a_colon_in_the_file(put: Put, talk: Talk) -> None:
    file = put("ops-deploy") / "SKILL.md"
    file.write_text(file.read_text(encoding="utf-8").replace("name: ops-deploy", "name: ops:deploy"), encoding="utf-8")
    catalog = talk().catalog
    assert catalog.names == ("ops-deploy",)
    assert [skill.name for skill in talk(explicit_only=["ops:deploy"]).moment().eligible()] == []
    restored, _ = prowess.Session.restore(catalog, talk().save(), explicit_only=["ops:deploy"])
    assert [skill.name for skill in restored.moment().eligible()] == []


def test_what_was_kept_for_explicit_calls_stays_so_in_a_restored_session(put: Put, talk: Talk) -> None:
    put("pdf")
    put("deploy")
    saved = talk(explicit_only=["deploy"]).save()
    catalog = talk().catalog

    def shown(*more: str, widen: bool = False) -> list[str]:
        given = more if more or widen else None
        session, _ = prowess.Session.restore(catalog, saved, explicit_only=given, widen=widen)
        return [skill.name for skill in session.moment().eligible()]

    assert (shown(), shown("pdf"), shown(widen=True)) == (["pdf"], [], ["deploy", "pdf"])
    without, _ = prowess.Session.restore(prowess.Catalog([catalog["pdf"]]), saved)
    assert [skill.name for skill in without.moment().eligible()] == ["pdf"], "the skill may be gone since"

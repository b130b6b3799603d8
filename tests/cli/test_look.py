"""Looking at skills: what is listed and why, what one holds, what a model would receive, what works here."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess
from tests.cli.samples import granted, installed
from tests.cli_processes import run_command

if TYPE_CHECKING:
    from tests.cli.conftest import Command, Terminal

BROKEN = Path(__file__).resolve().parents[2] / "examples" / "broken"


def put(folder: Path, name: str, extra: str = "", body: str = "Do it.\n") -> Path:
    """A skill in a folder."""
    where = folder / name
    where.mkdir(parents=True)
    text = f"---\nname: {name}\ndescription: Does {name}.\n{extra}---\n{body}"
    (where / "SKILL.md").write_text(text, encoding="utf-8")
    return where


def marks(command: Command, *words: str) -> dict[str, list[str]]:
    """What is special about each skill."""
    return {skill["name"]: skill["marks"] for skill in command("list", *words, "--json").data["skills"]}


# -- names and paths ---------------------------------------------------------------------------------------------------

TAKES_A_NAME = ("show", "read", "preview", "trust grant --yes", "run-script {} scripts/x.py")


@pytest.mark.parametrize("words", TAKES_A_NAME)
def test_a_folder_named_without_its_dot_is_taken_where_no_skill_has_that_name(
    command: Command, project: Path, words: str
) -> None:
    put(project, "notes")
    line = words if "{}" in words else words + " {}"
    assert "unknown skill" not in command(*line.format("notes").split()).err
    ran = command(*line.format("nowhere").split())
    assert (ran.status, "unknown skill 'nowhere'; available: csv-report" in ran.err) == (3, True)


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_where_there_are_no_skills_the_hint_is_not_to_choose_one_of_them(
    command: Command, project: Path, form: tuple[str, ...]
) -> None:
    shutil.rmtree(project / ".agents")
    ran = command("show", "notes", *form)
    assert (ran.status, "no skills are available" in ran.err) == (3, True)
    assert "'prowess list' shows where Prowess looked" in ran.err
    assert "use one of the names" not in ran.err


# -- list --------------------------------------------------------------------------------------------------------------


def test_skills_are_listed_by_scope_and_place_in_the_order_in_which_they_win(command: Command, project: Path) -> None:
    put(project.parent / ".claude" / "skills", "of-the-user")
    out = command("list").out
    assert out.index("project: .agents/skills  (6 skills)") < out.index("user: ~/.claude/skills  (1 skill)")
    assert out.index("csv-report") < out.index("of-the-user")


def test_hidden_repaired_and_shadowed_skills_are_marked(command: Command, project: Path) -> None:
    here = project / ".agents" / "skills"
    put(here, "hidden", "disable-model-invocation: true\n")
    put(here, "quiet", "user-invocable: false\n")
    shutil.copytree(BROKEN / "unquoted-colon", here / "unquoted-colon")
    put(project.parent / ".claude" / "skills", "csv-report")
    found = marks(command)
    assert found["hidden"] == ["hidden"]
    assert found["quiet"] == ["models only"]
    assert found["unquoted-colon"] == ["repaired"]
    assert found["csv-report"] == []
    out = command("list").out
    assert "[shadowed] by .agents/skills/csv-report/SKILL.md: a project's skill wins over the user's" in out
    assert "[hidden] Does hidden." in out


def test_trusted_skills_are_marked_until_they_change(command: Command, project: Path) -> None:
    granted()
    assert marks(command)["folder-report"] == ["trusted"]
    (project / ".agents/skills/folder-report/notes.md").write_text("more", encoding="utf-8")
    assert marks(command)["folder-report"] == ["changed since trusted"]


def test_a_damaged_file_of_grants_does_not_keep_skills_from_being_listed(command: Command, project: Path) -> None:
    granted()
    (project.parent / ".config/prowess/trust.json").write_text("{", encoding="utf-8")
    assert marks(command)["folder-report"] == []


def test_installed_skills_are_marked_as_verified_until_they_change(command: Command, project: Path) -> None:
    installed()
    assert marks(command)["notes"] == ["verified"]
    (project / ".prowess/skills/local/notes/SKILL.md").write_text(
        "---\nname: notes\ndescription: x\n---\ny\n", encoding="utf-8"
    )
    assert marks(command)["notes"] == ["changed since installed"]
    (project / "prowess.lock").write_text("version = 1\n", encoding="utf-8")
    assert "notes" not in marks(command), "no lock file records it, so no model is offered it"
    (project / "prowess.lock").write_text("nonsense", encoding="utf-8")
    assert marks(command)["notes"] == []


def test_files_that_do_not_load_are_told(command: Command) -> None:
    ran = command("list", str(BROKEN))
    assert ran.status == 0
    assert "4 files could not be loaded:" in ran.out
    assert "'prowess check PATH' says what to do about each of them." in ran.out
    assert "yaml-anchor" in ran.out
    codes = {issue["code"] for issue in command("list", str(BROKEN), "--json").data["failures"]}
    assert {"yaml-anchor", "unterminated-frontmatter", "no-frontmatter"} <= codes


def test_where_nothing_is_found_every_place_is_told(command: Command, project: Path) -> None:
    shutil.rmtree(project / ".agents")
    ran = command("list")
    assert ran.status == 0
    assert ran.out.startswith("No skills found. Looked in:\n")
    assert "~/.config/prowess/skills" in ran.out
    assert "prowess new NAME" in ran.out


def test_folders_agents_and_the_project_can_be_chosen(command: Command, project: Path) -> None:
    put(project / "mine", "one")
    put(project / ".windsurf" / "skills", "two")
    assert list(marks(command, "mine")) == ["one"]
    assert list(marks(command, "--dir", "mine")) == ["one"]
    assert "two" not in marks(command)
    assert "two" in marks(command, "--agent", "windsurf")
    assert marks(command, "--no-project") == {}
    ran = command("list", "--agent", "nobody")
    assert (ran.status, "error[unknown-agent]" in ran.err) == (3, True)
    assert command("list", "no-such-folder").status == 3


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("claude", "claude-code"),
        ("Claude Code", "claude-code"),
        ("copilot", "github-copilot"),
        ("kimi", "kimi-code-cli"),
        ("windsruf", "windsurf"),
    ],
)
def test_an_unknown_agent_is_answered_with_those_that_may_be_meant(command: Command, written: str, meant: str) -> None:
    ran = command("list", "--agent", written)
    assert f"unknown agent {written!r}; did you mean {meant}" in ran.err
    assert "prowess list --help" in ran.err


def test_the_help_of_list_names_every_agent(command: Command) -> None:
    said = command("list", "--help").out.replace(",", "").split()
    assert set(prowess.AGENTS) <= set(said)


# -- show and read -----------------------------------------------------------------------------------------------------


def test_a_skill_is_shown_with_its_files_and_what_would_run(command: Command) -> None:
    out = command("show", "folder-report").out
    assert "command    ls | wc -l | tr -d ' '" in out
    assert "script     scripts/sizes.py" in out
    assert "sub-agent  context: fork, model: small" in out
    assert "and does not: not trusted (prowess trust grant folder-report)" in out
    granted()
    assert "and may: this state of it is trusted" in command("show", "folder-report").out


def test_sizes_tokens_and_the_digest_are_those_of_the_files(command: Command, project: Path) -> None:
    data = command("show", "csv-report", "--json").data
    skill = prowess.scan(project / ".agents" / "skills")["csv-report"]
    assert data["digest"] == skill.digest()
    assert [file["path"] for file in data["files"]] == list(skill.files())
    sizes = {file["path"]: file["size"] for file in data["files"]}
    assert sizes["assets/sample.csv"] == len(skill.read_bytes("assets/sample.csv"))
    assert data["instructions_tokens"] == prowess.estimate_tokens(skill.read_body().strip())


def test_a_path_names_the_skill_in_a_folder(command: Command, project: Path) -> None:
    put(project / "mine", "one")
    for path in ("./mine/one", "mine/one/SKILL.md", "mine/one/"):
        assert command("show", path, "--json").data["name"] == "one"


def test_what_had_to_be_mended_is_shown(command: Command) -> None:
    out = command("show", str(BROKEN / "unquoted-colon")).out
    assert "Worth knowing" in out
    assert "repaired-colon" in out


def test_instructions_and_files_are_read_as_they_are(command: Command) -> None:
    catalog = prowess.scan(".agents/skills")
    assert command("read", "csv-report").out == catalog.load_body("csv-report")
    assert command("read", "csv-report", "references/columns.md").out == catalog.read_resource(
        "csv-report", "references/columns.md"
    )
    data = command("read", "csv-report", "assets/sample.csv", "--json").data
    assert data["content"] == catalog.read_resource("csv-report", "assets/sample.csv")


def test_raw_bytes_reach_a_pipe_and_never_a_terminal(command: Command, terminal: Terminal, project: Path) -> None:
    odd = b"\x1b[2J\x00\xff"
    with (project / ".agents/skills/csv-report/SKILL.md").open("ab") as file:
        file.write(odd)
    assert command("read", "csv-report", "--raw").status == 0
    assert command("read", "csv-report").status == 3
    (project / ".agents/skills/csv-report/assets/odd.bin").write_bytes(odd)
    ran = command("read", "csv-report", "assets/odd.bin", "--raw")
    assert ran.status == 0
    refused = terminal("read", "csv-report", "assets/odd.bin", "--raw")
    assert (refused.status, refused.out) == (3, "")
    assert "error[bad-argument]" in refused.err
    assert command("read", "csv-report", "assets/odd.bin").status == 3


@pytest.mark.parametrize("path", ["../../../outside", "/etc/passwd", "a\\b"])
def test_nothing_outside_of_a_skill_is_read(command: Command, path: str) -> None:
    ran = command("read", "csv-report", path)
    assert (ran.status, ran.out) == (3, "")
    assert "error[path-escape]" in ran.err


# -- search and explain ------------------------------------------------------------------------------------------------


def test_a_search_gives_the_best_first_and_status_1_for_nothing(command: Command) -> None:
    assert command("search", "csv", "quality", "--json").data["hits"][0]["name"] == "csv-report"
    assert len(command("search", "a", "report", "--limit", "1", "--json").data["hits"]) == 1
    ran = command("search", "zebra")
    assert (ran.status, ran.out) == (1, "")
    assert "Nothing among 6 skills fits." in ran.err


def test_a_search_without_skills_says_where_it_looked_and_how_to_name_a_folder(command: Command, project: Path) -> None:
    shutil.rmtree(project / ".agents")
    (project / "mine").mkdir()
    ran = command("search", "csv", "mine")
    assert (ran.status, ran.out) == (1, "")
    assert "No skills found. Looked in: " in ran.err
    assert "To search in a folder, name it: --dir mine\n" in ran.err
    assert "--prepare" not in command("search", "--prepare").err


def test_a_search_says_why_each_skill_fits(command: Command) -> None:
    ran = command("search", "profile", "this", "csv", "--why")
    assert re.match(r"csv-report  Profiles a CSV .+\n    words: profile, csv\n", ran.out)
    assert "words:" not in command("search", "profile", "this", "csv").out
    data = command("search", "profile", "this", "csv", "--json").data
    assert (data["mode"], data["skills"], data["hits"][0]["why"]) == ("words", 6, "words: profile, csv")


def test_instructions_are_searched_too(command: Command, project: Path) -> None:
    put(project / ".agents" / "skills", "plain", body="Only here: a quagga.\n")
    assert [hit["name"] for hit in command("search", "quagga", "--json").data["hits"]] == ["plain"]


def test_a_request_without_quotes_is_answered_with_the_quotes(command: Command) -> None:
    ran = command("prompt", "--query", "fill", "a", "form")
    assert ran.status == 3
    assert (
        "unknown skill 'a'; if it belongs to the request, put the request in quotes: --query 'fill a form'" in ran.err
    )
    assert "quotes" not in command("prompt", "nowhere").err


def test_without_the_extra_a_search_tells_of_meaning_only_where_it_may_help(command: Command) -> None:
    advice = "searched by words alone; to search by meaning too, install Prowess with the extra 'semantic'"
    assert (Path(__file__).parents[2] / "packages" / "prowess-retriever" / "pyproject.toml").exists()
    assert command("search", "csv").err == ""
    assert command("search", "csv", "--why", "--words").err == ""
    for words in (("zebra",), ("csv", "--why"), ("--prepare",)):
        said = command("search", *words).err
        assert advice in said, words
        assert "(in a checkout: pip install ./packages/prowess-retriever '.[semantic]')" in said
        assert command("search", *words, "--json").err == ""


def test_preparing_needs_no_query_and_a_search_needs_one_of_both(command: Command, project: Path) -> None:
    ran = command("search", "--prepare")
    assert (ran.status, ran.out) == (0, "Prepared: searches among 6 skills go by words.\n")
    data = command("search", "--prepare", "--json").data
    assert (data["mode"], data["skills"], data["hits"]) == ("words", 6, [])
    assert command("search", "--prepare", "csv", "--json").data["hits"][0]["name"] == "csv-report"
    ran = command("search")
    assert (ran.status, "Missing argument 'QUERY...'" in ran.err) == (2, True)
    shutil.rmtree(project / ".agents")
    assert command("search", "--prepare").out == "Prepared: searches among 0 skills go by words.\n"


def test_with_the_extra_a_search_goes_by_meaning_once_it_is_prepared(command_with_encoder: Command) -> None:
    command = command_with_encoder
    ran = command("search", "csv", "--json")
    assert (ran.data["mode"], ran.err) == ("words", "")
    assert "Not all skills are prepared, so words alone counted; with --prepare" in command("search", "csv").err
    ran = command("search", "--prepare")
    assert (ran.out, ran.err) == ("Prepared: searches among 6 skills go by words and meaning.\n", "")
    ran = command("search", "profile", "a", "csv", "--why")
    assert ("words: profile, csv; meaning\n" in ran.out, ran.err) == (True, "")
    assert command("search", "csv", "--json").data["mode"] == "words+meaning"
    assert command("search", "csv", "--words", "--json").data["mode"] == "words"
    assert command("search", "csv", "--words").err == ""


def test_an_explanation_names_the_winner_the_losers_and_every_place(command: Command, project: Path) -> None:
    put(project.parent / ".claude" / "skills", "csv-report")
    out = command("explain", "csv-report").out
    assert out.startswith("csv-report  (.agents/skills/csv-report/SKILL.md)\n")
    assert "Copies that lost" in out
    assert "~/.claude/skills/csv-report/SKILL.md  a project's skill wins over the user's" in out
    assert "~/.agents/skills" in out
    missing = command("explain", "nope")
    assert missing.status == 1
    assert "not found" in missing.out


def test_an_explanation_says_why_models_do_not_see_a_skill(command: Command, project: Path) -> None:
    put(project / ".agents" / "skills", "hidden", "disable-model-invocation: true\n")
    assert "models do not see it: disable-model-invocation is set" in command("explain", "hidden").out
    assert command("explain", "hidden", "--json").data["visible"] is False


def test_an_explanation_says_whether_the_listing_for_a_request_has_the_skill(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = ("--query", "profile a csv")
    assert "in the listing: everything fits" in command("explain", "csv-report", *query).out
    assert "in the listing" not in command("explain", "csv-report").out
    monkeypatch.setenv("PROWESS_BUDGET", "300")
    assert "in the listing: chosen for the first request (rank 1" in command("explain", "csv-report", *query).out
    ran = command("explain", "translate-strings", *query, "--json")
    assert ran.data["reasons"][-1] == "not in the listing: not among the best for the request"
    assert (ran.status, command("explain", "nope", *query).status) == (0, 1)


# -- doctor ------------------------------------------------------------------------------------------------------------


def test_the_doctor_lists_extras_whether_or_not_they_are_there(command: Command) -> None:
    found = {
        one["message"].partition(":")[0]
        for one in command("doctor", "--json").data["diagnoses"]
        if one["topic"] == "extra"
    }
    assert found == {"agent", "mcp", "otel", "sandbox", "semantic", "store", "watch", "web"}


def test_an_explanation_where_there_are_no_skills_says_how_to_name_a_folder(command: Command, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    ran = command("explain", "csv-report", "--dir", str(tmp_path / "none"))
    assert (ran.status, "say --dir FOLDER" in ran.err) == (1, True)
    assert "--dir" not in command("explain", "nothing-like-it").err


# -- prompt ------------------------------------------------------------------------------------------------------------


def test_the_prompt_is_exactly_what_a_toolset_gives(command: Command) -> None:
    session = prowess.Session(prowess.discover())
    for dialect in prowess.DIALECTS:
        ran = command("prompt", "--dialect", dialect)
        forks = dialect in {"prowess", "read_skill"}
        expected = prowess.Toolset(session, dialect, fork="host" if forks else None).prompt()
        assert ran.out == expected + "\n" or not expected
        assert command("call", "--dialect", dialect).status == 0
    data = command("prompt", "--json").data
    toolset = prowess.Toolset(session, fork="host")
    assert data["prompt"] == toolset.prompt()
    assert [tool["name"] for tool in data["tools"]] == [tool.name for tool in toolset.tools()]


def test_a_prompt_without_a_skill_says_that_there_is_none(command: Command, tmp_path: Path) -> None:
    ran = command("prompt", "--dir", str(tmp_path))
    assert "There are no skills to offer here" in ran.out + ran.err
    assert "nothing cut" not in ran.out + ran.err


@pytest.mark.parametrize("dialect", ["prowess", "read_skill"])
def test_a_prompt_with_a_fork_says_what_a_toolset_without_a_runner_leaves_out(command: Command, dialect: str) -> None:
    note = "without fork= a model gets neither"
    forked = command("prompt", "folder-report", "--dialect", dialect)
    assert note in forked.err
    assert "run_skill" in forked.out
    catalog = prowess.Catalog([prowess.discover()["folder-report"]])
    plain = prowess.Toolset(prowess.Session(catalog), dialect)  # type: ignore[arg-type]  # a name of DIALECTS
    assert "forked" not in plain.prompt()
    assert "run_skill" not in [tool.name for tool in plain.tools()]
    assert note not in command("prompt", "csv-report", "--dialect", dialect).err
    assert note not in command("prompt", "folder-report", "--style", "xml").err


@pytest.mark.parametrize("style", ["xml", "markdown", "text", "json"])
def test_a_style_gives_a_bare_listing(command: Command, style: str) -> None:
    ran = command("prompt", "--style", style)
    assert ran.out == prowess.render_catalog(prowess.discover(), style=style) + "\n"  # type: ignore[arg-type]
    assert "csv-report" in ran.err


def test_costs_are_told_apart_from_the_prompt_and_add_up(command: Command) -> None:
    ran = command("prompt")
    assert "tokens" in ran.err
    assert "tokens" not in ran.out
    data = command("prompt", "--style", "xml", "--json").data
    assert abs(sum(cost["tokens"] for cost in data["costs"]) - data["tokens"]) < 0.1 * data["tokens"]


@pytest.mark.parametrize("words", [(), ("--query", "profile a csv"), ("--dialect", "load_skill")])
def test_costs_are_of_what_lists_the_skills_and_the_tools_are_told_apart(
    command: Command, words: tuple[str, ...]
) -> None:
    data = command("prompt", *words, "--json").data
    assert 0 < sum(cost["tokens"] for cost in data["costs"]) <= 1.1 * data["tokens"]
    assert data["tool_tokens"] > 0
    assert f"and about {data['tool_tokens']:,} for the tools" in command("prompt", *words).err


def test_a_budget_cuts_and_says_what(command: Command) -> None:
    data = command("prompt", "--style", "text", "--budget", "150", "--json").data
    assert data["tokens"] <= 150
    assert data["shortened"] or data["without_description"] or data["omitted"]
    assert "what each would cost uncut:" in command("prompt", "--style", "text", "--budget", "150").err
    assert "uncut" not in command("prompt", "--style", "text").err


def test_a_query_leaves_everything_while_it_fits_and_the_best_when_it_does_not(command: Command) -> None:
    query = ("--query", "profile a csv")
    data = command("prompt", *query, "--json").data
    assert (len(data["listed"]), data["omitted"], data["selector"]) == (6, [], "auto")
    assert {row["reason"] for row in data["reasons"]} == {"everything fits"}
    for bound in (("--budget", "300"), ("--window", "15000")):
        data = command("prompt", *query, *bound, "--json").data
        assert data["listed"][0] == "csv-report"
        assert sorted(data["listed"] + data["omitted"]) == list(prowess.discover().names)
        assert data["tokens"] <= 300 < data["whole_tokens"]
        reasons = {row["name"]: row["reason"] for row in data["reasons"]}
        assert reasons["csv-report"].startswith("chosen for the first request (rank 1")
        assert reasons["translate-strings"] == "not among the best for the request"


def test_what_a_choice_saves_is_told_with_the_reason_for_each_skill(command: Command) -> None:
    words = ("prompt", "--query", "profile a csv", "--budget", "300")
    data, err = command(*words, "--json").data, command(*words).err
    assert f"uncut, a listing of all 6 skills is about {data['whole_tokens']:,} tokens\n" in err
    (row,) = [row for row in err.splitlines() if row.startswith("  csv-report ")]
    assert "chosen for the first request (rank 1" in row
    assert "translate-strings" not in err
    assert "--query chooses the skills that fit a request" in command("prompt", "--budget", "300").err


def test_the_selector_decides_which_skills_a_query_leaves(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    query = ("prompt", "--query", "profile a csv", "--json")
    data = command(*query, "--selector", "lexical").data
    assert data["listed"] == ["csv-report"]
    assert len(data["omitted"]) == 5
    assert len(command(*query, "--selector", "all", "--budget", "300").data["listed"]) == 6
    monkeypatch.setenv("PROWESS_SELECTOR", "lexical")
    assert command(*query).data["listed"] == ["csv-report"]
    assert command(*query, "--style", "text").data["listed"] == ["csv-report"]


def test_a_bare_listing_is_chosen_within_its_budget_and_says_why(command: Command) -> None:
    data = command("prompt", "--query", "profile a csv", "--style", "text", "--budget", "200", "--json").data
    assert data["listed"][0] == "csv-report"
    assert (data["shortened"], data["tokens"] <= 200) == ([], True)
    assert data["reasons"][0]["reason"].startswith("chosen for the first request (rank 1")


def test_a_filter_leaves_the_skills_of_a_folder(command: Command) -> None:
    data = command("prompt", "--filter", ".agents/skills/release-notes", "--json").data
    assert data["listed"] == ["release-notes"]


def test_tools_are_shown_on_request(command: Command) -> None:
    assert '"name": "load_skill"' in command("prompt", "--tools").out


# -- doctor ------------------------------------------------------------------------------------------------------------


def test_the_doctor_tells_each_problem_with_its_remedy(command: Command, project: Path) -> None:
    (project / ".agents" / "skills" / "gone").symlink_to("../nowhere")
    shutil.copytree(BROKEN / "no-frontmatter", project / ".agents" / "skills" / "no-frontmatter")
    ran = command("doctor")
    assert ran.status == 1
    assert "remedy: remove the link, or install the skill again" in ran.out
    assert "[no-frontmatter]" in ran.out
    problems = [one for one in command("doctor", "--json").data["diagnoses"] if one["state"] == "problem"]
    assert {"link", "skill"} <= {one["topic"] for one in problems}
    assert all(one["remedy"] for one in problems)


def test_show_and_doctor_say_which_declared_variables_are_not_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ".agents/skills/weather"
    folder.mkdir(parents=True)
    needs = "requires:\n  tools: [web_search]\n  mcp: [github]\n  env: [HAS_KEY, LACKS_KEY]"
    (folder / "SKILL.md").write_text(f"---\nname: weather\ndescription: Says it.\n{needs}\n---\nRun it.\n")
    monkeypatch.chdir(tmp_path)
    env = {"HAS_KEY": "s3cret-value", "HOME": str(tmp_path)}
    shown = run_command(["show", "weather"], env=env).stdout.decode()
    assert re.search(r"variable +HAS_KEY +set here\n +variable +LACKS_KEY +not set here", shown), shown
    data = json.loads(run_command(["show", "weather", "--json"], env=env).stdout)
    assert data["requires"]["servers"] == ["github"]
    assert data["unset_variables"] == ["LACKS_KEY"]
    found = run_command(["doctor"], env=env).stdout.decode()
    assert "weather needs variables that are not set here: LACKS_KEY" in found
    assert "s3cret-value" not in shown + found + str(data)

"""Writing skills: begun, checked, fixed, previewed, evaluated, packed and unpacked."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess
from tests.cli.samples import granted, packed, with_evals

if TYPE_CHECKING:
    from tests.cli.conftest import Command

BROKEN = Path(__file__).resolve().parents[2] / "examples" / "broken"


@pytest.fixture
def broken(project: Path) -> Path:
    """The broken examples, to be fixed."""
    shutil.copytree(BROKEN, project / "broken")
    return project / "broken"


# -- new ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", ["", "scripts", "references,assets", "scripts,references,assets,evals"])
def test_a_new_skill_passes_the_check_and_once_filled_in_the_strictest(
    command: Command, project: Path, parts: str
) -> None:
    ran = command("new", "weekly-report", "--with", parts)
    assert ran.status == 0
    assert "prowess check ./weekly-report" in ran.out
    assert command("check", "weekly-report").status == 0
    checked = command("check", "weekly-report", "--strict", "--json")
    assert (checked.status, {one["code"] for one in checked.data["findings"]}) == (1, {"placeholder-text"})
    file = project / "weekly-report" / "SKILL.md"
    rows = file.read_text(encoding="utf-8").splitlines()
    for found in checked.data["findings"]:
        if found["field"] == "evals":
            evals = file.parent / "evals" / "triggers.json"
            evals.write_text(evals.read_text(encoding="utf-8").replace("Replace this:", ""), encoding="utf-8")
            continue
        rows[found["line"] - 1] = "description: Reports if asked." if found["field"] == "description" else "Written."
    file.write_text("\n".join(rows), encoding="utf-8")
    checked = command("check", "weekly-report", "--strict", "--json")
    assert (checked.status, checked.data["findings"]) == (0, [])


def write_eval(query: str) -> None:
    """Replace the evals of the new skill ``mine/weekly-report`` by one query that should find it."""
    file = Path("mine/weekly-report/evals/triggers.json")
    file.write_text(json.dumps([{"query": query}]), encoding="utf-8")


def test_the_evals_of_a_new_skill_do_not_pass_until_they_are_written(command: Command) -> None:
    command("new", "weekly-report", "--dir", "mine", "--with", "evals", "--description", "Reports. Use when asked.")
    ran = command("eval", "mine/weekly-report")
    assert ran.status == 3
    assert "the evals are still the template's: write what users say" in ran.err
    write_eval("weekly report")
    ran = command("eval", "mine/weekly-report", "--json")
    assert (ran.status, ran.data["cases"], ran.data["hit_rate"]) == (0, 1, 1.0)


@pytest.mark.parametrize(
    ("selector", "words"),
    [("auto", "by default, which ranks by words;"), ("lexical", "words in common"), ("all", "every skill")],
)
def test_an_eval_says_what_it_measures_with(command: Command, selector: str, words: str) -> None:
    command("new", "weekly-report", "--dir", "mine", "--with", "evals")
    write_eval("weekly report")
    ran = command("eval", "mine/weekly-report", "--selector", selector)
    (row,) = [row for row in ran.out.splitlines() if row.startswith("  measured with ")]
    assert words in row
    assert "no model" in row
    assert command("eval", "mine/weekly-report", "--selector", selector, "--json").data["selector"] == selector


def test_queries_outside_of_a_skill_have_to_say_which_one_they_are_about(command: Command, project: Path) -> None:
    file = project / "elsewhere" / "q.json"
    file.parent.mkdir()
    cases = [{"query": "what is in this csv file?"}]
    file.write_text(json.dumps(cases), encoding="utf-8")
    ran = command("eval", str(file))
    assert (ran.status, "error[bad-evals]" in ran.err, '"skill": "NAME"' in ran.err) == (3, True, True)
    assert '"skill" in each entry' in " ".join(command("eval", "--help").out.split())
    for said in ([{**cases[0], "skill": "csv-report"}], {"skill": "csv-report", "queries": cases}):
        file.write_text(json.dumps(said), encoding="utf-8")
        assert command("eval", str(file)).status == 0


def test_a_new_skill_has_the_description_that_was_given(command: Command, project: Path) -> None:
    said = 'Writes it: "weekly". Use when: asked # often'
    command("new", "one", "--dir", "mine", "--description", said)
    assert prowess.read_metadata(project / "mine" / "one").description == said


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["Bad_Name"], "bad-name"),
        (["up/.."], "bad-name"),
        (["../Bad_Name"], "bad-name"),
        (["con"], "bad-name"),
        (["one", "--description", "x" * 1025], "description-too-long"),
    ],
)
def test_what_cannot_be_a_skill_is_refused(command: Command, project: Path, words: list[str], code: str) -> None:
    before = sorted(project.rglob("*"))
    ran = command("new", *words)
    assert ran.status == 3
    assert f"error[{code}]" in ran.err
    assert sorted(project.rglob("*")) == before


def test_a_skill_can_be_made_beside_this_folder(command: Command, project: Path) -> None:
    ran = command("new", "../up")
    assert (project.parent / "up" / "SKILL.md").exists()
    assert "prowess check ../up'" in ran.out
    assert command("check", "../up").status == 0


def test_a_part_that_does_not_exist_is_a_usage_error(command: Command, project: Path) -> None:
    ran = command("new", "one", "--with", "evals,pictures")
    assert (ran.status, (project / "one").exists()) == (2, False)
    assert "no part 'pictures'; one of references, scripts, assets, evals" in ran.err


def test_nothing_that_exists_is_replaced(command: Command, project: Path) -> None:
    (project / "one").mkdir()
    assert "error[already-there]" in command("new", "one").err
    assert list((project / "one").iterdir()) == []


# -- check -------------------------------------------------------------------------------------------------------------


def test_a_finding_shows_its_line_underlined_and_a_remedy(command: Command, broken: Path) -> None:
    rows = command("check", str(broken / "wrong-name")).out.splitlines()
    assert rows[0].startswith("broken/wrong-name/SKILL.md:2:7: error[name-mismatch] name: 'commit-message'")
    assert rows[1] == "  2 | name: commit-message"
    assert rows[2] == "    |       ^^^^^^^^^^^^^^"
    assert rows[3].startswith("    = rename the folder or the name")
    assert rows[-1].startswith("1 skill: 1 error; listing costs about ")


def test_the_check_by_the_specification_ends_as_its_reference_validator_would(command: Command, project: Path) -> None:
    folder = project / "forms"
    folder.mkdir()
    text = "---\nname: forms\ndescription: Fills in forms.\nversion: 1\n---\nDo it.\n"
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    assert command("check", "forms").status == 0
    ran = command("check", "forms", "--spec")
    assert (ran.status, ran.out.splitlines()[0]) == (
        1,
        "forms/SKILL.md:4:1: error[unknown-field] version: is not a field of the specification",
    )
    (folder / "SKILL.md").write_text(text.replace("version: 1\n", ""), encoding="utf-8")
    assert command("check", "forms", "--spec").status == 0


def test_a_file_that_is_named_and_not_there_is_a_warning(command: Command, project: Path) -> None:
    folder = project / "forms"
    (folder / "references").mkdir(parents=True)
    (folder / "references" / "FIELDS.md").write_text("x", encoding="utf-8")
    said = "Read [fields](references/fields.md), run `scripts/fill.py`."
    text = f"---\nname: forms\ndescription: Fills forms when asked.\n---\n{said}\n"
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    ran = command("check", "forms")
    assert (ran.status, command("check", "forms", "--strict").status) == (0, 1)
    assert ran.out.startswith(
        "forms/SKILL.md:5:15: warning[missing-reference] references/fields.md: is not a file of the"
    )
    assert ran.out.splitlines()[0].endswith("; there is references/FIELDS.md")
    assert ran.out.splitlines()[1:4] == [
        f"  5 | {said}",
        "    |               ^^^^^^^^^^^^^^^^^^^^",
        "    = add the file, or correct the path; it is read from the skill's folder",
    ]
    assert "forms/SKILL.md:5:43: warning[missing-reference] scripts/fill.py: is not a file" in ran.out
    (folder / "scripts").mkdir()
    (folder / "scripts" / "fill.py").write_text("x", encoding="utf-8")
    (folder / "references" / "FIELDS.md").rename(folder / "references" / "fields.md")
    assert command("check", "forms", "--strict").status == 0


def test_the_status_goes_by_severity(command: Command, project: Path) -> None:
    empty = project / "empty"
    empty.mkdir()
    (empty / "SKILL.md").write_text("---\nname: empty\ndescription: Does it when asked.\n---\n", encoding="utf-8")
    assert command("check", "empty").status == 0
    assert command("check", "empty", "--strict").status == 1
    assert command("check", "empty", "--strict", "--ignore", "empty-body").status == 0
    assert command("check", "empty", "--strict", "--only", "bad-name").status == 0
    assert command("check", str(BROKEN)).status == 1


@pytest.mark.parametrize("option", ["--only", "--ignore"])
def test_a_code_that_does_not_exist_is_a_usage_error(command: Command, option: str) -> None:
    """A misspelled code would quietly disarm whoever relies on the status."""
    ran = command("check", str(BROKEN), option, "nme-mismatch")
    assert (ran.status, ran.out) == (2, "")
    assert "no finding has the code 'nme-mismatch'; did you mean name-mismatch" in ran.err
    assert "did you mean" not in command("check", str(BROKEN), option, "zzzzzz").err
    assert command("check", str(BROKEN), "--only", "name-mismatch").status == 1


def test_annotations_are_one_line_each_and_escaped(command: Command, project: Path) -> None:
    odd = project / "a,b:c%d"
    odd.mkdir()
    (odd / "SKILL.md").write_text("---\nname: Odd Name\ndescription: Does it when asked.\n---\nx\n", encoding="utf-8")
    rows = command("check", "a,b:c%d", "--format", "github").out.splitlines()
    assert rows
    assert all(row.startswith("::error file=a%2Cb%3Ac%25d/SKILL.md,line=2,col=7,title=") for row in rows)
    assert "'Odd Name'" in rows[0]


def test_annotations_name_paths_as_the_working_folder_sees_them(command: Command, project: Path) -> None:
    for folder in ("mine/one", "yours/one"):
        command(
            "new", "one", "--dir", str(project / folder).removesuffix("/one"), "--description", "Does the one thing."
        )
    ran = command("check", "mine", "yours", "--format", "github")
    assert "mine/one/SKILL.md" in ran.out.replace("file=mine/one/SKILL.md", "")
    assert str(project) not in ran.out


def test_a_path_that_is_not_there_is_said_not_to_be(command: Command, project: Path) -> None:
    ran = command("check", "nowhere")
    assert (ran.status, "unknown skill 'nowhere'; there is no such file or folder" in ran.err) == (3, True)
    (project / "notes.txt").write_text("x", encoding="utf-8")
    assert "name a skill's folder" in command("check", "notes.txt").err


def test_json_is_a_format_too(command: Command, broken: Path) -> None:
    assert command("check", str(broken), "--format", "json").data == command("check", str(broken), "--json").data


def test_without_a_path_the_skill_here_or_those_of_the_project_are_meant(
    command: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(command("check", "--json").data["skills"]) == 6
    monkeypatch.chdir(project / ".agents/skills/csv-report")
    assert len(command("check", "--json").data["skills"]) == 1
    empty = project / "empty"
    (empty / ".git").mkdir(parents=True)
    monkeypatch.chdir(empty)
    ran = command("check")
    assert (ran.status, "error[missing-skill-md]" in ran.err) == (3, True)


def test_a_collection_is_compared_and_its_listing_counted(command: Command, project: Path) -> None:
    for name in ("make-report", "make-reports"):
        command("new", name, "--dir", "mine", "--description", "Makes the very same monthly sales report for the team.")
    data = command("check", "mine", "--budget", "20", "--json").data
    codes = [finding["code"] for finding in data["findings"]]
    assert {"confusing-name", "duplicate-description", "listing-too-large"} <= set(codes)
    assert data["listing_tokens"] == prowess.estimate_tokens(prowess.render_catalog(prowess.scan(project / "mine")))


def test_fix_mends_and_shows_how(command: Command, broken: Path) -> None:
    ran = command("check", str(broken), "--fix")
    assert "fixed broken/unquoted-colon/SKILL.md: repaired-colon" in ran.out
    assert '+description: "Renames photos by the date they were taken. Use when:' in ran.out
    left = {finding["code"] for finding in command("check", str(broken), "--json").data["findings"]}
    assert left == {
        *("yaml-anchor", "yaml-duplicate-key", "unterminated-frontmatter", "missing-description", "no-frontmatter")
    }
    assert command("check", str(broken), "--fix", "--json").data["fixes"] == []


def test_diff_changes_nothing(command: Command, broken: Path) -> None:
    before = {path: path.read_bytes() for path in broken.rglob("*.md")}
    ran = command("check", str(broken), "--diff")
    assert "would fix broken/wrong-name/SKILL.md: name-mismatch" in ran.out
    assert "+name: wrong-name" in ran.out
    assert {path: path.read_bytes() for path in broken.rglob("*.md")} == before


def test_settings_make_it_strict(command: Command, project: Path) -> None:
    (project / "prowess.toml").write_text("[settings]\nstrict = true\nbudget = 10\n", encoding="utf-8")
    assert command("check").status == 1


# -- preview -----------------------------------------------------------------------------------------------------------


def test_expansions_are_marked(command: Command) -> None:
    out = command("preview", "deep-review", "main..HEAD").out
    assert "Scope requested: ⟦main..HEAD⟧\n" in out
    data = command("preview", "deep-review", "main..HEAD", "--json").data
    assert [data["content"][mark["begin"] : mark["end"]] for mark in data["marks"]] == ["main..HEAD"]


def test_without_arguments_it_is_what_a_model_that_loads_the_skill_receives(command: Command) -> None:
    session = prowess.Session(prowess.discover())
    loaded = prowess.Toolset(session).call("load_skill", {"name": "csv-report"}).content
    assert command("preview", "csv-report").out == loaded + "\n"
    data = command("preview", "csv-report", "--json").data
    assert (data["content"], data["added_tools"]) == (loaded, ["Bash(python3:*)", "Read"])


def test_commands_of_trusted_skills_run_unless_they_are_held_back(command: Command, project: Path) -> None:
    ran = command("preview", "folder-report")
    assert "!`ls | wc -l" in ran.out
    assert "warning: [commands-not-run]" in ran.err
    granted()
    (project / "visible.txt").write_text("x", encoding="utf-8")
    assert "There are ⟦1⟧ entries" in command("preview", "folder-report").out
    assert "!`ls | wc -l" in command("preview", "folder-report", "--no-run").out


# -- eval --------------------------------------------------------------------------------------------------------------


def test_evals_tell_hits_misses_and_who_won_instead(command: Command, project: Path) -> None:
    with_evals()
    ran = command("eval", ".agents/skills/csv-report")
    assert "2 of 2 right (100%)" in ran.out
    assert "hit rate: 100%" in ran.out
    assert "false fires: 0%" in ran.out
    cases = [{"query": "draft release notes from git", "should_trigger": True}]
    file = project / ".agents/skills/csv-report/evals/more.json"
    file.write_text(json.dumps(cases), encoding="utf-8")
    data = command("eval", str(file), "--json").data
    assert [(row["outcome"], row["picked"]) for row in data["results"]] == [("miss", ["release-notes"])]
    assert "Who won instead" in command("eval", str(file)).out


def test_an_eval_says_where_words_alone_do_not_decide(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with_evals()
    note = "all 6 fit into one listing, so a model sees every one: --with-model asks one"
    assert note in command("eval", ".agents/skills/csv-report").out
    monkeypatch.setenv("PROWESS_BUDGET", "100")
    assert "fit into one listing" not in command("eval", ".agents/skills/csv-report").out


def test_a_miss_says_to_whom_it_was_lost_and_what_the_description_lacks(command: Command, project: Path) -> None:
    cases = [
        {"query": "draft release notes from git", "skill": "csv-report"},
        {"query": "zebra", "skill": "csv-report"},
        {"query": "profile a csv", "skill": "csv-report", "should_trigger": False},
    ]
    (project / "evals.json").write_text(json.dumps(cases), encoding="utf-8")
    out = command("eval", "evals.json").out
    assert re.match(
        r"Came out wrong\n"
        r"  miss: draft release notes from git\n"
        r"    should find csv-report, which comes in place \d \(words: notes\)\n"
        r"    before it: release-notes \(words: draft, release, notes, git\)\n"
        r"    before it: ",
        out,
    )
    assert "    its name, description and tags lack: draft, release, notes, git\n" in out
    assert (
        "    should find csv-report, which does not come at all\n    its name, description and tags lack: zebra\n"
        in out
    )
    assert "  false-fire: profile a csv\n    finds csv-report (words: profile, csv)\n" in out
    data = command("eval", "evals.json", "--json").data
    assert data["mode"] == "words"
    first, second, third = data["results"]
    assert first["ahead"][0] == {"name": "release-notes", "why": "words: draft, release, notes, git"}
    assert (second["place"], second["ahead"], second["missing_words"]) == (None, [], ["zebra"])
    assert (third["place"], third["why"]) == (1, "words: profile, csv")


def test_the_page_about_selection_shows_what_an_eval_prints(command: Command, project: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "selection.md").read_text(encoding="utf-8")
    cases, shown = re.findall(r"^```(?:json|text)\n(\[.*?|Came .*?)^```$", page, re.MULTILINE | re.DOTALL)
    shutil.copytree(BROKEN.parent / "skills", "skills")
    (project / "evals.json").write_text(cases, encoding="utf-8")
    assert command("eval", "evals.json", "--dir", "skills").out.startswith(f"{shown}\nWho won instead\n")


def test_an_eval_prepares_meaning_itself_so_that_it_always_measures_the_same(
    command_with_encoder: Command, project: Path
) -> None:
    command = command_with_encoder
    cases = [{"query": "profile a csv", "skill": "csv-report"}]
    (project / "evals.json").write_text(json.dumps(cases), encoding="utf-8")
    first, again = (command("eval", "evals.json", "--json").data for _ in range(2))
    assert (first["mode"], first) == ("words+meaning", again)
    assert "which ranks by words and meaning;" in command("eval", "evals.json").out
    assert command("eval", "evals.json", "--selector", "lexical", "--json").data["mode"] is None


def test_a_share_that_is_not_reached_ends_with_1(command: Command, project: Path) -> None:
    file = project / "evals.json"
    cases = {"skill_name": "csv-report", "evals": [{"id": 1, "prompt": "profile a csv"}, {"id": 2, "prompt": "zebra"}]}
    file.write_text(json.dumps(cases), encoding="utf-8")
    assert command("eval", "evals.json", "--min", "0").status == 0
    assert command("eval", "evals.json", "--min", "0.5").status == 0
    assert command("eval", "evals.json", "--min", "0.6").status == 1
    (project / "prowess.toml").write_text("[settings]\nmin = 0.5\n", encoding="utf-8")
    assert command("eval", "evals.json").status == 0


def test_without_a_share_every_query_must_come_out_right_and_the_last_lines_say_what_did_not(
    command: Command, project: Path
) -> None:
    rows = [
        {"query": "profile a csv", "skill": "csv-report"},
        {"query": "zebra", "skill": "csv-report"},
        {"query": "profile this csv", "skill": "csv-report", "should_trigger": False},
    ]
    file = project / "evals.json"
    file.write_text(json.dumps(rows), encoding="utf-8")
    ran = command("eval", "evals.json")
    assert ran.status == 1
    assert "\nFailed: 1 of 3 right (33%); 1 miss, 1 false fire; wanted 100% (among 6 skills, first 1)\n" in ran.out
    ran = command("eval", "evals.json", "--min", "0.3", "--json")
    assert (ran.status, ran.data["min"], ran.data["passed"]) == (0, 0.3, True)
    file.write_text(json.dumps(rows[:1]), encoding="utf-8")
    ran = command("eval", "evals.json")
    assert (ran.status, ran.out.startswith("Passed: 1 of 1 right (100%) (among")) == (0, True)


def test_top_and_selector_decide_what_found_means(command: Command, project: Path) -> None:
    file = project / "evals.json"
    cases = [{"query": "report the columns of a release incident", "skill": "csv-report"}]
    file.write_text(json.dumps(cases), encoding="utf-8")
    assert command("eval", "evals.json", "--selector", "all", "--top", "6", "--min", "1").status == 0
    assert command("eval", "evals.json", "--top", "6", "--min", "1").status == 0


@pytest.mark.parametrize("content", ["{", "[]", "{}", '[{"question": 1}]', "[" * 100_000])
def test_what_holds_no_queries_is_an_error(command: Command, project: Path, content: str) -> None:
    (project / "evals.json").write_text(content, encoding="utf-8")
    ran = command("eval", "evals.json")
    assert ran.status == 3
    assert "error[bad-evals]" in ran.err


def test_queries_about_an_unknown_skill_are_an_error(command: Command, project: Path) -> None:
    (project / "evals.json").write_text('[{"query": "x", "skill": "nope"}]', encoding="utf-8")
    assert "error[unknown-skill]" in command("eval", "evals.json").err


# -- pack and unpack ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["skill", "zip", "tar.gz"])
def test_a_packed_skill_unpacks_to_what_it_was(command: Command, project: Path, form: str) -> None:
    assert command("pack", ".agents/skills/csv-report", "--format", form).status == 0
    assert command("unpack", f"csv-report.{form}", "--dir", "out").status == 0
    before = prowess.read_metadata(project / ".agents/skills/csv-report")
    assert prowess.read_metadata(project / "out" / "csv-report").digest() == before.digest()


def test_the_format_follows_from_the_name_of_the_file(command: Command, project: Path) -> None:
    data = command("pack", ".agents/skills/csv-report", "-o", "out/x.tar.gz", "--json").data
    assert data["format"] == "tar.gz"
    assert (project / "out/x.tar.gz").stat().st_size == data["bytes"]


def test_an_archive_is_replaced_only_by_force(command: Command) -> None:
    packed()
    again = command("pack", ".agents/skills/csv-report", "-o", "packed.skill")
    assert (again.status, "error[would-replace]" in again.err, "or say --force" in again.err) == (3, True, True)
    assert command("pack", ".agents/skills/csv-report", "-o", "packed.skill", "--force").status == 0


def test_a_folder_is_replaced_only_by_force(command: Command, project: Path) -> None:
    packed()
    assert command("unpack", "packed.skill").status == 0
    (project / "csv-report/mine.md").write_text("mine", encoding="utf-8")
    again = command("unpack", "packed.skill")
    assert (again.status, "error[would-replace]" in again.err, "or say --force" in again.err) == (3, True, True)
    assert (project / "csv-report/mine.md").is_file()
    assert command("unpack", "packed.skill", "--force").status == 0
    assert not (project / "csv-report/mine.md").exists()


def test_an_archive_that_names_no_format_is_refused(command: Command, project: Path) -> None:
    where = ".agents/skills/release-notes"
    ran = command("pack", where, "-o", "x.rar")
    assert (ran.status, (project / "x.rar").exists()) == (2, False)
    assert "has no known ending: use one of .skill, .zip, .tar.gz, or --format" in ran.err
    assert command("pack", where, "-o", "x.rar", "--format", "zip").status == 0


def test_one_is_not_several(command: Command) -> None:
    command("new", "one", "--dir", "mine", "--with", "evals", "--description", "Does the one thing.")
    assert ", 1 file, " in command("pack", "mine/one").out
    assert ", 1 file\n" in command("unpack", "one.skill", "--dir", "there").out
    Path("mine/one/evals/triggers.json").write_text('[{"query": "one thing"}]', encoding="utf-8")
    assert "(among 1 skill, first 1)" in command("eval", "mine/one", "--dir", "mine").out
    assert "among 1 skill fits" in command("search", "zzz", "--dir", "mine").err
    assert command("prompt", "--dir", "mine").err.startswith("1 skill, ")
    assert "1 skill costs about" in command("check", "mine", "--budget", "1").out
    assert "1 file, " in command("show", "one", "--dir", "there").out


def test_a_skill_with_errors_is_not_packed(command: Command, broken: Path, project: Path) -> None:
    ran = command("pack", str(broken / "wrong-name"))
    assert "error[name-mismatch]" in ran.err
    assert not list(project.glob("*.skill"))


def test_an_archive_that_is_none_is_refused(command: Command, project: Path) -> None:
    (project / "x.skill").write_bytes(b"PK\x03\x04 nonsense")
    ran = command("unpack", "x.skill")
    assert ran.status == 3
    assert "error[bad-archive]" in ran.err
    assert sorted(path.name for path in project.iterdir()) == [".agents", ".git", "x.skill"]

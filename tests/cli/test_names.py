"""What a command line may name: a skill by its name, its folder or its file; several at once; and what was meant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.lockfile.read import read_lock
from tests.cli.samples import SKILLS, granted, with_evals
from tests.cli.test_look import put

if TYPE_CHECKING:
    from tests.cli.conftest import Command

TAKES_A_SKILL = (
    *("check {}", "show {}", "read {}", "preview {}", "prompt {}", "trust grant {} --yes"),
    *("eval {} --min 0", "pack {} --output packed.skill"),
)
WAYS = {
    "a name": "csv-report",
    "a folder": str(SKILLS / "csv-report"),
    "a file": str(SKILLS / "csv-report" / "SKILL.md"),
    "a bare folder": "notes",
}


def install_pair(*names: str) -> prowess.Installer:
    """Skills of these names, each an install of the project."""
    installer = prowess.Installer()
    for name in names:
        prowess.create_skill(name, "elsewhere", description=f"Does {name}. Use when asked.")
        installer.install_local(f"elsewhere/{name}", project=True)
    return installer


# -- one skill ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("words", TAKES_A_SKILL)
def test_a_skill_is_named_by_its_name_its_folder_or_its_file(
    command: Command, project: Path, words: str, way: str
) -> None:
    with_evals()
    with_evals(prowess.create_skill("notes", project, description="Writes notes. Use when asked."))
    ran = command(*words.format(WAYS[way]).split())
    assert (ran.status, "error" in ran.err) == (0, False)


@pytest.mark.parametrize("words", TAKES_A_SKILL)
def test_the_folder_of_a_skill_here_wins_over_its_name(command: Command, project: Path, words: str) -> None:
    with_evals()
    with_evals(prowess.create_skill("csv-report", project, description="Another one. Use when asked."))
    ran = command(*words.format("csv-report").split())
    note = "this is about the folder ./csv-report; another skill with that name is .agents/skills/csv-report/SKILL.md"
    assert (ran.status, ran.err.count(note)) == (0, 1), ran.err
    assert note not in command(*words.format("./csv-report").split()).err


def test_no_note_is_printed_where_both_are_one_folder(
    command: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / SKILLS)
    ran = command("preview", "csv-report")
    assert (ran.status, "this is about the folder" in ran.err) == (0, False)


def test_a_folder_of_skills_does_not_win_over_a_name(command: Command, project: Path) -> None:
    put(project / "csv-report", "notes", body="Mine.\n")
    assert "# CSV report" in command("preview", "csv-report").out
    ran = command("preview", "notes")
    assert (ran.status, "unknown skill" in ran.err) == (3, True)


def test_a_note_says_that_a_folder_stands_in_for_an_installed_skill(command: Command, project: Path) -> None:
    install_pair("memo")
    prowess.files.delete.delete_tree(str(project / ".prowess/skills/local/memo"))
    ran = command("read", "memo")
    assert (ran.status, "prowess sync --locked" in ran.err) == (3, True)
    put(project, "memo", body="Not what was installed.\n")
    ran = command("read", "memo")
    assert (ran.status, "Not what was installed" in ran.out) == (0, True)
    assert "this is about the folder ./memo; prowess.lock records 1 skill that is not here" in ran.err


def test_a_prompt_of_named_skills_lists_these_alone(command: Command, project: Path) -> None:
    put(project / "mine", "notes")
    assert command("prompt", "csv-report", "--json").data["listed"] == ["csv-report"]
    listed = command("prompt", "csv-report", "mine", "--style", "text", "--json").data["listed"]
    assert sorted(listed) == ["csv-report", "notes"]


def test_check_takes_the_name_of_a_skill_and_still_a_folder_first(command: Command, project: Path) -> None:
    by_name = command("check", "csv-report", "--json").data["skills"]
    assert [Path(path).parent.name for path in by_name] == ["csv-report"]
    put(project, "csv-report")
    assert command("check", "csv-report", "--json").data["skills"] == [str(project / "csv-report" / "SKILL.md")]


def test_a_grant_is_taken_back_by_the_folder_also_when_the_skill_is_gone(command: Command, project: Path) -> None:
    granted()
    where = project / SKILLS / "folder-report"
    assert command("trust", "revoke", str(where)).status == 0
    granted()
    prowess.files.delete.delete_tree(str(where))
    assert command("trust", "revoke", f"./{SKILLS}/folder-report").status == 0
    assert command("trust", "list", "--json").data["grants"] == []


# -- several -----------------------------------------------------------------------------------------------------------


def test_several_installs_are_removed_at_once(command: Command, project: Path) -> None:
    install_pair("one", "two", "three")
    ran = command("remove", "one", "@local/two", "one", "--yes", "--json")
    assert ran.status == 0
    assert [Path(place).name for place in ran.data["places"]] == ["one", "two"]
    assert list(read_lock(str(project))) == ["local/three"]
    assert sorted(path.name for path in (project / ".prowess/skills/local").iterdir()) == ["three"]


@pytest.mark.parametrize("words", ["remove", "link --agent claude-code", "unlink --agent claude-code", "update"])
def test_every_unknown_name_is_said_before_anything_happens(command: Command, project: Path, words: str) -> None:
    install_pair("weekly-report", "other")
    before = read_lock(str(project))
    ran = command(*words.split(), "other", "weekly-reprot", "nothing-like-it", "--yes")
    assert ran.status == 3
    assert "weekly-reprot" in ran.err
    assert "nothing-like-it" in ran.err
    assert "did you mean weekly-report?" in ran.err
    assert "Plan:" not in ran.err + ran.out
    assert read_lock(str(project)) == before


def test_several_installs_are_linked_and_unlinked_at_once(command: Command, project: Path) -> None:
    install_pair("one", "two")
    ran = command("link", "one", "two", "--agent", "claude-code", "--yes", "--json")
    assert (ran.status, ran.data["linked"]) == (0, [".claude/skills/one", ".claude/skills/two"])
    assert command("unlink", "one", "two", "--agent", "claude-code", "--yes").status == 0
    assert not (project / ".claude/skills/one").is_symlink()


def test_links_of_several_installs_are_made_all_or_none(command: Command, project: Path) -> None:
    install_pair("one", "two")
    put(project / ".claude/skills", "two")
    before = read_lock(str(project))
    ran = command("link", "one", "two", "--agent", "claude-code", "--yes")
    assert (ran.status, "error[name-taken]" in ran.err) == (3, True)
    assert not (project / ".claude/skills/one").exists()
    assert read_lock(str(project)) == before


# -- what was meant ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    ["show", "read", "preview", "prompt", "eval", "check", "explain", "trust grant", "pack", "diff"],
)
def test_a_name_that_is_nearly_that_of_a_skill_is_answered_with_it(command: Command, words: str) -> None:
    install_pair("weekly-report")
    ran = command(*words.split(), "weekly-reprot")
    assert ran.status in {1, 3}
    assert "did you mean weekly-report?" in ran.err


def test_a_skill_that_cannot_be_adopted_is_said_with_the_nearest_before_anything_happens(
    command: Command, project: Path
) -> None:
    ran = command("adopt", "release-notes", "csv-reprot", "zebra", "--yes")
    assert ran.status == 3
    assert "there is no skill 'csv-reprot' to adopt; did you mean csv-report?" in ran.err
    assert "'zebra'" in ran.err
    assert not (project / "prowess.lock").exists()
    assert not (project / SKILLS / "release-notes").is_symlink()


def test_a_grant_that_is_nearly_named_is_answered_with_it(command: Command) -> None:
    granted()
    ran = command("trust", "revoke", "folder-reprot")
    assert (ran.status, "did you mean folder-report?" in ran.err) == (1, True)


# -- new and eval ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant"),
    [("Weekly Report", "weekly-report"), ("weekly__report!", "weekly-report"), ("Übersicht 2", "ubersicht-2")],
)
def test_a_name_that_cannot_be_one_is_answered_with_one_that_can(
    command: Command, project: Path, written: str, meant: str
) -> None:
    ran = command("new", written)
    assert (ran.status, f"'{meant}' would do" in ran.err) == (3, True)
    assert not (project / meant).exists()
    assert command("new", meant).status == 0


@pytest.mark.parametrize("written", ["skills/memo", "skills/memo/", "./skills/memo"])
def test_a_path_names_the_folder_of_a_new_skill(command: Command, project: Path, written: str) -> None:
    data = command("new", written, "--json").data
    assert (data["name"], data["folder"]) == ("memo", str(project / "skills/memo"))
    assert "name: memo\n" in (project / "skills/memo/SKILL.md").read_text(encoding="utf-8")
    ran = command("new", "../away/memo", "--dir", "skills")
    assert (ran.status, (project / "away/memo/SKILL.md").is_file()) == (0, True)


def test_a_name_of_nothing_that_could_be_kept_gets_no_suggestion(command: Command) -> None:
    ran = command("new", "!!!")
    assert (ran.status, "would do" in ran.err) == (3, False)


def test_eval_without_a_path_takes_the_skill_in_this_folder_or_the_projects(
    command: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = command("eval")
    assert (ran.status, "prowess new NAME --with evals" in ran.err) == (3, True)
    with_evals()
    ran = command("eval")
    assert (ran.status, ran.out.startswith("Passed: 2 of 2 right")) == (0, True)
    monkeypatch.chdir(project / SKILLS / "csv-report")
    assert command("eval").out.startswith("Passed: 2 of 2 right")


@pytest.mark.parametrize("words", ["show {}", "preview {}", "trust grant {} --yes"])
def test_a_folder_of_skills_where_one_is_wanted_is_told_with_the_skills_in_it(
    command: Command, project: Path, words: str
) -> None:
    for number in range(7):
        put(project, f"many/skill-{number}")
    for way in ("./many", "many"):
        ran = command(*words.format(way).split())
        assert (ran.status, "this is a folder of skills, not a skill" in ran.err) == (3, True)
        assert "name one of many/skill-0, many/skill-1, many/skill-2, many/skill-3, many/skill-4 and 2 more" in ran.err
    (project / "empty").mkdir()
    assert "there is no skill in this folder" in command(*words.format("./empty").split()).err
    gone = command(*words.format("./nowhere").split())
    assert "there is no such file or folder" in gone.err
    assert "hint: a skill is a folder with a SKILL.md" in gone.err


def test_of_several_grants_to_take_back_the_one_that_is_none_is_told(command: Command) -> None:
    assert command("trust", "grant", "csv-report", "--yes").status == 0
    ran = command("trust", "revoke", "csv-report", "csv-reprot")
    assert (ran.status, ran.out) == (1, "Revoked 1 grant.\n")
    assert ran.err == "there is no grant for csv-reprot; did you mean csv-report?\n"


# -- names that are nearly right ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["check {}", "show {}", "preview {}", "eval {}", "pack {}", "trust grant {}"])
def test_an_unknown_name_suggests_the_folders_here(command: Command, project: Path, words: str) -> None:
    prowess.create_skill("sql-review", project, description="Reviews SQL. Use when a query is slow.")
    prowess.create_skill("memo", project / "skills", description="Writes memos. Use when asked.")
    ran = command(*words.format("sql-reveiw").split())
    assert (ran.status, "hint: did you mean sql-review?" in ran.err) == (3, True), ran.err
    assert "skills/memo" in command(*words.format("memo").split()).err


def test_search_and_explain_say_that_they_are_about_another_copy(command: Command, project: Path) -> None:
    prowess.create_skill("memo", project, description="Writes memos. Use when somebody dictates.")
    ran = command("explain", "memo")
    assert (ran.status, "./memo is not where agents look: 'prowess install ./memo'" in ran.err) == (1, True)
    prowess.Installer().install_local("./memo", project=True)
    note = "this is about .prowess/skills/local/memo/SKILL.md; for the folder ./memo, say --dir ."
    for words in (("search", "dictates"), ("explain", "memo")):
        ran = command(*words)
        assert (ran.status, note in ran.err) == (0, True), ran.err
        assert note not in command(*words, "--dir", ".").err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("trust csv-report", "did you mean 'prowess trust grant csv-report'?"),
        ("trust revoek csv-report", "prowess trust has no command 'revoek'; did you mean revoke?"),
        ("policy x", "prowess policy has no command 'x'; there are show, fetch, check"),
        ("new memo --evals", "No such option '--evals': write '--with evals'."),
        ("remove memo --project --user", "--user, --project and --all exclude each other: name one"),
    ],
)
def test_what_people_try_is_answered_with_what_to_write(command: Command, words: str, said: str) -> None:
    ran = command(*words.split())
    assert (ran.status, said in ran.err) == (2, True), ran.err


def test_project_names_the_installs_of_the_project(command: Command) -> None:
    install_pair("memo")
    assert "local/memo" in command("list", "--installed", "--project").out
    assert command("remove", "memo", "--project", "--yes").status == 0
    ran = command("remove", "memo", "--project", "--yes")
    assert (ran.status, "'memo' is not installed for the project" in ran.err) == (3, True)


def test_an_install_without_questions_warns_of_descriptions_that_nobody_will_find(
    command: Command, project: Path
) -> None:
    prowess.create_skill("new", project / "more")
    for name, description in (("vague", "description: TODO\n"), ("none", "")):
        (project / "more" / name).mkdir()
        text = f"---\nname: {name}\n{description}---\nDo it well.\n"
        (project / "more" / name / "SKILL.md").write_text(text, encoding="utf-8")
    ran = command("install", "./more", "--project", "--yes")
    assert ran.status == 0
    assert "[placeholder-text] new/SKILL.md: the description is what a new skill says" in ran.err
    assert "[vague-description] vague/SKILL.md: the description says nothing" in ran.err
    assert "[missing-description] none/SKILL.md: the description is required" in ran.err

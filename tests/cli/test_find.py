"""``prowess find``: which skills the indexes that are configured have, and which of them did not answer."""

from __future__ import annotations

import json
import shlex
import shutil
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.fetch.git.process import GitProgram
from prowess.lockfile.read import read_lock
from tests.cli.test_reach import ALLOWED
from tests.repositories import Repository, skill_text
from tests.web_sites import SCHEMA, Site, skill_md

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.cli.conftest import Command


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository with two skills."""
    made = Repository(tmp_path / "repositories" / "tools.git")
    made.write("skills/invoices/SKILL.md", skill_text("invoices", description="Writes invoices for customers."))
    made.write("skills/tables/SKILL.md", skill_text("tables", description="Turns a spreadsheet into tables."))
    made.commit()
    return made


def configure(project: Path, *indexes: str) -> None:
    rows = ", ".join(map(json.dumps, indexes))
    (project / "prowess.toml").write_text(f"[settings]\nindexes = [{rows}]\n", encoding="utf-8")


def test_skills_of_every_index_are_ranked_together_each_with_the_command_that_installs_it(
    command: Command,
    project: Path,
    site: Site,
    repository: Repository,
) -> None:
    site.index(site.entry("ledger", skill_md("ledger"), description="Books invoices, and sends invoices."))
    configure(project, site.url, repository.address)
    ran = command("find", "invoices", *ALLOWED, "--json")
    assert ran.status == 0
    hits = ran.data["hits"]
    assert [(hit["name"], hit["index"]) for hit in hits] == [("invoices", repository.address), ("ledger", site.url)]
    assert (ran.data["unanswered"], ran.data["skills"]) == ([], 3)
    text = command("find", "invoices", *ALLOWED).out
    for hit in hits:
        assert f"    {hit['install']}\n" in text
        assert command(*shlex.split(hit["install"])[1:], "--project", "--yes").status == 0
    assert sorted(name.partition("/")[2] for name in read_lock(str(project))) == ["invoices", "ledger"]


def test_an_index_that_does_not_answer_is_named_with_the_reason_and_hides_no_other(
    command: Command,
    project: Path,
    site: Site,
    repository: Repository,
    tmp_path: Path,
) -> None:
    gone = f"file://{tmp_path}/nowhere.git"
    configure(project, gone, site.url, repository.address)
    ran = command("find", "invoices", "--allow-http", "--json")
    assert (ran.status, [hit["name"] for hit in ran.data["hits"]]) == (0, ["invoices"])
    reasons = {row["index"]: (row["code"], row["message"]) for row in ran.data["unanswered"]}
    assert reasons.keys() == {gone, site.url}
    assert reasons[gone][0] == "no-repository"
    assert reasons[site.url][0] == "address-refused"
    ran = command("find", "invoices", "--allow-http")
    assert f"{gone} did not answer: [no-repository]" in ran.err
    assert "did not answer" not in ran.out


def test_no_match_is_an_answer_only_when_every_index_answered(
    command: Command, project: Path, repository: Repository
) -> None:
    configure(project, repository.address)
    ran = command("find", "zebra")
    assert (ran.status, ran.out) == (1, "")
    assert "Nothing among 2 skills of 1 index fits." in ran.err
    shutil.rmtree(repository.path)
    ran = command("find", "zebra")
    assert (ran.status, "did not answer" in ran.err, "Nothing among" in ran.err) == (3, True, False)


def test_without_an_index_it_is_said_how_to_name_one(command: Command) -> None:
    ran = command("find", "pdf")
    assert (ran.status, "error[no-indexes]" in ran.err) == (3, True)
    assert "indexes = [" in ran.err
    assert "--index" in ran.err


def test_an_index_can_be_named_once_or_by_a_variable(
    command: Command, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command("find", "invoices", "--index", repository.address).status == 0
    monkeypatch.setenv("PROWESS_INDEXES", repository.address)
    assert command("find", "invoices").status == 0


def test_no_commit_is_fetched_twice_and_a_newer_one_is(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(tmp_path / "copies"))
    calls: list[str] = []

    def count_calls(args: Sequence[str], cwd: str, env: Mapping[str, str]) -> bytes:
        calls.append(args[0])
        return GitProgram(prowess.Limits())(args, cwd, env)

    installer = prowess.Installer(git=count_calls)
    indexes = [repository.address, f"{repository.address}#main"]
    first = installer.find("invoices", indexes)
    assert (len(first.hits), calls.count("fetch")) == (2, 1)
    assert installer.find("invoices", indexes) == first
    assert calls.count("fetch") == 1
    repository.write("skills/invoices/more.md", "More.\n")
    repository.commit()
    installer.find("invoices", indexes)
    assert calls.count("fetch") == 2


def test_the_words_that_are_looked_for_stay_on_this_machine(
    command: Command,
    project: Path,
    site: Site,
) -> None:
    configure(project, site.url)
    command("find", "confidential", "merger", *ALLOWED)
    assert site.asked
    assert not any("confidential" in f"{one.path}{one.headers}" for one in site.asked)


def test_a_hostile_index_reaches_neither_the_terminal_nor_the_shell(
    command: Command,
    project: Path,
    site: Site,
) -> None:
    text = "Sends mail. \x1b]0;owned\x07" + "mail " * 2000
    names = ("mail", "mail; touch pwned", "$(touch pwned) mail", "../../mail", "mail\x1b[2J", "--yes")
    entry = site.entry("mail", skill_md("mail"))
    digests = [f"sha256:{at:064x}" for at, _ in enumerate(names)]
    rows = [{**entry, "name": name, "digest": mark} for name, mark in zip(names, digests, strict=True)]
    site.index(*({**row, "description": text} for row in rows))
    configure(project, site.url)
    ran = command("find", "mail", *ALLOWED)
    assert ran.status == 0
    assert "\x1b" not in ran.out + ran.err
    data = command("find", "mail", *ALLOWED, "--json").data
    assert {hit["name"] for hit in data["hits"]} == {"mail", "mail; touch pwned", "$(touch pwned) mail", "--yes"}
    for hit in data["hits"]:
        assert len(hit["description"]) <= 1024
        words = shlex.split(hit["install"])
        assert words[:3] == ["prowess", "install", site.url]
        assert words[words.index("--skill") + 1] == hit["name"]
    assert {issue["code"] for issue in data["issues"]} == {"bad-name"}


def test_an_index_that_is_too_large_is_refused_as_one_that_did_not_answer(
    command: Command,
    project: Path,
    site: Site,
    repository: Repository,
) -> None:
    rows = [{"name": f"s{at}", "description": "x"} for at in range(10_001)]
    site.put("/.well-known/agent-skills/index.json", json.dumps({"$schema": SCHEMA, "skills": rows}).encode())
    configure(project, site.url, repository.address)
    ran = command("find", "invoices", *ALLOWED, "--json")
    assert (ran.status, [row["code"] for row in ran.data["unanswered"]]) == (0, ["too-many-entries"])


@pytest.mark.usefixtures("project")
def test_a_repository_announces_no_more_skills_than_an_index_may(repository: Repository) -> None:
    installer = prowess.Installer(limits=prowess.Limits(max_index_entries=1))
    found = installer.find("invoices", [repository.address])
    assert [issue.code for issue in found.unanswered] == ["too-many-entries"]


@pytest.mark.usefixtures("project")
def test_too_many_indexes_are_refused_before_any_is_asked(repository: Repository) -> None:
    installer = prowess.Installer(limits=prowess.Limits(max_indexes=1))
    with pytest.raises(prowess.SourceError) as caught:
        installer.find("invoices", [repository.address, f"{repository.address}#main"])
    assert caught.value.code == "too-many-indexes"


def test_what_is_kept_of_a_commit_is_not_believed_once_it_was_changed(
    command: Command, repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    copies = tmp_path / "copies"
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(copies))
    words = ("find", "invoices", "--index", repository.address, "--json")
    before = command(*words).data["hits"]
    kept = [path for path in (copies / "sha256").rglob("*") if path.is_file()]
    assert kept
    for path in kept:
        path.write_text(path.read_text(encoding="utf-8").replace("customers", "thieves"), encoding="utf-8")
    assert command(*words).data["hits"] == before


@pytest.mark.usefixtures("project")
def test_what_is_kept_of_a_commit_is_all_that_it_has_also_what_is_wrong_in_it(repository: Repository) -> None:
    repository.write("skills/broken/SKILL.md", "no head at all\n")
    repository.commit()
    installer = prowess.Installer()
    some = installer.find("invoices tables", [f"{repository.address}#main@tables"])
    assert [hit.name for hit in some.hits] == ["tables"]
    every = installer.find("invoices tables", [f"{repository.address}#main"])
    assert sorted(hit.name for hit in every.hits) == ["invoices", "tables"]
    assert [(issue.code, issue.path) for issue in every.issues] == [("no-frontmatter", "skills/broken/SKILL.md")]
    assert every.issues == some.issues


def test_a_find_says_how_many_it_leaves_out(command: Command, project: Path) -> None:
    for number in range(3):
        prowess.create_skill(f"report-{number}", "index", description=f"Writes report {number}. Use when asked.")
    ran = command("find", "report", "--index", "./index", "--limit", "1")
    assert ran.out.endswith("and 2 more: --limit 3 shows them\n")
    assert "more" not in command("find", "report", "--index", "./index").out
    data = command("find", "report", "--index", "./index", "--limit", "1", "--json").data
    assert (len(data["hits"]), data["fitting"]) == (1, 3)
    assert project.exists()

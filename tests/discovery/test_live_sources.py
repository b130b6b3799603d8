"""Live catalogues over sources that are polled: git repositories, sites, MCP servers and sources of a host's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from prowess import Catalog, GitError, Session, Source, SourceError, live
from tests.repositories import Repository, skill_text

FAST = 0.02


def write_skill(folder: Path, name: str) -> None:
    folder.mkdir()
    (folder / "SKILL.md").write_text(skill_text(name))


class Own:
    """A source of a host's own."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.is_down = False

    def load(self) -> Catalog:
        if self.is_down:
            raise OSError("the database is down")
        return Catalog.from_sources([Source.inline(name, f"Does {name}.", f"Do {name}.") for name in self.names])


def test_a_source_of_your_own_is_polled() -> None:
    own = Own("one")
    with live(own, every=FAST) as skills:
        session, seen = Session(skills), skills.catalog
        own.names = ("one", "two")
        assert skills.wait_for_change(seen, 20).names == ("one", "two")
        assert session.activate("two").instructions == "Do two."


def test_a_source_that_fails_keeps_its_skills(caplog: pytest.LogCaptureFixture) -> None:
    own, other = Own("one"), Own("other")
    with live([own, other], every=FAST) as skills:
        own.is_down = True
        other.names = ("another",)
        assert skills.wait_for_change(skills.catalog, 20).names == ("another", "one")
    assert "could not be loaded again" in caplog.text


def test_folders_and_sources_live_side_by_side(tmp_path: Path) -> None:
    write_skill(tmp_path / "here", "here")
    with live(str(tmp_path), [Own("there")], every=FAST) as skills:
        seen = skills.catalog
        assert seen.names == ("here", "there")
        write_skill(tmp_path / "new", "new")
        assert skills.wait_for_change(seen, 20).names == ("here", "new", "there")


def test_mistakes_are_reported_at_once() -> None:
    own = Own("one")
    own.is_down = True
    with pytest.raises(OSError, match="database"):
        live(own)
    with pytest.raises(SourceError, match="max_depth"):
        live(Own("one"), max_depth=3)  # type: ignore[call-overload]


# -- git repositories --------------------------------------------------------------------------------------------------


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repository")
    made.skill("skills/pdf", body="First.\n")
    made.write("skills/pdf/scripts/run.py", "print(1)\n", executable=True)
    made.write("README.md", "Not a skill.\n")
    made.commit(tag="v1.0.0")
    made.skill("skills/pdf", body="Second.\n")
    made.skill("more/csv")
    made.commit()
    return made


def body_of(source: object, name: str = "pdf") -> str:
    return Catalog.from_sources([source]).load(name).instructions  # type: ignore[list-item]


def test_skills_of_a_repository_need_no_install(repository: Repository) -> None:
    assert body_of(Source.git(repository.address)) == "Second."
    assert body_of(Source.git(repository.address, "v1.0.0")) == "First."
    assert body_of(Source.git(repository.address, "^1.0")) == "First."
    assert Source.git(repository.address, path="more").load().names == ("csv",)
    skill = Source.git(repository.address).load()["pdf"]
    assert skill.is_local
    assert (Path(skill.folder) / "scripts/run.py").is_file()


def test_a_live_repository_brings_new_commits_and_keeps_the_old_files(repository: Repository) -> None:
    source = Source.git(repository.address)
    with live(source, every=FAST) as skills:
        seen, session = skills.catalog, Session(skills)
        session.activate("pdf")
        repository.write("skills/pdf/references/new.md", "New.\n")
        repository.skill("skills/pdf", body="Third.\n")
        repository.commit()
        assert skills.wait_for_change(seen, 30).load("pdf").instructions == "Third."
        assert session.activate("pdf").instructions == "Third."
        assert seen["pdf"].read_body() == "Second.\n"  # a conversation that still has it goes on


def test_files_of_a_repository_end_with_the_process(repository: Repository) -> None:
    program = f"import prowess; print(prowess.Source.git({repository.address!r}).load()['csv'].folder)"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "prowess-git-" in printed
    assert not Path(printed.strip()).exists()


def test_a_repository_that_is_gone_is_an_issue_and_keeps_what_was_loaded(
    repository: Repository, tmp_path: Path
) -> None:
    source, never = Source.git(repository.address), Source.git(repository.address)
    strict = Source.git(repository.address, missing="error")
    source.load()
    repository.path.rename(tmp_path / "elsewhere")
    later = source.load()
    assert later.names == ("csv", "pdf")
    assert [issue.severity for issue in later.issues] == ["warning"]
    assert never.load().places[0].state == "not fetched"
    with pytest.raises(GitError):
        strict.load()


@pytest.mark.parametrize("address", ["https://example.com/skills.zip", "-x", "ext::sh -c id"])
def test_an_address_of_no_repository_is_refused(address: str) -> None:
    with pytest.raises((SourceError, GitError, ValueError)):
        Source.git(address).load()

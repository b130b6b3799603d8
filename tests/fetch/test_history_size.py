"""How much of a repository on this machine a look into its history takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.fetch.git.repository import GitRemote
from prowess.fetch.git.temporary_repository import TemporaryRepository
from tests.repositories import Repository

if TYPE_CHECKING:
    from pathlib import Path


def test_the_history_of_a_repository_on_this_machine_comes_without_files(tmp_path: Path) -> None:
    source = Repository(tmp_path / "source")
    for text in ("old", "new"):
        source.write("notes.md", text)
        source.commit(text)
    commits = source.git("rev-list", "HEAD").split()
    with TemporaryRepository(GitRemote(str(source.path), local=True)) as repository:
        repository.fetch_history(commits[0], 64)
        kinds = repository.run_offline("cat-file", "--batch-check=%(objecttype)", "--batch-all-objects").split()
        assert repository.find_commits(commits) == {*commits}
    assert {*kinds} == {b"commit"}

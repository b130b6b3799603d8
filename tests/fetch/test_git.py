"""The files of a commit, by path, from git's own daemon and over HTTP: what is fetched, and what is refused."""

from __future__ import annotations

import os
import tempfile
import threading
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.fetch.git.process import GitProgram, make_environment
from prowess.fetch.git.repository import GitRemote
from tests.repositories import Repository, skill_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from prowess.limits import Limits

LIMITS = prowess.Limits()


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "pdf")
    made.skill("")
    made.write("scripts/run.sh", "#!/bin/sh\n", executable=True)
    made.commit(tag="v1")
    return made


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Private places are made here, and none is left."""
    folder = tmp_path_factory.mktemp("private")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def files(remote: GitRemote, ref: str = "", limits: Limits = LIMITS) -> tuple[str, dict[str, tuple[bytes, bool]]]:
    with remote.open_commit(ref) as commit:
        read = commit.read_files(commit.files, limits)
        return commit.id, {file.path: (file.content, file.executable) for file in read}


def local(repo: Repository, **options: object) -> GitRemote:
    return GitRemote(str(repo.path), local=True, **options)  # type: ignore[arg-type]


def test_the_default_branch_as_files_with_their_modes(repo: Repository) -> None:
    commit, found = files(local(repo))
    assert commit == repo.git("rev-parse", "HEAD")
    assert found == {
        "SKILL.md": (skill_text("pdf").encode(), False),
        "scripts/run.sh": (b"#!/bin/sh\n", True),
    }


@pytest.mark.parametrize("kind", ["light", "annotated", "branch", "nested", "commit", "full"])
def test_a_version_may_be_a_tag_a_branch_or_a_commit(repo: Repository, kind: str) -> None:
    wanted = repo.git("rev-parse", "HEAD")
    repo.git("tag", "-a", "v1-signed", "-m", "x")
    repo.git("branch", "stable")
    repo.git("branch", "feature/x")
    repo.write("SKILL.md", skill_text("pdf", "Newer.\n"))
    newer = repo.commit()
    names = {
        "light": "v1",
        "annotated": "v1-signed",
        "branch": "stable",
        "nested": "feature/x",
        "commit": wanted,
        "full": "refs/tags/v1",
    }
    commit, found = files(local(repo), names[kind])
    assert commit == wanted
    assert found["SKILL.md"][0] == skill_text("pdf").encode()
    assert files(local(repo))[0] == newer


def test_a_tag_wins_over_a_branch_of_its_name(repo: Repository) -> None:
    tagged = repo.git("rev-parse", "v1")
    repo.git("checkout", "-q", "-b", "other")
    repo.skill("x")
    repo.commit()
    repo.git("branch", "v1")
    assert files(local(repo), "v1")[0] == tagged
    assert local(repo).resolve_ref("v1") == tagged


def test_a_version_is_resolved_to_its_commit_without_fetching(repo: Repository) -> None:
    head = repo.git("rev-parse", "HEAD")
    repo.git("tag", "-a", "signed", "-m", "x")
    for name in ("", "main", "v1", "signed"):
        assert local(repo).resolve_ref(name) == head
    assert local(repo).resolve_ref("0" * 40) == "0" * 40
    with pytest.raises(prowess.GitError) as caught:
        local(repo).resolve_ref("nope")
    assert caught.value.code == "unknown-version"


def test_a_version_that_does_not_exist_is_an_error_that_names_it(repo: Repository) -> None:
    for name in ("nope", "0" * 40):
        with pytest.raises(prowess.GitError) as caught:
            files(local(repo), name)
        assert caught.value.code == "unknown-version"


def test_a_repository_with_sha256_ids_is_read(tmp_path: Path) -> None:
    repo = Repository(tmp_path / "long", "--object-format=sha256")
    repo.skill("")
    wanted = repo.commit()
    assert len(wanted) == 64
    commit, found = files(local(repo))
    assert commit == wanted
    assert list(found) == ["SKILL.md"]


def test_an_empty_repository_and_a_folder_without_one_are_errors(tmp_path: Path) -> None:
    empty = Repository(tmp_path / "empty")
    (tmp_path / "plain").mkdir()
    for path in (empty.path, tmp_path / "plain", tmp_path / "missing"):
        with pytest.raises(prowess.GitError):
            files(GitRemote(str(path), local=True))


def test_only_the_commit_itself_is_fetched_not_its_history(repo: Repository) -> None:
    secret = repo.blob("once written, then removed")
    repo.write("old.txt", "once written, then removed")
    repo.commit()
    (repo.path / "old.txt").unlink()
    repo.commit()
    with local(repo).open_commit() as commit:
        assert commit.objects.file_size(secret) is None


def test_many_large_objects_are_read_one_by_one(tmp_path: Path) -> None:
    repo = Repository(tmp_path / "large")
    repo.skill("small")
    for number in range(5):
        repo.write(f"data/{number}.bin", bytes([number]) * (4 << 20))
    repo.commit()
    with local(repo).open_commit() as commit:
        wanted = [entry for entry in commit.files if entry.path.startswith("small/")]
        assert [file.path for file in commit.read_files(wanted, LIMITS)] == ["small/SKILL.md"]
        assert [file.content for file in commit.read_files(wanted, LIMITS)] == [skill_text("small").encode()]
        with pytest.raises(prowess.UnsafeTreeError) as caught:
            list(commit.read_files(commit.files, prowess.Limits(max_install_bytes=1 << 20)))
    assert caught.value.code == "too-many-bytes"


def test_a_file_that_the_server_leaves_out_is_asked_for_and_kept_within_the_bounds(repo: Repository) -> None:
    repo.git("config", "uploadpack.allowFilter", "true")
    repo.write("big.bin", b"x" * 5000)
    repo.commit()
    small = prowess.Limits(max_install_bytes=1000)
    with local(repo, limits=small).open_commit() as commit:
        assert "big.bin" in [entry.path for entry in commit.files]
        with pytest.raises(prowess.UnsafeTreeError) as caught:
            list(commit.read_files(commit.files, small))
    assert caught.value.code == "too-many-bytes"


# -- from a server -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["git", "http"])
def test_a_repository_is_fetched_from_a_server_on_this_machine(
    repo: Repository, servers: Mapping[str, str], scheme: str
) -> None:
    remote = GitRemote(f"{servers[scheme]}/pdf", schemes=(scheme,))
    commit, found = files(remote, "v1")
    assert commit == repo.git("rev-parse", "HEAD")
    assert found["scripts/run.sh"] == (b"#!/bin/sh\n", True)
    assert remote.resolve_ref() == commit
    assert files(remote, commit)[0] == commit


@pytest.mark.parametrize("scheme", ["git", "http"])
def test_a_server_is_not_asked_by_a_scheme_that_is_not_allowed(servers: Mapping[str, str], scheme: str) -> None:
    with pytest.raises(prowess.BadReferenceError) as caught:
        files(GitRemote(f"{servers[scheme]}/pdf"))
    assert caught.value.code == "bad-scheme"


def test_a_repository_that_the_server_does_not_have_is_an_error(repo: Repository, servers: Mapping[str, str]) -> None:
    for scheme in ("git", "http"):
        with pytest.raises(prowess.GitError) as caught:
            files(GitRemote(f"{servers[scheme]}/{repo.path.name}-not", schemes=(scheme,)))
        assert caught.value.code == "git-failed"


# -- the program -------------------------------------------------------------------------------------------------------


def test_a_git_runner_is_called_with_arguments_a_folder_and_an_environment(repo: Repository) -> None:
    asked: list[tuple[Sequence[str], str, Mapping[str, str]]] = []

    def run(args: Sequence[str], cwd: str, env: Mapping[str, str]) -> bytes:
        asked.append((args, cwd, env))
        return GitProgram()(args, cwd, env)

    assert files(local(repo, git=run))[0] == repo.git("rev-parse", "HEAD")
    assert [args[0] for args, _, _ in asked] == ["fetch", "cat-file"]
    fetch = asked[0][0]
    assert fetch[-3:] == ("--", f"file://{repo.path}", "HEAD")
    assert asked[0][2]["GIT_ALLOW_PROTOCOL"] == "file"
    assert asked[1][2]["GIT_ALLOW_PROTOCOL"] == ""
    assert {cwd for _, cwd, _ in asked} == {env["GIT_DIR"] for _, _, env in asked}


def test_git_sees_no_token_and_no_setting_that_was_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN", "GIT_SSL_NO_VERIFY", "GIT_CONFIG_PARAMETERS", "GIT_DIR"):
        monkeypatch.setenv(name, "hunter2")
    env = make_environment(("https",))
    assert "hunter2" not in " ".join(env.values())
    pairs = {env[f"GIT_CONFIG_KEY_{n}"]: env[f"GIT_CONFIG_VALUE_{n}"] for n in range(int(env["GIT_CONFIG_COUNT"]))}
    assert pairs["protocol.allow"] == "never"
    assert pairs["protocol.https.allow"] == "always"
    assert "protocol.file.allow" not in pairs
    assert env["GIT_CONFIG_GLOBAL"] == os.devnull
    assert env["GIT_TERMINAL_PROMPT"] == "0"


@pytest.mark.parametrize("which", [1, 2])
def test_an_interrupt_before_the_output_is_read_still_ends_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: int
) -> None:
    """It comes between two threads' starts, while git waits for nobody."""
    (tmp_path / "git").write_text("#!/bin/sh\necho $$ > number\nexec sleep 1000\n", encoding="utf-8")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    begun: list[threading.Thread] = []
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        begun.append(thread)
        if len(begun) == which:
            while not (number := tmp_path / "number").exists() or not number.read_text(encoding="ascii").strip():
                pass
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        GitProgram()(["fetch"], str(tmp_path), dict(os.environ))
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "number").read_text(encoding="ascii")), 0)
    assert not any(thread.is_alive() for thread in begun)


def test_a_machine_without_git_says_so(repo: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for path in (str(tmp_path / "nothing"), "relative/bin"):
        monkeypatch.setenv("PATH", path)
        with pytest.raises(prowess.GitError) as caught:
            files(local(repo))
        assert caught.value.code == "git-missing"


# -- commits by their first digits -------------------------------------------------------------------------------------


def test_the_first_digits_of_a_commit_name_it(repo: Repository) -> None:
    """Neither a tag nor a branch leads to it any more: only the history knows it."""
    old = repo.git("rev-parse", "HEAD")
    repo.git("tag", "--delete", "v1")
    repo.write("SKILL.md", skill_text("pdf", "Another.\n"))
    newest = repo.commit()
    commit, found = files(local(repo), old[:8])
    assert commit == old
    assert found["SKILL.md"][0] == skill_text("pdf").encode()
    assert files(local(repo), newest[:7])[0] == newest
    assert local(repo).resolve_ref(old[:8]) == old


def test_a_branch_that_is_written_like_a_commit_is_that_branch(repo: Repository) -> None:
    first = repo.git("rev-parse", "HEAD")
    repo.write("SKILL.md", skill_text("pdf", "Another.\n"))
    second = repo.commit()
    repo.git("branch", first[:8], second)
    assert files(local(repo), first[:8])[0] == second


@pytest.mark.parametrize("ask", [files, GitRemote.resolve_ref])
def test_digits_that_begin_no_commit_say_that_all_of_them_are_needed(
    repo: Repository, ask: Callable[[GitRemote, str], object]
) -> None:
    with pytest.raises(prowess.GitError, match="all 40 digits") as caught:
        ask(local(repo), "0123456789")
    assert caught.value.code == "unknown-version"


def test_a_history_beyond_the_limits_says_that_all_digits_are_needed(repo: Repository) -> None:
    def stopped(args: Sequence[str], cwd: str, env: Mapping[str, str]) -> bytes:
        if "--filter=tree:0" in args:
            raise prowess.GitError("git wrote more than 1 bytes", code="too-many-bytes")
        return GitProgram(LIMITS)(args, cwd, env)

    old = repo.git("rev-parse", "HEAD")
    with pytest.raises(prowess.GitError, match="all 40 digits") as caught:
        files(local(repo, git=stopped), old[:8])
    assert caught.value.code == "too-many-bytes"

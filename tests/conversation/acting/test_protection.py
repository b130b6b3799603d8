"""The edges of the sandbox inside the working folder: a command cannot change what later runs outside of the sandbox.

Every attack is a real shell command in a real sandbox. The same commands without a sandbox succeed, which
``test_without_a_sandbox_each_attack_succeeds`` shows.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.conversation.acting.sandbox import Jail, confine_command
from prowess.conversation.acting.sandbox.protection import find_protected
from prowess.conversation.acting.supervised import ProcessLimits, make_environment, run_under_supervisor
from tests.conversation.conftest import require_sandbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from prowess.conversation.acting.sandbox import Kind
    from tests.conversation.conftest import Acting

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="NOT TESTED: the sandboxes are for Linux")

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home folder beside the working folder, and no other place of the user."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "PROWESS_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def run(kind: Kind, work: Path, command: str, **options: object) -> prowess.ScriptResult:
    return prowess.Scripts(sandbox=kind, folder=work, **options).run_command(command)  # type: ignore[arg-type]


def git(folder: Path, *words: str) -> str:
    environment = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(folder.parent / "home")}
    done = subprocess.run(
        ["git", "-C", folder, *words], capture_output=True, encoding="utf-8", check=True, env=environment
    )
    return done.stdout


@cache
def _first_repository() -> Path:
    """A repository with one commit, made once for all tests, which copy it."""
    folder = Path(mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.email", "a@example.org")
    git(folder, "config", "user.name", "A")
    (folder / "a.txt").write_text("a\n")
    git(folder, "add", "a.txt")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def make_repository(folder: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("NOT TESTED: repositories in the working folder; git is not installed")
    return Path(shutil.copytree(_first_repository(), folder, dirs_exist_ok=True))


def put(path: Path, text: str = "as it was\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def read_tree(path: Path) -> dict[str, str]:
    """Return what is at a path, by relative paths; links with where they lead."""
    if path.is_symlink() or not path.exists():
        return {"": str(path.readlink())} if path.is_symlink() else {}
    if path.is_file():
        return {"": path.read_bytes().hex()}
    below = sorted(each for each in path.rglob("*"))
    return {
        str(each.relative_to(path)): str(each.readlink())
        if each.is_symlink()
        else each.read_bytes().hex()
        if each.is_file()
        else "/"
        for each in below
    }


# -- the attacks: what is in the folder before, the command, and what must stay as it was -----------------------------


def in_repository(work: Path) -> None:
    make_repository(work)
    put(work / ".git/hooks/pre-commit", "#!/bin/sh\nexit 0\n").chmod(0o755)


def in_bare_repository(work: Path) -> None:
    make_repository(work / "source")
    git(work, "clone", "-q", "--bare", "source", "bare")


def with_submodule(work: Path) -> None:
    make_repository(work.parent / "library")
    make_repository(work)
    git(
        work,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        f"{work.parent}/library",
        "deep/library",
    )


def with_worktree(work: Path) -> None:
    make_repository(work)
    git(work, "worktree", "add", "-q", "tree")


def with_rebase(work: Path) -> None:
    make_repository(work)
    put(work / ".git/rebase-merge/git-rebase-todo", "pick 1\n")


def with_hooks_elsewhere(work: Path) -> None:
    make_repository(work)
    git(work, "config", "core.hooksPath", "tools/hooks")
    put(work / "tools/hooks/pre-commit")


def with_linked_hook(work: Path) -> None:
    make_repository(work)
    put(work / "tools/check.sh")
    (work / ".git/hooks").mkdir(exist_ok=True)
    (work / ".git/hooks/pre-commit").symlink_to("../../tools/check.sh")


def with_included_configuration(work: Path) -> None:
    make_repository(work)
    git(work, "config", "include.path", "../tools/gitsettings")
    put(work / "tools/gitsettings", "[alias]\n\tx = status\n")


def with_configuration_that_is_included_twice_over(work: Path) -> None:
    with_included_configuration(work)
    put(work / "tools/gitsettings", "[include]\n\tpath = more\n")
    put(work / "tools/more", "[include]\n\tpath = gitsettings\n[core]\n\tfsmonitor = tools/watch.sh\n")
    put(work / "tools/watch.sh")


def with_included_configuration_to_come(work: Path) -> None:
    make_repository(work)
    git(work, "config", "include.path", "../tools/later")
    put(work / "tools/a.txt")


def with_own_configuration(written: str) -> Callable[[Path], None]:
    """Return what makes a repository for a user whose own configuration of git names places in the working folder."""

    def prepare(work: Path) -> None:
        make_repository(work)
        put(work / "tools/hooks/a.txt")
        put(work / "tools/mine", "[core]\n\tfsmonitor = watch.sh\n")
        put(work / "tools/watch.sh")
        put(work.parent / "home/.dotfiles/gitconfig", written.format(work=work))
        (work.parent / "home/.gitconfig").symlink_to(".dotfiles/gitconfig")

    return prepare


def with_repository_behind_a_link(work: Path) -> None:
    make_repository(work)
    (work / ".git").rename(work / "real-git")
    (work / ".git").symlink_to("real-git")


SWAP = "import ctypes, sys; ctypes.CDLL(None).renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2)"
ATTACKS: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "a hook is rewritten": (in_repository, "echo evil > .git/hooks/pre-commit", ".git/hooks"),
    "a hook is added": (in_repository, "echo evil > .git/hooks/post-checkout", ".git/hooks"),
    "a hook is moved in": (in_repository, "echo evil > x; mv x .git/hooks/pre-commit", ".git/hooks"),
    "a hook is copied in": (in_repository, "cp a.txt .git/hooks/post-merge", ".git/hooks"),
    "a hook is deleted": (in_repository, "rm -f .git/hooks/pre-commit", ".git/hooks"),
    "a hook is linked": (in_repository, "ln -sf ../../a.txt .git/hooks/pre-push", ".git/hooks"),
    "a hook has a new mode": (
        in_repository,
        "chmod 777 .git/hooks/pre-commit; echo evil >> .git/hooks/pre-commit",
        ".git/hooks",
    ),
    "the hooks are renamed": (
        in_repository,
        "mv .git/hooks .git/h; mkdir .git/hooks; echo evil > .git/hooks/x",
        ".git/hooks",
    ),
    "the configuration is appended to": (in_repository, "echo '[core] fsmonitor = evil' >> .git/config", ".git/config"),
    "git changes the configuration": (in_repository, "git config core.fsmonitor evil", ".git/config"),
    "the configuration is replaced": (
        in_repository,
        "cp .git/config c; mv -f c .git/config; rm .git/config",
        ".git/config",
    ),
    "the repository is renamed": (
        in_repository,
        "mv .git x; mkdir .git; cp -r x/* .git; echo '[core] fsmonitor = evil' >> .git/config",
        ".git/config",
    ),
    "the repository is swapped": (
        in_repository,
        f"cp -r .git y; echo evil >> y/config; python3 -c '{SWAP}' y .git",
        ".git/config",
    ),
    "the repository is deleted": (in_repository, "rm -rf .git/config .git/hooks .git", ".git/config"),
    "a hard link is made": (in_repository, "ln .git/config c && echo evil >> c", ".git/config"),
    "the attributes of git": (
        in_repository,
        "mkdir -p .git/info; echo '* filter=x' > .git/info/attributes",
        ".git/info/attributes",
    ),
    "a rebase gets a command": (
        with_rebase,
        "echo 'exec evil' > .git/rebase-merge/git-rebase-todo",
        ".git/rebase-merge",
    ),
    "a nested repository": (
        lambda work: make_repository(work / "one/two"),
        "echo '[core] fsmonitor = evil' >> one/two/.git/config",
        "one/two/.git/config",
    ),
    "a folder around a nested repository is renamed": (
        lambda work: make_repository(work / "one/two"),
        "mv one x; cp -r x one; echo evil >> one/two/.git/config",
        "one/two/.git/config",
    ),
    "a bare repository": (in_bare_repository, "echo '[core] fsmonitor = evil' >> bare/config", "bare/config"),
    "a submodule": (
        with_submodule,
        "echo '[core] fsmonitor = evil' >> .git/modules/deep/library/config",
        ".git/modules/deep/library/config",
    ),
    "a hook of a submodule": (
        with_submodule,
        "echo evil > .git/modules/deep/library/hooks/pre-commit",
        ".git/modules/deep/library/hooks",
    ),
    "the modules are renamed": (
        with_submodule,
        "mv .git/modules .git/m; cp -r .git/m .git/modules; echo evil >> .git/modules/deep/library/config",
        ".git/modules/deep/library/config",
    ),
    "a .git file": (with_submodule, "echo 'gitdir: ../../x' > deep/library/.git", "deep/library/.git"),
    "a .git file is replaced": (with_submodule, "rm deep/library/.git; mkdir deep/library/.git", "deep/library/.git"),
    "a linked worktree": (
        with_worktree,
        "echo ../../../x > .git/worktrees/tree/commondir",
        ".git/worktrees/tree/commondir",
    ),
    "hooks elsewhere": (with_hooks_elsewhere, "echo evil > tools/hooks/pre-commit", "tools"),
    "a hook that is a link": (with_linked_hook, "echo evil > tools/check.sh", "tools/check.sh"),
    "an included configuration": (with_included_configuration, "echo evil >> tools/gitsettings", "tools/gitsettings"),
    "a configuration that an included one includes": (
        with_configuration_that_is_included_twice_over,
        "echo evil >> tools/more",
        "tools/more",
    ),
    "a program that an included configuration names": (
        with_configuration_that_is_included_twice_over,
        "echo evil >> tools/watch.sh",
        "tools/watch.sh",
    ),
    "a configuration that is included and does not exist yet": (
        with_included_configuration_to_come,
        "echo evil > tools/later",
        "tools/later",
    ),
    "a configuration that the user's own includes": (
        with_own_configuration("[include]\n\tpath = {work}/tools/mine\n"),
        "echo evil >> tools/mine",
        "tools/mine",
    ),
    "a configuration that is included with a comment": (
        with_own_configuration("[include] path = {work}/tools/mine # ours\n"),
        "echo evil >> tools/mine",
        "tools/mine",
    ),
    "a configuration that is included in two lines": (
        with_own_configuration('[include]\n\tPath = {work}/too\\\nls/"mine" ; ours\n'),
        "echo evil >> tools/mine",
        "tools/mine",
    ),
    "a program that it names": (
        with_own_configuration('[includeIf "gitdir:~/"]\n\tpath = {work}/tools/mine\n'),
        "echo evil >> tools/watch.sh",
        "tools/watch.sh",
    ),
    "a configuration that the user's own includes and that does not exist yet": (
        with_own_configuration("[include]\n\tpath = {work}/tools/later\n"),
        "echo evil > tools/later",
        "tools/later",
    ),
    "hooks of the user's own": (
        with_own_configuration("[core]\n\thooksPath = {work}/tools/hooks\n"),
        "echo evil > tools/hooks/pre-commit",
        "tools/hooks",
    ),
    "hooks of the user's own in every repository": (
        with_own_configuration("[core]\n\thooksPath = tools/hooks\n"),
        "echo evil > tools/hooks/pre-commit",
        "tools/hooks",
    ),
    "a template of the user's own": (
        with_own_configuration("[init]\n\ttemplateDir = {work}/tools\n"),
        "echo evil > tools/hooks/post-commit",
        "tools",
    ),
    "a repository behind a link": (
        with_repository_behind_a_link,
        "echo evil >> .git/config; echo evil >> real-git/config",
        "real-git/config",
    ),
    "a link to a repository is replaced": (
        with_repository_behind_a_link,
        "rm .git; mkdir .git; echo evil > .git/config",
        ".git",
    ),
    "another case of .git": (lambda work: put(work / ".GIT/config"), "echo evil > .GIT/config", ".GIT/config"),
    "Claude's settings": (
        lambda work: put(work / ".claude/settings.json"),
        "echo evil > .claude/settings.json",
        ".claude",
    ),
    "a new hook of Claude": (lambda work: put(work / ".claude/settings.json"), "mkdir .claude/hooks", ".claude"),
    "settings of Codex": (lambda work: put(work / ".codex/config.toml"), "rm -r .codex; mkdir .codex", ".codex"),
    "settings of Cursor": (lambda work: put(work / "a/b/.cursor/mcp.json"), "mv a/b a/c; mkdir -p a/b/.cursor", "a/b"),
    "servers of a project": (lambda work: put(work / ".mcp.json"), "echo evil > x; mv x .mcp.json", ".mcp.json"),
    "skills of Prowess": (
        lambda work: put(work / ".prowess/skills/a/b/SKILL.md"),
        "echo evil > .prowess/skills/a/b/SKILL.md",
        ".prowess",
    ),
    "a start-up file": (lambda work: put(work / ".bashrc"), "echo evil >> .bashrc", ".bashrc"),
    "a start-up file in dotfiles": (
        lambda work: put(work / "dotfiles/.zshrc"),
        "sed -i s/was/evil/ dotfiles/.zshrc",
        "dotfiles/.zshrc",
    ),
    "keys of ssh": (lambda work: put(work / ".ssh/authorized_keys"), "echo evil >> .ssh/authorized_keys", ".ssh"),
}


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("kind", ["bwrap", "landlock", pytest.param("none", marks=pytest.mark.sampled(0.2))])
def test_a_command_cannot_change_what_runs_outside(work: Path, kind: Kind, attack: str) -> None:
    """Without a sandbox each of the same commands succeeds, so that each can fail here."""
    require_sandbox(kind)
    prepare, command, kept = ATTACKS[attack]
    prepare(work)
    before = read_tree(work / kept)
    run(kind, work, command)
    assert (read_tree(work / kept) == before) is (kind != "none")


# -- Prowess itself ----------------------------------------------------------------------------------------------------

RUN_COMMANDS = """
import json, sys
import prowess

kind, *commands = sys.argv[1:]
scripts = prowess.Scripts(sandbox=kind, folder=".")
print(json.dumps([scripts.run_command(command).stdout for command in commands]))
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with a copy of Prowess, whose other packages are those of the tests."""
    folder = tmp_path_factory.mktemp("environment") / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    shutil.copytree(ROOT / "src/prowess", packages / "prowess", ignore=shutil.ignore_patterns("__pycache__"))
    others = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "others.pth").write_text("".join(f"{path}\n" for path in others))
    return folder


def test_a_command_cannot_replace_the_prowess_that_runs_it(jail: Kind, work: Path, environment: Path) -> None:
    """Prowess is in the project's own environment: the next command would be started by what this one wrote."""
    shutil.copytree(environment, work / ".venv", symlinks=True)
    before = read_tree(work / ".venv")
    package = next(work.glob(".venv/lib/python*/site-packages/prowess")).relative_to(work)
    commands = (
        f'echo \'open("pwned", "w")\' > {package}/conversation/acting/supervisor.py',
        f"cd {package}/conversation/acting && cp supervisor.py s && mv s supervisor.py",
        "rm -f .venv/bin/python; echo evil > .venv/bin/python",
        "echo 'import os' > .venv/lib/x.pth; echo evil >> .venv/pyvenv.cfg",
        "mv .venv x; cp -r x .venv; rm -rf .venv/lib",
        "echo still works",
    )
    # Python's own bytecode, written outside of the sandbox, is not an attack.
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    words = [work / ".venv/bin/python", "-c", RUN_COMMANDS, jail, *commands]
    done = subprocess.run(words, cwd=work, env=env, capture_output=True, check=True)
    assert json.loads(done.stdout)[-1] == "still works\n"
    assert read_tree(work / ".venv") == before
    assert not (work / "pwned").exists()


def test_a_file_that_shares_its_disk_space_with_prowess_is_protected(jail: Kind, work: Path, environment: Path) -> None:
    """Some installers link the files of all environments to one cache."""
    own, other = shutil.copytree(environment, work.parent / "own", symlinks=True), work / "env/site-packages"
    package = next(own.glob("lib/python*/site-packages/prowess"))
    shutil.copytree(package / "format", other / "format", copy_function=os.link)
    command = (
        "cd env/site-packages/format && for f in *.py; do echo evil >> $f; done; rm -f text.py; echo x > ../../../ok"
    )
    subprocess.run([own / "bin/python", "-c", RUN_COMMANDS, jail, command], cwd=work, capture_output=True, check=True)
    assert [file.name for file in package.rglob("*.py") if "evil" in file.read_text()] == []


def test_a_command_cannot_grant_itself_with_the_home_folder_as_working_folder(
    jail: Kind, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither where the user has grants already, nor where there is no configuration folder yet."""
    monkeypatch.setenv("HOME", str(work))
    command = "mkdir -p .config/prowess; echo '{}' > .config/prowess/trust.json"
    result = run(jail, work, command)
    assert not (work / ".config").exists()
    assert "nothing can be made" in " ".join(result.sandbox_gaps)
    put(work / ".config/prowess/approvals.json")
    result = run(jail, work, f"{command}; mv .config x; {command}; mv .config/prowess .config/y; {command}")
    assert read_tree(work / ".config") == {"prowess": "/", "prowess/approvals.json": b"as it was\n".hex()}


@pytest.mark.parametrize(
    ("variable", "file"),
    [
        ("XDG_CONFIG_HOME", "prowess/trust.json"),
        ("XDG_STATE_HOME", "prowess/console.json"),
        ("PROWESS_CACHE_DIR", "urls/x"),
    ],
)
def test_moved_folders_of_prowess_are_protected(
    jail: Kind, work: Path, variable: str, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(work / "moved"))
    plant = f"mkdir -p moved/{Path(file).parent}; echo evil > moved/{file}"
    run(jail, work, plant)
    assert not (work / "moved").exists()
    put(work / "moved" / file)
    run(jail, work, f"{plant}; mv moved x; {plant}; rm -rf moved; {plant}")
    assert (work / "moved" / file).read_text() == "as it was\n"


def test_the_top_of_the_home_folder_takes_no_new_start_up_file(
    jail: Kind, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(work))
    put(work / "notes/a.txt")
    put(work / "b.txt")
    result = run(
        jail, work, "echo evil > .bash_profile; mkdir .claude; echo new > notes/a.txt; echo new > b.txt; mkdir notes/c"
    )
    assert sorted(path.name for path in work.iterdir()) == ["b.txt", "notes"]
    assert ((work / "notes/a.txt").read_text(), (work / "b.txt").read_text()) == ("new\n", "new\n")
    assert (work / "notes/c").is_dir()
    assert any(
        "nothing can be made, renamed or deleted directly in the working folder" in gap for gap in result.sandbox_gaps
    )


@pytest.mark.parametrize(
    "file",
    [
        ".oh-my-zsh/oh-my-zsh.sh",
        ".bash_completion",
        ".local/lib/python3/site-packages/usercustomize.py",
        ".kube/config",
        ".local/share/systemd/user/a.service",
    ],
)
def test_what_programs_read_in_the_home_folder_when_they_start_is_protected(
    jail: Kind, work: Path, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(work / "home"))
    put(work / "home" / file)
    put(work / "home/project/.env")
    evil, top = f"echo evil > home/{file}", f"home/{file}".split("/")[1]
    result = run(
        jail, work, f"{evil}; rm home/{file}; {evil}; mv home/{top} home/y; mv home x; echo > home/project/.env"
    )
    assert read_tree(work / "home") == {
        **{f"{parent}": "/" for parent in map(str, Path(file).parents) if parent != "."},
        file: b"as it was\n".hex(),
        "project": "/",
        "project/.env": b"\n".hex(),
    }, result


def test_projects_that_share_files_with_a_cache_in_the_home_folder_stay_open(
    jail: Kind, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As installers of packages do that link files, and tools that build in a cache."""
    monkeypatch.setenv("HOME", str(work))
    put(work / ".cache/store/a.js")
    put(work / "project/modules/b.js")
    os.link(work / ".cache/store/a.js", work / "project/modules/a.js")
    (work / ".cache/build").symlink_to(work / "project")
    run(jail, work, "echo new > project/modules/b.js; mkdir project/made; echo evil > .cache/store/b.js")
    assert (work / "project/modules/b.js").read_text() == "new\n"
    assert (work / "project/made").is_dir()
    assert [path.name for path in (work / ".cache/store").iterdir()] == ["a.js"]


def test_a_link_to_the_configuration_cannot_be_replaced(
    jail: Kind, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "home").mkdir()
    monkeypatch.setenv("HOME", str(work / "home"))
    put(work / "dotfiles/config/prowess/trust.json")
    (work / "home/.config").symlink_to("../dotfiles/config")
    evil = "mkdir -p home/.config/prowess; echo evil > home/.config/prowess/trust.json"
    run(jail, work, f"{evil}; rm home/.config; {evil}; mv home x; {evil}; mv dotfiles y; {evil}")
    assert (work / "home/.config/prowess/trust.json").read_text() == "as it was\n"
    assert (work / "home/.config").is_symlink()


def test_a_program_on_the_search_path_cannot_be_planted(
    jail: Kind, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sandbox program itself is looked for on the search path."""
    (work / "tools/bin").mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{work}/tools/bin{os.pathsep}{os.environ['PATH']}")
    run(jail, work, "echo evil > tools/bin/bwrap; mv tools t; mkdir -p tools/bin; echo evil > tools/bin/bwrap")
    assert read_tree(work / "tools") == {"bin": "/"}


def test_a_folder_of_the_search_path_that_is_missing_cannot_be_made(
    jail: Kind, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(work / "tools/a.txt")
    monkeypatch.setenv("PATH", f"{work}/tools/bin{os.pathsep}{os.environ['PATH']}")
    run(jail, work, "mkdir tools/bin; echo evil > tools/bin/bwrap; mv tools t; mkdir -p tools/bin; echo > tools/a.txt")
    assert read_tree(work / "tools") == {"a.txt": b"\n".hex()}


def test_what_the_host_names_is_protected_too(jail: Kind, work: Path) -> None:
    put(work / "runs/one.jsonl")
    run(jail, work, "echo evil >> runs/one.jsonl; rm -rf runs", protect=(str(work / "runs/one.jsonl"),))
    assert (work / "runs/one.jsonl").read_text() == "as it was\n"


def test_a_script_cannot_change_the_grants_that_let_it_run(jail: Kind, acting: Acting) -> None:
    """The program keeps its grants in the working folder of the scripts."""
    before = acting.trust
    skill = acting.granted({"scripts/a.sh": "echo '{}' > trust.json; rm -f trust.json; echo ran"})
    grants = Path(before.path).read_text()
    result = prowess.Scripts(sandbox=jail, folder=acting.base).run(skill, "scripts/a.sh", trust=before)
    assert (result.stdout, Path(before.path).read_text()) == ("ran\n", grants)


def test_odd_names_and_loops_of_links_do_no_harm(jail: Kind, work: Path) -> None:
    put(work / "two\nlines/.git/config")
    put(work / "-x/.claude/a")
    (work / ".git").symlink_to(".git")
    (work / ".codex").symlink_to("..")
    result = run(
        jail, work, "echo evil > 'two\nlines/.git/config'; echo evil > ./-x/.claude/a; rm .git .codex; echo ran"
    )
    assert result.stdout == "ran\n"
    assert read_tree(work / "two\nlines/.git/config") == read_tree(work / "-x/.claude/a") == {"": b"as it was\n".hex()}
    assert [(work / name).is_symlink() for name in (".git", ".codex")] == [True, True]
    assert all("\n" not in gap for gap in result.sandbox_gaps)


# -- what does not exist yet -------------------------------------------------------------------------------------------


def test_a_repository_without_hooks_gets_none_from_a_command(jail: Kind, work: Path) -> None:
    in_repository(work)
    for name in ("hooks", "info"):
        shutil.rmtree(work / ".git" / name, ignore_errors=True)
    command = "mkdir -p .git/hooks .git/info; echo evil > .git/hooks/pre-commit; echo evil > .git/info/attributes"
    run(jail, work, command)
    assert read_tree(work / ".git/hooks") == read_tree(work / ".git/info") == {}


def test_a_repository_is_not_led_to_another_configuration(jail: Kind, work: Path) -> None:
    in_repository(work)
    result = run(
        jail, work, "cp -r .git evil; echo ../evil > .git/commondir; touch .git/config.worktree; test -e .git/HEAD"
    )
    assert result.ok
    assert not {"commondir", "config.worktree"} & {path.name for path in (work / ".git").iterdir()}
    if jail == "bwrap":
        assert ".git/commondir was deleted" in " ".join(result.sandbox_gaps)


def test_what_a_command_made_is_protected_from_the_next_one(bwrap: Kind, work: Path) -> None:
    assert run(
        bwrap, work, "mkdir -p sub/.git .claude; echo one > sub/.git/config; echo one > .claude/settings.json"
    ).ok
    run(bwrap, work, "echo two > sub/.git/config; echo two > .claude/settings.json")
    assert (work / "sub/.git/config").read_text() == (work / ".claude/settings.json").read_text() == "one\n"


# -- ordinary work -----------------------------------------------------------------------------------------------------


def test_ordinary_work_in_a_repository_goes_on(bwrap: Kind, work: Path) -> None:
    in_repository(work)
    commands = (
        "echo new > b.txt; mkdir -p src/deep; echo x > src/deep/c.txt; mv b.txt d.txt; ln -s d.txt e; chmod +x d.txt",
        "git add -A && git rm -q a.txt && git commit -q -m second && git log --oneline",
        "git checkout -q -b topic && echo more >> d.txt && git commit -q -a -m third && git checkout -q main",
        "git merge -q topic && git stash list && git tag v1 && git status --porcelain",
    )
    for command in commands:
        result = run(bwrap, work, command)
        assert (result.status, result.stderr, result.sandbox_gaps) == (0, "", ()), command
    assert git(work, "log", "--format=%s").split() == ["third", "second", "first"]
    assert git(work, "status", "--porcelain") == ""


def test_with_landlock_the_top_of_a_repository_takes_nothing_new(work: Path) -> None:
    in_repository(work)
    put(work / "src/b.txt")
    result = run(
        require_sandbox("landlock"), work, "echo 2 > a.txt; mkdir src/c; mv src/b.txt src/d.txt; echo new > new.txt"
    )
    assert (work / "a.txt").read_text() == "2\n"
    assert sorted(path.name for path in (work / "src").iterdir()) == ["c", "d.txt"]
    assert not (work / "new.txt").exists()
    gap = "nothing can be made, renamed or deleted directly in the working folder, .git, because of protected entries"
    assert [each for each in result.sandbox_gaps if each.startswith(gap)] != []


def test_a_folder_with_nothing_protected_is_as_open_as_before(jail: Kind, work: Path) -> None:
    result = run(jail, work, "echo new > a.txt; mkdir -p b/c; mv a.txt b/c; rm -r b; echo done > d.txt")
    assert result.ok
    assert [gap for gap in result.sandbox_gaps if gap.startswith("nothing can be made")] == []
    assert [path.name for path in work.iterdir()] == ["d.txt"]


def test_without_a_folder_of_the_host_nothing_is_searched(jail: Kind) -> None:
    scripts = prowess.Scripts(sandbox=jail, limits=prowess.Limits(max_searched_entries=0))
    assert scripts.run_command("mkdir .git; echo x > .git/config; cat .git/config").stdout == "x\n"


# -- refusals ----------------------------------------------------------------------------------------------------------


def refuse(kind: Kind, work: Path, **options: object) -> prowess.SandboxError:
    with pytest.raises(prowess.SandboxError) as caught:
        run(kind, work, "echo ran > ran", **options)
    assert not (work / "ran").exists()
    return caught.value


def test_a_folder_with_too_many_entries_to_search_is_refused(jail: Kind, work: Path) -> None:
    for number in range(20):
        put(work / f"{number % 4}/{number}.txt")
    assert run(jail, work, "true", limits=prowess.Limits(max_searched_entries=24)).ok
    error = refuse(jail, work, limits=prowess.Limits(max_searched_entries=23))
    assert (error.code, error.path) == ("folder-too-large", str(work))
    assert "more than 23 entries" in error.message
    assert "max_searched_entries" in error.hint


def test_a_folder_with_too_many_protected_entries_is_refused(jail: Kind, work: Path) -> None:
    for number in range(3):
        put(work / f"{number}/.bashrc")
    assert run(jail, work, "true", limits=prowess.Limits(max_protected_entries=6)).ok  # with the folders around them
    error = refuse(jail, work, limits=prowess.Limits(max_protected_entries=5))
    assert (error.code, "more than 5 entries" in error.message) == ("folder-too-large", True)


@pytest.mark.parametrize("name", ["home/.config/prowess", "home/.local/state/prowess/x", "home/.cache/prowess/skills"])
def test_a_folder_of_prowess_is_not_a_working_folder(jail: Kind, tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir(parents=True)
    error = refuse(jail, tmp_path / name)
    assert (error.code, "Prowess's" in error.message) == ("unsafe-folder", True)


def test_a_command_cannot_reach_around_the_protection_from_a_second_sandbox(bwrap: Kind, work: Path) -> None:
    """Both commands run at one time; the second one starts when the first has a repository of its own."""
    in_repository(work)
    swap = (
        "mkdir -p sub/.git; i=0; while [ $i -lt 300 ]; do mv sub s; ln -s /etc sub; rm sub; mv s sub; i=$((i+1)); done"
    )
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(run, bwrap, work, swap)
        results = [run(bwrap, work, "cat sub/passwd; echo evil >> .git/config") for _ in range(5)]
        first.result()
    assert "evil" not in (work / ".git/config").read_text()
    assert all("root:" not in result.stdout for result in results)


def test_folders_with_code_are_not_working_folders(jail: Kind, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = Path(prowess.__file__).parent
    for folder in (package, package / "agent", Path(sys.prefix), Path(sys.executable).parent, Path(os.__file__).parent):
        assert refuse(jail, folder).code == "unsafe-folder"
    (work / ".git/hooks").mkdir(parents=True)
    assert refuse(jail, work / ".git/hooks").code == "unsafe-folder"
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}{work}")
    assert "search path" in refuse(jail, work).message


def test_a_link_to_a_folder_of_prowess_is_refused(jail: Kind, work: Path, tmp_path: Path) -> None:
    (tmp_path / "home/.config/prowess").mkdir(parents=True)
    (work / "link").symlink_to(tmp_path / "home/.config/prowess")
    assert refuse(jail, work / "link").code == "unsafe-folder"


# -- races -------------------------------------------------------------------------------------------------------------


def test_a_folder_that_is_swapped_for_a_link_while_the_sandbox_is_made_opens_nothing(
    jail: Kind, work: Path, tmp_path: Path
) -> None:
    """Another program in the same folder swaps a folder between the search and the mount."""
    put(work / "sub/.git/config")
    put(tmp_path / "outside/.git/config", "secret\n")
    protected = find_protected(str(work), prowess.Limits())
    (work / "sub").rename(work / "moved")
    (work / "sub").symlink_to(tmp_path / "outside")
    folders = [tmp_path / name for name in ("skill", "tmp", "shm")]
    for folder in folders:
        folder.mkdir()
    skill, temporary, memory = map(str, folders)
    made = Jail(skill, str(work), temporary, memory, protected=protected)
    confined = confine_command(jail, ["/bin/sh", "-c", "cat sub/.git/config; echo evil > sub/new; echo ran"], made)
    finished = run_under_supervisor(confined, ProcessLimits(20, 4096), cwd=str(work), env=make_environment())
    assert b"secret" not in finished.stdout
    assert sorted(path.name for path in (tmp_path / "outside").iterdir()) == [".git"]
    if jail == "bwrap":
        assert (finished.stdout, finished.status == 0) == (b"", False)


# -- keys --------------------------------------------------------------------------------------------------------------


GIVE_AWAY = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
tries = [
    lambda: os.chmod("a", 0o4755),
    lambda: os.chmod("a", 0o2755),
    lambda: os.chmod(".", 0o2777),
    lambda: os.fchmod(os.open("a", os.O_RDONLY), 0o6755),
    lambda: os.open("b", os.O_CREAT | os.O_WRONLY, 0o4755),
    lambda: os.mknod("c", 0o104755),
    lambda: os.mknod("d", 0o020666, os.makedev(1, 3)),
    lambda: os.setxattr("a", "security.capability", bytes.fromhex("0000000200040000000000000000000000000000")),
    lambda: os.link(f"/proc/self/fd/{os.open('.', os.O_TMPFILE | os.O_RDWR, 0o4755)}", "e", follow_symlinks=True),
]
for one in tries:
    try:
        one()
    except OSError:
        pass
    else:
        print("done:", tries.index(one))
"""


def test_no_file_gets_the_rights_of_the_user_for_others(jail: Kind, work: Path, acting: Acting) -> None:
    (work / "a").write_bytes(b"#!/bin/sh\n")
    ran = acting.run("scripts/give.py", GIVE_AWAY, sandbox=jail, folder=work)
    found = {path.name: path.lstat().st_mode & 0o6000 for path in (work, *work.iterdir())}
    assert not any(found.values()), (found, ran)
    assert not (work / "d").exists()
    assert "security.capability" not in os.listxattr(work / "a")
    assert (ran.status, ran.stdout) == (0, "")


@pytest.mark.parametrize("network", [False, True])
def test_a_command_reaches_no_program_that_listens_in_the_folder(jail: Kind, work: Path, network: bool) -> None:
    """Docker in the home folder, tmux, or a server of the project: what they are told runs outside of the sandbox."""
    with socket.socket(socket.AF_UNIX) as listener:
        place = os.open(work, os.O_PATH)  # the path of a socket has 107 characters at most
        listener.bind(f"/proc/self/fd/{place}/listener")
        os.close(place)
        listener.listen()
        listener.settimeout(0)
        reach = "import socket; socket.socket(socket.AF_UNIX).connect('listener')"
        result = run(jail, work, f'/usr/bin/python3 -c "{reach}"', network=network)
        assert "PermissionError" in result.stderr
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_the_names_of_keys_are_hidden(jail: Kind, work: Path) -> None:
    if not Path("/proc/keys").exists():
        pytest.skip("NOT TESTED: the names of keys; this kernel has none")
    result = run(jail, work, "cat /proc/keys /proc/key-users; cat /proc/self/../keys")
    assert result.stdout == ""

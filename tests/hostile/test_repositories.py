"""Hostile addresses, versions, repositories and git servers."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.fetch.git.process import GitProgram, make_environment, make_git_error
from prowess.fetch.git.temporary_repository import read_user_settings
from prowess.files.directory import folder_size
from tests.git_servers import demand_password, http
from tests.repositories import Repository, skill_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

    from tests.git_servers import Handler
    from tests.hostile.installer_case import InstallerCase
    from tests.hostile.invariants import Library

MARKED = "hunter2-TOPSECRET-MARKER"

# -- addresses and versions --------------------------------------------------------------------------------------------

OPTIONS = (
    *("--upload-pack=touch pwned", "-u./x", "-oProxyCommand=touch pwned", "ssh://-oProxyCommand=touch%20pwned/y"),
    *("git@host:-x", "host:-x", "ssh://git@-oProxyCommand=x/y", "ssh://host/-oProxyCommand=x", "--config=core.x=y/z"),
)


@pytest.mark.parametrize("address", OPTIONS)
def test_an_address_that_is_an_option_is_refused(case: InstallerCase, address: str) -> None:
    """Case 78: this holds for text, and for a source that a program made."""
    case.assert_refused(lambda: case.installer.install(address, project=True), "bad-reference", "bad-scheme")
    case.assert_refused(
        lambda: case.installer.install(prowess.SourceSpec("git", address, "acme", "pdf"), project=True),
        *("bad-reference", "bad-scheme"),
    )


def test_a_naive_fetch_runs_what_the_address_says(library: Library, naive_installer: ModuleType) -> None:
    """Twin of case 78: the option names a program, and git runs it."""
    repo = Repository(library.base / "any")
    repo.skill("")
    repo.commit()
    pwned = library.base / "pwned"
    with pytest.raises(RuntimeError):
        naive_installer.fetch(library.base / "dest", f"--upload-pack=touch {pwned};#", str(repo.path))
    assert pwned.exists()


SCHEMES = (
    *("ext::sh -c touch% pwned", "fd::17", "git://127.0.0.1/x", "http://127.0.0.1/x.git", "ftp://127.0.0.1/x.git"),
    *("javascript:alert(1)", "ftps://h/x.git", "gopher://h/x", "rsync://h/x.git", "file://host/etc"),
)


@pytest.mark.parametrize("address", SCHEMES)
def test_a_scheme_that_is_not_on_the_list_is_refused(case: InstallerCase, address: str) -> None:
    """Case 79: the address is refused before git is started."""
    for given in (address, prowess.SourceSpec("git", address, "acme", "pdf")):
        case.assert_install_refused(given, "bad-scheme", "bad-reference")


def test_a_path_is_a_repository_only_when_the_caller_named_a_path(case: InstallerCase) -> None:
    """Case 79: an address never leads to a folder of this machine."""
    private = case.repository("private")
    case.assert_install_refused(prowess.SourceSpec("folder", str(private.path), "acme", "pdf"), "bad-reference")
    for address in (f"file://{private.path}", str(private.path), f"ext::git-upload-pack {private.path}"):
        spec = prowess.SourceSpec("git", address, "acme", "pdf")
        case.assert_install_refused(spec, "bad-scheme", "bad-reference")


def test_a_redirect_does_not_lead_to_another_scheme(case: InstallerCase) -> None:
    """Case 79: the server sends git to a file of this machine, and git does not go."""
    private = case.repository("private")

    def redirect(handler: Handler) -> bool:
        handler.send_response(302)
        handler.send_header("Location", f"file://{private.path}/info/refs")
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return True

    installer = case.make(schemes=("http",))
    with http(case.base / "repositories", redirect) as server:
        case.assert_refused(lambda: installer.install(f"{server.address}/private.git", project=True), "git-failed")


def test_a_naive_clone_takes_any_scheme(library: Library, naive_installer: ModuleType) -> None:
    """Twin of case 79: a repository of this machine is cloned because an address said so."""
    private = Repository(library.base / "private")
    private.write("secret.md", "TOPSECRET-MARKER")
    private.commit()
    cloned = naive_installer.clone(f"file://{private.path}", library.base / "dest")
    assert "TOPSECRET-MARKER" in (cloned / "secret.md").read_text(encoding="utf-8")


VERSIONS = (
    "--foo",
    "-b",
    "x;y",
    "HEAD^{/x}",
    "@{-1}",
    "refs/../../x",
    "x" * 10_000,
    "a\nb",
    "a b",
    "$(touch pwned)",
    "+x:y",
)


@pytest.mark.parametrize("version", VERSIONS, ids=lambda text: text[:12])
def test_a_version_that_git_could_misunderstand_is_refused(case: InstallerCase, version: str) -> None:
    """Case 80: this holds in a reference, after an address, in a source and in an update."""
    repo = case.repository("pdf")
    for given in (
        f"@acme/pdf@{version}",
        f"{repo.address}#{version}",
        prowess.SourceSpec("git", str(repo.path), "acme", "pdf", version, local=True),
        prowess.SkillRef("acme", "pdf", version),
    ):
        case.assert_install_refused(given, "bad-version", "bad-reference", "unknown-skill")
    case.assert_refused(lambda: case.installer.update(prowess.SkillRef("local", "good", version)))


def test_a_naive_checkout_takes_an_option_for_a_version(library: Library, naive_installer: ModuleType) -> None:
    """Twin of case 80: the version makes a branch."""
    repo = Repository(library.base / "any")
    repo.skill("")
    repo.commit()
    naive_installer.git("checkout", "-bpwned", cwd=repo.path)
    assert "pwned" in repo.git("branch")


# -- what a repository holds -------------------------------------------------------------------------------------------


def with_submodule(base: Path, url: str) -> Repository:
    """A repository with a skill, and a submodule that leads to ``url``."""
    repo = Repository(base / "repositories" / "sub")
    repo.skill("skills/sub")
    repo.write(".gitmodules", f'[submodule "x"]\n\tpath = modules/x\n\turl = {url}\n\tupdate = !touch pwned\n')
    repo.commit()
    private = repo.git("rev-parse", "HEAD")
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{private},modules/x")
    repo.git("commit", "-qm", "submodule")
    return repo


@pytest.mark.parametrize("url", ["file:///etc", "ext::sh -c touch% pwned", "https://127.0.0.1:9/x", "../private"])
def test_submodules_are_never_fetched(case: InstallerCase, url: str) -> None:
    """Case 82: a submodule beside a skill is left out. A skill that holds one is refused."""
    repo = with_submodule(case.base, url)
    with case.assert_unharmed():
        path = case.installer.install(repo.address, project=True)
        assert not (path / "modules").exists()
    repo.git("mv", "skills/sub/SKILL.md", "SKILL.md")
    repo.git("commit", "-qm", "on top")
    case.assert_refused(lambda: case.installer.install(repo.address), "submodule")


def test_a_naive_clone_fetches_submodules(library: Library, naive_installer: ModuleType) -> None:
    """Twin of case 82: a private repository of this machine comes along."""
    private = Repository(library.base / "private")
    private.write("secret.md", "TOPSECRET-MARKER")
    commit = private.commit()
    repo = Repository(library.base / "outer")
    repo.write(".gitmodules", f'[submodule "x"]\n\tpath = x\n\turl = {private.path}\n')
    repo.git("add", ".gitmodules")
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{commit},x")
    repo.git("commit", "-qm", "submodule")
    env = {"GIT_ALLOW_PROTOCOL": "file"}
    cloned = naive_installer.clone(repo.address, library.base / "dest", "--recurse-submodules", env=env)
    assert (cloned / "x" / "secret.md").is_file()


def config_that_runs(base: Path) -> dict[str, str]:
    """A home with every setting that makes git run something, each leaving its mark."""
    home = base / "configured"
    hooks = home / "hooks"
    hooks.mkdir(parents=True)
    program = home / "run"
    program.write_text(f"#!/bin/sh\ntouch {base}/pwned-$(basename $0)\ncat\n", encoding="utf-8")
    program.chmod(0o755)
    for name in ("post-checkout", "post-merge", "reference-transaction", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {base}/pwned-{name}\n", encoding="utf-8")
        (hooks / name).chmod(0o755)
    (home / "included").write_text(f"[core]\n\tsshCommand = {program}\n", encoding="utf-8")
    (home / ".gitconfig").write_text(
        f"[core]\n\thooksPath = {hooks}\n\tfsmonitor = {program}\n\tattributesFile = {home}/attributes\n"
        f'[filter "evil"]\n\tsmudge = {program}\n\trequired = true\n[include]\n\tpath = {home}/included\n'
        f'[filter "lfs"]\n\tsmudge = {program}\n\tprocess = {program}\n[protocol "ext"]\n\tallow = always\n'
        f"[init]\n\ttemplateDir = {home}\n[uploadpack]\n\tpackObjectsHook = {program}\n",
        encoding="utf-8",
    )
    (home / "attributes").write_text("* filter=evil\n", encoding="utf-8")
    return {"HOME": str(home), "GIT_TEMPLATE_DIR": str(home), "GIT_EXTERNAL_DIFF": str(program)}


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0000\nsize 12345\n"


def with_attributes(base: Path) -> Repository:
    """A repository whose attributes ask for filters, with a pointer to a large file."""
    repo = Repository(base / "repositories" / "filtered")
    repo.write("big.bin", POINTER)
    repo.skill("")
    repo.write(".lfsconfig", "[lfs]\n\turl = https://127.0.0.1:9\n")
    repo.commit()
    repo.write(".gitattributes", "* filter=evil\n*.bin filter=lfs export-subst\n")
    repo.commit()
    return repo


def test_nothing_runs_whatever_the_settings_say(case: InstallerCase, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 83: hooks, monitors, filters, templates and includes do not run. The bytes are those of the objects."""
    repo = with_attributes(case.base)
    for name, value in config_that_runs(case.base).items():
        monkeypatch.setenv(name, value)
    with case.assert_unharmed():
        path = case.installer.install(repo.address, project=True)
        assert (path / "big.bin").read_text(encoding="utf-8") == POINTER
        assert sorted(p.name for p in path.iterdir()) == [".gitattributes", ".lfsconfig", "SKILL.md", "big.bin"]


def test_a_naive_clone_runs_hooks_and_filters(library: Library, naive_installer: ModuleType) -> None:
    """Twin of case 83: the hook and the filter both run."""
    repo = with_attributes(library.base)
    env = config_that_runs(library.base)
    with pytest.raises(RuntimeError):  # the pointer's program does not speak the protocol of such programs
        naive_installer.clone(repo.address, library.base / "dest", env=env)
    assert list(library.base.glob("pwned*"))


def entries(repo: Repository, secret: Path) -> dict[str, tuple[tuple[str, str, str], ...]]:
    """Folders that git itself would not make, each with what is wrong in it."""
    skill, x = repo.blob(skill_text("evil")), repo.blob("x")
    link, inner = repo.blob(str(secret)), repo.tree(("100644", "config", x))
    commit = repo.git("commit-tree", "-m", "x", repo.tree(("100644", "f", x)))
    own = ("100644", "SKILL.md", skill)
    return {
        "link": (own, ("120000", "leak.md", link)),
        "link in place of the skill": (("120000", "SKILL.md", link), ("40000", "x", repo.tree(own))),
        "gitlink": (own, ("160000", "module", commit)),
        "upper .GIT": (("40000", ".GIT", inner), own),
        ".git": (("40000", ".git", inner), own),
        "short .git": (("40000", "GIT~1", inner), own),
        "slash": (own, ("100644", "a/../../b", x)),
        "dots": (("40000", "..", inner), own),
        "dot": (("40000", ".", inner), own),
        "backslash": (own, ("100644", "a\\b", x)),
        "empty": (("100644", "", x), own),
        "twice": (own, own),
        "case": (("100644", "A", x), ("100644", "a", x), own),
        "case of a folder": (("40000", "A", inner), ("40000", "a", inner), own),
        "file and folder": (("100644", "a", x), ("40000", "a", inner), own),
        "unicode form": (("100644", "caf\u00e9", x), ("100644", "cafe\u0301", x), own),
        "device": (own, ("100644", "con.md", x)),
        "trailing dot": (own, ("100644", "a.", x)),
        "colon": (own, ("100644", "a:b", x)),
        "not text": (own, ("100644", "\udcff", x)),
        "newline": (own, ("100644", "a\nb", x)),
        "escape": (own, ("100644", "\x1b[2J", x)),
        "mode": (own, ("100000", "odd", x)),
        "device mode": (own, ("60000", "dev", x)),
    }


WRONG = (
    *(
        "link",
        "gitlink",
        "upper .GIT",
        ".git",
        "short .git",
        "slash",
        "dots",
        "dot",
        "backslash",
        "empty",
        "twice",
        "case",
    ),
    *("case of a folder", "file and folder", "unicode form", "device", "trailing dot", "colon", "not text", "newline"),
    *("escape", "mode", "device mode"),
)


@pytest.mark.parametrize("wrong", WRONG)
def test_entries_that_no_skill_may_hold_refuse_it(case: InstallerCase, wrong: str) -> None:
    """Case 84: links, submodules, odd names and names that differ in case only are refused."""
    repo = Repository(case.base / "repositories" / "evil")
    repo.commit_tree(repo.tree(*entries(repo, case.library.outside / "secret.md")[wrong]))
    error = case.assert_refused(lambda: case.installer.install(repo.address, project=True))
    assert error.code in {
        *("link-in-skill", "submodule", "unsafe-name", "case-collision", "bad-file-name", "special-file"),
        "git-failed",  # git itself refuses to send some of them
    }
    assert str(error).isprintable()


def test_a_skill_that_is_a_link_is_not_found(case: InstallerCase) -> None:
    """Case 84: SKILL.md is a link to a secret."""
    repo = Repository(case.base / "repositories" / "evil")
    made = entries(repo, case.library.outside / "SKILL.md")["link in place of the skill"]
    repo.commit_tree(repo.tree(*made))
    with case.assert_unharmed():
        path = case.installer.install(repo.address, project=True)
        assert not os.path.lexists(path / "SKILL.md")


def test_a_naive_clone_writes_links(library: Library, naive_installer: ModuleType) -> None:
    """Twin of case 84: whoever reads the file of the skill reads the secret."""
    repo = Repository(library.base / "evil-repo")
    (repo.path / "leak.md").symlink_to(library.outside / "secret.md")
    repo.skill("")
    repo.commit()
    cloned = naive_installer.clone(repo.address, library.base / "dest")
    assert "TOPSECRET-MARKER" in (cloned / "leak.md").read_text(encoding="utf-8")


# -- too much, too slow ------------------------------------------------------------------------------------------------

SMALL = prowess.Limits(
    max_install_bytes=200_000, max_install_files=50, max_tree_entries=500, max_fetch_bytes=3 << 20, max_fetch_seconds=60
)


def huge(base: Path, kind: str) -> Repository:
    """A repository with a great deal of something."""
    repo = Repository(base / "repositories" / "huge")
    repo.skill("")
    if kind == "blob":
        repo.write("big.bin", b"\0" * (64 << 20))
        repo.git("config", "uploadpack.allowFilter", "true")
    elif kind == "bytes":
        repo.write("big.bin", os.urandom(8 << 20))
    elif kind == "zeros":
        for number in range(4):
            repo.write(f"{number}.bin", bytes([number]) * (6 << 20))
    elif kind in {"files", "entries"}:
        for number in range(60 if kind == "files" else 600):
            repo.write(f"f/{number}", str(number))
    else:
        for number in range(5):
            repo.write("big.bin", os.urandom(2 << 20))
            repo.commit(str(number))
        (repo.path / "big.bin").unlink()
    repo.commit()
    return repo


@pytest.mark.parametrize(
    ("kind", "codes"),
    [
        ("blob", ("missing-blob", "too-many-bytes")),
        ("bytes", ("too-many-bytes", "missing-blob")),
        ("zeros", ("too-many-bytes", "missing-blob")),
        ("files", ("too-many-files",)),
        ("entries", ("too-many-files",)),
    ],
)
def test_a_repository_with_too_much_is_refused_within_bounds(
    case: InstallerCase, kind: str, codes: tuple[str, ...]
) -> None:
    """Case 85: one large file, many bytes or many files end the fetch, and nothing is left."""
    repo = huge(case.base, kind)
    installer = case.make(limits=SMALL)
    case.assert_refused(lambda: installer.install(repo.address, project=True), *codes)


def test_a_long_history_is_not_fetched(case: InstallerCase) -> None:
    """Case 85: the repository has ten megabytes of history, and the limit is three."""
    repo = huge(case.base, "history")
    with case.assert_unharmed():
        case.make(limits=SMALL).install(repo.address, project=True)


def test_a_naive_clone_writes_whatever_comes(library: Library, naive_installer: ModuleType) -> None:
    """Twin of case 85: more than the bound lies on the disk."""
    repo = huge(library.base, "history")
    cloned = naive_installer.clone(repo.address, library.base / "dest")
    assert folder_size(str(cloned)) > SMALL.max_fetch_bytes


@contextmanager
def silent_server(*, drip: bool = False) -> Iterator[str]:
    """A server that takes connections and says nothing, or a byte now and then."""
    listener = socket.create_server(("127.0.0.1", 0))
    held: list[socket.socket] = []
    over = threading.Event()

    def accept() -> None:
        while not over.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            held.append(connection)
            if drip:
                connection.send(b"0fff")  # a long line, which never ends
            while drip and not over.wait(0.3):
                try:
                    connection.send(b"x")
                except OSError:
                    break

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        over.set()
        listener.shutdown(socket.SHUT_RDWR)  # a close alone leaves the thread waiting in accept
        listener.close()
        for connection in held:
            connection.close()
        thread.join(5)


@pytest.mark.parametrize("scheme", ["http", "git"])
def test_a_server_that_never_answers_is_not_waited_for(case: InstallerCase, scheme: str) -> None:
    """Case 86: the fetch ends with a typed error after the idle time, and no process is left."""
    impatient = prowess.Limits(max_idle_seconds=1.0, max_fetch_seconds=30.0)
    with silent_server() as host:
        installer = case.make(schemes=(scheme,), limits=impatient)
        error = case.assert_refused(lambda: installer.install(f"{scheme}://{host}/x.git", project=True))
    assert error.code in {"git-timeout", "git-failed"}


def test_a_server_that_answers_byte_by_byte_is_not_waited_for_either(case: InstallerCase) -> None:
    """Case 86: there is a limit on the total time."""
    impatient = prowess.Limits(max_idle_seconds=30.0, max_fetch_seconds=2.0)
    with silent_server(drip=True) as host:
        installer = case.make(schemes=("git",), limits=impatient)
        case.assert_refused(lambda: installer.install(f"git://{host}/x.git", project=True), "git-timeout", "git-failed")


def test_a_server_that_wants_a_password_gets_no_prompt(case: InstallerCase, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 86: nobody is asked, neither on the terminal nor by a program."""
    asked = case.base / "pwned-asked"
    program = case.base / "ask"
    program.write_text(f"#!/bin/sh\ntouch {asked}\necho secret\n", encoding="utf-8")
    program.chmod(0o755)
    for name in ("GIT_ASKPASS", "SSH_ASKPASS"):
        monkeypatch.setenv(name, str(program))

    installer = case.make(schemes=("http",))
    with http(case.base / "repositories", demand_password) as server:
        case.assert_refused(lambda: installer.install(f"{server.address}/x.git", project=True), "git-failed")


# Does with a host that it does not know what ssh does: fails when it may not ask, else asks.
_SSH = """\
#!/bin/sh
printf '%s\\0' "$@" > '{seen}/argv'
env > '{seen}/env'
case " $* " in
*" -oBatchMode=yes "*) echo 'Host key verification failed.' >&2 ;;
*) touch '{seen}/pwned-asked' ;;
esac
exit 255
"""


@pytest.fixture
def ssh(library: Library, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program named ssh that comes first on PATH; the folder where it writes what it was started with."""
    seen = library.base / "ssh-saw"
    program = library.base / "programs" / "ssh"
    for folder in (seen, program.parent):
        folder.mkdir()
    program.write_text(_SSH.format(seen=seen), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return seen


def _arguments(seen: Path) -> list[str]:
    return (seen / "argv").read_text(encoding="utf-8").split("\0")[:-1]


SSH_ADDRESSES = (
    ("ssh://git@127.0.0.1:9/acme/x.git", ["git@127.0.0.1", "git-upload-pack '/acme/x.git'"]),
    ("ssh://127.0.0.1/a'$(touch%20p)'/x.git", ["127.0.0.1", r"git-upload-pack '/a'\''$(touch p)'\''/x.git'"]),
    ("git@127.0.0.1:acme/x.git", ["git@127.0.0.1", "git-upload-pack 'acme/x.git'"]),
)


@pytest.mark.parametrize(("address", "operands"), SSH_ADDRESSES)
def test_an_ssh_host_that_is_not_known_is_refused_without_a_question(
    case: InstallerCase, ssh: Path, monkeypatch: pytest.MonkeyPatch, address: str, operands: list[str]
) -> None:
    """Case 86: Prowess tells ssh not to ask and not to trust new hosts, and reports the refusal of ssh."""
    for name in ("GIT_SSH", "GIT_ASKPASS", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, MARKED)
    error = case.assert_refused(lambda: case.installer.install(address, project=True), "git-failed")
    assert "Host key verification failed." in error.message
    argv = _arguments(ssh)
    assert {"-oBatchMode=yes", "-oStrictHostKeyChecking=yes", "-oPermitLocalCommand=no"} <= set(argv)
    assert argv[-2:] == operands
    assert all(word.startswith("-") or before in {"-o", "-p"} for before, word in pairwise(argv[:-2]))
    given = (ssh / "env").read_text(encoding="utf-8")
    assert MARKED not in given
    assert "GIT_TERMINAL_PROMPT=0" in given.splitlines()


@pytest.mark.parametrize("address", ["ssh://-oProxyCommand=x/y.git", "git@-oProxyCommand=x:y.git", "git@host:-x.git"])
def test_what_ssh_would_take_for_an_option_does_not_reach_it(case: InstallerCase, ssh: Path, address: str) -> None:
    """Case 78: ssh is not even started."""
    for given in (address, prowess.SourceSpec("git", address, "acme", "pdf")):
        case.assert_install_refused(given, "bad-reference", "bad-scheme")
    assert list(ssh.iterdir()) == []


def test_the_real_ssh_understands_what_it_is_told(case: InstallerCase, ssh: Path, tmp_path: Path) -> None:
    """Case 86: ssh asks nothing and trusts no new host, although its own settings allow that."""
    beyond = os.environ["PATH"].partition(os.pathsep)[2]
    real = shutil.which("ssh", path=beyond)
    if real is None:
        pytest.skip("needs ssh")
    case.assert_install_refused(SSH_ADDRESSES[0][0], "git-failed")
    config = tmp_path / "lax"
    config.write_text("Host *\n  BatchMode no\n  StrictHostKeyChecking no\n  ForwardAgent yes\n", encoding="utf-8")
    done = subprocess.run([real, "-G", "-F", str(config), *_arguments(ssh)], capture_output=True, text=True, check=True)
    says = dict(row.partition(" ")[::2] for row in done.stdout.splitlines())
    assert (says["batchmode"], says["forwardagent"], says["permitlocalcommand"]) == ("yes", "no", "no")
    assert says["stricthostkeychecking"] in {"yes", "true"}


def test_a_naive_clone_has_ssh_ask(library: Library, naive_installer: ModuleType, ssh: Path) -> None:
    """Twin of case 86: whoever sits there may say yes to any host."""
    with pytest.raises(RuntimeError):
        naive_installer.clone("ssh://git@127.0.0.1:9/acme/x.git", library.base / "dest")
    assert (ssh / "pwned-asked").exists()


def test_a_naive_clone_waits(library: Library, naive_installer: ModuleType) -> None:
    """Twin of case 86: it waits until somebody kills it."""
    with silent_server() as host, pytest.raises(subprocess.TimeoutExpired):
        naive_installer.clone(f"git://{host}/x.git", library.base / "dest", timeout=2)


# -- secrets -----------------------------------------------------------------------------------------------------------

TOKENS = ("GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN", "GIT_TOKEN")


def test_a_token_of_the_environment_goes_to_no_server_and_into_no_process(
    case: InstallerCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 87: it is in no header, argument, file, environment of git or error."""
    for name in TOKENS:
        monkeypatch.setenv(name, MARKED)
    case.repository("evil")
    seen: list[str] = []

    def watching(args: object, cwd: str, env: object) -> bytes:
        seen.append(f"{args} {env}")
        return GitProgram()(args, cwd, env)  # type: ignore[arg-type]

    installer = case.make(schemes=("http",), git=watching)
    with http(case.base / "repositories") as server, case.assert_unharmed():
        spec = prowess.SourceSpec("git", f"{server.address}/evil", "acme", "evil")
        installer.install(spec, project=True)
        said = f"{server.seen} {seen}"
    assert server.seen
    assert MARKED not in said
    assert "uthorization" not in str(server.seen)


def test_credentials_come_from_the_users_helper_and_stay_out_of_sight(
    case: InstallerCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 87: the helper is asked for the host, and its answer goes to that host only."""
    home = case.base / "nobody"
    home.mkdir(exist_ok=True)
    helper = f'!f() {{ test "$1" = get && printf "username=me\\npassword={MARKED}\\n"; }}; f'
    (home / ".gitconfig").write_text(f'[credential]\n\thelper = "{_quoted(helper)}"\n', encoding="utf-8")
    case.repository("evil")
    headers: list[str] = []

    def protected(handler: Handler) -> bool:
        given = handler.headers.get("Authorization", "")
        headers.append(given)
        return demand_password(handler)

    found = read_user_settings(GitProgram(), str(case.base)).select_pairs("https://127.0.0.1")
    assert ("credential.helper", helper) in found
    env = make_environment(("http",), found)
    monkeypatch.setenv("HOME", str(home))
    with http(case.base / "repositories", protected) as server:
        printed = GitProgram()(["ls-remote", "--", f"{server.address}/evil", "HEAD"], str(case.base), env)
    assert printed.endswith(b"HEAD\n")
    assert any(header.startswith("Basic ") for header in headers)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def test_a_naive_address_gives_the_token_to_any_host(library: Library, naive_installer: ModuleType) -> None:
    """Twin of case 87: the server of somebody else reads it."""
    repo = Repository(library.base / "repositories" / "evil")
    repo.skill("")
    repo.commit()

    with http(library.base / "repositories", demand_password) as server:
        naive_installer.clone(naive_installer.with_token(f"{server.address}/evil", "hunter2"), library.base / "dest")
    assert any("Authorization" in headers for _, headers in server.seen)


@pytest.mark.parametrize("address", [f"https://u:{MARKED}@127.0.0.1:9/x.git", f"https://{MARKED}@127.0.0.1:9/x.git"])
def test_an_address_with_a_secret_is_refused_and_not_repeated(case: InstallerCase, address: str) -> None:
    """Case 88: this holds for text, and a source with such an address cannot even be made."""
    with pytest.raises(prowess.BadReferenceError) as caught:
        prowess.SourceSpec("git", address, "acme", "pdf")
    for error in (case.assert_install_refused(address, "secret-in-address"), caught.value):
        assert error.code == "secret-in-address"
        assert MARKED not in f"{error} {error!r} {error.__dict__}"


def test_what_git_says_is_cleaned_of_secrets_and_escapes() -> None:
    """Case 88: a server puts an address with a password, and a control sequence, into its answer."""
    error = make_git_error(f"remote: \x1b[2Jnope\nfatal: unable to access 'https://u:{MARKED}@h/x/': denied\n")
    assert MARKED not in str(error)
    assert str(error).isprintable()
    assert "denied" in error.message


def test_a_naive_error_repeats_the_password(library: Library, naive_installer: ModuleType) -> None:
    """Twin of case 88: the message holds the password in full."""
    with pytest.raises(RuntimeError, match="hunter2"):
        naive_installer.clone("http://u:hunter2@127.0.0.1:9/x.git", library.base / "dest")


# -- versions that move ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["branch", "tag", "force"])
def test_a_version_that_moved_does_not_change_what_is_locked(case: InstallerCase, how: str) -> None:
    """Case 89: the commit is pinned: a locked sync gives its bytes, or fails and says both hashes."""
    repo = case.repository("evil")
    repo.git("tag", "v1")
    path = case.installer.install(f"{repo.address}#{'v1' if how == 'tag' else 'main'}", project=True)
    before = (path / "SKILL.md").read_bytes()
    if how == "force":
        repo.git("checkout", "-q", "--orphan", "other")
    repo.skill("", "evil", body="Moved.\n")
    repo.commit()
    repo.git("tag", "-f", "v1")
    if how == "force":
        repo.git("branch", "-f", "main")
    shutil.rmtree(path)
    assert [one.full_name for one in case.installer.sync(locked=True)] == ["local/evil"]
    assert (path / "SKILL.md").read_bytes() == before
    assert case.installer.verify() == ()


def test_other_content_under_the_locked_commit_is_refused_with_both_hashes(case: InstallerCase) -> None:
    """Case 89: the repository was replaced by another one, or the lock file was."""
    repo = case.repository("evil")
    path = case.installer.install(repo.address, project=True)
    lock = case.project / "prowess.lock"
    commit = repo.git("rev-parse", "HEAD")
    repo.skill("", "evil", body="Moved.\n")
    moved = repo.commit()
    lock.write_text(lock.read_text(encoding="utf-8").replace(commit, moved), encoding="utf-8")
    shutil.rmtree(path)
    with pytest.raises(prowess.LockMismatchError) as caught:
        case.installer.sync(locked=True)
    assert caught.value.message.count("digest ") == 1
    assert len([word for word in caught.value.message.replace(",", " ").split() if len(word) == 64]) == 2
    assert not path.exists()


def test_a_naive_sync_takes_what_the_branch_has_now(library: Library, naive_installer: ModuleType) -> None:
    """Twin of case 89: it installs other bytes than were locked, without a word."""
    repo = Repository(library.base / "moving")
    repo.skill("")
    repo.commit()
    first = naive_installer.clone(repo.address, library.base / "first")
    repo.skill("", body="Moved.\n")
    repo.commit()
    second = naive_installer.clone(repo.address, library.base / "second")
    assert (first / "SKILL.md").read_bytes() != (second / "SKILL.md").read_bytes()

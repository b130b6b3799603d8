"""Every command of the command line with a hostile skill, source, file, folder or argument.

The output is checked as text, as JSON and on a terminal.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import struct
import sys
import termios
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

import prowess
from prowess.cli.entry_point import COMMANDS
from tests.cli_processes import fork_command, run_command
from tests.repositories import Repository

if TYPE_CHECKING:
    from collections.abc import Callable

# Clears the screen, sets a title, rings, hides text in a link, C1 CSI, overwrites the line, turns the text around,
# ends the line in every way there is, hides between characters.
EVIL = (
    "\x1b[2J\x1b]0;owned\x07\x1b]8;;http://x\x1b\\click\x9b31m\x85\rgone\x7f\u202e\u2066\u2028\u2029\u200b\ufeff"
    "\U000e0041\nFORGED: all is well\n"
)
RAW = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
FORGED = re.compile(r"^FORGED", re.MULTILINE)
DRAWN = re.compile(r"\x1b\[(?:\?25[lh]|[0-9;]*[mAK])|\r(?=\x1b\[2K|\x1b\[1A|\n)")
"""What we draw with ourselves: colours, and a bar that is erased again."""
IN_YAML = json.dumps(EVIL.replace("\U000e0041", ""))[1:-1]
IN_NAME = "na\x1b[2Jme\x07\x9b\u202e\u2028\nFORGED"
BYTES = b"sur\xffrogate"
SKILLS = ".agents/skills"
TRUSTED = ("trust", "grant", f"./{SKILLS}/evil", "--yes")


class Case(NamedTuple):
    """A command line; what is done before; whether what is hostile must be seen, made harmless, in its text."""

    words: tuple[str, ...]
    before: Callable[[], object] = lambda: None
    seen: bool = True
    env: tuple[tuple[str, str], ...] = ()


def put(path: str | bytes, content: str | bytes) -> None:
    """Write a file, whatever its name."""
    where = os.fsencode(path)
    os.makedirs(os.path.dirname(where) or b".", exist_ok=True)  # noqa: PTH103, PTH120
    with open(where, "wb") as file:  # noqa: PTH123 - names that are not text
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


def skill_text(name: str, body: str = "Do it.\n") -> str:
    fields = "\n".join(f'{field}: "{IN_YAML}"' for field in ("license", "compatibility", "version", "model", "hooks"))
    return (
        f'---\nname: {name}\ndescription: "Does {IN_YAML} it."\n{fields}\nmetadata:\n  "k{IN_YAML}": "{IN_YAML}"\n'
        f'tags: ["{IN_YAML}"]\nallowed-tools: "Bash(echo {IN_YAML})"\n---\n{body}'
    )


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose path, skills, files, settings and programs all say it."""
    home = tmp_path / "ho\x1b[2Jme"
    project = home / f"pro{IN_NAME}"
    (project / ".git").mkdir(parents=True)
    monkeypatch.chdir(project)
    for name in list(os.environ):
        if name.startswith("PROWESS_") and name != "PROWESS_TEST_SEED":
            monkeypatch.delenv(name)
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    body = EVIL.replace("\nFORGED: all is well\n", "")
    put(f"{SKILLS}/evil/SKILL.md", skill_text("evil", f"Body {body}\n\nThere are !`printf '\\033[2J'` of them.\n"))
    put(f"{SKILLS}/evil/references/odd.md", f"File {body}\n")
    put(f"{SKILLS}/evil/references/{IN_NAME}.md", "x")
    put(f"{SKILLS}/evil/scripts/say.py", f"import sys\nprint({body!r})\nprint({body!r}, file=sys.stderr)\n")
    put(f"{SKILLS}/evil/evals/t.json", json.dumps([{"query": EVIL, "should_trigger": True}] * 2))
    put(f"{SKILLS}/bro{IN_NAME}/SKILL.md", "nothing\n")
    put(f"{SKILLS}/other/SKILL.md", skill_text("Other" + "er"))
    put(SKILLS.encode() + b"/" + BYTES + b"/SKILL.md", "---\nname: x\n---\n")
    put(".claude/skills/evil/SKILL.md", skill_text("evil"))
    put("prowess.toml", f'[settings]\n"o{IN_YAML}" = 1\nfilter = "{IN_YAML}"\ndialect = "{IN_YAML}"\n')
    return project


def source() -> None:
    """A skill that can be installed, though what it says is hostile."""
    put("elsewhere/notes/SKILL.md", skill_text("notes", "Do it.\n"))


def odd_source() -> None:
    """A skill with file names that cannot be installed."""
    source()
    put(f"elsewhere/notes/{IN_NAME}.md", "x")


def installed() -> None:
    source()
    prowess.Installer().install("./elsewhere/notes", project=True)


def odd_backup() -> None:
    """A folder among the backups that no command of ours named."""
    (Path(".prowess/skills/.backup") / f"x{IN_NAME}+edited+18f2a3b4c5d-0123456789ab").mkdir(parents=True)


def hostile_policy() -> None:
    """Policy files of the project whose every string is hostile, and an installed skill that they revoke."""
    installed()
    digest = prowess.discover()["notes"].digest()
    put("prowess-policy.toml", f'[sources]\nallow = ["{IN_YAML}"]\n')
    put("prowess-revoked.toml", f'[[skill]]\ndigest = "{digest}"\nreason = "{IN_YAML}"\n')


def bad_policy() -> None:
    put("prowess-policy.toml", f'[run]\n"x{IN_YAML}" = "{IN_YAML}"\n')


def linked() -> None:
    installed()
    prowess.Installer().link("@local/notes", ["claude-code"])


def edited() -> None:
    """Changed at its source: every line of the difference is hostile."""
    installed()
    put("elsewhere/notes/SKILL.md", skill_text("notes", f"{EVIL}\nand more {EVIL}\n"))


def changed_lock() -> None:
    """A lock file without installs, beside one with a skill whose every line is hostile."""
    source()
    put("elsewhere/notes/SKILL.md", skill_text("notes", f"{EVIL}\nand more {EVIL}\n"))
    prowess.Installer().install("./elsewhere/notes", project=True)
    put("empty/prowess.lock", "version = 1\n")


def tampered() -> None:
    """Changed where it is installed, by files with hostile names."""
    installed()
    put(f".prowess/skills/local/notes/{IN_NAME}", "x")
    put(b".prowess/skills/local/notes/" + BYTES, "x")


def repository() -> None:
    """A repository whose commit, branch, tag and file names say it."""
    made = Repository(Path("repositories/pair").absolute())
    made.skill("skills/alpha")
    made.write("skills/alpha/SKILL.md", skill_text("alpha"))
    made.write(f"docs/{IN_NAME}.md", "x")
    made.commit(f"Say {EVIL}", tag="v1\u202e")


def talking_git() -> None:
    """A git that fails with hostile words."""
    put("bin/git", "#!/bin/sh\nprintf 'fatal: \\033[2J\\007 owned \\302\\233 \\r\\nFORGED\\n' >&2\nexit 128\n")
    Path("bin/git").chmod(0o755)


def bad_lock() -> None:
    put("prowess.lock", f'version = 1\n[[skill]]\nname = "local/{IN_YAML}"\nsource = "x"\n')


def conflicted() -> None:
    """A lock file in conflict whose labels and entries say it."""
    entry = f'[[skill]]\nname = "local/{EVIL}"\nsource = "x"\n'
    put("prowess.lock", f"version = 1\n<<<<<<< {EVIL}\n{entry}=======\n>>>>>>> {EVIL}\n")


def archive() -> None:
    """An archive with a member that says it."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        file.writestr("SKILL.md", skill_text("notes"))
        file.writestr(f"references/{IN_NAME}.md", "x")
    put("evil.zip", made.getvalue())


def good_archive() -> None:
    """An archive with hostile fields only."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        file.writestr("SKILL.md", skill_text("notes"))
    put(f"a{IN_NAME}.zip", made.getvalue())


def trusted() -> None:
    prowess.Trust().grant(prowess.read_metadata(f"{SKILLS}/evil", mode="lenient"))


def mangled_grants() -> None:
    put(f"{os.environ['HOME']}/.config/prowess/trust.json", json.dumps({"version": 1, "grants": EVIL}))


def talking_model() -> None:
    """A model that says hostile words, calls tools with them, and is answered by hostile skills."""
    said = EVIL.replace("\nFORGED: all is well\n", "")
    calls = [
        {"tool": "load_skill", "arguments": {"name": "evil"}},
        {"tool": "read_skill_file", "arguments": {"name": "evil", "path": "references/odd.md"}},
        {"tool": EVIL, "arguments": {EVIL: EVIL}},
        {"tool": "Bash", "arguments": {"command": EVIL}},
        {"tool": "Write", "arguments": {"path": EVIL, "content": EVIL}},
        {"tool": "Read", "arguments": EVIL},
    ]
    put("turns.json", json.dumps({"turns": [{"text": said, "calls": calls}, {"text": said}]}))


def evals_elsewhere() -> None:
    cases = [{"query": "a", "skill": "evil"}, {"query": EVIL, "skill": f"x{EVIL}"}]
    put(f"e{IN_NAME}.json", json.dumps(cases))


def hostile_tasks() -> None:
    """Tasks whose words, files and checks say it, and a model that answers them with more of it."""
    talking_model()
    checks = [{"text": EVIL}, {"file": IN_NAME, "contains": EVIL}, {"command": f"printf {EVIL}"}]
    cases = [{"query": f"a {EVIL}", "checks": checks[:2]}, {"query": f"b {EVIL}", "checks": checks}]
    put(f"{SKILLS}/evil/evals/t.json", json.dumps(cases))


EVAL_AGENT = ("eval", f"{SKILLS}/evil", "--with-model", "--runs", "1", "--dir", SKILLS)
GIT = (("PATH", f"bin{os.pathsep}{os.environ['PATH']}"),)
CASES: dict[str, tuple[Case, ...]] = {
    "list": (Case(("list",)), Case(("list", f"x{EVIL}")), Case(("list", "--agent", EVIL))),
    "show": (Case(("show", f"./{SKILLS}/evil")), Case(("show", EVIL))),
    "read": (
        Case(("read", "evil")),
        Case(("read", "evil", "references/odd.md")),
        Case(("read", "evil", EVIL)),
    ),
    "search": (
        Case(("search", "does", "evil")),
        Case(("search", "does", "evil", "--why")),
        Case(("search", EVIL, "--why")),
        Case(("search", "--prepare", "--words"), seen=False),
    ),
    "explain": (
        Case(("explain", "evil")),
        Case(("explain", EVIL)),
        Case(("explain", "evil", "--query", EVIL)),
    ),
    "prompt": (
        Case(("prompt",), seen=False),
        Case(("prompt", "--style", "text", "--query", EVIL, "--tools")),
        Case(("prompt", "--query", f"does evil {EVIL}", "--window", "5000"), seen=False),
    ),
    "ui": (
        Case(("ui", SKILLS, "--export", "site"), seen=False),
        Case(("ui", f"x{EVIL}", "--export", "site")),
        Case(("ui", SKILLS, "--export", f"site{IN_NAME}")),
        Case(("ui", SKILLS, "--bind", EVIL)),
        Case(("ui", SKILLS, "--bind", "127.0.0.1:0", "--token-file", f"t{EVIL}")),
        Case(("ui", SKILLS, "--allow-host", EVIL)),
    ),
    "doctor": (Case(("doctor",)), Case(("doctor",), bad_lock), Case(("doctor",), mangled_grants)),
    "new": (
        Case(("new", f"x{EVIL}")),
        Case(("new", "fresh", "--description", EVIL), seen=False),
        Case(("new", "fresh", "--dir", f"d{IN_NAME}")),
        Case(("new", "fresh", "--with", EVIL)),
    ),
    "check": (
        Case(("check", SKILLS)),
        Case(("check", SKILLS, "--format", "github")),
        Case(("check", SKILLS, "--diff")),
        Case(("check", f"x{EVIL}")),
    ),
    "preview": (Case(("preview", f"./{SKILLS}/evil", EVIL)), Case(("preview", EVIL))),
    "eval": (
        Case(("eval", f"{SKILLS}/evil", "--selector", "lexical")),
        Case(("eval", f"e{IN_NAME}.json", "--selector", "lexical"), evals_elsewhere),
        Case((*EVAL_AGENT, "--model", "scripted:turns.json"), hostile_tasks),
        Case((*EVAL_AGENT, "--model", f"scripted:{EVIL}")),
        Case((*EVAL_AGENT, "--model", "scripted:turns.json", "--results", f"x{EVIL}/r"), hostile_tasks),
    ),
    "pack": (
        Case(("pack", f"{SKILLS}/evil"), seen=False),
        Case(("pack", "elsewhere/notes", "-o", f"out{IN_NAME}/x.skill"), source),
        Case(("pack", "elsewhere/notes"), odd_source, seen=False),
    ),
    "publish": (
        Case(("publish", f"{SKILLS}/evil", "--version", "1", "--to", "./site", "--yes"), seen=False),
        Case(("publish", "elsewhere/notes", "--version", "1", "--to", f"./out{IN_NAME}", "--dry-run"), source),
        Case(("publish", f"evil{IN_NAME}@1", "--to", "./site"), seen=False),
    ),
    "unpublish": (Case(("unpublish", f"evil{IN_NAME}@1", "--from", "./site", "--reason", "x"), seen=False),),
    "unpack": (Case(("unpack", "evil.zip"), archive), Case(("unpack", f"a{IN_NAME}.zip"), good_archive, seen=False)),
    "install": (
        Case(("install", "./elsewhere/notes", "--project", "--yes"), source),
        Case(("install", "./elsewhere/notes", "--yes"), source),
        Case(("install", "./elsewhere/notes", "--project", "--yes"), odd_source),
        Case(("install", "./repositories/pair", "--project", "--yes", "--dry-run"), repository),
        Case(("install", "file://{here}/repositories/pair#v1\u202e", "--project", "--yes"), repository),
        Case(("install", "file://{here}/repositories/pair", "--project", "--yes"), talking_git, env=GIT),
        Case(("install", f"./x{EVIL}", "--yes")),
        Case(("install", "./elsewhere/notes", "--into", f"d{IN_NAME}", "--yes"), source),
    ),
    "remove": (Case(("remove", "notes", "--yes"), installed, seen=False), Case(("remove", EVIL, "--yes"), installed)),
    "sync": (
        Case(("sync", "--yes"), tampered),
        Case(("sync", "--locked"), tampered),
        Case(("sync", "--yes"), bad_lock),
    ),
    "update": (
        Case(("update", "--yes"), edited),
        Case(("update", "--yes"), tampered),
        Case(("update", EVIL, "--yes"), installed),
    ),
    "outdated": (Case(("outdated",), edited, seen=False), Case(("outdated",), bad_lock)),
    "lock": (
        Case(("lock", "--merge"), conflicted),
        Case(("lock", "--merge", "--ours", f"x{EVIL}", "--theirs", "y")),
    ),
    "verify": (Case(("verify",), tampered), Case(("verify",), bad_lock)),
    "diff": (
        Case(("diff", "notes"), tampered),
        Case(("diff", EVIL), installed),
        Case(("diff", "notes"), bad_lock),
        Case(("diff", "--lock", "empty/prowess.lock"), changed_lock),
        Case(("diff", "--lock", "empty/prowess.lock", "--format", "markdown"), changed_lock),
        Case(("diff", "--lock", "empty/prowess.lock", "--format", "github"), changed_lock, seen=False),
        Case(("diff", "--lock", f"x{EVIL}"), installed),
    ),
    "review": (
        Case(("review", "notes", "--yes"), changed_lock),
        Case(("review", "./elsewhere/notes", "--dry-run"), source, seen=False),
        Case(("review", f"x{EVIL}"), installed),
        Case(("review", "notes", "--yes"), bad_policy),
    ),
    "find": (
        Case(("find", "does", "--index", "./elsewhere"), source),
        Case(("find", EVIL, "--index", "./elsewhere"), source, seen=False),
        Case(("find", "does", "--index", f"./x{EVIL}")),
    ),
    "backups": (Case(("backups",), odd_backup),),
    "policy": (
        Case(("policy", "show"), hostile_policy),
        Case(("policy", "show"), bad_policy),
        Case(("policy", "check"), hostile_policy),
        Case(("policy", "check", "--format", "github"), hostile_policy),
        Case(("policy", "check", f"x{EVIL}")),
    ),
    "audit": (Case(("audit",), hostile_policy), Case(("audit", "--fix"), hostile_policy), Case(("audit",), bad_policy)),
    "inventory": (
        Case(("inventory",), installed, seen=False),
        Case(("inventory",), bad_lock),
        Case(("inventory", f"x{EVIL}")),
    ),
    "cache": (Case(("cache", "--verify"), odd_backup, seen=False), Case(("cache", "--prune", "--yes"), odd_backup)),
    "link": (
        Case(("link", "notes", "--agent", "claude-code", "--yes"), installed, seen=False),
        Case(("link", "notes", "--agent", EVIL, "--yes"), installed),
    ),
    "unlink": (
        Case(("unlink", "notes", "--agent", "claude-code", "--yes"), linked, seen=False),
        Case(("unlink", EVIL, "--agent", "claude-code", "--yes"), linked),
    ),
    "adopt": (
        Case(("adopt", "evil", "--yes")),
        Case(("adopt", "--yes")),
        Case(("adopt", EVIL, "--yes")),
    ),
    "trust": (
        Case(TRUSTED),
        Case(("trust", "list"), trusted, seen=False),
        Case(("trust", "revoke", f"./{SKILLS}/evil"), trusted, seen=False),
        Case(("trust", "revoke", EVIL), seen=False),
        Case(("trust", "grant", EVIL, "--yes")),
        Case(("trust", "list"), mangled_grants),
    ),
    "call": (
        Case(("call", "load_skill", '{"name": "evil"}', "--dialect", "prowess")),
        Case(("call", EVIL, "{}", "--dialect", "prowess")),
        Case(("call", "load_skill", f'{{"name": {json.dumps(EVIL)}}}', "--dialect", "prowess")),
        Case(("call", "load_skill", EVIL, "--dialect", "prowess")),
        Case(("call", "--dialect", "prowess"), seen=False),
    ),
    "run-script": (
        Case(("run-script", f"./{SKILLS}/evil", "scripts/say.py", "--sandbox", "none"), trusted),
        Case(("run-script", f"./{SKILLS}/evil", f"scripts/{EVIL}", "--sandbox", "none"), trusted),
    ),
    "run": (
        Case(("run", EVIL, "--model", "scripted:turns.json", "--dir", SKILLS), talking_model),
        Case(("run", "x", "--model", EVIL)),
        Case(("run", "x", "--model", f"scripted:{EVIL}")),
        Case(("run", "x", "--model", "x", "--base-url", f"http://{EVIL}")),
        Case(("run", "--resume", EVIL, "--model", "scripted:turns.json"), talking_model),
        Case(("run", "x", "--tools", EVIL, "--model", "scripted:turns.json"), talking_model),
    ),
    "try": (
        Case(("try", f"./{SKILLS}/evil", EVIL, "--model", "scripted:turns.json"), talking_model),
        Case(("try", EVIL, "x", "--model", "scripted:turns.json"), talking_model),
    ),
    "serve": (
        Case(("serve", "--check", SKILLS)),
        Case(("serve", "--check", f"x{EVIL}")),
        Case(("serve", "--http", EVIL)),
        Case(("serve", "--http", "127.0.0.1:0", "--token-file", f"t{EVIL}")),
    ),
    "demo": (Case(("demo", "--record", f"d{IN_NAME}.svg"), env=(("TMPDIR", "{here}"),)),),
    "config": (Case(("config",)), Case(("config", EVIL)), Case(("config", "filter"))),
    "completion": (Case(("completion", EVIL)), Case(("completion", "bash"), seen=False)),
    "": (Case((EVIL,)), Case((f"--{EVIL}",)), Case(("list", f"--{EVIL}"))),
}
ALL = [(name, number) for name, cases in CASES.items() for number in range(len(cases))]


@pytest.fixture(params=ALL, ids=lambda pair: f"{pair[0] or 'nothing'}-{pair[1]}")
def case(request: pytest.FixtureRequest, hostile: Path) -> Case:
    """Each command line, with what it needs."""
    name, number = request.param
    chosen: Case = CASES[name][number]
    chosen.before()
    words = tuple(word.replace("{here}", str(hostile)) for word in chosen.words)
    env = tuple((key, value.replace("{here}", str(hostile))) for key, value in chosen.env)
    return chosen._replace(words=words, env=env)


def run(case: Case, *more: str) -> tuple[int, str, str]:
    """How a command line ended, and what it said, on no terminal."""
    done = run_command(_inserted(case.words, more), env=dict(case.env))
    return done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")


def _inserted(words: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    """Options directly after the command, or after the command of a command."""
    at = 2 if words[0] == "trust" else 1
    return (*words[:at], *more, *words[at:])


def assert_harmless(text: str) -> None:
    assert not RAW.search(text), ascii(text)
    assert not FORGED.search(text), ascii(text)


def assert_told(status: int, err: str) -> None:
    """Whatever is wrong is an answer or an error, not a trace."""
    assert status in {0, 1, 2, 3}, err
    assert "Traceback" not in err


def test_every_command_has_hostile_cases() -> None:
    """Case 40: every command has at least one case."""
    assert set(CASES) - {""} == {entry.name for entry in COMMANDS}


@pytest.mark.sampled(0.25)
def test_as_text_nothing_is_raw_and_no_line_is_forged(case: Case) -> None:
    """Case 40: this holds for both streams, and hostile characters are shown escaped."""
    status, out, err = run(case)
    assert_told(status, err)
    assert_harmless(out)
    assert_harmless(err)
    assert out or err
    if case.seen:
        assert re.search(r"\\x1b|\\\\x1b|\\u001b|\\e\[", out + err), out + err


@pytest.mark.sampled(0.1)
def test_as_data_it_is_json_that_nothing_raw_is_in(case: Case) -> None:
    """Case 40: a program can read the answer on one stream or the error on the other."""
    status, out, err = run(case, *(("--json",) if case.words[0] in CASES else ()))
    assert_told(status, err)
    assert_harmless(out)
    assert_harmless(err)
    if out:
        lines = out.splitlines() if case.words[0] in {"run", "try"} else [out]
        assert {json.loads(line)["version"] for line in lines} == {1}
    elif status == 3:
        assert json.loads(err.splitlines()[-1])["error"]["code"]


@pytest.mark.sampled(0.08)
def test_on_a_terminal_there_is_what_we_draw_and_nothing_else(case: Case) -> None:
    """Case 40: bars and colours may appear. A long line that is wrapped does not count as forged."""
    shown = on_terminal(case)
    text = DRAWN.sub("", shown)
    assert not RAW.search(text), ascii(text)
    assert "Traceback" not in text
    assert text.strip()


def on_terminal(case: Case) -> str:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    env = {**dict(case.env), "TERM": "xterm-256color"}
    with Path(os.devnull).open("rb") as nothing:
        process = fork_command(case.words, stdin=nothing, stdout=slave, stderr=slave, env=env)
    os.close(slave)
    shown = b""
    with suppress(OSError):  # the other end is closed
        while part := os.read(master, 65536):
            shown += part
    process.wait()
    os.close(master)
    return shown.decode("utf-8").replace("\r\n", "\n")


UNNAMED = ("list", "show", "check", "doctor", "config", "verify", "install", "trust grant", "trust list", "explain")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no names that are not text")
@pytest.mark.parametrize("name", UNNAMED)
def test_a_folder_whose_name_is_not_text_does_no_harm(
    name: str, hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 40: the working folder has such a name, and so has every path in the output."""
    inner = os.fsencode(hostile) + b"/" + BYTES
    for path, content in ((b"good", skill_text("good")), (b"x\xfe", "nothing\n")):
        put(inner + b"/.agents/skills/" + path + b"/SKILL.md", content)
    put(inner + b"/elsewhere/notes/SKILL.md", skill_text("notes"))
    words = {
        "show": ("good",),
        "explain": ("good",),
        "trust grant": ("good", "--yes"),
        "check": (".agents/skills",),
        "install": ("./elsewhere/notes", "--project", "--yes"),
    }
    monkeypatch.chdir(os.fsdecode(inner))
    for more in ((), ("--json",)):
        done = run_command((*name.split(), *words.get(name, ()), *more))
        assert_told(done.returncode, done.stderr.decode("utf-8"))
        assert_harmless(done.stdout.decode("utf-8"))
        assert_harmless(done.stderr.decode("utf-8"))


@pytest.mark.usefixtures("hostile")
@pytest.mark.parametrize("words", ["prowess show ", "prowess adopt ", "prowess read ev", "prowess list --agent c"])
def test_completion_gives_a_shell_nothing_raw(words: str) -> None:
    """Case 40: completion puts names of skills and files into a person's command line."""
    done = run_command((), env={"_PROWESS_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": "2"})
    assert done.stdout
    assert_harmless(done.stdout.decode("utf-8"))
    assert_harmless(done.stderr.decode("utf-8"))


def test_the_folder_is_as_hostile_as_the_cases_say(hostile: Path) -> None:
    """Twin of case 40: a program that prints names and files as they are would send control characters."""
    names = "\n".join(path.name for path in (hostile / SKILLS).iterdir())
    listed = names + (hostile / SKILLS / "evil" / "SKILL.md").read_text("utf-8")
    assert RAW.search(listed)
    assert FORGED.search(listed)
    assert RAW.search(str(hostile))

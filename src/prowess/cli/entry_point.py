"""The entry point of the program ``prowess`` and the table of its commands, each imported when it is called.

Other programs ask for the version before they do anything else. click takes three times as long to load as Python takes
to start (the bench row "prowess --version"), and these two answers do without it. ``cli.main`` gives the same answers
when other words follow these; tests/cli/test_frame.py compares the two.
"""

from __future__ import annotations

import io
import sys
from typing import IO, NamedTuple, NoReturn

from prowess import __version__


def run() -> NoReturn:
    """Run the command line of this process, and exit with its status."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        use_utf8_in_pipe(stream)
    if _print_answer(sys.argv[1:]):
        sys.exit()
    from prowess.cli.main import run as run_command

    run_command()


def use_utf8_in_pipe(stream: IO[str] | None) -> None:
    r"""Make a standard stream that is not a terminal UTF-8, with ``\n`` at the end of each line that is written.

    Programs read what they get from a pipe in the same way on every system. Python takes the encoding from the locale,
    and writes ``\r\n`` on Windows. A terminal keeps its encoding, since a person has to read it.
    """
    try:
        if not isinstance(stream, io.TextIOWrapper) or stream.isatty():
            return
    except ValueError:  # it is closed
        return
    if stream.writable():
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")
    else:
        stream.reconfigure(encoding="utf-8")


def _print_answer(words: list[str]) -> bool:
    """Print the version or the overview, and return True; False when it was not asked for, or cannot be printed."""
    if words == ["--version"]:
        text = f"prowess {__version__}\n"
    elif words in (["--help"], ["-h"]):
        text = render_overview()
    else:
        return False
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except (AttributeError, OSError):  # no stream, or nobody who reads it: ``cli.main`` knows the exit status
        return False
    return True


class _CommandEntry(NamedTuple):
    """One command: its name, its module in ``commands/``, a summary, and its group in the overview."""

    name: str
    module: str
    summary: str
    group: str


GROUPS = ("Look", "Write", "Get", "Run", "Set up")

# In the order of the overview. Each summary fits a line of 80 columns (tests/cli/test_words.py).
COMMANDS = (
    _CommandEntry("list", "list", "list the skills that are here, and where they come from", "Look"),
    _CommandEntry("show", "show", "show one skill: its fields, files, cost, and what would run", "Look"),
    _CommandEntry("read", "read", "print the instructions of a skill, or one of its files", "Look"),
    _CommandEntry("search", "search", "list the skills that fit a query, best first", "Look"),
    _CommandEntry("explain", "explain", "explain why a model sees a skill, or does not", "Look"),
    _CommandEntry("prompt", "prompt", "print what a model receives at the start, and its cost", "Look"),
    _CommandEntry("preview", "preview", "print what a model receives when it loads a skill", "Look"),
    _CommandEntry("ui", "ui", "show your skills on local pages, or export these as a site", "Look"),
    _CommandEntry("doctor", "doctor", "report what works here, with a remedy for what does not", "Look"),
    _CommandEntry("new", "new", "begin a skill: a folder to fill in", "Write"),
    _CommandEntry("check", "check", "check skills: every finding with a remedy; --fix repairs some", "Write"),
    _CommandEntry("eval", "eval", "test whether the queries of a skill's evals find it", "Write"),
    _CommandEntry("pack", "pack", "pack a skill into one file, with reproducible bytes", "Write"),
    _CommandEntry("unpack", "unpack", "unpack the skill in an archive into a folder", "Write"),
    _CommandEntry("publish", "publish", "publish versions of skills to a folder, a bucket or a registry", "Write"),
    _CommandEntry("unpublish", "unpublish", "withdraw published versions, or delete their bytes", "Write"),
    _CommandEntry("install", "install", "install skills from a repository, a folder or an archive", "Get"),
    _CommandEntry("find", "find", "find skills to install in your indexes", "Get"),
    _CommandEntry("remove", "remove", "remove installed skills", "Get"),
    _CommandEntry("sync", "sync", "install what prowess.toml and prowess.lock ask for", "Get"),
    _CommandEntry("update", "update", "update installed skills to what their sources have now", "Get"),
    _CommandEntry("outdated", "outdated", "list installed skills whose source has something newer", "Get"),
    _CommandEntry("diff", "diff", "show what you and its source changed in an installed skill", "Get"),
    _CommandEntry("verify", "verify", "compare every installed file with the lock files", "Get"),
    _CommandEntry("lock", "lock", "bring prowess.lock up to date and install nothing, or merge it", "Get"),
    _CommandEntry("link", "link", "link installed skills where further agents look", "Get"),
    _CommandEntry("unlink", "unlink", "remove links of installed skills", "Get"),
    _CommandEntry("adopt", "adopt", "record skills that are here already as installed", "Get"),
    _CommandEntry("backups", "backups", "list what was replaced and kept, and how to take it back", "Get"),
    _CommandEntry("cache", "cache", "show, verify and prune what was fetched and kept", "Get"),
    _CommandEntry("policy", "policy", "show what the policy allows, and check lock files against it", "Get"),
    _CommandEntry("review", "review", "approve a skill for everybody, after a look at what changed", "Get"),
    _CommandEntry("audit", "audit", "find revoked skills on this disk; --fix takes them off", "Get"),
    _CommandEntry("inventory", "inventory", "list what is installed in many projects, with digests", "Get"),
    _CommandEntry("trust", "trust", "grant, list and revoke permission to run commands and scripts", "Run"),
    _CommandEntry("call", "call", "make one tool call, as a model would", "Run"),
    _CommandEntry("run-script", "run_script", "run a script of a trusted skill in a sandbox", "Run"),
    _CommandEntry("run", "run", "carry out a task with a model, your skills and this folder", "Run"),
    _CommandEntry("try", "try_skill", "show what a model does with one skill: files, scripts, tokens", "Run"),
    _CommandEntry("serve", "serve", "serve skills to MCP clients, on standard streams or HTTP", "Run"),
    _CommandEntry("demo", "demo", "show all of it in under a minute, without API keys", "Run"),
    _CommandEntry("config", "config", "show every setting, its value, and where it came from", "Set up"),
    _CommandEntry("completion", "completion", "print the completion script for bash, zsh or fish", "Set up"),
)

COMMANDS_BY_NAME = {entry.name: entry for entry in COMMANDS}


ABOUT = "Find, check, write, install and run Agent Skills."


def render_overview() -> str:
    """Return the overview, which comes from the table alone: no command is imported."""
    width = max(len(entry.name) for entry in COMMANDS) + 2
    rows = [f"prowess: {ABOUT}", ""]
    for group in GROUPS:
        commands = [f"  {entry.name:{width}}{entry.summary}" for entry in COMMANDS if entry.group == group]
        rows += [f"{group}:", *commands, ""] if commands else []
    rows += [
        "prowess COMMAND --help shows options and examples.",
        "--json gives data instead of text.",
        "New here? prowess demo",
    ]
    return "\n".join(rows) + "\n"

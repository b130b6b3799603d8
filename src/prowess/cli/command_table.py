"""The table of commands. The module of a command is imported when it is called or its help is shown."""

from __future__ import annotations

from typing import NamedTuple


class CommandEntry(NamedTuple):
    """One command: its name, its module in ``commands/``, a summary, and its group in the overview."""

    name: str
    module: str
    summary: str
    group: str


GROUPS = ("Look", "Write", "Get", "Run", "Set up")

# In the order of the overview. Each summary fits a line of 80 columns (tests/cli/test_words.py).
COMMANDS = (
    CommandEntry("list", "list", "list the skills that are here, and where they come from", "Look"),
    CommandEntry("show", "show", "show one skill: its fields, files, cost, and what would run", "Look"),
    CommandEntry("read", "read", "print the instructions of a skill, or one of its files", "Look"),
    CommandEntry("search", "search", "list the skills that fit a query, best first", "Look"),
    CommandEntry("explain", "explain", "explain why a model sees a skill, or does not", "Look"),
    CommandEntry("prompt", "prompt", "print what a model receives at the start, and its cost", "Look"),
    CommandEntry("preview", "preview", "print what a model receives when it loads a skill", "Look"),
    CommandEntry("ui", "ui", "show your skills on local pages, or export these as a site", "Look"),
    CommandEntry("doctor", "doctor", "report what works here, with a remedy for what does not", "Look"),
    CommandEntry("new", "new", "begin a skill: a folder to fill in", "Write"),
    CommandEntry("check", "check", "check skills: every finding with a remedy; --fix repairs some", "Write"),
    CommandEntry("eval", "eval", "test whether the queries of a skill's evals find it", "Write"),
    CommandEntry("pack", "pack", "pack a skill into one file, with reproducible bytes", "Write"),
    CommandEntry("unpack", "unpack", "unpack the skill in an archive into a folder", "Write"),
    CommandEntry("install", "install", "install skills from a repository, a folder or an archive", "Get"),
    CommandEntry("find", "find", "find skills to install in your indexes", "Get"),
    CommandEntry("remove", "remove", "remove installed skills", "Get"),
    CommandEntry("sync", "sync", "install what prowess.toml and prowess.lock ask for", "Get"),
    CommandEntry("update", "update", "update installed skills to what their sources have now", "Get"),
    CommandEntry("outdated", "outdated", "list installed skills whose source has something newer", "Get"),
    CommandEntry("diff", "diff", "show what you and its source changed in an installed skill", "Get"),
    CommandEntry("verify", "verify", "compare every installed file with the lock files", "Get"),
    CommandEntry("lock", "lock", "bring prowess.lock up to date and install nothing, or merge it", "Get"),
    CommandEntry("link", "link", "link installed skills where further agents look", "Get"),
    CommandEntry("unlink", "unlink", "remove links of installed skills", "Get"),
    CommandEntry("adopt", "adopt", "record skills that are here already as installed", "Get"),
    CommandEntry("backups", "backups", "list what was replaced and kept, and how to take it back", "Get"),
    CommandEntry("cache", "cache", "show, verify and prune what was fetched and kept", "Get"),
    CommandEntry("policy", "policy", "show what the policy allows, and check lock files against it", "Get"),
    CommandEntry("audit", "audit", "find revoked skills on this disk; --fix takes them off", "Get"),
    CommandEntry("inventory", "inventory", "list what is installed in many projects, with digests", "Get"),
    CommandEntry("trust", "trust", "grant, list and revoke permission to run commands and scripts", "Run"),
    CommandEntry("call", "call", "make one tool call, as a model would", "Run"),
    CommandEntry("run-script", "run_script", "run a script of a trusted skill in a sandbox", "Run"),
    CommandEntry("run", "run", "carry out a task with a model, your skills and this folder", "Run"),
    CommandEntry("try", "try_skill", "show what a model does with one skill: files, scripts, tokens", "Run"),
    CommandEntry("serve", "serve", "serve skills to MCP clients, on standard streams or HTTP", "Run"),
    CommandEntry("demo", "demo", "show all of it in under a minute, without API keys", "Run"),
    CommandEntry("config", "config", "show every setting, its value, and where it came from", "Set up"),
    CommandEntry("completion", "completion", "print the completion script for bash, zsh or fish", "Set up"),
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

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

COMMANDS = (
    CommandEntry("list", "list", "the skills there are, where they come from, what is special", "Look"),
    CommandEntry("show", "show", "one skill: what it says, its files, their cost, what would run", "Look"),
    CommandEntry("read", "read", "the instructions of a skill, or one of its files", "Look"),
    CommandEntry("search", "search", "the skills that fit a query, best first", "Look"),
    CommandEntry("explain", "explain", "why a name is, or is not, what a model sees", "Look"),
    CommandEntry("prompt", "prompt", "exactly what a model would receive, and what that costs", "Look"),
    CommandEntry("doctor", "doctor", "what works here, and a remedy for what does not", "Look"),
    CommandEntry("new", "new", "begin a skill: a folder to fill in", "Write"),
    CommandEntry("check", "check", "every finding about skills, with a remedy; --fix mends some", "Write"),
    CommandEntry("preview", "preview", "what a model would receive on activation, expansions marked", "Write"),
    CommandEntry("eval", "eval", "whether the queries of a skill's evals would find it", "Write"),
    CommandEntry("pack", "pack", "a skill as one file, the same bytes every time", "Write"),
    CommandEntry("unpack", "unpack", "the skill in an archive, as a folder", "Write"),
    CommandEntry("install", "install", "bring skills here from a repository, a folder, an archive", "Get"),
    CommandEntry("find", "find", "skills to install that fit some words, in your indexes", "Get"),
    CommandEntry("remove", "remove", "take installed skills away", "Get"),
    CommandEntry("sync", "sync", "make the disk equal the lock file, and that the manifest", "Get"),
    CommandEntry("update", "update", "bring installed skills to what their sources have now", "Get"),
    CommandEntry("outdated", "outdated", "installed skills whose source has something newer", "Get"),
    CommandEntry("diff", "diff", "what you changed in a skill, and what its source changed since", "Get"),
    CommandEntry("verify", "verify", "whether everything installed is what the lock files say", "Get"),
    CommandEntry("lock", "lock", "merge the two sides of a lock file that is in conflict", "Get"),
    CommandEntry("link", "link", "link installed skills where further agents look", "Get"),
    CommandEntry("unlink", "unlink", "take such links away", "Get"),
    CommandEntry("adopt", "adopt", "take over skills that lie here already", "Get"),
    CommandEntry("backups", "backups", "what was kept when it was replaced, and how to take it back", "Get"),
    CommandEntry("trust", "trust", "the grants by which commands and scripts may run", "Run"),
    CommandEntry("activate", "activate", "the instructions of a skill as a conversation would load them", "Run"),
    CommandEntry("call", "call", "one tool call, as a model would make it", "Run"),
    CommandEntry("run-script", "run_script", "a script of a trusted skill, in a sandbox", "Run"),
    CommandEntry("serve", "serve", "skills for MCP clients, on standard streams or on HTTP", "Run"),
    CommandEntry("demo", "demo", "all of it in under a minute, without keys", "Run"),
    CommandEntry("config", "config", "every setting, its value, and where that came from", "Set up"),
    CommandEntry("completion", "completion", "the completion script for bash, zsh or fish", "Set up"),
)

COMMANDS_BY_NAME = {entry.name: entry for entry in COMMANDS}

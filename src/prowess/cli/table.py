"""The commands: a table. A module is imported when its command is called, or when its help is asked for."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """A command: its name, its module in ``commands/``, one line about it, and its group in the overview."""

    name: str
    module: str
    summary: str
    group: str


GROUPS = ("Look", "Write", "Get", "Run", "Set up")

COMMANDS = (
    Entry("list", "list", "the skills there are, where they come from, what is special", "Look"),
    Entry("show", "show", "one skill: what it says, its files, their cost, what would run", "Look"),
    Entry("read", "read", "the instructions of a skill, or one of its files", "Look"),
    Entry("search", "search", "the skills that fit a query, best first", "Look"),
    Entry("explain", "explain", "why a name is, or is not, what a model sees", "Look"),
    Entry("prompt", "prompt", "exactly what a model would receive, and what that costs", "Look"),
    Entry("doctor", "doctor", "what works here, and a remedy for what does not", "Look"),
    Entry("new", "new", "begin a skill: a folder to fill in", "Write"),
    Entry("check", "check", "every finding about skills, with a remedy; --fix mends some", "Write"),
    Entry("preview", "preview", "what a model would receive on activation, expansions marked", "Write"),
    Entry("eval", "eval", "whether the queries of a skill's evals would find it", "Write"),
    Entry("pack", "pack", "a skill as one file, the same bytes every time", "Write"),
    Entry("unpack", "unpack", "the skill in an archive, as a folder", "Write"),
    Entry("install", "install", "bring skills here from a repository, a folder, an archive", "Get"),
    Entry("find", "find", "skills to install that fit some words, in your indexes", "Get"),
    Entry("remove", "remove", "take installed skills away", "Get"),
    Entry("sync", "sync", "make the disk equal the lock file, and that the manifest", "Get"),
    Entry("update", "update", "bring installed skills to what their sources have now", "Get"),
    Entry("outdated", "outdated", "installed skills whose source has something newer", "Get"),
    Entry("diff", "diff", "what you changed in a skill, and what its source changed since", "Get"),
    Entry("verify", "verify", "whether everything installed is what the lock files say", "Get"),
    Entry("lock", "lock", "merge the two sides of a lock file that is in conflict", "Get"),
    Entry("link", "link", "link installed skills where further agents look", "Get"),
    Entry("unlink", "unlink", "take such links away", "Get"),
    Entry("adopt", "adopt", "take over skills that lie here already", "Get"),
    Entry("backups", "backups", "what was kept when it was replaced, and how to take it back", "Get"),
    Entry("trust", "trust", "the grants by which commands and scripts may run", "Run"),
    Entry("activate", "activate", "the instructions of a skill as a conversation would load them", "Run"),
    Entry("call", "call", "one tool call, as a model would make it", "Run"),
    Entry("run-script", "run_script", "a script of a trusted skill, in a sandbox", "Run"),
    Entry("serve", "serve", "skills for MCP clients, on standard streams or on HTTP", "Run"),
    Entry("demo", "demo", "all of it in under a minute, without keys", "Run"),
    Entry("config", "config", "every setting, its value, and where that came from", "Set up"),
    Entry("completion", "completion", "the completion script for bash, zsh or fish", "Set up"),
)

BY_NAME = {entry.name: entry for entry in COMMANDS}

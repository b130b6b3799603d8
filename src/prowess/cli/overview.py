"""What ``prowess`` alone prints: every command in one line, by group."""

from __future__ import annotations

from prowess.cli.command_table import COMMANDS, GROUPS

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

"""The reference pages of the command line as Markdown, made from the commands themselves.

``make manual`` writes them; tests/cli/test_every_command.py compares the pages with what this module makes.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from prowess.cli.entry_point import COMMANDS, GROUPS
from prowess.cli.main import EXIT_STATUSES, root
from prowess.cli.render import printer
from prowess.discovery.agents import AGENTS
from prowess.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.discovery.agents import Agent

_WIDTH = 100
_INTRODUCTION = """\
# The command line

Everything that `prowess` does is a function of the library first.

**Output.** Plans and answers go to the output stream. Warnings and errors go to the error stream. On a terminal the
text has colours, unless `NO_COLOR` is set. In a pipe it is plain text, as UTF-8 with `\\n` at the end of each line on
every system, and what is piped in is read as UTF-8. With `--json` the output stream holds one JSON object of a
documented shape ([cli-json.md](cli-json.md)), and nothing else. Control characters in the text of a skill are shown as
escapes (`\\x1b`), and never reach the terminal.

**Changes.** A command that may replace or remove something shows its plan, asks, does it and reports. It asks on the
terminal, even when the output or the input is redirected. If no stream is a terminal, it cannot ask, and needs `--yes`.

**Names.** NAME is the name of a skill, its folder, or its SKILL.md. If a bare word is the folder of a skill here, this
folder is meant, and a note says so if a skill elsewhere has that name. Otherwise it is the name of a skill. `check`,
`eval` and `pack` also take folders of skills. If a name is unknown, the error suggests similar ones.

**Interrupts.** Long work shows a progress bar on the terminal. Ctrl-C ends any command with status 130. Every skill is
then either as it was before or as it was meant to be, and the next command cleans up what is left. Only
`prowess serve --http` ends with status 0, because Ctrl-C is the way to stop it.

**Questions.** About skills that are here:

| question | command |
|---|---|
| Which skills are here, and where do they come from? | `prowess list` |
| What is this skill, what does it cost, and what of it would run? | `prowess show NAME` |
| What did its author write? | `prowess read NAME [FILE]` |
| What does a model receive at the start of a conversation? | `prowess prompt [--query REQUEST] [--tools]` |
| What does it receive when it loads a skill, or when a person calls one? | `prowess preview NAME [ARGS]` |
| What does any other tool call answer, in any dialect? | `prowess call TOOL JSON` |
| Why does a model see a skill, or not? | `prowess explain NAME [--query REQUEST]` |
| Which skills fit a request best? | `prowess search WORDS` |
| Does a request find its skill, and does the skill help? | `prowess eval`, with a model `prowess eval --with-model` |
| What does a model do with one skill, step by step? | `prowess try NAME TASK` |
| Why does something not work on this machine? | `prowess doctor` |

[settings.md](settings.md) has the settings. This page is made from the commands by `make manual`, and a test compares
them.
"""
_CLOSING = """\
## Completion

Put `eval "$(prowess completion bash)"` into `~/.bashrc`, or `eval "$(prowess completion zsh)"` into `~/.zshrc`. For
fish see `prowess completion --help`. The shell then completes commands, options, paths, and the names of skills,
installs, agents, codes and settings.
"""


def render_manual() -> str:
    """Return the page of all commands."""
    parts = [_INTRODUCTION, _render_contents(), _render_statuses()]
    for group in GROUPS:
        parts.append(f"## {group}\n")
        for entry in COMMANDS:
            if entry.group == group:
                parts += _render_pages(entry.name)
    return "\n".join([*parts, _CLOSING])


def _render_contents() -> str:
    """Return the table of contents: each command with its summary, below the name of its group."""
    parts = ["## Contents\n"]
    for group in GROUPS:
        rows = [f"- [prowess {e.name}](#prowess-{e.name}): {e.summary}\n" for e in COMMANDS if e.group == group]
        parts.append(f"**{group}**\n\n{''.join(rows)}")
    return "\n".join([*parts, "Also on this page: [exit status](#exit-status), [completion](#completion).\n"])


def _render_statuses() -> str:
    rows = "".join(f"| {status} | {meaning} |\n" for status, meaning in EXIT_STATUSES.items())
    return (
        f"## Exit status\n\n| status | meaning |\n|---|---|\n{rows}\n`run-script` ends with the status of the script.\n"
    )


def _render_pages(name: str) -> Iterator[str]:
    context = click.Context(root, info_name="prowess")
    command = root.get_command(context, name)
    assert command is not None
    yield _render_page(command, context, name)
    if isinstance(command, click.Group):
        inner = click.Context(command, info_name=name, parent=context)
        for child in command.list_commands(inner):
            inner_command = command.get_command(inner, child)
            assert inner_command is not None
            yield _render_page(inner_command, inner, child)


def _render_page(command: click.Command, parent: click.Context, name: str) -> str:
    # A fixed width: the page must not depend on the terminal of whoever makes it.
    context = click.Context(command, info_name=name, parent=parent, max_content_width=_WIDTH, terminal_width=_WIDTH)
    context.help_option_names = ["-h", "--help"]
    return f"### {context.command_path}\n\n```text\n{command.get_help(context).rstrip()}\n```\n"


# -- the tables of agents and of settings ------------------------------------------------------------------------------

# The tables are replaced where they stand: the words around them are written by hand.
_AGENT_TABLE = re.compile(r"\| id \| agent \|.*?(?=\n\n|\n\Z)", re.DOTALL)
_SETTING_TABLE = re.compile(r"\| setting \| default \|.*?(?=\n\n|\n\Z)", re.DOTALL)
_SHARED_FOLDER = ".agents/skills"


def with_agent_tables(page: str) -> str:
    """Return the page with its two tables of agents made anew: those that share a project's folder, then the others."""
    agents = [agent for _, agent in sorted(AGENTS.items())]
    sharing = [agent for agent in agents if agent.project == _SHARED_FOLDER]
    others = [agent for agent in agents if agent.project != _SHARED_FOLDER]
    tables = iter((_render_agent_table(sharing), _render_agent_table(others)))
    return _AGENT_TABLE.sub(lambda _: next(tables), page)


def _render_agent_table(agents: list[Agent]) -> str:
    head = "| id | agent | in a project | for the user | moved by |\n|---|---|---|---|---|"
    rows = (
        f"| `{agent.id}` | {agent.title} | `{agent.project}` | {', '.join(f'`{path}`' for path in agent.user)} "
        f"| {f'`{agent.variable}`' if agent.variable else ''} |"
        for agent in agents
    )
    return "\n".join((head, *rows))


def with_setting_table(page: str) -> str:
    """Return the page with its table of settings made anew."""
    head = "| setting | default | what it is |\n|---|---|---|"
    rows = (f"| `{s.name}` | {_format_default(s.default)} | {s.about}{_format_choices(s.choices)} |" for s in SETTINGS)
    return _SETTING_TABLE.sub(lambda _: "\n".join((head, *rows)), page)


def _format_default(value: object) -> str:
    return "" if value in (None, "", ()) else f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _format_choices(choices: tuple[str, ...]) -> str:
    return f": {', '.join(f'`{choice}`' for choice in choices if choice)}" if choices else ""


# -- the overview of the Python API -----------------------------------------------------------------------------------

_API = Path(__file__).resolve().parents[1] / "docs" / "reference" / "api"
_API_ROW = re.compile(r"^(\| \[[^\]]+\]\((\w+\.md)\) \|).*$", re.MULTILINE)
_DESCRIBED_NAME = re.compile(r"^::: prowess\.([\w.]+)$", re.MULTILINE)


def with_api_names(page: str) -> str:
    """Return the overview with its rows made anew: each page, and links to the names that it describes."""

    def render_row(row: re.Match[str]) -> str:
        names = _DESCRIBED_NAME.findall((_API / row[2]).read_text(encoding="utf-8"))
        return f"{row[1]} {', '.join(f'[`{name}`]({row[2]}#prowess.{name})' for name in names)} |"

    return _API_ROW.sub(render_row, page)


# -- the shapes of --json ----------------------------------------------------------------------------------------------

_JSON_INTRODUCTION = """\
# What `--json` gives

Each command prints one JSON object on the output stream. An error is an object on the error stream, under `error`. The
JSON Schema of all of them is [cli.schema.json](cli.schema.json), and the tests check every command against it.

`version` is the version of these shapes. New fields may appear in a version. A field goes or changes its meaning only
with a new version. Control characters are escaped (`\\u001b`), so a terminal cannot obey them and the data stays exact.

This page is made from the schema by `make manual`, and a test compares them.
"""


def render_json_manual(schema: dict[str, Any]) -> str:
    """Return the page about the shapes of ``--json``."""
    parts = [_JSON_INTRODUCTION]
    for title, shapes in (("Commands", schema["properties"]), ("Shared parts", schema["$defs"])):
        parts.append(f"## {title}\n")
        parts += [f"### {name}\n\n{_render_shape(shape)}" for name, shape in shapes.items()]
    return "\n".join(parts)


def _render_shape(shape: dict[str, Any]) -> str:
    about = f"{shape['description'][:1].upper()}{shape['description'][1:]}.\n\n" if shape.get("description") else ""
    rows = "".join(_render_rows(shape, ""))
    return f"{about}| field | type | about |\n|---|---|---|\n{rows}"


def _render_rows(shape: dict[str, Any], prefix: str) -> Iterator[str]:
    for name, inner in shape.get("properties", {}).items():
        if name != "version":
            about = ": ".join(filter(None, (inner.get("description"), _format_values(inner))))
            yield f"| `{prefix}{name}` | {_format_type(inner)} | {about} |\n"
            nested = inner.get("items", inner)
            yield from _render_rows(nested, f"{prefix}{name}{'[]' if 'items' in inner else ''}.")


def _format_values(inner: dict[str, Any]) -> str:
    return f"{', '.join(f'`{value}`' for value in inner['enum'])}" if "enum" in inner else ""


def _format_type(inner: dict[str, Any]) -> str:
    if "$ref" in inner:
        return str(inner["$ref"]).rpartition("/")[2].replace("-", " ")
    if inner.get("type") == "array":
        return f"list of {_format_type(inner['items'])}"
    kind = inner.get("type", "")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


if __name__ == "__main__":
    makers = {
        "json": lambda text: render_json_manual(json.loads(text)),
        "agents": with_agent_tables,
        "settings": with_setting_table,
        "api/index": with_api_names,
    }
    printer.print_own_text(makers[sys.argv[1]](sys.stdin.read()) if sys.argv[1:] else render_manual())

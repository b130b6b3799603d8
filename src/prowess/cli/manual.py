"""The manual of the command line as Markdown, made from the commands themselves: ``make manual`` writes it."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

import click

from prowess.cli import output
from prowess.cli.main import STATUSES, overview, root
from prowess.cli.table import COMMANDS, GROUPS
from prowess.library.agents import AGENTS
from prowess.library.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

_WIDTH = 100
_HEAD = """\
# The command line

Everything that `prowess` does is a function of the library first. Plans and answers go to the output stream, warnings
and errors to the error stream: on a terminal in colour (unless `NO_COLOR` is set), in a pipe as plain text, with
`--json` as data of documented shapes ([cli-json.md](cli-json.md)), and then the output stream holds nothing else.
A command that changes something shows its plan, asks, does it and reports. It asks on the terminal, also when the
output or the input is redirected; where no stream is a terminal nobody is asked, and it wants `--yes`.

Control characters in whatever a skill says are shown as what they are (`\\x1b`), never sent to the terminal.
A NAME is the name of a skill, its folder, or its SKILL.md; a bare word is a
name first, and a folder here where no skill has that name (with `check`, `eval` and `pack`, which take paths, the other
way round). A name that is nearly one is answered with those that may be meant.

Long work shows a bar on a terminal's error stream, which is gone afterwards. Ctrl-C ends any command with status 130:
every skill that it was about is then as before or as it was to be, whole, and the next command tidies up what is left.
Only `prowess serve --http` ends with status 0: Ctrl-C is how one stops it.

This page is made from the commands by `make manual`; a test compares them.
"""
_REST = """\
## Completion

`eval "$(prowess completion bash)"` in `~/.bashrc` (or `zsh` in `~/.zshrc`; for fish see `prowess completion --help`)
completes commands, options, paths, and the names of skills, installs (as `list` shows them), agents, codes and
settings.

## In CI

`prowess check` ends with status 1 when there is an error. As annotations of a pull request:

```yaml
on: pull_request
jobs:
  skills:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: pip install /path/to/prowess # a checkout; or git+ and the address of its repository
      - run: prowess check skills/ --strict --format github
      - run: prowess eval skills/ --min 0.9
      - run: prowess sync --locked
```

With [pre-commit](https://pre-commit.com): the hook `prowess-check` is defined in `.pre-commit-hooks.yaml`.

```yaml
repos:
  - repo: /path/to/prowess # a checkout, or the address of its repository
    rev: v0.1.0
    hooks:
      - id: prowess-check
```
"""


def manual() -> str:
    """The whole page."""
    parts = [_HEAD, f"```text\n{overview()}```\n", _statuses(), _settings()]
    for group in GROUPS:
        parts.append(f"## {group}\n")
        for entry in COMMANDS:
            if entry.group == group:
                parts += _pages(entry.name)
    return "\n".join([*parts, _REST])


def _statuses() -> str:
    rows = "".join(f"| {status} | {meaning} |\n" for status, meaning in STATUSES.items())
    return (
        f"## Exit status\n\n| status | meaning |\n|---|---|\n{rows}\n`run-script` ends with the status of the script.\n"
    )


def _settings() -> str:
    rows = "".join(f"| `{s.name}` | {_default(s.default)} | {s.about}{_only(s.choices)} |\n" for s in SETTINGS)
    own = " and ".join(f"`{s.name}`" for s in SETTINGS if not s.by_project)
    return (
        "## Settings\n\nUnder `[settings]` in the project's `prowess.toml` and in `prowess/config.toml` of your "
        "configuration;\nas `PROWESS_` and the name in capitals; as flags. Later wins, and `prowess config` shows "
        f"where each value came from.\n{own} cannot be set by a project.\n\n"
        f"| setting | default | what it is |\n|---|---|---|\n{rows}"
    )


def _default(value: object) -> str:
    return "" if value in (None, "", ()) else f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _only(choices: tuple[str, ...]) -> str:
    return f": {', '.join(f'`{choice}`' for choice in choices if choice)}" if choices else ""


def _pages(name: str) -> Iterator[str]:
    context = click.Context(root, info_name="prowess")
    command = root.get_command(context, name)
    assert command is not None  # noqa: S101 - the table names it
    yield _page(command, context, name)
    if isinstance(command, click.Group):
        inner = click.Context(command, info_name=name, parent=context)
        for child in command.list_commands(inner):
            found = command.get_command(inner, child)
            assert found is not None  # noqa: S101 - it was listed
            yield _page(found, inner, child)


def _page(command: click.Command, parent: click.Context, name: str) -> str:
    context = click.Context(command, info_name=name, parent=parent, max_content_width=_WIDTH, terminal_width=_WIDTH)
    context.help_option_names = ["-h", "--help"]
    return f"### {context.command_path}\n\n```text\n{command.get_help(context).rstrip()}\n```\n"


# -- the known agents --------------------------------------------------------------------------------------------------

_TABLE = re.compile(r"\| id \| agent \|.*?(?=\n\n)", re.DOTALL)


def with_agents(page: str) -> str:
    """A page whose table of agents is that of the library."""
    head = "| id | agent | in a project | for the user | moved by |\n|---|---|---|---|---|"
    rows = (
        f"| `{agent.id}` | {agent.title} | `{agent.project}` | {', '.join(f'`{path}`' for path in agent.user)} "
        f"| {f'`{agent.variable}`' if agent.variable else ''} |"
        for _, agent in sorted(AGENTS.items())
    )
    return _TABLE.sub("\n".join((head, *rows)), page, count=1)


# -- the shapes of --json ----------------------------------------------------------------------------------------------

_JSON_HEAD = """\
# What `--json` gives

One JSON object a command, on the output stream; errors on the error stream, under `error`. The JSON Schema of all of
them is [cli.schema.json](cli.schema.json), and the tests hold every command to it. `version` is the version of these
shapes: fields may be added, but none goes or changes its meaning without a new one. Characters that a terminal could
obey are escaped (`\\u001b`), so the text is harmless and the data exact.

This page is made from the schema by `make manual`; a test compares them.
"""


def json_manual(schema: dict[str, Any]) -> str:
    """The page about the shapes."""
    parts = [_JSON_HEAD]
    for title, shapes in (("Commands", schema["properties"]), ("Parts that several have", schema["$defs"])):
        parts.append(f"## {title}\n")
        parts += [f"### {name}\n\n{_shape(shape)}" for name, shape in shapes.items()]
    return "\n".join(parts)


def _shape(shape: dict[str, Any]) -> str:
    about = f"{shape['description'][:1].upper()}{shape['description'][1:]}.\n\n" if shape.get("description") else ""
    rows = "".join(_rows(shape, ""))
    return f"{about}| field | type | about |\n|---|---|---|\n{rows}"


def _rows(shape: dict[str, Any], prefix: str) -> Iterator[str]:
    for name, inner in shape.get("properties", {}).items():
        if name != "version":
            about = str(inner.get("description", "")) + _values(inner)
            yield f"| `{prefix}{name}` | {_kind(inner)} | {about} |\n"
            nested = inner.get("items", inner)
            yield from _rows(nested, f"{prefix}{name}{'[]' if 'items' in inner else ''}.")


def _values(inner: dict[str, Any]) -> str:
    return f"{', '.join(f'`{value}`' for value in inner['enum'])}" if "enum" in inner else ""


def _kind(inner: dict[str, Any]) -> str:
    if "$ref" in inner:
        return str(inner["$ref"]).rpartition("/")[2].replace("-", " ")
    if inner.get("type") == "array":
        return f"list of {_kind(inner['items'])}"
    kind = inner.get("type", "")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


if __name__ == "__main__":
    makers = {"json": lambda text: json_manual(json.loads(text)), "agents": with_agents}
    output.plain_text(makers[sys.argv[1]](sys.stdin.read()) if sys.argv[1:] else manual())

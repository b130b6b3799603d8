"""What a shell completes: names of skills, files of a skill, agents, codes and paths."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prowess.cli.skill_lookup import find_skill, is_path, load_catalog, load_cli_settings
from prowess.errors import HINTS

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

_PLAIN_WORD = r"[\w@./][\w@./%+:=-]*"


def is_shell_safe(text: str) -> bool:
    """Return True when every shell takes ``text`` for one word that does nothing.

    Shells put what completion offers into the line as it is: ``$(…)`` in the name of a skill would run on Enter.
    """
    # An allowlist: shells differ in what they obey, and a name that is left out can still be typed.
    return re.fullmatch(_PLAIN_WORD, text) is not None


def complete_skill(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names of skills that begin so, or paths once a path is begun.

    The skills are those of the places that the line names so far. If they cannot be read, the list is empty.
    """
    if is_path(incomplete) or incomplete.startswith(("~", ".")):
        return [_complete_files(incomplete)]
    flags = {name: ctx.params.get(name) for name in ("folders", "agents", "project")}
    try:
        names = load_catalog(load_cli_settings(**flags)).names
    except Exception:  # noqa: BLE001 - the edge to a shell: completion says nothing rather than something wrong
        return []
    from click.shell_completion import CompletionItem

    items = [CompletionItem(name) for name in names if name.startswith(incomplete) and is_shell_safe(name)]
    return items or [_complete_files(incomplete)]  # no skill begins so, but a folder here may


def _complete_files(incomplete: str) -> CompletionItem:
    """Return the item that tells the shell to complete paths itself: it knows the disk and its own quoting."""
    from click.shell_completion import CompletionItem

    return CompletionItem(incomplete, type="file")


def complete_path(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return paths once a path is begun. Any other word is the name of something elsewhere, such as a repository."""
    return [_complete_files(incomplete)] if incomplete.startswith(("./", "../", "/", "~")) else []


def complete_file(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the files of the skill that the line names. If it cannot be read, the list is empty."""
    try:
        skill = find_skill(load_cli_settings(), ctx.params["skill"])
        return [path for path in skill.files() if path.startswith(incomplete) and is_shell_safe(path)]
    except Exception:  # noqa: BLE001 - the edge to a shell: completion says nothing rather than something wrong
        return []


def complete_skill_or_path(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return names of skills and every path, for commands that also take folders of skills."""
    skills = [item for item in complete_skill(ctx, param, incomplete) if item.type != "file"]
    # Paths come first, since bash forgets what came before them.
    return [_complete_files(incomplete), *skills]


def list_agent_ids() -> list[str]:
    """Return the ids of all known agents, sorted."""
    from prowess.discovery.agents import AGENTS

    return sorted(AGENTS)


def complete_agent(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the ids of agents that begin so."""
    return [name for name in list_agent_ids() if name.startswith(incomplete)]


def complete_code(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the codes of issues that begin so."""
    return [code for code in sorted(HINTS) if code.startswith(incomplete)]

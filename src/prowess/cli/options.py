"""Options that several commands share, what a shell completes for them, and how a group of them becomes one value."""

from __future__ import annotations

import os
import re
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

import click

from prowess.cli.render import printer
from prowess.cli.skill_lookup import find_skill, is_path, load_catalog, load_cli_settings
from prowess.errors import HINTS
from prowess.text.spelling import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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
    """Return the item that makes the shell complete paths itself: it knows the disk and its own quoting."""
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


T = TypeVar("T")
AskedLocation = Literal["user", "project", "all"] | None
"""Which installs the command line names; ``None`` where it names none, so that it depends on the working folder."""


def group_options(
    parameter: str, make: Callable[..., object], **options: Callable[[Any], Any]
) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Return a decorator that adds ``options`` to a command and hands them to it as one argument.

    The argument is called ``parameter``, and its value is what ``make`` returns for the values of the options. The
    keywords are the names under which the options pass their values; help shows the options in this order.
    """

    def add_options(command: Callable[..., T]) -> Callable[..., T]:
        @wraps(command)
        def run_with_group(*args: Any, **values: Any) -> T:
            group = make(**{name: values.pop(name) for name in options})
            return command(*args, **{parameter: group}, **values)

        # click lists the decorator that is nearest to the function last.
        for option in reversed(options.values()):
            run_with_group = option(run_with_group)
        return run_with_group

    return add_options


def _check_agents(_ctx: click.Context, _param: click.Parameter, agents: tuple[str, ...]) -> tuple[str, ...]:
    """Return the ids of the agents. An unknown agent is an error before anything is planned or looked at."""
    if not agents:
        return ()
    from prowess.discovery.agents import get_agent

    return tuple(get_agent(name).id for name in agents)


def make_agents_option(
    help_text: str, *, flag: str = "--agent", required: bool = False
) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Return the option that names agents, once or several times; the command gets their ids as ``agents``."""
    return click.option(
        flag,
        "agents",
        multiple=True,
        required=required,
        metavar="ID",
        shell_complete=complete_agent,
        callback=_check_agents,
        help=help_text,
    )


def check_codes(ctx: click.Context, param: click.Parameter, codes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the codes. Raise ``click.BadParameter`` for an unknown one, which would quietly select nothing."""
    for code in codes:
        if code not in HINTS:
            suggestion = did_you_mean(code, HINTS)
            raise click.BadParameter(
                f"no finding has the code {code!r}{f'; {suggestion}' if suggestion else ''}", ctx, param
            )
    return codes


def _make_location(*, user: bool, in_project: bool, everything: bool) -> AskedLocation:
    if user + in_project + everything > 1:
        raise click.UsageError("--user, --project and --all exclude each other: name one")
    return "user" if user else "project" if in_project else "all" if everything else None


location_options = group_options(
    "asked",
    _make_location,
    user=click.option("--user", is_flag=True, help="Your own installs, not those of the project around this folder."),
    in_project=click.option(
        "--project", "in_project", is_flag=True, help="The installs of the project, as without an option inside one."
    ),
    everything=click.option("--all", "everything", is_flag=True, help="The installs of the project and your own."),
)
"""``--user``, ``--project``, ``--all``; the command gets them as ``asked``, for ``install_options.find_location``."""

json_option = click.option("--json", "as_data", is_flag=True, help="Print JSON (docs/reference/cli-json.md).")
skill_argument = click.argument("skill", metavar="NAME", shell_complete=complete_skill)


SEARCHED_AGENTS = "Also look where this agent looks."
"""The help of ``--agent`` in commands that search for skills."""


class CatalogFlags(TypedDict):
    """Which skills the command line chooses. Each key is the name of the setting that the flag overrides."""

    folders: tuple[str, ...]
    agents: tuple[str, ...]
    project: bool | None
    verify: bool | None


def make_catalog_options(agent_flag: str = "--agent") -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Return the options that choose skills; ``agent_flag`` is for a command where ``--agent`` means something else."""
    return group_options(
        "where",
        CatalogFlags,
        folders=click.option(
            "-d",
            "--dir",
            "folders",
            multiple=True,
            metavar="FOLDER",
            type=click.Path(file_okay=False),
            help="Look in this folder instead of the standard places.",
        ),
        agents=make_agents_option(SEARCHED_AGENTS, flag=agent_flag),
        project=click.option(
            "--no-project", "project", flag_value=False, default=None, help="Leave the project's skills out."
        ),
        verify=click.option(
            "--verify", is_flag=True, default=None, help="Refuse installed skills that differ from prowess.lock."
        ),
    )


catalog_options = make_catalog_options()
"""``--dir``, ``--agent``, ``--no-project`` and ``--verify``; the command gets them as ``where``."""


folder_option = click.option(
    "--folder",
    type=click.Path(file_okay=False, exists=True),
    help="The folder that scripts work in and may write to; by default a new one, deleted afterwards.",
)


def note_empty_folder(arguments: Iterable[object], folder: str | None) -> None:
    """Print a note if a script got the name of a file here as an argument, but worked in another folder."""
    # Arguments of a model's call may be of any type.
    files = [word for word in arguments if isinstance(word, str) and word and os.path.lexists(word)]
    if files and folder is None:
        printer.note(
            f"note: the script ran in a new, empty folder without {files[0]!r}; --folder . lets it read and write here"
        )

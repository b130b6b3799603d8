"""Options that several commands share, and the catalogue that they choose."""

from __future__ import annotations

import os
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

import click

from prowess.cli.lock_states import LockStates, suggest_sync, warn_edited_skills, warn_lock_problems, without_edited
from prowess.cli.render import printer
from prowess.errors import SkillValidationError, SourceError, UnknownSkillError, did_you_mean
from prowess.files.paths import path_inside
from prowess.names import SKILL_FILE
from prowess.spec.quantities import join_first

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from click.shell_completion import CompletionItem

    import prowess
    from prowess.discovery.settings import Settings

T = TypeVar("T")
_MAX_NAMED = 5
"""How many skills a message names."""


_PLAIN_WORD = r"[\w@./][\w@./%+:=-]*"


def is_shell_safe(text: str) -> bool:
    """True when every shell takes ``text`` for one word that does nothing.

    Shells put what completion offers into the line as it is: ``$(…)`` in the name of a skill would be run by Enter.
    """
    import re  # noqa: PLC0415 - only for completion

    return re.fullmatch(_PLAIN_WORD, text) is not None


def complete_skill(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """What may stand where a skill is named, for the shell: paths once a path is begun, names of skills before.

    The skills are those of the places that the line names so far; nothing is offered where they cannot be read.
    """
    from click.shell_completion import CompletionItem  # noqa: PLC0415 - only for completion

    if is_path(incomplete) or incomplete.startswith(("~", ".")):
        return [CompletionItem(incomplete, type="file")]  # the shell itself knows what lies there
    chosen = {name: ctx.params.get(name) for name in ("folders", "agents", "project")}
    try:
        names = load_catalog(load_cli_settings(**chosen)).names
    except Exception:  # noqa: BLE001 - the edge to a shell: completion says nothing rather than something wrong
        return []
    items = [CompletionItem(name) for name in names if name.startswith(incomplete) and is_shell_safe(name)]
    return items or [CompletionItem(incomplete, type="file")]  # a folder here, perhaps


def complete_path(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Paths for the shell, once one is begun: any other word is the name of something elsewhere."""
    from click.shell_completion import CompletionItem  # noqa: PLC0415 - only for completion

    return [CompletionItem(incomplete, type="file")] if incomplete.startswith(("./", "../", "/", "~")) else []


def complete_file(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Files of the skill that the line names, for the shell; nothing where that cannot be read."""
    try:
        skill = find_skill(load_cli_settings(), ctx.params["skill"])
        return [path for path in skill.files() if path.startswith(incomplete) and is_shell_safe(path)]
    except Exception:  # noqa: BLE001 - the edge to a shell: completion says nothing rather than something wrong
        return []


def complete_skill_or_path(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of skills and everything that lies here, for commands that also take folders of skills."""
    from click.shell_completion import CompletionItem  # noqa: PLC0415 - only for completion

    paths = CompletionItem(incomplete, type="file")  # first, since bash forgets what came before paths
    return [paths, *(item for item in complete_skill(ctx, param, incomplete) if item.type != "file")]


def list_agent_ids() -> list[str]:
    """The ids of all known agents."""
    from prowess.discovery.agents import AGENTS  # noqa: PLC0415 - only for completion and help

    return sorted(AGENTS)


def complete_agent(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Ids of agents for the shell."""
    return [name for name in list_agent_ids() if name.startswith(incomplete)]


def check_agents(_ctx: click.Context, _param: click.Parameter, agents: tuple[str, ...]) -> tuple[str, ...]:
    """The agents, all of which exist: said before anything is planned or looked at."""
    from prowess.discovery.agents import get_agent  # noqa: PLC0415 - only where one is named

    return tuple(get_agent(name).id for name in agents)


def complete_code(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Codes of issues for the shell."""
    from prowess.errors import HINTS  # noqa: PLC0415 - only for completion

    return [code for code in sorted(HINTS) if code.startswith(incomplete)]


def check_codes(ctx: click.Context, param: click.Parameter, codes: tuple[str, ...]) -> tuple[str, ...]:
    """The codes, all of which exist: one that is misspelled would quietly select nothing, or leave nothing out."""
    from prowess.errors import HINTS  # noqa: PLC0415 - only where a code is named

    for code in codes:
        if code not in HINTS:
            suggestion = did_you_mean(code, HINTS)
            message = f"no finding has the code {code!r}{f'; {suggestion}' if suggestion else ''}"
            raise click.BadParameter(message, ctx, param)
    return codes


json_option = click.option("--json", "as_data", is_flag=True, help="Data instead of text (docs/reference/cli-json.md).")
skill_argument = click.argument("skill", metavar="NAME", shell_complete=complete_skill)


class CatalogFlags(TypedDict):
    """Which skills there are, as the command line says: flags of the settings of these names."""

    folders: tuple[str, ...]
    agents: tuple[str, ...]
    project: bool | None
    verify: bool | None


def catalog_options(command: Callable[..., T]) -> Callable[..., T]:
    """``--dir``, ``--agent``, ``--no-project`` and ``--verify``, given to the command as one: ``where``."""

    @wraps(command)
    def run_with_flags(
        *given: Any,  # noqa: ANN401 - the command's own
        folders: tuple[str, ...],
        agents: tuple[str, ...],
        project: bool | None,
        verify: bool | None,
        **named: Any,  # noqa: ANN401
    ) -> T:
        return command(
            *given, where=CatalogFlags(folders=folders, agents=agents, project=project, verify=verify), **named
        )

    for option in (
        click.option(
            "--verify", is_flag=True, default=None, help="Refuse installed skills that are not what prowess.lock says."
        ),
        click.option("--no-project", "project", flag_value=False, default=None, help="Leave the project's skills out."),
        click.option(
            "--agent",
            "agents",
            multiple=True,
            metavar="ID",
            shell_complete=complete_agent,
            callback=check_agents,
            help="Also look where this agent does.",
        ),
        click.option(
            "-d",
            "--dir",
            "folders",
            multiple=True,
            metavar="FOLDER",
            type=click.Path(file_okay=False),
            help="Look in this folder instead of the standard places.",
        ),
    ):
        run_with_flags = option(run_with_flags)
    return run_with_flags


def load_cli_settings(**flags: Any) -> Settings:  # noqa: ANN401 - the values of settings
    """The settings, with those that the command line gives; what is wrong in the files is told."""
    from prowess.discovery.settings import load_settings  # noqa: PLC0415 - the version needs none

    settings = load_settings(flags=flags)
    for issue in settings.issues:
        printer.warn(f"{issue.path}: [{issue.code}] {issue.field} {issue.message}")
    return settings


def load_catalog(settings: Settings) -> prowess.Catalog:
    """The skills that the settings choose: below folders that were named, else in the standard places."""
    from prowess.discovery.scan import discover, scan  # noqa: PLC0415

    folders = settings.names("folders")
    if folders:
        found = scan(*folders, missing="error")
        return without_edited(found) if settings["verify"] else found
    verify: Literal["lock"] | None = "lock" if settings["verify"] else None
    return discover(agents=settings.names("agents"), project=bool(settings["project"]), verify=verify)


def find_in_catalog(catalog: prowess.Catalog, name: str, *, verify: bool = False) -> prowess.Skill:
    """The skill that a person means by a name, a folder or the path of a SKILL.md.

    A bare word is a name first, and a folder here where no skill has that name. ``verify``: the skill as the lock file
    has it. Raises ``UnknownSkillError`` for what is neither.
    """
    if is_path(name):
        return _read_skill(name, verify=verify)
    if name in catalog:
        return catalog[name]
    # A folder must not stand in for a skill of that name that the lock file records, or that was found and refused.
    why = suggest_sync(name)
    if why:
        raise UnknownSkillError(name, catalog.names, why=why)
    if (
        os.path.isdir(name)
        and not _has_load_failure(catalog, name)
        and (is_skill_folder(name) or _has_skills_below(name))
    ):
        return _read_skill(with_dot_prefix(name), verify=verify)
    return catalog[name]


def _read_skill(path: str, *, verify: bool) -> prowess.Skill:
    """The skill in a folder, or of a SKILL.md; with ``verify`` only as the lock file has it."""
    from prowess.skills.catalog import Catalog  # noqa: PLC0415
    from prowess.skills.parse import read_metadata  # noqa: PLC0415

    try:
        skill = read_metadata(path, mode="lenient")
    except SkillValidationError as error:
        if error.code == "not-found":
            raise _explain_no_skill(path) from None
        raise
    return without_edited(Catalog([skill]))[skill.name] if verify else skill


def _explain_no_skill(path: str) -> SourceError:
    """Why no skill can be read at a path: nothing lies there, or skills lie below it, of which one has to be named."""
    from prowess.authoring.check import find_skill_files  # noqa: PLC0415 - only when something went wrong

    try:
        folders = [shorten_path(os.path.dirname(file)) for file in find_skill_files(path)]
    except SourceError as error:
        return error
    message = f"this is a folder of skills, not a skill: name one of {join_first(folders, _MAX_NAMED)}"
    return SourceError(message, os.path.abspath(path), "missing-skill-md")


def _has_skills_below(name: str) -> bool:
    from prowess.discovery.scan import scan  # noqa: PLC0415 - only for a folder that is no skill

    return bool(scan(name))


def _has_load_failure(catalog: prowess.Catalog, name: str) -> bool:
    """Whether a skill in a folder of that name was found and does not count."""
    return any(os.path.basename(os.path.dirname(issue.path)) == name for issue in catalog.failures)


def is_path(name: str) -> bool:
    """Whether a person means a folder or a file rather than a name."""
    return name in {".", ".."} or "/" in name or os.sep in name or name.endswith(SKILL_FILE)


def is_skill_folder(name: str) -> bool:
    """Whether a skill lies in the folder that a text names, had it been meant as a path."""
    return os.path.lexists(os.path.join(name, SKILL_FILE))


def with_dot_prefix(name: str) -> str:
    """A relative path as it is told from a name."""
    return f".{os.sep}{name}"


def find_skill(settings: Settings, name: str) -> prowess.Skill:
    """The skill that the command line means; the standard places are looked at only for a name."""
    from prowess.skills.catalog import Catalog  # noqa: PLC0415

    return find_in_catalog(
        Catalog() if is_path(name) else load_catalog(settings), name, verify=bool(settings["verify"])
    )


def find_path(settings: Settings, written: str) -> str:
    """The path that a person means, for commands that take folders of skills too: what lies there, else a skill's.

    Raises ``UnknownSkillError`` where nothing lies there and no skill has that name.
    """
    if is_path(written) or os.path.lexists(written):
        return written
    try:
        return find_skill(settings, written).folder
    except UnknownSkillError as error:
        why = suggest_sync(written) or "there is no such file or folder"
        raise UnknownSkillError(written, error.available, why=why) from None


def suggest_sync_for(settings: Settings, verified: LockStates | None = None) -> str:
    """What to do about skills that a lock file records and that are not here; ``""`` where folders were named.

    ``verified``: what was read of the lock files already; without it, what keeps one from being read is told here.
    """
    if settings.names("folders"):
        return ""
    if verified is None:
        verified = LockStates()
        warn_lock_problems(verified)
    return suggest_sync(project=bool(settings["project"]), verified=verified)


def load_named_catalog(settings: Settings, names: tuple[str, ...]) -> prowess.Catalog:
    """The skills that are named, each by its name, its folder, its file or a folder of skills around it.

    Without names these are all the skills that the settings choose.
    """
    if not names:
        return load_catalog(settings)
    from prowess.skills.catalog import Catalog  # noqa: PLC0415

    known = Catalog() if all(map(_is_collection, names)) else load_catalog(settings)
    return Catalog(
        skill for name in names for skill in _find_named_skills(known, name, verify=bool(settings["verify"]))
    )


def _find_named_skills(catalog: prowess.Catalog, name: str, *, verify: bool) -> Iterator[prowess.Skill]:
    if name in catalog or not _is_collection(name):
        yield find_in_catalog(catalog, name, verify=verify)
        return
    from prowess.discovery.scan import scan  # noqa: PLC0415 - only for a folder of skills

    found = scan(name, missing="error")
    yield from without_edited(found) if verify else found


def _is_collection(name: str) -> bool:
    """Whether a text names a folder that is no skill itself, and so may hold some."""
    return os.path.isdir(name) and not is_skill_folder(name)


def find_skill_and_warn(settings: Settings, name: str) -> prowess.Skill:
    """The same, with a warning when it was installed and has changed since."""
    found = find_skill(settings, name)
    warn_edited_skills([found])
    return found


def quote_path(path: str) -> str:
    """A path for a command that is shown to be pasted into a shell, quoted: names in it may be anybody's."""
    from shlex import quote  # noqa: PLC0415 - only where a command is shown

    shown = shorten_path(path)
    home = "~" + os.sep
    if shown.startswith(home):  # within quotes a shell would not know the mark of the home folder
        return home + quote(shown.removeprefix(home))
    return quote(shown if os.path.isabs(shown) or shown.startswith((".", "~")) else os.path.join(os.curdir, shown))


def shorten_path(path: str) -> str:
    """A path as people write it: relative to the working folder where it lies there, with ``~`` in the home folder."""
    here, house = os.getcwd(), os.path.expanduser("~")
    for base, begin in ((here, ""), (house, "~" + os.sep)):
        inner = path_inside(path, base) if base not in {os.sep, ""} else None
        if inner is not None:
            return begin + inner if inner else ("." if base == here else "~")
    return path

"""Settings, from the defaults, the user's file, the project's file, the environment and the caller; later ones win.

The user's file is ``prowess/config.toml`` in the user's configuration folder. The project's file is the nearest
``prowess.toml`` between the working folder and the root of its git repository. In both, the settings are in the table
``[settings]``. An environment variable is ``PROWESS_`` and the name in capitals. A project's file is somebody else's
text, so it cannot set anything that decides what may run on this machine, or who gets what a model is sent, and it
names no folder outside of its repository.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from prowess.errors import Issue, ResourceError, ResourceNotFoundError, SourceError
from prowess.files.paths import is_really_inside
from prowess.files.projects import config_home, project_folders
from prowess.files.read import OpenFile
from prowess.limits import DEFAULT_LIMITS
from prowess.literals import DialectName
from prowess.text.redaction import scrub_text
from prowess.text.spelling import did_you_mean, sort_by_similarity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from prowess.limits import Limits

    Value = str | bool | int | float | tuple[str, ...] | None

SettingKind = Literal["text", "yes-or-no", "count", "share", "names", "folders"]

PROJECT_FILE, USER_FILE, SETTINGS_TABLE, SETS_TABLE = "prowess.toml", "config.toml", "settings", "sets"
DIALECT_NAMES = tuple(sorted(get_args(DialectName), key=lambda name: name != "prowess"))
"""Every dialect, the default first."""
MANIFEST_KEYS = ("agents", "mode", "requires-prowess", "skills")
"""The other keys of a project's file, where it declares its skills."""
_TRUE, _FALSE = frozenset(("1", "true", "yes", "on")), frozenset(("0", "false", "no", "off"))


class SettingSpec(NamedTuple):
    """The description of a setting: its name, kind, default and purpose, and whether a project may set it."""

    name: str
    kind: SettingKind
    default: Value
    about: str
    project_may_set: bool = True
    choices: tuple[str, ...] = ()


SETTINGS = (
    SettingSpec("agents", "names", (), "agents whose folders are searched too"),
    SettingSpec("folders", "folders", (), "folders to search instead of the standard places"),
    SettingSpec("project", "yes-or-no", default=True, about="whether the project's own skills count"),
    SettingSpec("indexes", "names", (), "sites and repositories that 'prowess find' searches"),
    SettingSpec("filter", "text", "", "a pattern for the paths of skills; models see only the skills that match"),
    SettingSpec("set", "text", "", "the named set of skills in use; models see only its skills"),
    SettingSpec("off", "names", (), "skills that are switched off; a later place adds to an earlier one"),
    SettingSpec(
        "dialect",
        "text",
        "prowess",
        "the names, schemas and wording of the tools that models see",
        choices=DIALECT_NAMES,
    ),
    SettingSpec(
        "style",
        "text",
        "",
        "the format of a listing, instead of the dialect's own",
        choices=("", "xml", "markdown", "text", "json"),
    ),
    SettingSpec("budget", "count", None, "how many tokens a listing may cost"),
    SettingSpec(
        "window", "count", None, "how many tokens the model's context window has; a chosen listing takes 2 % of it"
    ),
    SettingSpec(
        "selector", "text", "auto", "what chooses the skills that fit a query", choices=("auto", "lexical", "all")
    ),
    SettingSpec("top", "count", 1, "how many of the first skills that the selector picks count as found"),
    SettingSpec("min", "share", 1.0, "the share of queries of 'prowess eval' that must come out right"),
    SettingSpec("strict", "yes-or-no", default=False, about="whether 'prowess check' fails on warnings too"),
    SettingSpec(
        "verify",
        "yes-or-no",
        default=False,
        about="whether installed skills count only while they are what the lock file says",
        project_may_set=False,
    ),
    SettingSpec("cache_days", "count", 180, "how many days the cache keeps what nobody uses", project_may_set=False),
    SettingSpec(
        "cache_megabytes", "count", 2_048, "how much the cache keeps, in megabytes (MiB)", project_may_set=False
    ),
    SettingSpec(
        "model",
        "text",
        "",
        "the model of 'prowess run' and 'prowess try', as provider:name",
        project_may_set=False,
    ),
    SettingSpec(
        "base_url",
        "text",
        "",
        "the address of a server that speaks OpenAI's protocol, for the model",
        project_may_set=False,
    ),
    SettingSpec("timeout", "count", None, "how many seconds one request to a model may take"),
    SettingSpec(
        "sandbox",
        "text",
        "auto",
        "the isolation of scripts",
        project_may_set=False,
        choices=("auto", "bwrap", "landlock", "none"),
    ),
)
"""Every setting; the reference page is made from this table."""

_BY_NAME = {spec.name: spec for spec in SETTINGS}


@dataclass(frozen=True, slots=True)
class Setting:
    """A value, and where it came from: ``default``, the path of a file, the name of a variable, or ``flag``."""

    name: str
    value: Value
    origin: str


class Settings:
    """Every setting by name. ``origin`` says where a value came from, ``issues`` what is wrong in the files."""

    def __init__(
        self,
        found: Mapping[str, Setting],
        issues: tuple[Issue, ...] = (),
        sets: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    ) -> None:
        self._by_name = dict(found)
        self.issues = issues
        self.sets = dict(sets)
        """The named sets: the names of the skills of each."""

    def __getitem__(self, name: str) -> Value:
        """Return the value of a setting; raise ``KeyError`` for a name that is not a setting."""
        return self._by_name[name].value

    def __iter__(self) -> Iterator[Setting]:
        return (self._by_name[spec.name] for spec in SETTINGS)

    def __len__(self) -> int:
        return len(self._by_name)

    def __repr__(self) -> str:
        """Show the settings that are not defaults."""
        rows = (f"{s.name}={s.value!r}" for s in self if s.origin != "default")
        return f"Settings({', '.join(rows)})"

    def origin(self, name: str) -> str:
        """Return where the value of a setting came from."""
        return self._by_name[name].origin

    def text(self, name: str) -> str:
        """Return the value of a setting that is text; ``""`` for a setting of another kind."""
        value = self[name]
        return value if isinstance(value, str) else ""

    def number(self, name: str) -> int | None:
        """Return the value of a setting that is a count; ``None`` when it is not set, or of another kind."""
        value = self[name]
        return value if isinstance(value, int) and not isinstance(value, bool) else None  # True is an int to Python

    def is_off(self, skill: str) -> bool:
        """Return whether models do not see a skill: it is switched off, or not in the set in use."""
        in_use = self.text("set")
        return skill in self.names("off") or bool(in_use and skill not in self.sets[in_use])

    def names(self, name: str) -> tuple[str, ...]:
        """Return the value of a setting that is a list; ``()`` for a setting of another kind."""
        value = self[name]
        return value if isinstance(value, tuple) else ()


def load_settings(
    cwd: str | os.PathLike[str] | None = None,
    home: str | os.PathLike[str] | None = None,
    *,
    flags: Mapping[str, Value] | None = None,
    env: Mapping[str, str] | None = None,
    project: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> Settings:
    """Return every setting with the value that it has in a folder; ``project=False`` leaves a project's file out.

    ``flags`` are the values of the caller; ``None`` and ``()`` set nothing. With ``home`` given, no environment
    variable counts, unless ``env`` is given too. Raises ``SourceError`` for a value that makes no sense; a key that
    does not exist is an issue.
    """
    here = os.path.abspath(os.fspath(cwd) if cwd is not None else os.getcwd())
    house = os.path.abspath(os.fspath(home) if home is not None else os.path.expanduser("~"))
    variables = env if env is not None else os.environ if home is None else {}
    issues: list[Issue] = []
    # Each step replaces what the ones before have set: the order is the precedence.
    settings = {spec.name: Setting(spec.name, spec.default, "default") for spec in SETTINGS}
    sets: dict[str, tuple[str, ...]] = {}
    steps = [
        _read_file_settings(path, issues, sets, project=root, limits=limits)
        for path, root in _find_files(here, house, variables)
        if project or not root
    ]
    flagged = {name: value for name, value in (flags or {}).items() if value not in (None, ())}
    for step in (*steps, _read_environment(variables), {n: _make_flag_setting(n, v) for n, v in flagged.items()}):
        former = _as_names(settings["off"].value)
        settings |= step
        if "off" in step:  # whoever switches another skill off does not switch these on
            names = dict.fromkeys((*former, *_as_names(step["off"].value)))
            settings["off"] = replace(step["off"], value=tuple(names))
    in_use = settings["set"]
    if in_use.value and in_use.value not in sets:
        known = ", ".join(sorted(sets)) or "none"
        message = f"there is no set {in_use.value!r}: write a table [{SETS_TABLE}.{in_use.value}]; there are: {known}"
        raise SourceError(message, in_use.origin, "bad-setting")
    return Settings(settings, tuple(issues), sets)


def _as_names(value: Value) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()


def find_settings_files(cwd: str, home: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the paths of the settings files that exist, the user's first."""
    return tuple(path for path, _ in _find_files(cwd, home, env))


def _find_files(cwd: str, home: str, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the path of each settings file, and the root of the project that it belongs to; ``""``: the user's."""
    user_file = os.path.join(config_home(home, env), "prowess", USER_FILE)
    if os.path.lexists(user_file):
        yield user_file, ""
    folders = project_folders(cwd, home)
    for folder in folders:
        path = os.path.join(folder, PROJECT_FILE)
        if os.path.lexists(path):
            yield path, folders[-1]
            return


def _read_file_settings(
    path: str, issues: list[Issue], sets: dict[str, tuple[str, ...]], *, project: str, limits: Limits
) -> dict[str, Setting]:
    settings: dict[str, Setting] = {}
    table, found = _read_tables(path, issues, is_project=bool(project), limits=limits)
    sets |= found
    for name, value in table.items():
        spec = _BY_NAME.get(name)
        if spec is None:
            meant = sort_by_similarity(name, sorted(_BY_NAME))[0]
            issues.append(
                Issue("unknown-setting", name, f"is not a setting; did you mean {meant!r}?", path, 0, "warning")
            )
        elif project and not spec.project_may_set:
            message = "cannot be set by a project, because it decides what may run here, or who gets what you send"
            issues.append(Issue("user-setting", name, message, path, 0, "warning"))
        else:
            checked = _resolve_folders(spec, _check_value(spec, _from_toml(spec, value), path), os.path.dirname(path))
            if project and spec.kind == "folders":
                checked = _drop_folders_outside(name, checked, path, project, issues)
            settings[name] = Setting(name, checked, path)
    return settings


def _drop_folders_outside(name: str, value: Value, path: str, project: str, issues: list[Issue]) -> Value:
    """Return the folders that are in the project, also when links are followed; an issue names each of the others."""
    kept = []
    for folder in value if isinstance(value, tuple) else ():
        if is_really_inside(folder, project):
            kept.append(folder)
        else:
            message = f"cannot name a folder outside of the project: {folder!r} is not searched"
            issues.append(Issue("user-setting", name, message, path, 0, "warning"))
    return tuple(kept)


def _read_tables(
    path: str, issues: list[Issue], *, is_project: bool, limits: Limits
) -> tuple[Mapping[str, object], dict[str, tuple[str, ...]]]:
    folder, name = os.path.split(path)
    try:
        with OpenFile(folder, (name,)) as file:
            data = file.read_all(limits.max_resource_bytes)
    except ResourceNotFoundError:
        return {}, {}
    except ResourceError as error:
        raise SourceError(f"cannot read the settings: {error.message}", path, error.code) from None
    import tomllib

    try:
        whole = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        from prowess.lockfile.merge import find_marker

        line = find_marker(data.decode("utf-8", "replace"))
        if line:
            message = f"{name} is in conflict: it holds git's markers (line {line})"
            raise SourceError(message, path, "manifest-conflict") from None
        raise SourceError(f"not TOML: {error}", path, "bad-setting") from None
    table = whole.pop(SETTINGS_TABLE, {})
    sets = _parse_sets(whole.pop(SETS_TABLE, {}), path)
    # In a project's file the manifest is beside the settings; in the user's file its keys would do nothing.
    issues += [
        _misplaced_issue(name, path, is_project=is_project)
        for name in whole
        if not (is_project and name in MANIFEST_KEYS)
    ]
    if not isinstance(table, dict):
        raise SourceError(f"[{SETTINGS_TABLE}] must be a table", path, "bad-setting")
    return table, sets


def _parse_sets(table: object, path: str) -> dict[str, tuple[str, ...]]:
    """Return the named sets of a file; raise ``SourceError`` for one that has anything but a list of skills."""
    entries = table.items() if isinstance(table, dict) else [("NAME", None)]
    for name, entry in entries:
        names = entry.get("skills") if isinstance(entry, dict) and len(entry) == 1 else None
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise SourceError(f'[{SETS_TABLE}.{name}] has one key: skills = ["NAME", …]', path, "bad-setting")
    return {name: tuple(entry["skills"]) for name, entry in entries if isinstance(entry, dict)}


def _misplaced_issue(name: str, path: str, *, is_project: bool) -> Issue:
    """Return the issue for a key outside the table of settings and means nothing there."""
    if name in _BY_NAME:
        why = f"is a setting, and belongs below [{SETTINGS_TABLE}]"
    else:
        guess = did_you_mean(name, (SETTINGS_TABLE, SETS_TABLE, *(MANIFEST_KEYS if is_project else ())))
        why = f"means nothing here; {guess or f'settings are below [{SETTINGS_TABLE}]'}"
    return Issue("unknown-setting", name, why, path, 0, "warning")


def _from_toml(spec: SettingSpec, value: object) -> object:
    if isinstance(value, list):
        return tuple(value)
    return float(value) if spec.kind == "share" and isinstance(value, int) and not isinstance(value, bool) else value


def _read_environment(env: Mapping[str, str]) -> dict[str, Setting]:
    settings: dict[str, Setting] = {}
    for spec in SETTINGS:
        variable = f"PROWESS_{spec.name.upper()}"
        text = env.get(variable, "")
        if text:
            value = _check_value(spec, _from_text(spec, text), variable)
            settings[spec.name] = Setting(spec.name, _resolve_folders(spec, value, os.getcwd()), variable)
    return settings


def _from_text(spec: SettingSpec, text: str) -> object:
    """Return the value that a string means; one that means none comes back as it is, for ``_check_value`` to refuse."""
    readers: dict[SettingKind, Callable[[str], object]] = {
        "names": lambda text: tuple(part.strip() for part in text.split(",") if part.strip()),
        "folders": lambda text: tuple(part for part in text.split(os.pathsep) if part),
        "yes-or-no": _parse_bool,
        # isdigit alone accepts superscripts, which int refuses, and the digits of other scripts.
        "count": lambda text: int(text) if text.isascii() and text.isdigit() else text,
        "share": _parse_float,
    }
    return readers.get(spec.kind, str)(text)


def _parse_bool(text: str) -> bool | str:
    word = text.strip().lower()
    return word in _TRUE if word in _TRUE | _FALSE else text


def _parse_float(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _make_flag_setting(name: str, value: Value) -> Setting:
    return Setting(name, _check_value(_BY_NAME[name], value, "flag"), "flag")


def _is_text_tuple(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, str) for item in value)


_KIND_CHECKS: dict[SettingKind, tuple[Callable[[object], bool], str]] = {
    "text": (lambda value: isinstance(value, str), "text"),
    "yes-or-no": (lambda value: isinstance(value, bool), "true or false"),
    "count": (lambda value: value is None or (type(value) is int and value >= 0), "a whole number, 0 or more"),
    "share": (lambda value: isinstance(value, float) and 0 <= value <= 1, "a number from 0 to 1"),
    "names": (_is_text_tuple, "a list of texts"),
    "folders": (_is_text_tuple, "a list of folders"),
}


def _check_value(spec: SettingSpec, value: object, origin: str) -> Value:
    """Return the value; raise ``SourceError`` when it is not of the setting's kind, or none of its choices."""
    is_valid, expected = _KIND_CHECKS[spec.kind]
    if not is_valid(value):
        raise SourceError(
            f"setting {spec.name!r} must be {expected}, not {scrub_text(str(value))[:80]!r}", origin, "bad-setting"
        )
    if spec.choices and value not in spec.choices:
        shown = ", ".join(choice or "''" for choice in spec.choices)
        raise SourceError(
            f"setting {spec.name!r} must be one of {shown}, not {scrub_text(str(value))[:80]!r}", origin, "bad-setting"
        )
    return value  # type: ignore[return-value]  # the check above proves it


def _resolve_folders(spec: SettingSpec, value: Value, folder: str) -> Value:
    """Return the value with relative folders below ``folder``: those in a file are relative to the file."""
    if spec.kind != "folders" or not isinstance(value, tuple):
        return value
    return tuple(os.path.normpath(os.path.join(folder, os.path.expanduser(path))) for path in value)

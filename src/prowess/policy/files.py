"""The policy files: where they are, who may have written them, and what they hold.

``policy.toml``, ``approved.toml`` and ``revoked.toml`` are read from three folders: the machine's, the user's, and the
root of the project. A file of the project comes with a clone, so it can only tighten: its approvals grant nothing.
A file that is malformed, or that somebody else could have written, stops everything that it could have refused.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date, datetime
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from prowess.errors import PolicyError, ResourceError, ResourceNotFoundError
from prowess.files.identity import identity_at
from prowess.files.paths import as_absolute
from prowess.files.projects import config_home, project_folders
from prowess.files.read import OpenFile
from prowess.limits import DEFAULT_LIMITS
from prowess.policy.rules import RULES, RUNNER_MARK, Approval, Policy, Revocation, Rule, is_address_pattern
from prowess.text.spelling import did_you_mean
from prowess.text.versions import is_range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from prowess.files.read import Identity
    from prowess.limits import Limits
    from prowess.policy.rules import RuleKind, RuleValue

    FolderState = tuple[int, int] | None

T = TypeVar("T")
POLICY_FILE, APPROVED_FILE, REVOKED_FILE = "policy.toml", "approved.toml", "revoked.toml"
_FILES = (POLICY_FILE, APPROVED_FILE, REVOKED_FILE)
_OTHERS_WRITE = 0o022


class PolicyFolder(NamedTuple):
    """A folder with policy files, and whether what it holds may open something."""

    path: str
    is_trusted: bool


def machine_folder() -> str:
    """Return the folder of the machine's policy, which an administrator fills."""
    if os.name == "nt":
        return os.path.join(os.environ.get("ProgramData", r"C:\ProgramData"), "prowess")  # noqa: SIM112 - its name there
    return "/etc/prowess"


def list_policy_folders(projects: Iterable[str], home: str, env: Mapping[str, str]) -> tuple[PolicyFolder, ...]:
    """Return the folders of the machine, the user and a project; those of a project are trusted with nothing."""
    user = os.path.join(config_home(home, env), "prowess")
    folders = [PolicyFolder(machine_folder(), is_trusted=True)]
    if not _is_closed_by_another(user):
        folders.append(PolicyFolder(user, is_trusted=True))
    # Neither of the first two counts a second time with less trust.
    known = {os.path.realpath(folder.path) for folder in folders}
    folders += [PolicyFolder(one, is_trusted=False) for one in projects if os.path.realpath(one) not in known]
    return tuple(folders)


def _is_closed_by_another(path: str) -> bool:
    """Return whether a path leads through another user's closed folder.

    A service, or ``sudo``, can keep the ``HOME`` of somebody else; what is in there is not this user's policy.
    """
    try:
        os.lstat(path)
    except PermissionError:
        while not os.path.exists(path):
            path = os.path.dirname(path)
        return hasattr(os, "geteuid") and os.stat(path).st_uid != os.geteuid()
    except OSError:
        return False
    return False


def load_policy(folder: str | os.PathLike[str], limits: Limits = DEFAULT_LIMITS) -> Policy:
    """Return what the policy files in one folder say, for a program that names its own policy: see ``use_policy``.

    Raises ``PolicyError``: ``bad-policy`` for a file that is malformed, ``unknown-rule`` for one with a rule that this
    version does not know, ``unsafe-policy`` for one that somebody else could have written.
    """
    return _read_policy_in(PolicyFolder(as_absolute(folder, "folder"), is_trusted=True), limits)


# -- the policy in force -----------------------------------------------------------------------------------------------

_chosen: ContextVar[Policy | None] = ContextVar("prowess_policy", default=None)


_also: ContextVar[str] = ContextVar("prowess_policy_folder", default="")


class _Known(NamedTuple):
    """A policy, and the state of its folders and files when it was read."""

    policy: Policy
    folders: tuple[FolderState, ...]
    files: tuple[tuple[str, Identity | None], ...]
    settled: bool
    """False when a folder or file had just changed: a second change within one tick of the clock would not show."""


_known: dict[tuple[PolicyFolder, ...], _Known] = {}
_places: dict[tuple[str, str, str], tuple[PolicyFolder, ...]] = {}
"""The folders that count in a folder. A root of a project that is made around it later is not looked for."""
_MAX_KEPT = 64
_CLOCK_TICK_NS = 50_000_000


def current_policy(folder: str = "") -> Policy:
    """Return the policy that is in force in a folder (by default the working folder).

    A file that was changed counts from the next call on. Raises ``PolicyError`` as ``load_policy`` does.
    """
    chosen = _chosen.get()
    if chosen is not None:
        return chosen
    places = _find_folders(folder)
    # This is asked for each skill that is loaded (bench row "load_skill"): a new file shows in the state of its folder.
    state = tuple([_folder_state(place.path) for place in places])
    known = _known.get(places)
    if known is not None and known.settled and known.folders == state:
        for path, identity in known.files:
            if identity_at(path) != identity:
                break
        else:
            return known.policy
    paths = [os.path.join(place.path, name) for place in places for name in _FILES]
    files = tuple((path, identity) for path in paths if (identity := identity_at(path)) is not None)
    policy = reduce(and_, (_read_policy_in(place, DEFAULT_LIMITS) for place in places))
    newest = time.time_ns() - _CLOCK_TICK_NS
    if len(_known) >= _MAX_KEPT:
        _known.clear()
    times = [one[1] for one in state if one is not None] + [identity[3] for _, identity in files]
    _known[places] = _Known(policy, state, files, settled=all(one < newest for one in times))
    return policy


def _folder_state(path: str) -> FolderState:
    try:
        info = os.stat(path)
    except (OSError, ValueError):
        return None
    return info.st_ino, info.st_mtime_ns


def list_policy_files(folder: str = "") -> tuple[str, ...]:
    """Return the paths of the policy files that count in a folder, whether or not they exist."""
    return tuple(os.path.join(one.path, name) for one in _find_folders(folder) for name in _FILES)


def _find_folders(folder: str) -> tuple[PolicyFolder, ...]:
    more = _also.get()
    return tuple(dict.fromkeys((*_folders_of(folder), *_folders_of(more)))) if more else _folders_of(folder)


def _folders_of(folder: str) -> tuple[PolicyFolder, ...]:
    home = os.path.expanduser("~")
    try:
        here = os.path.abspath(folder) if folder else os.getcwd()
    except OSError:  # the working folder is gone
        here = ""
    key = here, home, os.environ.get("XDG_CONFIG_HOME", "")
    places = _places.get(key)
    if places is None:
        # All of them up to the root of the repository: a project in another one is not out of its policy.
        places = list_policy_folders(project_folders(here, home) if here else (), home, os.environ)
        if len(_places) >= _MAX_KEPT:
            _places.clear()
        _places[key] = places
    return places


@contextmanager
def add_policy_of(folder: str) -> Iterator[None]:
    """Have the policy files that count in ``folder`` count everywhere until the block ends, beside those that do."""
    token = _also.set(os.path.abspath(folder))
    try:
        yield
    finally:
        _also.reset(token)


@contextmanager
def use_policy(policy: Policy) -> Iterator[Policy]:
    """Have this policy in force, in place of the one of the files, until the block ends.

    The one way in which a program loosens what the files say: it names the policy that counts instead. To tighten,
    pass ``prowess.current_policy() & more``. It counts in this thread, in the tasks that it starts, and in the threads
    in which frameworks run tools for it. A plain thread begins without it: give it ``contextvars.copy_context().run``.
    """
    token = _chosen.set(policy)
    try:
        yield policy
    finally:
        _chosen.reset(token)


def bind_policy(function: Callable[..., T]) -> Callable[..., T]:
    """Return a function for a plain thread, in which the policy that is chosen here and now counts."""
    chosen, also = _chosen.get(), _also.get()

    def run(*arguments: object) -> T:
        _chosen.set(chosen)
        _also.set(also)
        return function(*arguments)

    return run


# -- the files ---------------------------------------------------------------------------------------------------------


def _read_policy_in(folder: PolicyFolder, limits: Limits) -> Policy:
    # An administrator's folder in which others may write could have had any file, which they have deleted.
    if folder.path == machine_folder() and os.path.isdir(folder.path) and not _is_safe(os.stat(folder.path)):
        message = "the policy cannot be trusted: others than the administrator may write to its folder"
        raise PolicyError(message, folder.path, "unsafe-policy")
    rules, approvals, revocations, files = [], [], [], []
    for name in _FILES:
        if name == APPROVED_FILE and not folder.is_trusted:
            continue
        path = os.path.join(folder.path, name)
        content = _read_toml(path, folder, limits)
        if content is None:
            continue
        files.append(path)
        if name == POLICY_FILE:
            rules = [*_parse_rules(content, path)]
        elif name == REVOKED_FILE:
            revocations = [_parse_revocation(entry, path) for entry in _list_entries(content, path)]
        else:
            approvals = [_parse_approval(entry, path) for entry in _list_entries(content, path)]
    return Policy(tuple(rules), tuple(approvals), tuple(revocations), tuple(files))


def _read_toml(path: str, folder: PolicyFolder, limits: Limits) -> dict[str, Any] | None:
    """Return the content of a policy file; ``None`` where there is none."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        if os.path.islink(folder.path) and not os.path.isdir(folder.path):
            raise PolicyError("its folder is a link that leads nowhere", path, "bad-policy") from None
        return None
    except OSError as error:  # nobody knows what a folder that cannot be entered forbids
        raise PolicyError(f"cannot read the policy: {error.strerror}", path, "bad-policy") from None
    import tomllib

    try:
        with OpenFile(folder.path, (os.path.basename(path),)) as file:
            if folder.is_trusted and not (_is_safe(file.info) and _is_safe(os.stat(folder.path))):
                message = "somebody besides you and the administrator may write to it, or to its folder"
                raise PolicyError(f"the policy cannot be trusted: {message}", path, "unsafe-policy")
            data = file.read_all(limits.max_policy_bytes)
        return tomllib.loads(data.decode("utf-8"))
    except ResourceNotFoundError as error:
        raise PolicyError(f"cannot read the policy: {error.message}", path, "bad-policy") from None
    except (ResourceError, OSError) as error:
        raise PolicyError(f"cannot read the policy: {error}", path, "bad-policy") from None
    except (ValueError, RecursionError) as error:
        raise PolicyError(f"the policy is not TOML: {error}", path, "bad-policy") from None


def _is_safe(info: os.stat_result) -> bool:
    """Return whether only root or this user may write to a file or a folder; always true on Windows."""
    if not hasattr(os, "geteuid"):
        return True
    return info.st_uid in {0, os.geteuid()} and not info.st_mode & _OTHERS_WRITE


def _parse_rules(content: Mapping[str, Any], path: str) -> Iterator[Rule]:
    for table, rules in content.items():
        if not isinstance(rules, dict):
            message = f"{table!r} has to be a table, [{table}]; a file of another program needs another name"
            raise PolicyError(message, path, "bad-policy")
        for key, value in rules.items():
            name = f"{table}.{key}"
            kind = RULES.get(name)
            if kind is None:
                guess = did_you_mean(name, sorted(RULES))
                message = f"[{table}] {key} is a rule that this version does not know{f'; {guess}' if guess else ''}"
                raise PolicyError(message, path, "unknown-rule")
            yield Rule(name, _check_value(name, kind, value, path), path)
        if not rules and not any(name.startswith(f"{table}.") for name in RULES):
            raise PolicyError(f"[{table}] is a table that this version does not know", path, "unknown-rule")


def _check_value(name: str, kind: RuleKind, value: object, path: str) -> RuleValue:
    if kind.is_list:
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            unknown = [item for item in value if kind.choices and item not in kind.choices]
            if name == "run.sandbox":  # a runner of a host has a name of its own
                unknown = [item for item in unknown if not item.startswith(RUNNER_MARK)]
            if name == "sources.allow":
                unknown = [item for item in value if not is_address_pattern(item)]
            if not unknown:
                return tuple(value)
        expected = (
            f"a list of {', '.join(kind.choices)}" if kind.choices else "a list of addresses such as https://host/**"
        )
    elif kind.is_number:
        if type(value) is int and value >= 0:
            return value
        expected = "a whole number, 0 or more"
    else:
        word = str(value).lower() if isinstance(value, bool) and kind.words == ("false", "true") else value
        if (
            isinstance(word, str)
            and word in kind.words
            and isinstance(value, bool) == (kind.words == ("false", "true"))
        ):
            return word
        expected = " or ".join(kind.words) if kind.words == ("false", "true") else "one of " + ", ".join(kind.words)
    raise PolicyError(f"{name} has to be {expected}, not {value!r:.80}", path, "bad-policy")


def _list_entries(content: Mapping[str, Any], path: str) -> list[dict[str, Any]]:
    unknown = [key for key in content if key != "skill"]
    entries = content.get("skill", [])
    if unknown or not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise PolicyError("it has tables [[skill]] and nothing else", path, "bad-policy")
    return entries


_APPROVAL_FIELDS = {
    "digest": str, "name": str, "source": str, "commit": str, "reviewer": str, "run": bool, "expires": date,
}  # fmt: skip
_REVOCATION_FIELDS = {"digest": str, "source": str, "range": str, "reason": str, "action": str, "name": str}


def _parse_approval(entry: dict[str, Any], path: str) -> Approval:
    fields = _check_fields(entry, _APPROVAL_FIELDS, path)
    if "digest" not in fields:
        raise PolicyError('an approval names the digest of a skill: digest = "…"', path, "bad-policy")
    return Approval(**fields, file=path)


def _parse_revocation(entry: dict[str, Any], path: str) -> Revocation:
    fields = _check_fields(entry, _REVOCATION_FIELDS, path)
    fields.pop("name", None)  # for whoever reads the file
    if bool(fields.get("digest")) == bool(fields.get("source")):
        raise PolicyError("a revocation names either a digest or a source", path, "bad-policy")
    if fields.get("source") and not is_address_pattern(fields["source"]):
        message = f"{fields['source']!r:.80} can match no source: name an address such as https://host/repository, or file:///path"
        raise PolicyError(message, path, "bad-policy")
    if fields.get("range") and (not fields.get("source") or not is_range(fields["range"])):
        raise PolicyError("range goes with source, and is such as '<1.4' or '>=1.0,<2'", path, "bad-policy")
    if fields.get("action", "remove") not in {"refuse", "remove"}:
        raise PolicyError("action is 'refuse' or 'remove'", path, "bad-policy")
    return Revocation(**fields, file=path)


def _check_fields(entry: dict[str, Any], kinds: Mapping[str, type], path: str) -> dict[str, Any]:
    for key, value in entry.items():
        if key not in kinds:
            guess = did_you_mean(key, sorted(kinds))
            raise PolicyError(
                f"[[skill]] has the field {key!r}, which this version does not know{f'; {guess}' if guess else ''}",
                path, "unknown-rule",
            )  # fmt: skip
        if not isinstance(value, kinds[key]) or isinstance(value, datetime):
            wanted = {str: "a string", bool: "true or false", date: "a date such as 2027-01-31"}[kinds[key]]
            raise PolicyError(f"[[skill]] {key} has to be {wanted}, not {value!r:.80}", path, "bad-policy")
    fields = dict(entry)
    if "digest" in fields:
        fields["digest"] = _check_digest(fields["digest"], path)
    return fields


_DIGEST_CHARS = 64


def _check_digest(written: str, path: str) -> str:
    digest = written.removeprefix("sha256:")
    if len(digest) != _DIGEST_CHARS or set(digest) - set("0123456789abcdef"):
        raise PolicyError(
            f"{written!r:.80} is not a digest: 64 hexadecimal digits, as 'prowess show' prints them", path, "bad-policy"
        )
    return digest

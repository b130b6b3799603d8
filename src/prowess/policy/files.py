"""The policy files: where they are, who may have written them, and what they hold.

``policy.toml``, ``approved.toml`` and ``revoked.toml`` are read from two folders, the machine's and the user's. A
project has ``prowess-policy.toml`` and ``prowess-revoked.toml``: in its folder ``policy.toml`` is often a file of
another program. What a project has comes with a clone, so it can only tighten: it grants nothing. A file that is
malformed, or that somebody else could have written, stops everything that it could have refused.
"""

from __future__ import annotations

import hashlib
import math
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
from prowess.files.projects import config_home, project_folders, user_state_file
from prowess.files.read import OpenFile
from prowess.limits import DEFAULT_LIMITS
from prowess.policy.rules import (
    RULES,
    Approval,
    Mirror,
    Policy,
    Revocation,
    Rule,
    is_address_pattern,
    is_mirror_address,
)
from prowess.text.spelling import did_you_mean
from prowess.text.versions import is_range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from prowess.files.read import Identity
    from prowess.limits import Limits
    from prowess.policy.rules import RuleKind, RuleValue

    FolderState = tuple[int, int] | None

T = TypeVar("T")
POLICY_FILE, APPROVED_FILE, REVOKED_FILE = "policy.toml", "approved.toml", "revoked.toml"
ADVISORIES_FILE = "advisories.json"
SIGNERS_FILE = "allowed_signers"
FETCHED_FILE = "fetched"
"""The file whose time says when the files of a folder were fetched."""
POLICY_FILES = (REVOKED_FILE, ADVISORIES_FILE, APPROVED_FILE, SIGNERS_FILE, POLICY_FILE)
"""All files of a folder, those first that only forbid."""
_URL_RULE = "policy-url"
_PROJECT_PREFIX = "prowess-"
_OTHERS_WRITE = 0o022


class PolicyFolder(NamedTuple):
    """A folder with policy files, and whether what it holds may open something."""

    path: str
    is_trusted: bool
    is_fetched: bool = False
    """Whether it is a copy of what a ``policy-url`` has."""

    def list_paths(self) -> tuple[str, ...]:
        """Return the paths of its files that count, whether or not they exist."""
        if not self.is_trusted:
            names = tuple(f"{_PROJECT_PREFIX}{name}" for name in (POLICY_FILE, REVOKED_FILE, ADVISORIES_FILE))
        else:
            # allowed_signers is read with a rule that names it
            names = (POLICY_FILE, APPROVED_FILE, REVOKED_FILE, ADVISORIES_FILE)
        return tuple(os.path.join(self.path, name) for name in names)


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
    files: tuple[tuple[str, Identity], ...]
    settled: bool
    """False when a folder or file had just changed: a second change within one tick of the clock would not show."""
    fetched: tuple[PolicyFolder, ...] = ()
    """The folders with what was fetched from a ``policy-url``."""
    until: float = math.inf
    """When the first of them is too old."""

    def counts_now(self) -> bool:
        """Return whether nothing that was fetched is too old."""
        return not self.fetched or self.until > time.time()


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
    known = _known.get(places)
    if known is not None:
        places_now = (*places, *known.fetched)
        state = tuple([_folder_state(place.path) for place in places_now])
    if known is not None and known.settled and known.folders == state and known.counts_now():
        for path, identity in known.files:
            if identity_at(path) != identity:
                break
        else:
            return known.policy
    # The states before the files: what changes while they are read shows the next time.
    looked = _look_at(places)
    policy = read_local_policy(folder)
    fetched = tuple(PolicyFolder(fetched_folder(url), is_trusted=True, is_fetched=True) for url in list_urls(policy))
    until = min((_find_end(place) for place in fetched), default=math.inf)
    looked_later = _look_at(fetched)
    state, files = looked[0] + looked_later[0], looked[1] + looked_later[1]
    policy = reduce(and_, (_read_policy_in(place, DEFAULT_LIMITS) for place in fetched), policy)
    newest = time.time_ns() - _CLOCK_TICK_NS
    if len(_known) >= _MAX_KEPT:
        _known.clear()
    times = [one[1] for one in state if one is not None] + [identity[3] for _, identity in files]
    settled = all(one < newest for one in times)
    _known[places] = _Known(policy, state, files, settled, fetched, until)
    return policy


def _look_at(
    places: Sequence[PolicyFolder],
) -> tuple[tuple[FolderState, ...], tuple[tuple[str, Identity], ...]]:
    """Return the states of some folders, and of the files in them."""
    state = tuple(_folder_state(place.path) for place in places)
    paths = (path for place in places for path in place.list_paths())
    return state, tuple((path, identity) for path in paths if (identity := identity_at(path)) is not None)


def read_local_policy(folder: str = "") -> Policy:
    """Return the policy that counts in a folder without what is fetched from a ``policy-url``."""
    return reduce(and_, (_read_policy_in(place, DEFAULT_LIMITS) for place in _find_folders(folder)))


def list_urls(policy: Policy) -> tuple[str, ...]:
    """Return the addresses from which a policy is fetched."""
    return tuple(
        str(one) for rule in policy.find_rules(_URL_RULE) if isinstance(rule.value, tuple) for one in rule.value
    )


def fetched_folder(url: str) -> str:
    """Return the folder with the files that were fetched from a ``policy-url``."""
    return user_state_file(os.path.join("policy", hashlib.sha256(url.encode()).hexdigest()[:32]))


def check_fetched(folder: str, url: str, limits: Limits) -> None:
    """Raise ``PolicyError`` for files, fetched from a ``policy-url``, that are malformed."""
    try:
        _read_policy_in(PolicyFolder(folder, is_trusted=True, is_fetched=True), limits)
    except PolicyError as error:
        raise PolicyError(error.message, f"{url}{os.path.basename(error.path)}", error.code) from None


def _find_end(folder: PolicyFolder) -> float:
    """Return until when a fetched policy counts; raises ``PolicyError`` for one that is missing or too old."""
    path = os.path.join(folder.path, FETCHED_FILE)
    try:
        end = os.stat(path).st_mtime + DEFAULT_LIMITS.max_policy_age_seconds
    except OSError:
        raise PolicyError(f"the policy of a {_URL_RULE} was never fetched", path, "policy-not-fetched") from None
    if end <= time.time():
        raise PolicyError(f"the policy of a {_URL_RULE} was fetched too long ago", path, "policy-not-fetched")
    return end


def _folder_state(path: str) -> FolderState:
    try:
        info = os.stat(path)
    except (OSError, ValueError):
        return None
    return info.st_ino, info.st_mtime_ns


def list_policy_files(folder: str = "") -> tuple[str, ...]:
    """Return the paths of the policy files that count in a folder, whether or not they exist."""
    return tuple(path for one in _find_folders(folder) for path in one.list_paths())


def list_uncounted_files(folder: str = "") -> tuple[str, ...]:
    """Return the files of projects that look like a policy and do not count: by their name, or since they grant."""
    names = (POLICY_FILE, REVOKED_FILE, APPROVED_FILE, f"{_PROJECT_PREFIX}{APPROVED_FILE}")
    paths = [os.path.join(one.path, name) for one in _find_folders(folder) if not one.is_trusted for name in names]
    return tuple(path for path in paths if os.path.lexists(path))


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
    rules: list[Rule] = []
    approvals: list[Approval] = []
    revocations: list[Revocation] = []
    files: list[str] = []
    for path in folder.list_paths():
        if path.endswith(ADVISORIES_FILE):
            data = _read_file(path, folder, limits)
            files += [path] if data is not None else []
            revocations += _parse_advisories(data, path) if data is not None else ()
            continue
        content = _read_toml(path, folder, limits)
        if content is None:
            continue
        files.append(path)
        if path.endswith(POLICY_FILE):
            rules = [_add_keys(one, folder, limits, files) for one in _parse_rules(content, path, folder)]
        elif path.endswith(REVOKED_FILE):
            revocations += [_parse_revocation(entry, path) for entry in _list_entries(content, path)]
        else:
            approvals = [_parse_approval(entry, path) for entry in _list_entries(content, path)]
    return Policy(tuple(rules), tuple(approvals), tuple(revocations), tuple(files))


def _read_toml(path: str, folder: PolicyFolder, limits: Limits) -> dict[str, Any] | None:
    """Return the content of a policy file; ``None`` where there is none."""
    data = _read_file(path, folder, limits)
    if data is None:
        return None
    import tomllib

    try:
        return tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise PolicyError(f"the policy is not TOML: {error}", path, "bad-policy") from None


def _read_file(path: str, folder: PolicyFolder, limits: Limits) -> bytes | None:
    """Return the bytes of a policy file; ``None`` where there is none."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        if os.path.islink(folder.path) and not os.path.isdir(folder.path):
            raise PolicyError("its folder is a link that leads nowhere", path, "bad-policy") from None
        return None
    except OSError as error:  # nobody knows what a folder that cannot be entered forbids
        raise PolicyError(f"cannot read the policy: {error.strerror}", path, "bad-policy") from None
    try:
        with OpenFile(folder.path, (os.path.basename(path),)) as file:
            if folder.is_trusted and not (_is_safe(file.info) and _is_safe(os.stat(folder.path))):
                message = "somebody besides you and the administrator may write to it, or to its folder"
                raise PolicyError(f"the policy cannot be trusted: {message}", path, "unsafe-policy")
            return file.read_all(limits.max_policy_bytes)
    except ResourceNotFoundError as error:
        raise PolicyError(f"cannot read the policy: {error.message}", path, "bad-policy") from None
    except (ResourceError, OSError) as error:
        raise PolicyError(f"cannot read the policy: {error}", path, "bad-policy") from None


def _is_safe(info: os.stat_result) -> bool:
    """Return whether only root or this user may write to a file or a folder; always true on Windows."""
    if not hasattr(os, "geteuid"):
        return True
    return info.st_uid in {0, os.geteuid()} and not info.st_mode & _OTHERS_WRITE


def _add_keys(rule: Rule, folder: PolicyFolder, limits: Limits, files: list[str]) -> Rule:
    """Return a rule with the keys of the signers that it names, which are in a file beside it."""
    if rule.key != "versions.signers":
        return rule
    path = os.path.join(folder.path, SIGNERS_FILE)
    data = _read_file(path, folder, limits)
    if data is None:
        message = f"{rule} names signers, and there is no file {SIGNERS_FILE} with their keys beside it"
        raise PolicyError(message, path, "bad-policy")
    files.append(path)
    return rule._replace(keys=data.decode("utf-8", "replace"))


def _parse_rules(content: Mapping[str, Any], path: str, folder: PolicyFolder) -> Iterator[Rule]:
    for table, rules in content.items():
        if table == _URL_RULE:
            if not folder.is_trusted or folder.is_fetched:
                raise PolicyError(f"{_URL_RULE} counts only in files of the machine and the user", path, "bad-policy")
            yield Rule(table, _check_value(table, RULES[table], [rules], path), path)
            continue
        if not isinstance(rules, dict):
            raise PolicyError(f"{table!r:.80} has to be a table, [{table:.80}]", path, "bad-policy")
        for key, value in rules.items():
            name = f"{table}.{key}"
            kind = RULES.get(name)
            if kind is None:
                guess = did_you_mean(name, sorted(RULES))
                message = f"[{table}] {key} is a rule that this version does not know{f'; {guess}' if guess else ''}"
                raise PolicyError(message, path, "unknown-rule")
            if kind.opens and not folder.is_trusted:
                message = f"[{table}] {key} could open a door, and a project's file comes with a clone: it counts in "
                raise PolicyError(f"{message}{machine_folder()} and in your own configuration", path, "bad-policy")
            yield Rule(name, _check_value(name, kind, value, path), path)
        if not rules and not any(name.startswith(f"{table}.") for name in RULES):
            raise PolicyError(f"[{table}] is a table that this version does not know", path, "unknown-rule")


def _check_value(name: str, kind: RuleKind, value: object, path: str) -> RuleValue:
    expected = kind.expected
    if kind.is_number:
        if type(value) is int and value >= 0:
            return value
    elif name == "sources.mirror":
        if isinstance(value, list) and all(map(_is_mirror, value)):
            return tuple(Mirror(item["from"], item["to"]) for item in value)
    elif kind.is_item is not None:
        if isinstance(value, list) and all(isinstance(item, str) and kind.is_item(item) for item in value):
            return tuple(value)
    else:
        takes_bool = kind.words == ("false", "true")
        word = str(value).lower() if isinstance(value, bool) and takes_bool else value
        if isinstance(word, str) and word in kind.words and isinstance(value, bool) == takes_bool:
            return word
        expected = " or ".join(kind.words) if takes_bool else "one of " + ", ".join(kind.words)
    raise PolicyError(f"{name} has to be {expected}, not {value!r:.80}", path, "bad-policy")


def _is_mirror(item: object) -> bool:
    if not isinstance(item, dict) or item.keys() != {"from", "to"}:
        return False
    return all(isinstance(one, str) and is_mirror_address(one) for one in item.values())


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


def read_approvals(path: str, limits: Limits = DEFAULT_LIMITS) -> tuple[Approval, ...]:
    """Return the approvals in a file, wherever it is; none where there is no such file."""
    content = _read_toml(path, PolicyFolder(os.path.dirname(path), is_trusted=False), limits)
    return tuple(_parse_approval(entry, path) for entry in _list_entries(content or {}, path))


def _parse_advisories(data: bytes, path: str) -> Iterator[Revocation]:
    """Yield a revocation for each digest in advisories in the form of OSV; those that are withdrawn do not count."""
    import json

    try:
        advisories = json.loads(data)
        for advisory in advisories if isinstance(advisories, list) else advisories["advisories"]:
            if advisory.get("withdrawn"):
                continue
            reason = ": ".join(filter(None, (str(advisory["id"]), str(advisory.get("summary", "")))))
            for affected in advisory["affected"]:
                for digest in affected["ecosystem_specific"]["digests"]:
                    yield Revocation(_check_digest(digest, path), reason=reason, file=path)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        message = "it has to be a list of advisories, each with id and affected[].ecosystem_specific.digests"
        raise PolicyError(f"{message}: {error!r:.80}", path, "bad-policy") from None


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

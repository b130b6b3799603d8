"""The grants of a user: which states of which skills may run commands and scripts, and what happens to others.

A grant is for the digest of a skill: when one byte of its files changes, the grant no longer counts. The grants are a
small JSON file of the user's, which can be read and edited.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from prowess.arguments import check_callable, check_instance, raise_bad_argument
from prowess.conversation.acting.trust_request import TrustRequest
from prowess.discovery.scan import scan
from prowess.errors import Issue, NotTrustedError, SkillError, SourceError
from prowess.files.identity import identity_at
from prowess.files.owned_json import OwnedJson
from prowess.files.paths import as_absolute
from prowess.files.projects import user_config_file
from prowess.installed.policy_check import find_origin
from prowess.installed.scopes import standard_scopes
from prowess.installed.verifier import LockVerifier
from prowess.policy.files import current_policy
from prowess.skills.skill import Skill
from prowess.thread_work import LoopRunningError, await_result, current_work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prowess.errors import PolicyError

    AskAnswer = bool | Literal["always"]
    Ask = Callable[["TrustRequest"], "AskAnswer | Awaitable[AskAnswer]"]


TrustPolicy = Literal["never", "ask", "granted", "defer"]
RunPermission = Literal["granted", "once"]
TrustAnswer = Literal["granted", "once", "refused", "pending"]
_POLICIES = ("never", "ask", "granted", "defer")


@dataclass(frozen=True, slots=True)
class Grant:
    """One state of one skill that a person trusts."""

    digest: str
    name: str
    location: str
    granted: str
    """When the grant was made, in UTC."""
    user: str = ""
    """Who made it, as the system knows this user."""
    source: str = ""
    """Where the skill was installed from, as its lock file says; ``""`` for one that no lock file records."""
    commit: str = ""
    """The commit of ``source``; ``""`` for a source without commits."""
    variables: tuple[str, ...] = ()
    """The names of the variables of the host that the person let its scripts see."""


@dataclass(frozen=True, slots=True)
class Grants:
    """The grants that ``grant_all`` recorded, and an issue for each skill that could not be granted."""

    granted: tuple[Grant, ...]
    issues: tuple[Issue, ...] = ()


class Trust:
    """The grants of a user, and the policy for skills without a grant.

    ``granted``: only granted skills run. ``ask``: for others, ``ask`` is called with the request, a function or a
    coroutine function that answers ``True`` (this once), ``"always"`` (recorded as a grant) or ``False``. ``defer``:
    others do not run; the call returns the request, on which a person can decide later. ``never``: nothing runs.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, policy: TrustPolicy | None = None, ask: Ask | None = None
    ) -> None:
        check_callable(ask, "ask")
        if ask is not None and policy == "defer":
            raise SourceError("ask is for the policy 'ask', not 'defer': nobody would be asked")
        self._path = as_absolute(path if path is not None else user_config_file("trust.json"), "path")
        self._file = OwnedJson(self._path, "grants", "trust-store")
        self.policy: TrustPolicy = policy or ("ask" if ask is not None else "granted")
        self._ask = ask
        if self.policy not in _POLICIES:
            raise NotTrustedError(f"unknown policy {self.policy!r}; one of {', '.join(_POLICIES)}", code="bad-argument")
        if self.policy == "ask" and ask is None:
            message = "the policy 'ask' needs somebody to ask: Trust(ask=callback), or 'defer' to decide after the call"
            raise NotTrustedError(message, code="bad-argument")

    def __repr__(self) -> str:
        """Return the policy and the file of the grants."""
        return f"Trust({self._path!r}, policy={self.policy!r})"

    @property
    def path(self) -> str:
        """The file with the grants."""
        return self._path

    # -- what a person decides ---------------------------------------------------------------------------------------

    def grant(self, what: Skill | TrustRequest) -> Grant:
        """Grant a skill in its present state, or in the state of a request; return the grant.

        Raises ``NotTrustedError``: ``not-local`` for a skill that is not a folder on this machine,
        ``changed-since-asked`` where the files are no longer those of the request.
        """
        if isinstance(what, Skill):
            return self._record_grant(what, _digest_local_skill(what))
        if not isinstance(what, TrustRequest):
            raise_bad_argument("what is granted", "must be a prowess.Skill or a prowess.TrustRequest", what)
        digest = _digest_local_skill(what.skill)
        # The digest in a request is not recorded unchecked: it may come from another process, and be of anything.
        if digest != what.digest:
            message = f"skill {what.skill.name!r} is not what a person was asked about"
            raise NotTrustedError(message, what.skill.location, "changed-since-asked")
        return self._record_grant(what.skill, digest, what.variables)

    def grant_all(self, folder: str | os.PathLike[str]) -> Grants:
        """Grant every skill below a folder in its present state; return the grants, and what could not be granted.

        Skills that are added or changed later are not granted.
        """
        granted: list[Grant] = []
        issues: list[Issue] = []
        for skill in scan(folder):
            try:
                granted.append(_make_grant(skill, _digest_local_skill(skill)))
            except SkillError as error:
                issues.append(Issue(error.code, "", error.message, skill.location))
        self._change_grants(lambda grants: {**grants, **{grant.digest: grant for grant in granted}})
        return Grants(tuple(granted), tuple(issues))

    def revoke(self, what: Skill | str) -> int:
        """Revoke grants; return how many.

        ``what``: a skill, with all its states, or a digest, name or location.
        """
        keys = {what} if isinstance(what, str) else {what.location}
        before = after = 0

        def drop_revoked_grants(grants: dict[str, Grant]) -> dict[str, Grant]:
            nonlocal before, after
            kept = {d: g for d, g in grants.items() if keys.isdisjoint((g.digest, g.name, g.location))}
            # A copy of the skill may have been granted at another location: the digest finds that grant.
            if not isinstance(what, str) and what.is_local:
                with suppress(SkillError):  # a state that cannot be hashed was never granted
                    kept.pop(what.digest(), None)
            before, after = len(grants), len(kept)
            return kept

        self._change_grants(drop_revoked_grants)
        return before - after

    def grants(self) -> tuple[Grant, ...]:
        """Return all grants, sorted by name."""
        return tuple(sorted(self._read_grants().values(), key=lambda grant: (grant.name, grant.granted)))

    # -- what may run ------------------------------------------------------------------------------------------------

    def is_trusted(self, skill: Skill) -> bool:
        """Return whether a skill has a grant in its present state; ``False`` where its files cannot be hashed."""
        check_instance(skill, "skill", Skill, remedy="pass catalog[name]")
        if self.policy == "never" or not skill.is_local:
            return False
        try:
            return self.has(skill.digest())
        except SkillError:
            return False

    def has(self, digest: str) -> bool:
        """Return whether there is a grant for a digest; ``False`` if the policy is ``never`` or the file is damaged."""
        try:
            policy = current_policy()
            if self.policy == "never" or policy.find_run_refusal(digest) is not None:
                return False
            return policy.may_run_unasked(digest) or digest in self._read_grants()
        except SkillError:
            return False

    def judge(self, request: TrustRequest) -> Literal["granted", "refused", "ask", "defer"]:
        """Return ``granted`` or ``refused`` where that is certain, else the policy that decides; nobody is asked."""
        if self.policy == "never" or not request.skill.is_local or _find_refusal(request) is not None:
            return "refused"
        grant = self._read_grants().get(request.digest)
        if request.variables:  # whoever let the skill run need not have thought of these
            is_granted = grant is not None and set(request.variables) <= set(grant.variables)
        else:
            is_granted = grant is not None or current_policy().may_run_unasked(request.digest)
        if is_granted:
            return "granted"
        return "refused" if self.policy == "granted" else self.policy

    def allows(self, request: TrustRequest) -> bool:
        """Return whether a request may run: it is granted, or the person who is asked now allows it."""
        return self.answer(request) in {"granted", "once"}

    def answer(self, request: TrustRequest) -> TrustAnswer:
        """Return ``granted`` or ``once`` for a request that may run, ``refused``, or ``pending`` for a later decision.

        Raises ``NotTrustedError`` as ``require`` does when nobody can be asked.
        """
        judgement = self.judge(request)
        if judgement != "ask":
            return "pending" if judgement == "defer" else judgement
        answer = self._ask_person(request)
        if answer == "always":
            self._record_grant(request.skill, request.digest, request.variables)
            return "granted"
        if answer is not True and answer is not False:  # an error in the host's code: nobody said no
            import logging

            warning = "the host's ask answered %.80r, which counts as no: it must answer True, 'always' or False"
            logging.getLogger("prowess").warning(warning, answer)
        return "once" if answer is True else "refused"  # only True itself: the text "no" is true for Python as well

    def _ask_person(self, request: TrustRequest) -> object:
        """Return the answer of ``ask``; a coroutine is awaited on the event loop of the host's ``acall``."""
        assert self._ask is not None
        work = current_work()
        if work is not None:
            work.release_slot()  # a person may take minutes, and other conversations must not wait for that
        try:
            answer = self._ask(request)
            return await_result(answer) if isinstance(answer, Awaitable) else answer
        except LoopRunningError:
            message = "ask is a coroutine function, and a loop is running here: use 'await toolset.acall(…)'"
            raise NotTrustedError(message, request.skill.location, "ask-needs-acall") from None

    def require(self, request: TrustRequest) -> RunPermission:
        """Return why a request may run: ``granted``, or ``once`` for a yes to this call.

        Raises ``NotTrustedError``: ``not-trusted``, also when the person who was asked says no; ``needs-approval``
        under ``defer``, with the request in ``request``; ``ask-needs-acall`` when ``ask`` is a coroutine function and
        this is a plain call inside a running loop. Raises ``PolicyError`` where a policy file does not let it run,
        whatever was granted. An exception of ``ask`` is passed on.
        """
        answer = self.answer(request)
        name, location = request.skill.name, request.skill.location
        if answer == "pending":
            message = f"what {name!r} would run waits for a person's approval: nothing was done"
            raise NotTrustedError(message, location, "needs-approval", request)
        if answer == "refused":
            refusal = _find_refusal(request)
            if refusal is not None:
                raise refusal
            if request.variables and self.has(request.digest):
                names = ", ".join(request.variables)
                raise NotTrustedError(f"nobody let {name!r} see the variables that it declares: {names}", location)
            raise NotTrustedError(f"skill {name!r} is not trusted as it is now", location)
        return answer

    def mark(self) -> object:
        """Return a value that stays equal until the policy or the file of the grants changes."""
        return self.policy, identity_at(self._path), current_policy()

    # -- the file ----------------------------------------------------------------------------------------------------

    def _record_grant(self, skill: Skill, digest: str, variables: tuple[str, ...] = ()) -> Grant:
        former = self._read_grants().get(digest)
        names = {*variables, *(former.variables if former else ())}
        grant = replace(_make_grant(skill, digest), variables=tuple(sorted(names)))
        self._change_grants(lambda grants: {**grants, digest: grant})
        return grant

    def _read_grants(self) -> dict[str, Grant]:
        return self._file.read(_parse_grants) or {}

    def _change_grants(self, change: Callable[[dict[str, Grant]], dict[str, Grant]]) -> None:
        def make_content() -> object:
            # Read under the lock of the file, so that two processes do not lose each other's grants.
            grants = change(self._read_grants())
            return {"version": 1, "grants": [_write_grant(grants[digest]) for digest in sorted(grants)]}

        self._file.update(make_content)

    def __iter__(self) -> Iterator[Grant]:
        return iter(self.grants())


def _find_refusal(request: TrustRequest) -> PolicyError | None:
    """Return why the policy files do not let a request run, whatever was granted."""
    return current_policy().find_run_refusal(request.digest, "run.scripts" if request.script else "run.commands")


def _parse_grants(content: Any) -> dict[str, Grant]:
    grants = [Grant(**{**entry, "variables": tuple(entry.get("variables", ()))}) for entry in content["grants"]]
    strings = (part for grant in grants for part in (*astuple(grant)[:-1], *grant.variables))
    if content["version"] != 1 or not all(isinstance(part, str) for part in strings):
        raise ValueError(content["version"])
    return {grant.digest: grant for grant in grants}


def _write_grant(grant: Grant) -> dict[str, Any]:
    return {key: value for key, value in asdict(grant).items() if value != ()}


def _digest_local_skill(skill: Skill) -> str:
    if not skill.is_local:
        raise NotTrustedError(
            f"skill {skill.name!r} is not a folder on this machine: it cannot be trusted", skill.location, "not-local"
        )
    return skill.digest()


def _make_grant(skill: Skill, digest: str) -> Grant:
    scopes = standard_scopes(skill.real_folder, os.path.expanduser("~"), os.environ)
    origin = find_origin(skill, LockVerifier(scopes, skill.limits))
    # An install that somebody edited is not what its source gives.
    source, commit = (origin.source, origin.commit) if origin is not None and origin.digest == digest else ("", "")
    granted = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return Grant(digest, skill.name, skill.location, granted, _get_user(), source, commit)


def _get_user() -> str:
    """Return the name of this user; its number where the system has no name for it, as in a container."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return str(os.getuid()) if hasattr(os, "getuid") else ""


class TrustStates:
    """The grants of a user, read once."""

    def __init__(self, trust: Trust) -> None:
        self._trust = trust
        try:
            self._granted_skills = frozenset(key for grant in trust for key in (grant.location, grant.name))
        except NotTrustedError:  # a file that others may write grants nothing; 'prowess doctor' says why
            self._granted_skills = frozenset()

    def find_state(self, skill: Skill) -> str:
        """Return ``trusted``, ``changed since trusted`` if an earlier state has a grant, or ``""``."""
        # Fast path: hashing reads every file of a skill, so a skill without any grant is not hashed.
        if not self._granted_skills.intersection((skill.location, skill.name)):
            return ""
        if self._trust.is_trusted(skill):
            return "trusted"
        return "changed since trusted" if skill.location in self._granted_skills else ""

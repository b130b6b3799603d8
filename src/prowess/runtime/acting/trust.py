"""Trust: a person's grant for one state of a skill, by its digest. Change one byte, and it is gone.

Nothing of a skill runs without one. The grants are a small JSON file of the user's, which can be read and edited.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from prowess.arguments import as_absolute, check_callable, check_instance, raise_bad_argument
from prowess.discovery.scan import scan
from prowess.errors import Issue, NotTrustedError, SkillError, SourceError
from prowess.files.identity import identity_at
from prowess.files.owned_json import OwnedJson
from prowess.files.projects import config_home
from prowess.skills.skill import Skill
from prowess.spec.hidden_characters import has_hidden
from prowess.thread_work import LoopRunningError, await_result, current_work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prowess.skills.catalog import Catalog

    AskAnswer = bool | Literal["always"]
    Ask = Callable[["TrustRequest"], "AskAnswer | Awaitable[AskAnswer]"]

TrustPolicy = Literal["never", "ask", "granted", "defer"]
Permission = Literal["granted", "once"]
TrustAnswer = Literal["granted", "once", "refused", "pending"]
_POLICIES = ("never", "ask", "granted", "defer")


@dataclass(frozen=True, slots=True)
class Grant:
    """One state of one skill that a person trusts."""

    digest: str
    name: str
    location: str
    granted: str
    """When, in UTC."""


@dataclass(frozen=True, slots=True)
class Grants:
    """What ``grant_all`` recorded, and what it could not."""

    granted: tuple[Grant, ...]
    issues: tuple[Issue, ...] = ()


@dataclass(frozen=True, slots=True)
class TrustRequest:
    """What a person is asked: exactly what would run, of which skill, in which state."""

    skill: Skill
    digest: str
    commands: tuple[str, ...] = ()
    script: str = ""
    arguments: tuple[str, ...] = ()
    """Those of the script; for commands what a person said after the skill's name, as one text."""
    files: tuple[str, ...] = ()
    """Every file of the skill: all of them could be used."""
    stdin: str = ""
    """What the script reads; bytes that are no UTF-8 stand as lone surrogates."""

    @property
    def id(self) -> str:
        """A hash of the skill's name, digest and files and of everything that would run: the same for the same call.

        The names of the files follow from the digest; they are in it so that nobody can show a person fewer.
        """
        row = (self.skill.name, self.digest, self.commands, self.script, self.arguments, self.files, self.stdin)
        return sha256(json.dumps(row).encode()).hexdigest()[:32]

    def to_dict(self) -> dict[str, Any]:
        """Return the request as JSON types, for ``from_dict`` in this or another process."""
        return {
            "version": 1,
            "id": self.id,
            "skill": self.skill.name,
            "digest": self.digest,
            "commands": list(self.commands),
            "script": self.script,
            "arguments": list(self.arguments),
            "files": list(self.files),
            "stdin": self.stdin,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], catalog: Catalog) -> TrustRequest:
        """Return the request that ``to_dict`` wrote, about the skill of that name in ``catalog``.

        Nothing of it is believed: an approval counts only for a call with the same id, whose digest is computed from
        the files when it runs. Raises ``UnknownSkillError`` where the catalogue has no such skill, ``NotTrustedError``
        (code ``bad-request``) for anything that ``to_dict`` did not write.
        """
        if not _is_saved_request(data):
            raise NotTrustedError("this is no request that TrustRequest.to_dict wrote", code="bad-request")
        # Here and not above: grants are also changed by programs that have no conversation.
        from prowess.runtime.session_arguments import check_catalog  # noqa: PLC0415

        check_catalog(catalog)
        name = data["skill"]
        commands, arguments, files = (tuple(data[key]) for key in ("commands", "arguments", "files"))
        request = cls(catalog[name], data["digest"], commands, data["script"], arguments, files, data["stdin"])
        if data["id"] != request.id:
            message = f"the request about {name!r} was changed after it was made: its id is that of another"
            raise NotTrustedError(message, request.skill.location, "bad-request")
        return request

    def __str__(self) -> str:
        """A few lines for a prompt."""
        words = " ".join(map(_escape_invisible, self.arguments))
        runs = [f"  runs the command: {_escape_invisible(command)}" for command in self.commands]
        runs += [f"  runs the script: {_escape_invisible(self.script)} {words}".rstrip()] if self.script else []
        runs += [f"  with the arguments: {words}"] if words and not self.script else []
        runs += [f"  which reads: {_escape_invisible(self.stdin)}"] if self.stdin else []
        about = [f"{_escape_invisible(self.skill.name)} ({_escape_invisible(self.skill.location)})", *runs]
        files = ", ".join(map(_escape_invisible, self.files))
        return "\n".join([*about, f"  files: {files}", f"  digest: {self.digest}"])


_TEXT_FIELDS = ("id", "skill", "digest", "script", "stdin")
_LIST_FIELDS = ("commands", "arguments", "files")


def _is_saved_request(data: Any) -> bool:  # noqa: ANN401 - any JSON
    """Whether something has the fields and types of what ``TrustRequest.to_dict`` writes."""
    if not isinstance(data, Mapping) or data.get("version") != 1:
        return False
    lists = [data[key] for key in _LIST_FIELDS if isinstance(data.get(key), list)]
    texts = [data.get(key) for key in _TEXT_FIELDS]
    return len(lists) == len(_LIST_FIELDS) and all(isinstance(text, str) for text in chain(texts, *lists))


def _escape_invisible(text: str) -> str:
    """Every character that a person would not see, or that moves what they see, written out."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char if char.isprintable() and not has_hidden(char) else char.encode("unicode_escape").decode() for char in text
    )


def default_trust_file() -> str:
    """Where the grants of this user are: ``prowess/trust.json`` in the user's configuration."""
    return os.path.join(config_home(os.path.expanduser("~"), os.environ), "prowess", "trust.json")


class Trust:
    """The grants of a user, and the policy for what has none.

    ``granted``: only what was granted runs. ``ask``: what was not granted is put to ``ask``, a function or a coroutine
    function, which answers ``True`` (this once), ``"always"`` (recorded as a grant) or ``False``. ``defer``: what was
    not granted does not run; the call gives the request, for a person to decide on later. ``never``: nothing runs.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, policy: TrustPolicy | None = None, ask: Ask | None = None
    ) -> None:
        check_callable(ask, "ask")
        if ask is not None and policy == "defer":
            raise SourceError("ask is for the policy 'ask', not 'defer': nobody would be asked")
        self._path = as_absolute(path if path is not None else default_trust_file(), "path")
        self._file = OwnedJson(self._path, "grants", "trust-store")
        self.policy: TrustPolicy = policy or ("ask" if ask is not None else "granted")
        self._ask = ask
        if self.policy not in _POLICIES:
            message = f"unknown policy {self.policy!r}; one of {', '.join(_POLICIES)}"
            raise NotTrustedError(message, code="bad-argument")
        if self.policy == "ask" and ask is None:
            raise NotTrustedError("the policy 'ask' needs somebody to ask: Trust(ask=callback)", code="bad-argument")

    def __repr__(self) -> str:
        """The policy and the file."""
        return f"Trust({self._path!r}, policy={self.policy!r})"

    @property
    def path(self) -> str:
        """The file with the grants."""
        return self._path

    # -- what a person decides ---------------------------------------------------------------------------------------

    def grant(self, what: Skill | TrustRequest) -> Grant:
        """Trust a skill as it is now; for a request only while the skill is still in the state that it was made for.

        Raises ``NotTrustedError``: ``not-local``, or ``changed-since-asked`` where the files are not those that a
        person was asked about.
        """
        if isinstance(what, Skill):
            return self._record_grant(what, _digest_local_skill(what))
        if not isinstance(what, TrustRequest):
            raise_bad_argument("what is granted", "is a prowess.Skill or a prowess.TrustRequest", what)
        digest = _digest_local_skill(what.skill)
        if digest != what.digest:  # a digest that came with the request is not believed: it could be that of anything
            message = f"skill {what.skill.name!r} is not what a person was asked about"
            raise NotTrustedError(message, what.skill.location, "changed-since-asked")
        return self._record_grant(what.skill, digest)

    def grant_all(self, folder: str | os.PathLike[str]) -> Grants:
        """Trust every skill below a folder as it is now; those that come later, or change, are not meant."""
        granted: list[Grant] = []
        issues: list[Issue] = []
        for skill in scan(folder):
            try:
                granted.append(_make_grant(skill, _digest_local_skill(skill)))
            except SkillError as error:
                issues.append(Issue(error.code, "", error.message, skill.location))
        self._change_grants(lambda found: {**found, **{grant.digest: grant for grant in granted}})
        return Grants(tuple(granted), tuple(issues))

    def revoke(self, what: Skill | str) -> int:
        """Take grants back: all of a skill (of any of its states), or those of a digest, name or location; how many."""
        keys = {what} if isinstance(what, str) else {what.location}
        before = after = 0

        def drop_revoked_grants(found: dict[str, Grant]) -> dict[str, Grant]:
            nonlocal before, after
            kept = {d: g for d, g in found.items() if keys.isdisjoint((g.digest, g.name, g.location))}
            if not isinstance(what, str) and what.is_local:
                with suppress(SkillError):  # a state that cannot be hashed was never granted
                    kept.pop(what.digest(), None)
            before, after = len(found), len(kept)
            return kept

        self._change_grants(drop_revoked_grants)
        return before - after

    def grants(self) -> tuple[Grant, ...]:
        """Everything that was granted, by name."""
        return tuple(sorted(self._read_grants().values(), key=lambda grant: (grant.name, grant.granted)))

    # -- what may run ------------------------------------------------------------------------------------------------

    def is_trusted(self, skill: Skill) -> bool:
        """Whether a person granted this very state of the skill."""
        check_instance(skill, "skill", Skill, remedy="pass catalog[name]")
        if self.policy == "never" or not skill.is_local:
            return False
        try:
            return self.has(skill.digest())
        except SkillError:
            return False

    def has(self, digest: str) -> bool:
        """Whether a person granted that state, of whatever skill, and it counts; not where the grants are damaged."""
        try:
            return self.policy != "never" and digest in self._read_grants()
        except SkillError:
            return False

    def judge(self, request: TrustRequest) -> Literal["granted", "refused", "ask", "defer"]:
        """Return whether that was granted or cannot be, or else what the policy is; nobody is asked."""
        if self.policy == "never" or not request.skill.is_local:
            return "refused"
        if request.digest in self._read_grants():
            return "granted"
        return "refused" if self.policy == "granted" else self.policy

    def allows(self, request: TrustRequest) -> bool:
        """Whether that may run: granted, or just now allowed by who was asked."""
        return self.answer(request) in {"granted", "once"}

    def answer(self, request: TrustRequest) -> TrustAnswer:
        """By what that may run: a grant, or a yes for this once; ``refused``, or ``pending`` until a person decides.

        Raises ``NotTrustedError`` as ``require`` does when nobody can be asked.
        """
        standing = self.judge(request)
        if standing != "ask":
            return "pending" if standing == "defer" else standing
        answer = self._ask_person(request)
        if answer == "always":
            self._record_grant(request.skill, request.digest)
            return "granted"
        if answer is not True and answer is not False:  # a bug of the host's: nobody said no
            import logging  # noqa: PLC0415 - few hosts have such a bug

            said = "the host's ask answered %.80r, which counts as no: it answers True, 'always' or False"
            logging.getLogger("prowess").warning(said, answer)
        return "once" if answer is True else "refused"  # not whatever counts as true: "no" does

    def _ask_person(self, request: TrustRequest) -> object:
        """Return what ``ask`` answers; a coroutine is awaited on the loop of the host that awaits ``acall``."""
        assert self._ask is not None  # noqa: S101 - a policy that asks has somebody to ask
        work = current_work()
        if work is not None:
            work.release_slot()  # a person takes their time: other conversations do not wait for it
        try:
            answer = self._ask(request)
            return await_result(answer) if isinstance(answer, Awaitable) else answer
        except LoopRunningError:
            message = "ask is a coroutine function, and a loop is running here: use 'await toolset.acall(…)'"
            raise NotTrustedError(message, request.skill.location, "ask-needs-acall") from None

    def require(self, request: TrustRequest) -> Permission:
        """Return by what that may run: a grant, or a yes for this once.

        Raises ``NotTrustedError``: ``not-trusted``, also when who was asked says no; ``needs-approval`` under
        ``defer``, with the request in ``request``; ``ask-needs-acall`` when ``ask`` is a coroutine function and this
        is a plain call inside a running loop. What ``ask`` raises is raised.
        """
        answer = self.answer(request)
        name, location = request.skill.name, request.skill.location
        if answer == "pending":
            message = f"what {name!r} would run waits for a person's approval: nothing was done"
            raise NotTrustedError(message, location, "needs-approval", request)
        if answer == "refused":
            raise NotTrustedError(f"skill {name!r} is not trusted as it is now", location)
        return answer

    def mark(self) -> object:
        """What stays equal while nobody changes the policy or the grants; the file is not opened."""
        return self.policy, identity_at(self._path)

    # -- the file ----------------------------------------------------------------------------------------------------

    def _record_grant(self, skill: Skill, digest: str) -> Grant:
        grant = _make_grant(skill, digest)
        self._change_grants(lambda found: {**found, digest: grant})
        return grant

    def _read_grants(self) -> dict[str, Grant]:
        return self._file.read(_parse_grants) or {}

    def _change_grants(self, change: Callable[[dict[str, Grant]], dict[str, Grant]]) -> None:
        def make_content() -> object:
            grants = change(self._read_grants())
            return {"version": 1, "grants": [asdict(grants[digest]) for digest in sorted(grants)]}

        self._file.update(make_content)

    def __iter__(self) -> Iterator[Grant]:
        return iter(self.grants())


def _parse_grants(content: Any) -> dict[str, Grant]:  # noqa: ANN401 - any JSON
    rows = [Grant(**row) for row in content["grants"]]
    if content["version"] != 1 or not all(isinstance(value, str) for row in rows for value in asdict(row).values()):
        raise ValueError(content["version"])
    return {row.digest: row for row in rows}


def _digest_local_skill(skill: Skill) -> str:
    if not skill.is_local:
        message = f"skill {skill.name!r} is not a folder on this machine: it cannot be trusted"
        raise NotTrustedError(message, skill.location, "not-local")
    return skill.digest()


def _make_grant(skill: Skill, digest: str) -> Grant:
    return Grant(digest, skill.name, skill.location, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))

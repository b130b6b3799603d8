"""Trust: a person's grant for one state of a skill, by its digest. Change one byte, and it is gone.

Nothing of a skill runs without one. The grants are a small JSON file of the user's, which can be read and edited.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from prowess.arguments import as_absolute, check_callable
from prowess.errors import Issue, NotTrustedError, SkillError
from prowess.files.marks import identity_at
from prowess.files.owned_json import OwnedJson
from prowess.library.places import config_home
from prowess.library.scan import scan
from prowess.spec.hidden import has_hidden

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prowess.library.skill import Skill

    Ask = Callable[["TrustRequest"], "bool | Literal['always']"]

Policy = Literal["never", "ask", "granted"]
Answer = Literal["granted", "once", "refused"]


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
    files: tuple[str, ...] = ()
    """Every file of the skill: all of them could be used."""

    def __str__(self) -> str:
        """A few lines for a prompt."""
        words = " ".join(map(_visible, self.arguments))
        runs = [f"  runs the command: {_visible(command)}" for command in self.commands]
        runs += [f"  runs the script: {_visible(self.script)} {words}".rstrip()] if self.script else []
        about = [f"{_visible(self.skill.name)} ({_visible(self.skill.location)})", *runs]
        files = ", ".join(map(_visible, self.files))
        return "\n".join([*about, f"  files: {files}", f"  digest: {self.digest}"])


def _visible(text: str) -> str:
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

    ``granted``: only what was granted runs. ``ask``: what was not granted is put to ``ask``, which answers ``True``
    (this once), ``"always"`` (recorded as a grant) or ``False``. ``never``: nothing runs.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, policy: Policy | None = None, ask: Ask | None = None
    ) -> None:
        check_callable(ask, "ask")
        self._path = as_absolute(path if path is not None else default_trust_file(), "path")
        self._file = OwnedJson(self._path, "grants", "trust-store")
        self.policy: Policy = policy or ("ask" if ask is not None else "granted")
        self._ask = ask
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

    def grant(self, skill: Skill) -> Grant:
        """Trust a skill as it is now."""
        return self._record(skill, _digest(skill))

    def grant_all(self, folder: str | os.PathLike[str]) -> Grants:
        """Trust every skill below a folder as it is now; those that come later, or change, are not meant."""
        granted: list[Grant] = []
        issues: list[Issue] = []
        for skill in scan(folder):
            try:
                granted.append(_new_grant(skill, _digest(skill)))
            except SkillError as error:
                issues.append(Issue(error.code, "", error.message, skill.location))
        self._change(lambda found: {**found, **{grant.digest: grant for grant in granted}})
        return Grants(tuple(granted), tuple(issues))

    def revoke(self, what: Skill | str) -> int:
        """Take grants back: all of a skill (of any of its states), or those of a digest, name or location; how many."""
        keys = {what} if isinstance(what, str) else {what.location}
        before = after = 0

        def without(found: dict[str, Grant]) -> dict[str, Grant]:
            nonlocal before, after
            kept = {d: g for d, g in found.items() if keys.isdisjoint((g.digest, g.name, g.location))}
            if not isinstance(what, str) and what.is_local:
                with suppress(SkillError):  # a state that cannot be hashed was never granted
                    kept.pop(what.digest(), None)
            before, after = len(found), len(kept)
            return kept

        self._change(without)
        return before - after

    def grants(self) -> tuple[Grant, ...]:
        """Everything that was granted, by name."""
        return tuple(sorted(self._read().values(), key=lambda grant: (grant.name, grant.granted)))

    # -- what may run ------------------------------------------------------------------------------------------------

    def is_trusted(self, skill: Skill) -> bool:
        """Whether a person granted this very state of the skill."""
        if self.policy == "never" or not skill.is_local:
            return False
        try:
            return self.has(skill.digest())
        except SkillError:
            return False

    def has(self, digest: str) -> bool:
        """Whether a person granted that state, of whatever skill, and it counts; not where the grants are damaged."""
        try:
            return self.policy != "never" and digest in self._read()
        except SkillError:
            return False

    def allows(self, request: TrustRequest) -> bool:
        """Whether that may run: granted, or just now allowed by who was asked."""
        return self.answer(request) != "refused"

    def answer(self, request: TrustRequest) -> Answer:
        """By what that may run: a grant, a yes for this once, or not at all."""
        if self.policy == "never" or not request.skill.is_local:
            return "refused"
        if request.digest in self._read():
            return "granted"
        if self._ask is None or self.policy != "ask":
            return "refused"
        answer = self._ask(request)
        if answer == "always":
            self._record(request.skill, request.digest)
            return "granted"
        return "once" if answer is True else "refused"  # not whatever counts as true: "no" does

    def mark(self) -> object:
        """What stays equal while nobody changes the policy or the grants; the file is not opened."""
        return self.policy, identity_at(self._path)

    # -- the file ----------------------------------------------------------------------------------------------------

    def _record(self, skill: Skill, digest: str) -> Grant:
        grant = _new_grant(skill, digest)
        self._change(lambda found: {**found, digest: grant})
        return grant

    def _read(self) -> dict[str, Grant]:
        return self._file.read(_grants_in) or {}

    def _change(self, change: Callable[[dict[str, Grant]], dict[str, Grant]]) -> None:
        def new_content() -> object:
            grants = change(self._read())
            return {"version": 1, "grants": [asdict(grants[digest]) for digest in sorted(grants)]}

        self._file.change(new_content)

    def __iter__(self) -> Iterator[Grant]:
        return iter(self.grants())


def _grants_in(content: Any) -> dict[str, Grant]:  # noqa: ANN401 - any JSON
    rows = [Grant(**row) for row in content["grants"]]
    if content["version"] != 1 or not all(isinstance(value, str) for row in rows for value in asdict(row).values()):
        raise ValueError(content["version"])
    return {row.digest: row for row in rows}


def _digest(skill: Skill) -> str:
    if not skill.is_local:
        message = f"skill {skill.name!r} is not a folder on this machine: it cannot be trusted"
        raise NotTrustedError(message, skill.location, "not-local")
    return skill.digest()


def _new_grant(skill: Skill, digest: str) -> Grant:
    return Grant(digest, skill.name, skill.location, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))

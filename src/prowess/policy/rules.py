"""The rules of policy files, and what they say together about a source, a version, a skill and a run.

A rule comes from one file. Where several files have the same rule, all of them count: a source has to be on every list,
the stricter word wins, and the larger number does.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import time
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from prowess.addresses.skill_ref import is_commit
from prowess.errors import PolicyError
from prowess.text.globs import is_filter_match
from prowess.text.patterns import compile_pattern
from prowess.text.versions import find_latest_in_range, is_range, read_release

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    RuleValue = str | int | bool | tuple[str, ...] | tuple["Mirror", ...]

_DAY = 24 * 60 * 60
_SANDBOXES = ("bwrap", "landlock", "none")
RUNNER_MARK = "runner:"
"""Comes before the name of a host's runner that a policy takes for a sandbox, as in ``runner:docker``."""
_POLICY_URL = compile_pattern(r"https://[^\s?#@\\]{1,1000}/")
_HOST = compile_pattern(r"[A-Za-z0-9.-]+(?::\d{1,5})?|\[[0-9A-Fa-f:.]+\](?::\d{1,5})?")
_ADDRESS = compile_pattern(r"\*\*$|[a-z][a-z0-9+.-]*://|mcp:|[A-Za-z0-9_.-]+@[A-Za-z0-9_.*-]+:")
_SIGNER = compile_pattern(r"[^\s,*?!\"]+")


class Mirror(NamedTuple):
    """Where sources are fetched from instead: addresses that begin with ``origin`` begin with ``target``."""

    origin: str
    target: str

    def __str__(self) -> str:
        """Return both addresses."""
        return f"{self.origin} → {self.target}"


class RuleKind(NamedTuple):
    """One rule that a policy file may have: what its value is, and which of two values is the stricter one."""

    words: tuple[str, ...] = ()
    """For a rule that takes a word: every word, the loosest first."""
    is_item: Callable[[str], bool] | None = None
    """For a list of strings: whether a string may be in it."""
    is_number: bool = False
    expected: str = ""
    """What the value of another kind than a word has to be."""
    opens: bool = False
    """Whether it could open a door: then it counts only in files of the machine and the user."""
    about: str = ""


def _is_sandbox(name: str) -> bool:
    return name in _SANDBOXES or (name.startswith(RUNNER_MARK) and len(name) > len(RUNNER_MARK))


def is_address_pattern(pattern: str) -> bool:
    """Return whether a pattern can match an address: it begins with a scheme, a host or the root of the disk."""
    return pattern.startswith("/") or _ADDRESS.match(pattern) is not None


def is_mirror_address(address: str) -> bool:
    """Return whether an address is the beginning of others: without the ``/``, other hosts could begin so too."""
    return is_address_pattern(address) and address.endswith(("/", ":")) and "*" not in address


RULES: dict[str, RuleKind] = {
    "policy-url": RuleKind(
        is_item=lambda item: _POLICY_URL.fullmatch(item) is not None,
        expected="an address such as https://policy.acme.example/prowess/, with a / at its end",
        opens=True,
        about="where further policy files are fetched from, by 'prowess policy fetch'",
    ),
    "sources.allow": RuleKind(
        is_item=is_address_pattern,
        expected="a list of addresses such as https://host/**",
        about="patterns of the addresses that skills may come from",
    ),
    "sources.mirror": RuleKind(
        expected='a list of { from = "https://host/", to = "https://mirror/path/" }, each address with a / at its end',
        opens=True,
        about="the addresses from which sources are fetched instead",
    ),
    "sources.private-hosts": RuleKind(
        is_item=lambda item: _HOST.fullmatch(item) is not None,
        expected="a list of hosts such as skills.acme.example or skills.acme.example:8443",
        opens=True,
        about="hosts whose addresses need not be public",
    ),
    "versions.refs": RuleKind(("any", "tags", "commits"), about="which versions of a repository may be asked for"),
    "versions.cooldown-days": RuleKind(
        is_number=True, expected="a whole number, 0 or more", about="how many days old a commit has to be"
    ),
    "versions.review": RuleKind(("none", "required"), about="whether each skill has to be in approved.toml"),
    "versions.signers": RuleKind(
        is_item=lambda item: _SIGNER.fullmatch(item) is not None,
        expected="a list of names in the file allowed_signers, such as security@acme.example",
        opens=True,
        about="whose signature a tag or a site has to have",
    ),
    "run.scripts": RuleKind(("ask", "approved", "never"), about="whose word lets a script run"),
    "run.commands": RuleKind(("ask", "approved", "never"), about="whose word lets commands in instructions run"),
    "run.sandbox": RuleKind(
        is_item=_is_sandbox,
        expected=f"a list of {', '.join(_SANDBOXES)} and runner:NAME",
        about="the sandboxes and runners in which scripts may run",
    ),
    "run.verify": RuleKind(("false", "true"), about="whether installed skills have to be what the lock file says"),
}
"""Every rule, by table and key; the reference page is made from this table."""


class Rule(NamedTuple):
    """A rule with the file that it comes from."""

    key: str
    value: RuleValue
    file: str
    keys: str = ""
    """For ``versions.signers``: the lines of the file ``allowed_signers`` beside it."""

    def __str__(self) -> str:
        """Return the rule as a file has it, with the file."""
        table, dot, key = self.key.partition(".")
        return f"[{table}] {key} in {self.file}" if dot else f"{table} in {self.file}"


class Approval(NamedTuple):
    """One state of a skill that somebody reviewed for everybody who has the file."""

    digest: str
    name: str = ""
    source: str = ""
    commit: str = ""
    reviewer: str = ""
    run: bool = False
    """Whether its scripts and commands may run."""
    expires: date | None = None
    file: str = ""

    def to_dict(self) -> dict[str, object]:
        """Return it as data."""
        expires = self.expires.isoformat() if self.expires else None
        return {**self._asdict(), "expires": expires, "valid": self.is_valid()}

    def is_valid(self, today: date | None = None) -> bool:
        """Return whether it still counts; on the day that it names it does."""
        return self.expires is None or (today or date.today()) <= self.expires  # noqa: DTZ011 - a day where the user is


class Revocation(NamedTuple):
    """A state of a skill, or versions of a source, that nobody may use any more."""

    digest: str = ""
    source: str = ""
    range: str = ""
    """The versions of ``source`` that are meant; ``""`` for all."""
    reason: str = ""
    action: str = "remove"
    """``remove``: 'prowess audit --fix' takes it off the disk. ``refuse``: it is not used, and stays there."""
    file: str = ""

    def covers(self, digest: str, source: str = "", ref: str = "") -> bool:
        """Return whether it is about a skill with this digest, or from this source at this version."""
        if self.digest:
            return digest == self.digest
        if not source or not is_source_match(self.source, source):
            return False
        # A branch or a commit says nothing about its version: what cannot be compared with the range is covered.
        return not self.range or not read_release(ref) or bool(find_latest_in_range(self.range, (ref,)))


@dataclass(frozen=True, slots=True)
class Policy:
    """What the policy files of a machine, a user and a project say together.

    ``Policy()`` allows what Prowess allows by itself.
    """

    rules: tuple[Rule, ...] = ()
    approvals: tuple[Approval, ...] = ()
    revocations: tuple[Revocation, ...] = ()
    files: tuple[str, ...] = ()
    """The files that were read, the machine's first."""
    revoked_digests: Mapping[str, Revocation] = field(init=False, repr=False, compare=False)
    """The revocations by digest: where there are some, the digest of a skill has to be known before it is used."""

    def __post_init__(self) -> None:
        """Index the revocations, which are looked up for each skill that is loaded."""
        revoked = {revocation.digest: revocation for revocation in self.revocations if revocation.digest}
        object.__setattr__(self, "revoked_digests", revoked)

    def __and__(self, other: Policy) -> Policy:
        """Return both policies in force: nothing that one refuses is allowed by the other."""
        return Policy(
            (*self.rules, *other.rules),
            (*self.approvals, *other.approvals),
            (*self.revocations, *other.revocations),
            (*self.files, *other.files),
        )

    # -- what is in force --------------------------------------------------------------------------------------------

    def find_rules(self, key: str) -> tuple[Rule, ...]:
        """Return the rules of that key, the machine's first."""
        return tuple(rule for rule in self.rules if rule.key == key)

    def strictest(self, key: str) -> Rule | None:
        """Return the rule of that key that counts; ``None`` where no file has one. Not for lists."""
        words = RULES[key].words
        found = self.find_rules(key)
        if words:
            return max(found, key=lambda rule: words.index(str(rule.value)), default=None)
        return max(found, key=lambda rule: rule.value if isinstance(rule.value, int) else 0, default=None)

    def word(self, key: str) -> str:
        """Return the word of a rule that takes one; the loosest where no file has the rule."""
        rule = self.strictest(key)
        return str(rule.value) if rule is not None else RULES[key].words[0]

    @property
    def judges_skills(self) -> bool:
        """Whether it may refuse a skill that is installed: by a revocation, or because nobody reviewed it."""
        return bool(self.revocations) or self.word("versions.review") == "required"

    @property
    def judges_sources(self) -> bool:
        """Whether it may refuse where a skill comes from: nothing else is then asked instead of a listed address."""
        return bool(self.find_rules("sources.allow")) or any(one.source for one in self.revocations)

    def mirror(self, address: str) -> str:
        """Return the address from which a source is fetched: that of the first mirror that it begins with."""
        mirrors = [one for rule in self.find_rules("sources.mirror") for one in _as_mirrors(rule.value)]
        found = next((one for one in mirrors if address.lower().startswith(one.origin.lower())), None)
        return address if found is None else found.target + address[len(found.origin) :]

    def allows_private_host(self, host: str) -> bool:
        """Return whether a host, written with its port where that is not the usual one, need not be public."""
        return any(
            host == one.lower() for rule in self.find_rules("sources.private-hosts") for one in _as_list(rule.value)
        )

    # -- what is refused ---------------------------------------------------------------------------------------------

    def check_source(self, address: str) -> None:
        """Raise ``PolicyError`` for an address that is not on every list of sources, or that is revoked as a whole."""
        for rule in self.find_rules("sources.allow"):
            # A list names the places that are really asked.
            if not any(is_source_match(pattern, self.mirror(address)) for pattern in _as_list(rule.value)):
                raise PolicyError(f"skills may not come from {address}: {rule} does not list it", rule.file)
        for one in self.revocations:  # those with a range are about the versions of a repository
            if one.source and not one.range and (one.covers("", address) or one.covers("", self.mirror(address))):
                why = f": {one.reason}" if one.reason else ""
                raise PolicyError(f"{address} is revoked by {one.file}{why}", one.file, "revoked")

    def check_ref(self, ref: str, address: str, is_tag: Callable[[], bool]) -> None:
        """Raise ``PolicyError`` for a version of a repository that may not be asked for."""
        rule = self.strictest("versions.refs")
        if rule is None or rule.value == "any" or is_commit(ref):
            return
        if rule.value == "tags" and ref and (is_range(ref) or is_tag()):
            return
        wanted = "a commit" if rule.value == "commits" else "a tag or a commit"
        raise PolicyError(f"{address} is asked for {ref or 'its newest commit'}: {rule} wants {wanted}", rule.file)

    def check_pinned_signer(self, signer: str, address: str) -> None:
        """Raise ``PolicyError`` where the key that a lock file pins is not among the keys of the signers.

        The signature itself is verified where the source is fetched.
        """
        for rule in self.find_rules("versions.signers"):
            if not signer or signer not in _list_keys(rule):
                now = f"pins the key {signer}" if signer else "pins no signer"
                message = f"the lock file {now} for {address}: {rule} wants {' or '.join(_as_list(rule.value))}"
                raise PolicyError(message, rule.file)

    def check_age(self, committed_at: float, address: str, now: float | None = None) -> None:
        """Raise ``PolicyError`` for a commit that is too young. Its author wrote the date: it can be wrong."""
        rule = self.strictest("versions.cooldown-days")
        if rule is None or not isinstance(rule.value, int):
            return
        days = ((time.time() if now is None else now) - committed_at) / _DAY
        if days < rule.value:
            message = f"the commit of {address} is {max(days, 0):.1f} days old: {rule} wants {rule.value}"
            raise PolicyError(message, rule.file)

    def check_skill(self, name: str, digest: str, source: str = "", ref: str = "") -> None:
        """Raise ``PolicyError`` for an installed skill that is revoked, or not reviewed where that is required."""
        self.check_revoked(name, digest, source, ref)
        rule = self.strictest("versions.review")
        if rule is not None and rule.value == "required" and self.find_approval(digest) is None:
            ends = [one.expires for one in self.approvals if one.digest == digest and one.expires is not None]
            why = f"has an approval that expired on {max(ends)}" if ends else "is not in approved.toml"
            message = f"skill {name!r} ({digest[:12]}) {why}: {rule} wants a review"
            raise PolicyError(message, rule.file, "not-reviewed")

    def check_revoked(self, name: str, digest: str, source: str = "", ref: str = "") -> None:
        """Raise ``PolicyError`` for a skill that is revoked."""
        revocation = self.find_revocation(digest, source, ref)
        if revocation is not None:
            why = f": {revocation.reason}" if revocation.reason else ""
            raise PolicyError(f"skill {name!r} is revoked by {revocation.file}{why}", revocation.file, "revoked")

    def find_revocation(self, digest: str, source: str = "", ref: str = "") -> Revocation | None:
        """Return the revocation of a skill, by its digest or else by its source and version."""
        if digest in self.revoked_digests:
            return self.revoked_digests[digest]
        return next((one for one in self.revocations if one.source and one.covers("", source, ref)), None)

    def find_approval(self, digest: str) -> Approval | None:
        """Return the approval of a digest that still counts."""
        return next((one for one in self.approvals if one.digest == digest and one.is_valid()), None)

    def find_run_refusal(self, digest: str, key: str = "") -> PolicyError | None:
        """Return why nothing of a skill may run, whatever its user granted.

        ``key`` is ``run.scripts`` or ``run.commands``; without it, only what forbids both counts.
        """
        try:
            self.check_revoked("this skill", digest)
        except PolicyError as error:
            return error
        if not key:
            refusals = [self.find_run_refusal(digest, one) for one in ("run.scripts", "run.commands")]
            return refusals[0] if all(refusals) else None
        rule = self.strictest(key)
        if rule is None or rule.value == "ask" or (rule.value == "approved" and self.may_run_unasked(digest)):
            return None
        what = key.removeprefix("run.")
        wanted = "an entry with run = true in approved.toml" if rule.value == "approved" else "none to run"
        return PolicyError(f"{what} of this skill ({digest[:12]}) may not run: {rule} wants {wanted}", rule.file)

    def may_run_unasked(self, digest: str) -> bool:
        """Return whether a valid approval lets the scripts and commands of a skill run on every machine."""
        return any(one.run for one in self.approvals if one.digest == digest and one.is_valid())

    def allows_sandbox(self, kind: str) -> bool:
        """Return whether scripts may run in a sandbox of this kind."""
        return all(kind in _as_list(rule.value) for rule in self.find_rules("run.sandbox"))

    def check_sandbox(self, kind: str) -> None:
        """Raise ``PolicyError`` for a sandbox that scripts may not run in."""
        for rule in self.find_rules("run.sandbox"):
            if kind not in _as_list(rule.value):
                allowed = ", ".join(_as_list(rule.value)) or "none of them"
                raise PolicyError(f"scripts may not run in the sandbox {kind!r}: {rule} allows {allowed}", rule.file)


def to_address(source: str, folder: str = "") -> str:
    """Return a source as the rules see it: a path of this machine, from ``folder``, is ``file:///…``."""
    if not _PATH.match(source):
        return source
    path = os.path.abspath(os.path.join(folder, os.path.expanduser(source)))
    return f"file://{'' if path.startswith('/') else '/'}{path.replace(os.sep, '/')}"


_PATH = compile_pattern(r"(?:\.\.?|~)(?:/|$)|/|[A-Za-z]:[\\/]")


def is_source_match(pattern: str, address: str) -> bool:
    """Return whether a pattern of addresses matches one: ``*`` within a part of the path, ``**`` across parts.

    ``.git`` at the end of an address does not matter, nor does the case of its scheme and host.
    """
    pattern = f"file://{pattern}" if pattern.startswith("/") else pattern
    scheme, host, path = _split_address(address)
    # Characters that end a host early, or lead out of a folder, would let another place pass for one that is listed.
    if not _HOST_ENDS.isdisjoint(host) or (scheme in {"http", "https"} and "@" in host):
        return False
    if ".." in path.split("/") or _ODD_PATH.search(path):
        return False
    return is_filter_match(_join_address(*_split_address(pattern)), _join_address(scheme, host, path))


def is_within(address: str, base: str) -> bool:
    """Return whether an address is ``base``, or below it."""
    path, base_path = _split_address(address), _split_address(base)
    is_plain = ".." not in path[2].split("/") and not _ODD_PATH.search(path[2])
    return is_plain and path[:2] == base_path[:2] and f"{path[2]}/".startswith(f"{base_path[2].rstrip('/')}/")


_ODD_PATH = compile_pattern(r"%(?:2[ef5]|5c)|\\|\.\.;", re.IGNORECASE)
"""What a server may read as a separator of paths, or as a way up."""
_HOST_ENDS = frozenset("?#\\")


def _split_address(address: str) -> tuple[str, str, str]:
    """Return the scheme, the host and the path of an address; the first two are ``""`` where there is only a path."""
    scheme, separator, rest = address.rstrip("/").partition("://")
    if not separator:
        return "", "", address.rstrip("/").removesuffix(".git")
    host, slash, path = rest.partition("/")
    return scheme.lower(), host.lower(), f"{slash}{path.removesuffix('.git')}"


def _join_address(scheme: str, host: str, path: str) -> str:
    return f"{scheme}://{host}{path}" if scheme else path


def _as_list(value: RuleValue) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, tuple) else (str(value),)


def _list_keys(rule: Rule) -> set[str]:
    """Return the fingerprints of the keys that the signers of a rule have in ``allowed_signers``."""
    names, found = set(_as_list(rule.value)), set()
    for line in rule.keys.splitlines():
        who, _, rest = line.strip().partition(" ")
        match = _KEY_DATA.search(rest)
        if match is not None and not names.isdisjoint(who.strip('"').split(",")):
            digest = hashlib.sha256(base64.b64decode(match[0] + "==")).digest()
            found.add(f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}")
    return found


_KEY_DATA = compile_pattern(r"(?<= )AAAA[A-Za-z0-9+/]{16,4000}")


def _as_mirrors(value: RuleValue) -> list[Mirror]:
    return [one for one in value if isinstance(one, Mirror)] if isinstance(value, tuple) else []

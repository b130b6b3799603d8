"""A git repository in a temporary folder, which fetches objects as the user's own git would."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple, Self

from prowess.addresses.source_grammar import check_address
from prowess.errors import BadReferenceError, GitError
from prowess.fetch.git.process import DUMB_SERVER, PASSED_VARIABLES, GitProgram, make_environment
from prowess.files.delete import temporary_folder
from prowess.files.directory import exists
from prowess.files.read import OpenFile
from prowess.files.write import NewFile, write_atomic, write_tree
from prowess.text.redaction import show_address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.fetch.git.process import GitRunner
    from prowess.fetch.git.repository import GitRemote


# Written by us: "git init" would copy a template, which may hold hooks.
_EMPTY_REPOSITORY = (
    NewFile("HEAD", b"ref: refs/heads/none\n"),
    NewFile("objects/info/.keep", b""),
    NewFile("objects/pack/.keep", b""),
    NewFile("refs/heads/.keep", b""),
)
_CONFIG = "[core]\n\trepositoryformatversion = {version}\n\tbare = true\n{more}"
_SHA256_CONFIG = "[extensions]\n\tobjectFormat = sha256\n"
_FETCH_OPTIONS = (
    *("--quiet", "--no-tags", "--no-recurse-submodules", "--no-auto-maintenance"),
    *("--no-write-commit-graph", "--no-show-forced-updates"),
)
WITHOUT_BLOBS = "--filter=blob:none"
"""The option of git that asks for commits and folders without files."""
_FILTERING_SERVER = "--upload-pack=git -c uploadpack.allowFilter=true upload-pack"
_IDS_AT_ONCE = 20_000
"""How many ids one call of git names: they are arguments, and Linux takes 2 MiB of them."""
HISTORY_DEPTHS = (64, 2_147_483_647)
"""How much of a history is fetched: most updates are a few commits; the second number is git's own for all of it."""


class TemporaryRepository:
    """An empty repository of our own in which git runs; it is deleted at the end, whatever happens.

    Nothing of the user's repositories is read or changed. ``sha256`` says that the remote names its objects by SHA-256.
    """

    def __init__(self, remote: GitRemote, *, sha256: bool = False) -> None:
        self._remote = remote
        self._sha256 = sha256
        self.folder = ""
        self.schemes: Sequence[str] = ()
        self.address = ""
        self.fetched = ""
        self._user_settings = UserSettings()
        self._cleanup = ExitStack()

    def __enter__(self) -> Self:
        remote = self._remote
        self.address = remote.check_address()
        self.schemes = ("file",) if self.address.startswith("file://") else tuple(remote.schemes)
        with ExitStack() as stack:
            self.folder = stack.enter_context(temporary_folder())
            write_tree(self.folder, (*_EMPTY_REPOSITORY, NewFile("config", self._make_config())))
            if not remote.local:
                self._user_settings = read_user_settings(remote.git or GitProgram(remote.limits), self.folder)
                self.address = self._user_settings.rewrite_address(self.address, self.schemes)
            # Only now: an error above must delete the folder at once, since __exit__ would not be called.
            self._cleanup = stack.pop_all()
        return self

    def _make_config(self) -> bytes:
        return _CONFIG.format(version=int(self._sha256), more=_SHA256_CONFIG if self._sha256 else "").encode()

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def fetch(self, version: str, files: str) -> None:
        """Fetch one commit. ``files`` is the option of git that says which of its files come along."""
        self._fetch(("--depth=1", files), version)
        with OpenFile(self.folder, ("FETCH_HEAD",)) as file:
            self.fetched = file.read(4096).split(b"\t")[0].decode("ascii", "replace").strip()

    def fetch_objects(self, names: Sequence[str]) -> None:
        """Fetch objects by their ids. No reference names them here, so git does not negotiate about them."""
        for begin in range(0, len(names), _IDS_AT_ONCE):
            # The depth means nothing for files, but a dumb server refuses it. To a filter alone it would just give one
            # object after the other, for each of which git would begin another fetch.
            self._fetch(("--depth=1", WITHOUT_BLOBS), *names[begin : begin + _IDS_AT_ONCE])

    def fetch_history(self, commit: str, depth: int) -> None:
        """Fetch ``depth`` generations of commits, without their files where the server can leave them out."""
        # A repository on this machine leaves nothing out unless its own git is asked to.
        filtering = (_FILTERING_SERVER,) if self.address.startswith("file://") else ()
        self._fetch((*filtering, f"--depth={depth}", "--filter=tree:0"), commit)

    def fetch_all_history(self) -> None:
        """Fetch the commits of every branch and tag, without their files where the server can leave them out."""
        refs = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
        self._fetch((f"--depth={HISTORY_DEPTHS[-1]}", "--filter=tree:0"), *refs)

    def _fetch(self, parts: Sequence[str], *names: str) -> None:
        """Fetch what has some names. ``parts`` are the options of git that say which part of it comes along.

        A dumb server, which gives plain files over HTTP, knows no parts: all of it comes, within the limits.
        """
        try:
            self.run_online("fetch", *_FETCH_OPTIONS, *parts, "--", self.address, *names)
        except GitError as error:
            if error.code != DUMB_SERVER:
                raise
            # The attempt has left a note there that git may fetch missing objects one by one.
            write_atomic(os.path.join(self.folder, "config"), self._make_config())
            self.run_online("fetch", *_FETCH_OPTIONS, "--", self.address, *names)
            self._remote.when_dumb(self._remote.address)

    def find_commits(self, commits: Sequence[str]) -> set[str]:
        """Return those of some commits that are here; after ``fetch_history``, those of that history alone."""
        found: set[str] = set()
        for begin in range(0, len(commits), _IDS_AT_ONCE):
            part = commits[begin : begin + _IDS_AT_ONCE]
            found.update(self.run_offline("rev-list", "--no-walk", "--ignore-missing", *part).decode("ascii").split())
        return found

    def is_shallow(self) -> bool:
        """Return whether only a part of the history was fetched."""
        return exists(os.path.join(self.folder, "shallow"))

    def run_offline(self, *args: str, printed: int | None = None) -> bytes:
        """Run git and return what it printed, at most ``printed`` bytes; git reaches no server.

        After a partial fetch, git would fetch what is missing by itself, one object at a time. Git 2.44 has a variable
        against that. Earlier versions are kept from it because no way to reach a server is allowed.
        """
        return self._run_git((), args, printed)

    def run_online(self, *args: str) -> bytes:
        """Run git and return what it printed; git may reach the server."""
        return self._run_git(self.schemes, args, None)

    def _run_git(self, schemes: Sequence[str], args: Sequence[str], printed: int | None) -> bytes:
        limits = self._remote.limits
        users = self._user_settings
        low_speed = (("http.lowSpeedLimit", "1"), ("http.lowSpeedTime", str(max(1, int(limits.max_idle_seconds)))))
        redirects = () if self._remote.follow_redirects else (("http.followRedirects", "false"),)
        settings = (*users.select_pairs(self.address), *low_speed, *redirects)
        env = make_environment(schemes, settings, users.select_variables(self.address)) | {"GIT_DIR": self.folder}
        return (self._remote.git or GitProgram(limits, printed=printed))(args, self.folder, env)


_CONFIGURATION_VARIABLE = re.compile(
    r"GIT_CONFIG_(?:GLOBAL|SYSTEM|NOSYSTEM|COUNT|(?:KEY|VALUE)_[0-9]+)", re.IGNORECASE if os.name == "nt" else 0
)
"""The variables that hold settings, or say where the files with settings are."""
_USER_SCOPES = frozenset(("system", "global", "command"))
"""The scopes of settings that are the user's own; ``local`` and ``worktree`` belong to a repository."""
_PROXY_KEY = re.compile(r"http\.(?:.*\.)?proxy")
_LOGIN_KEY = re.compile(r"credential\..*|http\.(?:.*\.)?(?:proxy|sslcainfo|sslcert|sslkey|extraheader|cookiefile)")
_INSTEAD_OF_KEY = re.compile(r"url\.(.*)\.insteadof")
_HEADER_KEY = re.compile(r"(http\.(?:.*\.)?)extraheader")
_SSH_COMMAND_KEY = "core.sshcommand"


class UserSettings(NamedTuple):
    """The settings of the user's git that say how to reach servers, in git's order, as keys with their values."""

    pairs: Sequence[tuple[str, str]] = ()

    def rewrite_address(self, address: str, schemes: Sequence[str]) -> str:
        """Return the address that ``url.<base>.insteadOf`` puts in place of another one; without such, that one.

        Raises ``BadReferenceError`` when the new address may not be asked: it is checked like one that was typed.
        """
        longest = base = ""
        for key, prefix in self.pairs:
            match = _INSTEAD_OF_KEY.fullmatch(key)
            if match is not None and len(prefix) > len(longest) and address.startswith(prefix):
                longest, base = prefix, match[1]
        if not longest:
            return address
        rewritten = base + address[len(longest) :]
        try:
            return check_address(rewritten, tuple(schemes))
        except BadReferenceError as error:
            message = f"insteadOf in the configuration of git puts {show_address(rewritten)} in place of {address}"
            raise BadReferenceError(f"{message}: {error.message}", code=error.code) from None

    def select_pairs(self, address: str) -> list[tuple[str, str]]:
        """Return the settings that git needs for an address: logins over TLS alone, a proxy in any case."""
        keys = _LOGIN_KEY if _is_encrypted(address) else _PROXY_KEY
        pairs = [(key, value) for key, value in self.pairs if keys.fullmatch(key)]
        # After a redirect git sends the headers to the other host too, and they usually hold a token.
        headers = filter(None, (_HEADER_KEY.fullmatch(key) for key, _ in pairs))
        return [*pairs, *((f"{match[1]}followRedirects", "false") for match in headers)]

    def select_variables(self, address: str) -> dict[str, str]:
        """Return the variables that git needs for an address."""
        variables: dict[str, str] = {}
        configured = [value for key, value in self.pairs if key == _SSH_COMMAND_KEY]
        ssh_command = os.environ.get("GIT_SSH_COMMAND") or (configured[-1] if configured else "")
        if ssh_command:
            variables["GIT_SSH_COMMAND"] = ssh_command
        if _is_encrypted(address):
            # Git runs in a folder of ours, where a relative path would lead nowhere.
            if authorities := os.environ.get("GIT_SSL_CAINFO"):
                variables["GIT_SSL_CAINFO"] = os.path.abspath(authorities)
            if program := os.environ.get("GIT_ASKPASS"):
                variables["GIT_ASKPASS"] = os.path.abspath(program) if os.path.dirname(program) else program
        return variables


def read_user_settings(git: GitRunner, folder: str) -> UserSettings:
    """Return the user's settings; ``git`` runs in ``folder``.

    Raises ``GitError`` when git cannot read its configuration.
    """
    env = {
        name: value
        for name, value in os.environ.items()
        if name in PASSED_VARIABLES or _CONFIGURATION_VARIABLE.fullmatch(name)
    }
    # Without a repository, git reads no repository's configuration, wherever the folder is.
    env |= {"GIT_DIR": os.devnull, "GIT_ALLOW_PROTOCOL": "", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    printed = git(["config", "--list", "--null", "--show-scope"], folder, env).decode("utf-8", "replace")
    parts = printed.split("\0")
    return UserSettings(
        [
            _parse_setting(setting)
            for scope, setting in zip(parts[::2], parts[1::2], strict=False)
            if scope in _USER_SCOPES
        ]
    )


def _parse_setting(printed: str) -> tuple[str, str]:
    key, has_value, value = printed.partition("\n")
    return key, value if has_value else "true"  # git's meaning of a key without a value


def _is_encrypted(address: str) -> bool:
    """Return True for an address to which passwords may be sent."""
    return address.startswith("https://")

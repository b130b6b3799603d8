"""How the user's own git reaches servers: certificates, proxies, logins, the program for ssh, and mirrors.

They come from the system's and the user's configuration, from ``GIT_CONFIG_COUNT`` and from a few variables. Nothing
comes from the configuration of a repository, because whoever wrote the repository would choose where passwords go.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from prowess.addresses.address_check import check_address
from prowess.errors import BadReferenceError
from prowess.fetch.git.process import PASSED_VARIABLES
from prowess.text.redaction import show_address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.fetch.git.process import GitRunner

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
            # Git runs in a folder of ours, in which a relative path would lead nowhere.
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
    """True for an address to which passwords may be sent."""
    return address.startswith("https://")

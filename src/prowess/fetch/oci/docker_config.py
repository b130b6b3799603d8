"""The logins of registries, as Docker keeps them: in ``config.json``, or in a credential helper that it names.

Podman, oras and helm read the same file. What is read here is sent to the registry and to its token server, and is
never shown.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.errors import FetchError, ResourceError, ResourceNotFoundError
from prowess.files.read import OpenFile

if TYPE_CHECKING:
    from prowess.limits import Limits

_DOCKER_HUB = "index.docker.io"
DOCKER_HUB_KEY = f"https://{_DOCKER_HUB}/v1/"
"""The name under which Docker keeps the login of Docker Hub."""
_HELPER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NO_LOGIN = "credentials not found"
_IDENTITY_USER = "<token>"
"""The user name with which a helper says that the secret is an identity token."""


class Login(NamedTuple):
    """A user and a password, or an identity token (``user`` is ``""``) that buys tokens."""

    user: str
    secret: str

    def __repr__(self) -> str:
        return "Login(…)"

    @property
    def basic(self) -> str:
        """The value of the header for basic authentication."""
        return "Basic " + base64.b64encode(f"{self.user}:{self.secret}".encode()).decode()


def docker_config_path() -> str:
    """Return the path of Docker's ``config.json``, in the folder ``DOCKER_CONFIG`` or in the home folder."""
    folder = os.environ.get("DOCKER_CONFIG") or os.path.join(os.path.expanduser("~"), ".docker")
    return os.path.join(os.path.abspath(folder), "config.json")


def find_login(key: str, limits: Limits) -> Login | None:
    """Return the login for a registry, which is ``host``, ``host:port`` or ``DOCKER_HUB_KEY``, or ``None``.

    Raises ``FetchError`` for a ``config.json`` that cannot be read, and for a credential helper that fails.
    """
    path = docker_config_path()
    config = _read_config(path, limits)
    host = _host_of(key)
    helper = _find_by_host(_mapping(config, "credHelpers"), host) or config.get("credsStore") or ""
    login = _ask_helper(helper, key, path, limits) if helper else None
    entry = _find_by_host(_mapping(config, "auths"), host)
    return login or (_read_entry(entry, path) if isinstance(entry, dict) else None)


def _read_config(path: str, limits: Limits) -> dict[str, Any]:
    folder, name = os.path.split(os.path.realpath(path))  # secrets are mounted as links
    try:
        with OpenFile(folder, (name,)) as file:
            config = json.loads(file.read_all(limits.max_login_bytes))
    except ResourceNotFoundError:
        return {}
    except ResourceError as error:
        raise FetchError(f"cannot read Docker's logins: {error.message}", path, "bad-docker-config") from None
    except (ValueError, RecursionError):
        config = None
    if not isinstance(config, dict):
        raise FetchError("Docker's config.json is not a JSON object", path, "bad-docker-config")
    return config


def _mapping(config: dict[str, Any], key: str) -> dict[str, Any]:
    value = config.get(key)
    return value if isinstance(value, dict) else {}


def _find_by_host(rows: dict[str, Any], host: str) -> Any:
    """Return the value of the key that names the host, plainly or as an address, as older versions wrote it."""
    return rows.get(host) or next((value for key, value in rows.items() if _host_of(key) == host), None)


def _host_of(key: str) -> str:
    return key.partition("://")[2].partition("/")[0].lower() if "://" in key else key.partition("/")[0].lower()


def _read_entry(entry: dict[str, Any], path: str) -> Login | None:
    token = entry.get("identitytoken")
    if isinstance(token, str) and token:
        return Login("", token)
    user, secret = entry.get("username"), entry.get("password")
    packed = entry.get("auth")
    if isinstance(packed, str) and packed:
        try:
            user, _, secret = base64.b64decode(packed, validate=True).decode().partition(":")
        except ValueError:
            raise FetchError("an 'auth' in Docker's config.json is not base64", path, "bad-docker-config") from None
        secret = secret.rstrip("\0")
    return Login(user, secret) if isinstance(user, str) and user and isinstance(secret, str) else None


def _ask_helper(name: object, key: str, path: str, limits: Limits) -> Login | None:
    """Return what the program ``docker-credential-NAME`` has for a registry."""
    import subprocess

    if not isinstance(name, str) or _HELPER_NAME.fullmatch(name) is None:
        raise FetchError(f"Docker's config.json names no credential helper: {str(name)[:40]!a}", path, _BAD_HELPER)
    program = f"docker-credential-{name}"
    found = shutil.which(program)
    # A program in a relative folder of PATH would be one in the working folder, which may be anybody's.
    if found is None or not os.path.isabs(found):
        raise FetchError(f"Docker's config.json names the helper {program}, which is not installed", path, _BAD_HELPER)
    try:
        done = subprocess.run(  # noqa: S603 - an absolute path, named by the user's own settings
            [found, "get"], input=key.encode(), capture_output=True, timeout=limits.max_helper_seconds, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        why = "takes too long" if isinstance(error, subprocess.TimeoutExpired) else "cannot be run"
        raise FetchError(f"the credential helper {program} {why}", path, _BAD_HELPER) from None
    # What it prints may hold the secret, so none of it is shown.
    if done.returncode:
        if _NO_LOGIN in (done.stdout + done.stderr).decode("utf-8", "replace"):
            return None
        raise FetchError(f"the credential helper {program} failed (exit {done.returncode})", path, _BAD_HELPER)
    try:
        answer = json.loads(done.stdout)
        user, secret = answer["Username"], answer["Secret"]
    except (ValueError, RecursionError, LookupError, TypeError):
        user = secret = None
    if not isinstance(user, str) or not isinstance(secret, str):
        raise FetchError(f"the credential helper {program} gives no login", path, _BAD_HELPER)
    return Login("" if user == _IDENTITY_USER else user, secret) if secret else None


_BAD_HELPER = "credential-helper"

"""Tokens for servers of archives and sites, each from an environment variable that is named after the host.

git has its own credential helpers. Archives and sites have none, and an address must not hold a secret. Their token is
in the variable ``PROWESS_TOKEN_`` followed by the host in capitals: ``.`` is written ``_``, ``-`` is written ``__``,
and a port follows after ``___``. The names of hosts have no ``_`` of their own, so no two hosts share a variable.
"""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

HOST_VARIABLE_PREFIX = "PROWESS_TOKEN_"
_PLAIN_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")


def token_variable(address: str) -> str:
    """The name of the variable with the token for an address; ``""`` when no token may be sent there."""
    try:
        parts = urlsplit(address)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:  # it is not an address; the request itself reports that
        return ""
    # A token is never sent without encryption.
    if parts.scheme != "https" or _PLAIN_HOST.fullmatch(host) is None:
        return ""
    name = host.replace("-", "__").replace(".", "_").upper()
    return f"{HOST_VARIABLE_PREFIX}{name}___{port}" if port else f"{HOST_VARIABLE_PREFIX}{name}"


def token_headers(address: str) -> dict[str, str]:
    """The header with the token for the server of an address; empty when the environment has no token for it."""
    variable = token_variable(address)
    token = os.environ.get(variable, "").strip() if variable else ""
    return {"Authorization": f"Bearer {token}"} if token else {}

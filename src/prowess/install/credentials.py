"""Who we are to servers of archives and sites: a token for one host, out of a variable of its own.

git asks its own credential helper. Archives and sites are not git's, and an address must not hold a secret; so their
token is in ``PROWESS_TOKEN_`` and the host in capitals: ``.`` is written ``_``, ``-`` is written ``__``, and a port
follows after ``___``. Names of hosts have no ``_`` of their own, so no two hosts share a variable.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

HOST_VARIABLE_PREFIX = "PROWESS_TOKEN_"
_PLAIN_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")


def token_variable(address: str) -> str:
    """The name of the variable with the token for an address; ``""`` where none is sent: without encryption."""
    try:
        parts = urlsplit(address)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:  # no address at all, which is told where it is asked
        return ""
    if parts.scheme != "https" or _PLAIN_HOST.fullmatch(host) is None:
        return ""
    name = host.replace("-", "__").replace(".", "_").upper()
    return f"{HOST_VARIABLE_PREFIX}{name}___{port}" if port else f"{HOST_VARIABLE_PREFIX}{name}"


def token_headers(address: str, env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The header with the token that the environment has for the server of an address; none where it has none."""
    variable = token_variable(address)
    token = env.get(variable, "").strip() if variable else ""
    return {"Authorization": f"Bearer {token}"} if token else {}

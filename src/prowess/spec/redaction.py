"""Addresses and messages without the secrets that people put into addresses.

What may be a secret: a user and a password before the host, a query (``?token=…``), and a fragment that is written like
one (``#access_token=…``). The user name of ssh is none (``git@host:path``, ``ssh://git@host/path``), its password is.
"""

from __future__ import annotations

import re

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_PATHS = ("./", "../", "/", "~/", ".\\", "..\\")
_SCHEME = re.compile(r"(?:[A-Za-z0-9+.-]+::)?[A-Za-z][A-Za-z0-9+.-]*")  # git writes helper::https://…
_END_OF_HOST = re.compile(r"[/?#]")
_HOST_AND_PORT = re.compile(r"(?:\[[^\]]*\]|[^:]*)(?::[0-9]*)?")
_FORGE = re.compile(r"(?:github|gitlab):[^:@]*(?:@[^:@]*)?")
# Punctuation that ends an address in a sentence belongs to the sentence: git writes 'https://host/x.git': …
_IN_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9+.:-]*://\S+?(?=['\"):;,.\]]*(?:\s|$))")
_SCP_IN_TEXT = re.compile(r"(?<![\w:])([\w.-]+):[^\s/]\S*@(?=[\w.-]+:[^\s:])")


def is_path(text: str) -> bool:
    """True when ``text`` is a path of this machine, in which ``?``, ``@`` and ``#`` are plain letters."""
    return text in {".", "..", "~"} or text.startswith(_PATHS) or _DRIVE.match(text) is not None


def hide_secrets(address: str) -> str:
    """``address`` without what may be a secret; a path of this machine, and an address without any, as it is.

    An address whose host cannot be told from a password loses both.
    """
    if is_path(address):
        return address
    scheme, mark, rest = address.partition("://")
    if not mark or _SCHEME.fullmatch(scheme) is None:
        return _without_query(_hide_in_scp(address))
    end = _END_OF_HOST.search(rest)
    authority, path = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    login, at, host = authority.rpartition("@")
    if _HOST_AND_PORT.fullmatch(host) is None or (at and not host):
        # No host ends here, or what follows its colon is no port: a password that holds a slash, a ? or a # as it is.
        return f"{scheme}://{_without_query(rest.rpartition('@')[2])}" if "@" in rest else f"{scheme}://"
    user = login.partition(":")[0] if scheme.lower() == "ssh" else ""
    return f"{scheme}://{user}{'@' if user else ''}{host}{_without_query(path)}"


def _without_query(text: str) -> str:
    """``text`` without its query, and without a fragment unless that may be ``ref`` or ``ref@skill``."""
    bare, _, fragment = text.partition("#")
    if "?" in bare:  # the fragment may be the rest of a secret that holds a #
        return bare.partition("?")[0]
    return bare if any(sign in fragment for sign in "=?&") else text


def _hide_in_scp(address: str) -> str:
    """``user:password@host:path`` as ``user@host:path``; what is read as ``github:owner/repo@skill`` stays."""
    has_password = 0 <= address.find(":") < address.find("@")
    if not has_password or _FORGE.fullmatch(address):
        return address
    return f"{address.partition(':')[0]}@{address.rpartition('@')[2]}"


def scrub_text(text: str) -> str:
    """A message whose addresses have lost their secrets: for what other programs say, and what people typed."""
    scrubbed = _IN_TEXT.sub(lambda match: hide_secrets(match[0]), text)
    return _SCP_IN_TEXT.sub(r"\1@", scrubbed)


def show_address(address: str, most: int = 120) -> str:
    """An address for a message: without secrets, in ASCII, quoted, and not longer than ``most`` characters."""
    hidden = hide_secrets(address)
    return ascii(hidden if len(hidden) <= most else hidden[:most] + "...")

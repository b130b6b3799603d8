"""Removal of secrets from addresses and messages before anybody sees them.

These may be secrets: a user and a password before the host, a query (``?token=…``), a fragment that is written like a
query (``#access_token=…``), and a user name that is written like a token of a forge or a registry
(``ghp_…@host:path``). Any other user name of ssh is not a secret (``git@host:path``, ``ssh://git@host/path``), but its
password is.
"""

from __future__ import annotations

import re
import string

from prowess.text.versions import LEADING_RANGE

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_PATH_PREFIXES = ("./", "../", "/", "~/", ".\\", "..\\")
_SCHEME = re.compile(r"(?:[A-Za-z0-9+.-]+::)?[A-Za-z][A-Za-z0-9+.-]*")  # git writes helper::https://…
_SCHEME_CHARS = string.ascii_letters + string.digits + "+.:-"
_PLAIN_ADDRESS = re.compile(r"https?://[A-Za-z0-9.-]+(?:/[A-Za-z0-9._/-]*)?")
"""An address without a login, a port, a query, a fragment or a second address: nothing in it can be a secret."""
_END_OF_HOST = re.compile(r"[/?#]")
_HOST_AND_PORT = re.compile(r"(?:\[[^\]]*\]|[\w.~%-]*)(?::[0-9]*)?")
_FORGE = re.compile(r"(?:github|gitlab):[^:@]*(?:@[^:@]*)?")
_USER = re.compile(r"[\w.-]+")
_HOST_AND_PATH = re.compile(r"[\w.-]+:[^:].*")
# At least as long as the shortest real token, so that the user name ``hf_user`` is not taken for one.
_TOKEN = re.compile(
    r"(?:gh[a-z]_|github_pat_|gl[a-z]{1,4}-|hf_|npm_|pypi-|AT[AC]TT|ATBB|dop_v1_|gitea_)[A-Za-z0-9_=.-]{16,}"
)
_WORD = re.compile(r"\S+")
_PUNCTUATION = "'\"()[]{}<>,;:."
"""The signs around an address in a sentence: git writes 'https://host/x.git': …"""
_MAX_ADDRESS_CHARS = 4096
"""The length up to which an address is searched for secrets. Of a longer one only the scheme is shown."""


def is_path(text: str) -> bool:
    """Return whether ``text`` is a path of this machine, where ``?``, ``@`` and ``#`` are plain letters."""
    return text in {".", "..", "~"} or text.startswith(_PATH_PREFIXES) or _DRIVE.match(text) is not None


def hide_secrets(address: str) -> str:
    """Return ``address`` without what may be a secret. A path of this machine stays as it is.

    An address whose host cannot be distinguished from a password loses both.
    """
    if address.startswith("site:"):  # which the grammar of sources puts before an address
        return f"site:{hide_secrets(address.removeprefix('site:'))}"
    # Fast path of lock files: nearly every source in them is such an address; below it would come out unchanged.
    if is_path(address) or (len(address) <= _MAX_ADDRESS_CHARS and _PLAIN_ADDRESS.fullmatch(address)):
        return address
    scheme, mark, rest = address.partition("://")
    if not mark or _SCHEME.fullmatch(scheme) is None:
        return _without_query(_hide_in_scp(address))
    if len(address) > _MAX_ADDRESS_CHARS:
        return f"{scheme[:_MAX_ADDRESS_CHARS]}://"
    return _hide_in_url(scheme, rest)


def _hide_in_url(scheme: str, rest: str) -> str:
    """Return ``scheme://rest`` without its login, its query, and the secrets of addresses in its path.

    A user name of ssh that is not written like a token stays.
    """
    end = _END_OF_HOST.search(rest)
    authority, path = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    login, mark, host = authority.rpartition("@")
    if "@" in rest and (_HOST_AND_PORT.fullmatch(host) is None or (mark and not host)):
        # What looks like the host is none: the password holds a slash, a ? or a #, or there are several addresses.
        return f"{scheme}://{_without_query(rest.rpartition('@')[2])}"
    if ":" in host and _HOST_AND_PORT.fullmatch(host) is None:
        return f"{scheme}://"  # a user and a password whose host was cut off
    user = login.partition(":")[0] if scheme.lower() == "ssh" else ""
    user = "" if _TOKEN.fullmatch(user) else user
    return f"{scheme}://{user}{'@' if user else ''}{host}{_hide_in_path(_without_query(path))}"


def _hide_in_path(path: str) -> str:
    """Return a path without the secrets of the addresses in it: proxies and mirrors write ``…/https://host/x``."""
    cleaned = ""
    # From the last address to the first: each is cleaned once, and never as a part of the one before it.
    while "://" in path:
        start = len(path[: path.rindex("://")].rstrip(_SCHEME_CHARS))
        if start == 0:
            break
        cleaned = hide_secrets(path[start:]) + cleaned
        path = path[:start]
    return path + cleaned


def _without_query(text: str) -> str:
    """Return ``text`` without its query, and without its fragment when that is written like a query.

    A range of versions (``#>=1.0,<2``) is none.
    """
    bare, _, fragment = text.partition("#")
    if "?" in bare:  # the fragment goes too: it may be the rest of a secret that holds a "#"
        return bare.partition("?")[0]
    fragment = LEADING_RANGE.sub("", fragment, count=1)
    return bare if any(sign in fragment for sign in "=?&") else text


def _hide_in_scp(address: str) -> str:
    """Return ``user:password@host:path`` as ``user@host:path``, and ``token@host:path`` as ``host:path``.

    ``github:owner/repo@skill`` stays, since nothing in it is a password.
    """
    user, mark, host_and_path = address.partition("@")
    if mark and _TOKEN.fullmatch(user):
        return host_and_path
    has_password = 0 <= address.find(":") < address.find("@")
    if not has_password or _FORGE.fullmatch(address):
        return address
    return f"{address.partition(':')[0]}@{address.rpartition('@')[2]}"


def scrub_text(text: str) -> str:
    """Return a message without the secrets of its addresses, for the output of other programs and what people typed."""
    # The time must grow with the length of the text alone: servers choose what git prints.
    has_address = "://" in text or ("@" in text and ":" in text)
    return _WORD.sub(lambda word: _scrub_word(word[0]), text) if has_address else text


def _scrub_word(word: str) -> str:
    bare = word.strip(_PUNCTUATION)
    before, mark, _ = bare.partition("://")
    user, _, rest = bare.partition(":")
    host_and_path = rest.rpartition("@")[2] if "@" in rest else ""
    if _TOKEN.fullmatch(bare.partition("@")[0]):
        hidden = hide_secrets(bare)
    elif mark:
        start = len(before.rstrip(_SCHEME_CHARS))
        hidden = bare[:start] + hide_secrets(bare[start:])
    elif _USER.fullmatch(user) and not rest.startswith("/") and _HOST_AND_PATH.fullmatch(host_and_path):
        hidden = f"{user}@{host_and_path}"
    else:
        return word
    start = word.index(bare)
    return word[:start] + hidden + word[start + len(bare) :]


def show_address(address: str, limit: int = 120) -> str:
    """Return an address for a message: without secrets, in ASCII, quoted, and cut after ``limit`` characters."""
    hidden = scrub_text(hide_secrets(address))  # an address may be in a part of another (owner/repo@https://…)
    return ascii(hidden if len(hidden) <= limit else hidden[:limit] + "...")

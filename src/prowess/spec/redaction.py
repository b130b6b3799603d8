"""Addresses and messages without the secrets that people put into addresses.

What may be a secret: a user and a password before the host, a query (``?token=…``), and a fragment that is written like
one (``#access_token=…``). The user name of ssh is none (``git@host:path``, ``ssh://git@host/path``), its password is,
and so is a name that is written like a token of a forge or a registry (``ghp_…@host:path``).
"""

from __future__ import annotations

import re
import string

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_PATH_PREFIXES = ("./", "../", "/", "~/", ".\\", "..\\")
_SCHEME = re.compile(r"(?:[A-Za-z0-9+.-]+::)?[A-Za-z][A-Za-z0-9+.-]*")  # git writes helper::https://…
_SCHEME_CHARS = string.ascii_letters + string.digits + "+.:-"
_END_OF_HOST = re.compile(r"[/?#]")
_HOST_AND_PORT = re.compile(r"(?:\[[^\]]*\]|[\w.~%-]*)(?::[0-9]*)?")
_FORGE = re.compile(r"(?:github|gitlab):[^:@]*(?:@[^:@]*)?")
_USER = re.compile(r"[\w.-]+")
_HOST_AND_PATH = re.compile(r"[\w.-]+:[^:].*")
# As long as the shortest of them, so that a user who is called ``hf_user`` is none.
_TOKEN = re.compile(
    r"(?:gh[a-z]_|github_pat_|gl[a-z]{1,4}-|hf_|npm_|pypi-|AT[AC]TT|ATBB|dop_v1_|gitea_)[A-Za-z0-9_=.-]{16,}"
)
_WORD = re.compile(r"\S+")
_PUNCTUATION = "'\"()[]{}<>,;:."
"""What stands around an address in a sentence: git writes 'https://host/x.git': …"""
_MAX_ADDRESS_CHARS = 4096
"""Characters of an address that is looked at: a longer one is shown without anything but its scheme."""


def is_path(text: str) -> bool:
    """True when ``text`` is a path of this machine, in which ``?``, ``@`` and ``#`` are plain letters."""
    return text in {".", "..", "~"} or text.startswith(_PATH_PREFIXES) or _DRIVE.match(text) is not None


def hide_secrets(address: str) -> str:
    """``address`` without what may be a secret; a path of this machine, and an address without any, as it is.

    An address whose host cannot be told from a password loses both.
    """
    if is_path(address):
        return address
    scheme, mark, rest = address.partition("://")
    if not mark or _SCHEME.fullmatch(scheme) is None:
        return _without_query(_hide_in_scp(address))
    if len(address) > _MAX_ADDRESS_CHARS:
        return f"{scheme[:_MAX_ADDRESS_CHARS]}://"
    end = _END_OF_HOST.search(rest)
    authority, path = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    login, at, host = authority.rpartition("@")
    if "@" in rest and (_HOST_AND_PORT.fullmatch(host) is None or (at and not host)):
        # No host ends here, or it is none: a password that holds a slash, a ? or a # as it is, or several addresses.
        return f"{scheme}://{_without_query(rest.rpartition('@')[2])}"
    if ":" in host and _HOST_AND_PORT.fullmatch(host) is None:
        return f"{scheme}://"  # a user and a password, and the rest is missing
    user = login.partition(":")[0] if scheme.lower() == "ssh" else ""
    user = "" if _TOKEN.fullmatch(user) else user
    return f"{scheme}://{user}{'@' if user else ''}{host}{_hide_in_path(_without_query(path))}"


def _hide_in_path(path: str) -> str:
    """A path whose addresses have lost their secrets: those of proxies and mirrors hold one (``…/https://host/x``)."""
    done = ""
    while "://" in path:
        start = len(path[: path.rindex("://")].rstrip(_SCHEME_CHARS))
        if start == 0:
            break
        done = hide_secrets(path[start:]) + done
        path = path[:start]
    return path + done


def _without_query(text: str) -> str:
    """``text`` without its query, and without a fragment unless that may be ``ref`` or ``ref@skill``."""
    bare, _, fragment = text.partition("#")
    if "?" in bare:  # the fragment may be the rest of a secret that holds a #
        return bare.partition("?")[0]
    return bare if any(sign in fragment for sign in "=?&") else text


def _hide_in_scp(address: str) -> str:
    """``user:password@host:path`` as ``user@host:path``, and ``token@host:path`` as ``host:path``.

    What is read as ``github:owner/repo@skill`` stays.
    """
    user, at, place = address.partition("@")
    if at and _TOKEN.fullmatch(user):
        return place
    has_password = 0 <= address.find(":") < address.find("@")
    if not has_password or _FORGE.fullmatch(address):
        return address
    return f"{address.partition(':')[0]}@{address.rpartition('@')[2]}"


def scrub_text(text: str) -> str:
    """A message whose addresses have lost their secrets: for what other programs say, and what people typed.

    The time that it takes grows with the length of the text alone: servers choose what git says.
    """
    has_address = "://" in text or ("@" in text and ":" in text)
    return _WORD.sub(lambda word: _scrub_word(word[0]), text) if has_address else text


def _scrub_word(word: str) -> str:
    bare = word.strip(_PUNCTUATION)
    before, mark, _ = bare.partition("://")
    user, _, rest = bare.partition(":")
    place = rest.rpartition("@")[2] if "@" in rest else ""
    if _TOKEN.fullmatch(bare.partition("@")[0]):
        hidden = hide_secrets(bare)
    elif mark:
        start = len(before.rstrip(_SCHEME_CHARS))
        hidden = bare[:start] + hide_secrets(bare[start:])
    elif _USER.fullmatch(user) and not rest.startswith("/") and _HOST_AND_PATH.fullmatch(place):
        hidden = f"{user}@{place}"
    else:
        return word
    at = word.index(bare)
    return word[:at] + hidden + word[at + len(bare) :]


def show_address(address: str, most: int = 120) -> str:
    """An address for a message: without secrets, in ASCII, quoted, and not longer than ``most`` characters."""
    hidden = scrub_text(hide_secrets(address))  # an address may stand in a part of another (owner/repo@https://…)
    return ascii(hidden if len(hidden) <= most else hidden[:most] + "...")

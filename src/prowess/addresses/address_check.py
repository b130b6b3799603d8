"""Checks of the addresses that git is given: a known scheme, a host, no option and no secret.

Every address passes here, whether a person typed it or a lock file holds it: a lock file may come from somebody else.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

from prowess.errors import BadReferenceError
from prowess.text.redaction import hide_secrets, show_address

DEFAULT_SCHEMES = ("https", "ssh")
"""The schemes by which a repository may be fetched, unless the caller allows more."""

AZURE_REPOSITORY = re.compile(r"https://[^/]+/.+/_git/[^/?]+")
_SCP = re.compile(r"(?P<user>[A-Za-z0-9_][A-Za-z0-9_.-]*)@(?P<host>[A-Za-z0-9][A-Za-z0-9.-]*):(?P<path>[^/].*)")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9A-Fa-f:.]+")
_PRINTABLE_ASCII = re.compile(r"[\x21-\x7e]*")
_AZURE_QUERY_KEYS = frozenset(("path", "version", "_a"))
"""What the query of a page of Azure may hold: the folder, the version, and which tab is open."""


def check_address(text: str, schemes: tuple[str, ...]) -> str:
    """Return ``text``, the address of a repository.

    Raises ``BadReferenceError`` when its scheme is not among ``schemes``, when it holds an option or a secret, and when
    it names no host.
    """
    if _PRINTABLE_ASCII.fullmatch(text) is None:
        raise BadReferenceError(f"an address must be plain ASCII without spaces: {show_address(text)}")
    scheme, mark, _ = text.partition("://")
    if not mark:
        match_scp_address(text, schemes)
        return text
    if scheme.lower() not in schemes:
        raise BadReferenceError(f"{scheme} is not among {', '.join(schemes)}: {show_address(text)}", code="bad-scheme")
    if not is_azure_page(text):
        refuse_secret(text)
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname or "", parts.port  # a port that is not a number raises only when it is asked for
    except ValueError:
        raise BadReferenceError(f"this is not an address: {show_address(text)}") from None
    # ssh and git read a host or a name that begins with a dash as an option, which can run any program.
    if host.startswith("-"):
        raise BadReferenceError(f"a host must not begin with '-': {show_address(text)}")
    if _HOST.fullmatch(host) is None:
        raise BadReferenceError(f"this is not a host: {show_address(text)}")
    if any(name.startswith("-") and name != "-" for name in parts.path.split("/")):
        raise BadReferenceError(f"a name in an address must not begin with '-': {show_address(text)}")
    return text


def match_scp_address(text: str, schemes: tuple[str, ...] = ("ssh",)) -> re.Match[str]:
    """Return the match of an address such as ``git@host:path``, with the groups ``user``, ``host`` and ``path``.

    Raises ``BadReferenceError`` when it is no such address, when ``schemes`` has no ``ssh``, and when it holds an
    option.
    """
    refuse_dash(text)
    match = _SCP.fullmatch(text)
    # To git ``helper::address`` is a command: it runs the program git-remote-helper.
    if match is None or "::" in text or "ssh" not in schemes:
        raise BadReferenceError(f"this is not the address of a repository: {show_address(text)}", code="bad-scheme")
    return match


def refuse_dash(text: str, marks: str = "@:/") -> None:
    """Raise ``BadReferenceError`` when a part behind one of ``marks`` begins with a dash, as an option of ssh does."""
    if any(part.startswith("-") for part in re.split(f"[{marks}]", text)):
        raise BadReferenceError(f"a name in an address must not begin with '-': {show_address(text)}")


def refuse_secret(text: str) -> None:
    """Raise ``BadReferenceError`` for an address with a password, a query, or a user other than that of ssh."""
    if hide_secrets(text) != text:
        refuse_dash(text, "@#")  # an option reads like a password (``git@-oProxyCommand=x``), and is the worse of both
        raise BadReferenceError(
            f"an address must not hold a user, a password or a query: {show_address(text)}", code="secret-in-address"
        )


def is_azure_page(text: str) -> bool:
    """Return whether ``text`` is a page of Azure whose query names only a folder, a version and an open tab."""
    page, _, query = text.partition("?")
    return (
        hide_secrets(page) == page
        and AZURE_REPOSITORY.fullmatch(page) is not None
        and not parse_qs(query).keys() - _AZURE_QUERY_KEYS
    )

"""What this user has seen of published sites: the key that signs each, and its newest serial."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import FetchError
from prowess.files.owned_json import OwnedJson
from prowess.files.projects import user_state_file

if TYPE_CHECKING:
    from collections.abc import Mapping


class KnownSite(NamedTuple):
    """The key that signed a site when it was first read (``""``: none did), and the newest serial that was seen."""

    signer: str = ""
    serial: int = 0


class KnownSites:
    """The file with the sites that this user has read."""

    def __init__(self) -> None:
        self._file = OwnedJson(user_state_file("sites.json"), "known sites", "unsafe-known-sites")

    def find(self, address: str) -> KnownSite | None:
        """Return what is known of a site; raises ``NotTrustedError`` when somebody else could have written the file."""
        return (self._file.read(_parse) or {}).get(address)

    def check(self, address: str, seen: KnownSite, *, allow_rollback: bool = False) -> bool:
        """Raise ``FetchError`` for a site that another key signs, or that went back; return whether it is to be noted.

        A key that was seen once stays the key of the site, until ``forget``.
        """
        known = self.find(address)
        if known is not None and known.signer and known.signer != seen.signer:
            what = f"it is signed by {seen.signer}" if seen.signer else "it is not signed"
            message = f"{address} was signed by {known.signer} when it was first read, and now {what}"
            raise FetchError(message, address, "signer-changed")
        if known is not None and seen.serial < known.serial and not allow_rollback:
            message = f"{address} went back from state {known.serial} to state {seen.serial}"
            raise FetchError(message, address, "rolled-back")
        return known != seen

    def note(self, address: str, seen: KnownSite) -> None:
        """Remember a site as it is now."""
        self._file.update(lambda: {**self._rows(), address: seen._asdict()})

    def forget(self, address: str) -> bool:
        """Forget a site, so that the next read takes its key as it is; return whether it was known."""
        was_known = self.find(address) is not None
        if was_known:
            self._file.update(lambda: {key: row for key, row in self._rows().items() if key != address})
        return was_known

    def list_signed(self) -> list[tuple[str, KnownSite]]:
        """Return the sites whose key is known, by address."""
        return sorted((address, site) for address, site in (self._file.read(_parse) or {}).items() if site.signer)

    def _rows(self) -> dict[str, dict[str, object]]:
        return {address: site._asdict() for address, site in (self._file.read(_parse) or {}).items()}


def _parse(content: object) -> Mapping[str, KnownSite]:
    if not isinstance(content, dict):
        raise TypeError("not an object")
    return {address: KnownSite(str(row["signer"]), int(row["serial"])) for address, row in content.items()}

"""The page for what cannot be shown: the reason, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

from prowess.hints import HINTS


@dataclass(frozen=True, slots=True)
class ErrorView:
    """What went wrong: the HTTP status, the message, and the code of an error of Prowess."""

    status: int
    message: str
    code: str = ""

    @property
    def hint(self) -> str:
        """What to do about it; ``""`` where nobody knows."""
        return HINTS.get(self.code, "")

"""How often a client may ask, and how long it waits after wrong tokens; counted for each address."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

# Both tables forget the address that was silent for longest beyond this: an attacker with many addresses (IPv6 has
# enough of them) must not be able to fill the memory.
_MAX_TRACKED_CLIENTS = 1_024
_MAX_DOUBLINGS = 64


class RateLimiter:
    """Allows ``limit`` requests in a second, after a burst of as many (a token bucket)."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._left = float(limit)
        self._refilled_at = time.monotonic()

    def allow_request(self) -> bool:
        """Count one more request, and return whether it may pass now."""
        now = time.monotonic()
        self._left = min(self._limit, self._left + (now - self._refilled_at) * self._limit)
        self._refilled_at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class ClientRateLimiter:
    """Allows each client ``limit`` requests in a second."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._limiters: dict[str, RateLimiter] = {}

    def allow_request(self, client: str) -> bool:
        """Count one more request of a client, and return whether it may pass now."""
        limiter = self._limiters.pop(client, None) or RateLimiter(self._limit)
        self._limiters[client] = limiter  # at the end of the dictionary, where the latest client is
        if len(self._limiters) > _MAX_TRACKED_CLIENTS:
            del self._limiters[next(iter(self._limiters))]
        return limiter.allow_request()


class TokenGuesses(NamedTuple):
    """What is remembered about an address that sent tokens."""

    wrong: int = 0
    """How many wrong tokens were judged."""
    until: float = 0.0
    """The time from which the next token is judged."""
    is_known: bool = False
    """Whether the address has sent the right token."""


class WrongTokens:
    """Counts the wrong tokens of each address: ``limit`` are free, then each judged one doubles the wait for the next.

    During a wait no token of the address is judged, not even the right one: a guesser would learn which it is. An
    address that has sent the right token before is always judged, because all programs of this machine, and all
    clients behind one proxy, share an address, and nobody must be able to lock out a client that is at work.
    """

    def __init__(self, limit: int, longest: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._longest = longest
        self._clock = clock
        self._guesses: dict[str, TokenGuesses] = {}

    def __len__(self) -> int:
        return len(self._guesses)

    def wait_seconds(self, address: str) -> float:
        """Return for how many seconds no token of an address is judged."""
        guesses = self._guesses.get(address)
        return 0.0 if guesses is None or guesses.is_known else max(0.0, guesses.until - self._clock())

    def record_right(self, address: str) -> None:
        """Remember that an address sent the right token."""
        self._remember(address, self._guesses.get(address, TokenGuesses())._replace(is_known=True))

    def record_wrong(self, address: str) -> float:
        """Count a wrong token, and return for how many seconds its address has to wait; 0 when it was judged.

        A token that comes during a wait is not counted, so an impatient client does not wait longer.
        """
        now = self._clock()
        guesses = self._guesses.get(address, TokenGuesses(until=now))
        wait = max(0.0, guesses.until - now)
        if not wait:
            wrong = 1 if now - guesses.until > self._longest else guesses.wrong + 1
            # Bounded before the power is taken: 2.0 ** 1024 raises OverflowError.
            doublings = min(wrong - self._limit, _MAX_DOUBLINGS)
            next_wait = min(2.0**doublings, self._longest) if wrong >= self._limit else 0.0
            guesses = guesses._replace(wrong=wrong, until=now + next_wait)
        self._remember(address, guesses)
        return wait

    def _remember(self, address: str, guesses: TokenGuesses) -> None:
        self._guesses.pop(address, None)
        self._guesses[address] = guesses  # at the end of the dictionary, where the latest address is
        if len(self._guesses) > _MAX_TRACKED_CLIENTS:
            del self._guesses[next(iter(self._guesses))]

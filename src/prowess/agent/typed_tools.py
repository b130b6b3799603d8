"""For which runs the user typed ``--tools``: a resumed run asks here, since anybody may have edited its transcript."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from prowess.files.owned_json import OwnedJson
from prowess.files.projects import user_state_file
from prowess.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterable

    Runs = dict[str, str]
    """The hash of what a run was bounded to, by its key; the run that was remembered last comes last."""


class TypedTools:
    """The runs of this user that were begun with ``--tools``, each with its folder, its tools and its skills' places.

    The newest ``Limits.max_remembered_runs`` are kept. Every method raises ``NotTrustedError`` (``run-store``) for a
    file that somebody else could have written, or that cannot be used.
    """

    def __init__(self) -> None:
        self._file = OwnedJson(
            user_state_file("typed-tools.json"), "tools that were typed for earlier runs", "run-store"
        )

    def remember(self, key: str, folder: str, tools: Iterable[str], places: Iterable[str]) -> None:
        """Remember that the user typed the tools of a run."""
        bounds = _hash_bounds(folder, tools, places)

        def add_run() -> dict[str, Any]:
            runs = {other: kept for other, kept in self._read().items() if other != key}
            newest = [*runs.items(), (key, bounds)][-DEFAULT_LIMITS.max_remembered_runs :]
            return {"version": 1, "runs": dict(newest)}

        self._file.update(add_run)

    def knows(self, key: str, folder: str, tools: Iterable[str], places: Iterable[str]) -> bool:
        """Return whether the user typed exactly these tools for the run, with this folder and these places."""
        return self._read().get(key) == _hash_bounds(folder, tools, places)

    def _read(self) -> Runs:
        return self._file.read(_parse_runs) or {}


def _parse_runs(content: Any) -> Runs:
    # What a later Prowess wrote is not understood, and approves nothing.
    return {str(key): str(value) for key, value in content["runs"].items()} if content["version"] == 1 else {}


def _hash_bounds(folder: str, tools: Iterable[str], places: Iterable[str]) -> str:
    return sha256(json.dumps([folder, sorted(tools), list(places)]).encode()).hexdigest()

"""Says whether this machine can run scripts in a sandbox, and skips tests where it cannot.

The summary of a run repeats such skips, so that nobody overlooks what was not tested.
"""

from __future__ import annotations

import pytest

import prowess

NOT_TESTED = "NOT TESTED: "
"""The summary of a run lists each skip whose reason begins with this text in a section of its own."""


def can_isolate() -> bool:
    """Return whether any kind of sandbox works on this machine."""
    return any(kind.usable for kind in prowess.sandbox.available() if kind.name != "none")


def require_sandbox() -> None:
    """Skip the test where no sandbox works. The reason says why each kind does not work."""
    if not can_isolate():
        reasons = "; ".join(kind.why for kind in prowess.sandbox.available() if not kind.usable)
        pytest.skip(f"{NOT_TESTED}the sandbox: {reasons}")

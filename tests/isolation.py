"""Whether this machine can isolate scripts; a test that needs it says loudly that it was not run."""

from __future__ import annotations

import pytest

import prowess

NOT_TESTED = "NOT TESTED: "
"""A skip whose reason begins so is repeated in a section of its own at the end of a run."""


def can_isolate() -> bool:
    """True when some sandbox works here."""
    return any(kind.usable for kind in prowess.sandbox.available() if kind.name != "none")


def require_sandbox() -> None:
    """Skip the test where no sandbox works, with the reason that each kind gives."""
    if not can_isolate():
        reasons = "; ".join(kind.why for kind in prowess.sandbox.available() if not kind.usable)
        pytest.skip(f"{NOT_TESTED}the sandbox: {reasons}")

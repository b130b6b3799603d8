"""The probe of a sandbox: a shell that does nothing is run in it, as any script would be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.errors import SandboxError

if TYPE_CHECKING:
    from prowess.conversation.acting.sandbox.layout import Confined

PROBE_COMMAND = ("/bin/sh", "-c", "exit 0")
"""The program that is confined to find out whether a sandbox works."""
# It ends within milliseconds: a sandbox that hangs must not hold up the host.
_MAX_SECONDS, _MAX_OUTPUT_BYTES = 10, 4096


def explain_failure(confined: Confined) -> str | None:
    """Return why a confined probe fails, ``None`` when it succeeds."""
    from prowess.conversation.acting.supervised import (
        ProcessLimits,
        run_under_supervisor,
    )  # a cycle: it imports layout from this package

    try:
        finished = run_under_supervisor(confined, ProcessLimits(_MAX_SECONDS, _MAX_OUTPUT_BYTES), cwd="/", env={})
    except SandboxError as error:
        return error.message
    if finished.status == 0 and not finished.limit:
        return None
    message = finished.stderr.decode("utf-8", "replace").strip()
    return message or finished.limit or f"exit status {finished.status}"

"""The program of a server process. A fork server runs it, which has imported the SDK already."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

import prowess

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def prepare() -> Callable[..., None]:
    """Import what an HTTP server needs, and return the function that serves."""
    for name in ("prowess.mcp.serve", "prowess.mcp.server", "prowess.mcp.http", "uvicorn"):
        importlib.import_module(name)
    return serve_folder


def serve_folder(root: Path, bind: str, access: dict[str, Any], handles: int, limits: dict[str, float]) -> None:
    """Print the address, and serve the folder until a signal comes.

    ``access``: further options of the server, which say who may ask. ``handles``: how many files and connections the
    process may have open, or 0 for the limit of the system.
    """
    if handles:
        import resource

        resource.setrlimit(resource.RLIMIT_NOFILE, (handles, handles))
    bounds = prowess.Limits(**limits)  # type: ignore[arg-type]
    prowess.mcp.serve(root, http=bind, ready=_tell_address, limits=bounds, **access)


def _tell_address(url: str) -> None:
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()

"""The console (the extra ``web``): local pages on which people see and understand their skills."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.errors import SourceError
from prowess.hints import explain_extra

if TYPE_CHECKING:
    from types import ModuleType

_MODULES_OF_EXTRA = frozenset(("starlette", "jinja2", "markupsafe", "uvicorn", "markdown_it", "nh3"))


def load_console() -> tuple[ModuleType, ModuleType]:
    """Return the module that serves the console, and the one that exports it.

    Raises ``SourceError`` (code ``missing-extra``) when a package of the extra is not installed.
    """
    try:
        from prowess.web import export, serve  # noqa: PLC0415 - they load the packages of the extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _MODULES_OF_EXTRA:
            raise
        raise SourceError(f"the console is not installed: {explain_extra('web')}", code="missing-extra") from None
    return serve, export

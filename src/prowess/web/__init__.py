"""The console (the extra ``web``): local pages on which people see and understand their skills."""

from __future__ import annotations

from importlib.util import find_spec

from prowess.errors import SourceError
from prowess.hints import explain_extra

_PACKAGES = ("starlette", "jinja2", "uvicorn", "markdown_it", "nh3")


def check_extra() -> None:
    """Raise ``SourceError`` (code ``missing-extra``) unless every package of the extra is installed."""
    # Before anything is imported: some of them are loaded by the first page that needs them.
    if not all(map(find_spec, _PACKAGES)):
        raise SourceError(f"the console is not installed: {explain_extra('web')}", code="missing-extra")

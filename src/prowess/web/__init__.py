"""The console (the extra ``web``): local pages on which people see and understand their skills."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from prowess.errors import SourceError
from prowess.hints import explain_extra

if TYPE_CHECKING:
    from collections.abc import Iterator

_MODULES_OF_EXTRA = frozenset(("starlette", "jinja2", "markupsafe", "uvicorn", "markdown_it", "nh3"))


@contextmanager
def explain_missing_extra() -> Iterator[None]:
    """Raise ``SourceError`` (``missing-extra``) when an import in the block finds a package of the extra missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _MODULES_OF_EXTRA:
            raise
        raise SourceError(f"the console is not installed: {explain_extra('web')}", code="missing-extra") from None

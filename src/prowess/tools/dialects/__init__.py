"""The dialects: each is one module with its tool names, schemas, prompt block and answers.

A new dialect is a new module here, named like the dialect (``skill_activate.py`` holds ``skill__activate``), and its
test. Its name also joins ``DialectName``, because a type checker cannot read names from a folder; the settings and the
command line take their choices from there.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, get_args

from prowess.literals import DialectName

if TYPE_CHECKING:
    from prowess.tools.dialect import Dialect

DIALECTS: dict[DialectName, Dialect] = {
    name: import_module(f"prowess.tools.dialects.{name.replace('__', '_')}").DIALECT for name in get_args(DialectName)
}
"""Every dialect by its name."""

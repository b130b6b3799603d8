"""The table of dialects: each is a module with its tool names, schemas, prompt block and answers.

Adding one touches its own module, this table, ``DialectName`` in ``model.py``, and its test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.tools.dialects import load_skill, prowess, read_skill, skill_activate, skill_load, use_skill

if TYPE_CHECKING:
    from prowess.literals import DialectName
    from prowess.tools.dialect import Dialect

DIALECTS: dict[DialectName, Dialect] = {
    module.DIALECT.name: module.DIALECT
    for module in (load_skill, skill_activate, read_skill, skill_load, use_skill, prowess)
}
"""Every dialect by its name."""

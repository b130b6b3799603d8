"""The calls that models make in each dialect, read from the dialects themselves so that a new one needs no table."""

from functools import cache

import prowess

READERS = {
    "skill__activate": ("skill__read_resource", "skill_name", "path"),
    "read_skill": ("read_skill_file", "skill_name", "path"),
    "skill_load": ("skill_resource", "name", "resource"),
    "prowess": ("read_skill_file", "name", "path"),
}
"""The tool that reads files, its parameter for the skill and that for the path, in each dialect that has one."""


@cache
def _loader(dialect: prowess.DialectName) -> tuple[str, str]:
    sample = prowess.Catalog.from_sources([prowess.Source.inline("sample", "Does one thing.", "Do it.")])
    tool = prowess.Toolset(prowess.Session(sample), dialect).tools()[0]
    return tool.name, tool.parameters["required"][0]


def load_call(dialect: prowess.DialectName, name: str) -> tuple[str, dict[str, str]]:
    """The call that loads a skill: the first tool of a dialect, and the name as its first required parameter."""
    tool, key = _loader(dialect)
    return tool, {key: name}

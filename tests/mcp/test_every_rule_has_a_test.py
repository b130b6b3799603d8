"""The rules of the skills extension of MCP, in our words, and that each of them has a test.

The extension is SEP-2640 (https://modelcontextprotocol.io/seps/2640-skills-extension). The docstring of each test
begins with the number of its rule here.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SERVER_RULES = {
    "M1": "A server declares the extension with directoryRead, and resources.",
    "M2": "A server answers skills/list, skills/get and resources/directory/read.",
    "M3": "Every file has the address skill://<path>/<file>, and the last folder of the path has the skill's name.",
    "M4": "A SKILL.md is a resource with the type text/markdown and the name and description of its frontmatter.",
    "M5": "An entry has the frontmatter with YAML's types, and every file with its digest and size.",
    "M6": "A skill has at most 512 files and 16 MiB.",
    "M7": "A listing comes in pages, with a cursor and a rule for caching; each skill is on one page.",
    "M8": "skills/get also answers for a skill that is not listed.",
    "M9": "resources/directory/read lists the files and folders of every folder of a skill, in pages.",
    "M10": "A wrong request is the error -32602, a failure of the server the error -32603.",
}
HOST_RULES = {
    "H1": "A host calls no method of the extension that the server has not declared.",
    "H2": "A skill need not be listed: its address is enough.",
    "H3": "A skill is recognized by its entry, not by the scheme of its address.",
    "H4": "The host names the origin of a skill; the server's own name counts for nothing.",
    "H5": "Skills with the same name are told apart.",
    "H6": "Every file is compared with the size and the digest of the entry; a change needs a new entry.",
    "H7": "An active skill keeps the set of files that it was loaded with.",
    "H8": "The frontmatter of the file is that of the entry, field by field.",
    "H9": "Files are fetched when they are needed, and once.",
    "H10": "Right digests make no skill trusted.",
    "H11": "Reading a SKILL.md as a resource activates nothing.",
    "H12": "Everything that a model gets from a server says where it comes from.",
    "H13": "Nothing of a remote skill runs on this machine.",
    "H14": "A skill reads only files of its own server and of itself.",
    "H15": "allowed-tools grants nothing until a person has approved it for that skill; other fields can only hide.",
    "H16": "An approval is bound to the addresses and digests of the files.",
    "H17": "A skill whose files have no digests is not used.",
    "H18": "Fetched files do not lie where skills are looked for.",
    "H19": "A host uses at most 512 files and 16 MiB of a skill.",
}
RULES = {"test_server_rules.py": SERVER_RULES, "test_host_rules.py": HOST_RULES}
_NUMBER = re.compile(r"([MH]\d+): \S")


def docstrings(file: str) -> dict[str, str]:
    tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))
    return {node.name: ast.get_docstring(node) or "" for node in functions}


@pytest.mark.parametrize("file", RULES)
def test_every_rule_has_a_test_and_every_test_a_rule(file: str) -> None:
    matches = {name: _NUMBER.match(text) for name, text in docstrings(file).items()}
    assert [name for name, match in matches.items() if match is None] == []
    assert {match[1] for match in matches.values() if match} == RULES[file].keys()

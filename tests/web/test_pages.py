"""What every page has in common: it asks the library, and knows no folder."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import prowess.web.pages

PAGES = sorted(Path(prowess.web.pages.__file__).parent.glob("*.py"))
READERS = (
    *("pathlib", "glob", "shutil", "prowess.files", "prowess.lockfile.read", "prowess.installed.scopes"),
    *("prowess.discovery.scan", "prowess.install.installer", "prowess.authoring.check", "prowess.skills.parse"),
)
ALLOWED = {"prowess.files.paths"}
"""It only makes a path shorter for people."""
OS_READERS = {"listdir", "scandir", "stat", "open", "isfile", "isdir", "exists", "walk", "environ", "getcwd"}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_reads_no_folder_by_itself(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if not isinstance(node, ast.If)]  # names of types read nothing
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            assert module in ALLOWED or not module.startswith(READERS), module
        elif isinstance(node, ast.Import):
            assert not [alias.name for alias in node.names if alias.name.startswith(READERS)]
        elif isinstance(node, ast.Attribute):
            assert node.attr not in OS_READERS, node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "open"

"""A library to serve, and servers to ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import prowess
from tests.mcp_peers import Plan, put, skill_md

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from prowess.sources.mcp.source import McpSource

PNG = b"\x89PNG\r\n\x1a\n\0\xff"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Two skills, one of them below a folder, with files of every kind, a nested skill and an empty folder."""
    root = tmp_path / "library"
    put(root, "pdf/SKILL.md", skill_md("pdf", fields="version: 1.10\nmetadata:\n  author: me\n"))
    put(root, "pdf/references/deep/FORMS.md", "forms\r\n")
    put(root, "pdf/assets/logo.png", PNG)
    put(root, "pdf/inner/SKILL.md", skill_md("inner"))
    (root / "pdf" / "empty").mkdir()
    put(root, "billing/invoices/SKILL.md", skill_md("invoices", description="Writes invoices."))
    return root


@pytest.fixture
def server(library: Path) -> prowess.mcp.Server:
    """A server of that library, which does not watch it."""
    return prowess.mcp.Server(library, notice=None)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """What the scripted server will do."""
    return Plan(tmp_path)


@pytest.fixture
def connect(plan: Plan) -> Iterator[Callable[..., McpSource]]:
    """Makes a source of the scripted server, as planned by then; closed again at the end."""
    made: list[McpSource] = []

    def source(label: str = "docs", **options: object) -> McpSource:
        made.append(prowess.Source.mcp(label, command=plan.command(), **options))  # type: ignore[arg-type]
        return made[-1]

    yield source
    for one in made:
        one.close()

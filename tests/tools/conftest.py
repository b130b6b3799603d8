"""What the tests of tools share: skills in a line, a session that records its events, and a call in any dialect."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import prowess
from tests.dialect_calls import READERS, load_call


@pytest.fixture(params=list(prowess.DIALECTS))
def dialect(request: pytest.FixtureRequest) -> str:
    """Each dialect in turn."""
    return str(request.param)


@pytest.fixture(params=["read_skill", "prowess"])
def running(request: pytest.FixtureRequest) -> str:
    """Each dialect in which commands run."""
    return str(request.param)


@pytest.fixture(params=list(READERS))
def reading(request: pytest.FixtureRequest) -> str:
    """Each dialect that has a tool for files."""
    return str(request.param)


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    """Write a skill below ``tmp_path/skills`` and get its folder."""

    def write(
        name: str,
        *,
        description: str = "Does one thing.",
        fields: str = "",
        body: str = "Do it.\n",
        files: Mapping[str, str | bytes] | None = None,
    ) -> Path:
        folder = tmp_path / "skills" / name
        head = f"---\nname: {folder.name}\ndescription: {description}\n{fields}---\n"
        for path, content in {"SKILL.md": head + body, **(files or {})}.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode() if isinstance(content, str) else content)
        return folder

    return write


@pytest.fixture
def events() -> list[prowess.Event]:
    """What the sessions of a test told."""
    return []


@pytest.fixture
def talk(tmp_path: Path, events: list[prowess.Event]) -> Callable[..., prowess.Session]:
    """A session over the skills that were put, with the options of a session; filters see ``skills/NAME``."""

    def begin(catalog: prowess.Catalog | None = None, **options: object) -> prowess.Session:
        catalog = prowess.scan(tmp_path / "skills") if catalog is None else catalog
        return prowess.Session(catalog, **{"base_dir": tmp_path, "on_event": events.append, **options})  # type: ignore[arg-type]

    return begin


@pytest.fixture
def load() -> Callable[[prowess.Toolset, str], prowess.ToolResult]:
    """Have a model load a skill, whatever the dialect calls that."""

    def call(toolset: prowess.Toolset, name: str) -> prowess.ToolResult:
        return toolset.call(*load_call(toolset.dialect, name))

    return call


@pytest.fixture
def read() -> Callable[[prowess.Toolset, str, str], prowess.ToolResult]:
    """Have a model read a file, whatever the dialect calls that."""

    def call(toolset: prowess.Toolset, name: str, path: str) -> prowess.ToolResult:
        tool, skill, file = READERS[toolset.dialect]
        return toolset.call(tool, {skill: name, file: path})

    return call

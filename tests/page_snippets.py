"""Running the snippets of a page of the documentation, as a reader would who copies them."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shutil
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from prowess import MissingPackageError
from tests.sandbox_support import NOT_TESTED

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[1]
FRAMEWORKS = ROOT / "docs" / "how-to" / "frameworks"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def list_blocks(page: Path, *languages: str) -> list[tuple[str, str]]:
    """Return the language and the text of each code block of a page in one of these languages."""
    return [block for block in BLOCK.findall(page.read_text(encoding="utf-8")) if block[0] in languages]


def make_reader_project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a project as a reader of the pages has it, and go there; return its folder.

    It has ``skills/``, ``broken/``, ``acting/``, and the skills of ``skills/`` in a standard place.
    """
    for name in ("skills", "broken", "acting"):
        shutil.copytree(ROOT / "examples" / name, folder / name)
    shutil.copytree(ROOT / "examples" / "skills", folder / ".agents" / "skills")
    (folder / "home").mkdir()
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(folder / "copies"))
    monkeypatch.chdir(folder)
    return folder


def check_session(text: str, page: Path, names: dict[str, Any]) -> None:
    """Run an interactive session in the namespace ``names``; fail unless it prints what it shows."""
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    test.globs = names
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test, out=report.write, clear_globs=False)
    assert runner.failures == 0, report.getvalue()


def run_script(text: str, page: Path, names: dict[str, Any]) -> str:
    """Run a script in the namespace ``names``; return what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(text, str(page), "exec"), names)  # noqa: S102 - the pages are ours
    return printed.getvalue()


def run_framework_page(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, names: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Run the ``python`` and ``pycon`` blocks of ``docs/how-to/frameworks/NAME.md``, in the order of the page.

    The blocks share one namespace, which begins with ``names``: what the page says that its reader has already, such as
    a model. They run in a reader's project in ``folder``. Returns the namespace, so that a test can look at more.
    """
    page = FRAMEWORKS / f"{name}.md"
    make_reader_project(folder, monkeypatch)
    namespace = {"__name__": "page", **(names or {})}
    blocks = list_blocks(page, "python", "pycon")
    assert blocks, f"{page.name} has no snippet"
    for language, text in blocks:
        if language == "pycon":
            check_session(text, page, namespace)
        else:
            run_script(text, page, namespace)
    return namespace


def require_framework(name: str) -> None:
    """Skip a test, and have the summary say so, where the framework of the adapter ``name`` is not installed."""
    try:
        import_module(f"prowess.adapters.{name}")
    except MissingPackageError as error:
        pytest.skip(f"{NOT_TESTED}the adapter {name}: {error}; make test-adapters installs it")

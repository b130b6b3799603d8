"""Every snippet in the README and in docs/ runs and prints what it says; every public name is documented."""

from __future__ import annotations

import inspect
import re
import shutil
import tomllib
from pathlib import Path
from textwrap import indent
from typing import Any, get_args

import pytest

import prowess
from prowess import errors
from prowess.adapters import core
from prowess.conversation.events import EventKind
from prowess.format.frontmatter.fields import SPEC_FIELDS
from prowess.format.rules import EXTENSION_FIELDS, INERT_FIELDS
from prowess.hints import HINTS
from scripts import module_table
from scripts.manual import with_api_names
from tests.page_snippets import (
    BLOCK,
    FRAMEWORKS,
    check_session,
    list_blocks,
    make_reader_project,
    require_framework,
    run_script,
)

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OTHER_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "requirements/README.md")
API = ROOT / "docs" / "reference" / "api"
FRAMEWORK_PAGES = [page for page in PAGES if page.parent == FRAMEWORKS and page.stem != "index"]
OTHERS = [page for page in PAGES if page not in FRAMEWORK_PAGES]
PROGRAMS = {"first-agent": "test_tutorials.py", "first-service": "test_service.py"}
"""Pages whose Python is a program that needs a model, and the tests that run it."""


def path_of(page: Path) -> str:
    """Return the path of a page from the root of the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    return [text for _, text in list_blocks(page, language)]


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project as a reader of the pages has it."""
    return make_reader_project(tmp_path, monkeypatch)


@pytest.mark.parametrize("page", OTHERS, ids=path_of)
@pytest.mark.usefixtures("reader")
def test_interactive_snippets_print_what_the_page_says(page: Path) -> None:
    check_session("\n".join(blocks(page, "pycon")), page, {})


@pytest.mark.parametrize("page", [page for page in OTHERS if page.stem not in PROGRAMS], ids=path_of)
def test_scripts_in_the_pages_run(page: Path, reader: Path) -> None:
    if page.name == "README.md":  # its reader is in the root of a checkout
        shutil.copytree(ROOT / "examples" / "skills", reader / "examples" / "skills")
    for text in blocks(page, "python"):
        assert run_script(text, page, {}), "a script that shows nothing shows nothing"


@pytest.mark.parametrize(("page", "tests"), PROGRAMS.items())
def test_programs_in_the_pages_are_run_by_tests_of_their_own(page: str, tests: str) -> None:
    assert f'"{page}.md"' in (ROOT / "tests" / "docs" / tests).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", FRAMEWORK_PAGES, ids=path_of)
def test_pages_of_frameworks_are_run_by_the_tests_of_their_adapters(page: Path) -> None:
    """The page of a framework needs that framework, and a model that its adapter's tests make."""
    tests = (ROOT / "tests" / "adapters" / f"test_{page.stem}.py").read_text(encoding="utf-8")
    assert re.search(rf'\brun_framework_page\(\s*"{page.stem}"', tests)
    require_framework(page.stem)


def test_every_public_name_stands_in_a_snippet() -> None:
    snippets = "\n".join(text for page in PAGES for kind in ("pycon", "python") for text in blocks(page, kind))
    used = set(re.findall(r"prowess\.(?:errors\.)?(\w+)", snippets))
    assert set(prowess.__all__) - used == set()


def test_every_limit_is_documented_with_its_value() -> None:
    page = (ROOT / "docs" / "reference" / "limits.md").read_text(encoding="utf-8")
    limits = prowess.Limits()
    for name in limits.__slots__:
        assert f"| `{name}` | {getattr(limits, name):,} |" in page, name


def takes_limits(thing: object) -> bool:
    """Return whether a class or a function has the parameter ``limits``."""
    call = thing.__init__ if inspect.isclass(thing) else thing
    return (inspect.isfunction(call) or inspect.ismethod(call)) and "limits" in inspect.signature(call).parameters


def test_the_page_about_limits_names_every_call_that_takes_them() -> None:
    page = (ROOT / "docs" / "reference" / "limits.md").read_text(encoding="utf-8")
    public = {name: getattr(prowess, name) for name in prowess.__all__}
    named = {
        f"{name}.{method}": getattr(kind, method)
        for name, kind in public.items()
        if inspect.isclass(kind)
        for method in vars(kind)
        if not method.startswith("_")
    }
    calls = {name for name, thing in {**public, **named}.items() if takes_limits(thing)}
    assert {name for name in calls if f"`{name}`" not in page} == set()


def test_every_code_is_documented_with_its_remedy() -> None:
    page = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8").replace("\\|", "|")
    for code, hint in HINTS.items():
        assert f"| `{code}` | {hint or 'the message itself says what was expected'} |" in page, code


def test_the_table_of_modules_says_what_the_docstrings_say() -> None:
    page = module_table.PAGE.read_text(encoding="utf-8")
    assert module_table.write_table(page) == page, "run make manual"


def anchors(page: Path) -> set[str]:
    """The fragments by which the headings of a page are reached, as GitHub makes them, and its names on the site."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    names = {f"prowess.{name}" for name in described_in(page)}
    return names | {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", [*PAGES, *(ROOT / name for name in OTHER_PAGES)], ids=path_of)
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    prose = re.sub(r"`[^`\n]+`", "", BLOCK.sub("", page.read_text(encoding="utf-8")))
    for target, fragment in re.findall(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)", prose):
        path = page.parent / target if target else page
        assert path.exists(), target
        assert not fragment or fragment in anchors(path), (target, fragment)


def test_the_first_page_of_the_documentation_leads_to_every_page() -> None:
    """The pages of the API and of single frameworks are reached from their overviews."""
    index = ROOT / "docs" / "index.md"
    overviews = {folder: (folder / "index.md").read_text(encoding="utf-8") for folder in (API, FRAMEWORKS)}
    links = set(re.findall(r"\]\(([^)#]+)", index.read_text(encoding="utf-8")))
    lost = [page for page in PAGES[1:] if page != index and page.relative_to(index.parent).as_posix() not in links]
    assert [page.name for page in lost if f"({page.name})" not in overviews.get(page.parent, "")] == []
    assert "(docs/index.md)" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    """``make docs`` builds the site; this only compares its configuration with the pages."""
    site = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    pages = [page.relative_to(ROOT / site["docs_dir"]).as_posix() for page in PAGES[1:]]
    assert sorted(navigated(site["nav"])) == sorted(pages)


def navigated(entries: list[dict[str, Any]]) -> list[str]:
    """The pages that a navigation leads to, those of its sections included."""
    targets = [target for entry in entries for target in entry.values()]
    return [page for one in targets for page in ([one] if isinstance(one, str) else navigated(one))]


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "how-to").rglob("*.md")), ids=path_of)
def test_a_how_to_page_begins_with_what_it_is_for(page: Path) -> None:
    title, blank, first, *_ = page.read_text(encoding="utf-8").splitlines()
    assert (title[:2], blank) == ("# ", "")
    assert re.match(r"[A-Z`]", first.replace("```", "", 1)), "it begins with code, a list or a table"
    assert not first.startswith("After this page")


def test_the_site_asks_no_other_host_for_fonts_or_scripts() -> None:
    site = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    assert site["theme"]["font"] is False
    assert not {"extra", "extra_javascript"} & site.keys()
    assert [name for name in site["extra_css"] if not (ROOT / site["docs_dir"] / name).is_file()] == []


def described_in(page: Path) -> list[str]:
    """The names whose docstrings the site puts into a page of the API."""
    return re.findall(r"^::: prowess\.([\w.]+)$", page.read_text(encoding="utf-8"), re.MULTILINE)


def test_every_public_name_is_described_once_in_the_reference() -> None:
    described = [name for page in API.glob("*.md") for name in described_in(page)]
    assert sorted(name for name in described if "." not in name) == sorted(prowess.__all__)


def test_every_name_of_the_core_of_adapters_is_described_once_in_the_reference() -> None:
    described = [name for page in API.glob("*.md") for name in described_in(page) if "." in name]
    assert sorted(described) == sorted(f"adapters.core.{name}" for name in core.__all__)


def test_the_overview_of_the_reference_names_what_each_page_describes() -> None:
    """``make manual`` writes its rows."""
    overview = (API / "index.md").read_text(encoding="utf-8")
    assert with_api_names(overview) == overview
    linked = re.findall(r"^\| \[[^\]]+\]\((\w+\.md)\)", overview, re.MULTILINE)
    assert sorted(linked) == sorted(page.name for page in API.glob("*.md") if page.name != "index.md")


def test_the_codes_of_errors_are_sorted_within_their_groups_and_stand_once() -> None:
    page = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    groups = [re.findall(r"^\| `([^`]+)` \|", part, re.MULTILINE) for part in page.split("\n### ")[1:]]
    assert all(codes == sorted(codes) for codes in groups)
    assert sorted(code for codes in groups for code in codes) == sorted(HINTS)


def test_the_page_about_frontmatter_has_every_key_that_the_rules_name() -> None:
    page = (ROOT / "docs" / "reference" / "frontmatter.md").read_text(encoding="utf-8")
    spellings = {"user-invokable", "user_invocable", "user-invokeable", "disable_model_invocation"}  # of others there
    keys = SPEC_FIELDS | EXTENSION_FIELDS | INERT_FIELDS
    assert {key for key in keys - spellings if f"`{key}`" not in page and f"`{key}:" not in page} == set()


def rows(page: str) -> set[str]:
    """The names in the first column of the tables of a page."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return set(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE))


def test_every_keyword_of_sessions_and_toolsets_is_documented() -> None:
    keywords = {*inspect.signature(prowess.Session).parameters, *inspect.signature(prowess.Toolset).parameters}
    assert keywords - rows("how-to/conversation.md") == set()


def test_every_kind_of_event_is_documented() -> None:
    assert set(get_args(EventKind)) - rows("how-to/conversation.md") == set()


def test_the_page_about_errors_draws_the_tree_that_there_is() -> None:
    drawn = blocks(ROOT / "docs" / "reference" / "errors.md", "text")[0]
    assert indent(drawn, "    ") in (errors.__doc__ or "")
    assert set(re.findall(r"\w+Error", drawn)) >= {name for name in prowess.__all__ if name.endswith("Error")}

"""The pages for users of other systems: each documented symbol has a row, and the check of each row is true."""

from __future__ import annotations

import io
import itertools
import json
import re
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import prowess
from tests.docs.symbol_tables import GUIDE, PAGE, SYSTEMS, fill_guide, load_symbols, write_page

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

ROOT = Path(__file__).resolve().parents[2]
SYMBOLS = load_symbols()


class Picker:
    """A selector that a host wrote. It selects the first candidate."""

    strict = False

    def select(self, _query: str, candidates: Sequence[prowess.Skill]) -> list[str]:
        """Return the name of the first candidate."""
        return [candidates[0].name]


def raises(error: type[Exception], function: Callable[..., object], *arguments: object) -> Exception | None:
    """Return the error when the call raises it, and ``None`` when the call returns."""
    try:
        function(*arguments)
    except error as caught:
        return caught
    return None


def inside(context: AbstractContextManager[None], function: Callable[[], object]) -> object:
    """Return what the function returns inside the ``with`` block of the context."""
    with context:
        return function()


def no_git(args: Sequence[str], _cwd: str, _env: Mapping[str, str]) -> bytes:
    """Stand for a git that cannot reach its server."""
    raise prowess.GitError(f"no network for {args[0]}")


def without_programs(function: Callable[[], object]) -> object:
    """Return what the function returns where no program, such as git, is on the search path."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", "")
        return function()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The names that a check may use, in a working folder with the examples."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("skills", "broken", "acting"):
        shutil.copytree(ROOT / "examples" / name, folder / name)
    numbers = itertools.count()

    def fresh_folder() -> Path:
        return folder / f"fresh-{next(numbers)}"

    def new_session() -> prowess.Session:
        return prowess.Session(catalog, tools=["Read"])

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("HOME", str(folder / "home"))
        (folder / "skills/deep-review/README.md").write_text("For people.\n", encoding="utf-8")
        (folder / "skills/deep-review/.hidden").touch()
        catalog = prowess.scan("skills")
        yield {
            "Path": Path,
            "Picker": Picker,
            "catalog": catalog,
            "empty_toolset": lambda dialect, **options: prowess.Toolset(
                prowess.Session(prowess.Catalog()), dialect, **options
            ),
            "fresh_folder": fresh_folder,
            "inside": inside,
            "io": io,
            "json": json,
            "new_session": new_session,
            "no_git": no_git,
            "prowess": prowess,
            "raises": raises,
            "skill": catalog["csv-report"],
            "fresh_installer": lambda: prowess.Installer(fresh_folder(), fresh_folder()),
            "toolset": lambda dialect, **options: prowess.Toolset(new_session(), dialect, **options),
            "with_readme": catalog["deep-review"],
            "without_programs": without_programs,
        }


# -- the programs ------------------------------------------------------------------------------------------------------

HEADINGS = dict(
    zip(SYSTEMS, ("Go skill", "PromptKit", "docker-agent", "@drover/skills", "llm_agents_from_scratch"), strict=True)
)


class Ran(NamedTuple):
    """What a program printed, the message it ended with, and what it warned of."""

    printed: str
    ended: str
    warned: list[str]


Run = Callable[[str], Ran]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git repository with the examples in ``skills/`` and ``.agents/skills/``, and a home folder."""
    (tmp_path / "work" / ".git").mkdir(parents=True)
    for folder in ("skills", ".agents/skills"):
        shutil.copytree(ROOT / "examples" / "skills", tmp_path / "work" / folder)
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "work"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Run:
    """A function that runs the Python program beside that of a system, as it is on the page."""

    def run_program(system: str) -> Ran:
        section = GUIDE.read_text(encoding="utf-8").partition(f"\n## {HEADINGS[system]}\n")[2].partition("\n## ")[0]
        program = re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)[0]
        ended = ""
        caplog.clear()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                exec(compile(program, system, "exec"), {"__name__": "program"})  # noqa: S102 - the page is ours
            except (SystemExit, prowess.SkillError) as error:
                ended = str(error)
        logged = [record.getMessage() for record in caplog.records if record.name == "root"]
        return Ran(capsys.readouterr().out, ended, [*logged, *(str(warning.message) for warning in caught)])

    return run_program


def places(project: Path) -> list[Path]:
    return [project / "skills", project / ".agents" / "skills"]


def test_the_programs_run_in_an_empty_folder_as_the_originals_do(project: Path, run: Run) -> None:
    """The tools of Go and drover are there without skills; a skill that is not there ends the others, or is skipped."""
    for folder in places(project):
        shutil.rmtree(folder)
        folder.mkdir()
    go = run("go-skill")
    assert go.printed.startswith('load_skill {"type": "object", "properties": {"skill_name"')
    assert (go.ended, go.warned) == ("load_skill: no skills are configured", [])
    kit = run("promptkit")
    assert kit.printed == "Available skills:\n- greet: Greets people.\ngreet: Say hello.\n"
    assert "csv-report" in kit.ended
    assert run("docker-agent") == Ran("\n\n\nno such skill\n\nno such skill\n", "", [])
    assert run("drover-skills") == Ran(" 2\n", "", [])
    agents = run("llm-agents-from-scratch")
    assert agents.printed == "<available_skills>\n  </available_skills>\n"
    assert "csv-report" in agents.ended


BROKEN = {
    "no frontmatter": b"# No frontmatter\n\nOnly text.\n",
    "not closed": b"---\nname: broken\ndescription: Breaks.\n",
    "not YAML": b"---\nname: broken\ndescription: a: b: c\n---\nDo it.\n",
    "no description": b"---\nname: broken\n---\nDo it.\n",
    "not UTF-8": b"---\nname: broken\ndescription: \xff\n---\nDo it.\n",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_the_programs_meet_a_broken_skill_as_the_originals_do(text: bytes, project: Path, run: Run) -> None:
    """PromptKit ends with the error; docker-agent says nothing; the others warn of the file, and go on.

    docker-agent lists what is not YAML, and so does Prowess; a skill without a description is listed here alone.
    """
    sound = {system: run(system) for system in SYSTEMS}
    assert [ran.warned for ran in sound.values()] == [[]] * 5
    for folder in places(project):
        (folder / "broken").mkdir()
        (folder / "broken" / "SKILL.md").write_bytes(text)
    for system, before in sound.items():
        ran = run(system)
        if system == "promptkit":
            assert (ran.printed, "broken" in ran.ended) == ("", True)
            continue
        if system != "docker-agent" or text not in (BROKEN["not YAML"], BROKEN["no description"]):
            assert (ran.printed, ran.ended) == (before.printed, before.ended)
        assert len([text for text in ran.warned if "broken" in text]) == (0 if system == "docker-agent" else 1)


def test_the_programs_follow_links_only_where_the_originals_do(project: Path, run: Run) -> None:
    """Four do not see a linked folder, not even one of the same repository; llm_agents_from_scratch follows any."""
    sound = {system: run(system) for system in SYSTEMS}
    for folder, elsewhere in zip(places(project), (project / "more", project.parent / "away"), strict=True):
        elsewhere.mkdir()
        (folder / "csv-report").rename(elsewhere / "csv-report")
        (folder / "csv-report").symlink_to(elsewhere / "csv-report")
    go, kit, docker, drover, agents = (run(system) for system in SYSTEMS)
    assert 'skill "csv-report" not found; available: ' in go.ended
    assert "csv-report" not in kit.printed + docker.printed.partition("Use the following")[0] + drover.printed
    assert "csv-report" in kit.ended
    assert docker.printed.endswith("no such skill\n")
    assert drover.printed.endswith(" 2\n")
    assert (agents.printed, agents.ended) == (sound["llm-agents-from-scratch"].printed, "")
    assert [ran.warned for ran in (go, kit, docker, drover, agents)] == [[]] * 5


# -- the symbols -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_counterpart_of_every_symbol_works(system: str, world: dict[str, Any]) -> None:
    for row in SYMBOLS:
        if row.system == system:
            names = {**world, "session": world["new_session"]()}
            assert eval(row.check, names), (row.symbol, row.check)  # noqa: S307 - the expressions are ours


HELPERS = {"Toolset": "toolset", "Session": "session"}
"""Functions of the world that a check may use in place of the classes that they call."""


def test_the_check_of_a_row_uses_what_the_row_names() -> None:
    unused = []
    for row in SYMBOLS:
        code = re.sub(r'"[^"]*"', "", " ".join(re.findall(r"`([^`]*)`", row.prowess)))
        for groups in re.findall(r"\b([a-z_]+)=|\b([A-Za-z_]+)\(|\.([A-Za-z_]+)\b", code):
            name = "".join(groups)
            if not re.search(rf"\b({name}|(empty_)?{HELPERS.get(name, name)})\b", row.check):
                unused.append(f"{row.system}, {row.symbol}: {name}")
    assert unused == []


def test_the_pages_are_what_the_data_says() -> None:
    """``make manual`` writes the pages from the data."""
    assert PAGE.read_text(encoding="utf-8") == write_page()
    guide = GUIDE.read_text(encoding="utf-8")
    assert guide == fill_guide(guide)
    assert re.findall(r"<!-- symbols of ([a-z-]+) -->", guide) == list(SYSTEMS)


def go_symbols(text: str) -> Iterator[str]:
    """Yield the constants, variables, types, functions, methods and fields of a page about a Go package."""
    for names in re.findall(r"^const (.*)$", text, re.MULTILINE):
        yield from re.findall(r"(\w+) =", names)
    yield from re.findall(r"^var (\w+) =", text, re.MULTILINE)
    yield from re.findall(r"^type (\w+) ", text, re.MULTILINE)
    for owner, name in re.findall(r"^(?:- )?func (?:\((?:\w+ )?\*?(\w+)\) )?(\w+)", text, re.MULTILINE):
        yield f"{owner}.{name}" if owner else name
    for kind, separator in (("struct", r" +[^ ]"), ("interface", r"\(")):
        for owner, body in re.findall(rf"^type (\w+) {kind} \{{\n(.*?)^\}}", text, re.MULTILINE | re.DOTALL):
            yield from (f"{owner}.{name}" for name in re.findall(rf"^(\w+){separator}", body, re.MULTILINE))


def typescript_symbols(text: str) -> Iterator[str]:
    """Yield the interfaces, classes and functions of a page about a TypeScript package, with fields and options."""
    plain = re.sub(r"//.*", "", text)
    pieces = re.findall(r"^(?:interface|class) (\w+)[^{]*\{(.*?)^\}", plain, re.MULTILINE | re.DOTALL)
    for name, body in pieces:
        yield name
        fields = re.findall(r"^\s*(?:readonly )?(\w+)\??[:(]", body, re.MULTILINE)
        yield from (f"{name}.{field}" for field in fields)
    functions = re.compile(r"^function (\w+)\((.*?);(?=[A-Z]|\n(?:\n|interface|$))", re.MULTILINE | re.DOTALL)
    for name, signature in functions.findall(plain):
        yield name
        for braces in re.findall(r"\{(.*?)\}", re.sub(r"\([^()]*\) =>", "", signature), re.DOTALL):
            yield from (f"{name}.{option}" for option in re.findall(r"(\w+)\??:", braces))


def python_symbols(text: str) -> Iterator[str]:
    """Yield the class of a page about a Python package, its members, and each type and constant that it names."""
    for owner, body in re.findall(r"^class (\w+):\n(.*?)^\S", text, re.MULTILINE | re.DOTALL):
        yield owner
        members = re.findall(r"^    def (\w+)|self\.(\w+) = ", body, re.MULTILINE)
        yield from (f"{owner}.{method or attribute}" for method, attribute in members)
    yield from re.findall(r"\bSkill[A-Z]\w+(?:\.[A-Z]+\b)?", text)
    yield from re.findall(r"\b\w+Error\b", text)
    yield from re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", text)


READERS: Mapping[str, Callable[[str], Iterable[str]]] = {
    "go-skill": go_symbols,
    "promptkit": go_symbols,
    "docker-agent": go_symbols,
    "drover-skills": typescript_symbols,
    "llm-agents-from-scratch": python_symbols,
}
BUILT_IN = {"OSError", "ValueError"}
"""Names of Python itself, which the pages mention too."""


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_documented_symbol_has_a_row_and_stands_in_the_guide(system: str, pytestconfig: pytest.Config) -> None:
    """The symbols are read from the documentation of each system, so that none is forgotten and none is invented."""
    documents = sorted((pytestconfig.rootpath.parent / "shared" / "seeds").glob("*.txt"))
    if len(documents) != len(SYSTEMS):
        pytest.skip("NOT TESTED: whether every documented symbol has a row; the documents are not beside the checkout")
    text = documents[list(SYSTEMS).index(system)].read_text(encoding="utf-8")
    documented = set(READERS[system](text)) - BUILT_IN
    assert documented == {row.symbol for row in SYMBOLS if row.system == system and not row.newer}
    guide = GUIDE.read_text(encoding="utf-8")
    section = guide.partition(f"<!-- symbols of {system} -->")[2].partition("<!-- end of symbols -->")[0]
    assert [symbol for symbol in sorted(documented) if f"| `{symbol}` |" not in section] == []

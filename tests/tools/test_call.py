"""``Toolset.call`` answers whatever a model sends, and its errors say what to do next."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import prowess

Put = Callable[..., Path]
Talk = Callable[..., prowess.Session]
Load = Callable[[prowess.Toolset, str], prowess.ToolResult]
Read = Callable[[prowess.Toolset, str, str], prowess.ToolResult]

TOOLS = tuple(dict.fromkeys(tool.name for dialect in prowess.DIALECTS.values() for tool in dialect.tools))
KEYS = ("name", "skill_name", "path", "resource", "offset", "limit", "query", "filter")
MOST = 4_000


@pytest.fixture(scope="module")
def toolsets(tmp_path_factory: pytest.TempPathFactory) -> list[prowess.Toolset]:
    """One in each dialect over the same two skills."""
    root = tmp_path_factory.mktemp("skills")
    for name in ("pdf", "csv"):
        folder = root / name / "references"
        folder.mkdir(parents=True)
        (folder / "guide.md").write_text("Guide.\n", encoding="utf-8")
        (root / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: d\n---\nDo it.\n", encoding="utf-8")
    return [prowess.Toolset(prowess.Session(prowess.scan(root)), name) for name in prowess.DIALECTS]


plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.sampled_from(["pdf", "csv", "references/guide.md", "SKILL.md", "../pdf/SKILL.md", "references", "\0", "guide"]),
)
values = st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3))
objects = st.dictionaries(st.one_of(st.sampled_from(KEYS), st.text()), values, max_size=5)
arguments = st.one_of(
    objects,
    objects.map(json.dumps),
    objects.map(lambda value: json.dumps(value).encode()),
    values.map(json.dumps),
    st.text(),
    st.binary(),
    st.none(),
)


@given(name=st.one_of(st.sampled_from(TOOLS), st.text()), sent=arguments)
def test_a_call_never_raises(name: str, sent: object, toolsets: list[prowess.Toolset]) -> None:
    for toolset in toolsets:
        result = toolset.call(name, sent)  # type: ignore[arg-type]  # whatever a model sends
        assert isinstance(result, prowess.ToolResult)
        assert isinstance(result.content, str)
        json.dumps({**result.data})


@pytest.mark.parametrize("name", [None, 5, ["load_skill"], {"name": "load_skill"}, b"load_skill"])
def test_a_name_of_a_tool_that_is_not_text_is_an_unknown_tool(name: object, toolsets: list[prowess.Toolset]) -> None:
    sent = cast("str", name)
    for toolset in toolsets:
        for result in (toolset.call(sent, {}), asyncio.run(toolset.acall(sent, {}))):
            assert (result.is_error, result.data["reason"]) == (True, "unknown-tool")
            assert repr(name) in result.content


@given(sent=st.one_of(values, st.lists(st.tuples(st.sampled_from(KEYS), plain)), st.just(object())))
def test_arguments_of_any_python_type_are_answered(sent: object, toolsets: list[prowess.Toolset]) -> None:
    for toolset in toolsets:
        for tool in toolset.tools():
            assert isinstance(toolset.call(tool.name, sent), prowess.ToolResult)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "sent",
    [
        "[" * 200_000,
        '{"a":' * 200_000,
        "[1, 2]",
        "7",
        '"pdf"',
        "null ",
        '[["name", "pdf"]]',
        '["ab"]',
        b"\xff\xfe",
        "{'a': 1}",
    ],
)
def test_what_is_not_json_object_is_an_error(sent: str | bytes, toolsets: list[prowess.Toolset]) -> None:
    for toolset in toolsets:
        for tool in toolset.tools():
            result = toolset.call(tool.name, sent)
            assert result.is_error
            assert len(result.content) < MOST


def test_arguments_may_be_a_mapping_json_text_or_bytes(put: Put, talk: Talk) -> None:
    put("pdf")
    toolset = prowess.Toolset(talk())
    text = '{"name": "pdf"}'
    for sent in ({"name": "pdf"}, MappingProxyType({"name": "pdf"}), text, text.encode()):
        assert not toolset.call("load_skill", sent).is_error


@pytest.mark.parametrize("size", [10_000, 3_000_000])
def test_a_huge_name_gives_a_short_error(
    size: int, dialect: prowess.DialectName, put: Put, talk: Talk, load: Load
) -> None:
    """What a model sends does not decide how much it gets back."""
    put("pdf")
    result = load(prowess.Toolset(talk(), dialect), "x" * size)
    assert result.is_error
    assert len(result.content) < MOST
    assert len(json.dumps({**result.data})) < MOST


def test_a_huge_path_gives_a_short_error(reading: prowess.DialectName, put: Put, talk: Talk, read: Read) -> None:
    put("pdf")
    toolset = prowess.Toolset(talk(), reading)
    for path in ("x" * 100_000, "x/" * 100_000, "../" * 100_000):
        result = read(toolset, "pdf", path)
        assert result.is_error
        assert len(result.content) < MOST


def test_a_huge_tool_name_gives_a_short_error(dialect: prowess.DialectName, put: Put, talk: Talk) -> None:
    put("pdf")
    result = prowess.Toolset(talk(), dialect).call("x" * 1_000_000)
    assert result.is_error
    assert len(result.content) < MOST


def test_half_a_character_never_comes_back(dialect: prowess.DialectName, put: Put, talk: Talk) -> None:
    """JSON can escape a lone surrogate, and no host could send it on."""
    put("pdf")
    toolset = prowess.Toolset(talk(), dialect)
    for tool in toolset.tools():
        keys = ", ".join(f'"{key}": "pdf\\ud800"' for key in tool.parameters["properties"])
        result = toolset.call(tool.name, f"{{{keys}}}")
        assert result.is_error
        result.content.encode()


@pytest.mark.parametrize("files", [{}, {"a.md": "a"}], ids=["bare", "with files"])
def test_an_unknown_tool_is_told_with_exactly_those_that_are_offered(
    dialect: prowess.DialectName, files: dict[str, str], put: Put, talk: Talk
) -> None:
    put("pdf", files=files)
    toolset = prowess.Toolset(talk(), dialect)
    result = toolset.call("nope", {"name": "pdf"})
    assert result.is_error
    assert result.content == f"unknown skill tool: nope; known: {', '.join(tool.name for tool in toolset.tools())}"


def test_an_unknown_tool_without_skills_is_told_that_none_is_offered(dialect: prowess.DialectName, talk: Talk) -> None:
    assert prowess.Toolset(talk(), dialect).call("nope").content == "unknown skill tool: nope; none is offered"


@pytest.mark.parametrize("wrong", ["csv-reprot", "csvreport", "CSV-Report", "csv-reports"])
def test_an_unknown_skill_is_told_with_the_nearest_spelling_first(wrong: str, put: Put, talk: Talk) -> None:
    for name in ("archive", "csv-report", "zip"):
        put(name)
    result = prowess.Toolset(talk()).call("load_skill", {"name": wrong})
    assert result.is_error
    assert repr(wrong) in result.content
    assert "available: csv-report, archive, zip" in result.content


def test_a_long_list_of_names_is_cut_in_an_error(put: Put, talk: Talk) -> None:
    for number in range(200):
        put(f"skill-{number}")
    result = prowess.Toolset(talk()).call("load_skill", {"name": "skil-77"})
    assert "available: skill-77, " in result.content
    assert "180 more" in result.content
    assert result.content.count("skill-") == 20


def test_an_error_names_only_what_the_model_may_have(put: Put, talk: Talk) -> None:
    """Neither hidden skills nor those beyond the filter or the list."""
    put("open")
    put("other")
    put("hidden", fields="disable-model-invocation: true\n")
    result = prowess.Toolset(talk(), allowed=["open", "hidden"]).call("load_skill", {"name": "hiden"})
    assert "available: open." in result.content


@pytest.mark.parametrize(
    ("tool", "sent", "key"),
    [
        ("load_skill", {}, "name"),
        ("load_skill", {"name": ""}, "name"),
        ("load_skill", {"name": ["pdf"]}, "name"),
        ("load_skill", {"skill": "pdf"}, "name"),
        ("unload_skill", {"name": None}, "name"),
        ("read_skill_file", {"name": "pdf"}, "path"),
        ("read_skill_file", {"path": "a.md"}, "name"),
        ("read_skill_file", {"name": "pdf", "path": "a.md", "offset": -1}, "offset"),
        ("read_skill_file", {"name": "pdf", "path": "a.md", "offset": "1"}, "offset"),
        ("read_skill_file", {"name": "pdf", "path": "a.md", "offset": True}, "offset"),
        ("read_skill_file", {"name": "pdf", "path": "a.md", "limit": 1.5}, "limit"),
        ("read_skill_file", {"name": "pdf", "path": "a.md", "limit": 0}, "limit"),
        ("search_skills", {}, "query"),
        ("search_skills", {"query": 7}, "query"),
        ("search_skills", {"query": "forms", "limit": 0}, "limit"),
    ],
)
def test_a_wrong_parameter_is_named(tool: str, sent: dict[str, object], key: str, put: Put, talk: Talk) -> None:
    """With the tool, and what the schema asks for instead."""
    put("pdf", files={"a.md": "a\n"})
    result = prowess.Toolset(talk()).call(tool, sent)
    assert (result.is_error, result.data.get("reason")) == (True, "bad-arguments")
    assert tool in result.content
    assert key in result.content
    assert "schema" in result.content


def test_a_missing_file_is_told_with_the_nearest_path(put: Put, talk: Talk) -> None:
    put("pdf", files={"references/guide.md": "Guide.\n", "scripts/fill.py": ""})
    result = prowess.Toolset(talk()).call("read_skill_file", {"name": "pdf", "path": "references/giude.md"})
    assert (result.is_error, result.data["reason"]) == (True, "not-found")
    assert "references/guide.md" in result.content


@pytest.mark.parametrize("path", ["../csv/SKILL.md", "/etc/passwd", "a\\b", "C:x", "~/x", "a/\0", "NUL", "a.", ""])
def test_a_path_that_leaves_the_skill_is_refused(
    path: str, reading: prowess.DialectName, put: Put, talk: Talk, read: Read
) -> None:
    put("pdf")
    put("csv", body="Other.\n")
    result = read(prowess.Toolset(talk(), reading), "pdf", path)
    if reading == "skill_load" and not path:
        assert result.content == "(no supporting files)"
        return
    assert result.is_error
    assert "Other." not in result.content


def test_at_the_limit_the_error_says_what_to_do(put: Put, talk: Talk) -> None:
    put("pdf")
    put("csv")
    toolset = prowess.Toolset(talk(max_active=1))
    toolset.call("load_skill", {"name": "pdf"})
    result = toolset.call("load_skill", {"name": "csv"})
    assert (result.is_error, result.data["reason"]) == (True, "max-active")
    assert "unload_skill" in result.content
    toolset.call("unload_skill", {"name": "pdf"})
    assert not toolset.call("load_skill", {"name": "csv"}).is_error


def test_a_skill_is_put_aside_once(put: Put, talk: Talk) -> None:
    put("pdf", fields="allowed-tools: Read\n")
    session = talk(tools="any")
    toolset = prowess.Toolset(session)
    toolset.call("load_skill", {"name": "pdf"})
    result = toolset.call("unload_skill", {"name": "pdf"})
    assert (result.is_error, result.data["removed_tools"]) == (False, ["Read"])
    assert session.active_skills == ()
    again = toolset.call("unload_skill", {"name": "pdf"})
    assert (again.is_error, again.data["reason"]) == (True, "not-active")


def test_loading_again_says_that_it_was_loaded(put: Put, talk: Talk) -> None:
    put("pdf")
    toolset = prowess.Toolset(talk())
    first = toolset.call("load_skill", {"name": "pdf"}).content
    second = toolset.call("load_skill", {"name": "pdf"}).content
    assert "already" not in first
    assert "already" in second
    assert "Do it." in second


@pytest.mark.parametrize("name", ["pdf", "nope"])
def test_a_listener_that_fails_does_not_break_a_call(
    name: str, dialect: prowess.DialectName, put: Put, talk: Talk, load: Load
) -> None:
    """Neither one that succeeds nor one that is refused."""
    put("pdf")

    def fail(event: prowess.Event) -> None:
        raise RuntimeError(event.kind)

    assert isinstance(load(prowess.Toolset(talk(on_event=fail), dialect), name), prowess.ToolResult)


def test_a_vanished_skill_that_is_active_stays_usable(put: Put, talk: Talk) -> None:
    """From what was loaded, and the result says so."""
    put("pdf")
    put("csv")
    session = talk()
    toolset = prowess.Toolset(session)
    toolset.call("load_skill", {"name": "pdf"})
    session.refresh(prowess.Catalog([session.catalog["csv"]]))
    result = toolset.call("load_skill", {"name": "pdf"})
    assert not result.is_error
    assert "Do it." in result.content
    assert "no longer" in result.content


def test_results_are_the_callers_to_change(put: Put, talk: Talk) -> None:
    put("pdf", fields="allowed-tools: [Read]\n")
    session = talk(tools="any")
    toolset = prowess.Toolset(session, "skill__activate")
    for tools in _lists(toolset.call("skill__activate", {"name": "pdf"}).data):
        tools.append("Bash")
    assert session.active_tools == ("Read",)
    assert toolset.call("skill__activate", {"name": "pdf"}).data["added_tools"] == ["Read"]


def _lists(data: object) -> Iterator[list[object]]:
    assert isinstance(data, dict)
    yield from (value for value in data.values() if isinstance(value, list))


# -- what a model is told to do next -----------------------------------------------------------------------------------


def test_a_missing_file_is_not_answered_with_the_advice_to_list_files_where_no_tool_does(
    reading: prowess.DialectName, put: Put, talk: Talk, read: Read
) -> None:
    put("pdf", files={"references/guide.md": "Read.\n"})
    said = read(prowess.Toolset(talk(), reading), "pdf", "guide.md").content
    assert "references/guide.md" in said
    assert "ist the skill's files" not in said


def test_a_script_without_its_folder_is_told_where_it_is(put: Put, talk: Talk, tmp_path: Path) -> None:
    put("pdf", files={"scripts/profile.py": "print(1)\n"})
    trust = prowess.Trust(tmp_path / "trust.json", policy="defer")
    toolset = prowess.Toolset(talk(trust=trust), scripts=prowess.Scripts(sandbox="none"))
    said = toolset.call("run_skill_script", {"name": "pdf", "script": "profile.py"}).content
    assert "there is scripts/profile.py" in said
    assert "ist the skill's files" not in said


def test_the_arguments_of_a_script_say_how_to_name_a_file_of_the_skill_and_it_is_found_so(
    put: Put, talk: Talk, tmp_path: Path
) -> None:
    cat = "import os, sys\nprint(open(sys.argv[1]).read(), sys.argv[2:], os.environ['SKILL_DIR'] in sys.argv[1])\n"
    put("pdf", files={"scripts/cat.py": cat, "assets/a.csv": "a,b"})
    trust = prowess.Trust(tmp_path / "trust.json")
    session = talk(trust=trust)
    trust.grant(session.skill("pdf"))
    toolset = prowess.Toolset(session, scripts=prowess.Scripts(sandbox="none"))
    definition = next(tool for tool in toolset.tools() if tool.name == "run_skill_script")
    assert "${SKILL_DIR}/assets/" in definition.parameters["properties"]["args"]["description"]
    args = ["${SKILL_DIR}/assets/a.csv", "$SKILL_DIR", "${HOME}", "$(pwd)", "\\${SKILL_DIRS}"]
    result = toolset.call("run_skill_script", {"name": "pdf", "script": "scripts/cat.py", "args": args})
    assert result.data["stdout"] == f"a,b {args[1:]} True\n"

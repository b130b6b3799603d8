"""Tool definitions in the shapes that providers want: valid, equal in content, and copies."""

import importlib
import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import prowess

Put = Callable[..., Path]
Talk = Callable[..., prowess.Session]

EXPORTS = ("to_json_schema", "to_openai", "to_openai_responses", "to_anthropic", "to_mcp")
KEYWORDS = {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "description",
    "enum",
    "items",
    "minimum",
    "maximum",
}
TYPES = {"object", "string", "integer", "array", "number", "boolean"}


@pytest.fixture
def tools(dialect: prowess.DialectName, put: Put, talk: Talk) -> tuple[prowess.ToolDefinition, ...]:
    """Every tool that the dialect can offer."""
    put("pdf", files={"a.md": "a"})
    put("csv")
    selector = prowess.LexicalSelector()
    put("zip", description="Archives folders.")
    return prowess.Toolset(talk(selector=selector), dialect).tools("archives folders please, does")


def check_by_hand(schema: dict[str, Any]) -> None:
    """What JSON Schema asks of the keywords that we use."""
    assert schema.keys() <= KEYWORDS
    assert schema["type"] in TYPES
    properties = schema.get("properties", {})
    assert set(schema.get("required", [])) <= properties.keys()
    assert len(set(schema.get("required", []))) == len(schema.get("required", []))
    assert isinstance(schema.get("additionalProperties", False), bool)
    assert isinstance(schema.get("description", ""), str)
    assert schema.get("enum", ["one"])
    assert len(set(schema.get("enum", []))) == len(schema.get("enum", []))
    for inner in (*properties.values(), *([schema["items"]] if "items" in schema else [])):
        check_by_hand(inner)


def check(schema: dict[str, Any]) -> None:
    """That a schema is one: by the jsonschema package where it is installed, and by hand."""
    try:
        jsonschema = importlib.import_module("jsonschema")
    except ModuleNotFoundError:
        pass
    else:
        jsonschema.Draft202012Validator.check_schema(schema)
    check_by_hand(schema)


def containers(value: object) -> Iterator[dict[str, Any] | list[Any]]:
    """Every mapping and list within a value, the outermost last."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in inner:
        yield from containers(part)
    if isinstance(value, dict | list):
        yield value


def test_every_schema_is_one(tools: tuple[prowess.ToolDefinition, ...]) -> None:
    assert tools
    for tool in tools:
        check(tool.to_json_schema()["parameters"])
        assert tool.parameters["type"] == "object"
        if tool.output is not None:
            check(tool.to_mcp()["outputSchema"])


def test_names_and_descriptions_are_what_providers_take(tools: tuple[prowess.ToolDefinition, ...]) -> None:
    assert len({tool.name for tool in tools}) == len(tools)
    for tool in tools:
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool.name)
        assert tool.description.strip() == tool.description != ""


def test_the_plain_form_has_name_description_and_parameters(tools: tuple[prowess.ToolDefinition, ...]) -> None:
    for tool in tools:
        assert tool.to_json_schema() == {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        }


def test_openai_wants_a_function_nested_or_flat(tools: tuple[prowess.ToolDefinition, ...]) -> None:
    for tool in tools:
        plain = tool.to_json_schema()
        assert tool.to_openai() == {"type": "function", "function": plain}
        assert tool.to_openai_responses() == {"type": "function", **plain, "strict": False}


def test_anthropic_wants_an_input_schema(tools: tuple[prowess.ToolDefinition, ...]) -> None:
    for tool in tools:
        assert tool.to_anthropic() == {
            "name": tool.name,
            "description": tool.description,
            "input_schema": tool.parameters,
        }


def test_mcp_wants_an_input_schema_and_hints(tools: tuple[prowess.ToolDefinition, ...]) -> None:
    for tool in tools:
        shape = tool.to_mcp()
        assert (shape["name"], shape["description"], shape["inputSchema"]) == (
            tool.name,
            tool.description,
            tool.parameters,
        )
        assert shape["annotations"]["readOnlyHint"] is tool.read_only
        assert shape.get("title", "") == tool.title
        assert shape.get("outputSchema") == tool.output
        assert shape.keys() <= {"name", "title", "description", "inputSchema", "outputSchema", "annotations"}


@pytest.mark.parametrize("export", EXPORTS)
def test_an_export_is_json(export: str, tools: tuple[prowess.ToolDefinition, ...]) -> None:
    for tool in tools:
        shape = getattr(tool, export)()
        assert json.loads(json.dumps(shape)) == shape


@pytest.mark.parametrize("export", EXPORTS)
def test_changing_an_export_changes_nothing_else(export: str, tools: tuple[prowess.ToolDefinition, ...]) -> None:
    for tool in tools:
        before = deepcopy({name: getattr(tool, name)() for name in EXPORTS})
        for part in list(containers(getattr(tool, export)())):
            part.clear()
        assert {name: getattr(tool, name)() for name in EXPORTS} == before


def test_a_definition_cannot_be_changed(tools: tuple[prowess.ToolDefinition, ...]) -> None:
    with pytest.raises(AttributeError):
        tools[0].name = "other"  # type: ignore[misc]


def test_tools_that_change_the_session_do_not_run_side_by_side(put: Put, talk: Talk) -> None:
    """Nor are they marked as only reading."""
    put("pdf", files={"a.md": "a"})
    tools = {
        (dialect, tool.name): (tool.parallel, tool.read_only)
        for dialect in prowess.DIALECTS
        for tool in prowess.Toolset(talk(), dialect).tools()
    }
    assert tools["prowess", "unload_skill"] == tools["skill__activate", "skill__deactivate"] == (False, False)
    assert tools["prowess", "read_skill_file"] == tools["read_skill", "read_skill_file"] == (True, True)


def test_our_own_tools_have_these_parameters(put: Put, talk: Talk) -> None:
    put("pdf", files={"a.md": "a"})
    put("csv", description="Profiles tables.")
    toolset = prowess.Toolset(talk(selector=prowess.LexicalSelector()))
    offered = {tool.name: tool.parameters for tool in toolset.tools("does one thing")}
    expected: dict[str, tuple[list[str], dict[str, str]]] = {
        "load_skill": (["name"], {"name": "string", "arguments": "string"}),
        "unload_skill": (["name"], {"name": "string"}),
        "read_skill_file": (
            ["name", "path"],
            {"name": "string", "path": "string", "offset": "integer", "limit": "integer"},
        ),
        "search_skills": (["query"], {"query": "string", "limit": "integer"}),
    }
    assert {
        name: (found["required"], {key: value["type"] for key, value in found["properties"].items()})
        for name, found in offered.items()
    } == expected
    assert all(found["additionalProperties"] is False for found in offered.values())

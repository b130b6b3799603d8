"""Results in the shapes of providers: images and documents as blocks that models can see, and strict schemas."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import prowess

Put = Callable[..., Path]
Talk = Callable[..., prowess.Session]

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
PDF = b"%PDF-1.7\n\xe2\xe3\0"
KINDS = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF",
    "image/gif": b"GIF89a\x01\0\x01\0\0\0",
    "image/webp": b"RIFF\x24\0\0\0WEBPVP8 ",
    "application/pdf": PDF,
}


def read(put: Put, talk: Talk, content: bytes, path: str = "assets/page") -> prowess.ToolResult:
    put("pdf", files={path: content})
    return prowess.Toolset(talk()).call("read_skill_file", {"name": "pdf", "path": path})


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_file_is_its_first_bytes_say(kind: str, put: Put, talk: Talk) -> None:
    result = read(put, talk, KINDS[kind], "assets/page.txt")
    assert result.data["media_type"] == kind
    assert kind in result.content


def test_a_document_of_plain_characters_is_a_document_and_a_text_about_one_is_text(put: Put, talk: Talk) -> None:
    plain = b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer << /Root 1 0 R >>\n%%EOF\n"
    document = read(put, talk, plain, "assets/page.pdf")
    assert (document.data["media_type"], base64.b64decode(document.data["base64"])) == ("application/pdf", plain)
    about = read(put, talk, b"%PDF-1.4 is how such a file begins.\n", "assets/page.txt")
    assert "is how such a file begins" in about.content
    assert "media_type" not in about.data


def test_a_file_that_models_cannot_see_stays_data(put: Put, talk: Talk) -> None:
    result = read(put, talk, b"\0\1\2", "assets/page.png")
    assert "media_type" not in result.data
    blocks: Any = result.to_anthropic("1")["content"]
    assert [block["type"] for block in blocks] == ["text"]
    assert len(result.to_openai("1")) == 1
    assert isinstance(result.to_openai_responses("1")["output"], str)
    assert [block["type"] for block in result.to_mcp()["content"]] == ["text"]


def test_an_image_is_a_block_for_each_provider(put: Put, talk: Talk) -> None:
    result = read(put, talk, PNG)
    data = base64.b64encode(PNG).decode()
    url = f"data:image/png;base64,{data}"
    text = {"type": "text", "text": result.content}
    source = {"type": "base64", "media_type": "image/png", "data": data}
    assert result.to_anthropic("1") == {
        "type": "tool_result",
        "tool_use_id": "1",
        "content": [text, {"type": "image", "source": source}],
        "is_error": False,
    }
    assert result.to_openai("1") == [
        {"role": "tool", "tool_call_id": "1", "content": result.content},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]},
    ]
    assert result.to_openai_responses("1") == {
        "type": "function_call_output",
        "call_id": "1",
        "output": [
            {"type": "input_text", "text": result.content},
            {"type": "input_image", "image_url": url, "detail": "auto"},
        ],
    }
    assert result.to_mcp() == {
        "content": [text, {"type": "image", "data": data, "mimeType": "image/png"}],
        "isError": False,
    }


def test_a_document_is_a_block_for_each_provider(put: Put, talk: Talk) -> None:
    result = read(put, talk, PDF, "assets/a form.pdf")
    data = base64.b64encode(PDF).decode()
    url = f"data:application/pdf;base64,{data}"
    source = {"type": "base64", "media_type": "application/pdf", "data": data}
    blocks: Any = result.to_anthropic("1")["content"]
    assert blocks[1] == {"type": "document", "source": source, "title": "a form.pdf"}
    file = {"filename": "a form.pdf", "file_data": url}
    assert result.to_openai("1")[1]["content"] == [{"type": "file", "file": file}]
    assert result.to_openai_responses("1")["output"][1] == {"type": "input_file", **file}
    resource = {"uri": "skill://pdf/assets/a%20form.pdf", "mimeType": "application/pdf", "blob": data}
    assert result.to_mcp()["content"][1] == {"type": "resource", "resource": resource}


def test_an_error_says_so_to_each_provider(put: Put, talk: Talk) -> None:
    put("pdf")
    result = prowess.Toolset(talk()).call("load_skill", {"name": "nope"})
    assert result.to_anthropic("1")["is_error"] is result.to_mcp()["isError"] is True
    assert result.to_openai("1")[0]["content"] == result.to_openai_responses("1")["output"] == result.content


# -- strict schemas ----------------------------------------------------------------------------------------------------


def check_strict(schema: dict[str, Any]) -> None:
    if schema["type"] == "object":
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])
        for inner in schema["properties"].values():
            check_strict(inner)


def test_a_strict_schema_is_closed_and_requires_everything(dialect: prowess.DialectName, put: Put, talk: Talk) -> None:
    put("pdf", files={"a.md": "a", "scripts/x.py": "1"}, fields="context: fork\n")
    for tool in prowess.Toolset(talk(), dialect).tools():
        before = json.dumps(tool.to_json_schema())
        function: Any = tool.to_openai(strict=True)["function"]
        flat = tool.to_openai_responses(strict=True)
        assert function["strict"] is flat["strict"] is True
        assert flat == {"type": "function", **function}
        check_strict(function["parameters"])
        optional = tool.parameters["properties"].keys() - set(tool.parameters["required"])
        for key, value in function["parameters"]["properties"].items():
            assert ("null" in value["type"]) is (key in optional)
        assert json.dumps(tool.to_json_schema()) == before


def test_what_a_strict_model_sends_is_understood(put: Put, talk: Talk) -> None:
    """Every parameter is there, and those that it has nothing for are null."""
    put("pdf", files={"a.md": "One.\n"})
    toolset = prowess.Toolset(talk())
    values = {"name": "pdf", "path": "a.md", "query": "pdf"}
    for tool in toolset.tools():
        schema: Any = tool.to_openai(strict=True)["function"]["parameters"]
        result = toolset.call(tool.name, {key: values.get(key) for key in schema["required"]})
        assert not result.is_error, result.content


def test_an_optional_choice_may_be_null() -> None:
    schema = {"type": "object", "properties": {"how": {"type": "string", "enum": ["a", "b"]}}, "required": []}
    strict: Any = prowess.ToolDefinition("t", "d", schema).to_openai(strict=True)["function"]["parameters"]
    assert strict["properties"]["how"] == {"type": ["string", "null"], "enum": ["a", "b", None]}

"""What a refusal says is enough to do something about it: broken skills, unknown tools, names, tokens and ports."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest

import prowess
from prowess.errors import HINTS
from prowess.mcp.http import make_guarded_app
from prowess.serving.access import make_access
from prowess.serving.bind import check_token, parse_bind, parse_host_names, parse_origins, token_in
from tests.mcp_peers import put, skill_md, talk, talking

if TYPE_CHECKING:
    from pathlib import Path

    from tests.mcp_peers import Talk

LIMITS = prowess.Limits(watch_seconds=0.05)
SECONDS = 30
BROKEN = "---\nname: pdf\ndescription: &anchor d\n---\nx\n"


async def load(connection: Talk, name: str) -> tuple[bool, str]:
    """Whether loading a skill is an error, and what is said."""
    answer = await connection.ask("tools/call", name="load_skill", arguments={"name": name})
    return answer["isError"], answer["content"][0]["text"]


@pytest.mark.parametrize("name", ["pdf", "forms"])
@pytest.mark.parametrize("show_folders", [True, False])
def test_loading_a_skill_that_an_edit_broke_says_what_is_wrong_with_it(
    tmp_path: Path, name: str, show_folders: bool
) -> None:
    """By the name of its folder, and by the name that it had."""
    put(tmp_path, "pdf/SKILL.md", skill_md(name))
    put(tmp_path, "other/SKILL.md", skill_md("other"))
    server = prowess.mcp.Server(tmp_path, limits=LIMITS, show_folders=show_folders)

    async def whole() -> tuple[bool, str]:
        async with asyncio.timeout(SECONDS), talking(server) as connection:
            assert not (await load(connection, name))[0]
            async with connection.client.listen(tools_list_changed=True) as changes:
                put(tmp_path, "pdf/SKILL.md", BROKEN)
                await anext(changes)
            return await load(connection, name)

    is_error, said = asyncio.run(whole())
    assert is_error
    assert f"'{name}' cannot be loaded" in said
    assert "anchor" in said
    assert HINTS["yaml-anchor"][1:] in said
    assert (str(tmp_path) in said) is show_folders


def test_loading_a_skill_that_broke_while_nobody_watches_says_so(tmp_path: Path) -> None:
    put(tmp_path, "pdf/SKILL.md", skill_md("pdf"))
    server = prowess.mcp.Server(tmp_path, notice=None)

    async def words(connection: Talk) -> tuple[bool, str]:
        assert not (await load(connection, "pdf"))[0]
        put(tmp_path, "pdf/SKILL.md", BROKEN)
        return await load(connection, "pdf")

    is_error, said = talk(server, words)
    assert is_error
    assert "anchor" in said


def test_a_description_that_only_the_body_has_is_not_served(tmp_path: Path) -> None:
    """The extension serves what the specification allows; tools of the same server offer the skill."""
    put(tmp_path, "pdf/SKILL.md", "---\nname: pdf\n---\nFill forms.\n")
    (refused,) = prowess.mcp.check(tmp_path)
    assert [issue.code for issue in refused.issues] == ["description-from-body"]


def test_a_skill_that_never_was_is_unknown_and_not_broken(library: Path) -> None:
    put(library, "broken/SKILL.md", "no head\n")
    server = prowess.mcp.Server(library, notice=None)

    async def words(connection: Talk) -> tuple[bool, str]:
        return await load(connection, "nope")

    is_error, said = talk(server, words)
    assert is_error
    assert "unknown skill 'nope'" in said


@pytest.mark.parametrize("tool", ["nothing", "unload_skill", "run_skill", "run_skill_script"])
def test_the_answer_to_an_unknown_tool_names_what_is_offered(server: prowess.mcp.Server, tool: str) -> None:
    async def words(connection: Talk) -> tuple[list[str], str]:
        offered = [row["name"] for row in (await connection.ask("tools/list"))["tools"]]
        answer = await connection.ask("tools/call", name=tool, arguments={"name": "pdf"})
        assert answer["isError"]
        return offered, answer["content"][0]["text"]

    offered, said = talk(server, words)
    assert re.findall(r"[a-z]+(?:_[a-z]+)+", said.partition("known: ")[2]) == offered


@pytest.mark.parametrize(
    ("headers", "status", "option"),
    [
        ({"host": "other.example"}, 421, "--allow-host"),
        ({"host": "127.0.0.1:8848", "origin": "https://evil.example"}, 403, "--allow-origin"),
    ],
)
def test_a_name_or_a_page_that_is_not_allowed_is_told_which_option_allows_it(
    headers: dict[str, str], status: int, option: str
) -> None:
    rows = [(name.encode(), value.encode()) for name, value in headers.items()]
    refused = make_access("127.0.0.1", [], [], None).find_refusal({"server": ("127.0.0.1", 8848), "headers": rows})
    assert refused is not None
    assert (refused.status, option in refused.message) == (status, True)


@pytest.mark.parametrize(
    ("option", "value", "meant"),
    [
        ("hosts", "skills.example:8443", "'skills.example'"),
        ("hosts", "https://skills.example/mcp", "'skills.example'"),
        ("hosts", "me@skills.example", ""),
        ("hosts", "", ""),
        ("origins", "app.example", "https://app.example"),
        ("origins", "https://app.example/page", "'https://app.example'"),
        ("origins", "https://me@app.example", ""),
        ("origins", "null", ""),
    ],
)
def test_a_name_or_a_page_that_no_request_could_have_is_refused_when_the_server_starts(
    server: prowess.mcp.Server, option: str, value: str, meant: str
) -> None:
    with pytest.raises(prowess.SourceError) as caught:
        make_guarded_app(server, "127.0.0.1", **{option: [value]})  # type: ignore[arg-type]
    assert caught.value.code == "bad-argument"
    assert meant in str(caught.value)


@pytest.mark.parametrize(
    ("name", "origin", "host"),
    [
        ("Skills.Example", "https://App.example/", "skills.example:8443"),
        ("[2001:db8::1]", "http://app.example:80", "[2001:db8::1]"),
        ("2001:db8::1", "vscode-webview://app", "[2001:db8::1]:8443"),
    ],
)
def test_a_name_that_is_allowed_goes_with_every_port_and_a_page_however_it_is_written(
    name: str, origin: str, host: str
) -> None:
    may = make_access("127.0.0.1", parse_host_names([name]), parse_origins([origin]), None)
    sent = origin.lower().removesuffix("/").removesuffix(":80")
    rows = [(b"host", host.encode()), (b"origin", sent.encode())]
    assert may.find_refusal({"server": ("127.0.0.1", 8848), "headers": rows}) is None


def test_a_token_that_is_wrong_is_not_said_to_be_missing(tmp_path: Path) -> None:
    attempts: list[Any] = [
        lambda: check_token("127.0.0.1", "short"),
        lambda: token_in(str(tmp_path / "none")),
        lambda: token_in(str(put(tmp_path, "token", b"\xff" * 32))),
    ]
    for attempt in attempts:
        with pytest.raises(prowess.SkillError) as caught:
            attempt()
        assert caught.value.code == "bad-token"
    with pytest.raises(prowess.SourceError) as needed:
        check_token("10.0.0.1", None)
    assert needed.value.code == "token-needed"


@pytest.mark.parametrize("port", ["65536", "99999", "9" * 5_000])
def test_a_port_out_of_range_is_said_to_be_so(port: str) -> None:
    with pytest.raises(prowess.SourceError, match="65,535"):
        parse_bind(f"127.0.0.1:{port}")


def test_a_tilde_is_the_home_folder_though_no_shell_expands_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    put(tmp_path, "skills/pdf/SKILL.md", skill_md("pdf"))
    put(tmp_path, "token", "a-long-random-token-0123456789\n")
    assert prowess.mcp.survey("~/skills").served == 1
    assert token_in("~/token") == "a-long-random-token-0123456789"
    server = prowess.mcp.Server("~/skills", notice=None)
    assert talk(server, lambda connection: load(connection, "pdf"))[0] is False


def test_a_folder_that_is_not_there_is_named_by_the_path_that_was_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    for ask in (prowess.mcp.survey, prowess.mcp.serve):
        with pytest.raises(prowess.SourceError) as caught:
            ask("~/nope")
        assert repr(str(tmp_path / "nope")) in str(caught.value)
        assert caught.value.code == "missing-root"


@pytest.mark.parametrize("method", ["skills/list", "skills/get", "resources/directory/read"])
def test_the_older_protocol_which_declares_no_extension_has_none_of_its_methods(
    server: prowess.mcp.Server, method: str
) -> None:
    async def words(connection: Talk) -> None:
        assert connection.client.server_capabilities.extensions is None
        assert await connection.refusal(method, uri="skill://pdf/SKILL.md") == -32601
        assert (await connection.ask("resources/read", uri="skill://pdf/SKILL.md"))["contents"]

    talk(server, words, "legacy")


def test_a_server_without_the_extension_is_told_what_fastmcp_needs() -> None:
    assert "SkillsExtension" in HINTS["no-extension"]


# -- prompts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("show_folders", [True, False])
def test_a_prompt_is_what_loading_gives_and_how_files_are_read(library: Path, show_folders: bool) -> None:
    put(library, "pdf/SKILL.md", skill_md("pdf", body="Fill $0 in ${CLAUDE_SKILL_DIR}.\n", fields="argument-hint: x\n"))
    server = prowess.mcp.Server(library, notice=None, show_folders=show_folders)

    async def words(connection: Talk) -> None:
        said = {"arguments": "the form"}
        called = (await connection.ask("prompts/get", name="pdf", arguments=said))["messages"][0]["content"]["text"]
        arguments = {"name": "pdf", **said}
        loaded = (await connection.ask("tools/call", name="load_skill", arguments=arguments))["content"][0]["text"]
        assert loaded in called
        folder = str(library / "pdf") if show_folders else "skill://pdf"
        assert f"Fill the in {folder}." in called
        assert f"Skill directory: {folder}" in called
        assert "<file>assets/logo.png</file>" in called
        assert "read_skill_file" in called.replace(loaded, "")

    talk(server, words)


def test_a_prompt_of_a_skill_that_models_do_not_see_names_the_addresses_of_its_files(library: Path) -> None:
    """The tool that reads files does not know it; the resources do."""
    put(library, "pdf/SKILL.md", skill_md("pdf", fields="disable-model-invocation: true\n"))
    server = prowess.mcp.Server(library, notice=None)

    async def words(connection: Talk) -> str:
        called = await connection.ask("prompts/get", name="pdf")
        assert await connection.ask("resources/read", uri="skill://pdf/references/deep/FORMS.md")
        text: str = called["messages"][0]["content"]["text"]
        return text

    said = talk(server, words)
    assert "skill://pdf/" in said
    assert "read_skill_file" not in said


def test_a_skill_that_models_do_not_see_is_as_unknown_to_them_as_one_that_is_not_there(library: Path) -> None:
    """Whoever is told that there are no skills looks for no other."""
    put(library, "people/SKILL.md", skill_md("people", fields="disable-model-invocation: true\n"))
    server = prowess.mcp.Server(library, notice=None)

    async def words(connection: Talk) -> None:
        for tool, more in (("load_skill", {}), ("read_skill_file", {"path": "a.md"})):
            said = []
            for name in ("people", "nobody"):
                answer = await connection.ask("tools/call", name=tool, arguments={"name": name, **more})
                assert answer["isError"]
                said.append(answer["content"][0]["text"].replace(name, "…"))
            assert said[0] == said[1]
            assert "available: inner, invoices, pdf" in said[0]

    talk(server, words)
